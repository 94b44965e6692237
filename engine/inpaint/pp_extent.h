/* pp_extent.h - how much ProPainter has at once, of a film of some length: its order (pp_order.h), walked without pixels. */
#ifndef TGI_PP_EXTENT_H
#define TGI_PP_EXTENT_H

#include "engine/inpaint/pp_order.h"

#define TGI_PP_MOST_FRAMES 64 /* of a step */

/* Sorts of steps: [n], of n frames; bit k: of which k + 1 are neighbours. */
typedef uint64_t tgi_pp_sorts[TGI_PP_MOST_FRAMES + 1];

typedef struct tgi_pp_extent {
    int64_t length; /* frames of the film */
    int64_t span[TGI_PP_KEPT], newest[TGI_PP_KEPT], oldest[TGI_PP_KEPT];
    int64_t completion, propagation; /* the longest windows */
    int local;                       /* neighbours of a step */
    tgi_pp_sorts has;
    int64_t frames, motions, steps; /* how many of each */
    int64_t alone; /* of the steps, without references though most of the film lies elsewhere */
    double windowed; /* motions of completion windows, pads included */
    double step_frames, step_local;
    int too_many; /* frames of a step, where they are more than is possible */
} tgi_pp_extent;

/* Of the frames [first, until) of a film of `length`, whose end is known or shows; at once there is no more than where all of
 * them are made. TG_E_ARG: a step has too many frames. */
tg_status tgi_pp_measure(const tgi_pp_settings *s, int64_t length, int known, int64_t first,
                         int64_t until, tgi_pp_extent *out, tgi_err *err);
/* What the walk still does until frame k is final; nothing of it is done. For films whose length is known. */
void tgi_pp_ahead(const tgi_pp_order *o, int64_t k, tgi_pp_extent *out);
/* As tgi_pp_measure, of a film that may end anywhere, or never. */
tg_status tgi_pp_measure_any(const tgi_pp_settings *s, tgi_pp_extent *out, tgi_err *err);

#endif

/* pp_order.h - in which order ProPainter's frames, motions and windows are made, for films of any length.
 *
 * All of it follows from the film's length and three settings, never from a pixel: the published script's rules, evaluated
 * as far as the frames that were read allow. So memory is planned by walking the same order without pixels, and a film whose
 * length is not known needs no more: what a window is depends on whether the film goes on behind it, and that is asked.
 *
 *   frame k, motion k (between the frames k and k+1)
 *   completion   of the motions [s, e) together, of which [keep0, keep1) are kept
 *   propagation  of the frames [s, e) together, of which [keep0, keep1) are kept
 *   step         the generator's: neighbours [lo, hi), references, around frame `mid`
 *
 * A frame is final after the last step that it is a neighbour of.
 * @source the schedule of ProPainter's published script. */
#ifndef TGI_PP_ORDER_H
#define TGI_PP_ORDER_H

#include "engine/base/status.h"

#include <stdint.h>

#define TGI_PP_MOST_REFS 512

typedef struct tgi_pp_settings {
    int64_t subvideo_length, neighbor_length, ref_stride;
} tgi_pp_settings;

typedef struct tgi_pp_window {
    int64_t s, e, keep0, keep1;
} tgi_pp_window;

typedef struct tgi_pp_step {
    int64_t mid, lo, hi;
    int n_refs;
    int64_t ref[TGI_PP_MOST_REFS];
} tgi_pp_step;

/* What is kept between acts. */
typedef enum tgi_pp_kept {
    TGI_PP_FRAMES,
    TGI_PP_MOTIONS,   /* as found */
    TGI_PP_COMPLETED, /* motions, completed */
    TGI_PP_UPDATED,   /* frames, after propagation */
    TGI_PP_KEPT
} tgi_pp_kept;

typedef struct tgi_pp_acts {
    void *user;
    /* Read frame k; *end: there is none. */
    tg_status (*frame)(void *user, int64_t k, int *end, tgi_err *err);
    tg_status (*motion)(void *user, int64_t k, tgi_err *err);
    tg_status (*complete)(void *user, const tgi_pp_window *w, tgi_err *err);
    tg_status (*propagate)(void *user, const tgi_pp_window *w, tgi_err *err);
    tg_status (*step)(void *user, const tgi_pp_step *s, tgi_err *err);
    /* Of that kind nothing below k is needed again. */
    void (*forget)(void *user, tgi_pp_kept kind, int64_t k);
} tgi_pp_acts;

typedef struct tgi_pp_order {
    tgi_pp_settings set;
    tgi_pp_acts act;
    int64_t length;            /* frames; TGI_PP_UNKNOWN: not known yet */
    int64_t next[TGI_PP_KEPT]; /* the first that was not made */
    int64_t step;              /* the middle of the next step */
    tgi_pp_step now;           /* room */
} tgi_pp_order;

/* TG_E_ARG: settings that the published script cannot run with, and why. */
tg_status tgi_pp_check(const tgi_pp_settings *s, tgi_err *err);
/* From frame `first` on; `length` < 0: not known, the film ends where act.frame says so. */
void tgi_pp_begin(tgi_pp_order *o, const tgi_pp_settings *s, const tgi_pp_acts *act,
                  int64_t length, int64_t first);
/* Do what is missing for frame k to be final. Frames are asked for in their order. */
tg_status tgi_pp_until(tgi_pp_order *o, int64_t k, tgi_err *err);

#define TGI_PP_UNKNOWN (INT64_MAX / 4) /* frames of a film whose end is not known */

/* Frames in front of a step's middle that may be references, in a film longer than subvideo_length. */
int64_t tgi_pp_reach(const tgi_pp_settings *s);
/* The rules, for a film of `length` frames. */
tgi_pp_window tgi_pp_completion(const tgi_pp_settings *s, int64_t length, int64_t motion);
tgi_pp_window tgi_pp_propagation(const tgi_pp_settings *s, int64_t length, int64_t frame);
void tgi_pp_step_of(const tgi_pp_settings *s, int64_t length, int64_t mid, tgi_pp_step *out);

#endif

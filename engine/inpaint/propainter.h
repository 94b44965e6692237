/* propainter.h - the method of ProPainter: what masks hide is drawn by trained networks, out of a film of any length.
 *
 * The published script keeps a whole film as floats. Here frames come and go as the schedule (pp_order.h) needs them, in
 * forms that lose nothing (pp_pixels.h), so memory depends on the settings and on no length. The result is that of the
 * script, frame by frame.
 *
 *   motions (pp_flow.h) -> completed (pp_complete.h) -> frames updated (pp_fill.h) -> generated (pp_generate.h) -> mixed
 *
 * A frame is a mean of the steps that it is a neighbour of: the first alone, then half and half with each that follows, in 8
 * bits. @source Zhou, Li, Chan, Loy: ProPainter, ICCV 2023, and its published script. */
#ifndef TGI_PROPAINTER_H
#define TGI_PROPAINTER_H

#include "engine/inpaint/extended.h"
#include "engine/inpaint/method.h"
#include "engine/inpaint/on_device.h"
#include "engine/inpaint/pp_order.h"
#include "io/weights.h"

#define TGI_PP_SMALLEST 128 /* pixels of a side: RAFT's coarsest likeness would be one wide */

#define TGI_PP_NO_END INT64_MAX

typedef struct tgi_propainter_how {
    int64_t height, width; /* multiples of 8, TGI_PP_SMALLEST or more */
    int64_t lo,
        hi; /* frames that can be read; hi TGI_PP_NO_END: nobody knows yet, `reach` tells */
    tgi_canvas
        moving; /* motions are completed outside of it; height 0: where frames hide something */
    tgi_pp_settings set;
    int iterations; /* of RAFT */
    int no_cache;   /* features of a frame are made again in each step that looks at it */
    int threads;
    unsigned flags; /* of networks: TGI_NET_EXACT, TGI_NET_KINDS */
    const tgi_weights *raft, *completion, *generator; /* borrowed */
    const tgi_kernel_set *be;
    const tgi_on_device *on; /* borrowed; NULL: the processor computes */
    const char *scratch;     /* a folder, or NULL; borrowed */
    void *user;
    /* Frame k: RGB of 8 bits, rows without gaps, and what it hides, [height][width] bytes 0 or 1. */
    tg_status (*frame)(void *user, int64_t k, void *pixels, uint8_t *hidden, tgi_err *err);
    /* Told how much of what a frame needs is there; NULL: nobody is. */
    void (*tick)(void *user, double fraction);
    /* Where the end is not known: wait for frame k; *end: there is none. */
    tg_status (*reach)(void *user, int64_t k, int *end, tgi_err *err);
    tg_status (*stop)(void *user, tgi_err *err); /* asked while networks run; NULL: nobody */
} tgi_propainter_how;

/* Plan it; nothing of size is allocated. Returned; its ops' free. Weights that are NULL are zeros: for a plan alone. */
tg_status tgi_propainter_new(const tgi_propainter_how *how, tgi_method **out, tgi_err *err);
/* Of what its ops say it holds: the block that its networks share, and their weights. */
void tgi_propainter_networks(const tgi_method *m, size_t *block, size_t *weights);

#endif

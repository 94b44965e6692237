/* propagate.h - what a film shows behind something that is removed, out of its other frames.
 *
 * Of each pixel that a frame hides the nearest later and the nearest earlier frame are found that
 * show it (follow.h), along motions completed behind what is hidden (motion.h). Where both do, their colours
 * are weighted by how near they are, or the nearer one is taken where they differ. What no frame
 * within `reach` shows is filled smoothly from around (fill_smooth.h); a frame that is hidden wholly gets the places of the
 * nearest frames that are not.
 *
 * Frame k depends on the frames k - reach to k + reach, and on nothing else: it has the same bits wherever a run
 * begins. As frames are made in their order, each new one reads one frame and finds one motion.
 *
 * Pixels, what they hide, and motions are kept (ends/frame_store.h): in memory, or pixels in part in a scratch
 * file. */
#ifndef TGI_PROPAGATE_H
#define TGI_PROPAGATE_H

#include "engine/inpaint/method.h"
#include "engine/inpaint/on_device.h"
#include "kernels/backend.h"

#define TGI_REACH_MOST 200

typedef struct tgi_propagate_how {
    int64_t height, width;
    int samples; /* of a pixel, side by side */
    tg_dtype dtype;
    int64_t lo, hi; /* frames that can be read */
    int reach;
    int threads;
    const tgi_graph *network; /* of motions; borrowed */
    const tgi_kernel_set *be;
    const tgi_on_device *on; /* computes the network, borrowed; NULL: the processor does */
    const char *scratch;     /* a folder, or NULL; borrowed */
    void *user;
    /* Frame k: its pixels, rows without gaps, and what it hides, [height][width] bytes 0 or 1. */
    tg_status (*frame)(void *user, int64_t k, void *pixels, uint8_t *hidden, tgi_err *err);
    /* Told how much of what a frame needs is there, where that is more than one other frame; NULL: nobody is. */
    void (*tick)(void *user, double fraction);
    /* Asked while networks run; NULL: nobody. */
    tg_status (*stop)(void *user, tgi_err *err);
} tgi_propagate_how;

typedef struct tgi_propagate tgi_propagate;

/* Plan it; nothing of size is allocated. Returned; tgi_propagate_free. */
tg_status tgi_propagate_new(const tgi_propagate_how *how, tgi_propagate **out, tgi_err *err);
void tgi_propagate_free(tgi_propagate **p);
/* The same as a method, which frees it. */
tgi_method *tgi_propagate_method(tgi_propagate *p);
/* What it will hold, page tables not counted; bytes of the scratch file. */
size_t tgi_propagate_bytes(const tgi_propagate *p);
uint64_t tgi_propagate_disk(const tgi_propagate *p);
/* Frames whose pixels are kept, and how many of them in memory. */
int64_t tgi_propagate_span(const tgi_propagate *p);
int64_t tgi_propagate_in_memory(const tgi_propagate *p);
/* Take less memory, before anything was made: the next smaller way. 0: there is none. */
int tgi_propagate_shrink(tgi_propagate *p);
/* Operations of a frame. */
double tgi_propagate_flops(const tgi_propagate *p);
/* Seconds of frames [from, until), where `of` says those of a network's pass. */
double tgi_propagate_seconds(const tgi_propagate *p, int64_t from, int64_t until,
                             tgi_sched_pass *of, void *user);

/* Frame k. */
tg_status tgi_propagate_make(tgi_propagate *p, int64_t k, tgi_propagated *out, tgi_err *err);
/* After that: the motion from frame k to the next one, completed; 0: it is the last. */
int tgi_propagate_motion(tgi_propagate *p, int64_t k, tgi_motion *out);

#endif

/* motion.h - how a film's picture moves from one frame to the next and back, and what of it lies behind
 * what is to be removed.
 *
 * A small network of ours (configs/networks/flow.onnx, tools/train_flow.py) is run from coarse to fine: at each
 * level of a pyramid it sees the first picture, the second one moved by what is known so far, and says what is
 * missing. The steps are a schedule (plan/schedule.h): the same network at each level's size, with functions
 * between that move pictures and double motions. Then the places that either frame hides, and those near them,
 * which the moving thing has spoilt, are filled smoothly from around (fill_smooth.h).
 *
 *   pyramid   luma 0..1, continued to the right and below by its last column and row up to a multiple of
 *             2 * 2^levels; each level half the one before, of four
 *             neighbours by 1 3 3 1, then
 *             made even: minus the mean of 17 x 17 pixels around, over their deviation
 *   a level   F on a grid of half its size, in its pixels; the network gets [10,h/2,w/2]: the first picture and
 *             the second one at p + F (cubic), each as 4 channels of 2 x 2, F / 8; and gives what is added to F
 *   finer     F doubled in size and in value */
#ifndef TGI_MOTION_H
#define TGI_MOTION_H

#include "engine/exec/schedule_run.h"
#include "engine/inpaint/follow.h"
#include "engine/inpaint/on_device.h"

#define TGI_MOTION_LEVELS 6

/* What a frame gives: luma, and what it hides (bytes). */
typedef struct tgi_motion_frame {
    const float *luma;     /* [height][width], 0..1 */
    const uint8_t *hidden; /* [height][width] */
} tgi_motion_frame;

typedef struct tgi_motions {
    int64_t height, width; /* of frames */
    int64_t high, wide;    /* continued */
    int levels, finest;    /* the coarsest one's number; the one that ends it */
    int64_t rows, columns; /* of a motion */
    int step;              /* pixels from place to place */
    size_t bytes;          /* of a motion and the one back: [4][rows][columns] float32 */
    tgi_schedule *schedule;
    int luma[2][TGI_MOTION_LEVELS], even[2][TGI_MOTION_LEVELS]; /* buffers */
    int columns_room, hidden, room;
    tgi_threads *pool; /* borrowed; set before a run */
} tgi_motions;

/* For frames of that size; `g`: the network, borrowed, as is what computes it in the processor's place (`on`; NULL: nothing
 * does). Returned; tgi_motions_free. */
tg_status tgi_motions_new(const tgi_graph *g, const tgi_kernel_set *be, int64_t height,
                          int64_t width, int threads, const tgi_on_device *on,
                          tgi_motions **out, tgi_err *err);
void tgi_motions_free(tgi_motions **m);
/* The motion from frame `a` to frame `b` and back into out[4][rows][columns]: dx, dy, and dx, dy of the way back. */
tg_status tgi_motions_find(tgi_motions *m, tgi_schedule_run *run, const tgi_motion_frame *a,
                           const tgi_motion_frame *b, float *out, tgi_err *err);
/* View of one of the two (0: to, 1: back). */
tgi_motion tgi_motion_of(const tgi_motions *m, const float *at, int back);

#endif

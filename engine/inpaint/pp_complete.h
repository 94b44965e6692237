/* pp_complete.h - motion behind what is hidden, of a window of ProPainter's motions together.
 *
 * Over time a window is walked three times for each direction: once to see (convolutions over time, a few steps of each kept),
 * once back, once forward, where each step's motion is decoded as soon as it is there. What is kept of all steps (what
 * was seen, its edges, the way back) lies in a store of its own (ends/frame_store.h). Where a device computes, that of the
 * first steps stays there, of as many as have room, and the store has the rest. */
#ifndef TGI_PP_COMPLETE_H
#define TGI_PP_COMPLETE_H

#include "engine/ends/frame_store.h"
#include "engine/exec/schedule_run.h"
#include "engine/inpaint/pp_at.h"
#include "engine/inpaint/pp_order.h"
#include "io/weights.h"

#define TGI_PP_BLENDS 4
#define TGI_PP_RING 5 /* steps of a convolution over time, and of what it waits for */

#define TGI_PP_COMPLETE_KINDS 3

typedef struct tgi_pp_complete {
    int64_t height, width;
    tgi_schedule *schedule;
    tgi_graph *graph[10];
    int lead, blend[TGI_PP_BLENDS], recur[2][2], decode; /* nets; recur: forward, first */
    tgi_frame_store_how kept;
    int *there[TGI_PP_COMPLETE_KINDS]; /* buffers of steps, on a device; tgi_free */
    int stay[TGI_PP_COMPLETE_KINDS];   /* of so many steps */
    tgi_schedule_run *run;
    tgi_threads *pool;
    tgi_frame_store *store;
    int ring[TGI_PP_BLENDS][TGI_PP_RING], result[3], zero; /* buffers */
    float *input, *motion;                                 /* behind the buffers */
    int64_t at;                                            /* the step that is worked on */
} tgi_pp_complete;

typedef struct tgi_pp_complete_io {
    void *user;
    /* Motion k as found, there (0) or back (1), [2][height][width]; until the next call. */
    tg_status (*motion)(void *user, int back, int64_t k, const float **out, tgi_err *err);
    /* Bits of what frame k hides; until the next call. */
    tg_status (*mask)(void *user, int64_t k, const uint8_t **out, tgi_err *err);
    /* Motion k completed. */
    tg_status (*put)(void *user, int back, int64_t k, const float *motion, tgi_err *err);
} tgi_pp_complete_io;

/* `w`: recurrent_flow_completion, borrowed; windows of `most` motions at most. Returned; tgi_pp_complete_free. */
tg_status tgi_pp_complete_new(const tgi_weights *w, const tgi_pp_at *at, int64_t most,
                              tgi_pp_complete **out, tgi_err *err);
void tgi_pp_complete_free(tgi_pp_complete **c);
/* Memory beside the weights (schedule->weight_bytes), of use in a run alone. */
size_t tgi_pp_complete_bytes(const tgi_pp_complete *c);
/* Less of it, the rest in a scratch file in the folder, which is borrowed; 0: it cannot be less. */
int tgi_pp_complete_shrink(tgi_pp_complete *c, const char *scratch);
tg_status tgi_pp_complete_open(tgi_pp_complete *c, const tgi_schedule_memory *m, tgi_err *err);
void tgi_pp_complete_close(tgi_pp_complete *c);
tg_status tgi_pp_complete_run(tgi_pp_complete *c, const tgi_pp_window *w,
                              const tgi_pp_complete_io *io, tgi_err *err);

#endif

/* pp_flow.h - the motion between neighbouring frames of ProPainter: RAFT, on a schedule (plan/schedule.h).
 *
 * A frame is encoded once: it is the second of one pair and the first of the next. Both directions of a pair share what was
 * encoded. The update is one network whose state goes in again, so many times. */
#ifndef TGI_PP_FLOW_H
#define TGI_PP_FLOW_H

#include "engine/exec/schedule_run.h"
#include "engine/inpaint/pp_at.h"
#include "engine/models/propainter/networks.h"

#define TGI_PP_CONTEXT 5 /* arrays that the context gives */

typedef struct tgi_pp_flow {
    int64_t height, width;
    tgi_schedule *schedule;
    tgi_graph *features, *context, *update, *upsample;
    int image, of[2][TGI_PP_LEVELS], context_of[2][TGI_PP_CONTEXT],
        result[2];       /* buffers: of the first, of the second frame */
    int look, pair, end; /* steps that these begin with */
    tgi_schedule_run *run;
    tgi_threads *pool; /* borrowed, as are the memory's */
    int64_t held;      /* the frame that was encoded last, as the second; -1: none */
} tgi_pp_flow;

/* `w`: raft-things, borrowed. Returned; tgi_pp_flow_free. */
tg_status tgi_pp_flow_new(const tgi_weights *w, const tgi_pp_at *at, int iterations,
                          tgi_pp_flow **out, tgi_err *err);
void tgi_pp_flow_free(tgi_pp_flow **f);
/* Weights are packed; schedule->weight_bytes and block_bytes of memory. */
tg_status tgi_pp_flow_open(tgi_pp_flow *f, const tgi_schedule_memory *m, tgi_err *err);
void tgi_pp_flow_close(tgi_pp_flow *f);
/* The block was used by others since. */
void tgi_pp_flow_forget(tgi_pp_flow *f);
/* From frame k to k+1 and back, [2][height][width] each; frames are RGB, 8 bits, side by side. */
tg_status tgi_pp_flow_find(tgi_pp_flow *f, int64_t k, const uint8_t *first,
                           const uint8_t *second, float *there, float *back, tgi_err *err);

#endif

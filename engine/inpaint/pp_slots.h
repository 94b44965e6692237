/* pp_slots.h - places on a device for what frames show, which stay there from step to step. */
#ifndef TGI_PP_SLOTS_H
#define TGI_PP_SLOTS_H

#include "engine/exec/schedule_run.h"
#include "engine/inpaint/pp_extent.h"

typedef struct tgi_pp_slots {
    int n;
    tgi_sched_at at[TGI_PP_MOST_FRAMES];
    int64_t frame[TGI_PP_MOST_FRAMES]; /* what lies there */
} tgi_pp_slots;

/* Of `n` buffers of a schedule those that stay; nothing lies there. */
void tgi_pp_slots_open(tgi_pp_slots *s, const tgi_schedule_run *run, const int *buffer, int n);
/* Nothing lies there any more. */
void tgi_pp_slots_forget(tgi_pp_slots *s);
/* The place of a frame, one of the n_wanted that a step asks for; *there: it lies there. Otherwise the place of the earliest
 * one that the step does not ask for, whose frame is the caller's to set once it is filled. NULL: there is none. */
int64_t *tgi_pp_slots_take(tgi_pp_slots *s, int64_t frame, const int64_t *wanted, int n_wanted,
                           tgi_sched_at *at, int *there);

#endif

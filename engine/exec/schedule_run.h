/* schedule_run.h - runs the steps of a schedule (plan/schedule.h) in memory that the caller gives; allocates
 * tables when it is opened and nothing afterwards. */
#ifndef TGI_SCHEDULE_RUN_H
#define TGI_SCHEDULE_RUN_H

#include "engine/exec/exec.h"
#include "engine/plan/schedule.h"

typedef struct tgi_schedule_run tgi_schedule_run;

/* `weights`: s->weight_bytes, `block`: s->block_bytes, both 64-byte aligned; all borrowed. Weights are packed here.
 * `stop` as in tgi_exec_io, or NULL. Returned; tgi_schedule_close. */
typedef struct tgi_schedule_memory {
    void *weights, *block;
    tgi_threads *pool;
    tg_status (*stop)(void *user, tgi_err *err);
    void *stop_user;
    void (*packed)(
        void *user); /* told behind each network whose weights are packed; NULL: nobody is */
    void *packed_user;
} tgi_schedule_memory;
tg_status tgi_schedule_open(const tgi_schedule *s, const tgi_schedule_memory *m,
                            tgi_schedule_run **out, tgi_err *err);
/* What its tables take. */
size_t tgi_schedule_tables(const tgi_schedule *s);
void tgi_schedule_close(tgi_schedule_run **r);
/* What runs a network; for measuring. View. */
tgi_exec *tgi_schedule_exec(const tgi_schedule_run *r, int net);
/* Where a buffer lies: to be filled before the step that reads it, to be read after the one that wrote it. */
void *tgi_schedule_at(const tgi_schedule_run *r, int buffer);
/* Steps [from, until), in order; `user` goes to steps that are functions. */
tg_status tgi_schedule_steps(tgi_schedule_run *r, int from, int until, void *user,
                             tgi_err *err);
/* Where an array of an input or output lies: as buffers do. `row`: floats from row to row, where it is a part of more
 * channels than its own; 0: it is all. */
typedef struct tgi_sched_at {
    const float *at;
    int64_t row;
} tgi_sched_at;
/* A network that is called (tgi_schedule_called), once: its inputs and outputs in their order. `at` NULL in `out`: that
 * output is dropped. */
tg_status tgi_schedule_call(tgi_schedule_run *r, int net, const tgi_sched_at *in,
                            const tgi_sched_at *out, tgi_err *err);

#endif

/* schedule_run.h - runs the steps of a schedule (plan/schedule.h) in memory that the caller gives; allocates
 * tables when it is opened and nothing afterwards. */
#ifndef TGI_SCHEDULE_RUN_H
#define TGI_SCHEDULE_RUN_H

#include "engine/exec/exec.h"
#include "engine/exec/schedule_device.h"
#include "engine/plan/schedule.h"

typedef struct tgi_schedule_run tgi_schedule_run;

/* `weights`: s->weight_bytes, `block`: s->block_bytes, both 64-byte aligned; all borrowed. Weights are packed here.
 * `stop` as in tgi_exec_io, or NULL. Returned; tgi_schedule_close. */
typedef struct tgi_schedule_memory {
    void *weights, *block;
    tgi_threads *pool;
    const tgi_sched_card *card; /* of a schedule with a device; borrowed */
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
/* What runs a network, of the processor; for measuring. View. */
tgi_exec *tgi_schedule_exec(const tgi_schedule_run *r, int net);
/* Where a buffer lies: to be filled before the step that reads it, to be read after the one that wrote it. NULL: it stays on
 * the device. */
void *tgi_schedule_at(const tgi_schedule_run *r, int buffer);
/* The same for a network that is called. */
tgi_sched_at tgi_schedule_place(const tgi_schedule_run *r, int buffer);
/* Part i of n, of a schedule with lanes: as many arrays of c channels and w columns stand there, one behind the other in
 * channels. */
tgi_sched_at tgi_schedule_part(const tgi_schedule_run *r, tgi_sched_at all, int64_t c,
                               int64_t w, int i, int n);
/* All of an array [c,h,w] of the host's memory, as buffers lie, to a place of that shape. */
tg_status tgi_schedule_put(tgi_schedule_run *r, const int64_t shape[3], const float *from,
                           tgi_sched_at to, tgi_err *err);
/* All of a buffer becomes 0. */
tg_status tgi_schedule_clear(tgi_schedule_run *r, int buffer, tgi_err *err);
/* Steps [from, until), in order; `user` goes to steps that are functions. */
tg_status tgi_schedule_steps(tgi_schedule_run *r, int from, int until, void *user,
                             tgi_err *err);
/* A network that is called (tgi_schedule_called), once: its inputs and outputs in their order. `at` NULL in `out`: that
 * output is dropped. */
tg_status tgi_schedule_call(tgi_schedule_run *r, int net, const tgi_sched_at *in,
                            const tgi_sched_at *out, tgi_err *err);

#endif

/* plan_seconds.h - how long a planned job will take, and what a run took. */
#ifndef TGI_PLAN_SECONDS_H
#define TGI_PLAN_SECONDS_H

#include "engine/job/job.h"
#include "engine/plan/lessons.h"

/* Fill in plan.seconds, of a plan that is complete otherwise. */
void tgi_job_plan_seconds(tg_job *job);
/* A run that computes all of a job on the processor: time its nodes; and keep for the next
 * estimate what it took, in all, when it has finished. */
struct tgi_exec;
void tgi_job_learn_begin(tg_job *job);
/* The executor of stage k (0: of a run in one pass) is open. Nothing happens where no run has begun. */
void tgi_job_learn_stage(tg_job *job, int k, struct tgi_exec *exec);
void tgi_job_learn_end(tg_job *job, double seconds);
void tgi_job_learn_drop(tg_job *job);
/* What no plan of a planned job's network takes less than with so many threads, when its
 * kernels take at least what they take for tiling `t` of it. */
double tgi_job_least_seconds(const tg_job *job, const tgi_tiling *t, int threads);

/* How fast networks are on a machine, apart from any job: by its measured speeds, else by those of a usual one, corrected by
 * finished runs where it is this one. */
typedef struct tgi_pace { /* some kilobytes */
    tgi_speeds speeds;
    const tgi_lessons *lessons; /* NULL: none */
    tgi_lessons *own;
    int threads;
} tgi_pace;

/* Release with tgi_pace_end. */
void tgi_pace_of(const tgi_machine *m, int threads, tgi_pace *out);
void tgi_pace_end(tgi_pace *p);
/* Seconds of a network's pass; 0: nothing is known of a kernel. For tgi_inpaint_seconds, and methods. */
double tgi_pace_of_pass(void *pace, const tgi_sched_net *n);

#endif

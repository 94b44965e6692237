/* job_plan.h - choose and count: what a run will hold and how it is cut. */
#ifndef TGI_JOB_PLAN_H
#define TGI_JOB_PLAN_H

#include "engine/job/job.h"

/* Slack beside what is counted: touched stacks of helper threads (some 20 KiB each), the codec
 * state of the reader's library, what malloc keeps after trimming. Measured: tests/memory. */
#define TGI_ALLOWANCE_BYTES ((size_t)1536 * 1024)

/* Choose and count; fills job->plan. */
tg_status tgi_job_plan(tg_job *job, tgi_plan_ask ask, tgi_err *err);
/* The same for an output that will be written: one that is to be a PNG or JPEG file gets a type
 * that it can hold, unless one was asked for, and is refused when it cannot. */
tg_status tgi_job_plan_output(tg_job *job, tgi_err *err);
/* The same, and it will be run: of a device all is measured. */
tg_status tgi_job_plan_to_run(tg_job *job, tgi_err *err);
/* Net and stages for inputs of this shape, with the kernels of the settings, unless they are
 * there. */
tg_status tgi_job_net(tg_job *job, const tgi_desc *in, tgi_err *err);
/* Forget the plan, not what was adopted: the next question for it plans anew. */
void tgi_job_drop_plan(tg_job *job);
/* What the plan decided. */
tgi_decided tgi_job_decided(const tg_job *job);
/* Use what an interrupted run decided: kernels and file tile, and cell and band if they still
 * fit. Before tgi_job_plan; drops a plan made already. */
void tgi_job_adopt(tg_job *job, const tgi_decided *d);
/* Forget what was adopted, and the plan made with it. */
void tgi_job_adopt_none(tg_job *job);
/* The answer when nothing fits this machine's memory: `least` bytes would do, SIZE_MAX: that
 * could not be counted. */
tg_status tgi_job_refuse_host(tg_job *job, size_t least, tgi_err *err);
/* A round figure for all threads of a usual processor. */
double tgi_flops_per_second(tgi_isa isa, int threads);

#endif

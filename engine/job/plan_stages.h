/* plan_stages.h - a plan in stages, for what does not fit in one pass. Part of job_plan.h. */
#ifndef TGI_PLAN_STAGES_H
#define TGI_PLAN_STAGES_H

#include "engine/job/job.h"
#include "engine/plan/staged.h"

/* What passes between stages may lie on disk: --scratch names a folder that is on one. */
int tgi_plan_keeps_on_disk(const tg_job *job);
/* What computes and what feeds it can do with stages. */
int tgi_plan_knows_stages(const tg_job *job);
/* Operators read whole extents, and the cut of the network is more than all of it. */
int tgi_plan_may_stage(const tg_job *job);
/* Choose: in memory and on disk what the room allows, the rest is made again. Where a disk has too
 * little room, the plan says how much it wants, and no run begins (tgi_job_check_disk). */
tg_status tgi_plan_stages(tg_job *job, const tgi_choose_args *a, tgi_choice *out);
/* Of the cuts that were tried, the one that job->plan.choice runs is left, as it is to run. */
void tgi_plan_drop_cuts(tg_job *job);
/* Lines of the plan: stores, reductions, tilings. */
void tgi_plan_stage_lines(tg_job *job);
/* Nothing fits: `least` bytes, in words `need`, would; the budget is `have`, `must` is the option
 * that helps. */
tg_status tgi_plan_refuse_stages(tg_job *job, size_t least, const char *need, const char *have,
                                 const char *must, tgi_err *err);

/* Of job_plan.c: what a tiling may take of this machine's memory, and what one is chosen by. */
size_t tgi_plan_host_room(const tg_job *job);
void tgi_plan_args(tg_job *job, const int64_t fixed[3], tgi_choose_args *a);

#endif

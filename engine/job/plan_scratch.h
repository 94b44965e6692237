/* plan_scratch.h - disk: decoded input in scratch, room for the output. */
#ifndef TGI_PLAN_SCRATCH_H
#define TGI_PLAN_SCRATCH_H

#include "engine/job/job.h"

/* Where set.scratch is. Of another machine the folder is looked up in its file. */
tg_status tgi_job_look_at_scratch(tg_job *job, tgi_err *err);
/* Before a plan that goes on: what a stopped run of this job (the checksum of its text) has kept
 * between stages stays where it is, whatever --scratch says now. */
void tgi_job_stay_in_scratch(tg_job *job, uint64_t of);
/* Nothing goes on: the folder is the one that was given. */
void tgi_job_stay_no_more(tg_job *job);
/* After the plan: told, where that is another folder than the one that was given. */
void tgi_job_warn_of_staying(tg_job *job);
/* After a tiling is chosen; fills plan.scratch. */
tg_status tgi_job_plan_scratch(tg_job *job, tgi_err *err);
/* Disk space that the interrupted run's OUT.partial holds. */
uint64_t tgi_job_held_already(const char *output);
/* Disk for the output and for scratch, at second zero: TG_E_NO_SPACE with remedies. */
tg_status tgi_job_check_disk(const tg_job *job, tgi_err *err);
/* Go without it: its folder is memory, which the budget does not have. */
void tgi_job_drop_scratch(tg_job *job);
/* 1 when rows of the input are streamed out of large compressed blocks. */
int tgi_job_streams_input(const tg_job *job);
/* Threads that read the source at the same time: the caller and the reader ahead. */
#define TGI_JOB_READERS 2

#endif

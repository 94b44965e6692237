/* job_scenes.h - a job whose film is treated as scenes (--split-scenes): where they begin. */
#ifndef TGI_JOB_SCENES_H
#define TGI_JOB_SCENES_H

#include "engine/inpaint/cuts.h"
#include "engine/job/job.h"

/* Of job->source as it is read, counted from its first frame that is: found in it, or as a file says; none where nobody asks.
 * What was found lies in OUT.cuts.csv then, unless nothing is written. TG_E_ARG: the film comes through a pipe; TG_E_EXISTS:
 * another list has that name. */
tg_status tgi_job_cuts(const tg_job *job, tgi_cuts *out, tgi_err *err);
/* 1: somebody asks. */
int tgi_job_splits(const tg_opts *o);

#endif

/* job_verify.h - a tiled run against the network in one piece. */
#ifndef TGI_JOB_VERIFY_H
#define TGI_JOB_VERIFY_H

#include "engine/job/job.h"

tg_status tgi_job_verify(tg_job *job, tg_verify_result *out, tgi_err *err);
/* What it holds at most, as tgi_job_plan says it for a run. TG_E_BUDGET: that is above the
 * budget. No pixel is touched. */
tg_status tgi_job_verify_peak(tg_job *job, uint64_t *bytes, tgi_err *err);

#endif

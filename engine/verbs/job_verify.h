/* job_verify.h - a tiled run against the network in one piece. */
#ifndef TGI_JOB_VERIFY_H
#define TGI_JOB_VERIFY_H

#include "engine/job/job.h"

tg_status tgi_job_verify(tg_job *job, tg_verify_result *out, tgi_err *err);
tg_status tgi_job_verify_peak(tg_job *job, uint64_t *bytes, tgi_err *err);

#endif

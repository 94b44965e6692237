/* job_preview.h - input and output side by side, of a crop at a time. */
#ifndef TGI_JOB_PREVIEW_H
#define TGI_JOB_PREVIEW_H

#include "engine/job/job.h"

tg_status tgi_job_preview(tg_job *job, tgi_err *err);
/* What it holds at most, as tgi_job_plan says it for a run. TG_E_BUDGET: that is above the
 * budget. No pixel is touched. */
tg_status tgi_job_preview_peak(tg_job *job, uint64_t *bytes, tgi_err *err);

#endif

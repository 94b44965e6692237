/* job_tensor.h - a run whose outputs are arrays. */
#ifndef TGI_JOB_TENSOR_H
#define TGI_JOB_TENSOR_H

#include "engine/job/job.h"

/* The files of all inputs (tgi_held_files); `of` is the job. */
int tgi_tensor_files(const void *of, int64_t i, tgi_held *out);
tg_status tgi_job_run_arrays(tg_job *job, tg_run_result *out, tgi_err *err);

#endif

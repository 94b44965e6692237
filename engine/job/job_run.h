/* job_run.h - a run whose output is an image, tile by tile. */
#ifndef TGI_JOB_RUN_H
#define TGI_JOB_RUN_H

#include "engine/job/job.h"

/* An image out, tile by tile. */
tg_status tgi_job_run_tiles(tg_job *job, tg_run_result *out, tgi_err *err);

/* A share of clipped values that is worth a warning. */
#define TGI_CLIPPED_MANY 0.01

#endif

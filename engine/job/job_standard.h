/* job_standard.h - a film that comes by standard input, or goes to standard output, and the file behind it. */
#ifndef TGI_JOB_STANDARD_H
#define TGI_JOB_STANDARD_H

#include "engine/job/job.h"

/* TG_E_ARG: input and output are one file, of which the shell opened one end or both. Nothing of it was read. */
tg_status tgi_job_standard_check(const tg_job *job, tgi_err *err);

#endif

/* job_names.h - the names that the image's channels have and those that the network's description gives its own. */
#ifndef TGI_JOB_NAMES_H
#define TGI_JOB_NAMES_H

#include "engine/job/job.h"
#include "engine/plan/mapping.h"

/* Warn where they are the same in another order, or some of them are others. After the input was mapped. */
void tgi_job_warn_of_names(tg_job *job, const tgi_mapping_opts *how);

#endif

/* for_images.h - options that change something of images alone, in a job of arrays. */
#ifndef TGI_FOR_IMAGES_H
#define TGI_FOR_IMAGES_H

#include "engine/job/job.h"

/* TG_E_ARG: one of them is asked for, and the job as it is bound has no use for it. What a preset
 * says is for whatever is run with it. */
tg_status tgi_for_images_check(const tg_job *job, tgi_err *err);
/* The value with which the option stands in a job file, since the job has no use for what a preset
 * says; NULL: it has. */
const char *tgi_for_images_idle(const tg_job *job, tgi_opt id);

#endif

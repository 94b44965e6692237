/* inpaint_preview.h - one frame of a film from which something is removed, as a strip of what the method knows: the frame,
 * what is hidden, how it moves to the next one, what other frames show, the result. */
#ifndef TGI_INPAINT_PREVIEW_H
#define TGI_INPAINT_PREVIEW_H

#include "engine/job/job.h"

/* Into the job's output, a PNG, of the frame that --preview names. As tgi_job_plan, and TG_E_ARG: there is no such
 * frame. */
tg_status tgi_inpaint_preview(tg_job *job, tgi_err *err);

#endif

/* job_outpaint.h - a job whose frames become larger (--mode outpainting): how large, and what of them is drawn. */
#ifndef TGI_JOB_OUTPAINT_H
#define TGI_JOB_OUTPAINT_H

#include "engine/inpaint/extended.h"
#include "engine/job/job.h"

/* 1: the options ask for it. */
int tgi_job_outpaints(const tg_opts *o);
/* 1: and for the film's own size in the end. */
int tgi_job_squeezes(const tg_opts *o);
/* TG_E_ARG: options of what is removed stand beside it. Of a job that is none such nothing happens, here and below. */
tg_status tgi_job_outpaint_check(tg_job *job, tgi_err *err);
/* *s becomes the extended film, unless it is squeezed again: that is the method's business. *out says how; its height 0: it
 * stays. TG_E_ARG: nothing would be added, or too much. */
tg_status tgi_job_extend(const tg_opts *o, tgi_source **s, tgi_canvas *out, tgi_err *err);
/* Frames of that size, extended: what the method works on. */
tgi_canvas tgi_job_canvas(const tg_opts *o, int64_t height, int64_t width);

#endif

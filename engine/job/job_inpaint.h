/* job_inpaint.h - a job that removes something from a film (tegula inpaint): its network hands on what it gets, and its
 * source is the film without what masks hide (inpaint/inpaint.h). */
#ifndef TGI_JOB_INPAINT_H
#define TGI_JOB_INPAINT_H

#include "engine/job/job.h"

/* 1: the options say what is to be removed. */
int tgi_job_inpaints(const tg_opts *o);
/* How it is removed: what --method says, else what --weights mean. Static. */
const char *tgi_job_method(const tg_opts *o);
/* 1: trained networks draw it (ProPainter). */
int tgi_job_draws(const tg_opts *o);
/* In the place of a model: the network of motions, or that there is none. */
tg_status tgi_job_inpaint_settings(const tg_opts *o, tgi_settings *s, tgi_err *err);
/* job->source, the film, becomes the film without it; job->graph is made. `again` opens the same film once more. */
tg_status tgi_job_inpaint_open(tg_job *job,
                               tg_status (*again)(tg_job *job, tgi_source **out, tgi_err *err),
                               tgi_err *err);
/* Lines of the fingerprint: what is removed, and how. */
struct tgi_lines;
tg_status tgi_job_inpaint_fingerprint(const tg_job *job, struct tgi_lines *t, tgi_err *err);
/* Fill what the source takes into plan.bytes, `all` of it, and which part of that removes something; its line of the plan. */
void tgi_job_count_source(tg_job *job, size_t all);
void tgi_job_inpaint_line(tg_job *job);

#endif

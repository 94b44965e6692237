/* job_graph.h - the network of a job, and which planes of the image it is looped over. */
#ifndef TGI_JOB_GRAPH_H
#define TGI_JOB_GRAPH_H

#include "engine/job/job.h"

/* For tgi_graph_load_card, of this job's network. */
unsigned tgi_job_graph_flags(const tg_job *job);
/* Load it, or take the one that the job before left (tgi_ctx_keep). */
tg_status tgi_job_graph_load(tg_job *job, tgi_err *err);
/* The job closes: the next one of its context may want the network. */
void tgi_job_graph_leave(tg_job *job);

/* Of planes that are no combinations: what is known of them, out of `of`, the image that has them all. */
tg_status tgi_job_planes_in_turn(tg_job *job, const tgi_image_info *of, tgi_err *err);
/* Planes of --planes that are combinations of entries of axes are taken before the network sees the image, so that
 * their axes, and all that is known of them, stay. 1 in *again: the image is another one now. */
tg_status tgi_job_planes_pick(tg_job *job, int *again, tgi_err *err);
/* The same of the image that was opened again. */
tg_status tgi_job_planes_again(const tg_job *job, tgi_source **s, tgi_err *err);

#endif

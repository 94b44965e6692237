/* job_state.h - networks that carry values from one frame to the next (--state OUT=IN). */
#ifndef TGI_JOB_STATE_H
#define TGI_JOB_STATE_H

#include "engine/job/job.h"

struct tgi_pass;

/* Settings of the options, else of the descriptor. TG_E_ARG: they say no names. */
tg_status tgi_job_state_pick(const tg_opts *o, tgi_settings *s, tgi_err *err);
/* 1: the network gets more than frames: what it hands on, or what is the same for each. */
int tgi_job_hands_on(const tg_job *job);
/* The network is known: how many channels of its image's input --constant gives. */
tg_status tgi_job_state_append(tg_job *job, tgi_err *err);
/* Before the network is planned for: refuse what carries nothing, in words. `shapes` of the job. */
tg_status tgi_job_state_bind(tg_job *job, const tgi_shapes *shapes, tgi_err *err);
/* And when the mapping is complete: frames have to follow each other along one axis. */
tg_status tgi_job_state_check(const tg_job *job, tgi_err *err);
/* Shapes of all inputs of a job with an image. */
void tgi_job_state_shapes(const tg_job *job, tgi_desc in[TGI_MAX_PORTS]);
/* Open the pass's memory, and fill it with what holds before the first frame: zeros, or files. */
tg_status tgi_job_state_begin(struct tgi_pass *p, tgi_err *err);

#endif

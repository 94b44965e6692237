/* job_device.h - a job's device instead of the processor: which one, its memory, what the job
 * takes of it. */
#ifndef TGI_JOB_DEVICE_H
#define TGI_JOB_DEVICE_H

#include "engine/job/job.h"

/* The same for what only the processor does (verify, preview): a device is left. */
tg_status tgi_job_plan_processor(tg_job *job, tgi_plan_ask ask, tgi_err *err);
/* Which device, before a run is planned; asked once. TG_E_DEVICE and
 * TG_E_UNSUPPORTED where --device names one; else the processor stays, with a notice. */
tg_status tgi_job_device_choose(tg_job *job, tgi_err *err);
/* The GPU of the job's machine file, into job->dev. TG_E_DEVICE: none, or no
 * plugin. */
tg_status tgi_job_device_of_file(tg_job *job, const tgi_device_spec *want, tgi_err *err);
/* Go back to the processor, dropping the plan: `why` is told, unless --device named the device
 * (then the answer is TG_E_UNSUPPORTED) or it is NULL. */
tg_status tgi_job_device_leave(tg_job *job, const char *why, tgi_err *err);
/* See how much memory there is, and what a context takes of it. Not `measured`: without making
 * one, where both can be looked up: what an earlier context took, and what the management
 * library says is free. */
tg_status tgi_job_device_see(tg_job *job, int measured, tgi_err *err);
/* Make the context and measure both; once. */
tg_status tgi_job_device_open(tg_job *job, tgi_err *err);
/* With nothing of the job's on the device but its context: what is not free any more is the
 * context's, and the rest is allowed anew. */
void tgi_job_device_recount(tg_job *job);
void tgi_job_device_close(tg_job *job);
/* Seconds of an item on the device, as tgi_choose_args wants them; user: the job. */
double tgi_job_device_seconds(void *user, const tgi_tiling *t);
/* Of all items, with the chosen lanes; pixel_bytes: all that go in and out. */
double tgi_job_device_all_seconds(const tg_job *job, const tgi_tiling *t, double items,
                                  double pixel_bytes);
#define TGI_JOB_DEVICE_TALLEST 4096 /* rows of a band that is worth planning */
/* What a tiling takes on the device beside the arena; SIZE_MAX when the host has no room for
 * its side of it: `host` bytes are left there. */
size_t tgi_job_device_extra(tg_job *job, const tgi_tiling *t, size_t host);
/* The tilings that are tried from now on are of another place of what passes between stages, or of
 * another net: dev.host_least has what there was. */
void tgi_job_device_next_place(tg_job *job);
/* Of a plan: all that the job will hold on the device, context included. */
uint64_t tgi_job_device_planned(const tg_job *job);
/* Bytes taken on the device now: the context, and what is not free any more beside it; 0 when
 * it does not say. A neighbour's counts too. */
uint64_t tgi_job_device_taken(const tg_job *job);
/* Count the chosen tiling: fills dev.need, bytes.weights and bytes.pinned. */
tg_status tgi_job_device_count(tg_job *job, size_t host, tgi_err *err);
/* Its lines of the plan, and those of what the host holds for it. */
void tgi_job_device_lines(tg_job *job);
/* After a run that ended in `st`: 1 when the device ran out of memory that the plan counted on,
 * or its library has no kernel for a layer; the context is given up and the next plan takes
 * less, or leaves the library out. */
int tgi_job_device_shrink(tg_job *job, tg_status st, const tgi_err *e);
/* What `st` of a run means to the caller: a device that failed in its middle is lost. */
tg_status tgi_job_device_answer(const tg_job *job, tg_status st, const tgi_err *e,
                                tgi_err *err);
/* What a run on the device took of it, before it is given back. */
void tgi_job_device_result(const tg_job *job, tg_run_result *res);
/* The system pins no memory: copies to and from the device wait. */
void tgi_job_device_warn_of_copies(tg_job *job);
/* Of a plan that is refused: what the device was like, for trials. */
void tgi_job_device_keep_refused(tg_job *job);
/* Bytes; 0: nobody tells. */
uint64_t tgi_job_device_free_now(const tg_job *job);
/* The answer when nothing fits the device. */
tg_status tgi_job_device_refuse(tg_job *job, size_t least, tgi_err *err);

#endif

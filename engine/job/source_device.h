/* source_device.h - a device that computes what the source makes (inpaint.h), while the pass over it stays with the
 * processor: whether it can, and what it takes there. */
#ifndef TGI_SOURCE_DEVICE_H
#define TGI_SOURCE_DEVICE_H

#include "engine/job/job.h"

/* 1: --device names a device. */
int tgi_job_wants_device(const tg_opts *o);
/* 1: --preset auto named it (inpaint_choice.h): the processor takes over where it cannot be had. */
#define TGI_AUTO_ORIGIN "preset auto" /* of options that it sets */
int tgi_job_device_by_auto(const tg_opts *o);
/* 1: networks are computed in halves there: --precision fp16, or --fp16. */
int tgi_job_wants_halves(const tg_opts *o);
/* 1: of what the source makes some networks may be; 0: all find motions, which takes float32. */
int tgi_job_source_halves(const tg_job *job);
/* Why no device computes what the source makes; NULL: one can. Static. */
const char *tgi_job_source_lacks(const tg_job *job);
/* Plan the source for what computes it: the processor, or the device in what of its memory may be used. TG_E_BUDGET: the
 * device has less than it takes at least. */
tg_status tgi_job_plan_source(tg_job *job, tgi_err *err);
/* Take what was planned (tgi_inpaint_begin); nothing for any other source. */
tg_status tgi_job_source_begin(tg_job *job, tgi_err *err);
/* The plan's lines of the device's memory; nothing where none computes the source. */
void tgi_job_source_device_lines(tg_job *job);
#endif

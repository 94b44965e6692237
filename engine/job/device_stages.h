/* device_stages.h - a plan in stages on a device: the forms of what goes up and comes back in each
 * stage, and what they take.
 *
 * Values that pass between stages lie in this machine's memory, or in a file, as floats in planes; so
 * do arrays on their way in and out.
 * Each stage has its own executor on the device, in the memory of the one before. Reductions are
 * gathered here, of sums of rows that come back (64 pixels in 16 bytes), or of rows where an extreme
 * is wanted. */
#ifndef TGI_DEVICE_STAGES_H
#define TGI_DEVICE_STAGES_H

#include "engine/job/job.h"

/* Can the job's device run these stages of its net? */
int tgi_device_takes_stages(const tg_job *job, const tgi_stages *s);
/* Is this the tiling of a stage that was cut? */
int tgi_device_is_stage(const tg_job *job, const tgi_tiling *t);
/* The forms of its ports. */
void tgi_device_stage_form(const tg_job *job, const tgi_tiling *t, tgi_device_form *out);
/* Pinned bytes of what goes up beside rows of an image, for two bands; at[i]: where input i begins
 * in those of one. */
size_t tgi_device_stage_up(const tg_job *job, const tgi_tiling *t, const tgi_device_form *form,
                           size_t at[TGI_DEVICE_PORTS]);
/* Bytes of pixels that a band of it moves, both ways. */
double tgi_device_stage_pixels(const tgi_tiling *t, const tgi_device_form *form);
/* What the stages take: *need is that of the stage that takes most of the device, but `pinned` and
 * `packing` are the most that any stage takes here; *form is the last stage's. */
tg_status tgi_device_stages_need(tg_job *job, tgi_device_need *need, tgi_device_form *form,
                                 tgi_err *err);

#endif

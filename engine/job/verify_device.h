/* verify_device.h - what verify shows of a device: its result on the user's own image beside
 * the processor's, and that there, too, any cut gives the same bits. */
#ifndef TGI_VERIFY_DEVICE_H
#define TGI_VERIFY_DEVICE_H

#include "engine/job/job.h"

/* Over the dense input `in`: job->dev's network in cells and bands into `other`, compared with
 * `whole`, and once more in other cells, compared with `other` bit by bit. Fills the device_*
 * members. Takes at most two images and two results of host memory. */
tg_status tgi_verify_device(tg_job *job, const float *in, const float *whole, float *other,
                            tg_verify_result *out, tgi_err *err);

#endif

/* verify_device.h - what verify shows of a device: its result on the user's own data beside the
 * processor's, and that there, too, any cut gives the same bits. */
#ifndef TGI_VERIFY_DEVICE_H
#define TGI_VERIFY_DEVICE_H

#include "engine/job/verify_values.h"

/* Over the inputs in `v`: job->dev's network in cells and bands into `other`, compared with
 * `whole`, and once more in other cells, compared with `other` bit by bit. Fills the device_*
 * members of job->verified, and of *out what is one for all outputs. Takes at most the inputs
 * and a result twice of host memory. */
tg_status tgi_verify_device(tg_job *job, const tgi_verify_values *v, tg_verify_result *out,
                            tgi_err *err);

#endif

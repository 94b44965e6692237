/* verify_device.h - what verify shows of a device: its result on the user's own data beside the
 * processor's, and that there, too, any cut gives the same bits. */
#ifndef TGI_VERIFY_DEVICE_H
#define TGI_VERIFY_DEVICE_H

#include "engine/verbs/verify_values.h"

typedef struct tgi_verify_device tgi_verify_device;

/* Choose the cells, in what the device's memory allows: TG_E_BUDGET before anything is
 * computed. job->dev: the device. Returned; tgi_verify_device_free. */
tg_status tgi_verify_device_plan(tg_job *job, tgi_verify_device **out, tgi_err *err);
void tgi_verify_device_free(tgi_verify_device **d);
/* Over the inputs in `v`: job->dev's network in cells and bands into `other`, compared with
 * `whole`, and once more in other cells, compared with `other` bit by bit. Fills the device_*
 * members of job->verified, and of *out what is one for all outputs. Takes at most the inputs
 * and a result twice of host memory. */
tg_status tgi_verify_device_run(tg_job *job, const tgi_verify_device *d,
                                const tgi_verify_values *v, tg_verify_result *out,
                                tgi_err *err);

#endif

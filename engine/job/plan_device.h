/* plan_device.h - a plan on a device, with the way back to the processor. */
#ifndef TGI_PLAN_DEVICE_H
#define TGI_PLAN_DEVICE_H

#include "engine/job/job.h"

/* Plan on the device, if one is chosen, with `tile` (which chooses the tiling of
 * the net that is there); where that fails back to the processor, unless the user named the
 * device. `in`: as tgi_job_net. */
tg_status tgi_job_plan_on_device(tg_job *job, const tgi_desc *in,
                                 tg_status (*tile)(void *user, tgi_err *err), void *user,
                                 tgi_err *err);
/* Before a plan is run: if it was made without a context, make that now. *holds: 0 when what
 * is measured is not what was supposed, and the plan has to be made again. */
tg_status tgi_job_device_confirm(tg_job *job, int *holds, tgi_err *err);

#endif

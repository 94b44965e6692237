/* doctor.h - what stands in a job's way on this machine, and what to do about it. */
#ifndef TGI_DOCTOR_H
#define TGI_DOCTOR_H

#include "engine/base/status.h"
#include "tegula_memory.h"

/* `job` NULL: the machine alone. *list returned; tgi_free. TG_E_NOMEM, TG_E_CANCELLED; that a
 * job cannot run is a finding. */
tg_status tgi_doctor(const char *root, const tg_opts *job, tg_finding **list, size_t *n,
                     tgi_err *err);

#endif

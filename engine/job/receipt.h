/* receipt.h - OUT.tegula.json: what was done, with what, and what it took. */
#ifndef TGI_RECEIPT_H
#define TGI_RECEIPT_H

#include "engine/job/job.h"

/* Written after the output has its name. `sets`: statistics used; `fingerprint`: the job's. */
tg_status tgi_receipt_write(const tg_job *job, const tg_run_result *res, const tg_stats *sets,
                            const char *fingerprint, tgi_err *err);

#endif

/* job_done.h - is the output that is there what this job would make? */
#ifndef TGI_JOB_DONE_H
#define TGI_JOB_DONE_H

#include "engine/job/job.h"

/* With --skip-done. *done: it is finished, and its receipt tells of this file, this input and these settings;
 * *bad: regions that --on-bad-tile filled in it. TG_E_EXISTS: it tells of others, and -y is not given. An output
 * without a receipt, or with a journal beside it, is the run's own affair. */
tg_status tgi_job_is_done(tg_job *job, int *done, int64_t *bad, tgi_err *err);

/* Is `output` finished, and made with the fingerprint `now`? *there: it has a receipt, and no journal is beside it; *bad as
 * above. TG_E_EXISTS: with another one. */
tg_status tgi_output_is_done(const char *output, const char *now, int *there, int64_t *bad,
                             tgi_err *err);

#endif

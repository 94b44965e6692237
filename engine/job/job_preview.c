/* job_preview.c - a look at a few crops before the long run. */
#include "engine/job/job.h"

tg_status tgi_job_preview(tg_job *job, tgi_err *err)
{
    (void)job;
    return tgi_fail(err, TG_E_UNSUPPORTED, "preview is not in this build");
}

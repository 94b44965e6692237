/* job_settings.h - what a planned job was set to, in words that set it again. */
#ifndef TGI_JOB_SETTINGS_H
#define TGI_JOB_SETTINGS_H

#include "engine/job/job.h"

/* What --pyramid asks for. */
static inline tgi_pyramid tgi_opts_pyramid(const tg_opts *opts)
{
    const int k = tgi_opts_choice(opts, TGI_OPT_PYRAMID);
    return k > 0 ? (tgi_pyramid)k : TGI_PYRAMID_NONE;
}
/* As tg_job_settings; as member "settings"; as a job file. After tgi_job_plan.
 */
tg_status tgi_job_settings(tg_job *job, const tg_setting **list, size_t *n, tgi_err *err);
tg_status tgi_job_put_settings(tgi_jw *w, tg_job *job, tgi_err *err);
tg_status tgi_job_save_json(tg_job *job, char **json, tgi_err *err);

#endif

/* job_names.c - see job_names.h. */
#include "engine/job/job_names.h"

#include "engine/job/job_open.h"
#include "engine/plan/mapping_refuse.h"

void tgi_job_warn_of_names(tg_job *job, const tgi_mapping_opts *how)
{
    char text[240];
    if (tgi_mapping_other_names(&job->map, how, job->info, text, sizeof text))
        tgi_job_warn(job, "some channels have other names than the network's: it gets %s",
                     text);
    if (tgi_mapping_other_order(&job->map, how, job->info, text, sizeof text))
        tgi_job_warn(job,
                     "the image's channels have the names of the network's in another order: "
                     "--channels %s is the network's",
                     text);
}

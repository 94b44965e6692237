/* copy.h - an image through the same reader and writer, no network between. */
#ifndef TGI_COPY_H
#define TGI_COPY_H

#include "engine/job/job.h"

/* A copy that is a part of a job: what the job has computed becomes an image. */
typedef struct tgi_copy_part {
    const tgi_image_meta *meta;  /* what to say of it, instead of what the input says */
    struct tgi_journal *journal; /* of the output, open; what a stopped run left is discarded.
                                   It is sealed, and its holder gives the name */
    int volume;                  /* --post: images are volumes */
} tgi_copy_part;

/* `part` NULL: a job of its own. */
tg_status tgi_copy(tg_ctx *ctx, const tg_opts *o, const tgi_copy_part *part, tgi_err *err);
/* What a copy holds at most, as tgi_job_plan says it for a run. TG_E_BUDGET: that is above the
 * budget. No pixel is touched. */
tg_status tgi_copy_peak(const tg_opts *o, uint64_t *bytes, tgi_err *err);

#endif

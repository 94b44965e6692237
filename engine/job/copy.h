/* copy.h - an image through the same reader and writer, no network between. */
#ifndef TGI_COPY_H
#define TGI_COPY_H

#include "engine/job/job.h"

/* A copy that is a part of a job: what the job has computed becomes an image. */
typedef struct tgi_copy_part {
    const tgi_image_meta *meta;  /* what to say of it, instead of what the input says */
    struct tgi_journal *journal; /* of the output, open; what a stopped run left is discarded.
                                   It is sealed, and its holder gives the name */
    struct tgi_sink_layout *
        *layout; /* receives that of the output, which the journal looks at until it is closed;
                                        tgi_sink_layout_free */
    const char
        *fingerprint; /* a stopped run's tiles that have it are gone on with; NULL: none are */
    int volume;       /* --post: images are volumes */
    const struct tgi_post_image *image; /* --objects measures it; NULL: the input */
    char *const *channel;               /* names of its channels, or NULL */
    int n_channels;
    uint64_t budget, planned; /* of the job, and what it took of it so far; 0: not known */
    /* Instead of the input: what it will be. It is counted, or nothing of it is read. */
    const tgi_image_info *info;
    size_t reader_bytes; /* what its reader will hold at most, */
    uint64_t held;       /* and the process; 0: what it does now */
} tgi_copy_part;

/* TG_E_ARG: --objects without numbers of objects. */
tg_status tgi_objects_need_label(const tgi_post_spec *s, const tg_opts *o, tgi_err *err);
/* `part` NULL: a job of its own. */
tg_status tgi_copy(tg_ctx *ctx, const tg_opts *o, const tgi_copy_part *part, tgi_err *err);
/* What a part takes at most: memory, and bytes on disks. TG_E_BUDGET: that is above its budget. */
typedef struct tgi_copy_figures {
    uint64_t peak, output, scratch;
} tgi_copy_figures;
tg_status tgi_copy_count(const tg_opts *o, const tgi_copy_part *part, tgi_copy_figures *out,
                         tgi_err *err);
/* What a copy holds at most, as tgi_job_plan says it for a run. TG_E_BUDGET: that is above the
 * budget. No pixel is touched. */
tg_status tgi_copy_peak(const tg_opts *o, uint64_t *bytes, tgi_err *err);

#endif

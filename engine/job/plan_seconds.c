/* plan_seconds.c - how long a planned job will take: by measured speeds where there are some.
 */
#include "engine/base/arith.h"
#include "engine/job/job.h"
#include "engine/plan/speed.h"

#include <string.h>

static tgi_codec_speed codec_of_input(const tg_image_info *i)
{
    static const char *const plain[] = {"none", "packbits", NULL};
    for (int k = 0; plain[k]; k++)
        if (!i->compression || strcmp(i->compression, plain[k]) == 0)
            return TGI_CODEC_NONE;
    if (strcmp(i->compression, "zstd") == 0)
        return TGI_CODEC_ZSTD;
    return strcmp(i->compression, "lzw") == 0 ? TGI_CODEC_LZW
                                              : TGI_CODEC_DEFLATE; /* and what is like it */
}

static tgi_codec_speed codec_of_output(const tg_job *job)
{
    switch ((tg_compression)job->set.compress.kind) {
    case TG_COMPRESS_DEFLATE:
        return TGI_CODEC_DEFLATE;
    case TG_COMPRESS_ZSTD:
        return TGI_CODEC_ZSTD;
    case TG_COMPRESS_LZW:
        return TGI_CODEC_LZW;
    default:
        return TGI_CODEC_NONE;
    }
}

/* How often an input pixel is loaded, on average: cells overlap by their halos. */
static double times_loaded(const tg_tiling *t)
{
    double times = 1;
    for (int k = 0; k < 3; k++)
        if (t->n_cut[k] > 1 && t->cut[k] > 0)
            times *= 1 + 2 * (double)t->halo[k] / (double)t->cut[k];
    return times;
}

static tgi_speed_io work_beside(const tg_job *job)
{
    const tg_mapping *m = &job->map;
    const tg_plan_part *p = &job->plan;
    const double items = (double)m->n_items;
    const double in = items * (double)m->extent[0] * (double)m->extent[1] *
                      (double)m->extent[2] * (double)m->channels;
    const double out = items * (double)m->out_extent[0] * (double)m->out_extent[1] *
                       (double)m->out_extent[2] * (double)m->out_channels;
    const double passes = p->scratch.passes > 1 && !p->scratch.used ? p->scratch.passes : 1;
    /* Scratch is made of pages too, and copied into them. */
    const double scratch = p->scratch.used ? 2 * (double)p->scratch.bytes : 0;
    return (tgi_speed_io){.samples_in = in * times_loaded(&p->choice.tiling),
                          .samples_out = out,
                          .bytes_in = in * passes * (double)tgi_dtype_size(job->info->dtype),
                          .bytes_out = out * (double)tgi_dtype_size(job->set.dtype),
                          .samples_statistics =
                              tgi_normalize_needs_stats(&job->set.normalize) ? in : 0,
                          .arena_bytes = (double)p->choice.tiling.arena_bytes +
                                         (double)p->bytes.weights + scratch,
                          .in = codec_of_input(job->info),
                          .out = codec_of_output(job)};
}

double tgi_job_least_seconds(const tg_job *job, const tg_tiling *t, int threads)
{
    const double items = job->source ? (double)job->map.n_items : 1;
    const double kernels =
        job->machine.calibrated ? tgi_speed_kernels(&job->machine.speeds, t, threads) : -1;
    if (kernels < 0)
        return items * t->work / tgi_flops_per_second(job->set.backend->isa, threads);
    tgi_speeds s = job->machine.speeds; /* everything beside hides, and no memory is cleared */
    s.clear = s.sample = 0;
    memset(s.decode, 0, sizeof s.decode);
    memset(s.encode, 0, sizeof s.encode);
    tgi_speed_io io = {.arena_bytes = 0};
    if (job->source && !job->set.tensor)
        io = work_beside(job);
    return tgi_speed_job(&s, kernels * items, &io, threads);
}

void tgi_job_plan_seconds(tg_job *job)
{
    tg_plan_part *p = &job->plan;
    const tgi_speeds *s = &job->machine.speeds;
    const double items = job->source ? (double)job->map.n_items : 1;
    p->seconds = p->choice.seconds * items;
    p->calibrated = 0;
    if (!job->machine.calibrated)
        return;
    const double kernels = tgi_speed_kernels(s, &p->choice.tiling, job->set.threads);
    if (kernels < 0)
        return;
    tgi_speed_io io = {.arena_bytes = (double)p->choice.tiling.arena_bytes};
    if (job->source && !job->set.tensor)
        io = work_beside(job);
    p->seconds = tgi_speed_job(s, kernels * items, &io, job->set.threads);
    p->calibrated = 1;
}

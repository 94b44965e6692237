/* plan_seconds.c - how long a planned job will take: by measured speeds where there are some,
 * on a device by a model. */
#include "engine/base/arith.h"
#include "engine/job/tensors.h"
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

/* Planes, volumes or samples. */
static double items_of(const tg_job *job)
{
    return job->tensors  ? (double)job->tensors->batch
           : job->source ? (double)job->map.n_items
                         : 1;
}

static double elements(const tg_desc *d)
{
    int64_t n = 0;
    return tgi_desc_count(d, &n) ? (double)n : 0;
}

/* What goes in and out once, all items together. */
typedef struct traffic {
    double samples_in, samples_out, bytes_in, bytes_out;
} traffic;

static void add_inputs(const tg_job *job, double items, traffic *t)
{
    const tg_mapping *m = &job->map;
    if (job->source) {
        t->samples_in = items * (double)m->extent[0] * (double)m->extent[1] *
                        (double)m->extent[2] * (double)m->channels;
        t->bytes_in = t->samples_in * (double)tgi_dtype_size(job->info->dtype);
        return;
    }
    for (int i = 0; i < job->graph->n_in; i++) {
        const double n = items * elements(&job->tensors->in_desc[i]);
        t->samples_in += n;
        t->bytes_in += n * (double)tgi_dtype_size(job->tensors->in[i].desc.dtype);
    }
}

static void add_outputs(const tg_job *job, double items, traffic *t)
{
    const tg_mapping *m = &job->map;
    const tg_net *net = job->plan.net;
    if (!job->set.tensor) {
        t->samples_out = items * (double)m->out_extent[0] * (double)m->out_extent[1] *
                         (double)m->out_extent[2] * (double)m->out_channels;
        t->bytes_out = t->samples_out * (double)tgi_dtype_size(job->set.dtype);
        return;
    }
    for (int o = 0; o < net->n_out; o++) {
        const double n = items * elements(&net->shapes.desc[net->out[o]]);
        t->samples_out += n;
        t->bytes_out += n * (double)tgi_dtype_size(tgi_tensor_out_type(job, o));
    }
}

static traffic traffic_of(const tg_job *job)
{
    traffic t = {0, 0, 0, 0};
    add_inputs(job, items_of(job), &t);
    add_outputs(job, items_of(job), &t);
    return t;
}

static tgi_speed_io work_beside(const tg_job *job)
{
    const tg_plan_part *p = &job->plan;
    const traffic t = traffic_of(job);
    const double passes = p->scratch.passes > 1 && !p->scratch.used ? p->scratch.passes : 1;
    /* Scratch is made of pages too, and copied into them. */
    const double scratch = p->scratch.used ? 2 * (double)p->scratch.bytes : 0;
    return (tgi_speed_io){
        .samples_in = t.samples_in * times_loaded(&p->choice.tiling),
        .samples_out = t.samples_out,
        .bytes_in = t.bytes_in * passes,
        .bytes_out = t.bytes_out,
        .samples_statistics =
            job->source && tgi_normalize_needs_stats(&job->set.normalize) ? t.samples_in : 0,
        .arena_bytes =
            (double)p->choice.tiling.arena_bytes + (double)p->bytes.weights + scratch,
        .in = job->source ? codec_of_input(job->info) : TGI_CODEC_NONE,
        .out = job->set.tensor ? TGI_CODEC_NONE : codec_of_output(job)};
}

double tgi_job_least_seconds(const tg_job *job, const tg_tiling *t, int threads)
{
    const double items = items_of(job);
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

/* By the model of device_time.h: speeds of the processor say nothing of a device. */
static double seconds_on_device(const tg_job *job)
{
    const tg_tiling *t = &job->plan.choice.tiling;
    const traffic all = traffic_of(job);
    return tgi_job_device_all_seconds(job, t, items_of(job),
                                      all.bytes_in * times_loaded(t) + all.bytes_out);
}

void tgi_job_plan_seconds(tg_job *job)
{
    tg_plan_part *p = &job->plan;
    const tgi_speeds *s = &job->machine.speeds;
    p->calibrated = 0;
    if (job->dev.ops) {
        p->seconds = seconds_on_device(job);
        return;
    }
    p->seconds = p->choice.seconds * items_of(job);
    if (!job->machine.calibrated)
        return;
    const double kernels = tgi_speed_kernels(s, &p->choice.tiling, job->set.threads);
    if (kernels < 0)
        return;
    const tgi_speed_io io = work_beside(job);
    p->seconds = tgi_speed_job(s, kernels * items_of(job), &io, job->set.threads);
    p->calibrated = 1;
}

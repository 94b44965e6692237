/* array_ends.c - ends of a job that reads arrays, or the planes of an image, and writes arrays:
 * their files, and what they take of a plan. */
#include "engine/base/size.h"
#include "engine/ends/tensor_memory.h"
#include "engine/ends/tensor_rows.h"
#include "engine/ends/tensors.h"
#include "engine/job/device_stages.h"
#include "engine/job/ends.h"
#include "engine/job/job_inpaint.h"
#include "engine/job/job_open.h"
#include "engine/job/job_plan.h"
#include "engine/job/lost.h"
#include "engine/job/plan_report.h"
#include "engine/job/plan_scratch.h"
#include "engine/job/run_arrays.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- Plan -------------------------------------------------------------------------------- */

/* Samples are computed one after the other. That is not what a network says which takes a batch
 * and mixes it. */
static tg_status check_samples(const tg_job *job, tgi_err *err)
{
    const tgi_tensors *t = job->tensors;
    for (int i = 0; i < job->graph->n_in; i++) {
        const int axis = job->graph->in[i].perm[0]; /* -1: the file has none, and one sample */
        const char *why = axis < 0   ? NULL
                          : axis < 2 ? job->graph->together[axis]
                                     : "samples along another axis than the first two";
        if (why)
            return tgi_fail(err, TG_E_UNSUPPORTED,
                            "%s holds %lld samples: give arrays of one, since a batch is not "
                            "computed: %s",
                            t->in[i].path, (long long)t->batch, why);
    }
    return TG_OK;
}

static tg_status open_tensors(tg_job *job, tgi_err *err)
{
    const tgi_tensor_set set = {.graph = job->graph,
                                .opts = job->opts,
                                .input = job->set.input,
                                .output = job->set.output,
                                .overwrite = job->set.overwrite,
                                .labels = job->set.dtype,
                                .compress = job->set.compress,
                                .bad = job->bad,
                                .map = job->source ? &job->map : NULL,
                                .image = &job->in_desc};
    TGI_TRY(tgi_tensors_open(&set, &job->tensors, err));
    const tg_status st =
        job->source || job->tensors->batch == 1 ? TG_OK : check_samples(job, err);
    if (st != TG_OK)
        tgi_tensors_close(&job->tensors);
    return st;
}

static tg_status begin(tg_job *job, tgi_err *err)
{
    return job->tensors ? TG_OK : open_tensors(job, err);
}

static int64_t items_of(const tg_job *job)
{
    return job->tensors ? job->tensors->batch : job->source ? job->map.n_items : 1;
}

static const tgi_desc *shapes_of(const tg_job *job)
{
    return job->tensors ? job->tensors->in_desc : &job->in_desc;
}

static void fit(const tg_job *job, tgi_stages *stages)
{
    const tgi_net *net = stages->one.net;
    if (job->source && !net->values[net->out[0]].flat)
        tgi_stages_fit(stages, job->map.fit);
}

static void unit_of(const tg_job *job, int64_t unit[3])
{
    (void)job;
    unit[0] = unit[1] = 1;
    unit[2] = 16;
}

/* One staging buffer of what goes in; arrays go to a stage on a device as planes, which its executor
 * has room for. */
static size_t band_bytes(const tg_job *job, const tgi_tiling *t)
{
    if (!job->source && tgi_job_pass_ops(job) && tgi_device_is_stage(job, t))
        return 0;
    return job->source ? tgi_job_staging_bytes(job, t) : tgi_tensor_band_bytes(job->tensors, t);
}

static size_t device_beside(const tg_job *job, const tgi_tiling *t)
{
    return tgi_sat_mul(2, band_bytes(job, t));
}

/* Rows of an image, or on their way to a device, one buffer filled, one read ahead; for the
 * processor arrays are read where the network wants them. */
static size_t beside(const tg_job *job, const tgi_tiling *t)
{
    return job->source || tgi_job_pass_ops(job) ? device_beside(job, t) : 0;
}

static size_t first_pass(const tg_job *job)
{
    (void)job; /* plan.bytes.statistics */
    return 0;
}

/* One buffer serves reading and writing in turn; a device has a thread of its own for each. */
static size_t window_bytes(const tg_job *job)
{
    return (tgi_job_pass_ops(job) && !job->source ? 2 : 1) * TGI_TENSOR_ROWS;
}

/* An image adds its decoder, and tables for a pass before the bands. */
static tg_status choose(tg_job *job, tgi_err *err)
{
    tgi_bytes *b = &job->plan.bytes;
    (void)err;
    *b = tgi_plan_first_bytes(job);
    b->rows = window_bytes(job);
    if (job->source)
        tgi_job_count_source(job, job->source->ops->codec_bytes(job->source));
    if (job->source && tgi_normalize_needs_stats(&job->set.normalize))
        b->statistics = tgi_align_size(TGI_STATS_SCRATCH, 64);
    memcpy(job->plan.fixed, job->set.tile.v, sizeof job->plan.fixed);
    return tgi_plan_choose(job);
}

/* A name on the output's disk: in the folder of outputs where that is there already. */
static const char *in_output(const char *out, char *buf, size_t cap)
{
    struct stat st;
    size_t n = out ? strlen(out) : 0;
    while (n > 1 && out[n - 1] == '/')
        n--;
    if (!n || snprintf(buf, cap, "%.*s", (int)n, out) >= (int)cap || n + 2 >= cap)
        return out;
    if (stat(buf, &st) == 0 && S_ISDIR(st.st_mode))
        memcpy(buf + n, "/.", 3);
    return buf;
}

/* An image of a folder is made of an array that is there until the end. */
static void count_disk(tg_job *job)
{
    tgi_bytes *b = &job->plan.bytes;
    const char *out = job->set.output;
    uint64_t array, image;
    char path[4096];
    b->output_disk = b->output_packs = b->output_held = 0;
    for (int o = 0; o < job->graph->n_out && !tgi_memory_has_sinks(job->opts); o++) {
        tgi_tensor_disk(job->tensors, o, &array, &image);
        b->output_disk = tgi_sat_add(b->output_disk, tgi_sat_add(array, image));
        b->output_packs = tgi_sat_add(b->output_packs, image);
        tgi_err none = {0};
        if (image && tgi_name_in_folder(out, job->graph->out[o].name, ".tif", path, sizeof path,
                                        &none) == TG_OK)
            b->output_held += tgi_job_held_already(path);
    }
    const int packed = job->set.compress.kind != TGI_COMPRESS_NONE;
    if (tgi_opts_choice(job->opts, TGI_OPT_FORMAT) == 1)
        b->output_packs = 0; /* ImageJ reads none such */
    b->output_sure = b->output_disk - (packed ? b->output_packs : 0);
    if (out && !tgi_names_folder(out))
        b->output_held = tgi_job_held_already(out);
    b->output_free = tgi_machine_disk_free(&job->machine, in_output(out, path, sizeof path));
}

/* Arrays learn what was planned here, and nowhere else. An image may be open anew since. */
static void count(tg_job *job)
{
    job->tensors->stage = &job->plan.stages->one;
    job->tensors->info = job->info;
    job->plan.bytes.staging = beside(job, &job->plan.choice.tiling);
    count_disk(job);
}

static tg_status refuse(tg_job *job, size_t least, tgi_err *err)
{
    return tgi_job_refuse_host(job, least, err);
}

static int makes_images(const tg_job *job)
{
    const tgi_net *net = job->plan.net;
    int any = 0;
    for (int o = 0; o < net->n_out; o++)
        any |= tgi_tensor_makes_image(job->tensors, o, &net->shapes.desc[net->out[o]]);
    return any;
}

static void write_lines(tg_job *job)
{
    tgi_plan_part *p = &job->plan;
    tgi_plan_network_lines(job, "packed for the kernels", "activations");
    if (p->bytes.staging)
        tgi_job_add_line(p, "staging", p->bytes.staging, TG_PLAN_MEMORY, 0, "%s",
                         "rows read ahead of the network");
    tgi_job_add_line(p, "window", p->bytes.rows, TG_PLAN_MEMORY, 0, "%s",
                     "rows of arrays between their files and the network");
    tgi_plan_decoder_line(job);
    if (p->bytes.statistics)
        tgi_job_add_line(p, "statistics", p->bytes.statistics, TG_PLAN_MEMORY, 0, "%s",
                         "a first pass over the image");
    tgi_plan_process_lines(job, "the program and the parsed model");
    tgi_job_add_line(p, "journal", 0, TG_PLAN_MEMORY, 0, "%s",
                     "none: arrays are written in place, so a stopped run starts over");
    tgi_job_add_margin(p);
    if (tgi_memory_has_sinks(job->opts))
        return;
    tgi_job_add_line(p, "output", p->bytes.output_disk, TG_PLAN_DISK, p->bytes.output_free,
                     makes_images(job) ? "%s: arrays, and the images made of them" : "%s",
                     job->set.output ? job->set.output : "(no output named)");
}

/* Of what becomes an image the copy tells that makes it. */
static tg_status check_output(tg_job *job, tgi_err *err)
{
    const tgi_net *net = job->plan.net;
    char words[480];
    int arrays = 0;
    (void)err;
    for (int o = 0; o < net->n_out; o++)
        arrays |= !tgi_tensor_makes_image(job->tensors, o, &net->shapes.desc[net->out[o]]);
    if (!job->source || !job->set.output || !arrays || job->told_lost)
        return TG_OK;
    job->told_lost = 1;
    tgi_image_meta meta = job->info->meta;
    meta.n_ranges = 0; /* the values are others */
    meta.ome_place.other_values = 1;
    tgi_lost_words(TGI_LOST_TO_ARRAY, NULL, NULL, &meta, words, sizeof words);
    if (words[0])
        tgi_job_warn(job, TGI_LOST_META, job->set.output, words,
                     tgi_lost_why(TGI_LOST_TO_ARRAY, NULL));
    return TG_OK;
}

/* ---- On a device, and time --------------------------------------------------------------- */

static void form(const tg_job *job, const tgi_tiling *t, tgi_device_form *out)
{
    tgi_tensor_form(job->tensors, t, out);
    if (job->source)
        out->in[0] = tgi_job_image_port(job, t);
}

static double band_pixels(const tg_job *job, const tgi_tiling *t)
{
    return 2 * (double)band_bytes(job, t);
}

static double elements(const tgi_desc *d)
{
    int64_t n = 0;
    return tgi_desc_count(d, &n) ? (double)n : 0;
}

static void add_inputs(const tg_job *job, double items, tgi_traffic *t)
{
    for (int i = 0; i < job->graph->n_in; i++) {
        const double n = items * elements(&job->tensors->in_desc[i]);
        t->samples_in += n;
        t->bytes_in += n * (double)tgi_dtype_size(job->tensors->in[i].desc.dtype);
    }
}

static void add_traffic(const tg_job *job, double items, tgi_traffic *t)
{
    const tgi_net *net = job->plan.net;
    if (job->source)
        tgi_traffic_of_image(job, items, t);
    else
        add_inputs(job, items, t);
    for (int o = 0; o < net->n_out; o++) {
        const tgi_desc *d = &net->shapes.desc[net->out[o]];
        const tg_dtype type = tgi_tensor_out_type(job->tensors, o, d);
        const double n = items * elements(d);
        t->samples_out += n;
        t->bytes_out += n * (double)tgi_dtype_size(type);
    }
}

static tgi_codec_speed output_codec(const tg_job *job)
{
    (void)job;
    return TGI_CODEC_NONE;
}

/* They have no journal that must reach the disk. */
#define FIXED_SHARE 0.3

const tgi_ends tgi_array_ends = {.after_stop = "starts over",
                                 .items = items_of,
                                 .shapes = shapes_of,
                                 .begin = begin,
                                 .fit = fit,
                                 .choose = choose,
                                 .count = count,
                                 .write_lines = write_lines,
                                 .check_output = check_output,
                                 .unit = unit_of,
                                 .beside = beside,
                                 .rows_in = beside,
                                 .first_pass = first_pass,
                                 .refuse = refuse,
                                 .device_beside = device_beside,
                                 .form = form,
                                 .band_pixels = band_pixels,
                                 .add_traffic = add_traffic,
                                 .output_codec = output_codec,
                                 .fixed_share = FIXED_SHARE,
                                 .steps = &tgi_array_steps};

/* array_ends.c - ends of a job that reads arrays, or the planes of an image, and writes arrays:
 * their files, and what they take of a plan. */
#include "engine/base/mem.h"
#include "engine/base/size.h"
#include "engine/job/ends.h"
#include "engine/job/job_plan.h"
#include "engine/job/job_tensor.h"
#include "engine/job/plan_report.h"
#include "engine/job/plan_scratch.h"
#include "engine/job/tensor_memory.h"
#include "engine/job/tensor_rows.h"
#include "engine/job/tensors.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- Inputs ------------------------------------------------------------------------------ */

static const char *file_of_port(const tg_job *job, int i)
{
    const char *file;
    char name[256];
    for (int k = 0; tgi_opts_tensor(job->opts, k, name, sizeof name, &file); k++)
        if (strcmp(name, job->graph->in[i].name) == 0)
            return file;
    return i == 0 ? job->set.input : NULL;
}

static tg_status open_file(const char *path, tgi_tensor_in *in, tgi_err *err)
{
    int64_t step = 1;
    TGI_TRY(tgi_npy_open(path, &in->npy, err));
    in->path = path;
    in->desc = in->npy.head.desc;
    for (int a = in->desc.rank - 1; a >= 0; step *= in->desc.dim[a--])
        in->step[a] = step;
    return TG_OK;
}

static tg_status open_input(tg_job *job, struct tgi_tensors *t, int i, tgi_err *err)
{
    const tgi_port *p = &job->graph->in[i];
    const char *path = file_of_port(job, i);
    const tg_array *lent = tgi_memory_source(job, i);
    char text[96];
    if (path && lent)
        return tgi_fail(err, TG_E_ARG, "the network's input \"%s\" has a source and a file: %s",
                        p->name, path);
    if (!path && !lent)
        return tgi_fail(err, TG_E_ARG,
                        "the network's input \"%s\" has no array: --input %s=FILE.npy", p->name,
                        p->name);
    if (lent)
        TGI_TRY(tgi_memory_open_source(lent, p->name, &t->in[i], err));
    else
        TGI_TRY(open_file(path, &t->in[i], err));
    path = t->in[i].path;
    const tgi_desc *f = &t->in[i].desc;
    if (!tgi_tensor_widen(p, &t->in[i].desc, t->in[i].step))
        return tgi_tensor_wrong_rank(p, path, f, err);
    tgi_desc *d = &t->in_desc[i], want_desc[TGI_MAX_PORTS];
    tgi_graph_input_descs(job->graph, job->graph->base, want_desc);
    *d = (tgi_desc){TG_DTYPE_F32, want_desc[i].rank, {0}};
    for (int a = 0; a < d->rank; a++) {
        d->dim[a] = p->perm[a] >= 0 ? f->dim[p->perm[a]] : 1;
        const int64_t want = p->perm[a] >= 0 ? p->file_dim[p->perm[a]] : -1;
        if (a > 0 && want >= 0 && d->dim[a] != want)
            return tgi_fail(err, TG_E_ARG,
                            "%s holds %s, the network's input \"%s\" wants %lld on axis %d",
                            path, tgi_desc_text(f, text, sizeof text), p->name, (long long)want,
                            p->perm[a]);
    }
    if (i > 0 && d->dim[0] != t->batch)
        return tgi_fail(err, TG_E_ARG, "%s holds %lld samples, the first input %lld", path,
                        (long long)d->dim[0], (long long)t->batch);
    t->batch = d->dim[0];
    d->dim[0] = 1;
    return TG_OK;
}

void tgi_tensors_close(struct tgi_tensors **tp)
{
    if (!tp || !*tp)
        return;
    struct tgi_tensors *t = *tp;
    tgi_tensors_drop(t);
    for (int i = 0; i < TGI_MAX_PORTS; i++)
        tgi_npy_close(&t->in[i].npy);
    tgi_free(t);
    *tp = NULL;
}

/* Every name given is an input of the network. */
static tg_status check_names(const tg_job *job, tgi_err *err)
{
    const tgi_graph *g = job->graph;
    const char *file;
    char name[256];
    for (int k = 0; tgi_opts_tensor(job->opts, k, name, sizeof name, &file); k++) {
        int i = 0;
        while (i < g->n_in && strcmp(name, g->in[i].name) != 0)
            i++;
        if (i == g->n_in)
            return tgi_fail(err, TG_E_ARG,
                            "--input %s=%s: the network has no such input; its first is \"%s\"",
                            name, file, g->in[0].name);
    }
    return TG_OK;
}

static tg_status open_inputs(tg_job *job, tgi_err *err)
{
    if (!job->source) { /* a preview of arrays has a name for a picture, and another refusal */
        TGI_TRY(tgi_check_output_name(job->set.output, 1, err));
        TGI_TRY(check_names(job, err));
    }
    TGI_TRY(tgi_memory_check_names(job, err));
    struct tgi_tensors *t = tgi_calloc(TGI_TAG_IO, 1, sizeof *t);
    if (!t)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the arrays");
    job->tensors = t;
    t->names = TGI_NAMES_CLOSED;
    for (int i = 0; i < TGI_MAX_PORTS; i++) {
        t->in[i].npy.file.fd = -1;
        t->out[i].npy.part = TGI_PART_CLOSED;
    }
    t->from_image = job->source != NULL;
    if (t->from_image) {
        t->in_desc[0] = job->in_desc;
        t->batch = job->map.n_items;
        return TG_OK;
    }
    for (int i = 0; i < job->graph->n_in; i++)
        TGI_TRY(open_input(job, t, i, err));
    return TG_OK;
}

/* ---- Plan -------------------------------------------------------------------------------- */

static tg_status begin(tg_job *job, tgi_err *err)
{
    return job->tensors ? TG_OK : open_inputs(job, err);
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

static size_t device_beside(const tg_job *job, const tgi_tiling *t)
{
    return tgi_sat_mul(2, tgi_tensor_band_bytes(job, t));
}

/* Rows of an image, or on their way to a device, one buffer filled, one read ahead; for the
 * processor arrays are read where the network wants them. */
static size_t beside(const tg_job *job, const tgi_tiling *t)
{
    return job->source || job->dev.ops ? device_beside(job, t) : 0;
}

static size_t first_pass(const tg_job *job)
{
    (void)job; /* plan.bytes.statistics */
    return 0;
}

/* One buffer serves reading and writing in turn; a device has a thread of its own for each. */
static size_t window_bytes(const tg_job *job)
{
    return (job->dev.ops && !job->source ? 2 : 1) * TGI_TENSOR_ROWS;
}

/* An image adds its decoder, and tables for a pass before the bands. */
static tg_status choose(tg_job *job, tgi_err *err)
{
    tgi_bytes *b = &job->plan.bytes;
    (void)err;
    *b = tgi_plan_first_bytes(job);
    b->rows = window_bytes(job);
    if (job->source)
        b->decoder = job->source->ops->codec_bytes(job->source);
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
    for (int o = 0; o < job->graph->n_out && !tgi_job_has_sinks(job); o++) {
        tgi_tensor_disk(job, o, &array, &image);
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

static void count(tg_job *job)
{
    job->plan.bytes.staging = beside(job, &job->plan.choice.tiling);
    count_disk(job);
}

static tg_status refuse(tg_job *job, size_t least, tgi_err *err)
{
    return tgi_job_refuse_host(job, least, err);
}

static int makes_images(const tg_job *job)
{
    int any = 0;
    for (int o = 0; o < job->graph->n_out; o++)
        any |= tgi_tensor_makes_image(job, o);
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
    if (p->bytes.decoder)
        tgi_job_add_line(p, "decoder", p->bytes.decoder, TG_PLAN_MEMORY, 0, "%s",
                         "blocks of the input being decompressed");
    if (p->bytes.statistics)
        tgi_job_add_line(p, "statistics", p->bytes.statistics, TG_PLAN_MEMORY, 0, "%s",
                         "a first pass over the image");
    tgi_job_add_line(p, "process", p->bytes.process, TG_PLAN_MEMORY, 0, "%s",
                     "the program and the parsed model");
    tgi_job_add_line(p, "page tables", p->bytes.page_tables, TG_PLAN_MEMORY, 0, "%s",
                     "of the blocks above");
    tgi_job_add_line(p, "allowance", p->bytes.allowance, TG_PLAN_MEMORY, 0, "%s",
                     "stacks, library slack");
    tgi_job_add_line(p, "journal", 0, TG_PLAN_MEMORY, 0, "%s",
                     "none: arrays are written in place, so a stopped run starts over");
    tgi_job_add_margin(p);
    if (tgi_job_has_sinks(job))
        return;
    tgi_job_add_line(p, "output", p->bytes.output_disk, TG_PLAN_DISK, p->bytes.output_free,
                     makes_images(job) ? "%s: arrays, and the images made of them" : "%s",
                     job->set.output ? job->set.output : "(no output named)");
}

/* ---- On a device, and time --------------------------------------------------------------- */

static double band_pixels(const tg_job *job, const tgi_tiling *t)
{
    return 2 * (double)tgi_tensor_band_bytes(job, t);
}

static void add_outputs(const tg_job *job, double items, tgi_traffic *t)
{
    const tgi_net *net = job->plan.net;
    for (int o = 0; o < net->n_out; o++) {
        int64_t n = 0;
        (void)tgi_desc_count(&net->shapes.desc[net->out[o]], &n);
        t->samples_out += items * (double)n;
        t->bytes_out += items * (double)n * (double)tgi_dtype_size(tgi_tensor_out_type(job, o));
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
                                 .unit = unit_of,
                                 .beside = beside,
                                 .rows_in = beside,
                                 .first_pass = first_pass,
                                 .refuse = refuse,
                                 .device_beside = device_beside,
                                 .form = tgi_tensor_form,
                                 .band_pixels = band_pixels,
                                 .add_outputs = add_outputs,
                                 .output_codec = output_codec,
                                 .fixed_share = FIXED_SHARE,
                                 .run = tgi_job_run_arrays};

/* job_plan.c - choose the tiling that fits and say, line by line, what the run will hold.
 *
 *   budget >= process + allowance + decoder + weights + staging + window + journal + arena
 *
 * `process` is what this process holds already (program, parsed model, indexes of the input);
 * the others are sizes of blocks in the one reservation, except `journal` (its tables),
 * `decoder` (block buffers of the reader, not touched before they are used) and `allowance`
 * (stacks, slack of the libraries' allocator), which lie outside it. `page_tables` map the
 * blocks. */
#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/mem.h"
#include "engine/base/size.h"
#include "engine/job/input_hash.h"
#include "engine/job/job.h"
#include "engine/job/job_picture.h"
#include "engine/run/commit.h"
#include "engine/run/decoded.h"
#include "engine/run/load.h"
#include "engine/run/pyramid.h"
#include "engine/run/store.h"

#include <stdio.h>
#include <string.h>

/* Slack beside what is counted: touched stacks of helper threads (some 20 KiB each), the codec
 * state of the reader's library, what malloc keeps after trimming. Measured: tests/memory. */
#define ALLOWANCE_BYTES ((size_t)1536 * 1024)

/* ---- Bytes that follow from a tiling ----------------------------------------------------- */

static int is_volume(const tg_job *job)
{
    return job->map.spatial == 3;
}

static int writer_window(int64_t group_tiles, int threads)
{
    const int64_t ahead = tgi_max(group_tiles, threads + 2);
    return (int)tgi_min(group_tiles + ahead, INT32_MAX);
}

size_t tgi_job_staging_bytes(const tg_job *job, const tg_tiling *t)
{
    const tg_net *net = t->net;
    const tg_slot *in = &t->slot[net->in[0]];
    const int64_t fed = tgi_min(t->band, tgi_net_dim(net, net->in[0], TG_STREAM_AXIS));
    const int64_t slabs = is_volume(job) ? fed : 1;
    const int64_t rows = is_volume(job) ? in->rows : fed;
    return tgi_loader_bytes(&job->map, job->info->dtype, slabs, rows, in->width);
}

size_t tgi_job_extra_bytes(const tg_job *job, const tg_tiling *t, tg_bytes *parts)
{
    const tg_plan_part *p = &job->plan;
    const int64_t group =
        tgi_store_group_tiles(&job->map, t, p->tile_h, p->tile_w, is_volume(job));
    const int window = writer_window(group, job->set.threads);
    const size_t staging = tgi_sat_mul(2, tgi_job_staging_bytes(job, t));
    const size_t slots = tgi_commit_bytes(p->layout, window, job->set.threads);
    if (parts) {
        parts->staging = staging;
        parts->window = slots;
    }
    return tgi_sat_add(staging, slots);
}

static size_t host_room(const tg_job *job);
static size_t stats_scratch(const tg_job *job);

/* The first pass works in the arena: one that is too small for it is made larger. */
static size_t extra_of(void *user, const tg_tiling *t)
{
    const size_t stats = stats_scratch(user);
    return tgi_sat_add(tgi_job_extra_bytes(user, t, NULL),
                       stats > t->arena_bytes ? stats - t->arena_bytes : 0);
}

static size_t device_extra_of(void *user, const tg_tiling *t)
{
    return tgi_job_device_extra(user, t, host_room(user));
}

/* ---- The output file --------------------------------------------------------------------- */

/* Largest standard tile that divides what the user's --tile allows or what a fixed box yields,
 * else one whose full-width row is a small part of the budget. */
static void pick_file_tile(tg_job *job, int64_t fixed[3])
{
    tg_plan_part *p = &job->plan;
    const tgi_tile_spec *spec = &job->set.tile;
    const tg_mapping *m = &job->map;
    memset(fixed, 0, 3 * sizeof fixed[0]);
    p->tile_h = p->tile_w = 256;
    if (p->adopted.valid) { /* the file's grid stands; the cells may follow below */
        p->tile_h = p->adopted.tile_h;
        p->tile_w = p->adopted.tile_w;
        return;
    }
    if (!spec->automatic) {
        for (int i = 1; i < 3; i++)
            fixed[i] = tgi_align_up(spec->v[i], 16);
        fixed[0] = is_volume(job) ? spec->v[0] : 0;
        while (p->tile_h > 16 && fixed[1] % p->tile_h)
            p->tile_h /= 2;
        while (p->tile_w > 16 && fixed[2] % p->tile_w)
            p->tile_w /= 2;
        return;
    }
    if (tgi_mapping_boxed(m)) { /* cells are the boxes' and end on tiles */
        for (int k = 1; k < 3; k++)
            while (m->fit[k].box && m->fit[k].core % p->tile_h)
                p->tile_h = p->tile_w = p->tile_h / 2;
        return;
    }
    p->tile_h = p->tile_w = tgi_sink_tile_side(m->out_extent[1], m->out_extent[2]);
    const double row_bytes = (double)m->out_extent[2] * (double)m->out_channels *
                             (double)tgi_dtype_size(job->set.dtype);
    while (p->tile_h > 64 && 3.0 * row_bytes * (double)p->tile_h > (double)p->budget / 6) {
        p->tile_h /= 2;
        p->tile_w /= 2;
    }
}

static tg_status make_layout(tg_job *job, tgi_err *err)
{
    tg_plan_part *p = &job->plan;
    const tg_mapping *m = &job->map;
    tg_image_meta meta; /* a view of the input's */
    tgi_mapping_meta(m, job->info, &meta);
    tg_sink_spec spec = {.dtype = job->set.dtype,
                         .tile_h = p->tile_h,
                         .tile_w = p->tile_w,
                         .compression = (tg_compression)job->set.compress.kind,
                         .level = job->set.compress.level > 0 ? job->set.compress.level : 0,
                         .pyramid = tgi_opts_pyramid(job->opts),
                         .meta = &meta};
    memcpy(spec.axes, m->out_axes, sizeof spec.axes);
    memcpy(spec.shape, m->out_shape, sizeof spec.shape);
    if (job->set.writer) /* the output is made of the tiles, which then go */
        spec.compression = TG_COMPRESS_NONE;
    if (spec.compression != TG_COMPRESS_NONE)
        spec.predictor = tgi_dtype_is_float(spec.dtype) ? 3 : 2;
    tgi_sink_layout_free(&p->layout);
    return tgi_sink_layout_make(&spec, &p->layout, err);
}

/* ---- Choose ------------------------------------------------------------------------------ */

double tgi_flops_per_second(tg_isa isa, int threads)
{
    static const double per_thread[TG_ISA_COUNT] = {
        [TG_ISA_PORTABLE] = 20e9, [TG_ISA_AVX2] = 110e9, [TG_ISA_AVX512] = 200e9};
    return per_thread[isa] * threads;
}

static double flops_of(const tg_settings *s)
{
    return tgi_flops_per_second(s->backend->isa, s->threads);
}

static size_t fixed_bytes(const tg_job *job)
{
    const tg_bytes *b = &job->plan.bytes;
    return b->process + b->allowance + b->journal + b->decoder + b->weights + b->scratch +
           b->receipt + b->picture + b->pyramid;
}

/* What the first pass takes: its tables and a row. */
static size_t stats_scratch(const tg_job *job)
{
    const size_t row = (size_t)job->map.extent[2] * tgi_dtype_size(job->info->dtype);
    return tgi_normalize_needs_stats(&job->set.normalize)
               ? tgi_align_size(tgi_sat_add(TGI_STATS_SCRATCH, row), 64)
               : 0;
}

/* Blocks that are mapped whatever the tiling. */
static size_t mapped_bytes(const tg_job *job)
{
    const tg_bytes *b = &job->plan.bytes;
    return b->weights + b->receipt + (job->dev.ops ? stats_scratch(job) : 0);
}

/* What a tiling may take of this machine's memory. */
static size_t host_room(const tg_job *job)
{
    const tg_plan_part *p = &job->plan;
    const size_t taken = tgi_sat_add(fixed_bytes(job), job->dev.ops ? stats_scratch(job) : 0);
    return p->budget > taken ? tgi_room_beside(p->budget - taken, mapped_bytes(job)) : 0;
}

static void fill_args(tg_job *job, const int64_t fixed[3], tg_choose_args *a)
{
    const tg_plan_part *p = &job->plan;
    const int device = job->dev.ops != NULL;
    *a = (tg_choose_args){.stage = &p->stages->one,
                          .threads = job->set.threads,
                          .limit_bytes = device ? job->dev.limit_bytes : host_room(job),
                          .unit = {1, is_volume(job) ? p->tile_h : 1, p->tile_w},
                          .flops_per_second = flops_of(&job->set),
                          .seconds = device ? tgi_job_device_seconds : NULL,
                          .tallest = device ? TGI_JOB_DEVICE_TALLEST : 0,
                          .extra = device ? device_extra_of : extra_of,
                          .user = job};
    memcpy(a->fixed, fixed, sizeof a->fixed);
}

/* Largest square tile that fits, a multiple of 16; 0: none. */
static int64_t largest_tile(tg_job *job)
{
    int64_t good = 0, bad = tgi_max(job->map.out_extent[1], job->map.out_extent[2]) / 16 + 2;
    while (bad - good > 1) {
        const int64_t mid = good + (bad - good) / 2;
        const int64_t fixed[3] = {0, mid * 16, mid * 16};
        tg_choose_args a;
        tg_choice c;
        fill_args(job, fixed, &a);
        const int fits = tgi_choose(&a, &c, NULL) == TG_OK;
        if (fits)
            tgi_tiling_free(&c.tiling);
        if (fits)
            good = mid;
        else
            bad = mid;
    }
    return good * 16;
}

/* What the smallest plan on this grid of the file would take. */
static size_t least_bytes(const tg_job *job)
{
    const size_t host = job->dev.ops ? job->dev.host_least : job->plan.choice.smallest_bytes;
    const size_t stats = job->dev.ops ? stats_scratch(job) : 0;
    return tgi_sat_add(tgi_with_tables(host, mapped_bytes(job)),
                       tgi_sat_add(fixed_bytes(job), stats));
}

/* "6MiB": the smallest such number that is enough. */
static const char *ram_text(size_t least, char *buf, size_t cap)
{
    const int large = least >> 30 >= 100; /* nobody types seven digits of MiB */
    const size_t round = (size_t)1 << (large ? 30 : 20);
    snprintf(buf, cap, "%zu%s", least / round + (least % round != 0), large ? "GiB" : "MiB");
    return buf;
}

/* No tiling could be counted: why the device could not, else its sum is past all memory. */
static tg_status no_figure(const tg_job *job, tgi_err *err)
{
    if (job->dev.ops && job->uncounted.code != TG_OK)
        return tgi_fail(err, job->uncounted.code, "%s: %s", job->device_text,
                        job->uncounted.text);
    return tgi_fail(err, TG_E_BUDGET,
                    "the smallest plan needs more memory than can be counted: give a smaller "
                    "image, or --roi");
}

tg_status tgi_job_refuse_host(tg_job *job, size_t least, const char *other_way, tgi_err *err)
{
    const char *whole = job->plan.stages->one.whole_op;
    char need[32], have[32], must[32] = "a larger --ram";
    if (least == SIZE_MAX)
        return no_figure(job, err);
    tgi_size_above(least, need, sizeof need);
    tgi_size_below(job->plan.budget, have, sizeof have);
    if (!job->plan_is_part) {
        memcpy(must, "--ram ", 6);
        ram_text(least, must + 6, sizeof must - 6);
    }
    if (job->dev.ops) {
        tgi_job_device_keep_refused(job);
        return tgi_fail(err, TG_E_BUDGET,
                        "the smallest plan on %s needs %s of this machine's memory, the budget "
                        "is %s: give %s",
                        job->device_text, need, have, must);
    }
    if (whole)
        return tgi_fail(err, TG_E_BUDGET,
                        "\"%s\" reads the whole image, which needs %s at once; the budget is "
                        "%s: give %s%s",
                        whole, need, have, must,
                        job->source ? ", or a smaller --roi" : ", or a smaller array");
    return tgi_fail(err, TG_E_BUDGET, "the smallest plan needs %s, the budget is %s: give %s%s",
                    need, have, must, other_way);
}

static tg_status say_refusal(tg_job *job, size_t least, tgi_err *err)
{
    char need[32], have[32], must[32];
    const int chosen = job->set.tile.automatic || job->dev.ops || job->plan_is_part;
    const int64_t t = chosen ? 0 : largest_tile(job);
    if (t > 0 && least == SIZE_MAX)
        return tgi_fail(err, TG_E_BUDGET,
                        "tile too large: it needs more memory than can be counted; the largest "
                        "that fits is --tile %lld",
                        (long long)t);
    if (t > 0)
        return tgi_fail(err, TG_E_BUDGET,
                        "tile too large: it needs %s, the budget is %s; the largest that fits "
                        "is --tile %lld, or give --ram %s",
                        tgi_size_above(least, need, sizeof need),
                        tgi_size_below(job->plan.budget, have, sizeof have), (long long)t,
                        ram_text(least, must, sizeof must));
    return tgi_job_refuse_host(
        job, least, job->set.dtype == TG_DTYPE_F32 ? ", or --dtype uint8 for smaller rows" : "",
        err);
}

static tg_status refuse(tg_job *job, tgi_err *err)
{
    const size_t least = least_bytes(job);
    if (job->dev.ops && job->plan.choice.smallest_bytes != SIZE_MAX)
        return tgi_job_device_refuse(job, job->plan.choice.smallest_bytes, err);
    const tg_status st = say_refusal(job, least, err);
    return st == TG_E_BUDGET ? tgi_err_tried(err, st, "the plan", least) : st;
}

/* ---- Lines ------------------------------------------------------------------------------- */

/* What is said about decoding: scratch that was asked for, or the hint that it would help. */
static void scratch_line(tg_job *job)
{
    tg_plan_part *p = &job->plan;
    const tg_scratch_part *s = &p->scratch;
    const uint64_t free_bytes = job->scratch_place.free_bytes;
    char text[192], size[32];
    if (!job->set.scratch && s->helps) {
        snprintf(text, sizeof text,
                 "the input is decoded %.1f times; --scratch DIR (%s of disk) decodes it once",
                 s->passes, tgi_size_text(s->bytes, size, sizeof size));
        tgi_job_add_line(p, "decoding", 0, TG_PLAN_MEMORY, 0, "%s", text);
    }
    if (!job->set.scratch)
        return;
    if (s->used)
        snprintf(text, sizeof text, "%.90s; %.90s", job->set.scratch, s->why);
    else
        snprintf(text, sizeof text, "not used: %.170s", s->why);
    if (s->used && job->scratch_place.in_memory)
        tgi_job_add_line(p, "scratch", p->bytes.scratch, TG_PLAN_MEMORY, 0, "%s", text);
    else
        tgi_job_add_line(p, "scratch", s->used ? s->bytes : 0, TG_PLAN_DISK, free_bytes, "%s",
                         text);
}

/* How the image is padded, where it is: "18 + 22 rows before + after, by reflection". */
static void padding_line(tg_job *job)
{
    static const char *const of[] = {"slabs", "rows", "columns"};
    const tg_mapping *m = &job->map;
    char text[160] = "";
    size_t n = 0;
    for (int k = 3 - m->spatial; k < 3; k++) {
        const tg_fit *f = &m->fit[k];
        const int64_t after = f->size - f->before - m->extent[k];
        if (f->before || after)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%lld + %lld %s", n ? ", " : "",
                                  (long long)f->before, (long long)after, of[k]);
    }
    if (n)
        tgi_job_add_line(&job->plan, "padding", 0, TG_PLAN_MEMORY, 0,
                         m->pad == TG_PAD_REFLECT ? "%s before + after, by reflection"
                         : m->pad == TG_PAD_EDGE  ? "%s before + after, by repeating the edge"
                                                  : "%s before + after, by zeros",
                         text);
}

/* Fixed boxes of the network's one size, and what each of them yields. */
static void boxes_line(tg_job *job)
{
    const tg_mapping *m = &job->map;
    const int64_t *core = job->plan.choice.tiling.cut;
    char text[160];
    int n = 0;
    if (!tgi_mapping_boxed(m))
        return;
    n = snprintf(text, sizeof text, "fixed boxes of ");
    for (int a = 0; a < m->spatial; a++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%lld", a ? "x" : "",
                      (long long)job->in_desc.dim[2 + a]);
    n += snprintf(text + n, sizeof text - (size_t)n, ", core ");
    for (int k = 3 - m->spatial; k < 3; k++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%lld",
                      k > 3 - m->spatial ? "x" : "", (long long)core[k]);
    tgi_job_add_line(&job->plan, "boxes", 0, TG_PLAN_MEMORY, 0,
                     "%s: the network works at one size", text);
}

/* What the network takes: here, or on the way to the device that has it. */
static void network_lines(tg_job *job)
{
    tg_plan_part *p = &job->plan;
    const tg_bytes *b = &p->bytes;
    char text[96];
    if (job->dev.ops) {
        tgi_job_device_lines(job);
        if (b->arena)
            tgi_job_add_line(p, "arena", b->arena, TG_PLAN_MEMORY, 0, "%s",
                             "of the first pass over the image");
        return;
    }
    snprintf(text, sizeof text, "%s kernels", job->set.backend->name);
    tgi_job_add_line(p, "weights", b->weights, TG_PLAN_MEMORY, 0, "packed for the %s", text);
    tgi_size_text(p->choice.tiling.lower_bound_bytes, text, sizeof text);
    tgi_job_add_line(p, "arena", b->arena, TG_PLAN_MEMORY, 0,
                     "activations; %s live together at most", text);
}

static void write_lines(tg_job *job)
{
    tg_plan_part *p = &job->plan;
    const tg_bytes *b = &p->bytes;
    char text[96];
    p->n_lines = 0;
    network_lines(job);
    tgi_job_add_line(p, "staging", b->staging, TG_PLAN_MEMORY, 0, "%s",
                     "rows read ahead of the network");
    snprintf(text, sizeof text, "%d tiles of %lldx%lld", p->window, (long long)p->tile_h,
             (long long)p->tile_w);
    tgi_job_add_line(p, "window", b->window, TG_PLAN_MEMORY, 0,
                     "%s being filled, compressed, written", text);
    tgi_job_add_line(p, "journal", b->journal, TG_PLAN_MEMORY, 0, "%s",
                     "offsets and checksums of the output's tiles");
    if (b->decoder)
        tgi_job_add_line(p, "decoder", b->decoder, TG_PLAN_MEMORY, 0, "%s",
                         "blocks of the input being decompressed");
    if (b->picture)
        tgi_job_add_line(p, "picture", b->picture, TG_PLAN_MEMORY, 0, "%s",
                         "the output made of its tiles, at the end");
    if (b->pyramid)
        tgi_job_add_line(p, "pyramid", b->pyramid, TG_PLAN_MEMORY, 0, "%s",
                         "tiles read back to make the smaller levels");
    tgi_job_add_line(p, "receipt", b->receipt, TG_PLAN_MEMORY, 0, "%s",
                     "the input being read for its checksum");
    tgi_job_add_line(p, "process", b->process, TG_PLAN_MEMORY, 0, "%s",
                     "the program, the parsed model, file indexes");
    tgi_job_add_line(p, "page tables", b->page_tables, TG_PLAN_MEMORY, 0, "%s",
                     "of the blocks above");
    tgi_job_add_line(p, "allowance", b->allowance, TG_PLAN_MEMORY, 0, "%s",
                     "stacks, library slack");
    tgi_job_add_margin(p);
    if (tgi_normalize_needs_stats(&job->set.normalize))
        tgi_job_add_line(p, "statistics", 0, TG_PLAN_MEMORY, 0, "%s",
                         "a first pass over the image; uses the arena before the network does");
    padding_line(job);
    boxes_line(job);
    tgi_job_add_line(p, "output", b->output_disk, TG_PLAN_DISK, b->output_free, "%s",
                     job->set.output ? job->set.output : "(no output named)");
    scratch_line(job);
}

/* ---- Plan -------------------------------------------------------------------------------- */

static tg_status count(tg_job *job, tgi_err *err)
{
    tg_plan_part *p = &job->plan;
    const tg_tiling *t = &p->choice.tiling;
    tg_bytes *b = &p->bytes;
    p->window =
        writer_window(tgi_store_group_tiles(&job->map, t, p->tile_h, p->tile_w, is_volume(job)),
                      job->set.threads);
    tgi_job_extra_bytes(job, t, b);
    if (!p->scratch.used) /* booked while that was open */
        b->decoder = job->source->ops->codec_bytes(job->source);
    if (job->dev.ops)
        TGI_TRY(tgi_job_device_count(job, host_room(job), err));
    b->arena = job->dev.ops ? 0 : t->arena_bytes;
    if (b->arena < stats_scratch(job))
        b->arena = stats_scratch(job);
    b->page_tables =
        tgi_page_table_bytes(b->weights + b->arena + b->staging + b->window + b->receipt);
    b->total =
        fixed_bytes(job) + b->arena + b->staging + b->window + b->page_tables + b->pinned;
    b->output_disk = p->layout->file_bytes;
    if (b->picture) /* tiles and picture are both there at the end */
        b->output_disk = 2 * b->output_disk;
    b->output_free = tgi_machine_disk_free(&job->machine, job->set.output);
    if (b->total > p->budget)
        return refuse(job, err);
    write_lines(job);
    p->valid = 1;
    return TG_OK;
}

void tgi_job_drop_plan(tg_job *job)
{
    tg_plan_part *p = &job->plan;
    p->valid = 0;
    tgi_tiling_free(&p->choice.tiling);
    tgi_stages_free(&p->stages);
    tgi_net_free(&p->net);
}

void tgi_job_decided(const tg_job *job, char *out, size_t size)
{
    const tg_plan_part *p = &job->plan;
    const tg_tiling *t = &p->choice.tiling;
    snprintf(out, size, "%lld,%lld,%lld,%lld,%lld,%lld,%d", (long long)t->cut[0],
             (long long)t->cut[1], (long long)t->cut[2], (long long)t->band,
             (long long)p->tile_h, (long long)p->tile_w, p->net->n_used);
}

void tgi_job_adopt(tg_job *job, const char *decided)
{
    tg_plan_part *p = &job->plan;
    long long c[7];
    /* Our own text, and checked. */
    // NOLINTNEXTLINE(cert-err34-c)
    if (sscanf(decided, "%lld,%lld,%lld,%lld,%lld,%lld,%lld", &c[0], &c[1], &c[2], &c[3], &c[4],
               &c[5], &c[6]) != 7)
        return;
    if (c[4] < 16 || c[5] < 16 || c[4] % 16 || c[5] % 16 || c[1] < 1 || c[2] < 1 || c[3] < 1 ||
        c[6] < 0)
        return; /* not what a run writes: plan afresh */
    p->adopted.valid = 1;
    for (int i = 0; i < 3; i++)
        p->adopted.cut[i] = c[i];
    p->adopted.band = c[3];
    p->adopted.tile_h = c[4];
    p->adopted.tile_w = c[5];
    p->adopted.fast = c[6];
    tgi_job_drop_plan(job);
}

void tgi_job_adopt_none(tg_job *job)
{
    job->plan.adopted.valid = 0;
    job->dev.settled = 0;
    tgi_job_drop_plan(job);
}

typedef struct choosing {
    tg_job *job;
    const int64_t *fixed;
} choosing;

/* A device's weights are no memory of ours but while they are sent, which its extra counts. */
static void set_weights(tg_job *job)
{
    tg_plan_part *p = &job->plan;
    p->bytes.weights = job->dev.ops ? 0 : tgi_align_size(p->net->packed_bytes, 64);
}

/* With the net's kernels as they are: the adopted tiling when it fits, else the best there is
 * on the same file grid. */
static tg_status choose_tiling(void *user, tg_choice *out)
{
    tg_job *job = ((const choosing *)user)->job;
    const int64_t *fixed = ((const choosing *)user)->fixed;
    tg_plan_part *p = &job->plan;
    set_weights(job);
    tg_choose_args a;
    fill_args(job, fixed, &a);
    job->dev.host_least = SIZE_MAX;
    if (p->adopted.valid) {
        tg_tiling t;
        TGI_TRY(tgi_tiling_make(&p->stages->one, p->adopted.cut, p->adopted.band,
                                job->set.threads, NULL, &t, NULL));
        if (tgi_sat_add(t.arena_bytes, a.extra(job, &t)) <= a.limit_bytes) {
            memset(out, 0, sizeof *out);
            out->tiling = t;
            out->seconds = t.work / a.flops_per_second;
            return TG_OK;
        }
        tgi_tiling_free(&t);
    }
    const tg_status st = tgi_choose(&a, out, NULL);
    out->beside_bytes = p->bytes.weights;
    return st;
}

/* Kernels and tiling. What an interrupted run used stays, for the bits' sake. */
static tg_status choose(tg_job *job, const int64_t fixed[3])
{
    tg_plan_part *p = &job->plan;
    choosing c = {job, fixed};
    const int given = p->adopted.valid ? (int)p->adopted.fast : -1;
    const tg_status st = tgi_choose_kernels(p->net, given, !job->set.tile.automatic,
                                            choose_tiling, &c, &p->choice);
    set_weights(job);
    return st;
}

tg_status tgi_job_net(tg_job *job, const tg_desc *in, tgi_err *err)
{
    tg_plan_part *p = &job->plan;
    if (!p->net)
        TGI_TRY(tgi_net_new(job->graph,
                            job->dev.ops ? job->dev.ops->backend(job->dev.element)
                                         : job->set.backend,
                            in, tgi_job_net_flags(job), &p->net, err));
    if (!p->stages)
        TGI_TRY(tgi_stages_new(p->net, &p->stages, err));
    tgi_stage_whole_text(&p->stages->one, p->whole_text, sizeof p->whole_text);
    return TG_OK;
}

/* Whether scratch helps is known once a tiling is chosen; where it lies in memory, there must
 * be a tiling that leaves room for it. */
static tg_status add_scratch(tg_job *job, const int64_t fixed[3], tgi_err *err)
{
    tg_plan_part *p = &job->plan;
    TGI_TRY(tgi_job_plan_scratch(job, err));
    if (!p->scratch.used || !job->scratch_place.in_memory)
        return TG_OK;
    p->bytes.scratch = (size_t)p->scratch.bytes;
    tgi_tiling_free(&p->choice.tiling);
    tg_status st = choose(job, fixed);
    if (st == TG_OK)
        TGI_TRY(tgi_job_plan_scratch(job, err)); /* counted again: other strips */
    if (st == TG_E_BUDGET) {
        tgi_job_drop_scratch(job);
        p->bytes.scratch = 0;
        st = choose(job, fixed);
    }
    if (!p->scratch.used)
        p->bytes.scratch = 0;
    return st == TG_OK ? TG_OK : tgi_fail(err, st, "no memory to plan");
}

/* Output pixels of a cell of boxes on axis k. */
static int64_t box_side(const tg_mapping *m, int k)
{
    return m->fit[k].box ? m->fit[k].core : m->out_extent[k];
}

/* The best plan on the file grid that is set. */
static tg_status choose_on_grid(tg_job *job, const int64_t fixed[3], tgi_err *err)
{
    tg_image_meta meta;
    tg_plan_part *p = &job->plan;
    size_t decoder = job->source->ops->codec_bytes(job->source);
    if (job->set.scratch && !job->without_scratch && tgi_job_streams_input(job))
        decoder += tgi_decoded_bytes(&job->map, job->info, TGI_JOB_READERS);
    tgi_tiling_free(&p->choice.tiling);
    TGI_TRY(make_layout(job, err));
    tgi_mapping_meta(&job->map, job->info, &meta);
    p->bytes = (tg_bytes){.journal = tgi_journal_bytes(p->layout),
                          .decoder = decoder,
                          .process = tgi_job_process_bytes(job),
                          .allowance = ALLOWANCE_BYTES,
                          .pyramid = tgi_pyramid_bytes(p->layout),
                          .receipt = TGI_INPUT_HASH_BYTES,
                          .picture = tgi_picture_make_bytes(job->set.writer, p->layout, &meta)};
    return choose(job, fixed);
}

/* Nothing left that a finer grid could win: no pixel twice, every kernel the fastest. */
static int is_ideal(const tg_plan_part *p)
{
    return p->net->n_used == p->net->n_fast && tgi_tiling_recomputed(&p->choice.tiling) < 0.02;
}

/* On a device what fits the processor's side of it is nearer than what does not. */
static size_t least_of_grid(const tg_job *job)
{
    const size_t device = job->plan.choice.smallest_bytes;
    if (!job->dev.ops)
        return least_bytes(job);
    return device != SIZE_MAX ? device : SIZE_MAX / 2 + least_bytes(job) / 2;
}

/* Cells end on file tiles and the writer holds whole ones, so finer tiles cut finer and leave
 * more to the network: halve them until a plan fits and is good, or the next is no faster. Of a
 * huge image the tables of fine tiles are what does not fit: coarser ones are tried last. */
static tg_status choose_file_tile(tg_job *job, const int64_t fixed[3], tgi_err *err)
{
    tg_plan_part *p = &job->plan;
    const int free_grid = job->set.tile.automatic && !p->adopted.valid;
    const int64_t start = p->tile_h, largest = tgi_mapping_boxed(&job->map) ? start : 256;
    int64_t best = 0, least_tile = start;
    size_t least = SIZE_MAX;
    double best_seconds = 0;
    for (int coarser = 0;;) {
        const tg_status st = choose_on_grid(job, fixed, err);
        if (st != TG_OK && st != TG_E_BUDGET)
            return st;
        if (st != TG_OK && least_of_grid(job) < least) {
            least = least_of_grid(job);
            least_tile = p->tile_h;
        }
        if (st == TG_OK && (!best || p->choice.seconds < 0.9 * best_seconds)) {
            best = p->tile_h;
            best_seconds = p->choice.seconds;
        } else if (best) {
            break;
        }
        if (!free_grid || (best && (coarser || p->tile_h <= 16 || is_ideal(p))))
            break;
        const int64_t above = coarser ? p->tile_h : start;
        coarser |= p->tile_h <= 16;
        if (coarser && above >= largest)
            break;
        p->tile_h = p->tile_w = coarser ? 2 * above : p->tile_h / 2;
    }
    const int64_t chosen = best ? best : least_tile;
    if (p->tile_h == chosen)
        return best ? TG_OK : TG_E_BUDGET;
    p->tile_h = p->tile_w = chosen;
    return choose_on_grid(job, fixed, err);
}

static tg_status plan_tiling(tg_job *job, const int64_t fixed[3], tgi_err *err)
{
    tg_plan_part *p = &job->plan;
    TGI_TRY(tgi_job_net(job, &job->in_desc, err));
    tgi_stages_fit(p->stages, job->map.fit);
    const tg_status st = choose_file_tile(job, fixed, err);
    if (st == TG_E_BUDGET)
        return refuse(job, err);
    return st == TG_OK ? TG_OK : tgi_fail(err, st, "no memory to plan");
}

typedef struct grid {
    tg_job *job;
    int64_t fixed[3];
} grid;

/* From the first file tile on. */
static tg_status plan_afresh(void *user, tgi_err *err)
{
    grid *g = user;
    pick_file_tile(g->job, g->fixed);
    return plan_tiling(g->job, g->fixed, err);
}

/* A plan that was asked for is about to be run: drop it unless the device is as it was
 * supposed to be. Where there is none any more, `auto` goes back to the processor. */
static tg_status confirm(tg_job *job, tgi_err *err)
{
    int holds = 1;
    tgi_err e = {0};
    if (!job->plan.valid || !job->running)
        return TG_OK;
    const tg_status st = tgi_job_device_confirm(job, &holds, &e);
    if (st != TG_OK)
        return job->dev.by_name ? tgi_fail(err, st, "%s", e.text)
                                : tgi_job_device_leave(job, e.text, err);
    if (!holds)
        tgi_job_drop_plan(job);
    return TG_OK;
}

/* Of arrays. */
static tg_status plan_arrays(tg_job *job, tgi_err *err)
{
    const tg_choose_args base = {
        .threads = job->set.threads,
        .limit_bytes = ALLOWANCE_BYTES,
        .unit = {1, 1, 16},
        .fixed = {job->set.tile.v[0], job->set.tile.v[1], job->set.tile.v[2]},
        .flops_per_second = flops_of(&job->set)};
    return tgi_job_plan_tensor(job, &base, job->plan.budget, err);
}

/* Of an image. */
static tg_status plan_image(tg_job *job, tgi_err *err)
{
    grid g = {.job = job};
    TGI_TRY(tgi_job_plan_on_device(job, &job->in_desc, plan_afresh, &g, err));
    if (!job->dev.ops)
        TGI_TRY(plan_afresh(&g, err));
    TGI_TRY(add_scratch(job, g.fixed, err));
    return count(job, err);
}

/* What the one before was refused is no matter of this one. */
static tg_status attempt(tg_job *job, tg_status (*plan)(tg_job *, tgi_err *), tgi_err *err)
{
    *err = (tgi_err){0};
    job->refused_bytes = 0;
    job->refused.ops = NULL;
    job->uncounted.code = TG_OK;
    return plan(job, err);
}

tg_status tgi_job_plan(tg_job *job, tgi_err *err)
{
    tg_plan_part *p = &job->plan;
    tgi_err e = {0};
    TGI_TRY(confirm(job, err));
    if (p->valid)
        return TG_OK;
    job->without_scratch = 0;
    tgi_machine_look_again(&job->machine);
    if (!job->set.tensor && tgi_mapping_boxed(&job->map) && !job->set.tile.automatic)
        return tgi_fail(err, TG_E_ARG,
                        "%s works at one size, in boxes that give %lldx%lld pixels each: leave "
                        "out --tile",
                        job->set.model, (long long)box_side(&job->map, 1),
                        (long long)box_side(&job->map, 2));
    p->budget = tgi_machine_budget(&job->machine, job->opts, &p->margin);
    tg_status (*const plan)(tg_job *, tgi_err *) = job->set.tensor ? plan_arrays : plan_image;
    tg_status st = attempt(job, plan, &e);
    if (st == TG_E_BUDGET && tgi_job_spare_source(job))
        st = attempt(job, plan, &e);
    if (st == TG_E_BUDGET && job->set.scratch && job->source) {
        job->without_scratch = 1;
        st = attempt(job, plan, &e);
    }
    if (st != TG_OK) {
        tgi_err stopped = {0};
        const tg_status why = tgi_check_cancel(&stopped); /* what fits was not found out then */
        if (err)
            *err = why == TG_OK ? e : stopped;
        return why == TG_OK ? st : why;
    }
    tgi_job_plan_seconds(job);
    return TG_OK;
}

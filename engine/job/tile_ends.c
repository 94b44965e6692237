/* tile_ends.c - ends of a job that reads an image and writes one, tile by tile, with a journal:
 * what they take of a plan. */
#include "engine/base/arith.h"
#include "engine/base/size.h"
#include "engine/ends/decoded.h"
#include "engine/ends/input_hash.h"
#include "engine/ends/load.h"
#include "engine/ends/store.h"
#include "engine/job/ends.h"
#include "engine/job/job_film.h"
#include "engine/job/job_inpaint.h"
#include "engine/job/job_open.h"
#include "engine/job/job_picture.h"
#include "engine/job/job_plan.h"
#include "engine/job/job_settings.h"
#include "engine/job/plan_report.h"
#include "engine/job/plan_scratch.h"
#include "engine/job/run_pipe.h"
#include "engine/job/run_tiles.h"
#include "engine/out/commit.h"
#include "engine/out/pyramid.h"
#include "io/ome_write.h"

#include <stdio.h>
#include <string.h>

/* ---- Bytes that follow from a tiling ----------------------------------------------------- */

static int is_piped(const tg_job *job)
{
    return job->film && (job->film->out.pipe || job->film->out.endless);
}

static int is_volume(const tg_job *job)
{
    return job->map.spatial == 3;
}

/* Of a film whose frames pass by in part no more wait than the source keeps. */
static int writer_window(const tg_job *job, int64_t group_tiles)
{
    const tgi_sink_layout *l = job->plan.layout;
    int64_t ahead = tgi_max(group_tiles, job->set.threads + 2);
    if (tgi_film_source_passing(job->source))
        ahead = tgi_max(
            group_tiles,
            tgi_min(ahead, (TGI_REST_FRAMES - 1) * l->tiles_y * l->tiles_x - group_tiles));
    return (int)tgi_min(group_tiles + ahead, INT32_MAX);
}

size_t tgi_job_staging_bytes(const tg_job *job, const tgi_tiling *t)
{
    const tgi_net *net = t->net;
    const tgi_slot *in = &t->slot[net->in[0]];
    const int64_t fed = in->fed;
    if (!fed) /* the stage does not read the image */
        return 0;
    tgi_yuv yuv;
    if (tgi_job_film_yuv(job, &yuv))
        return tgi_loader_yuv_bytes(&job->map, &yuv, fed, in->width);
    const int64_t slabs = is_volume(job) ? fed : 1;
    const int64_t rows = is_volume(job) ? in->rows : fed;
    return tgi_loader_bytes(&job->map, job->info->dtype, slabs, rows, in->width);
}

tgi_device_port tgi_job_image_port(const tg_job *job, const tgi_tiling *t)
{
    tgi_yuv yuv;
    return (tgi_device_port){.type = job->info->dtype,
                             .bytes = tgi_job_staging_bytes(job, t),
                             .yuv = tgi_job_film_yuv(job, &yuv)};
}

static size_t rows_in(const tg_job *job, const tgi_tiling *t)
{
    return tgi_sat_mul(2, tgi_job_staging_bytes(job, t));
}

size_t tgi_job_extra_bytes(const tg_job *job, const tgi_tiling *t, tgi_bytes *parts)
{
    const tgi_plan_part *p = &job->plan;
    const int64_t group =
        tgi_store_group_tiles(&job->map, t, p->tile_h, p->tile_w, is_volume(job));
    const int window = writer_window(job, group);
    const size_t staging = tgi_sat_mul(2, tgi_job_staging_bytes(job, t));
    const size_t slots = tgi_commit_bytes(p->layout, window, job->set.threads);
    if (parts) {
        parts->staging = staging;
        parts->window = slots;
    }
    return tgi_sat_add(staging, slots);
}

/* Its tables and a row. */
static size_t first_pass(const tg_job *job)
{
    const size_t row = (size_t)job->map.extent[2] * tgi_dtype_size(job->info->dtype);
    return tgi_normalize_needs_stats(&job->set.normalize)
               ? tgi_align_size(tgi_sat_add(TGI_STATS_SCRATCH, row), 64)
               : 0;
}

/* The first pass works in the arena: one that is too small for it is made larger. */
static size_t beside(const tg_job *job, const tgi_tiling *t)
{
    const size_t stats = first_pass(job);
    if (t->stage->out[0].port != 0) /* a stage before the last one */
        return rows_in(job, t);
    return tgi_sat_add(tgi_job_extra_bytes(job, t, NULL),
                       stats > t->arena_bytes ? stats - t->arena_bytes : 0);
}

static void unit_of(const tg_job *job, int64_t unit[3])
{
    unit[0] = 1;
    unit[1] = is_volume(job) ? job->plan.tile_h : 1;
    unit[2] = job->plan.tile_w;
}

/* ---- The output file --------------------------------------------------------------------- */

/* Pixels of the cells that --tile asked for. An axis of one box has one cell. */
static int64_t asked_cell(const tg_job *job, int k)
{
    const tgi_mapping *m = &job->map;
    return tgi_mapping_boxed(m) && m->fit[k].box ? m->fit[k].core
           : tgi_mapping_boxed(m)                ? tgi_align_up(m->out_extent[k], 16)
                                                 : job->plan.fixed[k];
}

/* Side of the file's tiles where cells of `cell` pixels go over `extent`. One cell that holds all
 * of it ends nowhere inside. */
static int64_t side_for(int64_t cell, int64_t extent)
{
    return cell < extent || cell % TGI_SINK_TILE_SMALL == 0
               ? tgi_sink_tile_of_cell(cell)
               : tgi_sink_tile_side(extent, extent);
}

/* The tiles that go with cells of a given size. It alone decides: the budget does not, so that
 * one --tile gives one file. */
static void tiles_for(tg_job *job, int64_t rows, int64_t columns)
{
    job->plan.tile_h = side_for(rows, job->map.out_extent[1]);
    job->plan.tile_w = side_for(columns, job->map.out_extent[2]);
}

/* Cells end on file tiles. Where --tile or a fixed box says the cells, tiles divide them; else a
 * full-width row of tiles is a small part of the budget. */
static void pick_file_tile(tg_job *job)
{
    tgi_plan_part *p = &job->plan;
    int64_t *fixed = p->fixed;
    const tgi_tile_spec *spec = &job->set.tile;
    const tgi_mapping *m = &job->map;
    memset(fixed, 0, sizeof p->fixed);
    p->tile_h = p->tile_w = 256;
    if (p->adopts) { /* the file's grid stands; the cells may follow below */
        p->tile_h = p->adopted.tile_h;
        p->tile_w = p->adopted.tile_w;
        return;
    }
    if (!spec->automatic && !tgi_mapping_boxed(m)) {
        for (int i = 1; i < 3; i++)
            fixed[i] = tgi_align_up(spec->v[i], 16);
        fixed[0] = is_volume(job) ? spec->v[0] : 0;
        tiles_for(job, fixed[1], fixed[2]);
        return;
    }
    if (!spec->automatic) { /* boxes that were asked for */
        tiles_for(job, asked_cell(job, 1), asked_cell(job, 2));
        return;
    }
    if (tgi_mapping_boxed(m)) { /* of the network's one size */
        for (int k = 1; k < 3; k++)
            while (m->fit[k].box && m->fit[k].core % p->tile_h)
                p->tile_h = p->tile_w = p->tile_h / 2;
        return;
    }
    p->tile_w = tgi_sink_tile_side(m->out_extent[1], m->out_extent[2]);
    p->tile_h = tgi_sink_tile_height(m->out_extent[1], p->tile_w);
    const double row_bytes = (double)m->out_extent[2] * (double)m->out_channels *
                             (double)tgi_dtype_size(job->set.dtype);
    while (p->tile_h > 64 && 3.0 * row_bytes * (double)p->tile_h > (double)p->budget / 6) {
        p->tile_h = tgi_align_up(p->tile_h / 2, 16);
        p->tile_w /= 2;
    }
}

static tg_status make_layout(tg_job *job, tgi_err *err)
{
    tgi_plan_part *p = &job->plan;
    const tgi_mapping *m = &job->map;
    tgi_image_meta meta; /* a view of the input's */
    tgi_job_meta(job, &meta);
    tgi_sink_spec spec = {.dtype = job->set.dtype,
                          .tile_h = p->tile_h,
                          .tile_w = p->tile_w,
                          .compression = (tgi_compression)job->set.compress.kind,
                          .level = job->set.compress.level > 0 ? job->set.compress.level : 0,
                          .pyramid = tgi_opts_pyramid(job->opts),
                          .meta = &meta};
    memcpy(spec.axes, m->out_axes, sizeof spec.axes);
    memcpy(spec.shape, m->out_shape, sizeof spec.shape);
    tgi_ome_letters(job->set.output, spec.axes);
    TGI_TRY(tgi_ome_may(job->set.output, spec.dtype, spec.axes, err));
    if (job->set.writer || job->film) /* the output is made of the tiles, which then go */
        spec.compression = TGI_COMPRESSION_NONE;
    spec.predictor = tgi_sink_predictor(spec.compression, spec.dtype);
    tgi_sink_layout_free(&p->layout);
    return tgi_sink_layout_make(&spec, &p->layout, err);
}

/* ---- Choose ------------------------------------------------------------------------------ */

/* What grows with a film stands apart: else its memory is that of any length. */
static void count_tables(tg_job *job)
{
    tgi_bytes *b = &job->plan.bytes;
    b->index = tgi_min(tgi_film_source_index_bytes(job->source), b->process);
    b->process -= b->index; /* it was there when that was measured */
    b->tables = 0;
    if (!job->film || is_piped(job))
        return;
    const size_t journal =
        tgi_sat_mul(TGI_JOURNAL_TILE_BYTES, (size_t)tgi_job_stored(job)->n_tiles);
    b->tables = tgi_sat_add(job->film->out.tables, journal);
    b->journal -= journal;
}

/* Lay out the file on the grid that is set, and count what goes with it. */
static tg_status take_grid(tg_job *job, tgi_err *err)
{
    tgi_image_meta meta;
    tgi_plan_part *p = &job->plan;
    size_t decoder = job->source->ops->codec_bytes(job->source);
    if (job->set.scratch && !job->plan.scratch.no_room && tgi_job_streams_input(job))
        decoder += tgi_decoded_bytes(&job->map, job->info, TGI_JOB_READERS);
    TGI_TRY(make_layout(job, err));
    tgi_job_meta(job, &meta);
    p->bytes = tgi_plan_first_bytes(job);
    p->bytes.journal = is_piped(job) ? 0 : tgi_journal_bytes(tgi_job_stored(job));
    tgi_job_count_source(job, decoder);
    p->bytes.pyramid = tgi_pyramid_bytes(p->layout);
    p->bytes.receipt = TGI_INPUT_HASH_BYTES;
    p->bytes.picture = job->film ? tgi_job_film_bytes(job)
                                 : tgi_picture_make_bytes(job->set.writer, p->layout, &meta);
    count_tables(job);
    return TG_OK;
}

/* The best plan on the file grid that is set. */
static tg_status choose_on_grid(tg_job *job, tgi_err *err)
{
    TGI_TRY(take_grid(job, err));
    return tgi_plan_choose(job);
}

/* Nothing left that a finer grid could win: no pixel twice, every kernel the fastest. */
static int is_ideal(const tgi_plan_part *p)
{
    return p->net->n_used == p->net->n_fast && tgi_tiling_recomputed(&p->choice.tiling) < 0.02;
}

/* On a device what fits the processor's side of it is nearer than what does not. */
static size_t least_of_grid(const tg_job *job)
{
    const size_t device = job->plan.choice.smallest_bytes;
    if (!tgi_job_pass_ops(job))
        return tgi_plan_least_bytes(job);
    return device != SIZE_MAX ? device : SIZE_MAX / 2 + tgi_plan_least_bytes(job) / 2;
}

/* Of the grid of the output file: where cells are boxes they end on square tiles. */
static void set_side(tg_job *job, int64_t side)
{
    const tgi_mapping *m = &job->map;
    job->plan.tile_w = side;
    job->plan.tile_h =
        tgi_mapping_boxed(m) ? side : tgi_sink_tile_height(m->out_extent[1], side);
}

/* Cells end on file tiles and the writer holds whole ones, so finer tiles cut finer and leave
 * more to the network: halve them until a plan fits and is good, or the next is no faster. Of a
 * huge image the tables of fine tiles are what does not fit: coarser ones are tried last. */
static tg_status choose_file_tile(tg_job *job, tgi_err *err)
{
    tgi_plan_part *p = &job->plan;
    const int free_grid = job->set.tile.automatic && !p->adopts;
    const int64_t start = p->tile_w, largest = tgi_mapping_boxed(&job->map) ? start : 256;
    int64_t best = 0, least_side = start;
    size_t least = SIZE_MAX;
    double best_seconds = 0;
    for (int coarser = 0;;) {
        const tg_status st = choose_on_grid(job, err);
        if (st != TG_OK && st != TG_E_BUDGET)
            return st;
        if (st != TG_OK && least_of_grid(job) < least) {
            least = least_of_grid(job);
            least_side = p->tile_w;
        }
        if (st == TG_OK && (!best || p->choice.seconds < 0.9 * best_seconds)) {
            best = p->tile_w;
            best_seconds = p->choice.seconds;
        } else if (best) {
            break;
        }
        if (!free_grid || (best && (coarser || p->tile_w <= 16 || is_ideal(p))))
            break;
        const int64_t above = coarser ? p->tile_w : start;
        coarser |= p->tile_w <= 16;
        if (coarser && above >= largest)
            break;
        set_side(job, coarser ? 2 * above : p->tile_w / 2);
    }
    const int64_t chosen = best ? best : least_side;
    if (p->tile_w == chosen)
        return best ? TG_OK : TG_E_BUDGET;
    set_side(job, chosen);
    return choose_on_grid(job, err);
}

static tg_status choose(tg_job *job, tgi_err *err)
{
    pick_file_tile(job);
    return choose_file_tile(job, err);
}

/* Whether scratch helps is known once a tiling is chosen; where it lies in memory, there must
 * be a tiling that leaves room for it. */
static tg_status add_scratch(tg_job *job, tgi_err *err)
{
    tgi_plan_part *p = &job->plan;
    TGI_TRY(tgi_job_plan_scratch(job, err));
    if (!p->scratch.used || !job->scratch_place.in_memory)
        return TG_OK;
    p->bytes.scratch = (size_t)p->scratch.bytes;
    tgi_choice_free(&p->choice);
    tg_status st = tgi_plan_choose(job);
    if (st == TG_OK)
        TGI_TRY(tgi_job_plan_scratch(job, err)); /* counted again: other strips */
    if (st == TG_E_BUDGET) {
        tgi_job_drop_scratch(job);
        p->bytes.scratch = 0;
        st = tgi_plan_choose(job);
    }
    if (!p->scratch.used)
        p->bytes.scratch = 0;
    return st == TG_OK ? TG_OK : tgi_fail(err, st, "no memory to plan");
}

/* Output pixels of a cell of boxes on axis k. */
static int64_t box_side(const tgi_mapping *m, int k)
{
    return m->fit[k].box ? m->fit[k].core : m->out_extent[k];
}

static tg_status begin(tg_job *job, tgi_err *err)
{
    if (tgi_mapping_boxed(&job->map) && !job->set.tile.automatic && !job->set.norm_tiles)
        return tgi_fail(err, TG_E_ARG,
                        "%s works at one size, in boxes that give %lldx%lld pixels each: leave "
                        "out --tile",
                        job->set.model, (long long)box_side(&job->map, 1),
                        (long long)box_side(&job->map, 2));
    return tgi_job_film_make(job, err);
}

static void fit(const tg_job *job, tgi_stages *stages)
{
    tgi_stages_fit(stages, job->map.fit);
}

static void count(tg_job *job)
{
    tgi_plan_part *p = &job->plan;
    const tgi_tiling *t = &p->choice.tiling;
    tgi_bytes *b = &p->bytes;
    p->window = writer_window(
        job, tgi_store_group_tiles(&job->map, t, p->tile_h, p->tile_w, is_volume(job)));
    tgi_job_extra_bytes(job, t, b);
    if (!p->scratch.used) /* booked while that was open */
        tgi_job_count_source(job, job->source->ops->codec_bytes(job->source));
    b->output_disk = p->layout->file_bytes;
    if (is_piped(job))
        b->output_disk = 0;
    else if (job->film) /* packets and film */
        b->output_disk = (uint64_t)(2 * job->film->out.disk + job->film->out.copied);
    else if (b->picture) /* tiles and picture are both there at the end */
        b->output_disk = 2 * b->output_disk;
    if (!is_piped(job)) /* OUT.stages, in two places */
        b->output_disk = tgi_sat_add(b->output_disk, b->carried);
    b->output_packs = b->picture ? 0 : b->output_disk;
    b->output_sure =
        job->set.compress.kind == TGI_COMPRESS_NONE && !job->film ? b->output_disk : 0;
    b->output_held = job->set.output ? tgi_job_held_already(job->set.output) : 0;
    b->output_free = tgi_machine_disk_free(&job->machine, job->set.output);
}

/* A frame is encoded when its tiles are there; all of the next one may wait meanwhile, where that is a small part of what
 * is left. */
#define LITTLE 4
static size_t widen(tg_job *job, size_t room)
{
    tgi_plan_part *p = &job->plan;
    const tgi_sink_layout *l = p->layout;
    if (!job->film || tgi_film_source_passing(job->source))
        return 0;
    const int64_t group = tgi_store_group_tiles(&job->map, &p->choice.tiling, p->tile_h,
                                                p->tile_w, is_volume(job));
    const int64_t frame = job->film->out.samples / l->samples * l->tiles_y * l->tiles_x;
    const int window = (int)tgi_min(group + frame, INT32_MAX);
    const size_t now = tgi_commit_bytes(l, p->window, job->set.threads),
                 then = tgi_commit_bytes(l, window, job->set.threads);
    if (window <= p->window || then - now > room / LITTLE)
        return 0;
    p->window = window;
    return then - now;
}

/* ---- Refusals ---------------------------------------------------------------------------- */

/* Whether square cells fit, in a file of the tiles that go with them. */
static int fits_square(tg_job *job, int64_t side)
{
    const int64_t fixed[3] = {0, side, side};
    const size_t weights = job->plan.bytes.weights; /* of the kernels that are left */
    tgi_err e = {0};
    if (!job->plan.adopts) {
        tiles_for(job, side, side);
        if (take_grid(job, &e) != TG_OK)
            return 0;
        job->plan.bytes.weights = weights;
    }
    return tgi_plan_fits(job, fixed);
}

#define BEYOND 1024

/* Largest square tile that fits, a multiple of 16; 0: none. Among multiples of 256, of one grid,
 * more is larger. Others come with smaller tiles of the file, or with larger ones, so those
 * beyond the best are tried until none of the next BEYOND pixels fits. */
static int64_t largest_tile(tg_job *job)
{
    const int64_t top =
        tgi_align_up(tgi_max(job->map.out_extent[1], job->map.out_extent[2]), 16) + 16;
    int64_t good = 0, bad = top / 256 + 1;
    while (bad - good > 1) {
        const int64_t mid = good + (bad - good) / 2;
        if (fits_square(job, mid * 256))
            good = mid;
        else
            bad = mid;
    }
    good *= 256;
    for (int64_t next = good + 16; next <= top && next <= good + BEYOND; next += 16)
        if (fits_square(job, next))
            good = next;
    pick_file_tile(job); /* as it was refused */
    tgi_err e = {0};
    return take_grid(job, &e) == TG_OK ? good : 0;
}

/* What no tiling makes smaller, and --codec or another film may. */
static tg_status name_film_lines(const tg_job *job, tg_status st, tgi_err *err)
{
    const tgi_bytes *b = &job->plan.bytes;
    char size[2][32];
    const size_t n = err ? strlen(err->text) : 0;
    if (st != TG_E_BUDGET || !err || !tgi_film_source_info(job->source))
        return st;
    if (b->inpaint)
        snprintf(err->text + n, sizeof err->text - n, " (the line `inpaint` is %s of it)",
                 tgi_size_text(b->inpaint, size[0], sizeof size[0]));
    else if (job->film)
        snprintf(err->text + n, sizeof err->text - n,
                 " (the line `decoder` is %s of it, `encoder` %s)",
                 tgi_size_text(b->decoder, size[0], sizeof size[0]),
                 tgi_size_text(b->picture, size[1], sizeof size[1]));
    else
        snprintf(err->text + n, sizeof err->text - n, " (the line `decoder` is %s of it)",
                 tgi_size_text(b->decoder, size[0], sizeof size[0]));
    return st;
}

static tg_status refuse(tg_job *job, size_t least, tgi_err *err)
{
    char need[32], have[32], must[32];
    const int boxed = tgi_mapping_boxed(&job->map);
    const int chosen =
        job->set.tile.automatic || boxed || tgi_job_pass_ops(job) || job->plan.ask.remedy;
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
                        tgi_plan_ram_text(job, least, must, sizeof must));
    return name_film_lines(job, tgi_job_refuse_host(job, least, err), err);
}

/* ---- Lines ------------------------------------------------------------------------------- */

/* What is said about decoding: scratch that was asked for, or the hint that it would help. */
static void scratch_line(tg_job *job)
{
    tgi_plan_part *p = &job->plan;
    const tgi_scratch_part *s = &p->scratch;
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
    else if (p->bytes.kept_disk) /* it is, by the line "stores" */
        snprintf(text, sizeof text, "not used for the input: %.160s", s->why);
    else
        snprintf(text, sizeof text, "not used: %.170s", s->why);
    if (s->used && job->scratch_place.in_memory)
        tgi_job_add_line(p, "scratch", p->bytes.scratch, TG_PLAN_MEMORY, 0, "%s", text);
    else
        tgi_job_add_line(p, "scratch", s->used ? s->bytes : 0, TG_PLAN_DISK, free_bytes, "%s",
                         text);
}

/* A film out of a pipe, which becomes a file: packets and film are both there at the end. */
static void endless_line(tg_job *job)
{
    char text[192], size[32];
    tgi_size_text((uint64_t)(2000 * job->film->out.disk), size, sizeof size);
    snprintf(text, sizeof text,
             "%.90s, which grows, %s for 1000 frames; no journal, so a stop starts over",
             job->set.output, size);
    tgi_job_add_line(&job->plan, "output", 0, TG_PLAN_DISK, job->plan.bytes.output_free, "%s",
                     text);
}

/* How the image is padded, where it is: "18 + 22 rows before + after, by reflection". */
static void padding_line(tg_job *job)
{
    static const char *const of[] = {"slabs", "rows", "columns"};
    const tgi_mapping *m = &job->map;
    char text[160] = "";
    size_t n = 0;
    for (int k = 3 - m->spatial; k < 3; k++) {
        const tgi_fit *f = &m->fit[k];
        const int64_t after = f->size - f->before - m->extent[k];
        if (f->before || after)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%lld + %lld %s", n ? ", " : "",
                                  (long long)f->before, (long long)after, of[k]);
    }
    if (n)
        tgi_job_add_line(&job->plan, "padding", 0, TG_PLAN_MEMORY, 0,
                         m->pad == TGI_PAD_REFLECT ? "%s before + after, by reflection"
                         : m->pad == TGI_PAD_EDGE  ? "%s before + after, by repeating the edge"
                                                   : "%s before + after, by zeros",
                         text);
}

/* Boxes, of the network's one size or such as were asked for, and what each of them yields. */
static void boxes_line(tg_job *job)
{
    const tgi_mapping *m = &job->map;
    const int64_t *core = job->plan.choice.tiling.cut;
    char text[160];
    int n = 0;
    if (!tgi_mapping_boxed(m))
        return;
    n = snprintf(text, sizeof text, "%s",
                 job->set.norm_tiles ? "boxes of " : "fixed boxes of ");
    for (int a = 0; a < m->spatial; a++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%lld", a ? "x" : "",
                      (long long)job->in_desc.dim[2 + a]);
    n += snprintf(text + n, sizeof text - (size_t)n, ", core ");
    for (int k = 3 - m->spatial; k < 3; k++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%lld",
                      k > 3 - m->spatial ? "x" : "", (long long)core[k]);
    tgi_job_add_line(&job->plan, "boxes", 0, TG_PLAN_MEMORY, 0,
                     job->set.norm_tiles ? "%s: --norm-scope tile, seams are possible"
                                         : "%s: the network works at one size",
                     text);
}

static int is_small(const tg_job *job, int k, int64_t side)
{
    const int64_t cell = asked_cell(job, k);
    return side < TGI_SINK_TILE_SMALL && side < cell && cell < job->map.out_extent[k];
}

void tgi_tile_note(const tg_job *job, char *buf, size_t cap)
{
    const tgi_plan_part *p = &job->plan;
    buf[0] = 0;
    if (job->set.writer || job->film || p->adopts || job->set.tile.automatic)
        return;
    if (is_small(job, 1, p->tile_h) || is_small(job, 2, p->tile_w))
        snprintf(
            buf, cap,
            "%lldx%lld pixels, slow to read: the cells of --tile, %lldx%lld, end on tiles of "
            "the file; a multiple of 256 has tiles of 256x256",
            (long long)p->tile_h, (long long)p->tile_w, (long long)asked_cell(job, 1),
            (long long)asked_cell(job, 2));
}

/* Tiles of the file that are smaller than anybody wants. */
static void small_tiles_line(tg_job *job)
{
    char text[192];
    tgi_tile_note(job, text, sizeof text);
    if (text[0])
        tgi_job_add_line(&job->plan, "file tiles", 0, TG_PLAN_MEMORY, 0, "%s", text);
}

static void write_lines(tg_job *job)
{
    tgi_plan_part *p = &job->plan;
    const tgi_bytes *b = &p->bytes;
    char text[96], live[96], size[32];
    p->n_lines = 0;
    snprintf(text, sizeof text, "packed for the %s kernels", job->set.backend->name);
    tgi_size_text(p->choice.tiling.lower_bound_bytes, size, sizeof size);
    snprintf(live, sizeof live, "activations; %s live together at most", size);
    tgi_plan_network_lines(job, text, live);
    if (!p->choice.staged || b->staging) /* else in the arena */
        tgi_job_add_line(p, "staging", b->staging, TG_PLAN_MEMORY, 0, "%s",
                         "rows read ahead of the network");
    snprintf(text, sizeof text, "%d tiles of %lldx%lld", p->window, (long long)p->tile_h,
             (long long)p->tile_w);
    tgi_job_add_line(p, "window", b->window, TG_PLAN_MEMORY, 0,
                     "%s being filled, compressed, written", text);
    if (!is_piped(job))
        tgi_job_add_line(p, "journal", b->journal, TG_PLAN_MEMORY, 0, "%s",
                         "offsets and checksums of the output's tiles");
    tgi_plan_decoder_line(job);
    if (b->index)
        tgi_job_add_line(p, "packet index", b->index, TG_PLAN_MEMORY, 0, "%s",
                         "places and times of the film's packets");
    if (b->tables)
        tgi_job_add_line(p, "container tables", b->tables, TG_PLAN_MEMORY, 0, "%s",
                         "of the packets that are written");
    if (job->film)
        tgi_job_add_line(p, "encoder", b->picture, TG_PLAN_MEMORY, 0, "%s",
                         job->film->out.text);
    else if (b->picture)
        tgi_job_add_line(p, "picture", b->picture, TG_PLAN_MEMORY, 0, "%s",
                         "the output made of its tiles, at the end");
    if (b->pyramid)
        tgi_job_add_line(p, "pyramid", b->pyramid, TG_PLAN_MEMORY, 0, "%s",
                         "tiles read back to make the smaller levels");
    tgi_job_add_line(p, "receipt", b->receipt, TG_PLAN_MEMORY, 0, "%s",
                     "the input being read for its checksum");
    tgi_plan_process_lines(job, "the program, the parsed model, file indexes");
    tgi_job_add_margin(p);
    if (tgi_normalize_needs_stats(&job->set.normalize))
        tgi_job_add_line(p, "statistics", 0, TG_PLAN_MEMORY, 0, "%s",
                         "a first pass over the image; uses the arena before the network does");
    padding_line(job);
    boxes_line(job);
    small_tiles_line(job);
    if (tgi_film_source_is_stream(job->source))
        tgi_job_add_line(
            p, "frames", 0, TG_PLAN_MEMORY, 0, "%s",
            "nobody knows how many will come: strips, bands and time are those of one");
    if (is_piped(job) && job->film->out.pipe)
        tgi_job_add_line(p, "output", 0, TG_PLAN_MEMORY, 0, "%s",
                         "through standard output: no journal, so a stop starts over");
    else if (is_piped(job))
        endless_line(job);
    else
        tgi_job_add_line(p, "output", b->output_disk, TG_PLAN_DISK, b->output_free,
                         job->film && job->film->out.guessed ? "%s, guessed" : "%s",
                         job->set.output ? job->set.output : "(no output named)");
    scratch_line(job);
}

static tg_status check_output(tg_job *job, tgi_err *err)
{
    tgi_image_meta meta;
    tgi_job_meta(job, &meta);
    TGI_TRY(tgi_job_film_check(job, err));
    const tgi_picture_writer *w = job->set.writer;
    if (w && !w->images && job->map.loops_samples && job->plan.layout->n_planes != 1)
        return tgi_fail(err, TG_E_ARG,
                        "%s: the network takes one channel, so each colour of the image alone, "
                        "and a %s holds one plane: write .tif, or choose a colour, --planes 0",
                        job->set.output, w->name);
    tgi_job_tell_lost(job, &meta);
    return tgi_picture_check(job->set.writer, job->set.output, job->plan.layout, &meta, err);
}

/* ---- On a device ------------------------------------------------------------------------- */

static void form(const tg_job *job, const tgi_tiling *t, tgi_device_form *out)
{
    out->in[0] = tgi_job_image_port(job, t);
    out->out[0] =
        (tgi_device_port){.type = job->set.dtype,
                          .channels = job->map.out_channels,
                          .together = job->map.out_samples ? job->map.out_channels : 1};
}

static size_t device_beside(const tg_job *job, const tgi_tiling *t)
{
    return tgi_job_extra_bytes(job, t, NULL);
}

/* Bytes that go out for each that comes in. */
static double out_per_in(const tg_job *job)
{
    const tgi_mapping *m = &job->map;
    tgi_yuv yuv;
    const double samples = tgi_job_film_yuv(job, &yuv)
                               ? 1 + 2.0 / (1 << (yuv.log2_w + yuv.log2_h))
                               : (double)m->channels;
    double in = samples * (double)tgi_dtype_size(job->info->dtype);
    double out = (double)m->out_channels * (double)tgi_dtype_size(job->set.dtype);
    for (int i = 0; i < 3; i++) {
        in *= (double)m->extent[i];
        out *= (double)m->out_extent[i];
    }
    return out / in;
}

static double band_pixels(const tg_job *job, const tgi_tiling *t)
{
    return (double)tgi_job_staging_bytes(job, t) * (1 + out_per_in(job));
}

/* ---- Time -------------------------------------------------------------------------------- */

static void add_traffic(const tg_job *job, double items, tgi_traffic *t)
{
    const tgi_mapping *m = &job->map;
    tgi_traffic_of_image(job, items, t);
    t->samples_out = items * (double)m->out_extent[0] * (double)m->out_extent[1] *
                     (double)m->out_extent[2] * (double)m->out_channels;
    t->bytes_out = t->samples_out * (double)tgi_dtype_size(job->set.dtype);
}

static tgi_codec_speed output_codec(const tg_job *job)
{
    switch ((tgi_compression)job->set.compress.kind) {
    case TGI_COMPRESSION_DEFLATE:
        return TGI_CODEC_DEFLATE;
    case TGI_COMPRESSION_ZSTD:
        return TGI_CODEC_ZSTD;
    case TGI_COMPRESSION_LZW:
        return TGI_CODEC_LZW;
    default:
        return TGI_CODEC_NONE;
    }
}

/* ---- The ends ---------------------------------------------------------------------------- */

static int64_t items_of(const tg_job *job)
{
    return job->map.n_items;
}

static const tgi_desc *shapes_of(const tg_job *job)
{
    return job->in_descs;
}

/* They differ in what becomes of the tiles. */
#define TILE_ENDS(after, run)                                                                  \
    {                                                                                          \
        .after_stop = (after), .image_out = 1, .items = items_of, .shapes = shapes_of,         \
        .begin = begin, .fit = fit, .choose = choose, .choose_again = add_scratch,             \
        .count = count, .widen = widen, .write_lines = write_lines,                            \
        .check_output = check_output, .unit = unit_of, .beside = beside, .rows_in = rows_in,   \
        .first_pass = first_pass, .refuse = refuse, .device_beside = device_beside,            \
        .form = form, .band_pixels = band_pixels, .add_traffic = add_traffic,                  \
        .output_codec = output_codec, .fixed_share = 1, .steps = (run)                         \
    }

const tgi_ends tgi_tile_ends = TILE_ENDS("goes on", &tgi_tile_steps);
const tgi_ends tgi_pipe_ends = TILE_ENDS("starts over", &tgi_pipe_steps);

/* plan_scratch.c - how often the plan decodes its input, and whether scratch changes that.
 *
 * It matters for sources that stream rows out of large compressed blocks: going back, to the
 * next strip or after the statistics, decodes the block again. The count follows the cells in
 * the order they run and the reader's own rule (io/tiff_stream.h): a row that is still kept or
 * lies ahead goes on, any other begins its block anew. */
#include "engine/job/plan_scratch.h"
#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/mem.h"
#include "engine/base/size.h"
#include "engine/ends/decoded.h"
#include "engine/job/ends.h"
#include "engine/job/job.h"
#include "engine/job/job_open.h"
#include "engine/out/stage_log.h"
#include "engine/plan/staged.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Fewer decoded pixels than this much beyond one pass are the overlap of neighbours. */
#define WORTH_IT 1.05

/* Rows of one block column as a reader meets them that streams (io/tiff_stream.c). */
typedef struct walk {
    int64_t block_h, kept; /* rows of a block; of the past, at hand */
    int64_t plane, block;  /* which it is in; -1: none */
    int64_t lo, next;      /* rows of the file: kept from, decoded up to */
    double rows;           /* decoded */
} walk;

static walk walk_of(const tg_job *job)
{
    return (walk){.block_h = job->info->block_h,
                  .kept = job->source->ops->stream_rows(job->source),
                  .plane = -1,
                  .block = -1};
}

/* Read rows (of the file) of a plane. */
static void walk_rows(walk *w, int64_t plane, tgi_range rows)
{
    for (int64_t y = rows.lo; y < rows.hi;) {
        const int64_t block = y / w->block_h, begin = block * w->block_h;
        const int64_t hi = tgi_min(rows.hi, begin + w->block_h);
        if (plane != w->plane || block != w->block || y < w->lo)
            w->lo = w->next = begin;
        w->plane = plane;
        w->block = block;
        w->rows += (double)tgi_max(0, hi - w->next);
        w->next = tgi_max(w->next, hi);
        w->lo = tgi_max(w->lo, w->next - w->kept);
        y = hi;
    }
}

/* One cut along an axis (z,y,x) of the tiling: its core, and how far the region lies from it.
 */
static tgi_range cut_of(const tgi_tiling *t, int a, int64_t k, int64_t *shift)
{
    const int64_t step[3] = {1, t->n_cut[0], t->n_cut[0] * t->n_cut[1]};
    int64_t in[3], out[3];
    tgi_range core[3];
    tgi_tiling_cell(t, k * step[a], core);
    tgi_tiling_shift(t, k * step[a], in, out);
    *shift = in[a];
    return core[a - (t->net->rank == 4)];
}

/* Who reads the image: input `in` of a tiling's stage. */
typedef struct reader {
    const tg_job *job;
    const tgi_tiling *t;
    int in;
} reader;

/* What cut k of an axis that is not streamed along reads of the file. `work`: two arrays of the
 * net's values. */
static tgi_range read_by_cut(const reader *r, int a, int64_t k, tgi_range *work)
{
    const tgi_tiling *t = r->t;
    const tgi_mapping *m = &r->job->map;
    const int axis = a + TGI_STREAM_AXIS - (t->net->rank == 4);
    tgi_range *inside = work + t->net->n_values;
    int64_t shift;
    const tgi_range core = cut_of(t, a, k, &shift);
    tgi_axis_need(t->stage, axis, core, work, inside);
    const tgi_range read = inside[t->stage->in[r->in].value];
    const tgi_range h =
        tgi_pad_hull(m->pad, (tgi_range){read.lo - shift, read.hi - shift}, m->extent[a]);
    return (tgi_range){m->origin[a] + h.lo, m->origin[a] + h.hi};
}

/* Slabs or rows of a band, [r.lo, r.hi) of the region's frame. `across`: of a volume, the rows
 * that its cell reads. */
static void walk_band(const tg_job *job, walk *w, tgi_range r, tgi_range across)
{
    const tgi_mapping *m = &job->map;
    if (job->plan.net->rank == 4) {
        const tgi_range h = tgi_pad_hull(m->pad, r, m->extent[1]);
        walk_rows(w, 0, (tgi_range){m->origin[1] + h.lo, m->origin[1] + h.hi});
        return;
    }
    for (int64_t k = r.lo; k < r.hi; k++) {
        const int64_t z = tgi_pad_index(m->pad, k, m->extent[0]);
        if (z >= 0)
            walk_rows(w, z, across);
    }
}

/* Cells that follow each other along the stream axis, band after band. */
static tg_status walk_cells(const reader *r, tgi_flow *f, walk *w, tgi_range across,
                            tgi_err *err)
{
    const tgi_tiling *t = r->t;
    const int a = tgi_cut_of_axis(t->net, TGI_STREAM_AXIS), v = t->stage->in[r->in].value;
    for (int64_t k = 0; k < t->n_cut[a]; k++) {
        int64_t shift;
        TGI_TRY(tgi_check_cancel(err));
        tgi_flow_begin(f, cut_of(t, a, k, &shift), t->band);
        while (f->end[v] < f->hi[v]) {
            for (int i = 0; i < r->in; i++) /* those before it drive */
                tgi_flow_feed(f, i);
            const tgi_range fed = tgi_flow_feed(f, r->in);
            walk_band(r->job, w, (tgi_range){fed.lo - shift, fed.hi - shift}, across);
        }
    }
    return TG_OK;
}

static int64_t columns_in(const tg_job *job, tgi_range x)
{
    const int64_t block = job->info->block_w;
    return tgi_range_empty(x) ? 0 : (x.hi - 1) / block - x.lo / block + 1;
}

/* Rows times columns of blocks that one pass over the region decodes. */
static double once_over(const tg_job *job)
{
    const tgi_mapping *m = &job->map;
    walk w = walk_of(job);
    walk_rows(&w, 0, (tgi_range){m->origin[1], m->origin[1] + m->extent[1]});
    return w.rows * (double)m->extent[0] *
           (double)columns_in(job, (tgi_range){m->origin[2], m->origin[2] + m->extent[2]});
}

/* How often a pixel is decoded by the bands of a tiling, on average; 1: once. */
static tg_status passes_of_bands(const reader *by, double *passes, tgi_err *err)
{
    const tg_job *job = by->job;
    const tgi_tiling *t = by->t;
    const int volume = t->net->rank == 5;
    tgi_flow f;
    int64_t columns = 0;
    TGI_TRY(tgi_flow_open(&f, t->stage, err));
    tg_status st = TG_OK;
    for (int64_t k = 0; k < t->n_cut[2] && (st = tgi_check_cancel(err)) == TG_OK; k++)
        columns += columns_in(job, read_by_cut(by, 2, k, f.work));
    double rows = 0;
    for (int64_t k = 0; k < (volume ? t->n_cut[1] : 1) && st == TG_OK; k++) {
        const tgi_range across = volume ? read_by_cut(by, 1, k, f.work) : (tgi_range){0, 0};
        walk w = walk_of(job);
        st = walk_cells(by, &f, &w, across, err);
        rows += w.rows;
    }
    tgi_flow_close(&f);
    *passes += rows * (double)columns / once_over(job);
    return st;
}

/* By the stages that read the image, each with a tiling of its own. */
static tg_status passes_of_stages(const tg_job *job, const tgi_staged *s, double *passes,
                                  tgi_err *err)
{
    for (int k = 0; k < s->n; k++) {
        const tgi_stage *stage = s->tiling[k].stage;
        for (int i = 0; i < stage->n_loaded; i++)
            if (stage->in[i].value == job->plan.net->in[0])
                TGI_TRY(passes_of_bands(&(reader){job, &s->tiling[k], i}, passes, err));
    }
    return TG_OK;
}

static double passes_of_statistics(const tg_job *job)
{
    const tg_dtype t = job->info->dtype;
    const int narrow = tgi_dtype_size(t) <= 2 && t != TG_DTYPE_F16;
    if (!tgi_normalize_needs_stats(&job->set.normalize))
        return 0;
    return !narrow && tgi_normalize_ranked(&job->set.normalize) ? 2 : 1;
}

int tgi_job_streams_input(const tg_job *job)
{
    const tgi_source_ops *ops = job->source->ops;
    return ops->stream_rows && ops->stream_rows(job->source) > 0;
}

static tg_status count_passes(tg_job *job, tgi_err *err)
{
    tgi_scratch_part *s = &job->plan.scratch;
    const tgi_choice *c = &job->plan.choice;
    double bands = 0;
    if (c->staged)
        TGI_TRY(passes_of_stages(job, c->staged, &bands, err));
    else
        TGI_TRY(passes_of_bands(&(reader){job, &c->tiling, 0}, &bands, err));
    s->passes = bands + passes_of_statistics(job);
    if (job->map.loops_samples && !job->info->planar_samples)
        s->passes *= job->info->samples; /* each sample of a pixel decodes all of them */
    return TG_OK;
}

tg_status tgi_job_plan_scratch(tg_job *job, tgi_err *err)
{
    tgi_scratch_part *s = &job->plan.scratch;
    *s = (tgi_scratch_part){.no_room = s->no_room};
    if (!tgi_job_streams_input(job)) {
        snprintf(s->why, sizeof s->why, "%s",
                 job->info->plain ? "the input is not compressed"
                                  : "the blocks of the input are small enough to be held");
        return TG_OK;
    }
    TGI_TRY(count_passes(job, err));
    TGI_TRY(tgi_decoded_file_bytes(&job->map, job->info, &s->bytes, err));
    if (s->passes <= WORTH_IT) {
        snprintf(s->why, sizeof s->why, "the input is decoded once as it is");
        return TG_OK;
    }
    s->helps = 1;
    s->used = job->set.scratch != NULL && !s->no_room;
    if (s->no_room)
        snprintf(s->why, sizeof s->why,
                 "the budget has no room for its buffers; the input is decoded %.1f times",
                 s->passes);
    else
        snprintf(s->why, sizeof s->why, "decoded once instead of %.1f times", s->passes);
    return TG_OK;
}

void tgi_job_drop_scratch(tg_job *job)
{
    tgi_scratch_part *s = &job->plan.scratch;
    char size[32];
    s->used = 0;
    snprintf(s->why, sizeof s->why,
             "%.60s is memory, and %s do not fit the budget; the input is decoded %.1f times",
             job->set.scratch, tgi_size_text(s->bytes, size, sizeof size), s->passes);
}

/* ---- Folder ------------------------------------------------------------------------------ */

tg_status tgi_job_look_at_scratch(tg_job *job, tgi_err *err)
{
    const tgi_machine *m = &job->machine;
    if (m->here)
        return tgi_scratch_look(job->set.scratch, &job->scratch_place, err);
    const tgi_machine_disk *d = tgi_machine_disk_of(m, job->set.scratch);
    if (!d)
        return tgi_fail(err, TG_E_NOT_FOUND, "--scratch %s: %s names no disk that it lies on",
                        job->set.scratch, m->name);
    job->scratch_place = (tgi_scratch_place){.free_bytes = d->free_bytes,
                                             .device = (uint64_t)(d - m->disk) + 1,
                                             .in_memory = d->in_memory != 0};
    return TG_OK;
}

static int same_folder(const tg_job *job, const char *a, const char *b)
{
    char x[TGI_KEPT_PATH], y[TGI_KEPT_PATH];
    tgi_err none = {0};
    return a && tgi_kept_path(a, job->set.output, x, sizeof x, &none) == TG_OK &&
           tgi_kept_path(b, job->set.output, y, sizeof y, &none) == TG_OK && strcmp(x, y) == 0;
}

/* The folder and what it is like; 0: it cannot be looked at, and nothing changed. */
static int change_scratch(tg_job *job, char *folder)
{
    char *const was = job->set.scratch;
    const tgi_scratch_place place = job->scratch_place;
    tgi_err none = {0};
    job->set.scratch = folder;
    job->scratch_place = (tgi_scratch_place){.free_bytes = 0};
    if (!folder || tgi_job_look_at_scratch(job, &none) == TG_OK)
        return 1;
    job->set.scratch = was;
    job->scratch_place = place;
    return 0;
}

void tgi_job_stay_in_scratch(tg_job *job, uint64_t of)
{
    char folder[TGI_KEPT_PATH];
    char *given = job->set.scratch, *there;
    if (!tgi_stage_log_folder(job->set.output, of, folder) || same_folder(job, given, folder))
        return;
    there = tgi_strdup(TGI_TAG_MISC, folder);
    if (!there || !change_scratch(job, there)) {
        tgi_free(there);
        return;
    }
    job->set.stays = 1;
    job->set.stays_for = given;
}

void tgi_job_stay_no_more(tg_job *job)
{
    char *there = job->set.scratch;
    if (!job->set.stays || !change_scratch(job, job->set.stays_for))
        return;
    tgi_free(there);
    job->set.stays = 0;
    job->set.stays_for = NULL;
}

void tgi_job_warn_of_staying(tg_job *job)
{
    const char *given = job->set.stays_for;
    if (!job->set.stays || !job->plan.bytes.kept_disk)
        return;
    tgi_job_warn(job,
                 "the run that was stopped keeps values between stages in %s: it goes on there"
                 "%s%s, and removes them at its end; without the file there the stages begin "
                 "with the first one",
                 job->set.scratch, given ? ", not in " : "", given ? given : "");
}

/* ---- Disk -------------------------------------------------------------------------------- */

/* It was reserved whole, so perhaps this is all there was. */
uint64_t tgi_job_held_already(const char *output)
{
    char partial[4200];
    struct stat st;
    snprintf(partial, sizeof partial, "%s.partial", output);
    return stat(partial, &st) == 0 ? (uint64_t)st.st_blocks * 512u : 0;
}

static uint64_t device_of_output(const char *output)
{
    char folder[4096];
    const char *slash = strrchr(output, '/');
    struct stat st;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)tgi_max(1, slash - output) : 1,
             slash ? output : ".");
    return stat(folder, &st) == 0 ? (uint64_t)st.st_dev : 0;
}

static tg_status no_room_for_output(const tg_job *job, uint64_t need, uint64_t scratch,
                                    tgi_err *err)
{
    const tgi_bytes *b = &job->plan.bytes;
    const size_t size = tgi_dtype_size(job->set.dtype);
    char needs[32], has[32], small[32], half[32], other[32], ways[256];
    int n = 0;
    tgi_size_text(size ? b->output_disk / size : 0, small, sizeof small);
    tgi_size_text(b->output_disk - b->output_packs / 2, half, sizeof half);
    tgi_size_text(scratch, other, sizeof other);
    ways[0] = 0;
    if (size > 1 && job->plan.layout)
        n += snprintf(ways, sizeof ways, "--dtype uint8 needs %s, ", small);
    if (b->output_packs && b->output_sure == b->output_disk)
        n += snprintf(ways + n, sizeof ways - (size_t)n, "--compress zstd usually some %s, ",
                      half);
    if (scratch)
        n += snprintf(ways + n, sizeof ways - (size_t)n, "--scratch on another disk frees %s, ",
                      other);
    return tgi_fail(err, TG_E_NO_SPACE,
                    "the output%s needs %s, the disk has %s: %s%schoose another folder",
                    scratch ? " and the scratch file beside it" : "",
                    tgi_size_above(need, needs, sizeof needs),
                    tgi_size_below(b->output_free, has, sizeof has), ways, n ? "or " : "");
}

static tg_status no_room_for_stages(const tg_job *job, uint64_t scratch, tgi_err *err)
{
    char need[32], has[32];
    return tgi_fail(
        err, TG_E_NO_SPACE,
        "--scratch %s: what passes between the %d stages of the network%s needs %s, "
        "the disk has %s: another folder, a larger --ram, %s, or no --scratch, then values are "
        "made again in each stage where memory allows",
        job->set.scratch, job->plan.stages->n,
        scratch > job->plan.bytes.kept_disk ? ", with the decoded input," : "",
        tgi_size_above(scratch, need, sizeof need),
        tgi_size_below(job->scratch_place.free_bytes, has, sizeof has),
        job->source ? "a smaller --roi" : "smaller arrays");
}

/* What a stopped run of this output has in the folder already; it is used again. */
static uint64_t kept_already(const tg_job *job)
{
    return job->set.output ? tgi_kept_holds(job->set.scratch, job->set.output) : 0;
}

tg_status tgi_job_check_disk(const tg_job *job, tgi_err *err)
{
    const tgi_bytes *b = &job->plan.bytes;
    const tgi_scratch_part *s = &job->plan.scratch;
    const uint64_t decoded = s->used && !job->scratch_place.in_memory ? s->bytes : 0;
    const uint64_t scratch = decoded + b->kept_disk;
    const int together =
        scratch && job->scratch_place.device == device_of_output(job->set.output);
    const uint64_t output =
        b->output_sure > b->output_held ? b->output_sure - b->output_held : 0;
    char need[32], has[32];
    if (b->kept_disk && scratch > tgi_sat_add(job->scratch_place.free_bytes, kept_already(job)))
        return no_room_for_stages(job, scratch, err);
    if (s->used && s->bytes > job->scratch_place.free_bytes)
        return tgi_fail(err, TG_E_NO_SPACE,
                        "--scratch %s: the decoded input needs %s, the disk has %s: another "
                        "folder, a smaller --roi, or without --scratch the input is decoded "
                        "%.1f times",
                        job->set.scratch, tgi_size_above(s->bytes, need, sizeof need),
                        tgi_size_below(job->scratch_place.free_bytes, has, sizeof has),
                        s->passes);
    const uint64_t all = output + (together ? scratch : 0);
    if (!output || all <= tgi_sat_add(b->output_free, together ? kept_already(job) : 0))
        return TG_OK;
    return no_room_for_output(job, all, together ? scratch : 0, err);
}

/* plan_scratch.c - how often the plan decodes its input, and whether scratch changes that.
 *
 * It matters for sources that stream rows out of large compressed blocks: going back, to the
 * next strip or after the statistics, decodes the block again. The count follows the cells in
 * the order they run and the reader's own rule (io/tiff_stream.h): a row that is still kept or
 * lies ahead goes on, any other begins its block anew. */
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/base/size.h"
#include "engine/job/job.h"
#include "engine/run/decoded.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Fewer decoded pixels than this much beyond one pass are the overlap of neighbours. */
#define WORTH_IT 1.05

/* What the cuts along one axis of the network's input read. */
typedef struct cuts {
    int64_t n;
    tg_range *r; /* in the region, padding clipped */
} cuts;

static void close_cuts(cuts c[3])
{
    for (int a = 0; a < 3; a++)
        tgi_free(c[a].r);
}

/* Needs of all cuts along each axis, z,y,x. */
static tg_status list_cuts(const tg_job *job, cuts c[3], tgi_err *err)
{
    const tg_tiling *t = &job->plan.choice.tiling;
    const tg_net *net = t->net;
    tg_range *work = tgi_calloc(TGI_TAG_PLAN, 2 * ((size_t)net->n_values + 1), sizeof *work);
    if (!work)
        return tgi_fail(err, TG_E_NOMEM, "no memory to count what is decoded");
    for (int a = 0; a < 3; a++) {
        const int axis = a + TG_STREAM_AXIS - (net->rank == 4);
        c[a].n = a == 0 && net->rank == 4 ? 1 : t->n_cut[a];
        c[a].r = tgi_calloc(TGI_TAG_PLAN, (size_t)c[a].n, sizeof *c[a].r);
        if (!c[a].r) {
            tgi_free(work);
            return tgi_fail(err, TG_E_NOMEM, "no memory to count what is decoded");
        }
        for (int64_t k = 0; k < c[a].n; k++) {
            c[a].r[k] = (tg_range){0, 1};
            if (a == 0 && net->rank == 4)
                continue;
            const int64_t dim = tgi_stage_out_dim(t->stage, 0, axis);
            const tg_range core = {k * t->cut[a], tgi_min((k + 1) * t->cut[a], dim)};
            tgi_axis_need(t->stage, axis, core, work, work + net->n_values);
            c[a].r[k] = tgi_range_clip(work[net->n_values + t->stage->in[0].value], 0,
                                       job->map.extent[a]);
        }
    }
    tgi_free(work);
    return TG_OK;
}

/* Rows decoded by one walk down the cells of a column; `kept` rows of the past are at hand. */
static double rows_of_walk(const tg_job *job, const cuts *y, int64_t kept, int same_plane)
{
    const int64_t block = job->info->block_h, origin = job->map.origin[1];
    double rows = 0;
    int64_t at = -1; /* next row the decoder gives; -1: it is elsewhere */
    for (int64_t k = 0; k < y->n; k++) {
        const int64_t lo = origin + y->r[k].lo, hi = origin + y->r[k].hi;
        const int64_t begin = lo / block * block;
        const int64_t from = at >= 0 && lo >= at - kept ? tgi_max(at, begin) : begin;
        rows += (double)tgi_max(0, hi - from);
        at = same_plane ? hi : -1;
    }
    return rows;
}

static double columns_of(const tg_job *job, const cuts *x)
{
    const int64_t block = job->info->block_w, origin = job->map.origin[2];
    int64_t columns = 0;
    for (int64_t k = 0; k < x->n; k++)
        if (!tgi_range_empty(x->r[k]))
            columns += (origin + x->r[k].hi - 1) / block - (origin + x->r[k].lo) / block + 1;
    return (double)columns;
}

static double planes_of(const cuts *z)
{
    double planes = 0;
    for (int64_t k = 0; k < z->n; k++)
        planes += (double)tgi_range_len(z->r[k]);
    return planes;
}

/* How often a pixel is decoded by the bands, on average; 1: once. */
static tg_status passes_of_bands(const tg_job *job, double *passes, tgi_err *err)
{
    const tg_mapping *m = &job->map;
    const cuts whole[3] = {{1, &(tg_range){0, m->extent[0]}},
                           {1, &(tg_range){0, m->extent[1]}},
                           {1, &(tg_range){0, m->extent[2]}}};
    const int64_t kept = job->source->ops->stream_rows(job->source);
    cuts c[3] = {{0, NULL}, {0, NULL}, {0, NULL}};
    const tg_status st = list_cuts(job, c, err);
    if (st == TG_OK)
        *passes = planes_of(&c[0]) * rows_of_walk(job, &c[1], kept, m->spatial == 2) *
                  columns_of(job, &c[2]) /
                  (planes_of(&whole[0]) * rows_of_walk(job, &whole[1], kept, 1) *
                   columns_of(job, &whole[2]));
    close_cuts(c);
    return st;
}

static double passes_of_statistics(const tg_job *job)
{
    const tg_dtype t = job->info->dtype;
    const int narrow = tgi_dtype_size(t) <= 2 && t != TG_DTYPE_F16;
    if (!tgi_normalize_needs_stats(&job->set.normalize))
        return 0;
    return !narrow && job->set.normalize.kind == TGI_NORM_PERCENTILE ? 2 : 1;
}

int tgi_job_streams_input(const tg_job *job)
{
    const tg_source_ops *ops = job->source->ops;
    return ops->stream_rows && ops->stream_rows(job->source) > 0;
}

static tg_status count_passes(tg_job *job, tgi_err *err)
{
    tg_scratch_part *s = &job->plan.scratch;
    double bands;
    TGI_TRY(passes_of_bands(job, &bands, err));
    s->passes = bands + passes_of_statistics(job);
    if (job->map.loops_samples && !job->info->planar_samples)
        s->passes *= job->info->samples; /* each sample of a pixel decodes all of them */
    return TG_OK;
}

tg_status tgi_job_plan_scratch(tg_job *job, tgi_err *err)
{
    tg_scratch_part *s = &job->plan.scratch;
    memset(s, 0, sizeof *s);
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
    s->used = job->set.scratch != NULL && !job->without_scratch;
    if (job->without_scratch)
        snprintf(s->why, sizeof s->why,
                 "the budget has no room for its buffers; the input is decoded %.1f times",
                 s->passes);
    else
        snprintf(s->why, sizeof s->why, "decoded once instead of %.1f times", s->passes);
    return TG_OK;
}

void tgi_job_drop_scratch(tg_job *job)
{
    tg_scratch_part *s = &job->plan.scratch;
    char size[32];
    s->used = 0;
    snprintf(s->why, sizeof s->why,
             "%.60s is memory, and %s do not fit the budget; the input is decoded %.1f times",
             job->set.scratch, tgi_size_text(s->bytes, size, sizeof size), s->passes);
}

/* ---- Disk -------------------------------------------------------------------------------- */

/* Disk space that the interrupted run's file holds: reserved whole, so perhaps all there was.
 */
static uint64_t held_already(const char *output)
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
    const tg_bytes *b = &job->plan.bytes;
    const size_t size = tgi_dtype_size(job->set.dtype);
    char needs[32], has[32], small[32], half[32], other[32], ways[256];
    int n = 0;
    tgi_size_text(b->output_disk / size, small, sizeof small);
    tgi_size_text(b->output_disk / 2, half, sizeof half);
    tgi_size_text(scratch, other, sizeof other);
    if (size > 1)
        n += snprintf(ways, sizeof ways, "--dtype uint8 needs %s, ", small);
    n += snprintf(ways + n, sizeof ways - (size_t)n, "--compress zstd usually some %s, ", half);
    if (scratch)
        snprintf(ways + n, sizeof ways - (size_t)n, "--scratch on another disk frees %s, ",
                 other);
    return tgi_fail(err, TG_E_NO_SPACE,
                    "the output%s needs %s, the disk has %s: %sor choose another folder",
                    scratch ? " and the scratch file beside it" : "",
                    tgi_size_above(need, needs, sizeof needs),
                    tgi_size_below(b->output_free, has, sizeof has), ways);
}

tg_status tgi_job_check_disk(const tg_job *job, tgi_err *err)
{
    const tg_bytes *b = &job->plan.bytes;
    const tg_scratch_part *s = &job->plan.scratch;
    const int on_disk = s->used && !job->scratch_place.in_memory;
    const int together =
        on_disk && job->scratch_place.device == device_of_output(job->set.output);
    const uint64_t held = held_already(job->set.output);
    const int sized = job->set.compress.kind == TGI_COMPRESS_NONE;
    const uint64_t output = sized && b->output_disk > held ? b->output_disk - held : 0;
    char need[32], has[32];
    if (s->used && s->bytes > job->scratch_place.free_bytes)
        return tgi_fail(err, TG_E_NO_SPACE,
                        "--scratch %s: the decoded input needs %s, the disk has %s: another "
                        "folder, a smaller --roi, or without --scratch the input is decoded "
                        "%.1f times",
                        job->set.scratch, tgi_size_above(s->bytes, need, sizeof need),
                        tgi_size_below(job->scratch_place.free_bytes, has, sizeof has),
                        s->passes);
    const uint64_t all = output + (together ? s->bytes : 0);
    if (!output || all <= b->output_free)
        return TG_OK;
    return no_room_for_output(job, all, together ? s->bytes : 0, err);
}

/* job_verify.c - show on the user's own file that tiled equals whole.
 *
 * The first item (plane or volume) is computed twice with the same kernels, once in cells and
 * bands, once whole; the two are compared bit by bit. (Of a network that runs in fixed boxes,
 * that is the first box.) A third pass with the reference kernels, unfused, over the middle of
 * the image tells how far the fast kernels are from the definition. Where a run would be on a
 * device, that computes the item too (verify_device.h). */
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/base/reserve.h"
#include "engine/job/distance.h"
#include "engine/job/job.h"
#include "engine/job/job_log.h"
#include "engine/job/verify_device.h"
#include "engine/memory/monitor.h"
#include "engine/run/dense.h"
#include "engine/run/load.h"

#include <string.h>

typedef struct verify {
    tg_job *job;
    tg_stages *stages; /* as the plan's, but all of the output is wanted */
    tgi_reserve *reserve;
    tg_threads *pool;
    tg_tracker *tracker;  /* watches for --log */
    tg_job_device device; /* that a run would be on; the plan is the processor's */
    size_t in_bytes, out_bytes;
    float *in, *whole, *other;
} verify;

static size_t desc_bytes(const tg_desc *d)
{
    int64_t n = 0;
    return tgi_desc_count(d, &n) ? tgi_sat_mul((size_t)n, sizeof(float)) : SIZE_MAX;
}

/* One pass over the dense input with a tiling of the stage, into `out`; `only`: one cell of
 * that core instead of all. */
static tg_status pass(verify *v, const tg_stage *stage, const int64_t cut[3], int64_t band,
                      float *out, const tg_range *only, int64_t *cells, tgi_err *err)
{
    const tg_net *net = stage->net;
    tg_tiling t;
    tg_exec *e = NULL;
    void *packed = NULL, *arena = NULL;
    tgi_reserve *mem = NULL;
    tg_dense_io dense = {.net = net, .in = {v->in}, .out = {out}};
    const tg_exec_io io = {&dense, tgi_dense_load, tgi_dense_store, NULL};
    TGI_TRY(tgi_tiling_make(stage, cut, band, v->job->set.threads, NULL, &t, err));
    const size_t need = tgi_sat_add(net->packed_bytes, t.arena_bytes);
    tg_status st = tgi_reserve_open(need + 256, &mem, err);
    if (st == TG_OK)
        st = tgi_reserve_take(mem, "weights", net->packed_bytes, &packed, err);
    if (st == TG_OK)
        st = tgi_reserve_take(mem, "arena", t.arena_bytes, &arena, err);
    if (st == TG_OK)
        tgi_net_pack(net, packed, NULL);
    if (st == TG_OK)
        st = tgi_exec_open(&t, packed, arena, v->pool, &io, &e, err);
    for (int64_t k = 0; st == TG_OK && k < (only ? 1 : t.cells); k++) {
        tg_range core[3];
        tgi_tiling_cell(&t, k, core);
        st = tgi_exec_cell(e, only ? only : core, err);
    }
    *cells = t.cells;
    tgi_exec_close(&e);
    tgi_reserve_close(&mem);
    tgi_tiling_free(&t);
    return st;
}

static tg_status load_item(verify *v, tgi_err *err)
{
    tg_job *job = v->job;
    tg_loader *l = NULL;
    void *staging = NULL;
    const tg_net *net = job->plan.net;
    const tg_fit *f = job->map.fit;
    const size_t bytes =
        tgi_loader_bytes(&job->map, job->info->dtype, f[0].size, f[1].size, f[2].size);
    tgi_reserve *mem = NULL;
    tg_stats *sets = tgi_calloc(TGI_TAG_PLAN, (size_t)job->map.n_stats, sizeof *sets);
    tg_affine in, out;
    tg_status st = sets ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory for the statistics");
    if (st == TG_OK)
        st = tgi_reserve_open(bytes + TGI_STATS_SCRATCH + 256, &mem, err);
    if (st == TG_OK)
        st = tgi_reserve_take(mem, "staging", bytes, &staging, err);
    if (st == TG_OK && tgi_normalize_needs_stats(&job->set.normalize))
        st = tgi_job_stats_collect(job, mem, staging, bytes, sets, err);
    const tg_loader_opts o = {.source = job->source,
                              .map = &job->map,
                              .rank = net->rank,
                              .staging = {staging, staging},
                              .staging_bytes = bytes,
                              .pool = v->pool,
                              .be = net->be};
    if (st == TG_OK)
        st = tgi_loader_open(&o, &l, err);
    if (st == TG_OK) {
        const tg_view view = tgi_dense_view(net, net->in[0], v->in);
        const tg_box box = tgi_box_full(&net->shapes.desc[net->in[0]]);
        tgi_job_affine(job, &sets[tgi_mapping_stats_of(&job->map, 0)], &in, &out);
        tgi_loader_item(l, 0, in);
        st = tgi_loader_fill(l, &view, &box, err);
    }
    tgi_loader_close(&l);
    tgi_reserve_close(&mem);
    tgi_free(sets);
    return st;
}

static void compare(const float *a, const float *b, size_t n, double *max_abs, double *rel,
                    int *equal)
{
    tgi_distance s = {0};
    for (size_t i = 0; i < n; i++)
        tgi_distance_add(&s, a[i], b[i]);
    *max_abs = s.most;
    *rel = tgi_distance_relative(&s);
    *equal = memcmp(a, b, n * sizeof *a) == 0;
}

/* The plan's cells, or thirds when the plan does not cut this image at all. */
static void cells_to_try(const tg_job *job, int64_t cut[3], int64_t *band)
{
    const tg_tiling *t = &job->plan.choice.tiling;
    memcpy(cut, t->cut, sizeof t->cut);
    *band = t->band;
    if (t->cells > 1)
        return;
    const tg_desc *d = &job->out_desc;
    cut[1] = d->dim[d->rank - 2] / 2 + 3;
    cut[2] = d->dim[d->rank - 1] / 3 + 5;
    *band = tgi_min(*band, 16);
}

/* The reference kernels are slow by design: they compute the middle of the image, at most
 * REFERENCE_SIDE pixels wide. */
#define REFERENCE_SIDE 192

static void middle_of(const tg_desc *d, tg_range *middle)
{
    for (int a = 0; a < d->rank - TG_STREAM_AXIS; a++) {
        const int64_t n = d->dim[TG_STREAM_AXIS + a], half = tgi_min(n, REFERENCE_SIDE) / 2;
        middle[a] = (tg_range){n / 2 - half, tgi_max(n / 2 - half + 1, n / 2 + half)};
    }
}

/* Distance of `whole` from `other` over the middle alone. */
static void compare_middle(const verify *v, double *max_abs, double *rel)
{
    const tg_net *net = v->job->plan.net;
    const tg_view a = tgi_dense_view(net, net->out[0], v->whole);
    const tg_view b = tgi_dense_view(net, net->out[0], v->other);
    tg_range m[3] = {{0, 0}}, z = {0, 1};
    tgi_distance s = {0};
    middle_of(&v->job->out_desc, m);
    const int volume = net->rank == 5;
    if (volume)
        z = m[0];
    for (int64_t c = 0; c < a.c; c++)
        for (int64_t k = z.lo; k < z.hi; k++)
            for (int64_t y = m[volume].lo; y < m[volume].hi; y++)
                for (int64_t x = m[volume + 1].lo; x < m[volume + 1].hi; x++)
                    tgi_distance_add(&s, *tgi_view_at(&a, c, k, y, x),
                                     *tgi_view_at(&b, c, k, y, x));
    *max_abs = s.most;
    *rel = tgi_distance_relative(&s);
}

static tg_status reference_pass(verify *v, tgi_err *err)
{
    tg_range middle[3];
    middle_of(&v->job->out_desc, middle);
    tg_graph *g = NULL;
    tg_net *net = NULL;
    tg_stages *stages = NULL;
    int64_t cells;
    const unsigned labels = v->job->set.labels ? TG_GRAPH_LABELS : 0;
    const int64_t cut[3] = {0, 0, 0};
    tg_status st = tgi_graph_load_onnx(
        v->job->set.model, TG_GRAPH_NO_FUSE | TG_GRAPH_NO_COMMUTE | labels, &g, err);
    if (st == TG_OK)
        st = tgi_net_new(g, v->job->set.backend, &v->job->in_desc, TG_NET_REFERENCE, &net, err);
    if (st == TG_OK)
        st = tgi_stages_new(net, &stages, err);
    if (st == TG_OK)
        st = pass(v, &stages->one, cut, 32, v->other, middle, &cells, err);
    tgi_stages_free(&stages);
    tgi_net_free(&net);
    tgi_graph_free(&g);
    return st;
}

static tg_status three_passes(verify *v, tg_verify_result *out, tgi_err *err)
{
    tg_job *job = v->job;
    const size_t n = v->out_bytes / sizeof(float);
    const int64_t uncut[3] = {0, 0, 0};
    int64_t cut[3], band, cells;
    tgi_tracker_update(v->tracker, "input", 0);
    TGI_TRY(load_item(v, err));
    tgi_tracker_update(v->tracker, "whole", 0);
    TGI_TRY(pass(v, &v->stages->one, uncut, INT32_MAX, v->whole, NULL, &cells, err));
    if (v->stages->one.whole_op) { /* never cut: there are no tiles to compare with */
        tgi_stage_whole_text(&v->stages->one, out->not_tiled, sizeof out->not_tiled);
        out->bit_equal = 1;
    } else {
        cells_to_try(job, cut, &band);
        tgi_tracker_update(v->tracker, "tiled", 0);
        TGI_TRY(pass(v, &v->stages->one, cut, band, v->other, NULL, &out->tiles, err));
        compare(v->other, v->whole, n, &out->max_abs_difference, &out->relative_l2,
                &out->bit_equal);
    }
    out->output_min = out->output_max = v->whole[0];
    for (size_t i = 1; i < n; i++) {
        out->output_min = v->whole[i] < out->output_min ? v->whole[i] : out->output_min;
        out->output_max = v->whole[i] > out->output_max ? v->whole[i] : out->output_max;
    }
    tgi_tracker_update(v->tracker, "reference", 0);
    TGI_TRY(reference_pass(v, err));
    compare_middle(v, &out->reference_max_abs, &out->reference_relative_l2);
    return TG_OK;
}

static tg_status device_passes(verify *v, tg_verify_result *out, tgi_err *err)
{
    if (!v->device.ops)
        return TG_OK;
    tgi_tracker_update(v->tracker, "device", 0);
    v->job->dev = v->device;
    const tg_status st = tgi_verify_device(v->job, v->in, v->whole, v->other, out, err);
    v->device = v->job->dev; /* open, for leave_device */
    v->job->dev = (tg_job_device){.chosen = 1};
    return st;
}

/* Choosing it may have made its context already. */
static void leave_device(verify *v)
{
    if (v->device.ops)
        v->device.ops->close(&v->device.device);
}

/* The processor's plan; which device a run would be on is kept beside it. */
static tg_status plan(verify *v, tg_job *job, tgi_err *err)
{
    *v = (verify){.job = job};
    if (!job->dev.chosen || job->dev.ops) {
        TGI_TRY(tgi_job_device_leave(job, NULL, err));
        job->dev.chosen = 0;
        TGI_TRY(tgi_job_device_choose(job, err));
        v->device = job->dev;
        job->dev = (tg_job_device){.chosen = 1};
    }
    const tg_status st = tgi_job_plan(job, err);
    if (st != TG_OK)
        leave_device(v);
    return st;
}

static void open_sizes(verify *v, tg_job *job)
{
    v->in_bytes = desc_bytes(&job->in_desc);
    v->out_bytes = desc_bytes(&job->out_desc);
}

/* Beside what is held: the image, two results, and the larger of the rows that fill the one and
 * the arena that makes the others. The passes in cells and of the references take less. */
static tg_status count_whole(const verify *v, size_t *need, tgi_err *err)
{
    const tg_job *job = v->job;
    const int64_t uncut[3] = {0, 0, 0};
    tg_tiling t;
    TGI_TRY(
        tgi_tiling_make(&v->stages->one, uncut, INT32_MAX, job->set.threads, NULL, &t, err));
    const tg_fit *f = job->map.fit;
    const size_t rows = tgi_sat_add(
        tgi_loader_bytes(&job->map, job->info->dtype, f[0].size, f[1].size, f[2].size),
        TGI_STATS_SCRATCH);
    const size_t arena = tgi_sat_add(job->plan.net->packed_bytes, t.arena_bytes);
    tgi_tiling_free(&t);
    *need = tgi_sat_add(tgi_sat_add(v->in_bytes, tgi_sat_mul(2, v->out_bytes)),
                        rows > arena ? rows : arena);
    if (v->device
            .ops) /* rows on their way there and back are no more than all of them, twice */
        *need = tgi_sat_add(*need, tgi_sat_mul(2, tgi_sat_add(v->in_bytes, v->out_bytes)));
    return TG_OK;
}

/* Fills v->stages; TG_E_BUDGET when the whole image is more than the budget. */
static tg_status check_whole(verify *v, uint64_t *peak, tgi_err *err)
{
    const tg_bytes *b = &v->job->plan.bytes;
    const size_t held = tgi_job_process_bytes(v->job) + b->allowance + b->decoder;
    char text[2][32];
    size_t need = 0;
    TGI_TRY(tgi_stages_new(v->job->plan.net, &v->stages, err));
    TGI_TRY(count_whole(v, &need, err));
    *peak = tgi_sat_add(tgi_sat_add(need, tgi_page_table_bytes(need)), held);
    if (*peak <= v->job->plan.budget)
        return TG_OK;
    const tg_status st = tgi_fail(
        err, TG_E_BUDGET,
        "to compare, the whole image takes %s, more than the budget of %s: verify a part, "
        "such as --roi 0:1024,0:1024",
        tgi_size_text(need, text[0], sizeof text[0]),
        tgi_size_text(v->job->plan.budget, text[1], sizeof text[1]));
    return tgi_err_tried(err, st, "verify", *peak);
}

tg_status tgi_job_verify_peak(tg_job *job, uint64_t *bytes, tgi_err *err)
{
    verify v;
    TGI_TRY(plan(&v, job, err));
    open_sizes(&v, job);
    const tg_status st = check_whole(&v, bytes, err);
    tgi_stages_free(&v.stages);
    leave_device(&v);
    return st;
}

tg_status tgi_job_verify(tg_job *job, tg_verify_result *out, tgi_err *err)
{
    if (job->set.tensor && !job->source)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "verify cuts an image into tiles; give an image, not arrays");
    verify v;
    TGI_TRY(plan(&v, job, err));
    if (job->set.tensor) {
        leave_device(&v);
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "nothing to compare: the output is no image, and not tiled%s%s",
                        job->plan.whole_text[0] ? ": whole image only, " : "",
                        job->plan.whole_text);
    }
    uint64_t peak = 0;
    open_sizes(&v, job);
    const size_t need = tgi_sat_add(v.in_bytes, tgi_sat_mul(2, v.out_bytes));
    const size_t size = out->size;
    void *p[3];
    memset(out, 0, sizeof *out);
    out->size = size;
    tg_status st = check_whole(&v, &peak, err);
    if (st == TG_OK)
        st = tgi_job_tracker_open(job, 0, &v.tracker, err);
    if (st == TG_OK)
        st = tgi_threads_open(job->set.threads, &v.pool, err);
    if (st == TG_OK)
        st = tgi_reserve_open(need + 256, &v.reserve, err);
    if (st == TG_OK)
        st = tgi_reserve_take(v.reserve, "input", v.in_bytes, &p[0], err);
    for (int i = 1; i < 3 && st == TG_OK; i++)
        st = tgi_reserve_take(v.reserve, "output", v.out_bytes, &p[i], err);
    if (st == TG_OK) {
        v.in = p[0];
        v.whole = p[1];
        v.other = p[2];
        st = three_passes(&v, out, err);
        if (st == TG_OK)
            st = device_passes(&v, out, err);
    }
    tgi_job_tracker_close(job, &v.tracker);
    tgi_reserve_close(&v.reserve);
    tgi_threads_close(&v.pool);
    tgi_stages_free(&v.stages);
    leave_device(&v);
    return st;
}

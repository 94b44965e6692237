/* job_verify.c - show on the user's own file that tiled equals whole.
 *
 * The first item (plane, volume or sample of arrays) is computed twice with the same kernels,
 * once in cells and bands (stage by stage, where operators read whole extents), once whole; every output of the two is compared bit by bit. (Of a
 * network that runs in fixed boxes, that is the first box.) A third pass with the reference
 * kernels, unfused, over the middle of the image tells how far the fast kernels are from the
 * definition. Where a run would be on a device, that computes the item too (verify_device.h).
 */
#include "engine/verbs/job_verify.h"
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/base/reserve.h"
#include "engine/ends/input_hash.h"
#include "engine/ends/tensor_memory.h"
#include "engine/ends/tensors.h"
#include "engine/exec/dense.h"
#include "engine/inpaint/inpaint.h"
#include "engine/job/ends.h"
#include "engine/job/job.h"
#include "engine/job/job_device.h"
#include "engine/job/job_gate.h"
#include "engine/job/job_graph.h"
#include "engine/job/job_log.h"
#include "engine/job/job_open.h"
#include "engine/job/job_plan.h"
#include "engine/job/page_tables.h"
#include "engine/job/pass.h"
#include "engine/job/plan_seconds.h"
#include "engine/job/stats_file.h"
#include "engine/memory/monitor.h"
#include "engine/verbs/verify_device.h"
#include "engine/verbs/verify_picture.h"
#include "engine/verbs/verify_stages.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The network as the definition has it: not rewritten, reference kernels. */
typedef struct reference {
    tgi_graph *graph;
    tgi_net *net;
    tgi_stages *stages;
} reference;

typedef struct verify {
    tg_job *job;
    tgi_stages *stages;   /* as the plan's, but all of the output is wanted */
    tgi_choice in_stages; /* of `stages`, where operators read whole extents; else all zero */
    tgi_verify_picture *picture; /* --picture; else NULL */
    reference ref;
    tgi_reserve *reserve;
    tg_tracker *tracker;   /* watches for --log */
    tgi_job_device device; /* that a run would be on; the plan is the processor's */
    tgi_verify_device *on; /* what it will do */
    int bf16;              /* as the job had it */
    tgi_verify_values values;
} verify;

/* ---- Passes ------------------------------------------------------------------------------ */

/* One pass over the dense inputs with a tiling of the stage, into `out`; `only`: one cell of
 * that core instead of all. */
static tg_status pass(verify *v, const tgi_stage *stage, const int64_t cut[3], int64_t band,
                      float *const *out, const tgi_range *only, int64_t *cells, tgi_err *err)
{
    const tgi_net *net = stage->net;
    tgi_tiling t;
    tgi_pass p = {0};
    tgi_dense_io dense = {.net = net};
    const tgi_pass_end end = {.user = &dense, .load = tgi_dense_load, .store = tgi_dense_store};
    for (int i = 0; i < net->n_in; i++)
        dense.in[i] = v->values.in[i];
    for (int o = 0; o < net->n_out; o++)
        dense.out[o] = out[o];
    TGI_TRY(tgi_tiling_make(stage, cut, band, v->job->set.threads, NULL, &t, err));
    tg_status st = tgi_pass_take(&p, NULL, &t, 0, NULL, 0, 0, err);
    if (st == TG_OK)
        st = tgi_pass_open(&p, NULL, &end, err);
    if (st == TG_OK)
        st = only ? tgi_pass_core(&p, only, err) : tgi_pass_walk(&p, err);
    *cells = t.cells;
    tgi_pass_close(&p);
    tgi_tiling_free(&t);
    return st;
}

static tg_status load_plane(verify *v, tgi_err *err)
{
    tg_job *job = v->job;
    const tgi_net *net = job->plan.net;
    const tgi_fit *f = job->map.fit;
    const size_t bytes =
        tgi_loader_bytes(&job->map, job->info->dtype, f[0].size, f[1].size, f[2].size);
    const tgi_pass_end none = {0};
    tgi_pass p = {0};
    tgi_affine out;
    tg_status st = tgi_pass_take(&p, job, NULL, bytes, NULL, 0, TGI_STATS_SCRATCH, err);
    if (st == TG_OK)
        st = tgi_pass_open(&p, job->source, &none, err);
    if (st == TG_OK && tgi_normalize_needs_stats(&job->set.normalize))
        st = tgi_job_stats_get(job, p.reserve, p.staging[0], bytes, p.sets, err);
    if (st == TG_OK) {
        const tgi_view view = tgi_dense_view(net, net->in[0], v->values.in[0]);
        const tgi_box box = tgi_box_full(&net->shapes.desc[net->in[0]]);
        tgi_job_turn(job, p.sets, 0, p.loader, &out);
        st = tgi_loader_fill(p.loader, &view, &box, err);
    }
    tgi_pass_close(&p);
    return st;
}

static tg_status load_sample(verify *v, tgi_err *err)
{
    const tgi_net *net = v->job->plan.net;
    void *rows = tgi_malloc(TGI_TAG_IO, TGI_TENSOR_ROWS);
    tg_status st = rows ? tgi_memory_begin_sources(v->job->tensors, err)
                        : tgi_fail(err, TG_E_NOMEM, "no memory for rows of the input");
    for (int i = 0; st == TG_OK && i < net->n_in; i++) {
        const tgi_desc *d = &v->job->tensors->in_desc[i];
        const tgi_box box = tgi_box_full(d);
        const tgi_view view = net->values[net->in[i]].flat
                                  ? (tgi_view){.base = v->values.in[i]}
                                  : tgi_dense_view(net, net->in[i], v->values.in[i]);
        st = tgi_tensor_load(v->job->tensors, i, 0, &view, &box, rows, err);
    }
    tgi_free(rows);
    return st;
}

/* The plan's cells, or thirds when the plan does not cut this image at all. */
static void cells_to_try(const verify *v, int64_t cut[3], int64_t *band)
{
    const tgi_tiling *t = &v->job->plan.choice.tiling;
    const tgi_net *net = v->job->plan.net;
    memcpy(cut, t->cut, sizeof t->cut);
    *band = t->band;
    if (t->cells > 1)
        return;
    cut[1] = tgi_net_dim(net, net->out[0], net->rank - 2) / 2 + 3;
    cut[2] = tgi_net_dim(net, net->out[0], net->rank - 1) / 3 + 5;
    *band = tgi_min(*band, 16);
}

/* ---- Reference --------------------------------------------------------------------------- */

/* The reference kernels are slow by design: they compute the middle of the image, at most
 * REFERENCE_SIDE pixels wide. */
#define REFERENCE_SIDE 192

static int has_flat_output(const tgi_net *net)
{
    for (int o = 0; o < net->n_out; o++)
        if (net->values[net->out[o]].flat)
            return 1;
    return 0;
}

/* The middle of output 0; NULL: all of it, since one that is no image comes as a whole. */
static const tgi_range *middle_of(const tgi_net *net, tgi_range *middle)
{
    if (has_flat_output(net))
        return NULL;
    for (int a = TGI_STREAM_AXIS; a < net->rank; a++) {
        const int64_t n = tgi_net_dim(net, net->out[0], a),
                      half = tgi_min(n, REFERENCE_SIDE) / 2;
        middle[a - TGI_STREAM_AXIS] =
            (tgi_range){n / 2 - half, tgi_max(n / 2 - half + 1, n / 2 + half)};
    }
    return middle;
}

static void compare_middle(verify *v)
{
    const tgi_net *net = v->job->plan.net;
    tgi_range m[3] = {{0, 0}};
    const tgi_range *middle = middle_of(net, m);
    for (int o = 0; o < net->n_out; o++) {
        tg_verify_output *r = &v->job->verified[o];
        tgi_distance s = {0};
        tgi_box box = tgi_box_full(&net->shapes.desc[net->out[o]]);
        for (int a = TGI_STREAM_AXIS; a < net->rank && middle; a++)
            box.ax[a] = tgi_axis_share(&v->stages->one, a, o, middle[a - TGI_STREAM_AXIS]);
        const int64_t n = tgi_verify_distance(&v->values, o, middle ? &box : NULL, &s);
        r->reference_max_abs = s.most;
        r->reference_relative_l2 = tgi_distance_relative(&s);
        r->reference_psnr = tgi_verify_psnr(&s, n, r);
    }
}

static void close_reference(reference *r)
{
    tgi_stages_free(&r->stages);
    tgi_net_free(&r->net);
    tgi_graph_free(&r->graph);
}

static tg_status open_reference(const tg_job *job, reference *r, tgi_err *err)
{
    const unsigned flags = TGI_GRAPH_NO_FUSE | TGI_GRAPH_NO_COMMUTE | tgi_job_graph_flags(job);
    TGI_TRY(tgi_graph_load_card(job->set.model, job->set.card, flags, NULL, 0, &r->graph, err));
    TGI_TRY(tgi_net_new(r->graph, job->set.backend, job->ends->shapes(job), TGI_NET_REFERENCE,
                        &r->net, err));
    return tgi_stages_new(r->net, &r->stages, err);
}

#define REFERENCE_BAND 32

static tg_status reference_pass(verify *v, tgi_err *err)
{
    const int64_t uncut[3] = {0, 0, 0};
    tgi_range middle[3];
    int64_t cells;
    return pass(v, &v->ref.stages->one, uncut, REFERENCE_BAND, v->values.other,
                middle_of(v->job->plan.net, middle), &cells, err);
}

/* ---- All of them ------------------------------------------------------------------------- */

static tg_status whole_pass(verify *v, tgi_err *err)
{
    const tgi_graph *g = v->job->graph;
    const int64_t uncut[3] = {0, 0, 0};
    int64_t cells;
    TGI_TRY(pass(v, &v->stages->one, uncut, INT32_MAX, v->values.whole, NULL, &cells, err));
    for (int o = 0; o < g->n_out; o++) {
        tg_verify_output *r = &v->job->verified[o];
        *r = (tg_verify_output){.name = g->out[o].name, .bit_equal = 1};
        tgi_verify_range(&v->values, o, &r->min, &r->max);
    }
    return TG_OK;
}

static tg_status tiled_pass(verify *v, tg_verify_result *out, tgi_err *err)
{
    const tgi_net *net = v->job->plan.net;
    int64_t cut[3], band;
    const int staged = v->in_stages.staged != NULL;
    if (v->stages->one.whole_op && !staged) { /* never cut: nothing to compare with */
        tgi_stage_whole_text(&v->stages->one, out->not_tiled, sizeof out->not_tiled);
        return TG_OK;
    }
    if (net->values[net->out[0]].flat) {
        snprintf(out->not_tiled, sizeof out->not_tiled, "the output \"%.100s\" is no image",
                 v->job->graph->out[0].name);
        return TG_OK;
    }
    tgi_tracker_update(v->tracker, "tiled", 0);
    if (staged) {
        out->stages = v->stages->n;
        TGI_TRY(tgi_verify_stages_run(v->job, &v->in_stages, &v->values, &out->tiles, err));
    } else {
        cells_to_try(v, cut, &band);
        TGI_TRY(pass(v, &v->stages->one, cut, band, v->values.other, NULL, &out->tiles, err));
    }
    for (int o = 0; o < net->n_out; o++) {
        tg_verify_output *r = &v->job->verified[o];
        tgi_distance s = {0};
        r->bit_equal = tgi_verify_equal(&v->values, o);
        if (!r->bit_equal) /* else numbers that are none would differ from themselves */
            tgi_verify_distance(&v->values, o, NULL, &s);
        r->max_abs_difference = s.most;
        r->relative_l2 = tgi_distance_relative(&s);
    }
    return TG_OK;
}

static tg_status three_passes(verify *v, tg_verify_result *out, tgi_err *err)
{
    tgi_tracker_update(v->tracker, "input", 0);
    TGI_TRY(v->job->source ? load_plane(v, err) : load_sample(v, err));
    tgi_tracker_update(v->tracker, "whole", 0);
    TGI_TRY(whole_pass(v, err));
    TGI_TRY(tiled_pass(v, out, err));
    if (out->tiles)
        TGI_TRY(tgi_verify_picture_tiled(v->picture, &v->values, err));
    TGI_TRY(tgi_verify_picture_finish(v->picture, &v->values, err));
    tgi_tracker_update(v->tracker, "reference", 0);
    TGI_TRY(reference_pass(v, err));
    compare_middle(v);
    return TG_OK;
}

static tg_status device_passes(verify *v, tg_verify_result *out, tgi_err *err)
{
    if (!v->device.ops)
        return TG_OK;
    tgi_tracker_update(v->tracker, "device", 0);
    v->job->dev = v->device;
    tgi_err e = {0};
    const tg_status st = tgi_verify_device_run(v->job, v->on, &v->values, out, &e);
    v->device = v->job->dev; /* open, for leave_device */
    v->job->dev = (tgi_job_device){.chosen = 1};
    return st == TG_OK ? st
                       : tgi_fail(err, st, "%s: %s; --device cpu verifies without it",
                                  v->job->device_text, e.text);
}

/* Choosing it may have made its context already. What the job runs on is asked again. */
static void leave_device(verify *v)
{
    tg_job *job = v->job;
    tgi_verify_device_free(&v->on);
    if (!v->device.ops)
        return;
    v->device.ops->close(&v->device.device);
    tgi_job_drop_plan(job);
    job->dev = (tgi_job_device){0};
    job->set.bf16 = v->bf16;
}

static const tgi_plan_ask part = {.remedy = "a larger --ram"};

/* What the device will do, before anything is computed; where it cannot, the processor is
 * verified alone as it would run alone, unless --device names the device. */
static tg_status plan_device(verify *v, tgi_err *err)
{
    tg_job *job = v->job;
    tgi_err e = {0};
    if (!v->device.ops)
        return TG_OK;
    job->dev = v->device;
    const tg_status st = tgi_verify_device_plan(job, &v->on, &e);
    v->device = job->dev;
    job->dev = (tgi_job_device){.chosen = 1};
    if (st == TG_OK)
        return TG_OK;
    if (v->device.by_name)
        return tgi_fail(err, st, "%s", e.text);
    tgi_ctx_log(job->ctx, TG_LOG_INFO, "computed by the processor: %s", e.text);
    leave_device(v);
    v->device.ops = NULL;
    job->refused_bytes = 0;
    job->dev.chosen = 1;
    return tgi_job_plan(job, part, err);
}

/* The processor's plan; which device a run would be on is kept beside it. What that is compared
 * with is in float32, whatever the precision there. */
static tg_status plan(verify *v, tg_job *job, tgi_err *err)
{
    v->job = job;
    v->bf16 = job->set.bf16;
    if (!job->dev.chosen || job->dev.ops) {
        TGI_TRY(tgi_job_device_leave(job, NULL, err));
        job->dev.chosen = 0;
        TGI_TRY(tgi_job_device_choose(job, err));
        v->device = job->dev;
        job->dev = (tgi_job_device){.chosen = 1};
        job->set.bf16 &= !v->device.ops;
    }
    tg_status st = tgi_job_plan(job, part, err);
    if (st == TG_OK)
        st = plan_device(v, err);
    if (st != TG_OK)
        leave_device(v);
    return st;
}

/* Rows that fill the input from an image. */
static size_t rows_bytes(const tg_job *job)
{
    const tgi_fit *f = job->map.fit;
    return job->source ? tgi_sat_add(tgi_loader_bytes(&job->map, job->info->dtype, f[0].size,
                                                      f[1].size, f[2].size),
                                     TGI_STATS_SCRATCH)
                       : 0;
}

/* Weights and arena of a pass that is not cut. */
static tg_status pass_bytes(const verify *v, const tgi_stage *stage, int64_t band,
                            size_t *bytes, tgi_err *err)
{
    const int64_t uncut[3] = {0, 0, 0};
    tgi_tiling t;
    TGI_TRY(tgi_tiling_make(stage, uncut, band, v->job->set.threads, NULL, &t, err));
    *bytes = tgi_sat_add(stage->net->packed_bytes, t.arena_bytes);
    tgi_tiling_free(&t);
    return TG_OK;
}

/* Beside what is held: inputs, two results, and the largest of the rows that fill the ones and
 * the arenas that make the others. The pass in cells takes less than the whole one; that in
 * stages may take more. */
static tg_status count_whole(verify *v, size_t *need, tgi_err *err)
{
    const tgi_net *net = v->job->plan.net;
    size_t whole, ref, most = rows_bytes(v->job);
    TGI_TRY(pass_bytes(v, &v->stages->one, INT32_MAX, &whole, err));
    TGI_TRY(pass_bytes(v, &v->ref.stages->one, REFERENCE_BAND, &ref, err));
    if (tgi_verify_in_stages(v->job, v->stages)) {
        TGI_TRY(tgi_verify_stages_plan(v->job, v->stages, whole, &v->in_stages, err));
        const size_t staged = tgi_verify_stages_bytes(&v->in_stages);
        most = staged > most ? staged : most;
    }
    most = whole > most ? whole : most;
    most = ref > most ? ref : most;
    *need = tgi_sat_add(tgi_sat_add(tgi_verify_room(net), most),
                        tgi_verify_picture_bytes(v->picture));
    /* rows on their way to a device and back are no more than all of them, twice */
    if (v->device.ops)
        *need = tgi_sat_add(*need, tgi_sat_mul(2, tgi_sat_add(tgi_verify_in_bytes(net),
                                                              tgi_verify_out_bytes(net))));
    return TG_OK;
}

static tg_status refuse(const verify *v, uint64_t peak, tgi_err *err)
{
    char text[2][32];
    tgi_size_above(peak, text[0], sizeof text[0]);
    tgi_size_below(v->job->plan.budget, text[1], sizeof text[1]);
    const tg_status st =
        v->job->source
            ? tgi_fail(err, TG_E_BUDGET,
                       "to compare, the whole image takes %s, more than the budget of %s: "
                       "verify a part, with a smaller --roi",
                       text[0], text[1])
            : tgi_fail(
                  err, TG_E_BUDGET,
                  "to compare, a whole sample takes %s, more than the budget of %s: give a "
                  "larger --ram, or smaller arrays",
                  text[0], text[1]);
    return tgi_err_tried(err, st, "verify", peak);
}

/* Fills v->stages and v->ref; TG_E_BUDGET when the whole item is more than the budget. */
static tg_status check_whole(verify *v, uint64_t *peak, tgi_err *err)
{
    const tgi_bytes *b = &v->job->plan.bytes;
    size_t need = 0;
    TGI_TRY(tgi_stages_new(v->job->plan.net, &v->stages, err));
    TGI_TRY(open_reference(v->job, &v->ref, err));
    TGI_TRY(tgi_verify_picture_plan(v->job, &v->picture, err));
    const size_t held = tgi_job_process_bytes(v->job) + b->allowance + b->decoder;
    TGI_TRY(count_whole(v, &need, err));
    *peak = tgi_sat_add(tgi_sat_add(need, tgi_page_table_bytes(need)), held);
    return *peak <= v->job->plan.budget ? TG_OK : refuse(v, *peak, err);
}

static void close_all(verify *v)
{
    tgi_job_tracker_close(v->job, &v->tracker);
    tgi_job_warn_of_surplus(v->job);
    tgi_reserve_close(&v->reserve);
    close_reference(&v->ref);
    tgi_choice_free(&v->in_stages);
    tgi_verify_picture_free(&v->picture);
    tgi_stages_free(&v->stages);
    leave_device(v);
}

/* Ten KiB, not on the stack: a command gets along with 64. */
static tg_status make(verify **v, tg_job *job, tgi_err *err)
{
    *v = tgi_calloc(TGI_TAG_MISC, 1, sizeof **v);
    if (!*v)
        return tgi_fail(err, TG_E_NOMEM, "no memory to verify with");
    const tg_status st = plan(*v, job, err);
    if (st != TG_OK) {
        tgi_free(*v);
        *v = NULL;
    }
    return st;
}

static void drop(verify **v)
{
    close_all(*v);
    tgi_free(*v);
    *v = NULL;
}

tg_status tgi_job_verify_peak(tg_job *job, uint64_t *bytes, tgi_err *err)
{
    verify *v;
    TGI_TRY(make(&v, job, err));
    const tg_status st = check_whole(v, bytes, err);
    drop(&v);
    return st;
}

/* ---- Answer ------------------------------------------------------------------------------ */

/* NaN is worse than any number. */
static double worse(double a, double b)
{
    return a >= b || a != a ? a : b;
}

/* The worst of all outputs. */
static void summarise(const tg_job *job, tg_verify_result *out)
{
    out->outputs = job->verified;
    out->n_outputs = (size_t)job->graph->n_out;
    out->items = job->ends->items(job);
    out->bit_equal = 1;
    out->device_bit_equal = out->device[0] != 0;
    out->output_min = job->verified[0].min;
    out->output_max = job->verified[0].max;
    out->reference_psnr = INFINITY;
    out->device_psnr = out->device[0] ? INFINITY : 0;
    for (size_t o = 0; o < out->n_outputs; o++) {
        const tg_verify_output *r = &out->outputs[o];
        out->bit_equal &= r->bit_equal;
        out->max_abs_difference = worse(out->max_abs_difference, r->max_abs_difference);
        out->relative_l2 = worse(out->relative_l2, r->relative_l2);
        out->output_min = r->min < out->output_min ? r->min : out->output_min;
        out->output_max = r->max > out->output_max ? r->max : out->output_max;
        out->reference_max_abs = worse(out->reference_max_abs, r->reference_max_abs);
        out->reference_relative_l2 =
            worse(out->reference_relative_l2, r->reference_relative_l2);
        out->reference_psnr = -worse(-out->reference_psnr, -r->reference_psnr);
        out->device_max_abs = worse(out->device_max_abs, r->device_max_abs);
        out->device_relative_l2 = worse(out->device_relative_l2, r->device_relative_l2);
        out->device_psnr = -worse(-out->device_psnr, -r->device_psnr);
        out->device_bit_equal &= r->device_bit_equal;
    }
}

tg_status tgi_job_verify(tg_job *job, tg_verify_result *out, tgi_err *err)
{
    verify *v;
    uint64_t peak = 0;
    const size_t size = out->size;
    if (tgi_inpaint_is(job->source))
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "verify compares networks, and here something is removed from a film");
    tgi_job_learn_drop(job); /* of a run that failed */
    TGI_TRY(tgi_job_sides_look(job, err));
    TGI_TRY(make(&v, job, err));
    memset(out, 0, sizeof *out);
    out->size = size;
    tg_status st = check_whole(v, &peak, err);
    if (st == TG_OK)
        st = tgi_job_tracker_open(job, 0, &v->tracker, err);
    if (st == TG_OK)
        st = tgi_reserve_open(tgi_verify_room(job->plan.net), &v->reserve, err);
    if (st == TG_OK)
        st = tgi_verify_take(v->reserve, job->plan.net, &v->values, err);
    if (st == TG_OK)
        st = three_passes(v, out, err);
    if (st == TG_OK)
        st = device_passes(v, out, err);
    if (st == TG_OK && job->source)
        st = tgi_input_unchanged(tgi_source_held, job->source, err);
    if (st == TG_OK)
        summarise(job, out);
    drop(&v);
    return st;
}

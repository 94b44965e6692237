/* tiling.c - measures halos, rings and operations of one tiling, and places its arena. */
#include "engine/plan/tiling.h"

#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/mem.h"

#include <string.h>

/* ---- Extents per axis, over all cuts ----------------------------------------------------- */

#define TOGETHER 8 /* cells of an axis that are asked about in one walk over the nodes */

typedef struct axis_work {
    tgi_range *stored, *inside; /* per value, of as many cells as are asked about */
    double *sum; /* per node: pixels computed along this axis, all cuts together */
} axis_work;

/* Core of cell k along an axis, in output 0 of its box. */
static tgi_range core_of(const tgi_tiling *t, int axis, int64_t k)
{
    const tgi_fit *f = &t->stage->fit[axis - TGI_STREAM_AXIS];
    const int64_t cut = t->cut[tgi_cut_of_axis(t->net, axis)];
    int64_t in, out;
    tgi_fit_shift(f, k * cut, &in, &out);
    return (tgi_range){out + k * cut, out + tgi_min((k + 1) * cut, f->out)};
}

/* Pixels of input 0 beyond the core's own share, larger side. The fit says what pixels of the
 * network's input lie under those of the output; of a value between stages extents do. */
static int64_t halo_of(const tgi_stage *stage, int axis, tgi_range core, tgi_range inside)
{
    const tgi_place *p = &stage->fit[axis - TGI_STREAM_AXIS].place;
    const int placed = p->up && stage->in[0].value == stage->net->in[0];
    const int64_t d_out = placed ? p->up : tgi_stage_out_dim(stage, 0, axis);
    const int64_t d_in = placed ? p->down : tgi_stage_in_dim(stage, 0, axis);
    const int64_t before = tgi_floor_div((core.lo + p->lead) * d_in, d_out) - inside.lo;
    const int64_t after = inside.hi - tgi_ceil_div((core.hi + p->lead) * d_in, d_out);
    return tgi_max(0, tgi_max(before, after));
}

static int64_t longest(const tgi_range *r, int n)
{
    int64_t most = 0;
    for (int k = 0; k < n; k++)
        most = tgi_max(most, tgi_range_len(r[k]));
    return most;
}

static void add_node_extents(const tgi_stage *stage, const tgi_range *inside, int n,
                             double *sum)
{
    for (int p = 0; p < stage->n_nodes; p++) {
        const tgi_range *r =
            inside + (size_t)stage->net->reads.node[stage->node[p]].dst * (size_t)n;
        for (int k = 0; k < n; k++)
            sum[p] += (double)tgi_range_len(r[k]);
    }
}

static void widen_slot(tgi_tiling *t, int axis, const axis_work *w, int n, int v)
{
    const size_t first = (size_t)v * (size_t)n;
    tgi_slot *s = &t->slot[v];
    if (axis == t->net->rank - 1)
        s->width = tgi_max(s->width, longest(w->stored + first, n));
    else
        s->rows = tgi_max(s->rows, longest(w->inside + first, n));
}

/* Of the values that have a buffer in the stage. */
static void widen_slots(tgi_tiling *t, int axis, const axis_work *w, int n)
{
    const tgi_stage *s = t->stage;
    for (int i = 0; i < s->n_loaded; i++)
        widen_slot(t, axis, w, n, s->in[i].value);
    for (int p = 0; p < s->n_nodes; p++) {
        const tgi_net_node *node = tgi_stage_node(s, p);
        for (int d = 0; d < node->ctx.n_dst; d++)
            widen_slot(t, axis, w, n, node->node->dst[d]);
    }
}

static void widen_halo(tgi_tiling *t, int axis, const tgi_range *core, const tgi_range *inside,
                       int n)
{
    const tgi_range *in = inside + (size_t)t->stage->in[0].value * (size_t)n;
    int64_t *halo = &t->halo[tgi_cut_of_axis(t->net, axis)];
    for (int k = 0; k < n; k++)
        *halo = tgi_max(*halo, halo_of(t->stage, axis, core[k], in[k]));
}

static tg_status measure_tile_axis(tgi_tiling *t, int axis, axis_work *w, tgi_err *err)
{
    const int64_t cells = t->n_cut[tgi_cut_of_axis(t->net, axis)];
    for (int64_t first = 0; first < cells; first += TOGETHER) {
        const int n = (int)tgi_min(TOGETHER, cells - first);
        tgi_range core[TOGETHER];
        TGI_TRY(tgi_check_cancel(err));
        for (int k = 0; k < n; k++)
            core[k] = core_of(t, axis, first + k);
        tgi_axis_needs(t->stage, axis, core, n, w->stored, w->inside);
        add_node_extents(t->stage, w->inside, n, w->sum);
        widen_slots(t, axis, w, n);
        if (cells > 1)
            widen_halo(t, axis, core, w->inside, n);
    }
    return TG_OK;
}

static void copy_stream_axis(tgi_tiling *t, const tgi_tiling *like, axis_work *w)
{
    const tgi_net *net = t->net;
    const int c = tgi_cut_of_axis(net, TGI_STREAM_AXIS);
    for (int v = 0; v < net->n_values; v++) {
        t->slot[v].ring = like->slot[v].ring;
        t->slot[v].fed = like->slot[v].fed;
    }
    memcpy(t->carried, like->carried, (size_t)net->n_values);
    memcpy(w->sum, like->stream_rows, (size_t)t->stage->n_nodes * sizeof *w->sum);
    memcpy(t->band_rows, like->band_rows, (size_t)t->stage->n_nodes * sizeof *t->band_rows);
    t->stream_bands = like->stream_bands;
    t->stream_cost = like->stream_cost;
    t->halo[c] = like->halo[c];
}

/* `ring`: of the net's values, and as many for what is fed of them. */
static tg_status measure_stream_axis(tgi_tiling *t, axis_work *w, int64_t *ring, tgi_err *err)
{
    const tgi_net *net = t->net;
    const int c = tgi_cut_of_axis(net, TGI_STREAM_AXIS);
    tgi_flow flow;
    TGI_TRY(tgi_flow_open(&flow, t->stage, err));
    int64_t *const fed = ring + net->n_values;
    const tgi_flow_count count = {ring, t->carried, w->sum, t->band_rows, fed, &t->stream_cost};
    tg_status st = TG_OK;
    t->stream_bands = 0;
    for (int64_t k = 0; st == TG_OK && k < t->n_cut[c]; k++) {
        const tgi_range core = core_of(t, TGI_STREAM_AXIS, k);
        st = tgi_flow_simulate(&flow, core, t->band, &count, &t->stream_bands, err);
        if (t->n_cut[c] > 1) {
            tgi_axis_need(t->stage, TGI_STREAM_AXIS, core, w->stored, w->inside);
            widen_halo(t, TGI_STREAM_AXIS, &core, w->inside, 1);
        }
    }
    tgi_flow_close(&flow);
    for (int v = 0; v < net->n_values; v++) {
        t->slot[v].ring = t->stage->values[v].live ? ring[v] : 0;
        t->slot[v].fed = fed[v];
    }
    return st;
}

/* Per node: operations of the cells, and of one pass over all that is wanted. */
static void count_flops(tgi_tiling *t, int axis, const axis_work *w, double *per_node)
{
    const tgi_fit *f = &t->stage->fit[axis - TGI_STREAM_AXIS];
    if (!f->box)
        tgi_axis_need(t->stage, axis, (tgi_range){f->crop, f->crop + f->out}, w->stored,
                      w->inside);
    for (int i = 0; i < t->stage->n_nodes; i++) {
        const tgi_net_node *n = tgi_stage_node(t->stage, i);
        const double once = f->box ? (double)tgi_net_dim(t->net, n->node->dst[0], axis) *
                                         (double)f->size / (double)f->box
                                   : (double)tgi_range_len(w->inside[n->node->dst[0]]);
        per_node[2 * i] *= w->sum[i];
        per_node[2 * i + 1] *= once;
    }
}

/* ---- Bytes ------------------------------------------------------------------------------- */

static void size_slot(tgi_slot *s, const tgi_net *net, const tgi_net_value *v)
{
    const int64_t blocks = tgi_ceil_div(v->c, v->cb);
    size_t pitch = tgi_align_size((size_t)(s->width * v->cb), 16);
    if (pitch % 1024 == 0 && !net->be->whole_pixels)
        pitch += 16; /* rows a multiple of 4 KiB apart would share the same cache sets */
    s->block_pitch = pitch;
    s->row_pitch = tgi_sat_mul(pitch, (size_t)blocks);
    s->slab_pitch = net->rank == 5 ? tgi_sat_mul(s->row_pitch, (size_t)s->rows) : s->row_pitch;
    s->bytes =
        tgi_sat_mul(tgi_sat_mul(s->slab_pitch, (size_t)s->ring), tgi_net_element_bytes(net, v));
}

static size_t scratch_of(const tgi_tiling *t, int k)
{
    const tgi_net_node *n = tgi_stage_node(t->stage, k);
    if (n->flat)
        return tgi_net_flat_scratch(t->net, n);
    if (!n->variant || !n->variant->scratch_bytes)
        return 0;
    const tgi_slot *s = &t->slot[n->node->dst[0]];
    size_t state = 0;
    if (tgi_stage_pieces_of(t->stage, k))
        state = n->variant->state_bytes(&n->ctx, t->band_rows[k] * s->rows * s->width);
    return tgi_sat_add(n->variant->scratch_bytes(&n->ctx, &n->hint, s->width, t->threads),
                       state);
}

static tg_status place_all(tgi_tiling *t, tgi_err *err)
{
    const tgi_net *net = t->net;
    const int nv = net->n_values, nn = t->stage->n_nodes;
    tgi_item *items = tgi_calloc(TGI_TAG_PLAN, (size_t)(nv + nn) + 1, sizeof *items);
    if (!items)
        return tgi_fail(err, TG_E_NOMEM, "no memory to plan the arena");
    for (int v = 0; v < nv; v++) {
        const tgi_stage_value *life = &t->stage->values[v];
        tgi_slot *s = &t->slot[v];
        if (life->live)
            size_slot(s, net, &net->values[v]);
        items[v] = (tgi_item){.bytes = s->bytes,
                              .first = t->carried[v] ? -1 : life->first,
                              .last = t->carried[v] ? nn : life->last};
    }
    for (int i = 0; i < t->stage->n_loaded; i++) {
        const tgi_stage_in *in = &t->stage->in[i];
        if (in->in_place || in->in_pieces)
            items[in->value].bytes =
                in->in_pieces ? tgi_stage_piece_bytes(t->stage, in->value) : 0;
    }
    for (int k = 0; k < nn; k++)
        items[nv + k] = (tgi_item){.bytes = scratch_of(t, k), .first = k, .last = k};
    const tg_status st =
        tgi_arena_pack(items, nv + nn, &t->arena_bytes, &t->lower_bound_bytes, err);
    for (int v = 0; v < nv; v++)
        t->slot[v].offset = items[v].offset;
    for (int k = 0; k < nn; k++)
        t->scratch[k] = items[nv + k].offset;
    tgi_free(items);
    return st;
}

/* ---- Make -------------------------------------------------------------------------------- */

static void set_cuts(tgi_tiling *t, const int64_t cut[3])
{
    const tgi_net *net = t->net;
    t->cut[0] = t->n_cut[0] = 1;
    for (int axis = TGI_STREAM_AXIS; axis < net->rank; axis++) {
        const int c = tgi_cut_of_axis(net, axis);
        const tgi_fit *f = &t->stage->fit[axis - TGI_STREAM_AXIS];
        t->cut[c] = cut[c] > 0 && cut[c] < f->out ? cut[c] : f->out;
        if (f->box)
            t->cut[c] = tgi_min(f->core, f->out);
        t->n_cut[c] = tgi_ceil_div(f->out, t->cut[c]);
    }
    t->cells = t->n_cut[0] * t->n_cut[1] * t->n_cut[2];
}

/* Cells of an axis that are asked about together: of most tilings it is one. */
static size_t most_together(const tgi_tiling *t)
{
    int64_t most = 1;
    for (int axis = TGI_STREAM_AXIS + 1; axis < t->net->rank; axis++)
        most = tgi_max(most, t->n_cut[tgi_cut_of_axis(t->net, axis)]);
    return (size_t)tgi_min(TOGETHER, most);
}

static tg_status measure(tgi_tiling *t, const tgi_tiling *like, int64_t *ring, axis_work *w,
                         tgi_err *err)
{
    const tgi_net *net = t->net;
    const int n_nodes = t->stage->n_nodes;
    double *const per_node = t->node_flops;
    for (int v = 0; v < net->n_values; v++)
        t->slot[v].rows = net->rank == 4 ? 1 : 0;
    for (int i = 0; i < n_nodes; i++) {
        const tgi_net_node *n = tgi_stage_node(t->stage, i);
        per_node[2 * i] = per_node[2 * i + 1] =
            n->flops_per_element * (double)tgi_net_dim(net, n->node->dst[0], 1);
    }
    for (int axis = TGI_STREAM_AXIS; axis < net->rank; axis++) {
        memset(w->sum, 0, (size_t)n_nodes * sizeof *w->sum);
        if (axis == TGI_STREAM_AXIS && like)
            copy_stream_axis(t, like, w);
        else if (axis == TGI_STREAM_AXIS)
            TGI_TRY(measure_stream_axis(t, w, ring, err));
        else
            TGI_TRY(measure_tile_axis(t, axis, w, err));
        if (axis == TGI_STREAM_AXIS)
            memcpy(t->stream_rows, w->sum, (size_t)n_nodes * sizeof *w->sum);
        count_flops(t, axis, w, per_node);
    }
    for (int i = 0; i < n_nodes; i++) {
        t->flops += per_node[2 * i];
        t->work += per_node[2 * i] * tgi_stage_node(t->stage, i)->cost;
        t->whole_flops += per_node[2 * i + 1];
    }
    const int64_t walks = t->cells / t->n_cut[tgi_cut_of_axis(net, TGI_STREAM_AXIS)];
    t->bands = t->stream_bands * walks;
    t->cost.calls = t->stream_cost.calls * (double)walks;
    t->cost.weight_bytes = t->stream_cost.weight_bytes * (double)walks;
    return place_all(t, err);
}

tg_status tgi_tiling_make(const tgi_stage *stage, const int64_t cut[3], int64_t band,
                          int threads, const tgi_tiling *like, tgi_tiling *out, tgi_err *err)
{
    const tgi_net *net = stage->net;
    tgi_tiling t = {.stage = stage,
                    .net = net,
                    .band = band,
                    .threads = threads,
                    .n_values = net->n_values};
    const size_t nv = (size_t)net->n_values + 1, nn = (size_t)stage->n_nodes + 1;
    t.slot = tgi_calloc(TGI_TAG_PLAN, nv, sizeof *t.slot);
    t.scratch = tgi_calloc(TGI_TAG_PLAN, nn, sizeof *t.scratch);
    int64_t *ring = tgi_calloc(TGI_TAG_PLAN, 2 * nv, sizeof *ring);
    t.carried = tgi_calloc(TGI_TAG_PLAN, nv, 1);
    t.stream_rows = tgi_calloc(TGI_TAG_PLAN, nn, sizeof *t.stream_rows);
    t.node_flops = tgi_calloc(TGI_TAG_PLAN, 2 * nn, sizeof *t.node_flops);
    t.band_rows = tgi_calloc(TGI_TAG_PLAN, nn, sizeof *t.band_rows);
    double *sums = tgi_calloc(TGI_TAG_PLAN, nn, sizeof *sums);
    set_cuts(&t, cut);
    const size_t together = most_together(&t);
    tgi_range *ranges = tgi_calloc(TGI_TAG_PLAN, 2 * nv * together, sizeof *ranges);
    tg_status st = TG_E_NOMEM;
    if (t.slot && t.scratch && t.carried && t.stream_rows && t.node_flops && t.band_rows &&
        ring && ranges && sums) {
        axis_work w = {ranges, ranges + nv * together, sums};
        st = measure(&t, like, ring, &w, err);
    } else {
        tgi_fail(err, st, "no memory to plan %d values", net->n_values);
    }
    tgi_free(ring);
    tgi_free(ranges);
    tgi_free(sums);
    if (st != TG_OK)
        tgi_tiling_free(&t);
    else
        *out = t;
    return st;
}

size_t tgi_tiling_held(const tgi_stage *stage)
{
    const tgi_tiling *t = NULL;
    const size_t per_value = sizeof *t->slot + sizeof *t->carried,
                 per_node = sizeof *t->scratch + sizeof *t->stream_rows + sizeof *t->band_rows +
                            2 * sizeof *t->node_flops;
    return ((size_t)stage->net->n_values + 1) * per_value +
           ((size_t)stage->n_nodes + 1) * per_node;
}

void tgi_tiling_free(tgi_tiling *t)
{
    tgi_free(t->slot);
    tgi_free(t->scratch);
    tgi_free(t->carried);
    tgi_free(t->stream_rows);
    tgi_free(t->band_rows);
    tgi_free(t->node_flops);
    memset(t, 0, sizeof *t);
}

/* Numbers of cell k along z,y,x. */
static void numbers_of(const tgi_tiling *t, int64_t k, int64_t at[3])
{
    at[0] = k % t->n_cut[0];
    k /= t->n_cut[0];
    at[1] = k % t->n_cut[1];
    at[2] = k / t->n_cut[1];
}

void tgi_tiling_cell(const tgi_tiling *t, int64_t k, tgi_range core[3])
{
    int64_t at[3];
    numbers_of(t, k, at);
    for (int axis = TGI_STREAM_AXIS; axis < t->net->rank; axis++)
        core[axis - TGI_STREAM_AXIS] =
            /* A cut is 0, 1 or 2. */
            // NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage)
            core_of(t, axis, at[tgi_cut_of_axis(t->net, axis)]);
}

void tgi_tiling_shift(const tgi_tiling *t, int64_t k, int64_t in[3], int64_t out[3])
{
    int64_t at[3];
    numbers_of(t, k, at);
    in[0] = out[0] = 0;
    for (int axis = TGI_STREAM_AXIS; axis < t->net->rank; axis++) {
        const int c = tgi_cut_of_axis(t->net, axis); /* 0, 1 or 2 */
        /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
        tgi_fit_shift(&t->stage->fit[axis - TGI_STREAM_AXIS], at[c] * t->cut[c], &in[c],
                      &out[c]);
    }
}

#include "engine/run/exec.h"

#include "engine/base/arith.h"
#include "engine/base/clock.h"
#include "engine/base/mem.h"
#include "engine/run/flat.h"

#include <string.h>

struct tg_exec {
    const tg_tiling *t;
    const tg_stage *stage;
    const tg_net *net; /* the stage's */
    const char *packed;
    char *arena;
    tg_threads *pool;
    tg_exec_io io;
    tg_flow flow;
    tg_range core[3];
    tg_range *stored[3], *inside[3]; /* [axis - 2]: per value, of this cell (tile axes) */
    tg_range *ranges;                /* their storage */
    tg_view *view;                   /* per value */
    tg_view (*seg)[TG_MAX_SEG];      /* operands of one node, rebuilt for each call */
    int64_t *before;                 /* per output: rows there before the band */
    tg_exec_times seconds;
    double (*node_clock)(void); /* NULL: nodes are not timed */
    double *node_seconds;
};

tg_status tgi_exec_open(const tg_tiling *t, const void *packed, void *arena, tg_threads *pool,
                        const tg_exec_io *io, tg_exec **out, tgi_err *err)
{
    const tg_net *net = t->net;
    const size_t nv = (size_t)net->n_values + 1;
    tg_exec *e = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *e);
    if (!e)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the executor");
    *e = (tg_exec){.t = t,
                   .stage = t->stage,
                   .net = net,
                   .packed = packed,
                   .arena = arena,
                   .pool = pool,
                   .io = *io};
    e->ranges = tgi_calloc(TGI_TAG_PLAN, 6 * nv, sizeof *e->ranges);
    e->view = tgi_calloc(TGI_TAG_PLAN, nv, sizeof *e->view);
    e->seg = tgi_calloc(TGI_TAG_PLAN, TG_MAX_OPERANDS, sizeof *e->seg);
    e->before = tgi_calloc(TGI_TAG_PLAN, (size_t)t->stage->n_out + 1, sizeof *e->before);
    tg_status st = tgi_flow_open(&e->flow, t->stage, err);
    if (st == TG_OK && (!e->ranges || !e->view || !e->seg || !e->before))
        st = tgi_fail(err, TG_E_NOMEM, "no memory for the executor's views");
    if (st != TG_OK) {
        tgi_exec_close(&e);
        return st;
    }
    for (int a = 0; a < 3; a++) {
        e->stored[a] = e->ranges + (size_t)(2 * a) * nv;
        e->inside[a] = e->ranges + (size_t)(2 * a + 1) * nv;
    }
    *out = e;
    return TG_OK;
}

void tgi_exec_close(tg_exec **e)
{
    if (!e || !*e)
        return;
    tgi_flow_close(&(*e)->flow);
    tgi_free((*e)->ranges);
    tgi_free((*e)->view);
    tgi_free((*e)->seg);
    tgi_free((*e)->before);
    tgi_free(*e);
    *e = NULL;
}

/* ---- Views ------------------------------------------------------------------------------- */

static void make_view(tg_exec *e, int v)
{
    const tg_net_value *val = &e->net->values[v];
    const tg_slot *s = &e->t->slot[v];
    const int x = e->net->rank - 1 - TG_STREAM_AXIS;
    tg_view *w = &e->view[v];
    *w = (tg_view){.base = (float *)(void *)(e->arena + s->offset),
                   .c = val->c,
                   .cb = val->cb,
                   .x0 = e->stored[x][v].lo,
                   .width = s->width,
                   .block_pitch = s->block_pitch};
    if (e->net->rank == 4) {
        w->y_pitch = s->slab_pitch;
        w->y_ring = tgi_max(1, s->ring);
        w->z_pitch = 0;
        w->z_ring = 1;
    } else {
        w->z_pitch = s->slab_pitch;
        w->z_ring = tgi_max(1, s->ring);
        w->y_pitch = s->row_pitch;
        w->y_ring = tgi_max(1, s->rows);
    }
}

void tgi_exec_begin(tg_exec *e, const tg_range *core)
{
    const tg_net *net = e->net;
    for (int a = 0; a < net->rank - TG_STREAM_AXIS; a++)
        e->core[a] = core[a];
    tgi_flow_begin(&e->flow, core[0], e->t->band);
    for (int axis = TG_STREAM_AXIS + 1; axis < net->rank; axis++)
        tgi_axis_need(e->stage, axis, core[axis - TG_STREAM_AXIS],
                      e->stored[axis - TG_STREAM_AXIS], e->inside[axis - TG_STREAM_AXIS]);
    for (int v = 0; v < net->n_values; v++)
        if (e->stage->values[v].live)
            make_view(e, v);
}

/* Box of rows [r) of a value over all its computed columns. */
static tg_box box_of_rows(const tg_exec *e, int v, tg_range r)
{
    tg_box b = tgi_box_full(&e->net->values[v].ext);
    b.ax[TG_STREAM_AXIS] = r;
    for (int axis = TG_STREAM_AXIS + 1; axis < b.rank; axis++)
        b.ax[axis] = e->inside[axis - TG_STREAM_AXIS][v];
    return b;
}

/* ---- Zero columns ------------------------------------------------------------------------ */

static void zero_columns(const tg_view *w, int64_t z, int64_t y, int64_t from, int64_t to)
{
    if (from >= to)
        return;
    for (int64_t b = 0; b < tgi_view_blocks(w); b++)
        memset(tgi_view_row(w, b, z, y) + (from - w->x0) * w->cb, 0,
               (size_t)((to - from) * w->cb) * sizeof(float));
}

/* The columns outside the image that consumers read as zeros, for rows just written. */
static void zero_outside(const tg_exec *e, int v, const tg_box *box)
{
    const int xa = e->net->rank - 1;
    const tg_range stored = e->stored[xa - TG_STREAM_AXIS][v];
    const int64_t dim = tgi_net_dim(e->net, v, xa);
    if (stored.lo >= 0 && stored.hi <= dim)
        return;
    const tg_range z = e->net->rank == 5 ? box->ax[2] : (tg_range){0, 1};
    const tg_range y = box->ax[e->net->rank - 2];
    for (int64_t k = z.lo; k < z.hi; k++)
        for (int64_t r = y.lo; r < y.hi; r++) {
            zero_columns(&e->view[v], k, r, stored.lo, tgi_min(0, stored.hi));
            zero_columns(&e->view[v], k, r, tgi_max(dim, stored.lo), stored.hi);
        }
}

/* ---- One node ---------------------------------------------------------------------------- */

static tg_status run_flat(tg_exec *e, int k, tgi_err *err)
{
    const tg_net_node *n = tgi_stage_node(e->stage, k);
    tg_flat_call call = {
        .net = e->net, .node = n, .view = e->view, .scratch = e->arena + e->t->scratch[k]};
    for (int d = 0; d < n->ctx.n_dst; d++) {
        const int v = n->node->dst[d];
        call.box[d] = box_of_rows(e, v, (tg_range){e->flow.lo[v], e->flow.hi[v]});
    }
    TGI_TRY(tgi_flat_run(&call, err));
    for (int d = 0; d < n->ctx.n_dst; d++)
        zero_outside(e, n->node->dst[d], &call.box[d]);
    return TG_OK;
}

static tg_status run_node(tg_exec *e, int k, tg_range rows, tgi_err *err)
{
    const tg_net_node *n = tgi_stage_node(e->stage, k);
    if (n->flat)
        return run_flat(e, k, err);
    tg_operand src[TG_MAX_OPERANDS];
    tg_view dst[TG_OP_MAX_DST];
    for (int j = 0; j < n->n_operands; j++) {
        src[j] = (tg_operand){n->operand[j].n_seg, e->seg[j]};
        for (int s = 0; s < n->operand[j].n_seg; s++) {
            e->seg[j][s] = e->view[n->operand[j].value[s]];
            e->seg[j][s].doubled = n->operand[j].doubled[s];
        }
    }
    for (int d = 0; d < n->ctx.n_dst; d++)
        dst[d] = e->view[n->node->dst[d]];
    const tg_call call = {.ctx = &n->ctx,
                          .src = src,
                          .dst = dst,
                          .box = box_of_rows(e, n->node->dst[0], rows),
                          .epi = n->epi,
                          .n_epi = n->n_epi,
                          .packed = e->packed + n->packed_offset,
                          .scratch = e->arena + e->t->scratch[k],
                          .threads = e->pool};
    if (tgi_box_empty(&call.box))
        return TG_OK;
    if (n->variant) {
        n->variant->run(&call);
    } else {
        TGI_TRY(n->node->op->ref(&call, err));
        tgi_epilogue_apply(e->net->be, &call);
    }
    for (int d = 0; d < n->ctx.n_dst; d++)
        zero_outside(e, n->node->dst[d], &call.box);
    return TG_OK;
}

static tg_status run_timed(tg_exec *e, int k, tg_range rows, tgi_err *err)
{
    if (!e->node_clock)
        return run_node(e, k, rows, err);
    const double t0 = e->node_clock();
    const tg_status st = run_node(e, k, rows, err);
    e->node_seconds[k] += e->node_clock() - t0;
    return st;
}

/* ---- One band ---------------------------------------------------------------------------- */

static tg_status feed_inputs(tg_exec *e, tgi_err *err)
{
    for (int i = 0; i < e->stage->n_loaded; i++) {
        const int v = e->stage->in[i].value;
        const tg_range r = tgi_flow_feed(&e->flow, i);
        const tg_box box = box_of_rows(e, v, r);
        if (tgi_box_empty(&box))
            continue;
        TGI_TRY(e->io.load(e->io.user, i, &e->view[v], &box, err));
        zero_outside(e, v, &box);
    }
    return TG_OK;
}

static tg_status hand_out(tg_exec *e, tgi_err *err)
{
    for (int o = 0; o < e->stage->n_out; o++) {
        const int v = e->stage->out[o].value;
        tg_box box = box_of_rows(e, v, (tg_range){e->before[o], e->flow.end[v]});
        for (int axis = TG_STREAM_AXIS; axis < e->net->rank; axis++) {
            const tg_range core =
                tgi_axis_share(e->stage, axis, o, e->core[axis - TG_STREAM_AXIS]);
            box.ax[axis] = tgi_range_clip(box.ax[axis], core.lo, core.hi);
        }
        if (!tgi_box_empty(&box))
            TGI_TRY(e->io.store(e->io.user, o, &e->view[v], &box, err));
    }
    return TG_OK;
}

tg_status tgi_exec_band(tg_exec *e, int *done, tgi_err *err)
{
    for (int o = 0; o < e->stage->n_out; o++)
        e->before[o] = e->flow.end[e->stage->out[o].value];
    const double t0 = tgi_seconds();
    TGI_TRY(feed_inputs(e, err));
    const double t1 = tgi_seconds();
    for (int k = 0; k < e->stage->n_nodes; k++) {
        if (e->io.stop)
            TGI_TRY(e->io.stop(e->io.user, err));
        const tg_range rows = tgi_flow_advance(&e->flow, k);
        if (!tgi_range_empty(rows))
            TGI_TRY(run_timed(e, k, rows, err));
    }
    const double t2 = tgi_seconds();
    TGI_TRY(hand_out(e, err));
    e->seconds.load += t1 - t0;
    e->seconds.compute += t2 - t1;
    e->seconds.store += tgi_seconds() - t2;
    tgi_flow_release(&e->flow);
    *done = tgi_flow_done(&e->flow);
    return TG_OK;
}

tg_status tgi_exec_cell(tg_exec *e, const tg_range *core, tgi_err *err)
{
    tgi_exec_begin(e, core);
    for (int done = tgi_flow_done(&e->flow); !done;)
        TGI_TRY(tgi_exec_band(e, &done, err));
    return TG_OK;
}

void tgi_exec_next_load(const tg_exec *e, int i, tg_box *box)
{
    /* Feeding moves the ends of input 0 and of input i alone: put them back. */
    tg_flow ahead = e->flow;
    const int v0 = e->stage->in[0].value, v = e->stage->in[i].value;
    const int64_t end0 = ahead.end[v0], end = ahead.end[v];
    tg_range r = tgi_flow_feed(&ahead, 0);
    if (i > 0)
        r = tgi_flow_feed(&ahead, i);
    ahead.end[v] = end;
    ahead.end[v0] = end0;
    *box = box_of_rows(e, v, r);
}

tg_exec_times tgi_exec_seconds(const tg_exec *e)
{
    return e->seconds;
}

void tgi_exec_time_nodes(tg_exec *e, double (*clock)(void), double *seconds)
{
    e->node_clock = clock;
    e->node_seconds = seconds;
}

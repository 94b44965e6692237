/* exec.c - runs the nodes of a band on the processor: inputs, kernels, outputs. */
#include "engine/exec/exec.h"

#include "engine/base/arith.h"
#include "engine/base/clock.h"
#include "engine/base/mem.h"
#include "engine/exec/cell.h"
#include "engine/exec/flat.h"

#include <string.h>

struct tgi_exec {
    tgi_cell cell;
    const char *packed;
    tgi_threads *pool;
    tgi_exec_io io;
    tgi_view *seg;   /* operands of one node, rebuilt for each call */
    int64_t *before; /* per output: rows there before the band */
    tgi_exec_times seconds;
    tgi_busy *busy;             /* or NULL */
    double in_pieces;           /* seconds of the band's nodes that went into loading */
    double (*node_clock)(void); /* NULL: nodes are not timed */
    double *node_seconds;
};

tg_status tgi_exec_open(const tgi_tiling *t, const void *packed, void *arena, tgi_threads *pool,
                        const tgi_exec_io *io, tgi_exec **out, tgi_err *err)
{
    const tgi_kernel_set *be = t->net->be;
    if (!be->epilogue)
        return tgi_fail(err, TG_E_INTERNAL, "the processor has no %s: such a net is for plans",
                        be->name);
    tgi_exec *e = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *e);
    if (!e)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the executor");
    *e = (tgi_exec){.packed = packed, .pool = pool, .io = *io};
    e->seg = tgi_calloc(TGI_TAG_PLAN, (size_t)TGI_MAX_OPERANDS * TGI_MAX_SEG, sizeof *e->seg);
    e->before = tgi_calloc(TGI_TAG_PLAN, (size_t)t->stage->n_out + 1, sizeof *e->before);
    tg_status st = tgi_cell_open(&e->cell, t, arena, err);
    if (st == TG_OK && (!e->seg || !e->before))
        st = tgi_fail(err, TG_E_NOMEM, "no memory for the executor's views");
    if (st != TG_OK) {
        tgi_exec_close(&e);
        return st;
    }
    *out = e;
    return TG_OK;
}

#define SEGMENTS ((size_t)TGI_MAX_OPERANDS * TGI_MAX_SEG)

size_t tgi_exec_bytes(const tgi_tiling *t)
{
    return sizeof(tgi_exec) + SEGMENTS * sizeof(tgi_view) +
           ((size_t)t->stage->n_out + 1) * sizeof(int64_t) + tgi_cell_bytes(t);
}

void tgi_exec_close(tgi_exec **e)
{
    if (!e || !*e)
        return;
    tgi_cell_close(&(*e)->cell);
    tgi_free((*e)->seg);
    tgi_free((*e)->before);
    tgi_free(*e);
    *e = NULL;
}

/* All of a value, as it is kept. */
static tgi_view view_of_all(const tgi_net *net, int v, const float *at)
{
    const tgi_net_value *t = &net->values[v];
    const int n = net->rank;
    const int64_t rows = t->ext.dim[n - 2], width = t->ext.dim[n - 1];
    tgi_view w = {.base = (float *)(uintptr_t)at, /* nobody writes there */
                  .c = t->c,
                  .cb = t->cb,
                  .width = width,
                  .block_pitch = (size_t)(width * t->cb),
                  .y_ring = rows,
                  .z_ring = n == 5 ? t->ext.dim[2] : 1};
    w.y_pitch = w.block_pitch * (size_t)tgi_view_blocks(&w);
    w.z_pitch = w.y_pitch * (size_t)rows;
    return w;
}

static void view_in_place(tgi_exec *e)
{
    tgi_cell *c = &e->cell;
    for (int i = 0; i < c->stage->n_loaded; i++)
        if (c->stage->in[i].in_place)
            c->view[c->stage->in[i].value] =
                view_of_all(c->net, c->stage->in[i].value, e->io.place(e->io.user, i));
}

int tgi_exec_begin(tgi_exec *e, const tgi_range *core)
{
    tgi_cell_begin(&e->cell, core);
    view_in_place(e);
    return !tgi_flow_done(&e->cell.flow);
}

/* ---- Zero columns ------------------------------------------------------------------------ */

static void zero_columns(const tgi_view *w, int64_t z, int64_t y, int64_t from, int64_t to)
{
    if (from >= to)
        return;
    for (int64_t b = 0; b < tgi_view_blocks(w); b++)
        memset(tgi_view_row(w, b, z, y) + (from - w->x0) * w->cb, 0,
               (size_t)((to - from) * w->cb) * sizeof(float));
}

/* The columns outside the image that consumers read as zeros, for rows just written. */
static void zero_outside(const tgi_cell *e, int v, const tgi_box *box)
{
    const int xa = e->net->rank - 1;
    const tgi_range stored = e->stored[xa - TGI_STREAM_AXIS][v];
    const int64_t dim = tgi_net_dim(e->net, v, xa);
    if (stored.lo >= 0 && stored.hi <= dim)
        return;
    const tgi_range z = e->net->rank == 5 ? box->ax[2] : (tgi_range){0, 1};
    const tgi_range y = box->ax[e->net->rank - 2];
    for (int64_t k = z.lo; k < z.hi; k++)
        for (int64_t r = y.lo; r < y.hi; r++) {
            zero_columns(&e->view[v], k, r, stored.lo, tgi_min(0, stored.hi));
            zero_columns(&e->view[v], k, r, tgi_max(dim, stored.lo), stored.hi);
        }
}

/* ---- One node ---------------------------------------------------------------------------- */

static void *scratch_of(const tgi_cell *c, int k)
{
    return (char *)c->arena + c->t->scratch[k];
}

static tg_status run_flat(const tgi_cell *c, int k, tgi_err *err)
{
    const tgi_net_node *n = tgi_stage_node(c->stage, k);
    tgi_flat_call call = {
        .net = c->net, .node = n, .view = c->view, .scratch = scratch_of(c, k)};
    for (int d = 0; d < n->ctx.n_dst; d++) {
        const int v = n->node->dst[d];
        call.box[d] = tgi_cell_rows(c, v, (tgi_range){c->flow.lo[v], c->flow.hi[v]});
    }
    TGI_TRY(tgi_flat_run(&call, err));
    for (int d = 0; d < n->ctx.n_dst; d++)
        zero_outside(c, n->node->dst[d], &call.box[d]);
    return TG_OK;
}

/* The pixels of what node k looks at. */
static int64_t pixels_looked_at(const tgi_net_node *n, uint32_t sources)
{
    const tgi_desc *d = &n->ctx.src[__builtin_ctz(sources)];
    int64_t pixels = 1;
    for (int a = TGI_STREAM_AXIS; a < d->rank; a++)
        pixels *= d->dim[a];
    return pixels;
}

/* A piece of value v, in its buffer; its view is of that from here on. */
static tg_status load_piece(tgi_exec *e, int v, tgi_range p, tgi_err *err)
{
    tgi_cell *c = &e->cell;
    const tgi_net_value *t = &c->net->values[v];
    int i = 0;
    while (c->stage->in[i].value != v)
        i++;
    c->view[v] = (tgi_view){.base = (float *)(void *)((char *)c->arena + c->t->slot[v].offset),
                            .c = t->c,
                            .cb = t->cb,
                            .x0 = p.lo,
                            .width = tgi_range_len(p),
                            .block_pitch = (size_t)(tgi_range_len(p) * t->cb),
                            .y_ring = 1,
                            .z_ring = 1};
    return e->io.piece(e->io.user, i, &c->view[v], p, err);
}

/* Of these sources of a node. What others look at has no buffer now. */
static tg_status load_pieces(tgi_exec *e, const tgi_net_node *n, uint32_t sources, tgi_range p,
                             tgi_err *err)
{
    for (int j = 0; j < n->ctx.n_src; j++)
        for (int g = 0; (sources >> j & 1) && g < n->operand[j].n_seg; g++)
            TGI_TRY(load_piece(e, n->operand[j].value[g], p, err));
    return TG_OK;
}

/* A node that looks at more than is there at once. */
static tg_status run_in_pieces(tgi_exec *e, int k, tgi_call *call, tgi_view *seg,
                               tgi_operand *src, tgi_err *err)
{
    const tgi_cell *c = &e->cell;
    const tgi_net_node *n = tgi_stage_node(c->stage, k);
    const int64_t all = pixels_looked_at(n, call->in_pieces), step = tgi_stage_piece(c->stage);
    for (int64_t p = 0; p < all; p += step) {
        const double t0 = tgi_seconds();
        call->piece = (tgi_range){p, tgi_min(all, p + step)};
        if (e->io.stop)
            TGI_TRY(e->io.stop(e->io.user, err));
        tgi_busy_end(e->busy);
        const tg_status st = load_pieces(e, n, call->in_pieces, call->piece, err);
        tgi_busy_begin(e->busy);
        TGI_TRY(st);
        e->in_pieces += tgi_seconds() - t0;
        (void)tgi_cell_operands(c, k, seg, src);
        n->variant->run(call);
    }
    return TG_OK;
}

static tg_status run_node(tgi_exec *e, int k, tgi_range rows, tgi_err *err)
{
    const tgi_cell *c = &e->cell;
    const tgi_net_node *n = tgi_stage_node(c->stage, k);
    if (n->flat)
        return run_flat(c, k, err);
    tgi_operand src[TGI_MAX_OPERANDS];
    tgi_view dst[TGI_OP_MAX_DST];
    (void)tgi_cell_operands(c, k, e->seg, src);
    for (int d = 0; d < n->ctx.n_dst; d++)
        dst[d] = c->view[n->node->dst[d]];
    tgi_call call = {.ctx = &n->ctx,
                     .src = src,
                     .dst = dst,
                     .box = tgi_cell_rows(c, n->node->dst[0], rows),
                     .epi = n->epi,
                     .n_epi = n->n_epi,
                     .packed = e->packed + n->packed_offset,
                     .scratch = scratch_of(c, k),
                     .in_pieces = tgi_stage_pieces_of(c->stage, k),
                     .threads = e->pool};
    if (tgi_box_empty(&call.box))
        return TG_OK;
    if (call.in_pieces) {
        TGI_TRY(run_in_pieces(e, k, &call, e->seg, src, err));
    } else if (n->variant) {
        n->variant->run(&call);
    } else {
        TGI_TRY(n->node->op->ref(&call, err));
        tgi_epilogue_apply(c->net->be, &call);
    }
    for (int d = 0; d < n->ctx.n_dst; d++)
        zero_outside(c, n->node->dst[d], &call.box);
    return TG_OK;
}

static tg_status run_timed(tgi_exec *e, int k, tgi_range rows, tgi_err *err)
{
    if (!e->node_clock)
        return run_node(e, k, rows, err);
    const double t0 = e->node_clock();
    const tg_status st = run_node(e, k, rows, err);
    e->node_seconds[k] += e->node_clock() - t0;
    return st;
}

/* ---- One band ---------------------------------------------------------------------------- */

static tg_status feed_inputs(tgi_exec *e, tgi_err *err)
{
    tgi_cell *c = &e->cell;
    for (int i = 0; i < c->stage->n_loaded; i++) {
        const int v = c->stage->in[i].value;
        const tgi_range r = tgi_flow_feed(&c->flow, i);
        const tgi_box box = tgi_cell_rows(c, v, r);
        if (tgi_box_empty(&box) || c->stage->in[i].in_place || c->stage->in[i].in_pieces)
            continue;
        TGI_TRY(e->io.load(e->io.user, i, &c->view[v], &box, err));
        zero_outside(c, v, &box);
    }
    return TG_OK;
}

static tg_status hand_out(tgi_exec *e, tgi_err *err)
{
    const tgi_cell *c = &e->cell;
    for (int o = 0; o < c->stage->n_out; o++) {
        const tgi_box box = tgi_cell_kept(c, o, e->before[o]);
        if (!tgi_box_empty(&box))
            TGI_TRY(e->io.store(e->io.user, o, &c->view[c->stage->out[o].value], &box, err));
    }
    return TG_OK;
}

static tg_status run_nodes(tgi_exec *e, tgi_err *err)
{
    tgi_cell *c = &e->cell;
    for (int k = 0; k < c->stage->n_nodes; k++) {
        if (e->io.stop)
            TGI_TRY(e->io.stop(e->io.user, err));
        const tgi_range rows = tgi_flow_advance(&c->flow, k);
        if (!tgi_range_empty(rows))
            TGI_TRY(run_timed(e, k, rows, err));
    }
    return TG_OK;
}

tg_status tgi_exec_band(tgi_exec *e, int *done, tgi_err *err)
{
    tgi_cell *c = &e->cell;
    for (int o = 0; o < c->stage->n_out; o++)
        e->before[o] = c->flow.end[c->stage->out[o].value];
    e->in_pieces = 0;
    const double t0 = tgi_seconds();
    TGI_TRY(feed_inputs(e, err));
    const double t1 = tgi_seconds();
    tgi_busy_begin(e->busy);
    const tg_status st = run_nodes(e, err);
    tgi_busy_end(e->busy);
    TGI_TRY(st);
    const double t2 = tgi_seconds();
    TGI_TRY(hand_out(e, err));
    e->seconds.load += t1 - t0 + e->in_pieces;
    e->seconds.compute += t2 - t1 - e->in_pieces;
    e->seconds.store += tgi_seconds() - t2;
    tgi_flow_release(&c->flow);
    *done = tgi_flow_done(&c->flow);
    return TG_OK;
}

tg_status tgi_exec_cell(tgi_exec *e, const tgi_range *core, tgi_err *err)
{
    for (int done = !tgi_exec_begin(e, core); !done;)
        TGI_TRY(tgi_exec_band(e, &done, err));
    return TG_OK;
}

void tgi_exec_next_load(const tgi_exec *e, int i, tgi_box *box)
{
    *box = tgi_cell_next_load(&e->cell, i);
}

tgi_exec_times tgi_exec_seconds(const tgi_exec *e)
{
    return e->seconds;
}

void tgi_exec_watch(tgi_exec *e, tgi_busy *busy)
{
    e->busy = busy;
}

void tgi_exec_time_nodes(tgi_exec *e, double (*clock)(void), double *seconds)
{
    e->node_clock = clock;
    e->node_seconds = seconds;
}

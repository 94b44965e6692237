/* cell.c - moves the intervals and views of all values from band to band. */
#include "engine/exec/cell.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"

#include <string.h>

tg_status tgi_cell_open(tgi_cell *c, const tgi_tiling *t, void *arena, tgi_err *err)
{
    const size_t nv = (size_t)t->net->n_values + 1;
    *c = (tgi_cell){.t = t, .stage = t->stage, .net = t->net, .arena = arena};
    c->ranges = tgi_calloc(TGI_TAG_PLAN, 6 * nv, sizeof *c->ranges);
    c->view = tgi_calloc(TGI_TAG_PLAN, nv, sizeof *c->view);
    tg_status st = tgi_flow_open(&c->flow, t->stage, err);
    if (st == TG_OK && (!c->ranges || !c->view))
        st = tgi_fail(err, TG_E_NOMEM, "no memory for the executor's views");
    if (st != TG_OK) {
        tgi_cell_close(c);
        return st;
    }
    for (int a = 0; a < 3; a++) {
        c->stored[a] = c->ranges + (size_t)(2 * a) * nv;
        c->inside[a] = c->ranges + (size_t)(2 * a + 1) * nv;
    }
    return TG_OK;
}

size_t tgi_cell_bytes(const tgi_tiling *t)
{
    const size_t nv = (size_t)t->net->n_values + 1;
    return nv * (6 * sizeof(tgi_range) + sizeof(tgi_view)) + tgi_flow_bytes(t->stage);
}

void tgi_cell_close(tgi_cell *c)
{
    tgi_flow_close(&c->flow);
    tgi_free(c->ranges);
    tgi_free(c->view);
    memset(c, 0, sizeof *c);
}

static void make_view(tgi_cell *c, int v)
{
    const tgi_net_value *val = &c->net->values[v];
    const tgi_slot *s = &c->t->slot[v];
    const int x = c->net->rank - 1 - TGI_STREAM_AXIS;
    tgi_view *w = &c->view[v];
    *w = (tgi_view){.base = (float *)(void *)((char *)c->arena + s->offset),
                    .c = val->c,
                    .cb = val->cb,
                    .x0 = c->stored[x][v].lo,
                    .width = s->width,
                    .block_pitch = s->block_pitch};
    if (c->net->rank == 4) {
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

void tgi_cell_begin(tgi_cell *c, const tgi_range *core)
{
    const tgi_net *net = c->net;
    for (int a = 0; a < net->rank - TGI_STREAM_AXIS; a++)
        c->core[a] = core[a];
    tgi_flow_begin(&c->flow, core[0], c->t->band);
    for (int axis = TGI_STREAM_AXIS + 1; axis < net->rank; axis++)
        tgi_axis_need(c->stage, axis, core[axis - TGI_STREAM_AXIS],
                      c->stored[axis - TGI_STREAM_AXIS], c->inside[axis - TGI_STREAM_AXIS]);
    for (int v = 0; v < net->n_values; v++)
        if (c->stage->values[v].live)
            make_view(c, v);
}

tgi_box tgi_cell_rows(const tgi_cell *c, int v, tgi_range r)
{
    tgi_box b = tgi_box_full(&c->net->values[v].ext);
    b.ax[TGI_STREAM_AXIS] = r;
    for (int axis = TGI_STREAM_AXIS + 1; axis < b.rank; axis++)
        b.ax[axis] = c->inside[axis - TGI_STREAM_AXIS][v];
    return b;
}

tgi_box tgi_cell_kept(const tgi_cell *c, int o, int64_t from)
{
    const int v = c->stage->out[o].value;
    tgi_box box = tgi_cell_rows(c, v, (tgi_range){from, c->flow.end[v]});
    for (int axis = TGI_STREAM_AXIS; axis < c->net->rank; axis++) {
        const tgi_range core =
            tgi_axis_share(c->stage, axis, o, c->core[axis - TGI_STREAM_AXIS]);
        box.ax[axis] = tgi_range_clip(box.ax[axis], core.lo, core.hi);
    }
    if (c->stage->out[o].pick != TGI_PICK_NONE)
        box.ax[1] = (tgi_range){0, 1};
    return box;
}

tgi_box tgi_cell_next_load(const tgi_cell *c, int i)
{
    /* Feeding moves the ends of input 0 and of input i alone: put them back. */
    tgi_flow ahead = c->flow;
    const int v0 = c->stage->in[0].value, v = c->stage->in[i].value;
    const int64_t end0 = ahead.end[v0], end = ahead.end[v];
    tgi_range r = tgi_flow_feed(&ahead, 0);
    if (i > 0)
        r = tgi_flow_feed(&ahead, i);
    ahead.end[v] = end;
    ahead.end[v0] = end0;
    return tgi_cell_rows(c, v, r);
}

int tgi_cell_operands(const tgi_cell *c, int k, tgi_view *seg, tgi_operand *src)
{
    const tgi_net_node *n = tgi_stage_node(c->stage, k);
    int used = 0;
    for (int j = 0; j < n->n_operands; j++) {
        src[j] = (tgi_operand){n->operand[j].n_seg, seg + used};
        for (int s = 0; s < n->operand[j].n_seg; s++, used++) {
            seg[used] = c->view[n->operand[j].value[s]];
            seg[used].doubled = n->operand[j].doubled[s];
        }
    }
    return used;
}

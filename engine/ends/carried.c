/* carried.c - see carried.h. */
#include "engine/ends/carried.h"

#include "engine/base/arith.h"
#include "engine/base/size.h"
#include "engine/exec/dense.h"

#include <string.h>

int tgi_carried_is(const tgi_graph *g, int port)
{
    return port < g->n_in && tgi_graph_tied_to(g, port) >= 0;
}

static size_t bytes_of(const tgi_desc *d)
{
    size_t n = sizeof(float);
    for (int a = 0; a < d->rank; a++)
        n = tgi_sat_mul(n, (size_t)d->dim[a]);
    return tgi_align_size(n, 64);
}

size_t tgi_carried_bytes(const tgi_graph *g, const tgi_shapes *s)
{
    size_t all = 0;
    for (int i = 0; i < g->n_in; i++)
        if (tgi_carried_is(g, i))
            all = tgi_sat_add(all, tgi_sat_mul(2, bytes_of(&s->desc[g->in[i].value])));
    return all;
}

void tgi_carried_open(tgi_carried *c, const tgi_graph *g, const tgi_net *net, void *memory)
{
    char *at = memory;
    *c = (tgi_carried){.net = net};
    for (int i = 0; i < g->n_in; i++) {
        if (!tgi_carried_is(g, i))
            continue;
        tgi_carried_value *v = &c->value[c->n++];
        *v = (tgi_carried_value){.in = i,
                                 .out = tgi_graph_tied_to(g, i),
                                 .bytes = bytes_of(&net->shapes.desc[net->in[i]])};
        v->now = at;
        v->next = at + v->bytes;
        at += 2 * v->bytes;
        memset(v->now, 0, 2 * v->bytes);
    }
}

static void zero_box(const tgi_view *v, const tgi_box *box)
{
    const int64_t blocks = tgi_view_blocks(v);
    const tgi_range z = box->rank == 5 ? box->ax[2] : (tgi_range){0, 1};
    for (int64_t c = 0; c < blocks * v->cb; c++)
        for (int64_t s = z.lo; s < z.hi; s++)
            for (int64_t y = box->ax[box->rank - 2].lo; y < box->ax[box->rank - 2].hi; y++)
                for (int64_t x = box->ax[box->rank - 1].lo; x < box->ax[box->rank - 1].hi; x++)
                    *tgi_view_at(v, c, s, y, x) = 0;
}

void tgi_carried_load(const tgi_carried *c, int port, const tgi_view *view, const tgi_box *box)
{
    for (int k = 0; k < c->n; k++) {
        const tgi_carried_value *v = &c->value[k];
        if (v->in != port)
            continue;
        const tgi_view from = tgi_dense_view(c->net, c->net->in[port], (float *)(void *)v->now);
        tgi_copy_box(&from, view, from.c, box);
        tgi_clear_lanes(view, box);
        return;
    }
    zero_box(view, box);
}

void tgi_carried_store(const tgi_carried *c, int port, const tgi_view *view, const tgi_box *box)
{
    for (int k = 0; k < c->n; k++) {
        const tgi_carried_value *v = &c->value[k];
        if (v->out != port)
            continue;
        const tgi_view to = tgi_dense_view(c->net, c->net->out[port], (float *)(void *)v->next);
        tgi_copy_box(view, &to, to.c, box);
    }
}

void tgi_carried_turn(tgi_carried *c)
{
    for (int k = 0; k < c->n; k++) {
        char *was = c->value[k].now;
        c->value[k].now = c->value[k].next;
        c->value[k].next = was;
    }
}

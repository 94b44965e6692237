/* carried.c - see carried.h. */
#include "engine/ends/carried.h"

#include "engine/base/arith.h"
#include "engine/base/size.h"
#include "engine/exec/dense.h"

#include <string.h>

int tgi_carried_is(const tgi_graph *g, int port)
{
    return port < g->n_in && tgi_graph_tied_to(g, port) != -1;
}

static size_t bytes_of(const tgi_desc *d)
{
    size_t n = sizeof(float);
    for (int a = 0; a < d->rank; a++)
        n = tgi_sat_mul(n, (size_t)d->dim[a]);
    return tgi_align_size(n, 64);
}

static size_t appended_bytes(const tgi_mapping *m)
{
    const tgi_desc d = {TG_DTYPE_F32, 3, {m->appended, m->extent[1], m->extent[2]}};
    return m->appended ? bytes_of(&d) : 0;
}

size_t tgi_carried_bytes(const tgi_graph *g, const tgi_shapes *s, const tgi_mapping *m)
{
    size_t all = appended_bytes(m);
    for (int i = 0; i < g->n_in; i++)
        if (tgi_carried_is(g, i))
            all = tgi_sat_add(all, tgi_sat_mul(tgi_graph_tied_to(g, i) < 0 ? 1 : 2,
                                               bytes_of(&s->desc[g->in[i].value])));
    return all;
}

void tgi_carried_open(tgi_carried *c, const tgi_graph *g, const tgi_net *net,
                      const tgi_mapping *m, void *memory)
{
    char *at = memory;
    *c = (tgi_carried){.net = net};
    for (int i = 0; i < g->n_in; i++) {
        if (!tgi_carried_is(g, i))
            continue;
        tgi_carried_value *v = &c->value[c->n++];
        *v = (tgi_carried_value){.in = i,
                                 .out = tgi_graph_tied_to(g, i),
                                 .bytes = bytes_of(&net->shapes.desc[net->in[i]]),
                                 .now = at};
        at += v->bytes;
        if (v->out >= 0) {
            v->next = at;
            at += v->bytes;
        }
    }
    c->appended = m->appended ? (float *)(void *)at : NULL;
    memset(memory, 0, (size_t)(at - (char *)memory) + appended_bytes(m));
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

void tgi_carried_append(const tgi_carried *c, const tgi_mapping *m, const int64_t shift[3],
                        const tgi_view *view, const tgi_box *box)
{
    const tgi_range y = box->ax[box->rank - 2], x = box->ax[box->rank - 1];
    for (int64_t k = 0; k < m->appended; k++)
        for (int64_t i = y.lo; i < y.hi; i++) {
            const int64_t sy = tgi_pad_index(m->pad, i - shift[1], m->extent[1]);
            const float *row = c->appended && sy >= 0
                                   ? c->appended + (k * m->extent[1] + sy) * m->extent[2]
                                   : NULL;
            for (int64_t j = x.lo; j < x.hi; j++) {
                const int64_t sx = tgi_pad_index(m->pad, j - shift[2], m->extent[2]);
                *tgi_view_at(view, m->channels + k, 0, i, j) = row && sx >= 0 ? row[sx] : 0;
            }
        }
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
        if (!c->value[k].next)
            continue;
        c->value[k].now = c->value[k].next;
        c->value[k].next = was;
    }
}

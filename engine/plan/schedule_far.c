/* schedule_far.c - which buffers of a schedule stay on the device (schedule.h).
 *
 * What stays is not copied: every pass that reads or writes it saves its bytes on their way. So buffers are taken by
 * passes for each byte, while they fit. Those that are copied into each other, or change places, stay or go together. */
#include "engine/plan/schedule.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/base/size.h"

#include <stdlib.h>

#define ALIGN ((size_t)256)

tg_dtype tgi_sched_type(const tgi_net *net, int value)
{
    return net->be->element == TG_DTYPE_F16 && !net->values[value].wide ? TG_DTYPE_F16
                                                                        : TG_DTYPE_F32;
}

size_t tgi_sched_far_bytes(const tgi_sched_buffer *b, tg_dtype type)
{
    const size_t n = (size_t)(b->shape[0] * b->shape[1] * b->shape[2]);
    return tgi_align_size(tgi_sat_mul(n, tgi_dtype_size(type)), ALIGN);
}

static int first_of(const tgi_schedule *s, int buffer)
{
    while (s->buffer[buffer].with != buffer)
        buffer = s->buffer[buffer].with;
    return buffer;
}

static void join(tgi_schedule *s, int a, int b)
{
    s->buffer[first_of(s, b)].with = first_of(s, a);
}

static void note_net(tgi_schedule *s, const tgi_sched_step *p)
{
    const int times = p->repeat > 1 ? p->repeat : 1;
    for (int i = 0; i < p->n_in; i++)
        tgi_schedule_reads(s, p->net, i, p->in[i], times);
    for (int i = 0; i < p->n_out; i++)
        tgi_schedule_writes(s, p->net, i, p->out[i], times);
    for (int k = 0; k < p->n_state; k++)
        join(s, p->in[p->state_in[k]], p->out[p->state_out[k]]);
}

static void note_step(tgi_schedule *s, const tgi_sched_step *p)
{
    if (p->net >= 0) {
        note_net(s, p);
        return;
    }
    const int here = p->net == TGI_SCHED_WORK;
    for (int i = 0; i < p->n_in; i++)
        s->buffer[p->in[i]].here |= here;
    for (int i = 0; i < p->n_out; i++)
        s->buffer[p->out[i]].here |= here;
    for (int i = 0; i < p->n_in && !here; i++)
        join(s, p->in[i], p->out[i]);
}

static void note_binding(tgi_schedule *s, const tgi_sched_binding *b)
{
    const tgi_net *n = s->net[b->net].net;
    s->buffer[b->buffer].uses += b->times;
    if (b->is_out)
        s->buffer[b->buffer].wide |= tgi_sched_type(n, n->out[b->port]) == TG_DTYPE_F32;
}

typedef struct group {
    int first;
    tg_dtype type;
    size_t bytes;
    double saved; /* bytes that need not be copied */
} group;

static group group_of(const tgi_schedule *s, int first)
{
    group g = {.first = first, .type = s->device->be->element};
    int here = 0;
    for (int i = 0; i < s->n_buffers; i++)
        if (first_of(s, i) == first) {
            here |= s->buffer[i].here;
            g.type = s->buffer[i].wide || g.type != TG_DTYPE_F16 ? TG_DTYPE_F32 : g.type;
        }
    for (int i = 0; i < s->n_buffers; i++)
        if (first_of(s, i) == first) {
            const size_t bytes = tgi_sched_far_bytes(&s->buffer[i], g.type);
            g.bytes = tgi_sat_add(g.bytes, bytes);
            g.saved += here ? 0 : (double)bytes * (double)s->buffer[i].uses;
        }
    return g;
}

static int by_passes(const void *a, const void *b)
{
    const group *x = a, *y = b;
    const double p = x->saved / (double)x->bytes, q = y->saved / (double)y->bytes;
    return p > q ? -1 : p < q ? 1 : x->first - y->first;
}

static void choose(tgi_schedule *s, group *g, int n)
{
    size_t left = s->device->far;
    qsort(g, (size_t)n, sizeof *g, by_passes);
    for (int k = 0; k < n && g[k].saved > 0; k++) {
        if (g[k].bytes > left) {
            s->far_missed = tgi_sat_add(s->far_missed, g[k].bytes);
            continue;
        }
        left -= g[k].bytes;
        for (int i = 0; i < s->n_buffers; i++)
            if (first_of(s, i) == g[k].first)
                s->buffer[i].type = g[k].type;
    }
}

/* Buffers whose steps are apart share their places. */
static tg_status place(tgi_schedule *s, tgi_item *item, tgi_err *err)
{
    size_t bound;
    for (int i = 0; i < s->n_buffers; i++) {
        const tgi_sched_buffer *b = &s->buffer[i];
        const int stays = b->type != TG_DTYPE_NONE, used = b->first <= b->last;
        item[i] = (tgi_item){.bytes = stays ? tgi_sched_far_bytes(b, b->type) : 0,
                             .first = used ? b->first : 0,
                             .last = used ? b->last : 0};
    }
    TGI_TRY(tgi_arena_pack(item, s->n_buffers, &s->far_bytes, &bound, err));
    for (int i = 0; i < s->n_buffers; i++)
        if (s->buffer[i].type != TG_DTYPE_NONE)
            s->buffer[i].offset = item[i].offset;
    return TG_OK;
}

/* Passes in which what is bound to a port stays, and others. */
typedef struct passes {
    int64_t stay, go;
} passes;

/* Bits of a net's inputs, or of its outputs. */
static void note_ports(const passes *of, int said, uint32_t *most, uint32_t *all)
{
    for (int k = 0; k < TGI_SCHED_PORTS; k++) {
        *most |= (uint32_t)(of[k].stay > of[k].go) << k;
        *all |= (uint32_t)(said && of[k].stay > 0 && of[k].go == 0) << k;
    }
}

static tg_status note_stays(tgi_schedule *s, tgi_err *err)
{
    const size_t of_net = (size_t)2 * TGI_SCHED_PORTS;
    passes *list = tgi_calloc(TGI_TAG_PLAN, (size_t)s->n_nets * of_net, sizeof *list);
    if (!list)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a schedule");
    for (int i = 0; i < s->n_bindings; i++) {
        const tgi_sched_binding *b = &s->binding[i];
        passes *p =
            &list[(size_t)b->net * of_net + (size_t)(b->is_out * TGI_SCHED_PORTS + b->port)];
        *(tgi_schedule_stays(s, b->buffer) ? &p->stay : &p->go) += b->times;
    }
    for (int i = 0; i < s->n_nets; i++) {
        tgi_sched_net *n = &s->net[i];
        const passes *of = &list[(size_t)i * of_net];
        const int said = n->said || !n->called; /* steps say all of theirs */
        note_ports(of, said, &n->stays.in, &n->always.in);
        note_ports(of + TGI_SCHED_PORTS, said, &n->stays.out, &n->always.out);
    }
    tgi_free(list);
    return TG_OK;
}

tg_status tgi_schedule_plan_far(tgi_schedule *s, tgi_err *err)
{
    int n = 0;
    if (!s->device || !s->device->far || !s->n_buffers)
        return TG_OK;
    group *g = tgi_calloc(TGI_TAG_PLAN, (size_t)s->n_buffers, sizeof *g);
    tgi_item *item = tgi_calloc(TGI_TAG_PLAN, (size_t)s->n_buffers, sizeof *item);
    tg_status st = g && item ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory for a schedule");
    if (st == TG_OK) {
        for (int i = 0; i < s->n_buffers; i++)
            s->buffer[i].with = i;
        for (int k = 0; k < s->n_steps; k++)
            note_step(s, &s->step[k]);
        for (int i = 0; i < s->n_bindings; i++)
            note_binding(s, &s->binding[i]);
        for (int i = 0; i < s->n_buffers; i++)
            if (first_of(s, i) == i)
                g[n++] = group_of(s, i);
        choose(s, g, n);
        st = s->st != TG_OK ? tgi_fail(err, s->st, "%s", s->err.text) : note_stays(s, err);
        if (st == TG_OK)
            st = place(s, item, err);
    }
    tgi_free(g);
    tgi_free(item);
    return st;
}

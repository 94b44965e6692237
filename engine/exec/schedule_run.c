/* schedule_run.c - see schedule_run.h. */
#include "engine/exec/schedule_run.h"

#include "engine/base/mem.h"
#include "engine/exec/dense.h"

#include <string.h>

typedef struct bound {
    tgi_exec *exec; /* or, on a device, */
    tgi_sched_on_card *far;
    const tgi_stage *stage;
    tgi_sched_at in[TGI_MAX_PORTS], out[TGI_MAX_PORTS];
    tgi_schedule_run *of;
} bound;

struct tgi_schedule_run {
    const tgi_schedule *s;
    tgi_schedule_memory m;
    bound *net; /* n_nets */
    /* n_buffers: */
    tgi_sched_at *place;
    void **at; /* for functions; NULL: it stays on the device */
};

/* All of value v as it lies in a buffer. */
static tgi_view view_of(const bound *b, int v, const tgi_sched_at *p)
{
    const tgi_net *net = b->stage->net;
    const tgi_net_value *is = &net->values[v];
    tgi_view w = tgi_dense_view(net, v, (float *)(uintptr_t)p->at);
    if (is->cb == 1 || !b->of->s->lanes)
        return w;
    w.cb = is->cb;
    w.block_pitch = (size_t)(w.width * w.cb);
    w.y_pitch = (size_t)(p->row ? p->row : tgi_sched_row(w.cb, w.c, w.width));
    return w;
}

/* The same of a network on a device, whose values have other lanes than buffers. */
static tgi_view far_view(const bound *b, int v, const tgi_sched_at *p)
{
    tgi_view w = tgi_dense_view(b->stage->net, v, (float *)(uintptr_t)p->at);
    const int lanes = (int)tgi_sched_lanes(b->of->s->lanes, w.c);
    if (lanes == 1)
        return w;
    w.cb = lanes;
    w.block_pitch = (size_t)(w.width * lanes);
    w.y_pitch = (size_t)(p->row ? p->row : tgi_sched_row(lanes, w.c, w.width));
    return w;
}

static const tgi_sched_at *far_in(void *user, int i)
{
    const bound *b = user;
    return &b->in[tgi_net_port(b->stage->net, b->stage->in[i].value)];
}

static const tgi_sched_at *far_out(void *user, int o)
{
    const bound *b = user;
    return &b->out[b->stage->out[o].port];
}

static tgi_view far_from(void *user, int i)
{
    const bound *b = user;
    return far_view(b, b->stage->in[i].value, far_in(user, i));
}

static tgi_view far_to(void *user, int o)
{
    const bound *b = user;
    return far_view(b, b->stage->out[o].value, far_out(user, o));
}

/* Whole blocks, row by row; from lanes to lanes. */
static void copy_blocks(const tgi_view *from, const tgi_view *to, const tgi_box *box)
{
    const tgi_range y = box->ax[2], x = box->ax[3];
    const size_t n = (size_t)(tgi_range_len(x) * from->cb) * sizeof(float);
    for (int64_t r = y.lo; r < y.hi; r++)
        for (int64_t k = 0; k < tgi_view_blocks(from); k++)
            memcpy(tgi_view_row(to, k, 0, r) + (x.lo - to->x0) * to->cb,
                   tgi_view_row(from, k, 0, r) + (x.lo - from->x0) * from->cb, n);
}

static tg_status load(void *user, int i, const tgi_view *view, const tgi_box *box, tgi_err *err)
{
    const bound *b = user;
    const int v = b->stage->in[i].value;
    const tgi_view from = view_of(b, v, &b->in[tgi_net_port(b->stage->net, v)]);
    (void)err;
    if (from.cb == view->cb && from.cb > 1) {
        copy_blocks(&from, view, box);
        return TG_OK;
    }
    tgi_copy_box(&from, view, view->c, box);
    tgi_clear_lanes(view, box);
    return TG_OK;
}

static tg_status store(void *user, int o, const tgi_view *view, const tgi_box *box,
                       tgi_err *err)
{
    const bound *b = user;
    const tgi_sched_at *p = &b->out[b->stage->out[o].port];
    (void)err;
    if (!p->at)
        return TG_OK;
    const tgi_view to = view_of(b, b->stage->out[o].value, p);
    if (to.cb == view->cb && to.cb > 1)
        copy_blocks(view, &to, box);
    else
        tgi_copy_box(view, &to, view->c, box);
    return TG_OK;
}

static const float *place(void *user, int i)
{
    const bound *b = user;
    return b->in[tgi_net_port(b->stage->net, b->stage->in[i].value)].at;
}

static tg_status stop(void *user, tgi_err *err)
{
    const tgi_schedule_run *r = ((bound *)user)->of;
    return r->m.stop ? r->m.stop(r->m.stop_user, err) : TG_OK;
}

static tg_status open_net(tgi_schedule_run *r, int i, tgi_err *err)
{
    const tgi_sched_net *n = &r->s->net[i];
    char *weights = (char *)r->m.weights + n->weights_at;
    bound *b = &r->net[i];
    *b = (bound){.of = r, .stage = n->choice.tiling.stage};
    if (r->s->device) {
        const tgi_sched_ends ends = {b, far_in, far_out, far_from, far_to, stop};
        return tgi_sched_on_card_open(r->m.card, n, &ends, &b->far, err);
    }
    const tgi_exec_io io = {
        .user = b, .load = load, .store = store, .stop = stop, .place = place};
    TGI_TRY(tgi_net_load(n->net, weights, r->m.pool, err));
    return tgi_exec_open(&n->choice.tiling, weights, (char *)r->m.block + n->arena_at,
                         r->m.pool, &io, &b->exec, err);
}

tg_status tgi_schedule_open(const tgi_schedule *s, const tgi_schedule_memory *m,
                            tgi_schedule_run **out, tgi_err *err)
{
    tgi_schedule_run *r = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *r);
    if (!r)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a schedule");
    *out = r;
    r->s = s;
    r->m = *m;
    r->net = tgi_calloc(TGI_TAG_PLAN, (size_t)s->n_nets + 1, sizeof *r->net);
    r->at = tgi_calloc(TGI_TAG_PLAN, (size_t)s->n_buffers + 1, sizeof *r->at);
    r->place = tgi_calloc(TGI_TAG_PLAN, (size_t)s->n_buffers + 1, sizeof *r->place);
    tg_status st = r->net && r->at && r->place ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory");
    for (int i = 0; i < s->n_buffers && st == TG_OK; i++) {
        const int far = s->buffer[i].type != TG_DTYPE_NONE;
        char *at = (char *)(far ? m->card->far : m->block) + s->buffer[i].offset;
        r->at[i] = far ? NULL : at;
        r->place[i] = (tgi_sched_at){(const float *)(void *)at, 0, s->buffer[i].type};
    }
    for (int i = 0; i < s->n_nets && st == TG_OK; i++) {
        st = open_net(r, i, err);
        if (m->packed)
            m->packed(m->packed_user);
    }
    if (st != TG_OK)
        tgi_schedule_close(out);
    return st;
}

size_t tgi_schedule_tables(const tgi_schedule *s)
{
    size_t all = sizeof(tgi_schedule_run) + ((size_t)s->n_nets + 1) * sizeof(bound) +
                 ((size_t)s->n_buffers + 1) * (sizeof(void *) + sizeof(tgi_sched_at));
    for (int i = 0; i < s->n_nets; i++)
        all += s->device ? tgi_sched_on_card_bytes(&s->net[i])
                         : tgi_exec_bytes(&s->net[i].choice.tiling);
    return all;
}

void tgi_schedule_close(tgi_schedule_run **rp)
{
    tgi_schedule_run *r = *rp;
    if (!r)
        return;
    for (int i = 0; r->net && i < r->s->n_nets; i++) {
        tgi_exec_close(&r->net[i].exec);
        tgi_sched_on_card_close(&r->net[i].far);
    }
    tgi_free(r->net);
    tgi_free(r->at);
    tgi_free(r->place);
    tgi_free(r);
    *rp = NULL;
}

tgi_exec *tgi_schedule_exec(const tgi_schedule_run *r, int net)
{
    return r->net[net].exec;
}

void *tgi_schedule_at(const tgi_schedule_run *r, int buffer)
{
    return r->at[buffer];
}

tgi_sched_at tgi_schedule_place(const tgi_schedule_run *r, int buffer)
{
    return r->place[buffer];
}

tgi_sched_at tgi_schedule_part(const tgi_schedule_run *r, tgi_sched_at all, int64_t c,
                               int64_t w, int i, int n)
{
    const int far = all.type != TG_DTYPE_NONE;
    const int64_t own = far ? c : tgi_sched_row(r->s->lanes, c, w);
    const size_t size = far ? tgi_dtype_size(all.type) : sizeof(float);
    const char *at = (const char *)all.at + (size_t)(i * own) * size;
    return (tgi_sched_at){(const float *)(const void *)at, n * own, all.type};
}

/* All of an array of the host's memory. */
static tgi_view host_view(const tgi_schedule_run *r, const int64_t shape[3], const float *at)
{
    const int lanes = (int)tgi_sched_lanes(r->s->lanes, shape[0]);
    const int64_t h = shape[1], w = shape[2];
    return (tgi_view){.base = (float *)(uintptr_t)at,
                      .c = shape[0],
                      .cb = lanes,
                      .width = w,
                      .block_pitch = (size_t)(lanes > 1 ? w * lanes : h * w),
                      .y_pitch = (size_t)(lanes > 1 ? tgi_sched_row(lanes, shape[0], w) : w),
                      .z_ring = 1,
                      .y_ring = h};
}

tg_status tgi_schedule_put(tgi_schedule_run *r, const int64_t shape[3], const float *from,
                           tgi_sched_at to, tgi_err *err)
{
    if (to.type == TG_DTYPE_NONE) {
        const int64_t n = tgi_sched_floats(r->s->lanes, shape[0], shape[1], shape[2]);
        memcpy((void *)(uintptr_t)to.at, from, (size_t)n * sizeof *from);
        return TG_OK;
    }
    const tgi_view v = host_view(r, shape, from);
    return tgi_sched_card_put(r->m.card, &v, shape[1], to, err);
}

/* ---- Steps ------------------------------------------------------------------------------- */

static tg_status run_cells(tgi_schedule_run *r, int net, tgi_err *err)
{
    const tgi_tiling *t = &r->s->net[net].choice.tiling;
    tgi_range core[3];
    for (int64_t k = 0; k < t->cells; k++) {
        tgi_tiling_cell(t, k, core);
        TGI_TRY(r->net[net].far ? tgi_sched_on_card_cell(r->net[net].far, k, core, err)
                                : tgi_exec_cell(r->net[net].exec, core, err));
    }
    return TG_OK;
}

/* Output k becomes the input of the next time: the two buffers change places. */
static void hand_on(bound *b, const tgi_sched_step *p)
{
    for (int k = 0; k < p->n_state; k++) {
        const tgi_sched_at given = b->out[p->state_out[k]];
        b->out[p->state_out[k]] = b->in[p->state_in[k]];
        b->in[p->state_in[k]] = given;
    }
}

/* What lies there becomes the buffer's; NULL: it becomes 0. */
static tg_status copy(const tgi_schedule_run *r, int to, const tgi_sched_at *from, tgi_err *err)
{
    const tgi_sched_buffer *b = &r->s->buffer[to];
    if (b->type != TG_DTYPE_NONE)
        return tgi_sched_card_copy(r->m.card, (void *)(uintptr_t)r->place[to].at,
                                   from ? from->at : NULL, tgi_sched_far_bytes(b, b->type),
                                   err);
    if (from)
        memcpy(r->at[to], from->at, b->bytes);
    else
        memset(r->at[to], 0, b->bytes);
    return TG_OK;
}

tg_status tgi_schedule_clear(tgi_schedule_run *r, int buffer, tgi_err *err)
{
    return copy(r, buffer, NULL, err);
}

static tg_status run_copy(const tgi_schedule_run *r, const tgi_sched_step *p, tgi_err *err)
{
    for (int i = 0; i < p->n_out; i++)
        TGI_TRY(copy(r, p->out[i], i < p->n_in ? &r->place[p->in[i]] : NULL, err));
    return TG_OK;
}

/* After an even number of times what came last lies in the input's buffer. */
static tg_status settle(const tgi_schedule_run *r, const tgi_sched_step *p, tgi_err *err)
{
    for (int k = 0; k < p->n_state; k++) {
        const int to = p->out[p->state_out[k]];
        const tgi_sched_at *last = &r->net[p->net].out[p->state_out[k]];
        if (last->at != r->place[to].at)
            TGI_TRY(copy(r, to, last, err));
    }
    return TG_OK;
}

static tg_status run_net(tgi_schedule_run *r, const tgi_sched_step *p, tgi_err *err)
{
    bound *b = &r->net[p->net];
    const int times = p->repeat > 1 ? p->repeat : 1;
    memset(b->out, 0, sizeof b->out);
    for (int i = 0; i < p->n_in; i++)
        b->in[i] = r->place[p->in[i]];
    for (int i = 0; i < p->n_out; i++)
        b->out[i] = r->place[p->out[i]];
    for (int i = 0; i < times; i++) {
        if (i)
            hand_on(b, p);
        TGI_TRY(run_cells(r, p->net, err));
    }
    return settle(r, p, err);
}

static tg_status run_step(tgi_schedule_run *r, const tgi_sched_step *p, void *user,
                          tgi_err *err)
{
    if (p->net == TGI_SCHED_COPY)
        return run_copy(r, p, err);
    return p->net == TGI_SCHED_WORK ? p->work(user, p, r->at, err) : run_net(r, p, err);
}

tg_status tgi_schedule_steps(tgi_schedule_run *r, int from, int until, void *user, tgi_err *err)
{
    for (int k = from; k < until; k++)
        TGI_TRY(run_step(r, &r->s->step[k], user, err));
    return TG_OK;
}

tg_status tgi_schedule_call(tgi_schedule_run *r, int net, const tgi_sched_at *in,
                            const tgi_sched_at *out, tgi_err *err)
{
    bound *b = &r->net[net];
    memcpy(b->in, in, (size_t)b->stage->net->n_in * sizeof *in);
    memcpy(b->out, out, (size_t)b->stage->net->n_out * sizeof *out);
    return run_cells(r, net, err);
}

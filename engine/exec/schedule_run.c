/* schedule_run.c - see schedule_run.h. */
#include "engine/exec/schedule_run.h"

#include "engine/base/mem.h"
#include "engine/exec/dense.h"

#include <string.h>

typedef struct bound {
    tgi_exec *exec;
    const tgi_stage *stage;
    tgi_sched_at in[TGI_MAX_PORTS], out[TGI_MAX_PORTS];
    tgi_schedule_run *of;
} bound;

struct tgi_schedule_run {
    const tgi_schedule *s;
    tgi_schedule_memory m;
    bound *net; /* n_nets */
    void **at;  /* n_buffers */
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
    tg_status st = r->net && r->at ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory");
    for (int i = 0; i < s->n_buffers && st == TG_OK; i++)
        r->at[i] = (char *)m->block + s->buffer[i].offset;
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
                 ((size_t)s->n_buffers + 1) * sizeof(void *);
    for (int i = 0; i < s->n_nets; i++)
        all += tgi_exec_bytes(&s->net[i].choice.tiling);
    return all;
}

void tgi_schedule_close(tgi_schedule_run **rp)
{
    tgi_schedule_run *r = *rp;
    if (!r)
        return;
    for (int i = 0; r->net && i < r->s->n_nets; i++)
        tgi_exec_close(&r->net[i].exec);
    tgi_free(r->net);
    tgi_free(r->at);
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

/* ---- Steps ------------------------------------------------------------------------------- */

static tg_status run_cells(tgi_schedule_run *r, int net, tgi_err *err)
{
    const tgi_tiling *t = &r->s->net[net].choice.tiling;
    tgi_range core[3];
    for (int64_t k = 0; k < t->cells; k++) {
        tgi_tiling_cell(t, k, core);
        TGI_TRY(tgi_exec_cell(r->net[net].exec, core, err));
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

/* After an even number of times what came last lies in the input's buffer. */
static void settle(const tgi_schedule_run *r, const tgi_sched_step *p)
{
    for (int k = 0; k < p->n_state; k++) {
        const int to = p->out[p->state_out[k]];
        const float *last = r->net[p->net].out[p->state_out[k]].at;
        if (last != r->at[to])
            memcpy(r->at[to], last, r->s->buffer[to].bytes);
    }
}

static tg_status run_net(tgi_schedule_run *r, const tgi_sched_step *p, tgi_err *err)
{
    bound *b = &r->net[p->net];
    const int times = p->repeat > 1 ? p->repeat : 1;
    memset(b->out, 0, sizeof b->out);
    for (int i = 0; i < p->n_in; i++)
        b->in[i] = (tgi_sched_at){r->at[p->in[i]], 0};
    for (int i = 0; i < p->n_out; i++)
        b->out[i] = (tgi_sched_at){r->at[p->out[i]], 0};
    for (int i = 0; i < times; i++) {
        if (i)
            hand_on(b, p);
        TGI_TRY(run_cells(r, p->net, err));
    }
    settle(r, p);
    return TG_OK;
}

tg_status tgi_schedule_steps(tgi_schedule_run *r, int from, int until, void *user, tgi_err *err)
{
    for (int k = from; k < until; k++) {
        const tgi_sched_step *p = &r->s->step[k];
        TGI_TRY(p->net == TGI_SCHED_WORK ? p->work(user, p, r->at, err) : run_net(r, p, err));
    }
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

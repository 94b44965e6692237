/* schedule_run.c - see schedule_run.h. */
#include "engine/exec/schedule_run.h"

#include "engine/base/mem.h"
#include "engine/exec/dense.h"

#include <string.h>

typedef struct bound {
    tgi_exec *exec;
    tgi_dense_io io;
    tgi_schedule_run *of;
} bound;

struct tgi_schedule_run {
    const tgi_schedule *s;
    tgi_schedule_memory m;
    bound *net; /* n_nets */
    void **at;  /* n_buffers */
};

static tg_status load(void *user, int i, const tgi_view *view, const tgi_box *box, tgi_err *err)
{
    return tgi_dense_load(&((bound *)user)->io, i, view, box, err);
}

static tg_status store(void *user, int o, const tgi_view *view, const tgi_box *box,
                       tgi_err *err)
{
    return tgi_dense_store(&((bound *)user)->io, o, view, box, err);
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
    *b = (bound){.of = r, .io = {.net = n->net}};
    const tgi_exec_io io = {.user = b, .load = load, .store = store, .stop = stop};
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
    for (int i = 0; i < s->n_nets && st == TG_OK; i++)
        st = open_net(r, i, err);
    if (st != TG_OK)
        tgi_schedule_close(out);
    return st;
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
static void hand_on(tgi_dense_io *io, const tgi_sched_step *p)
{
    for (int k = 0; k < p->n_state; k++) {
        float *given = io->out[p->state_out[k]];
        io->out[p->state_out[k]] = (float *)(uintptr_t)io->in[p->state_in[k]];
        io->in[p->state_in[k]] = given;
    }
}

/* After an even number of times what came last lies in the input's buffer. */
static void settle(const tgi_schedule_run *r, const tgi_sched_step *p)
{
    for (int k = 0; k < p->n_state; k++) {
        const int to = p->out[p->state_out[k]];
        const float *last = r->net[p->net].io.out[p->state_out[k]];
        if (last != r->at[to])
            memcpy(r->at[to], last, r->s->buffer[to].bytes);
    }
}

static tg_status run_net(tgi_schedule_run *r, const tgi_sched_step *p, tgi_err *err)
{
    tgi_dense_io *io = &r->net[p->net].io;
    const int times = p->repeat > 1 ? p->repeat : 1;
    memset(io->out, 0, sizeof io->out);
    for (int i = 0; i < p->n_in; i++)
        io->in[i] = r->at[p->in[i]];
    for (int i = 0; i < p->n_out; i++)
        io->out[i] = r->at[p->out[i]];
    for (int i = 0; i < times; i++) {
        if (i)
            hand_on(io, p);
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

tg_status tgi_schedule_call(tgi_schedule_run *r, int net, const float *const *in,
                            float *const *out, tgi_err *err)
{
    tgi_dense_io *io = &r->net[net].io;
    for (int i = 0; i < io->net->n_in; i++)
        io->in[i] = in[i];
    for (int i = 0; i < io->net->n_out; i++)
        io->out[i] = out[i];
    return run_cells(r, net, err);
}

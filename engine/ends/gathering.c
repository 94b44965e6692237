/* gathering.c - states of a stage's reductions, and their numbers. */
#include "engine/ends/gathering.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "kernels/reduce.h"

#include <string.h>

tg_status tgi_gathering_open(tgi_gathering *g, const tgi_staged *plan, void *states,
                             float *numbers, tgi_threads *pool, const tgi_kernel_set *be,
                             tgi_err *err)
{
    *g = (tgi_gathering){.plan = plan,
                         .states = states,
                         .numbers = numbers,
                         .pool = pool,
                         .be = be,
                         .stage = -1};
    g->of = tgi_calloc(TGI_TAG_PLAN, (size_t)plan->n_gathered + 1, sizeof *g->of);
    return g->of ? TG_OK
                 : tgi_fail(err, TG_E_NOMEM, "no memory for %d reductions", plan->n_gathered);
}

void tgi_gathering_close(tgi_gathering *g)
{
    tgi_free(g->of);
    memset(g, 0, sizeof *g);
}

static const tgi_net_node *node_of(const tgi_gathering *g, int i)
{
    return &g->plan->cut->one.net->nodes[g->plan->gathered[i].node];
}

static const tgi_reduce *reduce_of(const tgi_gathering *g, int i)
{
    const tgi_net_node *n = node_of(g, i);
    return tgi_reduce_of(n->node->op, &n->ctx);
}

void tgi_gathering_begin(tgi_gathering *g, int k)
{
    g->stage = k;
    for (int i = 0; i < g->plan->n_gathered; i++) {
        const tgi_gathered *p = &g->plan->gathered[i];
        if (p->stage == k)
            tgi_granules_init(&g->of[i], &p->full, tgi_reduce_what(reduce_of(g, i)),
                              (char *)g->states + p->state_at);
    }
}

tg_status tgi_gathering_resume(tgi_gathering *g, int k, tgi_err *err)
{
    g->stage = k;
    for (int i = 0; i < g->plan->n_gathered; i++) {
        const tgi_gathered *p = &g->plan->gathered[i];
        const unsigned what = tgi_reduce_what(reduce_of(g, i));
        if (p->stage == k)
            TGI_TRY(tgi_granules_resume(&g->of[i], &p->full, what,
                                        (char *)g->states + p->state_at,
                                        tgi_granules_bytes(&p->full, what), err));
    }
    return TG_OK;
}

static tgi_granules *state_of(const tgi_gathering *g, int o, tgi_err *err)
{
    for (int i = 0; i < g->plan->n_gathered; i++)
        if (g->plan->gathered[i].stage == g->stage && g->plan->gathered[i].out == o)
            return &g->of[i];
    (void)tgi_fail(err, TG_E_INTERNAL, "output %d of stage %d gathers nothing", o,
                   g->stage + 1);
    return NULL;
}

tg_status tgi_gathering_add(tgi_gathering *g, int o, const tgi_view *view, const tgi_box *box,
                            tgi_err *err)
{
    const tgi_operand src = {1, view};
    tgi_granules *state = state_of(g, o, err);
    return state ? g->be->granules_add(state, &src, box, g->pool, err) : TG_E_INTERNAL;
}

tg_status tgi_gathering_add_rows(tgi_gathering *g, int o, const double *sum, const tgi_box *box,
                                 int64_t from, tgi_err *err)
{
    tgi_granules *state = state_of(g, o, err);
    tgi_box rest = *box;
    rest.ax[TGI_STREAM_AXIS].lo = tgi_max(from, rest.ax[TGI_STREAM_AXIS].lo);
    if (!state)
        return TG_E_INTERNAL;
    if (tgi_box_empty(&rest))
        return TG_OK;
    /* of an image a row, of a volume a slab is left out */
    const int64_t rows = (rest.ax[TGI_STREAM_AXIS].lo - box->ax[TGI_STREAM_AXIS].lo) *
                         (box->rank == 5 ? tgi_range_len(box->ax[3]) : 1);
    const tgi_range x = box->ax[box->rank - 1];
    const int64_t granules = tgi_ceil_div(x.hi, TGI_GRANULE) - x.lo / TGI_GRANULE;
    return tgi_granules_add_rows(state, sum + rows * granules * 2 * state->channels, &rest,
                                 g->pool, err);
}

/* What follows the node in the same kernel. */
static void apply_epilogue(const tgi_gathering *g, const tgi_net_node *n, float *numbers)
{
    const tgi_net *net = g->plan->cut->one.net;
    const tgi_view view = {.base = numbers,
                           .c = net->values[n->node->dst[0]].c,
                           .cb = 1,
                           .width = 1,
                           .block_pitch = 1,
                           .z_pitch = 1,
                           .y_pitch = 1,
                           .z_ring = 1,
                           .y_ring = 1};
    const tgi_call call = {.ctx = &n->ctx,
                           .dst = &view,
                           .box = tgi_box_full(&n->dst[0]),
                           .epi = n->epi,
                           .n_epi = n->n_epi};
    if (n->n_epi)
        tgi_epilogue_apply(g->be, &call);
}

/* The node that part i is the last one of. */
static tg_status finish_node(const tgi_gathering *g, int last, tgi_err *err)
{
    const tgi_gathered *p = g->plan->gathered;
    const tgi_net_node *n = node_of(g, last);
    void *channels = (char *)g->states + g->plan->moments_at;
    float *numbers = g->numbers + p[last].numbers_at;
    int first = last;
    while (first > 0 && p[first - 1].node == p[last].node)
        first--;
    for (int i = first; i <= last; i++)
        TGI_TRY(tgi_reduce_take(reduce_of(g, i), &g->of[i], p[i].channel, channels, err));
    tgi_reduce_finish(reduce_of(g, last), &n->ctx, channels, numbers);
    apply_epilogue(g, n, numbers);
    return TG_OK;
}

tg_status tgi_gathering_end(tgi_gathering *g, tgi_err *err)
{
    const tgi_gathered *p = g->plan->gathered;
    for (int i = 0; i < g->plan->n_gathered; i++)
        if (p[i].stage == g->stage &&
            (i + 1 == g->plan->n_gathered || p[i + 1].node != p[i].node))
            TGI_TRY(finish_node(g, i, err));
    return TG_OK;
}

/* roofline.c - device plans and projected times (roofline.h). */
#include "engine/job/roofline.h"

#include "engine/base/arith.h"
#include "engine/job/ends.h"
#include "engine/job/job_device.h"
#include "engine/job/job_open.h"
#include "engine/memory/monitor.h"

#include <string.h>

/* Steers the choice of bands only: large enough that few, large launches win. */
#define CHOICE_FLOPS_PER_SECOND 20e12
/* The host is planned without a budget: its share is what is asked for, not what is here. */
#define HOST_RAM "1TiB"

static double elements(const tgi_net *net, int value)
{
    const tgi_desc *d = &net->values[value].ext;
    double n = 1;
    for (int a = 0; a < d->rank; a++)
        n *= (double)d->dim[a];
    return n;
}

static double node_flops(const tgi_net *net, const tgi_net_node *n)
{
    return n->flops_per_element * elements(net, n->node->dst[0]);
}

/* Bytes moved by a node at two bytes an element. */
static double node_bytes(const tgi_net *net, const tgi_net_node *n)
{
    double e = 0;
    for (int j = 0; j < n->n_operands; j++)
        for (int s = 0; s < n->operand[j].n_seg; s++)
            e += elements(net, n->operand[j].value[s]);
    for (int i = 0; i < n->node->n_dst; i++)
        if (n->node->dst[i] >= 0)
            e += elements(net, n->node->dst[i]);
    return 2 * e;
}

tg_status tgi_device_job_open(tg_ctx *ctx, const tg_opts *o, tgi_device_job *out, tgi_err *err)
{
    tg_opts *own = NULL;
    *out = (tgi_device_job){0};
    tg_status st = tgi_opts_new(&own, err);
    if (st == TG_OK)
        st = tgi_opts_copy(own, o, err);
    if (st == TG_OK)
        st = tgi_opts_set(own, "ram", HOST_RAM, err);
    if (st == TG_OK)
        st = tgi_job_open(ctx, own, &out->job, err);
    if (st == TG_OK)
        st = tgi_job_plan_processor(out->job, (tgi_plan_ask){0}, err);
    tgi_opts_free(&own);
    if (st != TG_OK)
        return st;
    const tg_job *job = out->job;
    const tgi_desc *in = job->ends->shapes(job);
    out->items = job->ends->items(job);
    out->host_bytes = job->plan.bytes.total - job->plan.bytes.arena;
    TGI_TRY(tgi_net_new(job->graph, tgi_backend_for(TGI_ISA_PORTABLE), in, TGI_NET_EXACT,
                        &out->net, err));
    TGI_TRY(tgi_stages_new(out->net, &out->stages, err));
    job->ends->fit(job, out->stages);
    out->weights_bytes = out->net->packed_bytes / 2;
    for (int i = 0; i < out->net->n_nodes; i++)
        out->flops += node_flops(out->net, &out->net->nodes[i]);
    return TG_OK;
}

void tgi_device_job_close(tgi_device_job *d)
{
    tgi_stages_free(&d->stages);
    tgi_net_free(&d->net);
    tgi_job_close(&d->job);
}

uint64_t tgi_device_usable(uint64_t memory_bytes)
{
    const uint64_t budget = tgi_budget_of(memory_bytes, 0);
    return budget > TGI_CONTEXT_BYTES ? budget - TGI_CONTEXT_BYTES : 0;
}

tg_status tgi_device_plan_make(const tgi_device_job *d, uint64_t memory_bytes,
                               const tgi_device_plan *like, tgi_device_plan *out, tgi_err *err)
{
    const uint64_t usable = tgi_device_usable(memory_bytes);
    if (!like || !like->fits || like->needed_bytes > usable)
        return tgi_device_plan_tile(d, memory_bytes, 0, out, err);
    *out = *like;
    out->usable_bytes = usable;
    return TG_OK;
}

tg_status tgi_device_plan_tile(const tgi_device_job *d, uint64_t memory_bytes, int64_t side,
                               tgi_device_plan *out, tgi_err *err)
{
    const uint64_t usable = tgi_device_usable(memory_bytes);
    tgi_choice c;
    /* The planner counts float32: half the bytes is twice the room. */
    const uint64_t room = usable > d->weights_bytes ? 2 * (usable - d->weights_bytes) : 0;
    const tgi_choose_args a = {.stage = &d->stages->one,
                               .threads = 1,
                               .limit_bytes = (size_t)room,
                               .unit = {1, 1, 16},
                               .fixed = {side, side, side},
                               .flops_per_second = CHOICE_FLOPS_PER_SECOND};
    const tg_status st = tgi_choose(&a, &c, NULL);
    if (st != TG_OK && st != TG_E_BUDGET)
        return tgi_fail(err, st, "no memory to plan for a GPU");
    *out = (tgi_device_plan){.usable_bytes = usable, .fits = st == TG_OK};
    out->needed_bytes =
        d->weights_bytes + (out->fits ? c.tiling.arena_bytes : c.smallest_bytes) / 2;
    if (out->fits) {
        out->flops = c.tiling.flops * (double)d->items;
        out->recomputed = tgi_tiling_recomputed(&c.tiling);
        out->weight_traffic = c.tiling.cost.weight_bytes / 2 * (double)d->items;
    }
    tgi_tiling_free(&c.tiling);
    return TG_OK;
}

double tgi_roofline_seconds(const tgi_device_job *d, const tgi_device_plan *p,
                            const tgi_gpu *gpu)
{
    double once = 0; /* every value of the net computed once */
    for (int i = 0; i < d->net->n_nodes; i++) {
        const double f = node_flops(d->net, &d->net->nodes[i]) / gpu->fp16_flops;
        const double b = node_bytes(d->net, &d->net->nodes[i]) / gpu->bytes_per_second;
        once += f > b ? f : b;
    }
    /* Halos and boxes compute some of it again: as much more of everything. */
    const double times = d->flops > 0 ? p->flops / d->flops : (double)d->items;
    return once * times + p->weight_traffic / gpu->bytes_per_second;
}

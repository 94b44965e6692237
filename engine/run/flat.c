#include "engine/run/flat.h"

#include "engine/run/dense.h"

/* Where a value's dense array is: its own place, or the next part of scratch. */
static void *place_of(const tg_flat_call *call, int v, size_t *used)
{
    if (call->net->values[v].flat)
        return call->view[v].base;
    void *at = call->scratch + *used;
    *used += tgi_align_size(tgi_net_dense_bytes(call->net, v), 64);
    return at;
}

/* The dense array of operand j, which is an activation. */
static const void *operand_data(const tg_flat_call *call, int j, size_t *used)
{
    const int v = call->node->operand[j].value[0];
    void *at = place_of(call, v, used);
    if (!call->net->values[v].flat) {
        const tg_view to = tgi_dense_view(call->net, v, at);
        const tg_box all = tgi_box_full(&call->net->values[v].ext);
        tgi_copy_box(&call->view[v], &to, to.c, &all);
    }
    return at;
}

static void keep_result(const tg_flat_call *call, int d, void *data)
{
    const int v = call->node->node->dst[d];
    if (call->net->values[v].flat)
        return;
    const tg_view from = tgi_dense_view(call->net, v, data);
    tgi_copy_box(&from, &call->view[v], from.c, &call->box[d]);
    tgi_clear_lanes(&call->view[v], &call->box[d]);
}

tg_status tgi_flat_run(const tg_flat_call *call, tgi_err *err)
{
    const tg_net_node *n = call->node;
    tg_const given[TG_OP_MAX_SRC];
    const tg_const *src[TG_OP_MAX_SRC];
    void *dst[TG_OP_MAX_DST];
    size_t used = 0;
    tg_op_ctx ctx = n->ctx;
    for (int j = 0; j < n->ctx.n_src; j++) {
        src[j] = n->consts[j];
        if (!n->operand[j].n_seg)
            continue;
        given[j] = (tg_const){n->src[j], operand_data(call, j, &used)};
        src[j] = &given[j];
    }
    for (int d = 0; d < n->ctx.n_dst; d++)
        dst[d] = place_of(call, n->node->dst[d], &used);
    ctx.const_src = src;
    TGI_TRY(n->node->op->eval(&ctx, dst, err));
    for (int d = 0; d < n->ctx.n_dst; d++)
        keep_result(call, d, dst[d]);
    return TG_OK;
}

/* flat.c - gathers whole operands, calls the operator's eval and puts the results away. */
#include "engine/exec/flat.h"

#include "engine/exec/dense.h"

/* Where a value's dense array is: its own place, or the next part of scratch. */
static void *place_of(const tgi_flat_call *call, int v, size_t *used)
{
    if (call->net->values[v].flat)
        return call->view[v].base;
    void *at = call->scratch + *used;
    *used += tgi_align_size(tgi_net_dense_bytes(call->net, v), 64);
    return at;
}

#define EXACT 16777216.0f /* integers up to here are floats */

/* Integers or bools of an image, which a view holds as floats: into `data`, or out of it over
 * `box`. 0: one does not fit. */
static int copy_numbers(const tgi_view *view, const tgi_desc *d, void *data, const tgi_box *box,
                        int out)
{
    const int r = d->rank;
    const int64_t depth = r == 5 ? d->dim[2] : 1, h = d->dim[r - 2], w = d->dim[r - 1];
    const tgi_range rz = r == 5 ? box->ax[2] : (tgi_range){0, 1};
    const tgi_range ry = box->ax[r - 2], rx = box->ax[r - 1];
    const tgi_constant dense = {*d, data};
    int fits = 1;
    for (int64_t c = 0; c < d->dim[1]; c++)
        for (int64_t z = rz.lo; z < rz.hi; z++)
            for (int64_t y = ry.lo; y < ry.hi; y++)
                for (int64_t x = rx.lo; x < rx.hi; x++) {
                    const int64_t at = ((c * depth + z) * h + y) * w + x;
                    float *f = tgi_view_at(view, c, z, y, x);
                    if (!out) {
                        tgi_num_put(d->dtype, data, at, (double)*f);
                        continue;
                    }
                    *f = (float)tgi_num_at(&dense, at);
                    fits &= *f <= EXACT && *f >= -EXACT;
                }
    return fits;
}

/* The dense array of operand j, which is an activation. */
static const void *operand_data(const tgi_flat_call *call, int j, size_t *used)
{
    const int v = call->node->operand[j].value[0];
    void *at = place_of(call, v, used);
    if (!call->net->values[v].flat) {
        const tgi_view to = tgi_dense_view(call->net, v, at);
        const tgi_desc *d = &call->net->values[v].ext;
        const tgi_box all = tgi_box_full(d);
        if (d->dtype != TG_DTYPE_F32)
            copy_numbers(&call->view[v], d, at, &all, 0);
        else
            tgi_copy_box(&call->view[v], &to, to.c, &all);
    }
    return at;
}

static tg_status keep_result(const tgi_flat_call *call, int d, void *data, tgi_err *err)
{
    const int v = call->node->node->dst[d];
    if (call->net->values[v].flat)
        return TG_OK;
    const tgi_view from = tgi_dense_view(call->net, v, data);
    const tgi_desc *e = &call->net->values[v].ext;
    if (e->dtype != TG_DTYPE_F32 && !copy_numbers(&call->view[v], e, data, &call->box[d], 1))
        return tgi_fail(err, TG_E_UNSUPPORTED, "%s \"%s\" yields an integer beyond 2^24",
                        call->node->node->op->name, call->node->node->name);
    if (e->dtype == TG_DTYPE_F32)
        tgi_copy_box(&from, &call->view[v], from.c, &call->box[d]);
    tgi_clear_lanes(&call->view[v], &call->box[d]);
    return TG_OK;
}

tg_status tgi_flat_run(const tgi_flat_call *call, tgi_err *err)
{
    const tgi_net_node *n = call->node;
    tgi_constant given[TGI_OP_MAX_SRC];
    const tgi_constant *src[TGI_OP_MAX_SRC];
    void *dst[TGI_OP_MAX_DST];
    size_t used = 0;
    tgi_op_ctx ctx = n->ctx;
    for (int j = 0; j < n->ctx.n_src; j++) {
        src[j] = n->consts[j];
        if (!n->operand[j].n_seg)
            continue;
        given[j] = (tgi_constant){n->src[j], operand_data(call, j, &used)};
        src[j] = &given[j];
    }
    for (int d = 0; d < n->ctx.n_dst; d++)
        dst[d] = place_of(call, n->node->dst[d], &used);
    ctx.const_src = src;
    TGI_TRY(n->node->op->eval(&ctx, dst, err));
    for (int d = 0; d < n->ctx.n_dst; d++)
        TGI_TRY(keep_result(call, d, dst[d], err));
    return TG_OK;
}

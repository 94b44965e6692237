/* op_expand.c - Expand: broadcast to a constant shape (both ways: extents of 1 in either
 * yield). Folded only. @source ONNX operator Expand, versions 8, 13. */
#include "kernels/ops/op_shared.h"

static tg_status infer(const tg_op_ctx *ctx, tg_desc *dst, tgi_err *err)
{
    tg_ints want;
    TGI_TRY(tgi_const_ints(ctx, 1, "shape", &want, err));
    if (want.n > TG_MAX_RANK)
        return tgi_fail(err, TG_E_UNSUPPORTED, "a shape of %d extents", want.n);
    tg_desc pair[2] = {ctx->src[0], {ctx->src[0].dtype, want.n, {0}}};
    for (int k = 0; k < want.n; k++) {
        if (want.v[k] < 0)
            return tgi_fail(err, TG_E_FORMAT, "extent %d is %" PRId64, k, want.v[k]);
        pair[1].dim[k] = want.v[k];
    }
    const tg_op_ctx both = {.n_src = 2, .src = pair};
    return tgi_infer_broadcast(&both, -1, dst, err);
}

static tg_status eval(const tg_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    const tg_desc *s = &ctx->src[0], *d = &ctx->dst[0];
    int64_t dense[TG_MAX_RANK], stride[TG_MAX_RANK] = {0};
    (void)err;
    tgi_dense_strides(s, dense);
    for (int k = 0; k < s->rank; k++)
        stride[d->rank - s->rank + k] = s->dim[k] == 1 ? 0 : dense[k];
    tgi_gather_dense(d, dst_data[0], ctx->const_src[0]->data, 0, stride,
                     tgi_dtype_size(d->dtype));
    return TG_OK;
}

const tg_op tg_op_expand = {
    .name = "Expand",
    .op_class = TG_OP_DENSE,
    .infer = infer,
    .eval = eval,
};

/* op_expand.c - Expand: broadcast to a constant shape (both ways: extents of 1 in either
 * yield). Folded only. @source ONNX operator Expand, versions 8, 13. */
#include "kernels/ops/op_shared.h"

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    tgi_ints want;
    TGI_TRY(tgi_const_ints(ctx, 1, "shape", &want, err));
    if (want.n > TGI_MAX_RANK)
        return tgi_fail(err, TG_E_UNSUPPORTED, "a shape of %d extents", want.n);
    tgi_desc pair[2] = {ctx->src[0], {ctx->src[0].dtype, want.n, {0}}};
    for (int k = 0; k < want.n; k++) {
        if (want.v[k] < 0)
            return tgi_fail(err, TG_E_FORMAT, "extent %d is %" PRId64, k, want.v[k]);
        pair[1].dim[k] = want.v[k];
    }
    const tgi_op_ctx both = {.n_src = 2, .src = pair};
    return tgi_infer_broadcast(&both, -1, dst, err);
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    const tgi_desc *s = &ctx->src[0], *d = &ctx->dst[0];
    int64_t dense[TGI_MAX_RANK], stride[TGI_MAX_RANK] = {0};
    (void)err;
    tgi_dense_strides(s, dense);
    for (int k = 0; k < s->rank; k++)
        stride[d->rank - s->rank + k] = s->dim[k] == 1 ? 0 : dense[k];
    tgi_gather_dense(d, dst_data[0], ctx->const_src[0]->data, 0, stride,
                     tgi_dtype_size(d->dtype));
    return TG_OK;
}

const tgi_op tgi_op_expand = {
    .name = "Expand",
    .op_class = TGI_OP_DENSE,
    .infer = infer,
    .eval = eval,
};

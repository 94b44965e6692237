/* op_constant_of_shape.c - ConstantOfShape: a tensor of one repeated value.
 * The attribute `value` is a tensor, which attribute rows cannot hold: the importer hands it
 * over as input 1. Without it the value is float32 zero.
 * @source ONNX operator ConstantOfShape, versions 9 to 21. */
#include "kernels/ops/op_shared.h"

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    tgi_ints want;
    TGI_TRY(tgi_const_ints(ctx, 0, "shape", &want, err));
    if (want.n > TGI_MAX_RANK)
        return tgi_fail(err, TG_E_UNSUPPORTED, "a shape of %d extents", want.n);
    tgi_desc d = {tgi_given(ctx, 1) ? ctx->src[1].dtype : TG_DTYPE_F32, want.n, {0}};
    for (int k = 0; k < want.n; k++) {
        if (want.v[k] < 0)
            return tgi_fail(err, TG_E_FORMAT, "extent %d is %" PRId64, k, want.v[k]);
        d.dim[k] = want.v[k];
    }
    dst[0] = d;
    return TG_OK;
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    static const float zero = 0.0f;
    const int64_t none[TGI_MAX_RANK] = {0};
    const tgi_constant *c = tgi_const(ctx, 1);
    if (c && tgi_const_count(c) < 1)
        return tgi_fail(err, TG_E_FORMAT, "the value is an empty tensor");
    tgi_gather_dense(&ctx->dst[0], dst_data[0], c ? c->data : &zero, 0, none,
                     tgi_dtype_size(ctx->dst[0].dtype));
    return TG_OK;
}

const tgi_op tgi_op_constant_of_shape = {
    .name = "ConstantOfShape",
    .op_class = TGI_OP_DENSE,
    .infer = infer,
    .eval = eval,
};

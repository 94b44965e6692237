/* op_size.c - Size: number of elements of the input, an int64 scalar. Reads no data.
 * @source ONNX operator Size, versions 1 to 21. */
#include "kernels/ops/op_shared.h"

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    int64_t n;
    if (!tgi_desc_count(&ctx->src[0], &n))
        return tgi_fail(err, TG_E_FORMAT, "the number of elements overflows");
    dst[0] = (tgi_desc){TG_DTYPE_I64, 0, {0}};
    return TG_OK;
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    int64_t n = 0;
    (void)err;
    tgi_desc_count(&ctx->src[0], &n);
    tgi_int_put(TG_DTYPE_I64, dst_data[0], 0, n);
    return TG_OK;
}

const tgi_op tgi_op_size = {
    .name = "Size",
    .op_class = TGI_OP_DENSE,
    .infer = infer,
    .eval = eval,
};

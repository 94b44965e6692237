/* op_eye_like.c - EyeLike: ones on a diagonal k right of the main one, in a matrix as large as
 * the input. On dense tensors. @source ONNX operator EyeLike, versions 9, 22. */
#include "kernels/ops/op_shared.h"

typedef struct eye_attrs {
    int64_t dtype, k;
} eye_attrs;

static const tgi_attr rows[] = {
    {"dtype", TGI_ATTR_INT, offsetof(eye_attrs, dtype), 0, 0, 64, NULL, "type of the result"},
    {"k", TGI_ATTR_INT, offsetof(eye_attrs, k), 0, 0, 0, NULL, "columns to the right"},
    {0}};

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    const eye_attrs *a = ctx->attrs;
    tgi_desc d = ctx->src[0];
    if (d.rank != 2)
        return tgi_fail(err, TG_E_FORMAT, "an input of rank %d, expected a matrix", d.rank);
    if (a->dtype)
        d.dtype = tgi_onnx_type(a->dtype);
    if (d.dtype == TG_DTYPE_NONE)
        return tgi_fail(err, TG_E_UNSUPPORTED, "element type %" PRId64, a->dtype);
    dst[0] = d;
    return TG_OK;
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    const eye_attrs *a = ctx->attrs;
    const tgi_desc *d = &ctx->dst[0];
    (void)err;
    for (int64_t i = 0; i < d->dim[0]; i++)
        for (int64_t j = 0; j < d->dim[1]; j++)
            tgi_int_put(d->dtype, dst_data[0], i * d->dim[1] + j, j - i == a->k);
    return TG_OK;
}

const tgi_op tgi_op_eye_like = {
    .name = "EyeLike",
    .op_class = TGI_OP_DENSE,
    .attrs = rows,
    .attrs_size = sizeof(eye_attrs),
    .infer = infer,
    .eval = eval,
};

/* op_shape.c - Shape: extents of the input as int64. Reads no data: `eval` needs ctx->src only,
 * so it works on activations once their shape is known.
 * @source ONNX operator Shape, versions 1, 13, 15 (start, end). */
#include "kernels/ops/op_shared.h"

#define ALL 1024 /* `end` not given */

typedef struct shape_attrs {
    int64_t start, end;
} shape_attrs;

static const tgi_attr rows[] = {
    {"end", TGI_ATTR_INT, offsetof(shape_attrs, end), ALL, 0, 0, NULL, "first axis left out"},
    {"start", TGI_ATTR_INT, offsetof(shape_attrs, start), 0, 0, 0, NULL, "first axis taken"},
    {0}};

static tgi_range taken(const tgi_op_ctx *ctx)
{
    const shape_attrs *a = ctx->attrs;
    const int64_t r = ctx->src[0].rank;
    const int64_t lo = tgi_clamp(a->start < 0 ? a->start + r : a->start, 0, r);
    const int64_t hi = tgi_clamp(a->end < 0 ? a->end + r : a->end, 0, r);
    return (tgi_range){lo, tgi_max(lo, hi)};
}

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    (void)err;
    dst[0] = (tgi_desc){TG_DTYPE_I64, 1, {tgi_range_len(taken(ctx))}};
    return TG_OK;
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    const tgi_range r = taken(ctx);
    (void)err;
    for (int64_t k = r.lo; k < r.hi; k++)
        tgi_int_put(TG_DTYPE_I64, dst_data[0], k - r.lo, ctx->src[0].dim[k]);
    return TG_OK;
}

const tgi_op tgi_op_shape = {
    .name = "Shape",
    .op_class = TGI_OP_DENSE,
    .attrs = rows,
    .attrs_size = sizeof(shape_attrs),
    .infer = infer,
    .eval = eval,
};

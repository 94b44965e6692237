/* op_lp_normalization.c - LpNormalization: x divided by the L1 or L2 norm along an axis; where
 * the norm is 0 the result is too. Local on images when the axis is that of channels.
 * Border: none, each pixel by itself.
 * @source ONNX operator LpNormalization, versions 1, 22. */
#include "kernels/ops/op_shared.h"

#include <math.h>

static const tgi_attr rows[] = {
    {"axis", TGI_ATTR_INT, offsetof(lp_norm_attrs, axis), -1, 0, 0, NULL, "axis of the norm"},
    {"p", TGI_ATTR_INT, offsetof(lp_norm_attrs, p), 2, 1, 2, NULL, "1 or 2"},
    {0}};

static tg_status axis_of(const tgi_op_ctx *ctx, int *axis, tgi_err *err)
{
    return tgi_axis(((const lp_norm_attrs *)ctx->attrs)->axis, ctx->src[0].rank, axis, err);
}

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    int axis;
    TGI_TRY(tgi_infer_same(ctx, dst, err));
    return axis_of(ctx, &axis, err);
}

static tgi_op_kind classify(const tgi_op_ctx *ctx)
{
    int axis;
    return axis_of(ctx, &axis, NULL) == TG_OK && axis == 1 ? TGI_OP_LOCAL : TGI_OP_DENSE;
}

static double term(double v, int64_t p)
{
    return p == 1 ? fabs(v) : v * v;
}

static double quotient(double v, double sum, int64_t p)
{
    return sum > 0 ? v / (p == 1 ? sum : sqrt(sum)) : 0.0;
}

static float value(const tgi_call *call, const void *arg, const tgi_px *p)
{
    const lp_norm_attrs *a = arg;
    double sum = 0;
    for (int64_t c = 0; c < call->dst[0].c; c++)
        sum += term((double)tgi_operand_get(&call->src[0], c, p->z, p->y, p->x), a->p);
    return (float)quotient((double)tgi_src_at(call, 0, p), sum, a->p);
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    (void)err;
    tgi_ref_each(call, 0, value, call->ctx->attrs);
    return TG_OK;
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    const lp_norm_attrs *a = ctx->attrs;
    const tgi_constant *c = ctx->const_src[0];
    int64_t outer = 1, inner = 1;
    int axis;
    TGI_TRY(axis_of(ctx, &axis, err));
    const int64_t n = c->desc.dim[axis];
    for (int k = 0; k < c->desc.rank; k++)
        *(k < axis ? &outer : &inner) *= k == axis ? 1 : c->desc.dim[k];
    for (int64_t o = 0; o < outer * inner; o++) {
        const int64_t base = o / inner * n * inner + o % inner;
        double sum = 0;
        for (int64_t k = 0; k < n; k++)
            sum += term(tgi_num_at(c, base + k * inner), a->p);
        for (int64_t k = 0; k < n; k++)
            tgi_num_put(c->desc.dtype, dst_data[0], base + k * inner,
                        quotient(tgi_num_at(c, base + k * inner), sum, a->p));
    }
    return TG_OK;
}

static double flops(const tgi_op_ctx *ctx)
{
    return 2.0 * (double)ctx->src[0].dim[ctx->src[0].rank > 1];
}

const tgi_op tgi_op_lp_normalization = {
    .name = "LpNormalization",
    .classify = classify,
    .attrs = rows,
    .attrs_size = sizeof(lp_norm_attrs),
    .infer = infer,
    .ref = ref,
    .eval = eval,
    .flops = flops,
};

/* op_softmax.c - Softmax over channels: exp(x - max) / sum, per pixel, summed in float64.
 * Constants of any rank fold along any axis. Before opset 13 the axes from `axis` on are one,
 * so on images the channel form exists from opset 13 only (or for images of one pixel). Border:
 * none, each pixel by itself.
 * @source ONNX operator Softmax, versions 1, 11 (flattening), 13. */
#include "kernels/ops/op_shared.h"

#include <math.h>

#define NOT_GIVEN 100 /* the default depends on the opset */

static const tg_attr rows[] = {
    {"axis", TG_ATTR_INT, offsetof(axis_attrs, axis), NOT_GIVEN, 0, 0, NULL, "axis of the sum"},
    {0}};

/* The data seen as [outer, n, inner]. */
static tg_status plan(const tg_op_ctx *ctx, int *axis, int64_t *outer, int64_t *n,
                      int64_t *inner, tgi_err *err)
{
    const axis_attrs *a = ctx->attrs;
    const tg_desc *d = &ctx->src[0];
    const int64_t fallback = ctx->opset < 13 ? 1 : -1;
    TGI_TRY(tgi_axis(a->axis == NOT_GIVEN ? fallback : a->axis, d->rank, axis, err));
    *outer = *n = *inner = 1;
    for (int k = 0; k < d->rank; k++)
        *(k < *axis ? outer : k == *axis || ctx->opset < 13 ? n : inner) *= d->dim[k];
    return TG_OK;
}

static tg_status infer(const tg_op_ctx *ctx, tg_desc *dst, tgi_err *err)
{
    int64_t outer, n, inner;
    int axis;
    TGI_TRY(plan(ctx, &axis, &outer, &n, &inner, err));
    if (!tgi_const(ctx, 0) && ctx->src[0].rank >= 4 && (axis != 1 || n != ctx->src[0].dim[1]))
        return tgi_fail(err, TG_E_UNSUPPORTED, "Softmax along axis %d%s: channels only", axis,
                        ctx->opset < 13 ? " and all after it" : "");
    dst[0] = ctx->src[0];
    return TG_OK;
}

/* One sum serves all channels of a pixel. */
static void softmax_pixel(const tg_call *call, int64_t z, int64_t y, int64_t x)
{
    const int64_t n = call->dst[0].c;
    const tg_operand *s = &call->src[0];
    double top = -INFINITY, sum = 0;
    for (int64_t c = 0; c < n; c++)
        top = fmax(top, (double)tgi_operand_get(s, c, z, y, x));
    for (int64_t c = 0; c < n; c++)
        sum += exp((double)tgi_operand_get(s, c, z, y, x) - top);
    for (int64_t c = 0; c < n; c++)
        *tgi_view_at(&call->dst[0], c, z, y, x) =
            (float)(exp((double)tgi_operand_get(s, c, z, y, x) - top) / sum);
}

static tg_status ref(const tg_call *call, tgi_err *err)
{
    const tg_range rz = tgi_box_axis(&call->box, TG_Z), ry = tgi_box_axis(&call->box, TG_Y),
                   rx = tgi_box_axis(&call->box, TG_X);
    (void)err;
    for (int64_t z = rz.lo; z < rz.hi; z++)
        for (int64_t y = ry.lo; y < ry.hi; y++)
            for (int64_t x = rx.lo; x < rx.hi; x++)
                softmax_pixel(call, z, y, x);
    tgi_zero_lanes(&call->dst[0], &call->box);
    return TG_OK;
}

static tg_status eval(const tg_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    const tg_const *c = ctx->const_src[0];
    int64_t outer, n, inner;
    int axis;
    TGI_TRY(plan(ctx, &axis, &outer, &n, &inner, err));
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            const int64_t base = o * n * inner + i;
            double top = -INFINITY, sum = 0;
            for (int64_t k = 0; k < n; k++)
                top = fmax(top, tgi_num_at(c, base + k * inner));
            for (int64_t k = 0; k < n; k++)
                sum += exp(tgi_num_at(c, base + k * inner) - top);
            for (int64_t k = 0; k < n; k++)
                tgi_num_put(c->desc.dtype, dst_data[0], base + k * inner,
                            exp(tgi_num_at(c, base + k * inner) - top) / sum);
        }
    return TG_OK;
}

static double flops(const tg_op_ctx *ctx)
{
    (void)ctx;
    return 16;
}

const tg_op tg_op_softmax = {
    .name = "Softmax",
    .attrs = rows,
    .attrs_size = sizeof(axis_attrs),
    .infer = infer,
    .ref = ref,
    .eval = eval,
    .flops = flops,
};

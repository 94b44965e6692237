/* op_convex_upsample.c - ConvexUpsample: each pixel of source 0, a flow, becomes a square of
 * scale x scale pixels, each a mean of the pixel's 3x3 neighbourhood weighted by source 1:
 *
 *   out[c, s*y + sy, s*x + sx] = sum over k of w[k] * s * flow[c, y + k/3 - 1, x + k%3 - 1]
 *   w[k] = softmax over k = 0..8 of mask[k*s*s + sy*s + sx, y, x]
 *
 * In float64, k in its order. No operator of ONNX: how RAFT makes its flow as large as the image.
 * Border: zeros outside the flow; this kernel skips them by image coordinates.
 * @source Teed, Deng, RAFT, arXiv:2003.12039, section 3.3; ProPainter's SPEC, section 2. */
#include "kernels/ops/op_shared.h"

#include <math.h>

#define NEAR 9 /* pixels of a neighbourhood */

static const tgi_attr rows[] = {{"scale", TGI_ATTR_INT, offsetof(convex_attrs, scale), 8, 1, 64,
                                 NULL, "rows and columns of a pixel"},
                                {0}};

static int64_t scale_of(const tgi_op_ctx *ctx)
{
    return ((const convex_attrs *)ctx->attrs)->scale;
}

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    const int64_t s = scale_of(ctx);
    TGI_TRY(tgi_want_frame(ctx, 0, err));
    tgi_desc mask = ctx->src[0];
    mask.dim[1] = NEAR * s * s;
    TGI_TRY(tgi_want_frame(ctx, 1, err));
    TGI_TRY(tgi_want_shape(ctx, 1, "the mask", &mask, err));
    *dst = ctx->src[0];
    for (int k = 2; k < 4; k++)
        if (!tgi_mul64_ok(dst->dim[k], s, &dst->dim[k]))
            return tgi_fail(err, TG_E_FORMAT, "axis %d would be too long", k);
    return TG_OK;
}

static int slide(const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *out)
{
    const int64_t s = scale_of(ctx), beside = src_i == 0 ? s : 0;
    *out = axis == TGI_Z ? TGI_SLIDE_SAME
                         : (tgi_slide){.num = 1, .den = s, .lo = -beside, .hi = beside};
    return 1;
}

/* ---- Reference --------------------------------------------------------------------------- */

static float value(const tgi_call *call, const void *arg, const tgi_px *p)
{
    const tgi_desc *flow = &call->ctx->src[0];
    const int64_t s = scale_of(call->ctx), y = p->y / s, x = p->x / s;
    double w[NEAR], top = -INFINITY, all = 0, sum = 0;
    (void)arg;
    for (int k = 0; k < NEAR; k++) {
        const tgi_px at = {(k * s + p->y % s) * s + p->x % s, 0, y, x};
        w[k] = (double)tgi_src_broadcast(call, 1, -1, &at);
        top = w[k] > top ? w[k] : top;
    }
    for (int k = 0; k < NEAR; k++)
        all += w[k] = exp(w[k] - top);
    for (int k = 0; k < NEAR; k++) {
        const tgi_px at = {p->c, 0, y + k / 3 - 1, x + k % 3 - 1};
        if (at.y >= 0 && at.y < flow->dim[2] && at.x >= 0 && at.x < flow->dim[3])
            sum += w[k] * (double)s * (double)tgi_src_at(call, 0, &at);
    }
    return (float)(sum / all);
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    (void)err;
    tgi_ref_each(call, 0, value, NULL);
    return TG_OK;
}

TGI_EVAL_BY_REF

/* Nine products, and nine exponentials that all channels share. */
static double flops(const tgi_op_ctx *ctx)
{
    return NEAR * (2 + 16 / (double)ctx->src[0].dim[1]);
}

const tgi_op tgi_op_convex_upsample = {
    .name = "ConvexUpsample",
    .internal = 1,
    .wide = 1,
    .wide_src = 1,
    .attrs = rows,
    .attrs_size = sizeof(convex_attrs),
    .infer = infer,
    .slide = slide,
    .ref = ref,
    .eval = eval,
    .flops = flops,
};

/* op_flow_consistency.c - FlowConsistency: 1 where the flow back, source 1, at the place that the
 * flow there, source 0, points to, leads back; else 0:
 *
 *   |f + w|^2 < 0.01 * (|f|^2 + |w|^2) + 0.5
 *
 * f: the flow there; w: the flow back at that place, bilinear and zero outside, as FlowWarp makes
 * it. In float32, since all kernels must find the same. No operator of ONNX.
 * Border: see above. 0 where a flow is no number.
 * @source ProPainter's SPEC, section 4. */
#include "kernels/ops/flow_sample.h"

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    for (int i = 0; i < 2; i++)
        TGI_TRY(tgi_want_frame(ctx, i, err));
    tgi_desc flow = ctx->src[0];
    flow.dim[1] = 2;
    TGI_TRY(tgi_want_shape(ctx, 0, "the flow there", &flow, err));
    TGI_TRY(tgi_want_shape(ctx, 1, "the flow back", &flow, err));
    *dst = flow;
    dst->dim[1] = 1;
    return TG_OK;
}

static int slide(const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *out)
{
    *out = src_i == 0 ? TGI_SLIDE_SAME : tgi_slide_all(tgi_desc_axis(&ctx->src[src_i], axis));
    return 1;
}

static void row(const tgi_call *call, int64_t z, int64_t y, tgi_range x)
{
    tgi_px p = {0, z, y, 0};
    for (p.x = x.lo; p.x < x.hi; p.x++) {
        const tgi_arrow f = tgi_arrow_at(call, 0, &p);
        const float wx = tgi_flow_bilinear(call, 1, 0, &f),
                    wy = tgi_flow_bilinear(call, 1, 1, &f), ex = f.dx + wx, ey = f.dy + wy;
        const float there = f.dx * f.dx + f.dy * f.dy, back = wx * wx + wy * wy;
        *tgi_view_at(&call->dst[0], 0, z, y, p.x) =
            ex * ex + ey * ey < 0.01f * (there + back) + 0.5f;
    }
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    (void)err;
    tgi_ref_rows(call, row);
    return TG_OK;
}

TGI_EVAL_BY_REF

static double flops(const tgi_op_ctx *ctx)
{
    (void)ctx;
    return 36;
}

const tgi_op tgi_op_flow_consistency = {
    .name = "FlowConsistency",
    .internal = 1,
    .op_class = TGI_OP_WHOLE,
    .by_rows = 1,
    .wide_src = 3,
    .infer = infer,
    .slide = slide,
    .ref = ref,
    .eval = eval,
    .flops = flops,
};

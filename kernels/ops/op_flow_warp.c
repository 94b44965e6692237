/* op_flow_warp.c - FlowWarp: source 0 as it is where a flow points to, source 1, whose channels are
 * dx and dy in pixels:
 *
 *   out[c, y, x] = source 0 [c, y + dy, x + dx]
 *
 * between pixels bilinear, or of the nearest pixel, ties to even. In float32, rows first, then
 * between them. No operator of ONNX: GridSample with the grid's arithmetic left out.
 * Border: zeros outside. All is zero for a flow that is no number.
 * @source ProPainter's SPEC, section 4. */
#include "kernels/ops/flow_sample.h"

static const char *const modes[] = {"bilinear", "nearest", NULL};
static const tgi_attr rows[] = {
    {"mode", TGI_ATTR_ENUM, offsetof(warp_attrs, mode), 0, 0, 1, modes, "between pixels"}, {0}};

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    for (int i = 0; i < 2; i++)
        TGI_TRY(tgi_want_frame(ctx, i, err));
    tgi_desc flow = ctx->src[0];
    flow.dim[1] = 2;
    TGI_TRY(tgi_want_shape(ctx, 1, "the flow", &flow, err));
    *dst = ctx->src[0];
    return TG_OK;
}

static int slide(const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *out)
{
    *out = src_i == 1 ? TGI_SLIDE_SAME : tgi_slide_all(tgi_desc_axis(&ctx->src[src_i], axis));
    return 1;
}

static float nearest(const tgi_call *call, int64_t c, const tgi_arrow *a)
{
    const tgi_desc *d = &call->ctx->src[0];
    const int64_t y = tgi_nearest_of(a->y, d->dim[2]), x = tgi_nearest_of(a->x, d->dim[3]);
    return y < 0 || x < 0 ? 0 : tgi_src_broadcast(call, 0, -1, &(tgi_px){c, 0, y, x});
}

static void row(const tgi_call *call, int64_t z, int64_t y, tgi_range x)
{
    const warp_attrs *w = call->ctx->attrs;
    tgi_px p = {0, z, y, 0};
    for (p.x = x.lo; p.x < x.hi; p.x++) {
        const tgi_arrow a = tgi_arrow_at(call, 1, &p);
        for (int64_t c = 0; c < call->dst[0].c; c++)
            *tgi_view_at(&call->dst[0], c, z, y, p.x) =
                w->mode ? nearest(call, c, &a) : tgi_flow_bilinear(call, 0, c, &a);
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
    return ((const warp_attrs *)ctx->attrs)->mode ? 1 : 9;
}

const tgi_op tgi_op_flow_warp = {
    .name = "FlowWarp",
    .internal = 1,
    .op_class = TGI_OP_WHOLE,
    .by_rows = 2,
    .wide_src = 1u << 1,
    .attrs = rows,
    .attrs_size = sizeof(warp_attrs),
    .infer = infer,
    .slide = slide,
    .ref = ref,
    .eval = eval,
    .flops = flops,
};

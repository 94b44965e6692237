/* op_norm_apply.c - NormApply: each pixel x of channel c becomes
 *
 *   ((x - high) - low) * factor + shift        by the numbers of NormNumbers, source 1
 *
 * in float32, the last two operations as one (fma): x - high is exact where cancellation
 * threatens (images with a large offset), and low carries what rounding the mean would lose.
 * No operator of ONNX.
 * Border: none. */
#include "kernels/ops/op_shared.h"

#include <math.h>

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    TGI_TRY(tgi_want_image(ctx, 0, err));
    TGI_TRY(tgi_want_image(ctx, 1, err));
    if (ctx->src[1].dim[1] != 4 * ctx->src[0].dim[1])
        return tgi_fail(err, TG_E_FORMAT,
                        "%" PRId64 " numbers for %" PRId64 " channels, expected four of each",
                        ctx->src[1].dim[1], ctx->src[0].dim[1]);
    dst[0] = ctx->src[0];
    return TG_OK;
}

static int slide(const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *out)
{
    *out = src_i == 0 ? TGI_SLIDE_SAME : tgi_slide_all(tgi_desc_axis(&ctx->src[src_i], axis));
    return 1;
}

static float number(const tgi_call *call, int k, int64_t c)
{
    const int64_t at = k * call->ctx->src[0].dim[1] + c;
    const tgi_constant *given = tgi_const(call->ctx, 1);
    return given ? tgi_f32_at(given->data, at) : tgi_operand_get(&call->src[1], at, 0, 0, 0);
}

static float value(const tgi_call *call, const void *arg, const tgi_px *p)
{
    const float x = tgi_src_at(call, 0, p);
    (void)arg;
    return fmaf((x - number(call, 0, p->c)) - number(call, 1, p->c), number(call, 2, p->c),
                number(call, 3, p->c));
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    (void)err;
    tgi_ref_each(call, 0, value, NULL);
    return TG_OK;
}

TGI_EVAL_BY_REF

static double flops(const tgi_op_ctx *ctx)
{
    (void)ctx;
    return 4;
}

const tgi_op tgi_op_norm_apply = {
    .name = "NormApply",
    .internal = 1,
    .wide_src = 1u << 1,
    .infer = infer,
    .slide = slide,
    .ref = ref,
    .eval = eval,
    .flops = flops,
};

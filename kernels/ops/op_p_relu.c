/* op_p_relu.c - PRelu: x, or slope*x below 0; the slope broadcasts to x's shape and is usually
 * one number per channel. Border: none, each element by itself.
 * @source ONNX operator PRelu, versions 6 (slope [C] is per channel) and 7 to 16. */
#include "kernels/ops/op_shared.h"

/* Before opset 7 a slope of rank 1 lies on the channel axis. */
static int lead_of(const tgi_op_ctx *ctx)
{
    return ctx->opset < 7 && ctx->src[1].rank == 1 && ctx->src[0].rank > 1 ? 1 : -1;
}

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    tgi_desc d;
    if (ctx->n_src != 2)
        return tgi_fail(err, TG_E_FORMAT, "%d inputs, expected data and slope", ctx->n_src);
    TGI_TRY(tgi_infer_broadcast(ctx, lead_of(ctx), &d, err));
    if (!tgi_desc_same_shape(&d, &ctx->src[0])) {
        char a[128], b[128];
        return tgi_fail(err, TG_E_FORMAT, "slope %s does not fit data %s",
                        tgi_desc_text(&ctx->src[1], a, sizeof a),
                        tgi_desc_text(&ctx->src[0], b, sizeof b));
    }
    dst[0] = d;
    return TG_OK;
}

static double below(double x, double slope)
{
    return x < 0 ? x * slope : x;
}

static const tgi_arith arith = {below, NULL};

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    return tgi_ref_arith(call, &arith, lead_of(call->ctx), err);
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    return tgi_eval_arith(ctx, dst_data, &arith, lead_of(ctx), err);
}

/* One slope for all is a LeakyRelu; one per channel becomes `vec`. */
static int as_step(const tgi_op_ctx *ctx, int chain, tgi_epi_step *step)
{
    const tgi_const_form form = tgi_const_form_of(ctx, 1, lead_of(ctx));
    if (chain != 0 || (form != TGI_CONST_SCALAR && form != TGI_CONST_CHANNEL))
        return 0;
    *step = (tgi_epi_step){.kind = TGI_EPI_PRELU, .src = -1};
    if (form == TGI_CONST_SCALAR) {
        step->kind = TGI_EPI_LEAKY;
        step->a = (float)tgi_num_at(tgi_const(ctx, 1), 0);
    }
    return 1;
}

const tgi_op tgi_op_p_relu = {
    .name = "PRelu",
    .infer = infer,
    .slide = tgi_slide_broadcast,
    .ref = ref,
    .eval = eval,
    .as_step = as_step,
};

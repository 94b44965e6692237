/* op_leaky_relu.c - LeakyRelu: x, or alpha*x below 0.
 * Border: none, each element by itself.
 * @source ONNX operator LeakyRelu, versions 6 to 16. */
#include "kernels/ops/op_shared.h"

static const tg_attr rows[] = {{"alpha", TG_ATTR_FLOAT, offsetof(alpha_attrs, alpha), 0.01, 0,
                                0, NULL, "alpha of the formula"},
                               {0}};

static double value(double x, const void *attrs)
{
    const alpha_attrs *a = attrs;
    return x < 0 ? (double)a->alpha * x : x;
}

static tg_status ref(const tg_call *call, tgi_err *err)
{
    return tgi_ref_unary(call, value, err);
}

static tg_status eval(const tg_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    return tgi_eval_unary(ctx, dst_data, value, err);
}

static int as_step(const tg_op_ctx *ctx, int chain, tg_epi_step *step)
{
    const alpha_attrs *a = ctx->attrs;
    (void)chain;
    *step = (tg_epi_step){.kind = TG_EPI_LEAKY, .src = -1, .a = a->alpha};
    return 1;
}

const tg_op tg_op_leaky_relu = {
    .name = "LeakyRelu",
    .attrs = rows,
    .attrs_size = sizeof(alpha_attrs),
    .infer = tgi_infer_same,
    .ref = ref,
    .eval = eval,
    .as_step = as_step,
};

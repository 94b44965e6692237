/* op_leaky_relu.c - LeakyRelu: x, or alpha*x below 0.
 * Border: none, each element by itself.
 * @source ONNX operator LeakyRelu, versions 6 to 16. */
#include "kernels/ops/op_shared.h"

static const tgi_attr rows[] = {{"alpha", TGI_ATTR_FLOAT, offsetof(alpha_attrs, alpha), 0.01, 0,
                                 0, NULL, "alpha of the formula"},
                                {0}};

static double value(double x, const void *attrs)
{
    const alpha_attrs *a = attrs;
    return x < 0 ? (double)a->alpha * x : x;
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    return tgi_ref_unary(call, value, err);
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    return tgi_eval_unary(ctx, dst_data, value, err);
}

static int as_step(const tgi_op_ctx *ctx, int chain, tgi_epi_step *step)
{
    const alpha_attrs *a = ctx->attrs;
    (void)chain;
    *step = (tgi_epi_step){.kind = TGI_EPI_LEAKY, .src = -1, .a = a->alpha};
    return 1;
}

const tgi_op tgi_op_leaky_relu = {
    .name = "LeakyRelu",
    .attrs = rows,
    .attrs_size = sizeof(alpha_attrs),
    .infer = tgi_infer_same,
    .ref = ref,
    .eval = eval,
    .as_step = as_step,
};

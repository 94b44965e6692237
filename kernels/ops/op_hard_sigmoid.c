/* op_hard_sigmoid.c - HardSigmoid: clip(alpha*x + beta, 0, 1).
 * Border: none, each element by itself.
 * @source ONNX operator HardSigmoid, versions 6 to 22. */
#include "kernels/ops/op_shared.h"

#include <math.h>

static const tgi_attr rows[] = {{"alpha", TGI_ATTR_FLOAT, offsetof(alpha_attrs, alpha), 0.2, 0,
                                 0, NULL, "alpha of the formula"},
                                {"beta", TGI_ATTR_FLOAT, offsetof(alpha_attrs, beta), 0.5, 0, 0,
                                 NULL, "beta of the formula"},
                                {0}};

static double value(double x, const void *attrs)
{
    const alpha_attrs *a = attrs;
    return fmax(0.0, fmin(1.0, (double)a->alpha * x + (double)a->beta));
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
    *step = (tgi_epi_step){.kind = TGI_EPI_HARDSIGMOID, .src = -1, .a = a->alpha, .b = a->beta};
    return 1;
}

const tgi_op tgi_op_hard_sigmoid = {
    .name = "HardSigmoid",
    .attrs = rows,
    .attrs_size = sizeof(alpha_attrs),
    .infer = tgi_infer_same,
    .ref = ref,
    .eval = eval,
    .as_step = as_step,
};

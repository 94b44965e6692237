/* op_hard_swish.c - HardSwish: x * clip(x/6 + 1/2, 0, 1).
 * Border: none, each element by itself.
 * @source ONNX operator HardSwish, versions 14 to 22. */
#include "kernels/ops/op_shared.h"

#include <math.h>

static double value(double x, const void *attrs)
{
    (void)attrs;
    return x * fmax(0.0, fmin(1.0, x / 6.0 + 0.5));
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
    (void)ctx;
    (void)chain;
    *step = (tgi_epi_step){.kind = TGI_EPI_HARDSWISH, .src = -1, .a = 1.0f / 6, .b = 0.5f};
    return 1;
}

const tgi_op tgi_op_hard_swish = {
    .name = "HardSwish",
    .infer = tgi_infer_same,
    .ref = ref,
    .eval = eval,
    .as_step = as_step,
};

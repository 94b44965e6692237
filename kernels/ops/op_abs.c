/* op_abs.c - Abs: |x|.
 * Border: none, each element by itself.
 * @source ONNX operator Abs, versions 6 to 13. */
#include "kernels/ops/op_shared.h"

#include <math.h>

static double value(double x, const void *attrs)
{
    (void)attrs;
    return fabs(x);
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
    *step = (tgi_epi_step){.kind = TGI_EPI_ABS, .src = -1};
    return 1;
}

const tgi_op tgi_op_abs = {
    .name = "Abs",
    .infer = tgi_infer_same,
    .ref = ref,
    .eval = eval,
    .as_step = as_step,
};

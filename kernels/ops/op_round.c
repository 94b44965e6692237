/* op_round.c - Round: nearest integer, halves to even.
 * Border: none, each element by itself.
 * @source ONNX operator Round, versions 11 to 22. */
#include "kernels/ops/op_shared.h"

#include <math.h>

static double value(double x, const void *attrs)
{
    (void)attrs;
    return nearbyint(x);
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    return tgi_ref_unary(call, value, err);
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    return tgi_eval_unary(ctx, dst_data, value, err);
}

const tgi_op tgi_op_round = {
    .name = "Round",
    .infer = tgi_infer_same,
    .ref = ref,
    .eval = eval,
};

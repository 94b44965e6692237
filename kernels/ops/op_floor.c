/* op_floor.c - Floor: largest integer not above x.
 * Border: none, each element by itself.
 * @source ONNX operator Floor, versions 6 to 13. */
#include "kernels/ops/op_shared.h"

#include <math.h>

static double value(double x, const void *attrs)
{
    (void)attrs;
    return floor(x);
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    return tgi_ref_unary(call, value, err);
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    return tgi_eval_unary(ctx, dst_data, value, err);
}

const tgi_op tgi_op_floor = {
    .name = "Floor",
    .infer = tgi_infer_same,
    .ref = ref,
    .eval = eval,
};

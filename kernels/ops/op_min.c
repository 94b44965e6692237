/* op_min.c - Min: smallest of one or more inputs; NaN wins; numpy broadcasting.
 * Border: none, each element by itself; an axis of extent 1 is read as a whole.
 * @source ONNX operator Min, versions 6 to 13. */
#include "kernels/ops/op_shared.h"

#include <math.h>

static double on_floats(double a, double b)
{
    return isnan(a) || a < b ? a : b;
}

static int on_ints(int64_t a, int64_t b, int is_unsigned, int64_t *out)
{
    *out = (is_unsigned ? (uint64_t)a < (uint64_t)b : a < b) ? a : b;
    return 1;
}

static const tgi_arith arith = {on_floats, on_ints};

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    return tgi_infer_broadcast(ctx, -1, dst, err);
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    return tgi_ref_arith(call, &arith, -1, err);
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    return tgi_eval_arith(ctx, dst_data, &arith, -1, err);
}

static int as_step(const tgi_op_ctx *ctx, int chain, tgi_epi_step *step)
{
    return tgi_step_arith(ctx, chain, -1, TGI_EPI_MIN, TGI_EPI_MIN, step);
}

const tgi_op tgi_op_min = {
    .name = "Min",
    .any_type = 1,
    .infer = infer,
    .slide = tgi_slide_broadcast,
    .ref = ref,
    .eval = eval,
    .as_step = as_step,
};

/* op_pow.c - Pow: a to the b; the exponent may be of another type. Squares are exact products.
 * Border: none, each element by itself; an axis of extent 1 is read as a whole.
 * @source ONNX operator Pow, versions 7 to 15 (and `axis` of version 1). */
#include "kernels/ops/op_shared.h"

#include <math.h>

static double on_floats(double a, double b)
{
    return b == 2.0 ? a * a : pow(a, b);
}

static const tgi_arith arith = {on_floats, NULL};

static tg_status infer(const tg_op_ctx *ctx, tg_desc *dst, tgi_err *err)
{
    if (ctx->n_src != 2)
        return tgi_fail(err, TG_E_FORMAT, "%d inputs, expected base and exponent", ctx->n_src);
    if (!tgi_dtype_is_float(ctx->src[0].dtype))
        return tgi_fail(err, TG_E_UNSUPPORTED, "Pow of %s", tgi_dtype_name(ctx->src[0].dtype));
    tg_desc pair[2] = {ctx->src[0], ctx->src[1]};
    tg_op_ctx same = *ctx;
    pair[1].dtype = pair[0].dtype;
    same.src = pair;
    return tgi_infer_broadcast(&same, tgi_binary_lead(ctx), dst, err);
}

static tg_status ref(const tg_call *call, tgi_err *err)
{
    return tgi_ref_arith(call, &arith, tgi_binary_lead(call->ctx), err);
}

static tg_status eval(const tg_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    return tgi_eval_arith(ctx, dst_data, &arith, tgi_binary_lead(ctx), err);
}

const tg_op tg_op_pow = {
    .name = "Pow",
    .attrs = tgi_binary_rows,
    .attrs_size = sizeof(tgi_binary_attrs),
    .infer = infer,
    .need = tgi_need_broadcast,
    .ref = ref,
    .eval = eval,
};

/* op_pow.c - Pow: a to the b; the exponent may be of another type, the result has the base's.
 * Squares are exact products; integers to integers are products modulo the type's range.
 * Border: none, each element by itself; an axis of extent 1 is read as a whole.
 * @source ONNX operator Pow, versions 7 to 15 (and `axis` of version 1). */
#include "kernels/ops/op_shared.h"

#include <math.h>

static double on_floats(double a, double b)
{
    return b == 2.0 ? a * a : pow(a, b);
}

/* By squaring; a negative exponent leaves the integer part of 1 / a^|b|. */
static int on_ints(int64_t a, int64_t b, int is_unsigned, int64_t *out)
{
    uint64_t r = 1, base = (uint64_t)a;
    if (!is_unsigned && b < 0) {
        *out = a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
        return a != 0;
    }
    for (uint64_t n = (uint64_t)b; n; n >>= 1, base *= base)
        r *= n & 1 ? base : 1;
    *out = (int64_t)r;
    return 1;
}

static const tgi_arith arith = {on_floats, on_ints};

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    if (ctx->n_src != 2)
        return tgi_fail(err, TG_E_FORMAT, "%d inputs, expected base and exponent", ctx->n_src);
    tgi_desc pair[2] = {ctx->src[0], ctx->src[1]};
    tgi_op_ctx same = *ctx;
    pair[1].dtype = pair[0].dtype;
    same.src = pair;
    return tgi_infer_broadcast(&same, tgi_binary_lead(ctx), dst, err);
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    return tgi_ref_arith(call, &arith, tgi_binary_lead(call->ctx), err);
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    return tgi_eval_arith(ctx, dst_data, &arith, tgi_binary_lead(ctx), err);
}

const tgi_op tgi_op_pow = {
    .name = "Pow",
    .attrs = tgi_binary_rows,
    .attrs_size = sizeof(tgi_binary_attrs),
    .infer = infer,
    .slide = tgi_slide_broadcast,
    .ref = ref,
    .eval = eval,
};

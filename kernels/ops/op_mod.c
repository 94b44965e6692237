/* op_mod.c - Mod: the remainder. fmod = 0 takes the sign of the divisor (Python's %), of
 * integers; fmod = 1 the sign of the dividend (C's fmod). Numpy broadcasting.
 * Border: none, each element by itself; an axis of extent 1 is read as a whole.
 * @source ONNX operator Mod, versions 10 and 13. */
#include "kernels/ops/op_shared.h"

#include <math.h>

static const tgi_attr rows[] = {
    {"fmod", TGI_ATTR_INT, offsetof(mod_attrs, fmod), 0, 0, 1, NULL, "sign of the dividend"},
    {0}};

static double floats_c(double a, double b)
{
    return fmod(a, b);
}

static double floats_python(double a, double b)
{
    const double r = fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static int ints_c(int64_t a, int64_t b, int is_unsigned, int64_t *out)
{
    if (b == 0)
        return 0;
    if (is_unsigned)
        *out = (int64_t)((uint64_t)a % (uint64_t)b);
    else
        *out = b == -1 ? 0 : a % b; /* INT64_MIN % -1 overflows */
    return 1;
}

static int ints_python(int64_t a, int64_t b, int is_unsigned, int64_t *out)
{
    if (!ints_c(a, b, is_unsigned, out))
        return 0;
    if (!is_unsigned && *out != 0 && (*out < 0) != (b < 0))
        *out += b;
    return 1;
}

static const tgi_arith *arith(const tgi_op_ctx *ctx)
{
    static const tgi_arith python = {floats_python, ints_python}, c = {floats_c, ints_c};
    return ((const mod_attrs *)ctx->attrs)->fmod ? &c : &python;
}

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    if (ctx->n_src != 2)
        return tgi_fail(err, TG_E_FORMAT, "%d inputs, expected 2", ctx->n_src);
    return tgi_infer_broadcast(ctx, -1, dst, err);
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    return tgi_ref_arith(call, arith(call->ctx), -1, err);
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    return tgi_eval_arith(ctx, dst_data, arith(ctx), -1, err);
}

const tgi_op tgi_op_mod = {
    .name = "Mod",
    .attrs = rows,
    .attrs_size = sizeof(mod_attrs),
    .infer = infer,
    .slide = tgi_slide_broadcast,
    .ref = ref,
    .eval = eval,
};

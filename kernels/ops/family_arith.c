/* family_arith.c - arithmetic of two numbers, or of more that are taken from left to right, on
 * floats and on integers; numpy broadcasting. The tables make a tgi_op of each formula.
 * Border: none, each element by itself; an axis of extent 1 is read as a whole.
 * @source ONNX operators Add, Sub, Mul, Div, versions 7 to 14 (and `axis` of versions 1 to 6);
 * Min, Max, Sum, Mean, versions 6 to 13; Pow, versions 7 to 15 (and `axis` of version 1); Mod,
 * versions 10 and 13. */
#include "kernels/ops/op_shared.h"

#include <math.h>

/* ---- Formulas ---------------------------------------------------------------------------- */

/* On integers modulo the range of the type. */
#define WRAPPING(symbol, op)                                                                   \
    static double f_##symbol(double a, double b)                                               \
    {                                                                                          \
        return a op b;                                                                         \
    }                                                                                          \
    static int i_##symbol(int64_t a, int64_t b, int is_unsigned, int64_t *out)                 \
    {                                                                                          \
        (void)is_unsigned;                                                                     \
        *out = (int64_t)((uint64_t)a op(uint64_t) b);                                          \
        return 1;                                                                              \
    }                                                                                          \
    static const tgi_arith arith_##symbol = {f_##symbol, i_##symbol};

WRAPPING(add, +)
WRAPPING(mul, *)
WRAPPING(sub, -)

/* The one that stands in that order to the other; NaN wins. */
#define EXTREME(symbol, op)                                                                    \
    static double f_##symbol(double a, double b)                                               \
    {                                                                                          \
        return isnan(a) || a op b ? a : b;                                                     \
    }                                                                                          \
    static int i_##symbol(int64_t a, int64_t b, int is_unsigned, int64_t *out)                 \
    {                                                                                          \
        *out = (is_unsigned ? (uint64_t)a op(uint64_t) b : a op b) ? a : b;                    \
        return 1;                                                                              \
    }                                                                                          \
    static const tgi_arith arith_##symbol = {f_##symbol, i_##symbol};

EXTREME(max, >)
EXTREME(min, <)

static double f_div(double a, double b)
{
    return a / b;
}

/* Towards zero. */
static int i_div(int64_t a, int64_t b, int is_unsigned, int64_t *out)
{
    if (b == 0)
        return 0;
    if (is_unsigned)
        *out = (int64_t)((uint64_t)a / (uint64_t)b);
    else
        *out = b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b; /* INT64_MIN / -1 wraps */
    return 1;
}

static const tgi_arith arith_div = {f_div, i_div};

/* ---- Operators of a formula and a step --------------------------------------------------- */

static int at_the_end(const tgi_op_ctx *ctx)
{
    (void)ctx;
    return -1;
}

/* `lead`: where the second input's axes begin; `fwd` and `rev`: the step, by which input is the
 * running value; then what else the operator has. */
#define ARITH(symbol, onnx, arith, lead, fwd, rev, ...)                                        \
    static tg_status infer_##symbol(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)        \
    {                                                                                          \
        return tgi_infer_broadcast(ctx, lead(ctx), dst, err);                                  \
    }                                                                                          \
    static tg_status ref_##symbol(const tgi_call *call, tgi_err *err)                          \
    {                                                                                          \
        return tgi_ref_arith(call, &(arith), lead(call->ctx), err);                            \
    }                                                                                          \
    static tg_status eval_##symbol(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err) \
    {                                                                                          \
        return tgi_eval_arith(ctx, dst_data, &(arith), lead(ctx), err);                        \
    }                                                                                          \
    static int step_##symbol(const tgi_op_ctx *ctx, int chain, tgi_epi_step *step)             \
    {                                                                                          \
        return tgi_step_arith(ctx, chain, lead(ctx), fwd, rev, step);                          \
    }                                                                                          \
    const tgi_op tgi_op_##symbol = {.name = onnx,                                              \
                                    .infer = infer_##symbol,                                   \
                                    .slide = tgi_slide_broadcast,                              \
                                    .ref = ref_##symbol,                                       \
                                    .eval = eval_##symbol,                                     \
                                    .as_step = step_##symbol,                                  \
                                    __VA_ARGS__};
#define BINARY(symbol, onnx, fwd, rev)                                                         \
    ARITH(symbol, onnx, arith_##symbol, tgi_binary_lead, fwd, rev, .attrs = tgi_binary_rows,   \
          .attrs_size = sizeof(tgi_binary_attrs))

BINARY(add, "Add", TGI_EPI_ADD, TGI_EPI_ADD)
BINARY(div, "Div", TGI_EPI_DIV, TGI_EPI_RDIV)
ARITH(max, "Max", arith_max, at_the_end, TGI_EPI_MAX, TGI_EPI_MAX, .any_type = 1)
ARITH(min, "Min", arith_min, at_the_end, TGI_EPI_MIN, TGI_EPI_MIN, .any_type = 1)
BINARY(mul, "Mul", TGI_EPI_MUL, TGI_EPI_MUL)
BINARY(sub, "Sub", TGI_EPI_SUB, TGI_EPI_RSUB)
ARITH(sum, "Sum", arith_add, at_the_end, TGI_EPI_ADD, TGI_EPI_ADD, .any_type = 0)

/* ---- Mean: summed in float64 ------------------------------------------------------------- */

static tg_status infer_mean(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    return tgi_infer_broadcast(ctx, -1, dst, err);
}

static float mean_at(const tgi_call *call, const void *arg, const tgi_px *p)
{
    const int n = call->ctx->n_src;
    double sum = 0;
    (void)arg;
    for (int i = 0; i < n; i++)
        sum += (double)tgi_src_broadcast(call, i, -1, p);
    return (float)(sum / n);
}

static tg_status ref_mean(const tgi_call *call, tgi_err *err)
{
    TGI_TRY(tgi_check_ranks(call, err));
    tgi_ref_each(call, 0, mean_at, NULL);
    return TG_OK;
}

static tg_status eval_mean(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    int64_t at[TGI_MAX_RANK] = {0}, n = 0;
    (void)err;
    if (tgi_dense_count(&ctx->dst[0]) == 0)
        return TG_OK;
    do {
        double sum = 0;
        for (int i = 0; i < ctx->n_src; i++)
            sum += tgi_num_at(ctx->const_src[i], tgi_dense_offset(ctx, i, -1, at));
        tgi_num_put(ctx->dst[0].dtype, dst_data[0], n++, sum / ctx->n_src);
    } while (tgi_next_index(&ctx->dst[0], at));
    return TG_OK;
}

const tgi_op tgi_op_mean = {
    .name = "Mean",
    .infer = infer_mean,
    .slide = tgi_slide_broadcast,
    .ref = ref_mean,
    .eval = eval_mean,
};

/* ---- Mod: the remainder ------------------------------------------------------------------ */

/* fmod = 0 takes the sign of the divisor (Python's %), of integers; fmod = 1 the sign of the
 * dividend (C's fmod). */
static const tgi_attr mod_rows[] = {
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

static const tgi_arith *arith_mod(const tgi_op_ctx *ctx)
{
    static const tgi_arith python = {floats_python, ints_python}, c = {floats_c, ints_c};
    return ((const mod_attrs *)ctx->attrs)->fmod ? &c : &python;
}

static tg_status infer_mod(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    if (ctx->n_src != 2)
        return tgi_fail(err, TG_E_FORMAT, "%d inputs, expected 2", ctx->n_src);
    return tgi_infer_broadcast(ctx, -1, dst, err);
}

static tg_status ref_mod(const tgi_call *call, tgi_err *err)
{
    return tgi_ref_arith(call, arith_mod(call->ctx), -1, err);
}

static tg_status eval_mod(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    return tgi_eval_arith(ctx, dst_data, arith_mod(ctx), -1, err);
}

const tgi_op tgi_op_mod = {
    .name = "Mod",
    .attrs = mod_rows,
    .attrs_size = sizeof(mod_attrs),
    .infer = infer_mod,
    .slide = tgi_slide_broadcast,
    .ref = ref_mod,
    .eval = eval_mod,
};

/* ---- Pow --------------------------------------------------------------------------------- */

/* The exponent may be of another type, the result has the base's. Squares are exact products;
 * integers to integers are products modulo the type's range. */
static double f_pow(double a, double b)
{
    return b == 2.0 ? a * a : pow(a, b);
}

/* By squaring; a negative exponent leaves the integer part of 1 / a^|b|. */
static int i_pow(int64_t a, int64_t b, int is_unsigned, int64_t *out)
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

static const tgi_arith arith_pow = {f_pow, i_pow};

static tg_status infer_pow(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    if (ctx->n_src != 2)
        return tgi_fail(err, TG_E_FORMAT, "%d inputs, expected base and exponent", ctx->n_src);
    tgi_desc pair[2] = {ctx->src[0], ctx->src[1]};
    tgi_op_ctx same = *ctx;
    pair[1].dtype = pair[0].dtype;
    same.src = pair;
    return tgi_infer_broadcast(&same, tgi_binary_lead(ctx), dst, err);
}

static tg_status ref_pow(const tgi_call *call, tgi_err *err)
{
    return tgi_ref_arith(call, &arith_pow, tgi_binary_lead(call->ctx), err);
}

static tg_status eval_pow(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    return tgi_eval_arith(ctx, dst_data, &arith_pow, tgi_binary_lead(ctx), err);
}

const tgi_op tgi_op_pow = {
    .name = "Pow",
    .attrs = tgi_binary_rows,
    .attrs_size = sizeof(tgi_binary_attrs),
    .infer = infer_pow,
    .slide = tgi_slide_broadcast,
    .ref = ref_pow,
    .eval = eval_pow,
};

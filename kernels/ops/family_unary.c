/* family_unary.c - operators that are one formula of one number: trigonometry, activations
 * without a kernel of their own, and tests of a number (Not, IsInf, IsNaN), which yield bool.
 * Computed in float64 and rounded once. The table at the end makes a tgi_op of each formula.
 * Border: none, each element by itself.
 * @source ONNX operators of the names in the table; Gelu's tanh form: its specification. */
#include "kernels/ops/op_shared.h"

#include <math.h>

#define SQRT_HALF 0.70710678118654752440
#define SQRT_2_OVER_PI 0.79788456080286535588

/* ---- Attributes -------------------------------------------------------------------------- */

#define REAL(name, field, def, help)                                                           \
    {                                                                                          \
        name, TGI_ATTR_FLOAT, offsetof(unary_attrs, field), def, 0, 0, NULL, help              \
    }
#define FLAG(name, field, help)                                                                \
    {                                                                                          \
        name, TGI_ATTR_INT, offsetof(unary_attrs, field), 1, 0, 1, NULL, help                  \
    }

static const char *const gelu_modes[] = {"none", "tanh", NULL};

static const tgi_attr celu_rows[] = {REAL("alpha", a, 1, "scale of the exponent"), {0}};
static const tgi_attr gelu_rows[] = {{"approximate", TGI_ATTR_ENUM, offsetof(unary_attrs, mode),
                                      0, 0, 1, gelu_modes, "erf or tanh"},
                                     {0}};
static const tgi_attr is_inf_rows[] = {FLAG("detect_negative", low, "-inf counts"),
                                       FLAG("detect_positive", high, "+inf counts"),
                                       {0}};
static const tgi_attr selu_rows[] = {REAL("alpha", a, 1.67326319217681884765625, "of elu"),
                                     REAL("gamma", b, 1.05070102214813232421875, "factor"),
                                     {0}};
static const tgi_attr shrink_rows[] = {
    REAL("bias", b, 0, "taken from what is kept"), REAL("lambd", a, 0.5, "below it: 0"), {0}};
static const tgi_attr swish_rows[] = {REAL("alpha", a, 1, "slope of the sigmoid"), {0}};
static const tgi_attr thresholded_relu_rows[] = {REAL("alpha", a, 1, "below it: 0"), {0}};

/* ---- Formulas ---------------------------------------------------------------------------- */

#define ALPHA ((double)((const unary_attrs *)attrs)->a)
#define BETA ((double)((const unary_attrs *)attrs)->b)
#define FORMULA(symbol, result)                                                                \
    static double value_##symbol(double x, const void *attrs)                                  \
    {                                                                                          \
        (void)attrs;                                                                           \
        return result;                                                                         \
    }

FORMULA(acos, acos(x))
FORMULA(acosh, acosh(x))
FORMULA(asin, asin(x))
FORMULA(asinh, asinh(x))
FORMULA(atan, atan(x))
FORMULA(atanh, atanh(x))
FORMULA(celu, x > 0 ? x : ALPHA * expm1(x / ALPHA))
FORMULA(cos, cos(x))
FORMULA(cosh, cosh(x))
FORMULA(erf, erf(x))
FORMULA(is_nan, isnan(x) != 0)
FORMULA(mish, x *tanh((x > 0 ? x : 0.0) + log1p(exp(-fabs(x)))))
FORMULA(not, x == 0)
FORMULA(selu, BETA *(x > 0 ? x : ALPHA * expm1(x)))
FORMULA(shrink, x<-ALPHA ? x + BETA : x> ALPHA ? x - BETA : isnan(x) ? x : 0.0)
FORMULA(sign, isnan(x) ? x : (x > 0) - (x < 0))
FORMULA(sin, sin(x))
FORMULA(sinh, sinh(x))
FORMULA(swish, x / (1 + exp(-ALPHA * x)))
FORMULA(tan, tan(x))
FORMULA(thresholded_relu, x > ALPHA || isnan(x) ? x : 0.0)

static double value_gelu(double x, const void *attrs)
{
    const unary_attrs *a = attrs;
    return a->mode ? 0.5 * x * (1 + tanh(SQRT_2_OVER_PI * (x + 0.044715 * x * x * x)))
                   : 0.5 * x * (1 + erf(x * SQRT_HALF));
}

static double value_is_inf(double x, const void *attrs)
{
    const unary_attrs *a = attrs;
    return isinf(x) && (x < 0 ? a->low : a->high);
}

/* Celu with alpha 1 is Elu, Swish with alpha 1 is x * sigmoid(x): steps that kernels have. */
static int step_when_one(const tgi_op_ctx *ctx, tgi_epi_kind kind, tgi_epi_step *step)
{
    const float alpha = ((const unary_attrs *)ctx->attrs)->a;
    *step = (tgi_epi_step){.kind = kind, .src = -1, .a = 1.0f};
    return alpha >= 1.0f && alpha <= 1.0f;
}

static int celu_step(const tgi_op_ctx *ctx, int chain, tgi_epi_step *step)
{
    (void)chain;
    return step_when_one(ctx, TGI_EPI_ELU, step);
}

static int swish_step(const tgi_op_ctx *ctx, int chain, tgi_epi_step *step)
{
    (void)chain;
    return step_when_one(ctx, TGI_EPI_SILU, step);
}

/* ---- Operators --------------------------------------------------------------------------- */

static tg_status infer_bool(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    TGI_TRY(tgi_infer_same(ctx, dst, err));
    dst[0].dtype = TG_DTYPE_BOOL;
    return TG_OK;
}

#define UNARY_WITH(symbol, onnx, shape, rows, size, step)                                      \
    static tg_status ref_##symbol(const tgi_call *call, tgi_err *err)                          \
    {                                                                                          \
        return tgi_ref_unary(call, value_##symbol, err);                                       \
    }                                                                                          \
    static tg_status eval_##symbol(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err) \
    {                                                                                          \
        return tgi_eval_unary(ctx, dst_data, value_##symbol, err);                             \
    }                                                                                          \
    const tgi_op tgi_op_##symbol = {.name = onnx,                                              \
                                    .attrs = rows,                                             \
                                    .attrs_size = size,                                        \
                                    .infer = shape,                                            \
                                    .ref = ref_##symbol,                                       \
                                    .eval = eval_##symbol,                                     \
                                    .as_step = step,                                           \
                                    .any_type = (shape) == infer_bool};
#define UNARY(symbol, onnx, shape) UNARY_WITH(symbol, onnx, shape, NULL, 0, NULL)
#define UNARY_ROWS(symbol, onnx, shape, step)                                                  \
    UNARY_WITH(symbol, onnx, shape, symbol##_rows, sizeof(unary_attrs), step)

UNARY(acos, "Acos", tgi_infer_same)
UNARY(acosh, "Acosh", tgi_infer_same)
UNARY(asin, "Asin", tgi_infer_same)
UNARY(asinh, "Asinh", tgi_infer_same)
UNARY(atan, "Atan", tgi_infer_same)
UNARY(atanh, "Atanh", tgi_infer_same)
UNARY_ROWS(celu, "Celu", tgi_infer_same, celu_step)
UNARY(cos, "Cos", tgi_infer_same)
UNARY(cosh, "Cosh", tgi_infer_same)
UNARY(erf, "Erf", tgi_infer_same)
UNARY_ROWS(gelu, "Gelu", tgi_infer_same, NULL)
UNARY_ROWS(is_inf, "IsInf", infer_bool, NULL)
UNARY(is_nan, "IsNaN", infer_bool)
UNARY(mish, "Mish", tgi_infer_same)
UNARY(not, "Not", infer_bool)
UNARY_ROWS(selu, "Selu", tgi_infer_same, NULL)
UNARY_ROWS(shrink, "Shrink", tgi_infer_same, NULL)
UNARY(sign, "Sign", tgi_infer_same)
UNARY(sin, "Sin", tgi_infer_same)
UNARY(sinh, "Sinh", tgi_infer_same)
UNARY_ROWS(swish, "Swish", tgi_infer_same, swish_step)
UNARY(tan, "Tan", tgi_infer_same)
UNARY_ROWS(thresholded_relu, "ThresholdedRelu", tgi_infer_same, NULL)

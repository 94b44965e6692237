/* family_unary.c - operators that are one formula of one number: roundings, powers, trigonometry,
 * activations, and tests of a number (Not, IsInf, IsNaN), which yield bool. Computed in float64
 * and rounded once. The table at the end makes a tgi_op of each formula.
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
#define ALPHA_ROW(def)                                                                         \
    {                                                                                          \
        "alpha", TGI_ATTR_FLOAT, offsetof(alpha_attrs, alpha), def, 0, 0, NULL,                \
            "alpha of the formula"                                                             \
    }
#define FLAG(name, field, help)                                                                \
    {                                                                                          \
        name, TGI_ATTR_INT, offsetof(unary_attrs, field), 1, 0, 1, NULL, help                  \
    }

static const char *const gelu_modes[] = {"none", "tanh", NULL};

static const tgi_attr celu_rows[] = {REAL("alpha", a, 1, "scale of the exponent"), {0}};
static const tgi_attr elu_rows[] = {ALPHA_ROW(1.0), {0}};
static const tgi_attr gelu_rows[] = {{"approximate", TGI_ATTR_ENUM, offsetof(unary_attrs, mode),
                                      0, 0, 1, gelu_modes, "erf or tanh"},
                                     {0}};
static const tgi_attr hard_sigmoid_rows[] = {ALPHA_ROW(0.2),
                                             {"beta", TGI_ATTR_FLOAT,
                                              offsetof(alpha_attrs, beta), 0.5, 0, 0, NULL,
                                              "beta of the formula"},
                                             {0}};
static const tgi_attr is_inf_rows[] = {FLAG("detect_negative", low, "-inf counts"),
                                       FLAG("detect_positive", high, "+inf counts"),
                                       {0}};
static const tgi_attr leaky_relu_rows[] = {ALPHA_ROW(0.01), {0}};
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
#define SLOPE ((double)((const alpha_attrs *)attrs)->alpha) /* of those that kernels have */
#define SHIFT ((double)((const alpha_attrs *)attrs)->beta)
#define FORMULA(symbol, result)                                                                \
    static double value_##symbol(double x, const void *attrs)                                  \
    {                                                                                          \
        (void)attrs;                                                                           \
        return result;                                                                         \
    }

FORMULA(abs, fabs(x))
FORMULA(acos, acos(x))
FORMULA(acosh, acosh(x))
FORMULA(asin, asin(x))
FORMULA(asinh, asinh(x))
FORMULA(atan, atan(x))
FORMULA(atanh, atanh(x))
FORMULA(ceil, ceil(x))
FORMULA(celu, x > 0 ? x : ALPHA * expm1(x / ALPHA))
FORMULA(cos, cos(x))
FORMULA(cosh, cosh(x))
FORMULA(elu, x < 0 ? SLOPE * expm1(x) : x)
FORMULA(erf, erf(x))
FORMULA(exp, exp(x))
FORMULA(floor, floor(x))
FORMULA(hard_sigmoid, fmax(0.0, fmin(1.0, SLOPE *x + SHIFT)))
FORMULA(hard_swish, x *fmax(0.0, fmin(1.0, x / 6.0 + 0.5)))
FORMULA(is_nan, isnan(x) != 0)
FORMULA(leaky_relu, x < 0 ? SLOPE * x : x)
FORMULA(log, log(x))
FORMULA(mish, x *tanh((x > 0 ? x : 0.0) + log1p(exp(-fabs(x)))))
FORMULA(neg, -x)
FORMULA(not, x == 0)
FORMULA(reciprocal, 1.0 / x)
FORMULA(relu, x < 0 ? 0.0 : x) /* NaN stays NaN */
FORMULA(round, nearbyint(x))   /* halves to even */
FORMULA(selu, BETA *(x > 0 ? x : ALPHA * expm1(x)))
FORMULA(shrink, x<-ALPHA ? x + BETA : x> ALPHA ? x - BETA : isnan(x) ? x : 0.0)
FORMULA(sigmoid, 1.0 / (1.0 + exp(-x)))
FORMULA(sign, isnan(x) ? x : (x > 0) - (x < 0))
FORMULA(sin, sin(x))
FORMULA(sinh, sinh(x))
FORMULA(softplus, (x > 0 ? x : 0.0) + log1p(exp(-fabs(x)))) /* does not overflow */
FORMULA(softsign, x / (1.0 + fabs(x)))
FORMULA(sqrt, sqrt(x))
FORMULA(swish, x / (1 + exp(-ALPHA * x)))
FORMULA(tan, tan(x))
FORMULA(tanh, tanh(x))
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

static int gelu_step(const tgi_op_ctx *ctx, int chain, tgi_epi_step *step)
{
    const unary_attrs *a = ctx->attrs;
    (void)chain;
    *step = (tgi_epi_step){.kind = a->mode ? TGI_EPI_GELU_TANH : TGI_EPI_GELU, .src = -1};
    return 1;
}

/* Steps that kernels do in passing; the numbers that they take are `first` and `second`. */
#define STEP(symbol, which, first, second)                                                     \
    static int symbol##_step(const tgi_op_ctx *ctx, int chain, tgi_epi_step *step)             \
    {                                                                                          \
        const alpha_attrs *attrs = ctx->attrs;                                                 \
        (void)attrs;                                                                           \
        (void)chain;                                                                           \
        *step = (tgi_epi_step){.kind = which, .src = -1, .a = first, .b = second};             \
        return 1;                                                                              \
    }

STEP(abs, TGI_EPI_ABS, 0, 0)
STEP(elu, TGI_EPI_ELU, attrs->alpha, 0)
STEP(exp, TGI_EPI_EXP, 0, 0)
STEP(hard_sigmoid, TGI_EPI_HARDSIGMOID, attrs->alpha, attrs->beta)
STEP(hard_swish, TGI_EPI_HARDSWISH, 1.0f / 6, 0.5f)
STEP(leaky_relu, TGI_EPI_LEAKY, attrs->alpha, 0)
STEP(neg, TGI_EPI_NEG, 0, 0)
STEP(relu, TGI_EPI_RELU, 0, 0)
STEP(sigmoid, TGI_EPI_SIGMOID, 0, 0)
STEP(sqrt, TGI_EPI_SQRT, 0, 0)
STEP(tanh, TGI_EPI_TANH, 0, 0)

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
#define UNARY_STEP(symbol, onnx)                                                               \
    UNARY_WITH(symbol, onnx, tgi_infer_same, NULL, 0, symbol##_step)
#define UNARY_ALPHA(symbol, onnx)                                                              \
    UNARY_WITH(symbol, onnx, tgi_infer_same, symbol##_rows, sizeof(alpha_attrs), symbol##_step)
#define UNARY_ROWS(symbol, onnx, shape, step)                                                  \
    UNARY_WITH(symbol, onnx, shape, symbol##_rows, sizeof(unary_attrs), step)

UNARY_STEP(abs, "Abs")
UNARY(acos, "Acos", tgi_infer_same)
UNARY(acosh, "Acosh", tgi_infer_same)
UNARY(asin, "Asin", tgi_infer_same)
UNARY(asinh, "Asinh", tgi_infer_same)
UNARY(atan, "Atan", tgi_infer_same)
UNARY(atanh, "Atanh", tgi_infer_same)
UNARY(ceil, "Ceil", tgi_infer_same)
UNARY_ROWS(celu, "Celu", tgi_infer_same, celu_step)
UNARY(cos, "Cos", tgi_infer_same)
UNARY(cosh, "Cosh", tgi_infer_same)
UNARY_ALPHA(elu, "Elu")
UNARY(erf, "Erf", tgi_infer_same)
UNARY_STEP(exp, "Exp")
UNARY(floor, "Floor", tgi_infer_same)
UNARY_ROWS(gelu, "Gelu", tgi_infer_same, gelu_step)
UNARY_ALPHA(hard_sigmoid, "HardSigmoid")
UNARY_STEP(hard_swish, "HardSwish")
UNARY_ROWS(is_inf, "IsInf", infer_bool, NULL)
UNARY(is_nan, "IsNaN", infer_bool)
UNARY_ALPHA(leaky_relu, "LeakyRelu")
UNARY(log, "Log", tgi_infer_same)
UNARY(mish, "Mish", tgi_infer_same)
UNARY_STEP(neg, "Neg")
UNARY(not, "Not", infer_bool)
UNARY(reciprocal, "Reciprocal", tgi_infer_same)
UNARY_STEP(relu, "Relu")
UNARY(round, "Round", tgi_infer_same)
UNARY_ROWS(selu, "Selu", tgi_infer_same, NULL)
UNARY_ROWS(shrink, "Shrink", tgi_infer_same, NULL)
UNARY_STEP(sigmoid, "Sigmoid")
UNARY(sign, "Sign", tgi_infer_same)
UNARY(sin, "Sin", tgi_infer_same)
UNARY(sinh, "Sinh", tgi_infer_same)
UNARY(softplus, "Softplus", tgi_infer_same)
UNARY(softsign, "Softsign", tgi_infer_same)
UNARY_STEP(sqrt, "Sqrt")
UNARY_ROWS(swish, "Swish", tgi_infer_same, swish_step)
UNARY(tan, "Tan", tgi_infer_same)
UNARY_STEP(tanh, "Tanh")
UNARY_ROWS(thresholded_relu, "ThresholdedRelu", tgi_infer_same, NULL)

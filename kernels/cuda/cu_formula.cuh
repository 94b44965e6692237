/* cu_formula.cuh - the pointwise operators: their formulas, and which operator is which. Shared
 * by the kernels for images and for whole arrays.
 *
 * Operators that are epilogue steps run the step's own code; the rest are a formula of up to
 * three numbers in float32. Formulas are written so that nothing cancels; the references
 * compute in float64.
 *
 * A kernel computes V numbers at once. It brings a *reader*, `read(k, v)`: operand k there. */
#ifndef TGI_CU_FORMULA_CUH
#define TGI_CU_FORMULA_CUH

#include "kernels/cuda/cu_epilogue.cuh"

extern "C" {
#include "kernels/ops/op_shared.h"
}

/* What is not a step of an epilogue (tgi_epi_kind is below 100). */
enum cu_formula_kind {
    CU_ACOS = 100,
    CU_ACOSH,
    CU_AND,
    CU_ASIN,
    CU_ASINH,
    CU_ATAN,
    CU_ATANH,
    CU_BIT_AND,
    CU_BIT_OR,
    CU_BIT_XOR,
    CU_CAST,
    CU_CEIL,
    CU_CELU,
    CU_COS,
    CU_COSH,
    CU_EQUAL,
    CU_ERF,
    CU_FLOOR,
    CU_GELU,
    CU_GREATER,
    CU_GREATER_EQUAL,
    CU_IS_INF,
    CU_IS_NAN,
    CU_LESS,
    CU_LESS_EQUAL,
    CU_LOG,
    CU_MEAN,
    CU_MISH,
    CU_MOD,
    CU_NOT,
    CU_OR,
    CU_POW,
    CU_RECIPROCAL,
    CU_ROUND,
    CU_SELU,
    CU_SHIFT,
    CU_SHRINK,
    CU_SIGN,
    CU_SIN,
    CU_SINH,
    CU_SOFTPLUS,
    CU_SOFTSIGN,
    CU_SWISH,
    CU_TAN,
    CU_THRESHOLD,
    CU_WHERE,
    CU_XOR
};

/* ---- Device: formulas -------------------------------------------------------------------- */

__device__ __forceinline__ float cu_truth(float v)
{
    return v > 0.0f || v < 0.0f ? 1.0f : 0.0f;
}

/* What C makes of x as an integer of this type, tgi_num_put of kernels/ops: truncated, wrapped;
 * outside of 64 bits the nearest. */
__device__ __forceinline__ float cu_cast(float x, int type)
{
    int64_t i;
    if (type == TG_DTYPE_BOOL)
        return x != 0.0f ? 1.0f : 0.0f;
    if (type == TG_DTYPE_U64)
        return x >= 0.0f && (double)x < 1.8e19 ? (float)(uint64_t)x : 0.0f;
    if ((double)x > -9.2e18 && (double)x < 9.2e18)
        i = (int64_t)x;
    else
        i = x < 0.0f ? INT64_MIN : x > 0.0f ? INT64_MAX : 0;
    switch (type) {
    case TG_DTYPE_U8:
        return (float)(uint8_t)i;
    case TG_DTYPE_I8:
        return (float)(int8_t)i;
    case TG_DTYPE_U16:
        return (float)(uint16_t)i;
    case TG_DTYPE_I16:
        return (float)(int16_t)i;
    case TG_DTYPE_U32:
        return (float)(uint32_t)i;
    case TG_DTYPE_I32:
        return (float)(int32_t)i;
    default:
        return (float)i;
    }
}

__device__ __forceinline__ float cu_softplus(float x)
{
    return (x > 0.0f ? x : 0.0f) + log1pf(expf(-fabsf(x)));
}

__device__ __forceinline__ float cu_mod(float x, float y, int c_sign)
{
    const float r = fmodf(x, y);
    return !c_sign && r != 0.0f && (r < 0.0f) != (y < 0.0f) ? r + y : r;
}

/* Of one number. m: the mode, or a type. */
__device__ __forceinline__ float cu_formula_one(int kind, float x, float a, float b, int m)
{
    switch (kind) {
    case CU_ACOS:
        return acosf(x);
    case CU_ACOSH:
        return acoshf(x);
    case CU_ASIN:
        return asinf(x);
    case CU_ASINH:
        return asinhf(x);
    case CU_ATAN:
        return atanf(x);
    case CU_ATANH:
        return atanhf(x);
    case CU_CAST:
        return cu_cast(x, m);
    case CU_CEIL:
        return ceilf(x);
    case CU_CELU:
        return x > 0.0f ? x : a * expm1f(x / a);
    case CU_COS:
        return cosf(x);
    case CU_COSH:
        return coshf(x);
    case CU_ERF:
        return erff(x);
    case CU_FLOOR:
        return floorf(x);
    case CU_GELU:
        return cu_gelu(x, m);
    case CU_IS_INF:
        return (x == INFINITY && (m & 2)) || (x == -INFINITY && (m & 1)) ? 1.0f : 0.0f;
    case CU_IS_NAN:
        return x != x ? 1.0f : 0.0f;
    case CU_LOG:
        return logf(x);
    case CU_MISH:
        return x * tanhf(cu_softplus(x));
    case CU_NOT:
        return x == 0.0f ? 1.0f : 0.0f;
    case CU_RECIPROCAL:
        return 1.0f / x;
    case CU_ROUND:
        return rintf(x);
    case CU_SELU:
        return b * (x > 0.0f ? x : a * expm1f(x));
    case CU_SHRINK:
        return x < -a ? x + b : x > a ? x - b : x != x ? x : 0.0f;
    case CU_SIGN:
        return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x != x ? x : 0.0f;
    case CU_SIN:
        return sinf(x);
    case CU_SINH:
        return sinhf(x);
    case CU_SOFTPLUS:
        return cu_softplus(x);
    case CU_SOFTSIGN:
        return x / (1.0f + fabsf(x));
    case CU_SWISH:
        return x / (1.0f + expf(-a * x));
    case CU_TAN:
        return tanf(x);
    default: /* CU_THRESHOLD */
        return x > a || x != x ? x : 0.0f;
    }
}

/* Of two or three numbers. */
__device__ __forceinline__ float cu_formula_more(int kind, float x, float y, float w, int m)
{
    switch (kind) {
    case CU_AND:
        return cu_truth(x) * cu_truth(y);
    case CU_OR:
        return cu_truth(x) + cu_truth(y) > 0.0f ? 1.0f : 0.0f;
    case CU_XOR:
        return cu_truth(x) != cu_truth(y) ? 1.0f : 0.0f;
    case CU_EQUAL:
        return x == y ? 1.0f : 0.0f;
    case CU_GREATER:
        return x > y ? 1.0f : 0.0f;
    case CU_GREATER_EQUAL:
        return x >= y ? 1.0f : 0.0f;
    case CU_LESS:
        return x < y ? 1.0f : 0.0f;
    case CU_LESS_EQUAL:
        return x <= y ? 1.0f : 0.0f;
    case CU_MOD:
        return cu_mod(x, y, m);
    case CU_POW:
        return y == 2.0f ? x * x : powf(x, y);
    default: /* CU_WHERE */
        return cu_truth(x) > 0.0f ? y : w;
    }
}

/* ---- Device: V numbers of an operator ---------------------------------------------------- */

/* A step of an epilogue: one operand and the scalars, or a fold over `sides` of them. */
struct cu_step_formula {
    int32_t kind, sides;
    float a, b;
    template <int V, class R>
    __device__ __forceinline__ void at(const R &read, float (&v)[V]) const
    {
        float other[V];
        read(0, v);
        if (kind == TGI_EPI_KEEP)
            return;
        if (kind < TGI_EPI_KEEP && kind != TGI_EPI_PRELU) {
#pragma unroll
            for (int i = 0; i < V; i++)
                other[i] = a;
            cu_step_lanes<V>(kind, b, v, other);
            return;
        }
        for (int k = 1; k < sides; k++) {
            read(k, other);
            cu_step_lanes<V>(kind, b, v, other);
        }
    }
};

/* A formula of one number. */
struct cu_one_formula {
    int32_t kind, mode;
    float a, b;
    template <int V, class R>
    __device__ __forceinline__ void at(const R &read, float (&v)[V]) const
    {
        read(0, v);
#pragma unroll 1
        for (int i = 0; i < V; i++) {
            const float done = cu_formula_one(kind, v[0], a, b, mode);
#pragma unroll
            for (int k = 0; k + 1 < V; k++)
                v[k] = v[k + 1];
            v[V - 1] = done;
        }
    }
};

/* Of two or three, or the mean of many. */
struct cu_more_formula {
    int32_t kind, sides, mode, unused;
    template <int V, class R>
    __device__ __forceinline__ void at(const R &read, float (&v)[V]) const
    {
        float y[V], w[V];
        read(0, v);
        if (kind == CU_MEAN) {
            mean<V>(read, v, y);
            return;
        }
        read(1, y);
        read(sides - 1, w);
#pragma unroll 1
        for (int i = 0; i < V; i++) {
            const float done = cu_formula_more(kind, v[0], y[0], w[0], mode);
#pragma unroll
            for (int k = 0; k + 1 < V; k++) {
                v[k] = v[k + 1];
                y[k] = y[k + 1];
                w[k] = w[k + 1];
            }
            v[V - 1] = done;
        }
    }
    template <int V, class R>
    __device__ __forceinline__ void mean(const R &read, float (&v)[V], float (&other)[V]) const
    {
        for (int k = 1; k < sides; k++) {
            read(k, other);
#pragma unroll
            for (int i = 0; i < V; i++)
                v[i] += other[i];
        }
#pragma unroll
        for (int i = 0; i < V; i++)
            v[i] /= (float)sides;
    }
};

/* ---- Host: which operator is what -------------------------------------------------------- */

typedef enum cu_params {
    CU_P_NONE,
    CU_P_ALPHA, /* alpha_attrs */
    CU_P_UNARY, /* unary_attrs */
    CU_P_CLIP,
    CU_P_SIXTH, /* HardSwish */
    CU_P_TYPE,  /* the result's */
    CU_P_MOD,
    CU_P_SHIFT
} cu_params;

/* Over whole arrays, of integers: none; as elements hold them, for they are only compared and
 * chosen; bit by bit, where elements hold every number of their type. */
typedef enum cu_row_integers { CU_I_NONE, CU_I_CHOSEN, CU_I_BITS } cu_row_integers;

typedef struct cu_row {
    int kind;     /* tgi_epi_kind or cu_formula_kind */
    int operands; /* 0: as many as there are */
    int lead;     /* 1: opset < 7 has `axis` and `broadcast`; 2: PRelu's slope of rank 1 */
    cu_params params;
    cu_row_integers integers;
} cu_row;

#define CU_ROW(name, kind, operands, lead, params)                                             \
    static constexpr cu_row cu_row_##name = {kind, operands, lead, params, CU_I_NONE};
#define CU_ROW_I(name, kind, operands, lead, params, integers)                                 \
    static constexpr cu_row cu_row_##name = {kind, operands, lead, params, integers};
CU_ROW(Abs, TGI_EPI_ABS, 1, 0, CU_P_NONE)
CU_ROW(Acos, CU_ACOS, 1, 0, CU_P_NONE)
CU_ROW(Acosh, CU_ACOSH, 1, 0, CU_P_NONE)
CU_ROW(Add, TGI_EPI_ADD, 2, 1, CU_P_NONE)
CU_ROW_I(And, CU_AND, 2, 1, CU_P_NONE, CU_I_CHOSEN)
CU_ROW(Asin, CU_ASIN, 1, 0, CU_P_NONE)
CU_ROW(Asinh, CU_ASINH, 1, 0, CU_P_NONE)
CU_ROW(Atan, CU_ATAN, 1, 0, CU_P_NONE)
CU_ROW(Atanh, CU_ATANH, 1, 0, CU_P_NONE)
CU_ROW_I(BitShift, CU_SHIFT, 2, 0, CU_P_SHIFT, CU_I_BITS)
CU_ROW_I(BitwiseAnd, CU_BIT_AND, 2, 0, CU_P_NONE, CU_I_BITS)
CU_ROW_I(BitwiseOr, CU_BIT_OR, 2, 0, CU_P_NONE, CU_I_BITS)
CU_ROW_I(BitwiseXor, CU_BIT_XOR, 2, 0, CU_P_NONE, CU_I_BITS)
CU_ROW_I(Cast, CU_CAST, 1, 0, CU_P_TYPE, CU_I_CHOSEN)
CU_ROW_I(CastLike, CU_CAST, 1, 0, CU_P_TYPE, CU_I_CHOSEN)
CU_ROW(Ceil, CU_CEIL, 1, 0, CU_P_NONE)
CU_ROW(Celu, CU_CELU, 1, 0, CU_P_UNARY)
CU_ROW_I(Clip, TGI_EPI_CLIP, 1, 0, CU_P_CLIP, CU_I_CHOSEN)
CU_ROW(Cos, CU_COS, 1, 0, CU_P_NONE)
CU_ROW(Cosh, CU_COSH, 1, 0, CU_P_NONE)
CU_ROW(Div, TGI_EPI_DIV, 2, 1, CU_P_NONE)
CU_ROW(Dropout, TGI_EPI_KEEP, 1, 0, CU_P_NONE)
CU_ROW(Elu, TGI_EPI_ELU, 1, 0, CU_P_ALPHA)
CU_ROW_I(Equal, CU_EQUAL, 2, 1, CU_P_NONE, CU_I_CHOSEN)
CU_ROW(Erf, CU_ERF, 1, 0, CU_P_NONE)
CU_ROW(Exp, TGI_EPI_EXP, 1, 0, CU_P_NONE)
CU_ROW(Floor, CU_FLOOR, 1, 0, CU_P_NONE)
CU_ROW(Gelu, CU_GELU, 1, 0, CU_P_UNARY)
CU_ROW_I(Greater, CU_GREATER, 2, 1, CU_P_NONE, CU_I_CHOSEN)
CU_ROW_I(GreaterOrEqual, CU_GREATER_EQUAL, 2, 1, CU_P_NONE, CU_I_CHOSEN)
CU_ROW(HardSigmoid, TGI_EPI_HARDSIGMOID, 1, 0, CU_P_ALPHA)
CU_ROW(HardSwish, TGI_EPI_HARDSWISH, 1, 0, CU_P_SIXTH)
CU_ROW_I(Identity, TGI_EPI_KEEP, 1, 0, CU_P_NONE, CU_I_CHOSEN)
CU_ROW(IsInf, CU_IS_INF, 1, 0, CU_P_UNARY)
CU_ROW(IsNaN, CU_IS_NAN, 1, 0, CU_P_NONE)
CU_ROW(LeakyRelu, TGI_EPI_LEAKY, 1, 0, CU_P_ALPHA)
CU_ROW_I(Less, CU_LESS, 2, 1, CU_P_NONE, CU_I_CHOSEN)
CU_ROW_I(LessOrEqual, CU_LESS_EQUAL, 2, 1, CU_P_NONE, CU_I_CHOSEN)
CU_ROW(Log, CU_LOG, 1, 0, CU_P_NONE)
CU_ROW_I(Max, TGI_EPI_MAX, 0, 0, CU_P_NONE, CU_I_CHOSEN)
CU_ROW(Mean, CU_MEAN, 0, 0, CU_P_NONE)
CU_ROW_I(Min, TGI_EPI_MIN, 0, 0, CU_P_NONE, CU_I_CHOSEN)
CU_ROW(Mish, CU_MISH, 1, 0, CU_P_NONE)
CU_ROW(Mod, CU_MOD, 2, 0, CU_P_MOD)
CU_ROW(Mul, TGI_EPI_MUL, 2, 1, CU_P_NONE)
CU_ROW(Neg, TGI_EPI_NEG, 1, 0, CU_P_NONE)
CU_ROW_I(Not, CU_NOT, 1, 0, CU_P_NONE, CU_I_CHOSEN)
CU_ROW_I(Or, CU_OR, 2, 1, CU_P_NONE, CU_I_CHOSEN)
CU_ROW(PRelu, TGI_EPI_PRELU, 2, 2, CU_P_NONE)
CU_ROW(Pow, CU_POW, 2, 1, CU_P_NONE)
CU_ROW(Reciprocal, CU_RECIPROCAL, 1, 0, CU_P_NONE)
CU_ROW(Relu, TGI_EPI_RELU, 1, 0, CU_P_NONE)
CU_ROW(Round, CU_ROUND, 1, 0, CU_P_NONE)
CU_ROW(Selu, CU_SELU, 1, 0, CU_P_UNARY)
CU_ROW(Shrink, CU_SHRINK, 1, 0, CU_P_UNARY)
CU_ROW(Sigmoid, TGI_EPI_SIGMOID, 1, 0, CU_P_NONE)
CU_ROW(Sign, CU_SIGN, 1, 0, CU_P_NONE)
CU_ROW(Sin, CU_SIN, 1, 0, CU_P_NONE)
CU_ROW(Sinh, CU_SINH, 1, 0, CU_P_NONE)
CU_ROW(Softplus, CU_SOFTPLUS, 1, 0, CU_P_NONE)
CU_ROW(Softsign, CU_SOFTSIGN, 1, 0, CU_P_NONE)
CU_ROW(Sqrt, TGI_EPI_SQRT, 1, 0, CU_P_NONE)
CU_ROW(Sub, TGI_EPI_SUB, 2, 1, CU_P_NONE)
CU_ROW(Sum, TGI_EPI_ADD, 0, 0, CU_P_NONE)
CU_ROW(Swish, CU_SWISH, 1, 0, CU_P_UNARY)
CU_ROW(Tan, CU_TAN, 1, 0, CU_P_NONE)
CU_ROW(Tanh, TGI_EPI_TANH, 1, 0, CU_P_NONE)
CU_ROW(ThresholdedRelu, CU_THRESHOLD, 1, 0, CU_P_UNARY)
CU_ROW_I(Where, CU_WHERE, 3, 0, CU_P_NONE, CU_I_CHOSEN)
CU_ROW_I(Xor, CU_XOR, 2, 1, CU_P_NONE, CU_I_CHOSEN)

inline int cu_operands_of(const cu_row *r, const tgi_op_ctx *ctx)
{
    return r->operands ? r->operands : ctx->n_src;
}

/* The axis of the result where input i begins. */
inline int cu_lead_of(const cu_row *r, const tgi_op_ctx *ctx, int i)
{
    const int end = ctx->dst[0].rank - ctx->src[i].rank;
    const int lead = r->lead == 1 ? tgi_binary_lead(ctx) : -1;
    if (r->lead == 2 && ctx->opset < 7 && ctx->src[1].rank == 1)
        return i == 1 ? 1 : end;
    return lead >= 0 && i > 0 ? lead : end;
}

/* ---- Host: parameters -------------------------------------------------------------------- */

inline void cu_clip_bounds(const tgi_op_ctx *ctx, float *a, float *b)
{
    const clip_attrs *c = (const clip_attrs *)ctx->attrs;
    const tgi_constant *low = tgi_const(ctx, 1), *high = tgi_const(ctx, 2);
    *a = ctx->opset < 11 ? c->min : low ? (float)tgi_num_at(low, 0) : -INFINITY;
    *b = ctx->opset < 11 ? c->max : high ? (float)tgi_num_at(high, 0) : INFINITY;
}

inline void cu_params_of(const cu_row *r, const tgi_op_ctx *ctx, float *a, float *b,
                         int32_t *mode)
{
    const alpha_attrs *al = (const alpha_attrs *)ctx->attrs;
    const unary_attrs *un = (const unary_attrs *)ctx->attrs;
    *a = *b = 0;
    *mode = 0;
    switch (r->params) {
    case CU_P_NONE:
        break;
    case CU_P_ALPHA:
        *a = al->alpha;
        *b = al->beta;
        break;
    case CU_P_UNARY:
        *a = un->a;
        *b = un->b;
        *mode = r->kind == CU_IS_INF ? (un->low ? 1 : 0) | (un->high ? 2 : 0) : un->mode;
        break;
    case CU_P_CLIP:
        cu_clip_bounds(ctx, a, b);
        break;
    case CU_P_SIXTH:
        *a = 1.0f / 6;
        *b = 0.5f;
        break;
    case CU_P_TYPE:
        *mode = ctx->dst[0].dtype;
        break;
    case CU_P_MOD:
        *mode = ((const mod_attrs *)ctx->attrs)->fmod != 0;
        break;
    case CU_P_SHIFT: /* 8 or 16 bits: others are refused */
        *mode = ((const shift_attrs *)ctx->attrs)->direction ? 0
                : ctx->dst[0].dtype == TG_DTYPE_U8           ? 0xff
                                                             : 0xffff;
        break;
    }
}

/* A cast between floats is a copy. */
inline int cu_kind_of(const cu_row *r, const tgi_op_ctx *ctx)
{
    return r->kind == CU_CAST && tgi_dtype_is_float(ctx->dst[0].dtype) ? (int)TGI_EPI_KEEP
                                                                       : r->kind;
}

/* ---- Host: one of the three, ready ------------------------------------------------------- */

/* What run(cu_step_formula or its like) is called with. */
template <class Run> inline void cu_formula_of(const cu_row *r, const tgi_op_ctx *ctx, Run run)
{
    float a, b;
    int32_t mode;
    const int kind = cu_kind_of(r, ctx), n = cu_operands_of(r, ctx);
    cu_params_of(r, ctx, &a, &b, &mode);
    if (kind < 100)
        run(cu_step_formula{kind, n, a, b});
    else if (r->operands == 1)
        run(cu_one_formula{kind, mode, a, b});
    else
        run(cu_more_formula{kind, n, mode, 0});
}

#endif

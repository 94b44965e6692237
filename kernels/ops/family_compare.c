/* family_compare.c - comparisons and logic of two numbers, which yield bool, and bit operations
 * on integers; numpy broadcasting. A bool in a view is 0 or 1. The table at the end makes a
 * tgi_op of each formula.
 * Border: none, each element by itself; an axis of extent 1 is read as a whole.
 * @source ONNX operators of the names in the table (`axis`, `broadcast`: opset < 7). */
#include "kernels/ops/op_shared.h"

static const char *const directions[] = {"LEFT", "RIGHT", NULL};
static const tgi_attr shift_rows[] = {{"direction", TGI_ATTR_ENUM,
                                       offsetof(shift_attrs, direction), 0, 0, 1, directions,
                                       "where the bits go"},
                                      {0}};

static tg_status infer_bool(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    if (ctx->n_src != 2)
        return tgi_fail(err, TG_E_FORMAT, "%d inputs, expected 2", ctx->n_src);
    TGI_TRY(tgi_infer_broadcast(ctx, tgi_binary_lead(ctx), dst, err));
    dst[0].dtype = TG_DTYPE_BOOL;
    return TG_OK;
}

static tg_status infer_bits(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    if (ctx->n_src != 2 || tgi_dtype_is_float(ctx->src[0].dtype))
        return tgi_fail(err, TG_E_FORMAT, "%d inputs of %s, expected 2 of integers", ctx->n_src,
                        tgi_dtype_name(ctx->src[0].dtype));
    return tgi_infer_broadcast(ctx, -1, dst, err);
}

/* The operator of f_symbol and i_symbol. */
#define BINARY_BOOL(symbol, onnx)                                                              \
    static const tgi_arith arith_##symbol = {f_##symbol, i_##symbol};                          \
    static tg_status ref_##symbol(const tgi_call *call, tgi_err *err)                          \
    {                                                                                          \
        return tgi_ref_arith(call, &arith_##symbol, tgi_binary_lead(call->ctx), err);          \
    }                                                                                          \
    static tg_status eval_##symbol(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err) \
    {                                                                                          \
        return tgi_eval_arith(ctx, dst_data, &arith_##symbol, tgi_binary_lead(ctx), err);      \
    }                                                                                          \
    const tgi_op tgi_op_##symbol = {.name = onnx,                                              \
                                    .attrs = tgi_binary_rows,                                  \
                                    .attrs_size = sizeof(tgi_binary_attrs),                    \
                                    .infer = infer_bool,                                       \
                                    .any_type = 1,                                             \
                                    .slide = tgi_slide_broadcast,                              \
                                    .ref = ref_##symbol,                                       \
                                    .eval = eval_##symbol};

/* The formula on floats, and on integers with their signedness. */
#define COMPARISON(symbol, onnx, op)                                                           \
    static double f_##symbol(double a, double b)                                               \
    {                                                                                          \
        return a op b;                                                                         \
    }                                                                                          \
    static int i_##symbol(int64_t a, int64_t b, int is_unsigned, int64_t *out)                 \
    {                                                                                          \
        *out = is_unsigned ? (uint64_t)a op(uint64_t) b : a op b;                              \
        return 1;                                                                              \
    }                                                                                          \
    BINARY_BOOL(symbol, onnx)

COMPARISON(equal, "Equal", ==)
COMPARISON(greater, "Greater", >)
COMPARISON(greater_or_equal, "GreaterOrEqual", >=)
COMPARISON(less, "Less", <)
COMPARISON(less_or_equal, "LessOrEqual", <=)

/* Of bools: 0 and 1, in whichever form. */
#define TRUTH(a) ((a) > 0 || (a) < 0)
#define LOGIC(symbol, onnx, result)                                                            \
    static double f_##symbol(double x, double y)                                               \
    {                                                                                          \
        const int a = TRUTH(x), b = TRUTH(y);                                                  \
        return result;                                                                         \
    }                                                                                          \
    static int i_##symbol(int64_t a, int64_t b, int is_unsigned, int64_t *out)                 \
    {                                                                                          \
        *out = f_##symbol((double)a, (double)b) > 0;                                           \
        (void)is_unsigned;                                                                     \
        return 1;                                                                              \
    }                                                                                          \
    BINARY_BOOL(symbol, onnx)

LOGIC(and, "And", a &&b)
LOGIC(or, "Or", a || b)
LOGIC(xor, "Xor", a != b)

#define BITS(symbol, onnx, result)                                                             \
    static int i_##symbol(int64_t a, int64_t b, int is_unsigned, int64_t *out)                 \
    {                                                                                          \
        (void)is_unsigned;                                                                     \
        *out = result;                                                                         \
        return 1;                                                                              \
    }                                                                                          \
    static const tgi_arith arith_##symbol = {NULL, i_##symbol};                                \
    static tg_status eval_##symbol(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err) \
    {                                                                                          \
        return tgi_eval_arith(ctx, dst_data, &arith_##symbol, -1, err);                        \
    }                                                                                          \
    const tgi_op tgi_op_##symbol = {                                                           \
        .name = onnx, .op_class = TGI_OP_DENSE, .infer = infer_bits, .eval = eval_##symbol};

BITS(bitwise_and, "BitwiseAnd", a &b)
BITS(bitwise_or, "BitwiseOr", a | b)
BITS(bitwise_xor, "BitwiseXor", a ^ b)

/* Of unsigned integers: bits shifted out are lost, a distance beyond the width leaves 0. */
static int shift_left(int64_t a, int64_t b, int is_unsigned, int64_t *out)
{
    *out = b < 64 ? (int64_t)((uint64_t)a << b) : 0;
    return is_unsigned && b >= 0;
}

static int shift_right(int64_t a, int64_t b, int is_unsigned, int64_t *out)
{
    *out = b < 64 ? (int64_t)((uint64_t)a >> b) : 0;
    return is_unsigned && b >= 0;
}

static tg_status eval_bit_shift(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    static const tgi_arith left = {NULL, shift_left}, right = {NULL, shift_right};
    const shift_attrs *a = ctx->attrs;
    return tgi_eval_arith(ctx, dst_data, a->direction ? &right : &left, -1, err);
}

const tgi_op tgi_op_bit_shift = {.name = "BitShift",
                                 .op_class = TGI_OP_DENSE,
                                 .attrs = shift_rows,
                                 .attrs_size = sizeof(shift_attrs),
                                 .infer = infer_bits,
                                 .eval = eval_bit_shift};

/* op_cast.c - Cast: constants to any number type; on images only float32 to float32, a copy.
 * Border: none, each element by itself.
 * @source ONNX operator Cast, versions 6 to 23; TensorProto.DataType in onnx.proto. */
#include "kernels/ops/op_shared.h"

typedef struct cast_attrs {
    int64_t to; /* TensorProto.DataType */
} cast_attrs;

static const tg_attr rows[] = {
    {"round_mode", TG_ATTR_IGNORED, 0, 0, 0, 0, NULL, "of 8-bit floats"},
    {"saturate", TG_ATTR_IGNORED, 0, 0, 0, 0, NULL, "of 8-bit floats"},
    {"to", TG_ATTR_INT, offsetof(cast_attrs, to), 0, 0, 64, NULL, "type of the result"},
    {0}};

static tg_dtype type_of(int64_t to)
{
    static const tg_dtype types[] = {
        [1] = TG_DTYPE_F32,  [2] = TG_DTYPE_U8,   [3] = TG_DTYPE_I8,   [4] = TG_DTYPE_U16,
        [5] = TG_DTYPE_I16,  [6] = TG_DTYPE_I32,  [7] = TG_DTYPE_I64,  [9] = TG_DTYPE_BOOL,
        [10] = TG_DTYPE_F16, [11] = TG_DTYPE_F64, [12] = TG_DTYPE_U32, [13] = TG_DTYPE_U64};
    return to >= 0 && to < (int64_t)(sizeof types / sizeof types[0]) ? types[to]
                                                                     : TG_DTYPE_NONE;
}

static tg_status infer(const tg_op_ctx *ctx, tg_desc *dst, tgi_err *err)
{
    const cast_attrs *a = ctx->attrs;
    const tg_dtype t = type_of(a->to);
    if (t == TG_DTYPE_NONE)
        return tgi_fail(err, TG_E_UNSUPPORTED, "a cast to element type %" PRId64, a->to);
    dst[0] = ctx->src[0];
    dst[0].dtype = t;
    return TG_OK;
}

static tg_status ref(const tg_call *call, tgi_err *err)
{
    const tg_dtype from = call->ctx->src[0].dtype, to = call->ctx->dst[0].dtype;
    if (from != TG_DTYPE_F32 || to != TG_DTYPE_F32)
        return tgi_fail(err, TG_E_UNSUPPORTED, "an image cast from %s to %s",
                        tgi_dtype_name(from), tgi_dtype_name(to));
    return tgi_ref_copy(call, err);
}

static tg_status eval(const tg_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    const tg_const *c = ctx->const_src[0];
    const int64_t n = tgi_const_count(c);
    const int exact =
        !tgi_dtype_is_float(c->desc.dtype) && !tgi_dtype_is_float(ctx->dst[0].dtype);
    (void)err;
    for (int64_t i = 0; i < n; i++)
        if (exact)
            tgi_int_put(ctx->dst[0].dtype, dst_data[0], i, tgi_int_at(c, i));
        else
            tgi_num_put(ctx->dst[0].dtype, dst_data[0], i, tgi_num_at(c, i));
    return TG_OK;
}

const tg_op tg_op_cast = {
    .name = "Cast",
    .attrs = rows,
    .attrs_size = sizeof(cast_attrs),
    .infer = infer,
    .ref = ref,
    .eval = eval,
};

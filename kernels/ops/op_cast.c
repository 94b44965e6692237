/* op_cast.c - Cast, to the type of an attribute, and CastLike, to that of a second input. In a
 * view every number is a float32, whatever its type: there a cast to an integer type leaves the
 * value that the type would hold, and one to float a copy.
 * Border: none, each element by itself.
 * @source ONNX operators Cast, versions 6 to 23, CastLike, 15 to 23; TensorProto.DataType in
 * onnx.proto. */
#include "kernels/ops/op_shared.h"

typedef struct cast_attrs {
    int64_t to; /* TensorProto.DataType */
} cast_attrs;

static const tgi_attr rows[] = {
    {"round_mode", TGI_ATTR_IGNORED, 0, 0, 0, 0, NULL, "of 8-bit floats"},
    {"saturate", TGI_ATTR_IGNORED, 0, 0, 0, 0, NULL, "of 8-bit floats"},
    {"to", TGI_ATTR_INT, offsetof(cast_attrs, to), 0, 0, 64, NULL, "type of the result"},
    {0}};

tg_dtype tgi_onnx_type(int64_t to)
{
    static const tg_dtype types[] = {
        [1] = TG_DTYPE_F32,  [2] = TG_DTYPE_U8,   [3] = TG_DTYPE_I8,   [4] = TG_DTYPE_U16,
        [5] = TG_DTYPE_I16,  [6] = TG_DTYPE_I32,  [7] = TG_DTYPE_I64,  [9] = TG_DTYPE_BOOL,
        [10] = TG_DTYPE_F16, [11] = TG_DTYPE_F64, [12] = TG_DTYPE_U32, [13] = TG_DTYPE_U64};
    return to >= 0 && to < (int64_t)(sizeof types / sizeof types[0]) ? types[to]
                                                                     : TG_DTYPE_NONE;
}

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    const cast_attrs *a = ctx->attrs;
    const tg_dtype t = tgi_onnx_type(a->to);
    if (t == TG_DTYPE_NONE)
        return tgi_fail(err, TG_E_UNSUPPORTED, "a cast to element type %" PRId64, a->to);
    dst[0] = ctx->src[0];
    dst[0].dtype = t;
    return TG_OK;
}

static tg_status infer_like(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    if (ctx->n_src != 2 || !tgi_given(ctx, 0) || !tgi_given(ctx, 1))
        return tgi_fail(err, TG_E_FORMAT, "%d inputs, expected data and a target type",
                        ctx->n_src);
    dst[0] = ctx->src[0];
    dst[0].dtype = ctx->src[1].dtype;
    return TG_OK;
}

/* The number behind the type's own representation. */
static float value(const tgi_call *call, const void *arg, const tgi_px *p)
{
    const tg_dtype to = *(const tg_dtype *)arg;
    const double v = (double)tgi_src_at(call, 0, p);
    _Alignas(8) unsigned char held[8];
    const tgi_constant one = {{to, 0, {0}}, held};
    tgi_num_put(to, held, 0, v);
    return (float)tgi_num_at(&one, 0);
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    if (tgi_dtype_is_float(call->ctx->dst[0].dtype))
        return tgi_ref_copy(call, err);
    tgi_ref_each(call, 0, value, &call->ctx->dst[0].dtype);
    return TG_OK;
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    const tgi_constant *c = ctx->const_src[0];
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

const tgi_op tgi_op_cast = {
    .name = "Cast",
    .any_type = 1,
    .attrs = rows,
    .attrs_size = sizeof(cast_attrs),
    .infer = infer,
    .ref = ref,
    .eval = eval,
};

static const tgi_attr like_rows[] = {
    {"round_mode", TGI_ATTR_IGNORED, 0, 0, 0, 0, NULL, "of 8-bit floats"},
    {"saturate", TGI_ATTR_IGNORED, 0, 0, 0, 0, NULL, "of 8-bit floats"},
    {0}};

const tgi_op tgi_op_cast_like = {
    .name = "CastLike",
    .any_type = 1,
    .attrs = like_rows,
    .attrs_size = sizeof(cast_attrs),
    .infer = infer_like,
    .ref = ref,
    .eval = eval,
};

/* op_dropout.c - Dropout at inference: its input; the second output, the mask, is all true.
 * Training mode is not done. Border: none. @source ONNX operator Dropout, versions 6 to 22. */
#include "kernels/ops/op_shared.h"

typedef struct dropout_attrs {
    int64_t is_test; /* opset < 7 */
} dropout_attrs;

static const tgi_attr rows[] = {
    {"is_test", TGI_ATTR_INT, offsetof(dropout_attrs, is_test), 0, 0, 1, NULL, "opset < 7"},
    {"ratio", TGI_ATTR_IGNORED, 0, 0, 0, 0, NULL, "of training"},
    {"seed", TGI_ATTR_IGNORED, 0, 0, 0, 0, NULL, "of training"},
    {0}};

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    const dropout_attrs *a = ctx->attrs;
    int training = ctx->opset < 7 && !a->is_test;
    if (tgi_given(ctx, 2))
        training = !tgi_const(ctx, 2) || tgi_num_at(tgi_const(ctx, 2), 0) != 0;
    if (training)
        return tgi_fail(err, TG_E_UNSUPPORTED, "Dropout in training mode");
    TGI_TRY(tgi_infer_same(ctx, dst, err));
    if (ctx->n_dst > 1) {
        dst[1] = dst[0];
        dst[1].dtype = ctx->opset < 10 ? dst[0].dtype : TG_DTYPE_BOOL;
    }
    return TG_OK;
}

static tgi_op_kind classify(const tgi_op_ctx *ctx)
{
    return ctx->n_dst > 1 ? TGI_OP_DENSE : TGI_OP_LOCAL;
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    const int64_t n = ctx->n_dst > 1 ? tgi_dense_count(&ctx->dst[1]) : 0;
    for (int64_t i = 0; i < n; i++)
        tgi_int_put(ctx->dst[1].dtype, dst_data[1], i, 1);
    return tgi_eval_copy(ctx, dst_data, err);
}

const tgi_op tgi_op_dropout = {
    .name = "Dropout",
    .classify = classify,
    .attrs = rows,
    .attrs_size = sizeof(dropout_attrs),
    .infer = infer,
    .ref = tgi_ref_copy,
    .eval = eval,
};

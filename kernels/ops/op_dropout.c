/* op_dropout.c - Dropout at inference: its input. Training mode and the mask output are not
 * done. Border: none. @source ONNX operator Dropout, versions 6 to 22. */
#include "kernels/ops/op_shared.h"

typedef struct dropout_attrs {
    int64_t is_test; /* opset < 7 */
} dropout_attrs;

static const tg_attr rows[] = {
    {"is_test", TG_ATTR_INT, offsetof(dropout_attrs, is_test), 0, 0, 1, NULL, "opset < 7"},
    {"ratio", TG_ATTR_IGNORED, 0, 0, 0, 0, NULL, "of training"},
    {"seed", TG_ATTR_IGNORED, 0, 0, 0, 0, NULL, "of training"},
    {0}};

static tg_status infer(const tg_op_ctx *ctx, tg_desc *dst, tgi_err *err)
{
    const dropout_attrs *a = ctx->attrs;
    int training = ctx->opset < 7 && !a->is_test;
    if (tgi_given(ctx, 2))
        training = !tgi_const(ctx, 2) || tgi_num_at(tgi_const(ctx, 2), 0) != 0;
    if (training)
        return tgi_fail(err, TG_E_UNSUPPORTED, "Dropout in training mode");
    if (ctx->n_dst > 1)
        return tgi_fail(err, TG_E_UNSUPPORTED, "the second output (mask)");
    return tgi_infer_same(ctx, dst, err);
}

const tg_op tg_op_dropout = {
    .name = "Dropout",
    .attrs = rows,
    .attrs_size = sizeof(dropout_attrs),
    .infer = infer,
    .ref = tgi_ref_copy,
    .eval = tgi_eval_copy,
};

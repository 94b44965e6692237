/* op_unsqueeze.c - Unsqueeze: insert axes of extent 1; the list counts in the result's axes.
 * Folded, or removed by the importer's rewrites.
 * @source ONNX operator Unsqueeze, versions 1, 11 (attribute), 13 to 21 (input). */
#include "kernels/ops/axes_shared.h"

static const tgi_attr rows[] = {
    {"axes", TGI_ATTR_INTS, offsetof(axes_attrs, axes), 0, 0, 0, NULL, "opset < 13"}, {0}};

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    const tgi_desc *s = &ctx->src[0];
    tgi_ints axes;
    unsigned insert;
    TGI_TRY(axes_given(ctx, &axes, err));
    if (axes.n < 0 || s->rank + axes.n > TGI_MAX_RANK)
        return tgi_fail(err, TG_E_FORMAT, "%d axes inserted into rank %d", axes.n, s->rank);
    tgi_desc d = {s->dtype, s->rank + axes.n, {0}};
    TGI_TRY(axes_mask(&axes, d.rank, &insert, err));
    for (int k = 0, from = 0; k < d.rank; k++)
        d.dim[k] = insert >> k & 1u ? 1 : s->dim[from++];
    dst[0] = d;
    return TG_OK;
}

const tgi_op tgi_op_unsqueeze = {
    .name = "Unsqueeze",
    .op_class = TGI_OP_DENSE,
    .attrs = rows,
    .attrs_size = sizeof(axes_attrs),
    .infer = infer,
    .eval = tgi_eval_copy,
};

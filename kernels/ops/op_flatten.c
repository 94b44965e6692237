/* op_flatten.c - Flatten: a matrix; axes before `axis` become rows, the others columns.
 * @source ONNX operator Flatten, versions 1 to 21. */
#include "kernels/ops/op_shared.h"

static const tgi_attr rows[] = {
    {"axis", TGI_ATTR_INT, offsetof(axis_attrs, axis), 1, -8, 8, NULL, "first axis of columns"},
    {0}};

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    const axis_attrs *a = ctx->attrs;
    const tgi_desc *s = &ctx->src[0];
    int axis = s->rank;
    int64_t n;
    if (a->axis != s->rank)
        TGI_TRY(tgi_axis(a->axis, s->rank, &axis, err));
    if (!tgi_desc_count(s, &n))
        return tgi_fail(err, TG_E_FORMAT, "the number of elements overflows");
    dst[0] = (tgi_desc){s->dtype, 2, {1, 1}};
    for (int k = 0; k < s->rank; k++)
        dst[0].dim[k >= axis] *= s->dim[k];
    return TG_OK;
}

const tgi_op tgi_op_flatten = {
    .name = "Flatten",
    .op_class = TGI_OP_DENSE,
    .attrs = rows,
    .attrs_size = sizeof(axis_attrs),
    .infer = infer,
    .eval = tgi_eval_copy,
};

/* op_squeeze.c - Squeeze: drop axes of extent 1 (all of them when none is listed).
 * Folded, or removed by the importer's rewrites.
 * @source ONNX operator Squeeze, versions 1, 11 (attribute), 13 to 21 (input). */
#include "kernels/ops/axes_shared.h"

static const tgi_attr rows[] = {
    {"axes", TGI_ATTR_INTS, offsetof(axes_attrs, axes), 0, 0, 0, NULL, "opset < 13"}, {0}};

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    const tgi_desc *s = &ctx->src[0];
    tgi_desc d = {s->dtype, 0, {0}};
    tgi_ints axes;
    unsigned drop;
    TGI_TRY(axes_given(ctx, &axes, err));
    TGI_TRY(axes_mask(&axes, s->rank, &drop, err));
    for (int k = 0; k < s->rank; k++) {
        if (axes.n < 0 ? s->dim[k] == 1 : (int)(drop >> k & 1u)) {
            if (s->dim[k] != 1)
                return tgi_fail(err, TG_E_FORMAT, "axis %d has extent %" PRId64 ", expected 1",
                                k, s->dim[k]);
            continue;
        }
        d.dim[d.rank++] = s->dim[k];
    }
    dst[0] = d;
    return TG_OK;
}

const tgi_op tgi_op_squeeze = {
    .name = "Squeeze",
    .op_class = TGI_OP_DENSE,
    .attrs = rows,
    .attrs_size = sizeof(axes_attrs),
    .infer = infer,
    .eval = tgi_eval_copy,
};

/* op_transpose.c - Transpose: axes in another order (reversed when perm is not given). On
 * images the importer turns it into a relabelling, or part of a known pattern.
 * @source ONNX operator Transpose, versions 1 to 21. */
#include "kernels/ops/dense_plan.h"

typedef struct transpose_attrs {
    tgi_ints perm;
} transpose_attrs;

static const tgi_attr rows[] = {{"perm", TGI_ATTR_INTS, offsetof(transpose_attrs, perm), 0, 0,
                                 0, NULL,
                                 "result axis i is"
                                 " source axis perm[i]"},
                                {0}};

int tgi_transpose_source(const tgi_op_ctx *ctx, int k)
{
    const transpose_attrs *a = ctx->attrs;
    return a->perm.n < 0 ? ctx->src[0].rank - 1 - k : (int)a->perm.v[k];
}

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    const transpose_attrs *a = ctx->attrs;
    const tgi_desc *s = &ctx->src[0];
    tgi_desc d = *s;
    unsigned seen = 0;
    if (a->perm.n >= 0 && a->perm.n != s->rank)
        return tgi_fail(err, TG_E_FORMAT, "perm has %d entries for rank %d", a->perm.n,
                        s->rank);
    for (int k = 0; k < s->rank; k++) {
        if (a->perm.n >= 0 && (a->perm.v[k] < 0 || a->perm.v[k] >= s->rank))
            return tgi_fail(err, TG_E_FORMAT, "perm[%d] is %" PRId64, k, a->perm.v[k]);
        const int from = tgi_transpose_source(ctx, k);
        d.dim[k] = s->dim[from];
        seen |= 1u << from;
    }
    if (seen != (1u << s->rank) - 1u)
        return tgi_fail(err, TG_E_FORMAT, "perm names an axis twice");
    dst[0] = d;
    return TG_OK;
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    int64_t dense[TGI_MAX_RANK], stride[TGI_MAX_RANK];
    (void)err;
    tgi_dense_strides(&ctx->src[0], dense);
    for (int k = 0; k < ctx->dst[0].rank; k++)
        stride[k] = dense[tgi_transpose_source(ctx, k)];
    tgi_gather_dense(&ctx->dst[0], dst_data[0], ctx->const_src[0]->data, 0, stride,
                     tgi_dtype_size(ctx->dst[0].dtype));
    return TG_OK;
}

const tgi_op tgi_op_transpose = {
    .name = "Transpose",
    .op_class = TGI_OP_DENSE,
    .attrs = rows,
    .attrs_size = sizeof(transpose_attrs),
    .infer = infer,
    .eval = eval,
};

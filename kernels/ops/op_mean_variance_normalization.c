/* op_mean_variance_normalization.c - MeanVarianceNormalization: (x - mean) / (deviation + 1e-9)
 * over some axes, by default all but channels. In float64, two passes. On dense tensors.
 * @source ONNX operator MeanVarianceNormalization, versions 9, 13. */
#include "kernels/ops/dense_plan.h"

#include <math.h>

typedef struct mvn_attrs {
    tgi_ints axes;
} mvn_attrs;

static const tgi_attr rows[] = {{"axes", TGI_ATTR_INTS, offsetof(mvn_attrs, axes), 0, 0, 0,
                                 NULL, "normalised together; 0,2,3 when not given"},
                                {0}};

/* The shape of what is normalised together (the other axes 1), and of what is apart. */
static tg_status split(const tgi_op_ctx *ctx, tgi_desc *inner, tgi_desc *outer, tgi_err *err)
{
    static const tgi_ints usual = {3, {0, 2, 3}};
    const tgi_ints *axes = &((const mvn_attrs *)ctx->attrs)->axes;
    *inner = *outer = ctx->src[0];
    for (int k = 0; k < inner->rank; k++)
        inner->dim[k] = 1;
    axes = axes->n < 0 ? &usual : axes;
    for (int i = 0; i < axes->n; i++) {
        int k;
        TGI_TRY(tgi_axis(axes->v[i], inner->rank, &k, err));
        inner->dim[k] = ctx->src[0].dim[k];
        outer->dim[k] = 1;
    }
    return TG_OK;
}

tg_status tgi_mvn_axes(const tgi_op_ctx *ctx, unsigned *bits, tgi_err *err)
{
    tgi_desc inner, outer;
    *bits = 0;
    TGI_TRY(split(ctx, &inner, &outer, err));
    for (int k = 0; k < outer.rank; k++) /* an axis of 1 is either */
        *bits |= outer.dim[k] == 1 ? 1u << k : 0;
    return TG_OK;
}

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    tgi_desc inner, outer;
    TGI_TRY(tgi_infer_same(ctx, dst, err));
    return split(ctx, &inner, &outer, err);
}

static int64_t offset_of(const int64_t *stride, int rank, const int64_t *a, const int64_t *b)
{
    int64_t off = 0;
    for (int k = 0; k < rank; k++)
        off += (a[k] + b[k]) * stride[k];
    return off;
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    const tgi_constant *c = ctx->const_src[0];
    const int rank = c->desc.rank;
    int64_t stride[TGI_MAX_RANK], out[TGI_MAX_RANK] = {0}, at[TGI_MAX_RANK] = {0};
    tgi_desc inner, outer;
    TGI_TRY(split(ctx, &inner, &outer, err));
    tgi_dense_strides(&c->desc, stride);
    const double n = (double)tgi_dense_count(&inner);
    if (tgi_const_count(c) == 0)
        return TG_OK;
    do { /* at is 0 again after each walk */
        double sum = 0, squares = 0;
        do
            sum += tgi_num_at(c, offset_of(stride, rank, out, at));
        while (tgi_next_index(&inner, at));
        const double mean = sum / n;
        do {
            const double d = tgi_num_at(c, offset_of(stride, rank, out, at)) - mean;
            squares += d * d;
        } while (tgi_next_index(&inner, at));
        const double factor = 1 / (sqrt(squares / n) + 1e-9);
        do {
            const int64_t i = offset_of(stride, rank, out, at);
            tgi_num_put(c->desc.dtype, dst_data[0], i, (tgi_num_at(c, i) - mean) * factor);
        } while (tgi_next_index(&inner, at));
    } while (tgi_next_index(&outer, out));
    return TG_OK;
}

const tgi_op tgi_op_mean_variance_normalization = {
    .name = "MeanVarianceNormalization",
    .op_class = TGI_OP_DENSE,
    .attrs = rows,
    .attrs_size = sizeof(mvn_attrs),
    .infer = infer,
    .eval = eval,
};

/* family_layer_norm.c - LayerNormalization and RMSNormalization: what the axes from `axis` on
 * hold is brought to mean 0 and variance 1 (RMS: to mean square 1), then scaled and shifted.
 * Computed in float64, two passes. On dense tensors.
 * @source ONNX operators LayerNormalization, version 17, and RMSNormalization, version 23. */
#include "kernels/ops/dense_plan.h"

#include <math.h>

static const tgi_attr rows[] = {
    {"axis", TGI_ATTR_INT, offsetof(layer_norm_attrs, axis), -1, 0, 0, NULL,
     "first normalised axis"},
    {"epsilon", TGI_ATTR_FLOAT, offsetof(layer_norm_attrs, epsilon), 1e-5, 0, 0, NULL,
     "added to the variance"},
    {"stash_type", TGI_ATTR_IGNORED, 0, 0, 0, 0, NULL, "type of the sums: float64 here"},
    {0}};

static tg_status check_operand(const tgi_op_ctx *ctx, int i, tgi_err *err)
{
    const tgi_desc pair[2] = {ctx->src[0], ctx->src[i]};
    tgi_op_ctx both = *ctx;
    tgi_desc d;
    both.src = pair;
    both.n_src = 2;
    TGI_TRY(tgi_infer_broadcast(&both, -1, &d, err));
    return tgi_desc_same_shape(&d, &ctx->src[0])
               ? TG_OK
               : tgi_fail(err, TG_E_FORMAT, "input %d does not fit the data", i);
}

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    int axis;
    if (ctx->n_src < 2 || !tgi_given(ctx, 0))
        return tgi_fail(err, TG_E_FORMAT, "%d inputs, expected data and scale", ctx->n_src);
    TGI_TRY(
        tgi_axis(((const layer_norm_attrs *)ctx->attrs)->axis, ctx->src[0].rank, &axis, err));
    for (int i = 1; i < ctx->n_src && i < 3; i++)
        if (tgi_given(ctx, i))
            TGI_TRY(check_operand(ctx, i, err));
    dst[0] = ctx->src[0];
    for (int k = 1; k < ctx->n_dst; k++) { /* mean, 1 / deviation */
        dst[k] = ctx->src[0];
        dst[k].dtype = TG_DTYPE_F32;
        for (int i = axis; i < dst[k].rank; i++)
            dst[k].dim[i] = 1;
    }
    return TG_OK;
}

/* Mean (0 without centring) and 1 / deviation of n elements. */
static void moments_of(const tgi_constant *c, int64_t first, int64_t n, int centred, double eps,
                       double *mean, double *inverse)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n && centred; i++)
        sum += tgi_num_at(c, first + i);
    *mean = centred ? sum / (double)n : 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = tgi_num_at(c, first + i) - *mean;
        squares += d * d;
    }
    *inverse = 1 / sqrt(squares / (double)n + eps);
}

static tg_status eval_norm(const tgi_op_ctx *ctx, void *const *dst_data, int centred,
                           tgi_err *err)
{
    const layer_norm_attrs *a = ctx->attrs;
    const tgi_constant *c = ctx->const_src[0];
    int64_t at[TGI_MAX_RANK] = {0}, n = 1, i = 0;
    double mean = 0, inverse = 0;
    int axis;
    TGI_TRY(tgi_axis(a->axis, c->desc.rank, &axis, err));
    for (int k = axis; k < c->desc.rank; k++)
        n *= c->desc.dim[k];
    if (tgi_const_count(c) == 0)
        return TG_OK;
    do {
        if (i % n == 0) {
            moments_of(c, i, n, centred, (double)a->epsilon, &mean, &inverse);
            if (ctx->n_dst > 1)
                tgi_num_put(ctx->dst[1].dtype, dst_data[1], i / n, mean);
            if (ctx->n_dst > 2)
                tgi_num_put(ctx->dst[2].dtype, dst_data[2], i / n, inverse);
        }
        double v = (tgi_num_at(c, i) - mean) * inverse *
                   tgi_num_at(ctx->const_src[1], tgi_dense_offset(ctx, 1, -1, at));
        if (tgi_given(ctx, 2))
            v += tgi_num_at(ctx->const_src[2], tgi_dense_offset(ctx, 2, -1, at));
        tgi_num_put(ctx->dst[0].dtype, dst_data[0], i++, v);
    } while (tgi_next_index(&ctx->dst[0], at));
    return TG_OK;
}

static double flops(const tgi_op_ctx *ctx)
{
    (void)ctx;
    return 8;
}

#define NORM(symbol, onnx, centred)                                                            \
    static tg_status eval_##symbol(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err) \
    {                                                                                          \
        return eval_norm(ctx, dst_data, centred, err);                                         \
    }                                                                                          \
    const tgi_op tgi_op_##symbol = {.name = onnx,                                              \
                                    .op_class = TGI_OP_DENSE,                                  \
                                    .attrs = rows,                                             \
                                    .attrs_size = sizeof(layer_norm_attrs),                    \
                                    .infer = infer,                                            \
                                    .eval = eval_##symbol,                                     \
                                    .flops = flops};

NORM(layer_normalization, "LayerNormalization", 1)
NORM(rms_normalization, "RMSNormalization", 0)

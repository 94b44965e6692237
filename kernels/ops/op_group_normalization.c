/* op_group_normalization.c - GroupNormalization: groups of channels to mean 0 and variance 1
 * over their whole spatial extent, then a constant scale and shift. Moments of a group come
 * from those of its channels (granule.h), which are the same bits however the extent was cut.
 * Border: none, but every output reads whole channels.
 * @source ONNX operator GroupNormalization, versions 18 (scale per group) and 21 (per
 * channel). */
#include "kernels/granule.h"
#include "kernels/ops/op_shared.h"

#include <math.h>

static const tgi_attr rows[] = {
    {"epsilon", TGI_ATTR_FLOAT, offsetof(gn_attrs, epsilon), 1e-5, 0, 0, NULL,
     "added to the variance"},
    {"num_groups", TGI_ATTR_INT, offsetof(gn_attrs, groups), 0, 1, 1 << 20, NULL,
     "of channels"},
    {"stash_type", TGI_ATTR_IGNORED, 0, 0, 0, 0, NULL, "type of the sums: float64 here"},
    {0}};

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    const gn_attrs *a = ctx->attrs;
    const void *unused;
    TGI_TRY(tgi_want_image(ctx, 0, err));
    const int64_t c = ctx->src[0].dim[1];
    if (a->groups < 1 || c % a->groups)
        return tgi_fail(err, TG_E_FORMAT, "%" PRId64 " channels in %" PRId64 " groups", c,
                        a->groups);
    const int64_t n = ctx->opset < 21 ? a->groups : c;
    TGI_TRY(tgi_const_f32(ctx, 1, "scale", n, &unused, err));
    TGI_TRY(tgi_const_f32(ctx, 2, "shift", n, &unused, err));
    dst[0] = ctx->src[0];
    return TG_OK;
}

/* Mean and variance of channels [first, first + n). */
static void group_moments(const tgi_call *call, int64_t first, int64_t n, double *mean,
                          double *variance)
{
    double sum = 0, means = 0, squares = 0;
    for (int64_t c = first; c < first + n; c++) {
        const tgi_moments m = tgi_granule_channel(&call->src[0], &call->ctx->src[0], c);
        means += tgi_moments_mean(&m);
        sum += tgi_moments_variance(&m);
    }
    *mean = means / (double)n;
    for (int64_t c = first; c < first + n; c++) {
        const tgi_moments m = tgi_granule_channel(&call->src[0], &call->ctx->src[0], c);
        const double d = tgi_moments_mean(&m) - *mean;
        squares += d * d;
    }
    *variance = (sum + squares) / (double)n;
}

static void write_channel(const tgi_call *call, int64_t c, double mean, double factor,
                          double shift)
{
    const tgi_range rz = tgi_box_axis(&call->box, TGI_Z), ry = tgi_box_axis(&call->box, TGI_Y),
                    rx = tgi_box_axis(&call->box, TGI_X);
    for (int64_t z = rz.lo; z < rz.hi; z++)
        for (int64_t y = ry.lo; y < ry.hi; y++)
            for (int64_t x = rx.lo; x < rx.hi; x++) {
                const double v = (double)tgi_operand_get(&call->src[0], c, z, y, x);
                *tgi_view_at(&call->dst[0], c, z, y, x) = (float)((v - mean) * factor + shift);
            }
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    const tgi_op_ctx *ctx = call->ctx;
    const gn_attrs *a = ctx->attrs;
    const int64_t n = ctx->src[0].dim[1] / a->groups;
    (void)err;
    for (int64_t g = 0; g < a->groups; g++) {
        double mean, variance;
        group_moments(call, g * n, n, &mean, &variance);
        const double inverse = 1 / sqrt(variance + (double)a->epsilon);
        for (int64_t c = g * n; c < (g + 1) * n; c++) {
            const int64_t at = ctx->opset < 21 ? g : c;
            write_channel(call, c, mean,
                          inverse * (double)tgi_f32_at(ctx->const_src[1]->data, at),
                          (double)tgi_f32_at(ctx->const_src[2]->data, at));
        }
    }
    tgi_zero_lanes(&call->dst[0], &call->box);
    return TG_OK;
}

TGI_EVAL_BY_REF

static double flops(const tgi_op_ctx *ctx)
{
    (void)ctx;
    return 8;
}

const tgi_op tgi_op_group_normalization = {
    .name = "GroupNormalization",
    .op_class = TGI_OP_WHOLE,
    .attrs = rows,
    .attrs_size = sizeof(gn_attrs),
    .infer = infer,
    .slide = tgi_slide_whole,
    .ref = ref,
    .eval = eval,
    .flops = flops,
};

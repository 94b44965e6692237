/* op_norm_numbers.c - NormNumbers: the four numbers by which a norm over pixels changes each
 * channel, [1,C,(D,)H,W] -> [1,4C,(1,)1,1]. No operator of ONNX: InstanceNormalization and
 * GroupNormalization are computed as NormNumbers and NormApply on a processor, so that the image
 * is read once for the numbers and then pixel by pixel.
 *
 *   element       0*C + c   1*C + c   2*C + c                          3*C + c
 *   is            high      low       scale / sqrt(var + epsilon)      shift
 *
 * high + low is the mean: high its float32, low what that rounding lost. Moments in float64 over
 * granules (granule.h). Of `groups` groups the moments are those of all pixels of the group.
 * Source 1, 2: scale and shift, constants, one for each channel or one for each group.
 * Border: none, but every number reads whole channels. */
#include "kernels/ops/op_shared.h"
#include "kernels/reduce.h"

#include <math.h>

static const tgi_attr rows[] = {{"epsilon", TGI_ATTR_FLOAT,
                                 offsetof(norm_numbers_attrs, epsilon), 1e-5, 0, 0, NULL,
                                 "added to the variance"},
                                {"groups", TGI_ATTR_INT, offsetof(norm_numbers_attrs, groups),
                                 0, 0, 1 << 20, NULL, "of channels; 0: each channel by itself"},
                                {0}};

static tg_status check_list(const tgi_op_ctx *ctx, int i, const char *what, int64_t groups,
                            tgi_err *err)
{
    const void *unused;
    const int64_t c = ctx->src[0].dim[1];
    const int per_group = i < ctx->n_src && ctx->const_src[i] && groups &&
                          tgi_const_count(ctx->const_src[i]) == groups;
    return tgi_const_f32(ctx, i, what, per_group ? groups : c, &unused, err);
}

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    const norm_numbers_attrs *a = ctx->attrs;
    TGI_TRY(tgi_want_image(ctx, 0, err));
    const int64_t c = ctx->src[0].dim[1];
    if (a->groups && c % a->groups)
        return tgi_fail(err, TG_E_FORMAT, "%" PRId64 " channels in %" PRId64 " groups", c,
                        a->groups);
    TGI_TRY(check_list(ctx, 1, "scale", a->groups, err));
    TGI_TRY(check_list(ctx, 2, "shift", a->groups, err));
    dst[0] = ctx->src[0];
    dst[0].dtype = TG_DTYPE_F32;
    dst[0].dim[1] = 4 * c;
    for (int k = 2; k < dst[0].rank; k++)
        dst[0].dim[k] = 1;
    return TG_OK;
}

/* Mean and variance of channels [first, first + n) together, all of as many pixels. */
static void joint(const tgi_moments *m, int64_t first, int64_t n, double *mean, double *var)
{
    double within = 0, means = 0, between = 0;
    for (int64_t c = first; c < first + n; c++) {
        means += tgi_moments_mean(&m[c]);
        within += tgi_moments_variance(&m[c]);
    }
    *mean = means / (double)n;
    for (int64_t c = first; c < first + n; c++) {
        const double d = tgi_moments_mean(&m[c]) - *mean;
        between += d * d;
    }
    *var = (within + between) / (double)n;
}

static double listed(const tgi_op_ctx *ctx, int i, int64_t channel, int64_t per)
{
    const tgi_constant *k = ctx->const_src[i];
    const int64_t at = tgi_const_count(k) == ctx->src[0].dim[1] ? channel : channel / per;
    return (double)tgi_f32_at(k->data, at);
}

static void finish(const tgi_op_ctx *ctx, const tgi_moments *m, float *dst)
{
    const norm_numbers_attrs *a = ctx->attrs;
    const int64_t n = ctx->src[0].dim[1], per = a->groups ? n / a->groups : 1;
    double mean = 0, var = 1;
    for (int64_t c = 0; c < n; c++) {
        if (c % per == 0 && per == 1) {
            mean = tgi_moments_mean(&m[c]);
            var = tgi_moments_variance(&m[c]);
        } else if (c % per == 0) {
            joint(m, c, per, &mean, &var);
        }
        dst[c] = (float)mean;
        dst[n + c] = (float)(mean - (double)dst[c]);
        dst[2 * n + c] = (float)(listed(ctx, 1, c, per) / sqrt(var + (double)a->epsilon));
        dst[3 * n + c] = (float)listed(ctx, 2, c, per);
    }
}

static const tgi_reduce reduce = {.finish = finish};

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    return tgi_ref_reduce(call, &reduce, err);
}

static double flops(const tgi_op_ctx *ctx)
{
    return 4 * (double)tgi_dense_count(&ctx->src[0]) / (double)tgi_dense_count(&ctx->dst[0]);
}

TGI_EVAL_BY_REF

const tgi_op tgi_op_norm_numbers = {
    .name = "NormNumbers",
    .op_class = TGI_OP_WHOLE,
    .reduce = &reduce,
    .internal = 1,
    .wide = 1,
    .attrs = rows,
    .attrs_size = sizeof(norm_numbers_attrs),
    .infer = infer,
    .slide = tgi_slide_whole,
    .ref = ref,
    .eval = eval,
    .flops = flops,
};

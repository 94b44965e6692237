/* op_batch_normalization.c - BatchNormalization: a scale and a shift per channel from constant
 * statistics, (x - mean) / sqrt(var + epsilon) * scale + shift, in float64. In its training
 * form the statistics are those of the input, which is done on dense tensors only.
 * Border: none, each element by itself.
 * @source ONNX operator BatchNormalization, versions 6 to 15. */
#include "kernels/ops/op_shared.h"

#include <math.h>

#define AT(field) offsetof(bn_attrs, field)
static const tgi_attr rows[] = {
    {"epsilon", TGI_ATTR_FLOAT, AT(epsilon), 1e-5, 0, 0, NULL, "added to the variance"},
    {"is_test", TGI_ATTR_INT, AT(is_test), 0, 0, 1, NULL, "opset < 7"},
    {"momentum", TGI_ATTR_FLOAT, AT(momentum), 0.9, 0, 0, NULL, "what stays of the statistics"},
    {"spatial", TGI_ATTR_INT, AT(spatial), 1, 0, 1, NULL, "opset < 9: per channel"},
    {"training_mode", TGI_ATTR_INT, AT(training_mode), 0, 0, 1, NULL,
     "statistics of the input"},
    {0}};

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    static const char *const names[] = {"scale", "shift", "mean", "variance"};
    const bn_attrs *a = ctx->attrs;
    const void *unused;
    if (ctx->src[0].rank < 2)
        return tgi_fail(err, TG_E_FORMAT, "an input of rank %d", ctx->src[0].rank);
    if (ctx->opset < 14 && (ctx->opset >= 7 ? ctx->n_dst > 1 : !a->is_test))
        return tgi_fail(err, TG_E_UNSUPPORTED, "BatchNormalization in training mode");
    if (ctx->opset < 9 && !a->spatial)
        return tgi_fail(err, TG_E_UNSUPPORTED, "BatchNormalization with spatial = 0");
    if (ctx->n_dst > (a->training_mode ? 3 : 1))
        return tgi_fail(err, TG_E_FORMAT, "%d outputs", ctx->n_dst);
    for (int i = 0; i < 4; i++)
        TGI_TRY(tgi_const_f32(ctx, i + 1, names[i], ctx->src[0].dim[1], &unused, err));
    dst[0] = ctx->src[0];
    for (int k = 1; k < ctx->n_dst; k++)
        dst[k] = ctx->src[2 + k]; /* mean, variance */
    return TG_OK;
}

static tgi_op_kind classify(const tgi_op_ctx *ctx)
{
    return ((const bn_attrs *)ctx->attrs)->training_mode ? TGI_OP_DENSE : TGI_OP_LOCAL;
}

static float value(const tgi_call *call, const void *arg, const tgi_px *p)
{
    const bn_attrs *a = arg;
    double v[5];
    for (int i = 1; i < 5; i++)
        v[i] = (double)tgi_f32_at(call->ctx->const_src[i]->data, p->c);
    const double x = (double)tgi_src_at(call, 0, p);
    return (float)((x - v[3]) / sqrt(v[4] + (double)a->epsilon) * v[1] + v[2]);
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    (void)err;
    tgi_ref_each(call, 0, value, call->ctx->attrs);
    return TG_OK;
}

/* Statistics of channel c of the input: samples of `plane` elements, channels apart. */
static void statistics(const tgi_constant *x, int64_t c, int64_t plane, double *mean,
                       double *var)
{
    const int64_t n = x->desc.dim[0], channels = x->desc.dim[1];
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n * plane; i++)
        sum += tgi_num_at(x, (i / plane * channels + c) * plane + i % plane);
    *mean = sum / (double)(n * plane);
    for (int64_t i = 0; i < n * plane; i++) {
        const double d = tgi_num_at(x, (i / plane * channels + c) * plane + i % plane) - *mean;
        squares += d * d;
    }
    *var = squares / (double)(n * plane);
}

static void eval_channel(const tgi_op_ctx *ctx, void *const *dst_data, int64_t c, int64_t plane)
{
    const bn_attrs *a = ctx->attrs;
    const tgi_constant *x = ctx->const_src[0];
    const int64_t n = x->desc.dim[0], channels = x->desc.dim[1];
    const double keep = (double)a->momentum;
    double stat[2] = {tgi_num_at(ctx->const_src[3], c), tgi_num_at(ctx->const_src[4], c)};
    if (a->training_mode) {
        const double running[2] = {stat[0], stat[1]};
        statistics(x, c, plane, &stat[0], &stat[1]);
        for (int k = 1; k < ctx->n_dst && k <= 2; k++) /* `infer` lets no more through */
            tgi_num_put(ctx->dst[k].dtype, dst_data[k], c,
                        keep * running[k - 1] + (1 - keep) * stat[k - 1]);
    }
    const double factor = tgi_num_at(ctx->const_src[1], c) / sqrt(stat[1] + (double)a->epsilon);
    const double shift = tgi_num_at(ctx->const_src[2], c);
    for (int64_t i = 0; i < n * plane; i++) {
        const int64_t at = (i / plane * channels + c) * plane + i % plane;
        tgi_num_put(x->desc.dtype, dst_data[0], at,
                    (tgi_num_at(x, at) - stat[0]) * factor + shift);
    }
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    const tgi_desc *d = &ctx->src[0];
    int64_t plane = 1;
    (void)err;
    for (int k = 2; k < d->rank; k++)
        plane *= d->dim[k];
    for (int64_t c = 0; c < d->dim[1]; c++)
        eval_channel(ctx, dst_data, c, plane);
    return TG_OK;
}

static double flops(const tgi_op_ctx *ctx)
{
    (void)ctx;
    return 2;
}

const tgi_op tgi_op_batch_normalization = {
    .name = "BatchNormalization",
    .classify = classify,
    .attrs = rows,
    .attrs_size = sizeof(bn_attrs),
    .infer = infer,
    .ref = ref,
    .eval = eval,
    .flops = flops,
};

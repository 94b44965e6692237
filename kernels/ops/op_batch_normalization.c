/* op_batch_normalization.c - BatchNormalization at inference: a scale and a shift per channel
 * from constant statistics, (x - mean) / sqrt(var + epsilon) * scale + shift, in float64.
 * Border: none, each element by itself.
 * @source ONNX operator BatchNormalization, versions 6 to 15. */
#include "kernels/ops/op_shared.h"

#include <math.h>

typedef struct bn_attrs {
    float epsilon;
    int64_t is_test, spatial, training_mode;
} bn_attrs;

#define AT(field) offsetof(bn_attrs, field)
static const tg_attr rows[] = {
    {"epsilon", TG_ATTR_FLOAT, AT(epsilon), 1e-5, 0, 0, NULL, "added to the variance"},
    {"is_test", TG_ATTR_INT, AT(is_test), 0, 0, 1, NULL, "opset < 7"},
    {"momentum", TG_ATTR_IGNORED, 0, 0, 0, 0, NULL, "of training"},
    {"spatial", TG_ATTR_INT, AT(spatial), 1, 0, 1, NULL, "opset < 9: per channel"},
    {"training_mode", TG_ATTR_INT, AT(training_mode), 0, 0, 1, NULL, "statistics of the input"},
    {0}};

static tg_status infer(const tg_op_ctx *ctx, tg_desc *dst, tgi_err *err)
{
    static const char *const names[] = {"scale", "shift", "mean", "variance"};
    const bn_attrs *a = ctx->attrs;
    const void *unused;
    TGI_TRY(tgi_want_image(ctx, 0, err));
    if (a->training_mode || (ctx->opset < 7 && !a->is_test))
        return tgi_fail(err, TG_E_UNSUPPORTED, "BatchNormalization in training mode");
    if (ctx->opset < 9 && !a->spatial)
        return tgi_fail(err, TG_E_UNSUPPORTED, "BatchNormalization with spatial = 0");
    if (ctx->n_dst > 1)
        return tgi_fail(err, TG_E_UNSUPPORTED, "outputs of training");
    for (int i = 0; i < 4; i++)
        TGI_TRY(tgi_const_f32(ctx, i + 1, names[i], ctx->src[0].dim[1], &unused, err));
    dst[0] = ctx->src[0];
    return TG_OK;
}

static float value(const tg_call *call, const void *arg, const tgi_px *p)
{
    const bn_attrs *a = arg;
    double v[5];
    for (int i = 1; i < 5; i++)
        v[i] = (double)tgi_f32_at(call->ctx->const_src[i]->data, p->c);
    const double x = (double)tgi_src_at(call, 0, p);
    return (float)((x - v[3]) / sqrt(v[4] + (double)a->epsilon) * v[1] + v[2]);
}

static tg_status ref(const tg_call *call, tgi_err *err)
{
    (void)err;
    tgi_ref_each(call, 0, value, call->ctx->attrs);
    return TG_OK;
}

static double flops(const tg_op_ctx *ctx)
{
    (void)ctx;
    return 2;
}

const tg_op tg_op_batch_normalization = {
    .name = "BatchNormalization",
    .attrs = rows,
    .attrs_size = sizeof(bn_attrs),
    .infer = infer,
    .ref = ref,
    .flops = flops,
};

/* op_instance_normalization.c - InstanceNormalization: each channel to mean 0 and variance 1
 * over its whole spatial extent, then a constant scale and shift. Statistics in float64 over
 * granules (granule.h): no cancellation for images with a large offset, and the same bits
 * however the extent was cut.
 * Border: none, but every output reads the whole channel, so this op ends a stage.
 * @source ONNX operator InstanceNormalization, versions 1, 6, 22. */
#include "kernels/granule.h"
#include "kernels/ops/op_shared.h"

#include <math.h>

static const tgi_attr rows[] = {{"epsilon", TGI_ATTR_FLOAT,
                                 offsetof(instance_norm_attrs, epsilon), 1e-5, 0, 0, NULL,
                                 "added to the variance"},
                                {0}};

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    const void *unused;
    TGI_TRY(tgi_want_image(ctx, 0, err));
    TGI_TRY(tgi_const_f32(ctx, 1, "scale", ctx->src[0].dim[1], &unused, err));
    TGI_TRY(tgi_const_f32(ctx, 2, "shift", ctx->src[0].dim[1], &unused, err));
    dst[0] = ctx->src[0];
    return TG_OK;
}

typedef struct channel_stats {
    int64_t c;
    double mean, factor, shift;
} channel_stats;

static float value(const tgi_call *call, const void *arg, const tgi_px *p)
{
    const channel_stats *s = arg;
    const double x = (double)tgi_operand_get(&call->src[0], s->c, p->z, p->y, p->x);
    return (float)((x - s->mean) * s->factor + s->shift);
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    const tgi_op_ctx *ctx = call->ctx;
    const instance_norm_attrs *a = ctx->attrs;
    const tgi_range rz = tgi_box_axis(&call->box, TGI_Z), ry = tgi_box_axis(&call->box, TGI_Y),
                    rx = tgi_box_axis(&call->box, TGI_X);
    (void)err;
    for (int64_t c = 0; c < call->dst[0].c; c++) {
        const tgi_moments m = tgi_granule_channel(&call->src[0], &ctx->src[0], c);
        channel_stats s = {.c = c, .mean = tgi_moments_mean(&m)};
        const double var = tgi_moments_variance(&m);
        s.factor =
            (double)tgi_f32_at(ctx->const_src[1]->data, c) / sqrt(var + (double)a->epsilon);
        s.shift = (double)tgi_f32_at(ctx->const_src[2]->data, c);
        for (int64_t z = rz.lo; z < rz.hi; z++)
            for (int64_t y = ry.lo; y < ry.hi; y++)
                for (int64_t x = rx.lo; x < rx.hi; x++)
                    *tgi_view_at(&call->dst[0], c, z, y, x) =
                        value(call, &s, &(tgi_px){c, z, y, x});
    }
    tgi_zero_lanes(&call->dst[0], &call->box);
    return TG_OK;
}

static double flops(const tgi_op_ctx *ctx)
{
    (void)ctx;
    return 6;
}

TGI_EVAL_BY_REF

const tgi_op tgi_op_instance_normalization = {
    .name = "InstanceNormalization",
    .op_class = TGI_OP_WHOLE,
    .attrs = rows,
    .attrs_size = sizeof(instance_norm_attrs),
    .infer = infer,
    .slide = tgi_slide_whole,
    .ref = ref,
    .eval = eval,
    .flops = flops,
};

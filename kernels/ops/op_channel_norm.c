/* op_channel_norm.c - ChannelNorm: the channels of each pixel are brought to mean 0 and variance
 * 1 (not centred: to mean square 1). Computed in float64, two passes. No operator of ONNX:
 * LayerNormalization and RMSNormalization of tokens, without their scale and shift.
 * Border: none, each pixel by itself. */
#include "kernels/ops/op_shared.h"

#include <math.h>

static const tgi_attr rows[] = {{"epsilon", TGI_ATTR_FLOAT,
                                 offsetof(channel_norm_attrs, epsilon), 1e-5, 0, 0, NULL,
                                 "added to the variance"},
                                {"centred", TGI_ATTR_INT, offsetof(channel_norm_attrs, centred),
                                 1, 0, 1, NULL, "0: the mean stays"},
                                {0}};

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    TGI_TRY(tgi_want_image(ctx, 0, err));
    return tgi_infer_same(ctx, dst, err);
}

#define RUN_PX 64 /* pixels of a row that are normalised together */

/* Pixels [x0, x1) of one row. */
typedef struct run {
    const tgi_call *call;
    int64_t z, y, x0, x1;
    double mean[RUN_PX], inverse[RUN_PX];
} run;

static const float *channel(const run *r, int64_t c, int *step)
{
    const tgi_view *v = tgi_operand_view(&r->call->src[0], &c);
    *step = v->cb;
    return tgi_view_at(v, c, r->z, r->y, r->x0);
}

static void measure(run *r)
{
    const channel_norm_attrs *a = r->call->ctx->attrs;
    const int64_t n = r->call->ctx->src[0].dim[1], px = r->x1 - r->x0;
    int step;
    for (int64_t i = 0; i < px; i++)
        r->mean[i] = r->inverse[i] = 0;
    for (int64_t c = 0; c < n && a->centred; c++) {
        const float *from = channel(r, c, &step);
        for (int64_t i = 0; i < px; i++)
            r->mean[i] += (double)from[i * step];
    }
    for (int64_t i = 0; i < px; i++)
        r->mean[i] /= (double)n;
    for (int64_t c = 0; c < n; c++) {
        const float *from = channel(r, c, &step);
        for (int64_t i = 0; i < px; i++) {
            const double d = (double)from[i * step] - r->mean[i];
            r->inverse[i] += d * d;
        }
    }
    for (int64_t i = 0; i < px; i++)
        r->inverse[i] = 1 / sqrt(r->inverse[i] / (double)n + (double)a->epsilon);
}

static void apply(const run *r)
{
    const tgi_view *to = &r->call->dst[0];
    int step;
    for (int64_t c = 0; c < to->c; c++) {
        const float *from = channel(r, c, &step);
        float *dst = tgi_view_at(to, c, r->z, r->y, r->x0);
        for (int64_t i = 0; i < r->x1 - r->x0; i++)
            dst[i * to->cb] = (float)(((double)from[i * step] - r->mean[i]) * r->inverse[i]);
    }
}

static void row(const tgi_call *call, int64_t z, int64_t y, tgi_range x)
{
    run r = {.call = call, .z = z, .y = y};
    for (r.x0 = x.lo; r.x0 < x.hi; r.x0 = r.x1) {
        r.x1 = tgi_min(r.x0 + RUN_PX, x.hi);
        measure(&r);
        apply(&r);
    }
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    (void)err;
    tgi_ref_rows(call, row);
    return TG_OK;
}

TGI_EVAL_BY_REF

static double flops(const tgi_op_ctx *ctx)
{
    (void)ctx;
    return 8;
}

const tgi_op tgi_op_channel_norm = {
    .name = "ChannelNorm",
    .internal = 1,
    .attrs = rows,
    .attrs_size = sizeof(channel_norm_attrs),
    .infer = infer,
    .ref = ref,
    .eval = eval,
    .flops = flops,
};

/* op_channel_norm.c - ChannelNorm: the channels of each pixel are brought to mean 0 and variance
 * 1 (not centred: to mean square 1). Computed in float64, two passes. No operator of ONNX:
 * LayerNormalization and RMSNormalization of tokens, without their scale and shift.
 * Border: none, each pixel by itself. */
#include "kernels/ops/op_shared.h"
#include "kernels/threads.h"

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

/* Row i of the box. */
static void row(void *arg, int64_t i, int thread)
{
    const tgi_call *call = *(const tgi_call **)arg;
    const tgi_range rz = tgi_box_axis(&call->box, TGI_Z), ry = tgi_box_axis(&call->box, TGI_Y),
                    rx = tgi_box_axis(&call->box, TGI_X);
    const int64_t rows_of_plane = ry.hi - ry.lo;
    run r = {.call = call, .z = rz.lo + i / rows_of_plane, .y = ry.lo + i % rows_of_plane};
    (void)thread;
    for (r.x0 = rx.lo; r.x0 < rx.hi; r.x0 = r.x1) {
        r.x1 = tgi_min(r.x0 + RUN_PX, rx.hi);
        measure(&r);
        apply(&r);
    }
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    const tgi_range rz = tgi_box_axis(&call->box, TGI_Z), ry = tgi_box_axis(&call->box, TGI_Y);
    (void)err;
    tgi_parallel(call->threads, (rz.hi - rz.lo) * (ry.hi - ry.lo), row, &call);
    tgi_zero_lanes(&call->dst[0], &call->box);
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

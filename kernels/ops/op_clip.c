/* op_clip.c - Clip: min(max(x, low), high). Bounds are attributes before opset 11, optional
 * scalar inputs from then on. Border: none, each element by itself.
 * @source ONNX operator Clip, versions 6, 11, 12, 13. */
#include "kernels/ops/op_shared.h"

#include <math.h>

#define LOWEST (-3.4028234663852886e38)
#define HIGHEST 3.4028234663852886e38

static const tgi_attr rows[] = {
    {"min", TGI_ATTR_FLOAT, offsetof(clip_attrs, min), LOWEST, 0, 0, NULL, "opset < 11"},
    {"max", TGI_ATTR_FLOAT, offsetof(clip_attrs, max), HIGHEST, 0, 0, NULL, "opset < 11"},
    {0}};

typedef struct bounds {
    double low, high;
} bounds;

static double value(double x, const void *arg)
{
    const bounds *b = arg;
    const double v = x < b->low ? b->low : x;
    return v > b->high ? b->high : v;
}

static bounds bounds_of(const tgi_op_ctx *ctx)
{
    const clip_attrs *a = ctx->attrs;
    if (ctx->opset < 11)
        return (bounds){(double)a->min, (double)a->max};
    const tgi_constant *low = tgi_const(ctx, 1), *high = tgi_const(ctx, 2);
    const double inf = (double)INFINITY;
    return (bounds){low ? tgi_num_at(low, 0) : -inf, high ? tgi_num_at(high, 0) : inf};
}

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    for (int i = 1; i < ctx->n_src && i < 3; i++) {
        if (!tgi_given(ctx, i))
            continue;
        const tgi_constant *c = tgi_const(ctx, i);
        if (!c)
            return tgi_fail(err, TG_E_UNSUPPORTED, "a bound (input %d) computed by the graph",
                            i);
        if (tgi_const_count(c) != 1)
            return tgi_fail(err, TG_E_FORMAT, "a bound (input %d) of %" PRId64 " elements", i,
                            tgi_const_count(c));
    }
    return tgi_infer_same(ctx, dst, err);
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    const bounds b = bounds_of(call->ctx);
    tgi_op_ctx ctx = *call->ctx;
    tgi_call with = *call;
    ctx.attrs = &b;
    with.ctx = &ctx;
    return tgi_ref_unary(&with, value, err);
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    const bounds b = bounds_of(ctx);
    tgi_op_ctx with = *ctx;
    with.attrs = &b;
    return tgi_eval_unary(&with, dst_data, value, err);
}

static int as_step(const tgi_op_ctx *ctx, int chain, tgi_epi_step *step)
{
    const bounds b = bounds_of(ctx);
    if (chain != 0)
        return 0;
    *step =
        (tgi_epi_step){.kind = TGI_EPI_CLIP, .src = -1, .a = (float)b.low, .b = (float)b.high};
    return 1;
}

const tgi_op tgi_op_clip = {
    .name = "Clip",
    .attrs = rows,
    .attrs_size = sizeof(clip_attrs),
    .infer = infer,
    .ref = ref,
    .eval = eval,
    .as_step = as_step,
};

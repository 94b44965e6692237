/* family_softmax.c - Softmax, exp(x - max) / sum; LogSoftmax, its logarithm; Hardmax, 1 at the
 * first largest element and 0 elsewhere. Along one axis, in float64. Before opset 13 the axes
 * from `axis` on are one. Local on images when the axis is that of channels, and computed on
 * dense tensors otherwise.
 * Border: none, each pixel by itself.
 * @source ONNX operators Softmax, LogSoftmax and Hardmax, versions 1, 11 (flattening), 13. */
#include "kernels/ops/dense_plan.h"

#include <math.h>

#define NOT_GIVEN 100 /* the default depends on the opset */

typedef enum kind { SOFT, LOG, HARD } kind;

static const tgi_attr rows[] = {{"axis", TGI_ATTR_INT, offsetof(axis_attrs, axis), NOT_GIVEN, 0,
                                 0, NULL, "axis of the sum"},
                                {0}};

/* The data seen as [outer, n, inner]. */
tg_status tgi_softmax_rows(const tgi_op_ctx *ctx, int *axis, int64_t *outer, int64_t *n,
                           int64_t *inner, tgi_err *err)
{
    const axis_attrs *a = ctx->attrs;
    const tgi_desc *d = &ctx->src[0];
    const int64_t fallback = ctx->opset < 13 ? 1 : -1;
    TGI_TRY(tgi_axis(a->axis == NOT_GIVEN ? fallback : a->axis, d->rank, axis, err));
    *outer = *n = *inner = 1;
    for (int k = 0; k < d->rank; k++)
        *(k < *axis ? outer : k == *axis || ctx->opset < 13 ? n : inner) *= d->dim[k];
    return TG_OK;
}

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    int64_t outer, n, inner;
    int axis;
    TGI_TRY(tgi_softmax_rows(ctx, &axis, &outer, &n, &inner, err));
    dst[0] = ctx->src[0];
    return TG_OK;
}

static tgi_op_kind classify(const tgi_op_ctx *ctx)
{
    int64_t outer, n, inner;
    int axis;
    const tg_status st = tgi_softmax_rows(ctx, &axis, &outer, &n, &inner, NULL);
    return st == TG_OK && axis == 1 && n == ctx->src[0].dim[1] ? TGI_OP_LOCAL : TGI_OP_DENSE;
}

/* What is known of a row of n elements before any result of it. */
typedef struct row {
    double top, sum;
    int64_t at; /* of the first largest */
} row;

static void note_top(row *r, double v, int64_t i)
{
    if (v > r->top || i == 0) {
        r->top = v;
        r->at = i;
    }
}

static double result(kind k, const row *r, double v, int64_t i)
{
    return k == HARD  ? (i == r->at ? 1.0 : 0.0)
           : k == LOG ? v - r->top - log(r->sum)
                      : exp(v - r->top) / r->sum;
}

/* One row serves all channels of a pixel. */
static void pixel(const tgi_call *call, kind k, int64_t z, int64_t y, int64_t x)
{
    const int64_t n = call->dst[0].c;
    const tgi_operand *s = &call->src[0];
    row r = {-INFINITY, 0, 0};
    for (int64_t c = 0; c < n; c++)
        note_top(&r, (double)tgi_operand_get(s, c, z, y, x), c);
    for (int64_t c = 0; c < n && k != HARD; c++)
        r.sum += exp((double)tgi_operand_get(s, c, z, y, x) - r.top);
    for (int64_t c = 0; c < n; c++)
        *tgi_view_at(&call->dst[0], c, z, y, x) =
            (float)result(k, &r, (double)tgi_operand_get(s, c, z, y, x), c);
}

static tg_status ref_kind(const tgi_call *call, kind k, tgi_err *err)
{
    const tgi_range rz = tgi_box_axis(&call->box, TGI_Z), ry = tgi_box_axis(&call->box, TGI_Y),
                    rx = tgi_box_axis(&call->box, TGI_X);
    (void)err;
    for (int64_t z = rz.lo; z < rz.hi; z++)
        for (int64_t y = ry.lo; y < ry.hi; y++)
            for (int64_t x = rx.lo; x < rx.hi; x++)
                pixel(call, k, z, y, x);
    tgi_zero_lanes(&call->dst[0], &call->box);
    return TG_OK;
}

static tg_status eval_kind(const tgi_op_ctx *ctx, void *const *dst_data, kind k, tgi_err *err)
{
    const tgi_constant *c = ctx->const_src[0];
    int64_t outer, n, inner;
    int axis;
    TGI_TRY(tgi_softmax_rows(ctx, &axis, &outer, &n, &inner, err));
    for (int64_t o = 0; o < outer * inner; o++) {
        const int64_t base = o / inner * n * inner + o % inner;
        row r = {-INFINITY, 0, 0};
        for (int64_t i = 0; i < n; i++)
            note_top(&r, tgi_num_at(c, base + i * inner), i);
        for (int64_t i = 0; i < n && k != HARD; i++)
            r.sum += exp(tgi_num_at(c, base + i * inner) - r.top);
        for (int64_t i = 0; i < n; i++)
            tgi_num_put(c->desc.dtype, dst_data[0], base + i * inner,
                        result(k, &r, tgi_num_at(c, base + i * inner), i));
    }
    return TG_OK;
}

static double flops(const tgi_op_ctx *ctx)
{
    (void)ctx;
    return 16;
}

#define SOFTMAX(symbol, onnx, what)                                                            \
    TGI_OP_OF_KIND(symbol, onnx, what, .classify = classify, .attrs = rows,                    \
                   .attrs_size = sizeof(axis_attrs), .infer = infer, .flops = flops)

SOFTMAX(hardmax, "Hardmax", HARD)
SOFTMAX(log_softmax, "LogSoftmax", LOG)
SOFTMAX(softmax, "Softmax", SOFT)

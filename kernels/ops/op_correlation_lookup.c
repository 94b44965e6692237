/* op_correlation_lookup.c - CorrelationLookup: how like pixel p of source 0 is to what lies around
 * the place that its flow, source 1, points to in each of the other sources, the levels:
 *
 *   out[l*n*n + i*n + j, p] = D_l(cx + i - radius, cy + j - radius), n = 2*radius + 1
 *   (cx, cy) = (p + flow[p]) / 2^l
 *   D_l(q) = source 0 [p] . level l [q] / sqrt(channels)
 *
 * D_l between pixels is bilinear, in float64: products at whole places first, then their mean. i
 * moves x. Level l has 1/2^l of the resolution of level 0, whose pixels flow counts. Channels are
 * summed in their order. No operator of ONNX: the lookup of RAFT without its volume, since a mean of
 * products is the product with a mean of features.
 * Border: D_l is 0 outside. So it is everywhere for a flow that is no number.
 * @source Teed, Deng, RAFT, arXiv:2003.12039, section 3.2; ProPainter's SPEC, section 2. */
#include "kernels/ops/lookup_place.h"
#include "kernels/ops/op_shared.h"

#include <math.h>

static const tgi_attr rows[] = {{"radius", TGI_ATTR_INT, offsetof(lookup_attrs, radius), 4, 0,
                                 TGI_LOOKUP_RADIUS, NULL, "pixels of a level to each side"},
                                {0}};

static int64_t side_of(const tgi_op_ctx *ctx)
{
    return 2 * ((const lookup_attrs *)ctx->attrs)->radius + 1;
}

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    if (ctx->n_src < 3)
        return tgi_fail(err, TG_E_FORMAT, "%d inputs, expected features, flow and levels",
                        ctx->n_src);
    for (int i = 0; i < ctx->n_src; i++)
        TGI_TRY(tgi_want_frame(ctx, i, err));
    const tgi_desc *f = &ctx->src[0];
    tgi_desc flow = *f;
    flow.dim[1] = 2;
    TGI_TRY(tgi_want_shape(ctx, 1, "the flow", &flow, err));
    for (int i = 2; i < ctx->n_src; i++)
        if (ctx->src[i].dim[1] != f->dim[1])
            return tgi_fail(err, TG_E_FORMAT,
                            "level %d has %" PRId64 " channels, expected %" PRId64, i - 2,
                            ctx->src[i].dim[1], f->dim[1]);
    *dst = *f;
    dst->dim[1] = (ctx->n_src - 2) * side_of(ctx) * side_of(ctx);
    return TG_OK;
}

static int slide(const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *out)
{
    *out = src_i < 2 ? TGI_SLIDE_SAME : tgi_slide_all(tgi_desc_axis(&ctx->src[src_i], axis));
    return 1;
}

/* ---- Reference --------------------------------------------------------------------------- */

/* D of level l at pixel (y,x), which may lie outside. */
static double product(const tgi_call *call, const tgi_px *p, int l, int64_t y, int64_t x)
{
    const tgi_desc *d = &call->ctx->src[2 + l];
    tgi_px a = *p, b = {0, 0, y, x};
    double sum = 0;
    if (y < 0 || y >= d->dim[2] || x < 0 || x >= d->dim[3])
        return 0;
    for (int64_t c = 0; c < d->dim[1]; c++) {
        a.c = b.c = c;
        sum += (double)tgi_src_broadcast(call, 0, -1, &a) *
               (double)tgi_src_broadcast(call, 2 + l, -1, &b);
    }
    return sum / sqrt((double)d->dim[1]);
}

static void level(const tgi_call *call, const tgi_px *p, int l)
{
    const int64_t n = side_of(call->ctx), r = n / 2;
    tgi_px q = *p;
    const tgi_desc *d = &call->ctx->src[2 + l];
    const tgi_place x =
        tgi_lookup_place(p->x, (q.c = 0, tgi_src_broadcast(call, 1, -1, &q)), l, d->dim[3]);
    const tgi_place y =
        tgi_lookup_place(p->y, (q.c = 1, tgi_src_broadcast(call, 1, -1, &q)), l, d->dim[2]);
    double at[TGI_LOOKUP_SIDE + 1][TGI_LOOKUP_SIDE + 1];
    for (int64_t j = 0; j <= n; j++)
        for (int64_t i = 0; i <= n; i++)
            at[j][i] =
                x.far || y.far ? 0 : product(call, p, l, y.whole + j - r, x.whole + i - r);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            const double fx = (double)x.part, fy = (double)y.part;
            const double above = (1 - fx) * at[j][i] + fx * at[j][i + 1];
            const double below = (1 - fx) * at[j + 1][i] + fx * at[j + 1][i + 1];
            *tgi_view_at(&call->dst[0], (l * n + i) * n + j, 0, p->y, p->x) =
                (float)((1 - fy) * above + fy * below);
        }
}

static void row(const tgi_call *call, int64_t z, int64_t y, tgi_range x)
{
    tgi_px p = {0, z, y, 0};
    for (p.x = x.lo; p.x < x.hi; p.x++)
        for (int l = 0; l < call->ctx->n_src - 2; l++)
            level(call, &p, l);
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    (void)err;
    tgi_ref_rows(call, row);
    return TG_OK;
}

TGI_EVAL_BY_REF

/* Products at (n + 1)^2 places for n^2 numbers. */
static double flops(const tgi_op_ctx *ctx)
{
    const double n = (double)side_of(ctx);
    return (n + 1) * (n + 1) / (n * n) * 2 * (double)ctx->src[0].dim[1] + 8;
}

const tgi_op tgi_op_correlation_lookup = {
    .name = "CorrelationLookup",
    .internal = 1,
    .op_class = TGI_OP_WHOLE,
    .by_rows = 3,
    .wide_src = 1u << 1,
    .attrs = rows,
    .attrs_size = sizeof(lookup_attrs),
    .infer = infer,
    .slide = slide,
    .ref = ref,
    .eval = eval,
    .flops = flops,
};

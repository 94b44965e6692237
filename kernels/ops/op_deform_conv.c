/* op_deform_conv.c - DeformConv: a convolution of images whose taps lie where data say:
 *
 *   out[m, y, x] = bias[m] + sum over c, k of w[m, c, k] * mask[g, k, y, x] *
 *                  in[c, sy(y) + k * dilation + dy[g, k, y, x], the same of x]
 *
 * as Conv, but that tap k of the input channels of offset group g is moved by source 2, channels
 * (g * taps + k) * 2 of dy and the next of dx, and weighed by source 4 where there is one. Between
 * pixels bilinear. Coordinates and weights of pixels in float32, sums in float64, channels outside,
 * taps inside. Weights and bias are constants.
 * Border: zeros outside. So is all that an offset which is no number names.
 * @source ONNX operator DeformConv, versions 19 and 22. */
#include "kernels/ops/op_shared.h"
#include "kernels/ops/sample_place.h"

#define AT(field) offsetof(deform_attrs, field)
static const tgi_attr rows[] = {
    {"dilations", TGI_ATTR_INTS, AT(conv.dilations), 0, 0, 0, NULL, "tap distance"},
    {"group", TGI_ATTR_INT, AT(conv.group), 1, 1, 1 << 20, NULL, "channel groups"},
    {"kernel_shape", TGI_ATTR_INTS, AT(conv.kernel_shape), 0, 0, 0, NULL, "extents"},
    {"offset_group", TGI_ATTR_INT, AT(offset_group), 1, 1, 1 << 20, NULL,
     "parts of the channels with offsets of their own"},
    {"pads", TGI_ATTR_INTS, AT(conv.pads), 0, 0, 0, NULL, "begins, then ends"},
    {"strides", TGI_ATTR_INTS, AT(conv.strides), 0, 0, 0, NULL, "step per output"},
    {0}};

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    const deform_attrs *a = ctx->attrs;
    const void *unused;
    tgi_geom g;
    TGI_TRY(tgi_want_frame(ctx, 0, err));
    TGI_TRY(tgi_want_frame(ctx, 2, err));
    TGI_TRY(tgi_conv_geometry(ctx, &g, err));
    TGI_TRY(tgi_const_f32(ctx, 1, "weights", -1, &unused, err));
    if (tgi_given(ctx, 3))
        TGI_TRY(tgi_const_f32(ctx, 3, "bias", g.out_c, &unused, err));
    int64_t taps = a->offset_group;
    if (a->offset_group < 1 || g.in_c < 1 || g.in_c % a->offset_group)
        return tgi_fail(err, TG_E_FORMAT,
                        "%" PRId64 " input channels in %" PRId64 " offset groups", g.in_c,
                        a->offset_group);
    if (!tgi_mul64_ok(taps, g.k[TGI_Y], &taps) || !tgi_mul64_ok(taps, g.k[TGI_X], &taps) ||
        taps > INT32_MAX)
        return tgi_fail(err, TG_E_FORMAT, "too many taps");
    tgi_desc want = {ctx->src[0].dtype, 4, {1, 2 * taps, g.out[TGI_Y], g.out[TGI_X]}};
    TGI_TRY(tgi_want_shape(ctx, 2, "offsets", &want, err));
    want.dim[1] = taps;
    if (tgi_given(ctx, 4))
        TGI_TRY(tgi_want_shape(ctx, 4, "mask", &want, err));
    want.dim[1] = g.out_c;
    *dst = want;
    return TG_OK;
}

static int slide(const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *out)
{
    *out = src_i == 2 || src_i == 4 ? TGI_SLIDE_SAME
                                    : tgi_slide_all(tgi_desc_axis(&ctx->src[src_i], axis));
    return 1;
}

/* ---- Reference --------------------------------------------------------------------------- */

#define PART 64 /* channels of a result that are summed together */

/* A pixel of the result. */
typedef struct pixel {
    const tgi_call *call;
    tgi_geom g;
    int64_t per_offset, z, y, x; /* input channels of an offset group */
} pixel;

/* The modulated sample of input channel c that tap (ky,kx) sees. */
static double sample(const pixel *p, int64_t c, int64_t ky, int64_t kx)
{
    const tgi_call *call = p->call;
    const tgi_geom *g = &p->g;
    const int64_t taps = g->k[TGI_Y] * g->k[TGI_X];
    const int64_t tap = c / p->per_offset * taps + ky * g->k[TGI_X] + kx;
    tgi_px at = {2 * tap, 0, p->y, p->x};
    const float dy = tgi_src_broadcast(call, 2, -1, &at);
    at.c++;
    const float dx = tgi_src_broadcast(call, 2, -1, &at);
    const int64_t sy = p->y * g->s[TGI_Y] - g->p0[TGI_Y] + ky * g->d[TGI_Y];
    const int64_t sx = p->x * g->s[TGI_X] - g->p0[TGI_X] + kx * g->d[TGI_X];
    const tgi_between y = tgi_between_of((float)sy + dy, g->in[TGI_Y]),
                      x = tgi_between_of((float)sx + dx, g->in[TGI_X]);
    double sum = 0;
    for (int j = 0; j < 2; j++)
        for (int i = 0; i < 2; i++)
            if (y.weight[j] != 0 && x.weight[i] != 0)
                sum +=
                    (double)y.weight[j] * (double)x.weight[i] *
                    (double)tgi_src_broadcast(call, 0, -1, &(tgi_px){c, 0, y.lo + j, x.lo + i});
    at.c = tap;
    return tgi_given(call->ctx, 4) ? sum * (double)tgi_src_broadcast(call, 4, -1, &at) : sum;
}

/* Channels [m0, m1) of the result, at most PART and of one group. */
static void sums(const pixel *p, int64_t m0, int64_t m1)
{
    const tgi_op_ctx *ctx = p->call->ctx;
    const tgi_geom *g = &p->g;
    const void *w = ctx->const_src[1]->data;
    const int64_t per = g->in_c / g->groups, taps = g->k[TGI_Y] * g->k[TGI_X];
    const int64_t first = m0 / (g->out_c / g->groups) * per;
    double acc[PART];
    for (int64_t m = m0; m < m1; m++)
        acc[m - m0] = tgi_given(ctx, 3) ? (double)tgi_f32_at(ctx->const_src[3]->data, m) : 0;
    for (int64_t i = 0; i < per * taps; i++) {
        const int64_t tap = i % taps;
        const double v = sample(p, first + i / taps, tap / g->k[TGI_X], tap % g->k[TGI_X]);
        for (int64_t m = m0; m < m1; m++)
            acc[m - m0] += v * (double)tgi_f32_at(w, m * per * taps + i);
    }
    for (int64_t m = m0; m < m1; m++)
        *tgi_view_at(&p->call->dst[0], m, p->z, p->y, p->x) = (float)acc[m - m0];
}

static void row(const tgi_call *call, int64_t z, int64_t y, tgi_range x)
{
    const deform_attrs *a = call->ctx->attrs;
    pixel p = {.call = call, .z = z, .y = y};
    if (tgi_conv_geometry(call->ctx, &p.g, NULL) != TG_OK)
        return; /* infer saw to it */
    const int64_t per = p.g.out_c / p.g.groups;
    p.per_offset = p.g.in_c / a->offset_group;
    for (p.x = x.lo; p.x < x.hi; p.x++)
        for (int64_t m = 0; m < p.g.out_c; m += per)
            for (int64_t i = 0; i < per; i += PART)
                sums(&p, m + i, m + tgi_min(i + PART, per));
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    (void)err;
    tgi_ref_rows(call, row);
    return TG_OK;
}

TGI_EVAL_BY_REF

/* Products as in Conv, and each sample once for all channels of the result. */
static double flops(const tgi_op_ctx *ctx)
{
    const deform_attrs *a = ctx->attrs;
    const tgi_desc *w = &ctx->src[1];
    const double taps = (double)(w->dim[2] * w->dim[3]), in = (double)ctx->src[0].dim[1];
    return 2 * taps * (double)w->dim[1] +
           taps * (8 * in + 20 * (double)a->offset_group) / (double)w->dim[0];
}

const tgi_op tgi_op_deform_conv = {
    .name = "DeformConv",
    .op_class = TGI_OP_WHOLE,
    .by_rows = 1u << 2 | 1u << 4,
    .wide_src = 1u << 2 | 1u << 4,
    .attrs = rows,
    .attrs_size = sizeof(deform_attrs),
    .infer = infer,
    .slide = slide,
    .ref = ref,
    .eval = eval,
    .flops = flops,
};

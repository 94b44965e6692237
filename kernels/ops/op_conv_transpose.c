/* op_conv_transpose.c - ConvTranspose: each input pixel adds its kernel to the output; here
 * seen from the output, with constant weights [C, M/group, k]:
 *
 *   out[m, o] = bias[m] + sum over k, c of w[c, m, k] * in[c, (o + p - k * d) / s]
 *
 * where s divides. Summed in float64, taps z, y, x outside, channels inside.
 * Border: zeros outside the image; this kernel skips such taps by image coordinates.
 * @source ONNX operator ConvTranspose, versions 1 to 22. */
#include "kernels/ops/op_shared.h"
#include "kernels/ops/window_rows.h"

static const tgi_attr rows[] = {
    TGI_WINDOW_ROWS(conv_attrs),
    {"group", TGI_ATTR_INT, offsetof(conv_attrs, group), 1, 1, 1 << 20, NULL, "channel groups"},
    {"output_padding", TGI_ATTR_INTS, offsetof(conv_attrs, output_padding), 0, 0, 0, NULL,
     "more at the end"},
    {"output_shape", TGI_ATTR_INTS, offsetof(conv_attrs, output_shape), 0, 0, 0, NULL,
     "extents that decide the pads"},
    {0}};

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    return tgi_infer_conv(ctx, tgi_conv_transpose_geometry, dst, err);
}

/* Input i meets output o = i * s - p + k * d for a tap k in [0, K). Where kernels leave gaps an
 * output meets none: the input pixel before it is named all the same, which keeps the box from
 * being empty and `need` monotone. */
static int slide(const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *out)
{
    tgi_geom g;
    *out = tgi_slide_all(tgi_desc_axis(&ctx->src[src_i], axis));
    if (src_i != 0 || tgi_conv_transpose_geometry(ctx, &g, NULL) != TG_OK)
        return 1;
    /* From the first row that any tap of a can reach, rounded up; where that lies behind a's
     * own, from there. */
    const int64_t p = g.p0[axis], reach = (g.k[axis] - 1) * g.d[axis];
    *out = (tgi_slide){
        .num = 1, .den = g.s[axis], .lo = tgi_min(p - reach + g.s[axis] - 1, p), .hi = p};
    return 1;
}

typedef struct job {
    tgi_geom g;
    const void *weights, *bias;
} job;

/* Input coordinate of tap k at output o on axis i, or -1. */
static int64_t source(const tgi_geom *g, int i, int64_t o, int64_t k)
{
    const int64_t at = o + g->p0[i] - k * g->d[i];
    return at >= 0 && at % g->s[i] == 0 && at / g->s[i] < g->in[i] ? at / g->s[i] : -1;
}

static float value(const tgi_call *call, const void *arg, const tgi_px *p)
{
    const job *j = arg;
    const tgi_geom *g = &j->g;
    const int64_t m_per = g->out_c / g->groups, c_per = g->in_c / g->groups;
    const int64_t first = p->c / m_per * c_per, m = p->c % m_per;
    const int64_t area = g->k[TGI_Y] * g->k[TGI_X], taps = g->k[TGI_Z] * area;
    double sum = j->bias ? (double)tgi_f32_at(j->bias, p->c) : 0.0;
    for (int64_t k = 0; k < taps; k++) {
        const int64_t z = source(g, TGI_Z, p->z, k / area);
        const int64_t y = source(g, TGI_Y, p->y, k % area / g->k[TGI_X]);
        const int64_t x = source(g, TGI_X, p->x, k % g->k[TGI_X]);
        if (z < 0 || y < 0 || x < 0)
            continue;
        for (int64_t c = first; c < first + c_per; c++)
            sum += (double)tgi_f32_at(j->weights, (c * m_per + m) * taps + k) *
                   (double)tgi_src_at(call, 0, &(tgi_px){c, z, y, x});
    }
    return (float)sum;
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    const tgi_op_ctx *ctx = call->ctx;
    job j = {.weights = ctx->const_src[1]->data,
             .bias = tgi_given(ctx, 2) ? ctx->const_src[2]->data : NULL};
    TGI_TRY(tgi_conv_transpose_geometry(ctx, &j.g, err));
    tgi_ref_each(call, 0, value, &j);
    return TG_OK;
}

static double flops(const tgi_op_ctx *ctx)
{
    tgi_geom g;
    if (tgi_conv_transpose_geometry(ctx, &g, NULL) != TG_OK)
        return 1;
    const int64_t group_c = g.in_c / g.groups; /* whole: the shape rule saw to it */
    return 2.0 * (double)group_c * (double)(g.k[0] * g.k[1] * g.k[2]) /
           (double)(g.s[0] * g.s[1] * g.s[2]);
}

TGI_EVAL_BY_REF

const tgi_op tgi_op_conv_transpose = {
    .name = "ConvTranspose",
    .attrs = rows,
    .attrs_size = sizeof(conv_attrs),
    .infer = infer,
    .slide = slide,
    .ref = ref,
    .eval = eval,
    .flops = flops,
};

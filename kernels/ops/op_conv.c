/* op_conv.c - Conv: cross-correlation of 2-D and 3-D images with constant weights
 * [M, C/group, k].
 *
 *   out[m, o] = bias[m] + sum over c, k of w[m, c, k] * in[c, o * s - p + k * d]
 *
 * summed in float64, channels outside, taps z, y, x inside.
 * Border: zeros outside the image. `need` therefore reaches outside; this kernel itself skips
 * taps outside by image coordinates and never reads them.
 * @source ONNX operator Conv, versions 1 to 22. */
#include "kernels/ops/op_shared.h"
#include "kernels/ops/window_rows.h"
#include "kernels/threads.h"

static const tgi_attr rows[] = {
    TGI_WINDOW_ROWS(conv_attrs),
    {"group", TGI_ATTR_INT, offsetof(conv_attrs, group), 1, 1, 1 << 20, NULL, "channel groups"},
    {0}};

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    return tgi_infer_conv(ctx, tgi_conv_geometry, dst, err);
}

static int slide(const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *out)
{
    tgi_geom g;
    *out = tgi_slide_all(tgi_desc_axis(&ctx->src[src_i], axis));
    if (src_i == 0 && tgi_conv_geometry(ctx, &g, NULL) == TG_OK)
        *out = tgi_window_slide(g.k[axis], g.s[axis], g.p0[axis], g.d[axis]);
    return 1;
}

#define RUN_PX 64 /* pixels of a row that are summed together */

/* Pixels [x0, x1) of one output row, being summed. */
typedef struct run {
    const tgi_call *call;
    const tgi_geom *g;
    const void *weights;
    int64_t m, z, y, x0, x1;
    double acc[RUN_PX];
} run;

/* Add tap (kz,ky,kx) of input channel `c` (of this group), with weight w. */
static void add_tap(run *r, int64_t c, const int64_t *k, double w)
{
    const tgi_geom *g = r->g;
    const int64_t z = r->z * g->s[TGI_Z] - g->p0[TGI_Z] + k[TGI_Z] * g->d[TGI_Z];
    const int64_t y = r->y * g->s[TGI_Y] - g->p0[TGI_Y] + k[TGI_Y] * g->d[TGI_Y];
    const int64_t off = k[TGI_X] * g->d[TGI_X] - g->p0[TGI_X], s = g->s[TGI_X];
    if (z < 0 || z >= g->in[TGI_Z] || y < 0 || y >= g->in[TGI_Y])
        return;
    /* 0 <= x * s + off < width */
    const int64_t lo = tgi_max(r->x0, tgi_ceil_div(-off, s));
    const int64_t hi = tgi_min(r->x1, tgi_floor_div(g->in[TGI_X] - 1 - off, s) + 1);
    const tgi_view *v = tgi_operand_view(&r->call->src[0], &c);
    const float *row = tgi_view_row(v, c / v->cb, z, y) + c % v->cb;
    for (int64_t x = lo; x < hi; x++)
        r->acc[x - r->x0] += w * (double)row[(x * s + off - v->x0) * v->cb];
}

static void sum_run(run *r)
{
    const tgi_geom *g = r->g;
    const int64_t per_group = g->in_c / g->groups;
    const int64_t first = r->m / (g->out_c / g->groups) * per_group;
    int64_t at = r->m * per_group * g->k[TGI_Z] * g->k[TGI_Y] * g->k[TGI_X];
    for (int64_t c = 0; c < per_group; c++)
        for (int64_t kz = 0; kz < g->k[TGI_Z]; kz++)
            for (int64_t ky = 0; ky < g->k[TGI_Y]; ky++)
                for (int64_t kx = 0; kx < g->k[TGI_X]; kx++)
                    add_tap(r, first + c, (const int64_t[3]){kz, ky, kx},
                            (double)tgi_f32_at(r->weights, at++));
}

typedef struct job {
    const tgi_call *call;
    tgi_geom g;
} job;

/* One output channel over the box. */
static void channel(void *arg, int64_t m, int thread)
{
    const tgi_call *call = ((const job *)arg)->call;
    const tgi_geom *g = &((const job *)arg)->g;
    const tgi_op_ctx *ctx = call->ctx;
    const tgi_view *v = &call->dst[0];
    const double bias =
        tgi_given(ctx, 2) ? (double)tgi_f32_at(ctx->const_src[2]->data, m) : 0.0;
    const tgi_range rz = tgi_box_axis(&call->box, TGI_Z), ry = tgi_box_axis(&call->box, TGI_Y),
                    rx = tgi_box_axis(&call->box, TGI_X);
    run r = {.call = call, .g = g, .weights = ctx->const_src[1]->data, .m = m};
    (void)thread;
    for (r.z = rz.lo; r.z < rz.hi; r.z++)
        for (r.y = ry.lo; r.y < ry.hi; r.y++)
            for (r.x0 = rx.lo; r.x0 < rx.hi; r.x0 = r.x1) {
                r.x1 = tgi_min(r.x0 + RUN_PX, rx.hi);
                for (int i = 0; i < RUN_PX; i++)
                    r.acc[i] = bias;
                sum_run(&r);
                for (int64_t x = r.x0; x < r.x1; x++)
                    *tgi_view_at(v, m, r.z, r.y, x) = (float)r.acc[x - r.x0];
            }
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    job j = {.call = call};
    TGI_TRY(tgi_conv_geometry(call->ctx, &j.g, err));
    tgi_parallel(call->threads, j.g.out_c, channel, &j);
    tgi_zero_lanes(&call->dst[0], &call->box);
    return TG_OK;
}

static double flops(const tgi_op_ctx *ctx)
{
    tgi_geom g;
    if (tgi_conv_geometry(ctx, &g, NULL) != TG_OK)
        return 1;
    const int64_t group_c = g.in_c / g.groups; /* whole: the shape rule saw to it */
    return 2.0 * (double)group_c * (double)(g.k[0] * g.k[1] * g.k[2]);
}

TGI_EVAL_BY_REF

const tgi_op tgi_op_conv = {
    .name = "Conv",
    .attrs = rows,
    .attrs_size = sizeof(conv_attrs),
    .infer = infer,
    .slide = slide,
    .ref = ref,
    .eval = eval,
    .flops = flops,
};

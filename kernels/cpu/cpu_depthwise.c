/* cpu_depthwise.c - depthwise convolution (one filter per channel), blocked to blocked.
 *
 * Bound by loads: a tap is one source vector and one multiply-add. Order: bias, then kz, ky, kx.
 * Columns outside the image are stored zeros; rows outside are skipped.
 * Packed: bias [blocks][TG_L], then [block][kz][ky][kx][TG_L]. */
#include "kernels/cpu/cpu_common.h"
#include "kernels/ops/op_attrs.h"

#define PX 8

typedef struct depthwise {
    tgi_geom g;
    const float *bias, *weights;
} depthwise;

static int accepts(const tg_op_ctx *ctx, const tg_layout_hint *lay)
{
    tgi_geom g;
    return tgi_is_const_f32(ctx, 1) && (tgi_is_absent(ctx, 2) || tgi_is_const_f32(ctx, 2)) &&
           tgi_conv_geometry(ctx, &g, NULL) == TG_OK && g.groups > 1 && g.groups == g.in_c &&
           g.groups == g.out_c && lay->lanes == TG_L && lay->dst_cb == TG_L &&
           TGS(tgi_blocks_line_up)(lay, 0);
}

static int64_t tap_count(const tg_op_ctx *ctx)
{
    int64_t taps = 1;
    for (int i = 2; i < ctx->src[1].rank; i++)
        taps *= ctx->src[1].dim[i];
    return taps;
}

static size_t packed_bytes(const tg_op_ctx *ctx, const tg_layout_hint *lay)
{
    (void)lay;
    const int64_t channels = tgi_ceil_div64(ctx->src[1].dim[0], TG_L) * TG_L;
    return sizeof(float) * (size_t)(channels * (1 + tap_count(ctx)));
}

static void pack(const tg_op_ctx *ctx, const tg_layout_hint *lay, void *dst)
{
    const int64_t c = ctx->src[1].dim[0], taps = tap_count(ctx);
    const int64_t channels = tgi_ceil_div64(c, TG_L) * TG_L;
    float *out = dst;
    (void)lay;
    for (int64_t i = 0; i < channels; i++)
        *out++ = i < c && !tgi_is_absent(ctx, 2) ? tgi_const_at(ctx->const_src[2]->data, i)
                                                 : 0.0f;
    for (int64_t i = 0; i < channels * taps; i++) {
        const int64_t ch = i / (taps * TG_L) * TG_L + i % TG_L, tap = i / TG_L % taps;
        *out++ = ch < c ? tgi_const_at(ctx->const_src[1]->data, ch * taps + tap) : 0.0f;
    }
}

/* Add one tap row to n pixels whose sums are in dst. */
TG_INLINE void tap_pixels(const depthwise *d, const float *x, const float *w, float *dst,
                          const int n)
{
    const ptrdiff_t step = d->g.s[TG_X] * TG_L;
    vf acc[PX];
    TG_UNROLL
    for (int p = 0; p < n; p++)
        acc[p] = vf_load(dst + p * TG_L);
    for (int64_t k = 0; k < d->g.k[TG_X]; k++, x += d->g.d[TG_X] * TG_L) {
        const vf wv = vf_load(w + k * TG_L);
        TG_UNROLL
        for (int p = 0; p < n; p++)
            acc[p] = vf_fma(vf_load(x + p * step), wv, acc[p]);
    }
    TG_UNROLL
    for (int p = 0; p < n; p++)
        vf_store(dst + p * TG_L, acc[p]);
}

static void tap_row(const depthwise *d, const float *x, const float *w, float *dst, int64_t n)
{
    const ptrdiff_t step = d->g.s[TG_X] * TG_L;
    int64_t at = 0;
    for (; at + PX <= n; at += PX)
        tap_pixels(d, x + at * step, w, dst + at * TG_L, PX);
    for (; at < n; at++)
        tap_pixels(d, x + at * step, w, dst + at * TG_L, 1);
}

static void part(const tg_call *call, const void *arg, const tg_row_part *p)
{
    const depthwise *d = arg;
    const tgi_geom *g = &d->g;
    const tg_view *dv = &call->dst[0];
    float *dst = tgi_view_row(dv, p->b0, p->z, p->y) + (p->x0 - dv->x0) * TG_L;
    const int64_t n = p->x1 - p->x0, row = g->k[TG_X] * TG_L;
    const float *w = d->weights + p->b0 * g->k[TG_Z] * g->k[TG_Y] * row;
    int64_t b = p->b0;
    const tg_view *v = TGS(tgi_block_at)(&call->src[0], &b);
    for (int64_t i = 0; i < n; i++)
        vf_store(dst + i * TG_L, vf_load(d->bias + p->b0 * TG_L));
    for (int64_t t = 0; t < g->k[TG_Z] * g->k[TG_Y]; t++, w += row) {
        const int64_t z = p->z * g->s[TG_Z] - g->p0[TG_Z] + t / g->k[TG_Y] * g->d[TG_Z];
        const int64_t y = p->y * g->s[TG_Y] - g->p0[TG_Y] + t % g->k[TG_Y] * g->d[TG_Y];
        const int64_t x = p->x0 * g->s[TG_X] - g->p0[TG_X];
        if (z >= 0 && z < g->in[TG_Z] && y >= 0 && y < g->in[TG_Y])
            tap_row(d, tgi_view_row(v, b, z, y) + (x - v->x0) * TG_L, w, dst, n);
    }
}

static void run(const tg_call *call)
{
    depthwise d = {.bias = call->packed};
    if (tgi_conv_geometry(call->ctx, &d.g, NULL) != TG_OK)
        return;
    d.weights = d.bias + tgi_view_blocks(&call->dst[0]) * TG_L;
    TGS(tgi_each_part)(call, part, &d);
}

const tg_variant TGS(tgi_conv_depthwise) = {.name = "conv_depthwise",
                                            .op = "Conv",
                                            .accepts = accepts,
                                            .packed_bytes = packed_bytes,
                                            .pack = pack,
                                            .run = run};

/* cpu_depthwise.c - depthwise convolution (one filter per channel), blocked to blocked.
 *
 * A tap is one source vector and one multiply-add, so the way from and to memory counts. What
 * the second-level cache does not hold is asked for ahead, which the processor does not do by
 * itself across pages and for results (1.8 times the speed at 256 x 256; what it holds takes
 * up to 15 % longer for it). Order: bias, then kz, ky, kx. Columns outside the image are
 * stored zeros; rows outside are skipped. Packed: bias [blocks][TG_L], then
 * [block][kz][ky][kx][TG_L]. */
#include "kernels/cpu/cpu_common.h"
#include "kernels/ops/op_attrs.h"

#include <math.h>

#define PX 8
#define TAPS_MAX 128 /* kz * ky */
/* Floats fetched ahead of the pixels in work. Not 4 KiB apart from them: stores and fetches at
 * the same offset of a page get in each other's way. */
#define SOURCE_AHEAD 1152
#define RESULT_AHEAD 640
#define LINE 16
#define CACHE_BYTES ((int64_t)640 << 10) /* of source and result */

typedef struct depthwise {
    tgi_geom g;
    const float *bias, *weights;
    int far; /* source and result are more than the cache holds */
} depthwise;

static int accepts(const tg_op_ctx *ctx, const tg_layout_hint *lay)
{
    tgi_geom g;
    return tgi_is_const_f32(ctx, 1) && (tgi_is_absent(ctx, 2) || tgi_is_const_f32(ctx, 2)) &&
           tgi_conv_geometry(ctx, &g, NULL) == TG_OK && g.groups > 1 && g.groups == g.in_c &&
           g.groups == g.out_c && g.k[TG_Z] * g.k[TG_Y] <= TAPS_MAX && lay->lanes == TG_L &&
           lay->dst_cb == TG_L && TGS(tgi_blocks_line_up)(lay, 0);
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
        *out++ =
            i < c && !tgi_is_absent(ctx, 2) ? tgi_const_at(ctx->const_src[2]->data, i) : 0.0f;
    for (int64_t i = 0; i < channels * taps; i++) {
        const int64_t ch = i / (taps * TG_L) * TG_L + i % TG_L, tap = i / TG_L % taps;
        *out++ = ch < c ? tgi_const_at(ctx->const_src[1]->data, ch * taps + tap) : 0.0f;
    }
}

typedef struct tap { /* a row of taps inside the image: source at column 0, weights [kx][TG_L]
                      */
    const float *x, *w;
} tap;

/* Lines of the bottom row of taps, new to all caches, and of the result. */
TG_INLINE void fetch_ahead(const depthwise *d, const tap *taps, int n_taps, int64_t at,
                           float *dst)
{
    const ptrdiff_t step = d->g.s[TG_X] * TG_L;
    const float *x = n_taps ? taps[n_taps - 1].x + at * step + SOURCE_AHEAD : dst;
    TG_UNROLL
    for (int i = 0; i < PX * TG_L; i += LINE)
        __builtin_prefetch(dst + at * TG_L + RESULT_AHEAD + i, 1);
    for (ptrdiff_t i = 0; i < PX * step; i += LINE)
        __builtin_prefetch(x + i);
}

/* n pixels from column `at` of the part. */
TG_INLINE void pixels(const depthwise *d, const tap *taps, int n_taps, vf bias, vf floor,
                      int64_t at, float *dst, const int n)
{
    const ptrdiff_t step = d->g.s[TG_X] * TG_L, kx_step = d->g.d[TG_X] * TG_L;
    vf acc[PX];
    TG_UNROLL
    for (int p = 0; p < n; p++)
        acc[p] = bias;
    for (int t = 0; t < n_taps; t++) {
        const float *x = taps[t].x + at * step, *w = taps[t].w;
        for (int64_t k = 0; k < d->g.k[TG_X]; k++, x += kx_step, w += TG_L) {
            const vf wv = vf_load(w);
            TG_UNROLL
            for (int p = 0; p < n; p++)
                acc[p] = vf_fma(vf_load(x + p * step), wv, acc[p]);
        }
    }
    TG_UNROLL
    for (int p = 0; p < n; p++)
        vf_store(dst + (at + p) * TG_L, vf_max(floor, acc[p]));
}

static int part(const tg_call *call, const void *arg, const tg_row_part *p)
{
    const depthwise *d = arg;
    const tgi_geom *g = &d->g;
    const tg_view *dv = &call->dst[0];
    const int64_t n = p->x1 - p->x0, row = g->k[TG_X] * TG_L;
    const float *w = d->weights + p->b0 * g->k[TG_Z] * g->k[TG_Y] * row;
    const int relu = call->n_epi && call->epi[0].kind == TG_EPI_RELU;
    const vf bias = vf_load(d->bias + p->b0 * TG_L);
    const vf floor = relu ? vf_zero() : vf_set1(-INFINITY);
    int64_t b = p->b0, at = 0;
    const tg_view *v = TGS(tgi_block_at)(&call->src[0], &b);
    tap taps[TAPS_MAX];
    int n_taps = 0;
    for (int64_t t = 0; t < g->k[TG_Z] * g->k[TG_Y]; t++, w += row) {
        const int64_t z = p->z * g->s[TG_Z] - g->p0[TG_Z] + t / g->k[TG_Y] * g->d[TG_Z];
        const int64_t y = p->y * g->s[TG_Y] - g->p0[TG_Y] + t % g->k[TG_Y] * g->d[TG_Y];
        const int64_t x = p->x0 * g->s[TG_X] - g->p0[TG_X];
        if (z >= 0 && z < g->in[TG_Z] && y >= 0 && y < g->in[TG_Y])
            taps[n_taps++] = (tap){tgi_view_row(v, b, z, y) + (x - v->x0) * TG_L, w};
    }
    float *dst = tgi_view_row(dv, p->b0, p->z, p->y) + (p->x0 - dv->x0) * TG_L;
    for (; at + PX <= n; at += PX) {
        if (d->far)
            fetch_ahead(d, taps, n_taps, at, dst);
        pixels(d, taps, n_taps, bias, floor, at, dst, PX);
    }
    for (; at < n; at++)
        pixels(d, taps, n_taps, bias, floor, at, dst, 1);
    return relu;
}

/* Of the source and the result of a box. */
static int64_t bytes_of(const tgi_geom *g, const tg_call *call)
{
    int64_t in = 1, out = 1;
    for (int i = TG_Z; i <= TG_X; i++) {
        out *= tgi_range_len(tgi_box_axis(&call->box, i));
        in *= tgi_range_len(tgi_box_axis(&call->box, i)) * g->s[i];
    }
    return (in + out) * tgi_view_blocks(&call->dst[0]) * TG_L * (int64_t)sizeof(float);
}

static void run(const tg_call *call)
{
    depthwise d = {.bias = call->packed};
    if (tgi_conv_geometry(call->ctx, &d.g, NULL) != TG_OK)
        return;
    d.weights = d.bias + tgi_view_blocks(&call->dst[0]) * TG_L;
    d.far = bytes_of(&d.g, call) > CACHE_BYTES;
    TGS(tgi_each_part)(call, part, &d);
}

const tg_variant TGS(tgi_conv_depthwise) = {.name = "conv_depthwise",
                                            .op = "Conv",
                                            .accepts = accepts,
                                            .packed_bytes = packed_bytes,
                                            .pack = pack,
                                            .run = run};

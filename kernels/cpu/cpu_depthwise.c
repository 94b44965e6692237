/* cpu_depthwise.c - depthwise convolution (one filter per channel), blocked to blocked.
 *
 * A tap is one source vector and one multiply-add, so the way from and to memory counts. What
 * the second-level cache does not hold is asked for ahead, which the processor does not do by
 * itself across pages and for results (1.8 times the speed at 256 x 256; what it holds takes
 * up to 15 % longer for it). Order: bias, then kz, ky, kx. Columns outside the image are
 * stored zeros; rows outside are skipped. Packed: bias [blocks][TGI_L], then
 * [block][kz][ky][kx][TGI_L]. */
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

static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    tgi_geom g;
    return tgi_is_const_f32(ctx, 1) && (tgi_is_absent(ctx, 2) || tgi_is_const_f32(ctx, 2)) &&
           tgi_conv_geometry(ctx, &g, NULL) == TG_OK && g.groups > 1 && g.groups == g.in_c &&
           g.groups == g.out_c && g.k[TGI_Z] * g.k[TGI_Y] <= TAPS_MAX && lay->lanes == TGI_L &&
           lay->dst_cb == TGI_L && TGS(tgi_blocks_line_up)(lay, 0);
}

static size_t packed_bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    (void)lay;
    const int64_t channels = tgi_ceil_div64(ctx->src[1].dim[0], TGI_L) * TGI_L;
    return sizeof(float) * (size_t)(channels * (1 + tgi_tap_count(ctx)));
}

static void pack(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, void *dst)
{
    const int64_t c = ctx->src[1].dim[0], taps = tgi_tap_count(ctx);
    const int64_t channels = tgi_ceil_div64(c, TGI_L) * TGI_L;
    float *out = dst;
    (void)lay;
    for (int64_t i = 0; i < channels; i++)
        *out++ =
            i < c && !tgi_is_absent(ctx, 2) ? tgi_const_at(ctx->const_src[2]->data, i) : 0.0f;
    for (int64_t i = 0; i < channels * taps; i++) {
        const int64_t ch = i / (taps * TGI_L) * TGI_L + i % TGI_L, tap = i / TGI_L % taps;
        *out++ = ch < c ? tgi_const_at(ctx->const_src[1]->data, ch * taps + tap) : 0.0f;
    }
}

typedef struct tap { /* a row of taps inside the image: source at column 0, weights [kx][TGI_L]
                      */
    const float *x, *w;
} tap;

/* Lines of the bottom row of taps, new to all caches, and of the result. */
TGI_INLINE void fetch_ahead(const depthwise *d, const tap *taps, int n_taps, int64_t at,
                            float *dst)
{
    const ptrdiff_t step = d->g.s[TGI_X] * TGI_L;
    const float *x = n_taps ? taps[n_taps - 1].x + at * step + SOURCE_AHEAD : dst;
    TGI_UNROLL
    for (int i = 0; i < PX * TGI_L; i += LINE)
        __builtin_prefetch(dst + at * TGI_L + RESULT_AHEAD + i, 1);
    for (ptrdiff_t i = 0; i < PX * step; i += LINE)
        __builtin_prefetch(x + i);
}

/* n pixels from column `at` of the part. */
TGI_INLINE void pixels(const depthwise *d, const tap *taps, int n_taps, vf bias, vf floor,
                       int64_t at, float *dst, const int n)
{
    const ptrdiff_t step = d->g.s[TGI_X] * TGI_L, kx_step = d->g.d[TGI_X] * TGI_L;
    vf acc[PX];
    TGI_UNROLL
    for (int p = 0; p < n; p++)
        acc[p] = bias;
    for (int t = 0; t < n_taps; t++) {
        const float *x = taps[t].x + at * step, *w = taps[t].w;
        for (int64_t k = 0; k < d->g.k[TGI_X]; k++, x += kx_step, w += TGI_L) {
            const vf wv = vf_load(w);
            TGI_UNROLL
            for (int p = 0; p < n; p++)
                acc[p] = vf_fma(vf_load(x + p * step), wv, acc[p]);
        }
    }
    TGI_UNROLL
    for (int p = 0; p < n; p++)
        vf_store(dst + (at + p) * TGI_L, vf_max(floor, acc[p]));
}

static int part(const tgi_call *call, const void *arg, const tgi_row_part *p)
{
    const depthwise *d = arg;
    const tgi_geom *g = &d->g;
    const tgi_view *dv = &call->dst[0];
    const int64_t n = p->x1 - p->x0, row = g->k[TGI_X] * TGI_L;
    const float *w = d->weights + p->b0 * g->k[TGI_Z] * g->k[TGI_Y] * row;
    const int relu = call->n_epi && call->epi[0].kind == TGI_EPI_RELU;
    const vf bias = vf_load(d->bias + p->b0 * TGI_L);
    const vf floor = relu ? vf_zero() : vf_set1(-INFINITY);
    int64_t b = p->b0, at = 0;
    const tgi_view *v = TGS(tgi_block_at)(&call->src[0], &b);
    tap taps[TAPS_MAX];
    int n_taps = 0;
    for (int64_t t = 0; t < g->k[TGI_Z] * g->k[TGI_Y]; t++, w += row) {
        const int64_t z = p->z * g->s[TGI_Z] - g->p0[TGI_Z] + t / g->k[TGI_Y] * g->d[TGI_Z];
        const int64_t y = p->y * g->s[TGI_Y] - g->p0[TGI_Y] + t % g->k[TGI_Y] * g->d[TGI_Y];
        const int64_t x = p->x0 * g->s[TGI_X] - g->p0[TGI_X];
        if (z >= 0 && z < g->in[TGI_Z] && y >= 0 && y < g->in[TGI_Y])
            taps[n_taps++] = (tap){tgi_view_row(v, b, z, y) + (x - v->x0) * TGI_L, w};
    }
    float *dst = tgi_view_row(dv, p->b0, p->z, p->y) + (p->x0 - dv->x0) * TGI_L;
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
static int64_t bytes_of(const tgi_geom *g, const tgi_call *call)
{
    int64_t in = 1, out = 1;
    for (int i = TGI_Z; i <= TGI_X; i++) {
        out *= tgi_range_len(tgi_box_axis(&call->box, i));
        in *= tgi_range_len(tgi_box_axis(&call->box, i)) * g->s[i];
    }
    return (in + out) * tgi_view_blocks(&call->dst[0]) * TGI_L * (int64_t)sizeof(float);
}

static void run(const tgi_call *call)
{
    depthwise d = {.bias = call->packed};
    if (tgi_conv_geometry(call->ctx, &d.g, NULL) != TG_OK)
        return;
    d.weights = d.bias + tgi_view_blocks(&call->dst[0]) * TGI_L;
    d.far = bytes_of(&d.g, call) > CACHE_BYTES;
    TGS(tgi_each_part)(call, part, &d);
}

const tgi_variant TGS(tgi_conv_depthwise) = {.name = "conv_depthwise",
                                             .op = "Conv",
                                             .work = TGI_WORK_CONV,
                                             .accepts = accepts,
                                             .packed_bytes = packed_bytes,
                                             .pack = pack,
                                             .run = TGI_RUN(run)};

/* fake_conv.c - the fake device's convolution: the sums of the reference, in its order, eight channels of four pixels at
 * once. Networks of a film take minutes in the reference alone.
 *
 * A product of two float32 numbers is exact in double, so a fused multiplication changes no bit. */
#include "engine/base/arith.h"
#include "kernels/op.h"
#include "kernels/ops/op_shared.h"
#include "kernels/ops/window_rows.h"
#include "tests/device/fake_device.h"

#include <stdlib.h>
#include <string.h>

enum { PIXELS = 4, CHANNELS = 8, LANES = 4, VECTORS = CHANNELS / LANES };
typedef double vector __attribute__((vector_size(8 * LANES)));

typedef struct conv {
    const tgi_call *call;
    tgi_geom g;
    int64_t taps;   /* of a channel */
    double *weight; /* [block][channel, tap][CHANNELS] */
    double *patch;  /* [channel, tap][PIXELS] */
} conv;

static void turn_weights(const conv *v)
{
    const void *of = v->call->ctx->const_src[1]->data;
    const int64_t sums = v->g.in_c * v->taps;
    for (int64_t m = 0; m < tgi_ceil_div(v->g.out_c, CHANNELS) * CHANNELS; m++)
        for (int64_t k = 0; k < sums; k++)
            v->weight[(m / CHANNELS * sums + k) * CHANNELS + m % CHANNELS] =
                m < v->g.out_c ? (double)tgi_f32_at(of, m * sums + k) : 0;
}

/* Where channel 0 of a pixel of a segment lies; NULL: there are zeros. */
static const float *pixel_at(const conv *v, const tgi_view *seg, const int64_t at[3])
{
    for (int i = 0; i < 3; i++)
        if (at[i] < 0 || at[i] >= v->g.in[i])
            return NULL;
    return at[2] >= seg->x0 && at[2] < seg->x0 + seg->width
               ? tgi_view_at(seg, 0, at[0], at[1], at[2])
               : NULL;
}

/* What the sums of pixels x, x + 1, ... of a row read; zeros outside of the image. */
static void gather(const conv *v, int64_t z, int64_t y, int64_t x)
{
    const tgi_geom *g = &v->g;
    const int64_t *k = g->k, *d = g->d, step = v->taps * PIXELS;
    double *all = v->patch;
    for (int s = 0; s < v->call->src[0].n_seg; s++) {
        const tgi_view *seg = &v->call->src[0].seg[s];
        for (int64_t i = 0; i < step; i++) {
            const int64_t t = i / PIXELS, px = x + i % PIXELS;
            const int64_t at[3] = {z * g->s[0] - g->p0[0] + t / (k[1] * k[2]) * d[0],
                                   y * g->s[1] - g->p0[1] + t / k[2] % k[1] * d[1],
                                   px * g->s[2] - g->p0[2] + t % k[2] * d[2]};
            const float *from = px < g->out[2] ? pixel_at(v, seg, at) : NULL;
            for (int64_t c = 0; c < seg->c; c++)
                all[c * step + i] = from ? (double)from[c] : 0;
        }
        all += seg->c * step;
    }
}

static inline __attribute__((always_inline)) void sum_in(const conv *v, int64_t block,
                                                         double out[PIXELS][CHANNELS])
{
    const vector *w = (const vector *)(v->weight + block * v->g.in_c * v->taps * CHANNELS);
    const double *of = v->patch;
    vector acc[PIXELS][VECTORS];
    memcpy(acc, out, sizeof acc);
    for (int64_t k = 0; k < v->g.in_c * v->taps; k++, w += VECTORS, of += PIXELS)
        for (int p = 0; p < PIXELS; p++)
            for (int m = 0; m < VECTORS; m++)
                acc[p][m] += w[m] * (vector){of[p], of[p], of[p], of[p]};
    memcpy(out, acc, sizeof acc);
}

static void sum_any(const conv *v, int64_t block, double out[PIXELS][CHANNELS])
{
    sum_in(v, block, out);
}

#ifdef __x86_64__
__attribute__((target("avx2,fma"))) static void sum_avx2(const conv *v, int64_t block,
                                                         double out[PIXELS][CHANNELS])
{
    sum_in(v, block, out);
}
#endif

static void sum(const conv *v, int64_t block, double out[PIXELS][CHANNELS])
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        sum_avx2(v, block, out);
        return;
    }
#endif
    sum_any(v, block, out);
}

static void row(const conv *v, int64_t z, int64_t y, tgi_range cols)
{
    const tgi_op_ctx *ctx = v->call->ctx;
    const tgi_view *to = &v->call->dst[0];
    for (int64_t x = cols.lo; x < cols.hi; x += PIXELS) {
        gather(v, z, y, x);
        for (int64_t m = 0; m < v->g.out_c; m += CHANNELS) {
            double acc[PIXELS][CHANNELS] = {{0}};
            const int64_t n = tgi_min(CHANNELS, v->g.out_c - m);
            for (int64_t i = 0; i < PIXELS * n && tgi_given(ctx, 2); i++)
                acc[i / n][i % n] = (double)tgi_f32_at(ctx->const_src[2]->data, m + i % n);
            sum(v, m / CHANNELS, acc);
            for (int64_t i = 0; i < tgi_min(PIXELS, cols.hi - x) * n; i++)
                *tgi_view_at(to, m + i % n, z, y, x + i / n) = (float)acc[i / n][i % n];
        }
    }
}

int fake_conv(const tgi_call *call)
{
    conv v = {.call = call};
    tgi_err unused = {0};
    for (int s = 0; s < call->src[0].n_seg; s++)
        if (tgi_view_blocks(&call->src[0].seg[s]) > 1)
            return 0;
    if (tgi_conv_geometry(call->ctx, &v.g, &unused) != TG_OK || v.g.groups != 1 ||
        !call->ctx->const_src[1] || (tgi_given(call->ctx, 2) && !call->ctx->const_src[2]))
        return 0;
    v.taps = v.g.k[0] * v.g.k[1] * v.g.k[2];
    const size_t sums = (size_t)(v.g.in_c * v.taps);
    const size_t blocks = (size_t)tgi_ceil_div(v.g.out_c, CHANNELS);
    v.weight = aligned_alloc(64, tgi_align_size(sizeof(double) * CHANNELS * blocks * sums, 64));
    v.patch = aligned_alloc(64, tgi_align_size(sizeof(double) * PIXELS * sums, 64));
    const int can = v.weight && v.patch;
    if (can) {
        const tgi_range z = tgi_box_axis(&call->box, TGI_Z),
                        y = tgi_box_axis(&call->box, TGI_Y);
        turn_weights(&v);
        for (int64_t slab = z.lo; slab < z.hi; slab++)
            for (int64_t at = y.lo; at < y.hi; at++)
                row(&v, slab, at, tgi_box_axis(&call->box, TGI_X));
        tgi_zero_lanes(&call->dst[0], &call->box);
    }
    free(v.weight);
    free(v.patch);
    return can;
}

/* fake_conv_transpose.c - the fake device's transposed convolution of images: the sums of the reference, in its order, sixteen
 * channels at once. Products of float32 numbers are exact in double: a fused multiplication changes no bit. */
#include "engine/base/arith.h"
#include "kernels/op.h"
#include "kernels/ops/op_shared.h"
#include "tests/device/fake_device.h"

#include <stdlib.h>
#include <string.h>

enum { CHANNELS = 16, LANES = 4, VECTORS = CHANNELS / LANES, MOST_TAPS = 64 };
typedef double vector __attribute__((vector_size(8 * LANES)));

/* What a pixel of the result reads: channel 0 of a pixel, and the tap's weights [channel][CHANNELS] of a block. */
typedef struct taps {
    int n;
    const float *pixel[MOST_TAPS];
    int64_t tap[MOST_TAPS];
} taps;

typedef struct transposed {
    const tgi_call *call;
    tgi_geom g;
    double *weight; /* [block][tap][channel][CHANNELS] */
} transposed;

/* Row or column of the source that tap k of row or column `at` reads; -1: none. */
static int64_t source(const tgi_geom *g, int axis, int64_t at, int64_t k)
{
    const int64_t from = at + g->p0[axis] - k * g->d[axis];
    return from < 0 || from % g->s[axis] || from / g->s[axis] >= g->in[axis]
               ? -1
               : from / g->s[axis];
}

static void list_taps(const transposed *t, int64_t py, int64_t px, taps *out)
{
    const tgi_geom *g = &t->g;
    const tgi_view *v = &t->call->src[0].seg[0];
    out->n = 0;
    for (int64_t k = 0; k < g->k[1] * g->k[2]; k++) {
        const int64_t y = source(g, TGI_Y, py, k / g->k[2]),
                      x = source(g, TGI_X, px, k % g->k[2]);
        if (y < 0 || x < 0)
            continue;
        out->pixel[out->n] = tgi_view_at(v, 0, 0, y, x);
        out->tap[out->n++] = k;
    }
}

static inline __attribute__((always_inline)) void sum_in(const transposed *t, const taps *of,
                                                         int64_t block, double out[CHANNELS])
{
    const int64_t c = t->g.in_c, all = t->g.k[1] * t->g.k[2];
    vector acc[VECTORS];
    memcpy(acc, out, sizeof acc);
    for (int k = 0; k < of->n; k++) {
        const vector *w =
            (const vector *)(t->weight + (block * all + of->tap[k]) * c * CHANNELS);
        for (int64_t i = 0; i < c; i++, w += VECTORS) {
            const double v = (double)of->pixel[k][i];
            for (int m = 0; m < VECTORS; m++)
                acc[m] += w[m] * (vector){v, v, v, v};
        }
    }
    memcpy(out, acc, sizeof acc);
}

static void sum_any(const transposed *t, const taps *of, int64_t block, double out[CHANNELS])
{
    sum_in(t, of, block, out);
}

#ifdef __x86_64__
__attribute__((target("avx2,fma"))) static void sum_avx2(const transposed *t, const taps *of,
                                                         int64_t block, double out[CHANNELS])
{
    sum_in(t, of, block, out);
}
#endif

static void sum(const transposed *t, const taps *of, int64_t block, double out[CHANNELS])
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        sum_avx2(t, of, block, out);
        return;
    }
#endif
    sum_any(t, of, block, out);
}

static void turn_weights(const transposed *t)
{
    const float *of = t->call->ctx->const_src[1]->data;
    const int64_t all = t->g.k[1] * t->g.k[2], m = t->g.out_c, c = t->g.in_c;
    for (int64_t b = 0; b < tgi_ceil_div(m, CHANNELS); b++)
        for (int64_t k = 0; k < all; k++)
            for (int64_t i = 0; i < c * CHANNELS; i++) {
                const int64_t to = b * CHANNELS + i % CHANNELS;
                t->weight[(b * all + k) * c * CHANNELS + i] =
                    to < m ? (double)of[(i / CHANNELS * m + to) * all + k] : 0;
            }
}

static void rows(const transposed *t)
{
    const tgi_range y = tgi_box_axis(&t->call->box, TGI_Y),
                    x = tgi_box_axis(&t->call->box, TGI_X);
    const tgi_op_ctx *ctx = t->call->ctx;
    taps of;
    for (int64_t py = y.lo; py < y.hi; py++)
        for (int64_t px = x.lo; px < x.hi; px++) {
            list_taps(t, py, px, &of);
            for (int64_t m = 0; m < t->g.out_c; m += CHANNELS) {
                double acc[CHANNELS] = {0};
                const int64_t n = tgi_min(CHANNELS, t->g.out_c - m);
                for (int64_t i = 0; i < n && tgi_given(ctx, 2); i++)
                    acc[i] = (double)tgi_f32_at(ctx->const_src[2]->data, m + i);
                sum(t, &of, m / CHANNELS, acc);
                for (int64_t i = 0; i < n; i++)
                    *tgi_view_at(&t->call->dst[0], m + i, 0, py, px) = (float)acc[i];
            }
        }
}

int fake_conv_transpose(const tgi_call *call)
{
    transposed t = {.call = call};
    tgi_err unused = {0};
    if (tgi_conv_transpose_geometry(call->ctx, &t.g, &unused) != TG_OK || t.g.groups != 1 ||
        call->box.rank != 4 || t.g.k[1] * t.g.k[2] > MOST_TAPS || call->src[0].n_seg != 1 ||
        tgi_view_blocks(&call->src[0].seg[0]) > 1 || !call->ctx->const_src[1] ||
        (tgi_given(call->ctx, 2) && !call->ctx->const_src[2]))
        return 0;
    const size_t n =
        (size_t)(tgi_ceil_div(t.g.out_c, CHANNELS) * CHANNELS * t.g.in_c * t.g.k[1] * t.g.k[2]);
    t.weight = aligned_alloc(64, tgi_align_size(n * sizeof(double), 64));
    if (!t.weight)
        return 0;
    turn_weights(&t);
    rows(&t);
    free(t.weight);
    tgi_zero_lanes(&call->dst[0], &call->box);
    return 1;
}

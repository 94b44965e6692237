/* cpu_attend.h - pieces of attention that its kernels share: likenesses of queries in lanes to keys
 * in rows, and what becomes of them. */
#ifndef TGI_CPU_ATTEND_H
#define TGI_CPU_ATTEND_H

#include "kernels/cpu/cpu_common.h"

#define TILE_V 3 /* vectors of queries */
#define TILE (TILE_V * TGI_L)
#define BLOCK 64 /* keys whose sums are added up before they are added to what was there */
/* Keys, or channels of a value, whose sums are in registers together. */
#define STEP (TGI_L == 16 ? 8 : 4)

/* 1.5 * 2^23: adding it rounds to an integer, which lies in the last bits then. */
#define WHOLE 12582912.0f
#define BIAS 127.0f /* of an exponent */
#define LOG2_E 1.44269504088896341f

/* 2^-k e^x, with `magic` = WHOLE + BIAS - k, for results of 2 and less; where that is below 2^-100 or
 * so (`least` = (k - 100) ln 2), something tiny. The whole part i of x log2(e), and e to what is left,
 * x - i ln 2, which without a fused multiply-add is exact for i of 15 bits. Another k multiplies by a
 * power of two and changes no other bit.
 * @source Cephes expf (Moshier), coefficients. */
TGI_INLINE vf exp_shifted(vf x, vf magic, vf least)
{
    x = vf_max(least, x);
    const vf t = vf_fma(x, vf_set1(LOG2_E), magic), i = t - magic;
    vf r = vf_fma(i, vf_set1(-0.693359375f), x);
    r = vf_fma(i, vf_set1(2.12194440e-4f), r);
    vf p = vf_set1(1.9875691500e-4f);
    p = vf_fma(p, r, vf_set1(1.3981999507e-3f));
    p = vf_fma(p, r, vf_set1(8.3334519073e-3f));
    p = vf_fma(p, r, vf_set1(4.1665795894e-2f));
    p = vf_fma(p, r, vf_set1(1.6666665459e-1f));
    p = vf_fma(p, r, vf_set1(5.0000001201e-1f));
    p = vf_fma(p, r * r, r) + vf_set1(1.0f);
    return p * (vf)((vi)t << 23); /* a product, so that NaN stays one */
}

/* e^x for x <= 0; where that is below the normal numbers, something tiny. */
TGI_INLINE vf exp_below(vf x)
{
    return exp_shifted(x, vf_set1(WHOLE + BIAS), vf_set1(-87.0f));
}

/* 2^k for whole k <= 0; below the normal numbers, 0. */
TGI_INLINE vf power_of_two(vf k)
{
    return (vf)((vi)(vf_max(vf_set1(-BIAS), k) + vf_set1(WHOLE + BIAS)) << 23);
}

/* Likenesses of n keys, STEP at most: rows of `out`. Queries [channel][TILE]. */
TGI_INLINE void like_few(int n, const float *query, const float *key, int64_t room,
                         int64_t inner, float *out)
{
    vf acc[STEP * TILE_V];
    TGI_UNROLL
    for (int i = 0; i < n * TILE_V; i++)
        acc[i] = vf_zero();
    for (int64_t c = 0; c < inner; c++) {
        vf q[TILE_V];
        TGI_UNROLL
        for (int v = 0; v < TILE_V; v++)
            q[v] = vf_load(query + c * TILE + v * TGI_L);
        TGI_UNROLL
        for (int j = 0; j < n; j++) {
            const vf k = vf_set1(key[j * room + c]);
            TGI_UNROLL
            for (int v = 0; v < TILE_V; v++)
                acc[j * TILE_V + v] = vf_fma(k, q[v], acc[j * TILE_V + v]);
        }
    }
    TGI_UNROLL
    for (int i = 0; i < n * TILE_V; i++)
        vf_store(out + i * TGI_L, acc[i]);
}

TGI_INLINE void like_step(const float *query, const float *key, int64_t room, int64_t inner,
                          float *out)
{
    like_few(STEP, query, key, room, inner, out);
}

#endif

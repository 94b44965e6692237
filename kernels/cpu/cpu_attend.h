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

/* e^x for x up to 1 or so; where that is below the normal numbers, something tiny. The whole part of
 * x / ln 2 goes into the exponent as it was rounded. */
TGI_INLINE vf exp_below(vf x)
{
    /* 1.5 * 2^23: adding rounds to an integer; and the bias of an exponent */
    const vf magic = vf_set1(12582912.0f + 127.0f);
    x = vf_max(vf_set1(-87.0f), x);
    const vf t = vf_fma(x, vf_set1(1.44269504088896341f), magic);
    return vf_exp_rest(x, t - magic) * (vf)((vi)t << 23); /* a product, so that NaN stays one */
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

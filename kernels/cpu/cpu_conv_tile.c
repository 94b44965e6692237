/* cpu_conv_tile.c - register tiles of direct convolution; see cpu_conv_tile.h for the order.
 *
 * What bounds it: two multiply-adds a cycle. A step of 4 blocks x 6 pixels loads 4 weight
 * vectors and 6 broadcasts for 24 multiply-adds, so loads stay below the two a cycle that the
 * core has, and 24 sums cover the latency of 4 cycles three times. A loop of such steps alone
 * runs at 98 to 100 % of the peak, 1 block x 14 pixels at 92 %, broadcasts as operands of the
 * multiply-adds (a load each) at 85 %. A row is cut evenly, so that no tail is slow. */
#include "kernels/cpu/cpu_conv_tile.h"

#include <math.h>

/* Floats between a weight vector that is used and the one fetched ahead: 1x1 layers pass so
 * much source and result through the first level that the weights fall out of it. */
#define WEIGHTS_AHEAD (TG_SIMD_ISA == 2 ? 256 : 0)

/* Sum `lanes` channels at one kx into the tile. */
TG_INLINE void tile_channels(vf *acc, const float *x, const float *w, int lanes, const int ob,
                             const int px, const ptrdiff_t step)
{
    TG_UNROLL_4
    for (int c = 0; c < lanes; c++) {
        vf wv[TILE_OB_MAX];
        TG_UNROLL
        for (int q = 0; q < ob; q++) {
            wv[q] = vf_load(w + (c * ob + q) * TG_L);
            if (WEIGHTS_AHEAD)
                __builtin_prefetch(w + (c * ob + q) * TG_L + WEIGHTS_AHEAD);
        }
        TG_UNROLL
        for (int p = 0; p < px; p++) {
            const vf xv = vf_set1(x[p * step + c]);
            TG_UNROLL
            for (int q = 0; q < ob; q++)
                acc[p * ob + q] = vf_fma(xv, wv[q], acc[p * ob + q]);
        }
    }
}

/* One tile at column `at` of the part. ob, px, planar and a non-zero `fixed_step` are literals.
 */
TG_INLINE void tile(const tile_job *j, int64_t at, const int ob, const int px, const int planar,
                    const ptrdiff_t fixed_step)
{
    const ptrdiff_t step = fixed_step ? fixed_step : j->src_step;
    float *dst = j->dst + at * j->dst_step;
    vf acc[TILE_SUMS_MAX];
    TG_UNROLL
    for (int p = 0; p < px; p++) {
        TG_UNROLL
        for (int q = 0; q < ob; q++)
            acc[p * ob + q] = j->bias ? vf_load(j->bias + q * TG_L)
                                      : vf_load(dst + q * j->dst_block + p * j->dst_step);
    }
    for (int r = 0; r < j->n_rows; r++) {
        const tap_row *row = &j->rows[r];
        const float *x = row->src + at * step, *w = row->w;
        const int unit = planar ? 1 : TG_L;
        if (!planar) { /* the next tile's first tap: 1x1 layers read each line only once */
            TG_UNROLL
            for (int p = 0; p < px; p++)
                __builtin_prefetch(x + (px + p) * step);
        }
        if (planar && j->n_kx == 3) { /* a short loop costs as much as it does */
            tile_channels(acc, x, w, 1, ob, px, step);
            tile_channels(acc, x + j->kx_step, w + ob * TG_L, 1, ob, px, step);
            tile_channels(acc, x + 2 * j->kx_step, w + 2 * ob * TG_L, 1, ob, px, step);
            continue;
        }
        for (int k = 0; k < j->n_kx; k++, x += j->kx_step, w += unit * ob * TG_L) {
            if (planar)
                tile_channels(acc, x, w, 1, ob, px, step);
            else if (row->lanes == TG_L)
                tile_channels(acc, x, w, TG_L, ob, px, step);
            else
                tile_channels(acc, x, w, row->lanes, ob, px, step);
        }
    }
    const vf floor = j->relu ? vf_zero() : vf_set1(-INFINITY);
    TG_UNROLL
    for (int p = 0; p < px; p++) {
        TG_UNROLL
        for (int q = 0; q < ob; q++)
            vf_store(dst + q * j->dst_block + p * j->dst_step, vf_max(floor, acc[p * ob + q]));
    }
}

/* Cut [0,n) into tiles of at most TILE_PX pixels, the last two of even size. */
#define DEFINE_PART(name, ob, planar, step)                                                    \
    static __attribute__((noinline)) int64_t name##_px(const tile_job *j, int64_t at, int px)  \
    {                                                                                          \
        switch (px) {                                                                          \
            TILE_CASES(ob, planar, step)                                                       \
        }                                                                                      \
        return at + px;                                                                        \
    }                                                                                          \
    static void name(const tile_job *j)                                                        \
    {                                                                                          \
        const int most = TILE_PX(ob);                                                          \
        int64_t at = 0;                                                                        \
        for (; planar && at + 2 * most <= j->n; at += most) /* few taps: a call counts */      \
            tile(j, at, ob, TILE_PX(ob), planar, step);                                        \
        while (at < j->n) {                                                                    \
            const int64_t left = j->n - at;                                                    \
            const int px = (int)(left <= most       ? left                                     \
                                 : left >= 2 * most ? most                                     \
                                                    : (left + 1) / 2);                         \
            at = name##_px(j, at, px);                                                         \
        }                                                                                      \
    }

#define TILE_CASE(px_, ob, planar, step)                                                       \
    case px_:                                                                                  \
        if (px_ <= TILE_PX(ob))                                                                \
            tile(j, at, ob, px_ <= TILE_PX(ob) ? px_ : 1, planar, step);                       \
        break;
#define TILE_CASES(ob, planar, step)                                                           \
    TILE_CASE(1, ob, planar, step)                                                             \
    TILE_CASE(2, ob, planar, step)                                                             \
    TILE_CASE(3, ob, planar, step)                                                             \
    TILE_CASE(4, ob, planar, step)                                                             \
    TILE_CASE(5, ob, planar, step)                                                             \
    TILE_CASE(6, ob, planar, step)                                                             \
    TILE_CASE(7, ob, planar, step)                                                             \
    TILE_CASE(8, ob, planar, step)                                                             \
    TILE_CASE(9, ob, planar, step)                                                             \
    TILE_CASE(10, ob, planar, step)                                                            \
    TILE_CASE(11, ob, planar, step)                                                            \
    TILE_CASE(12, ob, planar, step)                                                            \
    TILE_CASE(13, ob, planar, step)                                                            \
    TILE_CASE(14, ob, planar, step)

/* Four forms a block count: blocked and planar source, each with stride 1 (offsets become
 * immediates) and with any. */
DEFINE_PART(part_1, 1, 0, TG_L)
DEFINE_PART(part_1_step, 1, 0, 0)
DEFINE_PART(part_1_planar, 1, 1, 1)
DEFINE_PART(part_1_planar_step, 1, 1, 0)
#if TILE_OB_MAX >= 3
DEFINE_PART(part_2, 2, 0, TG_L)
DEFINE_PART(part_2_step, 2, 0, 0)
DEFINE_PART(part_2_planar, 2, 1, 1)
DEFINE_PART(part_2_planar_step, 2, 1, 0)
DEFINE_PART(part_3, 3, 0, TG_L)
DEFINE_PART(part_3_step, 3, 0, 0)
DEFINE_PART(part_3_planar, 3, 1, 1)
DEFINE_PART(part_3_planar_step, 3, 1, 0)
#endif
#if TILE_OB_MAX >= 4
DEFINE_PART(part_4, 4, 0, TG_L)
DEFINE_PART(part_4_step, 4, 0, 0)
DEFINE_PART(part_4_planar, 4, 1, 1)
DEFINE_PART(part_4_planar_step, 4, 1, 0)
#endif

void TGS(tgi_conv_part)(const tile_job *j, int ob, int planar)
{
    static void (*const table[TILE_OB_MAX][4])(const tile_job *) = {
        {part_1, part_1_step, part_1_planar, part_1_planar_step},
#if TILE_OB_MAX >= 3
        {part_2, part_2_step, part_2_planar, part_2_planar_step},
        {part_3, part_3_step, part_3_planar, part_3_planar_step},
#endif
#if TILE_OB_MAX >= 4
        {part_4, part_4_step, part_4_planar, part_4_planar_step},
#endif
    };
    table[ob - 1][planar ? 2 + (j->src_step != 1) : j->src_step != TG_L](j);
}

/* cpu_conv_tile.c - register tiles of direct convolution; see cpu_conv_tile.h for the order.
 *
 * What bounds it: two multiply-adds a cycle. A step of 4 blocks x 6 pixels loads 4 weight
 * vectors and 6 broadcasts for 24 multiply-adds, so loads stay below the two a cycle that the
 * core has, and 24 sums cover the latency of 4 cycles three times. A loop of such steps alone
 * runs at 98 to 100 % of the peak, 1 block x 14 pixels at 92 %, broadcasts as operands of the
 * multiply-adds (a load each) at 85 %. A row is cut evenly, so that no tail is slow. */
#include "kernels/cpu/cpu_conv_tile.h"

#include <math.h>

/* Sum `lanes` channels at one kx into the tile. */
TGI_INLINE void tile_channels(vf *acc, const float *x, const float *w, ptrdiff_t ahead,
                              int lanes, const int ob, const int px, const ptrdiff_t step)
{
    TGI_UNROLL_4
    for (int c = 0; c < lanes; c++) {
        vf wv[TILE_OB_MAX];
        TGI_UNROLL
        for (int q = 0; q < ob; q++) {
            wv[q] = vf_load(w + (c * ob + q) * TGI_L);
            if (TG_SIMD_ISA == 2) /* elsewhere a step takes half the bytes in the same time */
                __builtin_prefetch(w + (c * ob + q) * TGI_L + ahead);
        }
        TGI_UNROLL
        for (int p = 0; p < px; p++) {
            const vf xv = vf_set1(x[p * step + c]);
            TGI_UNROLL
            for (int q = 0; q < ob; q++)
                acc[p * ob + q] = vf_fma(xv, wv[q], acc[p * ob + q]);
        }
    }
}

/* What the compiler knows of a job: non-zero members are literals, so that offsets become
 * immediates. A broadcast whose offset is a register costs one of sixteen, or a reload. */
typedef struct tile_form {
    int planar;
    ptrdiff_t step; /* tile_job.src_step */
    int kx3;        /* planar with three taps one float apart: the loop over them is unrolled */
} tile_form;

/* Sum all tap rows at column `at` of the part into the tile. */
TGI_INLINE void tile_rows(vf *acc, const tile_job *j, int64_t at, const int ob, const int px,
                          const tile_form f)
{
    const ptrdiff_t step = f.step ? f.step : j->src_step, kx_step = j->kx_step;
    const ptrdiff_t ahead = j->ahead;
    const int n_rows = j->n_rows, n_kx = j->n_kx;
    for (int r = 0; r < n_rows; r++) {
        const tap_row *row = &j->rows[r];
        const float *x = row->src + at * step, *w = row->w;
        if (f.kx3) {
            TGI_UNROLL
            for (int k = 0; k < 3; k++, w += ob * TGI_L) {
                tile_channels(acc, x + k, w, ahead, 1, ob, px, step);
                TGI_FORGET(x); /* taps share pixels: kept for the next one, these spill */
            }
            continue;
        }
        if (!f.planar) { /* the next tile's first tap: 1x1 layers read each line only once */
            TGI_UNROLL
            for (int p = 0; p < px; p++)
                __builtin_prefetch(x + (px + p) * step);
        }
        for (int k = 0; k < n_kx; k++, x += kx_step, w += (f.planar ? 1 : TGI_L) * ob * TGI_L) {
            if (f.planar)
                tile_channels(acc, x, w, ahead, 1, ob, px, step);
            else if (row->lanes == TGI_L)
                tile_channels(acc, x, w, ahead, TGI_L, ob, px, step);
            else
                tile_channels(acc, x, w, ahead, row->lanes, ob, px, step);
        }
    }
}

/* Tiles of px pixels from column `at` of the part up to `end`. ob, px and the form are
 * literals. What a tile begins and ends with costs a 1x1 layer up to a tenth of its time, so
 * the job's members are read once: for all that the compiler knows, stores change them. */
TGI_INLINE void tiles(const tile_job *j, int64_t at, int64_t end, const int ob, const int px,
                      const tile_form f)
{
    ptrdiff_t dst_step = j->dst_step;
    size_t dst_block = j->dst_block;
    const float *const bias = j->bias;
    static const float leasts[2] = {-INFINITY, 0};
    const float *least = &leasts[j->relu != 0];
    for (float *dst = j->dst + at * dst_step; at < end; at += px, dst += px * dst_step) {
        vf acc[TILE_SUMS_MAX];
        if (bias) {
            TGI_UNROLL
            for (int i = 0; i < px * ob; i++)
                acc[i] = vf_load(bias + i % ob * TGI_L);
        } else {
            TGI_UNROLL
            for (int i = 0; i < px * ob; i++)
                acc[i] = vf_load(dst + i % ob * dst_block + i / ob * dst_step);
        }
        tile_rows(acc, j, at, ob, px, f);
        TGI_FORGET(dst_step);
        TGI_FORGET(dst_block);
        TGI_FORGET(least);
        const vf floor = vf_set1(*least);
        TGI_UNROLL
        for (int i = 0; i < px * ob; i++)
            vf_store(dst + i % ob * dst_block + i / ob * dst_step, vf_max(floor, acc[i]));
    }
}

/* Cut a part into as few tiles as possible, of sizes that differ by one at most. */
#define DEFINE_PART(name, ob, ...)                                                             \
    static __attribute__((noinline)) void name##_px(const tile_job *j, int64_t at,             \
                                                    int64_t end, int px)                       \
    {                                                                                          \
        const tile_form form = {__VA_ARGS__};                                                  \
        switch (px) {                                                                          \
            TILE_CASES(ob)                                                                     \
        }                                                                                      \
    }                                                                                          \
    static void name(const tile_job *j)                                                        \
    {                                                                                          \
        const int64_t count = (j->n + TILE_PX(ob) - 1) / TILE_PX(ob);                          \
        const int px = (int)((j->n + count - 1) / count);                                      \
        const int64_t wide = (j->n - count * (px - 1)) * px; /* the others are one smaller */  \
        name##_px(j, 0, wide, px);                                                             \
        if (wide < j->n)                                                                       \
            name##_px(j, wide, j->n, px - 1);                                                  \
    }

#define TILE_CASE(px_, ob)                                                                     \
    case px_:                                                                                  \
        if (px_ <= TILE_PX(ob))                                                                \
            tiles(j, at, end, ob, px_ <= TILE_PX(ob) ? px_ : 1, form);                         \
        break;
#define TILE_CASES(ob)                                                                         \
    TILE_CASE(1, ob)                                                                           \
    TILE_CASE(2, ob)                                                                           \
    TILE_CASE(3, ob)                                                                           \
    TILE_CASE(4, ob)                                                                           \
    TILE_CASE(5, ob)                                                                           \
    TILE_CASE(6, ob)                                                                           \
    TILE_CASE(7, ob)                                                                           \
    TILE_CASE(8, ob)                                                                           \
    TILE_CASE(9, ob)                                                                           \
    TILE_CASE(10, ob)                                                                          \
    TILE_CASE(11, ob)                                                                          \
    TILE_CASE(12, ob)                                                                          \
    TILE_CASE(13, ob)                                                                          \
    TILE_CASE(14, ob)

#define DEFINE_PARTS(ob)                                                                       \
    DEFINE_PART(part_##ob##_1, ob, 0, TGI_L, 0)                                                \
    DEFINE_PART(part_##ob##_2, ob, 0, 2 * TGI_L, 0)                                            \
    DEFINE_PART(part_##ob##_any, ob, 0, 0, 0)                                                  \
    DEFINE_PART(part_##ob##_planar_1_kx3, ob, 1, 1, 1)                                         \
    DEFINE_PART(part_##ob##_planar_1, ob, 1, 1, 0)                                             \
    DEFINE_PART(part_##ob##_planar_2, ob, 1, 2, 0)                                             \
    DEFINE_PART(part_##ob##_planar_any, ob, 1, 0, 0)
#define PARTS(ob)                                                                              \
    {                                                                                          \
        part_##ob##_1, part_##ob##_2, part_##ob##_any, part_##ob##_planar_1_kx3,               \
            part_##ob##_planar_1, part_##ob##_planar_2, part_##ob##_planar_any                 \
    }

DEFINE_PARTS(1)
#if TILE_OB_MAX >= 3
DEFINE_PARTS(2)
DEFINE_PARTS(3)
#endif
#if TILE_OB_MAX >= 4
DEFINE_PARTS(4)
#endif

/* Index of the form in PARTS. */
static int form_of(const tile_job *j, int planar)
{
    const ptrdiff_t pixel = planar ? 1 : TGI_L;
    const int step = j->src_step == pixel ? 0 : j->src_step == 2 * pixel ? 1 : 2;
    if (!planar)
        return step;
    return step == 0 && j->n_kx == 3 && j->kx_step == 1 ? 3 : 4 + step;
}

void TGS(tgi_conv_part)(const tile_job *j, int ob, int planar)
{
    static void (*const table[TILE_OB_MAX][7])(const tile_job *) = {
        PARTS(1),
#if TILE_OB_MAX >= 3
        PARTS(2),
        PARTS(3),
#endif
#if TILE_OB_MAX >= 4
        PARTS(4),
#endif
    };
    table[ob - 1][form_of(j, planar)](j);
}

/* cpu_conv_tile.h - the innermost part of a convolution: a tile of pixels x output channels
 * held in registers.
 *
 * A tile sums a list of *tap rows*. A tap row is one channel unit of the source (a block of
 * TGI_L channels, or one planar channel) at one (kz, ky): a pointer to source columns and a
 * pointer to the weights of all its kx. The driver lists only rows inside the image, always in
 * the order unit, kz, ky; inside a row the order is kx, channel. That is THE accumulation
 * order: bias first, then one multiply-add per tap, whatever tile, box or thread computes the
 * pixel. A list may be cut anywhere: the partial sum waits in dst, a float32 like the
 * accumulator. */
#ifndef TGI_CPU_CONV_TILE_H
#define TGI_CPU_CONV_TILE_H

#include "kernels/cpu/simd.h"

/* Registers: 32 of AVX-512 hold 28 sums; 16 of AVX2 hold 12; the portable set has 16 half as
 * wide as its vector, so 6. TILE_PX(ob): most pixels beside `ob` blocks. A step of ob blocks x
 * px pixels loads ob weight vectors and px numbers for ob * px multiply-adds: the squarer the
 * fewer. */
#if TG_SIMD_ISA == 2
#define TILE_OB_MAX 4
#define TILE_PX(ob) ((ob) == 1 ? 14 : (ob) == 2 ? 12 : (ob) == 3 ? 9 : 6)
#elif TG_SIMD_ISA == 1
#define TILE_OB_MAX 3
#define TILE_PX(ob) ((ob) == 1 ? 10 : (ob) == 2 ? 6 : 4)
#else
#define TILE_OB_MAX 1
#define TILE_PX(ob) 6
#endif
#define TILE_SUMS_MAX 28
#define TILE_AHEAD 256 /* the usual tile_job.ahead */

/* Output blocks are taken in groups, one tile wide each: as few groups as possible, the wider
 * ones first, of sizes that differ by one at most. */
TGI_INLINE int64_t tile_group_count(int64_t blocks)
{
    return (blocks + TILE_OB_MAX - 1) / TILE_OB_MAX;
}
TGI_INLINE int tile_group_size(int64_t blocks, int64_t group)
{
    const int64_t n = tile_group_count(blocks);
    return (int)(blocks / n) + (group < blocks % n);
}
TGI_INLINE int64_t tile_group_first(int64_t blocks, int64_t group)
{
    const int64_t n = tile_group_count(blocks), wider = blocks % n;
    return group * (blocks / n) + (group < wider ? group : wider);
}

typedef struct tap_row {
    const float *src; /* at the tap kx = 0 of column 0 of the part */
    const float *w;   /* [kx][lane][ob][TGI_L] */
    int lanes;        /* channels of the unit that exist */
} tap_row;

typedef struct tile_job {
    const tap_row *rows;
    int n_rows;
    int n_kx;
    ptrdiff_t kx_step;  /* floats between taps */
    ptrdiff_t src_step; /* floats between the sources of neighbouring pixels */
    const float *bias;  /* [ob][TGI_L], or NULL: go on from the sums in dst */
    float *dst;         /* column 0 of the part */
    size_t dst_block;   /* floats between blocks */
    ptrdiff_t dst_step; /* floats between pixels of the tile */
    int64_t n;          /* pixels of the part, at least 1 */
    ptrdiff_t ahead; /* floats from a weight in use to the one fetched into the first level */
    int relu;        /* the sums are complete and a ReLU comes next: done before the store */
} tile_job;

/* Compute all pixels of a part in tiles of `ob` blocks, `planar` sources or blocked ones. */
void TGS(tgi_conv_part)(const tile_job *j, int ob, int planar);

#endif

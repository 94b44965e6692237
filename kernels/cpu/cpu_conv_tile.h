/* cpu_conv_tile.h - the innermost part of a convolution: a tile of pixels x output channels
 * held in registers.
 *
 * A tile sums a list of *tap rows*. A tap row is one channel unit of the source (a block of
 * TG_L channels, or one planar channel) at one (kz, ky): a pointer to source columns and a
 * pointer to the weights of all its kx. The driver lists only rows inside the image, always in
 * the order unit, kz, ky; inside a row the order is kx, channel. That is THE accumulation
 * order: bias first, then one multiply-add per tap, whatever tile, box or thread computes the
 * pixel. A list may be cut anywhere: the partial sum waits in dst, a float32 like the
 * accumulator. */
#ifndef TG_CPU_CONV_TILE_H
#define TG_CPU_CONV_TILE_H

#include "kernels/cpu/simd.h"

/* Registers: 32 of AVX-512 hold 24 sums; 16 of AVX2 hold 12; the portable set has 16 half as
 * wide as its vector, so 6. TILE_PX(ob): most pixels beside `ob` blocks. */
#if TG_SIMD_ISA == 2
#define TILE_OB_MAX 3
#define TILE_PX(ob) ((ob) == 1 ? 14 : (ob) == 2 ? 12 : 8)
#elif TG_SIMD_ISA == 1
#define TILE_OB_MAX 3
#define TILE_PX(ob) ((ob) == 1 ? 10 : (ob) == 2 ? 6 : 4)
#else
#define TILE_OB_MAX 1
#define TILE_PX(ob) 6
#endif

/* Output blocks are taken in groups, one tile wide each: pairs; an odd count ends with a
 * triple, one block stands alone. */
TG_INLINE int64_t tile_group_count(int64_t blocks)
{
    return TILE_OB_MAX == 1 || blocks < 2 ? blocks : blocks / 2;
}
TG_INLINE int tile_group_size(int64_t blocks, int64_t group)
{
    if (TILE_OB_MAX == 1 || blocks == 1)
        return 1;
    return group == tile_group_count(blocks) - 1 && blocks % 2 ? 3 : 2;
}
TG_INLINE int64_t tile_group_first(int64_t group)
{
    return TILE_OB_MAX == 1 ? group : 2 * group;
}

typedef struct tap_row {
    const float *src; /* at the tap kx = 0 of column 0 of the part */
    const float *w;   /* [kx][lane][ob][TG_L] */
    int lanes;        /* channels of the unit that exist */
} tap_row;

typedef struct tile_job {
    const tap_row *rows;
    int n_rows;
    int n_kx;
    ptrdiff_t kx_step;  /* floats between taps */
    ptrdiff_t src_step; /* floats between the sources of neighbouring pixels */
    const float *bias;  /* [ob][TG_L], or NULL: go on from the sums in dst */
    float *dst;         /* column 0 of the part */
    size_t dst_block;   /* floats between blocks */
    ptrdiff_t dst_step; /* floats between pixels of the tile */
    int64_t n;          /* pixels of the part */
    int relu;           /* the sums are complete and a ReLU comes next: done before the store */
} tile_job;

/* Compute all pixels of a part in tiles of `ob` blocks, `planar` sources or blocked ones. */
void TGS(tgi_conv_part)(const tile_job *j, int ob, int planar);

#endif

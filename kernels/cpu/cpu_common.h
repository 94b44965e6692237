/* cpu_common.h - what the kernels of one instruction set share. Included by sources that are
 * compiled once per set; every external name goes through TGS. */
#ifndef TG_CPU_COMMON_H
#define TG_CPU_COMMON_H

#include "kernels/backend.h"
#include "kernels/cpu/simd.h"
#include "kernels/ops/geometry.h"
#include "kernels/threads.h"

/* A piece of dst: channel blocks [b0,b1), one row, columns [x0,x1). */
typedef struct tg_row_part {
    int64_t b0, b1, z, y, x0, x1;
} tg_row_part;

/* Apply the call's epilogue from step `from` on to a row part of dst[0] and zero the unused lanes: each kernel calls
 * it on rows that it has just written, while they are in the first-level cache. */
void TGS(tgi_epilogue_part)(const tg_call *call, int from, const tg_row_part *part);
void TGS(tgi_epilogue_whole)(const tg_call *call);

/* A channel unit of a source: a block of a blocked view or a channel of a planar one. Units of all
 * segments in order are what convolutions sum over. */
typedef struct tg_unit {
    int seg;
    int64_t block;    /* in the segment */
    int64_t channel;  /* of the whole operand */
    int lanes;        /* channels in it */
} tg_unit;

int64_t TGS(tgi_unit_count)(int cb, int n_seg, const int64_t *seg_c);
tg_unit TGS(tgi_unit_at)(int cb, int n_seg, const int64_t *seg_c, int64_t i);

/* Shared answers of `accepts`. */
static inline int tgi_is_const_f32(const tg_op_ctx *ctx, int i)
{
    return i < ctx->n_src && ctx->const_src[i] && ctx->const_src[i]->desc.dtype == TG_DTYPE_F32;
}
/* Constants may be views of a file at any byte offset. */
static inline float tgi_const_at(const void *data, int64_t i)
{
    float v;
    memcpy(&v, (const char *)data + (size_t)i * sizeof v, sizeof v);
    return v;
}
static inline int tgi_is_absent(const tg_op_ctx *ctx, int i)
{
    return i >= ctx->n_src || (ctx->src[i].rank == 0 && ctx->src[i].dtype == TG_DTYPE_NONE);
}
static inline int64_t tgi_min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t tgi_max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
static inline int64_t tgi_ceil_div64(int64_t a, int64_t b) /* a >= 0, b > 0 */
{
    return (a + b - 1) / b;
}
static inline int64_t tgi_floor_div64(int64_t a, int64_t b) /* b > 0, any a */
{
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

/* The variants, by source. */
extern const tg_variant TGS(tgi_conv_direct), TGS(tgi_conv_stem), TGS(tgi_conv_transpose);
extern const tg_variant TGS(tgi_conv_few), TGS(tgi_conv_planar);

#endif

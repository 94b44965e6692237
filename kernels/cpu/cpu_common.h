/* cpu_common.h - what the kernels of one instruction set share. Included by sources that are
 * compiled once per set; every external name goes through TGS. */
#ifndef TGI_CPU_COMMON_H
#define TGI_CPU_COMMON_H

#include "kernels/backend.h"
#include "kernels/cpu/simd.h"
#include "kernels/ops/geometry.h"
#include "kernels/pixels.h"
#include "kernels/threads.h"

/* A piece of dst: channel blocks [b0,b1), one row, columns [x0,x1). */
typedef struct tgi_row_part {
    int64_t b0, b1, z, y, x0, x1;
} tgi_row_part;

/* Apply the call's epilogue from step `from` on to a row part of dst[0] and zero the unused
 * lanes: each kernel calls it on rows that it has just written, while they are in the
 * first-level cache. */
void TGS(tgi_epilogue_part)(const tgi_call *call, int from, const tgi_row_part *part);
void TGS(tgi_epilogue_whole)(const tgi_call *call);

/* kernels/pixels.h on this instruction set. */
void TGS(tgi_pixels_load_run)(const tgi_pixels *p, const void *src);
void TGS(tgi_pixels_store_run)(const tgi_pixels *p, void *dst);

/* Compute the raw values of a part of one block of dst[0]; returns how many epilogue steps it
 * has applied itself. */
typedef int (*tgi_part_fn)(const tgi_call *call, const void *arg, const tgi_row_part *part);
/* fn over every part of the call's box, on all threads, the epilogue behind each. */
void TGS(tgi_each_part)(const tgi_call *call, tgi_part_fn fn, const void *arg);

/* Segments of source `src` are cut at block limits, and its lanes are dst's: block b of dst is
 * block b of the source. */
int TGS(tgi_blocks_line_up)(const tgi_layout_hint *lay, int src);
/* The view that holds block *b of such an operand; *b becomes the block inside it. */
const tgi_view *TGS(tgi_block_at)(const tgi_operand *o, int64_t *b);

/* One channel of a row: pixel x of the image is p[x * step]. */
typedef struct tgi_lane {
    const float *p;
    ptrdiff_t step;
} tgi_lane;
tgi_lane TGS(tgi_lane_of)(const tgi_operand *o, int64_t c, int64_t z, int64_t y);
/* dst[x * dst_step + i] = lane[i].p[x * lane[i].step] for n lanes and n_px pixels. */
void TGS(tgi_gather_lanes)(const tgi_lane *lane, int n, int64_t n_px, float *dst,
                           ptrdiff_t dst_step);

/* A channel unit of a source: a block of a blocked view or a channel of a planar one. Units of
 * all segments in order are what convolutions sum over. */
typedef struct tgi_unit {
    int seg;
    int64_t block;   /* in the segment */
    int64_t channel; /* of the whole operand */
    int lanes;       /* channels in it */
} tgi_unit;

int64_t TGS(tgi_unit_count)(int cb, int n_seg, const int64_t *seg_c);
tgi_unit TGS(tgi_unit_at)(int cb, int n_seg, const int64_t *seg_c, int64_t i);

/* Shared answers of `accepts`. */
static inline int tgi_is_const_f32(const tgi_op_ctx *ctx, int i)
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
static inline int tgi_is_absent(const tgi_op_ctx *ctx, int i)
{
    return i >= ctx->n_src || (ctx->src[i].rank == 0 && ctx->src[i].dtype == TG_DTYPE_NONE);
}
/* Taps of a convolution's weights, of one channel. */
static inline int64_t tgi_tap_count(const tgi_op_ctx *ctx)
{
    int64_t taps = 1;
    for (int i = 2; i < ctx->src[1].rank; i++)
        taps *= ctx->src[1].dim[i];
    return taps;
}
/* A convolution with constants, from blocks of src_cb to a planar result. */
static inline int tgi_is_conv_to_planar(const tgi_op_ctx *ctx, const tgi_layout_hint *lay,
                                        int src_cb)
{
    return tgi_is_const_f32(ctx, 1) && (tgi_is_absent(ctx, 2) || tgi_is_const_f32(ctx, 2)) &&
           lay->lanes == TGI_L && lay->dst_cb == 1 && lay->src_cb[0] == src_cb;
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
    /* b > 0 is the contract. */
    // NOLINTNEXTLINE(clang-analyzer-core.DivideZero)
    return (a + b - 1) / b;
}
static inline int64_t tgi_floor_div64(int64_t a, int64_t b) /* b > 0, any a */
{
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

/* The variants, by source. */
extern const tgi_variant TGS(tgi_conv_winograd), TGS(tgi_conv_direct), TGS(tgi_conv_stem),
    TGS(tgi_conv_transpose);
extern const tgi_variant TGS(tgi_conv_transpose_few), TGS(tgi_conv_transpose_planar);
extern const tgi_variant TGS(tgi_conv_bf16), TGS(tgi_conv_transpose_bf16); /* AVX-512 only */
extern const tgi_variant TGS(tgi_conv_few), TGS(tgi_conv_planar), TGS(tgi_conv_depthwise);
extern const tgi_variant TGS(tgi_conv_grouped), TGS(tgi_softmax), TGS(tgi_attention);
extern const tgi_variant TGS(tgi_window_attention), TGS(tgi_correlation), TGS(tgi_convex);
extern const tgi_variant TGS(tgi_fold_bias), TGS(tgi_deform), TGS(tgi_flow_warp);
extern const tgi_variant TGS(tgi_flow_consistency);
extern const tgi_variant TGS(tgi_max_pool), TGS(tgi_average_pool);
extern const tgi_variant TGS(tgi_global_average_pool), TGS(tgi_global_max_pool);
extern const tgi_variant TGS(tgi_norm_apply), TGS(tgi_norm_numbers), TGS(tgi_channel_norm);
extern const tgi_variant TGS(tgi_pad_copy);
extern const tgi_variant TGS(tgi_resize), TGS(tgi_upsample);
extern const tgi_variant TGS(tgi_depth_to_space), TGS(tgi_space_to_depth), TGS(tgi_concat_copy);
extern const tgi_variant TGS(tgi_slice_copy);
/* One row per op that joins an image with a number per channel: tgi_gate_Mul and so on; the
 * step when the number is the second operand, and when it is the first. */
#define TGI_GATE_LIST(X)                                                                       \
    X(Add, TGI_EPI_ADD, TGI_EPI_ADD)                                                           \
    X(Div, TGI_EPI_DIV, TGI_EPI_RDIV)                                                          \
    X(Mul, TGI_EPI_MUL, TGI_EPI_MUL)                                                           \
    X(Sub, TGI_EPI_SUB, TGI_EPI_RSUB)
#define TGI_GATE_DECLARE(name, forward, reverse) extern const tgi_variant TGS(tgi_gate_##name);
TGI_GATE_LIST(TGI_GATE_DECLARE)
#undef TGI_GATE_DECLARE
/* One row per pointwise op: tgi_eltwise_Relu and so on. */
#define TGI_ELTWISE_LIST(X)                                                                    \
    X(Abs)                                                                                     \
    X(Add)                                                                                     \
    X(Clip)                                                                                    \
    X(Div)                                                                                     \
    X(Elu)                                                                                     \
    X(Exp)                                                                                     \
    X(Gelu)                                                                                    \
    X(HardSigmoid)                                                                             \
    X(HardSwish)                                                                               \
    X(Identity)                                                                                \
    X(LeakyRelu)                                                                               \
    X(Max) X(Min) X(Mul) X(Neg) X(PRelu) X(Relu) X(Sigmoid) X(Sqrt) X(Sub) X(Sum) X(Tanh)
#define TGI_ELTWISE_DECLARE(name) extern const tgi_variant TGS(tgi_eltwise_##name);
TGI_ELTWISE_LIST(TGI_ELTWISE_DECLARE)
#undef TGI_ELTWISE_DECLARE

#endif

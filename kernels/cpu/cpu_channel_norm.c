/* cpu_channel_norm.c - ChannelNorm: the channels of each pixel to mean 0 and variance 1.
 *
 * Two passes in float32: the mean, then the sums of the differences from it and of their
 * squares. The former says what the mean was rounded by, so a mean far above the deviation
 * costs no digits. Blocked views have channels in their lanes, and TGI_L pixels are taken at a
 * time: each adds block by block, lane by lane, then its lanes in the tree of vf_reduce. Planar
 * ones have pixels there and add channel by channel. What a pixel gives depends on its own
 * channels alone. */
#include "kernels/cpu/cpu_common.h"
#include "kernels/ops/op_attrs.h"

#define PIECE 64 /* pixels of a row between epilogues */

static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    const int rank = ctx->src[0].rank;
    return lay->lanes == TGI_L && (lay->dst_cb == 1 || lay->dst_cb == TGI_L) &&
           (rank == 4 || rank == 5) && !ctx->const_src[0] && TGS(tgi_blocks_line_up)(lay, 0);
}

typedef struct row_args {
    const tgi_call *call;
    int64_t rows; /* of a plane */
} row_args;

/* Lane i: of pixel i, its mean in two parts and 1 / deviation. */
typedef struct moments {
    vf high, low, inverse;
} moments;

/* From sums of n differences from `high` and of their squares. */
TGI_INLINE moments moments_of(const channel_norm_attrs *a, int64_t n, vf high, vf sum,
                              vf squares)
{
    const vf one = vf_set1(1.0f), by = vf_set1((float)n);
    moments m = {high, a->centred ? sum / by : vf_zero(), one};
    const vf variance = vf_max(vf_zero(), squares / by - m.low * m.low);
    m.inverse = one / vf_sqrt(variance + vf_set1(a->epsilon));
    return m;
}

/* The row of block b of source 0, at image column x. */
static const float *source_at(const tgi_call *call, int64_t b, int64_t z, int64_t y, int64_t x)
{
    const tgi_view *v = TGS(tgi_block_at)(&call->src[0], &b);
    return tgi_view_row(v, b, z, y) + (x - v->x0) * v->cb;
}

/* Sums of pixels [0, n), which are TGI_L where it is literal, and unrolled there. */
TGI_INLINE void sum_pixels(const tgi_call *call, int64_t z, int64_t y, int64_t x0, int64_t n,
                           vf *sum)
{
    const tgi_view *dv = &call->dst[0];
    const int64_t blocks = tgi_view_blocks(dv);
    const vi last = vi_first(dv->c - (blocks - 1) * TGI_L);
    vf s[TGI_L] = {{0}};
    for (int64_t b = 0; b < blocks; b++) {
        const float *from = source_at(call, b, z, y, x0);
        TGI_UNROLL
        for (int64_t i = 0; i < n; i++) {
            const vf v = vf_load(from + i * TGI_L);
            s[i] += b < blocks - 1 ? v : vf_select(last, v, vf_zero());
        }
    }
    memcpy(sum, s, sizeof s);
}

/* The same of differences from `mean` and their squares. */
TGI_INLINE void sum_squares(const tgi_call *call, int64_t z, int64_t y, int64_t x0, int64_t n,
                            const float *mean, vf *sum, vf *squares)
{
    const tgi_view *dv = &call->dst[0];
    const int64_t blocks = tgi_view_blocks(dv);
    const vi last = vi_first(dv->c - (blocks - 1) * TGI_L);
    vf s[TGI_L / 2] = {{0}}, q[TGI_L / 2] = {{0}};
    for (int64_t b = 0; b < blocks; b++) {
        const float *from = source_at(call, b, z, y, x0);
        TGI_UNROLL
        for (int64_t i = 0; i < n; i++) {
            vf v = vf_load(from + i * TGI_L) - vf_set1(mean[i]);
            v = b < blocks - 1 ? v : vf_select(last, v, vf_zero());
            s[i] += v;
            q[i] = vf_fma(v, v, q[i]);
        }
    }
    memcpy(sum, s, sizeof s);
    memcpy(squares, q, sizeof q);
}

/* Pixels [x0, x0 + n), TGI_L at most. */
static void blocked_pixels(const tgi_call *call, int64_t z, int64_t y, int64_t x0, int64_t n)
{
    const channel_norm_attrs *a = call->ctx->attrs;
    const tgi_view *dv = &call->dst[0];
    const int64_t half = TGI_L / 2;
    float mean[TGI_L], factor[TGI_L], shift[TGI_L];
    vf sum[TGI_L] = {{0}}, squares[TGI_L] = {{0}};
    if (a->centred && n == TGI_L)
        sum_pixels(call, z, y, x0, TGI_L, sum);
    else if (a->centred)
        sum_pixels(call, z, y, x0, n, sum);
    const vf high = vf_reduce_all(sum, 1) / vf_set1((float)dv->c);
    vf_store(mean, high);
    for (int64_t i = 0; i < n; i += half) {
        if (n - i >= half)
            sum_squares(call, z, y, x0 + i, half, mean + i, sum + i, squares + i);
        else
            sum_squares(call, z, y, x0 + i, n - i, mean + i, sum + i, squares + i);
    }
    const moments m =
        moments_of(a, dv->c, high, vf_reduce_all(sum, 1), vf_reduce_all(squares, 1));
    vf_store(factor, m.inverse);
    vf_store(shift, vf_neg(m.low) * m.inverse);
    for (int64_t b = 0; b < tgi_view_blocks(dv); b++) {
        const float *from = source_at(call, b, z, y, x0);
        float *to = tgi_view_row(dv, b, z, y) + (x0 - dv->x0) * TGI_L;
        for (int64_t i = 0; i < n; i++)
            vf_store(to + i * TGI_L, vf_fma(vf_load(from + i * TGI_L) - vf_set1(mean[i]),
                                            vf_set1(factor[i]), vf_set1(shift[i])));
    }
}

static void planar_pixels(const tgi_call *call, int64_t z, int64_t y, int64_t x0, int64_t n)
{
    const channel_norm_attrs *a = call->ctx->attrs;
    const tgi_view *dv = &call->dst[0];
    vf mean = vf_zero(), sum = vf_zero(), squares = vf_zero();
    for (int64_t c = 0; c < dv->c && a->centred; c++)
        mean += vf_load_n(source_at(call, c, z, y, x0), n);
    mean /= vf_set1((float)dv->c);
    for (int64_t c = 0; c < dv->c; c++) {
        const vf v = vf_load_n(source_at(call, c, z, y, x0), n) - mean;
        sum += v;
        squares = vf_fma(v, v, squares);
    }
    const moments m = moments_of(a, dv->c, mean, sum, squares);
    for (int64_t c = 0; c < dv->c; c++) {
        const vf v = vf_load_n(source_at(call, c, z, y, x0), n) - mean;
        vf_store_n(tgi_view_row(dv, c, z, y) + x0 - dv->x0,
                   vf_fma(v, m.inverse, vf_neg(m.low) * m.inverse), n);
    }
}

static void row_job(void *arg, int64_t job, int thread)
{
    const row_args *r = arg;
    const tgi_view *dv = &r->call->dst[0];
    const tgi_range x = tgi_box_axis(&r->call->box, TGI_X);
    tgi_row_part p = {0, tgi_view_blocks(dv), 0, 0, x.lo, x.lo};
    (void)thread;
    p.z = tgi_box_axis(&r->call->box, TGI_Z).lo + job / r->rows;
    p.y = tgi_box_axis(&r->call->box, TGI_Y).lo + job % r->rows;
    for (; p.x0 < x.hi; p.x0 = p.x1) {
        p.x1 = tgi_min64(p.x0 + PIECE, x.hi);
        for (int64_t i = p.x0; i < p.x1; i += TGI_L) {
            const int64_t n = tgi_min64(TGI_L, p.x1 - i);
            if (dv->cb == 1)
                planar_pixels(r->call, p.z, p.y, i, n);
            else
                blocked_pixels(r->call, p.z, p.y, i, n);
        }
        TGS(tgi_epilogue_part)(r->call, 0, &p);
    }
}

static void run(const tgi_call *call)
{
    row_args r = {call, tgi_range_len(tgi_box_axis(&call->box, TGI_Y))};
    if (!tgi_box_empty(&call->box))
        tgi_parallel(call->threads, r.rows * tgi_range_len(tgi_box_axis(&call->box, TGI_Z)),
                     row_job, &r);
}

const tgi_variant TGS(tgi_channel_norm) = {
    .name = "channel_norm", .op = "ChannelNorm", .accepts = accepts, .run = TGI_RUN(run)};

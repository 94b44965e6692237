/* cpu_global_pool.c - GlobalAveragePool and GlobalMaxPool, on all threads.
 *
 * Both are those of kernels/granule.h, so they have the bits of pieces in any order; the average
 * has the reference's. */
#include "kernels/cpu/cpu_granule.h"

static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return lay->lanes == TGI_L && !ctx->const_src[0] && lay->src_segs[0] > 0 &&
           (lay->src_cb[0] == 1 || lay->src_cb[0] == TGI_L) &&
           (ctx->src[0].rank == 4 || ctx->src[0].rank == 5);
}

static void finish(const tgi_call *call)
{
    const tgi_row_part part = {0, tgi_view_blocks(&call->dst[0]), 0, 0, 0, 1};
    TGS(tgi_epilogue_part)(call, 0, &part);
}

static size_t average_bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int64_t width,
                            int threads)
{
    (void)width;
    return TGS(tgi_moments_bytes)(ctx, lay, threads);
}

static void run_average(const tgi_call *call)
{
    if (tgi_box_empty(&call->box))
        return;
    const tgi_moments *m = TGS(tgi_moments_of)(call, call->scratch);
    for (int64_t c = 0; c < call->dst[0].c; c++)
        *tgi_view_at(&call->dst[0], c, 0, 0, 0) = (float)tgi_moments_mean(&m[c]);
    finish(call);
}

static size_t max_bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int64_t width,
                        int threads)
{
    (void)width;
    return TGS(tgi_whole_bytes)(ctx, lay, TGI_GRANULES_EXTREMES, threads);
}

static void run_max(const tgi_call *call)
{
    tgi_granules g;
    tgi_extremes e = {0};
    if (tgi_box_empty(&call->box))
        return;
    TGS(tgi_whole_granules)(call, TGI_GRANULES_EXTREMES, call->scratch, &g);
    for (int64_t c = 0; c < call->dst[0].c; c++) {
        tgi_granules_extremes(&g, c, &e, NULL);
        *tgi_view_at(&call->dst[0], c, 0, 0, 0) = e.largest;
    }
    finish(call);
}

const tgi_variant TGS(tgi_global_average_pool) = {.name = "global_average_pool",
                                                  .op = "GlobalAveragePool",
                                                  .accepts = accepts,
                                                  .scratch_bytes = average_bytes,
                                                  .run = TGI_RUN(run_average)};
const tgi_variant TGS(tgi_global_max_pool) = {.name = "global_max_pool",
                                              .op = "GlobalMaxPool",
                                              .accepts = accepts,
                                              .scratch_bytes = max_bytes,
                                              .run = TGI_RUN(run_max)};

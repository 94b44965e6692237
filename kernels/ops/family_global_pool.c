/* family_global_pool.c - GlobalAveragePool: mean of each channel, summed in float64 over granules
 * (granule.h). GlobalMaxPool: its largest value; NaNs are skipped, and a zero has no sign: so order
 * does not matter.
 * Border: none, but the output reads the whole channel, so these operators end a stage.
 * @source ONNX operators GlobalAveragePool and GlobalMaxPool, versions 1, 22. */
#include "kernels/ops/op_shared.h"
#include "kernels/reduce.h"

static void mean(const tgi_op_ctx *ctx, const tgi_moments *m, float *dst)
{
    for (int64_t c = 0; c < ctx->src[0].dim[1]; c++)
        dst[c] = (float)tgi_moments_mean(&m[c]);
}

static void largest(const tgi_op_ctx *ctx, const tgi_extremes *e, float *dst)
{
    for (int64_t c = 0; c < ctx->src[0].dim[1]; c++)
        dst[c] = e[c].largest;
}

#define GLOBAL_POOL(symbol, onnx, ...)                                                         \
    static const tgi_reduce reduce_##symbol = {__VA_ARGS__};                                   \
    static tg_status ref_##symbol(const tgi_call *call, tgi_err *err)                          \
    {                                                                                          \
        return tgi_ref_reduce(call, &reduce_##symbol, err);                                    \
    }                                                                                          \
    static tg_status eval_##symbol(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err) \
    {                                                                                          \
        return tgi_eval_by_ref(ctx, dst_data, ref_##symbol, err);                              \
    }                                                                                          \
    const tgi_op tgi_op_##symbol = {.name = onnx,                                              \
                                    .op_class = TGI_OP_WHOLE,                                  \
                                    .reduce = &reduce_##symbol,                                \
                                    .infer = tgi_infer_global,                                 \
                                    .slide = tgi_slide_whole,                                  \
                                    .ref = ref_##symbol,                                       \
                                    .eval = eval_##symbol};

GLOBAL_POOL(global_average_pool, "GlobalAveragePool", .finish = mean)
GLOBAL_POOL(global_max_pool, "GlobalMaxPool", .finish_extremes = largest)

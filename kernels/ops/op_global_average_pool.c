/* op_global_average_pool.c - GlobalAveragePool: mean of each channel, summed in float64 over
 * granules (granule.h).
 * Border: none, but the output reads the whole channel, so this op ends a stage.
 * @source ONNX operator GlobalAveragePool, versions 1, 22. */
#include "kernels/ops/op_shared.h"
#include "kernels/reduce.h"

static void finish(const tgi_op_ctx *ctx, const tgi_moments *m, float *dst)
{
    for (int64_t c = 0; c < ctx->src[0].dim[1]; c++)
        dst[c] = (float)tgi_moments_mean(&m[c]);
}

static const tgi_reduce reduce = {.finish = finish};

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    return tgi_ref_reduce(call, &reduce, err);
}

TGI_EVAL_BY_REF

const tgi_op tgi_op_global_average_pool = {
    .name = "GlobalAveragePool",
    .op_class = TGI_OP_WHOLE,
    .reduce = &reduce,
    .infer = tgi_infer_global,
    .slide = tgi_slide_whole,
    .ref = ref,
    .eval = eval,
};

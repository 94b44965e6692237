/* op_global_max_pool.c - GlobalMaxPool: largest value of each channel; NaNs
 * are skipped, and a zero has no sign: so order does not matter (granule.h).
 * Border: none, but the output reads the whole channel, so this op ends a stage.
 * @source ONNX operator GlobalMaxPool, versions 1, 22. */
#include "kernels/ops/op_shared.h"
#include "kernels/reduce.h"

static void finish(const tgi_op_ctx *ctx, const tgi_extremes *e, float *dst)
{
    for (int64_t c = 0; c < ctx->src[0].dim[1]; c++)
        dst[c] = e[c].largest;
}

static const tgi_reduce reduce = {.finish_extremes = finish};

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    return tgi_ref_reduce(call, &reduce, err);
}

TGI_EVAL_BY_REF

const tgi_op tgi_op_global_max_pool = {
    .name = "GlobalMaxPool",
    .op_class = TGI_OP_WHOLE,
    .reduce = &reduce,
    .infer = tgi_infer_global,
    .slide = tgi_slide_whole,
    .ref = ref,
    .eval = eval,
};

/* op_global_average_pool.c - GlobalAveragePool: mean of each channel, summed in float64 over
 * granules (granule.h).
 * Border: none, but the output reads the whole channel, so this op ends a stage.
 * @source ONNX operator GlobalAveragePool, versions 1, 22. */
#include "kernels/granule.h"
#include "kernels/ops/op_shared.h"

static float value(const tgi_call *call, const void *arg, const tgi_px *p)
{
    (void)arg;
    const tgi_moments m = tgi_granule_channel(&call->src[0], &call->ctx->src[0], p->c);
    return (float)tgi_moments_mean(&m);
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    (void)err;
    tgi_ref_each(call, 0, value, NULL);
    return TG_OK;
}

TGI_EVAL_BY_REF

const tgi_op tgi_op_global_average_pool = {
    .name = "GlobalAveragePool",
    .op_class = TGI_OP_WHOLE,
    .whole = TGI_WHOLE_REDUCED,
    .infer = tgi_infer_global,
    .slide = tgi_slide_whole,
    .ref = ref,
    .eval = eval,
};

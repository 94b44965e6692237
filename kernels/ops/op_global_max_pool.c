/* op_global_max_pool.c - GlobalMaxPool: largest value of each channel. NaN is skipped; a zero is
 * +0, so that the order of pixels does not matter (granule.h, tgi_extremes).
 * Border: none, but the output reads the whole channel, so this op ends a stage.
 * @source ONNX operator GlobalMaxPool, versions 1, 22. */
#include "kernels/ops/op_shared.h"

#include <math.h>
static float value(const tgi_call *call, const void *arg, const tgi_px *p)
{
    const tgi_desc *d = &call->ctx->src[0];
    const int64_t nz = tgi_desc_axis(d, TGI_Z), ny = tgi_desc_axis(d, TGI_Y),
                  nx = tgi_desc_axis(d, TGI_X);
    float best = -INFINITY;
    (void)arg;
    for (int64_t z = 0; z < nz; z++)
        for (int64_t y = 0; y < ny; y++)
            for (int64_t x = 0; x < nx; x++) {
                const float v = tgi_operand_get(&call->src[0], p->c, z, y, x);
                best = v > best ? v : best;
            }
    return best + 0.0f;
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    (void)err;
    tgi_ref_each(call, 0, value, NULL);
    return TG_OK;
}

TGI_EVAL_BY_REF

const tgi_op tgi_op_global_max_pool = {
    .name = "GlobalMaxPool",
    .op_class = TGI_OP_WHOLE,
    .whole = TGI_WHOLE_REDUCED,
    .infer = tgi_infer_global,
    .slide = tgi_slide_whole,
    .ref = ref,
    .eval = eval,
};

/* op_range.c - Range: start, start + delta, ... below (or above) limit; three constant scalars.
 * @source ONNX operator Range, version 11. */
#include "kernels/ops/op_shared.h"

#include <math.h>

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    double v[3];
    for (int i = 0; i < 3; i++) {
        const tgi_constant *c = tgi_const(ctx, i);
        if (!c || tgi_const_count(c) != 1)
            return tgi_fail(err, TG_E_UNSUPPORTED, "input %d is not a constant scalar", i);
        v[i] = tgi_num_at(c, 0);
    }
    const double n = ceil((v[1] - v[0]) / v[2]);
    if (v[2] == 0 || !(n < 1e9))
        return tgi_fail(err, TG_E_FORMAT, "from %g to %g in steps of %g", v[0], v[1], v[2]);
    dst[0] = (tgi_desc){ctx->src[0].dtype, 1, {n > 0 ? (int64_t)n : 0}};
    return TG_OK;
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    const tgi_desc *d = &ctx->dst[0];
    (void)err;
    for (int64_t i = 0; i < d->dim[0]; i++)
        tgi_num_put(d->dtype, dst_data[0], i,
                    tgi_num_at(ctx->const_src[0], 0) +
                        (double)i * tgi_num_at(ctx->const_src[2], 0));
    return TG_OK;
}

const tgi_op tgi_op_range = {
    .name = "Range",
    .op_class = TGI_OP_DENSE,
    .infer = infer,
    .eval = eval,
};

/* op_mean.c - Mean: the mean of one or more inputs, summed in float64; numpy broadcasting.
 * Border: none, each element by itself; an axis of extent 1 is read as a whole.
 * @source ONNX operator Mean, versions 6 to 13. */
#include "kernels/ops/op_shared.h"

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    return tgi_infer_broadcast(ctx, -1, dst, err);
}

static float value(const tgi_call *call, const void *arg, const tgi_px *p)
{
    const int n = call->ctx->n_src;
    double sum = 0;
    (void)arg;
    for (int i = 0; i < n; i++)
        sum += (double)tgi_src_broadcast(call, i, -1, p);
    return (float)(sum / n);
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    TGI_TRY(tgi_check_ranks(call, err));
    tgi_ref_each(call, 0, value, NULL);
    return TG_OK;
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    int64_t at[TGI_MAX_RANK] = {0}, n = 0;
    (void)err;
    if (tgi_dense_count(&ctx->dst[0]) == 0)
        return TG_OK;
    do {
        double sum = 0;
        for (int i = 0; i < ctx->n_src; i++)
            sum += tgi_num_at(ctx->const_src[i], tgi_dense_offset(ctx, i, -1, at));
        tgi_num_put(ctx->dst[0].dtype, dst_data[0], n++, sum / ctx->n_src);
    } while (tgi_next_index(&ctx->dst[0], at));
    return TG_OK;
}

const tgi_op tgi_op_mean = {
    .name = "Mean",
    .infer = infer,
    .slide = tgi_slide_broadcast,
    .ref = ref,
    .eval = eval,
};

/* op_where.c - Where: X where the condition holds, Y elsewhere; all three broadcast.
 * Border: none, each element by itself; an axis of extent 1 is read as a whole.
 * @source ONNX operator Where, versions 9 to 16. */
#include "kernels/ops/op_shared.h"

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    if (ctx->n_src != 3 || !tgi_given(ctx, 1) || !tgi_given(ctx, 2))
        return tgi_fail(err, TG_E_FORMAT, "%d inputs, expected condition, X and Y", ctx->n_src);
    if (ctx->src[1].dtype != ctx->src[2].dtype)
        return tgi_fail(err, TG_E_FORMAT, "X is %s and Y is %s",
                        tgi_dtype_name(ctx->src[1].dtype), tgi_dtype_name(ctx->src[2].dtype));
    tgi_desc all[3] = {ctx->src[0], ctx->src[1], ctx->src[2]};
    tgi_op_ctx same = *ctx;
    all[0].dtype = all[1].dtype;
    same.src = all;
    return tgi_infer_broadcast(&same, -1, dst, err);
}

static float value(const tgi_call *call, const void *arg, const tgi_px *p)
{
    (void)arg;
    const float condition = tgi_src_broadcast(call, 0, -1, p);
    return tgi_src_broadcast(call, condition > 0 || condition < 0 ? 1 : 2, -1, p);
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    TGI_TRY(tgi_check_ranks(call, err));
    tgi_ref_each(call, 0, value, NULL);
    return TG_OK;
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    const size_t size = tgi_dtype_size(ctx->dst[0].dtype);
    int64_t at[TGI_MAX_RANK] = {0};
    char *out = dst_data[0];
    (void)err;
    if (tgi_dense_count(&ctx->dst[0]) == 0)
        return TG_OK;
    do {
        const int from =
            tgi_num_at(ctx->const_src[0], tgi_dense_offset(ctx, 0, -1, at)) != 0 ? 1 : 2;
        memcpy(out,
               (const char *)ctx->const_src[from]->data +
                   (size_t)tgi_dense_offset(ctx, from, -1, at) * size,
               size);
        out += size;
    } while (tgi_next_index(&ctx->dst[0], at));
    return TG_OK;
}

const tgi_op tgi_op_where = {
    .name = "Where",
    .any_type = 1,
    .infer = infer,
    .slide = tgi_slide_broadcast,
    .ref = ref,
    .eval = eval,
};

/* op_pixel_mat_mul.c - PixelMatMul: the channels of each pixel times a matrix that the network
 * computes,
 *
 *   out[n, o] = sum over k of in[k, o] * m[k, n]
 *
 * summed in float64, k ascending. Source 1 holds m row by row in the channels of one pixel,
 * [1,K*N,(1,)1,1]. No operator of ONNX: MatMul and Einsum of tokens and a small matrix.
 * Border: none. */
#include "kernels/ops/op_shared.h"

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    TGI_TRY(tgi_want_image(ctx, 0, err));
    TGI_TRY(tgi_want_image(ctx, 1, err));
    const int64_t k = ctx->src[0].dim[1], m = ctx->src[1].dim[1];
    if (k < 1 || m % k || tgi_dense_count(&ctx->src[1]) != m)
        return tgi_fail(err, TG_E_FORMAT,
                        "%" PRId64 " channels and a matrix of %" PRId64 " elements", k,
                        tgi_dense_count(&ctx->src[1]));
    dst[0] = ctx->src[0];
    dst[0].dim[1] = m / k;
    return TG_OK;
}

static int slide(const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *out)
{
    *out = src_i == 0 ? TGI_SLIDE_SAME : tgi_slide_all(tgi_desc_axis(&ctx->src[src_i], axis));
    return 1;
}

static double element(const tgi_call *call, int64_t at)
{
    const tgi_constant *given = tgi_const(call->ctx, 1);
    return given ? (double)tgi_f32_at(given->data, at)
                 : (double)tgi_operand_get(&call->src[1], at, 0, 0, 0);
}

#define RUN_PX 64 /* pixels of a row that are summed together */

/* Channel n of pixels [x0, x1), at most RUN_PX, of one row. */
static void sum_run(const tgi_call *call, int64_t n, int64_t z, int64_t y, int64_t x0,
                    int64_t x1)
{
    const int64_t inner = call->ctx->src[0].dim[1], outer = call->ctx->dst[0].dim[1];
    double acc[RUN_PX] = {0};
    for (int64_t k = 0; k < inner; k++) {
        const double m = element(call, k * outer + n);
        int64_t c = k;
        const tgi_view *v = tgi_operand_view(&call->src[0], &c);
        const float *from = tgi_view_at(v, c, z, y, x0);
        for (int64_t x = x0; x < x1; x++)
            acc[x - x0] += m * (double)from[(x - x0) * v->cb];
    }
    float *to = tgi_view_at(&call->dst[0], n, z, y, x0);
    for (int64_t x = x0; x < x1; x++)
        to[(x - x0) * call->dst[0].cb] = (float)acc[x - x0];
}

static void row(const tgi_call *call, int64_t z, int64_t y, tgi_range x)
{
    for (int64_t n = 0; n < call->dst[0].c; n++)
        for (int64_t x0 = x.lo; x0 < x.hi; x0 += RUN_PX)
            sum_run(call, n, z, y, x0, tgi_min(x0 + RUN_PX, x.hi));
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    (void)err;
    tgi_ref_rows(call, row);
    return TG_OK;
}

TGI_EVAL_BY_REF

static double flops(const tgi_op_ctx *ctx)
{
    return 2 * (double)ctx->src[0].dim[1];
}

const tgi_op tgi_op_pixel_mat_mul = {
    .name = "PixelMatMul",
    .internal = 1,
    .infer = infer,
    .slide = slide,
    .ref = ref,
    .eval = eval,
    .flops = flops,
};

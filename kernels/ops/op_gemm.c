/* op_gemm.c - Gemm: alpha * A' * B' + beta * C of matrices, each of A and B transposed or not,
 * C broadcast. On dense tensors.
 * @source ONNX operator Gemm, versions 1 to 13. */
#include "kernels/ops/dense_plan.h"

#define AT(field) offsetof(gemm_attrs, field)
static const tgi_attr rows[] = {
    {"alpha", TGI_ATTR_FLOAT, AT(alpha), 1, 0, 0, NULL, "factor of the product"},
    {"beta", TGI_ATTR_FLOAT, AT(beta), 1, 0, 0, NULL, "factor of C"},
    {"broadcast", TGI_ATTR_IGNORED, 0, 0, 0, 0, NULL,
     "opset < 7; C broadcasts where it has to"},
    {"transA", TGI_ATTR_INT, AT(trans_a), 0, 0, 1, NULL, "A is [K,M]"},
    {"transB", TGI_ATTR_INT, AT(trans_b), 0, 0, 1, NULL, "B is [N,K]"},
    {0}};

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    const gemm_attrs *g = ctx->attrs;
    char p[128], q[128];
    if (ctx->n_src < 2 || ctx->src[0].rank != 2 || ctx->src[1].rank != 2)
        return tgi_fail(err, TG_E_FORMAT, "A and B are not matrices");
    const tgi_desc *a = &ctx->src[0], *b = &ctx->src[1];
    if (a->dim[!g->trans_a] != b->dim[g->trans_b != 0] || a->dtype != b->dtype)
        return tgi_fail(err, TG_E_FORMAT, "%s%s and %s%s do not multiply",
                        tgi_desc_text(a, p, sizeof p), g->trans_a ? " transposed" : "",
                        tgi_desc_text(b, q, sizeof q), g->trans_b ? " transposed" : "");
    tgi_desc d = {a->dtype, 2, {a->dim[g->trans_a != 0], b->dim[!g->trans_b]}};
    if (tgi_given(ctx, 2)) {
        const tgi_desc pair[2] = {d, ctx->src[2]};
        tgi_op_ctx sum = *ctx;
        tgi_desc both;
        sum.src = pair;
        sum.n_src = 2;
        TGI_TRY(tgi_infer_broadcast(&sum, -1, &both, err));
        if (!tgi_desc_same_shape(&both, &d))
            return tgi_fail(err, TG_E_FORMAT, "C %s does not fit %s",
                            tgi_desc_text(&ctx->src[2], p, sizeof p),
                            tgi_desc_text(&d, q, sizeof q));
    }
    dst[0] = d;
    return TG_OK;
}

/* dst = alpha * dst + beta * C */
static void add_c(const tgi_op_ctx *ctx, void *dst)
{
    const gemm_attrs *g = ctx->attrs;
    const tgi_constant product = {ctx->dst[0], dst};
    const tg_dtype t = ctx->dst[0].dtype;
    int64_t at[TGI_MAX_RANK] = {0}, n = 0;
    do {
        const int64_t o = tgi_given(ctx, 2) ? tgi_dense_offset(ctx, 2, -1, at) : 0;
        if (tgi_dtype_is_float(t)) {
            const double c = tgi_given(ctx, 2) ? tgi_num_at(ctx->const_src[2], o) : 0;
            tgi_num_put(t, dst, n,
                        (double)g->alpha * tgi_num_at(&product, n) + (double)g->beta * c);
        } else {
            const int64_t c = tgi_given(ctx, 2) ? tgi_int_at(ctx->const_src[2], o) : 0;
            tgi_int_put(
                t, dst, n,
                (int64_t)((uint64_t)(int64_t)g->alpha * (uint64_t)tgi_int_at(&product, n) +
                          (uint64_t)(int64_t)g->beta * (uint64_t)c));
        }
        n++;
    } while (tgi_next_index(&ctx->dst[0], at));
}

tg_status tgi_gemm_sum(const tgi_op_ctx *ctx, tgi_contraction *c, tgi_err *err)
{
    const gemm_attrs *g = ctx->attrs;
    const tgi_desc *a = &ctx->src[0], *b = &ctx->src[1], *d = &ctx->dst[0];
    *c = (tgi_contraction){
        .n_in = 2,
        .rank = 2,
        .dim = {d->dim[0], d->dim[1]},
        .stride = {{g->trans_a ? 1 : a->dim[1], 0}, {0, g->trans_b ? b->dim[1] : 1}},
        .sum_rank = 1,
        .sum_dim = {a->dim[!g->trans_a]},
        .sum_stride = {{g->trans_a ? a->dim[1] : 1}, {g->trans_b ? 1 : b->dim[1]}}};
    (void)err;
    return TG_OK;
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    tgi_contraction c;
    TGI_TRY(tgi_gemm_sum(ctx, &c, err));
    c.in[0] = ctx->const_src[0];
    c.in[1] = ctx->const_src[1];
    TGI_TRY(tgi_contract(&c, dst_data[0], err));
    if (tgi_dense_count(&ctx->dst[0]) > 0)
        add_c(ctx, dst_data[0]);
    return TG_OK;
}

static double flops(const tgi_op_ctx *ctx)
{
    const gemm_attrs *g = ctx->attrs;
    return 2.0 * (double)ctx->src[0].dim[!g->trans_a];
}

const tgi_op tgi_op_gemm = {
    .name = "Gemm",
    .op_class = TGI_OP_DENSE,
    .attrs = rows,
    .attrs_size = sizeof(gemm_attrs),
    .infer = infer,
    .eval = eval,
    .flops = flops,
};

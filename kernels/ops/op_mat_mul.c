/* op_mat_mul.c - MatMul: products of matrices, the axes before the last two broadcast; a vector
 * is a row on the left and a column on the right. On dense tensors.
 * @source ONNX operator MatMul, versions 1 to 13; numpy.matmul. */
#include "kernels/ops/dense_plan.h"

/* [rows, columns] of an operand and its leading axes. */
typedef struct factor {
    int lead;
    int64_t rows, cols, row_stride, col_stride;
} factor;

static factor factor_of(const tgi_desc *d, int is_left)
{
    const int r = d->rank;
    if (r > 1)
        return (factor){r - 2, d->dim[r - 2], d->dim[r - 1], d->dim[r - 1], 1};
    return is_left ? (factor){0, 1, d->dim[0], 0, 1} : (factor){0, d->dim[0], 1, 1, 0};
}

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    char p[128], q[128];
    if (ctx->n_src != 2 || ctx->src[0].rank < 1 || ctx->src[1].rank < 1 ||
        ctx->src[0].dtype != ctx->src[1].dtype)
        return tgi_fail(err, TG_E_FORMAT, "its factors are %s and %s",
                        tgi_desc_text(&ctx->src[0], p, sizeof p),
                        tgi_desc_text(&ctx->src[ctx->n_src > 1], q, sizeof q));
    const tgi_desc *a = &ctx->src[0], *b = &ctx->src[1];
    const factor fa = factor_of(a, 1), fb = factor_of(b, 0);
    tgi_desc d = {a->dtype, fa.lead > fb.lead ? fa.lead : fb.lead, {0}};
    int fits = fa.cols == fb.rows;
    for (int k = 0; k < d.rank; k++) {
        const int i = k - (d.rank - fa.lead), j = k - (d.rank - fb.lead);
        const int64_t m = i < 0 ? 1 : a->dim[i], n = j < 0 ? 1 : b->dim[j];
        fits &= m == n || m == 1 || n == 1;
        d.dim[k] = m == 1 ? n : m;
    }
    if (!fits)
        return tgi_fail(err, TG_E_FORMAT, "%s and %s do not multiply",
                        tgi_desc_text(a, p, sizeof p), tgi_desc_text(b, q, sizeof q));
    if (a->rank > 1)
        d.dim[d.rank++] = fa.rows;
    if (b->rank > 1)
        d.dim[d.rank++] = fb.cols;
    dst[0] = d;
    return TG_OK;
}

/* Strides of operand i on the leading axes of the result; extent 1 repeats. */
static void lead_strides(const tgi_desc *d, int lead, int rank, int64_t *stride)
{
    int64_t dense[TGI_MAX_RANK];
    tgi_dense_strides(d, dense);
    for (int k = 0; k < rank; k++) {
        const int at = k - (rank - lead);
        stride[k] = at < 0 || d->dim[at] == 1 ? 0 : dense[at];
    }
}

tg_status tgi_mat_mul_sum(const tgi_op_ctx *ctx, tgi_contraction *c, tgi_err *err)
{
    const tgi_desc *a = &ctx->src[0], *b = &ctx->src[1], *d = &ctx->dst[0];
    const factor fa = factor_of(a, 1), fb = factor_of(b, 0);
    const int lead = fa.lead > fb.lead ? fa.lead : fb.lead;
    *c = (tgi_contraction){.n_in = 2, .rank = lead, .sum_rank = 1};
    (void)err;
    for (int k = 0; k < d->rank; k++)
        c->dim[k] = d->dim[k];
    lead_strides(a, fa.lead, lead, c->stride[0]);
    lead_strides(b, fb.lead, lead, c->stride[1]);
    if (a->rank > 1)
        c->stride[0][c->rank++] = fa.row_stride;
    if (b->rank > 1)
        c->stride[1][c->rank++] = fb.col_stride;
    c->sum_dim[0] = fa.cols;
    c->sum_stride[0][0] = fa.col_stride;
    c->sum_stride[1][0] = fb.row_stride;
    return TG_OK;
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    tgi_contraction c;
    TGI_TRY(tgi_mat_mul_sum(ctx, &c, err));
    c.in[0] = ctx->const_src[0];
    c.in[1] = ctx->const_src[1];
    return tgi_contract(&c, dst_data[0], err);
}

static double flops(const tgi_op_ctx *ctx)
{
    return 2.0 * (double)factor_of(&ctx->src[0], 1).cols;
}

const tgi_op tgi_op_mat_mul = {
    .name = "MatMul",
    .op_class = TGI_OP_DENSE,
    .infer = infer,
    .eval = eval,
    .flops = flops,
};

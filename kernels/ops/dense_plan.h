/* dense_plan.h - how operators on dense tensors read their attributes and shapes, for the
 * kernels of devices that compute the same: which axes are folded, where pieces begin, what is
 * summed. Each function is defined in the file of its operator; `ctx->dst` is valid. */
#ifndef TGI_DENSE_PLAN_H
#define TGI_DENSE_PLAN_H

#include "kernels/ops/contract.h"

typedef struct gemm_attrs {
    float alpha, beta;
    int64_t trans_a, trans_b;
} gemm_attrs;

typedef struct layer_norm_attrs { /* RMSNormalization too */
    int64_t axis;
    float epsilon;
} layer_norm_attrs;

/* The sum that the node is, its inputs' data left out; Gemm: without alpha, beta and C. */
tg_status tgi_mat_mul_sum(const tgi_op_ctx *ctx, tgi_contraction *c, tgi_err *err);
tg_status tgi_gemm_sum(const tgi_op_ctx *ctx, tgi_contraction *c, tgi_err *err);
tg_status tgi_einsum_sum(const tgi_op_ctx *ctx, tgi_contraction *c, tgi_err *err);

/* Transpose: the axis of the source that axis k of the result is. */
int tgi_transpose_source(const tgi_op_ctx *ctx, int k);
/* Split: the axis, and the extent of each piece. */
tg_status tgi_split_pieces(const tgi_op_ctx *ctx, int *axis, int64_t *n, tgi_err *err);

/* Softmax and its like: the data as [outer, n, inner], n summed; *axis: its first axis. */
tg_status tgi_softmax_rows(const tgi_op_ctx *ctx, int *axis, int64_t *outer, int64_t *n,
                           int64_t *inner, tgi_err *err);
/* The folded axes as bits: of a reduction, of MeanVarianceNormalization. */
tg_status tgi_reduce_axes(const tgi_op_ctx *ctx, unsigned *bits, tgi_err *err);
tg_status tgi_mvn_axes(const tgi_op_ctx *ctx, unsigned *bits, tgi_err *err);

/* MaxUnpool: the array that its windows cover, in which places count. */
tg_status tgi_unpool_covered(const tgi_op_ctx *ctx, tgi_desc *d, tgi_err *err);

#endif

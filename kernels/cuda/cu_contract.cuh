/* cu_contract.cuh - MatMul, Gemm and Einsum as products of matrices.
 *
 * Every such node is a contraction (kernels/ops/contract.h): axes of the result and summed
 * ones, with a stride in each factor. Of two factors and one summed axis it is a product of
 * matrices: the longest axis that B does not have is M, the longest that A does not have is N,
 * all others are batches. Three factors, or several summed axes, are no such product. */
#ifndef TGI_CU_CONTRACT_CUH
#define TGI_CU_CONTRACT_CUH

#include "kernels/cuda/cu_flat.cuh"

typedef tg_status (*cu_sum_fn)(const tgi_op_ctx *ctx, tgi_contraction *c, tgi_err *err);

/* Axes that both factors and the result step through alike are one. */
struct cu_contract_product {
    cu_walk<3> axes; /* A, B, result */
    cu_walk<2> sums;
    int m, n; /* among the axes; -1: of extent 1 */
};

inline int cu_longest_axis(const cu_walk<3> &w, int absent)
{
    int best = -1;
    for (int k = 0; k < w.rank; k++)
        if (w.stride[absent][k] == 0 && w.stride[1 - absent][k] != 0 &&
            (best < 0 || w.dim[k] > w.dim[best]))
            best = k;
    return best;
}

/* Extents of matrices are numbers of 32 bits, tiles beyond the end included. */
template <int N> inline int cu_axis_fits(const cu_walk<N> *w, int axis)
{
    return axis < 0 || w->dim[axis] < ((int64_t)1 << 31) - 64;
}

/* 0: no product of matrices. */
inline int cu_product_of(const tgi_contraction *c, cu_contract_product *p)
{
    int64_t dense = 1, dst[TGI_CONTRACT_AXES];
    cu_walk_begin(&p->axes);
    cu_walk_begin(&p->sums);
    for (int k = c->rank - 1; k >= 0; k--) {
        dst[k] = dense;
        dense *= c->dim[k];
    }
    for (int k = 0; k < c->rank; k++)
        cu_walk_axis<3>(&p->axes, c->dim[k], {c->stride[0][k], c->stride[1][k], dst[k]});
    for (int k = 0; k < c->sum_rank; k++)
        cu_walk_axis<2>(&p->sums, c->sum_dim[k], {c->sum_stride[0][k], c->sum_stride[1][k]});
    p->m = cu_longest_axis(p->axes, 1);
    p->n = cu_longest_axis(p->axes, 0);
    return c->n_in == 2 && p->sums.rank <= 1 && cu_axis_fits(&p->axes, p->m) &&
           cu_axis_fits(&p->axes, p->n) && cu_axis_fits(&p->sums, p->sums.rank - 1);
}

/* Strides of Gemm's C along the rows and columns of the result; 0 where it is one for all. */
inline void cu_gemm_c(const tgi_desc *c, int64_t *along_m, int64_t *along_n)
{
    int64_t stride[TGI_MAX_RANK];
    tgi_dense_strides(c, stride);
    *along_n = c->rank > 0 && c->dim[c->rank - 1] != 1 ? stride[c->rank - 1] : 0;
    *along_m = c->rank > 1 && c->dim[c->rank - 2] != 1 ? stride[c->rank - 2] : 0;
}

#endif

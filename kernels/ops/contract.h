/* contract.h - sums of products of dense tensors, what MatMul, Gemm and Einsum are made of:
 *
 *   result[r] = sum over s of the product of in[i][r * stride[i] + s * sum_stride[i]]
 *
 * r runs over the axes of the result, s over the summed ones; an axis that an input does not
 * have has stride 0 there. */
#ifndef TGI_CONTRACT_H
#define TGI_CONTRACT_H

#include "kernels/ops/op_shared.h"

#define TGI_CONTRACT_INPUTS 4
#define TGI_CONTRACT_AXES 16

typedef struct tgi_contraction {
    int n_in;
    const tgi_constant *in[TGI_CONTRACT_INPUTS];
    int rank, sum_rank; /* at most TGI_CONTRACT_AXES each */
    int64_t dim[TGI_CONTRACT_AXES], sum_dim[TGI_CONTRACT_AXES];
    int64_t stride[TGI_CONTRACT_INPUTS][TGI_CONTRACT_AXES];
    int64_t sum_stride[TGI_CONTRACT_INPUTS][TGI_CONTRACT_AXES];
} tgi_contraction;

/* Write the result, dense in the order of `dim` and of the inputs' element type. Floats are
 * summed in float64, integers modulo their range, s always in order. TG_E_CANCELLED, with some
 * of it written, when a request to stop comes meanwhile: a few letters of Einsum may ask for
 * hours.
 */
tg_status tgi_contract(const tgi_contraction *c, void *dst, tgi_err *err);

#endif

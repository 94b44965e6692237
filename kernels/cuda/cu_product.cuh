/* cu_product.cuh - a product of matrices that a library computes: what a variant says of it.
 *
 *     D = relu(alpha * op(A) * B + beta * C + bias)       A and B of m x k and k x n, op: A or
 *                                                         B may lie transposed
 *
 * in the words of the library: columns lie together, `ld` numbers apart; the bias has a number
 * for each of the m rows. So pixels are columns: A the weights, B and D images, m and k their
 * channels. Several matrices a fixed stride apart are a batch; rows of an image are one.
 *
 * FORM. What a product is whatever the band: its algorithm is chosen for the form alone, when a
 * program is opened, so it is the same for every box, band, cell and budget, and with it the
 * bits of a result. Of an image n and batch are therefore not those of any launch but fixed
 * numbers, and a band's own sizes come with its pieces.
 *
 * PIECES. What is computed of it in this band: none at rest, one of an array, some where rows
 * lie in rings that end between them. */
#ifndef TGI_CU_PRODUCT_CUH
#define TGI_CU_PRODUCT_CUH

#include "kernels/cuda/cu_common.cuh"

#define CU_PRODUCT_ALIGNMENT 16 /* of arrays and rows, in bytes; more is of no use */
#define CU_PRODUCT_PIECES 16
#define CU_PRODUCT_BATCH 65535                /* matrices in a piece at most */
#define CU_PRODUCT_COLUMNS ((int64_t)1 << 22) /* of rows made one matrix, at most */

/* Compared byte by byte: no holes. */
struct cu_product_form {
    int64_t m, n, k, batch;
    int64_t lda, ldb, ldc, ldd;
    int64_t stride_a, stride_b, stride_d; /* between the batch's matrices, in numbers */
    int32_t type;                         /* tg_dtype of all four */
    int32_t transposed_a, transposed_b;
    int32_t bias, relu, add_c;         /* 1: there is one */
    int32_t align_a, align_b, align_d; /* bytes that addresses and columns are multiples of */
    int32_t image;                     /* 1: pieces have columns and matrices of their own */
    float alpha, beta;
};
static_assert(sizeof(cu_product_form) == 11 * 8 + 12 * 4, "no holes");

struct cu_product_piece {
    const void *a, *b;
    void *d;
    int64_t n, batch;
};

struct cu_product {
    cu_product_form form;
    int64_t most_n, most_batch; /* of a piece, in any band */
    int64_t stride_b, stride_d; /* of this band's pieces */
    const void *bias, *c;       /* vectors and matrices are of the form's type */
    int64_t n_pieces;
    cu_product_piece piece[CU_PRODUCT_PIECES];
};

/* Bytes that numbers `step` apart are multiples of, if those at `*align` are. */
inline void cu_product_align(int32_t *align, int64_t step, size_t element)
{
    while (step * (int64_t)element % *align)
        *align /= 2;
}

inline tg_dtype cu_dtype_of(const float *)
{
    return TG_DTYPE_F32;
}
inline tg_dtype cu_dtype_of(const __half *)
{
    return TG_DTYPE_F16;
}
inline tg_dtype cu_dtype_of(const __nv_bfloat16 *)
{
    return TGI_DTYPE_BF16;
}

/* cu_program.cu: note a product of the step being recorded. It is copied. */
void cu_put_product(void *recorder, const cu_product *p);

#endif

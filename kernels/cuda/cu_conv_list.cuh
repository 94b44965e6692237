/* cu_conv_list.cuh - the variants of the convolutions: one line each. X(symbol) stands for
 * cu_<symbol>_f32, _f16 and _bf16, H(symbol) for the two of 16 bits, F(symbol) for the first.
 * Of variants that cost the same the first is taken.
 *
 * TG_CUDA_WGMMA: the build has code for 9.0 with the features of that generation alone. */
#ifndef TGI_CU_CONV_LIST_CUH
#define TGI_CU_CONV_LIST_CUH

#include "kernels/backend.h"

#if defined(TG_CUDA_WGMMA) || defined(TG_CUDA_EMULATED)
#define CU_CONV_WGMMA_LIST(H)                                                                  \
    H(conv_wgmma)                                                                              \
    H(conv_transpose_wgmma)
#else
#define CU_CONV_WGMMA_LIST(H)
#endif

#define CU_CONV_LIST(X, H, F)                                                                  \
    H(conv_mma)                                                                                \
    H(conv_transpose_mma)                                                                      \
    CU_CONV_WGMMA_LIST(H)                                                                      \
    F(conv_tf32)                                                                               \
    F(conv_transpose_tf32)                                                                     \
    F(conv_simt)                                                                               \
    F(conv_transpose_simt)                                                                     \
    X(conv_depthwise_row)                                                                      \
    X(conv_depthwise)                                                                          \
    X(conv_transpose_depthwise)                                                                \
    X(conv_plain)                                                                              \
    X(conv_transpose_plain)                                                                    \
    X(conv_1x1_cublaslt)

#define CU_CONV_F32(s) extern const tgi_variant cu_##s##_f32;
#define CU_CONV_16(s) extern const tgi_variant cu_##s##_f16, cu_##s##_bf16;
#define CU_CONV_ALL(s) CU_CONV_F32(s) CU_CONV_16(s)
CU_CONV_LIST(CU_CONV_ALL, CU_CONV_16, CU_CONV_F32)
#undef CU_CONV_F32
#undef CU_CONV_16
#undef CU_CONV_ALL

#endif

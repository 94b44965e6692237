/* cu_ops.cuh - the variants of all files but the convolutions': a symbol here is
 * `cu_<symbol>_f32`, `_f16` and `_bf16` of the file named beside it (CU_ELEMENTS).
 * cu_backend.cu expands the lists into its tables. */
#ifndef TGI_CU_OPS_CUH
#define TGI_CU_OPS_CUH

#include "kernels/cuda/cu_common.cuh"

/* Pointwise operators by their ONNX names (cu_eltwise.cu). */
#define CU_POINTWISE_LIST(X)                                                                   \
    X(Abs)                                                                                     \
    X(Acos)                                                                                    \
    X(Acosh)                                                                                   \
    X(Add)                                                                                     \
    X(And)                                                                                     \
    X(Asin)                                                                                    \
    X(Asinh)                                                                                   \
    X(Atan)                                                                                    \
    X(Atanh)                                                                                   \
    X(Cast)                                                                                    \
    X(CastLike)                                                                                \
    X(Ceil)                                                                                    \
    X(Celu)                                                                                    \
    X(Clip)                                                                                    \
    X(Cos)                                                                                     \
    X(Cosh)                                                                                    \
    X(Div)                                                                                     \
    X(Dropout)                                                                                 \
    X(Elu)                                                                                     \
    X(Equal)                                                                                   \
    X(Erf)                                                                                     \
    X(Exp)                                                                                     \
    X(Floor)                                                                                   \
    X(Gelu)                                                                                    \
    X(Greater)                                                                                 \
    X(GreaterOrEqual)                                                                          \
    X(HardSigmoid)                                                                             \
    X(HardSwish)                                                                               \
    X(Identity)                                                                                \
    X(IsInf)                                                                                   \
    X(IsNaN)                                                                                   \
    X(LeakyRelu)                                                                               \
    X(Less)                                                                                    \
    X(LessOrEqual)                                                                             \
    X(Log)                                                                                     \
    X(Max)                                                                                     \
    X(Mean)                                                                                    \
    X(Min)                                                                                     \
    X(Mish)                                                                                    \
    X(Mod)                                                                                     \
    X(Mul)                                                                                     \
    X(Neg)                                                                                     \
    X(Not)                                                                                     \
    X(Or)                                                                                      \
    X(PRelu)                                                                                   \
    X(Pow)                                                                                     \
    X(Reciprocal)                                                                              \
    X(Relu)                                                                                    \
    X(Round)                                                                                   \
    X(Selu)                                                                                    \
    X(Shrink)                                                                                  \
    X(Sigmoid)                                                                                 \
    X(Sign)                                                                                    \
    X(Sin)                                                                                     \
    X(Sinh)                                                                                    \
    X(Softplus)                                                                                \
    X(Softsign)                                                                                \
    X(Sqrt)                                                                                    \
    X(Sub)                                                                                     \
    X(Sum)                                                                                     \
    X(Swish)                                                                                   \
    X(Tan)                                                                                     \
    X(Tanh)                                                                                    \
    X(ThresholdedRelu)                                                                         \
    X(Where)                                                                                   \
    X(Xor)

/* Those that have no form for images (cu_flat_eltwise.cu). */
#define CU_BITS_LIST(X)                                                                        \
    X(BitShift)                                                                                \
    X(BitwiseAnd)                                                                              \
    X(BitwiseOr)                                                                               \
    X(BitwiseXor)

#define CU_OP_LIST(X)                                                                          \
    X(max_pool) /* cu_pool.cu */                                                               \
    X(average_pool)                                                                            \
    X(lp_pool)                                                                                 \
    X(resize) /* cu_resize.cu */                                                               \
    X(upsample)                                                                                \
    X(depth_to_space) /* cu_shuffle.cu */                                                      \
    X(space_to_depth)                                                                          \
    X(concat) /* cu_copy.cu */                                                                 \
    X(slice)                                                                                   \
    X(split)                                                                                   \
    X(pad)                                                                                     \
    X(tile)                                                                                    \
    X(instance_norm) /* cu_norm.cu */                                                          \
    X(group_norm)                                                                              \
    X(norm_numbers)                                                                            \
    X(norm_apply)                                                                              \
    X(batch_norm)                                                                              \
    X(global_average)                                                                          \
    X(softmax) /* cu_softmax.cu */                                                             \
    X(log_softmax)                                                                             \
    X(hardmax)                                                                                 \
    X(arg_max)                                                                                 \
    X(arg_min)                                                                                 \
    X(lp_normalization)                                                                        \
    X(lrn)                                                                                     \
    X(channel_norm)                                                                            \
    X(pixel_product)                                                                           \
    X(global_max) /* cu_reduce.cu */                                                           \
    X(reduce_l1)                                                                               \
    X(reduce_l2)                                                                               \
    X(reduce_log_sum)                                                                          \
    X(reduce_log_sum_exp)                                                                      \
    X(reduce_max)                                                                              \
    X(reduce_mean)                                                                             \
    X(reduce_min)                                                                              \
    X(reduce_prod)                                                                             \
    X(reduce_sum)                                                                              \
    X(reduce_sum_square)                                                                       \
    X(flow_warp) /* cu_flow.cu */                                                              \
    X(flow_consistency)                                                                        \
    X(convex_upsample)    /* cu_convex.cu */                                                   \
    X(fold_bias)          /* cu_fold_bias.cu */                                                \
    X(correlation_lookup) /* cu_correlation.cu */                                              \
    X(deform_plain)       /* cu_deform.cu */                                                   \
    X(window_attention)   /* cu_window_attention.cu */

/* Over whole arrays; and each pointwise operator again, flat_<name> (cu_flat_eltwise.cu). */
#define CU_FLAT_LIST(X)                                                                        \
    X(flat_concat) /* cu_flat_move.cu */                                                       \
    X(flat_depth_to_space)                                                                     \
    X(flat_expand)                                                                             \
    X(flat_flatten)                                                                            \
    X(flat_gather)                                                                             \
    X(flat_pad)                                                                                \
    X(flat_reshape)                                                                            \
    X(flat_slice)                                                                              \
    X(flat_space_to_depth)                                                                     \
    X(flat_split)                                                                              \
    X(flat_squeeze)                                                                            \
    X(flat_tile)                                                                               \
    X(flat_transpose)                                                                          \
    X(flat_unsqueeze)                                                                          \
    X(flat_softmax) /* cu_flat_rows.cu */                                                      \
    X(flat_log_softmax)                                                                        \
    X(flat_hardmax)                                                                            \
    X(flat_lp_normalization)                                                                   \
    X(flat_layer_norm)                                                                         \
    X(flat_rms_norm)                                                                           \
    X(flat_mvn)                                                                                \
    X(flat_instance_norm)                                                                      \
    X(flat_arg_max)                                                                            \
    X(flat_arg_min)                                                                            \
    X(flat_reduce_l1)                                                                          \
    X(flat_reduce_l2)                                                                          \
    X(flat_reduce_log_sum)                                                                     \
    X(flat_reduce_log_sum_exp)                                                                 \
    X(flat_reduce_max)                                                                         \
    X(flat_reduce_mean)                                                                        \
    X(flat_reduce_min)                                                                         \
    X(flat_reduce_prod)                                                                        \
    X(flat_reduce_sum)                                                                         \
    X(flat_reduce_sum_square)                                                                  \
    X(flat_average_pool) /* cu_flat_image.cu */                                                \
    X(flat_batch_norm)                                                                         \
    X(flat_conv)                                                                               \
    X(flat_conv_transpose)                                                                     \
    X(flat_global_average)                                                                     \
    X(flat_global_max)                                                                         \
    X(flat_group_norm)                                                                         \
    X(flat_lp_pool)                                                                            \
    X(flat_lrn)                                                                                \
    X(flat_max_pool)                                                                           \
    X(flat_resize)                                                                             \
    X(max_pool_places) /* cu_places.cu */                                                      \
    X(max_unpool)                                                                              \
    X(mat_mul) /* cu_matmul.cu */                                                              \
    X(gemm)                                                                                    \
    X(einsum)                                                                                  \
    X(mat_mul_cublaslt) /* cu_matmul_cublaslt.cu */                                            \
    X(gemm_cublaslt)                                                                           \
    X(einsum_cublaslt)

/* On images, of float32 alone and of halves alone. */
#define CU_FLOAT_LIST(X) X(deform_simt) /* cu_deform_simt.cu */
#define CU_HALF_LIST(X) X(deform_mma)   /* cu_deform_mma.cu */

/* Of float32 alone, where TF32 is allowed; they go before the others. */
#define CU_FLAT_TF32_LIST(X)                                                                   \
    X(mat_mul_tf32) /* cu_matmul.cu */                                                         \
    X(gemm_tf32)                                                                               \
    X(einsum_tf32)

#define CU_DECLARE_OF(suffix, T, symbol) extern const tgi_variant cu_##symbol##_##suffix;
#define CU_DECLARE(symbol) CU_ELEMENTS(CU_DECLARE_OF, symbol)
#define CU_DECLARE_POINTWISE(name) CU_DECLARE(pointwise_##name) CU_DECLARE(flat_##name)
CU_POINTWISE_LIST(CU_DECLARE_POINTWISE)
#define CU_DECLARE_BITS(name) CU_DECLARE(flat_##name)
CU_BITS_LIST(CU_DECLARE_BITS)
#undef CU_DECLARE_BITS
CU_OP_LIST(CU_DECLARE)
CU_FLAT_LIST(CU_DECLARE)
#define CU_DECLARE_F32(symbol) CU_DECLARE_OF(f32, float, symbol)
CU_FLAT_TF32_LIST(CU_DECLARE_F32)
CU_FLOAT_LIST(CU_DECLARE_F32)
#undef CU_DECLARE_F32
#define CU_DECLARE_F16(symbol) CU_DECLARE_OF(f16, __half, symbol)
CU_HALF_LIST(CU_DECLARE_F16)
#undef CU_DECLARE_F16
#undef CU_DECLARE_POINTWISE
#undef CU_DECLARE
#undef CU_DECLARE_OF

/* cu_pixels.cu: launches of a LOAD or STORE step, whose call has its recorder. */
void cu_pixels_put(const tgi_device_step *step);

#endif

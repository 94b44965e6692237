/* cu_backend.cu - what the device computes: a table of variants for each type of activations.
 * A line in cu_conv_list.cuh or cu_ops.cuh is a variant more. */
#include "kernels/cuda/cu_common.cuh"
#include "kernels/cuda/cu_conv_list.cuh"
#include "kernels/cuda/cu_ops.cuh"

#define NONE(s)
#define F32(s) &cu_##s##_f32,
#define F16(s) &cu_##s##_f16,
#define BF16(s) &cu_##s##_bf16,
#define BITS_F32(name) &cu_flat_##name##_f32,
#define BITS_F16(name) &cu_flat_##name##_f16,
#define BITS_BF16(name) &cu_flat_##name##_bf16,
#define POINTWISE_F32(name) &cu_pointwise_##name##_f32, &cu_flat_##name##_f32,
#define POINTWISE_F16(name) &cu_pointwise_##name##_f16, &cu_flat_##name##_f16,
#define POINTWISE_BF16(name) &cu_pointwise_##name##_bf16, &cu_flat_##name##_bf16,
static const tgi_variant *const variants_f32[] = {
    CU_CONV_LIST(F32, NONE, F32) CU_FLOAT_LIST(F32) CU_OP_LIST(F32) CU_FLAT_TF32_LIST(F32)
        CU_FLAT_LIST(F32) CU_POINTWISE_LIST(POINTWISE_F32) CU_BITS_LIST(BITS_F32) NULL};
static const tgi_variant *const variants_f16[] = {
    CU_CONV_LIST(F16, F16, NONE) CU_HALF_LIST(F16) CU_OP_LIST(F16) CU_FLAT_LIST(F16)
        CU_POINTWISE_LIST(POINTWISE_F16) CU_BITS_LIST(BITS_F16) NULL};
static const tgi_variant *const variants_bf16[] = {CU_CONV_LIST(BF16, BF16, NONE) CU_OP_LIST(
    BF16) CU_FLAT_LIST(BF16) CU_POINTWISE_LIST(POINTWISE_BF16) CU_BITS_LIST(BITS_BF16) NULL};

static const tgi_kernel_set backends[] = {
    {"cuda-f32", TGI_ISA_PORTABLE, 8, 1, TG_DTYPE_F32, variants_f32, NULL, NULL, NULL, NULL},
    {"cuda-f16", TGI_ISA_PORTABLE, 8, 1, TG_DTYPE_F16, variants_f16, NULL, NULL, NULL, NULL},
    {"cuda-bf16", TGI_ISA_PORTABLE, 8, 1, TGI_DTYPE_BF16, variants_bf16, NULL, NULL, NULL,
     NULL},
};

const tgi_kernel_set *cu_backend_of(tg_dtype element)
{
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
        if (backends[i].element == element)
            return &backends[i];
    return NULL;
}

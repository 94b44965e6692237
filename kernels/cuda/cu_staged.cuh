/* cu_staged.cuh - what the LOAD steps of any staged pixels share (cu_pixels.cu, cu_yuv.cu). */
#ifndef TGI_CU_STAGED_CUH
#define TGI_CU_STAGED_CUH

#include "kernels/cuda/cu_map.cuh"

/* Two roundings, whatever the compiler may contract. */
__device__ __forceinline__ float cu_affine(float v, float mul, float add)
{
#ifdef TG_CUDA_EMULATED
    return v * mul + add;
#else
    return __fadd_rn(__fmul_rn(v, mul), add);
#endif
}

/* tgi_pad_index. */
__device__ __forceinline__ int32_t cu_pad_index(int32_t pad, int32_t i, int32_t n)
{
    if (i >= 0 && i < n)
        return i;
    if (pad == TGI_LOAD_ZERO)
        return -1;
    if (pad == TGI_LOAD_EDGE || n == 1)
        return i < 0 ? 0 : n - 1;
    const int64_t period = 2 * ((int64_t)n - 1);
    int64_t k = i % period;
    k = k < 0 ? k + period : k;
    return (int32_t)(k < n ? k : period - k);
}

/* cu_yuv.cu: launches of a LOAD step whose pixels are staged as Y, U and V. */
void cu_yuv_put(const tgi_device_step *step);

#endif

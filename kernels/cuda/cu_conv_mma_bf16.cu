/* cu_conv_mma_bf16.cu - convolutions of bfloat16 numbers on tensor cores (cu_conv_mma.cuh),
 * from compute capability 8.0 on. */
#include "kernels/cuda/cu_conv_mma.cuh"

namespace
{

struct brains {
    typedef __nv_bfloat16 element, weight;
    static const bool everywhere = false;
    static const bool few = true;
    static const unsigned kinds = 0;
    static constexpr double cost = 1;
    static __device__ __forceinline__ void prepare(uint32_t (&)[4])
    {
    }
    static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4],
                                                    const uint32_t (&b)[2])
    {
        cu_mma_bf16(c, a, b);
    }
};

} // namespace

constexpr tgi_variant cu_conv_mma_bf16 = cu_product<mma_product<brains>, 0>("conv_mma");
constexpr tgi_variant cu_conv_transpose_mma_bf16 =
    cu_product<mma_product<brains>, 1>("conv_transpose_mma");

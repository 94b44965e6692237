/* cu_conv_mma.cu - convolutions of halves on tensor cores (cu_conv_mma.cuh). */
#include "kernels/cuda/cu_conv_mma.cuh"

namespace
{

struct halves {
    typedef __half element, weight;
    static const bool everywhere = true; /* on 7.5 too */
    static const bool few = true;
    static const unsigned kinds = 0;
    static constexpr double cost = 1; /* of a product, over one of halves */
    static __device__ __forceinline__ void prepare(uint32_t (&)[4])
    {
    }
    static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4],
                                                    const uint32_t (&b)[2])
    {
        cu_mma16(c, a, b);
    }
};

} // namespace

constexpr tgi_variant cu_conv_mma_f16 = cu_product<mma_product<halves>, 0>("conv_mma");
constexpr tgi_variant cu_conv_transpose_mma_f16 =
    cu_product<mma_product<halves>, 1>("conv_transpose_mma");

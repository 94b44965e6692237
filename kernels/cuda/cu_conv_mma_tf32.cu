/* cu_conv_mma_tf32.cu - convolutions of float32 activations on tensor cores, with --tf32 alone:
 * what is multiplied is rounded to 10 bits behind the first (to nearest, ties away from zero),
 * weights when they are packed, pixels when a warp has them (cu_conv_mma.cuh). From compute
 * capability 8.0 on. */
#include "kernels/cuda/cu_conv_mma.cuh"

namespace
{

/* A float32 that a matrix unit takes as it is. */
struct rounded {
    float value;
    rounded(float v) : value(v)
    {
        uint32_t bits;
        memcpy(&bits, &v, sizeof bits);
        if ((bits & 0x7f800000u) != 0x7f800000u) /* infinities and NaN stay */
            bits = (bits + 0x1000u) & 0xffffe000u;
        memcpy(&value, &bits, sizeof bits);
    }
};

struct tf32s {
    typedef float element;
    typedef rounded weight;
    static const bool everywhere = false;
    static const bool few = false;
    static const unsigned kinds = TGI_KIND_TF32;
    static constexpr double cost = 0.5; /* of FFMA: a round figure that prefers it */
    static __device__ __forceinline__ void prepare(uint32_t (&a)[4])
    {
#pragma unroll
        for (int i = 0; i < 4; i++)
            a[i] = cu_round_tf32(a[i]);
    }
    static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4],
                                                    const uint32_t (&b)[2])
    {
        cu_mma_tf32(c, a, b);
    }
};

} // namespace

constexpr tgi_variant cu_conv_tf32_f32 = cu_product<mma_product<tf32s>, 0>("conv_tf32");
constexpr tgi_variant cu_conv_transpose_tf32_f32 =
    cu_product<mma_product<tf32s>, 1>("conv_transpose_tf32");

/* cu_deform_simt.cu - DeformConv of float32 in true float32 (cu_deform.cuh, cu_conv_simt.cuh). Of a K
 * step a thread brings the samples of two places at one pixel and its share of the weights.
 *
 * What bounds it, unverified on a GPU: the products, as of any convolution in float32; a sample of 8
 * channels takes some 80 instructions for the 8 * BN products that it enters. */
#include "kernels/cuda/cu_conv_simt.cuh"
#include "kernels/cuda/cu_deform.cuh"
#include "kernels/cuda/cu_ops.cuh"

namespace
{

template <int BN> struct sampler {
    typedef shape<BN> S;
    int32_t y, x;
    bool inside;
    const int4 *places;
    const float4 *weights;
    float held[kstep];
    float4 held_weights[S::per_thread];

    __device__ __forceinline__ void begin(const cu_deform_args *a, const cu_gemm_block &b)
    {
        cu_place p;
        inside = cu_gemm_out(&a->g, b, (int)threadIdx.x, &p);
        y = p.y;
        x = p.x;
        places = a->g.places + b.tile.first;
        weights = reinterpret_cast<const float4 *>(a->g.weights + b.tile.weights) + threadIdx.x;
    }

    /* Pieces of the weights that this thread has. */
    __device__ __forceinline__ bool has(int i) const
    {
        return S::weight_vecs % threads == 0 || (int)threadIdx.x + i * threads < S::weight_vecs;
    }

    __device__ __forceinline__ void load(const cu_deform_args *a, int step)
    {
#pragma unroll
        for (int i = 0; i < S::per_thread; i++)
            if (has(i))
                held_weights[i] = __ldg(weights + (int64_t)step * S::weight_vecs + i * threads);
#pragma unroll
        for (int k = 0; k < kstep / CU_BLEND; k++) {
            float v[CU_BLEND];
            cu_deform_sample<float>(a, y, x, inside,
                                    __ldg(places + step * (kstep / CU_BLEND) + k), v);
#pragma unroll
            for (int i = 0; i < CU_BLEND; i++)
                held[k * CU_BLEND + i] = v[i];
        }
    }

    __device__ __forceinline__ void put(float *stage) const
    {
#pragma unroll
        for (int k = 0; k < kstep; k++)
            stage[k * pixel_row + (int)threadIdx.x] = held[k];
#pragma unroll
        for (int i = 0; i < S::per_thread; i++)
            if (has(i))
                *reinterpret_cast<float4 *>(stage + kstep * pixel_row +
                                            ((int)threadIdx.x + i * threads) * 4) =
                    held_weights[i];
    }
};

template <int BN>
__global__ void __launch_bounds__(threads, 3) deform_simt(const cu_deform_args *__restrict__ a)
{
    CU_DYNAMIC_SHARED(float, shared);
    cu_gemm_block b;
    sampler<BN> samples;
    if (cu_gemm_block_of(&a->g, &b))
        compute<BN>(a, &a->g, b, samples, shared);
}

struct floats : float_product {
    static void (*kernel(const cu_gemm_plan *p, unsigned *bytes))(const cu_deform_args *)
    {
        *bytes = shared_bytes(p);
        return p->bn == 16 ? deform_simt<16> : p->bn == 32 ? deform_simt<32> : deform_simt<64>;
    }
};

} // namespace

constexpr tgi_variant cu_deform_simt_f32 = cu_deform_variant<floats>("deform_simt");

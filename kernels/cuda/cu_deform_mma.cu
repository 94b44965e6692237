/* cu_deform_mma.cu - DeformConv of halves on tensor cores (cu_deform.cuh): the block, stages and
 * products of cu_conv_mma.cuh, samples rounded to halves. Samples of the next step are made while
 * this one is multiplied; they and its weights wait in registers.
 *
 * What bounds it, unverified on a GPU: the samples. One takes four reads of 16 bytes and some 80
 * instructions for the 8 * BN products that it enters; with 128 channels of the result that is a
 * warp's 2500 instructions a step beside its 256 HMMA.
 *
 * bfloat16 samples would be rounded to 8 bits, more than the results may be off: cu_deform_plain. */
#include "kernels/cuda/cu_conv_mma.cuh"
#include "kernels/cuda/cu_deform.cuh"
#include "kernels/cuda/cu_ops.cuh"

namespace
{

struct blended {
    typedef __half element, weight;
    static const bool few = false;
    static const unsigned kinds = 0;
    static constexpr double cost = 1;
    static __device__ __forceinline__ void prepare(uint32_t (&)[4])
    {
    }
    static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4],
                                                    const uint32_t (&b)[2])
    {
        cu_mma16(c, a, b);
    }
};

/* What a thread brings in a step: place `threadIdx.x % 4` of four pixels, and pieces of weights. */
template <int BN> struct sampler {
    typedef shape<BN> S;
    static const int apart = threads / 4; /* pixels of a thread */
    int32_t y[4], x[4];
    bool inside[4];
    const int4 *places;
    const uint4 *weights;
    uint4 held_pixels[4], held_weights[S::per_thread];

    __device__ __forceinline__ void begin(const cu_deform_args *a, const cu_gemm_block &b)
    {
        const int t = (int)threadIdx.x;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            cu_place p;
            inside[i] = cu_gemm_out(&a->g, b, t / 4 + i * apart, &p);
            y[i] = p.y;
            x[i] = p.x;
        }
        places = a->g.places + b.tile.first + t % 4;
        weights = reinterpret_cast<const uint4 *>(a->g.weights + b.tile.weights) + t;
    }

    /* Pieces of the weights that this thread has. */
    __device__ __forceinline__ bool has(int i) const
    {
        return S::weight_units % threads == 0 ||
               (int)threadIdx.x + i * threads < S::weight_units;
    }

    __device__ __forceinline__ void load(const cu_deform_args *a, int step)
    {
        const int4 place = __ldg(places + step * 4);
#pragma unroll
        for (int i = 0; i < S::per_thread; i++)
            if (has(i))
                held_weights[i] =
                    __ldg(weights + (int64_t)step * S::weight_units + i * threads);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float v[CU_BLEND];
            __half h[CU_BLEND];
            cu_deform_sample<__half>(a, y[i], x[i], inside[i], place, v);
#pragma unroll
            for (int k = 0; k < CU_BLEND; k++)
                h[k] = cu_element<__half>(v[k]);
            memcpy(&held_pixels[i], h, sizeof h);
        }
    }

    __device__ __forceinline__ void put(unsigned char *stage) const
    {
        const int t = (int)threadIdx.x;
#pragma unroll
        for (int i = 0; i < 4; i++)
            *reinterpret_cast<uint4 *>(stage + unit_at(t / 4 + i * apart, t % 4)) =
                held_pixels[i];
#pragma unroll
        for (int i = 0; i < S::per_thread; i++)
            if (has(i))
                *reinterpret_cast<uint4 *>(stage + pixel_bytes + (t + i * threads) * 16) =
                    held_weights[i];
    }
};

template <int BN>
__global__ void __launch_bounds__(threads, 2) deform_mma(const cu_deform_args *__restrict__ a)
{
    typedef shape<BN> S;
    CU_DYNAMIC_SHARED(unsigned char, shared);
    cu_gemm_block b;
    if (!cu_gemm_block_of(&a->g, &b))
        return;
    const int warp = (int)threadIdx.x / 32;
    const int wm0 = warp % S::warps_m * S::wm, wn0 = warp / S::warps_m * S::wn;
    const int steps = b.tile.steps;
    sums<BN> s;
    sampler<BN> c;
    clear<BN>(s);
    c.begin(a, b);
    if (steps) {
        c.load(a, 0);
        c.put(shared);
    }
    for (int k = 0; k < steps; k++) {
        __syncthreads();
        if (k + 1 < steps)
            c.load(a, k + 1);
        multiply<blended, BN>(shared + k % 2 * S::stage_bytes, wm0, wn0, s);
        if (k + 1 < steps)
            c.put(shared + (k + 1) % 2 * S::stage_bytes);
    }
    store<__half, BN>(&a->g, b, wm0, wn0, s, reinterpret_cast<float *>(shared));
}

/* ---- Host -------------------------------------------------------------------------------- */

struct halves : mma_product<blended> {
    static void (*kernel(const cu_gemm_plan *p, unsigned *shared_bytes))(const cu_deform_args *)
    {
        *shared_bytes = (unsigned)(p->bn == 8    ? shape<8>::shared_bytes
                                   : p->bn == 16 ? shape<16>::shared_bytes
                                   : p->bn == 32 ? shape<32>::shared_bytes
                                   : p->bn == 64 ? shape<64>::shared_bytes
                                                 : shape<128>::shared_bytes);
        return p->bn == 8    ? deform_mma<8>
               : p->bn == 16 ? deform_mma<16>
               : p->bn == 32 ? deform_mma<32>
               : p->bn == 64 ? deform_mma<64>
                             : deform_mma<128>;
    }
};

} // namespace

constexpr tgi_variant cu_deform_mma_f16 = cu_deform_variant<halves>("deform_mma");

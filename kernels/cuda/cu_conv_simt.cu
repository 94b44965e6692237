/* cu_conv_simt.cu - convolutions of float32 in true float32 (cu_conv_simt.cuh). Of a K step each
 * thread brings the 16 values of one pixel (its 64 bytes) and its share of the weights. */
#include "kernels/cuda/cu_conv_simt.cuh"

namespace
{

template <int BN> struct copier {
    typedef shape<BN> S;
    cu_gemm_reader<float, 1, false> pixel;
    const int4 *places;
    const float4 *weights;
    int lanes;
    float held[kstep];
    float4 held_weights[S::per_thread];

    __device__ __forceinline__ void begin(const cu_gemm_args *a, const cu_gemm_block &b)
    {
        pixel.begin(a, b, (int)threadIdx.x, 0);
        lanes = a->lanes;
        places = a->places + b.tile.first;
        weights = reinterpret_cast<const float4 *>(a->weights + b.tile.weights) + threadIdx.x;
    }

    /* Pieces of the weights that this thread has. */
    __device__ __forceinline__ bool has(int i) const
    {
        return S::weight_vecs % threads == 0 || (int)threadIdx.x + i * threads < S::weight_vecs;
    }

    /* Values [from, from + COUNT) of a step in the order of `held`, from places of N lanes. */
    template <int N, int COUNT>
    __device__ __forceinline__ void gather(const cu_gemm_args *a, int step, int from)
    {
#pragma unroll
        for (int k = 0; k < COUNT / N; k++) {
            const int4 place = __ldg(places + (step * (kstep / N) + from / N + k));
            const float *at;
            float v[N];
            pixel.move(a, place);
            const bool inside = pixel.at(0, place, &at);
            if (inside)
                cu_load<float, N>(at, v);
#pragma unroll
            for (int i = 0; i < N; i++)
                held[kstep - COUNT + k * N + i] = inside ? v[i] : 0.0f;
        }
    }

    /* From places of few lanes, four values at a time: there is less of it to compile, and the
     * values move up instead of being indexed. */
    template <int N> __device__ __forceinline__ void gather_few(const cu_gemm_args *a, int step)
    {
#pragma unroll 1
        for (int from = 0; from < kstep; from += 4) {
#pragma unroll
            for (int i = 0; i + 4 < kstep; i++)
                held[i] = held[i + 4];
            gather<N, 4>(a, step, from);
        }
    }

    __device__ __forceinline__ void load(const cu_gemm_args *a, int step)
    {
        if (lanes == 8)
            gather<8, kstep>(a, step, 0);
        else if (lanes == 4)
            gather_few<4>(a, step);
        else if (lanes == 2)
            gather_few<2>(a, step);
        else
            gather_few<1>(a, step);
#pragma unroll
        for (int i = 0; i < S::per_thread; i++)
            if (has(i))
                held_weights[i] = __ldg(weights + (int64_t)step * S::weight_vecs + i * threads);
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
__global__ void __launch_bounds__(threads, 3) conv_simt(const cu_gemm_args *__restrict__ a)
{
    CU_DYNAMIC_SHARED(float, shared);
    cu_gemm_block b;
    copier<BN> copies;
    if (cu_gemm_block_of(a, &b))
        compute<BN>(a, a, b, copies, shared);
}

struct floats : float_product {
    static cu_product_kernel kernel(const cu_gemm_plan *p, unsigned *bytes)
    {
        *bytes = shared_bytes(p);
        return p->bn == 16 ? conv_simt<16> : p->bn == 32 ? conv_simt<32> : conv_simt<64>;
    }
};

} // namespace

constexpr tgi_variant cu_conv_simt_f32 = cu_product<floats, 0>("conv_simt");
constexpr tgi_variant cu_conv_transpose_simt_f32 = cu_product<floats, 1>("conv_transpose_simt");

/* cu_conv_simt.cuh - products of float32 numbers in true float32 (cu_gemm.cuh), no tensor cores, no
 * TF32.
 *
 * 128 threads compute 128 pixels times BN channels, each TM x TN of them in registers: 8 x 8
 * for BN = 64, then 8 x 4 and 4 x 4. A K step is 16 values of a pixel, in one of two stages:
 *
 *     pixels [16 values][128 + 4], weights [16 values][BN]
 *
 * so a thread reads its four and four numbers as vectors, and threads that share rows or
 * columns read the same words. The four more pixels keep rows of values in different banks.
 *
 * What bounds it (BN = 64, unverified on a GPU): 64 FFMA for 4 LDS.128 a value of K; a
 * multiprocessor of 128 lanes takes 64 clocks for the FFMA of four warps and 16 to 32 for the
 * reads: arithmetic bound. */
#ifndef TGI_CU_CONV_SIMT_CUH
#define TGI_CU_CONV_SIMT_CUH

#include "kernels/cuda/cu_conv_list.cuh"
#include "kernels/cuda/cu_conv_variant.cuh"

/* Internal: every file that includes this makes kernels of its own. */
namespace
{

const int threads = 128, kstep = 16;
const int pixel_row = CU_BM + 4; /* floats */

template <int BN> struct shape {
    static const int tm = BN >= 32 ? 8 : 4, tn = BN / tm; /* of a thread */
    static const int across = CU_BM / tm;                 /* threads along pixels */
    static const int vm = tm / 4, vn = tn / 4;            /* vectors of four */
    static const int stage = kstep * (pixel_row + BN);    /* floats */
    static const int weight_vecs = kstep * BN / 4;
    static const int per_thread = (weight_vecs + threads - 1) / threads;
    static const int en = BN < 32 ? BN : 32; /* channels that are stored together */
    static const int sums_floats = CU_BM * (en + 8);
    static const int shared_bytes = 4 * (2 * stage > sums_floats ? 2 * stage : sums_floats);
};

template <int N> __device__ __forceinline__ void read4(const float *from, int step, float *out)
{
#pragma unroll
    for (int i = 0; i < N; i++) {
        const float4 q = *reinterpret_cast<const float4 *>(from + i * step);
        out[4 * i] = q.x;
        out[4 * i + 1] = q.y;
        out[4 * i + 2] = q.z;
        out[4 * i + 3] = q.w;
    }
}

/* Thread (m, n) has pixels 4m + CU_BM / vm * i + 0 to 3, and channels likewise. */
template <int BN>
__device__ __forceinline__ void multiply(const float *stage, int m, int n,
                                         float (&c)[shape<BN>::tm][shape<BN>::tn])
{
    typedef shape<BN> S;
#pragma unroll
    for (int k = 0; k < kstep; k++) {
        float p[S::tm], w[S::tn];
        read4<S::vm>(stage + k * pixel_row + 4 * m, CU_BM / S::vm, p);
        read4<S::vn>(stage + kstep * pixel_row + k * BN + 4 * n, BN / S::vn, w);
#pragma unroll
        for (int i = 0; i < S::tm; i++)
#pragma unroll
            for (int j = 0; j < S::tn; j++)
                c[i][j] = fmaf(p[i], w[j], c[i][j]);
    }
}

/* Channels [n0, n0 + en) of the sums into shared memory, as cu_gemm_store reads them. */
template <int BN>
__device__ __forceinline__ void lay_out(const float (&c)[shape<BN>::tm][shape<BN>::tn], int m,
                                        int n, int n0, float *out)
{
    typedef shape<BN> S;
#pragma unroll
    for (int j = 0; j < S::vn; j++) {
        const int column = 4 * n + BN / S::vn * j - n0;
        if (column < 0 || column >= S::en)
            continue;
#pragma unroll
        for (int i = 0; i < S::tm; i++) {
            const int row = 4 * m + CU_BM / S::vm * (i / 4) + i % 4;
            *reinterpret_cast<float4 *>(out + row * (S::en + 8) + column) =
                make_float4(c[i][4 * j], c[i][4 * j + 1], c[i][4 * j + 2], c[i][4 * j + 3]);
        }
    }
}

/* All of a block. C brings what is multiplied: `load(a, step)` into registers, a step ahead while the
 * products of the one before are made, then `put(stage)`. */
template <int BN, class A, class C>
__device__ __forceinline__ void compute(const A *a, const cu_gemm_args *g,
                                        const cu_gemm_block &b, C &copies, float *shared)
{
    typedef shape<BN> S;
    const int m = (int)threadIdx.x % S::across, n = (int)threadIdx.x / S::across;
    float c[S::tm][S::tn];
#pragma unroll
    for (int i = 0; i < S::tm; i++)
#pragma unroll
        for (int j = 0; j < S::tn; j++)
            c[i][j] = 0.0f;
    copies.begin(a, b);
    if (b.tile.steps) {
        copies.load(a, 0);
        copies.put(shared);
    }
    for (int k = 0; k < b.tile.steps; k++) {
        const bool more = k + 1 < b.tile.steps;
        __syncthreads();
        if (more)
            copies.load(a, k + 1);
        multiply<BN>(shared + k % 2 * S::stage, m, n, c);
        if (more)
            copies.put(shared + (k + 1) % 2 * S::stage);
    }
    for (int n0 = 0; n0 < BN; n0 += S::en) {
        __syncthreads();
        lay_out<BN>(c, m, n, n0, shared);
        __syncthreads();
        cu_gemm_store<float, S::en, threads, false>(g, b, BN, n0, shared);
    }
}

/* ---- Host -------------------------------------------------------------------------------- */

struct float_product : cu_by_places<float_product> {
    typedef float element, weight;
    static const int threads = ::threads, kstep = ::kstep, lanes = 8;
    static const unsigned kinds = 0;

    static int takes(const cu_gemm_plan *)
    {
        return 1;
    }
    static int channels(const cu_gemm_plan *p)
    {
        const int64_t n = cu_gemm_channels(p);
        return n <= 16 ? 16 : n <= 32 || (n + 31) / 32 % 2 ? 32 : 64;
    }
    static int64_t at(int bn, int k, int n)
    {
        return k * bn + n;
    }
    static double cost(const cu_gemm_plan *p)
    {
        return cu_gemm_waste(p);
    }
    static unsigned shared_bytes(const cu_gemm_plan *p)
    {
        return (unsigned)(p->bn == 16   ? shape<16>::shared_bytes
                          : p->bn == 32 ? shape<32>::shared_bytes
                                        : shape<64>::shared_bytes);
    }
};

} // namespace

#endif

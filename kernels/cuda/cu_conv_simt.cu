/* cu_conv_simt.cu - convolutions of float32 in true float32: the product of matrices of
 * cu_gemm.cuh by fused multiply-adds, no tensor cores, no TF32.
 *
 * 128 threads compute 128 pixels times BN channels, each TM x TN of them in registers: 8 x 8
 * for BN = 64, then 8 x 4 and 4 x 4. A K step is 16 values: each thread brings those of one
 * pixel (its 64 bytes) and its share of the weights, one step ahead in registers while the
 * products of the step before are made, then into the other one of two stages:
 *
 *     pixels [16 values][128 + 4], weights [16 values][BN]
 *
 * so a thread reads its four and four numbers as vectors, and threads that share rows or
 * columns read the same words. The four more pixels keep rows of values in different banks.
 *
 * What bounds it (BN = 64, unverified on a GPU): 64 FFMA for 4 LDS.128 a value of K; a
 * multiprocessor of 128 lanes takes 64 clocks for the FFMA of four warps and 16 to 32 for the
 * reads: arithmetic bound. */
#include "kernels/cuda/cu_conv_list.cuh"
#include "kernels/cuda/cu_gemm.cuh"
#include "kernels/cuda/cu_map.cuh"

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

    /* The pixel's values of a step, from places of N lanes. */
    template <int N> __device__ __forceinline__ void gather(const cu_gemm_args *a, int step)
    {
#pragma unroll
        for (int k = 0; k < kstep / N; k++) {
            const int4 place = __ldg(places + (step * (kstep / N) + k));
            const float *from;
            float v[N];
            pixel.move(a, place);
            const bool inside = pixel.at(0, place, &from);
            if (inside)
                cu_load<float, N>(from, v);
#pragma unroll
            for (int i = 0; i < N; i++)
                held[k * N + i] = inside ? v[i] : 0.0f;
        }
    }

    __device__ __forceinline__ void load(const cu_gemm_args *a, int step)
    {
        if (lanes == 8)
            gather<8>(a, step);
        else if (lanes == 4)
            gather<4>(a, step);
        else if (lanes == 2)
            gather<2>(a, step);
        else
            gather<1>(a, step);
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

template <int BN>
__global__ void __launch_bounds__(threads, 3) conv_simt(const cu_gemm_args *__restrict__ a)
{
    typedef shape<BN> S;
    CU_DYNAMIC_SHARED(float, shared);
    cu_gemm_block b;
    if (!cu_gemm_block_of(a, &b))
        return;
    const int m = (int)threadIdx.x % S::across, n = (int)threadIdx.x / S::across;
    copier<BN> copies;
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
        cu_gemm_store<float, S::en, threads>(a, b, BN, n0, shared);
    }
}

/* ---- Host -------------------------------------------------------------------------------- */

struct order {
    typedef float element;
    static int64_t at(int bn, int k, int n)
    {
        return k * bn + n;
    }
};

int plan_of(const tg_op_ctx *ctx, const int64_t *seg_c, int n_seg, int transposed,
            cu_gemm_plan *p)
{
    if (!cu_gemm_plan_of(ctx, seg_c, n_seg, transposed, p))
        return 0;
    const int64_t n = cu_gemm_channels(p);
    p->kstep = kstep;
    p->bn = n <= 16 ? 16 : n <= 32 || (n + 31) / 32 % 2 ? 32 : 64;
    return 1;
}

template <int TR> int accepts(const tg_op_ctx *ctx, const tg_layout_hint *lay)
{
    tgi_geom g;
    cu_gemm_plan p;
    return cu_conv_accepts(ctx, lay, TR, &g) &&
           plan_of(ctx, lay->seg_c[0], lay->src_segs[0], TR, &p);
}

template <int TR> size_t packed_bytes(const tg_op_ctx *ctx, const tg_layout_hint *lay)
{
    cu_gemm_plan p;
    if (!plan_of(ctx, lay->seg_c[0], lay->src_segs[0], TR, &p))
        return 0;
    return cu_gemm_layout_of(&p, sizeof(float)).bytes;
}

template <int TR> void pack(const tg_op_ctx *ctx, const tg_layout_hint *lay, void *dst)
{
    cu_gemm_plan p;
    if (plan_of(ctx, lay->seg_c[0], lay->src_segs[0], TR, &p))
        cu_gemm_pack<order>(&p, ctx, dst);
}

template <int TR> double cost(const tg_op_ctx *ctx, const tg_layout_hint *lay)
{
    cu_gemm_plan p;
    if (!plan_of(ctx, lay->seg_c[0], lay->src_segs[0], TR, &p))
        return 1e9;
    return cu_gemm_waste(&p);
}

template <int BN> void launch(const tg_call *call, dim3 grid, const cu_gemm_args *a)
{
    cu_launch_pool(call, conv_simt<BN>, grid, dim3(threads), (unsigned)shape<BN>::shared_bytes,
                   a);
}

template <int TR> void run(const tg_call *call)
{
    cu_gemm_plan p;
    cu_gemm_args a;
    int64_t seg_c[TG_MAX_SEG];
    for (int s = 0; s < call->src[0].n_seg; s++)
        seg_c[s] = call->src[0].seg[s].c;
    if (!plan_of(call->ctx, seg_c, call->src[0].n_seg, TR, &p))
        return; /* `accepts` said no */
    const dim3 grid = cu_gemm_arguments(&p, call, sizeof(float), &a);
    (p.bn == 16 ? launch<16> : p.bn == 32 ? launch<32> : launch<64>)(call, grid, &a);
}

template <int TR> constexpr tg_variant variant(const char *name, const char *op)
{
    tg_variant v = cu_variant(name, op, accepts<TR>, run<TR>);
    v.reads_doubled = 1;
    v.packed_bytes = packed_bytes<TR>;
    v.pack = pack<TR>;
    v.cost = cost<TR>;
    return v;
}

} // namespace

constexpr tg_variant cu_conv_simt_f32 = variant<0>("conv_simt", "Conv");
constexpr tg_variant cu_conv_transpose_simt_f32 =
    variant<1>("conv_transpose_simt", "ConvTranspose");

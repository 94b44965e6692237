/* cu_matmul.cu - MatMul, Gemm and Einsum over whole arrays: sums of products.
 *
 * Products of matrices (cu_contract.cuh) read their factors by their strides as they lie, so a
 * transposed one is not copied. Whatever is no such product is computed result by result.
 *
 * Tensor cores (half, bfloat16; float32 with --tf32): tiles of 64 x 64 by four warps of 32 x
 * 32, K in steps of 64 bytes, two stages; the next step's numbers are on their way in registers
 * meanwhile. A factor lies in shared memory as it does in memory (along K, or along M or N) and
 * is turned on the way to the fragments: by ldmatrix, numbers of 32 bits one by one. With
 * --tf32 numbers are rounded to 10 bits behind the first as they are put into shared memory.
 * True float32: tiles of 64 x 64 by 256 threads of 4 x 4 sums, fused multiply-adds in the order
 * of K.
 *
 * A result's sum runs over K in order, from 0, in steps that K alone decides: no split, so its
 * bits depend on no launch.
 *
 * What bounds it (unverified on a GPU): 64 x 64 x 32 products of a step of halves (16 of TF32)
 * for 8 KiB of shared memory written and 16 KiB read; large products stay below the tensor
 * cores' rate, those of attention (K of 16 to 64) are bound by memory. */
#include "kernels/cuda/cu_contract.cuh"
#include "kernels/cuda/cu_mma.cuh"
#include "kernels/cuda/cu_ops.cuh"

namespace
{

const int BM = 64, BN = 64;

/* A factor's strides: along M or N, and along K. */
struct factor {
    const char *at;
    int64_t line, k;
    int32_t along_k; /* 1: neighbours in memory are neighbours in K */
    int32_t vector;  /* 1: 16 bytes at once */
};

struct matmul_args {
    factor a, b;
    char *dst;
    const char *c; /* what is added, or NULL */
    int32_t m, n, k, unused;
    int64_t dst_m, dst_n, c_m, c_n;
    int64_t tiles_m, tiles_n, tiles; /* tiles of all batches; 0 at rest */
    float alpha, beta;
    cu_walk<3> batch; /* A, B, result */
};

struct tile_of {
    int32_t m0, n0;
    int64_t off[3];
};

__device__ __forceinline__ tile_of tile_at(const matmul_args *a, int64_t tile)
{
    tile_of t;
    t.m0 = (int32_t)(tile % a->tiles_m) * BM;
    tile /= a->tiles_m;
    t.n0 = (int32_t)(tile % a->tiles_n) * BN;
    cu_walk_to<3>(a->batch, tile / a->tiles_n, t.off);
    return t;
}

/* One result. */
template <class T>
__device__ __forceinline__ void put_result(const matmul_args *a, const tile_of &t, int32_t m,
                                           int32_t n, float v)
{
    if (m >= a->m || n >= a->n)
        return;
    v *= a->alpha;
    if (a->c)
        v = fmaf(a->beta, cu_float(reinterpret_cast<const T *>(a->c)[m * a->c_m + n * a->c_n]),
                 v);
    reinterpret_cast<T *>(a->dst)[t.off[2] + m * a->dst_m + n * a->dst_n] = cu_element<T>(v);
}

/* ---- Tensor cores ------------------------------------------------------------------------ */

/* What is multiplied: `element` in memory, as `word` in shared memory, `depth` of K at once. A
 * step of K is 64 bytes. */
template <class T> struct sixteen_bits {
    typedef T element;
    typedef uint16_t word;
    static const int depth = 16;
    static __device__ __forceinline__ bool here(void)
    {
        return cu_offered<T>();
    }
    static __device__ __forceinline__ void prepare(cu_bits<16> *)
    {
    }
    static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4],
                                                    const uint32_t (&b)[2])
    {
        cu_mma_of<T>(c, a, b);
    }
};

struct tf32s {
    typedef float element;
    typedef uint32_t word;
    static const int depth = 8;
    static __device__ __forceinline__ bool here(void) /* as those numbers, from 8.0 on */
    {
        return cu_offered<__nv_bfloat16>();
    }
    static __device__ __forceinline__ void prepare(cu_bits<16> *held)
    {
        uint32_t one[4];
        memcpy(one, held, 16);
#pragma unroll
        for (int e = 0; e < 4; e++)
            one[e] = cu_round_tf32(one[e]);
        memcpy(held, one, 16);
    }
    static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4],
                                                    const uint32_t (&b)[2])
    {
        cu_mma_tf32(c, a, b);
    }
};

const int mma_threads = 128;

/* Sizes in words. */
template <class P> struct stage_of {
    static const int each = 16 / (int)sizeof(typename P::word); /* a piece: 16 bytes */
    static const int k = 4 * each;
    static const int row_k =
        k + each;                    /* a line's numbers along K; 16 bytes more: other banks */
    static const int row_l = BM + 8; /* a step's numbers along M or N */
    static const int words = BM * row_k > k *row_l ? BM *row_k : k *row_l;
};

/* 64 lines by a step of K: each thread moves two pieces, half the lines or half of K apart.
 * ALONG: pieces lie along K. */
template <class P, bool ALONG> struct mma_copier {
    typedef typename P::word word;
    typedef stage_of<P> S;
    static const int across = ALONG ? S::k / S::each : BM / S::each; /* pieces side by side */
    static const int apart = mma_threads / across;                   /* of a thread's two */
    const word *at; /* the first piece of the next step */
    int32_t line, k;
    cu_bits<16> held[2];

    __device__ __forceinline__ void begin(const factor &f, int64_t base, int32_t line0)
    {
        const int deep = (int)threadIdx.x / across, side = (int)threadIdx.x % across * S::each;
        line = line0 + (ALONG ? deep : side);
        k = ALONG ? side : deep;
        at = reinterpret_cast<const word *>(f.at) + base + line * f.line + k * f.k;
    }
    __device__ __forceinline__ void load(const factor &f, int32_t lines, int32_t ks)
    {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int32_t left = ALONG ? ks - k : lines - line;
            const bool there = ALONG ? line + apart * i < lines : k + apart * i < ks;
            const word *p = at + apart * i * (ALONG ? f.line : f.k);
            if (there && left >= S::each && f.vector) {
                held[i] = cu_get_bits<cu_bits<16>>(p);
                continue;
            }
            word one[S::each];
            const int64_t step = ALONG ? f.k : f.line;
#pragma unroll
            for (int e = 0; e < S::each; e++, p += step) {
                one[e] = 0;
                if (there && e < left)
                    memcpy(&one[e], p, sizeof one[e]);
            }
            memcpy(&held[i], one, 16);
        }
        k += S::k;
        at += S::k * f.k;
    }
    __device__ __forceinline__ void put(word *stage)
    {
        const int deep = (int)threadIdx.x / across, side = (int)threadIdx.x % across * S::each;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            P::prepare(&held[i]);
            cu_put_bits(stage + (deep + apart * i) * (ALONG ? S::row_k : S::row_l) + side,
                        held[i]);
        }
    }
};

/* Lines l0 to l0 + 15 of a factor by P::depth of K: the four matrices of 8 lines by 16 bytes,
 * in the order of an A fragment (FIRST: lines, then K) or of two B fragments (K, then lines).
 */
template <class P, bool ALONG, bool FIRST>
__device__ __forceinline__ void read_lines(uint32_t (&r)[4], const typename P::word *stage,
                                           int l0, int k0)
{
    typedef stage_of<P> S;
    const int lane = (int)threadIdx.x % 32, in = lane % 8;
    const int low = lane / 8 % 2, high = lane / 16, l = FIRST ? low : high,
              k = FIRST ? high : low;
    if constexpr (ALONG) {
        cu_ldmatrix4(r, stage + (l0 + l * 8 + in) * S::row_k + k0 + k * S::each);
    } else if constexpr (sizeof(typename P::word) == 2) {
        cu_ldmatrix4_turned(r, stage + (k0 + k * 8 + in) * S::row_l + l0 + l * 8);
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++)
            r[i] = stage[(k0 + (FIRST ? i / 2 : i % 2) * S::each + lane % 4) * S::row_l + l0 +
                         (FIRST ? i % 2 : i / 2) * 8 + lane / 4];
    }
}

template <class P, bool A_ALONG, bool B_ALONG>
__device__ __forceinline__ void multiply_step(const typename P::word *sa,
                                              const typename P::word *sb, int wm, int wn,
                                              float (&c)[2][4][4])
{
#pragma unroll
    for (int k = 0; k < stage_of<P>::k; k += P::depth) {
        uint32_t fa[2][4], fb[2][4];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            read_lines<P, A_ALONG, true>(fa[i], sa, wm + 16 * i, k);
            read_lines<P, B_ALONG, false>(fb[i], sb, wn + 16 * i, k);
        }
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const uint32_t b[2] = {fb[j / 2][j % 2 * 2], fb[j / 2][j % 2 * 2 + 1]};
                P::multiply(c[i][j], fa[i], b);
            }
    }
}

template <class P, bool A_ALONG, bool B_ALONG>
CU_KERNEL(matmul_mma, matmul_args, mma_threads, 4)
{
    typedef stage_of<P> S;
    CU_SHARED(typename P::word, stage_a, 2 * S::words);
    CU_SHARED(typename P::word, stage_b, 2 * S::words);
    if (!P::here())
        return;
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int wm = warp / 2 * 32, wn = warp % 2 * 32;
    const int steps = a->k / S::k + (a->k % S::k != 0);
    mma_copier<P, A_ALONG> ca;
    mma_copier<P, B_ALONG> cb;
    for (int64_t tile = blockIdx.x; tile < a->tiles; tile += gridDim.x) {
        const tile_of t = tile_at(a, tile);
        float c[2][4][4];
#pragma unroll
        for (int i = 0; i < 32; i++)
            c[i / 16][i / 4 % 4][i % 4] = 0.0f;
        ca.begin(a->a, t.off[0], t.m0);
        cb.begin(a->b, t.off[1], t.n0);
        ca.load(a->a, a->m, a->k);
        cb.load(a->b, a->n, a->k);
        for (int s = 0; s < steps; s++) {
            const int at = s % 2 * S::words;
            ca.put(stage_a + at); /* two steps ago it was read: a barrier lies between */
            cb.put(stage_b + at);
            __syncthreads();
            if (s + 1 < steps) {
                ca.load(a->a, a->m, a->k);
                cb.load(a->b, a->n, a->k);
            }
            multiply_step<P, A_ALONG, B_ALONG>(stage_a + at, stage_b + at, wm, wn, c);
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int j = 0; j < 4; j++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    put_result<typename P::element>(
                        a, t, t.m0 + wm + 16 * i + lane / 4 + e / 2 * 8,
                        t.n0 + wn + 8 * j + lane % 4 * 2 + e % 2, c[i][j][e]);
    }
}

/* ---- Float32 ----------------------------------------------------------------------------- */

const int float_threads = 256, float_k = 16, float_row = BM + 4;

/* 64 lines by 16 of K: each thread moves four numbers. Neighbours in memory are neighbours
 * among threads. */
struct float_copier {
    float held[4];
    __device__ __forceinline__ static void place(const factor &f, int i, int *line, int *k)
    {
        const int piece = (int)threadIdx.x + i * float_threads;
        *line = f.along_k ? piece / float_k : piece % BM;
        *k = f.along_k ? piece % float_k : piece / BM;
    }
    __device__ __forceinline__ void load(const factor &f, int64_t base, int32_t line0,
                                         int32_t lines, int32_t k0, int32_t ks)
    {
        const float *from = reinterpret_cast<const float *>(f.at) + base;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int line, k;
            place(f, i, &line, &k);
            line += line0;
            k += k0;
            held[i] = line < lines && k < ks ? from[line * f.line + k * f.k] : 0.0f;
        }
    }
    __device__ __forceinline__ void put(const factor &f, float *stage) const
    {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int line, k;
            place(f, i, &line, &k);
            stage[k * float_row + line] = held[i];
        }
    }
};

CU_KERNEL(matmul_float, matmul_args, float_threads, 2)
{
    CU_SHARED(float, stage_a, 2 * float_k * float_row);
    CU_SHARED(float, stage_b, 2 * float_k * float_row);
    const int m = (int)threadIdx.x / 16 * 4, n = (int)threadIdx.x % 16 * 4;
    const int steps = a->k / float_k + (a->k % float_k != 0);
    float_copier ca, cb;
    for (int64_t tile = blockIdx.x; tile < a->tiles; tile += gridDim.x) {
        const tile_of t = tile_at(a, tile);
        float c[4][4];
#pragma unroll
        for (int i = 0; i < 16; i++)
            c[i / 4][i % 4] = 0.0f;
        ca.load(a->a, t.off[0], t.m0, a->m, 0, a->k);
        cb.load(a->b, t.off[1], t.n0, a->n, 0, a->k);
        for (int s = 0; s < steps; s++) {
            float *const sa = stage_a + s % 2 * float_k * float_row;
            float *const sb = stage_b + s % 2 * float_k * float_row;
            ca.put(a->a, sa);
            cb.put(a->b, sb);
            __syncthreads();
            if (s + 1 < steps) {
                ca.load(a->a, t.off[0], t.m0, a->m, (s + 1) * float_k, a->k);
                cb.load(a->b, t.off[1], t.n0, a->n, (s + 1) * float_k, a->k);
            }
#pragma unroll
            for (int k = 0; k < float_k; k++) {
                float p[4], q[4];
                cu_load<float, 4>(sa + k * float_row + m, p);
                cu_load<float, 4>(sb + k * float_row + n, q);
#pragma unroll
                for (int i = 0; i < 16; i++)
                    c[i / 4][i % 4] = fmaf(p[i / 4], q[i % 4], c[i / 4][i % 4]);
            }
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 16; i++)
            put_result<float>(a, t, t.m0 + m + i / 4, t.n0 + n + i % 4, c[i / 4][i % 4]);
    }
}

/* ---- Result by result -------------------------------------------------------------------- */

const int terms = TGI_CONTRACT_INPUTS;

struct sum_args {
    int64_t n, sums; /* results, terms of each */
    int32_t n_in, unused;
    const char *in[terms];
    char *dst;
    cu_walk<terms> out, sum;
};

template <class T> CU_KERNEL(contract, sum_args, CU_FLAT_THREADS, 2)
{
    for (int64_t i = cu_flat_first(); i < a->n; i += cu_flat_step()) {
        int64_t base[terms], off[terms];
        float acc = 0.0f, lost = 0.0f; /* of the sum so far */
        cu_walk_to<terms>(a->out, i, base);
        for (int64_t s = 0; s < a->sums; s++) {
            cu_walk_to<terms>(a->sum, s, off);
            float p = 1.0f;
#pragma unroll
            for (int k = 0; k < terms; k++)
                if (k < a->n_in)
                    p *= cu_float(reinterpret_cast<const T *>(a->in[k])[base[k] + off[k]]);
            const float term = p - lost, more = acc + term;
            lost = (more - acc) - term;
            acc = more;
        }
        reinterpret_cast<T *>(a->dst)[i] = cu_element<T>(acc);
    }
}

/* ---- Host: launching --------------------------------------------------------------------- */

factor factor_of(const cu_contract_product *p, int i, const char *at, size_t element)
{
    const int axis = i == 0 ? p->m : p->n, each = 16 / (int)element;
    const int64_t k = p->sums.rank ? p->sums.stride[i][0] : 1;
    const int64_t line = axis < 0 ? 0 : p->axes.stride[i][axis];
    factor f = {at, line, k, k == 1 || line != 1, 1};
    f.vector = (f.along_k ? k == 1 : line == 1) && (f.along_k ? line : k) % each == 0;
    for (int b = 0; b < p->axes.rank; b++)
        if (b != p->m && b != p->n && p->axes.stride[i][b] % each)
            f.vector = 0;
    return f;
}

/* How a product is computed: P's numbers on tensor cores, or true float32. */
template <class P> struct on_tensor_cores {
    typedef typename P::element element;
    static void launch(const tgi_call *call, int64_t tiles, const matmul_args &a)
    {
        void (*kernel)(const matmul_args *) =
            a.a.along_k
                ? (a.b.along_k ? matmul_mma<P, true, true> : matmul_mma<P, true, false>)
                : (a.b.along_k ? matmul_mma<P, false, true> : matmul_mma<P, false, false>);
        cu_launch(call, kernel, cu_flat_grid(tiles, 1), dim3(mma_threads), 0, a);
    }
};

struct in_float {
    typedef float element;
    static void launch(const tgi_call *call, int64_t tiles, const matmul_args &a)
    {
        cu_launch(call, matmul_float, cu_flat_grid(tiles, 1), dim3(float_threads), 0, a);
    }
};

template <class T> struct usual : on_tensor_cores<sixteen_bits<T>> {
};
template <> struct usual<float> : in_float {
};

template <class How>
void launch_product(const cu_flat *f, const cu_contract_product *p, const gemm_attrs *g)
{
    typedef typename How::element T;
    const tgi_op_ctx *ctx = f->call->ctx;
    matmul_args a;
    memset(&a, 0, sizeof a);
    a.a = factor_of(p, 0, f->src[0], sizeof(T));
    a.b = factor_of(p, 1, f->src[1], sizeof(T));
    a.dst = f->dst[0];
    a.m = p->m < 0 ? 1 : (int32_t)p->axes.dim[p->m];
    a.n = p->n < 0 ? 1 : (int32_t)p->axes.dim[p->n];
    a.k = p->sums.rank ? (int32_t)p->sums.dim[0] : 1;
    a.dst_m = p->m < 0 ? 0 : p->axes.stride[2][p->m];
    a.dst_n = p->n < 0 ? 0 : p->axes.stride[2][p->n];
    for (int b = 0; b < p->axes.rank; b++)
        if (b != p->m && b != p->n) {
            const int64_t stride[3] = {p->axes.stride[0][b], p->axes.stride[1][b],
                                       p->axes.stride[2][b]};
            cu_walk_axis<3>(&a.batch, p->axes.dim[b], stride);
        }
    a.alpha = g ? g->alpha : 1.0f;
    a.beta = g ? g->beta : 0.0f;
    if (g && tgi_given(ctx, 2)) {
        a.c = f->src[2];
        cu_gemm_c(&ctx->src[2], &a.c_m, &a.c_n);
    }
    a.tiles_m = ((int64_t)a.m + BM - 1) / BM;
    a.tiles_n = ((int64_t)a.n + BN - 1) / BN;
    const int64_t tiles = a.tiles_m * a.tiles_n * cu_walk_count(a.batch);
    a.tiles = f->count(tiles);
    How::launch(f->call, tiles, a);
}

template <class T> void launch_sum(const cu_flat *f, const tgi_contraction *c)
{
    sum_args a;
    memset(&a, 0, sizeof a);
    int64_t stride[terms];
    for (int k = 0; k < c->rank; k++) {
        for (int i = 0; i < terms; i++)
            stride[i] = i < c->n_in ? c->stride[i][k] : 0;
        cu_walk_axis<terms>(&a.out, c->dim[k], stride);
    }
    for (int k = 0; k < c->sum_rank; k++) {
        for (int i = 0; i < terms; i++)
            stride[i] = i < c->n_in ? c->sum_stride[i][k] : 0;
        cu_walk_axis<terms>(&a.sum, c->sum_dim[k], stride);
    }
    for (int i = 0; i < c->n_in; i++)
        a.in[i] = f->src[i];
    a.n_in = c->n_in;
    a.dst = f->dst[0];
    a.sums = cu_walk_count(a.sum);
    const int64_t n = cu_walk_count(a.out);
    a.n = f->count(n);
    cu_launch(f->call, contract<T>, cu_flat_grid(n, CU_FLAT_THREADS), dim3(CU_FLAT_THREADS), 0,
              a);
}

/* ---- The variants ------------------------------------------------------------------------ */

const uint32_t all_inputs = (1u << TGI_OP_MAX_SRC) - 1u;

template <cu_sum_fn FN> int accepts_sum(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    tgi_contraction c;
    return cu_flat_accepts(ctx, lay) && FN(ctx, &c, NULL) == TG_OK;
}

template <class T> int accepts_mat_mul(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return accepts_sum<tgi_mat_mul_sum>(ctx, lay);
}
template <class T> int accepts_gemm(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return accepts_sum<tgi_gemm_sum>(ctx, lay);
}
template <class T> int accepts_einsum(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return accepts_sum<tgi_einsum_sum>(ctx, lay);
}

template <class T> size_t bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *)
{
    return cu_flat_const_bytes<T>(ctx, all_inputs);
}

template <class T> void pack(const tgi_op_ctx *ctx, const tgi_layout_hint *, void *dst)
{
    cu_flat_const_pack<T>(ctx, all_inputs, dst);
}

template <class How, cu_sum_fn FN> void run_how(const tgi_call *call)
{
    typedef typename How::element T;
    tgi_contraction c;
    cu_contract_product p;
    cu_flat f;
    if (FN(call->ctx, &c, NULL) != TG_OK)
        return; /* `accepts` said no */
    cu_flat_begin<T, T>(&f, call, all_inputs);
    if (cu_product_of(&c, &p))
        launch_product<How>(&f, &p,
                            FN == tgi_gemm_sum ? (const gemm_attrs *)call->ctx->attrs : NULL);
    else
        launch_sum<T>(&f, &c);
    cu_flat_end<T>(&f);
}

template <class T> void run_mat_mul(const tgi_call *call)
{
    run_how<usual<T>, tgi_mat_mul_sum>(call);
}
template <class T> void run_gemm(const tgi_call *call)
{
    run_how<usual<T>, tgi_gemm_sum>(call);
}
template <class T> void run_einsum(const tgi_call *call)
{
    run_how<usual<T>, tgi_einsum_sum>(call);
}

/* With --tf32: what is a product of matrices, and nothing else is rounded. */
template <cu_sum_fn FN> int accepts_tf32(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    tgi_contraction c;
    cu_contract_product p;
    return accepts_sum<FN>(ctx, lay) && FN(ctx, &c, NULL) == TG_OK && cu_product_of(&c, &p);
}

template <cu_sum_fn FN> constexpr tgi_variant tf32_variant(const char *op)
{
    tgi_variant v = cu_flat_variant("cu_matmul_tf32", op, accepts_tf32<FN>, bytes<float>,
                                    pack<float>, run_how<on_tensor_cores<tf32s>, FN>);
    v.kinds = TGI_KIND_TF32;
    return v;
}

} // namespace

CU_FLAT_VARIANT(mat_mul, "cu_matmul", "MatMul", accepts_mat_mul, bytes, pack, run_mat_mul)
CU_FLAT_VARIANT(gemm, "cu_matmul", "Gemm", accepts_gemm, bytes, pack, run_gemm)
CU_FLAT_VARIANT(einsum, "cu_matmul", "Einsum", accepts_einsum, bytes, pack, run_einsum)
constexpr tgi_variant cu_mat_mul_tf32_f32 = tf32_variant<tgi_mat_mul_sum>("MatMul");
constexpr tgi_variant cu_gemm_tf32_f32 = tf32_variant<tgi_gemm_sum>("Gemm");
constexpr tgi_variant cu_einsum_tf32_f32 = tf32_variant<tgi_einsum_sum>("Einsum");

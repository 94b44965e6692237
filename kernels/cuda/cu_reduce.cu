/* cu_reduce.cu - the reductions of family_reduce.c on images, and GlobalMaxPool.
 *
 * Over channels alone each pixel is by itself: a thread walks its channels in float32. Over
 * pixels (with or without channels) a *fold* is one result, in float64:
 *
 *   pixels     a block per result and chunk of what is folded: of the pixels of a chunk, in
 *              their order, thread t takes numbers t, t + n, t + 2n, ...; then the threads'
 *              folds are merged in halves
 *   chunks     where all pixels are folded there are chunks of 16,384; a block per channel
 *              merges them the same way
 *
 * Chunks and the shares of threads follow from the shape of the image alone, so the bits do not
 * depend on bands. */
#include "kernels/cuda/cu_channels.cuh"
#include "kernels/cuda/cu_fold.cuh"
#include "kernels/cuda/cu_ops.cuh"

#define CU_CHUNK 16384 /* pixels */

/* ---- Over channels ----------------------------------------------------------------------- */

struct cu_fold_channels_f {
    cu_operand src;
    int32_t kind, channels; /* channels 0: nothing is folded, each number by itself */
    template <class T, int V>
    __device__ __forceinline__ void at(const cu_pool &pool, const cu_place &p,
                                       float (&v)[V]) const
    {
        if (!channels) {
            cu_read<T, V>(pool, src, p.z, p.y, p.x, p.c, v);
            cu_each(v, [&](float x) {
                cu_fold<float> f = cu_fold_start<float>(kind);
                cu_fold_add(kind, &f, x);
                return cu_fold_result(kind, f, 1.0f);
            });
            return;
        }
        cu_fold<float> f = cu_fold_start<float>(kind);
        cu_each_channel<T>(pool, src, p.z, p.y, p.x,
                           [&](float x, int32_t) { cu_fold_add(kind, &f, x); });
        const float done = cu_fold_result(kind, f, (float)channels);
#pragma unroll
        for (int i = 0; i < V; i++)
            v[i] = done;
    }
};

/* ---- Over pixels ------------------------------------------------------------------------- */

struct cu_fold_args {
    int32_t kind;
    int32_t ch;            /* channels of a block, a power of two */
    int32_t fold_c;        /* 1: channels too: threads of a block share them */
    int32_t groups;        /* blocks that share the channels of a result */
    int32_t c;             /* channels of the source */
    int32_t n[3];          /* folded extents, 1 on kept axes: z, y, x */
    int32_t lo[3], hi[3];  /* results of this band; [0, 1) on folded axes */
    int32_t most[3];       /* as many at most */
    int64_t chunk, chunks; /* pixels of a chunk; how many */
    cu_fold<double> *part; /* [channel][chunk]; NULL: results go to dst */
    cu_view dst;
    cu_epi epi;
    cu_operand src;
    cu_pool pool;
};

/* What this thread folds: pixels of a chunk around place (z, y, x), and its channels. */
template <class T>
__device__ __forceinline__ cu_fold<double> cu_fold_share(const cu_fold_args *a, int64_t chunk,
                                                         const cu_place &p)
{
    cu_fold<double> f = cu_fold_start<double>(a->kind);
    const int64_t all = (int64_t)a->n[0] * a->n[1] * a->n[2];
    const int64_t first = chunk * a->chunk;
    const int64_t end = first + a->chunk < all ? first + a->chunk : all;
    for (int64_t i = first + threadIdx.x / (uint32_t)a->ch; i < end;
         i += blockDim.x / (uint32_t)a->ch) {
        const int32_t x = (int32_t)(i % a->n[2]), y = (int32_t)(i / a->n[2] % a->n[1]),
                      z = (int32_t)(i / a->n[2] / a->n[1]);
        for (int32_t c = p.c; c < a->c; c += a->ch) {
            cu_fold_add(a->kind, &f,
                        (double)cu_read_one<T>(a->pool, a->src, p.z + z, p.y + y, p.x + x, c));
            if (!a->fold_c)
                break;
        }
    }
    return f;
}

/* Merge the folds of threads that lie `least` apart; thread t < least has the result. */
__device__ __forceinline__ cu_fold<double> cu_fold_threads(int kind, cu_fold<double> f,
                                                           uint32_t least)
{
    CU_SHARED(double, acc, 256);
    CU_SHARED(double, top, 256);
    const uint32_t t = threadIdx.x;
    acc[t] = f.acc;
    top[t] = f.top;
    __syncthreads();
    for (uint32_t apart = blockDim.x / 2; apart >= least; apart /= 2) {
        if (t < apart) {
            const cu_fold<double> other = {acc[t + apart], top[t + apart]};
            f = cu_fold_merge(kind, f, other);
            acc[t] = f.acc;
            top[t] = f.top;
        }
        __syncthreads();
    }
    return f;
}

template <class T>
__global__ void __launch_bounds__(256, 4) cu_fold_pixels(const cu_fold_args *__restrict__ a)
{
    const int64_t chunk = blockIdx.x % a->chunks;
    int64_t rest = blockIdx.x / a->chunks;
    const int32_t group = (int32_t)(rest % a->groups);
    rest /= a->groups;
    cu_place p;
    p.x = a->lo[2] + (int32_t)(rest % a->most[2]);
    p.y = a->lo[1] + (int32_t)(rest / a->most[2] % a->most[1]);
    p.z = a->lo[0] + (int32_t)(rest / a->most[2] / a->most[1]);
    p.c = group * a->ch + (int32_t)threadIdx.x % a->ch;
    if (p.z >= a->hi[0] || p.y >= a->hi[1] || p.x >= a->hi[2]) /* the whole block */
        return;
    cu_fold<double> f = cu_fold_share<T>(a, chunk, p);
    f = cu_fold_threads(a->kind, f, a->fold_c ? 1 : (uint32_t)a->ch);
    if ((int32_t)threadIdx.x >= (a->fold_c ? 1 : a->ch))
        return;
    if (a->part) {
        if (p.c < a->c)
            a->part[(int64_t)p.c * a->chunks + chunk] = f;
        return;
    }
    const double n = (double)a->n[0] * a->n[1] * a->n[2] * (a->fold_c ? a->c : 1);
    for (; p.c < a->dst.cb; p.c += a->fold_c ? 1 : a->dst.cb) {
        float v[1] = {cu_fold_result(a->kind, f, n)};
        if (p.c < a->dst.c)
            cu_epilogue<T, 1>(a->pool, a->epi, p, v);
        cu_store<T, 1>(a->dst, p, v);
    }
}

/* The chunks of a channel into its first. */
__global__ void __launch_bounds__(256, 4) cu_fold_chunks(const cu_fold_args *__restrict__ a)
{
    cu_fold<double> *part = a->part + (int64_t)blockIdx.x * a->chunks;
    cu_fold<double> f = cu_fold_start<double>(a->kind);
    if (a->lo[0] >= a->hi[0] || a->lo[1] >= a->hi[1] || a->lo[2] >= a->hi[2])
        return;
    for (int64_t i = threadIdx.x; i < a->chunks; i += blockDim.x)
        f = cu_fold_merge(a->kind, f, part[i]);
    f = cu_fold_threads(a->kind, f, 1);
    if (threadIdx.x == 0)
        part[0] = f;
}

struct cu_folded_f {
    const cu_fold<double> *part;
    int64_t chunks;
    int32_t kind, channels;
    double n;
    template <class T, int V>
    __device__ __forceinline__ void at(const cu_pool &pool, const cu_place &p,
                                       float (&v)[V]) const
    {
        (void)pool;
#pragma unroll
        for (int i = 0; i < V; i++)
            v[i] = p.c + i < channels
                       ? cu_fold_result(kind, part[(int64_t)(p.c + i) * chunks], n)
                       : 0.0f;
    }
};

/* ---- Host -------------------------------------------------------------------------------- */

/* An axis of the result with extent 1 is folded: where the source has 1 too, it is the same. */
static int pixels_folded(const tgi_op_ctx *ctx)
{
    for (int k = 2; k < ctx->src[0].rank; k++)
        if (ctx->src[0].dim[k] != ctx->dst[0].dim[k])
            return 1;
    return 0;
}

/* Pixels of the result; of one there are chunks. */
static int64_t results_of(const tgi_op_ctx *ctx)
{
    int64_t n = 1;
    for (int k = 2; k < ctx->dst[0].rank; k++)
        n *= ctx->dst[0].dim[k];
    return n;
}

static int64_t chunks_of(const tgi_op_ctx *ctx)
{
    int64_t n = 1;
    for (int i = 0; i < 3; i++)
        n *= tgi_desc_axis(&ctx->src[0], i);
    return results_of(ctx) == 1 ? (n + CU_CHUNK - 1) / CU_CHUNK : 1;
}

static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    const tgi_desc *s = &ctx->src[0], *d = &ctx->dst[0];
    if (ctx->const_src[0] || !cu_accepts_image(ctx, lay) || s->rank != d->rank)
        return 0;
    for (int k = 1; k < s->rank; k++)
        if (d->dim[k] != 1 && d->dim[k] != s->dim[k])
            return 0;
    return !pixels_folded(ctx) || chunks_of(ctx) * results_of(ctx) * s->dim[1] < (int64_t)1
                                                                                     << 31;
}

static size_t scratch_bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int64_t width,
                            int threads)
{
    (void)lay, (void)width, (void)threads;
    return pixels_folded(ctx) && results_of(ctx) == 1
               ? sizeof(cu_fold<double>) * (size_t)(ctx->dst[0].dim[1] * chunks_of(ctx))
               : 0;
}

template <class T> static void fold_channels(const tgi_call *call, int kind)
{
    const tgi_op_ctx *ctx = call->ctx;
    cu_map_args<cu_fold_channels_f> a;
    cu_map_begin(&a, call);
    a.f.src = cu_pool_operand(&a.pool, &call->src[0]);
    a.f.kind = kind;
    a.f.channels = ctx->dst[0].dim[1] == 1 ? (int32_t)ctx->src[0].dim[1] : 0;
    cu_map_go<T>(&a, call, 0);
}

/* Extents and the places of results. */
static void set_places(cu_fold_args *a, const tgi_call *call)
{
    const tgi_desc *s = &call->ctx->src[0], *d = &call->ctx->dst[0];
    for (int i = 0; i < 3; i++) {
        const int at = d->rank - 3 + i;
        const tgi_range r = tgi_box_axis(&call->box, i);
        a->n[i] = tgi_desc_axis(d, i) == 1 ? (int32_t)tgi_desc_axis(s, i) : 1;
        a->lo[i] = (int32_t)r.lo;
        a->hi[i] = (int32_t)r.hi;
        a->most[i] = at < 2 || call->most[at] < 1 ? 1 : (int32_t)call->most[at];
    }
}

template <class T> static void fold_pixels(const tgi_call *call, int kind)
{
    const tgi_op_ctx *ctx = call->ctx;
    cu_fold_args a;
    a.pool.n = a.pool.unused = 0;
    a.epi = cu_pool_epilogue(&a.pool, call);
    a.src = cu_pool_operand(&a.pool, &call->src[0]);
    a.dst = cu_view_of(&call->dst[0]);
    a.kind = kind;
    a.c = (int32_t)ctx->src[0].dim[1];
    a.fold_c = ctx->dst[0].dim[1] == 1;
    for (a.ch = 1; a.ch < a.c && a.ch < 32;)
        a.ch *= 2;
    a.groups = a.fold_c ? 1 : (a.dst.cb + a.ch - 1) / a.ch;
    set_places(&a, call);
    a.chunks = chunks_of(ctx);
    a.chunk = a.chunks > 1 ? CU_CHUNK : (int64_t)a.n[0] * a.n[1] * a.n[2];
    a.part = results_of(ctx) == 1 ? (cu_fold<double> *)call->scratch : NULL;
    const int64_t blocks =
        a.chunks * a.groups * a.most[0] * (int64_t)a.most[1] * (int64_t)a.most[2];
    cu_launch_pool(call, cu_fold_pixels<T>, dim3((unsigned)blocks), dim3(256), 0, &a);
    if (results_of(ctx) > 1)
        return;
    cu_launch_pool(call, cu_fold_chunks, dim3((unsigned)ctx->dst[0].dim[1]), dim3(256), 0, &a);
    cu_map_args<cu_folded_f> last;
    cu_map_begin(&last, call);
    last.f.part = a.part;
    last.f.chunks = a.chunks;
    last.f.kind = kind;
    last.f.channels = (int32_t)ctx->dst[0].dim[1];
    last.f.n = (double)a.n[0] * a.n[1] * a.n[2] * (a.fold_c ? a.c : 1);
    cu_map_go<T>(&last, call, 0);
}

template <class T, int KIND> static void run(const tgi_call *call)
{
    if (pixels_folded(call->ctx))
        fold_pixels<T>(call, KIND);
    else
        fold_channels<T>(call, KIND);
}

/* ---- The variants ------------------------------------------------------------------------ */

/* GlobalMaxPool of an image of one pixel is that pixel: no channel is folded. */
template <class T> static void run_global_max(const tgi_call *call)
{
    if (pixels_folded(call->ctx)) {
        fold_pixels<T>(call, CU_MAX_POOL);
        return;
    }
    cu_map_args<cu_fold_channels_f> a;
    cu_map_begin(&a, call);
    a.f.src = cu_pool_operand(&a.pool, &call->src[0]);
    a.f.kind = CU_MAX_POOL;
    a.f.channels = 0;
    cu_map_go<T>(&a, call, 0);
}

constexpr tgi_variant fold_variant(const char *op, cu_run_fn run_it)
{
    tgi_variant v = cu_variant("cu_reduce", op, accepts, run_it);
    v.scratch_bytes = scratch_bytes;
    return v;
}

#define CU_REDUCE_OF(suffix, T, symbol, op, kind)                                              \
    constexpr tgi_variant cu_##symbol##_##suffix = fold_variant(op, run<T, kind>);
#define CU_REDUCE(...) CU_ELEMENTS(CU_REDUCE_OF, __VA_ARGS__)
CU_FOLD_LIST(CU_REDUCE)
#define CU_GLOBAL_MAX(suffix, T, ...)                                                          \
    constexpr tgi_variant cu_global_max_##suffix =                                             \
        fold_variant("GlobalMaxPool", run_global_max<T>);
CU_ELEMENTS(CU_GLOBAL_MAX, )

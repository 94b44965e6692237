/* cu_window_attention.cu - WindowAttention without its matrix of likenesses: queries of a window pass
 * the keys that they look at a tile at a time, and what a tile adds is scaled by what the next one
 * finds (online softmax). Halves are multiplied on tensor cores (cu_window_mma.cuh), other numbers here.
 *
 * A block has one window, frame and head, and 32 queries (cu_window.cuh). Nothing is rolled, cut into
 * windows or put together in memory. Sums are in float32; a tile of keys gives its place to the same
 * keys' values:
 *
 *     queries  [32][row]     row: a head's channels up to whole fours, and 4 more, so that rows
 *     keys     [32][row]     begin in different banks
 *     shares   [32][36]      of a query's keys in the tile, by queries
 *
 * Sixteen threads have 4 queries: of a tile 2 keys each, of the result 4 channels each, once or twice.
 * They lie in one warp, so largest likeness and shares need no barrier of the block.
 *
 * What bounds it, unverified on a GPU: reads of shared memory, 6 of 16 bytes for 32 multiply-adds of
 * likenesses, 8 for 64 of results. bfloat16 is multiplied here too: shares of 8 bits would be more off
 * than the results may be.
 *
 * Packed: key and value of a token that fills, float [2][a frame's channels]; then the table, int2
 * {y, x} of each token. */
#include "kernels/cuda/cu_conv.cuh"
#include "kernels/cuda/cu_map.cuh"
#include "kernels/cuda/cu_ops.cuh"
#include "kernels/cuda/cu_window_mma.cuh"

extern "C" {
#include "kernels/ops/window_tokens.h"
}

#define CU_SEE_THREADS 128
#define CU_SEE_QUERIES 32
#define CU_SEE_KEYS 32
#define CU_SEE_SHARE 36 /* floats of a row of shares */
#define CU_SEE_MOST 128 /* channels of a head */

struct cu_see_shared {
    float *queries, *keys, *shares;
    int4 *places; /* of the tile's keys: kind, y, x, frame */
};

/* Eight channels of a head from c on: 0 beyond its last. */
template <class T>
__device__ __forceinline__ void cu_see_put(const cu_see_args *a, cu_operand from, int32_t y,
                                           int32_t x, int32_t first, int32_t c, float *to)
{
    float v[8];
    cu_read<T, 8>(a->pool, from, 0, y, x, first + c, v);
#pragma unroll
    for (int k = 0; k < 8; k++)
        if (c + k < a->row)
            to[c + k] = c + k < a->inner ? v[k] : 0.0f;
}

template <class T>
__device__ __forceinline__ void cu_see_load_queries(const cu_see_args *a, const cu_see_block &b,
                                                    float *queries)
{
    const int32_t vecs = (a->row + 7) / 8;
    for (int32_t i = (int32_t)threadIdx.x; i < CU_SEE_QUERIES * vecs; i += CU_SEE_THREADS) {
        const int32_t q = i / vecs, c = i % vecs * 8;
        int32_t y, x;
        float *const to = queries + q * a->row;
        if (cu_see_query(a, b, b.query0 + q, &y, &x))
            cu_see_put<T>(a, a->query, y, x, b.frame * a->channels + b.channel, c, to);
        else
            for (int32_t k = c; k < c + 8 && k < a->row; k++)
                to[k] = 0.0f;
    }
}

/* Keys (kind 0) or values (1) of the tile. */
template <class T>
__device__ __forceinline__ void cu_see_load_keys(const cu_see_args *a, const cu_see_block &b,
                                                 int kind, const cu_see_shared &s)
{
    const int32_t vecs = (a->row + 7) / 8;
    for (int32_t i = (int32_t)threadIdx.x; i < CU_SEE_KEYS * vecs; i += CU_SEE_THREADS) {
        const int32_t key = i / vecs, c = i % vecs * 8;
        const int4 at = s.places[key];
        float *const to = s.keys + key * a->row;
        if (at.x == CU_SEE_TOKEN || at.x == CU_SEE_POOLED) {
            cu_see_put<T>(a, at.x == CU_SEE_TOKEN ? a->token[kind] : a->pool_of[kind], at.y,
                          at.z, at.w * a->channels + b.channel, c, to);
            continue;
        }
        for (int32_t k = c; k < c + 8 && k < a->row; k++)
            to[k] = at.x == CU_SEE_FILL && k < a->inner
                        ? a->fill[kind * a->channels + b.channel + k]
                        : 0.0f;
    }
}

/* Likenesses of this thread's 4 queries with its 2 keys. */
__device__ __forceinline__ void cu_see_compare(const cu_see_args *a, const cu_see_shared &s,
                                               float (&dot)[4][2])
{
    const int q = (int)threadIdx.x / 16 * 4, k = (int)threadIdx.x % 16;
#pragma unroll
    for (int i = 0; i < 4; i++)
        dot[i][0] = dot[i][1] = 0.0f;
#pragma unroll 1
    for (int32_t c = 0; c < a->inner; c += 4) {
        float key[2][4];
        cu_load<float, 4>(s.keys + k * a->row + c, key[0]);
        cu_load<float, 4>(s.keys + (k + 16) * a->row + c, key[1]);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float query[4];
            cu_load<float, 4>(s.queries + (q + i) * a->row + c, query);
#pragma unroll
            for (int j = 0; j < 2; j++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    dot[i][j] = fmaf(query[e], key[j][e], dot[i][j]);
        }
    }
}

/* What a thread has of its 4 queries; of their shares the sum of those that it made itself. */
template <int N> struct cu_see_sums {
    float top[4], all[4], v[4][4 * N];
};

/* Shares of the tile's keys; what there was before is scaled to the new largest likeness. */
template <int N>
__device__ __forceinline__ void cu_see_weigh(const cu_see_args *a, const cu_see_shared &s,
                                             float (&dot)[4][2], cu_see_sums<N> &sums)
{
    const int q = (int)threadIdx.x / 16 * 4, k = (int)threadIdx.x % 16;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float top = sums.top[i], all = 0.0f;
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const bool there = s.places[k + 16 * j].x != CU_SEE_NONE;
            dot[i][j] = there ? dot[i][j] * a->scale : -INFINITY;
            top = dot[i][j] > top ? dot[i][j] : top;
        }
#pragma unroll
        for (int step = 1; step < 16; step *= 2) {
            const float other = __shfl_xor_sync(0xffffffffu, top, step);
            top = other > top ? other : top;
        }
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const float share = expf(dot[i][j] - top);
            s.shares[(q + i) * CU_SEE_SHARE + k + 16 * j] = share;
            all += share;
        }
        const float before = expf(sums.top[i] - top);
        sums.top[i] = top;
        sums.all[i] = sums.all[i] * before + all;
#pragma unroll
        for (int c = 0; c < 4 * N; c++)
            sums.v[i][c] *= before;
    }
}

/* Values of the tile, which lie where the keys were, by their shares. A tile is summed by itself:
 * fills are many equal numbers, whose roundings would all go one way. */
template <int N>
__device__ __forceinline__ void cu_see_add(const cu_see_args *a, const cu_see_shared &s,
                                           cu_see_sums<N> &sums)
{
    const int q = (int)threadIdx.x / 16 * 4, c0 = (int)threadIdx.x % 16 * 4;
#pragma unroll
    for (int n = 0; n < N; n++) {
        float part[4][4] = {{0.0f}};
        if (c0 + 64 * n >= a->row)
            continue;
#pragma unroll 1
        for (int k = 0; k < CU_SEE_KEYS; k += 4) {
            float share[4][4];
#pragma unroll
            for (int i = 0; i < 4; i++)
                cu_load<float, 4>(s.shares + (q + i) * CU_SEE_SHARE + k, share[i]);
#pragma unroll
            for (int j = 0; j < 4; j++) {
                float v[4];
                cu_load<float, 4>(s.keys + (k + j) * a->row + c0 + 64 * n, v);
#pragma unroll
                for (int i = 0; i < 4; i++)
#pragma unroll
                    for (int e = 0; e < 4; e++)
                        part[i][e] = fmaf(share[i][j], v[e], part[i][e]);
            }
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                sums.v[i][4 * n + e] += part[i][e];
    }
}

template <class T, int N>
__device__ __forceinline__ void cu_see_store(const cu_see_args *a, const cu_see_block &b,
                                             const cu_see_sums<N> &sums)
{
    const int q = (int)threadIdx.x / 16 * 4, c0 = (int)threadIdx.x % 16 * 4;
    const int32_t first = b.frame * a->channels + b.channel;
    const bool ends = first + a->inner == a->dst.c; /* the pixel's unused lanes are behind it */
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int32_t y, x;
        float all = sums.all[i];
#pragma unroll
        for (int step = 1; step < 16; step *= 2)
            all += __shfl_xor_sync(0xffffffffu, all, step);
        if (!cu_see_query(a, b, b.query0 + q + i, &y, &x))
            continue;
        T *const to = cu_pixel<T>(a->dst, 0, y, x) + first;
        const float by = 1.0f / all;
#pragma unroll
        for (int n = 0; n < N; n++) {
            const int32_t c = c0 + 64 * n;
#pragma unroll
            for (int e = 0; e < 4; e++)
                if (c + e < a->inner)
                    to[c + e] = cu_element<T>(sums.v[i][4 * n + e] * by);
        }
        for (int32_t c = a->dst.c + c0 / 4; ends && c < a->dst.cb; c += 16)
            to[c - first] = cu_element<T>(0.0f);
    }
}

template <class T, int N>
__global__ void __launch_bounds__(CU_SEE_THREADS, 4) cu_see(const cu_see_args *__restrict__ a)
{
    CU_DYNAMIC_SHARED(float, shared);
    cu_see_block b;
    if (!cu_offered<T>() || !cu_see_block_of<T>(a, &b) || !cu_see_any(a, b))
        return;
    cu_see_shared s;
    s.queries = shared;
    s.keys = s.queries + CU_SEE_QUERIES * a->row;
    s.shares = s.keys + CU_SEE_KEYS * a->row;
    s.places = reinterpret_cast<int4 *>(s.shares + CU_SEE_QUERIES * CU_SEE_SHARE);
    cu_see_sums<N> sums;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        sums.top[i] = -INFINITY;
        sums.all[i] = 0.0f;
#pragma unroll
        for (int c = 0; c < 4 * N; c++)
            sums.v[i][c] = 0.0f;
    }
    cu_see_load_queries<T>(a, b, s.queries);
    for (int32_t key = 0; key < b.keys; key += CU_SEE_KEYS) {
        float dot[4][2];
        __syncthreads(); /* values of the tile before were read */
        if (threadIdx.x < CU_SEE_KEYS)
            s.places[threadIdx.x] = cu_see_key(a, b, key + (int32_t)threadIdx.x);
        __syncthreads();
        cu_see_load_keys<T>(a, b, 0, s);
        __syncthreads();
        cu_see_compare(a, s, dot);
        cu_see_weigh<N>(a, s, dot, sums);
        __syncthreads();
        cu_see_load_keys<T>(a, b, 1, s);
        __syncthreads();
        cu_see_add<N>(a, s, sums);
    }
    cu_see_store<T, N>(a, b, sums);
}

/* ---- Host -------------------------------------------------------------------------------- */

static const window_attrs *attrs_of(const tgi_op_ctx *ctx)
{
    return (const window_attrs *)ctx->attrs;
}

static int64_t channels_of(const tgi_op_ctx *ctx)
{
    return ctx->src[0].dim[1] / tgi_window_asked(attrs_of(ctx));
}

/* No steps behind it: results are stored from registers as they are. */
static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    const window_attrs *a = attrs_of(ctx);
    if (!cu_accepts_image(ctx, lay) || lay->n_epi || channels_of(ctx) / a->heads > CU_SEE_MOST)
        return 0;
    for (int i = 0; i < 6; i++)
        if (ctx->const_src[i] || !cu_fits(&ctx->src[i]) || lay->src_segs[i] < 1)
            return 0;
    return cu_is_const_f32(ctx, 6) && cu_is_const_f32(ctx, 7);
}

static int64_t tokens_of(const window_attrs *a)
{
    return a->window_h * a->window_w + tgi_window_around(a);
}

static size_t fill_bytes(const tgi_op_ctx *ctx)
{
    return (2 * sizeof(float) * (size_t)channels_of(ctx) + 63) / 64 * 64;
}

static size_t bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *)
{
    return fill_bytes(ctx) + sizeof(int2) * (size_t)tokens_of(attrs_of(ctx));
}

/* As tgi_window_list lists them: the window's own, then its places moved, but for those that stay. */
static void pack_table(const window_attrs *a, int2 *out)
{
    const int64_t by = (a->window_h + 1) / 2, bx = (a->window_w + 1) / 2;
    for (int side = -1; side < 4; side++)
        for (int64_t y = 0; y < a->window_h; y++)
            for (int64_t x = 0; x < a->window_w; x++) {
                if (side < 0)
                    *out++ = make_int2((int)y, (int)x);
                else if (!tgi_window_stays(a, side >> 1, side & 1, y, x))
                    *out++ = make_int2((int)(y + (side >> 1 ? -by : by)),
                                       (int)(x + (side & 1 ? -bx : bx)));
            }
}

static void pack(const tgi_op_ctx *ctx, const tgi_layout_hint *, void *dst)
{
    const int64_t c = channels_of(ctx);
    float *fill = (float *)dst;
    memset(dst, 0, fill_bytes(ctx));
    for (int64_t i = 0; i < 2 * c; i++)
        fill[i] = cu_const_at(ctx->const_src[6 + i / c]->data, i % c);
    pack_table(attrs_of(ctx), (int2 *)(void *)((char *)dst + fill_bytes(ctx)));
}

static void fill_shape(const tgi_call *call, cu_see_args *a)
{
    const tgi_op_ctx *ctx = call->ctx;
    const window_attrs *w = attrs_of(ctx);
    int64_t most[3], windows[2];
    cu_most_of(call, most);
    for (int i = 0; i < 2; i++) {
        const tgi_range r = tgi_box_axis(&call->box, TGI_Y + i);
        const int64_t n = ctx->src[0].dim[2 + i], size = i ? w->window_w : w->window_h;
        a->lo[i] = (int32_t)r.lo;
        a->hi[i] = (int32_t)r.hi;
        a->window[i] = (int32_t)size;
        a->size[i] = (int32_t)n;
        a->full[i] = (int32_t)((n + size - 1) / size * size);
        windows[i] = (most[TGI_Y + i] + size - 2) / size + 1; /* it may begin in the last row */
    }
    a->down = (int32_t)windows[0];
    a->across = (int32_t)windows[1];
    a->own = (int32_t)(w->window_h * w->window_w);
    a->around = (int32_t)tokens_of(w);
    a->batches = (a->own + a->queries - 1) / a->queries;
    a->heads = (int32_t)w->heads;
    a->asked = (int32_t)tgi_window_asked(w);
    a->frames = (int32_t)w->frames;
    a->first = (int32_t)w->first;
    a->channels = (int32_t)channels_of(ctx);
    a->inner = a->channels / a->heads;
    a->row = (a->inner + 3) / 4 * 4 + 4;
    a->pooled_across = (int32_t)ctx->src[3].dim[3];
    a->pooled = (int32_t)ctx->src[3].dim[2] * a->pooled_across;
    a->scale = w->scale;
}

template <class T> static void run(const tgi_call *call)
{
    constexpr bool products = cu_dtype<T>() == TG_DTYPE_F16;
    cu_see_args a;
    a.queries = products ? CU_SEEM_QUERIES : CU_SEE_QUERIES;
    fill_shape(call, &a);
    a.fill = (const float *)call->packed;
    a.table = (const int2 *)(const void *)((const char *)call->packed + fill_bytes(call->ctx));
    a.pool.n = a.pool.unused = 0;
    a.query = cu_pool_operand(&a.pool, &call->src[0]);
    for (int i = 0; i < 2; i++) {
        a.token[i] = cu_pool_operand(&a.pool, &call->src[1 + i]);
        a.pool_of[i] = cu_pool_operand(&a.pool, &call->src[3 + i]);
    }
    a.masked = cu_pool_operand(&a.pool, &call->src[5]);
    a.dst = cu_view_of(&call->dst[0]);
    const dim3 grid((unsigned)((int64_t)a.down * a.across * a.asked * a.heads * a.batches));
    if constexpr (products) {
        cu_seem_launch(call, grid, a);
    } else {
        const unsigned shared_bytes =
            (unsigned)sizeof(float) * (unsigned)((CU_SEE_QUERIES + CU_SEE_KEYS) * a.row +
                                                 CU_SEE_QUERIES * CU_SEE_SHARE) +
            (unsigned)(CU_SEE_KEYS * sizeof(int4));
        cu_launch_pool(call, a.inner <= 64 ? cu_see<T, 1> : cu_see<T, 2>, grid,
                       dim3(CU_SEE_THREADS), shared_bytes, &a);
    }
}

CU_PACKED_VARIANT(window_attention, "cu_window_attention", "WindowAttention", accepts, bytes,
                  pack, run)

/* cu_window_mma.cuh - WindowAttention of halves on tensor cores: likenesses and results of 16 queries
 * are products of one warp, 16 x 8 of them each (cu_mma.cuh).
 *
 * Three warps have 48 queries, a little more than a window of 5 x 9. A tile has 32 keys:
 *
 *     queries, keys, values   [48 or 32][row] halves; row: the head's channels up to whole products,
 *                             zeros there, and 8 more, so that eight rows lie in different banks
 *
 * A product's sums lie as the next product wants its factor, so shares go from one to the other in
 * registers, rounded to halves; values are read turned. Four lanes have a query's likenesses.
 *
 * What bounds it, unverified on a GPU: loading. With 128 channels a tile takes 32 + 32 HMMA.16816 a
 * warp and, of each thread, 11 reads of 16 bytes and their way to shared memory; keys and values come
 * from the second level, 16 KiB a tile for 48 queries. */
#ifndef TGI_CU_WINDOW_MMA_CUH
#define TGI_CU_WINDOW_MMA_CUH

#include "kernels/cuda/cu_mma.cuh"
#include "kernels/cuda/cu_window.cuh"

#define CU_SEEM_WARPS 3
#define CU_SEEM_THREADS (32 * CU_SEEM_WARPS)
#define CU_SEEM_QUERIES (16 * CU_SEEM_WARPS)
#define CU_SEEM_KEYS 32

/* DK: products along a head's channels. */
template <int DK> struct cu_seem_shape {
    static const int row = 16 * DK + 8; /* halves */
    static const int vecs = 2 * DK;     /* of 8 channels, in a row */
    static const int places = (CU_SEEM_QUERIES + 2 * CU_SEEM_KEYS) * row * 2; /* bytes before */
    static const int shared_bytes = places + CU_SEEM_KEYS * (int)sizeof(int4);
};

/* What a warp has of its rows g and g + 8. `all`: of the lane's own shares. */
template <int DK> struct cu_seem_sums {
    float top[2], all[2], v[2 * DK][4];
};

/* Channels c to c + 7 of a head; 0 beyond its last. */
__device__ __forceinline__ void cu_seem_put(const cu_see_args *a, cu_operand from, int32_t y,
                                            int32_t x, int32_t first, int32_t c, __half *to)
{
    float v[8];
    cu_read<__half, 8>(a->pool, from, 0, y, x, first + c, v);
#pragma unroll
    for (int k = 0; k < 8; k++)
        v[k] = c + k < a->inner ? v[k] : 0.0f;
    cu_save<__half, 8>(to, v);
}

template <int DK>
__device__ __forceinline__ void cu_seem_load_queries(const cu_see_args *a,
                                                     const cu_see_block &b, __half *queries)
{
    typedef cu_seem_shape<DK> S;
    const float none[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    for (int i = (int)threadIdx.x; i < CU_SEEM_QUERIES * S::vecs; i += CU_SEEM_THREADS) {
        const int q = i / S::vecs, c = i % S::vecs * 8;
        int32_t y, x;
        if (c < a->inner && cu_see_query(a, b, b.query0 + q, &y, &x))
            cu_seem_put(a, a->query, y, x, b.frame * a->channels + b.channel, c,
                        queries + q * S::row + c);
        else
            cu_save<__half, 8>(queries + q * S::row + c, none);
    }
}

/* Keys of the tile, and values behind them. */
template <int DK>
__device__ __forceinline__ void cu_seem_load_tile(const cu_see_args *a, const cu_see_block &b,
                                                  const int4 *places, __half *keys)
{
    typedef cu_seem_shape<DK> S;
    for (int i = (int)threadIdx.x; i < 2 * CU_SEEM_KEYS * S::vecs; i += CU_SEEM_THREADS) {
        const int row = i / S::vecs, c = i % S::vecs * 8, kind = row / CU_SEEM_KEYS;
        const int4 at = places[row % CU_SEEM_KEYS];
        __half *const to = keys + row * S::row + c;
        if (c < a->inner && (at.x == CU_SEE_TOKEN || at.x == CU_SEE_POOLED)) {
            cu_seem_put(a, at.x == CU_SEE_TOKEN ? a->token[kind] : a->pool_of[kind], at.y, at.z,
                        at.w * a->channels + b.channel, c, to);
            continue;
        }
        float v[8];
#pragma unroll
        for (int k = 0; k < 8; k++)
            v[k] = at.x == CU_SEE_FILL && c + k < a->inner
                       ? a->fill[kind * a->channels + b.channel + c + k]
                       : 0.0f;
        cu_save<__half, 8>(to, v);
    }
}

/* Likenesses of 16 queries, the warp's, with the tile's keys: d[n] of keys 8n to 8n + 7. */
template <int DK>
__device__ __forceinline__ void cu_seem_compare(const __half *queries, const __half *keys,
                                                float (&d)[4][4])
{
    typedef cu_seem_shape<DK> S;
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < 4; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            d[n][i] = 0.0f;
#pragma unroll
    for (int k = 0; k < DK; k++) {
        uint32_t query[4]; /* read again for each tile: registers are short */
        cu_ldmatrix4(query, queries + lane % 16 * S::row + k * 16 + (lane >> 4) * 8);
#pragma unroll
        for (int n = 0; n < 4; n += 2) {
            uint32_t r[4];
            cu_ldmatrix4(r, keys + (n * 8 + lane % 8 + (lane >> 4) * 8) * S::row + k * 16 +
                                (lane >> 3 & 1) * 8);
            const uint32_t b0[2] = {r[0], r[1]}, b1[2] = {r[2], r[3]};
            cu_mma16(d[n], query, b0);
            cu_mma16(d[n + 1], query, b1);
        }
    }
}

/* Likenesses become shares; what there was before is scaled. `keys`: how many of the tile there are. */
template <int DK>
__device__ __forceinline__ void cu_seem_weigh(float scale, int32_t keys, float (&d)[4][4],
                                              cu_seem_sums<DK> &s)
{
    const int column = (int)threadIdx.x % 4 * 2;
#pragma unroll
    for (int up = 0; up < 2; up++) {
        float top = s.top[up], all = 0.0f;
#pragma unroll
        for (int n = 0; n < 4; n++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                float &v = d[n][2 * up + e];
                v = n * 8 + column + e < keys ? v * scale : -INFINITY;
                top = v > top ? v : top;
            }
#pragma unroll
        for (int step = 1; step < 4; step *= 2) {
            const float other = __shfl_xor_sync(0xffffffffu, top, step);
            top = other > top ? other : top;
        }
#pragma unroll
        for (int n = 0; n < 4; n++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                float &v = d[n][2 * up + e];
                v = expf(v - top);
                all += v;
            }
        const float before = expf(s.top[up] - top);
        s.top[up] = top;
        s.all[up] = s.all[up] * before + all;
#pragma unroll
        for (int c = 0; c < 2 * DK; c++) {
            s.v[c][2 * up] *= before;
            s.v[c][2 * up + 1] *= before;
        }
    }
}

__device__ __forceinline__ uint32_t cu_seem_pair(float a, float b)
{
    const __half h[2] = {cu_element<__half>(a), cu_element<__half>(b)};
    uint32_t bits;
    memcpy(&bits, h, sizeof bits);
    return bits;
}

/* The tile's values by their shares. */
template <int DK>
__device__ __forceinline__ void cu_seem_add(const float (&d)[4][4], const __half *values,
                                            cu_seem_sums<DK> &s)
{
    typedef cu_seem_shape<DK> S;
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < 2; k++) {
        uint32_t share[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            share[i] =
                cu_seem_pair(d[2 * k + i / 2][i % 2 * 2], d[2 * k + i / 2][i % 2 * 2 + 1]);
#pragma unroll
        for (int c = 0; c < 2 * DK; c += 2) {
            uint32_t r[4];
            cu_ldmatrix4_turned(r, values + (k * 16 + lane % 16) * S::row + c * 8 +
                                       (lane >> 4) * 8);
            const uint32_t b0[2] = {r[0], r[1]}, b1[2] = {r[2], r[3]};
            cu_mma16(s.v[c], share, b0);
            cu_mma16(s.v[c + 1], share, b1);
        }
    }
}

template <int DK>
__device__ __forceinline__ void cu_seem_store(const cu_see_args *a, const cu_see_block &b,
                                              const cu_seem_sums<DK> &s)
{
    const int lane = (int)threadIdx.x % 32, column = lane % 4 * 2;
    const int32_t first = b.frame * a->channels + b.channel;
    const bool ends = first + a->inner == a->dst.c; /* the pixel's unused lanes are behind it */
#pragma unroll
    for (int up = 0; up < 2; up++) {
        int32_t y, x;
        float all = s.all[up];
#pragma unroll
        for (int step = 1; step < 4; step *= 2)
            all += __shfl_xor_sync(0xffffffffu, all, step);
        if (!cu_see_query(a, b, b.query0 + (int)threadIdx.x / 32 * 16 + up * 8 + lane / 4, &y,
                          &x))
            continue;
        __half *const to = cu_pixel<__half>(a->dst, 0, y, x) + first;
        const float by = 1.0f / all;
#pragma unroll
        for (int n = 0; n < 2 * DK; n++) {
            const int32_t c = n * 8 + column;
            const float v[2] = {s.v[n][2 * up] * by, s.v[n][2 * up + 1] * by};
            if (c + 1 < a->inner && first % 2 == 0 && a->dst.cb % 2 == 0)
                cu_save<__half, 2>(to + c, v);
            else
#pragma unroll
                for (int e = 0; e < 2; e++)
                    if (c + e < a->inner)
                        to[c + e] = cu_element<__half>(v[e]);
        }
        for (int32_t c = a->dst.c + lane % 4; ends && c < a->dst.cb; c += 4)
            to[c - first] = cu_element<__half>(0.0f);
    }
}

template <int DK>
__global__ void __launch_bounds__(CU_SEEM_THREADS, 4) cu_seem(const cu_see_args *__restrict__ a)
{
    typedef cu_seem_shape<DK> S;
    CU_DYNAMIC_SHARED(__half, queries);
    cu_see_block b;
    if (!cu_see_block_of<__half>(a, &b) || !cu_see_any(a, b))
        return;
    __half *const keys = queries + CU_SEEM_QUERIES * S::row;
    int4 *const places =
        reinterpret_cast<int4 *>(reinterpret_cast<unsigned char *>(queries) + S::places);
    cu_seem_sums<DK> s;
    cu_seem_load_queries<DK>(a, b, queries);
#pragma unroll
    for (int up = 0; up < 2; up++) {
        s.top[up] = -INFINITY;
        s.all[up] = 0.0f;
    }
#pragma unroll
    for (int c = 0; c < 2 * DK; c++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            s.v[c][i] = 0.0f;
    for (int32_t key = 0; key < b.keys; key += CU_SEEM_KEYS) {
        float d[4][4];
        __syncthreads(); /* the tile before was read */
        if (threadIdx.x < CU_SEEM_KEYS)
            places[threadIdx.x] = cu_see_key(a, b, key + (int32_t)threadIdx.x);
        __syncthreads();
        cu_seem_load_tile<DK>(a, b, places, keys);
        __syncthreads();
        cu_seem_compare<DK>(queries + (int)threadIdx.x / 32 * 16 * S::row, keys, d);
        cu_seem_weigh<DK>(a->scale, b.keys - key, d, s);
        cu_seem_add<DK>(d, keys + CU_SEEM_KEYS * S::row, s);
    }
    cu_seem_store<DK>(a, b, s);
}

/* ---- Host -------------------------------------------------------------------------------- */

inline void cu_seem_launch(const tgi_call *call, dim3 grid, const cu_see_args &a)
{
    const int dk = a.inner <= 32 ? 2 : a.inner <= 64 ? 4 : 8;
    const int bytes = dk == 2   ? cu_seem_shape<2>::shared_bytes
                      : dk == 4 ? cu_seem_shape<4>::shared_bytes
                                : cu_seem_shape<8>::shared_bytes;
    cu_launch_pool(call,
                   dk == 2   ? cu_seem<2>
                   : dk == 4 ? cu_seem<4>
                             : cu_seem<8>,
                   grid, dim3(CU_SEEM_THREADS), (unsigned)bytes, &a);
}

#endif

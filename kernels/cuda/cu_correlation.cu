/* cu_correlation.cu - CorrelationLookup, the lookup of RAFT without its volume.
 *
 * A block has a few pixels of a row and goes through the levels. For each it makes the products of
 * the pixel's features with those at (2 radius + 2)^2 places of the level, in shared memory, and
 * from them the (2 radius + 1)^2 numbers between places; neither leaves the multiprocessor:
 *
 *     features   [pixels][channels]      float32, of the first image, read once
 *     products   [pixels][places]        of the level at hand
 *     results    [pixels][lanes]         of all levels: stored together, in whole vectors
 *
 * Four threads make a product, 8 channels each by turns: 64 bytes of halves lie together. Flow and
 * places are float32 in programs of any type of activations, so all kernels look at the same places
 * (kernels/ops/lookup_place.h).
 *
 * What bounds it, unverified on a GPU: the second level of caches. With 256 channels and radius 4 a
 * pixel multiplies 400 places of 512 bytes; neighbours look at nine tenths of the same. */
#include "kernels/cuda/cu_map.cuh"
#include "kernels/cuda/cu_ops.cuh"

extern "C" {
#include "kernels/ops/lookup_place.h"
}

#define CU_LOOK_THREADS 256
#define CU_LOOK_TEAM 4 /* threads of a product */
#define CU_LOOK_PIXELS 4
#define CU_LOOK_LEVELS (TGI_OP_MAX_SRC - 2)
#define CU_LOOK_SHARED 49152 /* bytes, at most */

struct cu_look_level {
    cu_operand at;
    int32_t h, w;
};

struct cu_look_args {
    int32_t lo[2], hi[2]; /* the box: y, x */
    uint32_t most_y, chunks;
    int32_t pixels;   /* of a block */
    int32_t channels; /* up to whole eights */
    int32_t levels, radius, lanes;
    float scale; /* of a product */
    cu_view dst;
    cu_operand src, flow;
    cu_look_level level[CU_LOOK_LEVELS];
    cu_pool pool;
};

struct cu_look_place {
    int32_t y, x; /* the first place */
    float fy, fx;
    bool far;
};

/* Along one axis of a level: the whole part, and the part behind it; false: nothing is near. */
__device__ __forceinline__ bool cu_look_axis(int32_t at, float flow, int l, int32_t n,
                                             int32_t *whole, float *part)
{
    const float c = ((float)at + flow) / (float)(1 << l), floor_of = floorf(c);
    const float reach = TGI_LOOKUP_RADIUS + 2;
    const bool near = c > -reach && c < (float)n + reach;
    *whole = near ? (int32_t)floor_of : 0;
    *part = near ? c - floor_of : 0.0f;
    return near;
}

__device__ __forceinline__ cu_look_place cu_look_at(const cu_look_args *a, int l, int32_t y,
                                                    int32_t x)
{
    float d[2];
    cu_look_place p;
    cu_read<float, 2>(a->pool, a->flow, 0, y, x, 0, d);
    const bool along = cu_look_axis(x, d[0], l, a->level[l].w, &p.x, &p.fx);
    const bool down = cu_look_axis(y, d[1], l, a->level[l].h, &p.y, &p.fy);
    p.far = !along || !down;
    p.y -= a->radius;
    p.x -= a->radius;
    return p;
}

/* The product with the level's pixel (y,x), which may lie outside; all threads of the team have
 * it. */
template <class T>
__device__ __forceinline__ float cu_look_product(const cu_look_args *a,
                                                 const cu_look_level &level,
                                                 const float *features, int32_t y, int32_t x)
{
    const int member = (int)threadIdx.x % CU_LOOK_TEAM;
    float sum = 0.0f;
    if (y >= 0 && y < level.h && x >= 0 && x < level.w)
        for (int32_t c = member * 8; c < a->channels; c += CU_LOOK_TEAM * 8) {
            float v[8], f[8];
            cu_read<T, 8>(a->pool, level.at, 0, y, x, c, v);
            cu_load<float, 8>(features + c, f);
#pragma unroll
            for (int k = 0; k < 8; k++)
                sum = fmaf(f[k], v[k], sum);
        }
#pragma unroll
    for (int step = 1; step < CU_LOOK_TEAM; step *= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    return sum * a->scale;
}

/* Products of level l for all pixels of the block: x0 is the first, n how many there are. */
template <class T>
__device__ __forceinline__ void cu_look_multiply(const cu_look_args *a, int l, int32_t y,
                                                 int32_t x0, int32_t n, const float *features,
                                                 float *products)
{
    const int32_t side = 2 * a->radius + 2, places = side * side, all = n * places;
    const int32_t teams = CU_LOOK_THREADS / CU_LOOK_TEAM;
    const int32_t rounds = (all + teams - 1) / teams; /* all lanes of a warp go along */
    for (int32_t k = 0; k < rounds; k++) {
        const int32_t i = k * teams + (int32_t)threadIdx.x / CU_LOOK_TEAM;
        const int32_t pixel = i < all ? i / places : 0, place = i - pixel * places;
        const cu_look_place p = cu_look_at(a, l, y, x0 + pixel);
        const bool there = i < all && !p.far;
        const float v = cu_look_product<T>(a, a->level[l], features + pixel * a->channels,
                                           there ? p.y + place / side : -1,
                                           there ? p.x + place % side : -1);
        if (i < all && threadIdx.x % CU_LOOK_TEAM == 0)
            products[i] = v;
    }
}

/* The numbers of level l between its places. */
__device__ __forceinline__ void cu_look_blend(const cu_look_args *a, int l, int32_t y,
                                              int32_t x0, int32_t n, const float *products,
                                              float *results)
{
    const int32_t side = 2 * a->radius + 1, numbers = side * side,
                  places = (side + 1) * (side + 1);
    for (int32_t i = (int32_t)threadIdx.x; i < n * numbers; i += CU_LOOK_THREADS) {
        const int32_t pixel = i / numbers, k = i - pixel * numbers;
        const int32_t dx = k / side, dy = k - dx * side; /* the first moves x */
        const cu_look_place p = cu_look_at(a, l, y, x0 + pixel);
        const float *d = products + pixel * places + dy * (side + 1) + dx;
        const float above = (1.0f - p.fx) * d[0] + p.fx * d[1];
        const float below = (1.0f - p.fx) * d[side + 1] + p.fx * d[side + 2];
        results[pixel * a->lanes + l * numbers + k] = (1.0f - p.fy) * above + p.fy * below;
    }
}

template <class T, int V>
__global__ void __launch_bounds__(CU_LOOK_THREADS, 4)
    cu_look(const cu_look_args *__restrict__ a)
{
    CU_DYNAMIC_SHARED(float, features);
    const int32_t y = a->lo[0] + (int32_t)(blockIdx.x / a->chunks);
    const int32_t x0 = a->lo[1] + (int32_t)(blockIdx.x % a->chunks) * a->pixels;
    if (!cu_offered<T>() || y >= a->hi[0] || x0 >= a->hi[1])
        return;
    const int32_t n = a->hi[1] - x0 < a->pixels ? a->hi[1] - x0 : a->pixels;
    const int32_t side = 2 * a->radius + 2, vecs = a->channels / 8;
    float *const products = features + a->pixels * a->channels;
    float *const results = products + a->pixels * side * side;
    for (int32_t i = (int32_t)threadIdx.x; i < n * vecs; i += CU_LOOK_THREADS) {
        float v[8];
        cu_read<T, 8>(a->pool, a->src, 0, y, x0 + i / vecs, i % vecs * 8, v);
        cu_save<float, 8>(features + i * 8, v);
    }
    for (int l = 0; l < a->levels; l++) {
        __syncthreads(); /* features are there; products of the level before were read */
        cu_look_multiply<T>(a, l, y, x0, n, features, products);
        __syncthreads();
        cu_look_blend(a, l, y, x0, n, products, results);
    }
    __syncthreads();
    const int32_t per = a->lanes / V;
    for (int32_t i = (int32_t)threadIdx.x; i < n * per; i += CU_LOOK_THREADS) {
        const cu_place p = {0, y, x0 + i / per, i % per * V};
        float v[V];
        cu_load<float, V>(results + i * V, v);
        cu_store<T, V>(a->dst, p, v);
    }
}

/* ---- Host -------------------------------------------------------------------------------- */

static int64_t floats_of(const tgi_op_ctx *ctx)
{
    const int64_t side = 2 * ((const lookup_attrs *)ctx->attrs)->radius + 2;
    return (ctx->src[0].dim[1] + 7) / 8 * 8 + side * side + tgi_whole_pixel(ctx->dst[0].dim[1]);
}

/* Pixels of a block; 0: not even one fits. */
static int pixels_of(const tgi_op_ctx *ctx)
{
    int n = CU_LOOK_PIXELS;
    while (n && n * floats_of(ctx) * (int64_t)sizeof(float) > CU_LOOK_SHARED)
        n /= 2;
    return n;
}

/* No steps behind it: results of a pixel are stored from shared memory as they are. */
static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    if (!cu_accepts_image(ctx, lay) || lay->n_epi || !pixels_of(ctx))
        return 0;
    for (int i = 0; i < ctx->n_src; i++)
        if (ctx->const_src[i] || !cu_fits(&ctx->src[i]) || lay->src_segs[i] < 1)
            return 0;
    return 1;
}

template <class T> static void run(const tgi_call *call)
{
    const tgi_op_ctx *ctx = call->ctx;
    int64_t most[3];
    cu_look_args a;
    cu_most_of(call, most);
    a.pool.n = a.pool.unused = 0;
    a.dst = cu_view_of(&call->dst[0]);
    a.src = cu_pool_operand(&a.pool, &call->src[0]);
    a.flow = cu_pool_operand(&a.pool, &call->src[1]);
    a.levels = ctx->n_src - 2;
    memset(a.level, 0, sizeof a.level);
    for (int l = 0; l < a.levels; l++) {
        const cu_operand at = cu_pool_operand(&a.pool, &call->src[2 + l]);
        a.level[l] =
            cu_look_level{at, (int32_t)ctx->src[2 + l].dim[2], (int32_t)ctx->src[2 + l].dim[3]};
    }
    for (int i = 0; i < 2; i++) {
        const tgi_range r = tgi_box_axis(&call->box, TGI_Y + i);
        a.lo[i] = (int32_t)r.lo;
        a.hi[i] = (int32_t)r.hi;
    }
    a.pixels = pixels_of(ctx);
    a.most_y = (uint32_t)most[TGI_Y];
    a.chunks = (uint32_t)((most[TGI_X] + a.pixels - 1) / a.pixels);
    a.channels = (int32_t)((ctx->src[0].dim[1] + 7) / 8 * 8);
    a.radius = (int32_t)((const lookup_attrs *)ctx->attrs)->radius;
    a.lanes = call->dst[0].cb;
    a.scale = (float)(1 / sqrt((double)ctx->src[0].dim[1]));
    cu_launch_pool(call, a.lanes % 8 ? cu_look<T, 1> : cu_look<T, 8>,
                   dim3((unsigned)(a.chunks * a.most_y)), dim3(CU_LOOK_THREADS),
                   (unsigned)(a.pixels * floats_of(ctx) * (int64_t)sizeof(float)), &a);
}

CU_VARIANT(correlation_lookup, "cu_correlation_lookup", "CorrelationLookup", accepts, run)

/* cu_norm.cu - NormNumbers, NormApply, InstanceNormalization, GroupNormalization,
 * BatchNormalization and GlobalAveragePool: statistics of channels, and what is done with them.
 *
 * Moments are those of kernels/granule.h to the bit (64-bit numbers, the order of additions
 * fixed by image coordinates), in three kernels:
 *
 *   granules   a block per granule of 64 x 64 pixels and up to 32 channels: rows by the
 *              threads, left to right; then a thread per channel merges them from the top
 *   tree       a block per channel merges the granules of each column in pairs, in place, and
 *              then the columns
 *   numbers    a thread per channel (or all of a group): mean and factor, as floats
 *
 * then every pixel is ((x - high) - low) * factor + shift in float32, high + low being the
 * mean: x - high is exact where cancellation threatens. The numbers of a norm are float32 in
 * programs of any type of activations (tgi_op.wide). */
#include "kernels/cuda/cu_map.cuh"
#include "kernels/cuda/cu_moments.cuh"
#include "kernels/cuda/cu_ops.cuh"

extern "C" {
#include "kernels/granule.h"
#include "kernels/ops/op_shared.h"
}

struct cu_granule_args {
    tgi_moments *leaf;      /* [c][column][granule of it] */
    int32_t c, ch;          /* channels; those of a block, a power of two */
    int32_t dim[3], gy, gx; /* z, y, x; granules down and across */
    int32_t per_c, column;  /* granules of a channel, of a column */
    int32_t is_volume;      /* columns go along z, not y */
    int32_t idle;           /* 1: a band without pixels */
    cu_operand src;
    cu_pool pool;
};

/* tgi_moments_merge. */
__device__ __forceinline__ tgi_moments cu_merge(const tgi_moments &a, const tgi_moments &b)
{
    const double n = a.n + b.n, d = b.sum * a.n - a.sum * b.n;
    tgi_moments m;
    m.n = n;
    m.sum = a.sum + b.sum;
    m.m2 = a.m2 + b.m2 + d * d / (a.n * b.n * n);
    return m;
}

template <class T>
__global__ void __launch_bounds__(256, 4) cu_granules(const cu_granule_args *__restrict__ a)
{
    CU_DYNAMIC_SHARED(double, shared); /* [row][channel] sums, then squares */
    if (a->idle)
        return;
    const int32_t chunks = (a->c + a->ch - 1) / a->ch;
    const int32_t granule = (int32_t)(blockIdx.x / (uint32_t)chunks);
    const int32_t in_plane = granule % (a->gy * a->gx), z = granule / (a->gy * a->gx);
    const int32_t y0 = in_plane / a->gx * TGI_GRANULE, x0 = in_plane % a->gx * TGI_GRANULE;
    const int32_t rows = a->dim[1] - y0 < TGI_GRANULE ? a->dim[1] - y0 : TGI_GRANULE;
    const int32_t cols = a->dim[2] - x0 < TGI_GRANULE ? a->dim[2] - x0 : TGI_GRANULE;
    const int32_t lane = (int32_t)threadIdx.x % a->ch;
    const int32_t c = (int32_t)(blockIdx.x % (uint32_t)chunks) * a->ch + lane;
    double *const squares = shared + TGI_GRANULE * a->ch;
    if (c < a->c) {
        const cu_view *v = &a->pool.item[a->src.first].view;
        int32_t in = c;
        for (; in >= v->c; v++)
            in -= v->c;
        for (int32_t r = (int32_t)threadIdx.x / a->ch; r < rows;
             r += (int32_t)blockDim.x / a->ch)
            cu_row_moments<T>(cu_pixel<T>(*v, z, y0 + r, x0) + in, v->cb, cols,
                              &shared[r * a->ch + lane], &squares[r * a->ch + lane]);
    }
    __syncthreads();
    if ((int32_t)threadIdx.x >= a->ch || c >= a->c)
        return;
    tgi_moments m = {(double)cols, shared[lane], squares[lane]};
    for (int32_t r = 1; r < rows; r++) {
        const tgi_moments row = {(double)cols, shared[r * a->ch + lane],
                                 squares[r * a->ch + lane]};
        m = cu_merge(m, row);
    }
    const int32_t place = a->is_volume ? in_plane * a->column + z
                                       : in_plane % a->gx * a->column + in_plane / a->gx;
    a->leaf[(int64_t)c * a->per_c + place] = m;
}

/* 0 with 1, 2 with 3, ...; then pairs of those: in each column, then of the columns' results. The
 * result is leaf 0 of the channel. */
__global__ void __launch_bounds__(256, 4) cu_granule_tree(const cu_granule_args *__restrict__ a)
{
    tgi_moments *leaf = a->leaf + (int64_t)blockIdx.x * a->per_c;
    if (a->idle)
        return;
    const int64_t n = a->column, columns = a->per_c / n;
    for (int64_t step = 1; step < n; step *= 2) {
        const int64_t pairs = (n + step - 1) / (2 * step); /* of a column */
        for (int64_t i = threadIdx.x; i < pairs * columns; i += blockDim.x) {
            tgi_moments *const at = leaf + i / pairs * n + i % pairs * 2 * step;
            at[0] = cu_merge(at[0], at[step]);
        }
        __syncthreads();
    }
    for (int64_t step = 1; step < columns; step *= 2) {
        for (int64_t i = (int64_t)threadIdx.x * 2 * step; i + step < columns;
             i += (int64_t)blockDim.x * 2 * step)
            leaf[i * n] = cu_merge(leaf[i * n], leaf[(i + step) * n]);
        __syncthreads();
    }
}

/* ---- Host: statistics -------------------------------------------------------------------- */

static int64_t granules_of(const tgi_desc *s)
{
    return tgi_desc_axis(s, TGI_Z) * tgi_ceil_div(tgi_desc_axis(s, TGI_Y), TGI_GRANULE) *
           tgi_ceil_div(tgi_desc_axis(s, TGI_X), TGI_GRANULE);
}

static size_t leaf_bytes(const tgi_op_ctx *ctx)
{
    return sizeof(tgi_moments) *
           (size_t)tgi_align_up(ctx->src[0].dim[1] * granules_of(&ctx->src[0]), 8);
}

static int accepts_whole(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return !ctx->const_src[0] && cu_accepts_image(ctx, lay) &&
           granules_of(&ctx->src[0]) * ctx->src[0].dim[1] < (int64_t)1 << 31;
}

/* Moments of channel c of source 0 at leaf[c * granules]. */
template <class T> static void launch_moments(const tgi_call *call, tgi_moments *leaf)
{
    const tgi_desc *s = &call->ctx->src[0];
    cu_granule_args a;
    a.pool.n = a.pool.unused = 0;
    a.src = cu_pool_operand(&a.pool, &call->src[0]);
    a.leaf = leaf;
    a.c = (int32_t)s->dim[1];
    for (a.ch = 1; a.ch < a.c && a.ch < 32;)
        a.ch *= 2;
    for (int i = 0; i < 3; i++)
        a.dim[i] = (int32_t)tgi_desc_axis(s, i);
    a.gy = (a.dim[1] + TGI_GRANULE - 1) / TGI_GRANULE;
    a.gx = (a.dim[2] + TGI_GRANULE - 1) / TGI_GRANULE;
    a.per_c = (int32_t)granules_of(s);
    a.is_volume = s->rank == 5;
    a.column = a.is_volume ? a.dim[0] : a.gy;
    a.idle = tgi_box_empty(&call->box);
    const unsigned chunks = (unsigned)((a.c + a.ch - 1) / a.ch);
    cu_launch_pool(call, cu_granules<T>, dim3((unsigned)a.per_c * chunks), dim3(256),
                   (unsigned)(2 * sizeof(double) * TGI_GRANULE * (size_t)a.ch), &a);
    cu_launch_pool(call, cu_granule_tree, dim3((unsigned)a.c), dim3(256), 0, &a);
}

/* ---- Average ----------------------------------------------------------------------------- */

struct cu_mean_f {
    const tgi_moments *leaf;
    int32_t per_c, channels;
    template <class T, int V>
    __device__ __forceinline__ void at(const cu_pool &pool, const cu_place &p,
                                       float (&v)[V]) const
    {
        (void)pool;
#pragma unroll
        for (int i = 0; i < V; i++) {
            v[i] = 0.0f;
            if (p.c + i < channels) {
                const tgi_moments &m = leaf[(int64_t)(p.c + i) * per_c];
                v[i] = (float)(m.sum / m.n);
            }
        }
    }
};

static size_t average_scratch(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int64_t width,
                              int threads)
{
    (void)lay, (void)width, (void)threads;
    return leaf_bytes(ctx);
}

template <class T> static void run_average(const tgi_call *call)
{
    cu_map_args<cu_mean_f> a;
    launch_moments<T>(call, (tgi_moments *)call->scratch);
    cu_map_begin(&a, call);
    a.f.leaf = (const tgi_moments *)call->scratch;
    a.f.per_c = (int32_t)granules_of(&call->ctx->src[0]);
    a.f.channels = (int32_t)call->dst[0].c;
    cu_map_go<T>(&a, call, 0);
}

/* ---- Normalisation ----------------------------------------------------------------------- */

/* V numbers of channels from c on; `stride`: of all of them that are one behind the other. */
template <int V>
__device__ __forceinline__ void cu_numbers_of(const float *number, int32_t stride, int32_t k,
                                              int32_t c, float (&v)[V])
{
    const float *at = number + (int64_t)k * stride + c;
    if (stride % V == 0) {
        cu_load<float, V>(at, v);
        return;
    }
#pragma unroll
    for (int i = 0; i < V; i++)
        v[i] = c + i < stride ? at[i] : 0.0f;
}

/* Four numbers per channel: [4][stride]. */
struct cu_norm_f {
    cu_operand src;
    const float *number;
    int32_t stride, unused;
    template <class T, int V>
    __device__ __forceinline__ void at(const cu_pool &pool, const cu_place &p,
                                       float (&v)[V]) const
    {
        float high[V], low[V], factor[V], shift[V];
        cu_read<T, V>(pool, src, p.z, p.y, p.x, p.c, v);
        cu_numbers_of<V>(number, stride, 0, p.c, high);
        cu_numbers_of<V>(number, stride, 1, p.c, low);
        cu_numbers_of<V>(number, stride, 2, p.c, factor);
        cu_numbers_of<V>(number, stride, 3, p.c, shift);
#pragma unroll
        for (int i = 0; i < V; i++)
            v[i] = ((v[i] - high[i]) - low[i]) * factor[i] + shift[i];
    }
};

struct cu_numbers_args {
    const tgi_moments *leaf;
    const float *scale;              /* [2][padded]: scale, shift */
    float *number;                   /* [4][c], then zeros */
    int32_t per_c, c, padded, group; /* channels normalised together */
    int32_t lanes, idle;             /* floats of `number`; 1: a band without pixels */
    double epsilon;
};

/* As the reference of NormNumbers. */
__global__ void __launch_bounds__(256, 4) cu_norm_numbers(const cu_numbers_args *__restrict__ a)
{
    const int32_t c = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    if (a->idle)
        return;
    if (c >= a->c) {
        if (c - a->c < a->lanes - 4 * a->c)
            a->number[3 * a->c + c] = 0.0f;
        return;
    }
    const int32_t first = c / a->group * a->group;
    double means = 0, within = 0, between = 0;
    for (int32_t k = first; k < first + a->group; k++) {
        const tgi_moments &m = a->leaf[(int64_t)k * a->per_c];
        means += m.sum / m.n;
        within += m.m2 / m.n;
    }
    const double mean = means / (double)a->group;
    for (int32_t k = first; k < first + a->group; k++) {
        const tgi_moments &m = a->leaf[(int64_t)k * a->per_c];
        const double d = m.sum / m.n - mean;
        between += d * d;
    }
    const double variance = (within + between) / (double)a->group;
    const float high = (float)mean;
    a->number[c] = high;
    a->number[a->c + c] = (float)(mean - (double)high);
    a->number[2 * a->c + c] = (float)((double)a->scale[c] / sqrt(variance + a->epsilon));
    a->number[3 * a->c + c] = a->scale[a->padded + c];
}

static int64_t padded_of(const tgi_op_ctx *ctx)
{
    return tgi_align_up(ctx->src[0].dim[1], 16);
}

template <class T>
static void launch_norm(const tgi_call *call, const float *number, int64_t stride)
{
    cu_map_args<cu_norm_f> a;
    cu_map_begin(&a, call);
    a.f.src = cu_pool_operand(&a.pool, &call->src[0]);
    a.f.number = number;
    a.f.stride = (int32_t)stride;
    a.f.unused = 0;
    cu_map_go<T>(&a, call, 0);
}

/* ---- The numbers of a norm --------------------------------------------------------------- */

static int accepts_numbers(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return accepts_whole(ctx, lay) && !lay->n_epi && ctx->src[0].dim[1] < CU_MOST_CHANNELS / 4;
}

static int64_t group_of(const tgi_op_ctx *ctx, int64_t groups)
{
    return groups ? ctx->src[0].dim[1] / groups : 1;
}

static size_t packed_scales(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    (void)lay;
    return 2 * sizeof(float) * (size_t)padded_of(ctx);
}

/* Scale and shift of each channel; a constant of fewer elements has one per group. */
static void pack_scales(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, void *dst)
{
    const int64_t c = ctx->src[0].dim[1], padded = padded_of(ctx);
    float *out = (float *)dst;
    (void)lay;
    for (int k = 0; k < 2; k++) {
        const tgi_constant *from = ctx->const_src[1 + k];
        const int64_t each = c / tgi_const_count(from);
        for (int64_t i = 0; i < padded; i++)
            out[k * padded + i] = i < c ? (float)tgi_num_at(from, i / each) : 0.0f;
    }
}

/* Of `groups` groups of channels, 0: of each by itself; `lanes` floats at `number`. */
template <class T>
static void launch_numbers(const tgi_call *call, int64_t groups, float epsilon, float *number,
                           int64_t lanes)
{
    cu_numbers_args n;
    tgi_moments *leaf = (tgi_moments *)call->scratch;
    launch_moments<T>(call, leaf);
    n.leaf = leaf;
    n.scale = (const float *)call->packed;
    n.number = number;
    n.per_c = (int32_t)granules_of(&call->ctx->src[0]);
    n.c = (int32_t)call->ctx->src[0].dim[1];
    n.padded = (int32_t)padded_of(call->ctx);
    n.group = (int32_t)group_of(call->ctx, groups);
    n.lanes = (int32_t)lanes;
    n.idle = tgi_box_empty(&call->box);
    n.epsilon = (double)epsilon;
    cu_launch(call, cu_norm_numbers, dim3((unsigned)(n.c + 8 + 255) / 256), dim3(256), 0, n);
}

/* Float 0 of an image of one pixel (tgi_op.wide). */
static float *floats_of(const tgi_view *v)
{
    return (float *)(void *)v->base - v->x0 * v->cb;
}

template <class T> static void run_numbers(const tgi_call *call)
{
    const norm_numbers_attrs *a = (const norm_numbers_attrs *)call->ctx->attrs;
    launch_numbers<T>(call, a->groups, a->epsilon, floats_of(&call->dst[0]), call->dst[0].cb);
}

static int accepts_apply(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return !ctx->const_src[0] && !ctx->const_src[1] && lay->src_segs[1] == 1 &&
           cu_accepts_image(ctx, lay);
}

template <class T> static void run_apply(const tgi_call *call)
{
    launch_norm<T>(call, floats_of(&call->src[1].seg[0]), call->ctx->src[0].dim[1]);
}

/* Both, for samples of arrays. */
static size_t norm_scratch(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int64_t width,
                           int threads)
{
    (void)lay, (void)width, (void)threads;
    return leaf_bytes(ctx) + 4 * sizeof(float) * (size_t)padded_of(ctx);
}

template <class T> static void run_norm(const tgi_call *call, int64_t groups, float epsilon)
{
    float *number = (float *)((char *)call->scratch + leaf_bytes(call->ctx));
    const int64_t c = call->ctx->src[0].dim[1];
    launch_numbers<T>(call, groups, epsilon, number, 4 * c);
    launch_norm<T>(call, number, c);
}

template <class T> static void run_instance(const tgi_call *call)
{
    run_norm<T>(call, 0, ((const instance_norm_attrs *)call->ctx->attrs)->epsilon);
}
template <class T> static void run_group(const tgi_call *call)
{
    const gn_attrs *a = (const gn_attrs *)call->ctx->attrs;
    run_norm<T>(call, a->groups, a->epsilon);
}

/* ---- Batches: constant statistics -------------------------------------------------------- */

static int accepts_batch(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return !ctx->const_src[0] && ctx->n_dst == 1 && cu_accepts_image(ctx, lay) &&
           !((const bn_attrs *)ctx->attrs)->training_mode;
}

static size_t packed_numbers(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    (void)lay;
    return 4 * sizeof(float) * (size_t)padded_of(ctx);
}

static void pack_numbers(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, void *dst)
{
    const int64_t c = ctx->dst[0].dim[1], padded = padded_of(ctx);
    const double epsilon = (double)((const bn_attrs *)ctx->attrs)->epsilon;
    float *out = (float *)dst;
    (void)lay;
    memset(out, 0, packed_numbers(ctx, lay));
    for (int64_t i = 0; i < c; i++) {
        const double mean = tgi_num_at(ctx->const_src[3], i),
                     var = tgi_num_at(ctx->const_src[4], i);
        out[i] = (float)mean;
        out[padded + i] = (float)(mean - (double)out[i]);
        out[2 * padded + i] = (float)(tgi_num_at(ctx->const_src[1], i) / sqrt(var + epsilon));
        out[3 * padded + i] = (float)tgi_num_at(ctx->const_src[2], i);
    }
}

template <class T> static void run_batch(const tgi_call *call)
{
    launch_norm<T>(call, (const float *)call->packed, padded_of(call->ctx));
}

/* ---- The variants ------------------------------------------------------------------------ */

typedef size_t (*cu_bytes_fn)(const tgi_op_ctx *ctx, const tgi_layout_hint *lay);
typedef void (*cu_pack_fn)(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, void *dst);
typedef size_t (*cu_scratch_fn)(const tgi_op_ctx *ctx, const tgi_layout_hint *lay,
                                int64_t width, int threads);

constexpr tgi_variant norm_variant(const char *name, const char *op, cu_accepts_fn accepts,
                                   cu_bytes_fn bytes, cu_pack_fn pack, cu_scratch_fn scratch,
                                   cu_run_fn run)
{
    tgi_variant v = cu_variant(name, op, accepts, run);
    v.packed_bytes = bytes;
    v.pack = pack;
    v.scratch_bytes = scratch;
    return v;
}

#define CU_NORM_OF(suffix, T, symbol, name, op, accepts, bytes, pack, scratch, run)            \
    constexpr tgi_variant cu_##symbol##_##suffix =                                             \
        norm_variant(name, op, accepts, bytes, pack, scratch, run<T>);
#define CU_NORM(...) CU_ELEMENTS(CU_NORM_OF, __VA_ARGS__)
CU_NORM(norm_numbers, "cu_norm_numbers", "NormNumbers", accepts_numbers, packed_scales,
        pack_scales, average_scratch, run_numbers)
CU_NORM(instance_norm, "cu_instance_norm", "InstanceNormalization", accepts_whole,
        packed_scales, pack_scales, norm_scratch, run_instance)
CU_NORM(group_norm, "cu_group_norm", "GroupNormalization", accepts_whole, packed_scales,
        pack_scales, norm_scratch, run_group)
CU_NORM(norm_apply, "cu_norm_apply", "NormApply", accepts_apply, NULL, NULL, NULL, run_apply)
CU_NORM(batch_norm, "cu_batch_norm", "BatchNormalization", accepts_batch, packed_numbers,
        pack_numbers, NULL, run_batch)
CU_NORM(global_average, "cu_global_average", "GlobalAveragePool", accepts_whole, NULL, NULL,
        average_scratch, run_average)

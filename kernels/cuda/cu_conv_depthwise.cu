/* cu_conv_depthwise.cu - convolutions of each channel by itself: bound by memory, so the
 * kernels are about reading pixels few times. Sums in float32, taps in order.
 *
 * depthwise        anything, transposed too: a thread has 8 channels of a pixel
 * depthwise_row    stride and dilation 1, square kernels of 3, 5 or 7, whole vectors of lanes:
 * 8 channels of 4 neighbouring pixels; the K + 3 columns of a row are read once for the 4 K
 * taps on them, each row's weights once
 *
 * Packed: bias, then weights [tap][out_c] in float32, out_c up to whole pixels. */
#include "kernels/cuda/cu_conv.cuh"
#include "kernels/cuda/cu_conv_list.cuh"
#include "kernels/cuda/cu_map.cuh"

namespace
{

struct depthwise {
    cu_conv_geom g;
    cu_operand src;
    int32_t lanes, unused; /* of a pixel of weights */
    const float *bias, *weights;

    template <class T, int V>
    __device__ void at(const cu_pool &pool, const cu_place &p, float (&v)[V]) const
    {
        const float *w = weights + p.c;
        cu_load<float, V>(bias + p.c, v);
        for (int32_t kz = 0; kz < g.k[0]; kz++)
            for (int32_t ky = 0; ky < g.k[1]; ky++)
                for (int32_t kx = 0; kx < g.k[2]; kx++, w += lanes) {
                    int32_t z, y, x;
                    if (!cu_tap_at(g, TGI_Z, p.z, kz, &z) ||
                        !cu_tap_at(g, TGI_Y, p.y, ky, &y) || !cu_tap_at(g, TGI_X, p.x, kx, &x))
                        continue;
                    float in[V], weight[V];
                    cu_read<T, V>(pool, src, z, y, x, p.c, in);
                    cu_load<float, V>(w, weight);
#pragma unroll
                    for (int i = 0; i < V; i++)
                        v[i] = fmaf(in[i], weight[i], v[i]);
                }
    }
};

/* ---- Four pixels of a row ---------------------------------------------------------------- */

const int row_pixels = 4;
const int row_threads = 128; /* they take many registers: small blocks fill a multiprocessor */

struct row_args {
    cu_cells cells; /* along x in fours */
    cu_view dst;
    cu_epi epi;
    cu_conv_geom g;
    cu_operand src;
    int32_t lanes, hi_x; /* of weights; end of the box */
    const float *bias, *weights;
    cu_pool pool;
};

/* The segment that has channel *c, which becomes a lane of it. */
__device__ __forceinline__ const cu_view *segment_of(const cu_pool &pool, cu_operand o,
                                                     int32_t *c)
{
    int s = 0;
    while (s + 1 < o.n && *c >= pool.item[o.first + s].view.c)
        *c -= pool.item[o.first + s++].view.c;
    return &pool.item[o.first + s].view;
}

/* One row of taps on pixels x0 to x0 + 3, whose first input column is x; none is read from
 * `width` on. */
template <class T, int K>
__device__ __forceinline__ void add_row(const T *row, int32_t x, int32_t width, int32_t cb,
                                        const float *weights, int32_t lanes,
                                        float (&v)[row_pixels][8])
{
    float w[K][8];
#pragma unroll
    for (int k = 0; k < K; k++)
        cu_load<float, 8>(weights + k * lanes, w[k]);
#pragma unroll
    for (int i = 0; i < row_pixels + K - 1; i++) {
        float in[8];
        if ((uint32_t)(x + i) < (uint32_t)width) {
            cu_load<T, 8>(row + (int64_t)(x + i) * cb, in);
        } else {
#pragma unroll
            for (int c = 0; c < 8; c++)
                in[c] = 0.0f;
        }
#pragma unroll
        for (int k = 0; k < K; k++)
            if (i - k >= 0 && i - k < row_pixels)
#pragma unroll
                for (int c = 0; c < 8; c++)
                    v[i - k < 0 || i - k >= row_pixels ? 0 : i - k][c] = fmaf(
                        in[c], w[k][c], v[i - k < 0 || i - k >= row_pixels ? 0 : i - k][c]);
    }
}

template <class T, int K>
__global__ void __launch_bounds__(row_threads, 2) depthwise_row(const row_args *__restrict__ a)
{
    cu_place p;
    float v[row_pixels][8];
    if (!cu_place_of<8>(a->cells, &p))
        return;
    p.x = a->cells.lo[2] + (p.x - a->cells.lo[2]) * row_pixels;
    int32_t lane = p.c;
    /* The last four may reach over the box: no further than it needs. */
    const int32_t needed = a->hi_x - a->g.p[2] + K - 1;
    const int32_t width = needed < a->g.in[2] ? needed : a->g.in[2];
    const cu_view &src = *segment_of(a->pool, a->src, &lane);
#pragma unroll
    for (int j = 0; j < row_pixels; j++)
        cu_load<float, 8>(a->bias + p.c, v[j]);
    for (int32_t kz = 0; kz < a->g.k[0]; kz++)
        for (int32_t ky = 0; ky < K; ky++) {
            const int32_t z = p.z - a->g.p[0] + kz, y = p.y - a->g.p[1] + ky;
            if (z < 0 || z >= a->g.in[0] || y < 0 || y >= a->g.in[1])
                continue;
            const T *row = cu_pixel<T>(src, z, y, 0) + lane;
            add_row<T, K>(row, p.x - a->g.p[2], width, src.cb,
                          a->weights + (int64_t)(kz * K + ky) * K * a->lanes + p.c, a->lanes,
                          v);
        }
#pragma unroll 1
    for (int j = 0; j < row_pixels && p.x < a->hi_x; j++, p.x++) {
        cu_epilogue<T, 8>(a->pool, a->epi, p, v[0]);
        cu_store<T, 8>(a->dst, p, v[0]);
#pragma unroll
        for (int i = 0; i + 1 < row_pixels; i++) /* not indexed: they stay in registers */
#pragma unroll
            for (int c = 0; c < 8; c++)
                v[i][c] = v[i + 1][c];
    }
}

/* ---- Host -------------------------------------------------------------------------------- */

int accepts_any(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int transposed)
{
    tgi_geom g;
    return cu_conv_accepts(ctx, lay, transposed, &g) && !lay->n_doubled && g.groups == g.in_c &&
           g.out_c == g.in_c;
}
template <int TR> int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return accepts_any(ctx, lay, TR);
}

int accepts_row(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    tgi_geom g;
    if (!accepts_any(ctx, lay, 0) || !cu_conv_geometry(ctx, 0, &g))
        return 0;
    for (int s = 0; s + 1 < lay->src_segs[0]; s++)
        if (lay->seg_c[0][s] % 8)
            return 0;
    for (int i = 0; i < 3; i++)
        if (g.s[i] != 1 || g.d[i] != 1)
            return 0;
    return cu_conv_lanes(&g) >= 8 && lay->seg_c[0][lay->src_segs[0] - 1] > 4 &&
           g.k[TGI_Y] == g.k[TGI_X] && (g.k[TGI_X] == 3 || g.k[TGI_X] == 5 || g.k[TGI_X] == 7);
}

template <int TR> size_t bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *)
{
    tgi_geom g;
    if (!cu_conv_geometry(ctx, TR, &g))
        return 0;
    return sizeof(float) * (size_t)(cu_conv_lanes(&g) * (1 + cu_conv_taps(&g)));
}

template <int TR> void pack(const tgi_op_ctx *ctx, const tgi_layout_hint *, void *dst)
{
    tgi_geom g;
    if (!cu_conv_geometry(ctx, TR, &g))
        return; /* `accepts` said no */
    const cu_conv_weights w = {ctx->const_src[1]->data, &g, TR};
    float *out = cu_conv_pack_bias(ctx, &g, (float *)dst);
    for (int64_t t = 0; t < cu_conv_taps(&g); t++)
        for (int64_t oc = 0; oc < cu_conv_lanes(&g); oc++)
            *out++ = oc < g.out_c ? w.at(oc, oc, t) : 0.0f;
}

template <class T, int TR> void run(const tgi_call *call)
{
    tgi_geom g;
    cu_map_args<depthwise> a;
    if (!cu_conv_geometry(call->ctx, TR, &g))
        return; /* `accepts` said no */
    cu_map_begin(&a, call);
    a.f.g = cu_conv_geom_of(&g, TR);
    a.f.src = cu_pool_operand(&a.pool, &call->src[0]);
    a.f.lanes = (int32_t)cu_conv_lanes(&g);
    a.f.unused = 0;
    a.f.bias = (const float *)call->packed;
    a.f.weights = a.f.bias + a.f.lanes;
    cu_map_go<T>(&a, call, 0);
}

template <class T> void run_row(const tgi_call *call)
{
    tgi_geom g;
    row_args a;
    cu_shape shape;
    if (!cu_conv_geometry(call->ctx, 0, &g))
        return; /* `accepts` said no */
    a.pool.n = a.pool.unused = 0;
    a.epi = cu_pool_epilogue(&a.pool, call);
    a.src = cu_pool_operand(&a.pool, &call->src[0]);
    a.dst = cu_view_of(&call->dst[0]);
    a.g = cu_conv_geom_of(&g, 0);
    a.lanes = (int32_t)cu_conv_lanes(&g);
    a.bias = (const float *)call->packed;
    a.weights = a.bias + a.lanes;
    tgi_call fours = *call; /* the cells count fours of pixels */
    tgi_range *x = &fours.box.ax[fours.box.rank - 1];
    const int64_t most = fours.most[fours.box.rank - 1];
    a.hi_x = (int32_t)x->hi;
    x->hi = x->lo + (x->hi - x->lo + row_pixels - 1) / row_pixels;
    fours.most[fours.box.rank - 1] = (most + row_pixels - 1) / row_pixels;
    a.cells = cu_cells_of(&fours, a.dst.cb / 8, &shape);
    if (shape.block.x > row_threads) {
        const uint32_t rows = shape.grid.x / a.cells.chunks;
        const uint32_t work = a.cells.chunks * shape.block.x;
        a.cells.chunks = (work + row_threads - 1) / row_threads;
        shape.block = dim3(row_threads);
        shape.grid = dim3(rows * a.cells.chunks);
    }
    cu_launch_pool(call,
                   g.k[TGI_X] == 3   ? depthwise_row<T, 3>
                   : g.k[TGI_X] == 5 ? depthwise_row<T, 5>
                                     : depthwise_row<T, 7>,
                   shape.grid, shape.block, 0, &a);
}

/* In units of its own arithmetic, which is little: as long as its memory takes. */
double cost(const tgi_op_ctx *, const tgi_layout_hint *)
{
    return 1;
}
double cost_row(const tgi_op_ctx *, const tgi_layout_hint *)
{
    return 0.5;
}

template <class T, int TR> constexpr tgi_variant any_variant(const char *name, const char *op)
{
    tgi_variant v = cu_variant(name, op, accepts<TR>, run<T, TR>);
    v.packed_bytes = bytes<TR>;
    v.pack = pack<TR>;
    v.cost = cost;
    return v;
}
template <class T> constexpr tgi_variant row_variant()
{
    tgi_variant v = cu_variant("conv_depthwise_row", "Conv", accepts_row, run_row<T>);
    v.packed_bytes = bytes<0>;
    v.pack = pack<0>;
    v.cost = cost_row;
    return v;
}

} // namespace

#define DEPTHWISE(suffix, T, ...)                                                              \
    constexpr tgi_variant cu_conv_depthwise_row_##suffix = row_variant<T>();                   \
    constexpr tgi_variant cu_conv_depthwise_##suffix =                                         \
        any_variant<T, 0>("conv_depthwise", "Conv");                                           \
    constexpr tgi_variant cu_conv_transpose_depthwise_##suffix =                               \
        any_variant<T, 1>("conv_transpose_depthwise", "ConvTranspose");
CU_ELEMENTS(DEPTHWISE, )

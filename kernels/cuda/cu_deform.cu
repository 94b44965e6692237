/* cu_deform.cu - DeformConv, any of it: a convolution whose taps lie where data say.
 *
 * Offsets and masks are float32 in programs of any type of activations (cu_sample.cuh). Sums run over
 * *units*: up to 8 channels of one offset group at one tap; groups outside, their channels in eights,
 * taps inside. A thread has up to 8 channels of a pixel of the result: for each unit it blends what
 * the offsets name and multiplies it by 8 rows of weights, in float32 for all element types. A unit is
 * summed by itself: results of thousands of products stay exact.
 *
 * Bound by the samples, which are made anew for every 8 channels of the result.
 *
 * Packed: units, int4 {tap's y and x from the stride on; group * taps + tap; first channel << 4 |
 * channels}; bias [lanes]; weights [unit][8][lanes]. Weights between groups of channels are 0. */
#include "kernels/cuda/cu_conv.cuh"
#include "kernels/cuda/cu_map.cuh"
#include "kernels/cuda/cu_ops.cuh"
#include "kernels/cuda/cu_sample.cuh"

#define CU_UNIT 8

struct cu_deform_f {
    cu_operand src, offset, mask; /* mask.n = 0: all 1 */
    const int4 *units;
    const float *bias, *weights;
    int32_t n_units, lanes;
    int32_t h, w, step_y, step_x;

    /* The modulated samples of a unit. */
    template <class T>
    __device__ __forceinline__ void sample(const cu_pool &pool, const cu_place &p,
                                           const int4 &unit, float (&v)[CU_UNIT]) const
    {
        float d[2];
        cu_read<float, 2>(pool, offset, 0, p.y, p.x, 2 * unit.z, d);
        const cu_between y = cu_between_of((float)(p.y * step_y + unit.x) + d[0], h);
        const cu_between x = cu_between_of((float)(p.x * step_x + unit.y) + d[1], w);
        const float m = mask.n ? cu_read_one<float>(pool, mask, 0, p.y, p.x, unit.z) : 1.0f;
        cu_bilinear<T, CU_UNIT>(pool, src, y, x, unit.w >> 4, v);
#pragma unroll
        for (int i = 0; i < CU_UNIT; i++)
            v[i] = i < (unit.w & 15) ? v[i] * m : 0.0f;
    }

    template <class T, int V>
    __device__ __forceinline__ void at(const cu_pool &pool, const cu_place &p,
                                       float (&v)[V]) const
    {
        const float *row = weights + p.c;
        cu_load<float, V>(bias + p.c, v);
#pragma unroll 1
        for (int32_t u = 0; u < n_units; u++) {
            float s[CU_UNIT], part[V];
            sample<T>(pool, p, __ldg(units + u), s);
#pragma unroll
            for (int k = 0; k < V; k++)
                part[k] = 0.0f;
#pragma unroll
            for (int i = 0; i < CU_UNIT; i++, row += lanes) {
                float b[V];
                cu_load<float, V>(row, b);
#pragma unroll
                for (int k = 0; k < V; k++)
                    part[k] = fmaf(s[i], b[k], part[k]);
            }
#pragma unroll
            for (int k = 0; k < V; k++)
                v[k] += part[k];
        }
    }
};

/* As cu_map, with registers for it. */
template <class T, int V>
__global__ void __launch_bounds__(256, 2)
    cu_deform(const cu_map_args<cu_deform_f> *__restrict__ a)
{
    cu_place p;
    float v[V];
    if (!cu_offered<T>() || !cu_place_of<V>(a->cells, &p))
        return;
    a->f.template at<T, V>(a->pool, p, v);
    cu_epilogue<T, V>(a->pool, a->epi, p, v);
    cu_store<T, V>(a->dst, p, v);
}

/* ---- Host -------------------------------------------------------------------------------- */

static int64_t groups_of(const tgi_op_ctx *ctx)
{
    return ((const deform_attrs *)ctx->attrs)->offset_group;
}

/* fn(first channel, how many, tap) for all units in their order. */
template <class F> static void each_unit(const tgi_op_ctx *ctx, const tgi_geom *g, F fn)
{
    const int64_t per = g->in_c / groups_of(ctx), taps = cu_conv_taps(g);
    for (int64_t c0 = 0; c0 < g->in_c; c0 += per)
        for (int64_t c = c0; c < c0 + per; c += CU_UNIT)
            for (int64_t tap = 0; tap < taps; tap++)
                fn(c, c0 + per - c < CU_UNIT ? c0 + per - c : CU_UNIT, tap);
}

static int64_t units_of(const tgi_op_ctx *ctx, const tgi_geom *g)
{
    const int64_t groups = groups_of(ctx), per = g->in_c / groups;
    return groups * ((per + CU_UNIT - 1) / CU_UNIT) * cu_conv_taps(g);
}

static size_t units_bytes(const tgi_op_ctx *ctx, const tgi_geom *g)
{
    return ((size_t)units_of(ctx, g) * sizeof(int4) + 63) / 64 * 64;
}

static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    const int masked = !cu_is_absent(ctx, 4);
    tgi_geom g;
    return cu_is_const_f32(ctx, 1) && (cu_is_absent(ctx, 3) || cu_is_const_f32(ctx, 3)) &&
           !ctx->const_src[0] && !ctx->const_src[2] && cu_accepts_image(ctx, lay) &&
           cu_fits(&ctx->src[2]) && lay->src_segs[2] > 0 &&
           (!masked || (!ctx->const_src[4] && lay->src_segs[4] > 0)) &&
           cu_conv_geometry(ctx, 0, &g) && cu_window_fits(&g);
}

static size_t bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *)
{
    tgi_geom g;
    if (!cu_conv_geometry(ctx, 0, &g))
        return 0;
    return units_bytes(ctx, &g) +
           sizeof(float) * (size_t)(cu_conv_lanes(&g) * (1 + units_of(ctx, &g) * CU_UNIT));
}

static void pack(const tgi_op_ctx *ctx, const tgi_layout_hint *, void *dst)
{
    tgi_geom g;
    if (!cu_conv_geometry(ctx, 0, &g))
        return; /* `accepts` said no */
    const cu_conv_weights w = {ctx->const_src[1]->data, &g, 0};
    const int64_t per = g.in_c / groups_of(ctx), taps = cu_conv_taps(&g),
                  lanes = cu_conv_lanes(&g);
    int4 *unit = (int4 *)dst;
    float *out = (float *)((char *)dst + units_bytes(ctx, &g));
    memset(dst, 0, bytes(ctx, NULL));
    for (int64_t i = 0; i < g.out_c && !cu_is_absent(ctx, 3); i++)
        out[i] = cu_const_at(ctx->const_src[3]->data, i);
    out += lanes;
    each_unit(ctx, &g, [&](int64_t c, int64_t n, int64_t tap) {
        *unit++ = make_int4((int)(tap / g.k[TGI_X] * g.d[TGI_Y] - g.p0[TGI_Y]),
                            (int)(tap % g.k[TGI_X] * g.d[TGI_X] - g.p0[TGI_X]),
                            (int)(c / per * taps + tap), (int)(c << 4 | n));
        for (int64_t i = 0; i < n; i++)
            for (int64_t oc = 0; oc < g.out_c; oc++)
                out[i * lanes + oc] = w.at(c + i, oc, tap);
        out += CU_UNIT * lanes;
    });
}

template <class T> static void run(const tgi_call *call)
{
    const tgi_op_ctx *ctx = call->ctx;
    tgi_geom g;
    cu_map_args<cu_deform_f> a;
    if (!cu_conv_geometry(ctx, 0, &g))
        return; /* `accepts` said no */
    cu_map_begin(&a, call);
    a.f.src = cu_pool_operand(&a.pool, &call->src[0]);
    a.f.offset = cu_pool_operand(&a.pool, &call->src[2]);
    a.f.mask = cu_operand{0, 0};
    if (!cu_is_absent(ctx, 4))
        a.f.mask = cu_pool_operand(&a.pool, &call->src[4]);
    a.f.units = (const int4 *)call->packed;
    a.f.bias = (const float *)((const char *)call->packed + units_bytes(ctx, &g));
    a.f.lanes = (int32_t)cu_conv_lanes(&g);
    a.f.weights = a.f.bias + a.f.lanes;
    a.f.n_units = (int32_t)units_of(ctx, &g);
    a.f.h = (int32_t)g.in[TGI_Y];
    a.f.w = (int32_t)g.in[TGI_X];
    a.f.step_y = (int32_t)g.s[TGI_Y];
    a.f.step_x = (int32_t)g.s[TGI_X];
    const int per_thread = cu_lanes(call->dst[0].cb);
    cu_shape s;
    a.dst = cu_view_of(&call->dst[0]);
    a.cells = cu_cells_of(call, call->dst[0].cb / per_thread, &s);
    cu_launch_pool(call,
                   per_thread == 8   ? cu_deform<T, 8>
                   : per_thread == 4 ? cu_deform<T, 4>
                   : per_thread == 2 ? cu_deform<T, 2>
                                     : cu_deform<T, 1>,
                   s.grid, s.block, 0, &a);
}

/* Samples are made anew for every 8 channels of a result. */
static double cost(const tgi_op_ctx *, const tgi_layout_hint *)
{
    return 16;
}

constexpr tgi_variant plain_variant(cu_run_fn run)
{
    tgi_variant v = cu_packed_variant("deform_plain", "DeformConv", accepts, bytes, pack, run);
    v.cost = cost;
    return v;
}

#define CU_DEFORM_OF(suffix, T, ...)                                                           \
    constexpr tgi_variant cu_deform_plain_##suffix = plain_variant(run<T>);
CU_ELEMENTS(CU_DEFORM_OF, )

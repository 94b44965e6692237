/* cu_conv_plain.cu - convolutions without tricks: any groups, ranks, strides, dilations, plain
 * and transposed, one thread for a few channels of a pixel.
 *
 * Sums run over taps outside and channels inside, in float32, for all element types. Packed:
 * bias, then weights [out_c][tap][group's channels] in float32, out_c up to whole pixels. */
#include "kernels/cuda/cu_conv.cuh"
#include "kernels/cuda/cu_conv_list.cuh"
#include "kernels/cuda/cu_map.cuh"

namespace
{

struct plain {
    cu_conv_geom g;
    cu_operand src;
    int32_t in_per, out_per; /* channels of a group */
    int32_t out_c, unused;
    const float *bias, *weights;

    /* Channels [c, c + n) of pixel (z,y,x) times weights. */
    template <class T>
    __device__ float product(const cu_pool &pool, int32_t z, int32_t y, int32_t x, int32_t c,
                             const float *w, float sum) const
    {
        int32_t left = in_per;
        for (int s = 0; s < src.n && left > 0; s++) {
            const cu_view &v = pool.item[src.first + s].view;
            if (c >= v.c) {
                c -= v.c;
                continue;
            }
            const T *p = cu_pixel<T>(v, z, y, x);
            for (; c < v.c && left > 0; c++, left--)
                sum = fmaf(cu_float(p[c]), *w++, sum);
            c = 0;
        }
        return sum;
    }

    template <class T>
    __device__ float sum(const cu_pool &pool, const cu_place &p, int32_t c) const
    {
        float sum = bias[c];
        const float *w = weights + (int64_t)c * g.k[0] * g.k[1] * g.k[2] * in_per;
        for (int32_t kz = 0; kz < g.k[0]; kz++)
            for (int32_t ky = 0; ky < g.k[1]; ky++)
                for (int32_t kx = 0; kx < g.k[2]; kx++, w += in_per) {
                    int32_t z, y, x;
                    if (cu_tap_at(g, TGI_Z, p.z, kz, &z) && cu_tap_at(g, TGI_Y, p.y, ky, &y) &&
                        cu_tap_at(g, TGI_X, p.x, kx, &x))
                        sum = product<T>(pool, z, y, x, c / out_per * in_per, w, sum);
                }
        return sum;
    }

    template <class T, int V>
    __device__ void at(const cu_pool &pool, const cu_place &p, float (&v)[V]) const
    {
#pragma unroll
        for (int k = 0; k < V; k++)
            v[k] = 0.0f;
#pragma unroll 1
        for (int i = 0; i < V; i++) {
            const float next = p.c + i < out_c ? sum<T>(pool, p, p.c + i) : 0.0f;
#pragma unroll
            for (int k = 0; k + 1 < V; k++)
                v[k] = v[k + 1];
            v[V - 1] = next;
        }
    }
};

/* ---- Host -------------------------------------------------------------------------------- */

int accepts_any(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int transposed)
{
    tgi_geom g;
    return cu_conv_accepts(ctx, lay, transposed, &g) && !lay->n_doubled;
}
size_t bytes_any(const tgi_op_ctx *ctx, int transposed)
{
    tgi_geom g;
    if (!cu_conv_geometry(ctx, transposed, &g))
        return 0;
    return sizeof(float) *
           (size_t)(cu_conv_lanes(&g) * (1 + cu_conv_taps(&g) * (g.in_c / g.groups)));
}

void pack_any(const tgi_op_ctx *ctx, int transposed, void *dst)
{
    tgi_geom g;
    if (!cu_conv_geometry(ctx, transposed, &g))
        return; /* `accepts` said no */
    const cu_conv_weights w = {ctx->const_src[1]->data, &g, transposed};
    const int64_t per = g.in_c / g.groups, out_per = g.out_c / g.groups;
    float *out = cu_conv_pack_bias(ctx, &g, (float *)dst);
    for (int64_t oc = 0; oc < cu_conv_lanes(&g); oc++)
        for (int64_t t = 0; t < cu_conv_taps(&g); t++)
            for (int64_t i = 0; i < per; i++)
                *out++ = oc < g.out_c ? w.at(oc / out_per * per + i, oc, t) : 0.0f;
}

template <class T> void run_any(const tgi_call *call, int transposed)
{
    tgi_geom g;
    cu_map_args<plain> a;
    if (!cu_conv_geometry(call->ctx, transposed, &g))
        return; /* `accepts` said no */
    cu_map_begin(&a, call);
    a.f.g = cu_conv_geom_of(&g, transposed);
    a.f.src = cu_pool_operand(&a.pool, &call->src[0]);
    a.f.in_per = (int32_t)(g.in_c / g.groups);
    a.f.out_per = (int32_t)(g.out_c / g.groups);
    a.f.out_c = (int32_t)g.out_c;
    a.f.unused = 0;
    a.f.bias = (const float *)call->packed;
    a.f.weights = a.f.bias + cu_conv_lanes(&g);
    cu_map_go<T>(&a, call, 0);
}

/* The contract has no room for "transposed": one set of functions each. */
template <int TR> int accepts_plain(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return accepts_any(ctx, lay, TR);
}
template <int TR> size_t bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *)
{
    return bytes_any(ctx, TR);
}
template <int TR> void pack(const tgi_op_ctx *ctx, const tgi_layout_hint *, void *dst)
{
    pack_any(ctx, TR, dst);
}
template <class T, int TR> void run_plain(const tgi_call *call)
{
    run_any<T>(call, TR);
}
/* A thread reads its weights and pixels from the caches with every product. */
double cost_plain(const tgi_op_ctx *, const tgi_layout_hint *)
{
    return 16;
}

template <class T, int TR> constexpr tgi_variant plain_variant(const char *name, const char *op)
{
    tgi_variant v = cu_variant(name, op, accepts_plain<TR>, run_plain<T, TR>);
    v.packed_bytes = bytes<TR>;
    v.pack = pack<TR>;
    v.cost = cost_plain;
    return v;
}
} // namespace

#define PLAIN(suffix, T, ...)                                                                  \
    constexpr tgi_variant cu_conv_plain_##suffix = plain_variant<T, 0>("conv_plain", "Conv");  \
    constexpr tgi_variant cu_conv_transpose_plain_##suffix =                                   \
        plain_variant<T, 1>("conv_transpose_plain", "ConvTranspose");
CU_ELEMENTS(PLAIN, )

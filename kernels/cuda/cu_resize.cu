/* cu_resize.cu - Resize and Upsample, all modes.
 *
 * On each axis an output coordinate reads some input coordinates with weights that depend on
 * nothing else (ops/resize_axis.h). They are worked out on the host, in float64, by the code
 * that defines them, and lie in the packed block: tables cu_tap[output][tap] over the whole
 * extents of z, y and x, one after the other.
 *
 * A pixel is the sum over z, y and x of weights times pixels, in float32, in that order: one
 * sum, as a second one for rows is more than the registers hold. A tap of coordinate -1 is
 * none; an output without any lies outside the crop of tf_crop_and_resize. */
#include "kernels/cuda/cu_map.cuh"
#include "kernels/cuda/cu_ops.cuh"

extern "C" {
#include "kernels/ops/resize_axis.h"
}

struct cu_tap {
    int32_t at;
    float w;
};

struct cu_resize_f {
    cu_operand src;
    const cu_tap *tap[3]; /* of output 0: z, y, x */
    int32_t taps[3];
    float outside;
    template <class T, int V>
    __device__ __forceinline__ void at(const cu_pool &pool, const cu_place &p,
                                       float (&v)[V]) const
    {
        const cu_tap *tz = tap[0] + (int64_t)p.z * taps[0],
                     *ty = tap[1] + (int64_t)p.y * taps[1],
                     *tx = tap[2] + (int64_t)p.x * taps[2];
        cu_global(tz);
        cu_global(ty);
        cu_global(tx);
        const int there = tz->at >= 0 && ty->at >= 0 && tx->at >= 0;
#pragma unroll
        for (int i = 0; i < V; i++)
            v[i] = there ? 0.0f : outside;
        for (int32_t i = 0; there && i < taps[0] && tz[i].at >= 0; i++)
            for (int32_t j = 0; j < taps[1] && ty[j].at >= 0; j++)
                for (int32_t k = 0; k < taps[2] && tx[k].at >= 0; k++) {
                    float t[V];
                    cu_read<T, V>(pool, src, tz[i].at, ty[j].at, tx[k].at, p.c, t);
                    const float w = tz[i].w * ty[j].w * tx[k].w;
#pragma unroll
                    for (int q = 0; q < V; q++)
                        v[q] += w * t[q];
                }
    }
};

/* ---- Host: tables ------------------------------------------------------------------------ */

/* Inputs that one output of the axis reads, at most. */
static int64_t most_taps(const tgi_resize_axis *ax)
{
    if (ax->antialias)
        return (int64_t)(2 * (ax->mode == TGI_RESIZE_CUBIC ? 2 : 1) / ax->scale) + 2;
    return ax->mode == TGI_RESIZE_NEAREST ? 1 : ax->mode == TGI_RESIZE_LINEAR ? 2 : 4;
}

static void put_filter(const tgi_resize_axis *ax, int64_t o, int64_t taps, cu_tap *out)
{
    const tgi_filter f = tgi_resize_filter(ax, o);
    for (int64_t i = 0; i < taps; i++) {
        const int64_t at = f.first + i < 0 ? 0 : f.first + i;
        out[i].at = i < f.n ? (int32_t)(at < ax->in ? at : ax->in - 1) : -1;
        out[i].w = i < f.n ? (float)(tgi_resize_weight(ax, &f, f.first + i) / f.sum) : 0.0f;
    }
}

static void put_taps(const tgi_resize_axis *ax, int64_t o, int64_t taps, cu_tap *out)
{
    tgi_taps t;
    if (ax->antialias) {
        put_filter(ax, o, taps, out);
        return;
    }
    tgi_resize_taps(ax, o, &t);
    for (int64_t i = 0; i < taps; i++) {
        out[i].at = i < t.n ? (int32_t)t.at[i] : -1;
        out[i].w = i < t.n ? (float)t.w[i] : 0.0f;
    }
}

static size_t packed_bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    tgi_resize_axis ax[3];
    size_t entries = 0;
    (void)lay;
    if (tgi_resize_axes(ctx, ax, NULL) != TG_OK)
        return 0;
    for (int i = 0; i < 3; i++)
        entries += (size_t)(ax[i].out * most_taps(&ax[i]));
    return entries * sizeof(cu_tap);
}

static void pack(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, void *dst)
{
    cu_tap *tap = (cu_tap *)dst;
    tgi_resize_axis ax[3];
    (void)lay;
    if (tgi_resize_axes(ctx, ax, NULL) != TG_OK)
        return;
    for (int i = 0; i < 3; i++) {
        const int64_t taps = most_taps(&ax[i]);
        for (int64_t o = 0; o < ax[i].out; o++, tap += taps)
            put_taps(&ax[i], o, taps, tap);
    }
}

/* ---- The variants ------------------------------------------------------------------------ */

static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    tgi_resize_axis ax[3];
    return !ctx->const_src[0] && cu_accepts_image(ctx, lay) &&
           tgi_resize_axes(ctx, ax, NULL) == TG_OK;
}

template <class T> static void run(const tgi_call *call)
{
    const resize_attrs *attrs = (const resize_attrs *)call->ctx->attrs;
    const cu_tap *tap = (const cu_tap *)call->packed;
    tgi_resize_axis ax[3];
    cu_map_args<cu_resize_f> a;
    if (tgi_resize_axes(call->ctx, ax, NULL) != TG_OK)
        return;
    cu_map_begin(&a, call);
    a.f.src = cu_pool_operand(&a.pool, &call->src[0]);
    a.f.outside = attrs->extrapolation_value;
    for (int i = 0; i < 3; i++) {
        a.f.taps[i] = (int32_t)most_taps(&ax[i]);
        a.f.tap[i] = tap;
        tap += ax[i].out * a.f.taps[i];
    }
    cu_map_go<T>(&a, call, 0);
}

#define CU_RESIZE_OF(suffix, T, symbol)                                                        \
    constexpr tgi_variant cu_##symbol##_##suffix = symbol##_of(run<T>);
#define CU_RESIZE(symbol, op)                                                                  \
    constexpr tgi_variant symbol##_of(cu_run_fn run_it)                                        \
    {                                                                                          \
        tgi_variant v = cu_variant("cu_resize", op, accepts, run_it);                          \
        v.packed_bytes = packed_bytes;                                                         \
        v.pack = pack;                                                                         \
        return v;                                                                              \
    }                                                                                          \
    CU_ELEMENTS(CU_RESIZE_OF, symbol)
CU_RESIZE(resize, "Resize")
CU_RESIZE(upsample, "Upsample")

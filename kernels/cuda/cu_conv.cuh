/* cu_conv.cuh - what the convolutions of the device share: what they accept, their weights, and
 * where taps are. */
#ifndef TGI_CU_CONV_CUH
#define TGI_CU_CONV_CUH

#include "kernels/cuda/cu_epilogue.cuh"

/* ---- Host: geometry ---------------------------------------------------------------------- */

inline int cu_is_const_f32(const tgi_op_ctx *ctx, int i)
{
    return i < ctx->n_src && ctx->const_src[i] && ctx->const_src[i]->desc.dtype == TG_DTYPE_F32;
}
inline int cu_is_absent(const tgi_op_ctx *ctx, int i)
{
    return i >= ctx->n_src || (ctx->src[i].rank == 0 && ctx->src[i].dtype == TG_DTYPE_NONE);
}
/* Constants may be views of a file at any byte offset. */
inline float cu_const_at(const void *data, int64_t i)
{
    float v;
    memcpy(&v, (const char *)data + (size_t)i * sizeof v, sizeof v);
    return v;
}

inline int cu_conv_geometry(const tgi_op_ctx *ctx, int transposed, tgi_geom *g)
{
    return (transposed ? tgi_conv_transpose_geometry(ctx, g, NULL)
                       : tgi_conv_geometry(ctx, g, NULL)) == TG_OK;
}

/* What every convolution here asks for. */
inline int cu_conv_accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int transposed,
                           tgi_geom *g)
{
    return cu_is_const_f32(ctx, 1) && (cu_is_absent(ctx, 2) || cu_is_const_f32(ctx, 2)) &&
           lay->src_segs[0] > 0 && cu_conv_geometry(ctx, transposed, g) && cu_window_fits(g) &&
           cu_fits(&ctx->src[0]) && cu_fits(&ctx->dst[0]);
}

/* Weight of tap `tap` (row-major) between channels of the whole tensors; 0 between groups. */
struct cu_conv_weights {
    const void *data;
    const tgi_geom *g;
    int transposed;
    float at(int64_t ic, int64_t oc, int64_t tap) const
    {
        const int64_t ig = g->in_c / g->groups, og = g->out_c / g->groups;
        const int64_t taps = g->k[0] * g->k[1] * g->k[2];
        if (ic / ig != oc / og)
            return 0.0f;
        return cu_const_at(data,
                           ((transposed ? ic * og + oc % og : oc * ig + ic % ig) * taps) + tap);
    }
};

inline int64_t cu_conv_taps(const tgi_geom *g)
{
    return g->k[0] * g->k[1] * g->k[2];
}
/* Lanes of a pixel of the result. */
inline int64_t cu_conv_lanes(const tgi_geom *g)
{
    return tgi_whole_pixel(g->out_c);
}
/* The bias for all lanes. Returns what is behind it. */
inline float *cu_conv_pack_bias(const tgi_op_ctx *ctx, const tgi_geom *g, float *out)
{
    for (int64_t i = 0; i < cu_conv_lanes(g); i++)
        *out++ = i < g->out_c && !cu_is_absent(ctx, 2) ? cu_const_at(ctx->const_src[2]->data, i)
                                                       : 0.0f;
    return out;
}

/* ---- Device: where taps are -------------------------------------------------------------- */

/* Axes z, y, x. */
struct cu_conv_geom {
    int32_t k[3], s[3], d[3], p[3], in[3];
    int32_t transposed;
};

inline cu_conv_geom cu_conv_geom_of(const tgi_geom *g, int transposed)
{
    cu_conv_geom c;
    for (int i = 0; i < 3; i++) {
        c.k[i] = (int32_t)g->k[i];
        c.s[i] = (int32_t)g->s[i];
        c.d[i] = (int32_t)g->d[i];
        c.p[i] = (int32_t)g->p0[i];
        c.in[i] = (int32_t)g->in[i];
    }
    c.transposed = transposed;
    return c;
}

/* Input coordinate that tap k of output coordinate o reads; false: none inside the image. */
__device__ __forceinline__ bool cu_tap_at(const cu_conv_geom &g, int axis, int32_t o, int32_t k,
                                          int32_t *i)
{
    if (!g.transposed) {
        *i = o * g.s[axis] - g.p[axis] + k * g.d[axis];
    } else {
        const int32_t t = o + g.p[axis] - k * g.d[axis];
        if (t < 0 || t % g.s[axis])
            return false;
        *i = t / g.s[axis];
    }
    return *i >= 0 && *i < g.in[axis];
}

#endif

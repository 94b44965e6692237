/* cu_convex.cu - ConvexUpsample: a flow made as large as its image.
 *
 * The flow and the result are float32 in programs of any type of activations; the mask, nine numbers
 * for each pixel of the result, is an activation. A thread has a pixel of the result, so threads of
 * `scale` neighbouring pixels read neighbouring channels of the mask.
 *
 * Bound by memory: nine numbers of the mask are read for each pixel that is written. */
#include "kernels/cuda/cu_map.cuh"
#include "kernels/cuda/cu_ops.cuh"

#define CU_NEAR 9 /* pixels of a neighbourhood */

/* M: the mask's type; cu_map's T is float. */
template <class M> struct cu_convex_f {
    cu_operand flow, mask;
    int32_t scale, h, w, unused;

    /* Channels first, first + step, ... of the mask at (y,x). */
    __device__ __forceinline__ void read_mask(const cu_pool &pool, int32_t y, int32_t x,
                                              int32_t first, int32_t step,
                                              float (&m)[CU_NEAR]) const
    {
        if (mask.n > 1) {
            cu_gather<M, CU_NEAR>(pool, mask, 0, y, x, first, step, m);
            return;
        }
        const M *at = cu_pixel<M>(pool.item[mask.first].view, 0, y, x) + first;
#pragma unroll
        for (int k = 0; k < CU_NEAR; k++)
            m[k] = cu_float(at[k * step]);
    }

    template <class T, int V>
    __device__ __forceinline__ void at(const cu_pool &pool, const cu_place &p,
                                       float (&v)[V]) const
    {
        const int32_t y = p.y / scale, x = p.x / scale;
        float m[CU_NEAR], top = -INFINITY, all = 0.0f;
        read_mask(pool, y, x, (p.y - y * scale) * scale + (p.x - x * scale), scale * scale, m);
#pragma unroll
        for (int i = 0; i < V; i++)
            v[i] = 0.0f;
#pragma unroll
        for (int k = 0; k < CU_NEAR; k++)
            top = m[k] > top ? m[k] : top;
#pragma unroll
        for (int k = 0; k < CU_NEAR; k++) {
            const float share = expf(m[k] - top);
            const int32_t ny = y + k / 3 - 1, nx = x + k % 3 - 1;
            float f[V];
            all += share;
            if (ny < 0 || ny >= h || nx < 0 || nx >= w)
                continue;
            cu_read<T, V>(pool, flow, 0, ny, nx, p.c, f);
#pragma unroll
            for (int i = 0; i < V; i++)
                v[i] += share * f[i];
        }
#pragma unroll
        for (int i = 0; i < V; i++)
            v[i] = v[i] * (float)scale / all;
    }
};

/* No steps behind it: they would read operands of the activations' type. */
static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return !ctx->const_src[0] && !ctx->const_src[1] && cu_accepts_image(ctx, lay) &&
           cu_fits(&ctx->src[1]) && lay->src_segs[1] > 0 && lay->n_epi == 0;
}

template <class M> static void run(const tgi_call *call)
{
    const tgi_desc *d = &call->ctx->src[0];
    cu_map_args<cu_convex_f<M>> a;
    cu_map_begin(&a, call);
    a.f.flow = cu_pool_operand(&a.pool, &call->src[0]);
    a.f.mask = cu_pool_operand(&a.pool, &call->src[1]);
    a.f.scale = (int32_t)((const convex_attrs *)call->ctx->attrs)->scale;
    a.f.h = (int32_t)d->dim[2];
    a.f.w = (int32_t)d->dim[3];
    a.f.unused = 0;
    cu_map_go<float>(&a, call, 0);
}

CU_VARIANT(convex_upsample, "cu_convex_upsample", "ConvexUpsample", accepts, run)

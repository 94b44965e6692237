/* cu_flow.cu - what follows a flow, pixel by pixel: FlowWarp, FlowConsistency.
 *
 * Both are bound by memory. A thread has up to 8 channels of a pixel, and neighbours of it the
 * channels and pixels beside them, so what a smooth flow points to lies together. The flow is read
 * by each of a pixel's threads, out of the cache. */
#include "kernels/cuda/cu_map.cuh"
#include "kernels/cuda/cu_ops.cuh"
#include "kernels/cuda/cu_sample.cuh"

/* Where a flow, float32 numbers dx and dy, points to from p. */
struct cu_arrow {
    float dx, dy, x, y;
};

__device__ __forceinline__ cu_arrow cu_arrow_at(const cu_pool &pool, cu_operand flow,
                                                const cu_place &p)
{
    float d[2];
    cu_read<float, 2>(pool, flow, p.z, p.y, p.x, 0, d);
    return cu_arrow{d[0], d[1], (float)p.x + d[0], (float)p.y + d[1]};
}

struct cu_warp_f {
    cu_operand src, flow;
    int32_t h, w, nearest, unused;
    template <class T, int V>
    __device__ __forceinline__ void at(const cu_pool &pool, const cu_place &p,
                                       float (&v)[V]) const
    {
        const cu_arrow a = cu_arrow_at(pool, flow, p);
        if (!nearest) {
            cu_bilinear<T, V>(pool, src, cu_between_of(a.y, h), cu_between_of(a.x, w), p.c, v);
            return;
        }
        const int32_t y = cu_nearest_of(a.y, h), x = cu_nearest_of(a.x, w);
#pragma unroll
        for (int i = 0; i < V; i++)
            v[i] = 0.0f;
        if (y >= 0 && x >= 0)
            cu_read<T, V>(pool, src, 0, y, x, p.c, v);
    }
};

struct cu_consistency_f {
    cu_operand there, back;
    int32_t h, w;
    template <class T, int V>
    __device__ __forceinline__ void at(const cu_pool &pool, const cu_place &p,
                                       float (&v)[V]) const
    {
        const cu_arrow f = cu_arrow_at(pool, there, p);
        float b[2];
        cu_bilinear<float, 2>(pool, back, cu_between_of(f.y, h), cu_between_of(f.x, w), 0, b);
        const float ex = f.dx + b[0], ey = f.dy + b[1];
        const float far = f.dx * f.dx + f.dy * f.dy, near = b[0] * b[0] + b[1] * b[1];
        const float same = ex * ex + ey * ey < 0.01f * (far + near) + 0.5f ? 1.0f : 0.0f;
#pragma unroll
        for (int i = 0; i < V; i++)
            v[i] = same;
    }
};

/* ---- Host -------------------------------------------------------------------------------- */

static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return !ctx->const_src[0] && !ctx->const_src[1] && cu_accepts_image(ctx, lay) &&
           cu_fits(&ctx->src[1]) && lay->src_segs[1] > 0;
}

template <class T> static void run_warp(const tgi_call *call)
{
    const tgi_desc *d = &call->ctx->src[0];
    cu_map_args<cu_warp_f> a;
    cu_map_begin(&a, call);
    a.f.src = cu_pool_operand(&a.pool, &call->src[0]);
    a.f.flow = cu_pool_operand(&a.pool, &call->src[1]);
    a.f.h = (int32_t)d->dim[2];
    a.f.w = (int32_t)d->dim[3];
    a.f.nearest = ((const warp_attrs *)call->ctx->attrs)->mode == 1;
    a.f.unused = 0;
    cu_map_go<T>(&a, call, 0);
}

template <class T> static void run_consistency(const tgi_call *call)
{
    const tgi_desc *d = &call->ctx->src[0];
    cu_map_args<cu_consistency_f> a;
    cu_map_begin(&a, call);
    a.f.there = cu_pool_operand(&a.pool, &call->src[0]);
    a.f.back = cu_pool_operand(&a.pool, &call->src[1]);
    a.f.h = (int32_t)d->dim[2];
    a.f.w = (int32_t)d->dim[3];
    cu_map_go<T>(&a, call, 0);
}

CU_VARIANT(flow_warp, "cu_flow_warp", "FlowWarp", accepts, run_warp)
CU_VARIANT(flow_consistency, "cu_flow_consistency", "FlowConsistency", accepts, run_consistency)

/* cu_shuffle.cu - DepthToSpace and SpaceToDepth: pixels become channels and back.
 *
 * Channels of a result pixel come from one source pixel (DepthToSpace) or from b * b of them.
 * Where 8 neighbouring ones lie side by side there too, they move as one. */
#include "kernels/cuda/cu_map.cuh"
#include "kernels/cuda/cu_ops.cuh"

/* @source ONNX operator DepthToSpace, modes DCR and CRD. */
struct cu_depth_to_space_f {
    cu_operand src;
    int32_t b, crd, channels; /* of the result */
    template <class T, int V>
    __device__ __forceinline__ void at(const cu_pool &pool, const cu_place &p,
                                       float (&v)[V]) const
    {
        const int32_t k = p.y % b * b + p.x % b;
        if (crd)
            cu_gather<T, V>(pool, src, 0, p.y / b, p.x / b, p.c * b * b + k, b * b, v);
        else
            cu_read<T, V>(pool, src, 0, p.y / b, p.x / b, k * channels + p.c, v);
    }
};

/* Channel (i * b + j) * C + c is channel c at row y * b + i, column x * b + j.
 * @source ONNX operator SpaceToDepth. */
struct cu_space_to_depth_f {
    cu_operand src;
    int32_t b, channels; /* of the source */
    template <class T, int V>
    __device__ __forceinline__ void at(const cu_pool &pool, const cu_place &p,
                                       float (&v)[V]) const
    {
        const int32_t k = p.c / channels, c = p.c % channels;
        if (c + V <= channels) {
            cu_read<T, V>(pool, src, 0, p.y * b + k / b, p.x * b + k % b, c, v);
            return;
        }
        int32_t i = p.c;
#pragma unroll
        for (int q = 0; q < V; q++)
            v[q] = 0.0f;
        cu_each(v, [&](float) {
            const int32_t at = i / channels, one = i % channels;
            i++;
            return at < b * b
                       ? cu_read_one<T>(pool, src, 0, p.y * b + at / b, p.x * b + at % b, one)
                       : 0.0f;
        });
    }
};

template <class T> static void run_depth_to_space(const tgi_call *call)
{
    const d2s_attrs *attrs = (const d2s_attrs *)call->ctx->attrs;
    cu_map_args<cu_depth_to_space_f> a;
    cu_map_begin(&a, call);
    a.f.src = cu_pool_operand(&a.pool, &call->src[0]);
    a.f.b = (int32_t)attrs->blocksize;
    a.f.crd = attrs->mode;
    a.f.channels = (int32_t)call->dst[0].c;
    cu_map_go<T>(&a, call, 0);
}

template <class T> static void run_space_to_depth(const tgi_call *call)
{
    const d2s_attrs *attrs = (const d2s_attrs *)call->ctx->attrs;
    cu_map_args<cu_space_to_depth_f> a;
    cu_map_begin(&a, call);
    a.f.src = cu_pool_operand(&a.pool, &call->src[0]);
    a.f.b = (int32_t)attrs->blocksize;
    a.f.channels = (int32_t)call->ctx->src[0].dim[1];
    cu_map_go<T>(&a, call, 0);
}

static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return ctx->src[0].rank == 4 && cu_accepts_image(ctx, lay);
}

CU_VARIANT(depth_to_space, "cu_depth_to_space", "DepthToSpace", accepts, run_depth_to_space)
CU_VARIANT(space_to_depth, "cu_space_to_depth", "SpaceToDepth", accepts, run_space_to_depth)

/* cu_side.cuh - operands that may be constant and may broadcast: an axis of extent 1 is read at
 * 0 everywhere. Constants travel as float32 in the packed block, one after the other. */
#ifndef TGI_CU_SIDE_CUH
#define TGI_CU_SIDE_CUH

#include "kernels/cuda/cu_view.cuh"

extern "C" {
#include "kernels/ops/op_shared.h"
}

/* ---- Host -------------------------------------------------------------------------------- */

/* Of the first n inputs. */
inline size_t cu_sides_bytes(const tgi_op_ctx *ctx, int n)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        if (ctx->const_src[i])
            bytes += sizeof(float) * (size_t)tgi_const_count(ctx->const_src[i]);
    return bytes;
}

inline void cu_sides_pack(const tgi_op_ctx *ctx, int n, float *out)
{
    for (int i = 0; i < n; i++) {
        const tgi_constant *c = ctx->const_src[i];
        for (int64_t k = 0; c && k < tgi_const_count(c); k++)
            *out++ = (float)tgi_num_at(c, k);
    }
}

/* Axis k of the result as bit and place in cu_side: c 0, z 1, y 2, x 3; -1: the batch. */
inline int cu_side_axis(int rank, int k)
{
    return k == 0 ? -1 : k == 1 ? 0 : 4 - (rank - k);
}

/* Input i, which begins at axis `at` of the result. `packed` moves on behind its constant. */
inline cu_side cu_side_of(const tgi_call *call, int i, int at, const float **packed,
                          cu_pool *pool)
{
    const tgi_op_ctx *ctx = call->ctx;
    const tgi_desc *s = &ctx->src[i];
    const int rank = ctx->dst[0].rank;
    int64_t stride = 1;
    cu_side d;
    memset(&d, 0, sizeof d);
    d.fixed = rank == 4 ? 2 : 0;
    d.channels = (int32_t)ctx->dst[0].dim[1];
    if (!ctx->const_src[i]) {
        const cu_operand o = cu_pool_operand(pool, &call->src[i]);
        d.first = o.first;
        d.n = o.n;
        for (int k = 1; k < rank; k++)
            if (s->dim[k] == 1)
                d.fixed |= 1 << cu_side_axis(rank, k);
        return d;
    }
    d.at = *packed;
    for (int k = s->rank - 1; k >= 0; k--) {
        const int to = cu_side_axis(rank, at + k);
        if (to >= 0 && s->dim[k] > 1)
            d.stride[to] = (int32_t)stride;
        stride *= s->dim[k];
    }
    *packed += tgi_const_count(ctx->const_src[i]);
    return d;
}

/* ---- Device ------------------------------------------------------------------------------ */

/* Channel c of a constant at a pixel. */
__device__ __forceinline__ float cu_const_at(const cu_side &s, const cu_place &p, int32_t c)
{
    return s.at[c * (int64_t)s.stride[0] + p.z * (int64_t)s.stride[1] +
                p.y * (int64_t)s.stride[2] + p.x * (int64_t)s.stride[3]];
}

/* Channels p.c to p.c + V - 1 of an operand at p. */
template <class T, int V>
__device__ __forceinline__ void cu_read_side(const cu_pool &pool, const cu_side &s,
                                             const cu_place &p, float (&out)[V])
{
    if (s.n > 0) {
        const cu_operand o = {s.first, s.n};
        const int32_t z = s.fixed & 2 ? 0 : p.z, y = s.fixed & 4 ? 0 : p.y,
                      x = s.fixed & 8 ? 0 : p.x;
        if (!(s.fixed & 1)) {
            cu_read<T, V>(pool, o, z, y, x, p.c, out);
            return;
        }
        const float one = cu_read_one<T>(pool, o, z, y, x, 0);
#pragma unroll
        for (int i = 0; i < V; i++)
            out[i] = one;
        return;
    }
#pragma unroll
    for (int i = 0; i < V; i++)
        out[i] = p.c + i < s.channels ? cu_const_at(s, p, p.c + i) : 0.0f;
}

#endif

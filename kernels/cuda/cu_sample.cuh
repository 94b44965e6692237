/* cu_sample.cuh - images read between their pixels, where a flow or an offset points to.
 *
 * Flows and offsets are float32 in programs of any type of activations (tgi_op.wide_src), and so is
 * all that is computed from them: every kernel, here and on the processor, finds the same place
 * (kernels/ops/sample_place.h). */
#ifndef TGI_CU_SAMPLE_CUH
#define TGI_CU_SAMPLE_CUH

#include "kernels/cuda/cu_view.cuh"

/* Pixels lo and lo + 1 of an axis; 0 is the weight of one outside, and of both where neither is
 * inside or the coordinate is no number. Then lo is 0. */
struct cu_between {
    int32_t lo;
    float weight[2];
};

__device__ __forceinline__ cu_between cu_between_of(float c, int32_t n)
{
    cu_between b = {0, {0.0f, 0.0f}};
    if (!(c > -1.0f && c < (float)n))
        return b;
    const float whole = floorf(c), part = c - whole;
    b.lo = (int32_t)whole;
    b.weight[0] = b.lo < 0 ? 0.0f : 1.0f - part;
    b.weight[1] = b.lo + 1 >= n ? 0.0f : part;
    return b;
}

/* The pixel nearest to c, ties to even; -1: none. */
__device__ __forceinline__ int32_t cu_nearest_of(float c, int32_t n)
{
    const float whole = rintf(c);
    return whole >= 0.0f && whole < (float)n ? (int32_t)whole : -1;
}

/* Channels c to c + V - 1: rows first, then between them. What has no weight is not read. */
template <class T, int V>
__device__ __forceinline__ void cu_bilinear(const cu_pool &pool, cu_operand o,
                                            const cu_between &y, const cu_between &x, int32_t c,
                                            float (&v)[V])
{
#pragma unroll
    for (int k = 0; k < V; k++)
        v[k] = 0.0f;
#pragma unroll
    for (int j = 0; j < 2; j++) {
        float row[V], one[V];
        if (y.weight[j] == 0.0f)
            continue;
#pragma unroll
        for (int k = 0; k < V; k++)
            row[k] = 0.0f;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            if (x.weight[i] == 0.0f)
                continue;
            cu_read<T, V>(pool, o, 0, y.lo + j, x.lo + i, c, one);
#pragma unroll
            for (int k = 0; k < V; k++)
                row[k] += x.weight[i] * one[k];
        }
#pragma unroll
        for (int k = 0; k < V; k++)
            v[k] += y.weight[j] * row[k];
    }
}

#endif

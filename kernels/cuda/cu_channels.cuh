/* cu_channels.cuh - walking the channels of one pixel, in their order, 8 at a time where they
 * lie so. */
#ifndef TGI_CU_CHANNELS_CUH
#define TGI_CU_CHANNELS_CUH

#include "kernels/cuda/cu_map.cuh"

/* The channel that has the largest number, or the smallest: */
struct cu_best {
    float best;
    int32_t at;
    /* numbers times `sign` are compared; `last`: of equals */
    __device__ __forceinline__ void offer(float v, int32_t c, float sign, int32_t last)
    {
        const float s = sign * v;
        if (c == 0 || s > best || (last && s >= best)) {
            best = s;
            at = c;
        }
    }
};

/* f(value, channel) for all channels of an operand at a pixel. */
template <class T, class F>
__device__ __forceinline__ void cu_each_channel(const cu_pool &pool, cu_operand o, int32_t z,
                                                int32_t y, int32_t x, const F &f)
{
    int32_t first = 0;
    for (int s = 0; s < o.n; s++) {
        const cu_view &v = pool.item[o.first + s].view;
        const T *at = cu_pixel<T>(v, z, y, x);
        int32_t c = 0;
        for (; c + 8 <= v.c && v.cb % 8 == 0; c += 8) {
            float t[8];
            cu_load<T, 8>(at + c, t);
#pragma unroll 1 /* the body may be long */
            for (int i = 0; i < 8; i++) {
                f(t[0], first + c + i);
#pragma unroll
                for (int k = 0; k < 7; k++)
                    t[k] = t[k + 1];
            }
        }
        for (; c < v.c; c++)
            f(cu_float(at[c]), first + c);
        first += v.c;
    }
}

#endif

/* cu_moments.cuh - moments of a row, to the bit those of kernels/granule.c. */
#ifndef TGI_CU_MOMENTS_CUH
#define TGI_CU_MOMENTS_CUH

#include "kernels/cuda/cu_view.cuh"

/* One row of a granule: n values, `step` apart. */
template <class T>
__device__ __forceinline__ void cu_row_moments(const T *v, int32_t step, int32_t n, double *sum,
                                               double *m2)
{
    double s = 0, q = 0;
    for (int32_t i = 0; i < n; i++)
        s += (double)cu_float(v[(int64_t)i * step]);
    const double mean = s / (double)n;
    for (int32_t i = 0; i < n; i++) {
        const double d = (double)cu_float(v[(int64_t)i * step]) - mean;
        q += d * d;
    }
    *sum = s;
    *m2 = q;
}

#endif

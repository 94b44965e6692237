/* cu_rows.cuh - kernels that look at a *row* of an array before they write: softmax, norms,
 * reductions, searches along any axes.
 *
 * A row is n elements that belong together, an array has `rows` of them; two walks say where
 * each is. A *team* of threads has a row:
 *
 *     1     neighbouring threads have neighbouring rows, which lie side by side in memory
 *     32    a warp, of short rows
 *     256   a block
 *
 * Member t takes elements t, t + team, ... in their order; what the members found is merged in
 * halves. The team follows from the shape, so the bits depend on no launch. */
#ifndef TGI_CU_ROWS_CUH
#define TGI_CU_ROWS_CUH

#include "kernels/cuda/cu_flat.cuh"

#define CU_LONG_ROW 2048 /* elements from which on a block has a row */

struct cu_rows {
    int64_t rows, n; /* rows: 0 at rest */
};

/* ---- Device: within a team --------------------------------------------------------------- */

template <int TEAM> __device__ __forceinline__ int cu_member(void)
{
    return TEAM == 1 ? 0 : (int)threadIdx.x % TEAM;
}

/* Everybody's x merged: merge(a, b) joins two, `a` of the member before. All get the result. */
template <int TEAM, class X, class M>
__device__ __forceinline__ X cu_team(X x, [[maybe_unused]] const M &merge)
{
    if constexpr (TEAM > 1) {
#pragma unroll
        for (int apart = 16; apart > 0; apart /= 2) {
            X other = x;
            other.from_lane(x, apart);
            x = merge(x, other);
        }
    }
    if constexpr (TEAM == 32) {
        const X mine = x;
        x.first_lane(mine);
    }
    if constexpr (TEAM > 32) {
        CU_SHARED(X, found, CU_FLAT_THREADS / 32);
        __syncthreads(); /* what was there is read */
        if (threadIdx.x % 32 == 0)
            found[threadIdx.x / 32] = x;
        __syncthreads();
        x = found[0];
#pragma unroll
        for (int i = 1; i < CU_FLAT_THREADS / 32; i++)
            x = merge(x, found[i]);
    }
    return x;
}

__device__ __forceinline__ double cu_down(double v, int apart)
{
    return __shfl_down_sync(0xffffffffu, v, (unsigned)apart);
}
__device__ __forceinline__ double cu_first(double v)
{
    return __shfl_sync(0xffffffffu, v, 0);
}

struct cu_sum_of {
    double v;
    __device__ __forceinline__ void from_lane(const cu_sum_of &x, int apart)
    {
        v = cu_down(x.v, apart);
    }
    __device__ __forceinline__ void first_lane(const cu_sum_of &x)
    {
        v = cu_first(x.v);
    }
};

/* The largest of a row, and where it is. */
struct cu_best_of {
    float v;
    int64_t at;
    __device__ __forceinline__ void from_lane(const cu_best_of &x, int apart)
    {
        v = __shfl_down_sync(0xffffffffu, x.v, (unsigned)apart);
        at = __shfl_down_sync(0xffffffffu, x.at, (unsigned)apart);
    }
    __device__ __forceinline__ void first_lane(const cu_best_of &x)
    {
        v = __shfl_sync(0xffffffffu, x.v, 0);
        at = __shfl_sync(0xffffffffu, x.at, 0);
    }
};

template <int TEAM> __device__ __forceinline__ double cu_team_sum(double v)
{
    const cu_sum_of x = {v};
    return cu_team<TEAM>(
               x, [](const cu_sum_of &a, const cu_sum_of &b) { return cu_sum_of{a.v + b.v}; })
        .v;
}

/* The largest; of equals the first, or with `last` the last. */
template <int TEAM>
__device__ __forceinline__ cu_best_of cu_team_best(const cu_best_of &x, bool last)
{
    return cu_team<TEAM>(x, [last](const cu_best_of &a, const cu_best_of &b) {
        const bool b_wins = b.at >= 0 && (a.at < 0 || b.v > a.v ||
                                          (b.v == a.v && (last ? b.at > a.at : b.at < a.at)));
        return b_wins ? b : a;
    });
}

/* fn(row) for the rows of this thread's team. */
template <int TEAM, class F>
__device__ __forceinline__ void cu_each_row(const cu_rows &r, const F &fn)
{
    const int64_t teams = CU_FLAT_THREADS / TEAM;
    for (int64_t row = blockIdx.x * teams + threadIdx.x / TEAM; row < r.rows;
         row += gridDim.x * teams)
        fn(row);
}

/* ---- Host -------------------------------------------------------------------------------- */

/* `side`: elements between rows that are neighbours, 1 when they lie side by side. */
inline int cu_team_of(int64_t n, int64_t side)
{
    return n == 1 || (side == 1 && n < CU_LONG_ROW) ? 1 : n < CU_LONG_ROW ? 32 : 256;
}

template <class A>
inline void cu_rows_launch(const tgi_call *call, int team, int64_t rows, const A &args,
                           void (*one)(const A *), void (*warp)(const A *),
                           void (*block)(const A *))
{
    cu_launch(call,
              team == 1    ? one
              : team == 32 ? warp
                           : block,
              cu_flat_grid(rows, CU_FLAT_THREADS / team), dim3(CU_FLAT_THREADS), 0, args);
}

#endif

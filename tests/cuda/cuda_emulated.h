/* cuda_emulated.h - enough of CUDA's language to run our kernels on the processor.
 *
 * A launch runs its blocks one after another. The threads of a block take turns on one thread
 * of the processor: each runs until it has to wait for others (a barrier, an exchange within
 * its warp) and goes on when all have come. So results do not depend on luck, and
 *   found here:      wrong indices, missing barriers that let a thread read what a later one
 *                    writes (or an earlier one: tg_emulated_order), copies read before they
 * were waited for, shared memory read before it was written (it is NaN before each block), a
 * thread that does not come to a barrier or comes to another one, accesses that are not aligned
 * to what they read or write at once; not found here:  races between blocks, and most within
 * one.
 *
 * Kernels ask for shared memory through two macros, which are plain CUDA there:
 *     CU_SHARED(float, partial, 32);         a static array
 *     CU_DYNAMIC_SHARED(unsigned char, s);   what the launch asked for, 16-byte aligned
 * Single variables: CU_SHARED(int, last, 1), read as last[0]. */
#ifndef TG_CUDA_EMULATED_H
#define TG_CUDA_EMULATED_H

#ifndef TG_CUDA_EMULATED
#error "for builds with TG_CUDA_EMULATED only"
#endif

#include <stddef.h>

#include "tests/cuda/emulated_numbers.h"

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __grid_constant__

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
};

extern uint3 threadIdx, blockIdx; /* of the thread whose turn it is */
extern dim3 blockDim, gridDim;
static const int warpSize = 32;

/* ---- the emulator ------------------------------------------------------------------------ */

/* Run a kernel of the form CU_KERNEL over its whole grid. `args` is copied, exactly as long as
 * it is said to be; 0: the kernel reads it where it lies. What no device would launch (limits
 * of a grid, of a block, of shared memory) ends the program with a sentence, as does a block
 * whose threads wait for each other for ever. */
void tg_emulate(const void *kernel, dim3 grid, dim3 block, unsigned shared_bytes,
                const void *args, size_t args_bytes);
/* Largest multiple of shared memory that a launch may ask for: by default what the smallest
 * device that we build for has. */
extern unsigned tg_emulated_shared_most;

/* 0: threads begin in the order of their numbers and go on first come, first served. 1: the
 * last ones first, and in every second block mixed. Set by TEGULA_EMULATED_ORDER. */
extern int tg_emulated_order;

/* 1: as compute capability 8.0 and later; 0: as 7.5 (cu_mma.cuh). */
extern int tgi_emulated_ampere;

/* How many blocks of a grid run, its last ones: of launches over more than 2^31 elements. 0:
 * all. */
extern unsigned tg_emulated_last;

/* The barrier of all threads that is in this line of a source. */
void tg_emulated_block_barrier(const char *file, int line);
/* Waits for the lanes of `mask` of this thread's warp. */
void tg_emulated_warp_barrier(unsigned mask);
/* Give `bytes` (at most 128) and get those of all 32 lanes, `bytes` apart; valid until the
 * lane's next exchange but one. */
const void *tg_emulated_exchange(unsigned mask, const void *mine, size_t bytes);
int tgi_emulated_lane(void);
/* The block's array of that name, NaN at first. */
void *tg_emulated_shared(const void *key, size_t bytes);
void *tg_emulated_dynamic_shared(void);
/* A copy that is done when its group is waited for, not before; until then NaN lies there. */
void tgi_emulated_copy_async(void *to, const void *from, int bytes, int zeros);
void tgi_emulated_copy_commit(void);
void tgi_emulated_copy_wait(int groups_left);
/* Copies that have come are seen by products of groups of warps (emulated_wgmma.h) from here
 * on; 1: a thread of the block has some for which that is not so. */
void tgi_emulated_fence_async(void);
int tg_emulated_unfenced(void);

/* Addresses of dynamic shared memory, as descriptors have them; at most `bytes` behind one. */
unsigned tgi_emulated_shared_address(const void *p);
const void *tg_emulated_shared_at(unsigned address, size_t bytes);

/* The running thread of the block, and the block, of all there were. */
unsigned tg_emulated_thread(void);
uint64_t tg_emulated_block(void);
/* End the program with a sentence. */
[[noreturn]] void tg_emulated_stop(const char *why);
/* ... unless an access of so many bytes at once is aligned to them, */
static inline void tgi_emulated_aligned(const void *p, size_t bytes)
{
    if ((uintptr_t)p % bytes)
        tg_emulated_stop("an access that is not aligned");
}
/* ... unless the device is of compute capability 8.0 or later. */
static inline void tgi_emulated_from_ampere(const char *what)
{
    if (!tgi_emulated_ampere)
        tg_emulated_stop(what);
}

#define CU_SHARED(T, name, n)                                                                  \
    static const char name##_key = 0;                                                          \
    T *const name = (T *)tg_emulated_shared(&name##_key, sizeof(T) * (n))
#define CU_DYNAMIC_SHARED(T, name) T *const name = (T *)tg_emulated_dynamic_shared()

template <class T> inline const T *tgi_emulated_lanes(unsigned mask, const T &mine)
{
    return static_cast<const T *>(tg_emulated_exchange(mask, &mine, sizeof mine));
}

/* ---- barriers and warps ------------------------------------------------------------------ */

static inline void __syncthreads(const char *file = __builtin_FILE(),
                                 int line = __builtin_LINE())
{
    tg_emulated_block_barrier(file, line);
}
static inline void __syncwarp(unsigned mask = 0xffffffffu)
{
    tg_emulated_warp_barrier(mask);
}
static inline void __threadfence(void)
{
}
static inline void __threadfence_block(void)
{
}

template <class T> inline T __shfl_sync(unsigned mask, T v, int lane, int width = 32)
{
    const int me = tgi_emulated_lane();
    return tgi_emulated_lanes(mask, v)[(me & ~(width - 1)) + (lane & (width - 1))];
}
template <class T> inline T __shfl_xor_sync(unsigned mask, T v, int with, int width = 32)
{
    const int me = tgi_emulated_lane(), from = me ^ with;
    const T *all = tgi_emulated_lanes(mask, v);
    return from / width > me / width ? v : all[from];
}
template <class T> inline T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32)
{
    const int me = tgi_emulated_lane(), from = me + (int)by;
    const T *all = tgi_emulated_lanes(mask, v);
    return from / width > me / width ? v : all[from];
}
template <class T> inline T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32)
{
    const int me = tgi_emulated_lane(), from = me - (int)by;
    const T *all = tgi_emulated_lanes(mask, v);
    return from < (me & ~(width - 1)) ? v : all[from];
}
static inline unsigned __ballot_sync(unsigned mask, int yes)
{
    const int *all = tgi_emulated_lanes(mask, yes);
    unsigned out = 0;
    for (int i = 0; i < 32; i++)
        if (mask >> i & 1u && all[i])
            out |= 1u << i;
    return out;
}
static inline int __any_sync(unsigned mask, int yes)
{
    return __ballot_sync(mask, yes) != 0;
}
static inline int __all_sync(unsigned mask, int yes)
{
    return __ballot_sync(mask, yes) == mask;
}
static inline unsigned __activemask(void)
{
    return 0xffffffffu;
}
static inline int __syncthreads_or(int yes)
{
    CU_SHARED(int, any, 1);
    __syncthreads();
    any[0] = 0;
    __syncthreads();
    any[0] |= yes;
    __syncthreads();
    return any[0] != 0;
}

/* ---- memory ------------------------------------------------------------------------------ */

template <class T> inline T __ldg(const T *p)
{
    tgi_emulated_aligned(p, alignof(T));
    return *p;
}
template <class T> inline T __ldcs(const T *p)
{
    return *p;
}
template <class T> inline T __ldcg(const T *p)
{
    return *p;
}
template <class T> inline void __stcs(T *p, T v)
{
    *p = v;
}
template <class T> inline void __stcg(T *p, T v)
{
    *p = v;
}

template <class T> inline T atomicAdd(T *p, T v)
{
    const T was = *p;
    *p = was + v;
    return was;
}
template <class T> inline T atomicMax(T *p, T v)
{
    const T was = *p;
    *p = was < v ? v : was;
    return was;
}
template <class T> inline T atomicMin(T *p, T v)
{
    const T was = *p;
    *p = v < was ? v : was;
    return was;
}
template <class T> inline T atomicOr(T *p, T v)
{
    const T was = *p;
    *p = was | v;
    return was;
}
template <class T> inline T atomicExch(T *p, T v)
{
    const T was = *p;
    *p = v;
    return was;
}
template <class T> inline T atomicCAS(T *p, T want, T v)
{
    const T was = *p;
    if (was == want)
        *p = v;
    return was;
}

#endif

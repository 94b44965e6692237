/* cu_wgmma.cuh - products of matrices by a group of four warps (compute capability 9.0): both
 * factors in shared memory, named by descriptors, sums in registers, done beside what the warps
 * do meanwhile. Thin wrappers around PTX, each with a body for the emulator
 * (tests/cuda/emulated_wgmma.h) that takes descriptors apart as the PTX manual defines them
 * (sections "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions", "Shared
 * Memory Matrix Layout", "Matrix Descriptor Format").
 *
 * Used is one shape, m64n256k16, and one layout, K-major without exchange of units. A *core
 * matrix* is 8 rows (of A: rows; of B: columns) of 8 numbers, 128 bytes in a row. Two of them
 * side by side along K lie `k_stride` bytes apart, neighbours across K `row_stride` bytes; the
 * first may begin at any 16 bytes:
 *
 *     address of numbers [8k, 8k + 8) of row r = start + (r / 8) * row_stride + r % 8 * 16
 *                                                + k * k_stride
 *
 *     descriptor: bits 0-13 start / 16, 16-29 k_stride / 16 ("leading dimension byte offset"),
 *     32-45 row_stride / 16 ("stride dimension byte offset"), 49-51 and 62-63 zero
 *
 * Sums: thread 32w + l of the group has rows 16w + l / 4 (c[4j], c[4j + 1]) and 8 more
 * (c[4j + 2], c[4j + 3]), columns 8j + 2 (l % 4) and the next.
 *
 * Between an ordinary write to shared memory (a waited-for copy is one) and a product that
 * reads it: cu_fence_async by the writer, then a barrier. Before the first product: cu_wgmma_
 * fence. Products are committed in groups; until a group is waited for nobody may touch its
 * sums, nor write what it reads. */
#ifndef TGI_CU_WGMMA_CUH
#define TGI_CU_WGMMA_CUH

#include "kernels/cuda/cu_mma.cuh"
#include "kernels/cuda/cu_view.cuh"

#ifdef TG_CUDA_EMULATED
#include "tests/cuda/emulated_wgmma.h"
#endif

/* 1: code for 9.0 with the features of that generation alone (sm_90a). */
#if defined(TG_CUDA_EMULATED) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define CU_HAS_WGMMA 1
#else
#define CU_HAS_WGMMA 0
#endif

#if CU_HAS_WGMMA

/* ---- Copies by the copy engine ----------------------------------------------------------- */

/* Some KiB in a row, by one thread, that no other instruction waits for (PTX: cp.async.bulk and
 * mbarrier). A place in shared memory has a barrier of its own, which counts its copies: the
 * n-th one's `parity` is n % 2, and who waits for it sees what came. Products do too, without a
 * fence. */
__device__ __forceinline__ void cu_bulk_begin(uint64_t *barrier)
{
#ifdef TG_CUDA_EMULATED
    tgi_emulated_bulk_begin(barrier);
#else
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(cu_shared_address(barrier))
                 : "memory");
#endif
}

/* From and to multiples of 16, as are the bytes. */
__device__ __forceinline__ void cu_bulk_copy(void *to, const void *from, unsigned bytes,
                                             uint64_t *barrier)
{
#ifdef TG_CUDA_EMULATED
    tgi_emulated_bulk_copy(to, from, bytes, barrier);
#else
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%3], %2; "
                 "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
                 "[%1], %2, [%3];" ::"r"(cu_shared_address(to)),
                 "l"(from), "r"(bytes), "r"(cu_shared_address(barrier))
                 : "memory");
#endif
}

__device__ __forceinline__ void cu_bulk_wait(uint64_t *barrier, unsigned parity)
{
#ifdef TG_CUDA_EMULATED
    tgi_emulated_bulk_wait(barrier, parity);
#else
    unsigned there = 0;
    while (!there)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(there)
                     : "r"(cu_shared_address(barrier)), "r"(parity)
                     : "memory");
#endif
}

/* ---- Results ----------------------------------------------------------------------------- */

/* Two numbers of 16 bits, the first in the lower half. */
template <class T> __device__ __forceinline__ uint32_t cu_pair(float first, float second);
template <> __device__ __forceinline__ uint32_t cu_pair<__half>(float first, float second)
{
#ifdef TG_CUDA_EMULATED
    return (uint32_t)tgi_float_to_half_bits(second) << 16 | tgi_float_to_half_bits(first);
#else
    const __half2 both = __floats2half2_rn(first, second);
    return *reinterpret_cast<const uint32_t *>(&both);
#endif
}
template <>
__device__ __forceinline__ uint32_t cu_pair<__nv_bfloat16>(float first, float second)
{
#ifdef TG_CUDA_EMULATED
    const __nv_bfloat16 both[2] = {__float2bfloat16_rn(first), __float2bfloat16_rn(second)};
    uint32_t bits;
    memcpy(&bits, both, sizeof bits);
    return bits;
#else
    const __nv_bfloat162 both = __floats2bfloat162_rn(first, second);
    return *reinterpret_cast<const uint32_t *>(&both);
#endif
}

/* Four matrices of 8 x 8 numbers of 16 bits into shared memory, turned: lanes 8i to 8i + 7 say
 * where the columns of matrix i go, of which lane l has row l / 4, columns 2 (l % 4) and one
 * more (PTX: stmatrix). */
__device__ __forceinline__ void cu_put_matrices_turned(void *column, const uint32_t (&r)[4])
{
#ifdef TG_CUDA_EMULATED
    tgi_emulated_stmatrix_turned(column, r);
#else
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(
                     cu_shared_address(column)),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
#endif
}

/* ---- Products ---------------------------------------------------------------------------- */

/* Strides in bytes. */
__device__ __forceinline__ uint64_t cu_wgmma_matrix(const void *start, unsigned k_stride,
                                                    unsigned row_stride)
{
#ifdef TG_CUDA_EMULATED
    const unsigned at = tgi_emulated_shared_address(start);
#else
    const unsigned at = cu_shared_address(start);
#endif
    return (uint64_t)(at >> 4 & 0x3fffu) | (uint64_t)(k_stride >> 4 & 0x3fffu) << 16 |
           (uint64_t)(row_stride >> 4 & 0x3fffu) << 32;
}

/* The same matrix `bytes` further on: a multiple of 16, within shared memory. */
__device__ __forceinline__ uint64_t cu_wgmma_moved(uint64_t matrix, unsigned bytes)
{
    return matrix + (bytes >> 4);
}

__device__ __forceinline__ void cu_fence_async(void)
{
#ifdef TG_CUDA_EMULATED
    tgi_emulated_fence_async();
#else
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

__device__ __forceinline__ void cu_wgmma_fence(void)
{
#ifdef TG_CUDA_EMULATED
    tgi_emulated_wgmma_fence();
#else
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}

__device__ __forceinline__ void cu_wgmma_commit(void)
{
#ifdef TG_CUDA_EMULATED
    tgi_emulated_wgmma_commit();
#else
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}

/* All groups but the last N are done. The sums of the others stay untouchable. */
template <int N> __device__ __forceinline__ void cu_wgmma_wait(void)
{
#ifdef TG_CUDA_EMULATED
    tgi_emulated_wgmma_wait(N);
#else
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
#endif
}

/* All groups are done, and the sums may be read: nothing that reads them moves up. */
__device__ __forceinline__ void cu_wgmma_finish(float (&c)[128])
{
    cu_wgmma_wait<0>();
#ifndef TG_CUDA_EMULATED
#pragma unroll
    for (int i = 0; i < 128; i++)
        asm volatile("" : "+f"(c[i])::"memory");
#else
    (void)c;
#endif
}

#ifndef TG_CUDA_EMULATED
#define CU_SUMS_4(i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3])
#define CU_SUMS_16(i) CU_SUMS_4(i), CU_SUMS_4(i + 4), CU_SUMS_4(i + 8), CU_SUMS_4(i + 12)
#define CU_WGMMA_REGISTERS                                                                     \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                   \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "         \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "         \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "         \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "         \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "         \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, "   \
    "%111, "                                                                                   \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, "     \
    "%126, %127"
#define CU_WGMMA_64X256(type)                                                                  \
    asm volatile("{ .reg .pred add; setp.ne.b32 add, %130, 0; "                                \
                 "wgmma.mma_async.sync.aligned.m64n256k16.f32." type "." type                  \
                 " {" CU_WGMMA_REGISTERS "}, %128, %129, add, 1, 1, 0, 0; }"                   \
                 : CU_SUMS_16(0), CU_SUMS_16(16), CU_SUMS_16(32), CU_SUMS_16(48),              \
                   CU_SUMS_16(64), CU_SUMS_16(80), CU_SUMS_16(96), CU_SUMS_16(112)             \
                 : "l"(a), "l"(b), "r"(add))
#endif

/* c += A B, 64 x 16 times 16 x 256. `a` and `b`: see cu_wgmma_matrix; the same in all threads
 * of the group. */
template <class T>
__device__ __forceinline__ void cu_wgmma_64x256(float (&c)[128], uint64_t a, uint64_t b,
                                                int add);
template <>
__device__ __forceinline__ void cu_wgmma_64x256<__half>(float (&c)[128], uint64_t a, uint64_t b,
                                                        int add)
{
#ifdef TG_CUDA_EMULATED
    tgi_emulated_wgmma(c, 256, a, b, add, 0);
#else
    CU_WGMMA_64X256("f16");
#endif
}
template <>
__device__ __forceinline__ void cu_wgmma_64x256<__nv_bfloat16>(float (&c)[128], uint64_t a,
                                                               uint64_t b, int add)
{
#ifdef TG_CUDA_EMULATED
    tgi_emulated_wgmma(c, 256, a, b, add, 1);
#else
    CU_WGMMA_64X256("bf16");
#endif
}

#endif
#endif

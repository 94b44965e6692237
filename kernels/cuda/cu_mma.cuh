/* cu_mma.cuh - the tensor cores' products of 16-bit numbers, and how their operands come into
 * shared memory and out of it. Thin wrappers around PTX, each with a body for the emulator that
 * moves values between lanes as the PTX manual defines the fragments (sections "Matrix
 * Fragments for mma.m16n8k16", ldmatrix, cp.async):
 *
 *     A 16x16, row-major   a0: row g, columns 2t 2t+1      a1: row g + 8
 *                          a2: row g, columns 2t+8 2t+9    a3: row g + 8
 *     B 16x8, by columns   b0: column g, rows 2t 2t+1      b1: rows 2t+8 2t+9
 *     C 16x8               c0 c1: row g, columns 2t 2t+1   c2 c3: row g + 8
 *
 * where g = lane / 4 and t = lane % 4. Compute capability 7.5 has products of half the depth
 * only, two of which make one, and no asynchronous copies. */
#ifndef TG_CU_MMA_CUH
#define TG_CU_MMA_CUH

#include "kernels/cuda/cu_common.cuh"

/* 1: copies to shared memory that go on beside the arithmetic. A constant on a device. */
#ifdef TG_CUDA_EMULATED
#define CU_HAS_ASYNC (tg_emulated_ampere != 0)
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define CU_HAS_ASYNC false
#else
#define CU_HAS_ASYNC true
#endif

#ifndef TG_CUDA_EMULATED
__device__ __forceinline__ unsigned cu_shared_address(const void *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}
#endif

/* ---- Copies ------------------------------------------------------------------------------ */

/* 16 bytes from global to shared memory; zeros when not `valid` (nothing is read then). Through
 * the first-level cache: other taps read the same pixels soon. */
__device__ __forceinline__ void cu_copy16(void *to, const void *from, bool valid)
{
#ifdef TG_CUDA_EMULATED
    tg_emulated_copy_async(to, from, valid ? 16 : 0, valid ? 0 : 16);
#elif !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(cu_shared_address(to)),
                 "l"(from), "r"(valid ? 16 : 0)
                 : "memory");
#else
    (void)to, (void)from, (void)valid;
#endif
}

/* The same past the first level: for what this block reads once. */
__device__ __forceinline__ void cu_copy16_once(void *to, const void *from)
{
#ifdef TG_CUDA_EMULATED
    tg_emulated_copy_async(to, from, 16, 0);
#elif !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(cu_shared_address(to)),
                 "l"(from)
                 : "memory");
#else
    (void)to, (void)from;
#endif
}

__device__ __forceinline__ void cu_copy_commit(void)
{
#ifdef TG_CUDA_EMULATED
    tg_emulated_copy_commit();
#elif !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* All groups but the last N are there, for this thread. */
template <int N> __device__ __forceinline__ void cu_copy_wait(void)
{
#ifdef TG_CUDA_EMULATED
    tg_emulated_copy_wait(N);
#elif !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}

/* ---- Fragments --------------------------------------------------------------------------- */

#ifdef TG_CUDA_EMULATED
/* Lane l gets words of row l / 4 of each 8x8 matrix; lanes 8i to 8i + 7 say where its rows are.
 */
template <int N> inline void tg_emulated_ldmatrix(uint32_t (&r)[N], const void *row)
{
    const void *const *rows = tg_emulated_lanes(0xffffffffu, row);
    const int lane = tg_emulated_lane();
    for (int i = 0; i < N; i++)
        memcpy(&r[i], (const char *)rows[8 * i + lane / 4] + 4 * (lane % 4), 4);
}
/* The matrices turned: lane l gets rows 2 (l % 4) and one more, of column l / 4. */
template <int N> inline void tg_emulated_ldmatrix_turned(uint32_t (&r)[N], const void *row)
{
    const void *const *rows = tg_emulated_lanes(0xffffffffu, row);
    const int lane = tg_emulated_lane();
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 2; k++)
            memcpy((char *)&r[i] + 2 * k,
                   (const char *)rows[8 * i + 2 * (lane % 4) + k] + 2 * (lane / 4), 2);
}
#endif

__device__ __forceinline__ void cu_ldmatrix4(uint32_t (&r)[4], const void *row)
{
#ifdef TG_CUDA_EMULATED
    tg_emulated_ldmatrix(r, row);
#else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(cu_shared_address(row))
                 : "memory");
#endif
}

__device__ __forceinline__ void cu_ldmatrix4_turned(uint32_t (&r)[4], const void *row)
{
#ifdef TG_CUDA_EMULATED
    tg_emulated_ldmatrix_turned(r, row);
#else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(cu_shared_address(row))
                 : "memory");
#endif
}

__device__ __forceinline__ void cu_ldmatrix2(uint32_t (&r)[2], const void *row)
{
#ifdef TG_CUDA_EMULATED
    tg_emulated_ldmatrix(r, row);
#else
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(cu_shared_address(row))
                 : "memory");
#endif
}

/* ---- Products ---------------------------------------------------------------------------- */

#ifdef TG_CUDA_EMULATED
struct tg_emulated_fragment {
    float a[8], b[4];
};

inline void tg_emulated_mma(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                            int k0, int k1)
{
    tg_emulated_fragment mine;
    for (int i = 0; i < 4; i++) {
        mine.a[2 * i] = tg_half_bits_to_float((uint16_t)a[i]);
        mine.a[2 * i + 1] = tg_half_bits_to_float((uint16_t)(a[i] >> 16));
    }
    for (int i = 0; i < 2; i++) {
        mine.b[2 * i] = tg_half_bits_to_float((uint16_t)b[i]);
        mine.b[2 * i + 1] = tg_half_bits_to_float((uint16_t)(b[i] >> 16));
    }
    const tg_emulated_fragment *all = tg_emulated_lanes(0xffffffffu, mine);
    const int lane = tg_emulated_lane(), g = lane / 4, t = lane % 4;
    for (int k = k0; k < k1; k++) { /* column k of A: lane k % 8 / 2, words k / 8 */
        const tg_emulated_fragment *row = &all[4 * g + k % 8 / 2];
        const int word = 4 * (k / 8) + k % 2;
        for (int n = 0; n < 2; n++) {
            const float w = all[4 * (2 * t + n) + k % 8 / 2].b[2 * (k / 8) + k % 2];
            c[n] = fmaf(row->a[word], w, c[n]);
            c[2 + n] = fmaf(row->a[word + 2], w, c[2 + n]);
        }
    }
}
#endif

/* c += A B, numbers of 16 bits (half), sums in float32. */
__device__ __forceinline__ void cu_mma16(float (&c)[4], const uint32_t (&a)[4],
                                         const uint32_t (&b)[2])
{
#ifdef TG_CUDA_EMULATED
    if (CU_HAS_ASYNC) {
        tg_emulated_mma(c, a, b, 0, 16);
    } else {
        tg_emulated_mma(c, a, b, 0, 8);
        tg_emulated_mma(c, a, b, 8, 16);
    }
#elif !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
#pragma unroll
    for (int i = 0; i < 2; i++)
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
                     "{%4,%5}, {%6}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[2 * i]), "r"(a[2 * i + 1]), "r"(b[i]));
#endif
}

#endif

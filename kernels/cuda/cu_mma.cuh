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
#ifndef TGI_CU_MMA_CUH
#define TGI_CU_MMA_CUH

#include "kernels/cuda/cu_common.cuh"

/* 1: copies to shared memory that go on beside the arithmetic. A constant on a device. */
#ifdef TG_CUDA_EMULATED
#define CU_HAS_ASYNC (tgi_emulated_ampere != 0)
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
    tgi_emulated_copy_async(to, from, valid ? 16 : 0, valid ? 0 : 16);
#elif !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(cu_shared_address(to)),
                 "l"(from), "r"(valid ? 16 : 0)
                 : "memory");
#else
    (void)to, (void)from, (void)valid;
#endif
}

/* The same, or nothing at all where it is not `wanted`. */
__device__ __forceinline__ void cu_copy16_if(void *to, const void *from, bool valid,
                                             bool wanted)
{
#ifdef TG_CUDA_EMULATED
    if (wanted)
        tgi_emulated_copy_async(to, from, valid ? 16 : 0, valid ? 0 : 16);
#elif !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %3, 0; "
        "@p cp.async.ca.shared.global [%0], [%1], 16, %2; }" ::"r"(cu_shared_address(to)),
        "l"(from), "r"(valid ? 16 : 0), "r"((int)wanted)
        : "memory");
#else
    (void)to, (void)from, (void)valid, (void)wanted;
#endif
}

/* The same past the first level: for what this block reads once. */
__device__ __forceinline__ void cu_copy16_once(void *to, const void *from)
{
#ifdef TG_CUDA_EMULATED
    tgi_emulated_copy_async(to, from, 16, 0);
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
    tgi_emulated_copy_commit();
#elif !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* All groups but the last N are there, for this thread. */
template <int N> __device__ __forceinline__ void cu_copy_wait(void)
{
#ifdef TG_CUDA_EMULATED
    tgi_emulated_copy_wait(N);
#elif !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}

/* ---- Fragments --------------------------------------------------------------------------- */

#ifdef TG_CUDA_EMULATED
/* Lane l gets words of row l / 4 of each 8x8 matrix; lanes 8i to 8i + 7 say where its rows are.
 */
template <int N> inline void tgi_emulated_ldmatrix(uint32_t (&r)[N], const void *row)
{
    tgi_emulated_aligned(row, 16);
    const void *const *rows = tgi_emulated_lanes(0xffffffffu, row);
    const int lane = tgi_emulated_lane();
    for (int i = 0; i < N; i++)
        memcpy(&r[i], (const char *)rows[8 * i + lane / 4] + 4 * (lane % 4), 4);
}
/* The matrices turned: lane l gets rows 2 (l % 4) and one more, of column l / 4. */
template <int N> inline void tgi_emulated_ldmatrix_turned(uint32_t (&r)[N], const void *row)
{
    tgi_emulated_aligned(row, 16);
    const void *const *rows = tgi_emulated_lanes(0xffffffffu, row);
    const int lane = tgi_emulated_lane();
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 2; k++)
            memcpy((char *)&r[i] + 2 * k,
                   (const char *)rows[8 * i + 2 * (lane % 4) + k] + 2 * (lane / 4), 2);
}
#endif

__device__ __forceinline__ void cu_ldmatrix4(uint32_t (&r)[4], const void *row)
{
#ifdef TG_CUDA_EMULATED
    tgi_emulated_ldmatrix(r, row);
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
    tgi_emulated_ldmatrix_turned(r, row);
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
    tgi_emulated_ldmatrix(r, row);
#else
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(cu_shared_address(row))
                 : "memory");
#endif
}

/* ---- Products ---------------------------------------------------------------------------- */

#ifdef TG_CUDA_EMULATED
/* Words of 16 bits, two in a register, the deeper ones in the later registers. */
struct tgi_emulated_halves {
    static const int words = 2;
    static float at(uint32_t r, int i)
    {
        return tgi_half_bits_to_float((uint16_t)(r >> 16 * i));
    }
};
struct tgi_emulated_brains {
    static const int words = 2;
    static float at(uint32_t r, int i)
    {
        return __uint_as_float(r >> 16 * i << 16);
    }
};
/* One of 32 bits, of which the unit does not look at the last 13. */
struct tgi_emulated_tf32s {
    static const int words = 1;
    static float at(uint32_t r, int)
    {
        return __uint_as_float(r & 0xffffe000u);
    }
};

struct tgi_emulated_fragment {
    uint32_t a[4], b[2];
};

/* Columns k0 to k1 of A times rows k0 to k1 of B. Column k lies in lane k / words % 4 of a row,
 * in the second half of the registers from column 4 * words on. */
template <class N>
inline void tgi_emulated_mma(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                             int k0, int k1)
{
    tgi_emulated_fragment mine;
    memcpy(mine.a, a, sizeof mine.a);
    memcpy(mine.b, b, sizeof mine.b);
    const tgi_emulated_fragment *all = tgi_emulated_lanes(0xffffffffu, mine);
    const int lane = tgi_emulated_lane(), g = lane / 4, t = lane % 4;
    for (int k = k0; k < k1; k++) {
        const int from = k / N::words % 4, deep = k / (4 * N::words), word = k % N::words;
        const tgi_emulated_fragment *row = &all[4 * g + from];
        for (int n = 0; n < 2; n++) {
            const float w = N::at(all[4 * (2 * t + n) + from].b[deep], word);
            c[n] = fmaf(N::at(row->a[2 * deep], word), w, c[n]);
            c[2 + n] = fmaf(N::at(row->a[2 * deep + 1], word), w, c[2 + n]);
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
        tgi_emulated_mma<tgi_emulated_halves>(c, a, b, 0, 16);
    } else {
        tgi_emulated_mma<tgi_emulated_halves>(c, a, b, 0, 8);
        tgi_emulated_mma<tgi_emulated_halves>(c, a, b, 8, 16);
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

/* The same of bfloat16 numbers, from 8.0 on. */
__device__ __forceinline__ void cu_mma_bf16(float (&c)[4], const uint32_t (&a)[4],
                                            const uint32_t (&b)[2])
{
#ifdef TG_CUDA_EMULATED
    tgi_emulated_from_ampere("a product of bfloat16 numbers on 7.5");
    tgi_emulated_mma<tgi_emulated_brains>(c, a, b, 0, 16);
#elif !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    (void)c, (void)a, (void)b;
#endif
}

/* By the type of the numbers, of 16 bits. */
template <class T>
__device__ __forceinline__ void cu_mma_of(float (&c)[4], const uint32_t (&a)[4],
                                          const uint32_t (&b)[2]);
template <>
__device__ __forceinline__ void cu_mma_of<__half>(float (&c)[4], const uint32_t (&a)[4],
                                                  const uint32_t (&b)[2])
{
    cu_mma16(c, a, b);
}
template <>
__device__ __forceinline__ void cu_mma_of<__nv_bfloat16>(float (&c)[4], const uint32_t (&a)[4],
                                                         const uint32_t (&b)[2])
{
    cu_mma_bf16(c, a, b);
}

/* The bits of a float32, rounded to what a TF32 product looks at: to nearest, ties away. */
__device__ __forceinline__ uint32_t cu_round_tf32(uint32_t bits)
{
#ifdef TG_CUDA_EMULATED
    return (bits & 0x7f800000u) == 0x7f800000u ? bits : (bits + 0x1000u) & 0xffffe000u;
#elif !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    uint32_t r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(__uint_as_float(bits)));
    return r;
#else
    return bits;
#endif
}

/* c += A B of TF32 numbers, 16 x 8 times 8 x 8, from 8.0 on: one number in a register, lane t
 * has columns t (a0, a1; b0) and t + 4 (a2, a3; b1). */
__device__ __forceinline__ void cu_mma_tf32(float (&c)[4], const uint32_t (&a)[4],
                                            const uint32_t (&b)[2])
{
#ifdef TG_CUDA_EMULATED
    tgi_emulated_from_ampere("a product of TF32 numbers on 7.5");
    tgi_emulated_mma<tgi_emulated_tf32s>(c, a, b, 0, 8);
#elif !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    (void)c, (void)a, (void)b;
#endif
}

#endif

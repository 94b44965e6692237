/* simd.h - one vector type for all instruction sets.
 *
 * Each source of this folder is compiled once per set with TG_SIMD_ISA = 0 portable, 1 AVX2
 * (with FMA), 2 AVX-512; TGS(name) gives every external symbol the set's suffix. `vf` is TGI_L
 * floats.
 *
 * INVARIANTS
 *  1. every function here is a lane-wise function of its operands, so a value does not depend
 * on which lane, body or tail computes it; tails are partial loads around the same functions.
 *  2. vf_fma rounds once where the set has FMA and twice in the portable one, by construction:
 *     the compiler is told not to contract (-ffp-contract=off).
 *  3. vf_max(a,b) is a > b ? a : b and vf_min(a,b) is a < b ? a : b, in every set: the second
 *     operand is the answer when one is NaN. */
#ifndef TGI_SIMD_H
#define TGI_SIMD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if TG_SIMD_ISA == 2
#define TGI_L 16
#define TGI_SET avx512
#elif TG_SIMD_ISA == 1
#define TGI_L 8
#define TGI_SET avx2
#else
#define TGI_L 8
#define TGI_SET portable
#endif

/* With TG_SIMD_PLAN a source is compiled for any processor, for what plans ask of a set that
 * runs elsewhere: its variants answer as they do there, and have nothing that runs. */
#ifdef TG_SIMD_PLAN
#define TGI_CODE 0 /* the set whose instructions are used */
#define TGI_RUN(fn) NULL
#define TGI_SUFFIX(name, set) name##_##set##_plan
#else
#define TGI_CODE TG_SIMD_ISA
#define TGI_RUN(fn) fn
#define TGI_SUFFIX(name, set) name##_##set
#endif
#define TGI_SUFFIXED(name, set) TGI_SUFFIX(name, set)
#define TGS(name) TGI_SUFFIXED(name, TGI_SET)
#if TG_SIMD_ISA && !defined(TG_SIMD_PLAN) /* long to read, and a plan has no use for it */
#include <immintrin.h>
#endif
#ifdef TG_SIMD_HALVES /* the set avx512 for processors with AVX2, in tests */
#include "kernels/cpu/simd_halves.h"
#endif

#define TGI_INLINE static inline __attribute__((always_inline))
#if defined(TG_SIMD_HALVES) /* what has no registers for it would compile for minutes */
#define TGI_UNROLL
#define TGI_UNROLL_4
#elif defined(__clang__)
#define TGI_UNROLL _Pragma("clang loop unroll(full)")
#define TGI_UNROLL_4 _Pragma("clang loop unroll_count(4)")
#else
#define TGI_UNROLL _Pragma("GCC unroll 32")
#define TGI_UNROLL_4 _Pragma("GCC unroll 4")
#endif

/* Forget what is known of x, a number or pointer: what is computed from it is computed here,
 * not in front of a loop, where it would take registers that the loop needs. */
#define TGI_FORGET(x) __asm__("" : "+r"(x))

typedef float vf __attribute__((vector_size(4 * TGI_L)));
typedef int32_t vi __attribute__((vector_size(4 * TGI_L)));
typedef float vf_unaligned __attribute__((vector_size(4 * TGI_L), aligned(4), may_alias));

TGI_INLINE vf vf_load(const float *p)
{
    return *(const vf_unaligned *)p;
}
TGI_INLINE void vf_store(float *p, vf v)
{
    *(vf_unaligned *)p = v;
}
TGI_INLINE vf vf_set1(float x)
{
#if TGI_CODE == 2
    return (vf)_mm512_set1_ps(x);
#elif TGI_CODE == 1
    return (vf)_mm256_set1_ps(x);
#else
    vf v;
    for (int i = 0; i < TGI_L; i++)
        v[i] = x;
    return v;
#endif
}
TGI_INLINE vf vf_zero(void)
{
    return (vf){0};
}
/* The first n lanes; the others are zero and their memory is not touched. */
TGI_INLINE vf vf_load_n(const float *p, int64_t n)
{
#if TGI_CODE == 2
    return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1u), p);
#else
    vf v = {0};
    float tmp[TGI_L] = {0};
    for (int64_t i = 0; i < n; i++)
        tmp[i] = p[i];
    memcpy(&v, tmp, sizeof v);
    return v;
#endif
}
TGI_INLINE void vf_store_n(float *p, vf v, int64_t n)
{
#if TGI_CODE == 2
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1u), (__m512)v);
#else
    float tmp[TGI_L];
    memcpy(tmp, &v, sizeof v);
    for (int64_t i = 0; i < n; i++)
        p[i] = tmp[i];
#endif
}
/* Lanes p[0], p[step], p[2*step], ...; the first n, others zero. */
TGI_INLINE vf vf_load_step(const float *p, ptrdiff_t step, int64_t n)
{
    vf v = {0};
    float tmp[TGI_L] = {0};
    for (int64_t i = 0; i < n; i++)
        tmp[i] = p[i * step];
    memcpy(&v, tmp, sizeof v);
    return v;
}
TGI_INLINE vf vf_fma(vf a, vf b, vf c) /* a * b + c */
{
#if TGI_CODE == 2
    return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif TGI_CODE == 1
    return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return a * b + c;
#endif
}
TGI_INLINE vf vf_select(vi mask, vf yes, vf no)
{
    return (vf)((mask & (vi)yes) | (~mask & (vi)no));
}
TGI_INLINE vf vf_max(vf a, vf b)
{
#if TGI_CODE == 2
    return (vf)_mm512_max_ps((__m512)a, (__m512)b);
#elif TGI_CODE == 1
    return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#else
    return vf_select((vi)(a > b), a, b);
#endif
}
TGI_INLINE vf vf_min(vf a, vf b)
{
#if TGI_CODE == 2
    return (vf)_mm512_min_ps((__m512)a, (__m512)b);
#elif TGI_CODE == 1
    return (vf)_mm256_min_ps((__m256)a, (__m256)b);
#else
    return vf_select((vi)(a < b), a, b);
#endif
}
TGI_INLINE vf vf_abs(vf a)
{
    const vi all = (vi){0} + 0x7fffffff;
    return (vf)((vi)a & all);
}
TGI_INLINE vf vf_neg(vf a)
{
    const vi sign = (vi){0} + INT32_MIN;
    return (vf)((vi)a ^ sign);
}
TGI_INLINE vf vf_sqrt(vf a)
{
#if TGI_CODE == 2
    return (vf)_mm512_sqrt_ps((__m512)a);
#elif TGI_CODE == 1
    return (vf)_mm256_sqrt_ps((__m256)a);
#else
    for (int i = 0; i < TGI_L; i++)
        a[i] = __builtin_sqrtf(a[i]);
    return a;
#endif
}
/* Sum of all lanes in a fixed tree: halves added until one lane is left. */
TGI_INLINE float vf_reduce(vf v)
{
#if TGI_CODE == 2
    const __m256 h =
        _mm256_add_ps(_mm512_castps512_ps256((__m512)v), _mm512_extractf32x8_ps((__m512)v, 1));
#elif TGI_CODE == 1
    const __m256 h = (__m256)v;
#endif
#if TGI_CODE
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_shuffle_ps(q, q, 1)));
#else
#if TGI_L == 16
    for (int i = 0; i < 8; i++)
        v[i] += v[i + 8];
#endif
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
#endif
}
/* Shuffle of two vectors: lane i is lane index[i] of a then b; the indices are literals. */
#if defined(__clang__)
#define VF_SHUFFLE(a, b, ...) ((vf)__builtin_shufflevector(a, b, __VA_ARGS__))
#else
#define VF_SHUFFLE(a, b, ...) ((vf)__builtin_shuffle(a, b, (vi){__VA_ARGS__}))
#endif
/* Halves (quarters, ...) of a and b added, a's in front of b's: a level of vf_reduce's tree. */
#if TGI_L == 16
TGI_INLINE vf vf_add_8(vf a, vf b)
{
    return VF_SHUFFLE(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
           VF_SHUFFLE(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
}
TGI_INLINE vf vf_add_4(vf a, vf b)
{
    return VF_SHUFFLE(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
           VF_SHUFFLE(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
}
TGI_INLINE vf vf_add_2(vf a, vf b)
{
    return VF_SHUFFLE(a, b, 0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 24, 25, 28, 29) +
           VF_SHUFFLE(a, b, 2, 3, 6, 7, 10, 11, 14, 15, 18, 19, 22, 23, 26, 27, 30, 31);
}
TGI_INLINE vf vf_add_1(vf a, vf b)
{
    return VF_SHUFFLE(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30) +
           VF_SHUFFLE(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
}
#else
TGI_INLINE vf vf_add_4(vf a, vf b)
{
    return VF_SHUFFLE(a, b, 0, 1, 2, 3, 8, 9, 10, 11) +
           VF_SHUFFLE(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
}
TGI_INLINE vf vf_add_2(vf a, vf b)
{
    return VF_SHUFFLE(a, b, 0, 1, 4, 5, 8, 9, 12, 13) +
           VF_SHUFFLE(a, b, 2, 3, 6, 7, 10, 11, 14, 15);
}
TGI_INLINE vf vf_add_1(vf a, vf b)
{
    return VF_SHUFFLE(a, b, 0, 2, 4, 6, 8, 10, 12, 14) +
           VF_SHUFFLE(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
}
#endif
/* vf_reduce of TGI_L vectors that lie `step` apart, bit for bit, for a third of the work: lane
 * i is the sum of v[i * step]. */
TGI_INLINE vf vf_reduce_all(const vf *v, ptrdiff_t step)
{
    vf t[TGI_L / 2];
#if TGI_L == 16
    vf w[8];
    TGI_UNROLL
    for (int i = 0; i < 8; i++)
        w[i] = vf_add_8(v[2 * i * step], v[(2 * i + 1) * step]);
    TGI_UNROLL
    for (int i = 0; i < 4; i++)
        t[i] = vf_add_4(w[2 * i], w[2 * i + 1]);
#else
    TGI_UNROLL
    for (int i = 0; i < 4; i++)
        t[i] = vf_add_4(v[2 * i * step], v[(2 * i + 1) * step]);
#endif
    return vf_add_1(vf_add_2(t[0], t[1]), vf_add_2(t[2], t[3]));
}
/* Lane j of v[i] and lane i of v[j] change places, for all of TGI_L vectors. */
#define TGI_EXCHANGE(k, low, high)                                                             \
    TGI_UNROLL                                                                                 \
    for (int i = 0; i < TGI_L; i++)                                                            \
        if (!(i & (k))) {                                                                      \
            const vf a = v[i], b = v[i | (k)];                                                 \
            v[i] = VF_SHUFFLE(a, b, low);                                                      \
            v[i | (k)] = VF_SHUFFLE(a, b, high);                                               \
        }
#define TGI_LANES(...) __VA_ARGS__
TGI_INLINE void vf_transpose(vf *v)
{
#if TGI_L == 16
    TGI_EXCHANGE(8, TGI_LANES(0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23),
                 TGI_LANES(8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31))
    TGI_EXCHANGE(4, TGI_LANES(0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27),
                 TGI_LANES(4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31))
    TGI_EXCHANGE(2, TGI_LANES(0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29),
                 TGI_LANES(2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31))
    TGI_EXCHANGE(1, TGI_LANES(0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30),
                 TGI_LANES(1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31))
#else
    TGI_EXCHANGE(4, TGI_LANES(0, 1, 2, 3, 8, 9, 10, 11), TGI_LANES(4, 5, 6, 7, 12, 13, 14, 15))
    TGI_EXCHANGE(2, TGI_LANES(0, 1, 8, 9, 4, 5, 12, 13), TGI_LANES(2, 3, 10, 11, 6, 7, 14, 15))
    TGI_EXCHANGE(1, TGI_LANES(0, 8, 2, 10, 4, 12, 6, 14), TGI_LANES(1, 9, 3, 11, 5, 13, 7, 15))
#endif
}
#undef TGI_EXCHANGE
#undef TGI_LANES
/* All ones in the lanes below n. */
TGI_INLINE vi vi_first(int64_t n)
{
    vi m;
    for (int i = 0; i < TGI_L; i++)
        m[i] = i < n ? -1 : 0;
    return m;
}

/* e^(x - n ln 2), which lies in [-ln 2 / 2, ln 2 / 2]: ln 2 in two parts, then the degree-5 kernel of
 * (e^r - 1 - r) / r^2.
 * @source Cephes expf (Moshier), coefficients. */
TGI_INLINE vf vf_exp_rest(vf x, vf n)
{
    vf r = vf_fma(n, vf_set1(-0.693359375f), x);
    r = vf_fma(n, vf_set1(2.12194440e-4f), r);
    vf p = vf_set1(1.9875691500e-4f);
    p = vf_fma(p, r, vf_set1(1.3981999507e-3f));
    p = vf_fma(p, r, vf_set1(8.3334519073e-3f));
    p = vf_fma(p, r, vf_set1(4.1665795894e-2f));
    p = vf_fma(p, r, vf_set1(1.6666665459e-1f));
    p = vf_fma(p, r, vf_set1(5.0000001201e-1f));
    return vf_fma(p, r * r, r + vf_set1(1.0f));
}

/* e^x. Range reduction by n = round(x / ln 2); 2^n is applied in two halves so that overflow ends at
 * infinity and underflow passes through the denormals. Relative error below 2e-7 in the normal
 * range. */
TGI_INLINE vf vf_exp(vf x)
{
    const vf magic = vf_set1(12582912.0f); /* 1.5 * 2^23: adding rounds to an integer */
    x = vf_max(vf_set1(-104.0f), vf_min(vf_set1(89.0f), x));
    const vf n = vf_fma(x, vf_set1(1.44269504088896341f), magic) - magic;
    const vf p = vf_exp_rest(x, n);
    const vi whole = __builtin_convertvector(vf_select((vi)(n == n), n, vf_zero()), vi);
    const vi half = whole >> 1;
    return p * (vf)((half + 127) << 23) * (vf)((whole - half + 127) << 23);
}
TGI_INLINE vf vf_sigmoid(vf x)
{
    return vf_set1(1.0f) / (vf_set1(1.0f) + vf_exp(vf_neg(x)));
}
/* tanh x: an odd polynomial below 0.625, 1 - 2 / (e^2|x| + 1) with the sign above.
 * @source Cephes tanhf (Moshier), coefficients and the threshold. */
TGI_INLINE vf vf_tanh(vf x)
{
    const vf z = vf_abs(x), q = x * x, one = vf_set1(1.0f);
    vf p = vf_set1(-5.70498872745e-3f);
    p = vf_fma(p, q, vf_set1(2.06390887954e-2f));
    p = vf_fma(p, q, vf_set1(-5.37397155531e-2f));
    p = vf_fma(p, q, vf_set1(1.33314422036e-1f));
    p = vf_fma(p, q, vf_set1(-3.33332819422e-1f));
    p = vf_fma(p * q, x, x);
    const vf big = one - vf_set1(2.0f) / (vf_exp(z + z) + one);
    const vf signed_big = vf_select((vi)(x < vf_zero()), vf_neg(big), big);
    return vf_select((vi)(z < vf_set1(0.625f)), p, signed_big);
}
/* x times the share of the normal distribution below x. Below zero that is half of erfc,
 * e^(-x^2/2) times a polynomial of u = 1 / (1 + |x| / 4), so nothing cancels; above, 1 less it.
 * The polynomial is within 2e-8, relative, up to |x| = 15, where the exponential is 0: fitted to
 * erfc(t) e^(t^2) / 2, t = |x| / sqrt 2, at 2000 Chebyshev nodes of u, the greatest relative error
 * made least. */
TGI_INLINE vf vf_gelu(vf x)
{
    const vf one = vf_set1(1.0f), z = vf_min(vf_set1(15.0f), vf_abs(x));
    const vf u = one / vf_fma(z, vf_set1(0.25f), one);
    vf p = vf_set1(3.291538832122476e-2f);
    p = vf_fma(p, u, vf_set1(-1.9065269235815538e-1f));
    p = vf_fma(p, u, vf_set1(3.821861617947333e-1f));
    p = vf_fma(p, u, vf_set1(-3.1660296571586805e-1f));
    p = vf_fma(p, u, vf_set1(2.9063096674944516e-1f));
    p = vf_fma(p, u, vf_set1(-1.3027550590838722e-2f));
    p = vf_fma(p, u, vf_set1(1.1904728667405937e-1f));
    p = vf_fma(p, u, vf_set1(9.535712724187845e-2f));
    p = vf_fma(p, u, vf_set1(1.0016454696363333e-1f));
    p = vf_fma(p, u, vf_set1(-1.827836694156957e-5f));
    p = p * vf_exp(z * z * vf_set1(-0.5f));
    return x * vf_select((vi)(x < vf_zero()), p, one - p);
}
/* The form with tanh of s, by the sigmoid of 2 s: nothing cancels. */
TGI_INLINE vf vf_gelu_tanh(vf x)
{
    const vf cubic = vf_fma(x * x, x * vf_set1(0.044715f), x);
    return x / (vf_set1(1.0f) + vf_exp(cubic * vf_set1(-1.5957691216057308f)));
}

#endif

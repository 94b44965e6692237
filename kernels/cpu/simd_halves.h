/* simd_halves.h - the AVX-512 operations of this folder as two halves of AVX2, lane for lane.
 *
 * With TG_SIMD_HALVES the set avx512 is compiled for a processor that has AVX2 and FMA alone, so
 * that its C code runs in tests on every machine: the lengths of blocks and tails, the packing
 * of weights, the order of sums. Its results are those of the instructions, bit for bit. It is
 * slow, and no part of what is installed.
 *
 * simd.h includes this behind immintrin.h: from here on the names below mean these functions.
 *
 * @source Intel 64 and IA-32 Architectures Software Developer's Manual, VDPBF16PS,
 * VCVTNEPS2BF16. */
#ifndef TGI_SIMD_HALVES_H
#define TGI_SIMD_HALVES_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define TGI_HALVES static inline __attribute__((always_inline))

typedef union tgi_halves {
    __m512 ps;
    __m512i si;
    __m256 half_ps[2];
    __m256i half_si[2];
} tgi_halves;

/* ---- float32 ----------------------------------------------------------------------------- */

TGI_HALVES __m512 tgi_halves_set1_ps(float x)
{
    const __m256 h = _mm256_set1_ps(x);
    return (tgi_halves){.half_ps = {h, h}}.ps;
}
TGI_HALVES __m512 tgi_halves_fmadd_ps(__m512 a, __m512 b, __m512 c)
{
    const tgi_halves x = {a}, y = {b}, z = {c};
    return (tgi_halves){.half_ps = {_mm256_fmadd_ps(x.half_ps[0], y.half_ps[0], z.half_ps[0]),
                                    _mm256_fmadd_ps(x.half_ps[1], y.half_ps[1], z.half_ps[1])}}
        .ps;
}
TGI_HALVES __m512 tgi_halves_max_ps(__m512 a, __m512 b)
{
    const tgi_halves x = {a}, y = {b};
    return (tgi_halves){.half_ps = {_mm256_max_ps(x.half_ps[0], y.half_ps[0]),
                                    _mm256_max_ps(x.half_ps[1], y.half_ps[1])}}
        .ps;
}
TGI_HALVES __m512 tgi_halves_min_ps(__m512 a, __m512 b)
{
    const tgi_halves x = {a}, y = {b};
    return (tgi_halves){.half_ps = {_mm256_min_ps(x.half_ps[0], y.half_ps[0]),
                                    _mm256_min_ps(x.half_ps[1], y.half_ps[1])}}
        .ps;
}
TGI_HALVES __m512 tgi_halves_sqrt_ps(__m512 a)
{
    const tgi_halves x = {a};
    return (tgi_halves){.half_ps = {_mm256_sqrt_ps(x.half_ps[0]), _mm256_sqrt_ps(x.half_ps[1])}}
        .ps;
}
TGI_HALVES __m256 tgi_halves_extractf32x8_ps(__m512 a, int which)
{
    return ((tgi_halves){a}).half_ps[which];
}

/* ---- Memory: a masked lane is not touched ------------------------------------------------ */

/* All ones in the lanes of half `which` whose bit is set. */
TGI_HALVES __m256i tgi_halves_mask(unsigned mask, int which)
{
    const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i own = _mm256_set1_epi32((int)(mask >> 8 * which & 255u));
    return _mm256_cmpeq_epi32(_mm256_and_si256(own, bit), bit);
}
TGI_HALVES __m512 tgi_halves_maskz_loadu_ps(unsigned mask, const float *p)
{
    return (tgi_halves){.half_ps = {_mm256_maskload_ps(p, tgi_halves_mask(mask, 0)),
                                    _mm256_maskload_ps(p + 8, tgi_halves_mask(mask, 1))}}
        .ps;
}
TGI_HALVES void tgi_halves_mask_storeu_ps(float *p, unsigned mask, __m512 a)
{
    const tgi_halves x = {a};
    _mm256_maskstore_ps(p, tgi_halves_mask(mask, 0), x.half_ps[0]);
    _mm256_maskstore_ps(p + 8, tgi_halves_mask(mask, 1), x.half_ps[1]);
}
TGI_HALVES __m512i tgi_halves_loadu_si512(const void *p)
{
    tgi_halves x;
    memcpy(&x, p, sizeof x);
    return x.si;
}
TGI_HALVES void tgi_halves_storeu_si512(void *p, __m512i a)
{
    memcpy(p, &a, sizeof a);
}
TGI_HALVES __m512i tgi_halves_set1_epi32(int x)
{
    const __m256i h = _mm256_set1_epi32(x);
    return (tgi_halves){.half_si = {h, h}}.si;
}

/* ---- bfloat16 ---------------------------------------------------------------------------- */

/* acc += a_high * b_high, then acc += a_low * b_low, each an FMA as the manual has it: rounded to
 * nearest even, denormals are zero before it and zero after it, whatever the control register
 * says. */
typedef struct tgi_halves_pairs {
    __m256i a1, b1, a0, b0; /* float32 numbers */
} tgi_halves_pairs;

TGI_HALVES tgi_halves_pairs tgi_halves_split(__m256i a, __m256i b)
{
    const __m256i high = _mm256_set1_epi32((int)0xffff0000u);
    return (tgi_halves_pairs){_mm256_and_si256(a, high), _mm256_and_si256(b, high),
                              _mm256_slli_epi32(a, 16), _mm256_slli_epi32(b, 16)};
}

/* Flushing by hand would be another function: the processor flushes what is below the normal
 * range after rounding to any exponent. So its register says so meanwhile, which is slow. */
#define TGI_HALVES_FLUSH 0x9fc0u /* flush to zero, denormals are zero, nearest even, no trap */
static __attribute__((noinline, unused)) __m256 tgi_halves_dp_flushed(__m256 acc, __m256i a,
                                                                      __m256i b)
{
    const tgi_halves_pairs p = tgi_halves_split(a, b);
    const unsigned flush = TGI_HALVES_FLUSH;
    unsigned before;
    __asm__("vstmxcsr %1\n\t"
            "vldmxcsr %2\n\t"
            "vfmadd231ps %4, %3, %0\n\t"
            "vfmadd231ps %6, %5, %0\n\t"
            "vldmxcsr %1"
            : "+&x"(acc), "=m"(before)
            : "m"(flush), "x"(p.a1), "x"(p.b1), "x"(p.a0), "x"(p.b0));
    return acc;
}

/* Magnitude less one: the smallest normal number and what is below it come first, zero last. */
TGI_HALVES __m256i tgi_halves_rank(__m256 v)
{
    const __m256i size = _mm256_set1_epi32(0x7fffffff), one = _mm256_set1_epi32(1);
    return _mm256_sub_epi32(_mm256_and_si256(_mm256_castps_si256(v), size), one);
}
TGI_HALVES __m256i tgi_halves_rank16(__m256i pairs)
{
    const __m256i size = _mm256_set1_epi16(0x7fff), one = _mm256_set1_epi16(1);
    return _mm256_sub_epi16(_mm256_and_si256(pairs, size), one);
}

/* Where no operand and neither sum is as small, nothing is flushed. */
TGI_HALVES __m256 tgi_halves_dp_half(__m256 acc, __m256i a, __m256i b)
{
    const __m256i least = _mm256_set1_epi32(0x00800000 - 1), least16 = _mm256_set1_epi16(0x7e);
    const tgi_halves_pairs p = tgi_halves_split(a, b);
    __m256 first = acc;
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(first) : "x"(p.a1), "x"(p.b1));
    __m256 sum = first;
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(p.a0), "x"(p.b0));
    const __m256i x = _mm256_min_epu32(
        tgi_halves_rank(acc), _mm256_min_epu32(tgi_halves_rank(first), tgi_halves_rank(sum)));
    const __m256i y = _mm256_min_epu16(tgi_halves_rank16(a), tgi_halves_rank16(b));
    const __m256i small = _mm256_or_si256(_mm256_cmpeq_epi32(_mm256_min_epu32(x, least), x),
                                          _mm256_cmpeq_epi16(_mm256_min_epu16(y, least16), y));
    if (__builtin_expect(!_mm256_testz_si256(small, small), 0))
        return tgi_halves_dp_flushed(acc, a, b);
    return sum;
}
TGI_HALVES __m512 tgi_halves_dpbf16_ps(__m512 acc, __m512i a, __m512i b)
{
    const tgi_halves s = {acc}, x = {.si = a}, y = {.si = b};
    return (tgi_halves){
        .half_ps = {tgi_halves_dp_half(s.half_ps[0], x.half_si[0], y.half_si[0]),
                    tgi_halves_dp_half(s.half_ps[1], x.half_si[1], y.half_si[1])}}
        .ps;
}

/* Eight numbers, each in the low half of its word: denormals are zero of their sign, a NaN is
 * cut off and quiet, the others are rounded to nearest even (infinity stays what it is). */
TGI_HALVES __m256i tgi_halves_bf16_words(__m256 v)
{
    const __m256i x = _mm256_castps_si256(v);
    const __m256i one = _mm256_set1_epi32(1), cut = _mm256_srli_epi32(x, 16);
    const __m256i bias =
        _mm256_add_epi32(_mm256_set1_epi32(0x7fff), _mm256_and_si256(cut, one));
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(x, bias), 16);
    const __m256i exponent = _mm256_and_si256(x, _mm256_set1_epi32(0x7f800000));
    const __m256i tiny = _mm256_cmpeq_epi32(exponent, _mm256_setzero_si256());
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i quiet = _mm256_or_si256(cut, _mm256_set1_epi32(0x40));
    const __m256i zero = _mm256_and_si256(cut, _mm256_set1_epi32(0x8000));
    return _mm256_blendv_epi8(_mm256_blendv_epi8(rounded, quiet, nan), zero, tiny);
}
TGI_HALVES __m256i tgi_halves_cvtneps_pbh(__m512 a)
{
    const tgi_halves x = {a};
    const __m256i mixed = _mm256_packus_epi32(tgi_halves_bf16_words(x.half_ps[0]),
                                              tgi_halves_bf16_words(x.half_ps[1]));
    return _mm256_permute4x64_epi64(mixed, 0xd8); /* the pack works within 128 bits */
}
TGI_HALVES __m512i tgi_halves_cvtne2ps_pbh(__m512 high, __m512 low)
{
    return (tgi_halves){.half_si = {tgi_halves_cvtneps_pbh(low), tgi_halves_cvtneps_pbh(high)}}
        .si;
}

/* ---- The names that simd.h and cpu_conv_bf16.c use ------------------------------------------
 * Some are macros of the compiler already, in builds without optimisation. */
#undef _mm512_extractf32x8_ps
#define _mm512_set1_ps tgi_halves_set1_ps
#define _mm512_fmadd_ps tgi_halves_fmadd_ps
#define _mm512_max_ps tgi_halves_max_ps
#define _mm512_min_ps tgi_halves_min_ps
#define _mm512_sqrt_ps tgi_halves_sqrt_ps
#define _mm512_extractf32x8_ps tgi_halves_extractf32x8_ps
#define _mm512_castps512_ps256(a) tgi_halves_extractf32x8_ps(a, 0)
#define _mm512_maskz_loadu_ps tgi_halves_maskz_loadu_ps
#define _mm512_mask_storeu_ps tgi_halves_mask_storeu_ps
#define _mm512_loadu_si512 tgi_halves_loadu_si512
#define _mm512_storeu_si512 tgi_halves_storeu_si512
#define _mm512_set1_epi32 tgi_halves_set1_epi32
#define _mm512_dpbf16_ps(acc, a, b) tgi_halves_dpbf16_ps(acc, (__m512i)(a), (__m512i)(b))
#define _mm512_cvtneps_pbh tgi_halves_cvtneps_pbh
#define _mm512_cvtne2ps_pbh tgi_halves_cvtne2ps_pbh

#endif

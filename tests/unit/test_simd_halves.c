/* test_simd_halves.c - the emulated AVX-512 operations (kernels/cpu/simd_halves.h): each lane is
 * what the manual says, and what the instruction answers where the processor has it. Compiled
 * for AVX2 alone. */
#include "tests/tg_test.h"

#include <immintrin.h>

/* In front of the emulation, which takes the names. */
#define BF16_HERE                                                                              \
    (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&                \
     __builtin_cpu_supports("avx512bf16"))
__attribute__((target("avx512f,avx512bf16"))) static void
real_dot(float *acc, const uint32_t *a, const uint32_t *b)
{
    _mm512_storeu_ps(acc, _mm512_dpbf16_ps(_mm512_loadu_ps(acc),
                                           (__m512bh)_mm512_loadu_si512((const void *)a),
                                           (__m512bh)_mm512_loadu_si512((const void *)b)));
}
__attribute__((target("avx512f,avx512bf16"))) static void
real_words(const float *high, const float *low, uint16_t *out)
{
    _mm512_storeu_si512(
        (void *)out, (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(high), _mm512_loadu_ps(low)));
}

#include "kernels/cpu/simd.h"

#include <sys/mman.h>

#define CASES 200000

static uint64_t state = 20261127;
static uint32_t drawn(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}
static uint32_t bits_of(float x)
{
    uint32_t b;
    memcpy(&b, &x, sizeof b);
    return b;
}
static float float_of(uint32_t b)
{
    float x;
    memcpy(&x, &b, sizeof x);
    return x;
}

/* Ends of each kind of number, zeros, infinities, NaNs; what is near one; any bits. */
static uint32_t odd_bits(void)
{
    static const uint32_t ends[] = {0,          1,          0x007fffff, 0x00800000, 0x00800001,
                                    0x00ffffff, 0x3f800000, 0x3f807fff, 0x3f808000, 0x3f808001,
                                    0x3f818000, 0x7f7fffff, 0x7f7f8000, 0x7f800000, 0x7f800001,
                                    0x7fc00000, 0x7fffffff, 0x0000ffff, 0x00008000, 0x1f800000};
    const uint32_t r = drawn();
    if (r % 4 == 0)
        return ends[drawn() % (sizeof ends / sizeof *ends)] | (r & 0x80000000u);
    if (r % 4 <= 2) /* near one */
        return (drawn() & 0x807fffffu) | (120 + drawn() % 16) << 23;
    return drawn();
}

/* A number with one of eight exponents. */
static uint32_t bits_near(uint32_t least)
{
    return (drawn() & 0x807fffffu) | (least + drawn() % 8) << 23;
}

/* Two bfloat16 numbers: products of tiny ones, with an exponent of half of it each, end where
 * the denormals begin. */
static uint32_t drawn_pair(int tiny)
{
    const uint32_t high = tiny ? bits_near(59) : odd_bits();
    return (high & 0xffff0000u) | (tiny ? bits_near(59) : odd_bits()) >> 16;
}

/* ---- What the manual says ---------------------------------------------------------------- */

static float no_denormal(float x)
{
    return (bits_of(x) & 0x7f800000) ? x : float_of(bits_of(x) & 0x80000000u);
}

/* a * b + c, rounded to 24 bits with any exponent, and zero where that is below the normal
 * range. Multiplied by 2^64, which is exact, the sum tells that: it is no denormal there. */
static float flushed_fma(float a, float b, float c)
{
    a = no_denormal(a), b = no_denormal(b), c = no_denormal(c);
    const float r = fmaf(a, b, c);
    if (!(fabsf(r) <= 0x1p-126f))
        return r;
    const float scaled = fabsf(a) < fabsf(b) ? fmaf(a, b * 0x1p64f, c * 0x1p64f)
                                             : fmaf(a * 0x1p64f, b, c * 0x1p64f);
    return fabsf(scaled) < 0x1p-62f ? copysignf(0, r) : r;
}
static float dot_by_manual(float acc, uint32_t a, uint32_t b)
{
    acc = flushed_fma(float_of(a & 0xffff0000u), float_of(b & 0xffff0000u), acc);
    return flushed_fma(float_of(a << 16), float_of(b << 16), acc);
}
static uint16_t word_by_manual(float x)
{
    const uint32_t b = bits_of(x);
    if ((b & 0x7f800000) == 0)
        return (uint16_t)(b >> 16 & 0x8000);
    if (isnan(x))
        return (uint16_t)(b >> 16 | 0x40);
    return isinf(x) ? (uint16_t)(b >> 16) : (uint16_t)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

/* ---- bfloat16 ---------------------------------------------------------------------------- */

static int same(float got, float want)
{
    return bits_of(got) == bits_of(want) || (isnan(got) && isnan(want));
}

static void a_dot_product_is_two_flushed_multiply_adds(void)
{
    const int here = BF16_HERE;
    int wrong = 0, differs = 0, zeros = 0;
    for (int i = 0; i < CASES / 16; i++) {
        float acc[16], got[16], real[16];
        uint32_t a[16], b[16];
        for (int k = 0; k < 16; k++) {
            acc[k] = float_of(i % 2 ? bits_near(0) : odd_bits());
            a[k] = drawn_pair(i % 2);
            b[k] = drawn_pair(i % 2);
        }
        _mm512_storeu_si512(got, (__m512i)_mm512_dpbf16_ps((__m512)vf_load(acc),
                                                           _mm512_loadu_si512(a),
                                                           _mm512_loadu_si512(b)));
        memcpy(real, acc, sizeof real);
        if (here)
            real_dot(real, a, b);
        for (int k = 0; k < 16; k++) {
            wrong += !same(got[k], dot_by_manual(acc[k], a[k], b[k]));
            differs += here && bits_of(got[k]) != bits_of(real[k]);
            zeros += got[k] == 0;
        }
    }
    printf("%d products, %d of them zero%s\n", CASES, zeros,
           here ? "" : "; no AVX512_BF16 here to compare with");
    CHECK_EQ(wrong, 0);
    CHECK_EQ(differs, 0);
    CHECK(zeros > CASES / 50 && zeros < CASES / 2); /* flushing is drawn, and other things */
}

/* 24 bits with any exponent decide. 2^-126 (1 - 2^-25) rounds up to the smallest normal number
 * and stays; 2^-126 (1 - 2^-24) has 24 bits and is zero, though as a denormal it rounds up, too. */
static void what_rounds_up_to_a_normal_number_stays(void)
{
    static const struct {
        float b, want; /* b * 2^-100 is added to 2^-126 */
    } rows[] = {{-0x1p-51f, 0x1p-126f}, {-0x1p-50f, 0}, {-0x1p-49f, 0}, {0x1p-50f, 0x1p-126f}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const vf got = (vf)_mm512_dpbf16_ps((__m512)vf_set1(0x1p-126f),
                                            _mm512_set1_epi32((int)bits_of(0x1p-100f)),
                                            _mm512_set1_epi32((int)bits_of(rows[i].b)));
        CHECK_EQ(bits_of(got[0]), bits_of(rows[i].want));
        CHECK_EQ(bits_of(got[15]), bits_of(rows[i].want));
    }
}

static void the_high_halves_are_added_first(void)
{
    /* 2^24 + 1 is 2^24, and then nothing is left of the one */
    const uint32_t a = bits_of(1.0f) | bits_of(-0x1p24f) >> 16, one = 0x3f803f80;
    const vf got = (vf)_mm512_dpbf16_ps((__m512)vf_set1(0x1p24f), _mm512_set1_epi32((int)a),
                                        _mm512_set1_epi32((int)one));
    CHECK_EQ(bits_of(got[0]), 0);
}

static void the_callers_control_register_is_as_it_was(void)
{
    const unsigned before = _mm_getcsr() & ~0x3fu; /* its flags are nobody's */
    const vf got = (vf)_mm512_dpbf16_ps((__m512)vf_set1(1), _mm512_set1_epi32(0x00010001),
                                        _mm512_set1_epi32(0x7f7f7f7f));
    CHECK(got[7] == 1);
    CHECK_EQ(_mm_getcsr() & ~0x3fu, before);
}

static void words_are_rounded_as_the_instruction_does(void)
{
    const int here = BF16_HERE;
    int wrong = 0, differs = 0;
    for (int i = 0; i < CASES / 32; i++) {
        float x[32];
        uint16_t got[32], real[32], one[16];
        for (int k = 0; k < 32; k++)
            x[k] = float_of(odd_bits());
        _mm512_storeu_si512(
            got, (__m512i)_mm512_cvtne2ps_pbh((__m512)vf_load(x + 16), (__m512)vf_load(x)));
        _mm256_storeu_si256((__m256i *)(void *)one, _mm512_cvtneps_pbh((__m512)vf_load(x)));
        wrong += memcmp(one, got, sizeof one) != 0;
        memcpy(real, got, sizeof real);
        if (here)
            real_words(x + 16, x, real);
        differs += memcmp(real, got, sizeof real) != 0;
        for (int k = 0; k < 32; k++)
            wrong += got[k] != word_by_manual(x[k]);
    }
    CHECK_EQ(wrong, 0);
    CHECK_EQ(differs, 0);
}

/* ---- float32 ----------------------------------------------------------------------------- */

static void lanes_of_float_operations_are_those_of_one_number(void)
{
    int wrong = 0;
    for (int i = 0; i < CASES / 16; i++) {
        float a[16], b[16], c[16];
        for (int k = 0; k < 16; k++) {
            a[k] = float_of(odd_bits());
            b[k] = float_of(odd_bits());
            c[k] = float_of(odd_bits());
        }
        const vf x = vf_load(a), y = vf_load(b), f = vf_fma(x, y, vf_load(c)), s = vf_sqrt(x);
        const vf most = vf_max(x, y), least = vf_min(x, y), one = vf_set1(a[3]);
        for (int k = 0; k < 16; k++)
            wrong += !same(f[k], fmaf(a[k], b[k], c[k])) || !same(s[k], sqrtf(a[k])) ||
                     bits_of(most[k]) != bits_of(a[k] > b[k] ? a[k] : b[k]) ||
                     bits_of(least[k]) != bits_of(a[k] < b[k] ? a[k] : b[k]) ||
                     bits_of(one[k]) != bits_of(a[3]);
    }
    CHECK_EQ(wrong, 0);
}

static void a_sum_of_lanes_is_the_fixed_tree(void)
{
    float a[16], t[16];
    for (int k = 0; k < 16; k++)
        t[k] = a[k] = (float)(drawn() % 1000) * 0.1f;
    for (int half = 8; half; half /= 2)
        for (int k = 0; k < half; k++)
            t[k] += t[k + half];
    CHECK_EQ(bits_of(vf_reduce(vf_load(a))), bits_of(t[0]));
}

/* The page behind the last lane cannot be read: a touched lane that is masked ends the test. */
static void masked_lanes_are_not_touched(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *two =
        mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(two != MAP_FAILED && mprotect(two + page, page, PROT_NONE) == 0);
    for (int64_t n = 0; n <= 16; n++) {
        float *p = (float *)(void *)(two + page) - n;
        for (int64_t k = 0; k < n; k++)
            p[k] = (float)(k + 1);
        const vf v = vf_load_n(p, n);
        vf_store_n(p, v + vf_set1(1), n);
        for (int64_t k = 0; k < 16; k++)
            CHECK(v[k] == (k < n ? (float)(k + 1) : 0) && (k >= n || p[k] == (float)(k + 2)));
    }
    munmap(two, 2 * page);
}

int main(void)
{
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
        printf("skipped: the processor is without AVX2\n");
        return 77;
    }
    RUN(a_dot_product_is_two_flushed_multiply_adds);
    RUN(what_rounds_up_to_a_normal_number_stays);
    RUN(the_high_halves_are_added_first);
    RUN(the_callers_control_register_is_as_it_was);
    RUN(words_are_rounded_as_the_instruction_does);
    RUN(lanes_of_float_operations_are_those_of_one_number);
    RUN(a_sum_of_lanes_is_the_fixed_tree);
    RUN(masked_lanes_are_not_touched);
    return TEST_END();
}

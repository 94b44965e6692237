/* measure.c - clock, peak of the multiply-adds, order statistics and memory for the
 * benchmarks. */
#include "bench/measure.h"

#include "engine/memory/monitor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define HUGE_PAGE ((size_t)1 << 21) /* a huge page */

static clockid_t chosen = CLOCK_MONOTONIC;

double measure_now(void)
{
    struct timespec t;
    clock_gettime(chosen, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void measure_clock(clockid_t id)
{
    chosen = id;
}

#define PEAK_STEPS 200000

#if defined(__x86_64__)
/* Independent chains of multiply-adds: more than latency times units, fewer than registers. */
#define PEAK(name, isa_flags, vec, set1, fma, lanes_, chains)                                  \
    __attribute__((target(isa_flags), noinline)) static double name(void)                      \
    {                                                                                          \
        vec a[chains];                                                                         \
        const vec x = set1(0.999999f), y = set1(1e-9f);                                        \
        for (int i = 0; i < chains; i++)                                                       \
            a[i] = set1((float)i);                                                             \
        const double t0 = measure_now();                                                       \
        for (int k = 0; k < PEAK_STEPS; k++) {                                                 \
            _Pragma("GCC unroll 20") for (int i = 0; i < chains; i++) a[i] = fma(a[i], x, y);  \
            __asm__ volatile("" ::"v"(a[0]));                                                  \
        }                                                                                      \
        for (int i = 0; i < chains; i++)                                                       \
            __asm__ volatile("" ::"v"(a[i]));                                                  \
        return 2.0 * chains * lanes_ * PEAK_STEPS / (measure_now() - t0);                      \
    }
PEAK(peak_avx2, "avx2,fma", __m256, _mm256_set1_ps, _mm256_fmadd_ps, 8, 12)
PEAK(peak_avx512, "avx512f", __m512, _mm512_set1_ps, _mm512_fmadd_ps, 16, 20)

/* The same of pairs of bfloat16 numbers: two products for each of the sixteen sums. */
__attribute__((target("avx512f,avx512bf16"), noinline)) static double peak_avx512_bf16(void)
{
    enum { CHAINS = 20 };
    __m512 a[CHAINS];
    const __m512bh x = (__m512bh)_mm512_set1_epi16(0x3f7f), y = (__m512bh)_mm512_set1_epi16(0);
    for (int i = 0; i < CHAINS; i++)
        a[i] = _mm512_set1_ps((float)i);
    const double t0 = measure_now();
    for (int k = 0; k < PEAK_STEPS; k++) {
        _Pragma("GCC unroll 20") for (int i = 0; i < CHAINS; i++) a[i] =
            _mm512_dpbf16_ps(a[i], x, y);
        __asm__ volatile("" ::"v"(a[0]));
    }
    for (int i = 0; i < CHAINS; i++)
        __asm__ volatile("" ::"v"(a[i]));
    return 2.0 * CHAINS * 32 * PEAK_STEPS / (measure_now() - t0);
}
#endif

double measure_peak(tgi_isa isa)
{
#if defined(__x86_64__)
    if (isa == TGI_ISA_AVX512)
        return peak_avx512();
    if (isa == TGI_ISA_AVX2)
        return peak_avx2();
#endif
    (void)isa;
    return 0;
}

double measure_peak_bf16(tgi_isa isa)
{
#if defined(__x86_64__)
    if (isa == TGI_ISA_AVX512 && tgi_isa_has_bf16(isa))
        return peak_avx512_bf16();
#endif
    (void)isa;
    return 0;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double measure_median(double *t, int n)
{
    qsort(t, (size_t)n, sizeof *t, by_value);
    return t[n / 2];
}

double measure_mad(const double *t, int n, double middle)
{
    double off[ROUNDS_MAX];
    for (int i = 0; i < n; i++)
        off[i] = fabs(t[i] - middle);
    return measure_median(off, n);
}

size_t measure_peak_rss(void)
{
    tgi_process_memory p;
    return tgi_process_memory_read("", &p) ? (size_t)p.high_water : 0;
}

void *measure_room(size_t bytes)
{
    const size_t at = bytes < HUGE_PAGE ? 64 : HUGE_PAGE, all = (bytes + 63 + at) / at * at;
    void *p = aligned_alloc(at, all);
    if (!p) {
        fputs("no memory\n", stderr);
        exit(1);
    }
    if (at == HUGE_PAGE)
        (void)madvise(p, all, MADV_HUGEPAGE);
    memset(p, 0, bytes);
    return p;
}

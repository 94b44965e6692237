/* isa.c - which instruction set this processor offers, and which the user allows. */
#include "kernels/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

static const char *const names[TG_ISA_COUNT] = {"portable", "avx2", "avx512"};

const char *tgi_isa_name(tg_isa isa)
{
    return isa >= 0 && isa < TG_ISA_COUNT ? names[isa] : "unknown";
}

int tgi_isa_parse(const char *name, tg_isa *out)
{
    for (int i = 0; i < TG_ISA_COUNT; i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (tg_isa)i;
            return 1;
        }
    return 0;
}

/* The builtins ask cpuid and, for the wide registers, whether the system saves them. */
static tg_isa best_of_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_cpu_init();
    const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        return TG_ISA_AVX512;
    if (avx2)
        return TG_ISA_AVX2;
#endif
    return TG_ISA_PORTABLE;
}

tg_isa tgi_isa_detect(tg_isa cap)
{
    tg_isa isa = best_of_cpu(), wanted;
    const char *env = getenv("TEGULA_ISA");
    if (env && tgi_isa_parse(env, &wanted) && wanted < isa)
        isa = wanted;
    if (cap < isa)
        isa = cap;
    while (isa > TG_ISA_PORTABLE && !tgi_backend_for(isa))
        isa = (tg_isa)(isa - 1);
    return isa;
}

void tgi_processor_name(char *out, size_t size)
{
    char text[49] = "";
    size_t n = 0;
#if defined(__x86_64__) || defined(__i386__)
    unsigned word[12], top = __get_cpuid_max(0x80000000u, NULL);
    for (unsigned i = 0; i < 3 && top >= 0x80000004u; i++)
        __get_cpuid(0x80000002u + i, &word[4 * i], &word[4 * i + 1], &word[4 * i + 2],
                    &word[4 * i + 3]);
    if (top >= 0x80000004u)
        memcpy(text, word, sizeof word);
#endif
    for (const char *p = text; *p && n + 1 < size; p++)
        if (*p != ' ' || (n && out[n - 1] != ' '))
            out[n++] = *p;
    while (n && out[n - 1] == ' ')
        n--;
    out[n] = 0;
    if (!n)
        snprintf(out, size, "unknown");
}

int tgi_isa_has_bf16(tg_isa isa)
{
#ifdef TG_HAVE_BF16
    __builtin_cpu_init();
    return isa == TG_ISA_AVX512 && __builtin_cpu_supports("avx512bf16");
#else
    (void)isa;
    return 0;
#endif
}

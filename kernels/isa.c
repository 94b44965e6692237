/* isa.c - which instruction set this processor offers, and which the user allows. */
#include "kernels/backend.h"

#include <stdlib.h>
#include <string.h>

/* AVX-512 out of AVX2 (kernels/cpu/simd_halves.h), for tests. */
#ifdef TG_EMULATE_AVX512
#define EMULATED 1
#else
#define EMULATED 0
#endif

static const char *const names[TGI_ISA_COUNT] = {"portable", "avx2", "avx512"};

const char *tgi_isa_name(tgi_isa isa)
{
    return isa >= 0 && isa < TGI_ISA_COUNT ? names[isa] : "unknown";
}

int tgi_isa_parse(const char *name, tgi_isa *out)
{
    for (int i = 0; i < TGI_ISA_COUNT; i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (tgi_isa)i;
            return 1;
        }
    return 0;
}

/* The builtins ask cpuid and, for the wide registers, whether the system saves them. */
tgi_isa tgi_isa_best(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_cpu_init();
    const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const int avx512 = __builtin_cpu_supports("avx512f") &&
                       __builtin_cpu_supports("avx512dq") &&
                       __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    if (avx2 && (avx512 || EMULATED))
        return TGI_ISA_AVX512;
    if (avx2)
        return TGI_ISA_AVX2;
#endif
    return TGI_ISA_PORTABLE;
}

/* The cap of TEGULA_ISA. One set comes in two forms: processors with AVX-512 have AVX512_BF16
 * or not. */
static tgi_isa cap_of_user(int *no_bf16)
{
    tgi_isa cap = TGI_ISA_COUNT;
    const char *env = getenv("TEGULA_ISA");
    *no_bf16 = env && strcmp(env, "avx512-nobf16") == 0;
    if (*no_bf16)
        return TGI_ISA_AVX512;
    if (env)
        (void)tgi_isa_parse(env, &cap); /* another word is no cap */
    return cap;
}

tgi_isa tgi_isa_detect(tgi_isa cap)
{
    int no_bf16;
    tgi_isa isa = tgi_isa_best();
    const tgi_isa wanted = cap_of_user(&no_bf16);
    if (wanted < isa)
        isa = wanted;
    if (cap < isa)
        isa = cap;
    while (isa > TGI_ISA_PORTABLE && !tgi_backend_for(isa))
        isa = (tgi_isa)(isa - 1);
    return isa;
}

int tgi_isa_has_bf16(tgi_isa isa)
{
#ifdef TG_HAVE_BF16
    int no_bf16;
    __builtin_cpu_init();
    (void)cap_of_user(&no_bf16);
    return isa == TGI_ISA_AVX512 && !no_bf16 &&
           (EMULATED || __builtin_cpu_supports("avx512bf16"));
#else
    (void)isa;
    return 0;
#endif
}

int tgi_isa_emulated(tgi_isa isa)
{
    return EMULATED && isa == TGI_ISA_AVX512;
}

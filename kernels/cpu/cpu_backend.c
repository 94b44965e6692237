/* cpu_backend.c - the table of one instruction set: variants in order of falling preference. */
#include "kernels/cpu/cpu_backend.h"

#include "kernels/cpu/cpu_common.h"

static const tg_variant *const variants[] = {
    &TGS(tgi_conv_direct),
    &TGS(tgi_conv_stem),
    &TGS(tgi_conv_few),
    &TGS(tgi_conv_planar),
    &TGS(tgi_conv_transpose),
    NULL,
};

const tg_backend TGS(tgi_backend) = {
#if TG_SIMD_ISA == 2
    .name = "avx512",
    .isa = TG_ISA_AVX512,
#elif TG_SIMD_ISA == 1
    .name = "avx2",
    .isa = TG_ISA_AVX2,
#else
    .name = "portable",
    .isa = TG_ISA_PORTABLE,
#endif
    .lanes = TG_L,
    .variants = variants,
    .epilogue = TGS(tgi_epilogue_whole),
};

/* cpu_backend.c - the table of one instruction set: of variants that cost the same the
 * first is taken. */
#include "kernels/cpu/cpu_backend.h"

#include "kernels/cpu/cpu_granule.h"

static const tgi_variant *const variants[] = {
    &TGS(tgi_conv_winograd),
#if TG_SIMD_ISA == 2 && defined(TG_HAVE_BF16)
    &TGS(tgi_conv_bf16),
    &TGS(tgi_conv_transpose_bf16),
#endif
    &TGS(tgi_conv_direct),
    &TGS(tgi_conv_stem),
    &TGS(tgi_conv_few),
    &TGS(tgi_conv_planar),
    &TGS(tgi_conv_depthwise),
    &TGS(tgi_conv_grouped),
    &TGS(tgi_conv_transpose),
    &TGS(tgi_conv_transpose_few),
    &TGS(tgi_conv_transpose_planar),
    &TGS(tgi_max_pool),
    &TGS(tgi_average_pool),
    &TGS(tgi_global_average_pool),
    &TGS(tgi_global_max_pool),
    &TGS(tgi_norm_numbers),
    &TGS(tgi_norm_apply),
    &TGS(tgi_channel_norm),
    &TGS(tgi_resize),
    &TGS(tgi_upsample),
    &TGS(tgi_depth_to_space),
    &TGS(tgi_space_to_depth),
    &TGS(tgi_slice_copy),
    &TGS(tgi_concat_copy),
    &TGS(tgi_pad_copy),
#define ROW(name, forward, reverse) &TGS(tgi_gate_##name),
    TGI_GATE_LIST(ROW)
#undef ROW
        & TGS(tgi_softmax),
    &TGS(tgi_attention),
    &TGS(tgi_window_attention),
    &TGS(tgi_correlation),
    &TGS(tgi_convex),
    &TGS(tgi_fold_bias),
    &TGS(tgi_deform),
    &TGS(tgi_flow_warp),
    &TGS(tgi_flow_consistency),
#define ROW(name) &TGS(tgi_eltwise_##name),
    TGI_ELTWISE_LIST(ROW)
#undef ROW
        NULL,
};

const tgi_kernel_set TGS(tgi_backend) = {
#if TG_SIMD_ISA == 2
    .name = "avx512",
    .isa = TGI_ISA_AVX512,
#elif TG_SIMD_ISA == 1
    .name = "avx2",
    .isa = TGI_ISA_AVX2,
#else
    .name = "portable",
    .isa = TGI_ISA_PORTABLE,
#endif
    .lanes = TGI_L,
    .variants = variants,
    .epilogue = TGI_RUN(TGS(tgi_epilogue_whole)),
    .pixels_load = TGI_RUN(TGS(tgi_pixels_load_run)),
    .pixels_store = TGI_RUN(TGS(tgi_pixels_store_run)),
    .granules_add = TGI_RUN(TGS(tgi_granules_add)),
};

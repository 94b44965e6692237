/* speed_usual.c - what a usual machine reaches: a guess, until this one is measured or has
 * finished a run.
 *
 * Tuned kernels: what `tegula calibrate` measured on one thread, in work a second (speed.h): with
 * AVX-512 of an AMD EPYC, else the geometric mean of that one and of an older EPYC without, which takes
 * 1.4 to 2 times as long. Operators without one: operations and elements a second of one thread, by
 * runs of the networks that bench/plan_time.py takes, on the first of them. */
#include "engine/plan/speed.h"

/* What is gained by more threads. */
typedef enum gain {
    SPREADS, /* arithmetic: all of them */
    FED,     /* bytes: as much as memory gives */
    ALONE    /* nothing */
} gain;

/* Threads that memory feeds: more of them get no more bytes. */
#define FED_BY_MEMORY 4

static const struct {
    const char *key;
    double one;
    gain by;
} usual[] = {
    {"avx512 conv_stem", 1.08e+11, SPREADS},
    {"avx512 bytes", 2.93e+10, FED},
    {"avx512 conv_direct/16", 1.98e+11, SPREADS},
    {"avx512 conv_depthwise", 1.44e+11, SPREADS},
    {"avx512 max_pool", 3.99e+10, FED},
    {"avx512 conv_direct/1x1/16", 2.1e+11, SPREADS},
    {"avx512 conv_direct", 2.25e+11, SPREADS},
    {"avx512 conv_direct/1x1", 2.64e+11, SPREADS},
    {"avx512 conv_grouped", 9.86e+10, SPREADS},
    {"avx512 eltwise", 1.76e+10, FED},
    {"avx512 conv_transpose", 2.32e+11, SPREADS},
    {"avx512 conv_few", 6.47e+10, SPREADS},
    {"avx512 conv_winograd/16", 1.94e+11, SPREADS},
    {"avx512 conv_winograd", 2.01e+11, SPREADS},
    {"avx512 conv_bf16", 2.2e+11, SPREADS},
    {"avx512 conv_transpose_bf16", 2.45e+11, SPREADS},
    {"avx2 conv_stem", 1.31e+11, SPREADS},
    {"avx2 bytes", 1.4e+10, FED},
    {"avx2 conv_direct/16", 8.66e+10, SPREADS},
    {"avx2 conv_depthwise", 7.29e+10, SPREADS},
    {"avx2 max_pool", 3.1e+10, FED},
    {"avx2 conv_direct/1x1/16", 8.99e+10, SPREADS},
    {"avx2 conv_direct", 8.78e+10, SPREADS},
    {"avx2 conv_direct/1x1", 8.27e+10, SPREADS},
    {"avx2 conv_grouped", 7.32e+10, SPREADS},
    {"avx2 eltwise", 9.25e+09, FED},
    {"avx2 conv_transpose", 8.06e+10, SPREADS},
    {"avx2 conv_few", 3.79e+10, SPREADS},
    {"avx2 conv_winograd/16", 1.17e+11, SPREADS},
    {"avx2 conv_winograd", 9.06e+10, SPREADS},
    {"portable conv_stem", 1.75e+10, SPREADS},
    {"portable bytes", 1.6e+09, FED},
    {"portable conv_direct/16", 1.45e+10, SPREADS},
    {"portable conv_depthwise", 1.3e+10, SPREADS},
    {"portable max_pool", 3.16e+09, FED},
    {"portable conv_direct/1x1/16", 1.49e+10, SPREADS},
    {"portable conv_direct", 1.48e+10, SPREADS},
    {"portable conv_direct/1x1", 1.36e+10, SPREADS},
    {"portable conv_grouped", 1.43e+10, SPREADS},
    {"portable eltwise", 2.36e+09, FED},
    {"portable conv_transpose", 1.28e+10, SPREADS},
    {"portable conv_few", 2.07e+10, SPREADS},
    {"portable conv_winograd/16", 1.88e+10, SPREADS},
    {"portable conv_winograd", 1.52e+10, SPREADS},
    {"reference", 4e8, ALONE},
    {"reference Erf", 2.2e8, ALONE},
    {"flat", 5e8, ALONE},
    {"flat Add", 3.7e8, ALONE},
    {"flat Div", 4.2e8, ALONE},
    {"flat Einsum", 3.8e9, ALONE},
    {"flat Flatten", 4.5e9, ALONE},
    {"flat Gemm", 4e9, ALONE},
    {"flat Identity", 4.5e9, ALONE},
    {"flat MatMul", 7e9, ALONE},
    {"flat Mul", 3.8e8, ALONE},
    {"flat Pow", 3.2e8, ALONE},
    {"flat ReduceMean", 4e8, ALONE},
    {"flat Reshape", 4.5e9, ALONE},
    {"flat Softmax", 1.5e9, ALONE},
    {"flat Squeeze", 4.5e9, ALONE},
    {"flat Sub", 4.7e8, ALONE},
    {"flat Transpose", 7e8, ALONE},
    {"flat Unsqueeze", 4.5e9, ALONE},
};

void tgi_speeds_usual(int processors, const tgi_speeds *measured, tgi_speeds *out)
{
    *out = (tgi_speeds){
        .processors = processors > 0 ? processors : 1,
        .clear = 1e-9,
        .fixed = 0.02,
        .finish = 4e-9,
        .statistics = 2.9e-8,
        .sample = 2.1e-9,
        .decode =
            {[TGI_CODEC_DEFLATE] = 4e-9, [TGI_CODEC_ZSTD] = 1.5e-9, [TGI_CODEC_LZW] = 4e-9},
        .encode = {
            [TGI_CODEC_DEFLATE] = 5e-8, [TGI_CODEC_ZSTD] = 5e-9, [TGI_CODEC_LZW] = 6e-9}};
    if (measured) {
        *out = *measured;
        out->n_kernels = 0;
    }
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
        const char *key = usual[i].key;
        const gain by = usual[i].by;
        const int fed = by == FED && out->processors > FED_BY_MEMORY;
        const int threads = by == ALONE ? 1 : fed ? FED_BY_MEMORY : out->processors;
        if (!measured || by == ALONE)
            tgi_speed_set(out, key, usual[i].one, usual[i].one * threads);
    }
    for (int i = 0; measured && i < measured->n_kernels; i++)
        tgi_speed_set(out, measured->kernel[i].key, measured->kernel[i].one,
                      measured->kernel[i].all);
}

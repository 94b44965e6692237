/* cpu_pixels.c - rows between 8- and 16-bit integers, float16 or float32 and float32 values, one to four
 * samples a pixel, in one pass; kernels/pixels.h is the definition and takes what is not here.
 *
 * A run is cut into pieces that stay in the first-level cache. Within a piece the samples come
 * one after the other: the arithmetic runs on plain arrays, and only whole numbers of the
 * image's type are spread over its pixels or gathered from them. Sample counts are constants of
 * the loops, so the compiler makes vectors of all of them, at any instruction set.
 *
 * Same bits as the definition: each step is a function of one element, done with the same
 * roundings in the same order. */
#include "kernels/cpu/cpu_common.h"
#include "kernels/half.h"

#define PIECE 256 /* pixels: four samples of them and their floats take 8 KiB */

/* ---- In ---------------------------------------------------------------------------------- */

/* Put x[0..n) into every step-th float: the lanes of a blocked view. */
static void spread(const float *x, int64_t n, float *dst, int64_t step)
{
    for (int64_t i = 0; i < n; i++)
        dst[i * step] = x[i];
}

#define LOADER(name, T, FLOAT)                                                                 \
    TGI_INLINE void load_##name(const tgi_pixels *p, const T *src, const int samples)          \
    {                                                                                          \
        const float mul = p->mul, add = p->add;                                                \
        for (int64_t at = 0; at < p->n; at += PIECE) {                                         \
            const int64_t n = tgi_min64(PIECE, p->n - at);                                     \
            const T *from = src + at * samples;                                                \
            for (int k = 0; k < samples; k++) {                                                \
                float x[PIECE];                                                                \
                float *restrict to = p->step == 1 ? p->value[k] + at : x;                      \
                for (int64_t i = 0; i < n; i++)                                                \
                    to[i] = FLOAT(from[i * samples + k]) * mul + add;                          \
                if (p->step != 1)                                                              \
                    spread(x, n, p->value[k] + at * p->step, p->step);                         \
            }                                                                                  \
        }                                                                                      \
    }
LOADER(u8, uint8_t, (float))
LOADER(i8, int8_t, (float))
LOADER(u16, uint16_t, (float))
LOADER(i16, int16_t, (float))
LOADER(f32, float, (float))
LOADER(f16, uint16_t, tgi_half_to_float)

/* `fn` with the number of samples as a constant. */
#define BY_SAMPLES(p, fn, ...)                                                                 \
    do {                                                                                       \
        if ((p)->samples == 1)                                                                 \
            fn(p, __VA_ARGS__, 1);                                                             \
        else if ((p)->samples == 2)                                                            \
            fn(p, __VA_ARGS__, 2);                                                             \
        else if ((p)->samples == 3)                                                            \
            fn(p, __VA_ARGS__, 3);                                                             \
        else                                                                                   \
            fn(p, __VA_ARGS__, 4);                                                             \
    } while (0)

/* Bytes three apart are put into vectors by a shuffle that the portable set lacks: without it
 * the definition does 2.5 samples a nanosecond and the loop above 1.6. */
static int is_slow_here(const tgi_pixels *p)
{
    return TG_SIMD_ISA == 0 && p->samples == 3 && tgi_dtype_size(p->type) == 1;
}

void TGS(tgi_pixels_load_run)(const tgi_pixels *p, const void *src)
{
    if (p->stride != p->samples || is_slow_here(p)) {
        tgi_pixels_load_run(p, src);
        return;
    }
    switch (p->type) {
    case TG_DTYPE_U8:
    case TG_DTYPE_BOOL:
        BY_SAMPLES(p, load_u8, src);
        break;
    case TG_DTYPE_I8:
        BY_SAMPLES(p, load_i8, src);
        break;
    case TG_DTYPE_U16:
        BY_SAMPLES(p, load_u16, src);
        break;
    case TG_DTYPE_I16:
        BY_SAMPLES(p, load_i16, src);
        break;
    case TG_DTYPE_F32:
        BY_SAMPLES(p, load_f32, src);
        break;
    case TG_DTYPE_F16:
        BY_SAMPLES(p, load_f16, src);
        break;
    default:
        tgi_pixels_load_run(p, src);
    }
}

/* ---- Out --------------------------------------------------------------------------------- */

typedef struct limits {
    float lo, hi;
} limits;

/* Scale, clip to the type's range and round half to even; NaN becomes 0. Clipping first changes
 * nothing, since both limits are whole, and keeps the sum below in range: adding 1.5 * 2^23
 * pushes the fraction out of the mantissa. No comparison depends on another one. */
#define BIG 12582912.0f

TGI_INLINE void scale_and_round(float *x, const float *from, int64_t n, const tgi_pixels *p,
                                limits to)
{
    const float mul = p->mul, add = p->add;
    int64_t i = 0;
#if TG_SIMD_ISA
    for (; i + TGI_L <= n; i += TGI_L) {
        const vf v = vf_load(from + i) * vf_set1(mul) + vf_set1(add);
        const vf number = vf_select((vi)(v == v), v, vf_zero());
        const vf inside = vf_min(vf_max(number, vf_set1(to.lo)), vf_set1(to.hi));
        vf_store(x + i, inside + vf_set1(BIG) - vf_set1(BIG));
    }
#endif
    for (; i < n; i++) { /* tails, and all of it where compilers do this better than vf */
        const float v = from[i] * mul + add;
        const float number = v == v ? v : 0.0f;
        const float above = number > to.lo ? number : to.lo;
        const float inside = above < to.hi ? above : to.hi;
        x[i] = inside + BIG - BIG;
    }
}

/* n values of sample k from pixel `at` on, as whole numbers of the type. */
TGI_INLINE void whole_numbers(const tgi_pixels *p, int k, int64_t at, int64_t n, limits to,
                              float *x)
{
    const float *from = p->value[k] + at * p->step;
    if (p->step == 1) {
        scale_and_round(x, from, n, p, to);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        x[i] = from[i * p->step];
    scale_and_round(x, x, n, p, to);
}

/* Narrowed sample by sample, then put side by side: narrowing with gaps would not be done by
 * vectors. */
#define STORER(name, T)                                                                        \
    TGI_INLINE void store_##name(const tgi_pixels *p, T *dst, limits to, const int samples)    \
    {                                                                                          \
        for (int64_t at = 0; at < p->n; at += PIECE) {                                         \
            const int64_t n = tgi_min64(PIECE, p->n - at);                                     \
            T *restrict out = dst + at * samples;                                              \
            float x[PIECE];                                                                    \
            T part[TGI_PIXEL_SAMPLES][PIECE];                                                  \
            for (int k = 0; k < samples; k++) {                                                \
                T *restrict narrow = samples == 1 ? out : part[k];                             \
                whole_numbers(p, k, at, n, to, x);                                             \
                for (int64_t i = 0; i < n; i++)                                                \
                    narrow[i] = (T)(int32_t)x[i];                                              \
            }                                                                                  \
            if (samples > 1)                                                                   \
                for (int64_t i = 0; i < n; i++)                                                \
                    for (int k = 0; k < samples; k++)                                          \
                        out[i * samples + k] = part[k][i];                                     \
        }                                                                                      \
    }
STORER(u8, uint8_t)
STORER(i8, int8_t)
STORER(u16, uint16_t)
STORER(i16, int16_t)

/* Nothing is clipped. */
#define STORER_OF_FLOATS(name, T, NARROW)                                                      \
    TGI_INLINE void store_##name(const tgi_pixels *p, T *dst, const int samples)               \
    {                                                                                          \
        const float mul = p->mul, add = p->add;                                                \
        const int64_t step = p->step;                                                          \
        for (int k = 0; k < samples; k++) {                                                    \
            const float *restrict from = p->value[k];                                          \
            T *restrict out = dst + k;                                                         \
            if (step == 1)                                                                     \
                for (int64_t i = 0; i < p->n; i++)                                             \
                    out[i * samples] = NARROW(from[i] * mul + add);                            \
            else                                                                               \
                for (int64_t i = 0; i < p->n; i++)                                             \
                    out[i * samples] = NARROW(from[i * step] * mul + add);                     \
        }                                                                                      \
    }
STORER_OF_FLOATS(f32, float, (float))
STORER_OF_FLOATS(f16, uint16_t, tgi_float_to_half)

void TGS(tgi_pixels_store_run)(const tgi_pixels *p, void *dst)
{
    if (p->stride != p->samples) {
        tgi_pixels_store_run(p, dst);
        return;
    }
    switch (p->type) {
    case TG_DTYPE_U8:
    case TG_DTYPE_BOOL:
        BY_SAMPLES(p, store_u8, dst, (limits){0, p->type == TG_DTYPE_BOOL ? 1 : 255});
        break;
    case TG_DTYPE_I8:
        BY_SAMPLES(p, store_i8, dst, (limits){-128, 127});
        break;
    case TG_DTYPE_U16:
        BY_SAMPLES(p, store_u16, dst, (limits){0, 65535});
        break;
    case TG_DTYPE_I16:
        BY_SAMPLES(p, store_i16, dst, (limits){-32768, 32767});
        break;
    case TG_DTYPE_F32:
        BY_SAMPLES(p, store_f32, dst);
        break;
    case TG_DTYPE_F16:
        BY_SAMPLES(p, store_f16, dst);
        break;
    default:
        tgi_pixels_store_run(p, dst);
    }
}

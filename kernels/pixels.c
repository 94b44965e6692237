/* pixels.c - the definition of pixels.h: one element after the other, all types. */
#include "kernels/pixels.h"

#include "kernels/half.h"

#include <math.h>
#include <string.h>

/* ---- In ---------------------------------------------------------------------------------- */

#define LOAD(T)                                                                                \
    do {                                                                                       \
        const T *s = src;                                                                      \
        if (stride == 1 && src_stride == 1)                                                    \
            for (int64_t i = 0; i < n; i++)                                                    \
                dst[i] = (float)s[i] * mul + add;                                              \
        else                                                                                   \
            for (int64_t i = 0; i < n; i++)                                                    \
                dst[i * stride] = (float)s[i * src_stride] * mul + add;                        \
    } while (0)

/* n elements, src_stride apart, to floats that are `stride` apart. */
static void load_sample(tg_dtype type, const void *src, int64_t src_stride, int64_t n,
                        float mul, float add, float *dst, int64_t stride)
{
    switch (type) {
    case TG_DTYPE_U8:
    case TG_DTYPE_BOOL:
        LOAD(uint8_t);
        break;
    case TG_DTYPE_I8:
        LOAD(int8_t);
        break;
    case TG_DTYPE_U16:
        LOAD(uint16_t);
        break;
    case TG_DTYPE_I16:
        LOAD(int16_t);
        break;
    case TG_DTYPE_U32:
        LOAD(uint32_t);
        break;
    case TG_DTYPE_I32:
        LOAD(int32_t);
        break;
    case TG_DTYPE_U64:
        LOAD(uint64_t);
        break;
    case TG_DTYPE_I64:
        LOAD(int64_t);
        break;
    case TG_DTYPE_F32:
        LOAD(float);
        break;
    case TG_DTYPE_F64:
        LOAD(double);
        break;
    case TG_DTYPE_F16:
        for (int64_t i = 0; i < n; i++)
            dst[i * stride] =
                tgi_half_to_float(((const uint16_t *)src)[i * src_stride]) * mul + add;
        break;
    case TG_DTYPE_NONE:
        break;
    }
}

void tgi_pixels_load(tg_dtype type, const void *src, int64_t n, float mul, float add,
                     float *dst, int64_t stride)
{
    load_sample(type, src, 1, n, mul, add, dst, stride);
}

void tgi_pixels_load_run(const tgi_pixels *p, const void *src)
{
    const char *first = src;
    for (int k = 0; k < p->samples; k++)
        load_sample(p->type, first + (size_t)k * tgi_dtype_size(p->type), p->stride, p->n,
                    p->mul, p->add, p->value[k], p->step);
}

/* ---- Out --------------------------------------------------------------------------------- */

/* Clip before rounding: both bounds are integers, so the result is the same and the rounding
 * trick below stays in range. NaN compares false and becomes 0. */
static float clip(float v, float lo, float hi)
{
    v = v > lo ? v : v <= lo ? lo : 0.0f;
    return v < hi ? v : hi;
}

/* Round half to even for |v| < 2^22 by pushing the fraction out of the mantissa. */
static float round_even(float v)
{
    const float big = 12582912.0f; /* 1.5 * 2^23 */
    const float r = v + big;
    return r - big;
}

#define STORE_SMALL(T, LO, HI)                                                                 \
    do {                                                                                       \
        T *d = dst;                                                                            \
        if (src_stride == 1 && dst_stride == 1)                                                \
            for (int64_t i = 0; i < n; i++)                                                    \
                d[i] = (T)round_even(clip(src[i] * mul + add, LO, HI));                        \
        else                                                                                   \
            for (int64_t i = 0; i < n; i++)                                                    \
                d[i * dst_stride] =                                                            \
                    (T)round_even(clip(src[i * src_stride] * mul + add, LO, HI));              \
    } while (0)

#define STORE_LARGE(T, LO, HI)                                                                 \
    do {                                                                                       \
        T *d = dst;                                                                            \
        for (int64_t i = 0; i < n; i++) {                                                      \
            const double v = rint((double)(src[i * src_stride] * mul + add));                  \
            d[i * dst_stride] = v >= (double)(HI)   ? (T)(HI)                                  \
                                : v <= (double)(LO) ? (T)(LO)                                  \
                                : v == v            ? (T)v                                     \
                                                    : (T)0;                                               \
        }                                                                                      \
    } while (0)

int64_t tgi_pixels_outside(tg_dtype type, const float *src, int64_t step, int64_t n, float mul,
                           float add)
{
    double lo, hi;
    int64_t outside = 0;
    if (tgi_dtype_is_float(type))
        return 0;
    tgi_dtype_range(type, &lo, &hi);
    const float below = (float)(lo - 0.5), above = (float)(hi + 0.5);
    for (int64_t i = 0; i < n; i++) {
        const float x = src[i * step] * mul + add;
        outside += !((x >= below) & (x <= above));
    }
    return outside;
}

void tgi_pixels_store(tg_dtype type, const float *src, int64_t src_stride, int64_t n, float mul,
                      float add, void *dst, int64_t dst_stride)
{
    switch (type) {
    case TG_DTYPE_U8:
        STORE_SMALL(uint8_t, 0.0f, 255.0f);
        break;
    case TG_DTYPE_BOOL:
        STORE_SMALL(uint8_t, 0.0f, 1.0f);
        break;
    case TG_DTYPE_I8:
        STORE_SMALL(int8_t, -128.0f, 127.0f);
        break;
    case TG_DTYPE_U16:
        STORE_SMALL(uint16_t, 0.0f, 65535.0f);
        break;
    case TG_DTYPE_I16:
        STORE_SMALL(int16_t, -32768.0f, 32767.0f);
        break;
    case TG_DTYPE_U32:
        STORE_LARGE(uint32_t, 0u, UINT32_MAX);
        break;
    case TG_DTYPE_I32:
        STORE_LARGE(int32_t, INT32_MIN, INT32_MAX);
        break;
    case TG_DTYPE_U64:
        STORE_LARGE(uint64_t, 0u, UINT64_MAX);
        break;
    case TG_DTYPE_I64:
        STORE_LARGE(int64_t, INT64_MIN, INT64_MAX);
        break;
    case TG_DTYPE_F32:
        for (int64_t i = 0; i < n; i++)
            ((float *)dst)[i * dst_stride] = src[i * src_stride] * mul + add;
        break;
    case TG_DTYPE_F64:
        for (int64_t i = 0; i < n; i++)
            ((double *)dst)[i * dst_stride] = (double)(src[i * src_stride] * mul + add);
        break;
    case TG_DTYPE_F16:
        for (int64_t i = 0; i < n; i++)
            ((uint16_t *)dst)[i * dst_stride] =
                tgi_float_to_half(src[i * src_stride] * mul + add);
        break;
    case TG_DTYPE_NONE:
        break;
    }
}

void tgi_pixels_store_run(const tgi_pixels *p, void *dst)
{
    char *first = dst;
    for (int k = 0; k < p->samples; k++)
        tgi_pixels_store(p->type, p->value[k], p->step, p->n, p->mul, p->add,
                         first + (size_t)k * tgi_dtype_size(p->type), p->stride);
}

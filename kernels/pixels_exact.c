/* pixels_exact.c - see pixels_exact.h. A long double has all integers of 64 bits and all doubles. */
#include "kernels/pixels_exact.h"

#include <float.h>
#include <math.h>

#if LDBL_MANT_DIG < 64
#error "long double has too few bits for integers of 64"
#endif

static int is_wide(tg_dtype type)
{
    return type == TG_DTYPE_U32 || type == TG_DTYPE_I32 || type == TG_DTYPE_U64 ||
           type == TG_DTYPE_I64 || type == TG_DTYPE_F64;
}

int tgi_pixels_need_exact(tg_dtype from, tg_dtype to)
{
    return is_wide(from) && to != TG_DTYPE_F32 && to != TG_DTYPE_F16;
}

static long double element(tg_dtype type, const void *src, int64_t i)
{
    switch (type) {
    case TG_DTYPE_U32:
        return ((const uint32_t *)src)[i];
    case TG_DTYPE_I32:
        return ((const int32_t *)src)[i];
    case TG_DTYPE_U64:
        return ((const uint64_t *)src)[i];
    case TG_DTYPE_I64:
        return (long double)((const int64_t *)src)[i];
    default:
        return ((const double *)src)[i];
    }
}

/* Clipped to integers from lo to hi, which the type has. */
static long double whole(long double v, long double lo, long double hi, int64_t *clipped)
{
    const long double r = isnan(v) ? 0 : rintl(v);
    *clipped += isnan(v) || r < lo || r > hi;
    return r < lo ? lo : r > hi ? hi : r;
}

#define STORE(T, LO, HI)                                                                       \
    for (int64_t i = 0; i < n; i++)                                                            \
        ((T *)dst)[i * stride] = (T)whole(element(from, src, i), LO, HI, &clipped);            \
    break

int64_t tgi_pixels_convert_exact(tg_dtype from, const void *src, int64_t n, tg_dtype to,
                                 void *dst, int64_t stride)
{
    int64_t clipped = 0;
    switch (to) {
    case TG_DTYPE_U8:
        STORE(uint8_t, 0, UINT8_MAX);
    case TG_DTYPE_BOOL:
        STORE(uint8_t, 0, 1);
    case TG_DTYPE_I8:
        STORE(int8_t, INT8_MIN, INT8_MAX);
    case TG_DTYPE_U16:
        STORE(uint16_t, 0, UINT16_MAX);
    case TG_DTYPE_I16:
        STORE(int16_t, INT16_MIN, INT16_MAX);
    case TG_DTYPE_U32:
        STORE(uint32_t, 0, UINT32_MAX);
    case TG_DTYPE_I32:
        STORE(int32_t, INT32_MIN, INT32_MAX);
    case TG_DTYPE_U64:
        STORE(uint64_t, 0, UINT64_MAX);
    case TG_DTYPE_I64:
        STORE(int64_t, INT64_MIN, INT64_MAX);
    default:
        for (int64_t i = 0; i < n; i++)
            ((double *)dst)[i * stride] = (double)element(from, src, i);
    }
    return clipped;
}

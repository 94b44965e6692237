/* tensor.c - tables of the element types, and the text of a shape. */
#include "engine/base/tensor.h"

#include "engine/base/arith.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
    double lo, hi;
} types[] = {
    [TG_DTYPE_NONE] = {"none", 0, 0, 0},
    [TG_DTYPE_U8] = {"uint8", 1, 0, 255},
    [TG_DTYPE_I8] = {"int8", 1, -128, 127},
    [TG_DTYPE_U16] = {"uint16", 2, 0, 65535},
    [TG_DTYPE_I16] = {"int16", 2, -32768, 32767},
    [TG_DTYPE_U32] = {"uint32", 4, 0, 4294967295.0},
    [TG_DTYPE_I32] = {"int32", 4, -2147483648.0, 2147483647.0},
    [TG_DTYPE_U64] = {"uint64", 8, 0, 18446744073709551615.0},
    [TG_DTYPE_I64] = {"int64", 8, -9223372036854775808.0, 9223372036854775807.0},
    [TG_DTYPE_F16] = {"float16", 2, -65504, 65504},
    [TG_DTYPE_F32] = {"float32", 4, -3.4028234663852886e38, 3.4028234663852886e38},
    [TG_DTYPE_F64] = {"float64", 8, -1.7976931348623157e308, 1.7976931348623157e308},
    [TG_DTYPE_BOOL] = {"bool", 1, 0, 1},
    [TGI_DTYPE_BF16] = {"bfloat16", 2, -3.3895313892515355e38, 3.3895313892515355e38},
};
#define N_TYPES (sizeof types / sizeof types[0])

size_t tgi_dtype_size(tg_dtype t)
{
    return (size_t)t < N_TYPES ? types[t].size : 0;
}

const char *tgi_dtype_name(tg_dtype t)
{
    return (size_t)t < N_TYPES ? types[t].name : "?";
}

bool tgi_dtype_parse(const char *name, tg_dtype *out)
{
    for (size_t i = 1; i < TGI_DTYPE_BF16; i++)
        if (strcmp(name, types[i].name) == 0) {
            *out = (tg_dtype)i;
            return true;
        }
    return false;
}

bool tgi_dtype_is_float(tg_dtype t)
{
    return t == TG_DTYPE_F16 || t == TG_DTYPE_F32 || t == TG_DTYPE_F64 || t == TGI_DTYPE_BF16;
}

void tgi_dtype_range(tg_dtype t, double *lo, double *hi)
{
    *lo = (size_t)t < N_TYPES ? types[t].lo : 0;
    *hi = (size_t)t < N_TYPES ? types[t].hi : 0;
}

bool tgi_desc_count(const tgi_desc *d, int64_t *out)
{
    int64_t n = 1;
    for (int i = 0; i < d->rank; i++)
        if (d->dim[i] < 0 || !tgi_mul64_ok(n, d->dim[i], &n))
            return false;
    *out = n;
    return true;
}

bool tgi_desc_same_shape(const tgi_desc *a, const tgi_desc *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

const char *tgi_desc_text(const tgi_desc *d, char *buf, size_t cap)
{
    size_t n = 0;
    buf[0] = 0;
    for (int i = 0; i < d->rank && n < cap; i++) {
        const char *sep = i ? "," : "[";
        const int w = d->dim[i] < 0
                          ? snprintf(buf + n, cap - n, "%s?", sep)
                          : snprintf(buf + n, cap - n, "%s%lld", sep, (long long)d->dim[i]);
        n += w > 0 ? (size_t)w : 0;
    }
    if (n < cap)
        snprintf(buf + n, cap - n, "%s %s", d->rank ? "]" : "[]", tgi_dtype_name(d->dtype));
    return buf;
}

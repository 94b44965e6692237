/* mask_numbers.c - see mask_numbers.h. */
#include "io/mask_numbers.h"

#include "engine/base/arith.h"

#include <math.h>
#include <string.h>

/* Of `bits`, to 0..255; what is not 0 stays so. */
static uint8_t number_of(uint64_t v, int bits)
{
    if (bits > 8)
        return v ? (uint8_t)tgi_clamp((int64_t)(v >> (bits - 8)), 1, 255) : 0;
    if (bits < 8)
        return (uint8_t)tgi_min((int64_t)(v * 255 / ((1u << bits) - 1)), 255);
    return (uint8_t)v;
}

/* The smallest number that is not below it: v is above t / 255 where its number is above t. */
static uint8_t number_of_float(float v)
{
    if (!(v > 0))
        return 0;
    return v < 1 ? (uint8_t)ceilf(v * 255.0f) : 255;
}

static float float_of_half(uint16_t h)
{
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    const float v = exponent == 31 ? (fraction ? NAN : INFINITY)
                    : exponent     ? ldexpf((float)(1024 + fraction), exponent - 25)
                                   : ldexpf((float)fraction, -24);
    return h & 0x8000 ? -v : v;
}

/* `from`: `type` numbers that stand side by side; negative ones are 0. */
#define EACH(type, what)                                                                       \
    do {                                                                                       \
        for (size_t i = 0; i < n; i++) {                                                       \
            type v;                                                                            \
            memcpy(&v, (const char *)from + i * sizeof v, sizeof v);                           \
            to[i] = (what);                                                                    \
        }                                                                                      \
    } while (0)

void tgi_mask_numbers(const tgi_image_info *info, const void *from, size_t n, uint8_t *to)
{
    const tg_dtype t = info->dtype;
    const int has_sign =
        t == TG_DTYPE_I8 || t == TG_DTYPE_I16 || t == TG_DTYPE_I32 || t == TG_DTYPE_I64;
    const int index = info->meta.stored_as == TGI_STORED_PALETTE;
    const int all = info->bits ? info->bits : 8 * (int)tgi_dtype_size(t), bits = all - has_sign;
    if (index && t == TG_DTYPE_U8)
        memcpy(to, from, n);
    else if (index && t == TG_DTYPE_U16)
        EACH(uint16_t, (uint8_t)tgi_min(v, 255));
    else if (t == TG_DTYPE_U8 && bits == 8)
        memcpy(to, from, n);
    else if (t == TG_DTYPE_U8)
        EACH(uint8_t, number_of(v, bits));
    else if (t == TG_DTYPE_BOOL)
        EACH(uint8_t, v ? 255 : 0);
    else if (t == TG_DTYPE_I8)
        EACH(int8_t, v > 0 ? number_of((uint64_t)v, bits) : 0);
    else if (t == TG_DTYPE_U16)
        EACH(uint16_t, number_of(v, bits));
    else if (t == TG_DTYPE_I16)
        EACH(int16_t, v > 0 ? number_of((uint64_t)v, bits) : 0);
    else if (t == TG_DTYPE_U32)
        EACH(uint32_t, number_of(v, bits));
    else if (t == TG_DTYPE_I32)
        EACH(int32_t, v > 0 ? number_of((uint64_t)v, bits) : 0);
    else if (t == TG_DTYPE_U64)
        EACH(uint64_t, number_of(v, bits));
    else if (t == TG_DTYPE_I64)
        EACH(int64_t, v > 0 ? number_of((uint64_t)v, bits) : 0);
    else if (t == TG_DTYPE_F16)
        EACH(uint16_t, number_of_float(float_of_half(v)));
    else if (t == TG_DTYPE_F64)
        EACH(double, v > 0 ? (uint8_t)tgi_max(number_of_float((float)v), 1) : 0);
    else
        EACH(float, number_of_float(v));
    if (info->meta.stored_as == TGI_STORED_MINISWHITE)
        for (size_t i = 0; i < n; i++)
            to[i] = 255 - to[i];
}

/* Samples of a pixel but alpha. */
static int colours_of(const tgi_image_info *i)
{
    return i->samples - (i->meta.alpha != 0);
}

void tgi_mask_pixels(const tgi_image_info *info, int of_alpha, const uint8_t *s, int64_t n,
                     uint8_t *to)
{
    const size_t each = (size_t)info->samples;
    const int colours = colours_of(info);
    if (of_alpha) {
        for (int64_t x = 0; x < n; x++)
            to[x] = s[(size_t)x * each + each - 1];
    } else if (colours == 1) {
        for (int64_t x = 0; x < n; x++)
            to[x] = s[(size_t)x * each];
    } else if (colours == 3 || colours == 4 || info->meta.colours == 3) {
        for (int64_t x = 0; x < n; x++, s += each)
            to[x] = (uint8_t)((19595u * s[0] + 38470u * s[1] + 7471u * s[2] + 32768u) >> 16);
    } else { /* nobody says what they are: any of them */
        for (int64_t x = 0; x < n; x++, s += each) {
            to[x] = 0;
            for (int c = 0; c < colours; c++)
                to[x] = s[c] > to[x] ? s[c] : to[x];
        }
    }
}

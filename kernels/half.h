/* half.h - float16 and float32 by their bits: no compiler support is assumed. Without branches, so that loops of them become
 * vectors on any instruction set. */
#ifndef TGI_HALF_H
#define TGI_HALF_H

#include <stdint.h>
#include <string.h>

/* Exact. Bits of a NaN stay. */
static inline float tgi_half_to_float(uint16_t h)
{
    const uint32_t exponent = h & 0x7c00, moved = (uint32_t)(h & 0x7fff) << 13;
    float f = (float)(h & 0x3ff) * 5.9604644775390625e-08f; /* 2^-24: of a subnormal number */
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    u = exponent == 0 ? u : moved + (exponent == 0x7c00 ? 0x70000000u : 0x38000000u);
    u |= (uint32_t)(h & 0x8000) << 16;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* To nearest, half to even; what is 65520 or above is infinite, a NaN keeps its sign alone. */
static inline uint16_t tgi_float_to_half(float f)
{
    uint32_t u, small;
    memcpy(&u, &f, sizeof u);
    const uint32_t sign = u >> 16 & 0x8000, a = u & 0x7fffffffu;
    float magnitude;
    memcpy(&magnitude, &a, sizeof magnitude);
    magnitude += 0.5f; /* of a subnormal result: rounds at the right bit */
    memcpy(&small, &magnitude, sizeof small);
    const uint32_t normal = (a + 0xfff + (a >> 13 & 1) - 0x38000000u) >> 13;
    const uint32_t finite = a < 0x38800000u ? small - 0x3f000000u : normal;
    const uint32_t number = a >= 0x477ff000u ? 0x7c00 : finite;
    return (uint16_t)(sign | (a > 0x7f800000u ? 0x7e00 : number));
}

#endif

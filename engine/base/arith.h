/* arith.h - integer arithmetic that cannot wrap in silence.
 *
 * Coordinates are int64_t, bytes are size_t. Sizes that come from a file go through the checked
 * forms; `tgi_sat_*` saturate to SIZE_MAX, which no budget ever allows, so a chain of them
 * needs one test at its end. */
#ifndef TGI_ARITH_H
#define TGI_ARITH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool tgi_mul_ok(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool tgi_add_ok(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
static inline size_t tgi_sat_mul(size_t a, size_t b)
{
    size_t r;
    return __builtin_mul_overflow(a, b, &r) ? SIZE_MAX : r;
}
static inline size_t tgi_sat_add(size_t a, size_t b)
{
    size_t r;
    return __builtin_add_overflow(a, b, &r) ? SIZE_MAX : r;
}
static inline bool tgi_mul64_ok(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool tgi_add64_ok(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
static inline int64_t tgi_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline uint64_t tgi_larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}
static inline int64_t tgi_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
static inline int64_t tgi_clamp(int64_t v, int64_t lo, int64_t hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}
/* Quotient rounded up / down for any sign of `a`, b > 0. */
static inline int64_t tgi_ceil_div(int64_t a, int64_t b)
{
    return a >= 0 ? (a + b - 1) / b : -((-a) / b);
}
static inline int64_t tgi_floor_div(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}
static inline int64_t tgi_align_up(int64_t a, int64_t b)
{
    return tgi_ceil_div(a, b) * b;
}
static inline size_t tgi_align_size(size_t a, size_t b)
{
    return a > SIZE_MAX - (b - 1) ? SIZE_MAX : (a + b - 1) / b * b;
}

#endif

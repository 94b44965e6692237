/* emulated_numbers.h - half, bfloat16 and vector types as CUDA spells them, for the processor.
 *
 * Bits and roundings are those of the toolkit's own (round to nearest, ties to even); only
 * what our kernels use is here. Included by cuda_emulated.h alone. */
#ifndef TG_EMULATED_NUMBERS_H
#define TG_EMULATED_NUMBERS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>

/* ---- bits -------------------------------------------------------------------------------- */

static inline float __uint_as_float(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}
static inline uint32_t __float_as_uint(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}
static inline float __int_as_float(int i)
{
    return __uint_as_float((uint32_t)i);
}
static inline int __float_as_int(float f)
{
    return (int)__float_as_uint(f);
}
static inline double __longlong_as_double(long long i)
{
    double d;
    memcpy(&d, &i, sizeof d);
    return d;
}
static inline long long __double_as_longlong(double d)
{
    long long i;
    memcpy(&i, &d, sizeof i);
    return i;
}

/* A half's bits as a number: shifted into a float's fields and scaled by 2^112, which also
 * brings subnormals in place. */
static inline float tgi_half_bits_to_float(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = h & 0x7fffu;
    if (rest >= 0x7c00u)
        return __uint_as_float(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
    const float magnitude = __uint_as_float(rest << 13) * 0x1p112f;
    return __uint_as_float(sign | __float_as_uint(magnitude));
}

/* Ties to even: adding a number whose last bit weighs what the result's last bit will lets the
 * processor's own rounding do it. */
static inline uint16_t tgi_float_to_half_bits(float f)
{
    const uint32_t bits = __float_as_uint(f), sign = bits >> 16 & 0x8000u;
    const uint32_t rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u)
        return 0x7fffu; /* NaN, as the device writes it */
    if (rest >= 0x477ff000u)
        return (uint16_t)(sign | 0x7c00u);
    if (rest < 0x38800000u) /* below 2^-14: steps of 2^-24 */
        return (uint16_t)(sign | (__float_as_uint(__uint_as_float(rest) + 0.5f) - 0x3f000000u));
    const uint32_t odd = rest >> 13 & 1u;
    return (uint16_t)(sign | ((rest + 0xfffu + odd - 0x38000000u) >> 13));
}

/* ---- half -------------------------------------------------------------------------------- */

struct __half_raw {
    uint16_t x;
};

struct __half {
    uint16_t bits_;
    __half() = default;
    __half(__half_raw r) : bits_(r.x)
    {
    }
    __half(float f) : bits_(tgi_float_to_half_bits(f))
    {
    }
    operator float() const
    {
        return tgi_half_bits_to_float(bits_);
    }
};
typedef __half half;

struct alignas(4) __half2 {
    __half x, y;
};
typedef __half2 half2;

static inline float __half2float(__half h)
{
    return h;
}
static inline __half __float2half_rn(float f)
{
    return __half(f);
}
static inline __half __float2half(float f)
{
    return __half(f);
}
static inline __half __double2half(double d)
{ /* one rounding: to float towards odd, then to half */
    float f = (float)d;
    if ((double)f != d && isfinite(f) && !(__float_as_uint(f) & 1u))
        f = __uint_as_float(__float_as_uint(f) + (fabs((double)f) < fabs(d) ? 1u : -1u));
    return __half(f);
}
static inline __half __ushort_as_half(unsigned short u)
{
    return __half(__half_raw{u});
}
static inline unsigned short __half_as_ushort(__half h)
{
    return h.bits_;
}
static inline __half2 __floats2half2_rn(float a, float b)
{
    return __half2{__half(a), __half(b)};
}
static inline __half2 __halves2half2(__half a, __half b)
{
    return __half2{a, b};
}
static inline float __low2float(__half2 h)
{
    return h.x;
}
static inline float __high2float(__half2 h)
{
    return h.y;
}
static inline __half __low2half(__half2 h)
{
    return h.x;
}
static inline __half __high2half(__half2 h)
{
    return h.y;
}
static inline bool __hisnan(__half h)
{
    return (h.bits_ & 0x7fffu) > 0x7c00u;
}
static inline __half __hmax(__half a, __half b)
{
    return __hisnan(a) ? b : __hisnan(b) ? a : (float)a < (float)b ? b : a;
}
static inline __half __hmin(__half a, __half b)
{
    return __hisnan(a) ? b : __hisnan(b) ? a : (float)b < (float)a ? b : a;
}
static inline __half2 __hmax2(__half2 a, __half2 b)
{
    return __half2{__hmax(a.x, b.x), __hmax(a.y, b.y)};
}
static inline __half2 __hmin2(__half2 a, __half2 b)
{
    return __half2{__hmin(a.x, b.x), __hmin(a.y, b.y)};
}

/* ---- bfloat16 ---------------------------------------------------------------------------- */

struct __nv_bfloat16 {
    uint16_t bits_;
    __nv_bfloat16() = default;
    __nv_bfloat16(float f)
    {
        const uint32_t u = __float_as_uint(f);
        bits_ = (u & 0x7fffffffu) > 0x7f800000u
                    ? (uint16_t)0x7fffu
                    : (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
    }
    operator float() const
    {
        return __uint_as_float((uint32_t)bits_ << 16);
    }
};

struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};

static inline float __bfloat162float(__nv_bfloat16 h)
{
    return h;
}
static inline __nv_bfloat16 __float2bfloat16_rn(float f)
{
    return __nv_bfloat16(f);
}
static inline __nv_bfloat16 __float2bfloat16(float f)
{
    return __nv_bfloat16(f);
}
static inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b)
{
    return __nv_bfloat162{__nv_bfloat16(a), __nv_bfloat16(b)};
}

/* ---- vectors ----------------------------------------------------------------------------- */

#define TG_VECTORS(T, name, a2, a4)                                                            \
    struct alignas(a2) name##2                                                                 \
    {                                                                                          \
        T x, y;                                                                                \
    };                                                                                         \
    struct name##3                                                                             \
    {                                                                                          \
        T x, y, z;                                                                             \
    };                                                                                         \
    struct alignas(a4) name##4                                                                 \
    {                                                                                          \
        T x, y, z, w;                                                                          \
    };                                                                                         \
    static inline name##2 make_##name##2(T x, T y)                                             \
    {                                                                                          \
        return name##2 {x, y};                                                                 \
    }                                                                                          \
    static inline name##3 make_##name##3(T x, T y, T z)                                        \
    {                                                                                          \
        return name##3 {x, y, z};                                                              \
    }                                                                                          \
    static inline name##4 make_##name##4(T x, T y, T z, T w)                                   \
    {                                                                                          \
        return name##4 {x, y, z, w};                                                           \
    }
TG_VECTORS(float, float, 8, 16)
TG_VECTORS(double, double, 16, 16)
TG_VECTORS(int, int, 8, 16)
TG_VECTORS(unsigned, uint, 8, 16)
TG_VECTORS(short, short, 4, 8)
TG_VECTORS(unsigned short, ushort, 4, 8)
TG_VECTORS(signed char, char, 2, 4)
TG_VECTORS(unsigned char, uchar, 2, 4)
TG_VECTORS(long long, longlong, 16, 16)
TG_VECTORS(unsigned long long, ulonglong, 16, 16)
#undef TG_VECTORS

static inline float2 __half22float2(__half2 h)
{
    return make_float2(h.x, h.y);
}
static inline __half2 __float22half2_rn(float2 f)
{
    return __floats2half2_rn(f.x, f.y);
}
static inline float2 __bfloat1622float2(__nv_bfloat162 h)
{
    return make_float2(h.x, h.y);
}

/* ---- arithmetic -------------------------------------------------------------------------- */

using std::max;
using std::min;
static inline long long min(long long a, int b)
{
    return a < b ? a : b;
}
static inline long long max(long long a, int b)
{
    return a > b ? a : b;
}
static inline int64_t min(int64_t a, int b)
{
    return a < b ? a : b;
}
static inline int64_t max(int64_t a, int b)
{
    return a > b ? a : b;
}
static inline float min(float a, float b)
{
    return fminf(a, b);
}
static inline float max(float a, float b)
{
    return fmaxf(a, b);
}
static inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}
static inline double __fma_rn(double a, double b, double c)
{
    return fma(a, b, c);
}
static inline float __fadd_rn(float a, float b)
{
    return a + b;
}
static inline float __fsub_rn(float a, float b)
{
    return a - b;
}
static inline float __fmul_rn(float a, float b)
{
    return a * b;
}
static inline float __fdiv_rn(float a, float b)
{
    return a / b;
}
static inline float __fsqrt_rn(float a)
{
    return sqrtf(a);
}
static inline double __dadd_rn(double a, double b)
{
    return a + b;
}
static inline double __dmul_rn(double a, double b)
{
    return a * b;
}
static inline double __ddiv_rn(double a, double b)
{
    return a / b;
}
static inline float __double2float_rn(double d)
{
    return (float)d;
}
static inline float __frcp_rn(float a)
{
    return 1.0f / a;
}
static inline float rsqrtf(float a)
{
    return (float)(1.0 / sqrt((double)a));
}
static inline double rsqrt(double a)
{
    return 1.0 / sqrt(a);
}
static inline float __saturatef(float a)
{
    return a > 0 ? (a < 1 ? a : 1.0f) : 0.0f;
}
/* Conversions to integers saturate on the device, and NaN is zero. */
#define TG_TO_INT(name, T, from, how, low, high)                                               \
    static inline T name(from f)                                                               \
    {                                                                                          \
        const double d = how((double)f);                                                       \
        return isnan(d)              ? 0                                                       \
               : d <= (double)(low)  ? (low)                                                   \
               : d >= (double)(high) ? (high)                                                  \
                                     : (T)d;                                                   \
    }
TG_TO_INT(__float2int_rn, int, float, rint, INT32_MIN, INT32_MAX)
TG_TO_INT(__float2int_rd, int, float, floor, INT32_MIN, INT32_MAX)
TG_TO_INT(__float2int_ru, int, float, ceil, INT32_MIN, INT32_MAX)
TG_TO_INT(__float2int_rz, int, float, trunc, INT32_MIN, INT32_MAX)
TG_TO_INT(__float2uint_rn, unsigned, float, rint, 0u, UINT32_MAX)
TG_TO_INT(__double2int_rn, int, double, rint, INT32_MIN, INT32_MAX)
TG_TO_INT(__float2ll_rn, long long, float, rint, INT64_MIN, INT64_MAX)
TG_TO_INT(__double2ll_rn, long long, double, rint, INT64_MIN, INT64_MAX)
#undef TG_TO_INT

static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
static inline int __clz(int x)
{
    return x ? __builtin_clz((unsigned)x) : 32;
}
static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}
static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((uint64_t)a * b >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}

#endif

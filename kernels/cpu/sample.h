/* sample.h - places between pixels, a vector of them: kernels/ops/sample_place.h, bit for bit. */
#ifndef TGI_CPU_SAMPLE_H
#define TGI_CPU_SAMPLE_H

#include "kernels/cpu/simd.h"

/* Two pixels of an axis and their weights. Both pixels are inside, whatever the coordinate; one that
 * weighs nothing is the other one, or 0 where both do. */
typedef struct between {
    vi at[2];
    vf weight[2];
    vi inside; /* all ones where one of them weighs something */
} between;

/* Of coordinates c on an axis of n pixels, below 2^24. */
TGI_INLINE between between_of(vf c, int64_t n)
{
    const vf zero = vf_zero(), one = vf_set1(1.0f), end = vf_set1((float)n);
    between b;
    b.inside = (vi)(c > -one) & (vi)(c < end);
    const vf in = vf_select(b.inside, c, zero);
    vi lo = __builtin_convertvector(in, vi); /* towards zero */
    lo += (vi)(__builtin_convertvector(lo, vf) > in);
    const vf whole = __builtin_convertvector(lo, vf), part = in - whole;
    b.weight[0] = vf_select((vi)(whole >= zero), one - part, zero);
    b.weight[1] = vf_select((vi)(whole + one < end), part, zero);
    const vi first = (vi)(b.weight[0] != zero), second = (vi)(b.weight[1] != zero);
    b.at[0] = lo + (~first & 1);
    b.at[1] = lo + (second & 1);
    b.weight[0] = vf_select(b.inside, b.weight[0], zero);
    b.weight[1] = vf_select(b.inside, b.weight[1], zero);
    return b;
}

/* All ones in the lanes from n on. */
TGI_INLINE vi vi_from(int32_t n)
{
    static const int32_t lanes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    vi v;
    memcpy(&v, lanes, sizeof v);
    return (vi)(v >= n);
}

TGI_INLINE void vi_store(int32_t *p, vi v)
{
    memcpy(p, &v, sizeof v);
}

#endif

/* sample_place.h - where a coordinate that data give lies between the pixels of an axis, in float32,
 * since all kernels must find the same: FlowWarp, FlowConsistency, DeformConv. */
#ifndef TGI_SAMPLE_PLACE_H
#define TGI_SAMPLE_PLACE_H

#include <math.h>
#include <stdint.h>

/* Pixels lo and lo + 1, of which one may lie outside, and their weights; both weights are 0 where
 * neither is inside or the coordinate is no number. Then lo is 0. */
typedef struct tgi_between {
    int64_t lo;
    float weight[2]; /* 0 of a pixel outside */
} tgi_between;

/* Of coordinate c on an axis of n pixels. */
static inline tgi_between tgi_between_of(float c, int64_t n)
{
    if (!(c > -1 && c < (float)n))
        return (tgi_between){0};
    const float whole = floorf(c), part = c - whole;
    tgi_between b = {.lo = (int64_t)whole, .weight = {1 - part, part}};
    if (b.lo < 0)
        b.weight[0] = 0;
    if (b.lo + 1 >= n)
        b.weight[1] = 0;
    return b;
}

/* The pixel nearest to c, ties to even; -1: none. */
static inline int64_t tgi_nearest_of(float c, int64_t n)
{
    const float whole = rintf(c);
    return whole >= 0 && whole < (float)n ? (int64_t)whole : -1;
}

#endif

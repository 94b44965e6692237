/* lookup_place.h - where CorrelationLookup looks along one axis. */
#ifndef TGI_LOOKUP_PLACE_H
#define TGI_LOOKUP_PLACE_H

#include <math.h>
#include <stdint.h>

#define TGI_LOOKUP_RADIUS 8 /* at most */
#define TGI_LOOKUP_SIDE (2 * TGI_LOOKUP_RADIUS + 1)

/* A coordinate: its whole part, and the part from there to the next pixel, in [0, 1]. */
typedef struct tgi_place {
    int64_t whole;
    float part;
    int far; /* no pixel is near, or it is no number: there is nothing to read */
} tgi_place;

/* Of pixel `at` and what its flow adds, both in pixels of level 0, on level l with n pixels; in
 * float32, since all kernels must find the same. */
static inline tgi_place tgi_lookup_place(int64_t at, float flow, int l, int64_t n)
{
    const float c = ((float)at + flow) / (float)((int64_t)1 << l), whole = floorf(c);
    const float reach = TGI_LOOKUP_RADIUS + 2;
    if (!(c > -reach && c < (float)n + reach))
        return (tgi_place){0, 0, 1};
    return (tgi_place){(int64_t)whole, c - whole, 0};
}

#endif

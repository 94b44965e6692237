/* distance.h - how far a result is from another, number by number: what verify says of tiles,
 * references and devices. */
#ifndef TGI_DISTANCE_H
#define TGI_DISTANCE_H

#include <math.h>

typedef struct tgi_distance {
    double most;           /* largest absolute difference; infinite when one is no number */
    double squares, scale; /* sums of squares: of differences, of the numbers compared with */
} tgi_distance;

static inline void tgi_distance_add(tgi_distance *s, double got, double want)
{
    const double d = got - want;
    s->squares += d * d;
    s->scale += want * want;
    s->most = fabs(d) > s->most ? fabs(d) : d == d ? s->most : INFINITY;
}

/* Relative L2; of nothing but zeros the absolute one. */
static inline double tgi_distance_relative(const tgi_distance *s)
{
    return s->scale > 0 ? sqrt(s->squares / s->scale) : sqrt(s->squares);
}

#endif

/* clock.h - seconds that only go forward. */
#ifndef TGI_CLOCK_H
#define TGI_CLOCK_H

#include <time.h>

/* Of the monotonic clock, from some point in the past. */
static inline double tgi_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif

/* busy.h - a clock that runs while somebody is at some work, and that others read meanwhile.
 *
 * One atomic number, so that a reader sees work which goes on as well as work that is over. One
 * thread at a time begins and ends; NULL everywhere: nobody asks. */
#ifndef TGI_BUSY_H
#define TGI_BUSY_H

#include "engine/base/clock.h"

#include <stdatomic.h>
#include <stdint.h>

/* What a run is at, on threads of its own each. */
enum { TGI_BUSY_DECODE, TGI_BUSY_COMPUTE, TGI_BUSY_ENCODE, TGI_BUSY_KINDS };

typedef struct tgi_busy {
    _Atomic int64_t ns; /* of all that is over; while it runs, less when it began: below 0 */
} tgi_busy;

static inline int64_t tgi_busy_now(void)
{
    return (int64_t)(tgi_seconds() * 1e9);
}

static inline void tgi_busy_begin(tgi_busy *b)
{
    if (b)
        atomic_fetch_sub(&b->ns, tgi_busy_now());
}

static inline void tgi_busy_end(tgi_busy *b)
{
    if (b)
        atomic_fetch_add(&b->ns, tgi_busy_now());
}

/* Milliseconds by now. Any thread. */
static inline int64_t tgi_busy_ms(tgi_busy *b)
{
    const int64_t ns = b ? atomic_load(&b->ns) : 0;
    return (ns < 0 ? ns + tgi_busy_now() : ns) / 1000000;
}

#endif

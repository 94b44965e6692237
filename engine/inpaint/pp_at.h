/* pp_at.h - what all networks of ProPainter are planned for. */
#ifndef TGI_PP_AT_H
#define TGI_PP_AT_H

#include "engine/plan/schedule.h"

typedef struct tgi_pp_at {
    const tgi_kernel_set *be;
    int64_t height, width; /* of frames: multiples of 8 */
    int threads;
    unsigned flags;                 /* TGI_NET_EXACT, TGI_NET_KINDS */
    const tgi_sched_device *device; /* that computes them; NULL: the processor */
} tgi_pp_at;

/* The same, for what finds motions. */
static inline tgi_pp_at tgi_pp_at_on(const tgi_pp_at *at, const tgi_sched_device *d)
{
    tgi_pp_at other = *at;
    other.device = d;
    return other;
}

/* Before the first array and network. */
static inline void tgi_pp_settle(tgi_schedule *s, const tgi_pp_at *at)
{
    s->lanes = at->be->lanes;
    s->flags = at->flags;
    s->device = at->device;
}

#endif

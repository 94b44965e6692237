/* arena.h - lifetimes to offsets. Dull on purpose: several orders are tried, each places its
 * items one by one in the lowest gap that is free for their whole life; the best is kept. */
#ifndef TGI_ARENA_H
#define TGI_ARENA_H

#include "engine/base/status.h"

#include <stddef.h>

typedef struct tgi_item {
    size_t bytes;
    int first, last; /* alive at every step in [first, last]; -1 <= first <= last < INT_MAX */
    size_t offset;   /* result, a multiple of TGI_ARENA_ALIGN */
} tgi_item;

#define TGI_ARENA_ALIGN 64

/* Place all items; *total is the bytes they need, *lower_bound the largest sum alive at one
 * step: no packing can be below it. SIZE_MAX: more than can be counted. */
tg_status tgi_arena_pack(tgi_item *items, int n, size_t *total, size_t *lower_bound,
                         tgi_err *err);

#endif

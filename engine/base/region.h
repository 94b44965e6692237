/* region.h - half-open intervals and boxes in a value's own frame. */
#ifndef TGI_REGION_H
#define TGI_REGION_H

#include "engine/base/tensor.h"

typedef struct tg_range {
    int64_t lo, hi; /* [lo, hi); empty when lo >= hi */
} tg_range;

/* One interval per axis of a value; rank equals the rank of the value's desc. Boxes are
 * separable: the interval on one axis never depends on the interval on another. */
typedef struct tg_box {
    int rank;
    tg_range ax[TG_MAX_RANK];
} tg_box;

static inline bool tgi_range_empty(tg_range r)
{
    return r.lo >= r.hi;
}
static inline int64_t tgi_range_len(tg_range r)
{
    return r.lo >= r.hi ? 0 : r.hi - r.lo;
}
static inline tg_range tgi_range_clip(tg_range r, int64_t lo, int64_t hi)
{
    return (tg_range){r.lo < lo ? lo : r.lo, r.hi > hi ? hi : r.hi};
}
/* Smallest interval holding both; an empty one does not count. */
static inline tg_range tgi_range_hull(tg_range a, tg_range b)
{
    if (a.lo >= a.hi)
        return b;
    if (b.lo >= b.hi)
        return a;
    return (tg_range){a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
}

tg_box tgi_box_full(const tg_desc *d);           /* [0,dim) on each axis */
tg_box tgi_box_clip(tg_box b, const tg_desc *d); /* intersect with the full box */
tg_box tgi_box_hull(const tg_box *a, const tg_box *b);
bool tgi_box_empty(const tg_box *b);
bool tgi_box_equal(const tg_box *a, const tg_box *b);
bool tgi_box_contains(const tg_box *outer, const tg_box *inner);

/* Input interval read by output interval `out` of a window op with kernel k, stride s,
 * zero padding p before, dilation d: [a*s-p, (b-1)*s-p+(k-1)*d+1), unclipped.
 * @source ONNX Conv. */
tg_range tgi_window_need(tg_range out, int64_t k, int64_t s, int64_t p, int64_t d);

#endif

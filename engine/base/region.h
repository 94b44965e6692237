/* region.h - half-open intervals and boxes in a value's own frame. */
#ifndef TGI_REGION_H
#define TGI_REGION_H

#include "engine/base/tensor.h"

typedef struct tgi_range {
    int64_t lo, hi; /* [lo, hi); empty when lo >= hi */
} tgi_range;

/* One interval per axis of a value; rank equals the rank of the value's desc. Boxes are
 * separable: the interval on one axis never depends on the interval on another. */
typedef struct tgi_box {
    int rank;
    tgi_range ax[TGI_MAX_RANK];
} tgi_box;

static inline bool tgi_range_empty(tgi_range r)
{
    return r.lo >= r.hi;
}
static inline int64_t tgi_range_len(tgi_range r)
{
    return r.lo >= r.hi ? 0 : r.hi - r.lo;
}
static inline tgi_range tgi_range_clip(tgi_range r, int64_t lo, int64_t hi)
{
    return (tgi_range){r.lo < lo ? lo : r.lo, r.hi > hi ? hi : r.hi};
}
/* Smallest interval holding both; an empty one does not count. */
static inline tgi_range tgi_range_hull(tgi_range a, tgi_range b)
{
    if (a.lo >= a.hi)
        return b;
    if (b.lo >= b.hi)
        return a;
    return (tgi_range){a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
}

tgi_box tgi_box_full(const tgi_desc *d);            /* [0,dim) on each axis */
tgi_box tgi_box_clip(tgi_box b, const tgi_desc *d); /* intersect with the full box */
tgi_box tgi_box_hull(const tgi_box *a, const tgi_box *b);
bool tgi_box_empty(const tgi_box *b);
bool tgi_box_equal(const tgi_box *a, const tgi_box *b);
bool tgi_box_contains(const tgi_box *outer, const tgi_box *inner);

/* How a range of a result's rows asks for rows of a source, where that goes on evenly: rows
 * [a,b) read [floor((a'*num + lo) / den), floor((b'*num + hi) / den) + 1), where a' and b' are
 * the first rows of the blocks in which a and b - 1 lie; blocks of `block` rows, one of which
 * begins at row `phase`. With `of` > 0 that is cut to [0,of), a row of it at least, and ends
 * at row `least` or behind. */
typedef struct tgi_slide {
    int64_t num, den, lo, hi;
    int64_t block, phase; /* block <= 1: each row by itself */
    int64_t of, least;    /* least <= 1: 1; at most `of` */
} tgi_slide;

#define TGI_SLIDE_SAME ((tgi_slide){.num = 1, .den = 1}) /* row by row */

tgi_slide tgi_slide_all(int64_t n); /* [0,n), whatever is asked for */
/* What `out`, which is not empty, reads. */
tgi_range tgi_slide_need(const tgi_slide *s, tgi_range out);
/* Where what each of n rows reads begins. */
void tgi_slide_begins(const tgi_slide *s, const int64_t *row, int64_t *out, int n);
/* For each of n ends: the largest b for which rows below b read only rows below it;
 * INT64_MAX: there is none. In place where `out` is `end`. */
void tgi_slide_ends(const tgi_slide *s, const int64_t *end, int64_t *out, int n);
/* How it does where that is not even: functions of the rows and of what they are given here,
 * once for all bands. Two of them answer for many bands in one call. */
#define TGI_RULE_BYTES 128
typedef struct tgi_rule {
    tgi_range (*need)(const void *given, tgi_range out); /* `out` is not empty */
    int rising; /* 1: the first row says where that begins and the last one where it ends */
    /* NULL, or, of a rising one: where that begins for each of n rows, as `need` tells. */
    void (*begins)(const void *given, const int64_t *row, int64_t *out, int n);
    /* NULL, or, for each of n ends: the largest b for which rows [from,b) read only rows below
     * it, where it is less than the extent; less than `from` means `from`. In place where
     * `out` is `end`. */
    void (*ends)(const void *given, int64_t from, const int64_t *end, int64_t *out, int n);
    union {
        double aligned;
        unsigned char given[TGI_RULE_BYTES];
    } u;
} tgi_rule;

static inline tgi_range tgi_rule_need(const tgi_rule *r, tgi_range out)
{
    return r->need(r->u.given, out);
}

/* Of a window op with kernel k, stride s, zero padding p before, dilation d: output rows [a,b)
 * read [a*s-p, (b-1)*s-p+(k-1)*d+1), unclipped. @source ONNX Conv. */
tgi_slide tgi_window_slide(int64_t k, int64_t s, int64_t p, int64_t d);

#endif

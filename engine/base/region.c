/* region.c - arithmetic of intervals and boxes, and of operators that slide a window over
 * them. */
#include "engine/base/region.h"

#include "engine/base/arith.h"

tgi_box tgi_box_full(const tgi_desc *d)
{
    tgi_box b = {.rank = d->rank};
    for (int i = 0; i < d->rank; i++)
        b.ax[i] = (tgi_range){0, d->dim[i]};
    return b;
}

tgi_box tgi_box_clip(tgi_box b, const tgi_desc *d)
{
    for (int i = 0; i < b.rank; i++)
        b.ax[i] = tgi_range_clip(b.ax[i], 0, d->dim[i]);
    return b;
}

tgi_box tgi_box_hull(const tgi_box *a, const tgi_box *b)
{
    if (tgi_box_empty(a))
        return *b;
    if (tgi_box_empty(b))
        return *a;
    tgi_box r = *a;
    for (int i = 0; i < r.rank; i++)
        r.ax[i] = tgi_range_hull(a->ax[i], b->ax[i]);
    return r;
}

bool tgi_box_empty(const tgi_box *b)
{
    for (int i = 0; i < b->rank; i++)
        if (tgi_range_empty(b->ax[i]))
            return true;
    return b->rank == 0;
}

bool tgi_box_equal(const tgi_box *a, const tgi_box *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->ax[i].lo != b->ax[i].lo || a->ax[i].hi != b->ax[i].hi)
            return false;
    return true;
}

bool tgi_box_contains(const tgi_box *outer, const tgi_box *inner)
{
    if (outer->rank != inner->rank)
        return false;
    for (int i = 0; i < outer->rank; i++)
        if (inner->ax[i].lo < outer->ax[i].lo || inner->ax[i].hi > outer->ax[i].hi)
            return false;
    return true;
}

tgi_slide tgi_window_slide(int64_t k, int64_t s, int64_t p, int64_t d)
{
    return (tgi_slide){.num = s, .den = 1, .lo = -p, .hi = (k - 1) * d - p};
}

tgi_slide tgi_slide_all(int64_t n)
{
    return (tgi_slide){.den = 1, .hi = n - 1};
}

/* A quotient rounded down. Most divisors are powers of two or small, and a division of 64 bits
 * takes up to ninety cycles. */
static inline int64_t over(int64_t a, int64_t den)
{
    if ((den & (den - 1)) == 0)
        return a >> __builtin_ctzll((uint64_t)den);
    if (((uint64_t)a | (uint64_t)den) <= UINT32_MAX)
        return (uint32_t)a / (uint32_t)den;
    return tgi_floor_div(a, den);
}

/* First row of the block in which row r lies. */
static inline int64_t block_of(const tgi_slide *s, int64_t r)
{
    return s->block <= 1 ? r : over(r - s->phase, s->block) * s->block + s->phase;
}

tgi_range tgi_slide_need(const tgi_slide *s, tgi_range out)
{
    const int64_t a = block_of(s, out.lo), b = block_of(s, out.hi - 1);
    const tgi_range r = {over(a * s->num + s->lo, s->den),
                         over(b * s->num + s->hi, s->den) + 1};
    if (s->of <= 0)
        return r;
    return (tgi_range){tgi_clamp(r.lo, 0, s->of - 1),
                       tgi_clamp(r.hi, tgi_max(1, s->least), s->of)};
}

void tgi_slide_begins(const tgi_slide *s, const int64_t *row, int64_t *out, int n)
{
    const tgi_slide at = *s;
    for (int i = 0; i < n; i++) {
        const int64_t lo = over(block_of(&at, row[i]) * at.num + at.lo, at.den);
        out[i] = at.of > 0 ? tgi_clamp(lo, 0, at.of - 1) : lo;
    }
}

static inline int64_t end_of(const tgi_slide *s, int64_t end)
{
    if (s->of > 0 && end >= s->of)
        return INT64_MAX;
    if (s->of > 0 && end < tgi_max(1, s->least))
        return INT64_MIN;
    /* b' * num + hi < end * den for the block of b - 1 */
    const int64_t room = end * s->den - 1 - s->hi;
    if (s->num == 0)
        return room >= 0 ? INT64_MAX : INT64_MIN;
    const int64_t last = over(room, s->num);
    return s->block <= 1 ? last + 1 : block_of(s, last) + s->block;
}

void tgi_slide_ends(const tgi_slide *s, const int64_t *end, int64_t *out, int n)
{
    const tgi_slide at = *s;
    for (int i = 0; i < n; i++)
        out[i] = end_of(&at, end[i]);
}

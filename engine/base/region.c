#include "engine/base/region.h"

tg_box tgi_box_full(const tg_desc *d)
{
    tg_box b = {.rank = d->rank};
    for (int i = 0; i < d->rank; i++)
        b.ax[i] = (tg_range){0, d->dim[i]};
    return b;
}

tg_box tgi_box_clip(tg_box b, const tg_desc *d)
{
    for (int i = 0; i < b.rank; i++)
        b.ax[i] = tgi_range_clip(b.ax[i], 0, d->dim[i]);
    return b;
}

tg_box tgi_box_hull(const tg_box *a, const tg_box *b)
{
    if (tgi_box_empty(a))
        return *b;
    if (tgi_box_empty(b))
        return *a;
    tg_box r = *a;
    for (int i = 0; i < r.rank; i++)
        r.ax[i] = tgi_range_hull(a->ax[i], b->ax[i]);
    return r;
}

bool tgi_box_empty(const tg_box *b)
{
    for (int i = 0; i < b->rank; i++)
        if (tgi_range_empty(b->ax[i]))
            return true;
    return b->rank == 0;
}

bool tgi_box_equal(const tg_box *a, const tg_box *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->ax[i].lo != b->ax[i].lo || a->ax[i].hi != b->ax[i].hi)
            return false;
    return true;
}

bool tgi_box_contains(const tg_box *outer, const tg_box *inner)
{
    if (outer->rank != inner->rank)
        return false;
    for (int i = 0; i < outer->rank; i++)
        if (inner->ax[i].lo < outer->ax[i].lo || inner->ax[i].hi > outer->ax[i].hi)
            return false;
    return true;
}

tg_range tgi_window_need(tg_range out, int64_t k, int64_t s, int64_t p, int64_t d)
{
    return (tg_range){out.lo * s - p, (out.hi - 1) * s - p + (k - 1) * d + 1};
}

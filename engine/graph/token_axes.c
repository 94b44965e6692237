/* token_axes.c - orders of axes: what Reshape, Transpose and broadcasting make of them. */
#include "engine/graph/token_axes.h"

#include <string.h>

int tgi_extents_unit(const tgi_extents *e, int axis)
{
    for (int k = 0; k < e->n; k++)
        if (e->at[k].dim[axis] != 1)
            return 0;
    return 1;
}

int tgi_extents_same(const tgi_extents *a, const tgi_extents *b)
{
    for (int k = 0; k < a->n; k++)
        if (!tgi_desc_same_shape(&a->at[k], &b->at[k]))
            return 0;
    return 1;
}

int tgi_extents_fixed(const tgi_extents *e)
{
    for (int k = 1; k < e->n; k++)
        if (!tgi_desc_same_shape(&e->at[0], &e->at[k]))
            return 0;
    return 1;
}

tgi_order tgi_order_of_image(const tgi_extents *image)
{
    tgi_order o = {.rank = image->at[0].rank};
    for (int a = TGI_CHANNELS; a < o.rank; a++)
        if (!tgi_extents_unit(image, a))
            o.axis[a] = (tgi_merged){1, {a}};
    return o;
}

static int same_axis(const tgi_merged *a, const tgi_merged *b)
{
    return a->n == b->n && memcmp(a->of, b->of, (size_t)a->n * sizeof *a->of) == 0;
}

int tgi_order_same(const tgi_order *a, const tgi_order *b)
{
    for (int i = 0; i < a->rank && a->rank == b->rank; i++)
        if (!same_axis(&a->axis[i], &b->axis[i]))
            return 0;
    return a->rank == b->rank;
}

/* All axes of the image in the order of the array. */
static tgi_merged flattened(const tgi_order *o)
{
    tgi_merged all = {0};
    for (int i = 0; i < o->rank; i++)
        for (int k = 0; k < o->axis[i].n && all.n < TGI_MERGED_MOST; k++)
            all.of[all.n++] = o->axis[i].of[k];
    return all;
}

static int64_t product(const tgi_merged *m, const tgi_desc *image)
{
    int64_t p = 1;
    for (int k = 0; k < m->n; k++)
        p *= image->dim[m->of[k]]; /* no more than the image has elements */
    return p;
}

/* Has an axis of these the extents of axis `a` of the array? */
static int is_axis(const tgi_merged *m, const tgi_extents *image, const tgi_extents *array,
                   int a)
{
    for (int k = 0; k < image->n; k++)
        if (product(m, &image->at[k]) != array->at[k].dim[a])
            return 0;
    return 1;
}

int tgi_order_regroup(const tgi_order *o, const tgi_extents *image, const tgi_extents *array,
                      tgi_order *out)
{
    const tgi_merged all = flattened(o);
    int next = 0;
    *out = (tgi_order){.rank = array->at[0].rank};
    for (int a = 0; a < out->rank; a++) {
        tgi_merged *m = &out->axis[a];
        while (!is_axis(m, image, array, a)) {
            if (next == all.n)
                return 0;
            m->of[m->n++] = all.of[next++];
        }
    }
    return next == all.n;
}

void tgi_order_permute(const tgi_order *o, const int64_t *perm, tgi_order *out)
{
    *out = (tgi_order){.rank = o->rank};
    for (int a = 0; a < o->rank; a++)
        out->axis[a] = o->axis[perm[a]];
}

void tgi_order_remove(tgi_order *o, int axis)
{
    o->rank--;
    for (int a = axis; a < o->rank; a++)
        o->axis[a] = o->axis[a + 1];
    o->axis[o->rank] = (tgi_merged){0};
}

int tgi_order_fits(const tgi_order *o, const tgi_extents *image, const tgi_extents *array)
{
    for (int k = 0; k < array->n; k++)
        if (array->at[k].rank != o->rank)
            return 0;
    for (int a = 0; a < o->rank; a++)
        if (!is_axis(&o->axis[a], image, array, a))
            return 0;
    return 1;
}

int tgi_order_is_channels(const tgi_order *o, const tgi_extents *image, int a)
{
    if (a < 0 || a >= o->rank)
        return 0;
    if (tgi_extents_unit(image, TGI_CHANNELS))
        return o->axis[a].n == 0;
    return o->axis[a].n == 1 && o->axis[a].of[0] == TGI_CHANNELS;
}

void tgi_order_set_channels(tgi_order *o, const tgi_extents *image, int a)
{
    o->axis[a] = tgi_extents_unit(image, TGI_CHANNELS) ? (tgi_merged){0}
                                                       : (tgi_merged){1, {TGI_CHANNELS}};
}

/* No axis of the image may stand twice in an order. */
static int names_once(const tgi_order *o)
{
    unsigned seen = 0;
    for (int a = 0; a < o->rank; a++)
        for (int k = 0; k < o->axis[a].n; k++) {
            if (seen & 1u << o->axis[a].of[k])
                return 0;
            seen |= 1u << o->axis[a].of[k];
        }
    return 1;
}

int tgi_order_join(tgi_order *a, const tgi_order *b)
{
    const int rank = a->rank > b->rank ? a->rank : b->rank;
    tgi_order both = {.rank = rank};
    for (int i = 0; i < rank; i++) {
        static const tgi_merged none;
        const int at = i - (rank - a->rank), bt = i - (rank - b->rank);
        const tgi_merged *p = at < 0 ? &none : &a->axis[at], *q = bt < 0 ? &none : &b->axis[bt];
        if (p->n && q->n && !same_axis(p, q))
            return 0;
        both.axis[i] = p->n ? *p : *q;
    }
    *a = both;
    return names_once(a);
}

/* polygon.c - the common part of two polygons, by slabs between the rows at which corners lie.
 *
 *     y1 ------------*------------------      within a slab edges are straight and go all the
 *          \  e   f /      g /                way through. They are ordered by x; walking from
 *           \      /\       /                 left to right the two winding numbers say at which
 *            \    /  \     /                  edges the common part begins (left side) and ends
 *     y0 -----\--/----\---*-------------      (right side). Edges that cross cut the slab there.
 *
 * The area is the sum of the integral of x dy along right sides less that along left sides. A side
 * runs from where the edge began to be one to where it ends or stops being one. These two points are
 * the corners of the common part; they are rounded, and nothing between them is.
 *
 * Rows are taken from the highest to the lowest, and that two edges have crossed is seen by their columns
 * rounded at whole rows: then a crossing can be found a row late, and its point is taken into that slab.
 * This is the way of the library that the users' program calls (Clipper 6), and areas are the same up to a
 * pixel or so where edges are nearly level or many cross at once. */
#include "engine/post/polygon.h"

#include "engine/base/mem.h"

#include <math.h>
#include <string.h>

typedef struct edge {
    int32_t y0, y1; /* lower and higher end; y is turned over */
    int64_t x0, x1;
    double slope;
    int64_t top;            /* its column at the slab's end */
    int64_t from_x, from_y; /* of the side it is now */
    int64_t cut_x, cut_y;   /* the crossing that was met last */
    int32_t number;         /* in its polygon */
    int8_t owner, turn,
        side; /* which polygon; its part of the winding number; -1 left, 1 right, 0 none */
    int8_t is_cut;
} edge;

typedef struct crossing {
    int64_t x, y;
    int a, b; /* edges; a is left of b before */
} crossing;

struct tgi_polygon_work {
    edge *edges;
    int *active; /* indices, ordered from left to right in the slab at hand */
    int64_t *starts, *ends;
    crossing *crossings;
    int *sorted;
    int n_edges, n_active, n_crossings, most, corners[2];
    int64_t sum; /* twice the area */
};

int64_t tgi_polygon_area2(const tgi_corner *p, int n)
{
    int64_t sum = 0;
    for (int i = 0; i < n; i++) {
        const tgi_corner *q = &p[i + 1 < n ? i + 1 : 0];
        sum += (int64_t)p[i].x * q->y - (int64_t)p[i].y * q->x;
    }
    return sum < 0 ? -sum : sum;
}

tg_status tgi_polygon_work_open(int n, tgi_polygon_work **out, tgi_err *err)
{
    tgi_polygon_work *w = tgi_calloc(TGI_TAG_MISC, 1, sizeof *w);
    if (!w)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the edges of polygons");
    const size_t most = 2 * (size_t)n;
    w->edges = tgi_calloc(TGI_TAG_MISC, most, sizeof *w->edges);
    w->active = tgi_calloc(TGI_TAG_MISC, most, sizeof *w->active);
    w->starts = tgi_calloc(TGI_TAG_MISC, 2 * most, sizeof *w->starts);
    w->sorted = tgi_calloc(TGI_TAG_MISC, most, sizeof *w->sorted);
    w->most = 8 * (int)most;
    w->crossings = tgi_calloc(TGI_TAG_MISC, (size_t)w->most, sizeof *w->crossings);
    if (!w->edges || !w->active || !w->starts || !w->sorted || !w->crossings) {
        tgi_polygon_work_close(&w);
        return tgi_fail(err, TG_E_NOMEM, "no memory for the edges of polygons of %d corners",
                        n);
    }
    w->ends = w->starts + most;
    *out = w;
    return TG_OK;
}

void tgi_polygon_work_close(tgi_polygon_work **w)
{
    if (!*w)
        return;
    tgi_free((*w)->edges);
    tgi_free((*w)->active);
    tgi_free((*w)->starts);
    tgi_free((*w)->sorted);
    tgi_free((*w)->crossings);
    tgi_free(*w);
    *w = NULL;
}

static void range_of(const tgi_corner *p, int n, int32_t *lo, int32_t *hi)
{
    *lo = *hi = p[0].y;
    for (int i = 1; i < n; i++) {
        *lo = p[i].y < *lo ? p[i].y : *lo;
        *hi = p[i].y > *hi ? p[i].y : *hi;
    }
}

/* Edges that have a part between lo and hi; level ones are no side of anything. Coordinates are taken
 * from an origin near both, so that doubles hold crossings as well far out in a large image. */
static void add_edges(tgi_polygon_work *w, const tgi_corner *p, int n, int owner,
                      tgi_corner origin, int32_t lo, int32_t hi)
{
    w->corners[owner] = n;
    for (int i = 0; i < n; i++) {
        const tgi_corner *a = &p[i], *b = &p[i + 1 < n ? i + 1 : 0];
        const int up = b->y < a->y;
        const tgi_corner *low = up ? a : b, *high = up ? b : a;
        const int32_t y0 = origin.y - low->y, y1 = origin.y - high->y;
        if (y0 == y1 || y1 <= lo || y0 >= hi)
            continue;
        const int64_t x0 = (int64_t)low->x - origin.x, x1 = (int64_t)high->x - origin.x;
        w->edges[w->n_edges++] = (edge){.y0 = y0,
                                        .y1 = y1,
                                        .x0 = x0,
                                        .x1 = x1,
                                        .slope = (double)(x1 - x0) / (y1 - y0),
                                        .number = i,
                                        .owner = (int8_t)owner,
                                        .turn = up ? 1 : -1};
    }
}

static void sort_keys(int64_t *keys, int n)
{
    for (int i = 1; i < n; i++) {
        const int64_t key = keys[i];
        int j = i;
        for (; j > 0 && keys[j - 1] > key; j--)
            keys[j] = keys[j - 1];
        keys[j] = key;
    }
}

static int64_t rounded(double v)
{
    return (int64_t)floor(v + 0.5);
}

/* Column at a whole row; the way from the lower end is rounded, halves away from it. */
static int64_t x_at(const edge *e, int32_t y)
{
    return y == e->y1 ? e->x1 : e->x0 + (int64_t)round((double)(y - e->y0) * e->slope);
}

/* The side that edge e was ends, or begins, at a point. */
static void turn_to(tgi_polygon_work *w, edge *e, int side, int64_t x, int64_t y)
{
    if (e->side != 0)
        w->sum += e->side * (e->from_x + x) * (y - e->from_y);
    e->side = (int8_t)side;
    e->from_x = x;
    e->from_y = y;
}

/* Which edges are sides from row y on, in the order that is. */
static void decide(tgi_polygon_work *w, int32_t y)
{
    int winds[2] = {0, 0}, inside = 0;
    for (int i = 0; i < w->n_active; i++) {
        edge *e = &w->edges[w->active[i]];
        winds[e->owner] += e->turn;
        const int now = winds[0] != 0 && winds[1] != 0, side = inside - now;
        inside = now;
        if (side != e->side) {
            if (e->is_cut)
                turn_to(w, e, side, e->cut_x, e->cut_y);
            else
                turn_to(w, e, side, x_at(e, y), y);
        }
        e->is_cut = 0;
    }
}

/* Does the new edge n go before edge e at row y? At one place the way up decides. */
static int goes_before(const edge *n, const edge *e, int32_t y)
{
    const int64_t xn = x_at(n, y), xe = x_at(e, y);
    if (xn != xe)
        return xn < xe;
    return n->y1 < e->y1 ? n->x1 < x_at(e, n->y1) : e->x1 > x_at(n, e->y1);
}

static void insert(tgi_polygon_work *w, int number, int32_t y)
{
    int at = 0;
    while (at < w->n_active && !goes_before(&w->edges[number], &w->edges[w->active[at]], y))
        at++;
    memmove(w->active + at + 1, w->active + at, (size_t)(w->n_active - at) * sizeof *w->active);
    w->active[at] = number;
    w->n_active++;
}

/* An edge that goes on where another of its polygon ends takes its place. */
static int takes_over(tgi_polygon_work *w, int number, int32_t y)
{
    const edge *n = &w->edges[number];
    const int before = (n->number - n->turn + w->corners[n->owner]) % w->corners[n->owner];
    for (int i = 0; i < w->n_active; i++) {
        edge *e = &w->edges[w->active[i]];
        if (e->owner != n->owner || e->turn != n->turn || e->number != before || e->y1 != y)
            continue;
        if (e->side != 0)
            turn_to(w, e, 0, e->x1, y);
        w->active[i] = number;
        return 1;
    }
    return 0;
}

/* Where two edges cross, rounded, and taken into the slab. */
static crossing cross(const tgi_polygon_work *w, int a, int b, int32_t y, int32_t y1)
{
    const edge *e = &w->edges[a], *f = &w->edges[b];
    const edge *steep = fabs(e->slope) < fabs(f->slope) ? e : f;
    const int64_t top = e->y1 < f->y1 ? e->y1 : f->y1;
    crossing c = {x_at(e, y), y, a, b};
    if (e->slope == f->slope)
        return c;
    const double at_e = (double)e->x0 - e->y0 * e->slope,
                 at_f = (double)f->x0 - f->y0 * f->slope;
    const double row = (at_f - at_e) / (e->slope - f->slope);
    c.y = (int64_t)ceil(row - 0.5);
    c.x = rounded(steep->slope * row + (steep == e ? at_e : at_f));
    if (c.y > top)
        c = (crossing){x_at(steep, (int32_t)top), top, a, b};
    if (c.y < y)
        c = (crossing){x_at(fabs(e->slope) > fabs(f->slope) ? f : e, y), y, a, b};
    if (c.y > y1)
        c = (crossing){e->top, y1, a, b};
    return c;
}

/* Edges whose columns at the slab's end are in another order than at its beginning, pair by pair. */
static void find_crossings(tgi_polygon_work *w, int32_t y, int32_t y1)
{
    memcpy(w->sorted, w->active, (size_t)w->n_active * sizeof *w->sorted);
    w->n_crossings = 0;
    for (int end = w->n_active - 1, again = 1; again && end > 0; end--) {
        again = 0;
        for (int i = 0; i < end && w->n_crossings < w->most; i++) {
            const int a = w->sorted[i], b = w->sorted[i + 1];
            if (w->edges[a].top <= w->edges[b].top)
                continue;
            const crossing c = cross(w, a, b, y, y1);
            int at = w->n_crossings++;
            for (; at > 0 && w->crossings[at - 1].y > c.y; at--)
                w->crossings[at] = w->crossings[at - 1];
            w->crossings[at] = c;
            w->sorted[i] = b;
            w->sorted[i + 1] = a;
            again = 1;
        }
    }
}

/* Position of a crossing's left edge if the right one is next to it, or -1. */
static int adjacent(const tgi_polygon_work *w, const crossing *c)
{
    for (int i = 0; i + 1 < w->n_active; i++)
        if (w->active[i] == c->a)
            return w->active[i + 1] == c->b ? i : -1;
    return -1;
}

static void slab(tgi_polygon_work *w, int32_t y, int32_t y1)
{
    decide(w, y);
    for (int i = 0; i < w->n_active; i++)
        w->edges[w->active[i]].top = x_at(&w->edges[w->active[i]], y1);
    find_crossings(w, y, y1);
    for (int k = 0; k < w->n_crossings; k++) {
        int next = k, at;
        while ((at = adjacent(w, &w->crossings[next])) < 0 && next + 1 < w->n_crossings)
            next++;
        if (at < 0)
            return;
        const crossing c = w->crossings[next];
        w->crossings[next] = w->crossings[k];
        edge *e = &w->edges[c.a], *f = &w->edges[c.b];
        e->cut_x = f->cut_x = c.x;
        e->cut_y = f->cut_y = c.y;
        e->is_cut = f->is_cut = 1;
        w->active[at] = c.b;
        w->active[at + 1] = c.a;
        decide(w, (int32_t)c.y);
    }
}

/* Take out edges that end at row y. */
static void end_edges(tgi_polygon_work *w, int32_t y)
{
    int kept = 0;
    for (int i = 0; i < w->n_active; i++) {
        edge *e = &w->edges[w->active[i]];
        if (e->y1 > y)
            w->active[kept++] = w->active[i];
        else if (e->side != 0)
            turn_to(w, e, 0, e->x1, y);
    }
    w->n_active = kept;
}

static void sweep(tgi_polygon_work *w, int32_t lo, int32_t hi)
{
    for (int i = 0; i < w->n_edges; i++) {
        w->starts[i] = (int64_t)w->edges[i].y0 * 65536 + i;
        w->ends[i] = w->edges[i].y1;
    }
    sort_keys(w->starts, w->n_edges);
    sort_keys(w->ends, w->n_edges);
    int started = 0, ended = 0;
    for (int32_t y = lo; y < hi;) {
        const int first = started;
        for (; started < w->n_edges && w->starts[started] >> 16 <= y; started++)
            if (takes_over(w, (int)(w->starts[started] & 0xffff), y))
                w->starts[started] = -1;
        end_edges(w, y);
        for (int i = first; i < started; i++)
            if (w->starts[i] != -1)
                insert(w, (int)(w->starts[i] & 0xffff), y);
        while (ended < w->n_edges && w->ends[ended] <= y)
            ended++;
        int32_t next = hi;
        if (started < w->n_edges && w->starts[started] >> 16 < next)
            next = (int32_t)(w->starts[started] >> 16);
        if (ended < w->n_edges && w->ends[ended] < next)
            next = (int32_t)w->ends[ended];
        slab(w, y, next);
        y = next;
    }
    for (int i = 0; i < w->n_active; i++)
        turn_to(w, &w->edges[w->active[i]], 0, x_at(&w->edges[w->active[i]], hi), hi);
}

int64_t tgi_polygon_common2(tgi_polygon_work *w, const tgi_corner *a, int n_a,
                            const tgi_corner *b, int n_b)
{
    int32_t lo, hi, lo_b, hi_b;
    range_of(a, n_a, &lo, &hi);
    range_of(b, n_b, &lo_b, &hi_b);
    lo = lo > lo_b ? lo : lo_b;
    hi = hi < hi_b ? hi : hi_b;
    if (lo >= hi)
        return 0;
    const tgi_corner origin = a[0];
    w->n_edges = w->n_active = 0;
    w->sum = 0;
    add_edges(w, a, n_a, 0, origin, origin.y - hi, origin.y - lo);
    add_edges(w, b, n_b, 1, origin, origin.y - hi, origin.y - lo);
    sweep(w, origin.y - hi, origin.y - lo);
    return w->sum < 0 ? 0 : w->sum;
}

/* The common part of two polygons, by slabs between the rows at which corners lie.
 *
 *     y1 ------------*------------------      within a slab edges are straight and go all the
 *          \  e   f /      g /                way through. They are ordered by x; walking from
 *           \      /\       /                 left to right the two winding numbers say at which
 *            \    /  \     /                  edges the common part begins (left side) and ends
 *     y0 -----\--/----\---*-------------      (right side). Edges that cross cut the slab there.
 *
 * The area is the sum of the integral of x dy along right sides less that along left sides. A side
 * runs from where the edge began to be one to where it ends or stops being one. These two points are
 * the corners of the common part; they are rounded, and nothing between them is. */
#include "engine/post/polygon.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"

#include <math.h>
#include <string.h>

/* Edges of whole-numbered corners that are nearer than this at a whole row are at the same place. */
#define SAME 1e-9

typedef struct edge {
    int32_t y0, y1; /* lower and higher end */
    double x0, slope;
    double xb, xt, xm; /* at the slab's beginning and end, and where the order is looked at */
    int64_t from_x, from_y; /* of the side it is now */
    int64_t cut_x, cut_y;   /* the crossing that was met last */
    int8_t owner, turn,
        side; /* which polygon; its part of the winding number; -1 left, 1 right, 0 none */
    int8_t is_cut;
} edge;

struct tgi_polygon_work {
    edge *edges;
    int *active; /* indices, ordered from left to right in the slab at hand */
    int64_t *starts, *ends;
    int n_edges, n_active;
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
    if (!w->edges || !w->active || !w->starts) {
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
    for (int i = 0; i < n; i++) {
        const tgi_corner *a = &p[i], *b = &p[i + 1 < n ? i + 1 : 0];
        const int up = b->y > a->y;
        const tgi_corner *low = up ? a : b, *high = up ? b : a;
        const int32_t y0 = low->y - origin.y, y1 = high->y - origin.y;
        if (y0 == y1 || y1 <= lo || y0 >= hi)
            continue;
        const double x0 = low->x - origin.x, x1 = high->x - origin.x;
        w->edges[w->n_edges++] = (edge){.y0 = y0,
                                        .y1 = y1,
                                        .x0 = x0,
                                        .slope = (x1 - x0) / (y1 - y0),
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

static double x_at(const edge *e, int32_t y)
{
    return e->x0 + (double)(y - e->y0) * e->slope;
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

/* Halves go upwards, also where a crossing was found a hair below one. */
static int64_t rounded(double v)
{
    return (int64_t)floor(v + 0.5 + SAME);
}

/* Left to right by xm. What is at the same place is in the order of the edges' numbers, so that two
 * edges which share a stretch are in one order all along it. */
static void order(tgi_polygon_work *w)
{
    for (int i = 1; i < w->n_active; i++) {
        const int at = w->active[i];
        const double xm = w->edges[at].xm;
        int j = i;
        for (; j > 0; j--) {
            const int before = w->active[j - 1];
            const double d = w->edges[before].xm - xm;
            if (d < -SAME || (d <= SAME && before < at))
                break;
            w->active[j] = before;
        }
        w->active[j] = at;
    }
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
                turn_to(w, e, side, rounded(x_at(e, y)), y);
        }
        e->is_cut = 0;
    }
}

/* How far through the slab two edges cross, or 2: they do not. */
static double crossing(const edge *a, const edge *b)
{
    const double before = b->xb - a->xb, after = a->xt - b->xt;
    if ((before > SAME && after > SAME) || (before < -SAME && after < -SAME))
        return before / (before + after);
    return 2;
}

/* The nearest crossing behind `t`, or 2. */
static double next_crossing(const tgi_polygon_work *w, double t)
{
    double next = 2;
    for (int i = 0; i < w->n_active; i++)
        for (int j = i + 1; j < w->n_active; j++) {
            const double at = crossing(&w->edges[w->active[i]], &w->edges[w->active[j]]);
            if (at > t && at < next)
                next = at;
        }
    return next;
}

static void mark_cuts(tgi_polygon_work *w, double t, int32_t y, int32_t y1)
{
    for (int i = 0; i < w->n_active; i++)
        for (int j = i + 1; j < w->n_active; j++) {
            edge *a = &w->edges[w->active[i]], *b = &w->edges[w->active[j]];
            if (crossing(a, b) != t)
                continue;
            const edge *steep = fabs(a->slope) < fabs(b->slope) ? a : b;
            a->cut_x = b->cut_x = rounded(steep->xb + t * (steep->xt - steep->xb));
            a->cut_y = b->cut_y = rounded(y + t * (y1 - y));
            a->is_cut = b->is_cut = 1;
        }
}

static void slab(tgi_polygon_work *w, int32_t y, int32_t y1)
{
    for (int i = 0; i < w->n_active; i++) {
        edge *e = &w->edges[w->active[i]];
        e->xb = x_at(e, y);
        e->xt = x_at(e, y1);
        e->xm = e->xb + e->xt;
    }
    double t = 0, next = next_crossing(w, 0);
    for (;; t = next, next = next_crossing(w, t)) {
        const double mid = (t + (next < 1 ? next : 1)) / 2;
        if (t > 0)
            mark_cuts(w, t, y, y1);
        if (t > 0 || next < 1)
            for (int i = 0; i < w->n_active; i++) {
                edge *e = &w->edges[w->active[i]];
                e->xm = 2 * (e->xb + mid * (e->xt - e->xb));
            }
        order(w);
        decide(w, y);
        if (next >= 1)
            return;
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
            turn_to(w, e, 0, rounded(x_at(e, y)), y);
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
        end_edges(w, y);
        for (; started < w->n_edges && w->starts[started] >> 16 <= y; started++)
            w->active[w->n_active++] = (int)(w->starts[started] & 0xffff);
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
        turn_to(w, &w->edges[w->active[i]], 0, rounded(x_at(&w->edges[w->active[i]], hi)), hi);
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
    add_edges(w, a, n_a, 0, origin, lo - origin.y, hi - origin.y);
    add_edges(w, b, n_b, 1, origin, lo - origin.y, hi - origin.y);
    sweep(w, lo - origin.y, hi - origin.y);
    return w->sum < 0 ? 0 : w->sum;
}

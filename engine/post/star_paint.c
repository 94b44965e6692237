/* star_paint.c - painting star-convex polygons row by row.
 *
 * A pixel is in a polygon when an odd number of edges crosses its row to the right of its centre, or to
 * the left of it. The two differ where the centre is on an edge, which thus is inside. To the right an
 * edge counts when it leads from "at or below 0" to above, to the left when from below to "at or above",
 * so a corner on the row counts once. The same rule as that of the users' own programs, decided for each
 * edge near where it crosses the row instead of for each pixel and edge. */
#include "engine/post/star_inside.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"

#include <math.h>
#include <string.h>

#define NEAR_ROWS 256   /* objects near so many rows are looked for at once */
#define AT_CORNER 1e-12 /* a centre nearer than this in both directions is the corner */

tg_status tgi_star_paint_open(tgi_stardist *s, tgi_err *err)
{
    const size_t n = (size_t)s->rays, turns = 2 * ((size_t)s->how.width + 2);
    TGI_TRY(tgi_room_take(&s->memory,
                          n * (2 * sizeof(float) + 2 * sizeof(double)) + turns +
                              ((size_t)s->n + 1) * sizeof *s->near,
                          err));
    s->corner_y = tgi_calloc(TGI_TAG_MISC, 2 * n, sizeof(float));
    s->sines = tgi_calloc(TGI_TAG_MISC, 2 * n, sizeof(double));
    s->turns = tgi_calloc(TGI_TAG_MISC, turns, 1);
    s->near = tgi_calloc(TGI_TAG_MISC, (size_t)s->n + 1, sizeof *s->near);
    if (!s->corner_y || !s->sines || !s->turns || !s->near)
        return tgi_fail(err, TG_E_NOMEM, "stardist: no memory to paint a row of %lld pixels",
                        (long long)s->how.width);
    s->corner_x = s->corner_y + n;
    s->cosines = s->sines + n;
    const double step = 2 * M_PI / s->rays;
    for (int k = 0; k < s->rays; k++) {
        s->sines[k] = sin(k * step);
        s->cosines[k] = cos(k * step);
    }
    return TG_OK;
}

typedef struct extent {
    int64_t y0, y1, x0, x1; /* inclusive */
} extent;

/* Corners in single precision, as the users' own programs hold them, and the pixels to look at. */
static extent corners_of(tgi_stardist *s, const tgi_stardist_object *o)
{
    const float *d = s->distances + (size_t)o->at * (size_t)s->rays;
    float y0 = INFINITY, y1 = -INFINITY, x0 = INFINITY, x1 = -INFINITY;
    for (int k = 0; k < s->rays; k++) {
        const float dy = (float)(d[k] * s->sines[k]), dx = (float)(d[k] * s->cosines[k]);
        const float y = (float)((double)dy + o->y), x = (float)((double)dx + o->x);
        s->corner_y[k] = y;
        s->corner_x[k] = x;
        y0 = fminf(y0, y);
        y1 = fmaxf(y1, y);
        x0 = fminf(x0, x);
        x1 = fmaxf(x1, x);
    }
    return (extent){.y0 = (int64_t)fmaxf(0, y0),
                    .y1 = tgi_min(s->how.height - 1, (int64_t)ceilf(y1)),
                    .x0 = (int64_t)fmaxf(0, x0),
                    .x1 = tgi_min(s->how.width - 1, (int64_t)ceilf(x1))};
}

/* Where an edge crosses the row, seen from column x: above 0 to the right of it. */
static double seen_from(double xa, double ya, double xb, double yb, double x)
{
    const double x0 = xb - x, x1 = xa - x;
    return (x0 * ya - x1 * yb) / (ya - yb);
}

/* The first column of [x0,x1+1] from which the edge is no longer at the right (or, for `left`, from
 * which it is at the left). Rounding is far below a pixel, so only columns near the crossing are asked. */
static int64_t first_past(double xa, double ya, double xb, double yb, int left, int64_t x0,
                          int64_t x1)
{
    const double about = floor(xa + (xb - xa) * (-ya / (yb - ya))) - 1;
    int64_t x = about <= (double)x0 ? x0 : about > (double)x1 ? x1 + 1 : (int64_t)about;
    for (; x <= x1; x++) {
        const double v = seen_from(xa, ya, xb, yb, (double)x);
        if (left ? v < 0 : !(v > 0))
            break;
    }
    return x;
}

/* Toggle, in turns[0..] and turns[row..], where the counts to both sides change along row y. */
static void turns_of_row(tgi_stardist *s, int64_t y, const extent *e)
{
    uint8_t *right = s->turns, *left = s->turns + s->how.width + 2;
    const size_t n = (size_t)(e->x1 - e->x0 + 2);
    memset(right, 0, n);
    memset(left, 0, n);
    const int last = s->rays - 1;
    double xa = s->corner_x[last], ya = (double)s->corner_y[last] - (double)y;
    for (int k = 0; k < s->rays; k++) {
        const double xb = s->corner_x[k], yb = (double)s->corner_y[k] - (double)y;
        if ((yb > 0) != (ya > 0)) {
            right[0] ^= 1;
            right[first_past(xa, ya, xb, yb, 0, e->x0, e->x1) - e->x0] ^= 1;
        }
        if ((yb < 0) != (ya < 0))
            left[first_past(xa, ya, xb, yb, 1, e->x0, e->x1) - e->x0] ^= 1;
        xa = xb;
        ya = yb;
    }
}

static void paint_corners(const tgi_stardist *s, int64_t y, const extent *e, uint32_t id,
                          uint32_t *row)
{
    for (int k = 0; k < s->rays; k++) {
        const double at = round((double)s->corner_x[k]);
        if (fabs((double)s->corner_y[k] - (double)y) < AT_CORNER &&
            fabs((double)s->corner_x[k] - at) < AT_CORNER && at >= (double)e->x0 &&
            at <= (double)e->x1)
            row[(int64_t)at] = id;
    }
}

static int is_near(const tgi_stardist_object *o, int64_t y0, int64_t y1)
{
    return (double)o->y + o->reach + 2 >= (double)y0 &&
           (double)o->y - o->reach - 2 <= (double)y1;
}

static void paint_one(tgi_stardist *s, uint32_t id, int64_t y0, int64_t y1, uint32_t *dst)
{
    const tgi_stardist_object *o = &s->objects[id - 1];
    if (!is_near(o, y0, y1))
        return;
    const extent e = corners_of(s, o);
    if (e.x0 > e.x1)
        return;
    for (int64_t y = tgi_max(y0, e.y0); y < y1 && y <= e.y1; y++) {
        uint32_t *row = dst + (y - y0) * s->how.width;
        turns_of_row(s, y, &e);
        const uint8_t *right = s->turns, *left = s->turns + s->how.width + 2;
        unsigned r = 0, l = 0;
        for (int64_t x = e.x0; x <= e.x1; x++) {
            r ^= right[x - e.x0];
            l ^= left[x - e.x0];
            if (r | l)
                row[x] = id;
        }
        paint_corners(s, y, &e, id, row);
    }
}

/* From the lowest probability up; of equal ones the later lies on top. */
static void find_near(tgi_stardist *s, int64_t y0, int64_t y1)
{
    s->near_y0 = y0;
    s->near_y1 = tgi_max(y1, y0 + NEAR_ROWS);
    s->n_near = 0;
    for (uint32_t end = s->n; end > 0;) {
        uint32_t first = end - 1;
        while (first > 0 && s->objects[first - 1].prob == s->objects[end - 1].prob)
            first--;
        for (uint32_t i = first; i < end; i++)
            if (is_near(&s->objects[i], s->near_y0, s->near_y1))
                s->near[s->n_near++] = i + 1;
        end = first;
    }
}

void tgi_stardist_paint(tgi_stardist *s, int64_t y0, int64_t y1, uint32_t *dst)
{
    memset(dst, 0, (size_t)(y1 - y0) * (size_t)s->how.width * sizeof *dst);
    if (y0 < s->near_y0 || y1 > s->near_y1)
        find_near(s, y0, y1);
    for (uint32_t k = 0; k < s->n_near; k++)
        paint_one(s, s->near[k], y0, y1, dst);
}

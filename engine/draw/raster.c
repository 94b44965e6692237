/* raster.c - adds up the coverage of edges, row by row, and paints it. */
#include "engine/draw/raster.h"

#include "engine/base/mem.h"

#include <math.h>
#include <string.h>

tg_status tgi_raster_open(int width, int height, tgi_raster *out, tgi_err *err)
{
    const size_t pixels = (size_t)width * (size_t)height;
    *out = (tgi_raster){.width = width, .height = height, .top = height};
    out->rgb = tgi_malloc(TGI_TAG_MISC, 3 * pixels);
    out->cover = tgi_calloc(TGI_TAG_MISC, ((size_t)width + 2) * (size_t)height, sizeof(float));
    if (!out->rgb || !out->cover) {
        tgi_raster_close(out);
        return tgi_fail(err, TG_E_NOMEM, "no memory for a picture of %dx%d pixels", width,
                        height);
    }
    memset(out->rgb, 255, 3 * pixels);
    return TG_OK;
}

void tgi_raster_close(tgi_raster *r)
{
    tgi_free(r->rgb);
    tgi_free(r->cover);
    r->rgb = NULL;
    r->cover = NULL;
}

static double within(double v, double lo, double hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* The part of an edge in one row: it goes down by dy, from x0 to x1; up has dy < 0. */
static void add_in_row(tgi_raster *r, int row, double dy, double x0, double x1)
{
    float *a = r->cover + (size_t)row * ((size_t)r->width + 2);
    x0 = within(x0, 0, r->width);
    x1 = within(x1, 0, r->width);
    if (x0 > x1) {
        const double t = x0;
        x0 = x1;
        x1 = t;
    }
    const int i0 = (int)x0, i1 = (int)ceil(x1);
    if (i1 <= i0 + 1) { /* within one pixel: what lies right of the edge's middle is covered */
        const double mid = 0.5 * (x0 + x1) - i0;
        a[i0] += (float)(dy * (1 - mid));
        a[i0 + 1] += (float)(dy * mid);
        return;
    }
    const double per = dy / (x1 - x0); /* height lost per pixel to the right */
    double before = 0;
    for (int i = i0; i < i1; i++) {
        const double l = within(x0, i, i + 1), h = within(x1, i, i + 1);
        /* Area in pixel i right of the edge, of what passes in it, and in full of what passed.
         */
        const double passed = per * (l - x0);
        const double here = per * (h - l) * (i + 1 - 0.5 * (l + h));
        const double total = passed + here;
        a[i] += (float)(total - before);
        before = total;
    }
    a[i1] += (float)(dy - before);
}

void tgi_raster_edge(tgi_raster *r, tgi_point p, tgi_point q)
{
    const double way = p.y < q.y ? 1 : -1;
    if (p.y > q.y) {
        const tgi_point t = p;
        p = q;
        q = t;
    }
    const double y0 = within(p.y, 0, r->height), y1 = within(q.y, 0, r->height);
    if (!(y1 > y0))
        return;
    const double slope = (q.x - p.x) / (q.y - p.y);
    const int first = (int)y0, end = (int)ceil(y1);
    r->top = first < r->top ? first : r->top;
    r->foot = end > r->foot ? end : r->foot;
    for (int row = first; row < end; row++) {
        const double a = within(row, y0, y1), b = within(row + 1, y0, y1);
        add_in_row(r, row, way * (b - a), p.x + slope * (a - p.y), p.x + slope * (b - p.y));
    }
}

void tgi_raster_polygon(tgi_raster *r, const tgi_point *p, int n)
{
    for (int i = 0; i < n; i++)
        tgi_raster_edge(r, p[i], p[i + 1 < n ? i + 1 : 0]);
}

/* A regular polygon fine enough for a circle of that size. */
static void add_disc(tgi_raster *r, tgi_point at, double radius)
{
    tgi_point p[64];
    int n = 8 + (int)(2 * radius);
    n = n > 64 ? 64 : n;
    for (int i = 0; i < n; i++) {
        const double a = 6.283185307179586 * i / n;
        p[i] = (tgi_point){at.x + radius * cos(a), at.y + radius * sin(a)};
    }
    tgi_raster_polygon(r, p, n);
}

void tgi_raster_line(tgi_raster *r, const tgi_point *p, int n, double width)
{
    const double h = 0.5 * width;
    for (int i = 0; i < n; i++) {
        add_disc(r, p[i], h);
        if (i + 1 == n)
            break;
        const double dx = p[i + 1].x - p[i].x, dy = p[i + 1].y - p[i].y;
        const double len = sqrt(dx * dx + dy * dy);
        if (len <= 0)
            continue;
        const double ox = h * dy / len, oy = -h * dx / len; /* the winding of add_disc */
        const tgi_point quad[4] = {{p[i].x + ox, p[i].y + oy},
                                   {p[i + 1].x + ox, p[i + 1].y + oy},
                                   {p[i + 1].x - ox, p[i + 1].y - oy},
                                   {p[i].x - ox, p[i].y - oy}};
        tgi_raster_polygon(r, quad, 4);
    }
}

static uint8_t mix(uint8_t below, uint8_t above, double a)
{
    return (uint8_t)(below + (above - below) * a + 0.5);
}

static void paint_row(tgi_raster *r, int row, tgi_colour c)
{
    float *a = r->cover + (size_t)row * ((size_t)r->width + 2);
    uint8_t *px = r->rgb + 3 * (size_t)row * (size_t)r->width;
    float sum = 0;
    for (int x = 0; x < r->width; x++, px += 3) {
        sum += a[x];
        const double cover = c.alpha * within(fabs((double)sum), 0, 1);
        if (cover < 1e-3) /* also what float sums leave behind a shape */
            continue;
        px[0] = mix(px[0], c.r, cover);
        px[1] = mix(px[1], c.g, cover);
        px[2] = mix(px[2], c.b, cover);
    }
    memset(a, 0, ((size_t)r->width + 2) * sizeof *a);
}

void tgi_raster_paint(tgi_raster *r, tgi_colour c)
{
    for (int row = r->top; row < r->foot; row++)
        paint_row(r, row, c);
    r->top = r->height;
    r->foot = 0;
}

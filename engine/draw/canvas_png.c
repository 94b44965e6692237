/* canvas_png.c - a plot as pixels: the same calls as the SVG's, drawn by raster.h and the
 * letters of stroke_font.h. */
#include "engine/base/mem.h"
#include "engine/draw/canvas.h"
#include "engine/draw/raster.h"
#include "engine/draw/stroke_font.h"
#include "io/png.h"

#include <math.h>

#define EM 100.0
#define PEN 8.6 /* units of the em */
#define PEN_BOLD 11.5

typedef struct png_canvas {
    tgi_canvas base;
    tgi_raster raster;
    double scale;
    int theme;
} png_canvas;

static tgi_point scaled(const png_canvas *c, tgi_point p)
{
    return (tgi_point){p.x * c->scale, p.y * c->scale};
}

static void paint(png_canvas *c, tgi_role role)
{
    tgi_raster_paint(&c->raster, tgi_role_colour(role, c->theme));
}

static void png_rect(tgi_canvas *base, double x, double y, double w, double h, tgi_role role)
{
    png_canvas *c = (png_canvas *)base;
    /* Edges on whole pixels: bands beside one another leave no seam. */
    const double x0 = floor(x * c->scale + 0.5), x1 = floor((x + w) * c->scale + 0.5);
    const double y0 = floor(y * c->scale + 0.5), y1 = floor((y + h) * c->scale + 0.5);
    const tgi_point p[4] = {{x0, y0}, {x1, y0}, {x1, y1}, {x0, y1}};
    tgi_raster_polygon(&c->raster, p, 4);
    paint(c, role);
}

static void png_area(tgi_canvas *base, const tgi_point *p, int n, tgi_role role)
{
    png_canvas *c = (png_canvas *)base;
    for (int i = 0; i < n; i++) {
        const tgi_point edge[2] = {scaled(c, p[i]), scaled(c, p[i + 1 < n ? i + 1 : 0])};
        tgi_raster_edge(&c->raster, edge[0], edge[1]);
    }
    paint(c, role);
}

/* The dashes of one straight piece; *at is how far into the pattern it begins. */
static void dashed(png_canvas *c, tgi_point a, tgi_point b, double width, double dash,
                   double *at)
{
    const double gap = dash * 2 / 3, len = hypot(b.x - a.x, b.y - a.y);
    for (double from = 0; from < len;) {
        const int on = *at < dash;
        const double left = (on ? dash : dash + gap) - *at;
        const double to = from + left < len ? from + left : len;
        if (on) {
            const tgi_point p[2] = {scaled(c, (tgi_point){a.x + (b.x - a.x) * from / len,
                                                          a.y + (b.y - a.y) * from / len}),
                                    scaled(c, (tgi_point){a.x + (b.x - a.x) * to / len,
                                                          a.y + (b.y - a.y) * to / len})};
            tgi_raster_line(&c->raster, p, 2, width * c->scale);
        }
        *at += to - from;
        if (*at >= dash + gap - 1e-9)
            *at = 0;
        from = to + 1e-9;
    }
}

static void png_line(tgi_canvas *base, const tgi_point *p, int n, tgi_role role, double width,
                     double dash)
{
    png_canvas *c = (png_canvas *)base;
    double at = 0;
    for (int i = 0; i + 1 < n; i++) {
        const tgi_point piece[2] = {scaled(c, p[i]), scaled(c, p[i + 1])};
        if (dash > 0)
            dashed(c, p[i], p[i + 1], width, dash, &at);
        else
            tgi_raster_line(&c->raster, piece, 2, width * c->scale);
    }
    paint(c, role);
}

static void png_disc(tgi_canvas *base, double x, double y, double r, tgi_role role)
{
    png_canvas *c = (png_canvas *)base;
    const tgi_point p = {x * c->scale, y * c->scale};
    tgi_raster_line(&c->raster, &p, 1, 2 * r * c->scale);
    paint(c, role);
}

/* ---- Text ---- */

typedef struct letter {
    png_canvas *canvas;
    double x, y, unit; /* of the baseline's point, in pixels; pixels a unit */
    double pen;
} letter;

static void letter_line(void *user, const tgi_point *p, int n)
{
    const letter *l = user;
    tgi_point q[TGI_GLYPH_POINTS];
    for (int i = 0; i < n; i++)
        q[i] = (tgi_point){l->x + p[i].x * l->unit, l->y - p[i].y * l->unit};
    tgi_raster_line(&l->canvas->raster, q, n, l->pen * l->unit);
}

double tgi_text_width(const char *s, double size, int bold)
{
    double units = 0;
    unsigned char c;
    for (; *s; s += tgi_glyph_next(s, &c)) {
        (void)tgi_glyph_next(s, &c);
        units += tgi_glyph(c, NULL, NULL) + (bold ? 2 : 0);
    }
    return units * size / EM;
}

static void png_text(tgi_canvas *base, double x, double y, tgi_anchor anchor, double size,
                     int bold, tgi_role role, const char *s)
{
    png_canvas *c = (png_canvas *)base;
    const double width = tgi_text_width(s, size, bold);
    letter l = {.canvas = c,
                .x = (x - width * (anchor == TGI_END      ? 1
                                   : anchor == TGI_MIDDLE ? 0.5
                                                          : 0)) *
                     c->scale,
                .y = y * c->scale,
                .unit = size * c->scale / EM,
                .pen = bold ? PEN_BOLD : PEN};
    while (*s) {
        unsigned char ch;
        s += tgi_glyph_next(s, &ch);
        l.x += (tgi_glyph(ch, letter_line, &l) + (bold ? 2 : 0)) * l.unit;
    }
    paint(c, role);
}

static void png_tip(tgi_canvas *c, double x, double y, double w, double h, const char *s)
{
    (void)c, (void)x, (void)y, (void)w, (void)h, (void)s; /* pixels have no pointer over them */
}

static const tgi_canvas_ops png_ops = {png_rect, png_area, png_line,
                                       png_disc, png_text, png_tip};

/* ---- Open and close ---- */

tg_status tgi_png_open(double width, double height, double scale, int theme, tgi_canvas **out,
                       tgi_err *err)
{
    const double w = ceil(width * scale), h = ceil(height * scale);
    if (!(w >= 1 && h >= 1 && w * h <= (double)TGI_PNG_MOST))
        return tgi_fail(err, TG_E_ARG,
                        "a picture of %.0fx%.0f pixels is too large: at most %lld in all", w, h,
                        (long long)TGI_PNG_MOST);
    png_canvas *c = tgi_calloc(TGI_TAG_MISC, 1, sizeof *c);
    if (!c)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the picture");
    c->base.ops = &png_ops;
    c->scale = scale;
    c->theme = theme;
    const tg_status st = tgi_raster_open((int)w, (int)h, &c->raster, err);
    if (st != TG_OK) {
        tgi_free(c);
        return st;
    }
    png_rect(&c->base, 0, 0, width + 1, height + 1, TGI_PAPER);
    *out = &c->base;
    return TG_OK;
}

tg_status tgi_png_close(tgi_canvas **base, const char *path, tgi_err *err)
{
    png_canvas *c = (png_canvas *)*base;
    const tgi_raster *r = &c->raster;
    const tg_status st =
        path ? tgi_png_write(path, r->rgb, r->height, r->width, 3, 3 * (size_t)r->width, err)
             : TG_OK;
    tgi_raster_close(&c->raster);
    tgi_free(c);
    *base = NULL;
    return st;
}

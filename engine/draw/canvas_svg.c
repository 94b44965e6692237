/* canvas_svg.c - a plot as SVG 1.1: styles inside, no scripts, nothing fetched.
 *
 * Roles are classes; a media query gives them their dark colours, so the picture follows the
 * page or viewer it is shown in. Light colours come first, for viewers that know no queries.
 * Numbers have two decimals and are made of integers: the same bytes in every locale. */
#include "engine/base/mem.h"
#include "engine/base/utf8.h"
#include "engine/draw/canvas.h"
#include "engine/draw/plot_axis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct svg {
    tgi_canvas base;
    char *text;
    size_t n, cap;
    int failed;
} svg;

/* ---- Text that grows ---- */

static void put_n(svg *s, const char *text, size_t n)
{
    if (s->n + n + 1 > s->cap) {
        const size_t cap = 2 * s->cap + n + 4096;
        char *grown = s->failed ? NULL : tgi_realloc_n(TGI_TAG_MISC, s->text, cap, 1);
        if (!grown) {
            s->failed = 1;
            return;
        }
        s->text = grown;
        s->cap = cap;
    }
    memcpy(s->text + s->n, text, n);
    s->n += n;
    s->text[s->n] = 0;
}

static void put(svg *s, const char *text)
{
    put_n(s, text, strlen(text));
}

/* Bytes of the character at p when XML may hold it, else 0: no control characters, no broken
 * UTF-8, no U+FFFE and U+FFFF (XML 1.0, 2.2). */
static size_t xml_length(const char *p)
{
    const size_t n = tgi_utf8_length(p, strlen(p));
    const unsigned char *u = (const unsigned char *)p;
    if (n == 1)
        return u[0] >= 0x20 || u[0] == '\n';
    return n == 3 && u[0] == 0xef && u[1] == 0xbf && u[2] >= 0xbe ? 0 : n;
}

static void put_escaped(svg *s, const char *text)
{
    while (*text) {
        const size_t n = xml_length(text);
        const char *as = !n             ? "_"
                         : *text == '&' ? "&amp;"
                         : *text == '<' ? "&lt;"
                         : *text == '>' ? "&gt;"
                         : *text == '"' ? "&quot;"
                                        : NULL;
        put_n(s, as ? as : text, as ? strlen(as) : n);
        text += n ? n : 1;
    }
}

/* "12.5", "-3", "0.07": two decimals at most. */
static void put_number(svg *s, double v)
{
    char b[48];
    const long long n = (long long)floor(fabs(v) * 100 + 0.5);
    if (v < 0 && n)
        put(s, "-");
    snprintf(b, sizeof b,
             n % 100 == 0  ? "%lld"
             : n % 10 == 0 ? "%lld.%lld"
                           : "%lld.%02lld",
             n / 100, n % 10 == 0 ? n / 10 % 10 : n % 100);
    put(s, b);
}

static void put_attribute(svg *s, const char *name, double v)
{
    put(s, " ");
    put(s, name);
    put(s, "=\"");
    put_number(s, v);
    put(s, "\"");
}

static void put_box(svg *s, double x, double y, double w, double h)
{
    put_attribute(s, "x", x);
    put_attribute(s, "y", y);
    put_attribute(s, "width", w);
    put_attribute(s, "height", h);
}

static void put_class(svg *s, char kind, tgi_role role)
{
    const char open[] = {' ', 'c', 'l', 'a', 's', 's', '=', '"', kind, '-', 0};
    put(s, open);
    put(s, tgi_role_name(role));
    put(s, "\"");
}

/* ---- Style ---- */

static void put_colours(svg *s, int theme)
{
    char b[160];
    for (int i = 0; i < TGI_ROLE_COUNT; i++) {
        const tgi_colour c = tgi_role_colour((tgi_role)i, theme);
        const char *name = tgi_role_name((tgi_role)i);
        snprintf(b, sizeof b, ".f-%s{fill:#%02x%02x%02x", name, c.r, c.g, c.b);
        put(s, b);
        if (c.alpha < 1) {
            put(s, ";fill-opacity:");
            put_number(s, c.alpha);
        }
        snprintf(b, sizeof b, "}.s-%s{stroke:#%02x%02x%02x}\n", name, c.r, c.g, c.b);
        put(s, b);
    }
}

static void put_style(svg *s, int theme)
{
    put(s, "<style>\n"
           "text{font-family:system-ui,-apple-system,\"Segoe UI\",Roboto,\"Helvetica Neue\","
           "\"Noto Sans\",\"Liberation Sans\",Arial,sans-serif;font-variant-numeric:"
           "tabular-nums}\n"
           ".l{fill:none;stroke-linejoin:round;stroke-linecap:round}\n"
           ".t{fill-opacity:0}.t:hover{fill-opacity:.1}\n");
    put_colours(s, theme == 1);
    if (theme < 0) {
        put(s, "@media (prefers-color-scheme:dark){\n");
        put_colours(s, 1);
        put(s, "}\n");
    }
    put(s, "</style>\n");
}

/* ---- Drawing ---- */

static void svg_rect(tgi_canvas *c, double x, double y, double w, double h, tgi_role role)
{
    svg *s = (svg *)c;
    put(s, "<rect");
    put_class(s, 'f', role);
    put_box(s, x, y, w, h);
    put(s, "/>\n");
}

static void put_path(svg *s, const tgi_point *p, int n)
{
    put(s, " d=\"");
    for (int i = 0; i < n; i++) {
        put(s, i == 0 ? "M" : i == 1 ? "L" : " ");
        put_number(s, p[i].x);
        put(s, ",");
        put_number(s, p[i].y);
    }
}

static void svg_area(tgi_canvas *c, const tgi_point *p, int n, tgi_role role)
{
    svg *s = (svg *)c;
    put(s, "<path");
    put_class(s, 'f', role);
    put_path(s, p, n);
    put(s, "Z\"/>\n");
}

static void svg_line(tgi_canvas *c, const tgi_point *p, int n, tgi_role role, double width,
                     double dash)
{
    svg *s = (svg *)c;
    put(s, "<path class=\"l s-");
    put(s, tgi_role_name(role));
    put(s, "\"");
    put_attribute(s, "stroke-width", width);
    if (dash > 0) {
        put(s, " stroke-dasharray=\"");
        put_number(s, dash);
        put(s, " ");
        put_number(s, dash * 2 / 3);
        put(s, "\"");
    }
    put_path(s, p, n);
    put(s, "\"/>\n");
}

static void svg_disc(tgi_canvas *c, double x, double y, double r, tgi_role role)
{
    svg *s = (svg *)c;
    put(s, "<circle");
    put_class(s, 'f', role);
    put_attribute(s, "cx", x);
    put_attribute(s, "cy", y);
    put_attribute(s, "r", r);
    put(s, "/>\n");
}

static void svg_text(tgi_canvas *c, double x, double y, tgi_anchor anchor, double size,
                     int bold, tgi_role role, const char *text)
{
    svg *s = (svg *)c;
    put(s, "<text");
    put_class(s, 'f', role);
    put_attribute(s, "x", x);
    put_attribute(s, "y", y);
    put_attribute(s, "font-size", size);
    if (bold)
        put(s, " font-weight=\"600\"");
    if (anchor != TGI_START)
        put(s, anchor == TGI_MIDDLE ? " text-anchor=\"middle\"" : " text-anchor=\"end\"");
    put(s, ">");
    put_escaped(s, text);
    put(s, "</text>\n");
}

static void svg_tip(tgi_canvas *c, double x, double y, double w, double h, const char *text)
{
    svg *s = (svg *)c;
    put(s, "<rect class=\"t f-ink\"");
    put_box(s, x, y, w, h);
    put(s, "><title>");
    put_escaped(s, text);
    put(s, "</title></rect>\n");
}

static const tgi_canvas_ops svg_ops = {svg_rect, svg_area, svg_line,
                                       svg_disc, svg_text, svg_tip};

/* ---- Open and close ---- */

tg_status tgi_svg_open(double width, double height, int theme, const char *title,
                       const char *description, tgi_canvas **out, tgi_err *err)
{
    svg *s = tgi_calloc(TGI_TAG_MISC, 1, sizeof *s);
    if (!s)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the picture");
    s->base.ops = &svg_ops;
    put(s, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ");
    put_number(s, width);
    put(s, " ");
    put_number(s, height);
    put(s, "\"");
    put_attribute(s, "width", width);
    put_attribute(s, "height", height);
    put(s, " role=\"img\" aria-label=\"");
    put_escaped(s, title);
    put(s, ". ");
    put_escaped(s, description);
    put(s, "\">\n<desc>");
    put_escaped(s, description);
    put(s, "</desc>\n");
    put_style(s, theme);
    svg_rect(&s->base, 0, 0, width, height, TGI_PAPER);
    *out = &s->base;
    return TG_OK;
}

tg_status tgi_svg_close(tgi_canvas **c, char **text, size_t *n, tgi_err *err)
{
    svg *s = (svg *)*c;
    put(s, "</svg>\n");
    *text = s->text;
    *n = s->n;
    const int failed = s->failed;
    tgi_free(s);
    *c = NULL;
    if (!failed)
        return TG_OK;
    tgi_free(*text);
    *text = NULL;
    return tgi_fail(err, TG_E_NOMEM, "no memory for the picture");
}

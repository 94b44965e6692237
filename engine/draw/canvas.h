/* canvas.h - what a plot is drawn on: an SVG text or pixels, with the same calls.
 *
 * Coordinates are points from the upper left corner. Colours are *roles*; a theme gives each
 * role a colour, so one drawing is right in light and dark. Nothing reports failure on the way:
 * it sticks, and shows at the end. */
#ifndef TGI_CANVAS_H
#define TGI_CANVAS_H

#include "engine/base/status.h"

typedef enum tgi_role {
    TGI_PAPER,
    TGI_PHASE_A, /* tints of phases, in turn */
    TGI_PHASE_B,
    TGI_RIBBON_A, /* and of their names' background */
    TGI_RIBBON_B,
    TGI_GRID,
    TGI_AXIS,
    TGI_INK,   /* text */
    TGI_MUTED, /* text beside */
    TGI_MEASURED,
    TGI_MEASURED_AREA,
    TGI_FILE_AREA,
    TGI_BUDGET,
    TGI_PREDICTED,
    TGI_ROLE_COUNT
} tgi_role;

typedef struct tgi_colour {
    unsigned char r, g, b;
    double alpha;
} tgi_colour;

/* theme 0: light, 1: dark. */
tgi_colour tgi_role_colour(tgi_role role, int theme);
const char *tgi_role_name(tgi_role role); /* "measured-area" */

typedef struct tgi_point {
    double x, y;
} tgi_point;

typedef enum tgi_anchor { TGI_START, TGI_MIDDLE, TGI_END } tgi_anchor;

typedef struct tgi_canvas tgi_canvas;
typedef struct tgi_canvas_ops {
    void (*rect)(tgi_canvas *c, double x, double y, double w, double h, tgi_role role);
    void (*area)(tgi_canvas *c, const tgi_point *p, int n,
                 tgi_role role); /* closed by itself */
    /* dash: length of dashes, with gaps of two thirds; 0: solid. */
    void (*line)(tgi_canvas *c, const tgi_point *p, int n, tgi_role role, double width,
                 double dash);
    void (*disc)(tgi_canvas *c, double x, double y, double r, tgi_role role);
    /* y: of the baseline. */
    void (*text)(tgi_canvas *c, double x, double y, tgi_anchor anchor, double size, int bold,
                 tgi_role role, const char *s);
    /* What a pointer over this place is told, where there are pointers. */
    void (*tip)(tgi_canvas *c, double x, double y, double w, double h, const char *s);
} tgi_canvas_ops;

struct tgi_canvas {
    const tgi_canvas_ops *ops;
};

/* Width of a text in points as the PNG draws it; fonts of SVG viewers are within some percent.
 */
double tgi_text_width(const char *s, double size, int bold);

/* ---- SVG ---- */
/* theme 0 light, 1 dark, -1 as the viewer prefers. `title` and `description` are for readers of
 * screens. Returned; TG_E_NOMEM. */
tg_status tgi_svg_open(double width, double height, int theme, const char *title,
                       const char *description, tgi_canvas **out, tgi_err *err);
/* The text, n bytes; the canvas is gone in any case. Returned; tgi_free. */
tg_status tgi_svg_close(tgi_canvas **c, char **text, size_t *n, tgi_err *err);

/* ---- PNG ---- */
#define TGI_PNG_MOST ((int64_t)16 << 20) /* pixels */
tg_status tgi_png_open(double width, double height, double scale, int theme, tgi_canvas **out,
                       tgi_err *err);
/* Write the file; the canvas is gone in any case. `path` NULL: throw away. */
tg_status tgi_png_close(tgi_canvas **c, const char *path, tgi_err *err);

#endif

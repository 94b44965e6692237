/* film_pixels.c - see film_pixels.h. */
#include "io/film_pixels.h"

#include "engine/base/arith.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- What the numbers mean --------------------------------------------------------------- */

/* Shares of red and blue in luma. */
static const struct {
    const char *name;
    float red, blue;
} matrices[] = {{"bt709", 0.2126f, 0.0722f},   {"smpte170m", 0.299f, 0.114f},
                {"bt470bg", 0.299f, 0.114f},   {"bt2020nc", 0.2627f, 0.0593f},
                {"smpte240m", 0.212f, 0.087f}, {"fcc", 0.30f, 0.11f}};

static void assume(tgi_film_pixels *p, const char *what)
{
    const size_t n = strlen(p->assumed);
    snprintf(p->assumed + n, sizeof p->assumed - n, "%s%s", n ? ", " : "", what);
}

int tgi_film_has_chroma(const tgi_film_pixels *p)
{
    return !p->form.is_rgb && p->form.n_components > 2;
}

static tg_status take_matrix(tgi_film_pixels *p, tgi_err *err)
{
    const char *name = p->form.matrix;
    if (!tgi_film_has_chroma(p))
        return TG_OK;
    if (!name[0]) {
        name = p->height >= 720 ? "bt709" : "smpte170m";
        assume(p, p->height >= 720 ? "matrix of BT.709" : "matrix of BT.601");
    }
    for (size_t i = 0; i < sizeof matrices / sizeof matrices[0]; i++) {
        if (strcmp(matrices[i].name, name) != 0)
            continue;
        const float r = matrices[i].red, b = matrices[i].blue, g = 1 - r - b;
        p->red = r;
        p->blue = b;
        const float m[3][3] = {{1, 0, 2 * (1 - r)},
                               {1, -2 * b * (1 - b) / g, -2 * r * (1 - r) / g},
                               {1, 2 * (1 - b), 0}};
        memcpy(p->rgb, m, sizeof m);
        return TG_OK;
    }
    return tgi_fail(err, TG_E_UNSUPPORTED,
                    "a film whose colours have the matrix %s, which is not read", name);
}

static void take_ranges(tgi_film_pixels *p)
{
    int limited = strcmp(p->form.range, "tv") == 0;
    if (!p->form.range[0] && tgi_film_has_chroma(p)) {
        limited = 1;
        assume(p, "limited range");
    }
    if (p->form.is_rgb)
        limited = 0;
    for (int c = 0; c < p->form.n_components; c++) {
        const int depth = p->form.component[c].depth;
        const int alpha = p->form.has_alpha && c == p->form.n_components - 1;
        const int chroma = tgi_film_has_chroma(p) && !alpha && c > 0;
        const float all = (float)((1 << depth) - 1), unit = (float)(1 << depth) / 256;
        p->black[c] = chroma ? (float)(1 << (depth - 1)) : limited && !alpha ? 16 * unit : 0;
        p->to_one[c] = 1 / (!limited || alpha ? all : (chroma ? 224 : 219) * unit);
    }
}

/* Half a pixel on the way from the first luma sample to the middle of the first `n`. */
static void take_places(tgi_film_pixels *p)
{
    const char *at = p->form.chroma_place;
    const int down = p->form.log2_chroma_h;
    if (!at[0] && tgi_film_has_chroma(p) && (p->form.log2_chroma_w || down))
        assume(p, "chroma on the left");
    const int middle_x =
        strcmp(at, "center") == 0 || strcmp(at, "top") == 0 || strcmp(at, "bottom") == 0;
    const int top = strncmp(at, "top", 3) == 0, bottom = strncmp(at, "bottom", 6) == 0;
    const float mx = (float)((1 << p->form.log2_chroma_w) - 1) / 2,
                my = (float)((1 << down) - 1) / 2;
    p->place_x = middle_x ? mx : 0;
    p->place_y = top ? 0 : bottom ? 2 * my : my;
}

tg_status tgi_film_pixels_make(const tgi_av_info *i, tgi_film_pixels *out, tgi_err *err)
{
    tgi_film_pixels *p = out;
    *p = (tgi_film_pixels){.form = i->form,
                           .width = i->width,
                           .height = i->height,
                           .rotation = i->rotation,
                           .flipped = i->flipped,
                           .samples = i->form.n_components};
    int depth = 0;
    for (int c = 0; c < i->form.n_components; c++)
        depth = i->form.component[c].depth > depth ? i->form.component[c].depth : depth;
    p->dtype = depth > 8 ? TG_DTYPE_U16 : TG_DTYPE_U8;
    const int lies = i->rotation == 90 || i->rotation == 270;
    p->wide = lies ? p->height : p->width;
    p->high = lies ? p->width : p->height;
    TGI_TRY(take_matrix(p, err));
    take_ranges(p);
    take_places(p);
    return TG_OK;
}

/* ---- A row ------------------------------------------------------------------------------- */

int64_t tgi_film_chroma_width(const tgi_film_pixels *p)
{
    return -((-p->width) >> p->form.log2_chroma_w);
}

int64_t tgi_film_chroma_height(const tgi_film_pixels *p)
{
    return -((-p->height) >> p->form.log2_chroma_h);
}

int tgi_film_is_chroma(const tgi_film_pixels *p, int c)
{
    return tgi_film_has_chroma(p) && (c == 1 || c == 2);
}

int64_t tgi_film_columns(const tgi_film_pixels *p, int c)
{
    return tgi_film_is_chroma(p, c) ? tgi_film_chroma_width(p) : p->width;
}

int64_t tgi_film_rows(const tgi_film_pixels *p, int c)
{
    return tgi_film_is_chroma(p, c) ? tgi_film_chroma_height(p) : p->height;
}

/* n elements of component c in row y, as numbers whose black is 0 and white 1. */
static void load(const tgi_film_pixels *p, const tgi_av_frame *f, int c, int64_t y, int64_t n,
                 float *to)
{
    const tgi_av_component *k = &p->form.component[c];
    const uint8_t *at = f->plane[k->plane] + y * f->pitch[k->plane] + k->offset;
    const float black = p->black[c], scale = p->to_one[c];
    for (int64_t x = 0; x < n; x++, at += k->step)
        to[x] = ((float)tgi_film_number(&p->form, c, at) - black) * scale;
}

tgi_film_between tgi_film_around(double at, int64_t n)
{
    const double down = floor(at);
    const int64_t a = (int64_t)down;
    return (tgi_film_between){tgi_clamp(a, 0, n - 1), tgi_clamp(a + 1, 0, n - 1),
                              (float)(at - down)};
}

/* Where luma pixel i lies among n smaller samples. */
static tgi_film_between place(int64_t i, int log2, float first, int64_t n)
{
    return tgi_film_around(((double)i - first) / (1 << log2), n);
}

/* A row of chroma, at the places of luma row y: `rows` is room for two rows of it. */
static void load_chroma(const tgi_film_pixels *p, const tgi_av_frame *f, int c, int64_t y,
                        float *to, float *rows)
{
    const int64_t n = tgi_film_chroma_width(p);
    const tgi_film_between v =
        place(y, p->form.log2_chroma_h, p->place_y, tgi_film_chroma_height(p));
    float *above = rows, *below = rows + n;
    load(p, f, c, v.a, n, above);
    if (v.b != v.a && v.part > 0) {
        load(p, f, c, v.b, n, below);
        for (int64_t i = 0; i < n; i++)
            above[i] += (below[i] - above[i]) * v.part;
    }
    if (!p->form.log2_chroma_w) {
        memcpy(to, above, (size_t)n * sizeof *to);
        return;
    }
    for (int64_t x = 0; x < p->width; x++) {
        const tgi_film_between h = place(x, p->form.log2_chroma_w, p->place_x, n);
        to[x] = above[h.a] + (above[h.b] - above[h.a]) * h.part;
    }
}

size_t tgi_film_row_room(const tgi_film_pixels *p)
{
    return (size_t)(4 * p->width + 2 * tgi_film_chroma_width(p)) * sizeof(float);
}

/* Y, U, V become R, G, B in place. */
static void to_rgb(const tgi_film_pixels *p, float *const v[4])
{
    for (int64_t x = 0; x < p->width; x++) {
        const float y = v[0][x], a = v[1][x], b = v[2][x];
        for (int k = 0; k < 3; k++)
            v[k][x] = p->rgb[k][0] * y + p->rgb[k][1] * a + p->rgb[k][2] * b;
    }
}

int64_t tgi_film_upright(const tgi_film_pixels *p, int64_t y, int64_t *step)
{
    const int64_t w = p->wide, last_x = p->width - 1;
    int64_t first, next; /* of x = 0 and the way to x = 1, before it is mirrored */
    switch (p->rotation) {
    case 90: /* row y is a column, the first the rightmost */
        first = p->height - 1 - y;
        next = w;
        break;
    case 180:
        first = (p->height - 1 - y) * w + last_x;
        next = -1;
        break;
    case 270:
        first = last_x * w + y;
        next = -w;
        break;
    default:
        first = y * w;
        next = 1;
    }
    *step = p->flipped ? -next : next;
    return p->flipped ? first + last_x * next : first;
}

static inline float clipped(float v, float most)
{
    return v > 0 ? (v < most ? v : most) : 0; /* NaN cannot be */
}

void tgi_film_row(const tgi_film_pixels *p, const tgi_av_frame *f, int64_t y, void *image,
                  void *room)
{
    float *v[4], *rows;
    for (int c = 0; c < 4; c++)
        v[c] = (float *)room + c * p->width;
    rows = (float *)room + 4 * p->width;
    for (int c = 0; c < p->samples; c++)
        if (tgi_film_is_chroma(p, c))
            load_chroma(p, f, c, y, v[c], rows);
        else
            load(p, f, c, y, p->width, v[c]);
    if (tgi_film_has_chroma(p))
        to_rgb(p, v);
    int64_t step;
    const int64_t first = tgi_film_upright(p, y, &step), s = p->samples;
    for (int c = 0; c < p->samples; c++) {
        int64_t at = first * s + c;
        for (int64_t x = 0; x < p->width; x++, at += step * s)
            if (p->dtype == TG_DTYPE_U8)
                ((uint8_t *)image)[at] = (uint8_t)lrintf(clipped(v[c][x] * 255, 255));
            else
                ((uint16_t *)image)[at] = (uint16_t)lrintf(clipped(v[c][x] * 65535, 65535));
    }
}

/* film_pixels.c - see film_pixels.h. */
#include "io/film_pixels.h"

#include "engine/base/arith.h"
#include "io/bytes.h"

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
    p->white = depth > 8 ? 65535 : 255;
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
                 float *restrict to)
{
    const tgi_av_component *k = &p->form.component[c];
    const uint8_t *restrict at = f->plane[k->plane] + y * f->pitch[k->plane] + k->offset;
    const float black = p->black[c], scale = p->to_one[c];
    const unsigned most = (1u << k->depth) - 1;
    switch (tgi_film_lies(&p->form, c)) {
    case TGI_FILM_BYTES:
        for (int64_t x = 0; x < n; x++)
            to[x] = tgi_yuv_number(at[x] & most, black, scale);
        return;
    case TGI_FILM_WORDS:
        for (int64_t x = 0; x < n; x++)
            to[x] =
                tgi_yuv_number((at[2 * x] | (unsigned)at[2 * x + 1] << 8) & most, black, scale);
        return;
    default:
        for (int64_t x = 0; x < n; x++, at += k->step)
            to[x] = tgi_yuv_number(tgi_film_number(&p->form, c, at), black, scale);
    }
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

/* Pixels that lie alike among smaller samples: pixel k of those that sample i stands for lies between samples
 * i - back and the next one. */
typedef struct phase {
    int64_t back; /* 0 or 1 */
    float part;
} phase;

static phase phase_of(const tgi_film_pixels *p, int k)
{
    const int many = 1 << p->form.log2_chroma_w;
    const tgi_film_between b = place(many + k, p->form.log2_chroma_w, p->place_x, 4);
    return (phase){1 - b.a, b.part};
}

/* Those of phase k, samples [lo, hi) of them. */
static void widen_phase(const float *restrict from, phase at, int k, int many, int64_t lo,
                        int64_t hi, float *restrict to)
{
    const float *restrict a = from - at.back;
    for (int64_t i = lo; i < hi; i++)
        to[i * many + k] = tgi_yuv_between(a[i], a[i + 1], at.part);
}

/* The same of two phases, side by side. */
static void widen_pairs(const float *restrict from, phase even, phase odd, int64_t lo,
                        int64_t hi, float *restrict to)
{
    const float *restrict a = from - even.back, *restrict b = from - odd.back;
    for (int64_t i = lo; i < hi; i++) {
        to[2 * i] = tgi_yuv_between(a[i], a[i + 1], even.part);
        to[2 * i + 1] = tgi_yuv_between(b[i], b[i + 1], odd.part);
    }
}

/* n samples of a row become one for each pixel. At the ends the nearest sample stands alone. */
static void widen(const tgi_film_pixels *p, const float *restrict from, int64_t n,
                  float *restrict to)
{
    const int log2 = p->form.log2_chroma_w, many = 1 << log2;
    const int64_t pairs = many == 2 ? n - 1 : 1; /* those below it are done at once */
    if (pairs > 1)
        widen_pairs(from, phase_of(p, 0), phase_of(p, 1), 1, pairs, to);
    for (int k = 0; k < many; k++) {
        const phase at = phase_of(p, k);
        const int64_t count = (p->width - k + many - 1) >> log2;
        const int64_t last = tgi_min(count, n - 1 + at.back);
        widen_phase(from, at, k, many, at.back, tgi_min(last, 1), to);
        widen_phase(from, at, k, many, tgi_max(1, pairs), last, to);
        if (at.back && count > 0)
            to[k] = from[0];
        else if (count == n)
            to[(n - 1) * many + k] = from[n - 1];
    }
}

/* A row of chroma, at the places of luma row y: `rows` is room for two rows of it. */
static void load_chroma(const tgi_film_pixels *p, const tgi_av_frame *f, int c, int64_t y,
                        float *to, float *rows)
{
    const int64_t n = tgi_film_chroma_width(p);
    const tgi_film_between v =
        place(y, p->form.log2_chroma_h, p->place_y, tgi_film_chroma_height(p));
    const int one = v.b == v.a || !(v.part > 0);
    float *restrict above = p->form.log2_chroma_w ? rows : to, *restrict below = rows + n;
    load(p, f, c, v.a, n, above);
    if (!one)
        load(p, f, c, v.b, n, below);
    for (int64_t i = 0; !one && i < n; i++)
        above[i] = tgi_yuv_between(above[i], below[i], v.part);
    if (p->form.log2_chroma_w)
        widen(p, above, n, to);
}

size_t tgi_film_row_room(const tgi_film_pixels *p)
{
    return (size_t)(4 * p->width + 2 * tgi_film_chroma_width(p)) * sizeof(float);
}

/* Y, U, V become R, G, B in place. */
static void to_rgb(const tgi_film_pixels *p, float *const v[4])
{
    float *restrict r = v[0], *restrict g = v[1], *restrict b = v[2];
    float m[3][3];
    memcpy(m, p->rgb, sizeof m);
    for (int64_t x = 0; x < p->width; x++) {
        const float y = r[x], u = g[x], w = b[x];
        r[x] = tgi_yuv_mixed(m[0], y, u, w);
        g[x] = tgi_yuv_mixed(m[1], y, u, w);
        b[x] = tgi_yuv_mixed(m[2], y, u, w);
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

/* Pixels of three bytes side by side: words of which one overlaps the next. */
#define WORDS 128
static void store_rgb(float *const v[4], int64_t n, float white, uint8_t *restrict to)
{
    uint32_t words[WORDS];
    for (int64_t x = 0; x < n; x += WORDS) {
        const float *restrict r = v[0] + x, *restrict g = v[1] + x, *restrict b = v[2] + x;
        const int64_t m = tgi_min(WORDS, n - x);
        for (int64_t i = 0; i < m; i++)
            words[i] = tgi_yuv_step(r[i], white) | tgi_yuv_step(g[i], white) << 8 |
                       tgi_yuv_step(b[i], white) << 16;
        for (int64_t i = 0; i + 1 < m; i++, to += 3)
            tgi_save32(to, words[i], false);
        for (int k = 0; k < 3; k++)
            *to++ = (uint8_t)(words[m - 1] >> 8 * k);
    }
}

/* Numbers of component c, `step` elements apart. (A white that the compiler knew would keep loops from becoming vectors.) */
static void store(const tgi_film_pixels *p, const float *restrict v, int64_t step, void *image,
                  int64_t at)
{
    const float white = p->white;
    uint8_t *restrict bytes = (uint8_t *)image + at;
    uint16_t *restrict words = (uint16_t *)image + at;
    if (p->dtype == TG_DTYPE_U8 && step == 1)
        for (int64_t x = 0; x < p->width; x++)
            bytes[x] = (uint8_t)tgi_yuv_step(v[x], white);
    else if (p->dtype == TG_DTYPE_U8)
        for (int64_t x = 0; x < p->width; x++)
            bytes[x * step] = (uint8_t)tgi_yuv_step(v[x], white);
    else
        for (int64_t x = 0; x < p->width; x++)
            words[x * step] = (uint16_t)tgi_yuv_step(v[x], white);
}

/* Row y with pixel x = 0 at element `first` of the image, in pixels, and x + 1 `step` behind it. */
static void make_row(const tgi_film_pixels *p, const tgi_av_frame *f, int64_t y, int64_t first,
                     int64_t step, void *image, void *room)
{
    float *v[4], *rows;
    const int64_t s = p->samples;
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
    if (p->dtype == TG_DTYPE_U8 && s == 3 && step == 1) {
        store_rgb(v, p->width, p->white, (uint8_t *)image + first * s);
        return;
    }
    for (int c = 0; c < p->samples; c++)
        store(p, v[c], step * s, image, first * s + c);
}

void tgi_film_row(const tgi_film_pixels *p, const tgi_av_frame *f, int64_t y, void *image,
                  void *room)
{
    int64_t step;
    const int64_t first = tgi_film_upright(p, y, &step);
    make_row(p, f, y, first, step, image, room);
}

void tgi_film_line(const tgi_film_pixels *p, const tgi_av_frame *f, int64_t y, void *row,
                   void *room)
{
    make_row(p, f, y, 0, 1, row, room);
}

/* film_bypass.c - see film_bypass.h. */
#include "io/film_bypass.h"

#include "engine/base/arith.h"

#include <math.h>
#include <string.h>

int tgi_film_bypass_is_there(const tgi_av_form *f)
{
    return !f->is_rgb && f->n_components > 1;
}

tg_status tgi_film_bypass_luma(const tgi_av_info *i, tgi_film_pixels *out, tgi_err *err)
{
    tgi_av_info luma = *i;
    if (i->form.n_components > 2 && !luma.form.range[0]) /* what is assumed of colours */
        memcpy(luma.form.range, "tv", 3);
    luma.form.n_components = 1;
    luma.form.has_alpha = 0;
    return tgi_film_pixels_make(&luma, out, err);
}

static int is_chroma(const tgi_film_pixels *p, int c)
{
    return tgi_film_has_chroma(p) && (c == 1 || c == 2);
}

static int64_t columns(const tgi_film_pixels *p, int c)
{
    return is_chroma(p, c) ? tgi_film_chroma_width(p) : p->width;
}

static int64_t rows(const tgi_film_pixels *p, int c)
{
    return is_chroma(p, c) ? tgi_film_chroma_height(p) : p->height;
}

size_t tgi_film_bypass_bytes(const tgi_film_pixels *p)
{
    size_t n = 0;
    for (int c = 1; c < p->form.n_components; c++)
        n += (size_t)(columns(p, c) * rows(p, c)) * 2;
    return n;
}

/* A component's number in its element. */
static unsigned number(const tgi_av_form *f, const tgi_av_component *k, const uint8_t *at)
{
    unsigned v = at[0];
    if (f->wide)
        v = f->big_endian ? (unsigned)at[0] << 8 | at[1] : (unsigned)at[1] << 8 | at[0];
    return v >> k->shift & ((1u << k->depth) - 1);
}

void tgi_film_bypass_take(const tgi_film_pixels *p, const tgi_av_frame *f, void *kept)
{
    uint16_t *to = kept;
    for (int c = 1; c < p->form.n_components; c++) {
        const tgi_av_component *k = &p->form.component[c];
        for (int64_t y = 0; y < rows(p, c); y++) {
            const uint8_t *at = f->plane[k->plane] + y * f->pitch[k->plane] + k->offset;
            for (int64_t x = 0; x < columns(p, c); x++, at += k->step)
                *to++ = (uint16_t)number(&p->form, k, at);
        }
    }
}

/* ---- Into another frame ------------------------------------------------------------------ */

static void store(const tgi_film_pixels *p, int c, const tgi_av_blank *to, int64_t y, int64_t x,
                  unsigned v)
{
    const tgi_av_component *k = &p->form.component[c];
    uint8_t *at = to->plane[k->plane] + y * to->pitch[k->plane] + k->offset + x * k->step;
    v <<= k->shift;
    if (!p->form.wide) {
        at[0] = (uint8_t)v;
        return;
    }
    at[p->form.big_endian] = (uint8_t)(v & 255);
    at[!p->form.big_endian] = (uint8_t)(v >> 8);
}

/* Along one axis: which samples of `from` lie around sample `at` of `to`, and how near the second is. */
typedef struct between {
    int64_t a, b;
    float share; /* of b */
} between;

static between around(const tgi_film_bypass *how, int c, int axis, int64_t at, int64_t n)
{
    const int chroma = is_chroma(&how->from, c);
    const int by_from = !chroma ? 0
                        : axis  ? how->from.form.log2_chroma_w
                                : how->from.form.log2_chroma_h;
    const int by_to = !chroma ? 0
                      : axis  ? how->to.form.log2_chroma_w
                              : how->to.form.log2_chroma_h;
    const double place_from = !chroma ? 0 : axis ? how->from.place_x : how->from.place_y;
    const double place_to = !chroma ? 0 : axis ? how->to.place_x : how->to.place_y;
    const double luma = (double)(at << by_to) + place_to;
    const double there = how->origin[axis] + (luma + 0.5) * how->scale[axis] - 0.5;
    const double k = (there - place_from) / (double)(1 << by_from);
    const double low = floor(k);
    between r = {(int64_t)low, (int64_t)low + 1, (float)(k - low)};
    r.a = tgi_clamp(r.a, 0, n - 1);
    r.b = tgi_clamp(r.b, 0, n - 1);
    return r;
}

static void resize(const tgi_film_bypass *how, int c, const uint16_t *from,
                   const tgi_av_blank *to)
{
    const int64_t w = columns(&how->from, c), h = rows(&how->from, c);
    const float black = how->from.black[c], scale = how->from.to_one[c] / how->to.to_one[c],
                most = (float)((1u << how->to.form.component[c].depth) - 1);
    for (int64_t y = 0; y < rows(&how->to, c); y++) {
        const between v = around(how, c, 0, y, h);
        for (int64_t x = 0; x < columns(&how->to, c); x++) {
            const between u = around(how, c, 1, x, w);
            const uint16_t *r = from + v.a * w, *s = from + v.b * w;
            const float top = (1 - u.share) * r[u.a] + u.share * r[u.b],
                        low = (1 - u.share) * s[u.a] + u.share * s[u.b];
            const float k =
                how->to.black[c] + ((1 - v.share) * top + v.share * low - black) * scale;
            store(&how->to, c, to, y, x, (unsigned)lrintf(k > 0 ? (k < most ? k : most) : 0));
        }
    }
}

/* Nothing is to be done with the numbers. */
static int is_same(const tgi_film_bypass *how, int c)
{
    const tgi_film_pixels *a = &how->from, *b = &how->to;
    return columns(a, c) == columns(b, c) && rows(a, c) == rows(b, c) && a->width == b->width &&
           a->height == b->height && a->black[c] == b->black[c] &&
           a->to_one[c] == b->to_one[c] && how->origin[0] == 0 && how->origin[1] == 0;
}

void tgi_film_bypass_put(const tgi_film_bypass *how, const void *kept, const tgi_av_blank *to)
{
    const uint16_t *from = kept;
    for (int c = 1; c < how->from.form.n_components; c++) {
        const int64_t w = columns(&how->from, c), h = rows(&how->from, c);
        if (c >= how->to.form.n_components)
            return;
        if (!is_same(how, c))
            resize(how, c, from, to);
        else
            for (int64_t y = 0; y < h; y++)
                for (int64_t x = 0; x < w; x++)
                    store(&how->to, c, to, y, x, from[y * w + x]);
        from += w * h;
    }
}

/* film_bypass.c - see film_bypass.h. */
#include "io/film_bypass.h"

#include <string.h>

/* The first component that passes by; the others follow. */
static int first_of(const tgi_av_form *f, tgi_film_passing what)
{
    return what == TGI_FILM_PASSES_OUTSIDE                 ? 0
           : what == TGI_FILM_PASSES_BUT_LUMA              ? 1
           : what == TGI_FILM_PASSES_ALPHA && f->has_alpha ? f->n_components - 1
                                                           : f->n_components;
}

int tgi_film_bypass_is_there(const tgi_av_form *f, tgi_film_passing what)
{
    return (what != TGI_FILM_PASSES_BUT_LUMA || !f->is_rgb) &&
           first_of(f, what) < f->n_components;
}

tg_status tgi_film_bypass_seen(const tgi_av_info *i, tgi_film_passing what,
                               tgi_film_pixels *out, tgi_err *err)
{
    tgi_av_info seen = *i;
    if (what == TGI_FILM_PASSES_OUTSIDE)
        return tgi_film_pixels_make(i, out, err);
    seen.form.n_components = first_of(&i->form, what);
    seen.form.has_alpha = 0;
    if (seen.form.n_components == 1 && i->form.n_components > 2 &&
        !seen.form.range[0]) /* what is assumed of colours */
        memcpy(seen.form.range, "tv", 3);
    return tgi_film_pixels_make(&seen, out, err);
}

static size_t samples_of(const tgi_film_pixels *p, int c)
{
    return (size_t)(tgi_film_columns(p, c) * tgi_film_rows(p, c));
}

size_t tgi_film_bypass_bytes(const tgi_film_pixels *p, tgi_film_passing what)
{
    size_t n = 0;
    for (int c = first_of(&p->form, what); c < p->form.n_components; c++)
        n += samples_of(p, c) * sizeof(uint16_t);
    return n;
}

/* n numbers of component c in a row. */
static void take_row(const tgi_av_form *f, int c, const uint8_t *restrict at, int64_t n,
                     uint16_t *restrict to)
{
    const tgi_av_component *k = &f->component[c];
    const unsigned most = (1u << k->depth) - 1;
    switch (tgi_film_lies(f, c)) {
    case TGI_FILM_BYTES:
        for (int64_t x = 0; x < n; x++)
            to[x] = (uint16_t)(at[x] & most);
        return;
    case TGI_FILM_WORDS:
        for (int64_t x = 0; x < n; x++)
            to[x] = (uint16_t)((at[2 * x] | (unsigned)at[2 * x + 1] << 8) & most);
        return;
    default:
        for (int64_t x = 0; x < n; x++, at += k->step)
            to[x] = (uint16_t)tgi_film_number(f, c, at);
    }
}

static void put_row(const tgi_av_form *f, int c, const uint16_t *restrict from, int64_t n,
                    uint8_t *restrict at)
{
    switch (tgi_film_lies(f, c)) {
    case TGI_FILM_BYTES:
        for (int64_t x = 0; x < n; x++)
            at[x] = (uint8_t)from[x];
        return;
    case TGI_FILM_WORDS:
        for (int64_t x = 0; x < n; x++) {
            at[2 * x] = (uint8_t)from[x];
            at[2 * x + 1] = (uint8_t)(from[x] >> 8);
        }
        return;
    default:
        for (int64_t x = 0; x < n; x++, at += f->component[c].step)
            tgi_film_set_number(f, c, at, from[x]);
    }
}

void tgi_film_bypass_take(const tgi_film_pixels *p, tgi_film_passing what,
                          const tgi_av_frame *f, void *kept)
{
    uint16_t *to = kept;
    for (int c = first_of(&p->form, what); c < p->form.n_components; c++) {
        const tgi_av_component *k = &p->form.component[c];
        const int64_t n = tgi_film_columns(p, c);
        for (int64_t y = 0; y < tgi_film_rows(p, c); y++, to += n)
            take_row(&p->form, c, f->plane[k->plane] + y * f->pitch[k->plane] + k->offset, n,
                     to);
    }
}

void tgi_film_bypass_nothing(const tgi_film_pixels *p, tgi_film_passing what, void *kept)
{
    uint16_t *to = kept;
    for (int c = first_of(&p->form, what); c < p->form.n_components; c++)
        for (size_t i = samples_of(p, c); i > 0; i--)
            *to++ = (uint16_t)p->black[c];
}

/* ---- Into another frame ------------------------------------------------------------------ */

/* Component c of the film that was read, in the one that is written; -1: it has none such. */
static int role_of(const tgi_film_bypass *how, int c)
{
    const tgi_av_form *to = &how->to.form;
    if (tgi_film_is_chroma(&how->from, c))
        return tgi_film_has_chroma(&how->to) ? c : -1;
    return to->has_alpha ? to->n_components - 1 : -1;
}

/* Where along an axis (0 y, 1 x) a component has its samples, in luma pixels: of sample 0, and from one to the next. */
typedef struct places {
    double first, step;
} places;

static places places_of(const tgi_film_pixels *p, int c, int axis)
{
    if (!tgi_film_is_chroma(p, c))
        return (places){0, 1};
    const int log2 = axis ? p->form.log2_chroma_w : p->form.log2_chroma_h;
    return (places){axis ? p->place_x : p->place_y, 1 << log2};
}

static int are_equal(places a, places b)
{
    return a.first == b.first && a.step == b.step;
}

/* Around sample `at` of component d of the frame that is written. */
static tgi_film_between around(const tgi_film_bypass *how, int c, int d, int axis, int64_t at,
                               int64_t n)
{
    const places from = places_of(&how->from, c, axis), to = places_of(&how->to, d, axis);
    const double luma = (double)at * to.step + to.first;
    const double there = how->origin[axis] + (luma + 0.5) * how->scale[axis] - 0.5;
    return tgi_film_around((there - from.first) / from.step, n);
}

static uint8_t *row_of(const tgi_film_pixels *p, int c, const tgi_av_blank *to, int64_t y)
{
    const tgi_av_component *k = &p->form.component[c];
    return to->plane[k->plane] + y * to->pitch[k->plane] + k->offset;
}

static void resize(const tgi_film_bypass *how, int c, int d, const uint16_t *from,
                   const tgi_av_blank *to)
{
    const tgi_film_pixels *p = &how->to;
    const int64_t w = tgi_film_columns(&how->from, c), h = tgi_film_rows(&how->from, c);
    const float scale = how->from.to_one[c] / p->to_one[d];
    for (int64_t y = 0; y < tgi_film_rows(p, d); y++) {
        const tgi_film_between v = around(how, c, d, 0, y, h);
        const uint16_t *r = from + v.a * w, *s = from + v.b * w;
        uint8_t *at = row_of(p, d, to, y);
        for (int64_t x = 0; x < tgi_film_columns(p, d); x++, at += p->form.component[d].step) {
            const tgi_film_between u = around(how, c, d, 1, x, w);
            const float top = (1 - u.part) * r[u.a] + u.part * r[u.b],
                        low = (1 - u.part) * s[u.a] + u.part * s[u.b];
            const float k = (1 - v.part) * top + v.part * low - how->from.black[c];
            tgi_film_set_number(&p->form, d, at,
                                tgi_film_nearest(&p->form, d, p->black[d] + k * scale));
        }
    }
}

static void copy(const tgi_film_bypass *how, int d, const uint16_t *from,
                 const tgi_av_blank *to)
{
    const tgi_film_pixels *p = &how->to;
    const int64_t n = tgi_film_columns(p, d);
    for (int64_t y = 0; y < tgi_film_rows(p, d); y++, from += n)
        put_row(&p->form, d, from, n, row_of(p, d, to, y));
}

/* The numbers are the same, at the same places. */
static int is_same(const tgi_film_bypass *how, int c, int d)
{
    const tgi_film_pixels *a = &how->from, *b = &how->to;
    int same = a->width == b->width && a->height == b->height && a->black[c] == b->black[d] &&
               a->to_one[c] == b->to_one[d];
    for (int axis = 0; axis < 2; axis++)
        same &= how->scale[axis] == 1 && how->origin[axis] == 0 &&
                are_equal(places_of(a, c, axis), places_of(b, d, axis));
    return same;
}

/* The component's numbers are those of the frame that is written, at the places where it has its samples; the film's frame may
 * lie within a larger one. */
static int lies_within(const tgi_film_bypass *how, int c)
{
    const tgi_film_pixels *a = &how->from, *b = &how->to;
    const int64_t from[2] = {a->height, a->width}, to[2] = {b->height, b->width};
    int lies = a->black[c] == b->black[c] && a->to_one[c] == b->to_one[c];
    for (int axis = 0; axis < 2; axis++) {
        const places there = places_of(a, c, axis);
        const double at = -how->origin[axis], samples = at / there.step;
        lies &= how->scale[axis] == 1 && are_equal(there, places_of(b, c, axis)) && at >= 0 &&
                samples == (double)(int64_t)samples &&
                at + (double)from[axis] <= (double)to[axis];
    }
    return lies;
}

/* ---- Beside what is hidden ---------------------------------------------------------------- */

/* 1: some pixel is hidden that row y of component c stands for. */
static int row_hides(const tgi_film_bypass *how, int c, int64_t y)
{
    const tgi_film_pixels *p = &how->to;
    const int lh = tgi_film_is_chroma(p, c) ? p->form.log2_chroma_h : 0;
    const int64_t lo = y << lh, hi = (y + 1) << lh < p->height ? (y + 1) << lh : p->height;
    return memchr(how->hidden + lo * p->width, 1, (size_t)((hi - lo) * p->width)) != NULL;
}

/* 1: a pixel that sample x of row y of component c stands for is hidden. */
static int is_hidden(const tgi_film_bypass *how, int c, int64_t y, int64_t x)
{
    const tgi_film_pixels *p = &how->to;
    const int chroma = tgi_film_is_chroma(p, c);
    const int lw = chroma ? p->form.log2_chroma_w : 0, lh = chroma ? p->form.log2_chroma_h : 0;
    for (int64_t i = y << lh; i < (y + 1) << lh && i < p->height; i++)
        for (int64_t j = x << lw; j < (x + 1) << lw && j < p->width; j++)
            if (how->hidden[i * p->width + j])
                return 1;
    return 0;
}

static void copy_outside(const tgi_film_bypass *how, int c, const uint16_t *from,
                         const tgi_av_blank *to)
{
    const tgi_film_pixels *p = &how->to;
    const int64_t n = tgi_film_columns(&how->from, c), step = p->form.component[c].step,
                  top = (int64_t)(-how->origin[0] / places_of(p, c, 0).step),
                  left = (int64_t)(-how->origin[1] / places_of(p, c, 1).step);
    for (int64_t y = 0; y < tgi_film_rows(&how->from, c); y++, from += n) {
        uint8_t *at = row_of(p, c, to, top + y) + left * step;
        int64_t begin = 0; /* of a run that is not hidden */
        const int some = row_hides(how, c, top + y);
        for (int64_t x = some ? 0 : n; x <= n; x++) {
            if (x < n && !is_hidden(how, c, top + y, left + x))
                continue;
            put_row(&p->form, c, from + begin, x - begin, at + begin * step);
            begin = x + 1;
        }
    }
}

/* The component of the frame that is written which gets the numbers of c; -1: none does. */
static int kept_as(const tgi_film_bypass *how, int c)
{
    const tgi_av_form *a = &how->from.form, *b = &how->to.form;
    const int alpha = a->has_alpha && c == a->n_components - 1;
    const int alike = a->n_components - a->has_alpha == b->n_components - b->has_alpha &&
                      a->is_rgb == b->is_rgb && (!alpha || b->has_alpha);
    return alike && lies_within(how, c) ? c : -1;
}

int tgi_film_bypass_keeps(const tgi_film_bypass *how)
{
    int keeps = 1;
    for (int c = 0; c < how->from.form.n_components; c++)
        keeps &= kept_as(how, c) >= 0;
    return keeps;
}

static void put_outside(const tgi_film_bypass *how, const uint16_t *from,
                        const tgi_av_blank *to)
{
    for (int c = 0; c < how->from.form.n_components; c++) {
        const int d = kept_as(how, c);
        if (d >= 0)
            copy_outside(how, d, from, to);
        from += samples_of(&how->from, c);
    }
}

void tgi_film_bypass_put(const tgi_film_bypass *how, const void *kept, const tgi_av_blank *to)
{
    const uint16_t *from = kept;
    if (how->what == TGI_FILM_PASSES_OUTSIDE) {
        put_outside(how, kept, to);
        return;
    }
    for (int c = first_of(&how->from.form, how->what); c < how->from.form.n_components; c++) {
        const int d = role_of(how, c);
        if (d >= 0 && is_same(how, c, d))
            copy(how, d, from, to);
        else if (d >= 0)
            resize(how, c, d, from, to);
        from += samples_of(&how->from, c);
    }
}

/* film_planes.c - pixels of an image become a frame as a film stores it: the way back of film_pixels.c,
 * with the same numbers.
 *
 * A sample of chroma that stands for n x m pixels lies in the middle of them, or on the first one of
 * a row or column (H.264: on the left). In the middle all count the same; on one, pixel d beside it counts
 * n - d of n * n. What lies beyond the border is the pixel at the border. */
#include "engine/base/arith.h"
#include "io/bytes.h"
#include "io/film_pixels.h"

#include <string.h>

typedef struct making {
    const tgi_film_pixels *p;
    const void *image;
    int samples; /* of its pixels */
    const tgi_av_blank *to;
    float *v[4];      /* a row: R, G, B or grey, alpha */
    float *chroma[2]; /* a row of it, being summed */
} making;

/* Pixels of three bytes side by side, n of them: as words, of which one overlaps the next. */
#define WORDS 128
static void load_rgb(const uint8_t *restrict from, int64_t n, float scale, float *const v[4])
{
    uint32_t words[WORDS];
    for (int64_t x = 0; x < n; x += WORDS) {
        float *restrict r = v[0] + x, *restrict g = v[1] + x, *restrict b = v[2] + x;
        const int64_t m = tgi_min(WORDS, n - x);
        for (int64_t i = 0; i + 1 < m; i++, from += 3)
            words[i] = tgi_load32(from, false);
        words[m - 1] = from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16;
        from += 3;
        for (int64_t i = 0; i < m; i++) {
            const uint32_t w = words[i];
            r[i] = (float)(int)(w & 255) * scale;
            g[i] = (float)(int)(w >> 8 & 255) * scale;
            b[i] = (float)(int)(w >> 16 & 255) * scale;
        }
    }
}

/* Row y of the frame out of the picture, as numbers from 0 to 1. */
static void load_row(const making *m, int64_t y)
{
    int64_t step;
    const tgi_film_pixels *p = m->p;
    const int64_t s = m->samples, first = tgi_film_upright(p, y, &step);
    const float scale = p->dtype == TG_DTYPE_U8 ? 1.0f / 255 : 1.0f / 65535;
    if (p->dtype == TG_DTYPE_U8 && s == 3 && step == 1) {
        load_rgb((const uint8_t *)m->image + first * s, p->width, scale, m->v);
        return;
    }
    for (int c = 0; c < m->samples; c++) {
        const int64_t at = first * s + c, next = step * s;
        const uint8_t *restrict bytes = (const uint8_t *)m->image + at;
        const uint16_t *restrict words = (const uint16_t *)m->image + at;
        float *restrict to = m->v[c];
        if (p->dtype == TG_DTYPE_U8)
            for (int64_t x = 0; x < p->width; x++)
                to[x] = (float)bytes[x * next] * scale;
        else
            for (int64_t x = 0; x < p->width; x++)
                to[x] = (float)words[x * next] * scale;
    }
}

/* Colours of the row: three samples and more have them. */
static int has_colours(const making *m)
{
    return m->samples >= 3;
}

/* n numbers of component c, black 0 and white 1 (chroma: -1/2 to 1/2), into row y of its plane. */
static void store(const making *m, int c, int64_t y, int64_t n, const float *restrict from)
{
    const tgi_av_form *f = &m->p->form;
    const tgi_av_component *k = &f->component[c];
    uint8_t *restrict at = m->to->plane[k->plane] + y * m->to->pitch[k->plane] + k->offset;
    const float black = m->p->black[c], scale = 1 / m->p->to_one[c];
    const float most = (float)((1u << k->depth) - 1);
    switch (tgi_film_lies(f, c)) {
    case TGI_FILM_BYTES:
        for (int64_t x = 0; x < n; x++)
            at[x] = (uint8_t)tgi_yuv_round(black + from[x] * scale, most);
        return;
    case TGI_FILM_WORDS:
        for (int64_t x = 0; x < n; x++) {
            const uint32_t v = tgi_yuv_round(black + from[x] * scale, most);
            at[2 * x] = (uint8_t)v;
            at[2 * x + 1] = (uint8_t)(v >> 8);
        }
        return;
    default:
        for (int64_t x = 0; x < n; x++, at += k->step)
            tgi_film_set_number(f, c, at, tgi_film_nearest(f, c, black + from[x] * scale));
    }
}

static void fill(const making *m, int c, int64_t y, int64_t n, float value, float *room)
{
    for (int64_t x = 0; x < n; x++)
        room[x] = value;
    store(m, c, y, n, room);
}

static void store_alpha(const making *m, int64_t y)
{
    const tgi_film_pixels *p = m->p;
    const int alpha = p->form.n_components - 1;
    if (!p->form.has_alpha)
        return;
    if (m->samples == 2 || m->samples == 4)
        store(m, alpha, y, p->width, m->v[m->samples - 1]);
    else
        fill(m, alpha, y, p->width, 1, m->v[3]);
}

/* Luma of the row that is loaded, in place of green; of grey it is there. */
static void make_luma(const making *m)
{
    const float r = m->p->red, b = m->p->blue, g = 1 - r - b;
    const float *restrict red = m->v[0], *restrict blue = m->v[2];
    float *restrict v = m->v[1];
    for (int64_t x = 0; has_colours(m) && x < m->p->width; x++)
        v[x] = r * red[x] + g * v[x] + b * blue[x];
}

static void store_luma(const making *m, int64_t y)
{
    store(m, 0, y, m->p->width, m->v[has_colours(m) ? 1 : 0]);
}

/* Blue and red less luma, which was made, as U and V, in their places. */
static void differences(const making *m)
{
    const tgi_film_pixels *p = m->p;
    const float u = 1 / (2 * (1 - p->blue)), w = 1 / (2 * (1 - p->red));
    const float *restrict y = m->v[1];
    float *restrict red = m->v[0], *restrict blue = m->v[2];
    for (int64_t x = 0; x < p->width; x++) {
        red[x] = (red[x] - y[x]) * w;
        blue[x] = (blue[x] - y[x]) * u;
    }
}

/* Pixels that sample i stands for: from -> on, `n` of them, each of a weight. */
typedef struct share {
    int64_t from;
    int n;
    float of[7];
} share;

/* log2: of the pixels for a sample; `place`: where sample 0 lies, in pixels. */
static share share_of(int64_t i, int log2, float place)
{
    const int n = 1 << log2, on = place == 0 || place == (float)(n - 1);
    share s = {.from = i * n, .n = n};
    if (!on || n == 1) {
        for (int k = 0; k < n; k++)
            s.of[k] = 1.0f / (float)n;
        return s;
    }
    s.n = 2 * n - 1;
    s.from = i * n + (int64_t)place - (n - 1);
    for (int k = 0; k < s.n; k++)
        s.of[k] = (float)(n - (k < n ? n - 1 - k : k - n + 1)) / (float)(n * n);
    return s;
}

/* Samples [lo, hi) of a row, each of pixels that are all there: one, two or three of them for one pixel or two. */
static void add_inside(const share *s, int many, float weight, const float *restrict from,
                       int64_t lo, int64_t hi, float *restrict to)
{
    const float a = s->of[0], b = s->of[1], c = s->of[2];
    if (s->n == 1)
        for (int64_t i = lo; i < hi; i++)
            to[i] += weight * (0 + a * from[i]);
    else if (s->n == 2 && many == 2)
        for (int64_t i = lo; i < hi; i++)
            to[i] += weight * (0 + a * from[2 * i] + b * from[2 * i + 1]);
    else if (s->n == 3 && many == 2)
        for (int64_t i = lo; i < hi; i++) {
            const float *f = from + 2 * i + s->from;
            to[i] += weight * (0 + a * f[0] + b * f[1] + c * f[2]);
        }
}

/* Samples [lo, hi), some of whose pixels may lie beyond the border. */
static void add_border(const share *s, int many, float weight, const float *from, int64_t last,
                       int64_t lo, int64_t hi, float *to)
{
    for (int64_t i = lo; i < hi; i++) {
        float sum = 0;
        for (int k = 0; k < s->n; k++)
            sum += s->of[k] * from[tgi_clamp(i * many + s->from + k, 0, last)];
        to[i] += weight * sum;
    }
}

static void add_across(const making *m, float weight, const float *from, float *to)
{
    const tgi_film_pixels *p = m->p;
    const int64_t n = tgi_film_chroma_width(p), last = p->width - 1;
    const int many = 1 << p->form.log2_chroma_w;
    const share s = share_of(0, p->form.log2_chroma_w, p->place_x);
    const int64_t lo = s.from < 0 ? 1 : 0, room = p->width - s.from - s.n;
    const int64_t hi = many <= 2 && room >= 0 ? tgi_max(lo, room / many + 1) : lo;
    add_border(&s, many, weight, from, last, 0, lo, to);
    add_inside(&s, many, weight, from, lo, hi, to);
    add_border(&s, many, weight, from, last, hi, n, to);
}

static void begin_chroma(const making *m)
{
    for (int c = 0; c < 2; c++)
        memset(m->chroma[c], 0, (size_t)tgi_film_chroma_width(m->p) * sizeof(float));
}

/* Of a row of differences. */
static void add_chroma(const making *m, float weight)
{
    add_across(m, weight, m->v[2], m->chroma[0]);
    add_across(m, weight, m->v[0], m->chroma[1]);
}

static void store_chroma(const making *m, int64_t i)
{
    for (int c = 0; c < 2; c++)
        store(m, 1 + c, i, tgi_film_chroma_width(m->p), m->chroma[c]);
}

/* Row i of both chromas, of luma rows that others need, too. */
static void make_chroma(const making *m, int64_t i)
{
    const tgi_film_pixels *p = m->p;
    const share s = share_of(i, p->form.log2_chroma_h, p->place_y);
    begin_chroma(m);
    for (int k = 0; k < s.n && has_colours(m); k++) {
        load_row(m, tgi_clamp(s.from + k, 0, p->height - 1));
        make_luma(m);
        differences(m);
        add_chroma(m, s.of[k]);
    }
    store_chroma(m, i);
}

/* The row that is loaded and has become luma, y, is a share of one row of chroma alone, which the last of its share
 * ends. Below the frame its last row stands for those that are not there. */
static void add_row(const making *m, int64_t y, const share *s)
{
    const tgi_film_pixels *p = m->p;
    const int log2 = p->form.log2_chroma_h, k = (int)(y & (s->n - 1));
    const int last = y == p->height - 1 ? s->n - 1 : k;
    if (k == 0)
        begin_chroma(m);
    if (has_colours(m))
        differences(m);
    for (int j = k; j <= last && has_colours(m); j++)
        add_chroma(m, s->of[j]);
    if (last == s->n - 1)
        store_chroma(m, y >> log2);
}

/* A row of grey, or of R, G, B as they are. */
static void store_plain(const making *m, int64_t y)
{
    const tgi_film_pixels *p = m->p;
    const int n = p->form.n_components - p->form.has_alpha;
    for (int c = 0; c < n; c++)
        store(m, c, y, p->width, m->v[has_colours(m) ? c : 0]);
}

/* A picture of colours for a film of grey: what luma is of. */
static void store_grey(const making *m, int64_t y)
{
    float *const *v = m->v;
    for (int64_t x = 0; x < m->p->width; x++)
        v[0][x] = 0.2126f * v[0][x] + 0.7152f * v[1][x] + 0.0722f * v[2][x];
    store(m, 0, y, m->p->width, v[0]);
}

void tgi_film_planes(const tgi_film_pixels *p, int samples, const void *image,
                     const tgi_av_blank *to, void *room)
{
    making m = {.p = p, .image = image, .samples = samples, .to = to};
    for (int c = 0; c < 4; c++)
        m.v[c] = (float *)room + c * p->width;
    for (int c = 0; c < 2; c++)
        m.chroma[c] = (float *)room + 4 * p->width + c * tgi_film_chroma_width(p);
    const share s = share_of(0, p->form.log2_chroma_h, p->place_y);
    const int chroma = tgi_film_has_chroma(p), own = s.n == 1 << p->form.log2_chroma_h;
    for (int64_t y = 0; y < p->height; y++) {
        load_row(&m, y);
        store_alpha(&m, y);
        if (!chroma && has_colours(&m) && !p->form.is_rgb)
            store_grey(&m, y);
        else if (!chroma)
            store_plain(&m, y);
        else {
            make_luma(&m);
            store_luma(&m, y);
        }
        if (chroma && own)
            add_row(&m, y, &s);
    }
    for (int64_t i = 0; chroma && !own && i < tgi_film_chroma_height(p); i++)
        make_chroma(&m, i);
}

/* film_planes.c - pixels of an image become a frame as a film stores it: the way back of film_pixels.c,
 * with the same numbers.
 *
 * A sample of chroma that stands for n x m pixels lies in the middle of them, or on the first one of
 * a row or column (H.264: on the left). In the middle all count the same; on one, pixel d beside it counts
 * n - d of n * n. What lies beyond the border is the pixel at the border. */
#include "engine/base/arith.h"
#include "io/film_pixels.h"

#include <math.h>
#include <string.h>

typedef struct making {
    const tgi_film_pixels *p;
    const void *image;
    int samples; /* of its pixels */
    const tgi_av_blank *to;
    float *v[4];      /* a row: R, G, B or grey, alpha */
    float *chroma[2]; /* a row of it, being summed */
} making;

/* Row y of the frame out of the picture, as numbers from 0 to 1. */
static void load_row(const making *m, int64_t y)
{
    int64_t step;
    const tgi_film_pixels *p = m->p;
    const int64_t s = m->samples, first = tgi_film_upright(p, y, &step);
    const float scale = p->dtype == TG_DTYPE_U8 ? 1.0f / 255 : 1.0f / 65535;
    for (int c = 0; c < m->samples; c++) {
        int64_t at = first * s + c;
        float *to = m->v[c];
        if (p->dtype == TG_DTYPE_U8)
            for (int64_t x = 0; x < p->width; x++, at += step * s)
                to[x] = (float)((const uint8_t *)m->image)[at] * scale;
        else
            for (int64_t x = 0; x < p->width; x++, at += step * s)
                to[x] = (float)((const uint16_t *)m->image)[at] * scale;
    }
}

/* Colours of the row: three samples and more have them. */
static int has_colours(const making *m)
{
    return m->samples >= 3;
}

/* n numbers of component c, black 0 and white 1 (chroma: -1/2 to 1/2), into row y of its plane. */
static void store(const making *m, int c, int64_t y, int64_t n, const float *from)
{
    const tgi_av_component *k = &m->p->form.component[c];
    uint8_t *at = m->to->plane[k->plane] + y * m->to->pitch[k->plane] + k->offset;
    const float black = m->p->black[c], scale = 1 / m->p->to_one[c];
    for (int64_t x = 0; x < n; x++, at += k->step)
        tgi_film_set_number(&m->p->form, c, at,
                            tgi_film_nearest(&m->p->form, c, black + from[x] * scale));
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

/* Luma of the row that is loaded, in place of its last colour but one: green is needed no more. */
static void store_luma(const making *m, int64_t y)
{
    const tgi_film_pixels *p = m->p;
    const float r = p->red, b = p->blue, g = 1 - r - b;
    float *const *v = m->v;
    if (has_colours(m))
        for (int64_t x = 0; x < p->width; x++)
            v[1][x] = r * v[0][x] + g * v[1][x] + b * v[2][x];
    store(m, 0, y, p->width, v[has_colours(m) ? 1 : 0]);
}

/* Blue and red less luma, as U and V, in their places; luma in that of green. */
static void differences(const making *m)
{
    const tgi_film_pixels *p = m->p;
    const float r = p->red, b = p->blue, g = 1 - r - b, u = 1 / (2 * (1 - b)),
                w = 1 / (2 * (1 - r));
    float *const *v = m->v;
    for (int64_t x = 0; x < p->width; x++) {
        const float y = r * v[0][x] + g * v[1][x] + b * v[2][x];
        v[0][x] = (v[0][x] - y) * w;
        v[2][x] = (v[2][x] - y) * u;
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

static void add_across(const making *m, float weight, const float *from, float *to)
{
    const tgi_film_pixels *p = m->p;
    const int64_t n = tgi_film_chroma_width(p), last = p->width - 1;
    for (int64_t i = 0; i < n; i++) {
        const share s = share_of(i, p->form.log2_chroma_w, p->place_x);
        float sum = 0;
        for (int k = 0; k < s.n; k++)
            sum += s.of[k] * from[tgi_clamp(s.from + k, 0, last)];
        to[i] += weight * sum;
    }
}

/* Row i of both chromas. */
static void store_chroma(const making *m, int64_t i)
{
    const tgi_film_pixels *p = m->p;
    const int64_t n = tgi_film_chroma_width(p);
    const share s = share_of(i, p->form.log2_chroma_h, p->place_y);
    for (int c = 0; c < 2; c++)
        memset(m->chroma[c], 0, (size_t)n * sizeof(float));
    for (int k = 0; k < s.n && has_colours(m); k++) {
        load_row(m, tgi_clamp(s.from + k, 0, p->height - 1));
        differences(m);
        add_across(m, s.of[k], m->v[2], m->chroma[0]);
        add_across(m, s.of[k], m->v[0], m->chroma[1]);
    }
    for (int c = 0; c < 2; c++)
        store(m, 1 + c, i, n, m->chroma[c]);
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
    const int64_t rows = tgi_film_chroma_height(p);
    for (int64_t y = 0; y < p->height; y++) {
        load_row(&m, y);
        store_alpha(&m, y);
        if (tgi_film_has_chroma(p))
            store_luma(&m, y);
        else if (has_colours(&m) && !p->form.is_rgb)
            store_grey(&m, y);
        else
            store_plain(&m, y);
    }
    for (int64_t i = 0; tgi_film_has_chroma(p) && i < rows; i++)
        store_chroma(&m, i);
}

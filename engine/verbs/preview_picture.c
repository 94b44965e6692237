/* preview_picture.c - see preview_picture.h. */
#include "engine/verbs/preview_picture.h"

#include "engine/base/arith.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GAP 6 /* pixels around and between panels */
#define GAP_GREY 255
#define LOW 0.5 /* percentiles of the range shown */
#define HIGH 99.5

typedef struct span {
    float lo, hi;
} span;

/* ---- Ranges ------------------------------------------------------------------------------ */

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static size_t panel_size(const tgi_panel *p)
{
    return (size_t)(p->h * p->w) * (size_t)p->channels;
}

/* Sort what is a number of n values in `scratch`; the k-th of m by a percentile. */
static size_t sort_numbers(float *v, size_t n)
{
    size_t m = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(v[i]))
            v[m++] = v[i];
    qsort(v, m, sizeof *v, by_value);
    return m;
}

static float percentile(const float *sorted, size_t m, double p)
{
    return m ? sorted[(size_t)((double)(m - 1) * p / 100.0 + 0.5)] : 0.0f;
}

static span range_of(const tgi_panel *p, float *scratch)
{
    memcpy(scratch, p->data, panel_size(p) * sizeof *scratch);
    const size_t m = sort_numbers(scratch, panel_size(p));
    span s = {percentile(scratch, m, LOW), percentile(scratch, m, HIGH)};
    if (!(s.hi > s.lo))
        s.hi = s.lo + 1.0f; /* a flat crop is black */
    return s;
}

/* A result that an observer would not compare with the raw pixels grey for grey: its range lies
 * apart from theirs, or is several times wider. A narrower one is what denoising does. */
static int same_scale(span raw, span result)
{
    const float a = raw.hi - raw.lo, b = result.hi - result.lo;
    return result.lo < raw.hi && result.hi > raw.lo && b < 4.0f * a;
}

/* ---- Pixels ------------------------------------------------------------------------------ */

static uint8_t grey(float v)
{
    if (!(v > 0.0f)) /* NaN is black */
        return 0;
    return v >= 1.0f ? 255 : (uint8_t)lrintf(v * 255.0f);
}

static float shown(const tgi_panel *p, span s, int c, int64_t y, int64_t x)
{
    return (p->data[((int64_t)c * p->h + y) * p->w + x] - s.lo) / (s.hi - s.lo);
}

/* Pixel (y,x) of a panel of the picture, nearest neighbour; the mean of three channels when one
 * is asked for and three are there. */
static float sample(const tgi_picture *pic, const tgi_panel *p, span s, int c, int64_t y,
                    int64_t x)
{
    const int64_t sy = y * p->h / pic->panel_h, sx = x * p->w / pic->panel_w;
    if (p->channels == 1)
        return shown(p, s, 0, sy, sx);
    if (c >= 0)
        return shown(p, s, c, sy, sx);
    return (shown(p, s, 0, sy, sx) + shown(p, s, 1, sy, sx) + shown(p, s, 2, sy, sx)) / 3.0f;
}

static uint8_t *pixel(const tgi_picture *p, int i, int column, int64_t y, int64_t x)
{
    const int64_t row = GAP + i * (p->panel_h + GAP) + y;
    const int64_t col = GAP + column * (p->panel_w + GAP) + x;
    return p->pixels + (size_t)(row * p->width + col) * (size_t)p->samples;
}

static void paint(tgi_picture *pic, int i, int column, const tgi_panel *p, span s)
{
    for (int64_t y = 0; y < pic->panel_h; y++)
        for (int64_t x = 0; x < pic->panel_w; x++)
            for (int c = 0; c < pic->samples; c++)
                pixel(pic, i, column, y, x)[c] = grey(sample(pic, p, s, c, y, x));
}

typedef struct pair {
    const tgi_panel *raw, *result;
    span raw_span, result_span;
    int channels; /* compared: 3 when both have them, else 1 */
} pair;

static float difference(const tgi_picture *pic, const pair *d, int c, int64_t y, int64_t x)
{
    const int channel = d->channels == 3 ? c : -1;
    return sample(pic, d->result, d->result_span, channel, y, x) -
           sample(pic, d->raw, d->raw_span, channel, y, x);
}

/* Size of difference that is painted black or white: nearly the largest, at least 2 % of the
 * range so that rounding noise stays grey. */
static float difference_scale(const tgi_picture *pic, const pair *d, float *scratch)
{
    size_t n = 0;
    for (int64_t y = 0; y < pic->panel_h; y++)
        for (int64_t x = 0; x < pic->panel_w; x++)
            for (int c = 0; c < d->channels; c++)
                scratch[n++] = fabsf(difference(pic, d, c, y, x));
    const size_t m = sort_numbers(scratch, n);
    return fmaxf(percentile(scratch, m, HIGH), 0.02f);
}

static void paint_difference(tgi_picture *pic, int i, const pair *d, float *scratch)
{
    const float scale = difference_scale(pic, d, scratch);
    for (int64_t y = 0; y < pic->panel_h; y++)
        for (int64_t x = 0; x < pic->panel_w; x++)
            for (int c = 0; c < pic->samples; c++)
                pixel(pic, i, 2, y, x)[c] =
                    grey(0.5f + 0.5f * difference(pic, d, c, y, x) / scale);
}

/* Which object a pixel of the picture belongs to. */
static float object_at(const tgi_picture *pic, const tgi_panel *p, int64_t y, int64_t x)
{
    const int64_t sy = y * p->h / pic->panel_h, sx = x * p->w / pic->panel_w;
    const float v = p->data[sy * p->w + sx];
    return p->objects == TGI_PANEL_NUMBERS ? v : (float)(v > p->level);
}

static void paint_outlines(tgi_picture *pic, int i, const pair *d)
{
    static const uint8_t yellow[3] = {255, 220, 0};
    for (int64_t y = 0; y < pic->panel_h; y++)
        for (int64_t x = 0; x < pic->panel_w; x++) {
            const float own = object_at(pic, d->result, y, x);
            const int edge =
                (x + 1 < pic->panel_w && object_at(pic, d->result, y, x + 1) != own) ||
                (y + 1 < pic->panel_h && object_at(pic, d->result, y + 1, x) != own);
            for (int c = 0; c < pic->samples; c++)
                pixel(pic, i, 2, y, x)[c] =
                    edge ? yellow[c] : grey(sample(pic, d->raw, d->raw_span, -1, y, x));
        }
}

/* ---- The picture ------------------------------------------------------------------------- */

tgi_picture tgi_picture_layout(int rows, const tgi_panel *raw, const tgi_panel *result)
{
    tgi_picture p = {.panel_h = tgi_max(raw->h, result->h),
                     .panel_w = tgi_max(raw->w, result->w),
                     .samples =
                         raw->channels == 3 || result->channels == 3 || result->objects ? 3 : 1,
                     .rows = rows};
    p.height = GAP + rows * (p.panel_h + GAP);
    p.width = GAP + 3 * (p.panel_w + GAP);
    return p;
}

size_t tgi_picture_scratch(const tgi_panel *raw, const tgi_panel *result)
{
    const tgi_picture p = tgi_picture_layout(1, raw, result);
    return (size_t)(p.panel_h * p.panel_w) * 3;
}

void tgi_picture_begin(tgi_picture *p)
{
    memset(p->pixels, GAP_GREY, (size_t)(p->height * p->width) * (size_t)p->samples);
}

void tgi_picture_row(tgi_picture *p, int i, const tgi_panel *raw, const tgi_panel *result,
                     float *scratch)
{
    pair d = {.raw = raw, .result = result};
    d.raw_span = range_of(raw, scratch);
    d.result_span = range_of(result, scratch);
    d.channels = raw->channels == 3 && result->channels == 3 ? 3 : 1;
    if (same_scale(d.raw_span, d.result_span))
        d.result_span = d.raw_span;
    paint(p, i, 0, raw, d.raw_span);
    paint(p, i, 1, result, d.result_span);
    if (result->objects)
        paint_outlines(p, i, &d);
    else
        paint_difference(p, i, &d, scratch);
}

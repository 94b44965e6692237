/* resize.c - see resize.h.
 *
 * A row of the source is resized along its columns when a row of the result first needs it, and stays in a ring until
 * none does: the ring has as many rows as one row of the result is made of. */
#include "engine/inpaint/resize.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

#define PILLOW_BITS 22
#define HALF 11     /* bits of the lower half of such a weight */
#define CV_BITS 11  /* of one axis */
#define CV_GROUP 8  /* numbers that OpenCV computes at once */
#define AT_ONCE 256 /* numbers of a row that are added up at once */
#define CUBIC 4
#define LINEAR 2

/* What the places of one axis are made of. A column's numbers lie in the source; a row's may lie beyond it, and its first
 * or last row is meant. */
typedef struct axis {
    int64_t from, to;
    int taps;       /* of each place */
    int32_t *first; /* [to] */
    int32_t *whole; /* [to][taps] weights in fixed point */
    float *part;    /* [to][taps] the same as fractions */
} axis;

struct tgi_resize {
    tgi_resize_how how;
    int samples;
    bool same; /* nothing else is set */
    axis across, down;
    int64_t *held; /* [down.taps] the row of the source that lies there in the ring; -1: none */
    void *ring;    /* [down.taps] rows of 4 bytes a number; of Pillow's bytes two are used */
    size_t bytes;
};

/* ---- Weights ----------------------------------------------------------------------------- */

/* What Pillow makes a place of: `n` places from `first` on. */
typedef struct window {
    double middle, over; /* over: 1 / how much wider the cubic is */
    int64_t first, n;
    double sum; /* of the weights */
} window;

/* In Pillow's order: the last bit of a weight counts where it is rounded. */
static double pillow_cubic(double x)
{
    const double a = -0.5;
    x = x < 0 ? -x : x;
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static double pillow_weight(const window *w, int64_t k)
{
    return pillow_cubic(((double)(k + w->first) - w->middle + 0.5) * w->over);
}

static window pillow_window(int64_t from, int64_t to, int64_t i)
{
    const double ratio = (double)from / (double)to, wider = ratio > 1 ? ratio : 1;
    const double reach = 2 * wider, middle = ((double)i + 0.5) * ratio;
    window w = {.middle = middle, .over = 1 / wider};
    w.first = tgi_max((int64_t)(middle - reach + 0.5), 0);
    w.n = tgi_min((int64_t)(middle + reach + 0.5), from) - w.first;
    for (int64_t k = 0; k < w.n; k++)
        w.sum += pillow_weight(&w, k);
    return w;
}

/* All of them lie in the source, and so do the zeros beside them. */
static void set_pillow(const axis *a, int64_t i)
{
    const window w = pillow_window(a->from, a->to, i);
    const int64_t start = tgi_min(w.first, a->from - a->taps);
    const int64_t at = i * a->taps + w.first - start;
    a->first[i] = (int32_t)start;
    for (int64_t k = 0; k < w.n; k++) {
        const double v = pillow_weight(&w, k) / w.sum, fixed = v * (1 << PILLOW_BITS);
        a->whole[at + k] = (int32_t)(fixed < 0 ? fixed - 0.5 : fixed + 0.5);
        a->part[at + k] = (float)v;
    }
}

static void cv_cubic(float x, float w[CUBIC])
{
    const float a = -0.75f, y = 1 - x;
    w[0] = ((a * (x + 1) - 5 * a) * (x + 1) + 8 * a) * (x + 1) - 4 * a;
    w[1] = ((a + 2) * x - (a + 3)) * x * x + 1;
    w[2] = ((a + 2) * y - (a + 3)) * y * y + 1;
    w[3] = 1 - w[0] - w[1] - w[2];
}

/* The weights of place i, and the first place that they are of. Bilinear columns beyond the middle of the first and
 * of the last one are these; rows keep their two weights there, both of the same row, and rounding down twice shows. */
static int64_t cv_weights(const axis *a, int taps, bool column, int64_t i, float *part)
{
    const double ratio = 1 / ((double)a->to / (double)a->from);
    const float at = (float)(((double)i + 0.5) * ratio - 0.5), low = floorf(at);
    int64_t first = (int64_t)low;
    float share = at - low;
    if (taps == CUBIC) {
        cv_cubic(share, part);
        return first - 1;
    }
    if (column && (first < 0 || first >= a->from - 1)) {
        share = 0;
        first = tgi_clamp(first, 0, a->from - 1);
    }
    part[0] = 1 - share;
    part[1] = share;
    return first;
}

/* Columns beyond the source are its first or last one, and are added to it. */
static void set_cv(const axis *a, int taps, bool column, int64_t i)
{
    float part[CUBIC];
    const int64_t first = cv_weights(a, taps, column, i, part);
    const int64_t start = column ? tgi_clamp(first, 0, a->from - a->taps) : first;
    a->first[i] = (int32_t)start;
    for (int k = 0; k < taps; k++) {
        const int64_t place = column ? tgi_clamp(first + k, 0, a->from - 1) : first + k;
        const int64_t at = i * a->taps + place - start;
        a->whole[at] += (int32_t)lrintf(part[k] * (1 << CV_BITS));
        a->part[at] += part[k];
    }
}

/* ---- Tables ------------------------------------------------------------------------------ */

/* Places that one place is made of. */
static int64_t taps_of(tgi_resize_how how, int64_t from, int64_t to)
{
    int64_t most = 1;
    if (how != TGI_RESIZE_PILLOW_BICUBIC)
        return how == TGI_RESIZE_CV_CUBIC ? CUBIC : LINEAR;
    for (int64_t i = 0; i < to; i++)
        most = tgi_max(most, pillow_window(from, to, i).n);
    return most;
}

/* `n` of `size` bytes, all 0, counted in *bytes; NULL: there is no such memory. */
static void *take(int64_t n, size_t size, size_t *bytes)
{
    *bytes = tgi_sat_add(*bytes, tgi_sat_mul((size_t)n, size));
    return tgi_calloc(TGI_TAG_PLAN, (size_t)n, size);
}

static bool make_axis(tgi_resize_how how, int64_t from, int64_t to, bool column, axis *a,
                      size_t *bytes)
{
    const int64_t taps = taps_of(how, from, to);
    *a = (axis){.from = from, .to = to};
    a->taps = (int)(column ? tgi_min(taps, from) : taps);
    a->first = take(to, sizeof *a->first, bytes);
    a->whole = take(to * a->taps, sizeof *a->whole, bytes);
    a->part = take(to * a->taps, sizeof *a->part, bytes);
    if (!a->first || !a->whole || !a->part)
        return false;
    for (int64_t i = 0; i < to; i++)
        if (how == TGI_RESIZE_PILLOW_BICUBIC)
            set_pillow(a, i);
        else
            set_cv(a, (int)taps, column, i);
    return true;
}

static void free_axis(axis *a)
{
    tgi_free(a->first);
    tgi_free(a->whole);
    tgi_free(a->part);
}

static tg_status fill(tgi_resize *r, int64_t from_h, int64_t from_w, int64_t to_h, int64_t to_w,
                      tgi_err *err)
{
    r->same = from_h == to_h && from_w == to_w;
    r->across.from = from_w;
    r->across.to = to_w;
    r->down.from = from_h;
    r->down.to = to_h;
    if (r->same)
        return TG_OK;
    if (!make_axis(r->how, from_w, to_w, true, &r->across, &r->bytes) ||
        !make_axis(r->how, from_h, to_h, false, &r->down, &r->bytes))
        return tgi_fail(err, TG_E_NOMEM, "no memory for weights of another size");
    r->held = take(r->down.taps, sizeof *r->held, &r->bytes);
    r->ring = take(r->down.taps * to_w * r->samples, sizeof(int32_t), &r->bytes);
    if (!r->held || !r->ring)
        return tgi_fail(err, TG_E_NOMEM, "no memory for rows of another size");
    return TG_OK;
}

static bool is_side(int64_t n)
{
    return n >= 1 && n <= TGI_RESIZE_SIDE;
}

tg_status tgi_resize_new(tgi_resize_how how, int64_t from_h, int64_t from_w, int64_t to_h,
                         int64_t to_w, int samples, tgi_resize **out, tgi_err *err)
{
    *out = NULL;
    if (!is_side(from_h) || !is_side(from_w) || !is_side(to_h) || !is_side(to_w) ||
        samples < 1 || samples > TGI_RESIZE_SAMPLES)
        return tgi_fail(
            err, TG_E_ARG,
            "another size: %lld x %lld of %d samples to %lld x %lld, expected sides "
            "of 1 to %d and 1 to %d samples",
            (long long)from_w, (long long)from_h, samples, (long long)to_w, (long long)to_h,
            TGI_RESIZE_SIDE, TGI_RESIZE_SAMPLES);
    tgi_resize *r = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *r);
    if (!r)
        return tgi_fail(err, TG_E_NOMEM, "no memory for another size");
    r->how = how;
    r->samples = samples;
    r->bytes = sizeof *r;
    const tg_status st = fill(r, from_h, from_w, to_h, to_w, err);
    if (st == TG_OK)
        *out = r;
    else
        tgi_resize_free(&r);
    return st;
}

void tgi_resize_free(tgi_resize **r)
{
    if (!*r)
        return;
    free_axis(&(*r)->across);
    free_axis(&(*r)->down);
    tgi_free((*r)->held);
    tgi_free((*r)->ring);
    tgi_free(*r);
    *r = NULL;
}

size_t tgi_resize_bytes(const tgi_resize *r)
{
    return r->bytes;
}

/* ---- Along a row ------------------------------------------------------------------------- */

static inline int32_t to_byte(int32_t v)
{
    return v < 0 ? 0 : v > UINT8_MAX ? UINT8_MAX : v;
}

INLINE int32_t whole_sum(int32_t sum, const uint8_t *at, int taps, int samples,
                         const int32_t *w)
{
    for (int k = 0; k < taps; k++)
        sum += at[k * samples] * w[k];
    return sum;
}

INLINE void across_8(const axis *a, int taps, int samples, const uint8_t *from, int16_t *to)
{
    for (int64_t x = 0; x < a->to; x++)
        for (int c = 0; c < samples; c++) {
            const uint8_t *at = from + (int64_t)a->first[x] * samples + c;
            const int32_t sum =
                whole_sum(1 << (PILLOW_BITS - 1), at, taps, samples, a->whole + x * taps);
            to[x * samples + c] = (int16_t)to_byte(sum >> PILLOW_BITS);
        }
}

INLINE void across_32(const axis *a, int taps, int samples, const uint8_t *from, int32_t *to)
{
    for (int64_t x = 0; x < a->to; x++)
        for (int c = 0; c < samples; c++) {
            const uint8_t *at = from + (int64_t)a->first[x] * samples + c;
            to[x * samples + c] = whole_sum(0, at, taps, samples, a->whole + x * taps);
        }
}

INLINE void across_part(const axis *a, int taps, int samples, const uint16_t *from, float *to)
{
    for (int64_t x = 0; x < a->to; x++) {
        const uint16_t *at = from + (int64_t)a->first[x] * samples;
        const float *w = a->part + x * taps;
        for (int c = 0; c < samples; c++) {
            float sum = 0;
            for (int k = 0; k < taps; k++)
                sum += at[k * samples + c] * w[k];
            to[x * samples + c] = sum;
        }
    }
}

/* Each with its counts known to the compiler where they are common. */
static void across_pillow(const axis *a, int samples, const uint8_t *from, int16_t *to)
{
    if (a->taps == CUBIC && samples == 3)
        across_8(a, CUBIC, 3, from, to);
    else if (samples == 3)
        across_8(a, a->taps, 3, from, to);
    else
        across_8(a, a->taps, samples, from, to);
}

static void across_cv(const axis *a, int samples, const uint8_t *from, int32_t *to)
{
    if (a->taps == CUBIC && samples == 3)
        across_32(a, CUBIC, 3, from, to);
    else if (a->taps == LINEAR && samples == 3)
        across_32(a, LINEAR, 3, from, to);
    else
        across_32(a, a->taps, samples, from, to);
}

static void across_16(const axis *a, int samples, const uint16_t *from, float *to)
{
    if (a->taps == CUBIC && samples == 3)
        across_part(a, CUBIC, 3, from, to);
    else if (samples == 3)
        across_part(a, a->taps, 3, from, to);
    else
        across_part(a, a->taps, samples, from, to);
}

/* ---- Rows -------------------------------------------------------------------------------- */

/* Row k of those that row y is made of, in the ring. */
static void *row_of(const tgi_resize *r, int64_t y, int k)
{
    const int64_t row = tgi_clamp(r->down.first[y] + k, 0, r->down.from - 1);
    return (int32_t *)r->ring + row % r->down.taps * r->across.to * r->samples;
}

/* Bytes times 23 bits, as products of 16 bits: the processors' vectors have these everywhere. */
typedef struct halves {
    const int16_t *row;
    int16_t high, low; /* of the weight: high * 2^HALF + low */
} halves;

static halves halves_of(const tgi_resize *r, int64_t y, int k)
{
    const bool is = k < r->down.taps;
    const int32_t w = is ? r->down.whole[y * r->down.taps + k] : 0;
    return (halves){row_of(r, y, is ? k : 0), (int16_t)(w >> HALF),
                    (int16_t)(w & ((1 << HALF) - 1))};
}

static void down_pillow(const tgi_resize *r, int64_t y, int64_t n, uint8_t *to)
{
    int32_t high[AT_ONCE];
    uint32_t low[AT_ONCE]; /* modulo 2^32, where there are thousands of rows */
    for (int64_t x = 0; x < n; x += AT_ONCE) {
        const int64_t m = tgi_min(AT_ONCE, n - x);
        for (int64_t i = 0; i < m; i++) {
            high[i] = 1 << (PILLOW_BITS - 1 - HALF);
            low[i] = 0;
        }
        for (int k = 0; k < r->down.taps; k += 4) {
            const halves a = halves_of(r, y, k), b = halves_of(r, y, k + 1),
                         c = halves_of(r, y, k + 2), d = halves_of(r, y, k + 3);
            for (int64_t i = 0; i < m; i++) {
                const int16_t va = a.row[x + i], vb = b.row[x + i], vc = c.row[x + i],
                              vd = d.row[x + i];
                high[i] += (va * a.high + vb * b.high) + (vc * c.high + vd * d.high);
                low[i] += (uint32_t)((va * a.low + vb * b.low) + (vc * c.low + vd * d.low));
            }
        }
        for (int64_t i = 0; i < m; i++) {
            const int32_t sum = (int32_t)(((uint32_t)high[i] << HALF) + low[i]);
            to[x + i] = (uint8_t)to_byte(sum >> PILLOW_BITS);
        }
    }
}

/* OpenCV's vectors of 16 bits: each product loses its lower half. */
static void down_linear(const tgi_resize *r, int64_t y, int64_t n, uint8_t *to)
{
    const int32_t *a = row_of(r, y, 0), *b = row_of(r, y, 1), *w = r->down.whole + y * LINEAR;
    const int16_t wa = (int16_t)w[0], wb = (int16_t)w[1];
    for (int64_t x = 0; x < n; x++) {
        const int16_t va = (int16_t)(a[x] >> 4), vb = (int16_t)(b[x] >> 4);
        to[x] = (uint8_t)(((va * wa >> 16) + (vb * wb >> 16) + 2) >> 2);
    }
}

/* The nearest integer, halves to the even one, of a number within 2^21: beside `big` a float has no fractions. */
static inline int32_t nearest(float v)
{
    const float big = 12582912; /* 1.5 * 2^23 */
    return (int32_t)((v + big) - big);
}

/* OpenCV computes groups of numbers in float32, and what remains at a row's end in fixed point. */
static void down_cubic(const tgi_resize *r, int64_t y, int64_t n, uint8_t *to)
{
    const int32_t *a = row_of(r, y, 0), *b = row_of(r, y, 1), *c = row_of(r, y, 2),
                  *d = row_of(r, y, 3), *w = r->down.whole + y * CUBIC;
    const float one = 1.0f / (1 << 2 * CV_BITS);
    const float wa = (float)w[0] * one, wb = (float)w[1] * one, wc = (float)w[2] * one,
                wd = (float)w[3] * one;
    const int64_t groups = n / CV_GROUP * CV_GROUP;
    for (int64_t x = 0; x < groups; x++)
        to[x] = (uint8_t)to_byte(nearest(
            (float)a[x] * wa + ((float)b[x] * wb + ((float)c[x] * wc + (float)d[x] * wd))));
    for (int64_t x = groups; x < n; x++) {
        const int32_t sum = a[x] * w[0] + b[x] * w[1] + c[x] * w[2] + d[x] * w[3];
        to[x] = (uint8_t)to_byte((sum + (1 << (2 * CV_BITS - 1))) >> 2 * CV_BITS);
    }
}

static void down_16(const tgi_resize *r, int64_t y, int64_t n, uint16_t *to)
{
    const float *w = r->down.part + y * r->down.taps;
    float sum[AT_ONCE];
    for (int64_t x = 0; x < n; x += AT_ONCE) {
        const int64_t m = tgi_min(AT_ONCE, n - x);
        for (int64_t i = 0; i < m; i++)
            sum[i] = 0.5f;
        for (int k = 0; k < r->down.taps; k++) {
            const float *row = (const float *)row_of(r, y, k) + x;
            for (int64_t i = 0; i < m; i++)
                sum[i] += row[i] * w[k];
        }
        for (int64_t i = 0; i < m; i++) {
            const float v = sum[i] > 0 ? sum[i] : 0;
            to[x + i] = (uint16_t)(v < UINT16_MAX ? v : UINT16_MAX);
        }
    }
}

/* ---- Frames ------------------------------------------------------------------------------ */

static void along(const tgi_resize *r, bool deep, const void *from, int64_t row, void *to)
{
    const int64_t at = row * r->across.from * r->samples;
    if (deep)
        across_16(&r->across, r->samples, (const uint16_t *)from + at, to);
    else if (r->how == TGI_RESIZE_PILLOW_BICUBIC)
        across_pillow(&r->across, r->samples, (const uint8_t *)from + at, to);
    else
        across_cv(&r->across, r->samples, (const uint8_t *)from + at, to);
}

static void downwards(const tgi_resize *r, bool deep, int64_t y, void *to)
{
    const int64_t n = r->across.to * r->samples;
    uint8_t *row = (uint8_t *)to + (deep ? 0 : y * n);
    if (deep)
        down_16(r, y, n, (uint16_t *)to + y * n);
    else if (r->how == TGI_RESIZE_PILLOW_BICUBIC)
        down_pillow(r, y, n, row);
    else if (r->how == TGI_RESIZE_CV_LINEAR)
        down_linear(r, y, n, row);
    else
        down_cubic(r, y, n, row);
}

static void run(tgi_resize *r, bool deep, const void *from, void *to)
{
    const axis *d = &r->down;
    if (r->same) {
        memcpy(to, from, (size_t)(d->to * r->across.to * r->samples) << deep);
        return;
    }
    for (int k = 0; k < d->taps; k++)
        r->held[k] = -1;
    for (int64_t y = 0; y < d->to; y++) {
        for (int k = 0; k < d->taps; k++) {
            const int64_t row = tgi_clamp(d->first[y] + k, 0, d->from - 1);
            if (r->held[row % d->taps] != row)
                along(r, deep, from, row, row_of(r, y, k));
            r->held[row % d->taps] = row;
        }
        downwards(r, deep, y, to);
    }
}

void tgi_resize_run(tgi_resize *r, const uint8_t *from, uint8_t *to)
{
    run(r, false, from, to);
}

void tgi_resize_run16(tgi_resize *r, const uint16_t *from, uint16_t *to)
{
    run(r, true, from, to);
}

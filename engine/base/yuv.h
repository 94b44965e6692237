/* yuv.h - pixels of a frame that is stored as Y, U and V, as R, G and B: the arithmetic, for whoever does it. Readers of
 * films do it row by row (io/film_pixels.c), devices pixel by pixel (kernels/device.h); their numbers have the same bits.
 *
 * Every step is one operation of float32, in the order that is written here; nothing is contracted. What does not
 * depend on a pixel's numbers, where chroma lies, is worked out in integers, and its parts are fractions that float32 holds.
 *
 * STAGED. Of a rectangle of the frame, dense: its rows of Y; then the rows and columns of U that lie around it
 * (tgi_yuv_hull); then those of V. */
#ifndef TGI_YUV_H
#define TGI_YUV_H

#include "engine/base/region.h"

#include <string.h>

#ifdef __CUDACC__
#define TGI_YUV_FN static __host__ __device__ __forceinline__
#else
#define TGI_YUV_FN static inline
#endif

/* What the numbers of a frame mean. */
typedef struct tgi_yuv {
    int there; /* 0: nothing of this; pixels are samples of R, G and B */
    int depth; /* bits of a number; more than 8 are two bytes, in the machine's order */
    int log2_w, log2_h;        /* luma pixels for one of chroma, across and down */
    int twice_x, twice_y;      /* where chroma 0 lies, in halves of a luma pixel */
    int64_t width, height;     /* of the frame */
    int64_t x0, y0;            /* what is read of it begins there */
    float black[3], to_one[3]; /* (number - black) * to_one */
    float rgb[3][3];           /* of Y, U, V */
    float white;               /* 255 or 65535: R, G, B are whole numbers up to it */
} tgi_yuv;

/* ---- Numbers ----------------------------------------------------------------------------- */

/* One rounding each, whatever the compiler may contract. */
TGI_YUV_FN float tgi_yuv_mul(float a, float b)
{
#ifdef __CUDA_ARCH__
    return __fmul_rn(a, b);
#else
    return a * b;
#endif
}
TGI_YUV_FN float tgi_yuv_add(float a, float b)
{
#ifdef __CUDA_ARCH__
    return __fadd_rn(a, b);
#else
    return a + b;
#endif
}

TGI_YUV_FN float tgi_yuv_number(unsigned v, float black, float to_one)
{
    return tgi_yuv_mul(tgi_yuv_add((float)(int)v, -black), to_one);
}

/* On the way from a to b. */
TGI_YUV_FN float tgi_yuv_between(float a, float b, float part)
{
    return tgi_yuv_add(a, tgi_yuv_mul(tgi_yuv_add(b, -a), part));
}

/* A row of the matrix. */
TGI_YUV_FN float tgi_yuv_mixed(const float *m, float y, float u, float v)
{
    return tgi_yuv_add(tgi_yuv_add(tgi_yuv_mul(m[0], y), tgi_yuv_mul(m[1], u)),
                       tgi_yuv_mul(m[2], v));
}

/* v between 0 and `most`, which is below 2^22, to the nearest number, halves to even, as lrintf does: the sum's last place
 * is 1. Loops over it become vectors. NaN is 0. */
TGI_YUV_FN uint32_t tgi_yuv_round(float v, float most)
{
    const float place = 12582912.0f; /* 3 * 2^22 */
    uint32_t bits;
    v = v > 0 ? v : 0;
    v = tgi_yuv_add(v < most ? v : most, place);
    memcpy(&bits, &v, sizeof bits);
    return bits - 0x4b400000u; /* those of `place` */
}

/* v of 0 to 1, in steps of 1 / white. */
TGI_YUV_FN uint32_t tgi_yuv_step(float v, float white)
{
    return tgi_yuv_round(tgi_yuv_mul(v, white), white);
}

/* ---- Places ------------------------------------------------------------------------------ */

/* Which of chroma's samples lie around a pixel, and how far it is on the way from a to b. */
typedef struct tgi_yuv_place {
    int64_t a, b;
    float part;
} tgi_yuv_place;

TGI_YUV_FN int64_t tgi_yuv_clamp(int64_t v, int64_t n)
{
    return v < 0 ? 0 : v < n ? v : n - 1;
}

/* Luma pixel i among n samples of chroma, each for 2^log2 of them, the first one at twice / 2. A pixel that lies on
 * a sample has no other. */
TGI_YUV_FN tgi_yuv_place tgi_yuv_place_of(int64_t i, int log2, int twice, int64_t n)
{
    const int64_t unit = (int64_t)2 << log2, at = 2 * i - twice;
    const int64_t down = at >> (log2 + 1), rest = at - down * unit;
    tgi_yuv_place p;
    p.a = tgi_yuv_clamp(down, n);
    p.b = rest ? tgi_yuv_clamp(down + 1, n) : p.a;
    p.part = (float)rest / (float)unit;
    return p;
}

/* Samples of chroma in a whole row or column of the frame. */
TGI_YUV_FN int64_t tgi_yuv_chroma(int64_t n, int log2)
{
    return (n + (1 << log2) - 1) >> log2;
}

/* Those that the pixels [r.lo, r.hi) of a row or column of n lie among. */
TGI_YUV_FN tgi_range tgi_yuv_hull(tgi_range r, int log2, int twice, int64_t n)
{
    const int64_t all = tgi_yuv_chroma(n, log2);
    tgi_range h = {0, 0};
    if (r.lo >= r.hi)
        return h;
    h.lo = tgi_yuv_place_of(r.lo, log2, twice, all).a;
    h.hi = tgi_yuv_place_of(r.hi - 1, log2, twice, all).b + 1;
    return h;
}

/* ---- Staged ------------------------------------------------------------------------------ */

/* A rectangle as it is staged: pixels, and samples of chroma, of the frame. */
typedef struct tgi_yuv_staged {
    tgi_range rows, cols, chroma_rows, chroma_cols;
} tgi_yuv_staged;

/* Of rows and columns that count from y0 and x0 on. */
static inline tgi_yuv_staged tgi_yuv_stage(const tgi_yuv *f, tgi_range rows, tgi_range cols)
{
    tgi_yuv_staged s = {
        {rows.lo + f->y0, rows.hi + f->y0}, {cols.lo + f->x0, cols.hi + f->x0}, {0, 0}, {0, 0}};
    if (tgi_range_empty(s.rows) || tgi_range_empty(s.cols))
        s.rows.hi = s.rows.lo;
    s.chroma_rows = tgi_yuv_hull(s.rows, f->log2_h, f->twice_y, f->height);
    s.chroma_cols = tgi_yuv_hull(s.cols, f->log2_w, f->twice_x, f->width);
    return s;
}

/* Numbers in front of those of U, and of each of U and V. */
TGI_YUV_FN int64_t tgi_yuv_lumas(const tgi_yuv_staged *s)
{
    return (s->rows.hi - s->rows.lo) * (s->cols.hi - s->cols.lo);
}
TGI_YUV_FN int64_t tgi_yuv_chromas(const tgi_yuv_staged *s)
{
    return (s->chroma_rows.hi - s->chroma_rows.lo) * (s->chroma_cols.hi - s->chroma_cols.lo);
}

static inline size_t tgi_yuv_bytes(const tgi_yuv *f, const tgi_yuv_staged *s)
{
    return (size_t)(tgi_yuv_lumas(s) + 2 * tgi_yuv_chromas(s)) * (f->depth > 8 ? 2 : 1);
}

TGI_YUV_FN unsigned tgi_yuv_at(const tgi_yuv *f, const char *staged, int64_t i)
{
    const unsigned v = f->depth > 8 ? (unsigned)((const uint16_t *)(const void *)staged)[i]
                                    : (unsigned)((const uint8_t *)staged)[i];
    return v & ((1u << f->depth) - 1);
}

/* Component c, U or V, between the samples around a pixel. First down, then across. */
TGI_YUV_FN float tgi_yuv_colour(const tgi_yuv *f, const tgi_yuv_staged *s, const char *staged,
                                int c, tgi_yuv_place y, tgi_yuv_place x)
{
    const int64_t n = s->chroma_cols.hi - s->chroma_cols.lo;
    const int64_t first = tgi_yuv_lumas(s) + (c - 1) * tgi_yuv_chromas(s);
    const int64_t above = first + (y.a - s->chroma_rows.lo) * n - s->chroma_cols.lo;
    const int64_t below = first + (y.b - s->chroma_rows.lo) * n - s->chroma_cols.lo;
    const float black = f->black[c], one = f->to_one[c];
    const float left =
        tgi_yuv_between(tgi_yuv_number(tgi_yuv_at(f, staged, above + x.a), black, one),
                        tgi_yuv_number(tgi_yuv_at(f, staged, below + x.a), black, one), y.part);
    const float right =
        tgi_yuv_between(tgi_yuv_number(tgi_yuv_at(f, staged, above + x.b), black, one),
                        tgi_yuv_number(tgi_yuv_at(f, staged, below + x.b), black, one), y.part);
    return tgi_yuv_between(left, right, x.part);
}

/* Pixel (y, x) of the frame, which is staged, as whole numbers up to `white`. */
TGI_YUV_FN void tgi_yuv_pixel(const tgi_yuv *f, const tgi_yuv_staged *s, const char *staged,
                              int64_t y, int64_t x, uint32_t rgb[3])
{
    const tgi_yuv_place down =
        tgi_yuv_place_of(y, f->log2_h, f->twice_y, tgi_yuv_chroma(f->height, f->log2_h));
    const tgi_yuv_place across =
        tgi_yuv_place_of(x, f->log2_w, f->twice_x, tgi_yuv_chroma(f->width, f->log2_w));
    const int64_t at = (y - s->rows.lo) * (s->cols.hi - s->cols.lo) + x - s->cols.lo;
    const float luma = tgi_yuv_number(tgi_yuv_at(f, staged, at), f->black[0], f->to_one[0]);
    const float u = tgi_yuv_colour(f, s, staged, 1, down, across);
    const float v = tgi_yuv_colour(f, s, staged, 2, down, across);
    for (int c = 0; c < 3; c++)
        rgb[c] = tgi_yuv_step(tgi_yuv_mixed(f->rgb[c], luma, u, v), f->white);
}

#endif

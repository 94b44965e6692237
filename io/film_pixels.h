/* film_pixels.h - frames of a film, as they are stored (av/av.h), as pixels of an image: grey, RGB,
 * each with alpha where there is some, upright.
 *
 *   samples   8 bits and fewer become 0 to 255, more bits 0 to 65535: white is the largest number
 *   range     limited ("tv": 16 to 235 of 8 bits) or full ("pc"), as the film says
 *   matrix    of Y, U, V to R, G, B: as the film says
 *   chroma    of fewer samples than luma: linear between the four nearest ones, at the places that
 *             the film says; beyond the border the nearest one
 *   rounding  once, at the end, to the nearest number, halves to even
 *
 * What the film does not say is assumed: limited range (full of grey and RGB), the matrix of BT.709
 * from 720 rows on, below it that of BT.601, chroma on the left and between rows (H.264, MPEG-2). It is
 * told, in `assumed`. Transfer functions and primaries are left as they are.
 *
 * The arithmetic of Y, U and V is that of engine/base/yuv.h, by rows.
 *
 * Source: ITU-R BT.601-7, BT.709-6, BT.2020-2; H.264 annex E (names and places). */
#ifndef TGI_FILM_PIXELS_H
#define TGI_FILM_PIXELS_H

#include "engine/base/tensor.h"
#include "engine/base/yuv.h"
#include "io/av/av.h"

#include <stddef.h>

typedef struct tgi_film_pixels {
    tgi_av_form form;
    int64_t width, height; /* as stored */
    int rotation, flipped;
    int64_t wide, high; /* upright */
    int samples;
    tg_dtype dtype;            /* U8 or U16 */
    float white;               /* 255 or 65535 */
    float to_one[4], black[4]; /* of each component: (v - black) * to_one */
    float rgb[3][3];           /* from Y in 0..1, U and V in -1/2..1/2 */
    float red, blue;           /* their shares in Y */
    float place_x, place_y; /* of chroma sample 0, in luma pixels from the first one's middle */
    char assumed[120];      /* "" nothing */
} tgi_film_pixels;

/* TG_E_UNSUPPORTED: a matrix that is none of three numbers each. */
tg_status tgi_film_pixels_make(const tgi_av_info *i, tgi_film_pixels *out, tgi_err *err);

/* A component's number in its element, and back. */
static inline unsigned tgi_film_number(const tgi_av_form *f, int c, const uint8_t *at)
{
    const tgi_av_component *k = &f->component[c];
    unsigned v = at[0];
    if (f->wide)
        v = f->big_endian ? v << 8 | at[1] : v | (unsigned)at[1] << 8;
    return v >> k->shift & ((1u << k->depth) - 1);
}
static inline void tgi_film_set_number(const tgi_av_form *f, int c, uint8_t *at, unsigned v)
{
    v <<= f->component[c].shift;
    if (!f->wide) {
        at[0] = (uint8_t)v;
        return;
    }
    at[f->big_endian] = (uint8_t)(v & 255);
    at[!f->big_endian] = (uint8_t)(v >> 8);
}
/* The number nearest to v, of those that the component has. */
static inline unsigned tgi_film_nearest(const tgi_av_form *f, int c, float v)
{
    return tgi_yuv_round(v, (float)((1u << f->component[c].depth) - 1));
}

/* How a component's numbers lie: bytes in a row, words of little endian in a row, or in some other way. */
typedef enum { TGI_FILM_BYTES, TGI_FILM_WORDS, TGI_FILM_APART } tgi_film_lie;
static inline tgi_film_lie tgi_film_lies(const tgi_av_form *f, int c)
{
    const tgi_av_component *k = &f->component[c];
    if (k->shift || f->big_endian || k->step != (f->wide ? 2 : 1))
        return TGI_FILM_APART;
    return f->wide ? TGI_FILM_WORDS : TGI_FILM_BYTES;
}

/* Which of n samples lie around place `at`, and how far it is on the way from `a` to `b`. */
typedef struct tgi_film_between {
    int64_t a, b;
    float part;
} tgi_film_between;
tgi_film_between tgi_film_around(double at, int64_t n);

/* Its components are Y, U, V (and alpha), not grey or R, G, B; component c is U or V; its columns and rows; those of
 * U and V. */
int tgi_film_has_chroma(const tgi_film_pixels *p);
int tgi_film_is_chroma(const tgi_film_pixels *p, int c);
int64_t tgi_film_columns(const tgi_film_pixels *p, int c);
int64_t tgi_film_rows(const tgi_film_pixels *p, int c);
int64_t tgi_film_chroma_width(const tgi_film_pixels *p);
int64_t tgi_film_chroma_height(const tgi_film_pixels *p);

/* Bytes of `room` that converting needs, either way, 16-byte aligned. */
size_t tgi_film_row_room(const tgi_film_pixels *p);

/* Row y of the frame as it is stored, into the upright picture at `image`: `samples` side by side,
 * rows without gaps. */
void tgi_film_row(const tgi_film_pixels *p, const tgi_av_frame *f, int64_t y, void *image,
                  void *room);

/* The same of a frame that is stored upright, as a row of its own. */
void tgi_film_line(const tgi_film_pixels *p, const tgi_av_frame *f, int64_t y, void *row,
                   void *room);

/* The other way: the upright picture at `image` becomes the frame. Grey has no colour, and alpha that
 * is not there hides nothing. Chroma of fewer samples than luma is the mean of the pixels that it lies
 * amidst; where it lies on one, that counts most and the others less, the farther the less
 * (film_planes.c). `room`: tgi_film_row_room bytes. */
void tgi_film_planes(const tgi_film_pixels *p, int samples, const void *image,
                     const tgi_av_blank *to, void *room);

/* Element of the upright picture that pixel x = 0 of row y becomes, in pixels, and the distance to
 * that of x + 1. */
int64_t tgi_film_upright(const tgi_film_pixels *p, int64_t y, int64_t *step);

#endif

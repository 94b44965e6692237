/* ycbcr.h - pixels that share a colour, as TIFF packs them, to RGB.
 *
 * `across` x `down` pixels are a unit: their brightnesses row by row, then Cb, then Cr. Units at
 * the right and at the bottom are whole, also where the image ends inside. The numbers come out
 * as libtiff rounds them, which tests/unit/test_tiff_ycbcr.c compares.
 *
 * Source: TIFF 6.0, section 21; for the rounding, TIFFYCbCrToRGBInit(3) of libtiff 4.5. */
#ifndef TGI_YCBCR_H
#define TGI_YCBCR_H

#include "engine/base/status.h"
#include "io/tiff_ifd.h"

/* What each value of each component adds. */
typedef struct tgi_ycbcr {
    int32_t y[256], red[256], blue[256];        /* of Y, Cr, Cb */
    int32_t green_of_cr[256], green_of_cb[256]; /* times 2^16; Cb's with a half to round */
} tgi_ycbcr;

/* Tables for what a page says of its YCbCr. TG_E_FORMAT: it cannot mean that. */
tg_status tgi_ycbcr_init(const tgi_tiff_ycbcr *of, tgi_ycbcr *out, tgi_err *err);
/* Bytes of w x rows pixels as packed, SIZE_MAX where they overflow. */
size_t tgi_ycbcr_packed(size_t w, size_t rows, unsigned across, unsigned down);
/* Turn w x rows packed pixels into 3 w rows bytes of RGB. */
void tgi_ycbcr_spread(const tgi_ycbcr *t, const uint8_t *src, size_t w, size_t rows,
                      unsigned across, unsigned down, uint8_t *rgb);
/* Turn n pixels, whose Y, Cb and Cr lie `apart` bytes from each other, into 3 n bytes of RGB. */
void tgi_ycbcr_merge(const tgi_ycbcr *t, const uint8_t *y, size_t apart, size_t n,
                     uint8_t *rgb);

#endif

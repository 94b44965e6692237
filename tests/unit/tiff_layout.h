/* tiff_layout.h - TIFF files in every layout we read, made by libtiff. */
#ifndef TG_TIFF_LAYOUT_H
#define TG_TIFF_LAYOUT_H

#include "tests/tg_test.h"

#include <tiffio.h>

typedef struct layout {
    int compression, predictor, planar, tiled, bits, format, samples;
    const char *mode; /* "wl", "wb", "wl8", "wb8" */
    uint32_t w, h, block_w, block_h;
} layout;

/* Smooth with some noise, so that dictionaries and runs are used. */
static inline uint8_t *make_pixels(const layout *a, uint64_t *seed)
{
    const size_t n = (size_t)a->w * a->h * (size_t)a->samples, size = (size_t)a->bits / 8;
    uint8_t *p = malloc(n * size);
    uint64_t v = tg_rand(seed);
    for (size_t i = 0; i < n; i++) {
        if (tg_rand(seed) % 4 == 0)
            v += tg_rand(seed) % 8;
        if (tg_rand(seed) % 64 == 0)
            v = tg_rand(seed);
        memcpy(p + i * size, &v, size);
    }
    return p; /* interleaved, native order */
}

/* The rows and columns of one block cut out of the image; tiles are padded with zeros. */
static inline void cut(const layout *a, const uint8_t *pixels, uint32_t x0, uint32_t y0,
                       int sample, uint8_t *block)
{
    const size_t size = (size_t)a->bits / 8, s = (size_t)a->samples;
    const size_t inner = a->planar ? 1 : s;
    memset(block, 0, (size_t)a->block_w * a->block_h * inner * size);
    for (uint32_t y = 0; y < a->block_h && y0 + y < a->h; y++)
        for (uint32_t x = 0; x < a->block_w && x0 + x < a->w; x++)
            memcpy(block + ((size_t)y * a->block_w + x) * inner * size,
                   pixels + (((size_t)(y0 + y) * a->w + x0 + x) * s + (size_t)sample) * size,
                   inner * size);
}

static inline void write_tiff(const char *path, const layout *a, const uint8_t *pixels)
{
    TIFF *t = TIFFOpen(path, a->mode);
    const size_t size = (size_t)a->bits / 8;
    const size_t inner = a->planar ? 1 : (size_t)a->samples;
    uint8_t *block = malloc((size_t)a->block_w * a->block_h * inner * size);
    TIFFSetField(t, TIFFTAG_IMAGEWIDTH, a->w);
    TIFFSetField(t, TIFFTAG_IMAGELENGTH, a->h);
    TIFFSetField(t, TIFFTAG_BITSPERSAMPLE, a->bits);
    TIFFSetField(t, TIFFTAG_SAMPLEFORMAT, a->format);
    TIFFSetField(t, TIFFTAG_SAMPLESPERPIXEL, a->samples);
    TIFFSetField(t, TIFFTAG_PLANARCONFIG, a->planar ? 2 : 1);
    TIFFSetField(t, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
    TIFFSetField(t, TIFFTAG_COMPRESSION, a->compression);
    if (a->predictor > 1)
        TIFFSetField(t, TIFFTAG_PREDICTOR, a->predictor);
    if (a->tiled) {
        TIFFSetField(t, TIFFTAG_TILEWIDTH, a->block_w);
        TIFFSetField(t, TIFFTAG_TILELENGTH, a->block_h);
    } else {
        TIFFSetField(t, TIFFTAG_ROWSPERSTRIP, a->block_h);
    }
    uint32_t n = 0;
    for (int k = 0; k < (a->planar ? a->samples : 1); k++)
        for (uint32_t y = 0; y < a->h; y += a->block_h)
            for (uint32_t x = 0; x < a->w; x += a->block_w, n++) {
                const uint32_t rows =
                    a->tiled || y + a->block_h <= a->h ? a->block_h : a->h - y;
                const tmsize_t packed = (tmsize_t)(rows * a->block_w * inner * size);
                cut(a, pixels, x, y, k, block);
                CHECK(a->tiled ? TIFFWriteEncodedTile(t, n, block, packed) >= 0
                               : TIFFWriteEncodedStrip(t, n, block, packed) >= 0);
            }
    TIFFClose(t);
    free(block);
}

#endif

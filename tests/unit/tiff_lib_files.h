/* tiff_lib_files.h - files in the codecs that libtiff decodes for us, as libtiff writes them
 * (NeXT by hand: it only reads that). */
#ifndef TG_TIFF_LIB_FILES_H
#define TG_TIFF_LIB_FILES_H

#include "engine/base/arith.h"
#include "io/tiff_codec.h"
#include "tests/tg_test.h"

#include <tiffio.h>

typedef struct lib_form {
    const char *name;
    uint16_t compression, photometric;
    uint16_t samples, bits, format;
    uint16_t planar; /* PLANARCONFIG_ */
    uint32_t more;   /* LERC: packed once more */
} lib_form;

static const lib_form lib_forms[] = {
    {"LERC u8", COMPRESSION_LERC, 1, 1, 8, 1, 1, 0},
    {"LERC i8", COMPRESSION_LERC, 1, 1, 8, 2, 1, 0},
    {"LERC u16", COMPRESSION_LERC, 1, 1, 16, 1, 1, 1},
    {"LERC i16", COMPRESSION_LERC, 1, 2, 16, 2, 1, 0},
    {"LERC u32", COMPRESSION_LERC, 1, 1, 32, 1, 1, 2},
    {"LERC i32", COMPRESSION_LERC, 1, 1, 32, 2, 1, 0},
    {"LERC f32", COMPRESSION_LERC, 1, 1, 32, 3, 1, 0},
    {"LERC f32 planes", COMPRESSION_LERC, 1, 2, 32, 3, 2, 1},
    {"LERC f64", COMPRESSION_LERC, 1, 1, 64, 3, 1, 2},
    {"LERC rgb", COMPRESSION_LERC, 2, 3, 8, 1, 1, 0},
    {"LERC rgb and alpha", COMPRESSION_LERC, 2, 4, 8, 1, 1, 1},
    {"PixarLog u8", COMPRESSION_PIXARLOG, 2, 3, 8, 1, 1, 0},
    {"PixarLog u16", COMPRESSION_PIXARLOG, 1, 1, 16, 1, 1, 0},
    {"PixarLog f32", COMPRESSION_PIXARLOG, 2, 3, 32, 3, 2, 0},
    {"LogL i16", COMPRESSION_SGILOG, PHOTOMETRIC_LOGL, 1, 16, 2, 1, 0},
    {"LogL f32", COMPRESSION_SGILOG, PHOTOMETRIC_LOGL, 1, 32, 3, 1, 0},
    {"LogLuv i16", COMPRESSION_SGILOG, PHOTOMETRIC_LOGLUV, 3, 16, 2, 1, 0},
    {"LogLuv f32", COMPRESSION_SGILOG, PHOTOMETRIC_LOGLUV, 3, 32, 3, 1, 0},
    {"LogLuv 24 i16", COMPRESSION_SGILOG24, PHOTOMETRIC_LOGLUV, 3, 16, 2, 1, 0},
    {"LogLuv 24 f32", COMPRESSION_SGILOG24, PHOTOMETRIC_LOGLUV, 3, 32, 3, 1, 0},
    {"JBIG", COMPRESSION_JBIG, 0, 1, 1, 1, 1, 0},
    {"NeXT", COMPRESSION_NEXT, 1, 1, 2, 1, 1, 0},
};
#define LIB_FORMS ((int)(sizeof lib_forms / sizeof lib_forms[0]))

typedef struct lib_shape {
    uint32_t w, h, bw, bh; /* bw 0: strips of bh rows */
    int big_endian;
} lib_shape;

static size_t lib_inner(const lib_form *f)
{
    return f->planar == 2 ? 1 : f->samples;
}

static size_t lib_row(const lib_form *f, uint32_t w)
{
    return ((size_t)w * lib_inner(f) * f->bits + 7) / 8;
}

/* Of what is put in: 0 smooth, 1 some noise, 2 noise alone. */
static int lib_noise = 1;

/* A value that the form can hold, smooth with a little noise; NaN now and then. */
static void lib_put(const lib_form *f, uint8_t *row, size_t i, uint64_t *seed)
{
    const int noise = lib_noise == 2 || (lib_noise && tg_rand(seed) % 4 == 0);
    const uint32_t v =
        (uint32_t)(i * 3) + (noise ? (uint32_t)tg_rand(seed) >> (lib_noise == 2 ? 0 : 28) : 0);
    const int alpha = f->compression == COMPRESSION_LERC && f->samples == 4 && i % 4 == 3;
    const float real = 0.01f + (float)(v % 97) / 100;
    const double wide = (double)real;
    if (f->bits < 8)
        row[i * f->bits / 8] |= (uint8_t)(tg_rand(seed) & (0x80u >> (i * f->bits % 8)));
    else if (f->bits == 64)
        memcpy(row + 8 * i, &wide, 8);
    else if (f->format == 3)
        memcpy(row + 4 * i, &real, 4);
    else if (f->bits == 8)
        row[i] = alpha ? (uint8_t)(noise ? 0 : 255) : (uint8_t)v;
    else if (f->photometric == PHOTOMETRIC_LOGL || f->photometric == PHOTOMETRIC_LOGLUV)
        memcpy(row + 2 * i, &(int16_t){(int16_t)(8000 + v % 4000)}, 2);
    else
        memcpy(row + f->bits / 8 * i, &v, f->bits / 8);
}

/* Rows of NeXT: literal, a span between white, runs. */
static size_t lib_next(uint8_t *dst, const uint8_t *pixels, uint32_t w, uint32_t rows)
{
    const size_t row = (w + 3) / 4;
    uint8_t *p = dst;
    for (uint32_t y = 0; y < rows; y++, pixels += row)
        if (y % 3 == 0) {
            *p++ = 0;
            memcpy(p, pixels, row);
            p += row;
        } else if (y % 3 == 1 && row > 2) {
            const size_t n = row - 2;
            memcpy(p, (uint8_t[]){0x40, 0, 1, (uint8_t)(n >> 8), (uint8_t)n}, 5);
            memcpy(p + 5, pixels + 1, n);
            p += 5 + n;
        } else {
            for (uint32_t x = 0; x < w;) {
                const uint32_t run = (uint32_t)tgi_min(w - x, 1 + x % 60);
                *p++ = (uint8_t)(1u + x % 3) << 6 | (uint8_t)run;
                x += run;
            }
        }
    return (size_t)(p - dst);
}

static void lib_write_block(TIFF *t, const lib_form *f, uint32_t block, int tiled, uint32_t w,
                            uint32_t rows, uint64_t *seed)
{
    const size_t row = lib_row(f, w), bytes = row * rows;
    uint8_t *p = calloc(1, bytes + 64), *packed = malloc(8 * bytes + 64 * rows + 64);
    for (uint32_t y = 0; y < rows; y++)
        for (size_t i = 0; i < w * lib_inner(f); i++)
            lib_put(f, p + y * row, i, seed);
    if (f->format == 3 && f->compression == COMPRESSION_LERC && f->bits == 32 && bytes > 40)
        memcpy(p + 36, &(uint32_t){0x7fc00000}, 4);
    if (f->compression == COMPRESSION_NEXT) {
        const size_t n = lib_next(packed, p, w, rows);
        CHECK((tiled ? TIFFWriteRawTile(t, block, packed, (tmsize_t)n)
                     : TIFFWriteRawStrip(t, block, packed, (tmsize_t)n)) == (tmsize_t)n);
    } else {
        CHECK((tiled ? TIFFWriteEncodedTile(t, block, p, (tmsize_t)bytes)
                     : TIFFWriteEncodedStrip(t, block, p, (tmsize_t)bytes)) == (tmsize_t)bytes);
    }
    free(p);
    free(packed);
}

/* libtiff writes 8 bits into the directory of any PixarLog, and 16 into that of any LogLuv:
 * other programs say what they put in. */
static void lib_restate(const char *path, const lib_form *f)
{
    TIFF *t = TIFFOpen(path, "r+");
    TIFFSetField(t, TIFFTAG_BITSPERSAMPLE, f->bits);
    TIFFSetField(t, TIFFTAG_SAMPLEFORMAT, f->format);
    CHECK(TIFFRewriteDirectory(t));
    TIFFClose(t);
}

static inline void lib_write(const char *path, const lib_form *f, const lib_shape *a,
                             uint64_t *seed)
{
    const int planes = f->planar == 2 ? f->samples : 1;
    TIFF *t = TIFFOpen(path, a->big_endian ? "wb" : "wl");
    TIFFSetField(t, TIFFTAG_IMAGEWIDTH, a->w);
    TIFFSetField(t, TIFFTAG_IMAGELENGTH, a->h);
    TIFFSetField(t, TIFFTAG_BITSPERSAMPLE, f->bits);
    TIFFSetField(t, TIFFTAG_SAMPLEFORMAT, f->format);
    TIFFSetField(t, TIFFTAG_SAMPLESPERPIXEL, f->samples);
    TIFFSetField(t, TIFFTAG_PLANARCONFIG, f->planar);
    TIFFSetField(t, TIFFTAG_PHOTOMETRIC, f->photometric);
    TIFFSetField(t, TIFFTAG_COMPRESSION, f->compression);
    if (f->samples == 4)
        TIFFSetField(t, TIFFTAG_EXTRASAMPLES, 1, (uint16_t[]){EXTRASAMPLE_UNASSALPHA});
    if (f->compression == COMPRESSION_LERC && f->more)
        TIFFSetField(t, TIFFTAG_LERC_ADD_COMPRESSION, f->more);
    if (a->bw) {
        TIFFSetField(t, TIFFTAG_TILEWIDTH, a->bw);
        TIFFSetField(t, TIFFTAG_TILELENGTH, a->bh);
    } else {
        TIFFSetField(t, TIFFTAG_ROWSPERSTRIP, a->bh);
    }
    uint32_t n = 0;
    for (int k = 0; k < planes; k++)
        for (uint32_t y = 0; y < a->h; y += a->bh)
            for (uint32_t x = 0; x < a->w; x += a->bw ? a->bw : a->w)
                lib_write_block(t, f, n++, a->bw != 0, a->bw ? a->bw : a->w,
                                a->bw ? a->bh : (uint32_t)tgi_min(a->bh, a->h - y), seed);
    TIFFClose(t);
    lib_restate(path, f);
}

/* What the reader tells a decoder about the first block of the file, and the block. */
static inline tgi_packing lib_first_block(const char *path, const lib_form *f,
                                          const lib_shape *a, uint8_t **block, size_t *n)
{
    TIFF *t = TIFFOpen(path, "r");
    *n = (size_t)TIFFRawStripSize(t, 0);
    *block = malloc(*n);
    CHECK(TIFFReadRawStrip(t, 0, *block, (tmsize_t)*n) == (tmsize_t)*n);
    tgi_packing p = {.compression = f->compression,
                     .fill_order = 1,
                     .photometric = f->photometric,
                     .width = a->w,
                     .samples = (uint32_t)lib_inner(f),
                     .bits = f->bits,
                     .format = f->format,
                     .extra = f->samples == 4 ? EXTRASAMPLE_UNASSALPHA : 0,
                     .lerc = {4, f->more},
                     .big_endian = a->big_endian};
    p.block_bytes = (size_t)a->w * a->bh * lib_inner(f) * (f->bits < 8 ? 1 : f->bits / 8u);
    TIFFClose(t);
    return p;
}

#endif

/* tiff_form.h - how the blocks of a page are packed, and how a row becomes samples.
 *
 * A decompressed row may still be packed bits, in the other byte order, or differences. We
 * deliver the samples as they are stored, in the smallest type that holds them: 1 bit is bool,
 * 12 bits are uint16, 24 bits uint32 or, of floating point, float32. We do not scale, invert
 * (MinIsWhite), look up (palettes) or turn (orientation) them. Nor does 1 bit become 0 and 255, as
 * it does of a PNG (png_source.c).
 *
 * Source: TIFF 6.0, sections 3 and 14; TIFF Technical Note 3 (floating-point predictor). */
#ifndef TGI_TIFF_FORM_H
#define TGI_TIFF_FORM_H

#include "io/tiff_codec.h"
#include "io/tiff_ifd.h"

typedef struct tgi_form {
    uint32_t bits, predictor; /* predictor 1: none */
    bool swap, big_endian, is_signed, is_float;
    bool packed;            /* samples are not whole elements of their type */
    size_t elements, inner; /* samples in a row; samples that lie interleaved */
    size_t sample_bytes;    /* delivered */
    size_t stored_row;      /* bytes of a row as stored, <= row_bytes */
    size_t row_bytes;       /* delivered */
} tgi_form;

/* How rows lie in a block of a page that is laid out (tgi_tiff_page_layout). */
tgi_form tgi_form_of(const tgi_tiff_page *p, bool big_endian);
/* How the blocks of a page are packed. The caller fills in the history when it has looked at
 * blocks. JPEGTables are read into *tables (tgi_free), and `out` borrows them. */
tg_status tgi_packing_of(const tgi_tiff_page *p, bool big_endian, const tgi_rfile *f,
                         tgi_packing *out, uint8_t **tables, tgi_err *err);
/* The same for blocks that are decoded whole. */
tgi_packing tgi_packing_whole(const tgi_packing *p);

/* Turn one stored row into samples. `stored` is `row` itself, but of a packed form it lies
 * elsewhere (`tmp` will do). `tmp`: row_bytes of scratch. */
void tgi_form_row(const tgi_form *f, const uint8_t *stored, uint8_t *row, uint8_t *tmp);
/* Where the stored rows must lie in a block of `rows` rows, for tgi_form_block. */
uint8_t *tgi_form_place(const tgi_form *f, uint8_t *block, size_t rows);
/* Turn all rows of a block, in place. */
void tgi_form_block(const tgi_form *f, uint8_t *block, size_t rows, uint8_t *tmp);

#endif

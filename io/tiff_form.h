/* tiff_form.h - how the blocks of a page are packed, and how a row becomes samples.
 *
 * A decompressed row may still be packed bits, in the other byte order, or differences. Rule of
 * what is delivered: the samples as they are stored, in the smallest type that holds them (1
 * bit is bool, 12 bits are uint16, 24 bits uint32). Nothing is scaled, inverted (MinIsWhite),
 * looked up (palettes) or turned (orientation).
 *
 * Source: TIFF 6.0, sections 3 and 14; TIFF Technical Note 3 (floating-point predictor). */
#ifndef TGI_TIFF_FORM_H
#define TGI_TIFF_FORM_H

#include "io/tiff_codec.h"
#include "io/tiff_ifd.h"

typedef struct tgi_form {
    uint32_t bits, predictor; /* predictor 1: none */
    bool swap, big_endian, is_signed;
    bool packed;            /* samples are not whole elements of their type */
    size_t elements, inner; /* samples in a row; samples that lie interleaved */
    size_t sample_bytes;    /* delivered */
    size_t stored_row;      /* bytes of a row as stored, <= row_bytes */
    size_t row_bytes;       /* delivered */
} tgi_form;

/* The form of the rows of one block of a laid out page. */
tgi_form tgi_form_of(const tgi_tiff_page *p, bool big_endian);
/* How its blocks are packed; the history is filled in by who looks at blocks. JPEGTables are
 * read into *tables (tgi_free), which `out` borrows. */
tg_status tgi_packing_of(const tgi_tiff_page *p, bool big_endian, const tgi_rfile *f,
                         tgi_packing *out, uint8_t **tables, tgi_err *err);
/* The same for blocks that are decoded whole. */
tgi_packing tgi_packing_whole(const tgi_packing *p);

/* One row. `stored` is `row` itself unless the form is packed; then it is elsewhere (`tmp` is a
 * good place). `tmp`: row_bytes of scratch. */
void tgi_form_row(const tgi_form *f, const uint8_t *stored, uint8_t *row, uint8_t *tmp);
/* Where in a block of `rows` rows the stored rows must lie for tgi_form_block. */
uint8_t *tgi_form_place(const tgi_form *f, uint8_t *block, size_t rows);
/* All rows of a block in place. */
void tgi_form_block(const tgi_form *f, uint8_t *block, size_t rows, uint8_t *tmp);

#endif

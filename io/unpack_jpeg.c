/* unpack_jpeg.c - JPEG strips and tiles through libjpeg, row by row.
 *
 * Each block is a JPEG of its own, usually without the tables, which stand once in the
 * directory (JPEGTables). Every block begins with exactly those tables, so no block depends on
 * which was decoded before. Rows come out as soon as their bytes are there: libjpeg is given
 * pieces and suspends, and sees no more of them at once than TGI_JPEG_CAREFUL says.
 *
 * Colours: YCbCr (by the page, or by a JFIF or Adobe mark in a page that says RGB, as some
 * slide scanners write) comes out as RGB, YCCK as CMYK, everything else as stored.
 *
 * Refused by name: progressive and other JPEGs in several scans (they need all coefficients in
 * memory), arithmetic coding (whose decoder cannot suspend), lossless ones, 12 bits. Source: TIFF Technical Note 2; libjpeg.txt, "I/O
 * suspension".
 */
#include "io/tiff_codec.h"

#include "engine/base/mem.h"
#include "io/jpeg_lib.h"
#include "io/tiff_ifd.h"

#include <string.h>

typedef enum stage { TABLES, HEADER, START, ROWS, DONE } stage;

typedef struct decoder {
    struct jpeg_decompress_struct z; /* first: callbacks get it and mean the decoder */
    struct jpeg_source_mgr source;
    tgi_jpeg lib;
    tgi_packing packing; /* its tables are a copy in `memory` */
    stage at;
    size_t skip;   /* bytes of a marker that lie in pieces to come */
    size_t behind; /* bytes of the piece behind those that libjpeg sees */
    bool last;     /* the piece is the last one */
    uint8_t *memory;
} decoder;

static size_t memory_bytes(const tgi_packing *p)
{
    return 64 + tgi_jpeg_rows_bytes(p->width) + p->n_tables;
}

static size_t jpeg_bytes(const tgi_packing *p)
{
    return sizeof(decoder) + memory_bytes(p) + TGI_JPEG_OUTSIDE;
}

/* ---- Source ---- */

static void source_nothing(j_decompress_ptr z)
{
    (void)z;
}

/* Wait for the next piece. Behind the last one an end mark is made up, once the bytes before it
 * are used: what lacks its pixels is then found damaged, what lacks only the mark is not. */
static boolean source_more(j_decompress_ptr z)
{
    static const JOCTET end[] = {0xff, JPEG_EOI};
    decoder *d = (decoder *)z;
    if (!d->last)
        return FALSE;
    d->source.next_input_byte = end;
    d->source.bytes_in_buffer = sizeof end;
    return TRUE;
}

static void source_skip(j_decompress_ptr z, long n)
{
    decoder *d = (decoder *)z;
    const size_t want = n > 0 ? (size_t)n : 0, have = d->source.bytes_in_buffer + d->behind;
    const size_t now = want < have ? want : have;
    d->source.next_input_byte += now;
    d->source.bytes_in_buffer = have - now;
    d->behind = 0;
    d->skip += want - now;
}

/* ---- Stages ---- */

static void jpeg_close(void *state)
{
    decoder *d = state;
    tgi_jpeg_destroy(&d->lib, (j_common_ptr)&d->z);
    tgi_free(d->memory);
    tgi_free(d);
}

/* libjpeg's own start can fail for want of memory only. */
static bool create(decoder *d)
{
    tgi_jpeg_errors(&d->lib, (j_common_ptr)&d->z);
    if (TGI_JPEG_TRY(&d->lib))
        return false;
    jpeg_create_decompress(&d->z);
    return true;
}

static tg_status jpeg_open(const tgi_packing *p, void **state, tgi_err *err)
{
    decoder *d = tgi_calloc(TGI_TAG_IO, 1, sizeof *d);
    if (d && !(d->memory = tgi_malloc(TGI_TAG_IO, memory_bytes(p)))) {
        tgi_free(d);
        d = NULL;
    }
    if (!d || !create(d)) {
        if (d)
            jpeg_close(d);
        return tgi_fail(err, TG_E_NOMEM, "no memory for a JPEG decoder of %zu bytes",
                        jpeg_bytes(p));
    }
    const size_t rows = tgi_jpeg_rows_bytes(p->width);
    uint8_t *block = d->memory + (64 - (uintptr_t)d->memory % 64) % 64;
    tgi_jpeg_memory(&d->lib, (j_common_ptr)&d->z, block, rows);
    d->packing = *p;
    d->packing.tables = block + rows;
    if (p->n_tables)
        memcpy(block + rows, p->tables, p->n_tables);
    d->source = (struct jpeg_source_mgr){.init_source = source_nothing,
                                         .fill_input_buffer = source_more,
                                         .skip_input_data = source_skip,
                                         .resync_to_restart = jpeg_resync_to_restart,
                                         .term_source = source_nothing};
    d->z.src = &d->source;
    *state = d;
    return TG_OK;
}

static void jpeg_begin(void *state)
{
    decoder *d = state;
    tgi_jpeg_reset(&d->lib, (j_common_ptr)&d->z);
    d->at = d->packing.n_tables ? TABLES : HEADER;
    d->skip = 0;
    d->last = false;
}

/* JPEGTables: a JPEG without an image, from memory. */
static tg_status read_tables(decoder *d, tgi_err *err)
{
    const struct jpeg_source_mgr pieces = d->source;
    const bool last = d->last;
    d->source.next_input_byte = d->packing.tables;
    d->source.bytes_in_buffer = d->packing.n_tables;
    d->last = true;
    const int rc = jpeg_read_header(&d->z, FALSE);
    d->source = pieces;
    d->last = last;
    d->skip = 0;
    d->at = HEADER;
    return rc == JPEG_HEADER_TABLES_ONLY
               ? TG_OK
               : tgi_fail(err, TG_E_FORMAT, "JPEGTables hold an image");
}

static void choose_colours(decoder *d)
{
    struct jpeg_decompress_struct *z = &d->z;
    const bool marked = z->saw_JFIF_marker || (z->saw_Adobe_marker && z->Adobe_transform == 1);
    const bool rgb = d->packing.photometric == TGI_TIFF_RGB;
    z->out_color_space = z->jpeg_color_space = JCS_UNKNOWN;
    if (z->num_components == 3 &&
        (d->packing.photometric == TGI_TIFF_YCBCR || (rgb && marked))) {
        z->jpeg_color_space = JCS_YCbCr;
        z->out_color_space = JCS_RGB;
    } else if (z->num_components == 4 && z->saw_Adobe_marker && z->Adobe_transform == 2) {
        z->jpeg_color_space = JCS_YCCK;
        z->out_color_space = JCS_CMYK;
    }
}

/* The header is there: is it a block of this page? */
static tg_status check_header(decoder *d, tgi_err *err)
{
    const struct jpeg_decompress_struct *z = &d->z;
    const tgi_packing *p = &d->packing;
    if (z->image_width != p->width || (uint32_t)z->num_components != p->samples)
        return tgi_fail(err, TG_E_FORMAT,
                        "a JPEG of %u columns and %d samples in a block of %u and %u",
                        z->image_width, z->num_components, p->width, p->samples);
    if (jpeg_has_multiple_scans(&d->z))
        return tgi_fail(err, TG_E_UNSUPPORTED, "%s JPEG inside a TIFF is not supported",
                        z->progressive_mode ? "progressive" : "multi-scan");
    if (z->arith_code)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "JPEG with arithmetic coding inside a TIFF is not supported");
    choose_colours(d);
    d->at = START;
    return TG_OK;
}

/* Show so many bytes of the piece, or all there are. */
static void show(decoder *d, size_t most)
{
    const size_t all = d->source.bytes_in_buffer + d->behind;
    d->source.bytes_in_buffer = most < all ? most : all;
    d->behind = all - d->source.bytes_in_buffer;
}

/* One row. Returns 0: not all of its bytes are there. */
static bool read_row(decoder *d, uint8_t *row)
{
    JSAMPROW at = row;
    for (;;) {
        const JOCTET *from = d->source.next_input_byte;
        show(d, TGI_JPEG_CAREFUL * (size_t)d->z.blocks_in_MCU);
        if (jpeg_read_scanlines(&d->z, &at, 1) == 1)
            return true;
        if (d->behind && d->source.next_input_byte == from) {
            show(d, SIZE_MAX);
            if (jpeg_read_scanlines(&d->z, &at, 1) == 1)
                return true;
        }
        if (d->source.next_input_byte == from)
            return false;
    }
}

static void read_rows(decoder *d, tgi_pieces *io)
{
    const size_t row = (size_t)d->packing.width * d->packing.samples;
    while (io->room >= row && d->z.output_scanline < d->z.output_height) {
        if (!read_row(d, io->dst))
            return;
        io->dst += row;
        io->room -= row;
    }
    if (d->z.output_scanline == d->z.output_height)
        d->at = DONE;
}

/* From where it stopped to where the piece or the room ends. */
static tg_status advance(decoder *d, tgi_pieces *io, tgi_err *err)
{
    if (d->at == TABLES)
        TGI_TRY(read_tables(d, err));
    if (d->at == HEADER) {
        if (jpeg_read_header(&d->z, TRUE) == JPEG_SUSPENDED)
            return TG_OK;
        TGI_TRY(check_header(d, err));
    }
    if (d->at == START) {
        if (!jpeg_start_decompress(&d->z))
            return TG_OK;
        d->at = ROWS;
    }
    if (d->at == ROWS)
        read_rows(d, io);
    return TG_OK;
}

static tg_status guarded(decoder *d, tgi_pieces *io, tgi_err *err)
{
    if (TGI_JPEG_TRY(&d->lib))
        return d->lib.starved
                   ? tgi_fail(err, TG_E_UNSUPPORTED,
                              "JPEG data: sampling factors that need more than %zu bytes",
                              d->lib.cap)
                   : tgi_fail(err, TG_E_FORMAT, "JPEG data: %s", d->lib.text);
    return advance(d, io, err);
}

static tg_status jpeg_more(void *state, tgi_pieces *io, tgi_err *err)
{
    decoder *d = state;
    const uint8_t *end = io->src + io->n;
    const size_t skip = d->skip < io->n ? d->skip : io->n;
    d->skip -= skip;
    d->last = io->n == 0;
    d->source.next_input_byte = io->src + skip;
    d->source.bytes_in_buffer = io->n - skip;
    const tg_status st = guarded(d, io, err);
    if (!d->last) { /* else it may stand in the end mark that was made up */
        io->n = d->source.bytes_in_buffer + d->behind;
        io->src = end - io->n;
    }
    d->behind = 0;
    io->ended = d->at == DONE;
    if (st == TG_OK && d->lib.damaged)
        return tgi_fail(err, TG_E_FORMAT, "JPEG data: %s", d->lib.text);
    return st;
}

const tgi_codec tgi_codec_jpeg = {.name = "JPEG",
                                  .fuzzed = TGI_FUZZED,
                                  .open = jpeg_open,
                                  .close = jpeg_close,
                                  .bytes = jpeg_bytes,
                                  .begin = jpeg_begin,
                                  .more = jpeg_more,
                                  .picture = true,
                                  .turns = true};

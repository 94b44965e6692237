/* tiff_form.c - bits to samples, byte order, predictors.
 *
 * Bit depths that are whole bytes (24) follow the byte order of the file; all others are one
 * stream of bits, the most significant first, in both orders. Rows begin on a whole byte. */
#include "io/tiff_form.h"

#include "engine/base/mem.h"
#include "io/bytes.h"
#include "io/predictor.h"

#include <string.h>

#define TABLES_CAP ((size_t)1 << 17) /* JPEGTables: four tables of each kind take 2 KiB */

tgi_form tgi_form_of(const tgi_tiff_page *p, bool big_endian)
{
    const size_t inner = p->planar ? 1 : p->samples;
    const bool picture = tgi_unpack_is_picture(p->codec);
    return (tgi_form){
        .bits = p->bits,
        .predictor = picture ? 1 : p->predictor,
        .swap = big_endian != TGI_HOST_BIG && p->sample_bytes > 1 &&
                !tgi_unpack_is_native(p->codec),
        .big_endian = big_endian,
        .is_signed = p->format == 2,
        .is_float = p->format == 3,
        .packed = p->bits != 8 * p->sample_bytes,
        .elements = (size_t)p->block_w * inner,
        .inner = inner,
        .sample_bytes = p->sample_bytes,
        .stored_row = p->stored_row,
        .row_bytes = p->row_bytes,
    };
}

tg_status tgi_packing_of(const tgi_tiff_page *p, bool big_endian, const tgi_rfile *f,
                         tgi_packing *out, uint8_t **tables, tgi_err *err)
{
    *out = (tgi_packing){.compression = p->codec,
                         .stored_as = p->compression,
                         .ycbcr = p->ycbcr,
                         .fill_order = p->fill_order,
                         .photometric = p->photometric,
                         .fax_options = p->fax_options,
                         .width = (uint32_t)p->block_w, /* pictures: <= 65500 */
                         .samples = p->planar ? 1 : p->samples,
                         .bits = p->bits,
                         .format = p->format,
                         .extra = p->last_extra,
                         .lerc = {p->lerc[0], p->lerc[1]},
                         .big_endian = big_endian,
                         .one_more = p->photoshop,
                         .strips = p->n_blocks,
                         .file = f,
                         .block_bytes = p->block_bytes};
    if (p->compression != TGI_TIFF_JPEG || !p->jpeg_tables.count)
        return TG_OK;
    const size_t n = (size_t)p->jpeg_tables.count;
    if (n > TABLES_CAP)
        return tgi_fail(err, TG_E_FORMAT, "JPEGTables of %zu bytes", n);
    if (!(*tables = tgi_malloc(TGI_TAG_IO, n)))
        return tgi_fail(err, TG_E_NOMEM, "no memory for JPEGTables of %zu bytes", n);
    out->tables = *tables;
    out->n_tables = n;
    return tgi_rfile_read(f, p->jpeg_tables.pos, *tables, n, err);
}

tgi_packing tgi_packing_whole(const tgi_packing *p)
{
    tgi_packing whole = *p;
    whole.whole = true;
    if (tgi_unpack_has_history(p->compression) == TGI_HISTORY_STREAMS)
        whole.history = 0;
    return whole;
}

/* ---- Packed bits ---- */

static void put_sample(uint8_t *dst, size_t i, uint32_t v, size_t size)
{
    const uint16_t v16 = (uint16_t)v;
    if (size == 1)
        dst[i] = (uint8_t)v;
    else if (size == 2)
        memcpy(dst + 2 * i, &v16, 2);
    else
        memcpy(dst + 4 * i, &v, 4);
}

static uint32_t extend(const tgi_form *f, uint32_t v)
{
    if (!f->is_signed || f->bits < 1)
        return v;
    const uint32_t top = UINT32_C(1) << (f->bits - 1);
    return (v ^ top) - top;
}

static void unpack_bits(const tgi_form *f, const uint8_t *src, uint8_t *row)
{
    const uint32_t mask = (UINT32_C(1) << f->bits) - 1; /* packed: at most 31 bits */
    uint64_t hold = 0;
    unsigned have = 0;
    for (size_t i = 0; i < f->elements; i++) {
        for (; have < f->bits; have += 8)
            hold = hold << 8 | *src++;
        have -= f->bits;
        put_sample(row, i, extend(f, (uint32_t)(hold >> have) & mask), f->sample_bytes);
    }
}

/* A number of 24 bits, a sign, 7 of exponent, 16 of fraction, as float32, which holds each:
 * its smallest, 2^-78, is a normal number there. */
static uint32_t widen_24(uint32_t v)
{
    const uint32_t sign = v >> 23 << 31, exponent = v >> 16 & 127, fraction = v & 0xffff;
    if (exponent == 127)
        return sign | UINT32_C(255) << 23 | fraction << 7;
    if (exponent)
        return sign | (exponent + 127 - 63) << 23 | fraction << 7;
    const float f = (float)fraction * 0x1p-78F;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return sign | bits;
}

static void unpack_24(const tgi_form *f, const uint8_t *src, uint8_t *row)
{
    for (size_t i = 0; i < f->elements; i++, src += 3) {
        const uint32_t a = src[0], b = src[1], c = src[2];
        const uint32_t v = f->big_endian ? a << 16 | b << 8 | c : c << 16 | b << 8 | a;
        put_sample(row, i, f->is_float ? widen_24(v) : extend(f, v), 4);
    }
}

/* ---- Predictors ---- */

/* Bytes were split into planes, most significant first, whatever the file's order. */
static void float_row(uint8_t *row, size_t n, size_t size, size_t stride, uint8_t *tmp)
{
    tgi_sum_row(row, n * size, 1, stride);
    memcpy(tmp, row, n * size);
    for (size_t b = 0; b < size; b++) {
        const size_t place = TGI_HOST_BIG ? b : size - 1 - b;
        for (size_t i = 0; i < n; i++)
            row[i * size + place] = tmp[b * n + i];
    }
}

/* ---- Rows ---- */

void tgi_form_row(const tgi_form *f, const uint8_t *stored, uint8_t *row, uint8_t *tmp)
{
    if (f->packed) {
        if (f->bits == 24)
            unpack_24(f, stored, row);
        else
            unpack_bits(f, stored, row);
    } else if (f->predictor == 3) {
        float_row(row, f->elements, f->sample_bytes, f->inner, tmp);
    } else {
        if (f->swap)
            tgi_swap_copy(row, row, f->elements, f->sample_bytes);
        if (f->predictor == 2)
            tgi_sum_row(row, f->elements, f->sample_bytes, f->inner);
    }
}

uint8_t *tgi_form_place(const tgi_form *f, uint8_t *block, size_t rows)
{
    return block + rows * (f->row_bytes - f->stored_row);
}

/* Packed rows stand at the end of the block and become longer from the first on: row r ends
 * where the packed row r + 1 begins, or before. */
void tgi_form_block(const tgi_form *f, uint8_t *block, size_t rows, uint8_t *tmp)
{
    const uint8_t *stored = tgi_form_place(f, block, rows);
    if (!f->packed && f->predictor < 2 && !f->swap)
        return;
    for (size_t r = 0; r < rows; r++) {
        uint8_t *row = block + r * f->row_bytes;
        if (f->packed)
            memcpy(tmp, stored + r * f->stored_row, f->stored_row);
        tgi_form_row(f, f->packed ? tmp : row, row, tmp);
    }
}

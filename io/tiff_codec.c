/* tiff_codec.c - the table of codecs, and predictors.
 *
 * Why not libtiff's decoders: they are reachable only through a TIFF handle, which parses the
 * directories a second time (with its own allocations and limits) and keeps one directory per
 * handle; random access over a million pages through it is slow, and its memory cannot be
 * planned. LZW and PackBits are a page of code each when bounds are checked on every step;
 * libtiff stays the oracle in the tests, which read back what it wrote.
 * Source: TIFF 6.0 section 14 (differencing); Technical Note 3. */
#include "io/tiff_codec.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/bytes.h"
#include "io/tiff_ifd.h"

#include <string.h>

struct tgi_unpack {
    const tgi_codec *codec;
    void *state;
};

/* ---- The table ---- */

static const tgi_codec *codec_of(uint32_t compression)
{
    switch (compression) {
    case TGI_TIFF_LZW:
        return &tgi_codec_lzw;
    case TGI_TIFF_PACKBITS:
        return &tgi_codec_packbits;
    case TGI_TIFF_DEFLATE:
    case TGI_TIFF_DEFLATE_OLD:
        return &tgi_codec_zlib;
    case TGI_TIFF_ZSTD:
        return &tgi_codec_zstd;
    default:
        return NULL;
    }
}

tg_status tgi_unpack_open(uint32_t compression, size_t history, tgi_unpack **out, tgi_err *err)
{
    const tgi_codec *codec = codec_of(compression);
    if (!codec)
        return tgi_fail(err, TG_E_UNSUPPORTED, "this build cannot decode compression %u (%s)",
                        compression, tgi_tiff_compression_name(compression));
    tgi_unpack *u = tgi_calloc(TGI_TAG_IO, 1, sizeof *u);
    if (!u)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a decoder");
    u->codec = codec;
    const tg_status st = codec->open(history, &u->state, err);
    if (st != TG_OK) {
        tgi_free(u);
        return st;
    }
    *out = u;
    return TG_OK;
}

void tgi_unpack_close(tgi_unpack **u)
{
    if (!*u)
        return;
    (*u)->codec->close((*u)->state);
    tgi_free(*u);
    *u = NULL;
}

size_t tgi_unpack_bytes(uint32_t compression, size_t history)
{
    const tgi_codec *codec = codec_of(compression);
    return tgi_sat_add(sizeof(tgi_unpack), codec && codec->bytes ? codec->bytes(history) : 0);
}

bool tgi_unpack_has_history(uint32_t compression)
{
    const tgi_codec *codec = codec_of(compression);
    return codec && codec->history;
}

size_t tgi_unpack_history(uint32_t compression, const uint8_t *head, size_t n)
{
    return codec_of(compression)->history(head, n);
}

const char *tgi_unpack_name(const tgi_unpack *u)
{
    return u->codec->name;
}

void tgi_unpack_begin(tgi_unpack *u)
{
    u->codec->begin(u->state);
}

tg_status tgi_unpack_more(tgi_unpack *u, tgi_pieces *io, tgi_err *err)
{
    return u->codec->more(u->state, io, err);
}

tg_status tgi_unpack_run(tgi_unpack *u, const uint8_t *src, size_t n, uint8_t *dst, size_t cap,
                         size_t want, tgi_err *err)
{
    size_t got;
    if (u->codec->whole) {
        TGI_TRY(u->codec->whole(u->state, src, n, dst, cap, &got, err));
    } else {
        tgi_pieces io = {.src = src, .n = n, .dst = dst, .room = want};
        u->codec->begin(u->state);
        TGI_TRY(u->codec->more(u->state, &io, err));
        got = want - io.room;
    }
    return got >= want ? TG_OK
                       : tgi_fail(err, TG_E_FORMAT, "%s data ends after %zu of %zu bytes",
                                  u->codec->name, got, want);
}

/* ---- Predictors ---- */

/* Running sums that wrap, as the format wants; memcpy keeps alignment out of it. */
#define ACCUMULATE(T)                                                                          \
    for (size_t i = stride; i < n; i++) {                                                      \
        T a, b;                                                                                \
        memcpy(&a, row + (i - stride) * sizeof(T), sizeof(T));                                 \
        memcpy(&b, row + i * sizeof(T), sizeof(T));                                            \
        b = (T)(a + b);                                                                        \
        memcpy(row + i * sizeof(T), &b, sizeof(T));                                            \
    }

static void sum_row(uint8_t *row, size_t n, size_t size, size_t stride)
{
    if (size == 1)
        ACCUMULATE(uint8_t)
    else if (size == 2)
        ACCUMULATE(uint16_t)
    else if (size == 4)
        ACCUMULATE(uint32_t)
    else
        ACCUMULATE(uint64_t)
}

/* Bytes were split into planes, most significant first, whatever the file's order. */
static void float_row(uint8_t *row, size_t n, size_t size, size_t stride, uint8_t *tmp)
{
    sum_row(row, n * size, 1, stride);
    memcpy(tmp, row, n * size);
    for (size_t b = 0; b < size; b++) {
        const size_t place = TGI_HOST_BIG ? b : size - 1 - b;
        for (size_t i = 0; i < n; i++)
            row[i * size + place] = tmp[b * n + i];
    }
}

void tgi_unpredict(uint32_t predictor, bool swap, uint8_t *data, size_t rows, size_t n,
                   size_t size, size_t stride, uint8_t *tmp)
{
    for (size_t r = 0; r < rows; r++) {
        uint8_t *row = data + r * n * size;
        if (predictor == 3) {
            float_row(row, n, size, stride, tmp);
            continue;
        }
        if (swap)
            tgi_swap_copy(row, row, n, size);
        if (predictor == 2)
            sum_row(row, n, size, stride);
    }
}

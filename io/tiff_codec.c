/* tiff_codec.c - LZW and PackBits of our own, predictors, and the table of codecs.
 *
 * Why not libtiff's decoders: they are reachable only through a TIFF handle, which parses the
 * directories a second time (with its own allocations and limits) and keeps one directory per
 * handle; random access over a million pages through it is slow, and its memory cannot be
 * planned. Both formats are a page of code when bounds are checked on every step; libtiff stays
 * the oracle in the tests, which read back what it wrote.
 *
 * The LZW table keeps no strings: each entry is the place in the output where its string was
 * first written, and a new entry is the previous string plus the byte that followed it, which
 * lies right behind it in the output.
 * Source: TIFF 6.0 sections 9 (PackBits), 13 (LZW), 14 (differencing); Technical Note 3. */
#include "io/tiff_codec.h"

#include "engine/base/mem.h"
#include "io/bytes.h"
#include "io/tiff_ifd.h"

#include <string.h>

struct tgi_unpack {
    const tgi_codec *codec;
    void *state;
};

/* ---- PackBits ---- */

static tg_status packbits_open(void **state, tgi_err *err)
{
    (void)err;
    *state = NULL;
    return TG_OK;
}

static void packbits_close(void *state)
{
    (void)state;
}

static size_t packbits_bytes(const void *state)
{
    (void)state;
    return 0;
}

static tg_status packbits_run(void *state, const uint8_t *src, size_t n, uint8_t *dst,
                              size_t cap, size_t want, tgi_err *err)
{
    size_t i = 0, o = 0;
    (void)state;
    (void)cap;
    while (o < want && i < n) {
        const uint8_t c = src[i++];
        if (c == 128)
            continue; /* no operation */
        size_t len = c < 128 ? c + 1u : 257u - c;
        if (len > want - o)
            len = want - o; /* some writers pad the last run */
        if (c < 128) {
            if (len > n - i)
                break;
            memcpy(dst + o, src + i, len);
            i += c + 1u;
        } else {
            if (i == n)
                break;
            memset(dst + o, src[i++], len);
        }
        o += len;
    }
    return o == want ? TG_OK
                     : tgi_fail(err, TG_E_FORMAT,
                                "PackBits data ends after %zu of %zu "
                                "bytes",
                                o, want);
}

static const tgi_codec packbits = {packbits_open, packbits_close, packbits_bytes, packbits_run};

/* ---- LZW ---- */

enum { CLEAR = 256, END = 257, FIRST = 258, TABLE = 4096 };

typedef struct lzw {
    size_t at[TABLE]; /* where the string starts in the output */
    size_t len[TABLE];
} lzw;

typedef struct bits {
    const uint8_t *p;
    size_t n, at;
    uint64_t acc;
    unsigned have;
} bits;

/* Next code of `width` bits, most significant first; false at the end of the data. */
static inline bool next_code(bits *b, unsigned width, unsigned *out)
{
    while (b->have < width) {
        if (b->at == b->n)
            return false;
        b->acc = b->acc << 8 | b->p[b->at++];
        b->have += 8;
    }
    b->have -= width;
    *out = (unsigned)(b->acc >> b->have) & ((1u << width) - 1);
    return true;
}

static tg_status lzw_open(void **state, tgi_err *err)
{
    *state = tgi_malloc(TGI_TAG_IO, sizeof(lzw));
    return *state ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory for an LZW table");
}

static size_t lzw_bytes(const void *state)
{
    (void)state;
    return sizeof(lzw);
}

/* Forward and byte by byte when the string overlaps what it writes (the KwKwK case). */
static inline void emit(uint8_t *dst, size_t to, size_t from, size_t len)
{
    if (to - from >= len)
        memcpy(dst + to, dst + from, len);
    else
        for (size_t i = 0; i < len; i++)
            dst[to + i] = dst[from + i];
}

static tg_status lzw_run(void *state, const uint8_t *src, size_t n, uint8_t *dst, size_t cap,
                         size_t want, tgi_err *err)
{
    lzw *t = state;
    bits b = {.p = src, .n = n};
    unsigned width = 9, next = FIRST, code = 0;
    size_t o = 0, prev_at = 0, prev_len = 0; /* prev_len 0: just cleared */
    (void)cap;
    if (n >= 2 && src[0] == 0 && (src[1] & 1))
        return tgi_fail(err, TG_E_UNSUPPORTED, "LZW in the old bit order is not supported");
    while (o < want && next_code(&b, width, &code) && code != END) {
        size_t len = 1;
        if (code == CLEAR) {
            width = 9;
            next = FIRST;
            prev_len = 0;
            continue;
        }
        if (code > END && (code > next || !prev_len || (code == next && next == TABLE)))
            return tgi_fail(err, TG_E_FORMAT, "LZW code %u where %u is the largest", code,
                            next);
        if (prev_len && next < TABLE) { /* the previous string and the byte that comes now */
            t->at[next] = prev_at;
            t->len[next] = prev_len + 1;
            next++;
        }
        if (code > END) {
            len = t->len[code] < want - o ? t->len[code] : want - o;
            emit(dst, o, t->at[code], len);
        } else {
            dst[o] = (uint8_t)code;
        }
        prev_at = o;
        prev_len = len;
        o += len;
        /* "Early change": the width grows one code before it must. */
        if (next + 1 >= 1u << width && width < 12)
            width++;
    }
    return o == want
               ? TG_OK
               : tgi_fail(err, TG_E_FORMAT, "LZW data ends after %zu of %zu bytes", o, want);
}

static const tgi_codec lzw_codec = {lzw_open, tgi_free, lzw_bytes, lzw_run};

/* ---- The table ---- */

static const tgi_codec *codec_of(uint32_t compression)
{
    switch (compression) {
    case TGI_TIFF_LZW:
        return &lzw_codec;
    case TGI_TIFF_PACKBITS:
        return &packbits;
    case TGI_TIFF_DEFLATE:
    case TGI_TIFF_DEFLATE_OLD:
        return &tgi_codec_zlib;
    case TGI_TIFF_ZSTD:
        return &tgi_codec_zstd;
    default:
        return NULL;
    }
}

tg_status tgi_unpack_open(uint32_t compression, tgi_unpack **out, tgi_err *err)
{
    const tgi_codec *codec = codec_of(compression);
    if (!codec)
        return tgi_fail(err, TG_E_UNSUPPORTED, "this build cannot decode compression %u (%s)",
                        compression, tgi_tiff_compression_name(compression));
    tgi_unpack *u = tgi_calloc(TGI_TAG_IO, 1, sizeof *u);
    if (!u)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a decoder");
    u->codec = codec;
    const tg_status st = codec->open(&u->state, err);
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

size_t tgi_unpack_bytes(const tgi_unpack *u)
{
    return sizeof *u + u->codec->bytes(u->state);
}

tg_status tgi_unpack_run(tgi_unpack *u, const uint8_t *src, size_t n, uint8_t *dst, size_t cap,
                         size_t want, tgi_err *err)
{
    return u->codec->run(u->state, src, n, dst, cap, want, err);
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

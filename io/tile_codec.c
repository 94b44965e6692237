/* tile_codec.c - one raw tile to the bytes that stand in the file: predictor, then codec.
 *
 * A worker's state lies in one block: [tgi_tile_codec | one row for predictor 3 | codec state].
 * Every codec starts anew for each tile, so a tile's bytes depend on its pixels alone.
 * Source: TIFF 6.0 section 14 (predictor 2), TIFF Technical Note 3 (predictor 3). */
#include "io/deflate.h"
#include "io/lzw.h"
#include "io/predictor.h"
#include "io/sink.h"
#include "io/zstd_codec.h"

#include <stdio.h>
#include <string.h>

struct tgi_tile_codec {
    const tgi_sink_layout *layout;
    uint8_t *row; /* predictor 3: the bytes of one row while they are put in order */
    void *state;
};

static size_t up64(size_t n)
{
    return (n + 63) / 64 * 64;
}

static size_t row_bytes(const tgi_sink_layout *l)
{
    return (size_t)l->tile_w * l->pixel_bytes;
}

static size_t state_bytes(const tgi_sink_layout *l)
{
    switch (l->compression) {
    case TGI_COMPRESSION_DEFLATE:
        return tgi_deflate_state_bytes();
    case TGI_COMPRESSION_ZSTD:
        return tgi_zstd_state_bytes(l->level, l->tile_bytes);
    case TGI_COMPRESSION_LZW:
        return tgi_lzw_state_bytes();
    case TGI_COMPRESSION_NONE:
        break;
    }
    return 0;
}

size_t tgi_tile_codec_bytes(const tgi_sink_layout *l)
{
    return up64(sizeof(tgi_tile_codec)) + up64(row_bytes(l)) + up64(state_bytes(l));
}

tg_status tgi_tile_codec_open(const tgi_sink_layout *l, void *memory, tgi_tile_codec **out,
                              tgi_err *err)
{
    char *p = memory;
    tgi_tile_codec *c = memory;
    c->layout = l;
    c->row = (uint8_t *)p + up64(sizeof *c);
    c->state = p + up64(sizeof *c) + up64(row_bytes(l));
    if (l->compression == TGI_COMPRESSION_DEFLATE)
        c->state = tgi_deflate_open(c->state, l->level);
    else if (l->compression == TGI_COMPRESSION_ZSTD)
        c->state = tgi_zstd_open(c->state, l->level, l->tile_bytes);
    if (!c->state)
        return tgi_fail(err, TG_E_INTERNAL, "%s does not start in the %zu bytes booked for it",
                        tgi_compression_name(l->compression), state_bytes(l));
    *out = c;
    return TG_OK;
}

static void predict_integers(const tgi_sink_layout *l, void *raw)
{
    const size_t samples = (size_t)l->samples, n = (size_t)l->tile_w * samples;
    for (int64_t y = 0; y < l->tile_h; y++)
        tgi_difference_row((uint8_t *)raw + (size_t)y * row_bytes(l), n,
                           l->pixel_bytes / samples, samples);
}

/* Row by row: the most significant bytes of all values, then the next ones, ...; then
 * differences of bytes. Exponents of neighbours are alike, so this compresses where values
 * would not. */
static void predict_floats(tgi_tile_codec *c, void *raw)
{
    const tgi_sink_layout *l = c->layout;
    const size_t samples = (size_t)l->samples, n = (size_t)l->tile_w * samples;
    const size_t width = l->pixel_bytes / samples;
    for (int64_t y = 0; y < l->tile_h; y++) {
        uint8_t *row = (uint8_t *)raw + (size_t)y * row_bytes(l);
        for (size_t b = 0; b < width; b++) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
            const size_t plane = width - 1 - b;
#else
            const size_t plane = b;
#endif
            for (size_t i = 0; i < n; i++)
                c->row[plane * n + i] = row[i * width + b];
        }
        memcpy(row, c->row, n * width);
        tgi_difference_row(row, n * width, 1, samples);
    }
}

tg_status tgi_tile_encode(tgi_tile_codec *c, void *raw, void *dst, size_t *n, tgi_err *err)
{
    const tgi_sink_layout *l = c->layout;
    if (l->predictor == 2)
        predict_integers(l, raw);
    else if (l->predictor == 3)
        predict_floats(c, raw);
    size_t got = 0;
    switch (l->compression) {
    case TGI_COMPRESSION_NONE:
        memcpy(dst, raw, l->tile_bytes);
        got = l->tile_bytes;
        break;
    case TGI_COMPRESSION_DEFLATE:
        got = tgi_deflate(c->state, raw, l->tile_bytes, dst, l->tile_bound);
        break;
    case TGI_COMPRESSION_ZSTD:
        got = tgi_zstd(c->state, raw, l->tile_bytes, dst, l->tile_bound);
        break;
    case TGI_COMPRESSION_LZW:
        got = tgi_lzw(c->state, raw, l->tile_bytes, dst);
        break;
    }
    if (!got || got > l->tile_bound)
        return tgi_fail(err, TG_E_INTERNAL, "%s wrote past its bound of %zu bytes",
                        tgi_compression_name(l->compression), l->tile_bound);
    *n = got;
    return TG_OK;
}

const char *tgi_tile_codec_text(const tgi_sink_layout *l, char *buf, size_t cap)
{
    const char *name = "none", *version = "";
    int level = 0;
    if (l->compression == TGI_COMPRESSION_DEFLATE) {
        name = "zlib ";
        version = tgi_deflate_version();
        level = l->level ? l->level : 6;
    } else if (l->compression == TGI_COMPRESSION_ZSTD) {
        name = "zstd ";
        version = tgi_zstd_version();
        level = l->level ? l->level : TGI_ZSTD_LEVEL;
    } else if (l->compression == TGI_COMPRESSION_LZW) {
        name = "lzw";
    }
    snprintf(buf, cap, "%s%s level %d predictor %d", name, version, level, l->predictor);
    return buf;
}

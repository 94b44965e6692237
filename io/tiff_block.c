/* tiff_block.c - where the strips and tiles of a TIFF lie: every offset and count is compared
 * with the file's size before a byte is read, once at open and again at reading. */
#include "engine/base/arith.h"
#include "io/tiff_source.h"

#define HISTORY_BLOCK ((size_t)1 << 20) /* blocks worth a look at their history */
#define HISTORY_MAX ((size_t)128 << 20) /* no decoder goes beyond it */

uint64_t tgi_tiff_block_rows(const tgi_tiff_page *p, uint64_t block)
{
    const uint64_t row = block / p->across % p->down * p->block_h;
    if (p->tiled || row + p->block_h <= p->height)
        return p->block_h;
    return p->height - row;
}

/* Offset and bytes of one block, shown to lie in the file and, uncompressed, to be complete. */
static tg_status find_block(const tgi_tiff_source *s, tgi_tiff_lane *l, uint64_t rank,
                            uint64_t block, tgi_tiff_place *out, tgi_err *err)
{
    const tgi_tiff_page *p = &s->index.page;
    const uint64_t need = tgi_tiff_block_rows(p, block) * p->stored_row;
    tgi_tiff_array offsets, counts;
    tgi_tiff_ref_arrays(&s->index, rank, &offsets, &counts);
    TGI_TRY(tgi_tiff_value(&s->file, &l->offsets, &offsets, block, &out->off, err));
    out->count = need;
    if (counts.count)
        TGI_TRY(tgi_tiff_value(&s->file, &l->counts, &counts, block, &out->count, err));
    const char *kind = p->tiled ? "tile" : "strip";
    if (!out->count || !out->off)
        return tgi_fail(err, TG_E_FORMAT,
                        "%s %llu of page %llu has no data: a sparse or "
                        "interrupted file",
                        kind, (unsigned long long)block, (unsigned long long)rank);
    if (p->codec == TGI_TIFF_NONE) {
        /* Byte counts are 32 bits in a classic file: one larger strip keeps the low half. */
        if (out->count < need && out->count != (need & UINT32_MAX))
            return tgi_fail(err, TG_E_FORMAT, "%s %llu of page %llu has %llu bytes, needs %llu",
                            kind, (unsigned long long)block, (unsigned long long)rank,
                            (unsigned long long)out->count, (unsigned long long)need);
        out->count = need;
    }
    if (out->off > s->file.f.size || out->count > s->file.f.size - out->off)
        return tgi_fail(err, TG_E_FORMAT,
                        "%s %llu of page %llu (%llu bytes at %llu) lies past "
                        "the end of the file (%llu)",
                        kind, (unsigned long long)block, (unsigned long long)rank,
                        (unsigned long long)out->count, (unsigned long long)out->off,
                        (unsigned long long)s->file.f.size);
    return TG_OK;
}

uint64_t tgi_tiff_rank(const tgi_tiff_source *s, int64_t plane)
{
    return s->series.rank ? s->series.rank[plane] : (uint64_t)plane;
}

tg_status tgi_tiff_locate(const tgi_tiff_source *s, tgi_tiff_lane *l, int64_t plane,
                          uint64_t block, tgi_tiff_place *out, tgi_err *err)
{
    const tgi_tiff_page *p = &s->index.page;
    if (!s->series.contiguous)
        return find_block(s, l, tgi_tiff_rank(s, plane), block, out, err);
    /* Strips of all sample planes, then all planes, follow each other without gaps. */
    const uint64_t sample = block / p->down, row = block % p->down * p->block_h;
    out->off = s->series.base + (uint64_t)plane * p->plane_bytes +
               (sample * p->height + row) * p->row_bytes;
    out->count = tgi_tiff_block_rows(p, block) * p->row_bytes;
    return TG_OK;
}

/* The most that the decoder of this block asks for. */
static tg_status look_at_history(tgi_tiff_source *s, const tgi_tiff_place *at, tgi_err *err)
{
    const size_t n = at->count < TGI_CODEC_HEAD ? (size_t)at->count : TGI_CODEC_HEAD;
    const uint8_t *head;
    TGI_TRY(tgi_window_get(&s->file.win, &s->file.f, at->off, n, n, &head, err));
    const size_t h = tgi_unpack_history(&s->packing, head, n);
    if (h > s->packing.history)
        s->packing.history = h < HISTORY_MAX ? h : HISTORY_MAX;
    return TG_OK;
}

/* Every block of every plane once, at open. Honest arrays do not overlap and an offset takes at
 * least two bytes, so there are fewer blocks than half the file's bytes; beyond that the check
 * would only serve a hostile file, and find_block checks again at reading. */
tg_status tgi_tiff_check_blocks(tgi_tiff_source *s, tgi_err *err)
{
    const tgi_tiff_page *p = &s->index.page;
    const tgi_history when = tgi_unpack_has_history(p->codec);
    const bool look = when == TGI_HISTORY_ALWAYS ||
                      (when == TGI_HISTORY_STREAMS && p->block_bytes >= HISTORY_BLOCK);
    uint64_t left = s->file.f.size / 2, most = 0;
    tgi_tiff_place at;
    if (s->series.contiguous)
        return TG_OK;
    for (int64_t plane = 0; plane < s->info.n_planes; plane++)
        for (uint64_t b = 0; b < p->n_blocks && left; b++, left--) {
            tgi_err bad = {0};
            const tg_status st =
                find_block(s, &s->lanes[0], tgi_tiff_rank(s, plane), b, &at, &bad);
            if (st == TG_E_FORMAT && s->on_bad)
                continue; /* told when it is read */
            if (st != TG_OK)
                return tgi_fail(err, st, "%s", bad.text);
            most = at.count > most ? at.count : most;
            if (look)
                TGI_TRY(look_at_history(s, &at, err));
        }
    const bool known = p->compression == TGI_TIFF_LZW || p->compression == TGI_TIFF_PACKBITS;
    s->max_packed = tgi_unpack_longest(known ? p->compression : p->codec, p->block_bytes);
    if (left && most < s->max_packed)
        s->max_packed = (size_t)most;
    return TG_OK;
}

uint64_t tgi_tiff_column_of(const tgi_tiff_page *p, uint64_t block)
{
    return block / (p->across * p->down) * p->across + block % p->across;
}

uint64_t tgi_tiff_columns(const tgi_tiff_page *p)
{
    return p->across * (p->planar ? p->samples : 1);
}

/* tiff_read.c - pixels out of an open TIFF. Reading finds the strips or tiles that a box
 * touches:
 *
 *   uncompressed: rows are copied straight from a window on the file,
 *                 whatever the size of the strip; nothing else is touched;
 *   small blocks: decoded whole into a slot of the thread's own cache, one slot for each tile
 *                 of a row of tiles, so reading band after band decodes no tile twice;
 *   large blocks: rows are streamed out of them (tiff_stream.h) by one set of decoders that
 *                 the threads share under a lock: memory does not grow with the strip.
 *
 * A block is all there or not at all, however it is read: no budget decides which pixels are.
 *
 * Nothing is allocated here. Source: TIFF 6.0; see the other tiff_*.c for theirs. */
#include "engine/base/arith.h"
#include "io/bytes.h"
#include "io/tiff_source.h"

#include <string.h>

/* ---- Copying pixels ---- */

/* n elements, `stride` elements apart in src, to dst, `to` elements apart. */
static void copy_run(uint8_t *dst, size_t to, const uint8_t *src, size_t n, size_t stride,
                     size_t size, bool swap)
{
    if (stride == 1 && to == 1) {
        if (swap)
            tgi_swap_copy(dst, src, n, size);
        else
            memcpy(dst, src, n * size);
        return;
    }
    const size_t step = stride * size, out = to * size;
    switch (size) {
    case 1:
        for (size_t i = 0; i < n; i++)
            dst[i * out] = src[i * step];
        break;
    case 2:
        for (size_t i = 0; i < n; i++)
            memcpy(dst + i * out, src + i * step, 2);
        break;
    case 4:
        for (size_t i = 0; i < n; i++)
            memcpy(dst + i * out, src + i * step, 4);
        break;
    default:
        for (size_t i = 0; i < n; i++)
            memcpy(dst + i * out, src + i * step, 8);
        break;
    }
    for (size_t i = 0; swap && i < n; i++)
        tgi_swap_copy(dst + i * out, dst + i * out, 1, size);
}

/* One call of `read`, with the part of it that one block answers. */
typedef struct request {
    int64_t plane;
    int s0, s1;
    int64_t y0, y1, x0, x1;
    uint8_t *dst;
    size_t row_pitch, sample_pitch; /* in bytes, */
    size_t pixel;                   /* from one pixel to the next in elements */
} request;

static request request_of(int64_t plane, int s0, int s1, void *dst, size_t row_pitch,
                          size_t sample_pitch, size_t size)
{
    const bool together = sample_pitch == TGI_INTERLEAVED;
    return (request){.plane = plane,
                     .s0 = s0,
                     .s1 = s1,
                     .dst = dst,
                     .row_pitch = row_pitch,
                     .sample_pitch = together ? size : sample_pitch,
                     .pixel = together ? (size_t)(s1 - s0) : 1};
}

/* The samples of columns [x0,x1) of one row, lying at `src`, to where the caller wants them.
 * `sample`: which sample plane of a planar page this is. */
static void deliver(const tgi_tiff_source *s, const request *q, uint64_t sample, int64_t y,
                    int64_t x0, int64_t x1, const uint8_t *src, bool swap)
{
    const tgi_tiff_page *p = &s->index.page;
    const size_t size = p->sample_bytes, n = (size_t)(x1 - x0);
    uint8_t *row =
        q->dst + (size_t)(y - q->y0) * q->row_pitch + (size_t)(x0 - q->x0) * q->pixel * size;
    if (p->planar || p->samples == 1) {
        const size_t k = p->planar ? (size_t)sample - (size_t)q->s0 : 0;
        copy_run(row + k * q->sample_pitch, q->pixel, src, n, 1, size, swap);
    } else if (q->pixel == p->samples) { /* as they lie in the file */
        copy_run(row, 1, src, n * p->samples, 1, size, swap);
    } else {
        for (int k = q->s0; k < q->s1; k++)
            copy_run(row + (size_t)(k - q->s0) * q->sample_pitch, q->pixel,
                     src + (size_t)k * size, n, p->samples, size, swap);
    }
}

/* ---- Uncompressed ---- */

/* Where a block lies in its page. */
typedef struct spot {
    uint64_t sample; /* plane of a planar page */
    int64_t y, x;    /* of its first pixel */
    size_t pixel;    /* bytes */
} spot;

static spot spot_of(const tgi_tiff_page *p, uint64_t block)
{
    return (spot){.sample = block / (p->across * p->down),
                  .y = (int64_t)(block / p->across % p->down * p->block_h),
                  .x = (int64_t)(block % p->across * p->block_w),
                  .pixel = p->sample_bytes * (p->planar ? 1 : p->samples)};
}

/* Zeros for rows [y0,y1) x columns [x0,x1). */
static void deliver_zeros(const tgi_tiff_source *s, const request *q, uint64_t sample,
                          int64_t y0, int64_t y1, int64_t x0, int64_t x1)
{
    const tgi_tiff_page *p = &s->index.page;
    const size_t size = p->sample_bytes, n = (size_t)(x1 - x0);
    const int first = p->planar ? (int)sample : q->s0,
              end = p->planar ? (int)sample + 1 : q->s1;
    for (int64_t y = y0; y < y1; y++) {
        uint8_t *row = q->dst + (size_t)(y - q->y0) * q->row_pitch +
                       (size_t)(x0 - q->x0) * q->pixel * size;
        for (int k = first; k < end; k++)
            for (size_t i = 0; i < n; i++)
                memset(row + (size_t)(k - q->s0) * q->sample_pitch + i * q->pixel * size, 0,
                       size);
    }
}

/* A block that cannot be decoded counts as zeros, all of it, if the caller wants that: rows
 * [y0,y1) x columns [x0,x1) are wanted now. */
static tg_status fill_bad(const tgi_tiff_source *s, const request *q, uint64_t block,
                          int64_t y0, int64_t y1, int64_t x0, int64_t x1, tg_status st,
                          const tgi_err *why, tgi_err *err)
{
    const tgi_tiff_page *p = &s->index.page;
    const spot in = spot_of(p, block);
    if (st != TG_E_FORMAT || !s->on_bad)
        return tgi_fail(err, st, "%s", why->text);
    const tgi_bad_region r = {
        .plane = q->plane,
        .sample = p->planar ? (int64_t)in.sample : -1,
        .y0 = in.y,
        .y1 = tgi_min(in.y + (int64_t)tgi_tiff_block_rows(p, block), (int64_t)p->height),
        .x0 = in.x,
        .x1 = tgi_min(in.x + (int64_t)p->block_w, (int64_t)p->width),
        .reason = why->text};
    deliver_zeros(s, q, in.sample, y0, y1, x0, x1);
    return s->on_bad(s->on_bad_arg, &r, err);
}

/* Rows [y0,y1) x columns [x0,x1) of one block, from the file's window, in pieces that fit it.
 */
static tg_status copy_raw(const tgi_tiff_source *s, tgi_tiff_lane *l, const request *q,
                          uint64_t block, int64_t y0, int64_t y1, int64_t x0, int64_t x1,
                          tgi_err *err)
{
    const tgi_tiff_page *p = &s->index.page;
    const spot in = spot_of(p, block);
    const int64_t piece = tgi_max(1, (int64_t)(l->data.cap / in.pixel));
    const bool whole_rows =
        x0 == in.x && x1 == tgi_min(in.x + (int64_t)p->block_w, (int64_t)p->width);
    tgi_tiff_place at;
    TGI_TRY(tgi_tiff_locate(s, l, q->plane, block, &at, err));
    const tgi_file_rows rows = {.off = at.off + (uint64_t)(y0 - in.y) * p->row_bytes +
                                       (uint64_t)(x0 - in.x) * in.pixel,
                                .len = (size_t)(x1 - x0) * in.pixel,
                                .pitch = p->row_bytes,
                                .n = y1 - y0};
    const size_t together = whole_rows ? 0 : tgi_rfile_ahead(&s->file.f, &rows, l->data.cap);
    for (int64_t y = y0; y < y1; y++)
        for (int64_t x = x0; x < x1; x += piece) {
            const int64_t xe = tgi_min(x1, x + piece);
            const size_t len = (size_t)(xe - x) * in.pixel;
            const uint64_t off =
                at.off + (uint64_t)(y - in.y) * p->row_bytes + (uint64_t)(x - in.x) * in.pixel;
            /* Strips usually follow each other: read ahead to the end of the request. */
            const size_t ahead =
                whole_rows ? tgi_sat_mul((size_t)((p->tiled ? y1 : q->y1) - y), p->row_bytes)
                           : together;
            const uint8_t *src;
            TGI_TRY(tgi_window_get(&l->data, &s->file.f, off, len, ahead, &src, err));
            deliver(s, q, in.sample, y, x, xe, src, s->form.swap);
        }
    return TG_OK;
}

/* ---- Compressed ---- */

/* The decoder looks at more than the block: the directory of its page, parsed anew. */
static tg_status place_block(const tgi_tiff_source *s, tgi_tiff_lane *l, int64_t plane,
                             uint64_t block, tgi_err *err)
{
    tgi_tiff_file t = s->file;
    tgi_tiff_page page;
    t.win = l->offsets; /* of this thread alone */
    tg_status st = tgi_tiff_page_parse(&t, s->index.where[tgi_tiff_rank(s, plane)], &page, err);
    l->offsets = t.win;
    if (st == TG_OK)
        st = tgi_tiff_page_layout(&page, s->file.f.size, err);
    if (st != TG_OK)
        return st;
    return tgi_unpack_place(l->unpack, &page, block, err);
}

static tg_status decode_block(const tgi_tiff_source *s, tgi_tiff_lane *l, int64_t plane,
                              uint64_t block, uint8_t *dst, tgi_err *err)
{
    const tgi_tiff_page *p = &s->index.page;
    const size_t rows = (size_t)tgi_tiff_block_rows(p, block), want = rows * p->stored_row;
    uint8_t *stored = tgi_form_place(&s->form, dst, rows);
    const uint8_t *src;
    tgi_tiff_place at;
    TGI_TRY(tgi_tiff_locate(s, l, plane, block, &at, err));
    const size_t n = at.count < s->max_packed ? (size_t)at.count : s->max_packed;
    TGI_TRY(tgi_window_get(&l->data, &s->file.f, at.off, n, n, &src, err));
    const size_t cap = p->block_bytes - (size_t)(stored - dst);
    tg_status st = TG_OK;
    if (tgi_unpack_is_placed(p->codec))
        st = place_block(s, l, plane, block, err);
    tgi_unpack_spare(l->unpack, tgi_sat_mul((size_t)p->written_h - rows, p->stored_row));
    if (st == TG_OK)
        st = tgi_unpack_not_all(tgi_unpack_run(l->unpack, src, n, stored, cap, want, err),
                                at.count, n, err);
    if (st != TG_OK) {
        tgi_err_prefix(err, "plane %lld, %s %llu", (long long)plane,
                       p->tiled ? "tile" : "strip", (unsigned long long)block);
        return st;
    }
    l->decoded += rows * p->row_bytes;
    tgi_form_block(&s->form, dst, rows, l->tmp);
    return TG_OK;
}

/* The decoded block, from its slot. */
static tg_status cached_block(const tgi_tiff_source *s, tgi_tiff_lane *l, int64_t plane,
                              uint64_t block, const uint8_t **out, tgi_err *err)
{
    const tgi_tiff_page *p = &s->index.page;
    const uint64_t turn = (uint64_t)(plane / s->plane_stride % s->planes_at_once);
    const uint64_t column = turn * tgi_tiff_columns(p) + tgi_tiff_column_of(p, block);
    const size_t k = column < s->n_slots ? (size_t)column : s->n_slots - 1;
    uint8_t *data = l->cache + k * p->block_bytes;
    if (l->slots[k].block != block || l->slots[k].plane != (uint64_t)plane) {
        l->slots[k].block = UINT64_MAX;
        TGI_TRY(decode_block(s, l, plane, block, data, err));
        l->slots[k] = (tgi_tiff_slot){(uint64_t)plane, block};
    }
    *out = data;
    return TG_OK;
}

/* Rows out of a large block; the lock is held. They count once the block is proven: behind them
 * where this call takes every row of the block that lies in the image, and fails as a whole;
 * before them where it takes fewer, for nobody tells which call is the last. */
static tg_status copy_streamed(const tgi_tiff_source *s, tgi_tiff_lane *l, const request *q,
                               uint64_t block, int64_t y0, int64_t y1, int64_t x0, int64_t x1,
                               tgi_err *err)
{
    const tgi_tiff_page *p = &s->index.page;
    const spot in = spot_of(p, block);
    tgi_tiff_place at;
    TGI_TRY(tgi_tiff_locate(s, l, q->plane, block, &at, err));
    const tgi_stream_block b = {(uint64_t)q->plane,
                                block,
                                tgi_tiff_column_of(p, block),
                                at.off,
                                at.count,
                                tgi_tiff_block_rows(p, block),
                                p->written_h - tgi_tiff_block_rows(p, block)};
    const int64_t end = tgi_min(in.y + (int64_t)b.rows, (int64_t)p->height);
    const bool whole = y0 == in.y && y1 == end;
    tgi_stream *t = tgi_streams_take(s->streams, &b);
    const uint8_t *row;
    tg_status st = whole ? TG_OK : tgi_stream_prove(s->streams, t, err);
    for (int64_t y = y0; st == TG_OK && y < y1; y++) {
        st = tgi_stream_row(s->streams, t, (uint64_t)(y - in.y), &row, err);
        if (st == TG_OK)
            deliver(s, q, in.sample, y, x0, x1, row + (size_t)(x0 - in.x) * in.pixel, false);
    }
    if (st == TG_OK && whole)
        st = tgi_stream_prove(s->streams, t, err);
    if (st != TG_OK)
        tgi_err_prefix(err, "plane %lld, %s %llu", (long long)q->plane,
                       p->tiled ? "tile" : "strip", (unsigned long long)block);
    return st;
}

static tg_status copy_decoded(const tgi_tiff_source *s, tgi_tiff_lane *l, const request *q,
                              uint64_t block, int64_t y0, int64_t y1, int64_t x0, int64_t x1,
                              tgi_err *err)
{
    const tgi_tiff_page *p = &s->index.page;
    const spot in = spot_of(p, block);
    const uint8_t *data;
    if (s->streams)
        return copy_streamed(s, l, q, block, y0, y1, x0, x1, err);
    TGI_TRY(cached_block(s, l, q->plane, block, &data, err));
    for (int64_t y = y0; y < y1; y++)
        deliver(s, q, in.sample, y, x0, x1,
                data + (size_t)(y - in.y) * p->row_bytes + (size_t)(x0 - in.x) * in.pixel,
                false);
    return TG_OK;
}

/* ---- read ---- */

static tg_status read_blocks(const tgi_tiff_source *s, tgi_tiff_lane *l, const request *q,
                             uint64_t sample, tgi_err *err)
{
    const tgi_tiff_page *p = &s->index.page;
    const int64_t bh = (int64_t)p->block_h, bw = (int64_t)p->block_w;
    for (int64_t by = q->y0 / bh; by * bh < q->y1; by++)
        for (int64_t bx = q->x0 / bw; bx * bw < q->x1; bx++) {
            const uint64_t block = (sample * p->down + (uint64_t)by) * p->across + (uint64_t)bx;
            const int64_t y0 = tgi_max(q->y0, by * bh), y1 = tgi_min(q->y1, (by + 1) * bh);
            const int64_t x0 = tgi_max(q->x0, bx * bw), x1 = tgi_min(q->x1, (bx + 1) * bw);
            tgi_err why = {0};
            const tg_status st = p->raw ? copy_raw(s, l, q, block, y0, y1, x0, x1, &why)
                                        : copy_decoded(s, l, q, block, y0, y1, x0, x1, &why);
            if (st != TG_OK)
                TGI_TRY(fill_bad(s, q, block, y0, y1, x0, x1, st, &why, err));
        }
    return TG_OK;
}

static tg_status read_samples(const tgi_tiff_source *s, tgi_tiff_lane *l, const request *q,
                              tgi_err *err)
{
    if (!s->index.page.planar)
        return read_blocks(s, l, q, 0, err);
    for (int k = q->s0; k < q->s1; k++)
        TGI_TRY(read_blocks(s, l, q, (uint64_t)k, err));
    return TG_OK;
}

tg_status tgi_tiff_read(tgi_source *base, int thread, int64_t plane, int s0, int s1, int64_t y0,
                        int64_t y1, int64_t x0, int64_t x1, void *dst, size_t row_pitch,
                        size_t sample_pitch, tgi_err *err)
{
    tgi_tiff_source *s = (tgi_tiff_source *)base;
    const tgi_image_info *i = &s->info;
    if (thread < 0 || thread >= s->n_lanes || plane < 0 || plane >= i->n_planes || s0 < 0 ||
        s1 > i->samples || y0 < 0 || y1 > i->height || x0 < 0 || x1 > i->width)
        return tgi_fail(err, TG_E_ARG,
                        "a box outside the image: plane %lld, rows %lld:%lld, "
                        "columns %lld:%lld",
                        (long long)plane, (long long)y0, (long long)y1, (long long)x0,
                        (long long)x1);
    if (s0 >= s1 || y0 >= y1 || x0 >= x1)
        return TG_OK;
    tgi_tiff_lane *l = &s->lanes[thread];
    request q =
        request_of(plane, s0, s1, dst, row_pitch, sample_pitch, s->index.page.sample_bytes);
    q.y0 = y0, q.y1 = y1, q.x0 = x0, q.x1 = x1;
    if (!s->streams)
        return read_samples(s, l, &q, err);
    pthread_mutex_lock(&s->lock);
    const tg_status st = read_samples(s, l, &q, err);
    pthread_mutex_unlock(&s->lock);
    return st;
}

/* tiff_read.c - TIFF and BigTIFF as a tg_source.
 *
 * Opening parses directories (tiff_ifd.c), builds the index (tiff_index.c) and gives the planes
 * their meaning (tiff_series.c). Reading finds the strips or tiles that a box touches:
 *
 *   uncompressed: rows are copied straight from a window on the file (mapped, or read),
 *                 whatever the size of the strip; nothing else is touched;
 *   small blocks: decoded whole into a slot of the thread's own cache, one slot for each tile
 *                 of a row of tiles, so reading band after band decodes no tile twice;
 *   large blocks: rows are streamed out of them (tiff_stream.h) by one set of decoders that
 *                 the threads share under a lock: memory does not grow with the strip.
 *
 * Each thread owns a lane: windows, decoder, slots. All of it is allocated at open, or by
 * `expect` before the first read.
 * Source: TIFF 6.0; see the other tiff_*.c for theirs. */
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/bytes.h"
#include "io/image.h"
#include "io/io_formats.h"
#include "io/stack.h"
#include "io/tiff_codec.h"
#include "io/tiff_form.h"
#include "io/tiff_info.h"
#include "io/tiff_series.h"
#include "io/tiff_stream.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define MAX_THREADS 1024
#define META_WINDOW 65536
#define NAME_BYTES 4096 /* the path, as the plan counts it */
#define LOOKUP_WINDOW ((size_t)4096)
#define READ_WINDOW (1u << 20)
#define MAP_WINDOW (16u << 20)
#define DEFAULT_BUDGET ((size_t)1 << 30)
#define SLOTS_CAP ((size_t)64 << 20)    /* decoded blocks held at most, all threads together */
#define KEEP_BYTES ((size_t)1 << 20)    /* rows a stream keeps, */
#define KEEP_ROWS 64                    /* and how many at most */
#define HISTORY_BLOCK ((size_t)1 << 20) /* blocks worth a look at their history */
#define HISTORY_MAX ((size_t)128 << 20) /* no decoder goes beyond it */

typedef struct slot {
    uint64_t plane, block; /* what it holds; block UINT64_MAX: nothing */
} slot;

typedef struct lane {
    tgi_window data, offsets, counts;
    tgi_unpack *unpack;
    uint8_t *cache; /* n_slots blocks */
    slot *slots;
    uint8_t *tmp;     /* one row, for the predictor */
    uint64_t decoded; /* bytes of pixels */
} lane;

typedef struct tiff_source {
    tg_source base;
    tgi_tiff_file file;
    tgi_tiff_index index;
    tgi_tiff_series series;
    tg_image_info info;
    bool mapped;
    tgi_form form;
    tgi_packing packing;
    uint8_t *tables;   /* JPEGTables or NULL */
    size_t max_packed; /* most compressed bytes of a block that are looked at */
    size_t n_slots;    /* per lane */
    int64_t planes_at_once, plane_stride; /* planes read in turn, row by row */
    size_t budget;
    int (*cancelled)(void);
    tg_bad_region_fn *on_bad; /* or NULL: a block that cannot be decoded ends the reading */
    void *on_bad_arg;
    tgi_streams *streams; /* or NULL: blocks are held whole, or stored as they are */
    size_t keep;          /* rows a stream keeps */
    pthread_mutex_t lock; /* of `streams` */
    int n_lanes;
    lane *lanes;
    size_t bytes, decoder_bytes; /* held, for the plan: everything else, and decoders */
} tiff_source;

/* ---- Where a block lies ---- */

typedef struct place {
    uint64_t off, count;
} place;

static uint64_t block_rows(const tgi_tiff_page *p, uint64_t block)
{
    const uint64_t row = block / p->across % p->down * p->block_h;
    if (p->tiled || row + p->block_h <= p->height)
        return p->block_h;
    return p->height - row;
}

/* Offset and bytes of one block, shown to lie in the file and, uncompressed, to be complete. */
static tg_status find_block(const tiff_source *s, lane *l, uint64_t rank, uint64_t block,
                            place *out, tgi_err *err)
{
    const tgi_tiff_page *p = &s->index.page;
    const uint64_t need = block_rows(p, block) * p->stored_row;
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
    if (p->compression == TGI_TIFF_NONE) {
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

static uint64_t rank_of_plane(const tiff_source *s, int64_t plane)
{
    return s->series.rank ? s->series.rank[plane] : (uint64_t)plane;
}

static tg_status locate(const tiff_source *s, lane *l, int64_t plane, uint64_t block,
                        place *out, tgi_err *err)
{
    const tgi_tiff_page *p = &s->index.page;
    if (!s->series.contiguous)
        return find_block(s, l, rank_of_plane(s, plane), block, out, err);
    /* Strips of all sample planes, then all planes, follow each other without gaps. */
    const uint64_t sample = block / p->down, row = block % p->down * p->block_h;
    out->off = s->series.base + (uint64_t)plane * p->plane_bytes +
               (sample * p->height + row) * p->row_bytes;
    out->count = block_rows(p, block) * p->row_bytes;
    return TG_OK;
}

/* Compressed bytes that a block may need: no codec here grows data by more than half (LZW: 12
 * bits for 8) but for constant parts (pictures: what else a camera puts in); bytes beyond are
 * padding. */
static size_t packed_bound(const tgi_tiff_page *p)
{
    const size_t extra = tgi_unpack_is_picture(p->compression) ? (size_t)1 << 20 : 4096;
    return tgi_sat_add(tgi_sat_add(p->block_bytes, p->block_bytes / 2), extra);
}

/* The most that the decoder of this block asks for. */
static tg_status look_at_history(tiff_source *s, const place *at, tgi_err *err)
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
static tg_status check_blocks(tiff_source *s, tgi_err *err)
{
    const tgi_tiff_page *p = &s->index.page;
    const tgi_history when = tgi_unpack_has_history(p->compression);
    const bool look = when == TGI_HISTORY_ALWAYS ||
                      (when == TGI_HISTORY_STREAMS && p->block_bytes >= HISTORY_BLOCK);
    uint64_t left = s->file.f.size / 2, most = 0;
    place at;
    if (s->series.contiguous)
        return TG_OK;
    for (int64_t plane = 0; plane < s->info.n_planes; plane++)
        for (uint64_t b = 0; b < p->n_blocks && left; b++, left--) {
            tgi_err bad = {0};
            const tg_status st =
                find_block(s, &s->lanes[0], rank_of_plane(s, plane), b, &at, &bad);
            if (st == TG_E_FORMAT && s->on_bad)
                continue; /* told when it is read */
            if (st != TG_OK)
                return tgi_fail(err, st, "%s", bad.text);
            most = at.count > most ? at.count : most;
            if (look)
                TGI_TRY(look_at_history(s, &at, err));
        }
    s->max_packed = packed_bound(p);
    if (left && most < s->max_packed)
        s->max_packed = (size_t)most;
    return TG_OK;
}

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
    const bool together = sample_pitch == TG_INTERLEAVED;
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
static void deliver(const tiff_source *s, const request *q, uint64_t sample, int64_t y,
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
static void deliver_zeros(const tiff_source *s, const request *q, uint64_t sample, int64_t y0,
                          int64_t y1, int64_t x0, int64_t x1)
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

/* What cannot be decoded counts as zeros, if the caller wants that: rows [y0,y1) x columns
 * [x0,x1) are wanted now, `from` is the first row of the block that is bad. */
static tg_status fill_bad(const tiff_source *s, const request *q, uint64_t block, int64_t from,
                          int64_t y0, int64_t y1, int64_t x0, int64_t x1, tg_status st,
                          const tgi_err *why, tgi_err *err)
{
    const tgi_tiff_page *p = &s->index.page;
    const spot in = spot_of(p, block);
    if (st != TG_E_FORMAT || !s->on_bad)
        return tgi_fail(err, st, "%s", why->text);
    const tg_bad_region r = {
        .plane = q->plane,
        .sample = p->planar ? (int64_t)in.sample : -1,
        .y0 = from,
        .y1 = tgi_min(in.y + (int64_t)block_rows(p, block), (int64_t)p->height),
        .x0 = in.x,
        .x1 = tgi_min(in.x + (int64_t)p->block_w, (int64_t)p->width),
        .reason = why->text};
    deliver_zeros(s, q, in.sample, y0, y1, x0, x1);
    return s->on_bad(s->on_bad_arg, &r, err);
}

/* Rows [y0,y1) x columns [x0,x1) of one block, from the file's window, in pieces that fit it.
 */
static tg_status copy_raw(const tiff_source *s, lane *l, const request *q, uint64_t block,
                          int64_t y0, int64_t y1, int64_t x0, int64_t x1, tgi_err *err)
{
    const tgi_tiff_page *p = &s->index.page;
    const spot in = spot_of(p, block);
    const int64_t piece = tgi_max(1, (int64_t)(l->data.cap / in.pixel));
    const bool whole_rows =
        x0 == in.x && x1 == tgi_min(in.x + (int64_t)p->block_w, (int64_t)p->width);
    place at;
    TGI_TRY(locate(s, l, q->plane, block, &at, err));
    for (int64_t y = y0; y < y1; y++)
        for (int64_t x = x0; x < x1; x += piece) {
            const int64_t xe = tgi_min(x1, x + piece);
            const size_t len = (size_t)(xe - x) * in.pixel;
            const uint64_t off =
                at.off + (uint64_t)(y - in.y) * p->row_bytes + (uint64_t)(x - in.x) * in.pixel;
            /* Strips usually follow each other: read ahead to the end of the request. */
            const size_t ahead =
                whole_rows ? tgi_sat_mul((size_t)((p->tiled ? y1 : q->y1) - y), p->row_bytes)
                           : len;
            const uint8_t *src;
            TGI_TRY(tgi_window_get(&l->data, &s->file.f, off, len, ahead, &src, err));
            deliver(s, q, in.sample, y, x, xe, src, s->form.swap);
        }
    return TG_OK;
}

/* ---- Compressed ---- */

static tg_status decode_block(const tiff_source *s, lane *l, int64_t plane, uint64_t block,
                              uint8_t *dst, tgi_err *err)
{
    const tgi_tiff_page *p = &s->index.page;
    const size_t rows = (size_t)block_rows(p, block), want = rows * p->stored_row;
    uint8_t *stored = tgi_form_place(&s->form, dst, rows);
    const uint8_t *src;
    place at;
    TGI_TRY(locate(s, l, plane, block, &at, err));
    const size_t n = at.count < s->max_packed ? (size_t)at.count : s->max_packed;
    TGI_TRY(tgi_window_get(&l->data, &s->file.f, at.off, n, n, &src, err));
    const size_t cap = p->block_bytes - (size_t)(stored - dst);
    const tg_status st = tgi_unpack_run(l->unpack, src, n, stored, cap, want, err);
    if (st != TG_OK) {
        tgi_err_prefix(err, "plane %lld, %s %llu", (long long)plane,
                       p->tiled ? "tile" : "strip", (unsigned long long)block);
        return st;
    }
    l->decoded += rows * p->row_bytes;
    tgi_form_block(&s->form, dst, rows, l->tmp);
    return TG_OK;
}

/* What moves down through the image as one: blocks above each other, of one sample plane. */
static uint64_t column_of(const tgi_tiff_page *p, uint64_t block)
{
    return block / (p->across * p->down) * p->across + block % p->across;
}

static uint64_t columns_of(const tgi_tiff_page *p)
{
    return p->across * (p->planar ? p->samples : 1);
}

/* The decoded block, from its slot. */
static tg_status cached_block(const tiff_source *s, lane *l, int64_t plane, uint64_t block,
                              const uint8_t **out, tgi_err *err)
{
    const tgi_tiff_page *p = &s->index.page;
    const uint64_t turn = (uint64_t)(plane / s->plane_stride % s->planes_at_once);
    const uint64_t column = turn * columns_of(p) + column_of(p, block);
    const size_t k = column < s->n_slots ? (size_t)column : s->n_slots - 1;
    uint8_t *data = l->cache + k * p->block_bytes;
    if (l->slots[k].block != block || l->slots[k].plane != (uint64_t)plane) {
        l->slots[k].block = UINT64_MAX;
        TGI_TRY(decode_block(s, l, plane, block, data, err));
        l->slots[k] = (slot){(uint64_t)plane, block};
    }
    *out = data;
    return TG_OK;
}

/* Rows out of a large block; the lock is held. */
static tg_status copy_streamed(const tiff_source *s, lane *l, const request *q, uint64_t block,
                               int64_t y0, int64_t y1, int64_t x0, int64_t x1, tgi_err *err)
{
    const tgi_tiff_page *p = &s->index.page;
    const spot in = spot_of(p, block);
    place at;
    TGI_TRY(locate(s, l, q->plane, block, &at, err));
    const tgi_stream_block b = {
        (uint64_t)q->plane, block, column_of(p, block), at.off, at.count, block_rows(p, block)};
    tgi_stream *t = tgi_streams_take(s->streams, &b);
    for (int64_t y = y0; y < y1; y++) {
        const uint8_t *row;
        tgi_err why = {0};
        const tg_status st = tgi_stream_row(s->streams, t, (uint64_t)(y - in.y), &row, &why);
        if (st != TG_OK) {
            tgi_err_prefix(&why, "plane %lld, %s %llu", (long long)q->plane,
                           p->tiled ? "tile" : "strip", (unsigned long long)block);
            return fill_bad(s, q, block, in.y + (int64_t)tgi_stream_bad_from(t), y, y1, x0, x1,
                            st, &why, err);
        }
        deliver(s, q, in.sample, y, x0, x1, row + (size_t)(x0 - in.x) * in.pixel, false);
    }
    return TG_OK;
}

static tg_status copy_decoded(const tiff_source *s, lane *l, const request *q, uint64_t block,
                              int64_t y0, int64_t y1, int64_t x0, int64_t x1, tgi_err *err)
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

static tg_status read_blocks(const tiff_source *s, lane *l, const request *q, uint64_t sample,
                             tgi_err *err)
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
                TGI_TRY(fill_bad(s, q, block, by * bh, y0, y1, x0, x1, st, &why, err));
        }
    return TG_OK;
}

static tg_status read_samples(const tiff_source *s, lane *l, const request *q, tgi_err *err)
{
    if (!s->index.page.planar)
        return read_blocks(s, l, q, 0, err);
    for (int k = q->s0; k < q->s1; k++)
        TGI_TRY(read_blocks(s, l, q, (uint64_t)k, err));
    return TG_OK;
}

static tg_status tiff_read(tg_source *base, int thread, int64_t plane, int s0, int s1,
                           int64_t y0, int64_t y1, int64_t x0, int64_t x1, void *dst,
                           size_t row_pitch, size_t sample_pitch, tgi_err *err)
{
    tiff_source *s = (tiff_source *)base;
    const tg_image_info *i = &s->info;
    if (thread < 0 || thread >= s->n_lanes || plane < 0 || plane >= i->n_planes || s0 < 0 ||
        s1 > i->samples || y0 < 0 || y1 > i->height || x0 < 0 || x1 > i->width)
        return tgi_fail(err, TG_E_ARG,
                        "a box outside the image: plane %lld, rows %lld:%lld, "
                        "columns %lld:%lld",
                        (long long)plane, (long long)y0, (long long)y1, (long long)x0,
                        (long long)x1);
    if (s0 >= s1 || y0 >= y1 || x0 >= x1)
        return TG_OK;
    lane *l = &s->lanes[thread];
    request q =
        request_of(plane, s0, s1, dst, row_pitch, sample_pitch, s->index.page.sample_bytes);
    q.y0 = y0, q.y1 = y1, q.x0 = x0, q.x1 = x1;
    if (s->mapped)
        TGI_TRY(tgi_rfile_check(&s->file.f, err));
    if (!s->streams)
        return read_samples(s, l, &q, err);
    pthread_mutex_lock(&s->lock);
    const tg_status st = read_samples(s, l, &q, err);
    pthread_mutex_unlock(&s->lock);
    return st;
}

/* ---- open ---- */

/* Blocks held whole: a window on the file, slots, a decoder. `packed` false: the window alone.
 */
static tg_status lane_open_slots(tiff_source *s, lane *l, bool packed, tgi_err *err)
{
    const tgi_tiff_page *p = &s->index.page;
    const size_t cap = s->mapped ? MAP_WINDOW : packed ? s->max_packed : READ_WINDOW;
    TGI_TRY(tgi_window_init(&l->data, s->mapped, cap, err));
    s->decoder_bytes += s->mapped ? 0 : cap;
    if (!packed)
        return TG_OK;
    const tgi_packing packing = tgi_packing_whole(&s->packing);
    l->cache = tgi_malloc(TGI_TAG_IO, s->n_slots * p->block_bytes);
    l->slots = tgi_malloc(TGI_TAG_IO, s->n_slots * sizeof *l->slots);
    l->tmp = tgi_malloc(TGI_TAG_IO, p->row_bytes);
    if (!l->cache || !l->slots || !l->tmp)
        return tgi_fail(err, TG_E_NOMEM, "no memory for %zu bytes for decoded tiles",
                        s->n_slots * p->block_bytes);
    for (size_t i = 0; i < s->n_slots; i++)
        l->slots[i] = (slot){0, UINT64_MAX};
    TGI_TRY(tgi_unpack_open(&packing, &l->unpack, err));
    s->decoder_bytes += s->n_slots * (p->block_bytes + sizeof *l->slots) + p->row_bytes +
                        tgi_unpack_bytes(&packing);
    return TG_OK;
}

static void close_decoders(tiff_source *s)
{
    for (int i = 0; s->lanes && i < s->n_lanes; i++) {
        lane *l = &s->lanes[i];
        tgi_window_free(&l->data);
        tgi_unpack_close(&l->unpack);
        tgi_free(l->cache);
        tgi_free(l->slots);
        tgi_free(l->tmp);
        l->cache = l->tmp = NULL;
        l->slots = NULL;
    }
    tgi_streams_close(&s->streams);
    s->decoder_bytes = 0;
}

static tgi_stream_shape stream_shape(const tiff_source *s, size_t columns)
{
    const tgi_tiff_page *p = &s->index.page;
    const size_t room = tgi_min(KEEP_BYTES, s->budget / 4) / columns;
    return (tgi_stream_shape){
        .packing = s->packing,
        .form = s->form,
        .mapped = s->mapped,
        .keep = (size_t)tgi_clamp((int64_t)(room / p->row_bytes), 1, KEEP_ROWS),
        .cancelled = s->cancelled};
}

/* How blocks are decoded. Whole when a row of them is small, in all lanes together; else rows
 * are streamed when that takes less; slots fewer than columns are what is left. Fills n_slots
 * or n_streams; refuses before anything is allocated. */
static tg_status size_decoders(tiff_source *s, size_t *n_streams, tgi_stream_shape *shape,
                               tgi_err *err)
{
    const tgi_tiff_page *p = &s->index.page;
    const size_t columns = tgi_sat_mul((size_t)columns_of(p), (size_t)s->planes_at_once),
                 lanes = (size_t)s->n_lanes;
    const tgi_packing packing = tgi_packing_whole(&s->packing);
    size_t fixed = tgi_sat_add(p->row_bytes, tgi_unpack_bytes(&packing));
    if (!s->mapped)
        fixed = tgi_sat_add(fixed, s->max_packed);
    const size_t each = tgi_sat_add(p->block_bytes, sizeof(slot));
    const size_t all = tgi_sat_mul(lanes, tgi_sat_add(fixed, tgi_sat_mul(each, columns)));
    const size_t per_lane = s->budget / lanes;
    *n_streams = s->n_slots = 0;
    if (all <= s->budget / 16 && all <= SLOTS_CAP) {
        s->n_slots = columns;
        return TG_OK;
    }
    *shape = stream_shape(s, columns);
    const bool knows = s->packing.history || !tgi_unpack_has_history(p->compression);
    const bool may = knows && tgi_unpack_streams(p->compression);
    const size_t one = may ? tgi_stream_bytes(shape) : SIZE_MAX;
    const size_t room = s->budget > p->row_bytes ? s->budget - p->row_bytes : 0;
    if (one > 0 && one <= room && tgi_sat_mul(one, columns) < all) {
        *n_streams = room / one < columns ? room / one : columns;
        return TG_OK;
    }
    if (tgi_sat_add(fixed, each) > per_lane)
        return tgi_fail(err, TG_E_BUDGET,
                        "one %s of %llu x %llu pixels needs %zu MiB to be decoded, %zu MiB are "
                        "allowed (a quarter of --ram): give a larger one",
                        p->tiled ? "tile" : "strip", (unsigned long long)p->block_w,
                        (unsigned long long)p->block_h,
                        (one < SIZE_MAX ? one : tgi_sat_mul(lanes, tgi_sat_add(fixed, each))) /
                                (1 << 20) +
                            1,
                        s->budget >> 20);
    const size_t fit = (per_lane - fixed) / each;
    s->n_slots = fit < columns ? fit : columns;
    return TG_OK;
}

static tg_status open_decoders(tiff_source *s, tgi_err *err)
{
    const tgi_tiff_page *p = &s->index.page;
    const bool packed = !p->raw;
    tgi_stream_shape shape;
    size_t n_streams = 0;
    close_decoders(s);
    if (packed)
        TGI_TRY(size_decoders(s, &n_streams, &shape, err));
    for (int i = 0; !n_streams && i < s->n_lanes; i++)
        TGI_TRY(lane_open_slots(s, &s->lanes[i], packed, err));
    if (!n_streams)
        return TG_OK;
    s->keep = shape.keep;
    s->decoder_bytes = n_streams * tgi_stream_bytes(&shape) + p->row_bytes + 256;
    return tgi_streams_open(&shape, &s->file.f, n_streams, &s->streams, err);
}

static tg_status open_index(tiff_source *s, const char *path, const tg_open_opts *o,
                            size_t budget, tgi_err *err)
{
    tgi_tiff_page *first = &s->index.first;
    tg_image_meta *m = &s->info.meta;
    const char *slash = strrchr(path, '/');
    TGI_TRY(tgi_window_init(&s->file.win, false, META_WINDOW, err));
    TGI_TRY(tgi_tiff_header(&s->file, err));
    TGI_TRY(tgi_tiff_page_parse(&s->file, s->file.first_ifd, first, err));
    TGI_TRY(tgi_tiff_info_texts(&s->file, first, m, err));
    const tgi_tiff_flavor flavor =
        o->pages ? TGI_TIFF_PLAIN : tgi_tiff_flavor_of(m->description);
    tgi_tiff_index_opts io = {
        .series = o->series,
        .level = o->level,
        .aperio = m->description && strncmp(m->description, "Aperio", 6) == 0,
        .subifd_planes = flavor == TGI_TIFF_PLAIN && !o->pages,
        .max_bytes = budget,
    };
    if (flavor == TGI_TIFF_OME && o->series > 0)
        TGI_TRY(tgi_tiff_series_size(m->description, o->series, &io.width, &io.height, err));
    TGI_TRY(tgi_tiff_index_build(&s->file, &io, &s->index, err));
    if (flavor != TGI_TIFF_OME && o->series > 0)
        TGI_TRY(tgi_tiff_info_texts(&s->file, first, m, err));
    TGI_TRY(tgi_tiff_series_resolve(&s->file, &s->index, m->description,
                                    slash ? slash + 1 : path, o, &s->info, &s->series, err));
    TGI_TRY(tgi_tiff_info_form(&s->file, first, m, err));
    tgi_tiff_info_fill(&s->file, &s->index, &s->info);
    TGI_TRY(tgi_tiff_info_imagej(&s->file, first, &s->info, err));
    return o->axes ? tgi_image_relabel(&s->info, o->axes, err) : TG_OK;
}

static tg_status open_lanes(tiff_source *s, size_t budget, tgi_err *err)
{
    const tgi_tiff_page *p = &s->index.page;
    s->form = tgi_form_of(p, s->file.big_endian);
    TGI_TRY(tgi_packing_of(p, &s->file.f, &s->packing, &s->tables, err));
    s->bytes += s->packing.n_tables;
    s->budget = budget;
    s->planes_at_once = s->plane_stride = 1;
    s->lanes = tgi_calloc(TGI_TAG_IO, (size_t)s->n_lanes, sizeof *s->lanes);
    if (!s->lanes)
        return tgi_fail(err, TG_E_NOMEM, "no memory for %d readers", s->n_lanes);
    s->bytes += sizeof *s + NAME_BYTES + META_WINDOW + (size_t)s->n_lanes * sizeof *s->lanes +
                (size_t)s->index.cap * (sizeof *s->index.refs + sizeof *s->index.chain) +
                (s->series.rank ? (size_t)s->info.n_planes * sizeof *s->series.rank : 0) +
                (s->info.meta.description ? strlen(s->info.meta.description) : 0);
    for (int i = 0; i < s->n_lanes; i++) {
        TGI_TRY(tgi_window_init(&s->lanes[i].offsets, false, LOOKUP_WINDOW, err));
        TGI_TRY(tgi_window_init(&s->lanes[i].counts, false, LOOKUP_WINDOW, err));
        s->bytes += 2 * LOOKUP_WINDOW;
    }
    TGI_TRY(check_blocks(s, err));
    return open_decoders(s, err);
}

static tg_status tiff_expect(tg_source *base, int64_t planes, int64_t stride, tgi_err *err)
{
    tiff_source *s = (tiff_source *)base;
    if (planes == s->planes_at_once && stride == s->plane_stride)
        return TG_OK;
    s->planes_at_once = planes;
    s->plane_stride = stride;
    return s->index.page.raw ? TG_OK : open_decoders(s, err);
}

static void tiff_close(tg_source **base)
{
    tiff_source *s = (tiff_source *)*base;
    if (!s)
        return;
    close_decoders(s);
    for (int i = 0; s->lanes && i < s->n_lanes; i++) {
        tgi_window_free(&s->lanes[i].offsets);
        tgi_window_free(&s->lanes[i].counts);
    }
    tgi_free(s->lanes);
    pthread_mutex_destroy(&s->lock);
    tgi_free(s->series.rank);
    tgi_free(s->tables);
    tgi_tiff_index_free(&s->index);
    tgi_image_meta_free(&s->info.meta);
    tgi_window_free(&s->file.win);
    tgi_rfile_close(&s->file.f);
    tgi_free(s);
    *base = NULL;
}

/* The image lies in several files: the whole of it, or, when what describes it is gone, what
 * this file holds. */
static tg_status open_set(const tiff_source *s, const char *path, const tg_open_opts *o,
                          tg_source **out, tgi_err *err)
{
    const char *about = s->series.metadata_file;
    *err = (tgi_err){0}; /* what sent us here */
    if (!about[0])
        return tgi_ome_set_open(path, s->info.meta.description, o, out, err);
    const tg_status st = tgi_ome_set_open_companion(path, about, o, out, err);
    if (st != TG_E_NOT_FOUND)
        return st;
    tg_open_opts alone = *o;
    alone.pages = alone.member = 1;
    *err = (tgi_err){0};
    TGI_TRY(tgi_tiff_source_ops.open(path, &alone, out, err));
    tiff_source *t = (tiff_source *)*out;
    snprintf(t->info.note, sizeof t->info.note,
             "its metadata are in \"%.60s\", which is missing: only the planes of this file "
             "are read, without names and sizes",
             about);
    return TG_OK;
}

static tg_status tiff_open(const char *path, const tg_open_opts *o, tg_source **out,
                           tgi_err *err)
{
    const size_t budget = o->decode_budget ? o->decode_budget : DEFAULT_BUDGET;
    tiff_source *s = tgi_calloc(TGI_TAG_IO, 1, sizeof *s);
    if (!s)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a TIFF reader");
    s->base.ops = &tgi_tiff_source_ops;
    pthread_mutex_init(&s->lock, NULL);
    s->cancelled = o->cancelled;
    s->on_bad = o->on_bad;
    s->on_bad_arg = o->on_bad_arg;
    s->file.f.fd = -1;
    s->n_lanes = (int)tgi_clamp(o->threads, 1, MAX_THREADS);
    tg_status st = tgi_rfile_open(path, &s->file.f, err);
    if (st == TG_OK) {
        s->mapped =
            o->io == TG_IO_MAP || (o->io == TG_IO_AUTO && !tgi_rfile_is_remote(&s->file.f));
        st = open_index(s, path, o, budget, err);
    }
    if (st == TG_OK)
        st = open_lanes(s, budget, err);
    if (st == TG_OK) {
        *out = &s->base;
        return TG_OK;
    }
    if (s->series.in_files && !o->member)
        st = open_set(s, path, o, out, err);
    tg_source *base = &s->base;
    tiff_close(&base);
    return st;
}

static const tg_image_info *tiff_info(const tg_source *s)
{
    return &((const tiff_source *)s)->info;
}

static size_t tiff_codec_bytes(const tg_source *s)
{
    return ((const tiff_source *)s)->bytes + ((const tiff_source *)s)->decoder_bytes;
}

static int64_t tiff_stream_rows(const tg_source *base)
{
    const tiff_source *s = (const tiff_source *)base;
    return s->streams ? (int64_t)s->keep : 0;
}

static uint64_t tiff_decoded(const tg_source *base)
{
    const tiff_source *s = (const tiff_source *)base;
    uint64_t n = s->streams ? tgi_streams_decoded(s->streams) : 0;
    for (int i = 0; i < s->n_lanes; i++)
        n += s->lanes[i].decoded;
    return n;
}

static int tiff_probe(const uint8_t *head, size_t n, const char *path)
{
    (void)path;
    return tgi_tiff_probe(head, n);
}

const tg_source_ops tgi_tiff_source_ops = {
    .format = "tiff",
    .fuzzed = 1,
    .probe = tiff_probe,
    .open = tiff_open,
    .info = tiff_info,
    .read = tiff_read,
    .close = tiff_close,
    .codec_bytes = tiff_codec_bytes,
    .expect = tiff_expect,
    .stream_rows = tiff_stream_rows,
    .decoded_bytes = tiff_decoded,
};

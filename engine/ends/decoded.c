/* decoded.c - fills the scratch file row by row when rows are first asked for, then reads from
 * it. */
#include "engine/ends/decoded.h"

#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/mem.h"
#include "engine/out/scratch.h"

#include <pthread.h>
#include <string.h>

#define PIECE_BYTES ((size_t)1 << 20) /* decoded and written at a time */

/* Of one plane of the file. */
typedef struct kept {
    uint32_t place;  /* among the planes in the scratch file; NOT_KEPT */
    uint32_t filled; /* rows that are there */
} kept;

#define NOT_KEPT UINT32_MAX

typedef struct decoded {
    tgi_source base;
    tgi_source *inner;
    const tgi_image_info *info;
    const tgi_mapping *map;
    tgi_scratch *scratch;
    pthread_mutex_t lock; /* of planes[] and piece */
    kept *planes;
    uint8_t *piece; /* piece_rows rows of all samples */
    int64_t piece_rows;
    int threads;
    tgi_window *window;
} decoded;

/* ---- Sizes ------------------------------------------------------------------------------- */

static size_t row_bytes(const tgi_mapping *m, const tgi_image_info *info)
{
    return (size_t)m->extent[2] * tgi_dtype_size(info->dtype);
}

static int64_t rows_at_once(const tgi_mapping *m, const tgi_image_info *info)
{
    const size_t row = tgi_sat_mul(row_bytes(m, info), (size_t)info->samples);
    return tgi_clamp((int64_t)(PIECE_BYTES / (row ? row : 1)), 1, m->extent[1]);
}

/* Number the planes that a mapping reads, in the file's order. Returns how many. */
static int64_t number_planes(const tgi_mapping *m, const tgi_image_info *info, kept *planes)
{
    uint32_t n = 0;
    for (int64_t p = 0; p < info->n_planes; p++)
        planes[p] = (kept){NOT_KEPT, 0};
    for (int64_t item = 0; item < m->n_items; item++)
        for (int64_t z = 0; z < m->extent[0]; z++)
            for (int64_t c = 0; c < m->channels; c++) {
                int sample;
                planes[tgi_mapping_plane(m, item, z, &sample) + c * m->channel_stride].place =
                    0;
            }
    for (int64_t p = 0; p < info->n_planes; p++)
        if (planes[p].place == 0)
            planes[p].place = n++;
    return n;
}

static uint64_t plane_bytes(const tgi_mapping *m, const tgi_image_info *info)
{
    return (uint64_t)row_bytes(m, info) * (uint64_t)m->extent[1] * (uint64_t)info->samples;
}

tg_status tgi_decoded_file_bytes(const tgi_mapping *m, const tgi_image_info *info,
                                 uint64_t *bytes, tgi_err *err)
{
    kept *planes = tgi_calloc(TGI_TAG_PLAN, (size_t)info->n_planes, sizeof *planes);
    if (!planes)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a list of planes");
    *bytes = plane_bytes(m, info) * (uint64_t)number_planes(m, info, planes);
    tgi_free(planes);
    return TG_OK;
}

size_t tgi_decoded_bytes(const tgi_mapping *m, const tgi_image_info *info, int threads)
{
    const size_t piece = (size_t)rows_at_once(m, info) * row_bytes(m, info);
    return sizeof(decoded) + piece * (size_t)info->samples +
           (size_t)info->n_planes * sizeof(kept) +
           (size_t)threads * (sizeof(tgi_window) + TGI_SCRATCH_WINDOW);
}

/* ---- Fill -------------------------------------------------------------------------------- */

static uint64_t offset_of(const decoded *d, uint32_t place, int sample, int64_t y)
{
    const tgi_mapping *m = d->map;
    const uint64_t rows = ((uint64_t)place * (uint64_t)d->info->samples + (uint64_t)sample) *
                              (uint64_t)m->extent[1] +
                          (uint64_t)y;
    return rows * row_bytes(m, d->info);
}

/* Decode rows [y, y1) of a plane (in the mapping's box) and write them. */
static tg_status fill_piece(decoded *d, int thread, int64_t plane, int64_t y, int64_t y1,
                            tgi_err *err)
{
    const tgi_mapping *m = d->map;
    const size_t pitch = row_bytes(m, d->info), part = pitch * (size_t)(y1 - y);
    TGI_TRY(tgi_source_read(d->inner, thread, plane, 0, d->info->samples, m->origin[1] + y,
                            m->origin[1] + y1, m->origin[2], m->origin[2] + m->extent[2],
                            d->piece, pitch, part, err));
    for (int s = 0; s < d->info->samples; s++)
        TGI_TRY(tgi_scratch_write(d->scratch, offset_of(d, d->planes[plane].place, s, y),
                                  d->piece + (size_t)s * part, part, err));
    return TG_OK;
}

/* Make rows [0, y1) of a plane be there. The lock is held. */
static tg_status fill(decoded *d, int thread, int64_t plane, int64_t y1, tgi_err *err)
{
    kept *k = &d->planes[plane];
    while (k->filled < y1) {
        const int64_t end = tgi_min(k->filled + d->piece_rows, d->map->extent[1]);
        if (tgi_cancel_signal())
            return tgi_fail(err, TG_E_CANCELLED, "stopped by %s; the same command goes on",
                            tgi_cancel_by());
        TGI_TRY(fill_piece(d, thread, plane, k->filled, end, err));
        k->filled = (uint32_t)end;
    }
    return TG_OK;
}

/* ---- The source -------------------------------------------------------------------------- */

/* Rows and columns are the mapping's box from here on. To every `to`-th element of dst. */
static tg_status read_kept(decoded *d, int thread, int64_t plane, int sample, tgi_range y,
                           tgi_range x, char *dst, size_t to, size_t row_pitch, tgi_err *err)
{
    const size_t size = tgi_dtype_size(d->info->dtype), n = (size_t)tgi_range_len(x) * size;
    tgi_window *w = &d->window[thread];
    for (int64_t row = y.lo; row < y.hi; row++) {
        const uint64_t at =
            offset_of(d, d->planes[plane].place, sample, row) + (uint64_t)x.lo * size;
        for (size_t done = 0; done < n;) {
            const size_t left = n - done;
            const size_t part = left < TGI_SCRATCH_WINDOW ? left : TGI_SCRATCH_WINDOW;
            const uint8_t *src;
            TGI_TRY(tgi_scratch_read(d->scratch, w, at + done, part, &src, err));
            char *out = dst + (size_t)(row - y.lo) * row_pitch + done * to;
            if (to == 1)
                memcpy(out, src, part);
            for (size_t i = 0; to > 1 && i < part; i += size) /* windows hold whole elements */
                memcpy(out + i * to, src + i, size);
            done += part;
        }
    }
    return TG_OK;
}

static tg_status decoded_read(tgi_source *base, int thread, int64_t plane, int s0, int s1,
                              int64_t y0, int64_t y1, int64_t x0, int64_t x1, void *dst,
                              size_t row_pitch, size_t sample_pitch, tgi_err *err)
{
    decoded *d = (decoded *)base;
    const tgi_mapping *m = d->map;
    const tgi_range y = {y0 - m->origin[1], y1 - m->origin[1]};
    const tgi_range x = {x0 - m->origin[2], x1 - m->origin[2]};
    if (thread < 0 || thread >= d->threads || plane < 0 || plane >= d->info->n_planes ||
        s0 < 0 || s1 > d->info->samples || y.lo < 0 || y.hi > m->extent[1] || x.lo < 0 ||
        x.hi > m->extent[2] || d->planes[plane].place == NOT_KEPT)
        return tgi_fail(err, TG_E_INTERNAL, "a box outside of what scratch keeps: plane %lld",
                        (long long)plane);
    if (tgi_range_empty(y) || tgi_range_empty(x))
        return TG_OK;
    pthread_mutex_lock(&d->lock);
    const tg_status st = fill(d, thread, plane, y.hi, err);
    pthread_mutex_unlock(&d->lock);
    if (st != TG_OK)
        return st;
    const bool together = sample_pitch == TGI_INTERLEAVED;
    const size_t next = together ? tgi_dtype_size(d->info->dtype) : sample_pitch;
    for (int s = s0; s < s1; s++)
        TGI_TRY(read_kept(d, thread, plane, s, y, x, (char *)dst + (size_t)(s - s0) * next,
                          together ? (size_t)(s1 - s0) : 1, row_pitch, err));
    return TG_OK;
}

static void decoded_close(tgi_source **base)
{
    decoded *d = (decoded *)*base;
    if (!d)
        return;
    for (int i = 0; d->window && i < d->threads; i++)
        tgi_window_free(&d->window[i]);
    tgi_scratch_close(&d->scratch);
    pthread_mutex_destroy(&d->lock);
    tgi_free(d->window);
    tgi_free(d->piece);
    tgi_free(d->planes);
    tgi_free(d);
    *base = NULL;
}

static const tgi_image_info *decoded_info(const tgi_source *s)
{
    return ((const decoded *)s)->info;
}

static size_t decoded_codec_bytes(const tgi_source *s)
{
    const decoded *d = (const decoded *)s;
    return tgi_decoded_bytes(d->map, d->info, d->threads);
}

static const tgi_source_ops decoded_ops = {.format = "scratch",
                                           .info = decoded_info,
                                           .read = decoded_read,
                                           .close = decoded_close,
                                           .codec_bytes = decoded_codec_bytes};

/* ---- Open -------------------------------------------------------------------------------- */

static tg_status open_parts(decoded *d, const char *folder, tgi_err *err)
{
    const tgi_image_info *info = d->info;
    const size_t row = row_bytes(d->map, info) * (size_t)info->samples;
    d->piece_rows = rows_at_once(d->map, info);
    d->planes = tgi_calloc(TGI_TAG_IO, (size_t)info->n_planes, sizeof *d->planes);
    d->piece = tgi_calloc(TGI_TAG_IO, (size_t)d->piece_rows, row);
    d->window = tgi_calloc(TGI_TAG_IO, (size_t)d->threads, sizeof *d->window);
    if (!d->planes || !d->piece || !d->window)
        return tgi_fail(err, TG_E_NOMEM, "no memory for rows of %zu bytes", row);
    const int64_t n = number_planes(d->map, info, d->planes);
    TGI_TRY(
        tgi_scratch_create(folder, plane_bytes(d->map, info) * (uint64_t)n, &d->scratch, err));
    for (int i = 0; i < d->threads; i++)
        TGI_TRY(tgi_window_init(&d->window[i], TGI_SCRATCH_WINDOW, err));
    return TG_OK;
}

tg_status tgi_decoded_open(tgi_source *inner, int threads, const tgi_mapping *m,
                           const char *folder, tgi_source **out, tgi_err *err)
{
    decoded *d = tgi_calloc(TGI_TAG_IO, 1, sizeof *d);
    if (!d)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a reader");
    d->base.ops = &decoded_ops;
    d->inner = inner;
    d->info = inner->ops->info(inner);
    d->map = m;
    d->threads = threads;
    pthread_mutex_init(&d->lock, NULL);
    const tg_status st = open_parts(d, folder, err);
    if (st != TG_OK) {
        tgi_source *base = &d->base;
        decoded_close(&base);
        return st;
    }
    *out = &d->base;
    return TG_OK;
}

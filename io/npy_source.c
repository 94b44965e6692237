/* npy_source.c - a .npy array as an image.
 *
 * An array has no axis names: by rank it is YX, ZYX, TZYX or TZCYX unless the caller names them
 * ("YXS" for an RGB image). Any axis is then a stride in the file; only the columns must lie
 * together, alone or with the samples of each pixel. In Fortran order the first axis is the fastest: then columns
 * are read, not rows. */
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/bytes.h"
#include "io/io_formats.h"
#include "io/npy.h"

#include <string.h>

#define WINDOW (64u << 10) /* as fast as 1 MiB (bench_read), and a part of every plan */
#define MAX_THREADS 1024

typedef struct npy_source {
    tgi_source base;
    tgi_rfile file;
    tgi_npy_head head;
    tgi_image_info info;
    int n_lanes;
    tgi_window *lanes;
    uint64_t stride[TGI_IMAGE_MAX_AXES]; /* bytes, of each axis */
    uint64_t stride_y, stride_s;
    size_t stride_x;
} npy_source;

static tg_status take_axes(npy_source *s, const char *axes, tgi_err *err)
{
    static const char *const by_rank[] = {"", "", "YX", "ZYX", "TZYX", "TZCYX"};
    const tgi_desc *d = &s->head.desc;
    tgi_image_info *i = &s->info;
    uint64_t stride = tgi_dtype_size(d->dtype);
    if (!axes && (d->rank < 2 || d->rank > 5))
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "npy: an array of rank %d is no image; name its "
                        "axes",
                        d->rank);
    if (!axes)
        axes = by_rank[d->rank];
    if ((int)strlen(axes) != d->rank || !strchr(axes, 'Y') || !strchr(axes, 'X') ||
        strspn(axes, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != strlen(axes))
        return tgi_fail(err, TG_E_ARG, "axes \"%.20s\" for an array of rank %d", axes, d->rank);
    for (int k = 0; k < d->rank; k++)
        if (strchr(axes + k + 1, axes[k]))
            return tgi_fail(err, TG_E_ARG, "axes \"%.20s\" name %c twice", axes, axes[k]);
    const char last = axes[d->rank - 1];
    if (last != 'X' && !(last == 'S' && axes[d->rank - 2] == 'X'))
        return tgi_fail(err, TG_E_UNSUPPORTED, "npy: axes must end in X or XS, not \"%.20s\"",
                        axes);
    i->n_axes = d->rank;
    i->samples = 1;
    i->n_planes = 1;
    for (int k = 0; k < d->rank; k++) /* first: beside an empty axis others may be anything */
        if (d->dim[k] < 1)
            return tgi_fail(err, TG_E_FORMAT, "npy: an empty array is no image");
    for (int a = 0; a < d->rank; a++) { /* the fastest axis first */
        const int k = s->head.fortran ? a : d->rank - 1 - a;
        const int64_t n = d->dim[k];
        if (axes[k] == 'S' && n > 65535)
            return tgi_fail(err, TG_E_UNSUPPORTED, "npy: %lld samples per pixel", (long long)n);
        i->axes[k] = axes[k];
        i->shape[k] = n;
        s->stride[k] = stride;
        stride *= (uint64_t)n; /* <= bytes of the array, which fit */
        if (axes[k] == 'Y')
            i->height = n, s->stride_y = s->stride[k];
        else if (axes[k] == 'X')
            i->width = n, s->stride_x = (size_t)s->stride[k];
        else if (axes[k] == 'S')
            i->samples = (int)n, s->stride_s = s->stride[k];
        else
            i->n_planes *= n;
    }
    i->planar_samples = i->samples > 1 && last != 'S';
    return TG_OK;
}

static uint64_t plane_offset(const npy_source *s, int64_t plane)
{
    uint64_t off = s->head.data_off;
    for (int k = s->info.n_axes - 1; k >= 0; k--) {
        if (strchr("YXS", s->info.axes[k]))
            continue;
        off += (uint64_t)(plane % s->info.shape[k]) * s->stride[k];
        plane /= s->info.shape[k];
    }
    return off;
}

/* Columns [x0,x1) of one sample in one row, in pieces that fit the window, to every `to`-th
 * element. */
static tg_status read_row(npy_source *s, tgi_window *w, uint64_t row_off, int64_t x0,
                          int64_t x1, size_t ahead, uint8_t *dst, size_t to, tgi_err *err)
{
    const size_t size = tgi_dtype_size(s->info.dtype);
    const int64_t piece = (int64_t)(w->cap / s->stride_x);
    for (int64_t x = x0; x < x1;) {
        const int64_t n = tgi_min(x1 - x, tgi_max(piece, 1));
        const size_t len = (size_t)(n - 1) * s->stride_x + size;
        const uint8_t *src;
        TGI_TRY(tgi_window_get(w, &s->file, row_off + (uint64_t)x * s->stride_x, len,
                               ahead > len ? ahead : len, &src, err));
        if (s->stride_x == size && to == 1)
            memcpy(dst, src, len);
        else
            for (int64_t k = 0; k < n; k++)
                memcpy(dst + (size_t)k * to * size, src + (size_t)k * s->stride_x, size);
        for (int64_t k = 0; s->head.swap && to > 1 && k < n; k++)
            tgi_swap_copy(dst + (size_t)k * to * size, dst + (size_t)k * to * size, 1, size);
        if (s->head.swap && to == 1)
            tgi_swap_copy(dst, dst, (size_t)n, size);
        dst += (size_t)n * to * size;
        x += n;
    }
    return TG_OK;
}

/* Samples [k0,k1) of a box of a plane whose first byte is `at`. */
typedef struct rows {
    uint64_t at;
    int k0, k1;
    int64_t y0, y1, x0, x1;
    uint8_t *dst;
    size_t row_pitch, next, to; /* bytes between rows and samples; elements between columns */
} rows;

/* As read_rows, column by column, as far as they fit the window. */
static tg_status read_columns(npy_source *s, tgi_window *w, const rows *r, tgi_err *err)
{
    const size_t size = tgi_dtype_size(s->info.dtype);
    const int64_t room = tgi_max((int64_t)(w->cap / s->stride_y), 1);
    for (int k = r->k0; k < r->k1; k++)
        for (int64_t x = r->x0; x < r->x1; x++)
            for (int64_t y = r->y0; y < r->y1; y += room) {
                const int64_t n = tgi_min(room, r->y1 - y);
                const size_t len = (size_t)(n - 1) * (size_t)s->stride_y + size;
                const uint8_t *src;
                TGI_TRY(tgi_window_get(w, &s->file,
                                       r->at + (uint64_t)k * s->stride_s +
                                           (uint64_t)y * s->stride_y +
                                           (uint64_t)x * s->stride_x,
                                       len, len, &src, err));
                uint8_t *to = r->dst + (size_t)(k - r->k0) * r->next +
                              (size_t)(y - r->y0) * r->row_pitch +
                              (size_t)(x - r->x0) * r->to * size;
                for (int64_t i = 0; i < n; i++, to += r->row_pitch, src += s->stride_y)
                    if (s->head.swap)
                        tgi_swap_copy(to, src, 1, size);
                    else
                        memcpy(to, src, size);
            }
    return TG_OK;
}

static tg_status read_rows(npy_source *s, tgi_window *w, const rows *r, tgi_err *err)
{
    const tgi_file_rows file = {.off = r->at + (uint64_t)r->k0 * s->stride_s +
                                       (uint64_t)r->y0 * s->stride_y +
                                       (uint64_t)r->x0 * s->stride_x,
                                .len = (size_t)(r->x1 - r->x0) * s->stride_x,
                                .pitch = s->stride_y,
                                .n = r->y1 - r->y0};
    const size_t ahead = tgi_rfile_ahead(&s->file, &file, w->cap);
    for (int64_t y = r->y0; y < r->y1; y++)
        for (int k = r->k0; k < r->k1; k++)
            TGI_TRY(read_row(
                s, w, r->at + (uint64_t)y * s->stride_y + (uint64_t)k * s->stride_s, r->x0,
                r->x1, ahead,
                r->dst + (size_t)(k - r->k0) * r->next + (size_t)(y - r->y0) * r->row_pitch,
                r->to, err));
    return TG_OK;
}

static tg_status npy_read(tgi_source *base, int thread, int64_t plane, int s0, int s1,
                          int64_t y0, int64_t y1, int64_t x0, int64_t x1, void *dst,
                          size_t row_pitch, size_t sample_pitch, tgi_err *err)
{
    npy_source *s = (npy_source *)base;
    const tgi_image_info *i = &s->info;
    if (thread < 0 || thread >= s->n_lanes || plane < 0 || plane >= i->n_planes || s0 < 0 ||
        s1 > i->samples || y0 < 0 || y1 > i->height || x0 < 0 || x1 > i->width)
        return tgi_fail(err, TG_E_ARG, "a box outside the array: plane %lld, rows %lld:%lld",
                        (long long)plane, (long long)y0, (long long)y1);
    const bool together = sample_pitch == TGI_INTERLEAVED;
    const size_t next = together ? tgi_dtype_size(i->dtype) : sample_pitch;
    const uint64_t at = plane_offset(s, plane);
    const bool apart = s->stride_s > s->stride_y; /* samples: one after the other, all rows */
    for (int k = s0; k < s1 && x0 < x1; k += apart ? 1 : s1 - s0) {
        const rows r = {.at = at,
                        .k0 = k,
                        .k1 = apart ? k + 1 : s1,
                        .y0 = y0,
                        .y1 = y1,
                        .x0 = x0,
                        .x1 = x1,
                        .dst = (uint8_t *)dst + (size_t)(k - s0) * next,
                        .row_pitch = row_pitch,
                        .next = next,
                        .to = together ? (size_t)(s1 - s0) : 1};
        TGI_TRY(s->stride_y < s->stride_x ? read_columns(s, &s->lanes[thread], &r, err)
                                          : read_rows(s, &s->lanes[thread], &r, err));
    }
    return TG_OK;
}

static void npy_close(tgi_source **base)
{
    npy_source *s = (npy_source *)*base;
    if (!s)
        return;
    for (int k = 0; s->lanes && k < s->n_lanes; k++)
        tgi_window_free(&s->lanes[k]);
    tgi_free(s->lanes);
    tgi_rfile_close(&s->file);
    tgi_image_meta_free(&s->info.meta);
    tgi_free(s);
    *base = NULL;
}

static tg_status open_parts(npy_source *s, const char *path, const tgi_open_opts *o,
                            tgi_err *err)
{
    tgi_image_info *i = &s->info;
    TGI_TRY(tgi_rfile_open(path, &s->file, err));
    TGI_TRY(tgi_npy_read_head(&s->file, &s->head, err));
    if (o->level)
        return tgi_fail(err, TG_E_ARG,
                        "there is no resolution level %d: an array has full size alone, 0",
                        o->level);
    i->dtype = s->head.desc.dtype;
    TGI_TRY(take_axes(s, o->axes, err));
    i->format = "npy";
    i->compression = "none";
    i->predictor = 1;
    i->block_h = i->height;
    i->block_w = i->width;
    i->big_endian = s->head.swap != TGI_HOST_BIG;
    i->n_levels = i->n_series = 1;
    i->level_h[0] = i->height;
    i->level_w[0] = i->width;
    i->file_bytes = s->file.size;
    i->plain = 1;
    s->lanes = tgi_calloc(TGI_TAG_IO, (size_t)s->n_lanes, sizeof *s->lanes);
    if (!s->lanes)
        return tgi_fail(err, TG_E_NOMEM, "no memory for %d readers", s->n_lanes);
    for (int k = 0; k < s->n_lanes; k++)
        TGI_TRY(tgi_window_init(&s->lanes[k], WINDOW, err));
    return TG_OK;
}

static tg_status npy_open(const char *path, const tgi_open_opts *o, tgi_source **out,
                          tgi_err *err)
{
    npy_source *s = tgi_calloc(TGI_TAG_IO, 1, sizeof *s);
    if (!s)
        return tgi_fail(err, TG_E_NOMEM, "no memory for an npy reader");
    s->base.ops = &tgi_npy_source_ops;
    s->file.fd = -1;
    s->n_lanes = (int)tgi_clamp(o->threads, 1, MAX_THREADS);
    const tg_status st = open_parts(s, path, o, err);
    if (st != TG_OK) {
        tgi_source *base = &s->base;
        npy_close(&base);
        return st;
    }
    *out = &s->base;
    return TG_OK;
}

static int npy_held(const tgi_source *s, int64_t i, tgi_held *out)
{
    tgi_rfile_held(&((const npy_source *)s)->file, out);
    return i == 0;
}

static const tgi_image_info *npy_info(const tgi_source *s)
{
    return &((const npy_source *)s)->info;
}

static size_t npy_codec_bytes(const tgi_source *base)
{
    const npy_source *s = (const npy_source *)base;
    return sizeof *s + (size_t)s->n_lanes * (sizeof *s->lanes + WINDOW);
}

static int npy_probe(const uint8_t *head, size_t n, const char *path)
{
    (void)path;
    return n >= 8 && memcmp(head, "\x93NUMPY", 6) == 0;
}

const tgi_source_ops tgi_npy_source_ops = {
    .format = "npy",
    .fuzzed = TGI_FUZZED,
    .probe = npy_probe,
    .open = npy_open,
    .info = npy_info,
    .read = npy_read,
    .close = npy_close,
    .codec_bytes = npy_codec_bytes,
    .held = npy_held,
};

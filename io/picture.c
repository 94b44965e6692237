/* picture.c - boxes out of a file whose rows come in order. One decoder and one ring of rows
 * serve all threads under a lock. */
#include "io/picture.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/io_formats.h"

#include <pthread.h>
#include <string.h>

#define DEFAULT_BUDGET ((size_t)1 << 30)
#define KEEP_BYTES ((size_t)64 << 20)
#define KEEP_ROWS 64 /* even of a large picture */

typedef struct picture {
    tgi_source base;
    const tgi_picture_ops *ops;
    tgi_rfile file;
    tgi_image_info info;
    void *state;
    int (*cancelled)(void);
    atomic_int *surplus; /* of tgi_open_opts */
    pthread_mutex_t lock;
    size_t row_bytes, keep;
    int64_t next;  /* rows decoded since the beginning; -1: not begun, or failed */
    bool proven;   /* its end was met */
    uint8_t *ring; /* row y at y % keep */
    uint64_t decoded;
} picture;

void tgi_picture_resolution(tgi_image_meta *m, double x, double y)
{
    if (x <= 0 || y <= 0)
        return;
    m->resolution[1] = x / 100;
    m->resolution[0] = y / 100;
    m->resolution_unit = 3; /* TIFF's number for centimetres */
}

static void fill_info(picture *p, const char *format)
{
    tgi_image_info *i = &p->info;
    i->format = format;
    memcpy(i->axes, "YXS", i->samples > 1 ? 4 : 2); /* the rest is 0 already */
    i->n_axes = i->samples > 1 ? 3 : 2;
    i->shape[0] = i->block_h = i->level_h[0] = i->height;
    i->shape[1] = i->block_w = i->level_w[0] = i->width;
    i->shape[2] = i->samples;
    i->predictor = 1;
    i->n_planes = i->n_levels = i->n_series = 1;
    i->file_bytes = p->file.size;
}

static tg_status make_ring(picture *p, size_t budget, int spare, tgi_err *err)
{
    const size_t used = p->ops->bytes(p->state), left = budget > used ? budget - used : 0;
    const size_t room = tgi_min(budget / 16, KEEP_BYTES);
    size_t pixel;
    if (!tgi_mul_ok((size_t)p->info.samples, tgi_dtype_size(p->info.dtype), &pixel) ||
        !tgi_mul_ok((size_t)p->info.width, pixel, &p->row_bytes) || p->row_bytes > left ||
        p->row_bytes == 0)
        return tgi_fail(err, TG_E_BUDGET,
                        "a row of %lld pixels does not fit the %zu bytes allowed",
                        (long long)p->info.width, budget); /* the decoder has counted it */
    const int64_t rows = (int64_t)(room / p->row_bytes), least = (int64_t)(left / p->row_bytes);
    p->keep =
        spare ? 1 : (size_t)tgi_min(tgi_max(rows, tgi_min(KEEP_ROWS, least)), p->info.height);
    p->ring = tgi_malloc(TGI_TAG_IO, p->keep * p->row_bytes);
    return p->ring ? TG_OK
                   : tgi_fail(err, TG_E_NOMEM, "no memory for %zu rows of a picture", p->keep);
}

static tg_status open_parts(picture *p, const char *path, const tgi_open_opts *o, tgi_err *err)
{
    const size_t budget = o->decode_budget ? o->decode_budget : DEFAULT_BUDGET;
    TGI_TRY(tgi_rfile_open(path, &p->file, err));
    TGI_TRY(p->ops->open(&p->file, budget, &p->info, &p->state, err));
    fill_info(p, p->base.ops->format);
    if (o->level)
        return tgi_fail(err, TG_E_ARG,
                        "there is no resolution level %d: the image has full size alone, 0",
                        o->level);
    if (o->axes)
        TGI_TRY(tgi_image_relabel(&p->info, o->axes, err));
    return make_ring(p, budget, o->spare, err);
}

tg_status tgi_picture_open(const tgi_source_ops *source, const tgi_picture_ops *ops,
                           const char *path, const tgi_open_opts *o, tgi_source **out,
                           tgi_err *err)
{
    picture *p = tgi_calloc(TGI_TAG_IO, 1, sizeof *p);
    if (!p)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a %s reader", source->format);
    *p = (picture){.base.ops = source, .ops = ops, .file.fd = -1, .next = -1};
    p->cancelled = o->cancelled;
    p->surplus = o->surplus;
    pthread_mutex_init(&p->lock, NULL);
    const tg_status st = open_parts(p, path, o, err);
    *out = &p->base;
    if (st != TG_OK)
        tgi_picture_close(out);
    return st;
}

void tgi_picture_close(tgi_source **s)
{
    picture *p = (picture *)*s;
    if (!p)
        return;
    if (p->state)
        p->ops->close(p->state);
    tgi_free(p->ring);
    tgi_image_meta_free(&p->info.meta);
    pthread_mutex_destroy(&p->lock);
    tgi_rfile_close(&p->file);
    tgi_free(p);
    *s = NULL;
}

/* The next row (`at` NULL: on the way to the end); with the last one all that a whole file has
 * behind it. */
static tg_status decode_row(picture *p, uint8_t *at, tgi_err *err)
{
    TGI_TRY(at ? p->ops->row(p->state, at, err) : p->ops->skip(p->state, err));
    if (p->next + 1 < p->info.height)
        return TG_OK;
    TGI_TRY(p->ops->end(p->state, err));
    p->proven = true;
    if (p->surplus && p->ops->behind && p->ops->behind(p->state))
        atomic_fetch_or(p->surplus, TGI_SURPLUS_BEHIND);
    return TG_OK;
}

static tg_status begin(picture *p, tgi_err *err)
{
    p->next = -1;
    TGI_TRY(p->ops->begin(p->state, err));
    p->next = 0;
    return TG_OK;
}

/* Rows until y are there, or (`made` false) only gone over. A failure is met again by whoever
 * asks next. */
static tg_status decode_to(picture *p, int64_t y, bool made, tgi_err *err)
{
    if (p->next < 0 || y < p->next - (int64_t)p->keep)
        TGI_TRY(begin(p, err));
    while (p->next <= y) {
        uint8_t *at = made ? p->ring + (size_t)p->next % p->keep * p->row_bytes : NULL;
        const int far = y - p->next >= (int64_t)p->keep; /* on the way only */
        const tg_status st = decode_row(p, at, err);
        if (st != TG_OK) {
            tgi_err_prefix(err, "row %lld", (long long)p->next);
            p->next = -1;
            return st;
        }
        p->next++;
        p->decoded += made ? p->row_bytes : 0;
        if (far && p->cancelled && p->cancelled())
            return tgi_fail(err, TG_E_CANCELLED, "stopped on the way to a later row");
    }
    return TG_OK;
}

/* All rows are kept: they are made at once. Else the file is gone over to its end. */
static tg_status prove(picture *p, tgi_err *err)
{
    const int64_t last = p->info.height - 1;
    if (p->proven || !p->ops->skip)
        return TG_OK;
    if (p->keep >= (size_t)p->info.height)
        return decode_to(p, last, true, err);
    TGI_TRY(begin(p, err));
    const tg_status st = decode_to(p, last, false, err);
    p->next = -1; /* the rows that went by are not kept, however far it came */
    return st;
}

/* n samples, `stride` apart, to dst, `to` apart. */
static void pick(uint8_t *dst, size_t to, const uint8_t *src, int64_t n, size_t stride,
                 size_t size)
{
    if (stride == 1 && to == 1)
        memcpy(dst, src, (size_t)n * size);
    else if (size == 1)
        for (int64_t i = 0; i < n; i++)
            dst[(size_t)i * to] = src[(size_t)i * stride];
    else
        for (int64_t i = 0; i < n; i++)
            memcpy(dst + (size_t)i * to * size, src + (size_t)i * stride * size, size);
}

/* Columns [x0,x1) of samples [s0,s1) of a decoded row to dst, planes or side by side. */
static void pick_row(const picture *p, const uint8_t *row, int s0, int s1, int64_t x0,
                     int64_t x1, uint8_t *dst, size_t sample_pitch)
{
    const size_t size = tgi_dtype_size(p->info.dtype), samples = (size_t)p->info.samples;
    const size_t n = (size_t)(s1 - s0), to = sample_pitch == TGI_INTERLEAVED ? n : 1;
    const size_t next = sample_pitch == TGI_INTERLEAVED ? size : sample_pitch;
    const uint8_t *src = row + (size_t)x0 * samples * size;
    if (to == samples) /* as it was decoded */
        memcpy(dst, src, (size_t)(x1 - x0) * samples * size);
    else
        for (size_t k = 0; k < n; k++)
            pick(dst + k * next, to, src + ((size_t)s0 + k) * size, x1 - x0, samples, size);
}

tg_status tgi_picture_read(tgi_source *base, int thread, int64_t plane, int s0, int s1,
                           int64_t y0, int64_t y1, int64_t x0, int64_t x1, void *dst,
                           size_t row_pitch, size_t sample_pitch, tgi_err *err)
{
    picture *p = (picture *)base;
    const tgi_image_info *i = &p->info;
    (void)thread;
    if (plane != 0 || s0 < 0 || s1 > i->samples || y0 < 0 || y1 > i->height || x0 < 0 ||
        x1 > i->width)
        return tgi_fail(err, TG_E_ARG, "a box outside the picture: plane %lld, rows %lld:%lld",
                        (long long)plane, (long long)y0, (long long)y1);
    pthread_mutex_lock(&p->lock);
    tg_status st = y0 == 0 && y1 == i->height ? TG_OK : prove(p, err);
    for (int64_t y = y0; y < y1 && x0 < x1 && s0 < s1 && st == TG_OK; y++) {
        st = decode_to(p, y, true, err);
        const uint8_t *row = p->ring + (size_t)y % p->keep * p->row_bytes;
        if (st == TG_OK)
            pick_row(p, row, s0, s1, x0, x1, (uint8_t *)dst + (size_t)(y - y0) * row_pitch,
                     sample_pitch);
    }
    pthread_mutex_unlock(&p->lock);
    return st;
}

const tgi_image_info *tgi_picture_info(const tgi_source *s)
{
    return &((const picture *)s)->info;
}

size_t tgi_picture_bytes(const tgi_source *s)
{
    const picture *p = (const picture *)s;
    return sizeof *p + p->ops->bytes(p->state) + p->keep * p->row_bytes;
}

int64_t tgi_picture_keeps(const tgi_source *s)
{
    return (int64_t)((const picture *)s)->keep;
}

uint64_t tgi_picture_decoded(const tgi_source *s)
{
    return ((const picture *)s)->decoded;
}

int tgi_picture_held(const tgi_source *s, int64_t i, tgi_held *out)
{
    tgi_rfile_held(&((const picture *)s)->file, out);
    return i == 0;
}

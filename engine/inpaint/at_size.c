/* at_size.c - see at_size.h. */
#include "engine/inpaint/at_size.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"

#include <string.h>

struct tgi_at_size {
    const tgi_image_info *film; /* borrowed */
    tgi_at_size_how how;
    tgi_resize *smaller, *larger;
    void *placed; /* the part of the method's frame that is the film's; with a canvas alone */
    void *read, *made; /* the part: on its way in; made as large as it is in the film */
    void *own;         /* a frame of the film, into which that is pasted */
    uint8_t *read_hidden, *hidden; /* of the film's size */
};

static size_t plane(const tgi_at_size *a)
{
    return (size_t)a->film->height * (size_t)a->film->width;
}

static size_t pixel_bytes(const tgi_at_size *a)
{
    return (size_t)a->film->samples * tgi_dtype_size(a->film->dtype);
}

static size_t frame_bytes(const tgi_at_size *a)
{
    return tgi_sat_mul(plane(a), pixel_bytes(a));
}

static size_t part_bytes(const tgi_at_size *a)
{
    return tgi_sat_mul((size_t)(a->how.part.height * a->how.part.width), pixel_bytes(a));
}

/* Of the film's frame in the method's. */
static int64_t inner_height(const tgi_at_size *a)
{
    return a->how.canvas.height ? a->how.canvas.y1 - a->how.canvas.y0 : a->how.height;
}

static int64_t inner_width(const tgi_at_size *a)
{
    return a->how.canvas.height ? a->how.canvas.x1 - a->how.canvas.x0 : a->how.width;
}

static size_t placed_bytes(const tgi_at_size *a)
{
    return a->how.canvas.height
               ? (size_t)(inner_height(a) * inner_width(a)) * (frame_bytes(a) / plane(a))
               : 0;
}

static tg_status take_memory(tgi_at_size *a, tgi_err *err)
{
    const tgi_crop *c = &a->how.part;
    const int n = a->film->samples;
    TGI_TRY(tgi_resize_new(TGI_RESIZE_PILLOW_BICUBIC, c->height, c->width, inner_height(a),
                           inner_width(a), n, &a->smaller, err));
    TGI_TRY(tgi_resize_new(a->how.larger, a->how.height, a->how.width, c->height, c->width, n,
                           &a->larger, err));
    a->read = tgi_malloc(TGI_TAG_IO, part_bytes(a));
    a->made = tgi_malloc(TGI_TAG_IO, part_bytes(a));
    a->own = tgi_malloc(TGI_TAG_IO, frame_bytes(a));
    a->placed = placed_bytes(a) ? tgi_malloc(TGI_TAG_IO, placed_bytes(a)) : NULL;
    a->read_hidden = tgi_malloc(TGI_TAG_IO, plane(a));
    a->hidden = tgi_malloc(TGI_TAG_IO, plane(a));
    return a->read && a->made && a->own && a->read_hidden && a->hidden &&
                   (a->placed || !placed_bytes(a))
               ? TG_OK
               : tgi_fail(err, TG_E_NOMEM, "no memory for frames of the film's size");
}

tg_status tgi_at_size_new(const tgi_image_info *film, const tgi_at_size_how *how,
                          tgi_at_size **out, tgi_err *err)
{
    tgi_at_size *a = tgi_calloc(TGI_TAG_IO, 1, sizeof *a);
    if (!a)
        return tgi_fail(err, TG_E_NOMEM, "no memory for frames of the film's size");
    a->film = film;
    a->how = *how;
    const tg_status st = take_memory(a, err);
    if (st != TG_OK) {
        a->how.beside = NULL; /* they stay the caller's */
        a->how.masks = NULL;
        tgi_at_size_free(&a);
    }
    *out = a;
    return st;
}

void tgi_at_size_free(tgi_at_size **ap)
{
    tgi_at_size *a = *ap;
    if (!a)
        return;
    tgi_resize_free(&a->smaller);
    tgi_resize_free(&a->larger);
    tgi_masks_close(&a->how.masks);
    if (a->how.beside)
        tgi_source_close(&a->how.beside);
    tgi_free(a->placed);
    tgi_free(a->read);
    tgi_free(a->made);
    tgi_free(a->own);
    tgi_free(a->read_hidden);
    tgi_free(a->hidden);
    tgi_free(a);
    *ap = NULL;
}

size_t tgi_at_size_bytes(const tgi_at_size *a)
{
    const tgi_source *s = a->how.beside;
    const size_t frames =
        tgi_sat_add(tgi_sat_mul(2, part_bytes(a)),
                    tgi_sat_add(frame_bytes(a), 2 * plane(a) + placed_bytes(a)));
    return tgi_sat_add(tgi_sat_add(frames, s->ops->codec_bytes(s)),
                       tgi_masks_bytes(a->how.masks) + tgi_resize_bytes(a->smaller) +
                           tgi_resize_bytes(a->larger) + sizeof *a);
}

static void resize(const tgi_at_size *a, tgi_resize *r, const void *from, void *to)
{
    if (a->film->dtype == TG_DTYPE_U16)
        tgi_resize_run16(r, from, to);
    else
        tgi_resize_run(r, from, to);
}

const tgi_crop *tgi_at_size_part(const tgi_at_size *a)
{
    return &a->how.part;
}

const tgi_crop *tgi_at_size_room(tgi_at_size *a, void **pixels, uint8_t **hidden)
{
    *pixels = a->read;
    *hidden = a->read_hidden;
    return &a->how.part;
}

/* Of m pixels those that pixel i of n lies in, and one beside them on each side; of as many it is itself. */
static void reach_of(int64_t i, int64_t n, int64_t m, int64_t *lo, int64_t *hi)
{
    if (n == m) {
        *lo = i;
        *hi = i + 1;
        return;
    }
    *lo = tgi_max(0, i * m / n - 1);
    *hi = tgi_min(m, ((i + 1) * m + n - 1) / n + 1);
}

static void shrink_mask(const tgi_at_size *a, uint8_t *hidden)
{
    const tgi_crop *c = &a->how.part;
    const int64_t h = c->height, w = c->width;
    memset(hidden, 0, (size_t)(a->how.height * a->how.width));
    for (int64_t y = 0; y < h; y++) {
        const uint8_t *row = a->read_hidden + (c->y + y) * a->film->width + c->x,
                      *end = row + w;
        int64_t y0, y1, x0, x1;
        reach_of(y, h, a->how.height, &y0, &y1);
        for (const uint8_t *at = row; at < end && (at = memchr(at, 1, (size_t)(end - at)));
             at++) {
            reach_of(at - row, w, a->how.width, &x0, &x1);
            for (int64_t i = y0; i < y1; i++)
                memset(hidden + i * a->how.width + x0, 1, (size_t)(x1 - x0));
        }
    }
}

/* In the middle of the method's frame. */
static void place(const tgi_at_size *a, char *pixels)
{
    const size_t each = frame_bytes(a) / plane(a), row = (size_t)inner_width(a) * each,
                 wide = (size_t)a->how.width * each;
    memset(pixels, 0, wide * (size_t)a->how.height);
    for (int64_t y = 0; y < inner_height(a); y++)
        memcpy(pixels + (size_t)(a->how.canvas.y0 + y) * wide + (size_t)a->how.canvas.x0 * each,
               (const char *)a->placed + (size_t)y * row, row);
}

void tgi_at_size_smaller(tgi_at_size *a, void *pixels, uint8_t *hidden)
{
    if (a->placed) {
        resize(a, a->smaller, a->read, a->placed);
        place(a, pixels);
        return;
    }
    resize(a, a->smaller, a->read, pixels);
    shrink_mask(a, hidden);
}

/* What was made, where something is hidden, or all of it. */
static void paste(const tgi_at_size *a)
{
    const tgi_crop *c = &a->how.part;
    const size_t each = pixel_bytes(a), row = (size_t)c->width * each;
    for (int64_t y = 0; y < c->height; y++) {
        const int64_t at = (c->y + y) * a->film->width + c->x;
        const char *from = (const char *)a->made + (size_t)y * row;
        char *to = (char *)a->own + (size_t)at * each;
        if (a->how.whole)
            memcpy(to, from, row);
        for (int64_t x = 0; !a->how.whole && x < c->width; x++)
            if (a->hidden[at + x])
                memcpy(to + (size_t)x * each, from + (size_t)x * each, each);
    }
}

tg_status tgi_at_size_compose(tgi_at_size *a, int64_t k, const tgi_propagated *made,
                              const void **pixels, const uint8_t **hidden, tgi_err *err)
{
    const tgi_image_info *f = a->film;
    const size_t row = frame_bytes(a) / (size_t)f->height;
    TGI_TRY(tgi_masks_read(a->how.masks, k, a->hidden, err));
    resize(a, a->larger, made->pixels, a->made);
    if (!a->how.whole || part_bytes(a) < frame_bytes(a))
        TGI_TRY(tgi_source_read(a->how.beside, 0, k, 0, f->samples, 0, f->height, 0, f->width,
                                a->own, row, TGI_INTERLEAVED, err));
    paste(a);
    *pixels = a->own;
    *hidden = a->hidden;
    return TG_OK;
}

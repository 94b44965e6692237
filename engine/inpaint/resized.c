/* resized.c - see resized.h. */
#include "engine/inpaint/resized.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/inpaint/resize.h"

#include <pthread.h>
#include <string.h>

typedef struct resized {
    tgi_source base;
    tgi_source *inner;
    const tgi_image_info *from;
    tgi_image_info info; /* what is owned in it is the inner one's */
    tgi_resize *resize;
    pthread_mutex_t lock;
    void *read, *made;
    int64_t plane; /* that `made` is of; -1: none */
} resized;

static resized *resized_of(const tgi_source *s)
{
    return (resized *)(uintptr_t)s;
}

static size_t bytes_of(const tgi_image_info *i)
{
    return tgi_sat_mul((size_t)i->height * (size_t)i->width,
                       (size_t)i->samples * tgi_dtype_size(i->dtype));
}

static const tgi_image_info *resized_info(const tgi_source *s)
{
    return &resized_of(s)->info;
}

/* Plane k is in `made`. Under the lock. */
static tg_status make(resized *r, int64_t k, tgi_err *err)
{
    const tgi_image_info *f = r->from;
    if (r->plane == k)
        return TG_OK;
    r->plane = -1;
    TGI_TRY(tgi_source_read(r->inner, 0, k, 0, f->samples, 0, f->height, 0, f->width, r->read,
                            bytes_of(f) / (size_t)f->height, TGI_INTERLEAVED, err));
    if (f->dtype == TG_DTYPE_U16)
        tgi_resize_run16(r->resize, r->read, r->made);
    else
        tgi_resize_run(r->resize, r->read, r->made);
    r->plane = k;
    return TG_OK;
}

static tg_status resized_read(tgi_source *base, int thread, int64_t k, int s0, int s1,
                              int64_t y0, int64_t y1, int64_t x0, int64_t x1, void *dst,
                              size_t row_pitch, size_t sample_pitch, tgi_err *err)
{
    resized *r = resized_of(base);
    const size_t row = bytes_of(&r->info) / (size_t)r->info.height;
    (void)thread;
    pthread_mutex_lock(&r->lock);
    const tg_status st = make(r, k, err);
    for (int64_t y = y0; st == TG_OK && y < y1; y++)
        tgi_pick_row(r->info.dtype, r->info.samples, (const char *)r->made + (size_t)y * row,
                     s0, s1, x0, x1, (char *)dst + (size_t)(y - y0) * row_pitch, sample_pitch);
    pthread_mutex_unlock(&r->lock);
    return st;
}

static void resized_close(tgi_source **base)
{
    resized *r = resized_of(*base);
    if (!r)
        return;
    if (r->inner)
        tgi_source_close(&r->inner);
    tgi_resize_free(&r->resize);
    tgi_free(r->read);
    tgi_free(r->made);
    pthread_mutex_destroy(&r->lock);
    tgi_free(r);
    *base = NULL;
}

static size_t resized_codec_bytes(const tgi_source *s)
{
    const resized *r = resized_of(s);
    const size_t own = tgi_sat_add(tgi_sat_add(bytes_of(r->from), bytes_of(&r->info)),
                                   tgi_resize_bytes(r->resize) + sizeof *r);
    return tgi_sat_add(r->inner->ops->codec_bytes(r->inner), own);
}

static const tgi_source *resized_inner(const tgi_source *s)
{
    return resized_of(s)->inner;
}

static const tgi_source_ops resized_ops = {.format = "resized",
                                           .fuzzed = TGI_FUZZED,
                                           .info = resized_info,
                                           .read = resized_read,
                                           .close = resized_close,
                                           .codec_bytes = resized_codec_bytes,
                                           .decoded_bytes = tgi_inner_decoded,
                                           .file = tgi_inner_file,
                                           .held = tgi_inner_held,
                                           .inner = resized_inner};

/* The same film, its rows and columns as many. */
static void say_size(resized *r, int64_t height, int64_t width)
{
    tgi_image_info *i = &r->info;
    const double by[3] = {1, (double)r->from->height / (double)height,
                          (double)r->from->width / (double)width};
    for (int k = 0; k < i->n_axes; k++) {
        if (i->axes[k] == 'Y')
            i->shape[k] = height;
        if (i->axes[k] == 'X')
            i->shape[k] = width;
    }
    i->height = i->level_h[0] = height;
    i->width = i->level_w[0] = width;
    i->n_levels = 1;
    i->plain = 0;
    for (int k = 1; k < 3; k++) {
        i->meta.physical[k] *= by[k];
        i->meta.resolution[k - 1] /= by[k];
    }
}

static tg_status take_memory(resized *r, tgi_err *err)
{
    const tgi_image_info *f = r->from;
    TGI_TRY(tgi_resize_new(TGI_RESIZE_PILLOW_BICUBIC, f->height, f->width, r->info.height,
                           r->info.width, f->samples, &r->resize, err));
    r->read = tgi_malloc(TGI_TAG_IO, bytes_of(f));
    r->made = tgi_malloc(TGI_TAG_IO, bytes_of(&r->info));
    return r->read && r->made ? TG_OK
                              : tgi_fail(err, TG_E_NOMEM, "no memory for a frame at its size");
}

tg_status tgi_resized_open(tgi_source *inner, int64_t height, int64_t width, tgi_source **out,
                           tgi_err *err)
{
    const tgi_image_info *from = inner->ops->info(inner);
    if (from->dtype != TG_DTYPE_U8 && from->dtype != TG_DTYPE_U16)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "the input has pixels of %s; frames of another size are made of uint8 "
                        "or uint16",
                        tgi_dtype_name(from->dtype));
    resized *r = tgi_calloc(TGI_TAG_IO, 1, sizeof *r);
    if (!r)
        return tgi_fail(err, TG_E_NOMEM, "no memory for frames of another size");
    *r = (resized){.base = {.ops = &resized_ops},
                   .inner = inner,
                   .from = from,
                   .info = *from,
                   .plane = -1};
    pthread_mutex_init(&r->lock, NULL);
    say_size(r, height, width);
    tgi_source *made = &r->base;
    const tg_status st = take_memory(r, err);
    if (st == TG_OK)
        *out = made;
    else {
        r->inner = NULL; /* it stays the caller's */
        resized_close(&made);
    }
    return st;
}

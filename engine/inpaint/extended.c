/* extended.c - see extended.h. */
#include "engine/inpaint/extended.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/film_out.h"

#include <string.h>

#define MULTIPLE 8
#define HALF_MULTIPLE 4
#define WIDE 10    /* pixels of a border; beside one that is wider */
#define DOUBTFUL 4 /* so many of the film's have motions that are not trusted */

/* ---- Where it lies ------------------------------------------------------------------------ */

static void scale_side(int64_t n, double by, int64_t *all, int64_t *lo, int64_t *hi)
{
    const int64_t scaled = (int64_t)(by * (double)n);
    *all = tgi_max(n, scaled - scaled % MULTIPLE);
    *lo = (*all - n) / 2;
    *lo -= *lo % HALF_MULTIPLE;
    *hi = *lo + n;
}

tgi_canvas tgi_canvas_of(int64_t height, int64_t width, double by_height, double by_width)
{
    tgi_canvas c;
    scale_side(height, by_height, &c.height, &c.y0, &c.y1);
    scale_side(width, by_width, &c.width, &c.x0, &c.x1);
    return c;
}

tgi_canvas tgi_canvas_at(const tgi_canvas *c, int64_t height, int64_t width)
{
    return (tgi_canvas){.height = height,
                        .width = width,
                        .y0 = tgi_ceil_div(c->y0 * height, c->height),
                        .y1 = c->y1 * height / c->height,
                        .x0 = tgi_ceil_div(c->x0 * width, c->width),
                        .x1 = c->x1 * width / c->width};
}

tgi_canvas tgi_canvas_moving(const tgi_canvas *c)
{
    const int64_t dy = c->y0 > WIDE ? DOUBTFUL : 0, dx = c->x0 > WIDE ? DOUBTFUL : 0;
    return (tgi_canvas){c->height, c->width, c->y0 + dy, c->y1 - dy, c->x0 + dx, c->x1 - dx};
}

int tgi_canvas_border(const tgi_canvas *c, tgi_mask_box box[4])
{
    const int64_t rows = c->y1 - c->y0;
    const tgi_mask_box all[4] = {
        {.x = 0, .y = 0, .width = c->width, .height = c->y0},
        {.x = 0, .y = c->y1, .width = c->width, .height = c->height - c->y1},
        {.x = 0, .y = c->y0, .width = c->x0, .height = rows},
        {.x = c->x1, .y = c->y0, .width = c->width - c->x1, .height = rows}};
    int n = 0;
    for (int i = 0; i < 4; i++)
        if (all[i].width > 0 && all[i].height > 0) {
            box[n] = all[i];
            box[n++].until = INT64_MAX;
        }
    return n;
}

/* ---- As a source -------------------------------------------------------------------------- */

typedef struct extended {
    tgi_source base;
    tgi_source *inner;
    tgi_canvas at;
    tgi_image_info info; /* what is owned in it is the inner one's */
} extended;

static extended *extended_of(const tgi_source *s)
{
    return (extended *)(uintptr_t)s;
}

static const tgi_image_info *extended_info(const tgi_source *s)
{
    return &extended_of(s)->info;
}

/* Zeros are black in every type of pixel. */
static void clear(const tgi_image_info *i, int samples, int64_t rows, int64_t columns,
                  char *dst, size_t row_pitch, size_t sample_pitch)
{
    const int apart = sample_pitch != TGI_INTERLEAVED;
    const size_t row =
        (size_t)columns * tgi_dtype_size(i->dtype) * (apart ? 1 : (size_t)samples);
    for (int s = 0; s < (apart ? samples : 1); s++)
        for (int64_t y = 0; y < rows; y++)
            memset(dst + (apart ? (size_t)s * sample_pitch : 0) + (size_t)y * row_pitch, 0,
                   row);
}

/* Through a pipe a frame is there when it is read, or the film has ended: a border asks for it, too. */
static tg_status touch(const extended *e, int thread, int64_t k, tgi_err *err)
{
    uint64_t pixel;
    return tgi_film_source_is_stream(e->inner)
               ? tgi_source_read(e->inner, thread, k, 0, 1, 0, 1, 0, 1, &pixel, sizeof pixel,
                                 TGI_INTERLEAVED, err)
               : TG_OK;
}

static tg_status extended_read(tgi_source *base, int thread, int64_t k, int s0, int s1,
                               int64_t y0, int64_t y1, int64_t x0, int64_t x1, void *dst,
                               size_t row_pitch, size_t sample_pitch, tgi_err *err)
{
    const extended *e = extended_of(base);
    const tgi_canvas *c = &e->at;
    const size_t each = tgi_dtype_size(e->info.dtype) *
                        (sample_pitch == TGI_INTERLEAVED ? (size_t)(s1 - s0) : 1);
    const int64_t top = tgi_max(y0, c->y0), low = tgi_min(y1, c->y1), left = tgi_max(x0, c->x0),
                  right = tgi_min(x1, c->x1);
    clear(&e->info, s1 - s0, y1 - y0, x1 - x0, dst, row_pitch, sample_pitch);
    if (top >= low || left >= right)
        return touch(e, thread, k, err);
    char *to = (char *)dst + (size_t)(top - y0) * row_pitch + (size_t)(left - x0) * each;
    return tgi_source_read(e->inner, thread, k, s0, s1, top - c->y0, low - c->y0, left - c->x0,
                           right - c->x0, to, row_pitch, sample_pitch, err);
}

static void extended_close(tgi_source **base)
{
    extended *e = extended_of(*base);
    if (!e)
        return;
    if (e->inner)
        tgi_source_close(&e->inner);
    tgi_free(e);
    *base = NULL;
}

static size_t extended_codec_bytes(const tgi_source *s)
{
    const extended *e = extended_of(s);
    return tgi_sat_add(e->inner->ops->codec_bytes(e->inner), sizeof *e);
}

static const tgi_source *extended_inner(const tgi_source *s)
{
    return extended_of(s)->inner;
}

static const tgi_source_ops extended_ops = {.format = "extended",
                                            .fuzzed = TGI_FUZZED,
                                            .info = extended_info,
                                            .read = extended_read,
                                            .close = extended_close,
                                            .codec_bytes = extended_codec_bytes,
                                            .decoded_bytes = tgi_inner_decoded,
                                            .file = tgi_inner_file,
                                            .held = tgi_inner_held,
                                            .inner = extended_inner};

/* The same film, with more rows and columns. */
static void say_size(tgi_image_info *i, const tgi_canvas *c)
{
    for (int k = 0; k < i->n_axes; k++) {
        if (i->axes[k] == 'Y')
            i->shape[k] = c->height;
        if (i->axes[k] == 'X')
            i->shape[k] = c->width;
    }
    i->height = i->level_h[0] = c->height;
    i->width = i->level_w[0] = c->width;
    i->n_levels = 1;
    i->plain = 0;
}

tg_status tgi_extended_open(tgi_source *inner, const tgi_canvas *c, tgi_source **out,
                            tgi_err *err)
{
    const tgi_image_info *from = inner->ops->info(inner);
    if (from->height != c->y1 - c->y0 || from->width != c->x1 - c->x0)
        return tgi_fail(err, TG_E_INTERNAL, "frames of %lld x %lld in a hole of %lld x %lld",
                        (long long)from->width, (long long)from->height,
                        (long long)(c->x1 - c->x0), (long long)(c->y1 - c->y0));
    extended *e = tgi_calloc(TGI_TAG_IO, 1, sizeof *e);
    if (!e)
        return tgi_fail(err, TG_E_NOMEM, "no memory for frames that are extended");
    *e = (extended){.base = {.ops = &extended_ops}, .inner = inner, .at = *c, .info = *from};
    say_size(&e->info, c);
    *out = &e->base;
    return TG_OK;
}

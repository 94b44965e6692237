/* png.c - PNG files row by row, through libpng in memory of ours (png_lib.h). */
#include "io/png.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/bytes.h"
#include "io/exif.h"
#include "io/picture_out.h"
#include "io/png_lib.h"
#include "io/resolution.h"

#include <math.h>
#include <string.h>

#define SIGNATURE "\x89PNG\r\n\x1a\n"
#define PROFILE_CAP                                                                            \
    ((size_t)1 << 20) /* a larger one is left out: memory would go to it alone */

typedef struct png {
    tgi_png lib;
    tgi_part *to; /* borrowed */
    uint64_t at;
    tg_status io; /* of the file */
    tgi_err io_error;
    const tgi_picture_spec *spec; /* while the head is written */
    const void *row;              /* that a step writes */
    int64_t left;                 /* rows to come */
    void *block;
} png;

/* ---- The file ---- */

static void put_bytes(png_structp z, png_bytep bytes, size_t n)
{
    png *p = png_get_io_ptr(z);
    p->io = tgi_part_write(p->to, p->at, bytes, n, &p->io_error);
    if (p->io != TG_OK)
        png_error(z, "stopped");
    p->at += n;
}

static void flush_nothing(png_structp z)
{
    (void)z;
}

static tg_status run(png *p, void (*step)(void *), tgi_err *err)
{
    if (tgi_png_step(&p->lib, step, p))
        return TG_OK;
    return p->io != TG_OK
               ? tgi_fail(err, p->io, "%s", p->io_error.text)
               : tgi_fail(err, TG_E_INTERNAL, "%s: libpng: %s", p->to->partial, p->lib.text);
}

/* ---- Head ---- */

/* The bytes of the profile of the samples' colours that is written, or 0. */
static size_t profile_of(const tgi_picture_spec *s)
{
    return s->meta && tgi_icc_fits(s->meta, s->samples) && s->meta->icc_bytes <= PROFILE_CAP
               ? s->meta->icc_bytes
               : 0;
}

/* Pixels per metre, where the metadata know. */
static void put_resolution(png *p, const tgi_image_meta *m)
{
    double per_unit[2];
    const int unit = tgi_resolution_of(m, per_unit);
    const double to_metre = unit == 2 ? 100 / 2.54 : 100;
    const double x = per_unit[0] * to_metre, y = per_unit[1] * to_metre;
    if ((unit == 2 || unit == 3) && x >= 0.5 && x < INT32_MAX && y >= 0.5 && y < INT32_MAX)
        png_set_pHYs(p->lib.z, p->lib.info, (png_uint_32)lround(x), (png_uint_32)lround(y),
                     PNG_RESOLUTION_METER);
}

static void put_meta(png *p, const tgi_image_meta *m)
{
    uint8_t turned[TGI_EXIF_BYTES];
    const size_t profile = profile_of(p->spec);
    if (profile)
        png_set_iCCP(p->lib.z, p->lib.info, "ICC Profile", PNG_COMPRESSION_TYPE_BASE, m->icc,
                     (png_uint_32)profile);
    put_resolution(p, m);
    if (m->orientation < 2)
        return;
    tgi_exif_make(m->orientation, turned);
    png_set_eXIf_1(p->lib.z, p->lib.info, TGI_EXIF_BYTES, turned);
}

static void write_head(void *state)
{
    static const int colour[5] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                                  PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
    png *p = state;
    const tgi_picture_spec *s = p->spec;
    const int bits = s->dtype == TG_DTYPE_U16 ? 16 : 8;
    png_set_write_fn(p->lib.z, p, put_bytes, flush_nothing);
    tgi_png_start_writing(&p->lib, (uint32_t)s->width, (uint32_t)s->height, colour[s->samples],
                          bits);
    if (s->meta)
        put_meta(p, s->meta);
    png_write_info(p->lib.z, p->lib.info);
    if (bits == 16 && !TGI_HOST_BIG)
        png_set_swap(p->lib.z);
}

/* ---- Open and close ---- */

static size_t row_bytes_of(const tgi_picture_spec *s)
{
    return tgi_sat_mul((size_t)s->width, (size_t)s->samples * tgi_dtype_size(s->dtype));
}

static size_t png_bytes(const tgi_picture_spec *s)
{
    return tgi_sat_add(sizeof(png) + 64, tgi_png_write_bytes(row_bytes_of(s), profile_of(s)));
}

static tg_status png_may(const tgi_picture_spec *s, tgi_err *err)
{
    if (s->height < 1 || s->width < 1 || s->height > INT32_MAX || s->width > INT32_MAX ||
        s->samples < 1 || s->samples > 4 || row_bytes_of(s) > INT32_MAX / 4 ||
        (s->dtype != TG_DTYPE_U8 && s->dtype != TG_DTYPE_U16))
        return tgi_fail(
            err, TG_E_ARG,
            "a PNG holds uint8 or uint16 in 1 to 4 samples, not %s in %d at %lldx%lld",
            tgi_dtype_name(s->dtype), s->samples, (long long)s->height, (long long)s->width);
    return TG_OK;
}

static void png_close(void *state)
{
    png *p = state;
    tgi_free(p->block);
    tgi_free(p);
}

static tg_status create_parts(png *p, tgi_err *err)
{
    p->lib.cap = tgi_png_write_bytes(row_bytes_of(p->spec), profile_of(p->spec));
    p->block = tgi_malloc(TGI_TAG_IO, p->lib.cap + 64);
    if (!p->block)
        return tgi_fail(err, TG_E_NOMEM, "%s: no memory for the picture", p->to->partial);
    p->lib.arena = (uint8_t *)p->block + (64 - (uintptr_t)p->block % 64) % 64;
    if (!tgi_png_begin(&p->lib, true))
        return tgi_fail(err, TG_E_INTERNAL, "%s: libpng: %s", p->to->partial, p->lib.text);
    return run(p, write_head, err);
}

static tg_status png_create(tgi_part *to, const tgi_picture_spec *s, void **state, tgi_err *err)
{
    TGI_TRY(png_may(s, err));
    png *p = tgi_calloc(TGI_TAG_IO, 1, sizeof *p);
    if (!p)
        return tgi_fail(err, TG_E_NOMEM, "%s: no memory for the picture", to->partial);
    p->to = to;
    p->spec = s;
    p->left = s->height;
    const tg_status st = create_parts(p, err);
    p->spec = NULL;
    if (st != TG_OK)
        png_close(p);
    else
        *state = p;
    return st;
}

/* ---- Rows ---- */

static void write_row(void *state)
{
    const png *p = state;
    png_write_row(p->lib.z, p->row);
}

static void write_end(void *state)
{
    const png *p = state;
    png_write_end(p->lib.z, NULL);
}

static tg_status png_row(void *state, const void *row, tgi_err *err)
{
    png *p = state;
    p->row = row;
    p->left--;
    return run(p, write_row, err);
}

static tg_status png_finish(void *state, tgi_err *err)
{
    png *p = state;
    if (p->left)
        return tgi_fail(err, TG_E_INTERNAL, "%s: %lld rows are missing", p->to->partial,
                        (long long)p->left);
    TGI_TRY(run(p, write_end, err));
    return tgi_part_sync(p->to, err);
}

const tgi_picture_writer tgi_png_writer = {.name = "PNG",
                                           .suffixes = "|png|",
                                           .may = png_may,
                                           .bytes = png_bytes,
                                           .create = png_create,
                                           .row = png_row,
                                           .finish = png_finish,
                                           .close = png_close};

/* ---- Small pictures at once ---- */

static tg_status write_all(tgi_part *to, const tgi_picture_spec *s, const uint8_t *pixels,
                           size_t pitch, tgi_err *err)
{
    void *p = NULL;
    TGI_TRY(png_create(to, s, &p, err));
    tg_status st = TG_OK;
    for (int64_t y = 0; y < s->height && st == TG_OK; y++)
        st = png_row(p, pixels + (size_t)y * pitch, err);
    if (st == TG_OK)
        st = png_finish(p, err);
    png_close(p);
    return st;
}

tg_status tgi_png_write(const char *path, const uint8_t *pixels, int64_t height, int64_t width,
                        int channels, size_t pitch, tgi_err *err)
{
    const tgi_picture_spec s = {
        .height = height, .width = width, .samples = channels, .dtype = TG_DTYPE_U8};
    const tgi_part_spec spec = {.path = path,
                                .ending = ".made", /* .partial may be a run's */
                                .bytes = TGI_PART_GROWS,
                                .replace = 1,
                                .head = SIGNATURE,
                                .head_bytes = sizeof SIGNATURE - 1};
    tgi_part to = TGI_PART_CLOSED;
    const tg_status may = png_may(&s, err);
    if (may != TG_OK) {
        tgi_err_prefix(err, "%s", path);
        return may;
    }
    TGI_TRY(tgi_part_create(&spec, &to, err));
    tg_status st = write_all(&to, &s, pixels, pitch, err);
    if (st == TG_OK)
        st = tgi_part_name(&to, err);
    tgi_part_drop(&to);
    return st;
}

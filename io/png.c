/* png.c - signature, IHDR, iCCP, pHYs, eXIf, one IDAT per band of rows, IEND. Every row uses
 * filter 2
 * ("up"), which costs nothing and halves smooth pictures. Rows are gathered until a band is
 * full. Source: PNG specification, 2nd edition (ISO 15948). */
#include "io/png.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/bytes.h"
#include "io/deflate.h"
#include "io/exif.h"
#include "io/picture_out.h"
#include "io/resolution.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define ROOM ((size_t)1 << 18) /* filtered bytes of a band, unless one row needs more */
#define SIGNATURE "\x89PNG\r\n\x1a\n"

typedef struct png {
    tgi_part *to; /* borrowed */
    uint64_t at;
    size_t row_bytes, wide; /* of a row; elements of it when they are 16 bits, else 0 */
    int64_t left;           /* rows to come */
    void *deflate;
    uint8_t *above; /* the row before */
    uint8_t *row;   /* this one, big-endian */
    uint8_t *rows;  /* filtered rows of a band */
    size_t n, band; /* bytes of it used, and in all */
    uint8_t *chunk; /* 8 bytes of head, data, 4 of checksum */
    size_t cap;     /* of the data */
    void *block;
} png;

static void put32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
}

/* Write the chunk whose data stand in p->chunk + 8 already. */
static tg_status write_chunk(png *p, const char *type, size_t n, tgi_err *err)
{
    put32(p->chunk, (uint32_t)n);
    memcpy(p->chunk + 4, type, 4);
    put32(p->chunk + 8 + n, tgi_crc32(0, p->chunk + 4, n + 4));
    const uint64_t at = p->at;
    p->at += n + 12;
    return tgi_part_write(p->to, at, p->chunk, n + 12, err);
}

/* Pixels per metre, where the metadata know. */
static tg_status write_resolution(png *p, const tgi_image_meta *m, tgi_err *err)
{
    double per_unit[2];
    const int unit = tgi_resolution_of(m, per_unit);
    const double to_metre = unit == 2 ? 100 / 2.54 : 100;
    const double x = per_unit[0] * to_metre, y = per_unit[1] * to_metre;
    if (unit != 2 && unit != 3)
        return TG_OK;
    if (!(x >= 0.5 && x < INT32_MAX && y >= 0.5 && y < INT32_MAX))
        return TG_OK;
    put32(p->chunk + 8, (uint32_t)lround(x));
    put32(p->chunk + 12, (uint32_t)lround(y));
    p->chunk[16] = 1;
    return write_chunk(p, "pHYs", 9, err);
}

/* The profile of the samples' colours. One that does not fit the buffers is left out. */
static tg_status write_profile(png *p, const tgi_picture_spec *s, tgi_err *err)
{
    static const char name[] = "ICC Profile"; /* and 0, then the method 0 */
    const tgi_image_meta *m = s->meta;
    const size_t head = sizeof name + 1;
    if (!tgi_icc_fits(m, s->samples) || head + tgi_deflate_bound(m->icc_bytes) > p->cap)
        return TG_OK;
    memcpy(p->chunk + 8, name, sizeof name);
    p->chunk[8 + sizeof name] = 0;
    const size_t n =
        tgi_deflate(p->deflate, m->icc, m->icc_bytes, p->chunk + 8 + head, p->cap - head);
    p->deflate =
        tgi_deflate_open(p->deflate, 6); /* that stream has ended: pixels need another */
    return n ? write_chunk(p, "iCCP", head + n, err) : TG_OK;
}

static tg_status write_head(png *p, const tgi_picture_spec *s, tgi_err *err)
{
    static const uint8_t colour[5] = {0, 0, 4, 2, 6};
    TGI_TRY(tgi_part_write(p->to, 0, SIGNATURE, 8, err));
    p->at = 8;
    uint8_t *d = p->chunk + 8;
    memset(d, 0, 13);
    put32(d, (uint32_t)s->width);
    put32(d + 4, (uint32_t)s->height);
    d[8] = s->dtype == TG_DTYPE_U16 ? 16 : 8;
    d[9] = colour[s->samples];
    TGI_TRY(write_chunk(p, "IHDR", 13, err));
    if (!s->meta)
        return TG_OK;
    TGI_TRY(write_profile(p, s, err));
    TGI_TRY(write_resolution(p, s->meta, err));
    if (s->meta->orientation < 2)
        return TG_OK;
    tgi_exif_make(s->meta->orientation, p->chunk + 8);
    return write_chunk(p, "eXIf", TGI_EXIF_BYTES, err);
}

/* ---- Memory ---- */

static size_t row_bytes_of(const tgi_picture_spec *s)
{
    return tgi_sat_mul((size_t)s->width, (size_t)s->samples * tgi_dtype_size(s->dtype));
}

static size_t band_of(const tgi_picture_spec *s)
{
    const size_t row = tgi_sat_add(row_bytes_of(s), 1);
    return row > ROOM ? row : ROOM;
}

/* Parts may hold back what the parts before gave: room for both, and the window. */
static size_t chunk_cap(size_t band)
{
    return tgi_sat_add(tgi_sat_mul(2, tgi_deflate_bound(band)), (size_t)1 << 18);
}

static size_t png_bytes(const tgi_picture_spec *s)
{
    const size_t band = band_of(s), rows = tgi_sat_mul(2, row_bytes_of(s));
    return tgi_sat_add(tgi_sat_add(sizeof(png) + 64 + tgi_deflate_state_bytes() + 16, rows),
                       tgi_sat_add(band, chunk_cap(band)));
}

static tg_status make_buffers(png *p, const tgi_picture_spec *s, tgi_err *err)
{
    char *m = p->block = tgi_malloc(TGI_TAG_IO, png_bytes(s) - sizeof(png));
    if (!m)
        return tgi_fail(err, TG_E_NOMEM, "%s: no memory for the picture", p->to->partial);
    m += (64 - (uintptr_t)m % 64) % 64;
    p->row_bytes = row_bytes_of(s);
    p->wide = s->dtype == TG_DTYPE_U16 ? p->row_bytes / 2 : 0;
    p->left = s->height;
    p->band = band_of(s);
    p->cap = chunk_cap(p->band);
    p->deflate = tgi_deflate_open(m, 6);
    p->above = (uint8_t *)m + tgi_deflate_state_bytes();
    p->row = p->above + p->row_bytes;
    p->rows = p->row + p->row_bytes;
    p->chunk = p->rows + p->band;
    memset(p->above, 0, p->row_bytes);
    return p->deflate ? TG_OK : tgi_fail(err, TG_E_INTERNAL, "%s: deflate", p->to->partial);
}

/* ---- Rows ---- */

static tg_status png_may(const tgi_picture_spec *s, tgi_err *err)
{
    if (s->height < 1 || s->width < 1 || s->height > INT32_MAX || s->width > INT32_MAX ||
        s->samples < 1 || s->samples > 4 || row_bytes_of(s) > INT32_MAX / 4 ||
        (s->dtype != TG_DTYPE_U8 && s->dtype != TG_DTYPE_U16))
        return tgi_fail(
            err, TG_E_ARG,
            "a PNG holds uint8 or uint16 in 1 to 4 samples, not %s in %d at %lldx%lld",
            tgi_dtype_name(s->dtype), s->samples, (long long)s->height, (long long)s->width);
    return tgi_deflate_available()
               ? TG_OK
               : tgi_fail(err, TG_E_UNSUPPORTED, "this build has no zlib to write PNG with");
}

static void png_close(void *state)
{
    png *p = state;
    tgi_free(p->block);
    tgi_free(p);
}

static tg_status png_create(tgi_part *to, const tgi_picture_spec *s, void **state, tgi_err *err)
{
    TGI_TRY(png_may(s, err));
    png *p = tgi_calloc(TGI_TAG_IO, 1, sizeof *p);
    if (!p)
        return tgi_fail(err, TG_E_NOMEM, "%s: no memory for the picture", to->partial);
    p->to = to;
    tg_status st = make_buffers(p, s, err);
    if (st == TG_OK)
        st = write_head(p, s, err);
    if (st != TG_OK)
        png_close(p);
    else
        *state = p;
    return st;
}

static tg_status write_band(png *p, tgi_err *err)
{
    const size_t got =
        tgi_deflate_part(p->deflate, p->rows, p->n, p->left == 0, p->chunk + 8, p->cap);
    p->n = 0;
    if (got == SIZE_MAX)
        return tgi_fail(err, TG_E_INTERNAL, "%s: deflate failed", p->to->partial);
    return got ? write_chunk(p, "IDAT", got, err) : TG_OK;
}

static tg_status png_row(void *state, const void *row, tgi_err *err)
{
    png *p = state;
    if (p->wide && !TGI_HOST_BIG)
        tgi_swap_copy(p->row, row, p->wide, 2);
    else
        memcpy(p->row, row, p->row_bytes);
    uint8_t *dst = p->rows + p->n;
    *dst++ = 2;
    for (size_t i = 0; i < p->row_bytes; i++)
        dst[i] = (uint8_t)(p->row[i] - p->above[i]);
    uint8_t *swap = p->above;
    p->above = p->row;
    p->row = swap;
    p->n += p->row_bytes + 1;
    p->left--;
    return !p->left || p->band - p->n < p->row_bytes + 1 ? write_band(p, err) : TG_OK;
}

static tg_status png_finish(void *state, tgi_err *err)
{
    png *p = state;
    if (p->left)
        return tgi_fail(err, TG_E_INTERNAL, "%s: %lld rows are missing", p->to->partial,
                        (long long)p->left);
    TGI_TRY(write_chunk(p, "IEND", 0, err));
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

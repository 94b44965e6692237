/* tiff_picture.c - a TIFF of one plane, row by row from the top: a frame of a film as a file of its own.
 *
 *     [header | directory | its values | pixels]
 *
 * Classic, not compressed, one strip, in the machine's order; so where all lies is known before the first row.
 * What has tiles, levels and compression is written by the journal instead (sink.h).
 *
 * Source: TIFF 6.0, sections 2 to 8 and 19. */
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/base/size.h"
#include "io/picture_out.h"
#include "io/rational.h"
#include "io/resolution.h"

#include <string.h>

enum { ASCII = 2, SHORT = 3, LONG = 4, RATIONAL = 5, UNDEFINED = 7 };
#define ENTRIES 16
#define VALUES_AT ((size_t)(8 + 2 + 12 * ENTRIES + 4))
#define LIMIT 0xffffffffu

typedef struct tiff {
    tgi_part *to; /* borrowed */
    uint8_t *head;
    size_t at_values, row_bytes;
    int n;
    uint64_t at, end; /* of the next row; of the file */
} tiff;

static size_t row_of(const tgi_picture_spec *s)
{
    return tgi_sat_mul((size_t)s->width, (size_t)s->samples * tgi_dtype_size(s->dtype));
}

/* The profile is written where it is one of these samples'. */
static size_t profile_of(const tgi_picture_spec *s)
{
    return s->meta && tgi_icc_fits(s->meta, s->samples) ? s->meta->icc_bytes : 0;
}

/* Header, directory, and values: the most that the entries below point to. */
static size_t front_of(const tgi_picture_spec *s)
{
    return tgi_align_size(VALUES_AT + 128 + profile_of(s), 16);
}

static tg_status tiff_may(const tgi_picture_spec *s, tgi_err *err)
{
    if (s->meta && s->meta->stored_as >= TGI_STORED_CMYK)
        return tgi_fail(err, TG_E_ARG, "a TIFF for each frame holds light, the samples are %s",
                        s->meta->stored_as == TGI_STORED_CMYK ? "CMYK inks" : "Lab");
    if (s->height < 1 || s->width < 1 || s->samples < 1 || s->samples > 4 ||
        tgi_sat_add(front_of(s), tgi_sat_mul(row_of(s), (size_t)s->height)) > LIMIT)
        return tgi_fail(err, TG_E_ARG,
                        "a TIFF for each frame holds 1 to 4 samples and ends at 4 GiB, not "
                        "%d of %s at %lldx%lld",
                        s->samples, tgi_dtype_name(s->dtype), (long long)s->height,
                        (long long)s->width);
    return TG_OK;
}

static size_t tiff_bytes(const tgi_picture_spec *s)
{
    return sizeof(tiff) + front_of(s);
}

/* ---- The directory ----------------------------------------------------------------------- */

static void add(tiff *t, unsigned tag, unsigned type, size_t count, const void *v, size_t n)
{
    uint8_t *e = t->head + 10 + 12 * t->n++;
    const uint16_t two[] = {(uint16_t)tag, (uint16_t)type};
    const uint32_t items = (uint32_t)count, at = (uint32_t)t->at_values;
    memcpy(e, two, sizeof two);
    memcpy(e + 4, &items, 4);
    if (n <= 4) {
        memcpy(e + 8, v, n);
        return;
    }
    memcpy(e + 8, &at, 4);
    memcpy(t->head + at, v, n);
    t->at_values = tgi_align_size(t->at_values + n, 4);
}

static void add_short(tiff *t, unsigned tag, unsigned v)
{
    const uint16_t x = (uint16_t)v;
    add(t, tag, SHORT, 1, &x, sizeof x);
}

static void add_long(tiff *t, unsigned tag, uint64_t v)
{
    const uint32_t x = (uint32_t)v;
    add(t, tag, LONG, 1, &x, sizeof x);
}

static void add_shorts(tiff *t, unsigned tag, int n, unsigned v)
{
    uint16_t x[4];
    for (int i = 0; i < n; i++)
        x[i] = (uint16_t)v;
    add(t, tag, SHORT, (size_t)n, x, (size_t)n * sizeof *x);
}

static void add_resolution(tiff *t, const tgi_image_meta *m)
{
    double per_unit[2];
    uint32_t x[2], y[2];
    const int unit = tgi_resolution_of(m, per_unit);
    if (!unit || !tgi_rational(per_unit[0], x) || !tgi_rational(per_unit[1], y))
        return;
    add(t, 282, RATIONAL, 1, x, sizeof x);
    add(t, 283, RATIONAL, 1, y, sizeof y);
    add_short(t, 296, (unsigned)unit);
}

static unsigned format_of(tg_dtype d)
{
    if (tgi_dtype_is_float(d))
        return 3;
    return d == TG_DTYPE_I8 || d == TG_DTYPE_I16 || d == TG_DTYPE_I32 || d == TG_DTYPE_I64 ? 2
                                                                                           : 1;
}

static void fill(tiff *t, const tgi_picture_spec *s)
{
    static const char software[] = "tegula";
    const int white = s->meta && s->meta->stored_as == TGI_STORED_MINISWHITE;
    const int n = s->samples, colours = n >= 3 ? 3 : 1;
    t->at_values = VALUES_AT;
    add_long(t, 256, (uint64_t)s->width);
    add_long(t, 257, (uint64_t)s->height);
    add_shorts(t, 258, n, 8 * (unsigned)tgi_dtype_size(s->dtype));
    add_short(t, 259, 1);
    add_short(t, 262, colours == 3 ? 2 : white ? 0 : 1);
    add_long(t, 273, front_of(s));
    add_short(t, 277, (unsigned)n);
    add_long(t, 278, (uint64_t)s->height);
    add_long(t, 279, row_of(s) * (uint64_t)s->height);
    add_resolution(t, s->meta);
    add(t, 305, ASCII, sizeof software, software, sizeof software);
    if (n > colours)
        add_short(t, 338, s->meta ? (unsigned)s->meta->alpha : 0);
    add_shorts(t, 339, n, format_of(s->dtype));
    if (profile_of(s))
        add(t, 34675, UNDEFINED, profile_of(s), s->meta->icc, profile_of(s));
    const uint16_t entries = (uint16_t)t->n;
    memcpy(t->head, TGI_TIFF_PICTURE_HEAD, TGI_TIFF_PICTURE_HEAD_BYTES);
    memcpy(t->head + 8, &entries, sizeof entries);
}

/* ---- The file ---------------------------------------------------------------------------- */

static void tiff_close(void *state)
{
    tiff *t = state;
    tgi_free(t->head);
    tgi_free(t);
}

static tg_status tiff_create(tgi_part *to, const tgi_picture_spec *s, void **state,
                             tgi_err *err)
{
    TGI_TRY(tiff_may(s, err));
    tiff *t = tgi_calloc(TGI_TAG_IO, 1, sizeof *t);
    if (t)
        t->head = tgi_calloc(TGI_TAG_IO, 1, front_of(s));
    if (!t || !t->head) {
        tgi_free(t);
        return tgi_fail(err, TG_E_NOMEM, "%s: no memory for the picture", to->partial);
    }
    t->to = to;
    t->row_bytes = row_of(s);
    t->at = front_of(s);
    t->end = t->at + t->row_bytes * (uint64_t)s->height;
    fill(t, s);
    const tg_status st = tgi_part_write(to, 0, t->head, front_of(s), err);
    if (st != TG_OK)
        tiff_close(t);
    else
        *state = t;
    return st;
}

static tg_status tiff_row(void *state, const void *row, tgi_err *err)
{
    tiff *t = state;
    t->at += t->row_bytes;
    return tgi_part_write(t->to, t->at - t->row_bytes, row, t->row_bytes, err);
}

static tg_status tiff_finish(void *state, tgi_err *err)
{
    const tiff *t = state;
    return t->at == t->end
               ? tgi_part_sync(t->to, err)
               : tgi_fail(err, TG_E_INTERNAL, "%s: %llu bytes of pixels are missing",
                          t->to->partial, (unsigned long long)(t->end - t->at));
}

const tgi_picture_writer tgi_tiff_picture_writer = {.name = "TIFF",
                                                    .suffixes = "|tif|tiff|",
                                                    .may = tiff_may,
                                                    .bytes = tiff_bytes,
                                                    .create = tiff_create,
                                                    .row = tiff_row,
                                                    .finish = tiff_finish,
                                                    .close = tiff_close};

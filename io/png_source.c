/* png_source.c - PNG files as images, row by row, through libpng.
 *
 * A PNG says colours, so colours come out: a palette becomes RGB (RGBA where it has
 * transparency), grey of 1, 2 or 4 bits becomes 8 bits over their full range; 8 and 16 bits are
 * what they are, alpha is a sample of its own. A single transparent colour (tRNS without a
 * palette) is not applied. Interlaced files cannot be read in rows: they are decoded once into
 * memory, which the plan counts and the budget may refuse.
 *
 * The header is read twice: when the file is opened, with what is said beside the pixels, in
 * pieces of memory that end with it; and whenever rows begin, without that, in an arena that
 * the width determines (png_lib.h). Every checksum counts, of chunks that nobody uses as well.
 * libpng passes over Exif, of which it would hold two copies: the file's window shows the part
 * that is looked at. What stands behind the pixels and belongs before them is told of.
 * A header that claims more pixels than deflate can hold in the file's bytes is refused before
 * memory for rows is asked for.
 * Source: PNG specification, 2nd edition (ISO 15948); libpng-manual.txt. */
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/base/size.h"
#include "io/bytes.h"
#include "io/exif.h"
#include "io/io_formats.h"
#include "io/picture.h"
#include "io/png_lib.h"
#include "io/rfile.h"

#include <stdio.h>
#include <string.h>

#define WINDOW ((size_t)32 << 10)
#define IDAT 0x49444154u  /* the chunk of pixel data */
#define DEFLATE_MOST 1032 /* pixels' bytes for one byte of deflate data, at best */

/* What the header's chunks may take at open, a profile included; less in a small file. A
 * profile that takes more is left out. */
#define HEADER_CAP ((size_t)16 << 20)
#define EXIF 0x65584966u /* chunks by their names: eXIf, */
#define ICC 0x69434350u  /* iCCP, */
#define PHYS 0x70485973u /* pHYs, */
#define TRNS 0x74524e53u /* tRNS */
/* File bytes of pixel data from the last row on, beside it. Some writers pad; libpng follows
 * that to its checksum, for up to 1032 times the bytes. */
#define SURPLUS_CAP ((uint64_t)256 << 10)

typedef struct png {
    tgi_png lib;
    const tgi_rfile *f;
    tgi_window win;
    uint64_t at;  /* the next byte of the file */
    tg_status io; /* what ended a step from outside libpng */
    tgi_err io_error;
    uint32_t width, height;
    int bits, colour, interlaced;
    size_t stored; /* bytes of a row as stored */
    size_t made;   /* of a row as libpng makes it */
    size_t pixel;  /* bytes delivered */
    uint8_t palette[256][4];
    int n_palette, n_alpha;
    bool opened;    /* the header was read before */
    bool ready;     /* whole is filled */
    bool is_last;   /* the row that is read */
    uint64_t since; /* bytes of pixel data from there on */
    uint64_t exif;  /* where the first Exif begins; 0: not seen */
    bool ends;      /* what follows the pixels is read, */
    bool behind;    /* and something in it would have counted before them */
    uint8_t *arena; /* not aligned */
    uint8_t *whole; /* interlaced: all rows as made, or NULL */
    uint32_t next;  /* row */
    uint8_t *to;    /* where a step puts its row */
} png;

/* ---- The file ---- */

static void stop(png *p, tg_status st)
{
    p->io = st;
    png_error(p->lib.z, "stopped");
}

/* Called for the data of a chunk, piece by piece, and for its checksum. */
static void look_at_chunk(png *p, uint32_t type)
{
    if (type == EXIF && !p->exif)
        p->exif = p->at;
    if (p->ends && (type == EXIF || type == ICC || type == PHYS || type == TRNS))
        p->behind = true;
}

/* A file that was cut has all of its pixels at times, and never its end. */
static void give_bytes(png_structp z, png_bytep dst, size_t n)
{
    png *p = png_get_io_ptr(z);
    look_at_chunk(p, png_get_io_chunk_type(z));
    if (n > p->f->size - p->at)
        stop(p, tgi_fail(&p->io_error, TG_E_FORMAT, "the PNG is cut: it ends without IEND"));
    if (p->is_last && png_get_io_chunk_type(z) == IDAT &&
        (p->since += n) > SURPLUS_CAP + 2 * (uint64_t)p->stored)
        stop(p, tgi_fail(&p->io_error, TG_E_FORMAT, "a PNG with far more data than pixels"));
    for (const uint8_t *b; n;) {
        const size_t piece = tgi_min(n, WINDOW);
        const tg_status st =
            tgi_window_get(&p->win, p->f, p->at, piece, WINDOW, &b, &p->io_error);
        if (st != TG_OK)
            stop(p, st);
        memcpy(dst, b, piece);
        dst += piece;
        n -= piece;
        p->at += piece;
    }
}

/* A step, and whether it or a warning in it says that the file is damaged. */
static tg_status run(png *p, void (*step)(void *), tgi_err *err)
{
    const bool done = tgi_png_step(&p->lib, step, p);
    if (p->io != TG_OK)
        return tgi_fail(err, p->io, "%s", p->io_error.text);
    return done && !p->lib.damaged && !p->lib.refused ? TG_OK : tgi_png_failed(&p->lib, err);
}

/* ---- Header ---- */

static void read_header(void *state)
{
    png *p = state;
    png_set_read_fn(p->lib.z, p, give_bytes);
    tgi_png_read_header(&p->lib, !p->opened);
}

/* The file from its first byte to its first pixel. */
static tg_status begin_file(png *p, tgi_err *err)
{
    p->at = p->since = 0;
    p->is_last = p->ends = false;
    p->next = 0;
    p->io = TG_OK;
    if (!tgi_png_begin(&p->lib, false))
        return tgi_png_failed(&p->lib, err);
    return run(p, read_header, err);
}

static void take_palette(png *p)
{
    png_colorp colours = NULL;
    png_bytep alpha = NULL;
    if (p->colour != PNG_COLOR_TYPE_PALETTE)
        return;
    png_get_PLTE(p->lib.z, p->lib.info, &colours, &p->n_palette);
    png_get_tRNS(p->lib.z, p->lib.info, &alpha, &p->n_alpha, NULL);
    for (int i = 0; i < p->n_palette; i++) {
        const uint8_t one[4] = {colours[i].red, colours[i].green, colours[i].blue,
                                i < p->n_alpha ? alpha[i] : 255};
        memcpy(p->palette[i], one, 4);
    }
}

static void take_layout(png *p, tgi_image_info *i)
{
    const int channels = png_get_channels(p->lib.z, p->lib.info);
    p->width = png_get_image_width(p->lib.z, p->lib.info);
    p->height = png_get_image_height(p->lib.z, p->lib.info);
    p->bits = png_get_bit_depth(p->lib.z, p->lib.info);
    p->colour = png_get_color_type(p->lib.z, p->lib.info);
    p->interlaced = png_get_interlace_type(p->lib.z, p->lib.info) != PNG_INTERLACE_NONE;
    p->stored = png_get_rowbytes(p->lib.z, p->lib.info);
    take_palette(p);
    i->width = p->width;
    i->height = p->height;
    i->samples = p->n_palette ? (p->n_alpha ? 4 : 3) : channels;
    i->dtype = p->bits == 16 ? TG_DTYPE_U16 : TG_DTYPE_U8;
    i->compression = "deflate";
    i->big_endian = 1;
    i->meta.alpha = i->samples % 2 ? 0 : 2;
    i->meta.colours = i->samples > 2 ? 3 : 0;
    p->pixel = (size_t)i->samples * tgi_dtype_size(i->dtype);
    p->made = p->width * (p->n_palette ? 1 : p->pixel);
}

/* How to turn the picture, as far as the first part of the Exif says it. */
static tg_status take_exif(png *p, tgi_image_info *i, tgi_err *err)
{
    const uint8_t *b;
    char text[2][32];
    if (!p->exif)
        return TG_OK;
    TGI_TRY(tgi_window_get(&p->win, p->f, p->exif - 8, 4, WINDOW, &b, err));
    const size_t n = tgi_load32(b, true), seen = tgi_min(n, WINDOW);
    TGI_TRY(tgi_window_get(&p->win, p->f, p->exif, seen, WINDOW, &b, err));
    i->meta.orientation = tgi_exif_orientation(b, seen);
    if (seen < n && !i->meta.orientation)
        snprintf(i->note, sizeof i->note,
                 "Exif of %s whose first %s do not say how the picture is turned: it is left "
                 "out",
                 tgi_size_text(n, text[0], sizeof text[0]),
                 tgi_size_text(seen, text[1], sizeof text[1]));
    return TG_OK;
}

/* What else is said beside the pixels. */
static tg_status take_meta(png *p, tgi_image_meta *m, tgi_err *err)
{
    png_uint_32 x, y, n;
    png_bytep bytes;
    png_charp name;
    int unit, method;
    if (png_get_pHYs(p->lib.z, p->lib.info, &x, &y, &unit) && unit == PNG_RESOLUTION_METER)
        tgi_picture_resolution(m, x, y); /* else only the aspect is known */
    if (!png_get_iCCP(p->lib.z, p->lib.info, &name, &method, &bytes, &n))
        return TG_OK;
    m->icc = tgi_malloc(TGI_TAG_IO, n);
    if (!m->icc)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a colour profile of %u bytes", n);
    memcpy(m->icc, bytes, n);
    m->icc_bytes = n;
    return TG_OK;
}

/* ---- Memory ---- */

static size_t whole_bytes(const png *p)
{
    return p->interlaced ? tgi_sat_mul(p->made, p->height) : 0;
}

static size_t arena_bytes(const png *p)
{
    return tgi_png_read_bytes(p->width, p->colour, p->bits);
}

static size_t png_bytes(const void *state)
{
    const png *p = state;
    return tgi_sat_add(sizeof *p + WINDOW + 64, tgi_sat_add(arena_bytes(p), whole_bytes(p)));
}

static tg_status check_size(const png *p, size_t budget, tgi_err *err)
{
    const double claimed = (double)p->stored * p->height;
    char text[2][32];
    if (claimed > (double)p->f->size * DEFLATE_MOST + 65536)
        return tgi_fail(err, TG_E_FORMAT,
                        "a PNG of %u x %u pixels in %llu bytes: more than it can hold",
                        p->width, p->height, (unsigned long long)p->f->size);
    const size_t least = tgi_sat_add(png_bytes(p), p->width * p->pixel);
    if (least <= budget)
        return TG_OK;
    const tg_status st = tgi_fail(err, TG_E_BUDGET,
                                  "%s PNG of %u x %u pixels needs %s to be decoded, %s are "
                                  "allowed (a quarter of --ram): give a larger one",
                                  p->interlaced ? "an interlaced" : "a", p->width, p->height,
                                  tgi_size_above(least, text[0], sizeof text[0]),
                                  tgi_size_below(budget, text[1], sizeof text[1]));
    return tgi_err_tried(err, st, TGI_DECODER_ASKS, least);
}

static tg_status open_arena(png *p, tgi_err *err)
{
    p->lib.cap = arena_bytes(p);
    p->arena = tgi_malloc(TGI_TAG_IO, p->lib.cap + 64);
    p->whole = p->interlaced ? tgi_malloc(TGI_TAG_IO, whole_bytes(p)) : NULL;
    if (!p->arena || (p->interlaced && !p->whole))
        return tgi_fail(err, TG_E_NOMEM, "no memory for a PNG of %u x %u pixels", p->width,
                        p->height);
    p->lib.arena = p->arena + (64 - (uintptr_t)p->arena % 64) % 64;
    return TG_OK;
}

static void png_close(void *state)
{
    png *p = state;
    tgi_png_end(&p->lib);
    tgi_window_free(&p->win);
    tgi_free(p->arena);
    tgi_free(p->whole);
    tgi_free(p);
}

/* What stands before the pixels is held for a moment, within the budget too. */
static tg_status begin_header(png *p, size_t budget, tgi_image_info *i, tgi_err *err)
{
    const size_t most = (size_t)tgi_min(HEADER_CAP, p->f->size * DEFLATE_MOST);
    const size_t may = budget < most ? budget : most;
    char text[2][32];
    p->lib.cap = TGI_PNG_READ_BESIDE + may;
    TGI_TRY(begin_file(p, err));
    if (p->lib.starved && may < most && p->lib.lacked <= TGI_PNG_READ_BESIDE + most) {
        const size_t least = p->lib.lacked - TGI_PNG_READ_BESIDE;
        const tg_status st = tgi_fail(
            err, TG_E_BUDGET,
            "what a PNG says before its pixels (a colour profile) takes %s, %s are allowed (a "
            "quarter of --ram): give a larger one",
            tgi_size_above(least, text[0], sizeof text[0]),
            tgi_size_below(may, text[1], sizeof text[1]));
        return tgi_err_tried(err, st, TGI_HEADER_ASKS, least);
    }
    if (p->lib.starved)
        snprintf(i->note, sizeof i->note,
                 "its colour profile takes more than %s and is left out",
                 tgi_size_text(most, text[0], sizeof text[0]));
    return TG_OK;
}

static tg_status open_parts(png *p, size_t budget, tgi_image_info *info, tgi_err *err)
{
    TGI_TRY(tgi_window_init(&p->win, WINDOW, err));
    TGI_TRY(begin_header(p, budget, info, err));
    take_layout(p, info);
    TGI_TRY(take_meta(p, &info->meta, err));
    TGI_TRY(take_exif(p, info, err));
    TGI_TRY(check_size(p, budget, err));
    tgi_png_end(&p->lib);
    p->opened = true;
    return open_arena(p, err);
}

static tg_status png_open(const tgi_rfile *f, size_t budget, tgi_image_info *info, void **state,
                          tgi_err *err)
{
    png *p = tgi_calloc(TGI_TAG_IO, 1, sizeof *p);
    if (!p)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a PNG reader");
    p->f = f;
    const tg_status st = open_parts(p, budget, info, err);
    if (st != TG_OK)
        png_close(p);
    else
        *state = p;
    return st;
}

/* ---- Rows ---- */

static void start_rows(void *state)
{
    png *p = state;
    tgi_png_start_rows(&p->lib);
}

static void read_row(void *state)
{
    png *p = state;
    p->is_last = ++p->next == p->height;
    png_read_row(p->lib.z, p->to, NULL);
}

static void read_whole(void *state)
{
    png *p = state;
    for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES; pass++)
        for (size_t y = 0; y < p->height; y++) {
            p->is_last = pass == PNG_INTERLACE_ADAM7_PASSES - 1 && y == p->height - 1;
            png_read_row(p->lib.z, p->whole + y * p->made, NULL);
        }
}

static void read_end(void *state)
{
    png *p = state;
    p->ends = true;
    png_read_end(p->lib.z, NULL);
}

/* All that a whole file has behind its last row. */
static tg_status png_end(void *state, tgi_err *err)
{
    png *p = state;
    return p->ready ? TG_OK : run(p, read_end, err); /* interlaced: read to its end at once */
}

static bool png_behind(const void *state)
{
    return ((const png *)state)->behind;
}

static bool is_same(const png *p)
{
    return png_get_image_width(p->lib.z, p->lib.info) == p->width &&
           png_get_image_height(p->lib.z, p->lib.info) == p->height &&
           png_get_bit_depth(p->lib.z, p->lib.info) == p->bits &&
           png_get_color_type(p->lib.z, p->lib.info) == p->colour &&
           (png_get_interlace_type(p->lib.z, p->lib.info) != 0) == p->interlaced;
}

static tg_status png_begin(void *state, tgi_err *err)
{
    png *p = state;
    p->next = 0;
    if (p->ready)
        return TG_OK;
    TGI_TRY(begin_file(p, err));
    if (!is_same(p))
        return tgi_fail(err, TG_E_CHANGED, "the PNG is not the one that was opened");
    TGI_TRY(run(p, start_rows, err));
    if (!p->whole)
        return TG_OK;
    TGI_TRY(run(p, read_whole, err));
    TGI_TRY(png_end(p, err));
    p->ready = true;
    return TG_OK;
}

/* Indices at the end of a row become colours from its start: none is overtaken. */
static tg_status put_colours(const png *p, uint8_t *row, tgi_err *err)
{
    const uint8_t *index = row + p->width * (p->pixel - 1);
    for (size_t i = 0; i < p->width; i++) {
        const int k = index[i];
        if (k >= p->n_palette)
            return tgi_fail(err, TG_E_FORMAT, "PNG colour %d of a palette of %d", k,
                            p->n_palette);
        memcpy(row + i * p->pixel, p->palette[k], p->pixel);
    }
    return TG_OK;
}

static tg_status png_row(void *state, uint8_t *row, tgi_err *err)
{
    png *p = state;
    p->to = row + (p->width * p->pixel - p->made);
    if (p->whole)
        memcpy(p->to, p->whole + p->made * p->next++, p->made);
    else
        TGI_TRY(run(p, read_row, err));
    return p->n_palette ? put_colours(p, row, err) : TG_OK;
}

static tg_status png_skip(void *state, tgi_err *err)
{
    png *p = state;
    p->to = NULL;
    return p->whole ? TG_OK : run(p, read_row, err);
}

/* ---- The format ---- */

static const tgi_picture_ops ops = {.open = png_open,
                                    .close = png_close,
                                    .bytes = png_bytes,
                                    .begin = png_begin,
                                    .row = png_row,
                                    .end = png_end,
                                    .behind = png_behind,
                                    .skip = png_skip};

static tg_status source_open(const char *path, const tgi_open_opts *o, tgi_source **out,
                             tgi_err *err)
{
    return tgi_picture_open(&tgi_png_source_ops, &ops, path, o, out, err);
}

const tgi_source_ops tgi_png_source_ops = {
    .format = "png",
    .fuzzed = TGI_FUZZED,
    .probe = tgi_png_probe,
    .open = source_open,
    .info = tgi_picture_info,
    .read = tgi_picture_read,
    .close = tgi_picture_close,
    .codec_bytes = tgi_picture_bytes,
    .stream_rows = tgi_picture_keeps,
    .decoded_bytes = tgi_picture_decoded,
    .held = tgi_picture_held,
};

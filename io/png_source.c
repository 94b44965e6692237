/* png_source.c - PNG files as images, row by row.
 *
 * A PNG says colours, so colours come out: a palette becomes RGB (RGBA where it has
 * transparency), grey of 1, 2 or 4 bits becomes 8 bits over their full range; 8 and 16 bits are
 * what they are, alpha is a sample of its own. A single transparent colour (tRNS without a
 * palette) is not applied. Interlaced files cannot be read in rows: they are decoded once into
 * memory, which the plan counts and the budget may refuse.
 *
 * Every chunk's checksum is compared as its bytes go by. A header that claims more pixels than
 * deflate can hold in the file's bytes is refused before anything is allocated.
 * Source: PNG specification, 2nd edition (ISO 15948). */
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/base/size.h"
#include "io/bytes.h"
#include "io/deflate.h"
#include "io/exif.h"
#include "io/io_formats.h"
#include "io/picture.h"
#include "io/tiff_codec.h"
#include "io/tiff_ifd.h"

#include <string.h>

#define WINDOW ((size_t)32 << 10)
#define DEFLATE_MOST 1032 /* pixels' bytes for one byte of deflate data, at best */

#define ICC_CAP ((size_t)16 << 20)
#define SURPLUS_BYTES ((uint32_t)16 << 20) /* of a chunk, behind the end of its data */

static const tgi_packing deflate = {.compression = TGI_TIFF_DEFLATE, .fill_order = 1};

enum { GREY = 0, RGB = 2, PALETTE = 3, GREY_ALPHA = 4, RGBA = 6 };

typedef struct png {
    const tgi_rfile *f;
    tgi_window win;
    uint32_t width, height;
    unsigned bits, colour, interlaced;
    unsigned channels; /* stored in a pixel */
    size_t pixel;      /* bytes delivered */
    size_t stored;     /* bytes of a full row as stored */
    size_t step;       /* bytes from a pixel to the one left of it, for filters */
    uint8_t palette[256][4];
    unsigned n_palette, n_alpha;
    uint64_t first; /* where the first IDAT begins */
    uint64_t at;    /* the next byte of IDAT data */
    uint32_t left;  /* of this IDAT */
    uint32_t crc;
    bool ended; /* the deflate data, with their checksum */
    tgi_unpack *unpack;
    uint8_t *row, *above; /* a filter's number and `stored` bytes each */
    uint8_t *whole;       /* interlaced: all pixels, or NULL */
    bool ready;           /* whole is filled */
    int surplus;          /* it has more data than pixels */
    uint32_t next;        /* row of it */
} png;

/* ---- Chunks ---- */

static tg_status bytes_at(png *p, uint64_t at, size_t n, const uint8_t **out, tgi_err *err)
{
    return tgi_window_get(&p->win, p->f, at, n, WINDOW, out, err);
}

typedef struct chunk {
    uint32_t n;
    char type[5];
    uint64_t data;
} chunk;

/* The chunk at *at, shown to lie in the file; *at moves behind it. */
static tg_status next_chunk(png *p, uint64_t *at, chunk *c, tgi_err *err)
{
    const uint8_t *b;
    TGI_TRY(bytes_at(p, *at, 8, &b, err));
    c->n = tgi_load32(b, true);
    memcpy(c->type, b + 4, 4);
    c->type[4] = 0;
    c->data = *at + 8;
    for (int i = 0; i < 4; i++) /* it goes into messages */
        if ((c->type[i] | 32) < 'a' || (c->type[i] | 32) > 'z')
            return tgi_fail(err, TG_E_FORMAT, "no PNG chunk at byte %llu",
                            (unsigned long long)*at);
    if (c->n > INT32_MAX || p->f->size - *at < (uint64_t)c->n + 12)
        return tgi_fail(err, TG_E_FORMAT,
                        "PNG chunk %s at byte %llu (%u bytes) goes past the end of the file",
                        c->type, (unsigned long long)*at, c->n);
    *at = c->data + c->n + 4;
    return TG_OK;
}

static tg_status wrong_check(const char *type, tgi_err *err)
{
    return tgi_fail(err, TG_E_FORMAT, "the checksum of PNG chunk %s is wrong", type);
}

/* A small chunk as a whole, its checksum compared. */
static tg_status chunk_bytes(png *p, const chunk *c, const uint8_t **out, tgi_err *err)
{
    const uint8_t *b;
    TGI_TRY(bytes_at(p, c->data - 4, (size_t)c->n + 8, &b, err));
    if (tgi_crc32(0, b, (size_t)c->n + 4) != tgi_load32(b + 4 + c->n, true))
        return wrong_check(c->type, err);
    *out = b + 4;
    return TG_OK;
}

/* ---- Header ---- */

static tg_status take_header(png *p, const uint8_t *b, tgi_err *err)
{
    static const uint8_t channels[7] = {1, 0, 3, 1, 2, 0, 4};
    static const uint32_t depths[7] = {0x10116, 0, 0x10100, 0x116, 0x10100, 0, 0x10100};
    p->width = tgi_load32(b, true);
    p->height = tgi_load32(b + 4, true);
    p->bits = b[8];
    p->colour = b[9];
    p->interlaced = b[12];
    if (!p->width || !p->height || p->width > INT32_MAX || p->height > INT32_MAX)
        return tgi_fail(err, TG_E_FORMAT, "a PNG of %u x %u pixels", p->width, p->height);
    if (p->colour > 6 || !channels[p->colour] || p->bits > 16 ||
        !(depths[p->colour] >> p->bits & 1) || b[10] || b[11] || p->interlaced > 1)
        return tgi_fail(err, TG_E_FORMAT, "a PNG of colour type %u with %u bits", p->colour,
                        p->bits);
    p->channels = channels[p->colour];
    return TG_OK;
}

static void take_resolution(const uint8_t *b, tgi_image_meta *m)
{
    if (b[8] == 1) /* metres; else only the aspect is known */
        tgi_picture_resolution(m, tgi_load32(b, true), tgi_load32(b + 4, true));
}

/* `n` bytes of the packed profile, from its start, to dst; false when it has fewer. */
static tg_status unpack_profile(png *p, const chunk *c, uint32_t skip, uint8_t *dst, size_t n,
                                bool *whole, tgi_err *err)
{
    tgi_unpack *u = NULL;
    tgi_pieces io = {.dst = dst, .room = n};
    tgi_err damaged = {0};
    tg_status st = tgi_unpack_open(&deflate, &u, err);
    if (st != TG_OK)
        return st;
    tgi_unpack_begin(u);
    for (uint32_t at = skip; at < c->n && io.room && !io.ended && st == TG_OK;) {
        const size_t piece = tgi_min(c->n - at, WINDOW);
        st = bytes_at(p, c->data + at, piece, &io.src, err);
        io.n = piece;
        if (st == TG_OK && tgi_unpack_more(u, &io, &damaged) != TG_OK)
            break;
        at += (uint32_t)(piece - io.n);
        if (io.n == piece)
            break;
    }
    tgi_unpack_close(&u);
    *whole = st == TG_OK && !io.room;
    return st;
}

/* A profile states its own size; one that does not hold it is left out, no pixel depends on it.
 */
static tg_status take_profile(png *p, const chunk *c, tgi_image_meta *m, tgi_err *err)
{
    const uint8_t *b;
    uint8_t head[4];
    bool whole;
    const size_t look = tgi_min(c->n, 81); /* a name, 0, the method 0 */
    TGI_TRY(bytes_at(p, c->data, look, &b, err));
    const uint8_t *end = memchr(b, 0, look);
    if (!end || end == b || (size_t)(end - b) + 2 > look || end[1])
        return TG_OK;
    const uint32_t skip = (uint32_t)(end - b) + 2;
    TGI_TRY(unpack_profile(p, c, skip, head, 4, &whole, err));
    const size_t n = whole ? tgi_load32(head, true) : 0;
    if (n < 128 || n > ICC_CAP || n / DEFLATE_MOST > c->n)
        return TG_OK;
    m->icc = tgi_malloc(TGI_TAG_IO, n);
    if (!m->icc)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a colour profile of %zu bytes", n);
    TGI_TRY(unpack_profile(p, c, skip, m->icc, n, &whole, err));
    m->icc_bytes = whole ? n : 0;
    return TG_OK;
}

static tg_status take_chunk(png *p, const chunk *c, tgi_image_info *info, tgi_err *err)
{
    const uint8_t *b;
    if (strcmp(c->type, "PLTE") == 0) {
        if (c->n > 768 || c->n % 3 || !c->n)
            return tgi_fail(err, TG_E_FORMAT, "a PNG palette of %u bytes", c->n);
        TGI_TRY(chunk_bytes(p, c, &b, err));
        p->n_palette = c->n / 3;
        for (unsigned i = 0; i < p->n_palette; i++) {
            memcpy(p->palette[i], b + (size_t)3 * i, 3);
            p->palette[i][3] = 255;
        }
    } else if (strcmp(c->type, "tRNS") == 0 && p->colour == PALETTE) {
        if (c->n > p->n_palette)
            return tgi_fail(err, TG_E_FORMAT, "PNG transparency of %u for %u colours", c->n,
                            p->n_palette);
        TGI_TRY(chunk_bytes(p, c, &b, err));
        p->n_alpha = c->n;
        for (unsigned i = 0; i < c->n; i++)
            p->palette[i][3] = b[i];
    } else if (strcmp(c->type, "pHYs") == 0 && c->n == 9) {
        TGI_TRY(chunk_bytes(p, c, &b, err));
        take_resolution(b, &info->meta);
    } else if (strcmp(c->type, "eXIf") == 0 && c->n <= WINDOW / 2) {
        TGI_TRY(chunk_bytes(p, c, &b, err));
        info->meta.orientation = tgi_exif_orientation(b, c->n);
    } else if (strcmp(c->type, "iCCP") == 0 && !info->meta.icc) {
        return take_profile(p, c, &info->meta, err);
    }
    return TG_OK;
}

/* Everything in front of the pixels. */
static tg_status read_header(png *p, tgi_image_info *info, tgi_err *err)
{
    uint64_t at = 8;
    const uint8_t *b;
    chunk c;
    TGI_TRY(next_chunk(p, &at, &c, err));
    if (strcmp(c.type, "IHDR") != 0 || c.n != 13)
        return tgi_fail(err, TG_E_FORMAT, "a PNG that begins with %s", c.type);
    TGI_TRY(chunk_bytes(p, &c, &b, err));
    TGI_TRY(take_header(p, b, err));
    for (;;) {
        p->first = at;
        TGI_TRY(next_chunk(p, &at, &c, err));
        if (strcmp(c.type, "IDAT") == 0)
            break;
        if (strcmp(c.type, "IEND") == 0)
            return tgi_fail(err, TG_E_FORMAT, "a PNG without pixels");
        TGI_TRY(take_chunk(p, &c, info, err));
    }
    if (p->colour == PALETTE && !p->n_palette)
        return tgi_fail(err, TG_E_FORMAT, "a PNG of palette colours without a palette");
    return TG_OK;
}

static size_t row_bytes(const png *p, uint32_t width)
{
    return ((size_t)width * p->channels * p->bits + 7) / 8;
}

static void fill_info(png *p, tgi_image_info *i)
{
    i->width = p->width;
    i->height = p->height;
    i->samples = p->colour == PALETTE ? (p->n_alpha ? 4 : 3) : (int)p->channels;
    i->dtype = p->bits == 16 ? TG_DTYPE_U16 : TG_DTYPE_U8;
    i->compression = "deflate";
    i->big_endian = 1;
    i->meta.alpha = i->samples % 2 ? 0 : 2;
    i->meta.colours = i->samples > 2 ? 3 : 0;
    p->pixel = (size_t)i->samples * tgi_dtype_size(i->dtype);
    p->stored = row_bytes(p, p->width);
    p->step = (p->channels * p->bits + 7) / 8;
}

/* ---- Memory ---- */

static size_t whole_bytes(const png *p)
{
    return p->interlaced ? tgi_sat_mul(tgi_sat_mul(p->width, p->height), p->pixel) : 0;
}

/* Delivered rows are built in place for interlaced files: room for them too. */
static size_t png_bytes(const void *state)
{
    const png *p = state;
    const size_t rows = tgi_sat_mul(2, tgi_sat_add(p->stored, 1));
    return tgi_sat_add(sizeof *p + WINDOW + tgi_unpack_bytes(&deflate),
                       tgi_sat_add(rows, whole_bytes(p)));
}

static tg_status check_size(const png *p, size_t budget, tgi_err *err)
{
    const double claimed = (double)p->stored * p->height;
    char text[2][32];
    if (claimed > (double)p->f->size * DEFLATE_MOST + 65536)
        return tgi_fail(err, TG_E_FORMAT,
                        "a PNG of %u x %u pixels in %llu bytes: more than it can hold",
                        p->width, p->height, (unsigned long long)p->f->size);
    if (png_bytes(p) > budget)
        return tgi_fail(err, TG_E_BUDGET,
                        "%s PNG of %u x %u pixels needs %s to be decoded, %s are "
                        "allowed (a quarter of --ram): give a larger one",
                        p->interlaced ? "an interlaced" : "a", p->width, p->height,
                        tgi_size_above(png_bytes(p), text[0], sizeof text[0]),
                        tgi_size_below(budget, text[1], sizeof text[1]));
    return TG_OK;
}

static void png_close(void *state)
{
    png *p = state;
    tgi_window_free(&p->win);
    tgi_unpack_close(&p->unpack);
    tgi_free(p->row);
    tgi_free(p->above);
    tgi_free(p->whole);
    tgi_free(p);
}

static tg_status open_parts(png *p, size_t budget, tgi_image_info *info, tgi_err *err)
{
    TGI_TRY(tgi_window_init(&p->win, WINDOW, err));
    TGI_TRY(read_header(p, info, err));
    fill_info(p, info);
    TGI_TRY(check_size(p, budget, err));
    TGI_TRY(tgi_unpack_open(&deflate, &p->unpack, err));
    p->row = tgi_malloc(TGI_TAG_IO, p->stored + 1);
    p->above = tgi_malloc(TGI_TAG_IO, p->stored + 1);
    p->whole = p->interlaced ? tgi_malloc(TGI_TAG_IO, whole_bytes(p)) : NULL;
    return p->row && p->above && (p->whole || !p->interlaced)
               ? TG_OK
               : tgi_fail(err, TG_E_NOMEM, "no memory for a PNG of %u x %u pixels", p->width,
                          p->height);
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

/* ---- Rows as stored ---- */

static void rewind_data(png *p)
{
    p->at = p->first;
    p->left = 0;
    p->ended = false;
    tgi_unpack_begin(p->unpack);
}

/* The next IDAT; the checksum of the one before is behind its last byte. */
static tg_status enter_chunk(png *p, bool is_first, tgi_err *err)
{
    const uint8_t *b;
    chunk c;
    if (!is_first) {
        TGI_TRY(bytes_at(p, p->at, 4, &b, err));
        if (tgi_load32(b, true) != p->crc)
            return wrong_check("IDAT", err);
        p->at += 4;
    }
    uint64_t at = p->at;
    TGI_TRY(next_chunk(p, &at, &c, err));
    if (strcmp(c.type, "IDAT") != 0)
        return tgi_fail(err, TG_E_FORMAT, "PNG data end before the last row");
    p->at = c.data;
    p->left = c.n;
    p->crc = tgi_crc32(0, "IDAT", 4);
    return TG_OK;
}

/* n bytes of filtered data. */
static tg_status inflate_bytes(png *p, uint8_t *dst, size_t n, tgi_err *err)
{
    tgi_pieces io = {.dst = dst, .room = n};
    while (io.room) {
        while (!p->left)
            TGI_TRY(enter_chunk(p, p->at == p->first, err));
        const size_t piece = tgi_min(p->left, WINDOW), room = io.room;
        const uint8_t *b;
        TGI_TRY(bytes_at(p, p->at, piece, &b, err));
        io.src = b;
        io.n = piece;
        TGI_TRY(tgi_unpack_more(p->unpack, &io, err));
        const size_t used = piece - io.n;
        p->crc = tgi_crc32(p->crc, b, used);
        p->at += used;
        p->left -= (uint32_t)used;
        p->ended = io.ended;
        if (io.room && (io.ended || (!used && io.room == room)))
            return tgi_fail(err, TG_E_FORMAT, "PNG data end before the last row");
    }
    return TG_OK;
}

/* ---- Behind the last row ---- */

/* The end of the deflate data, with the checksum of all pixels. What has far more of them is
 * not followed: *surplus. */
static tg_status seal_pixels(png *p, int *surplus, tgi_err *err)
{
    size_t seen = 0;
    while (!p->ended && seen < TGI_UNPACK_SURPLUS) {
        tgi_pieces io = {0};
        while (!p->left)
            TGI_TRY(enter_chunk(p, p->at == p->first, err));
        const size_t piece = tgi_min(p->left, WINDOW);
        TGI_TRY(bytes_at(p, p->at, piece, &io.src, err));
        const uint8_t *b = io.src;
        io.n = piece;
        TGI_TRY(tgi_unpack_seal(p->unpack, &io, &seen, 0, err));
        const size_t used = piece - io.n;
        p->crc = tgi_crc32(p->crc, b, used);
        p->at += used;
        p->left -= (uint32_t)used;
        p->ended = io.ended;
        if (!used && !io.ended && seen < TGI_UNPACK_SURPLUS)
            return tgi_fail(err, TG_E_FORMAT, "PNG data are damaged behind the last row");
    }
    *surplus = !p->ended;
    return TG_OK;
}

/* The checksum of the IDAT that is open. One with far more bytes than data is not read. */
static tg_status seal_chunk(png *p, int *surplus, tgi_err *err)
{
    const uint8_t *b;
    *surplus |= p->left > SURPLUS_BYTES;
    if (*surplus) {
        p->at += p->left;
        p->left = 0;
    }
    for (; p->left; p->left -= (uint32_t)tgi_min(p->left, WINDOW)) {
        const size_t piece = tgi_min(p->left, WINDOW);
        TGI_TRY(bytes_at(p, p->at, piece, &b, err));
        p->crc = tgi_crc32(p->crc, b, piece);
        p->at += piece;
    }
    TGI_TRY(bytes_at(p, p->at, 4, &b, err));
    p->at += 4;
    return *surplus || tgi_load32(b, true) == p->crc ? TG_OK : wrong_check("IDAT", err);
}

/* A file that was cut has all of its pixels at times, and never its end. */
static tg_status png_end(void *state, int *surplus, tgi_err *err)
{
    png *p = state;
    chunk c = {.type = ""};
    if (p->ready) { /* interlaced: read to its end at once */
        *surplus = p->surplus;
        return TG_OK;
    }
    TGI_TRY(seal_pixels(p, surplus, err));
    TGI_TRY(seal_chunk(p, surplus, err));
    while (strcmp(c.type, "IEND") != 0) {
        if (p->at == p->f->size)
            return tgi_fail(err, TG_E_FORMAT, "the PNG is cut: it ends without IEND");
        TGI_TRY(next_chunk(p, &p->at, &c, err));
    }
    return TG_OK;
}

static uint8_t paeth(int a, int b, int c)
{
    const int pa = b > c ? b - c : c - b, pb = a > c ? a - c : c - a;
    const int s = a + b - 2 * c, pc = s < 0 ? -s : s;
    return (uint8_t)(pa <= pb && pa <= pc ? a : pb <= pc ? b : c);
}

/* Undo the filter of a row of n bytes. */
static tg_status unfilter(png *p, size_t n, tgi_err *err)
{
    uint8_t *r = p->row + 1;
    const uint8_t *up = p->above + 1;
    const size_t step = p->step;
    switch (p->row[0]) {
    case 0:
        break;
    case 1:
        for (size_t i = step; i < n; i++)
            r[i] = (uint8_t)(r[i] + r[i - step]);
        break;
    case 2:
        for (size_t i = 0; i < n; i++)
            r[i] = (uint8_t)(r[i] + up[i]);
        break;
    case 3:
        for (size_t i = 0; i < n; i++)
            r[i] = (uint8_t)(r[i] + ((i < step ? 0 : r[i - step]) + up[i]) / 2);
        break;
    case 4:
        for (size_t i = 0; i < n; i++)
            r[i] =
                (uint8_t)(r[i] + (i < step ? up[i] : paeth(r[i - step], up[i], up[i - step])));
        break;
    default:
        return tgi_fail(err, TG_E_FORMAT, "PNG filter %u", p->row[0]);
    }
    return TG_OK;
}

/* The next stored row of `width` pixels, in p->row + 1. */
static tg_status stored_row(png *p, uint32_t width, tgi_err *err)
{
    const size_t n = row_bytes(p, width);
    uint8_t *swap = p->above;
    p->above = p->row;
    p->row = swap;
    TGI_TRY(inflate_bytes(p, p->row, n + 1, err));
    return unfilter(p, n, err);
}

/* ---- Pixels ---- */

static unsigned packed_at(const png *p, const uint8_t *src, size_t i)
{
    const size_t at = i * p->bits;
    return src[at / 8] >> (8 - p->bits - at % 8) & ((1u << p->bits) - 1);
}

/* Pixel i of the stored row to dst. */
static tg_status put_pixel(const png *p, const uint8_t *src, size_t i, uint8_t *dst,
                           tgi_err *err)
{
    if (p->colour == PALETTE) {
        const unsigned k = p->bits == 8 ? src[i] : packed_at(p, src, i);
        if (k >= p->n_palette)
            return tgi_fail(err, TG_E_FORMAT, "PNG colour %u of a palette of %u", k,
                            p->n_palette);
        memcpy(dst, p->palette[k], p->pixel);
    } else if (p->bits < 8) {
        *dst = (uint8_t)(packed_at(p, src, i) * (255 / ((1u << p->bits) - 1)));
    } else if (p->bits == 8 || TGI_HOST_BIG) {
        memcpy(dst, src + i * p->pixel, p->pixel);
    } else {
        tgi_swap_copy(dst, src + i * p->pixel, p->channels, 2);
    }
    return TG_OK;
}

/* A whole row where pixels lie as they are delivered. */
static tg_status put_row(const png *p, uint8_t *dst, tgi_err *err)
{
    if (p->colour != PALETTE && p->bits == 8)
        memcpy(dst, p->row + 1, p->stored);
    else if (p->colour != PALETTE && p->bits == 16 && !TGI_HOST_BIG)
        tgi_swap_copy(dst, p->row + 1, (size_t)p->width * p->channels, 2);
    else
        for (size_t i = 0; i < p->width; i++)
            TGI_TRY(put_pixel(p, p->row + 1, i, dst + i * p->pixel, err));
    return TG_OK;
}

/* Seven pictures of increasing detail, each filtered as one of its own. */
static tg_status read_interlaced(png *p, tgi_err *err)
{
    static const uint8_t x0[7] = {0, 4, 0, 2, 0, 1, 0}, dx[7] = {8, 8, 4, 4, 2, 2, 1};
    static const uint8_t y0[7] = {0, 0, 4, 0, 2, 0, 1}, dy[7] = {8, 8, 8, 4, 4, 2, 2};
    for (int k = 0; k < 7; k++) {
        if (p->width <= x0[k])
            continue;
        const uint32_t width = (p->width - x0[k] + dx[k] - 1) / dx[k];
        memset(p->row, 0, p->stored + 1);
        for (uint32_t y = y0[k]; y < p->height; y += dy[k]) {
            TGI_TRY(stored_row(p, width, err));
            for (uint32_t i = 0; i < width; i++) {
                const size_t at = (size_t)y * p->width + x0[k] + (size_t)i * dx[k];
                TGI_TRY(put_pixel(p, p->row + 1, i, p->whole + at * p->pixel, err));
            }
        }
    }
    return TG_OK;
}

static tg_status png_begin(void *state, tgi_err *err)
{
    png *p = state;
    p->next = 0;
    if (p->ready)
        return TG_OK;
    rewind_data(p);
    memset(p->row, 0, p->stored + 1);
    if (!p->interlaced)
        return TG_OK;
    TGI_TRY(read_interlaced(p, err));
    TGI_TRY(png_end(p, &p->surplus, err));
    p->ready = true;
    return TG_OK;
}

static tg_status png_row(void *state, uint8_t *row, tgi_err *err)
{
    png *p = state;
    if (p->whole) {
        const size_t n = (size_t)p->width * p->pixel;
        memcpy(row, p->whole + n * p->next++, n);
        return TG_OK;
    }
    TGI_TRY(stored_row(p, p->width, err));
    return put_row(p, row, err);
}

static tg_status png_skip(void *state, tgi_err *err)
{
    png *p = state;
    return p->whole ? TG_OK : inflate_bytes(p, p->row, p->stored + 1, err);
}

/* ---- The format ---- */

static const tgi_picture_ops ops = {.open = png_open,
                                    .close = png_close,
                                    .bytes = png_bytes,
                                    .begin = png_begin,
                                    .row = png_row,
                                    .end = png_end,
                                    .skip = png_skip};

static tg_status source_open(const char *path, const tgi_open_opts *o, tgi_source **out,
                             tgi_err *err)
{
    return tgi_picture_open(&tgi_png_source_ops, &ops, path, o, out, err);
}

static int png_probe(const uint8_t *head, size_t n, const char *path)
{
    (void)path;
    return n >= 8 && memcmp(head, "\x89PNG\r\n\x1a\n", 8) == 0;
}

const tgi_source_ops tgi_png_source_ops = {
    .format = "png",
    .fuzzed = TGI_FUZZED,
    .probe = png_probe,
    .open = source_open,
    .info = tgi_picture_info,
    .read = tgi_picture_read,
    .close = tgi_picture_close,
    .codec_bytes = tgi_picture_bytes,
    .stream_rows = tgi_picture_keeps,
    .decoded_bytes = tgi_picture_decoded,
    .held = tgi_picture_held,
};

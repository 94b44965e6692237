/* tiff_ifd.c - header and directories, read through a bounded window.
 *
 * The window is read with pread, not mapped: a directory that is cut off or a file that shrinks
 * is then an error like any other. Rules kept throughout:
 *   1. a position is compared with the file's size before it is used, as uint64_t without sums
 *      that can wrap;
 *   2. nothing is allocated from a count; arrays are read element by element where needed;
 *   3. of a tag that appears twice, the first counts.
 * Source: see tiff_ifd.h. */
#include "io/tiff_ifd.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/bytes.h"
#include "io/tiff_codec.h"

#include <string.h>

/* pixels; keeps products of sides and bytes in 63 bits */
#define MAX_SIDE (UINT64_C(1) << 40)

#define PUBLIC 1024u                              /* tags of TIFF 6.0 and its notes are below */
#define MAX_OLD_SIDE 65500u                       /* of a JPEG, by libjpeg */
#define MAX_OLD_FILE ((UINT64_C(1) << 32) - 4096) /* its offsets have 32 bits */
#define MAX_LIB_BLOCK (UINT64_C(1) << 28) /* samples: libtiff counts some bytes in 32 bits */

enum {
    T_BYTE = 1,
    T_ASCII,
    T_SHORT,
    T_LONG,
    T_RATIONAL,
    T_UNDEFINED = 7,
    T_FLOAT = 11,
    T_IFD = 13,
    T_LONG8 = 16,
    T_SLONG8,
    T_IFD8
};

static size_t type_size(uint32_t type)
{
    static const uint8_t size[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8};
    return type < sizeof size ? size[type] : 0;
}

static bool is_integer(uint32_t type)
{
    return type == T_BYTE || type == T_SHORT || type == T_LONG || type == T_IFD ||
           type == T_LONG8 || type == T_IFD8;
}

int tgi_tiff_probe(const uint8_t *head, size_t n)
{
    if (n < 4 || (memcmp(head, "II", 2) != 0 && memcmp(head, "MM", 2) != 0))
        return 0;
    const uint16_t magic = tgi_load16(head + 2, head[0] == 'M');
    return magic == 42 || magic == 43;
}

tg_status tgi_tiff_header(tgi_tiff_file *t, tgi_err *err)
{
    const uint8_t *p;
    if (t->f.size < 8)
        return tgi_fail(err, TG_E_FORMAT, "not a TIFF: %llu bytes",
                        (unsigned long long)t->f.size);
    TGI_TRY(tgi_window_get(&t->win, &t->f, 0, 8, t->win.cap, &p, err));
    if (!tgi_tiff_probe(p, 8))
        return tgi_fail(err, TG_E_FORMAT, "not a TIFF: magic %02x %02x %02x %02x", p[0], p[1],
                        p[2], p[3]);
    t->big_endian = p[0] == 'M';
    t->bigtiff = tgi_load16(p + 2, t->big_endian) == 43;
    if (!t->bigtiff) {
        t->first_ifd = tgi_load32(p + 4, t->big_endian);
        return TG_OK;
    }
    TGI_TRY(tgi_window_get(&t->win, &t->f, 0, 16, t->win.cap, &p, err));
    if (tgi_load16(p + 4, t->big_endian) != 8 || tgi_load16(p + 6, t->big_endian) != 0)
        return tgi_fail(err, TG_E_FORMAT, "BigTIFF header: offset size %u, expected 8",
                        tgi_load16(p + 4, t->big_endian));
    t->first_ifd = tgi_load64(p + 8, t->big_endian);
    return TG_OK;
}

tg_status tgi_tiff_value(const tgi_tiff_file *t, tgi_window *w, const tgi_tiff_array *a,
                         uint64_t i, uint64_t *out, tgi_err *err)
{
    const size_t size = type_size(a->type);
    const uint8_t *p;
    if (i >= a->count || !is_integer(a->type))
        return tgi_fail(err, TG_E_FORMAT, "value %llu of a tag with %llu values of type %u",
                        (unsigned long long)i, (unsigned long long)a->count, a->type);
    /* Fits: the entry's whole array was compared with the file's size. */
    TGI_TRY(tgi_window_get(w, &t->f, a->pos + i * size, size, w->cap, &p, err));
    *out = size == 1   ? p[0]
           : size == 2 ? tgi_load16(p, t->big_endian)
           : size == 4 ? tgi_load32(p, t->big_endian)
                       : tgi_load64(p, t->big_endian);
    return TG_OK;
}

tg_status tgi_tiff_text(const tgi_tiff_file *t, const tgi_tiff_array *a, size_t cap, char **out,
                        tgi_err *err)
{
    *out = NULL;
    if (!a->count || (a->type != T_ASCII && a->type != T_BYTE && a->type != T_UNDEFINED))
        return TG_OK;
    const size_t n = a->count < cap ? (size_t)a->count : cap;
    char *s = tgi_malloc(TGI_TAG_IO, n + 1);
    if (!s)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a text of %zu bytes", n);
    const tg_status st = tgi_rfile_read(&t->f, a->pos, s, n, err);
    if (st != TG_OK) {
        tgi_free(s);
        return st;
    }
    s[n] = 0;
    *out = s;
    return TG_OK;
}

/* One 12-byte (classic) or 20-byte (BigTIFF) entry -> where its values lie. */
static tg_status entry_array(const tgi_tiff_file *t, const uint8_t *e, uint64_t entry_pos,
                             uint16_t tag, tgi_tiff_array *a, tgi_err *err)
{
    const bool be = t->big_endian;
    const size_t room = t->bigtiff ? 8 : 4;
    const uint8_t *field = e + (t->bigtiff ? 12 : 8);
    a->type = tgi_load16(e + 2, be);
    a->count = t->bigtiff ? tgi_load64(e + 4, be) : tgi_load32(e + 4, be);
    const size_t size = type_size(a->type);
    if (!size || !a->count) {
        a->count = 0; /* unknown type or empty: as if absent */
        return TG_OK;
    }
    if (a->count > t->f.size / size)
        return tgi_fail(err, TG_E_FORMAT,
                        "tag %u claims %llu values of %zu bytes in a file of %llu bytes", tag,
                        (unsigned long long)a->count, size, (unsigned long long)t->f.size);
    const uint64_t bytes = a->count * size;
    a->pos = bytes <= room ? entry_pos + (uint64_t)(field - e)
             : t->bigtiff  ? tgi_load64(field, be)
                           : tgi_load32(field, be);
    if (a->pos > t->f.size || bytes > t->f.size - a->pos)
        return tgi_fail(err, TG_E_FORMAT,
                        "the values of tag %u (%llu bytes at %llu) lie past "
                        "the end of the file (%llu)",
                        tag, (unsigned long long)bytes, (unsigned long long)a->pos,
                        (unsigned long long)t->f.size);
    return TG_OK;
}

/* First value, capped to 32 bits (more is absurd for every tag read this way). */
static tg_status first32(tgi_tiff_file *t, const tgi_tiff_array *a, uint32_t *out, tgi_err *err)
{
    uint64_t v = 0;
    TGI_TRY(tgi_tiff_value(t, &t->win, a, 0, &v, err));
    *out = v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
    return TG_OK;
}

/* First value of a per-sample tag; *alike: how many samples say the same. */
static tg_status per_sample(tgi_tiff_file *t, const tgi_tiff_array *a, uint32_t *out,
                            uint32_t *alike, tgi_err *err)
{
    *alike = UINT32_MAX;
    TGI_TRY(first32(t, a, out, err));
    for (uint64_t i = 1; i < a->count && i < 65536; i++) {
        uint64_t v = 0;
        TGI_TRY(tgi_tiff_value(t, &t->win, a, i, &v, err));
        if (v != *out) {
            *alike = (uint32_t)i;
            break;
        }
    }
    return TG_OK;
}

static tg_status rational(tgi_tiff_file *t, const tgi_tiff_array *a, double *out, tgi_err *err)
{
    const uint8_t *p;
    if (a->type != T_RATIONAL)
        return TG_OK;
    TGI_TRY(tgi_window_get(&t->win, &t->f, a->pos, 8, t->win.cap, &p, err));
    const uint32_t num = tgi_load32(p, t->big_endian), den = tgi_load32(p + 4, t->big_endian);
    *out = den ? (double)num / den : 0;
    return TG_OK;
}

/* n numbers of any type that has them; other counts and types are as if absent. */
static tg_status numbers(tgi_tiff_file *t, const tgi_tiff_array *a, uint16_t n, float *out,
                         uint16_t *n_out, tgi_err *err)
{
    const size_t size = type_size(a->type);
    const uint8_t *p;
    if (a->count != n || (a->type != T_RATIONAL && a->type != T_FLOAT && !is_integer(a->type)))
        return TG_OK;
    for (uint16_t i = 0; i < n; i++) {
        uint64_t v = 0;
        if (is_integer(a->type)) {
            TGI_TRY(tgi_tiff_value(t, &t->win, a, i, &v, err));
            out[i] = (float)v;
            continue;
        }
        TGI_TRY(tgi_window_get(&t->win, &t->f, a->pos + i * size, size, t->win.cap, &p, err));
        const uint32_t first = tgi_load32(p, t->big_endian);
        const uint32_t below = size == 8 ? tgi_load32(p + 4, t->big_endian) : 1;
        out[i] = below ? (float)first / (float)below : 0;
        if (a->type == T_FLOAT)
            memcpy(&out[i], &first, sizeof first);
    }
    *n_out = n;
    return TG_OK;
}

typedef struct seen {
    bool width, height, bits, format, samples, compression, predictor, photometric, tile_w,
        tile_h, rps;
    uint64_t tile[2], rps_value; /* w,h */
    uint32_t alike[2];           /* samples that have the bits, the format, of the first */
    uint8_t had[PUBLIC / 8];     /* a bit for each tag */
} seen;

/* Was the tag there before? Private ones are kept by their first place (keep_private), but for two
 * whose values are taken here: they have the bits of tags that there are none of. */
static bool was_there(seen *s, uint16_t tag)
{
    tag = tag == 50674 ? 1 : tag == 32997 ? 2 : tag;
    const uint8_t bit = (uint8_t)(1u << tag % 8);
    if (tag >= PUBLIC)
        return false;
    const bool was = s->had[tag / 8] & bit;
    s->had[tag / 8] |= bit;
    return was;
}

static tg_status take64(tgi_tiff_file *t, const tgi_tiff_array *a, bool *have, uint64_t *out,
                        tgi_err *err)
{
    if (*have)
        return TG_OK;
    *have = true;
    return tgi_tiff_value(t, &t->win, a, 0, out, err);
}

static void keep_first(tgi_tiff_array *dst, const tgi_tiff_array *a)
{
    if (!dst->count)
        *dst = *a;
}

const uint16_t tgi_old_jpeg_tags[TGI_OLD_JPEG_TAGS] = {512, 513, 514, 515, 519, 520, 521};

/* Tags that other programs made their own, kept for who knows them; and those of old JPEG. */
static void keep_private(uint16_t tag, const tgi_tiff_array *a, tgi_tiff_page *p)
{
    tgi_tiff_array *const to = tag == 34675   ? &p->icc
                               : tag == 50838 ? &p->ij_counts
                               : tag == 50839 ? &p->ij_bytes
                               : tag == 34412 ? &p->lsm
                               : tag == 33629 ? &p->uic2
                                              : NULL;
    if (to)
        keep_first(to, a);
    const bool maker =
        tag == TGI_TIFF_ZEISS_SEM || tag == TGI_TIFF_FEI || tag == TGI_TIFF_FEI_HELIOS;
    if (maker && !p->maker.count) {
        p->maker = *a;
        p->maker_tag = tag;
    }
    for (int i = 0; i < TGI_OLD_JPEG_TAGS; i++)
        if (tag == tgi_old_jpeg_tags[i])
            keep_first(&p->old_jpeg[i], a);
}

/* Pixels across and down that share a colour. */
static tg_status sharing(tgi_tiff_file *t, const tgi_tiff_array *a, uint16_t out[2],
                         tgi_err *err)
{
    for (uint64_t i = 0; i < 2 && i < a->count; i++) {
        uint64_t v = 0;
        TGI_TRY(tgi_tiff_value(t, &t->win, a, i, &v, err));
        out[i] = (uint16_t)tgi_min(v, UINT16_MAX);
    }
    return TG_OK;
}

static tg_status take_tag(tgi_tiff_file *t, uint16_t tag, const tgi_tiff_array *a,
                          tgi_tiff_page *p, seen *s, tgi_err *err)
{
    uint32_t v = 0;
    uint64_t v64 = 0;
    switch (tag) {
    case 254:
        return first32(t, a, &p->subfile, err);
    case 256:
        return take64(t, a, &s->width, &p->width, err);
    case 257:
        return take64(t, a, &s->height, &p->height, err);
    case 258:
        s->bits = true;
        return per_sample(t, a, &p->bits, &s->alike[0], err);
    case 259:
        return first32(t, a, &p->compression, err);
    case 262:
        s->photometric = true;
        return first32(t, a, &p->photometric, err);
    case 266:
        return first32(t, a, &p->fill_order, err);
    case 270:
        keep_first(&p->description, a);
        return TG_OK;
    case 273: /* strips */
    case 324: /* tiles */
        keep_first(&p->offsets, a);
        return TG_OK;
    case 274:
        return first32(t, a, &p->orientation, err);
    case 277:
        s->samples = true;
        return first32(t, a, &p->samples, err);
    case 278:
        return take64(t, a, &s->rps, &s->rps_value, err);
    case 279:
    case 325:
        keep_first(&p->counts, a);
        return TG_OK;
    case 282:
        return rational(t, a, &p->resolution[1], err);
    case 283:
        return rational(t, a, &p->resolution[0], err);
    case 284:
        TGI_TRY(first32(t, a, &v, err));
        p->planar = v == 2;
        return v == 1 || v == 2 ? TG_OK
                                : tgi_fail(err, TG_E_FORMAT, "PlanarConfiguration is %u", v);
    case 292:
        return first32(t, a, &p->fax_options, err);
    case 296:
        return first32(t, a, &p->resolution_unit, err);
    case 305:
        keep_first(&p->software, a);
        return TG_OK;
    case 34377: /* Photoshop's own */
        p->photoshop = true;
        return TG_OK;
    case 317:
        return first32(t, a, &p->predictor, err);
    case 320:
        keep_first(&p->colormap, a);
        return TG_OK;
    case 322:
        return take64(t, a, &s->tile_w, &s->tile[0], err);
    case 323:
        return take64(t, a, &s->tile_h, &s->tile[1], err);
    case 330:
        keep_first(&p->subifds, a);
        return TG_OK;
    case 338:
        keep_first(&p->extra, a);
        TGI_TRY(tgi_tiff_value(t, &t->win, a, a->count - 1, &v64, err));
        p->last_extra = (uint32_t)tgi_min(v64, UINT32_MAX);
        return TG_OK;
    case 339:
        return per_sample(t, a, &p->format, &s->alike[1], err);
    case 347:
        keep_first(&p->jpeg_tables, a);
        return TG_OK;
    case 529:
        return numbers(t, a, 3, p->ycbcr.coefficients, &p->ycbcr.n_coefficients, err);
    case 530:
        return sharing(t, a, p->ycbcr.subsampling, err);
    case 532:
        return numbers(t, a, 6, p->ycbcr.reference, &p->ycbcr.n_reference, err);
    case 50674:
        for (uint64_t i = 0; i < 2 && i < a->count; i++) {
            TGI_TRY(tgi_tiff_value(t, &t->win, a, i, &v64, err));
            p->lerc[i] = (uint32_t)tgi_min(v64, UINT32_MAX);
        }
        return TG_OK;
    case 32997: /* ImageDepth, TileDepth: volumes in one directory */
        return first32(t, a, &p->depth, err);
    default:
        keep_private(tag, a, p);
        return TG_OK;
    }
}

/* YCbCr of bytes that is no JPEG: its colours are spread over the pixels. In planes each pixel has
 * one. */
static bool as_rgb(const tgi_tiff_page *p)
{
    const uint32_t c = p->compression;
    const uint16_t across = p->ycbcr.subsampling[0], down = p->ycbcr.subsampling[1];
    return p->photometric == TGI_TIFF_YCBCR && p->bits == 8 && !p->bits_differ &&
           (p->format == 1 || p->format == 4) && p->samples == 3 && p->predictor == 1 &&
           p->block_w <= UINT32_MAX && (across == 1 || across == 2 || across == 4) &&
           (down == 1 || down == 2 || (down == 4 && across == 4)) &&
           (!p->planar || (across == 1 && down == 1)) &&
           (c == TGI_TIFF_NONE || c == TGI_TIFF_LZW || c == TGI_TIFF_PACKBITS ||
            c == TGI_TIFF_DEFLATE || c == TGI_TIFF_DEFLATE_OLD);
}

/* What old JPEG is that does not say what it is, by libtiff. */
static void complete_old_jpeg(tgi_tiff_page *p, const seen *s)
{
    if (!s->photometric)
        p->photometric = TGI_TIFF_YCBCR;
    if (!s->bits)
        p->bits = 8;
    if (!s->samples)
        p->samples = p->photometric < TGI_TIFF_RGB ? 1 : 3;
}

static tg_status page_complete(tgi_tiff_page *p, const seen *s, tgi_err *err)
{
    p->no_image = !s->width && !s->height && !p->offsets.count;
    if (!s->width || !s->height || !p->width || !p->height)
        return tgi_fail(err, TG_E_FORMAT, "an image of %llu x %llu pixels",
                        (unsigned long long)p->width, (unsigned long long)p->height);
    if (p->width > MAX_SIDE || p->height > MAX_SIDE)
        return tgi_fail(err, TG_E_FORMAT, "an image of %llu x %llu pixels is absurd",
                        (unsigned long long)p->width, (unsigned long long)p->height);
    if (p->compression == TGI_TIFF_OLD_JPEG)
        complete_old_jpeg(p, s);
    if (!p->samples || p->samples > 65535)
        return tgi_fail(err, TG_E_FORMAT, "SamplesPerPixel is %u", p->samples);
    if (!p->offsets.count)
        return tgi_fail(err, TG_E_FORMAT, "no strip or tile offsets");
    /* tags may have more values than there are samples */
    p->bits_differ = s->alike[0] < p->samples || s->alike[1] < p->samples;
    p->tiled = s->tile_w || s->tile_h;
    p->block_w = p->tiled ? s->tile[0] : p->width;
    p->block_h = p->tiled ? s->tile[1] : s->rps ? s->rps_value : p->height;
    p->written_h = p->block_h <= MAX_SIDE ? p->block_h : p->height;
    if (!p->tiled && p->block_h > p->height)
        p->block_h = p->height; /* 2^32-1 means one strip */
    if (!p->block_w || !p->block_h || p->block_w > MAX_SIDE || p->block_h > MAX_SIDE)
        return tgi_fail(err, TG_E_FORMAT, "strips or tiles of %llu x %llu pixels",
                        (unsigned long long)p->block_w, (unsigned long long)p->block_h);
    p->codec = !as_rgb(p)  ? p->compression
               : p->planar ? TGI_TIFF_PLANES_AS_RGB
                           : TGI_TIFF_AS_RGB;
    p->planar &= p->codec != TGI_TIFF_PLANES_AS_RGB;
    return TG_OK;
}

tg_status tgi_tiff_page_parse(tgi_tiff_file *t, uint64_t pos, tgi_tiff_page *out, tgi_err *err)
{
    const size_t head = t->bigtiff ? 8 : 2, entry = t->bigtiff ? 20 : 12;
    const size_t tail = t->bigtiff ? 8 : 4;
    const uint8_t *p;
    seen s = {.alike = {UINT32_MAX, UINT32_MAX}};
    *out = (tgi_tiff_page){.pos = pos,
                           .bits = 1,
                           .format = 1,
                           .samples = 1,
                           .compression = 1,
                           .predictor = 1,
                           .photometric = 1,
                           .fill_order = 1,
                           .depth = 1,
                           .lerc = {4, 0},
                           .ycbcr = {.subsampling = {2, 2}},
                           .orientation = 1,
                           .resolution_unit = 0};
    if (pos < 8 || pos > t->f.size)
        return tgi_fail(
            err, TG_E_FORMAT,
            "the directory lies at offset %llu of a file of %llu bytes: cut off or damaged",
            (unsigned long long)pos, (unsigned long long)t->f.size);
    TGI_TRY(tgi_window_get(&t->win, &t->f, pos, head, t->win.cap, &p, err));
    const uint64_t n = t->bigtiff ? tgi_load64(p, t->big_endian) : tgi_load16(p, t->big_endian);
    /* window_get has shown that pos + head fits. */
    if (!n || n > 65535 || n * entry + tail > t->f.size - pos - head)
        return tgi_fail(
            err, TG_E_FORMAT,
            "the directory at offset %llu claims %llu entries, of which the file does "
            "not hold all: cut off or damaged",
            (unsigned long long)pos, (unsigned long long)n);
    out->n_entries = n;
    uint64_t at = pos + head;
    for (uint64_t i = 0; i < n; i++, at += entry) {
        uint8_t e[20];
        tgi_tiff_array a = {0};
        TGI_TRY(tgi_window_get(&t->win, &t->f, at, entry, t->win.cap, &p, err));
        memcpy(e, p, entry); /* reading values may move the window */
        const uint16_t tag = tgi_load16(e, t->big_endian);
        TGI_TRY(entry_array(t, e, at, tag, &a, err));
        if (a.count && !was_there(&s, tag))
            TGI_TRY(take_tag(t, tag, &a, out, &s, err));
    }
    TGI_TRY(tgi_window_get(&t->win, &t->f, at, tail, t->win.cap, &p, err));
    out->next = t->bigtiff ? tgi_load64(p, t->big_endian) : tgi_load32(p, t->big_endian);
    return page_complete(out, &s, err);
}

const char *tgi_tiff_compression_name(uint32_t code)
{
    static const struct {
        uint32_t code;
        const char *name;
    } names[] = {
        {TGI_TIFF_NONE, "none"},
        {TGI_TIFF_CCITT_RLE, "CCITT RLE"},
        {TGI_TIFF_CCITT_FAX3, "CCITT fax 3"},
        {TGI_TIFF_CCITT_FAX4, "CCITT fax 4"},
        {TGI_TIFF_LZW, "lzw"},
        {TGI_TIFF_OLD_JPEG, "old JPEG"},
        {TGI_TIFF_JPEG, "JPEG"},
        {TGI_TIFF_DEFLATE, "deflate"},
        {TGI_TIFF_DEFLATE_OLD, "deflate"},
        {TGI_TIFF_PACKBITS, "packbits"},
        {TGI_TIFF_NEXT, "NeXT"},
        {TGI_TIFF_CCITT_RLEW, "CCITT RLE/W"},
        {TGI_TIFF_THUNDERSCAN, "ThunderScan"},
        {TGI_TIFF_PIXARLOG, "PixarLog"},
        {33003, "JPEG 2000"},
        {33005, "JPEG 2000"},
        {TGI_TIFF_JBIG, "JBIG"},
        {TGI_TIFF_SGILOG, "SGI LogLuv"},
        {TGI_TIFF_SGILOG24, "SGI LogLuv 24"},
        {34712, "JPEG 2000"},
        {TGI_TIFF_LERC, "LERC"},
        {34892, "lossy JPEG"},
        {TGI_TIFF_LZMA, "LZMA"},
        {TGI_TIFF_ZSTD, "zstd"},
        {TGI_TIFF_WEBP, "WebP"},
        {50002, "JPEG XL"},
        {52546, "JPEG XL"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].code == code)
            return names[i].name;
    return "unknown";
}

/* The type that samples are delivered in: the smallest that holds them. */
static tg_dtype dtype_of(uint32_t format, uint32_t bits)
{
    static const tg_dtype uints[] = {TG_DTYPE_U8, TG_DTYPE_U16, TG_DTYPE_U32, TG_DTYPE_U64};
    static const tg_dtype ints[] = {TG_DTYPE_I8, TG_DTYPE_I16, TG_DTYPE_I32, TG_DTYPE_I64};
    if (format == 3)
        return bits == 16   ? TG_DTYPE_F16
               : bits == 24 ? TG_DTYPE_F32
               : bits == 32 ? TG_DTYPE_F32
               : bits == 64 ? TG_DTYPE_F64
                            : TG_DTYPE_NONE;
    if (!bits || (bits > 32 && bits != 64) || (format != 1 && format != 2 && format != 4))
        return TG_DTYPE_NONE;
    if (bits == 1)
        return format == 2 ? TG_DTYPE_NONE : TG_DTYPE_BOOL;
    const int size = bits <= 8 ? 0 : bits <= 16 ? 1 : bits <= 32 ? 2 : 3;
    return format == 2 ? ints[size] : uints[size];
}

static const char *photometric_name(uint32_t v)
{
    switch (v) {
    case TGI_TIFF_YCBCR:
        return "YCbCr";
    case 10: /* its numbers mean what another tag says */
        return "ITU Lab";
    case TGI_TIFF_LOG_L:
    case TGI_TIFF_LOG_LUV:
        return "Log";
    default:
        return NULL;
    }
}

static tg_status refuse_samples(const tgi_tiff_page *p, tgi_err *err)
{
    if (p->bits_differ)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "samples of different bit depths or formats are not supported yet");
    if (p->format == 5 || p->format == 6)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "complex numbers (sample format %u) are not supported", p->format);
    if (p->dtype == TG_DTYPE_NONE)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "%u bits per sample, sample format %u, is not supported yet", p->bits,
                        p->format);
    if (p->fill_order != 1 && p->fill_order != 2)
        return tgi_fail(err, TG_E_FORMAT, "FillOrder is %u", p->fill_order);
    return TG_OK;
}

/* Decoders of pictures hand out pixels: what they can be asked for is settled here. */
static tg_status refuse_pictures(const tgi_tiff_page *p, tgi_err *err)
{
    const char *name = tgi_tiff_compression_name(p->compression);
    const bool jpeg = p->compression == TGI_TIFF_JPEG;
    const uint32_t inner = p->planar ? 1 : p->samples;
    if (p->bits != 8 || (p->format != 1 && p->format != 4))
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "%s with %u bits per sample, sample format %u, is not supported", name,
                        p->bits, p->format);
    if (jpeg ? inner > 4 || (p->photometric == TGI_TIFF_YCBCR && inner != 3)
             : inner != 3 && inner != 4)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "%s with %u samples%s, photometric %u, is not supported", name,
                        p->samples, p->planar ? " in planes of their own" : "", p->photometric);
    const uint64_t most = jpeg ? 65500 : 16383; /* what the formats themselves can be */
    if (p->block_w > most || (!jpeg && p->block_h > most))
        return tgi_fail(err, TG_E_FORMAT, "%s of %llu x %llu pixels in one block", name,
                        (unsigned long long)p->block_w, (unsigned long long)p->block_h);
    return TG_OK;
}

static tg_status refuse_predictor(const tgi_tiff_page *p, tgi_err *err)
{
    const bool plain = p->bits == 8 || p->bits == 16 || p->bits == 32 || p->bits == 64;
    const bool may_predict = p->compression != TGI_TIFF_NONE &&
                             p->compression != TGI_TIFF_PACKBITS &&
                             !tgi_unpack_is_native(p->codec) && plain;
    if (p->predictor != 1 && !(may_predict && (p->predictor == 2 || p->predictor == 3)))
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "predictor %u with compression %u (%s) and %u bits per sample is not "
                        "supported yet",
                        p->predictor, p->compression, tgi_tiff_compression_name(p->compression),
                        p->bits);
    if (p->predictor == 3 && !tgi_dtype_is_float(p->dtype))
        return tgi_fail(err, TG_E_FORMAT, "predictor 3 (floating point) on integers");
    return TG_OK;
}

/* Logarithms come in a compression of their own, and nothing else does. */
static bool is_log(const tgi_tiff_page *p)
{
    return p->compression == TGI_TIFF_SGILOG || p->compression == TGI_TIFF_SGILOG24;
}

/* Old JPEG in colours: YCbCr, and libtiff takes it for that where the tag says RGB. */
static bool is_old_colour(const tgi_tiff_page *p)
{
    return p->compression == TGI_TIFF_OLD_JPEG && p->samples == 3 &&
           (p->photometric == TGI_TIFF_YCBCR || p->photometric == TGI_TIFF_RGB);
}

/* What the codecs of libtiff are made for. */
static bool lib_takes(const tgi_tiff_page *p)
{
    const uint32_t inner = p->planar ? 1 : p->samples, bits = p->bits;
    const bool natural = p->format == 1 || p->format == 4, real = p->format == 3;
    switch (p->codec) {
    case TGI_TIFF_LERC:
        return inner <= TGI_LIB_SAMPLES && p->format != 4 &&
               (real ? bits >= 32 : bits == 8 || bits == 16 || bits == 32);
    case TGI_TIFF_PIXARLOG:
        return inner <= TGI_LIB_SAMPLES &&
               (real ? bits == 32 : natural && (bits == 8 || bits == 16));
    case TGI_TIFF_SGILOG:
    case TGI_TIFF_SGILOG24:
        return (p->photometric == TGI_TIFF_LOG_L     ? inner == 1
                : p->photometric == TGI_TIFF_LOG_LUV ? p->samples == 3 && !p->planar
                                                     : false) &&
               (real ? bits == 32 : bits == 16 || (bits == 8 && natural));
    case TGI_TIFF_OLD_JPEG:
        return natural && bits == 8 && !p->planar &&
               (p->samples == 1 ? p->photometric < TGI_TIFF_RGB : is_old_colour(p));
    default: /* NeXT, JBIG */
        return inner == 1 && bits == (p->compression == TGI_TIFF_NEXT ? 2 : 1);
    }
}

static tg_status refuse_lib(const tgi_tiff_page *p, uint64_t file_size, tgi_err *err)
{
    const char *name = tgi_tiff_compression_name(p->compression);
    const uint64_t samples = p->planar ? 1 : p->samples;
    if (!lib_takes(p))
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "%s with %u samples of %u bits, sample format %u, photometric %u, is "
                        "not supported",
                        name, p->samples, p->bits, p->format, p->photometric);
    const bool old = p->codec == TGI_TIFF_OLD_JPEG;
    if (old && (p->block_w < p->width || file_size > MAX_OLD_FILE))
        return tgi_fail(err, TG_E_UNSUPPORTED, "%s in %s is not supported", name,
                        p->block_w < p->width ? "tiles side by side" : "a file beyond 4 GiB");
    if (old &&
        (p->block_w > MAX_OLD_SIDE || p->height > MAX_OLD_SIDE || p->block_h > MAX_OLD_SIDE))
        return tgi_fail(err, TG_E_FORMAT, "%s of %llu x %llu pixels", name,
                        (unsigned long long)p->width, (unsigned long long)p->height);
    if (p->block_w > MAX_LIB_BLOCK || p->block_h > MAX_LIB_BLOCK / p->block_w / samples)
        return tgi_fail(err, TG_E_UNSUPPORTED, "%s of %llu x %llu pixels in one block", name,
                        (unsigned long long)p->block_w, (unsigned long long)p->block_h);
    return TG_OK;
}

static bool is_fax(const tgi_tiff_page *p)
{
    return p->compression == TGI_TIFF_CCITT_RLE || p->compression == TGI_TIFF_CCITT_FAX3 ||
           p->compression == TGI_TIFF_CCITT_FAX4 || p->compression == TGI_TIFF_CCITT_RLEW;
}

/* Features we do not read, each by its name and value. */
static tg_status refuse_features(const tgi_tiff_page *p, uint64_t file_size, tgi_err *err)
{
    /* a file can name no way of our own: compressions are SHORT */
    if (p->compression > UINT16_MAX || !tgi_unpack_knows(p->compression))
        return tgi_fail(err, TG_E_UNSUPPORTED, "compression %u (%s) is not supported yet",
                        p->compression, tgi_tiff_compression_name(p->compression));
    const bool picture = tgi_unpack_is_picture(p->compression);
    const bool decoded = picture && p->photometric == TGI_TIFF_YCBCR; /* comes out as RGB */
    if (photometric_name(p->photometric) && !decoded && !is_log(p) && !as_rgb(p) &&
        !is_old_colour(p))
        return tgi_fail(err, TG_E_UNSUPPORTED, "photometric %u (%s) is not supported yet",
                        p->photometric, photometric_name(p->photometric));
    TGI_TRY(refuse_samples(p, err));
    if (is_fax(p) && (p->bits != 1 || (p->samples > 1 && !p->planar)))
        return tgi_fail(err, TG_E_UNSUPPORTED, "%s with %u samples of %u bits is not supported",
                        tgi_tiff_compression_name(p->compression), p->samples, p->bits);
    if (p->compression == TGI_TIFF_THUNDERSCAN &&
        (p->bits != 4 || (p->samples > 1 && !p->planar)))
        return tgi_fail(err, TG_E_UNSUPPORTED, "%s with %u samples of %u bits is not supported",
                        tgi_tiff_compression_name(p->compression), p->samples, p->bits);
    if (p->depth > 1)
        return tgi_fail(err, TG_E_UNSUPPORTED, "ImageDepth %u is not supported yet", p->depth);
    if (tgi_unpack_is_native(p->codec))
        TGI_TRY(refuse_lib(p, file_size, err));
    if (picture) /* a predictor beside a picture means nothing: it is not applied */
        return refuse_pictures(p, err);
    return refuse_predictor(p, err);
}

/* Bytes of a row as they are stored; a row of a block begins on a whole byte. */
static bool stored_row_bytes(const tgi_tiff_page *p, size_t inner, size_t *out)
{
    size_t bits;
    if (!tgi_mul_ok(p->block_w, inner * p->bits, &bits))
        return false;
    *out = bits / 8 + (bits % 8 != 0);
    return true;
}

tg_status tgi_tiff_page_layout(tgi_tiff_page *p, uint64_t file_size, tgi_err *err)
{
    size_t pixel, plane, rows;
    p->dtype = dtype_of(p->format, p->bits);
    TGI_TRY(refuse_features(p, file_size, err));
    p->sample_bytes = tgi_dtype_size(p->dtype);
    const size_t inner = p->planar ? 1 : p->samples;
    pixel = inner * p->sample_bytes;
    p->raw = p->codec == TGI_TIFF_NONE && p->fill_order == 1 && p->bits == 8 * p->sample_bytes;
    if (!stored_row_bytes(p, inner, &p->stored_row) ||
        !tgi_mul_ok(p->block_w, pixel, &p->row_bytes) ||
        !tgi_mul_ok(p->row_bytes, p->block_h, &p->block_bytes) ||
        !tgi_mul_ok(p->width, p->sample_bytes * p->samples, &rows) ||
        !tgi_mul_ok(rows, p->height, &plane) || plane > INT64_MAX || p->block_bytes > INT64_MAX)
        return tgi_fail(
            err, TG_E_FORMAT, "%llu x %llu pixels of %u samples overflow the address space",
            (unsigned long long)p->width, (unsigned long long)p->height, p->samples);
    p->plane_bytes = plane;
    p->across = (p->width + p->block_w - 1) / p->block_w;
    p->down = (p->height + p->block_h - 1) / p->block_h;
    size_t grid;
    if (!tgi_mul_ok(p->across, p->down, &grid) ||
        !tgi_mul_ok(grid, p->planar ? p->samples : 1, &grid))
        return tgi_fail(err, TG_E_FORMAT, "the number of tiles overflows");
    p->n_blocks = grid;
    if (p->codec == TGI_TIFF_PLANES_AS_RGB && !tgi_mul_ok(grid, 3, &grid))
        return tgi_fail(err, TG_E_FORMAT, "the number of tiles overflows");
    if (p->offsets.count < grid || (p->counts.count && p->counts.count < grid))
        return tgi_fail(err, TG_E_FORMAT, "%llu offsets and %llu byte counts for %zu %s",
                        (unsigned long long)p->offsets.count,
                        (unsigned long long)p->counts.count, grid,
                        p->tiled ? "tiles" : "strips");
    if (!is_integer(p->offsets.type) || (p->counts.count && !is_integer(p->counts.type)))
        return tgi_fail(err, TG_E_FORMAT, "strip or tile offsets of type %u", p->offsets.type);
    const double stored = (double)plane * p->bits / (8 * (double)p->sample_bytes);
    if (p->codec == TGI_TIFF_NONE && stored > (double)file_size)
        return tgi_fail(err, TG_E_FORMAT, "%.0f bytes of pixels in a file of %llu bytes",
                        stored, (unsigned long long)file_size);
    if (p->codec != TGI_TIFF_NONE && !p->counts.count)
        return tgi_fail(err, TG_E_FORMAT, "compressed data without byte counts");
    return TG_OK;
}

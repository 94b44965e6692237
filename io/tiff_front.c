/* tiff_front.c - the generator of an output TIFF's front.
 *
 * The front is generated, never stored: the same function writes it at the start (arrays of
 * zeros) and at the end (with the offsets), byte for byte at the same positions. It is
 *
 *     header       8 bytes, or 16 for BigTIFF
 *     pool         values that directories share and point to: BitsPerSample, SampleFormat,
 *                  ExtraSamples, resolutions, Software, ImageDescription, colour profile,
 *                  palette
 *     directories  one per plane, all of one size but the first (it has the description)
 *     SubIFDs      the levels of each plane's pyramid, and lists of where they are
 *     offsets      tiles of plane 0, of plane 1, ...: 4 bytes each, 8 in BigTIFF
 *     byte counts  the same, 4 bytes each
 *     pad          to a multiple of 64
 *
 * A plane whose array fits into its directory entry has it there, as TIFF demands; its place in
 * the arrays then stays zero. Byte order is the machine's, as the pixels are. Source: TIFF 6.0
 * sections 2, 8, 15; the BigTIFF design page (libtiff). */
#include "io/tiff_front.h"

#include "engine/base/arith.h"
#include "io/tiff_ifd.h"

#include <string.h>

enum {
    SHORT = 3,
    LONG = 4,
    RATIONAL = 5,
    ASCII = 2,
    UNDEFINED = 7,
    IFD = 13,
    LONG8 = 16,
    IFD8 = 18
};
#define SOFTWARE "tegula"

/* ---- Geometry of the front --------------------------------------------------------------- */

typedef struct front {
    uint64_t bits, format, extra, x_res, y_res, software, description, icc,
        palette; /* in the pool */
    uint64_t directories, subs, sub_lists, offsets, counts, end;
    uint64_t first_bytes, other_bytes, sub_bytes; /* sizes of directories */
    int first_entries, other_entries, sub_entries;
    int n_extra; /* samples beyond the photometric ones */
    size_t offset_bytes, inline_bytes;
} front;

static int colours_of(const tgi_sink_layout *l)
{
    const bool three = l->photometric == TGI_TIFF_RGB || l->photometric == TGI_TIFF_CIELAB ||
                       l->photometric == TGI_TIFF_ICCLAB;
    return three ? 3 : l->photometric == TGI_TIFF_CMYK ? 4 : 1;
}

/* Positions of everything, for classic or BigTIFF; sizes saturate, so too large is seen at the
 * end. */
static front front_of(const tgi_sink_layout *l, int big)
{
    front f = {.offset_bytes = big ? 8 : 4, .inline_bytes = big ? 8 : 4};
    const size_t shorts = tgi_align_size(2 * (size_t)l->samples, 8);
    f.n_extra = l->samples - colours_of(l);
    f.bits = big ? 16 : 8;
    f.format = f.bits + shorts;
    f.extra = f.format + shorts;
    f.x_res = f.extra + shorts;
    f.y_res = f.x_res + 8;
    f.software = f.y_res + 8;
    f.description = f.software + tgi_align_size(sizeof SOFTWARE, 8);
    f.icc = f.description + tgi_align_size(strlen(l->description) + 1, 8);
    f.palette = f.icc + tgi_align_size(l->icc_bytes, 8);
    f.directories = f.palette + tgi_align_size(6 * l->n_palette, 8);
    f.other_entries = 13 + (l->orientation > 1) + (l->n_palette > 0) + (l->icc_bytes > 0) +
                      (f.n_extra > 0) + (l->predictor > 1) + 3 * (l->resolution_unit > 0);
    f.sub_entries = f.other_entries + 1; /* NewSubfileType */
    f.other_entries += l->n_levels > 1;  /* SubIFDs */
    f.first_entries = f.other_entries + 1;
    const size_t frame = big ? 16 : 6, entry = big ? 20 : 12;
    f.first_bytes = frame + entry * (size_t)f.first_entries;
    f.other_bytes = frame + entry * (size_t)f.other_entries;
    f.sub_bytes = frame + entry * (size_t)f.sub_entries;
    const size_t tiles = (size_t)l->n_tiles;
    const size_t n_subs = tgi_sat_mul((size_t)l->n_planes, (size_t)l->n_levels - 1);
    f.subs = tgi_sat_add(f.directories + f.first_bytes,
                         tgi_sat_mul(f.other_bytes, (size_t)l->n_planes - 1));
    f.sub_lists = tgi_align_size(tgi_sat_add(f.subs, tgi_sat_mul(f.sub_bytes, n_subs)), 8);
    f.offsets =
        tgi_align_size(tgi_sat_add(f.sub_lists, tgi_sat_mul(f.offset_bytes, n_subs)), 8);
    f.counts = tgi_sat_add(f.offsets, tgi_sat_mul(f.offset_bytes, tiles));
    f.end = tgi_align_size(tgi_sat_add(f.counts, tgi_sat_mul(4, tiles)), 64);
    return f;
}

static uint64_t directory_position(const front *f, int64_t plane)
{
    return f->directories +
           (plane ? f->first_bytes + (uint64_t)(plane - 1) * f->other_bytes : 0);
}

/* Of level 1.. of a plane. */
static uint64_t sub_position(const front *f, const tgi_sink_layout *l, int64_t plane, int level)
{
    return f->subs +
           ((uint64_t)plane * (uint64_t)(l->n_levels - 1) + (uint64_t)level - 1) * f->sub_bytes;
}
uint64_t tgi_tiff_front_bytes(const tgi_sink_layout *l, int big)
{
    return front_of(l, big).end;
}

/* ---- Generator --------------------------------------------------------------------------- */

typedef struct generator {
    const tgi_sink_layout *l;
    front f;
    const uint64_t *offset;
    const uint32_t *length;
    uint64_t blank; /* what stands for either where there are none */
    char *scratch;
    size_t used;
    uint64_t at; /* bytes given out so far, those in scratch included */
    tgi_sink_emit *emit;
    void *arg;
    tgi_err *err;
    tg_status st; /* the first failure of emit; later bytes go nowhere */
} generator;

static void flush(generator *g)
{
    if (g->used && g->st == TG_OK)
        g->st = g->emit(g->arg, g->scratch, g->used, g->err);
    g->used = 0;
}

/* The next n bytes; NULL: zeros. */
static void put(generator *g, const void *bytes, size_t n)
{
    const char *p = bytes;
    g->at += n;
    while (n) {
        const size_t room = TGI_SINK_SCRATCH - g->used, part = n < room ? n : room;
        if (p) {
            memcpy(g->scratch + g->used, p, part);
            p += part;
        } else {
            memset(g->scratch + g->used, 0, part);
        }
        g->used += part;
        n -= part;
        if (g->used == TGI_SINK_SCRATCH)
            flush(g);
    }
}

static void put16(generator *g, unsigned v)
{
    const uint16_t x = (uint16_t)v;
    put(g, &x, sizeof x);
}

static void put32(generator *g, uint64_t v)
{
    const uint32_t x = (uint32_t)v;
    put(g, &x, sizeof x);
}

static void put64(generator *g, uint64_t v)
{
    put(g, &v, sizeof v);
}

/* An offset or a number of the directory's own width. */
static void put_word(generator *g, uint64_t v)
{
    if (g->l->bigtiff)
        put64(g, v);
    else
        put32(g, v);
}

static void pad_to(generator *g, uint64_t position)
{
    put(g, NULL, (size_t)(position - g->at));
}

static void entry_head(generator *g, unsigned tag, unsigned type, uint64_t count)
{
    put16(g, tag);
    put16(g, type);
    put_word(g, count);
}

/* Fill the entry's value field up after `n` bytes of it. */
static void entry_end(generator *g, size_t n)
{
    put(g, NULL, g->f.inline_bytes - n);
}

static void entry_short(generator *g, unsigned tag, unsigned v)
{
    entry_head(g, tag, SHORT, 1);
    put16(g, v);
    entry_end(g, 2);
}

static void entry_long(generator *g, unsigned tag, int64_t v)
{
    entry_head(g, tag, LONG, 1);
    put32(g, (uint64_t)v);
    entry_end(g, 4);
}

/* `count` equal shorts: in place when they fit, else those in the pool. */
static void entry_shorts(generator *g, unsigned tag, int count, unsigned v, uint64_t pool)
{
    entry_head(g, tag, SHORT, (uint64_t)count);
    if (2 * (size_t)count > g->f.inline_bytes) {
        put_word(g, pool);
        return;
    }
    for (int i = 0; i < count; i++)
        put16(g, v);
    entry_end(g, 2 * (size_t)count);
}

/* Bytes of the pool, repeated in place when they fit. */
static void entry_pool(generator *g, unsigned tag, unsigned type, uint64_t count,
                       const void *bytes, size_t n, uint64_t pool)
{
    entry_head(g, tag, type, count);
    if (n > g->f.inline_bytes) {
        put_word(g, pool);
    } else {
        put(g, bytes, n);
        entry_end(g, n);
    }
}

/* Kinds of the samples beyond the colours: not stated, but for alpha at the end. */
static void put_extras(generator *g)
{
    for (int i = 1; i < g->f.n_extra; i++)
        put16(g, 0);
    put16(g, (unsigned)g->l->alpha);
}

static void entry_extras(generator *g)
{
    const size_t n = 2 * (size_t)g->f.n_extra;
    entry_head(g, 338, SHORT, (uint64_t)g->f.n_extra);
    if (n > g->f.inline_bytes) {
        put_word(g, g->f.extra);
        return;
    }
    put_extras(g);
    entry_end(g, n);
}

static uint64_t offset_of(const generator *g, int64_t tile)
{
    return g->offset ? g->offset[tile] : g->blank;
}

static uint32_t length_of(const generator *g, int64_t tile)
{
    return g->length ? g->length[tile] : (uint32_t)g->blank;
}

static int inside_entry(const generator *g, int level, size_t element)
{
    return tgi_sat_mul(element, (size_t)tgi_sink_tiles_per_plane(g->l, level)) <=
           g->f.inline_bytes;
}

static void entry_offsets(generator *g, int64_t plane, int level)
{
    const int64_t n = tgi_sink_tiles_per_plane(g->l, level);
    const int64_t first = g->l->level_of[level].first + plane * n;
    const size_t width = g->f.offset_bytes;
    entry_head(g, 324, g->l->bigtiff ? LONG8 : LONG, (uint64_t)n);
    if (inside_entry(g, level, width)) /* one tile, then: the entry is one word wide */
        put_word(g, offset_of(g, first));
    else
        put_word(g, g->f.offsets + (uint64_t)first * width);
}

static void entry_counts(generator *g, int64_t plane, int level)
{
    const int64_t n = tgi_sink_tiles_per_plane(g->l, level);
    const int64_t first = g->l->level_of[level].first + plane * n;
    entry_head(g, 325, LONG, (uint64_t)n);
    if (!inside_entry(g, level, 4)) {
        put_word(g, g->f.counts + (uint64_t)first * 4);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        put32(g, length_of(g, first + i));
    entry_end(g, 4 * (size_t)n);
}

/* Where the levels of a plane are. */
static void entry_subs(generator *g, int64_t plane)
{
    const uint64_t n = (uint64_t)g->l->n_levels - 1;
    entry_head(g, 330, g->l->bigtiff ? IFD8 : IFD, n);
    if (n == 1)
        put_word(g, sub_position(&g->f, g->l, plane, 1));
    else
        put_word(g, g->f.sub_lists + (uint64_t)plane * n * g->f.offset_bytes);
}

static unsigned sample_bits(const tgi_sink_layout *l)
{
    return 8 * (unsigned)tgi_dtype_size(l->dtype);
}

static unsigned sample_format(tg_dtype t)
{
    if (tgi_dtype_is_float(t))
        return 3;
    const int is_signed =
        t == TG_DTYPE_I8 || t == TG_DTYPE_I16 || t == TG_DTYPE_I32 || t == TG_DTYPE_I64;
    return is_signed ? 2 : 1;
}

static unsigned compression_tag(tgi_compression c)
{
    return c == TGI_COMPRESSION_DEFLATE ? 8
           : c == TGI_COMPRESSION_ZSTD  ? 50000
           : c == TGI_COMPRESSION_LZW   ? 5
                                        : 1;
}

/* One directory; entries in ascending order of their tags. */
static void put_directory(generator *g, int64_t plane, int level)
{
    const tgi_sink_layout *l = g->l;
    const front *f = &g->f;
    const bool first = !plane && !level;
    const int entries = level ? f->sub_entries : first ? f->first_entries : f->other_entries;
    if (l->bigtiff)
        put64(g, (uint64_t)entries);
    else
        put16(g, (unsigned)entries);
    if (level)
        entry_long(g, 254, 1); /* of reduced resolution */
    entry_long(g, 256, l->level_of[level].width);
    entry_long(g, 257, l->level_of[level].height);
    entry_shorts(g, 258, l->samples, sample_bits(l), f->bits);
    entry_short(g, 259, compression_tag(l->compression));
    entry_short(g, 262, l->photometric);
    if (first)
        entry_pool(g, 270, ASCII, strlen(l->description) + 1, l->description,
                   strlen(l->description) + 1, f->description);
    if (l->orientation > 1)
        entry_short(g, 274, (unsigned)l->orientation);
    entry_short(g, 277, (unsigned)l->samples);
    if (l->resolution_unit) {
        entry_pool(g, 282, RATIONAL, 1, l->resolution[0], 8, f->x_res);
        entry_pool(g, 283, RATIONAL, 1, l->resolution[1], 8, f->y_res);
    }
    entry_short(g, 284, 1);
    if (l->resolution_unit)
        entry_short(g, 296, (unsigned)l->resolution_unit);
    entry_pool(g, 305, ASCII, sizeof SOFTWARE, SOFTWARE, sizeof SOFTWARE, f->software);
    if (l->predictor > 1)
        entry_short(g, 317, (unsigned)l->predictor);
    if (l->n_palette)
        entry_pool(g, 320, SHORT, 3 * l->n_palette, l->palette, 6 * l->n_palette, f->palette);
    entry_long(g, 322, l->tile_w);
    entry_long(g, 323, l->tile_h);
    entry_offsets(g, plane, level);
    entry_counts(g, plane, level);
    if (!level && l->n_levels > 1)
        entry_subs(g, plane);
    if (f->n_extra > 0)
        entry_extras(g);
    entry_shorts(g, 339, l->samples, sample_format(l->dtype), f->format);
    if (l->icc_bytes)
        entry_pool(g, 34675, UNDEFINED, l->icc_bytes, l->icc, l->icc_bytes, f->icc);
    put_word(g, !level && plane + 1 < l->n_planes ? directory_position(f, plane + 1) : 0);
}

static void put_header(generator *g)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    put(g, "II", 2);
#else
    put(g, "MM", 2);
#endif
    if (g->l->bigtiff) {
        put16(g, 43);
        put16(g, 8); /* bytes of an offset */
        put16(g, 0);
    } else {
        put16(g, 42);
    }
    put_word(g, g->f.directories);
}

static void put_pool(generator *g)
{
    const tgi_sink_layout *l = g->l;
    for (int i = 0; i < l->samples; i++)
        put16(g, sample_bits(l));
    pad_to(g, g->f.format);
    for (int i = 0; i < l->samples; i++)
        put16(g, sample_format(l->dtype));
    pad_to(g, g->f.extra);
    if (g->f.n_extra > 0)
        put_extras(g);
    pad_to(g, g->f.x_res);
    put(g, l->resolution[0], 8);
    put(g, l->resolution[1], 8);
    put(g, SOFTWARE, sizeof SOFTWARE);
    pad_to(g, g->f.description);
    put(g, l->description, strlen(l->description) + 1);
    pad_to(g, g->f.icc);
    put(g, l->icc, l->icc_bytes);
    pad_to(g, g->f.palette);
    put(g, l->palette, 6 * l->n_palette);
    pad_to(g, g->f.directories);
}

/* Offsets and byte counts of all tiles; those of levels that have them in their entries stay
 * zero. */
static void put_arrays(generator *g)
{
    const tgi_sink_layout *l = g->l;
    pad_to(g, g->f.offsets);
    for (int k = 0; k < l->n_levels; k++) {
        const int64_t end = k + 1 < l->n_levels ? l->level_of[k + 1].first : l->n_tiles;
        const int inside = inside_entry(g, k, g->f.offset_bytes);
        for (int64_t i = l->level_of[k].first; i < end && g->st == TG_OK; i++)
            put_word(g, inside ? 0 : offset_of(g, i));
    }
    if (g->st != TG_OK)
        return;
    pad_to(g, g->f.counts);
    for (int k = 0; k < l->n_levels; k++) {
        const int64_t end = k + 1 < l->n_levels ? l->level_of[k + 1].first : l->n_tiles;
        const int inside = inside_entry(g, k, 4);
        for (int64_t i = l->level_of[k].first; i < end && g->st == TG_OK; i++)
            put32(g, inside ? 0 : length_of(g, i));
    }
}

static tg_status generate(generator *g)
{
    const tgi_sink_layout *l = g->l;
    g->f = front_of(l, l->bigtiff);
    put_header(g);
    put_pool(g);
    for (int64_t p = 0; p < l->n_planes && g->st == TG_OK; p++)
        put_directory(g, p, 0);
    for (int64_t p = 0; p < l->n_planes && g->st == TG_OK; p++)
        for (int k = 1; k < l->n_levels; k++)
            put_directory(g, p, k);
    if (g->st == TG_OK)
        pad_to(g, g->f.sub_lists);
    for (int64_t p = 0; p < l->n_planes && g->st == TG_OK; p++)
        for (int k = 1; k < l->n_levels; k++)
            put_word(g, sub_position(&g->f, l, p, k));
    if (g->st == TG_OK)
        put_arrays(g);
    if (g->st == TG_OK)
        pad_to(g, g->f.end);
    flush(g);
    return g->st;
}

tg_status tgi_sink_front(const tgi_sink_layout *l, const uint64_t *offset,
                         const uint32_t *length, void *scratch, tgi_sink_emit *emit, void *arg,
                         tgi_err *err)
{
    generator g = {.l = l,
                   .offset = offset,
                   .length = length,
                   .scratch = scratch,
                   .emit = emit,
                   .arg = arg,
                   .err = err};
    return generate(&g);
}

tg_status tgi_sink_front_ones(const tgi_sink_layout *l, void *scratch, tgi_sink_emit *emit,
                              void *arg, tgi_err *err)
{
    generator g = {
        .l = l, .blank = UINT64_MAX, .scratch = scratch, .emit = emit, .arg = arg, .err = err};
    return generate(&g);
}

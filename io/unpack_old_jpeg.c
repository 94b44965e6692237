/* unpack_old_jpeg.c - JPEG as TIFF 6.0 had it (compression 6), through libtiff. What is said here
 * of strips goes for tiles, of which libtiff reads one column: a page's stream is as wide.
 *
 * Its parts lie anywhere in the file: a whole JPEG stream, or tables and the strips without
 * headers. libtiff makes one stream of them for libjpeg, from the first strip of a page to the
 * last, so a page has one handle, its strips are decoded in order, and a strip before the last
 * one decoded begins the page anew. libjpeg goes on behind damage with pixels of its own and
 * warns but once: that strip of the page and those behind it are refused.
 *
 * libtiff sees the directory that our own parser read (tiff_lib.h), and of the file no more
 * bytes than three times its size: strips that claim each other's bytes end there. */
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/tiff_lib.h"
#include "io/ycbcr.h"

#include <string.h>

#define MOST_TABLES 3 /* of each kind, by libtiff */
#define WINDOW 4096

typedef struct old_jpeg {
    tgi_packing p;
    tgi_tiff_page page;
    tgi_tiff_lib f;
    TIFF *t;             /* NULL: not begun, or ended */
    uint64_t block;      /* that is asked for */
    uint64_t next;       /* strip that libtiff decodes next */
    char bad[200];       /* what is wrong with that one; "" */
    tg_status status;    /* with bad */
    uint32_t *places;    /* of the strips of the page: offsets, then counts of bytes */
    tgi_window win;      /* on the file */
    uint16_t sharing[2]; /* pixels across and down that share a colour */
    tgi_ycbcr colours;   /* of the page */
    uint8_t *packed;     /* the strip before `next` */
    size_t n_packed, cap;
} old_jpeg;

/* ---- Sizes ---- */

static uint64_t rows_of(const old_jpeg *o, uint64_t strip)
{
    if (o->page.tiled)
        return o->page.block_h;
    return tgi_min(o->page.block_h, o->page.height - strip * o->page.block_h);
}

/* Colours with a pixel each: nothing takes more, but for the edges. */
static size_t packed_bytes(const tgi_packing *p)
{
    const size_t rows = p->block_bytes / p->width / p->samples;
    return tgi_sat_mul(tgi_sat_mul((size_t)p->width + 3, rows + 3), p->samples);
}

static size_t places_bytes(const tgi_packing *p)
{
    return tgi_sat_mul((size_t)p->strips, 2 * sizeof(uint32_t));
}

/* What the handle of a page takes: measured (tests/memory/test_tiff_lib_memory.c). */
static size_t handle_bytes(const tgi_packing *p)
{
    return tgi_sat_add((size_t)640 << 10, tgi_sat_add(tgi_sat_mul(p->width, 40),
                                                      tgi_sat_mul((size_t)p->strips, 32)));
}

static size_t old_bytes(const tgi_packing *p)
{
    const size_t ours =
        tgi_sat_add(sizeof(old_jpeg) + WINDOW, tgi_sat_add(packed_bytes(p), places_bytes(p)));
    return tgi_sat_add(ours, handle_bytes(p));
}

/* ---- State ---- */

static void end(old_jpeg *o)
{
    if (o->t)
        TIFFClose(o->t);
    o->t = NULL;
}

static void old_close(void *state)
{
    old_jpeg *o = state;
    end(o);
    tgi_window_free(&o->win);
    tgi_free(o->places);
    tgi_free(o->packed);
    tgi_free(o);
}

static tg_status old_open(const tgi_packing *p, void **state, tgi_err *err)
{
    if (!TIFFIsCODECConfigured(COMPRESSION_OJPEG))
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "old JPEG: the libtiff of this system is without it");
    old_jpeg *o = tgi_calloc(TGI_TAG_IO, 1, sizeof *o);
    if (!o)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a decoder");
    o->p = *p;
    o->cap = packed_bytes(p);
    o->packed = tgi_malloc(TGI_TAG_IO, o->cap);
    o->places = tgi_malloc(TGI_TAG_IO, places_bytes(p));
    if (!o->packed || !o->places || tgi_window_init(&o->win, WINDOW, err) != TG_OK) {
        old_close(o);
        return tgi_fail(err, TG_E_NOMEM, "no memory for a decoder of %zu bytes", o->cap);
    }
    *state = o;
    return TG_OK;
}

static void old_begin(void *state)
{
    (void)state;
}

static tg_status old_place(void *state, const tgi_tiff_page *page, uint64_t block, tgi_err *err)
{
    old_jpeg *o = state;
    if (page->codec != TGI_TIFF_OLD_JPEG || page->block_w != o->p.width ||
        page->samples != o->p.samples || page->block_bytes != o->p.block_bytes ||
        page->n_blocks != o->p.strips || block >= page->n_blocks)
        return tgi_fail(err, TG_E_FORMAT, "the directory at offset %llu has changed",
                        (unsigned long long)page->pos);
    if (page->pos != o->page.pos) {
        end(o);
        o->page = *page;
        o->next = o->n_packed = 0;
        o->bad[0] = 0;
    }
    o->block = block;
    return TG_OK;
}

/* ---- One page ---- */

static tg_status values(old_jpeg *o, const tgi_tiff_array *a, uint64_t n, uint32_t *out,
                        tgi_err *err)
{
    const tgi_tiff_file file = {.f = *o->p.file, .big_endian = o->p.big_endian};
    for (uint64_t i = 0; i < n; i++) {
        uint64_t v;
        TGI_TRY(tgi_tiff_value(&file, &o->win, a, i, &v, err));
        if (v > file.f.size)
            return tgi_fail(err, TG_E_FORMAT,
                            "a part of old JPEG lies past the end of the file (%llu of %llu)",
                            (unsigned long long)v, (unsigned long long)file.f.size);
        out[i] = (uint32_t)v;
    }
    return TG_OK;
}

/* Looked at when the file was opened, and again now. */
static tg_status find_strips(old_jpeg *o, tgi_err *err)
{
    const size_t n = (size_t)o->page.n_blocks;
    const uint32_t *at = o->places, *count = o->places + n;
    TGI_TRY(values(o, &o->page.offsets, n, o->places, err));
    TGI_TRY(values(o, &o->page.counts, n, o->places + n, err));
    for (size_t i = 0; i < n; i++)
        if (!at[i] || !count[i] || count[i] > o->p.file->size - at[i])
            return tgi_fail(err, TG_E_FORMAT,
                            "%s %zu (%u bytes at %u) lies past the end of the file",
                            o->page.tiled ? "tile" : "strip", i, count[i], at[i]);
    return TG_OK;
}

static tg_status describe_jpeg(old_jpeg *o, tgi_err *err)
{
    for (int i = 0; i < TGI_OLD_JPEG_TAGS; i++) {
        const tgi_tiff_array *a = &o->page.old_jpeg[i];
        uint32_t v[MOST_TABLES];
        if (a->count > MOST_TABLES)
            return tgi_fail(err, TG_E_FORMAT, "tag %u has %llu values", tgi_old_jpeg_tags[i],
                            (unsigned long long)a->count);
        TGI_TRY(values(o, a, a->count, v, err));
        if (a->count && tgi_old_jpeg_tags[i] < TIFFTAG_JPEGQTABLES)
            tgi_tiff_lib_one(&o->f, tgi_old_jpeg_tags[i], v[0]);
        else if (a->count)
            tgi_tiff_lib_long(&o->f, tgi_old_jpeg_tags[i], v, (size_t)a->count);
    }
    return TG_OK;
}

static tg_status describe(old_jpeg *o, tgi_err *err)
{
    const tgi_tiff_page *g = &o->page;
    const uint32_t samples = g->samples;
    const size_t n = (size_t)g->n_blocks;
    tgi_tiff_lib *f = &o->f;
    tgi_tiff_lib_one(f, TIFFTAG_IMAGEWIDTH, (uint32_t)g->width);
    tgi_tiff_lib_one(f, TIFFTAG_IMAGELENGTH, (uint32_t)g->height);
    tgi_tiff_lib_short(f, TIFFTAG_BITSPERSAMPLE, (const uint16_t[]){8, 8, 8}, samples);
    tgi_tiff_lib_one(f, TIFFTAG_COMPRESSION, COMPRESSION_OJPEG);
    tgi_tiff_lib_one(f, TIFFTAG_PHOTOMETRIC,
                     samples == 3 ? PHOTOMETRIC_YCBCR : PHOTOMETRIC_MINISBLACK);
    if (!g->tiled)
        tgi_tiff_lib_behind(f, TIFFTAG_STRIPOFFSETS, o->places, n, 0);
    tgi_tiff_lib_one(f, TIFFTAG_SAMPLESPERPIXEL, samples);
    if (!g->tiled) {
        tgi_tiff_lib_one(f, TIFFTAG_ROWSPERSTRIP, (uint32_t)g->block_h);
        tgi_tiff_lib_behind(f, TIFFTAG_STRIPBYTECOUNTS, o->places + n, n,
                            n * sizeof *o->places);
    }
    tgi_tiff_lib_one(f, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    if (g->tiled) {
        tgi_tiff_lib_one(f, TIFFTAG_TILEWIDTH, (uint32_t)g->block_w);
        tgi_tiff_lib_one(f, TIFFTAG_TILELENGTH, (uint32_t)g->block_h);
        tgi_tiff_lib_behind(f, TIFFTAG_TILEOFFSETS, o->places, n, 0);
        tgi_tiff_lib_behind(f, TIFFTAG_TILEBYTECOUNTS, o->places + n, n, n * sizeof *o->places);
    }
    TGI_TRY(describe_jpeg(o, err));
    if (samples == 3)
        tgi_tiff_lib_short(f, TIFFTAG_YCBCRSUBSAMPLING, g->ycbcr.subsampling, 2);
    return TG_OK;
}

static tg_status damaged(const old_jpeg *o, tgi_err *err)
{
    return tgi_fail(err, o->f.disk == TG_E_IO ? TG_E_IO : TG_E_FORMAT, "old JPEG data: %s",
                    o->f.said[0] ? o->f.said : "damaged");
}

static tg_status begin_page(old_jpeg *o, tgi_err *err)
{
    end(o);
    o->next = o->n_packed = 0;
    o->bad[0] = 0;
    TGI_TRY(find_strips(o, err));
    tgi_tiff_lib_begin_file(&o->f, o->p.file, tgi_sat_mul(o->p.file->size, 3), o->places,
                            places_bytes(&o->p));
    TGI_TRY(describe(o, err));
    o->t = tgi_tiff_lib_open(&o->f, handle_bytes(&o->p));
    if (!o->t ||
        (o->page.tiled ? TIFFNumberOfTiles : TIFFNumberOfStrips)(o->t) != o->page.n_blocks)
        return damaged(o, err);
    if (o->p.samples == 1)
        return TG_OK;
    /* the JPEG's word, where its stream says something else than the tag */
    if (!TIFFGetField(o->t, TIFFTAG_YCBCRSUBSAMPLING, &o->sharing[0], &o->sharing[1]))
        return damaged(o, err);
    const uint16_t across = o->sharing[0], down = o->sharing[1];
    if ((across != 1 && across != 2 && across != 4) || (down != 1 && down != 2))
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "old JPEG with a colour for %u x %u pixels is not supported", across,
                        down);
    return tgi_ycbcr_init(&o->page.ycbcr, &o->colours, err);
}

static tg_status next_strip(old_jpeg *o, tgi_err *err)
{
    o->n_packed = 0; /* a strip that fails is written over the one before */
    const bool tiled = o->page.tiled;
    const tmsize_t size =
        tiled ? TIFFTileSize(o->t) : TIFFVStripSize(o->t, (uint32_t)rows_of(o, o->next));
    if (size <= 0 || (size_t)size > o->cap)
        return damaged(o, err);
    if ((tiled ? TIFFReadEncodedTile : TIFFReadEncodedStrip)(o->t, (uint32_t)o->next, o->packed,
                                                             -1) != size ||
        o->f.said[0])
        return damaged(o, err);
    o->n_packed = (size_t)size;
    o->next++;
    return TG_OK;
}

/* Go on to the strip that is asked for. */
static tg_status reach(old_jpeg *o, tgi_err *err)
{
    tg_status st = TG_OK;
    if (o->bad[0] && o->block >= o->next)
        return tgi_fail(err, o->status, "%s", o->bad);
    if (o->n_packed && o->next == o->block + 1)
        return TG_OK; /* it is there */
    if (!o->t || o->block < o->next)
        st = begin_page(o, err);
    while (st == TG_OK && o->next <= o->block)
        st = next_strip(o, err);
    if (st == TG_OK)
        return TG_OK;
    end(o);
    o->status = st;
    memcpy(o->bad, err->text, sizeof o->bad - 1);
    return st;
}

static tg_status old_exact(void *state, const uint8_t *src, size_t n, uint8_t *dst, size_t want,
                           tgi_err *err)
{
    old_jpeg *o = state;
    const size_t w = o->p.width, rows = want / w / o->p.samples;
    (void)src, (void)n;
    TGI_TRY(reach(o, err));
    const uint16_t across = o->sharing[0], down = o->sharing[1];
    const bool grey = o->p.samples == 1;
    const size_t whole = grey ? want : tgi_ycbcr_packed(w, rows, across, down);
    if (o->n_packed != whole)
        return tgi_fail(err, TG_E_FORMAT, "old JPEG data: %zu of %zu bytes", o->n_packed,
                        whole);
    if (grey)
        memcpy(dst, o->packed, want);
    else
        tgi_ycbcr_spread(&o->colours, o->packed, w, rows, across, down, dst);
    return TG_OK;
}

const tgi_codec tgi_codec_old_jpeg = {.name = "old JPEG",
                                      .fuzzed = TGI_FUZZED_BLIND,
                                      .open = old_open,
                                      .close = old_close,
                                      .bytes = old_bytes,
                                      .begin = old_begin,
                                      .place = old_place,
                                      .exact = old_exact,
                                      .turns = true,
                                      .native = true};

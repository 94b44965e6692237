/* unpack_planes.c - YCbCr in planes of their own, each pixel with a colour, to RGB.
 *
 * A block of RGB needs one of each plane, so this decoder reads the file itself: it is told the
 * page and the block, looks up the three places, and ignores the bytes that it is given. See
 * ycbcr.h. */
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/tiff_codec.h"
#include "io/ycbcr.h"

#define WINDOW 4096
#define PLANES 3u

typedef struct planes {
    tgi_packing p;
    tgi_tiff_page page;
    uint64_t block;
    tgi_ycbcr tables;
    tgi_unpack *inner;
    tgi_window win;  /* on the file */
    uint8_t *stored; /* a block of a plane, as it lies in the file, */
    size_t cap;
    uint8_t *plane; /* and decoded; three of them */
    size_t pixels;  /* of a whole block */
    size_t more_rows;
} planes;

static tgi_packing inner_of(const tgi_packing *p)
{
    tgi_packing in = *p;
    in.compression = p->stored_as;
    in.samples = 1;
    in.block_bytes = p->block_bytes / PLANES;
    return in;
}

static size_t stored_bytes(const tgi_packing *p)
{
    return tgi_unpack_longest(p->stored_as, p->block_bytes / PLANES);
}

static size_t planes_bytes(const tgi_packing *p)
{
    const tgi_packing in = inner_of(p);
    const size_t ours = tgi_sat_add(sizeof(planes) + WINDOW, stored_bytes(p));
    return tgi_sat_add(ours, tgi_sat_add(p->block_bytes, tgi_unpack_bytes(&in)));
}

static void planes_close(void *state)
{
    planes *c = state;
    tgi_unpack_close(&c->inner);
    tgi_window_free(&c->win);
    tgi_free(c->stored);
    tgi_free(c->plane);
    tgi_free(c);
}

static tg_status planes_open(const tgi_packing *p, void **state, tgi_err *err)
{
    const tgi_packing in = inner_of(p);
    planes *c = tgi_calloc(TGI_TAG_IO, 1, sizeof *c);
    if (!c)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a decoder");
    c->p = *p;
    c->cap = stored_bytes(p);
    c->pixels = p->block_bytes / PLANES;
    tg_status st = tgi_unpack_open(&in, &c->inner, err);
    if (st == TG_OK)
        st = tgi_window_init(&c->win, WINDOW, err);
    if (st == TG_OK) {
        c->stored = tgi_malloc(TGI_TAG_IO, c->cap);
        c->plane = tgi_malloc(TGI_TAG_IO, c->pixels * PLANES);
        if (!c->stored || !c->plane)
            st = tgi_fail(err, TG_E_NOMEM, "no memory for a decoder of %zu bytes", c->cap);
    }
    if (st == TG_OK)
        *state = c;
    else
        planes_close(c);
    return st;
}

static void planes_begin(void *state)
{
    (void)state;
}

static void planes_spare(void *state, size_t bytes)
{
    planes *c = state;
    c->more_rows = bytes / PLANES / c->p.width;
}

static tg_status planes_place(void *state, const tgi_tiff_page *page, uint64_t block,
                              tgi_err *err)
{
    planes *c = state;
    if (page->codec != TGI_TIFF_PLANES_AS_RGB || page->block_w != c->p.width ||
        page->block_bytes != c->p.block_bytes || page->n_blocks != c->p.strips ||
        page->compression != c->p.stored_as || block >= page->n_blocks)
        return tgi_fail(err, TG_E_FORMAT, "the directory at offset %llu has changed",
                        (unsigned long long)page->pos);
    c->page = *page;
    c->block = block;
    return tgi_ycbcr_init(&page->ycbcr, &c->tables, err);
}

/* Where a block of a plane lies, shown to lie in the file. */
static tg_status find(planes *c, uint64_t block, uint64_t *at, uint64_t *n, tgi_err *err)
{
    const tgi_tiff_file file = {.f = *c->p.file, .big_endian = c->p.big_endian};
    uint64_t count = 0;
    TGI_TRY(tgi_tiff_value(&file, &c->win, &c->page.offsets, block, at, err));
    TGI_TRY(tgi_tiff_value(&file, &c->win, &c->page.counts, block, &count, err));
    if (!*at || !count || *at > file.f.size || count > file.f.size - *at)
        return tgi_fail(err, TG_E_FORMAT,
                        "block %llu of all planes (%llu bytes at %llu) is no part of the file "
                        "(%llu)",
                        (unsigned long long)block, (unsigned long long)count,
                        (unsigned long long)*at, (unsigned long long)file.f.size);
    *n = count;
    return TG_OK;
}

static tg_status decode_plane(planes *c, unsigned k, size_t pixels, tgi_err *err)
{
    uint64_t at = 0, count = 0;
    TGI_TRY(find(c, k * c->page.n_blocks + c->block, &at, &count, err));
    const size_t n = (size_t)tgi_min(count, c->cap);
    TGI_TRY(tgi_rfile_read(c->p.file, at, c->stored, n, err));
    tgi_unpack_spare(c->inner, tgi_sat_mul(c->more_rows, c->p.width));
    const tg_status st = tgi_unpack_run(c->inner, c->stored, n, c->plane + k * c->pixels,
                                        c->pixels, pixels, err);
    return tgi_unpack_not_all(st, count, n, err);
}

static tg_status planes_exact(void *state, const uint8_t *src, size_t n, uint8_t *dst,
                              size_t want, tgi_err *err)
{
    planes *c = state;
    const size_t pixels = want / PLANES;
    (void)src, (void)n;
    for (unsigned k = 0; k < PLANES; k++) {
        const tg_status st = decode_plane(c, k, pixels, err);
        if (st != TG_OK) {
            tgi_err_prefix(err, "YCbCr, plane %u of %u", k + 1, PLANES);
            return st;
        }
    }
    tgi_ycbcr_merge(&c->tables, c->plane, c->pixels, pixels, dst);
    return TG_OK;
}

const tgi_codec tgi_codec_planes_as_rgb = {.name = "planar YCbCr",
                                           .fuzzed = TGI_FUZZED,
                                           .open = planes_open,
                                           .close = planes_close,
                                           .bytes = planes_bytes,
                                           .begin = planes_begin,
                                           .spare = planes_spare,
                                           .place = planes_place,
                                           .exact = planes_exact,
                                           .turns = true};

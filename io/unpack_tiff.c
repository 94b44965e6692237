/* unpack_tiff.c - codecs that libtiff has and we do not: LERC, PixarLog, LogLuv, NeXT, JBIG.
 * (Old JPEG: unpack_old_jpeg.c.)
 *
 * Each block is a made-up file of its own (tiff_lib.h), decoded whole and forgotten: what one
 * block did to a decoder, the next does not see. The size of the block is the one of our index,
 * and libtiff has to agree before it decodes.
 *
 * libtiff allocates while it decodes and has no hooks for it. What it takes at most is a part
 * of the plan: a number of bytes, and factors for samples and bytes of the block, that were
 * measured for each codec (tests/memory/test_tiff_lib.c).
 *
 * NeXT blocks that end early are white to libtiff, JBIG images of any size are decoded before
 * their size is looked at: both are seen here. */
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/tiff_codec.h"
#include "io/tiff_ifd.h"
#include "io/tiff_lib.h"

#include <string.h>

#define JBIG_HEAD 20
#define MAX_LAYERS 8 /* of JBIG: each halves the image */

typedef struct block {
    tgi_packing p;
    uint8_t *copy; /* NULL: libtiff reads the block where it lies */
    size_t cap;
} block;

/* ---- Sizes ---- */

static size_t samples_of(const tgi_packing *p)
{
    return p->block_bytes / (p->bits <= 8 ? 1 : p->bits / 8);
}

static size_t row_bytes(const tgi_packing *p)
{
    return ((size_t)p->width * p->samples * p->bits + 7) / 8;
}

/* A copy of the block: NeXT needs one byte more, JBIG turns bits around where they lie. Runs of
 * one pixel are the largest NeXT block; a longer JBIG block is no image. */
static size_t copy_bytes(const tgi_packing *p)
{
    if (p->compression != TGI_TIFF_NEXT && p->compression != TGI_TIFF_JBIG)
        return 0;
    return tgi_sat_add(p->block_bytes, tgi_sat_add(p->block_bytes / 2, 4096));
}

/* What libtiff allocates in decoding one block: KiB, and hundredths of a byte for a byte of the
 * block and for a sample of it. LERC that is packed once more has a second buffer. */
static size_t theirs(const tgi_packing *p)
{
    static const struct {
        uint32_t compression;
        uint16_t kib, by_byte, by_sample;
    } need[] = {
        {TGI_TIFF_LERC, 160, 160, 100}, {TGI_TIFF_PIXARLOG, 160, 0, 210},
        {TGI_TIFF_SGILOG, 16, 0, 210},  {TGI_TIFF_SGILOG24, 16, 0, 210},
        {TGI_TIFF_JBIG, 96, 0, 30},     {TGI_TIFF_NEXT, 16, 0, 0},
    };
    size_t i = 0;
    while (need[i].compression != p->compression)
        i++;
    const size_t twice = p->compression == TGI_TIFF_LERC && p->lerc[1] ? 140 : 0;
    const size_t bytes = tgi_sat_mul(p->block_bytes / 100 + 1, need[i].by_byte + twice);
    const size_t samples = tgi_sat_mul(samples_of(p) / 100 + 1, need[i].by_sample);
    return tgi_sat_add((size_t)need[i].kib << 10, tgi_sat_add(bytes, samples));
}

static size_t block_bytes(const tgi_packing *p)
{
    return tgi_sat_add(sizeof(block), tgi_sat_add(copy_bytes(p), theirs(p)));
}

/* ---- State ---- */

static tg_status block_open(const tgi_packing *p, void **state, tgi_err *err)
{
    if (!TIFFIsCODECConfigured((uint16_t)p->compression))
        return tgi_fail(err, TG_E_UNSUPPORTED, "%s: the libtiff of this system is without it",
                        tgi_tiff_compression_name(p->compression));
    const size_t cap = copy_bytes(p);
    block *b = tgi_calloc(TGI_TAG_IO, 1, sizeof *b);
    uint8_t *copy = b && cap ? tgi_malloc(TGI_TAG_IO, cap) : NULL;
    if (!b || (cap && !copy)) {
        tgi_free(b);
        return tgi_fail(err, TG_E_NOMEM, "no memory for a decoder of %zu bytes", cap);
    }
    b->p = *p;
    b->copy = copy;
    b->cap = cap;
    *state = b;
    return TG_OK;
}

static void block_close(void *state)
{
    block *b = state;
    tgi_free(b->copy);
    tgi_free(b);
}

static void block_begin(void *state)
{
    (void)state;
}

/* ---- One block ---- */

static void describe(tgi_tiff_lib *f, const tgi_packing *p, uint32_t rows)
{
    const bool colours = p->photometric == TGI_TIFF_LOG_L || p->photometric == TGI_TIFF_LOG_LUV;
    uint16_t extra[TGI_LIB_SAMPLES] = {0};
    tgi_tiff_lib_one(f, TIFFTAG_IMAGEWIDTH, p->width);
    tgi_tiff_lib_one(f, TIFFTAG_IMAGELENGTH, rows);
    tgi_tiff_lib_one(f, TIFFTAG_BITSPERSAMPLE, p->bits);
    tgi_tiff_lib_one(f, TIFFTAG_COMPRESSION, p->compression);
    tgi_tiff_lib_one(f, TIFFTAG_PHOTOMETRIC, colours ? p->photometric : PHOTOMETRIC_MINISBLACK);
    tgi_tiff_lib_one(f, TIFFTAG_FILLORDER, p->fill_order);
    tgi_tiff_lib_place(f);
    tgi_tiff_lib_one(f, TIFFTAG_SAMPLESPERPIXEL, p->samples);
    tgi_tiff_lib_one(f, TIFFTAG_ROWSPERSTRIP, rows);
    tgi_tiff_lib_one(f, TIFFTAG_STRIPBYTECOUNTS, (uint32_t)f->n_block);
    tgi_tiff_lib_one(f, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    if (p->samples > 1 && !colours) {
        extra[p->samples - 2] = (uint16_t)p->extra;
        tgi_tiff_lib_short(f, TIFFTAG_EXTRASAMPLES, extra, p->samples - 1);
    }
    tgi_tiff_lib_one(f, TIFFTAG_SAMPLEFORMAT, p->format);
    if (p->compression == TGI_TIFF_LERC)
        tgi_tiff_lib_long(f, TIFFTAG_LERC_PARAMETERS, p->lerc, 2);
}

static tg_status damaged(const tgi_packing *p, const tgi_tiff_lib *f, tgi_err *err)
{
    return tgi_fail(err, TG_E_FORMAT, "%s data: %s", tgi_tiff_compression_name(p->compression),
                    f->said[0] ? f->said : "damaged");
}

static tg_status decode(const tgi_packing *p, const uint8_t *src, size_t n, uint8_t *dst,
                        size_t want, tgi_err *err)
{
    const size_t row = row_bytes(p);
    tgi_tiff_lib f;
    tgi_tiff_lib_begin(&f, src, n, p->big_endian);
    describe(&f, p, (uint32_t)(want / row));
    TIFF *t = tgi_tiff_lib_open(&f, theirs(p));
    bool done = t && TIFFStripSize(t) == (tmsize_t)want && TIFFNumberOfStrips(t) == 1;
    if (done)
        done = TIFFReadFromUserBuffer(t, 0, (void *)(uintptr_t)src, (tmsize_t)n, dst,
                                      (tmsize_t)want) == 1;
    if (t)
        TIFFClose(t);
    /* "Only decoded so many bytes" */
    if (!done || (p->compression == TGI_TIFF_JBIG && f.warned))
        return damaged(p, &f, err);
    return TG_OK;
}

/* What libtiff takes for the first opcode of another row, had the block one: it wants more
 * bytes behind it. A block without one runs into it when rows are missing, and only then. */
static tg_status next_block(block *b, size_t n, uint8_t *dst, size_t want, tgi_err *err)
{
    TGI_TRY(decode(&b->p, b->copy, n, dst, want, err));
    b->copy[n] = 0x40;
    return decode(&b->p, b->copy, n + 1, dst, want, err);
}

/* The image that the first bytes of a JBIG block announce is the one of our index. */
static tg_status check_jbig(const tgi_packing *p, const uint8_t *head, size_t n, size_t want,
                            tgi_err *err)
{
    uint8_t h[JBIG_HEAD];
    if (n < sizeof h)
        return tgi_fail(err, TG_E_FORMAT, "JBIG data: no header");
    memcpy(h, head, sizeof h);
    if (p->fill_order == 1) /* as libtiff does and undoes it */
        TIFFReverseBits(h, sizeof h);
    const uint32_t w = (uint32_t)h[4] << 24 | (uint32_t)h[5] << 16 | (uint32_t)h[6] << 8 | h[7],
                   rows = (uint32_t)h[8] << 24 | (uint32_t)h[9] << 16 | (uint32_t)h[10] << 8 |
                          h[11];
    if (h[0] > h[1] || h[1] - h[0] > MAX_LAYERS || h[1] > MAX_LAYERS || h[2] != 1)
        return tgi_fail(err, TG_E_FORMAT, "JBIG data: %d planes in layers %d to %d", h[2], h[0],
                        h[1]);
    if (w != p->width || rows != want / row_bytes(p))
        return tgi_fail(err, TG_E_FORMAT, "JBIG data: %u x %u pixels in a block of %u x %zu", w,
                        rows, p->width, want / row_bytes(p));
    return TG_OK;
}

static tg_status block_exact(void *state, const uint8_t *src, size_t n, uint8_t *dst,
                             size_t want, tgi_err *err)
{
    block *b = state;
    memset(dst, 0, want);
    if (!b->copy)
        return decode(&b->p, src, n, dst, want, err);
    n = n < b->cap - 1 ? n : b->cap - 1;
    memcpy(b->copy, src, n);
    if (b->p.compression == TGI_TIFF_NEXT)
        return next_block(b, n, dst, want, err);
    TGI_TRY(check_jbig(&b->p, b->copy, n, want, err));
    return decode(&b->p, b->copy, n, dst, want, err);
}

#define BLOCKS(id, codec_name, by_itself)                                                      \
    const tgi_codec tgi_codec_##id = {.name = codec_name,                                      \
                                      .fuzzed = TGI_FUZZED_BLIND,                              \
                                      .open = block_open,                                      \
                                      .close = block_close,                                    \
                                      .bytes = block_bytes,                                    \
                                      .begin = block_begin,                                    \
                                      .exact = block_exact,                                    \
                                      .turns = by_itself,                                      \
                                      .native = true};
BLOCKS(jbig, "JBIG", true)
BLOCKS(lerc, "LERC", false)
BLOCKS(logluv, "LogLuv", false)
BLOCKS(next, "NeXT", false)
BLOCKS(pixarlog, "PixarLog", false)

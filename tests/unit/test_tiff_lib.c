/* Codecs that libtiff decodes for us: block by block through bytes in memory they give what
 * libtiff gives for the whole file, and what is damaged ends in a status with the block's
 * number. */
#include "io/image.h"
#include "io/tiff_codec.h"
#include "io/tiff_ifd.h"
#include "tests/unit/tiff_lib_files.h"

static char path[256];

static void be_quiet(const char *module, const char *fmt, va_list ap)
{
    (void)module, (void)fmt, (void)ap;
}

static tgi_source *opened(size_t budget, tgi_err *err)
{
    const tgi_open_opts o = {.threads = 1, .decode_budget = budget};
    tgi_source *s = NULL;
    CHECK_OK(tgi_source_open(path, &o, &s, err), *err);
    return s;
}

/* ---- Equal to libtiff ---- */

/* One sample of a block as libtiff decoded it, as the bytes that we deliver. */
static size_t sample_of(const lib_form *f, const uint8_t *block, size_t row, uint32_t x,
                        size_t k, uint8_t *out)
{
    const size_t i = x * lib_inner(f) + (f->planar == 2 ? 0 : k), bytes = f->bits / 8u;
    if (f->bits < 8) {
        const unsigned at = (unsigned)(i * f->bits % 8);
        out[0] = (uint8_t)(block[row + i * f->bits / 8] >> (8 - f->bits - at) &
                           ((1 << f->bits) - 1));
        return 1;
    }
    memcpy(out, block + row + i * bytes, bytes);
    return bytes;
}

/* The whole image, samples in planes, by libtiff. */
static uint8_t *by_libtiff(const lib_form *f, const lib_shape *a, size_t sample_bytes)
{
    uint8_t *all = calloc((size_t)a->w * a->h * f->samples, sample_bytes), one[8];
    TIFF *t = TIFFOpen(path, "r");
    const tmsize_t cap = a->bw ? TIFFTileSize(t) : TIFFStripSize(t);
    uint8_t *block = malloc((size_t)cap);
    const uint32_t bw = a->bw ? a->bw : a->w;
    const size_t row = lib_row(f, bw);
    uint32_t n = 0;
    for (int plane = 0; plane < (f->planar == 2 ? f->samples : 1); plane++)
        for (uint32_t y0 = 0; y0 < a->h; y0 += a->bh)
            for (uint32_t x0 = 0; x0 < a->w; x0 += bw, n++) {
                memset(block, 0, (size_t)cap);
                CHECK((a->bw ? TIFFReadEncodedTile(t, n, block, cap)
                             : TIFFReadEncodedStrip(t, n, block, -1)) > 0);
                for (uint32_t y = y0; y < tgi_min(a->h, y0 + a->bh); y++)
                    for (uint32_t x = x0; x < tgi_min(a->w, x0 + bw); x++)
                        for (size_t k = 0; k < lib_inner(f); k++) {
                            const size_t s = k + (size_t)plane;
                            const size_t b =
                                sample_of(f, block, (y - y0) * row, x - x0, k, one);
                            CHECK_EQ(b, sample_bytes);
                            memcpy(all + ((s * a->h + y) * a->w + x) * sample_bytes, one, b);
                        }
            }
    TIFFClose(t);
    free(block);
    return all;
}

static void check_equal(const lib_form *f, const lib_shape *a)
{
    tgi_err err = {0};
    tgi_source *s = opened(0, &err);
    if (!s)
        return;
    const tgi_image_info *i = s->ops->info(s);
    const size_t size = tgi_dtype_size(i->dtype), plane = (size_t)a->w * a->h * size;
    uint8_t *want = by_libtiff(f, a, size), *got = calloc(f->samples, plane);
    for (int64_t y = 0; y < a->h; y += 7)
        CHECK_OK(s->ops->read(s, 0, 0, 0, f->samples, y, tgi_min(a->h, y + 7), 0, a->w,
                              got + (size_t)y * a->w * size, a->w * size, plane, &err),
                 err);
    const int same = memcmp(want, got, plane * f->samples) == 0;
    CHECK(same);
    if (!same)
        fprintf(stderr, "  %s, %u x %u in %u x %u, %s\n", f->name, a->w, a->h, a->bw, a->bh,
                a->big_endian ? "big-endian" : "little-endian");
    free(want);
    free(got);
    tgi_source_close(&s);
}

static void test_every_block_is_what_libtiff_reads(void)
{
    uint64_t seed = 45;
    printf("seed %llu\n", (unsigned long long)seed);
    for (int k = 0; k < LIB_FORMS; k++)
        for (int i = 0; i < 12; i++) {
            const lib_form *f = &lib_forms[k];
            /* libtiff has no tiles of JBIG, and measures those of PixarLog by the image */
            const int strips = f->compression == COMPRESSION_JBIG ||
                               f->compression == COMPRESSION_PIXARLOG || i % 2;
            lib_shape a = {.w = (uint32_t)tg_rand_in(&seed, 1, 90),
                           .h = (uint32_t)tg_rand_in(&seed, 1, 70),
                           .big_endian = i / 2 % 2};
            a.bw = strips ? 0 : 32;
            a.bh = strips ? (uint32_t)tg_rand_in(&seed, 1, a.h) : 16;
            if (f->compression == COMPRESSION_JBIG) /* libtiff takes one strip alone */
                a.bh = a.h;
            if (f->compression == COMPRESSION_NEXT && !strips)
                a.w = 32; /* libtiff measures rows of tiles by the image */
            lib_write(path, f, &a, &seed);
            check_equal(f, &a);
        }
}

/* ---- Damage ---- */

static tg_status decode(tgi_unpack *u, const uint8_t *src, size_t n, uint8_t *dst, size_t want)
{
    tgi_err err = {0};
    uint8_t *copy = malloc(n ? n : 1);
    memcpy(copy, src, n);
    const tg_status st = tgi_unpack_run(u, copy, n, dst, want, want, &err);
    CHECK(memcmp(copy, src, n) == 0); /* the reader may look at the block again */
    CHECK(st == TG_OK || (st == TG_E_FORMAT && err.text[0]));
    free(copy);
    return st;
}

static void test_a_block_that_is_cut_off_or_changed_is_refused_or_decodes_alike(void)
{
    uint64_t seed = 46;
    printf("seed %llu\n", (unsigned long long)seed);
    for (int k = 0; k < LIB_FORMS; k++) {
        const lib_form *f = &lib_forms[k];
        const lib_shape a = {.w = 40, .h = 24, .bh = 24};
        tgi_err err = {0};
        tgi_unpack *u = NULL;
        uint8_t *block;
        size_t n, cut = 0;
        lib_write(path, f, &a, &seed);
        const tgi_packing p = lib_first_block(path, f, &a, &block, &n);
        const size_t want = lib_row(f, a.w) * a.h;
        uint8_t *all = malloc(want), *part = malloc(want), *again = malloc(want);
        CHECK_OK(tgi_unpack_open(&p, &u, &err), err);
        CHECK_EQ(decode(u, block, n, all, want), TG_OK);
        for (size_t m = 0; m < n; m++) {
            const tg_status st = decode(u, block, m, part, want);
            cut += st == TG_OK;
            if (st == TG_OK)
                CHECK(memcmp(part, all, want) == 0);
        }
        CHECK(cut <= 5); /* an end mark behind the last pixel, and a checksum (PixarLog) */
        for (int i = 0; i < 200; i++) {
            const size_t at = (size_t)tg_rand_in(&seed, 0, (int64_t)n - 1);
            const uint8_t was = block[at];
            block[at] = (uint8_t)tg_rand(&seed);
            const tg_status st = decode(u, block, n, part, want);
            CHECK_EQ(decode(u, block, n, again, want), st);
            if (st == TG_OK)
                CHECK(memcmp(part, again, want) == 0);
            block[at] = was;
            CHECK_EQ(decode(u, block, n, again, want), TG_OK);
            CHECK(memcmp(again, all, want) == 0);
        }
        tgi_unpack_close(&u);
        free(block);
        free(all);
        free(part);
        free(again);
    }
}

static void test_a_damaged_block_is_named(void)
{
    uint64_t seed = 47;
    for (int k = 0; k < LIB_FORMS; k++) {
        const lib_form *f = &lib_forms[k];
        const int one = f->compression == COMPRESSION_JBIG;
        const lib_shape a = {.w = 40, .h = 24, .bh = one ? 24 : 8};
        char name[40];
        tgi_err err = {0};
        lib_write(path, f, &a, &seed);
        TIFF *t = TIFFOpen(path, "r");
        uint64_t *at, *count;
        TIFFGetField(t, TIFFTAG_STRIPOFFSETS, &at);
        TIFFGetField(t, TIFFTAG_STRIPBYTECOUNTS, &count);
        const uint32_t block = one ? 0 : 1;
        FILE *file = fopen(path, "r+b");
        fseek(file, (long)at[block], SEEK_SET);
        for (uint64_t i = 0; i < count[block];
             i++) /* in no codec the begin of as many pixels */
            fputc(f->compression == COMPRESSION_NEXT ? 0x40 : 0, file);
        fclose(file);
        TIFFClose(t);
        tgi_source *s = opened(0, &err);
        if (!s)
            continue;
        uint8_t got[40 * 24 * 4 * 8];
        CHECK_EQ(s->ops->read(s, 0, 0, 0, 1, 0, a.h, 0, a.w, got, 40 * 8, sizeof got / 4, &err),
                 f->compression == COMPRESSION_SGILOG24 ? TG_OK : TG_E_FORMAT);
        snprintf(name, sizeof name, "plane 0, strip %u", block);
        if (f->compression != COMPRESSION_SGILOG24) /* 24 bits each: any are pixels */
            CHECK(strstr(err.text, name) != NULL);
        tgi_source_close(&s);
    }
}

static void test_they_are_refused_where_only_fuzzed_readers_are_allowed(void)
{
    tg_env was;
    tg_env_lend(&was, "TEGULA_BLOCK_UNTRUSTED", "1");
    for (int k = 0; k < LIB_FORMS; k++) {
        const lib_form *f = &lib_forms[k];
        const tgi_packing p = {.compression = f->compression,
                               .fill_order = 1,
                               .width = 8,
                               .samples = 1,
                               .bits = f->bits,
                               .format = f->format,
                               .block_bytes = 64};
        tgi_unpack *u = NULL;
        tgi_err err = {0};
        CHECK_EQ(tgi_unpack_open(&p, &u, &err), TG_E_UNSUPPORTED);
        CHECK(strstr(err.text, "is libtiff's") != NULL);
    }
    tg_env_back(&was);
}

int main(void)
{
    snprintf(path, sizeof path, "test_tiff_lib.%d.tif", (int)getpid());
    TIFFSetWarningHandler(be_quiet);
    TIFFSetErrorHandler(be_quiet);
    RUN(test_every_block_is_what_libtiff_reads);
    RUN(test_a_block_that_is_cut_off_or_changed_is_refused_or_decodes_alike);
    RUN(test_a_damaged_block_is_named);
    RUN(test_they_are_refused_where_only_fuzzed_readers_are_allowed);
    unlink(path);
    return TEST_END();
}

/* Fax compression: what libtiff writes in each of its forms comes back bit for bit, whole and
 * streamed; what is damaged ends in a status. */
#include "engine/base/arith.h"
#include "io/image.h"
#include "io/tiff_codec.h"
#include "tests/tg_test.h"

#include <tiffio.h>

static char path[256];

typedef struct form {
    uint16_t compression;
    uint32_t options; /* T4Options */
} form;

static const form forms[] = {
    {COMPRESSION_CCITTRLE, 0},
    {COMPRESSION_CCITTRLEW, 0},
    {COMPRESSION_CCITTFAX3, 0},
    {COMPRESSION_CCITTFAX3, GROUP3OPT_2DENCODING},
    {COMPRESSION_CCITTFAX4, 0},
    {COMPRESSION_CCITTFAX3, GROUP3OPT_FILLBITS},
    {COMPRESSION_CCITTFAX3, GROUP3OPT_2DENCODING | GROUP3OPT_FILLBITS}};

/* Rows of packed bits, black 1: of noise, of runs of any length, or of one colour. */
static uint8_t *drawn(uint32_t w, uint32_t h, int kind, uint64_t *seed)
{
    const size_t row = (w + 7) / 8;
    uint8_t *p = calloc(row, h);
    for (uint32_t y = 0; y < h; y++) {
        uint32_t left = 0;
        int black = kind == 3;
        for (uint32_t x = 0; x < w; x++) {
            if (kind == 0) {
                black = tg_rand(seed) & 1;
            } else if (kind == 1 && left-- == 0) {
                black ^= 1;
                left = (uint32_t)tg_rand_in(seed, 0, tg_rand(seed) & 1 ? 9 : 2 * (int64_t)w);
            }
            if (black)
                p[y * row + x / 8] |= (uint8_t)(0x80 >> x % 8);
        }
        if (kind == 1 && y && tg_rand(seed) % 4) { /* most rows are like the one above */
            memcpy(p + y * row, p + (y - 1) * row, row);
            const uint32_t x = (uint32_t)tg_rand_in(seed, 0, w - 1);
            p[y * row + x / 8] ^= (uint8_t)(0x80 >> x % 8);
        }
    }
    return p;
}

static void write_fax(const form *f, uint32_t w, uint32_t h, uint32_t rows, int fill, int white,
                      const uint8_t *bits)
{
    const size_t row = (w + 7) / 8;
    TIFF *t = TIFFOpen(path, "w");
    TIFFSetField(t, TIFFTAG_IMAGEWIDTH, w);
    TIFFSetField(t, TIFFTAG_IMAGELENGTH, h);
    TIFFSetField(t, TIFFTAG_BITSPERSAMPLE, 1);
    TIFFSetField(t, TIFFTAG_SAMPLESPERPIXEL, 1);
    TIFFSetField(t, TIFFTAG_PHOTOMETRIC,
                 white ? PHOTOMETRIC_MINISWHITE : PHOTOMETRIC_MINISBLACK);
    TIFFSetField(t, TIFFTAG_COMPRESSION, f->compression);
    TIFFSetField(t, TIFFTAG_ROWSPERSTRIP, rows);
    TIFFSetField(t, TIFFTAG_FILLORDER, fill);
    if (f->compression == COMPRESSION_CCITTFAX3)
        TIFFSetField(t, TIFFTAG_GROUP3OPTIONS, f->options);
    for (uint32_t y = 0, n = 0; y < h; y += rows, n++) {
        const tmsize_t bytes = (tmsize_t)(tgi_min(rows, h - y) * row);
        uint8_t *copy =
            malloc((size_t)bytes); /* libtiff may turn the bits of what it is given */
        memcpy(copy, bits + y * row, (size_t)bytes);
        CHECK(TIFFWriteEncodedStrip(t, n, copy, bytes) == bytes);
        free(copy);
    }
    TIFFClose(t);
}

/* Pixels that differ, in bands of `band` rows; -1: not read, the error is printed. */
static int64_t differing(uint32_t w, uint32_t h, int64_t band, size_t budget, int *streamed,
                         const uint8_t *bits)
{
    const tgi_open_opts o = {.threads = 1, .decode_budget = budget};
    const size_t row = (w + 7) / 8;
    tgi_err err = {0};
    tgi_source *s = NULL;
    int64_t bad = 0;
    if (tgi_source_open(path, &o, &s, &err) != TG_OK) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    *streamed += s->ops->stream_rows(s) > 0;
    uint8_t *got = malloc((size_t)w * (size_t)band);
    for (int64_t y = 0; y < h && bad >= 0; y += band) {
        const int64_t ye = tgi_min(h, y + band);
        if (s->ops->read(s, 0, 0, 0, 1, y, ye, 0, w, got, w, w, &err) != TG_OK) {
            fprintf(stderr, "%s\n", err.text);
            bad = -1;
        }
        for (int64_t k = 0; bad >= 0 && k < (ye - y) * w; k++) {
            const size_t at = (size_t)(y + k / w) * row, x = (size_t)(k % w);
            bad += got[k] != (bits[at + x / 8] >> (7 - x % 8) & 1);
        }
    }
    free(got);
    tgi_source_close(&s);
    return bad;
}

static void test_every_form_of_fax_comes_back_bit_for_bit(void)
{
    static const uint32_t widths[] = {1, 7, 8, 9, 63, 64, 65, 1728, 2561, 2623, 2624, 5300};
    uint64_t seed = 90;
    int n = 0, streamed = 0;
    printf("seed %llu\n", (unsigned long long)seed);
    for (size_t k = 0; k < sizeof forms / sizeof forms[0]; k++)
        for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
            for (int kind = 0; kind < 4; kind++, n++) {
                const uint32_t w = widths[i], h = (uint32_t)tg_rand_in(&seed, 1, 60);
                const uint32_t rows = kind == 1 ? h : (uint32_t)tg_rand_in(&seed, 1, h);
                const int fill = 1 + (int)(tg_rand(&seed) & 1),
                          white = (int)(tg_rand(&seed) & 1);
                uint8_t *bits = drawn(w, h, kind, &seed);
                write_fax(&forms[k], w, h, rows, fill, white, bits);
                const int64_t bad = differing(w, h, 7, 0, &streamed, bits);
                CHECK_EQ(bad, 0);
                if (bad)
                    fprintf(stderr, "  compression %u, options %u, %ux%u, kind %d, fill %d\n",
                            forms[k].compression, forms[k].options, w, h, kind, fill);
                free(bits);
            }
    printf("%d files\n", n);
}

static void test_a_page_in_one_strip_is_streamed(void)
{
    const uint32_t w = 5000, h = 3000;
    const form g4 = {COMPRESSION_CCITTFAX4, 0};
    uint64_t seed = 91;
    int streamed = 0;
    uint8_t *bits = drawn(w, h, 1, &seed);
    write_fax(&g4, w, h, h, 2, 1, bits);
    CHECK_EQ(differing(w, h, 64, 4u << 20, &streamed, bits), 0); /* 15 MB of pixels */
    CHECK_EQ(streamed, 1);
    free(bits);
}

/* Bits flipped, bytes cut: pixels or a status, and nothing else. */
static void test_damaged_fax_ends_in_a_status(void)
{
    const uint32_t w = 200, h = 40;
    uint64_t seed = 92;
    int damaged = 0;
    for (size_t k = 0; k < sizeof forms / sizeof forms[0]; k++) {
        uint8_t *bits = drawn(w, h, 1, &seed), *packed = malloc(1 << 16), pixels[25 * 40];
        write_fax(&forms[k], w, h, h, 1, 1, bits);
        TIFF *t = TIFFOpen(path, "r");
        const size_t n = (size_t)TIFFReadRawStrip(t, 0, packed, 1 << 16);
        TIFFClose(t);
        const tgi_packing p = {.compression = forms[k].compression,
                               .fill_order = 1,
                               .fax_options = forms[k].options,
                               .width = w,
                               .samples = 1,
                               .block_bytes = sizeof pixels};
        tgi_err err = {0};
        tgi_unpack *u = NULL;
        CHECK_OK(tgi_unpack_open(&p, &u, &err), err);
        for (int i = 0; i < 300; i++) {
            uint8_t *bent = malloc(n);
            memcpy(bent, packed, n);
            const size_t keep = i % 3 ? n : (size_t)tg_rand_in(&seed, 0, (int64_t)n - 1);
            if (keep)
                bent[(size_t)tg_rand_in(&seed, 0, (int64_t)keep - 1)] ^=
                    (uint8_t)(1u << (tg_rand(&seed) & 7));
            err = (tgi_err){0};
            const tg_status st =
                tgi_unpack_run(u, bent, keep, pixels, sizeof pixels, sizeof pixels, &err);
            CHECK(st == TG_OK || (st == TG_E_FORMAT && strstr(err.text, "CCITT data")));
            damaged += st != TG_OK;
            free(bent);
        }
        tgi_unpack_close(&u);
        free(packed);
        free(bits);
    }
    printf("%d of 2100 are seen to be damaged\n", damaged);
    CHECK(damaged > 500);
}

int main(void)
{
    TIFFSetWarningHandler(NULL);
    TIFFSetErrorHandler(NULL);
    snprintf(path, sizeof path, "test_ccitt.%d.tif", (int)getpid());
    RUN(test_every_form_of_fax_comes_back_bit_for_bit);
    RUN(test_a_page_in_one_strip_is_streamed);
    RUN(test_damaged_fax_ends_in_a_status);
    unlink(path);
    return TEST_END();
}

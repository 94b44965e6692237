/* YCbCr that is no JPEG, with colours of their own for 1 to 16 pixels: the RGB that libtiff
 * gives for the whole image comes block by block; what is damaged ends in a status. */
#include "engine/base/arith.h"
#include "io/image.h"
#include "tests/tg_test.h"

#include <tiffio.h>

static char path[256];

static void be_quiet(const char *module, const char *fmt, va_list ap)
{
    (void)module, (void)fmt, (void)ap;
}

typedef struct form {
    uint32_t w, h, bw, bh; /* bw 0: strips of bh rows */
    uint16_t across, down, compression;
    int fill, big_endian, studio; /* studio: levels 16 to 235, coefficients of BT.709 */
} form;

static void write_file(const form *f, uint64_t *seed)
{
    TIFF *t = TIFFOpen(path, f->big_endian ? "wb" : "wl");
    TIFFSetField(t, TIFFTAG_IMAGEWIDTH, f->w);
    TIFFSetField(t, TIFFTAG_IMAGELENGTH, f->h);
    TIFFSetField(t, TIFFTAG_BITSPERSAMPLE, 8);
    TIFFSetField(t, TIFFTAG_SAMPLESPERPIXEL, 3);
    TIFFSetField(t, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    TIFFSetField(t, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_YCBCR);
    TIFFSetField(t, TIFFTAG_YCBCRSUBSAMPLING, f->across, f->down);
    TIFFSetField(t, TIFFTAG_COMPRESSION, f->compression);
    TIFFSetField(t, TIFFTAG_FILLORDER, f->fill);
    if (f->studio) {
        TIFFSetField(t, TIFFTAG_YCBCRCOEFFICIENTS, (float[]){0.2126f, 0.7152f, 0.0722f});
        TIFFSetField(t, TIFFTAG_REFERENCEBLACKWHITE, (float[]){16, 235, 128, 240, 128, 240});
    }
    if (f->bw) {
        TIFFSetField(t, TIFFTAG_TILEWIDTH, f->bw);
        TIFFSetField(t, TIFFTAG_TILELENGTH, f->bh);
    } else {
        TIFFSetField(t, TIFFTAG_ROWSPERSTRIP, f->bh);
    }
    uint32_t n = 0;
    for (uint32_t y = 0; y < f->h; y += f->bh)
        for (uint32_t x = 0; x < f->w; x += f->bw ? f->bw : f->w, n++) {
            const tmsize_t bytes =
                f->bw ? TIFFTileSize(t) : TIFFVStripSize(t, (uint32_t)tgi_min(f->bh, f->h - y));
            uint8_t *p = malloc((size_t)bytes);
            for (tmsize_t i = 0; i < bytes; i++)
                p[i] = (uint8_t)(tg_rand(seed) & 1 ? 40 + i % 160 : (tmsize_t)tg_rand(seed));
            CHECK((f->bw ? TIFFWriteEncodedTile(t, n, p, bytes)
                         : TIFFWriteEncodedStrip(t, n, p, bytes)) == bytes);
            free(p);
        }
    TIFFClose(t);
}

/* Pixels that are not those of libtiff; -1: not read, and `said` has why. */
static int64_t differing(const form *f, char *said)
{
    const size_t n = (size_t)f->w * f->h;
    const tgi_open_opts o = {.threads = 1};
    tgi_err err = {0};
    tgi_source *s = NULL;
    int64_t bad = 0;
    uint32_t *want = calloc(n, 4);
    uint8_t *got = calloc(n, 3);
    tg_status st = tgi_source_open(path, &o, &s, &err);
    if (st == TG_OK) {
        const tgi_image_info *i = s->ops->info(s);
        CHECK_EQ(i->dtype, TG_DTYPE_U8);
        CHECK_EQ(i->samples, 3);
        CHECK_EQ(i->meta.colours, 3);
    }
    for (int64_t y = 0; st == TG_OK && y < f->h; y += 5)
        st = s->ops->read(s, 0, 0, 0, 3, y, tgi_min(f->h, y + 5), 0, f->w,
                          got + (size_t)y * f->w, f->w, n, &err);
    tgi_source_close(&s);
    memcpy(said, err.text, TGI_ERR_TEXT);
    TIFF *t = TIFFOpen(path, "r");
    TIFFReadRGBAImageOriented(t, f->w, f->h, want, ORIENTATION_TOPLEFT, 0);
    TIFFClose(t);
    for (size_t i = 0; i < n; i++)
        bad += got[i] != TIFFGetR(want[i]) || got[n + i] != TIFFGetG(want[i]) ||
               got[2 * n + i] != TIFFGetB(want[i]);
    free(want);
    free(got);
    return st == TG_OK ? bad : -1;
}

static form drawn(int i, uint64_t *seed)
{
    static const uint16_t codecs[] = {COMPRESSION_NONE, COMPRESSION_LZW,
                                      COMPRESSION_ADOBE_DEFLATE, COMPRESSION_PACKBITS};
    static const uint16_t sub[][2] = {{1, 1}, {2, 1}, {2, 2}, {4, 1}, {4, 2}, {1, 2}};
    form f = {.w = (uint32_t)tg_rand_in(seed, 1, 90),
              .h = (uint32_t)tg_rand_in(seed, 1, 70),
              .across = sub[i % 6][0],
              .down = sub[i % 6][1],
              .compression = codecs[i % 4],
              .fill = 1,
              .big_endian = i % 3 == 0,
              .studio = i % 2};
    f.bw = i / 4 % 2 ? 32 : 0;
    f.bh = f.bw ? 16 : f.down * (uint32_t)tg_rand_in(seed, 1, 20);
    return f;
}

static void test_the_colours_are_those_of_libtiff(void)
{
    uint64_t seed = 61;
    char said[TGI_ERR_TEXT];
    for (int i = 0; i < 280; i++) {
        const form f = drawn(i, &seed);
        write_file(&f, &seed);
        const int64_t bad = differing(&f, said);
        CHECK_EQ(bad, 0);
        if (bad)
            fprintf(stderr, "  %d: %u x %u in %u x %u, %u x %u, codec %u, fill %d: %s\n", i,
                    f.w, f.h, f.bw, f.bh, f.across, f.down, f.compression, f.fill, said);
    }
}

/* The file's only strip, cut to `keep` bytes by its directory. */
static void cut_strip(uint64_t keep)
{
    TIFF *t = TIFFOpen(path, "r");
    uint64_t *at;
    TIFFGetField(t, TIFFTAG_STRIPOFFSETS, &at);
    const uint64_t from = at[0];
    const uint64_t n = TIFFRawStripSize(t, 0);
    TIFFClose(t);
    t = TIFFOpen(path, "r+");
    uint8_t *p = malloc((size_t)n);
    FILE *file = fopen(path, "rb");
    fseek(file, (long)from, SEEK_SET);
    CHECK_EQ(fread(p, 1, (size_t)n, file), n);
    fclose(file);
    CHECK(TIFFWriteRawStrip(t, 0, p, (tmsize_t)keep) == (tmsize_t)keep);
    CHECK(TIFFRewriteDirectory(t));
    TIFFClose(t);
    free(p);
}

static void test_a_block_that_is_cut_off_is_named(void)
{
    uint64_t seed = 62;
    char said[TGI_ERR_TEXT];
    for (int i = 0; i < 28; i++) {
        form f = drawn(i, &seed);
        f.w = 50, f.h = f.bh = 24, f.bw = 0;
        write_file(&f, &seed);
        cut_strip(40);
        CHECK_EQ(differing(&f, said), -1);
        CHECK(strstr(said, "plane 0, strip 0: YCbCr data: ") != NULL);
        if (!strstr(said, "plane 0, strip 0: YCbCr data: "))
            fprintf(stderr, "  %d: %s\n", i, said);
    }
}

static void test_what_libtiff_reads_wrongly_is_refused_by_name(void)
{
    uint64_t seed = 63;
    char said[TGI_ERR_TEXT];
    form f = drawn(0, &seed);
    f.across = f.down = 4;
    write_file(&f, &seed);
    CHECK_EQ(differing(&f, said), -1);
    CHECK(strstr(said, "photometric 6 (YCbCr) is not supported yet") != NULL);
    f.across = f.down = 2;
    f.fill = 2;
    write_file(&f, &seed);
    CHECK_EQ(differing(&f, said), -1);
    CHECK(strstr(said, "photometric 6 (YCbCr) is not supported yet") != NULL);
}

int main(void)
{
    snprintf(path, sizeof path, "test_tiff_ycbcr.%d.tif", (int)getpid());
    TIFFSetWarningHandler(be_quiet);
    TIFFSetErrorHandler(be_quiet);
    RUN(test_the_colours_are_those_of_libtiff);
    RUN(test_a_block_that_is_cut_off_is_named);
    RUN(test_what_libtiff_reads_wrongly_is_refused_by_name);
    unlink(path);
    return TEST_END();
}

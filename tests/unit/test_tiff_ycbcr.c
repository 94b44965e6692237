/* YCbCr that is no JPEG, with colours of their own for 1 to 16 pixels: the RGB that libtiff
 * gives for the whole image comes block by block; what is damaged ends in a status. */
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/image.h"
#include "io/tiff_codec.h"
#include "io/ycbcr.h"
#include "tests/tg_test.h"

#include <math.h>
#include <tiffio.h>

static char path[256];

static void be_quiet(const char *module, const char *fmt, va_list ap)
{
    (void)module, (void)fmt, (void)ap;
}

typedef struct form {
    uint32_t w, h, bw, bh; /* bw 0: strips of bh rows */
    uint16_t across, down, compression;
    int planar;
    int fill, big_endian, studio; /* studio: levels 16 to 235, coefficients of BT.709 */
} form;

static void write_file(const form *f, uint64_t *seed)
{
    TIFF *t = TIFFOpen(path, f->big_endian ? "wb" : "wl");
    TIFFSetField(t, TIFFTAG_IMAGEWIDTH, f->w);
    TIFFSetField(t, TIFFTAG_IMAGELENGTH, f->h);
    TIFFSetField(t, TIFFTAG_BITSPERSAMPLE, 8);
    TIFFSetField(t, TIFFTAG_SAMPLESPERPIXEL, 3);
    TIFFSetField(t, TIFFTAG_PLANARCONFIG,
                 f->planar ? PLANARCONFIG_SEPARATE : PLANARCONFIG_CONTIG);
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
    for (uint32_t y = 0, k = 0; k < (f->planar ? 3 : 1);
         y = y + f->bh < f->h ? y + f->bh : (k++, 0))
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

/* Each pixel has a colour then. */
static void test_so_are_those_of_planes(void)
{
    uint64_t seed = 66;
    char said[TGI_ERR_TEXT];
    for (int i = 0; i < 120; i++) {
        form f = drawn(i, &seed);
        f.planar = f.across = f.down = 1;
        write_file(&f, &seed);
        const int64_t bad = differing(&f, said);
        CHECK_EQ(bad, 0);
        if (bad)
            fprintf(stderr, "  %d: %u x %u in %u x %u, codec %u: %s\n", i, f.w, f.h, f.bw, f.bh,
                    f.compression, said);
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
        CHECK(strstr(said, "plane 0, strip 0: YCbCr: ") != NULL);
        if (!strstr(said, "plane 0, strip 0: YCbCr: "))
            fprintf(stderr, "  %d: %s\n", i, said);
    }
}

/* Bytes packed as badly as the codec allows: 0, PackBits that says of each that it is one; 1, LZW
 * that begins a new table behind each; 2, PackBits with a step that does nothing before each. */
static size_t pack_badly(int how, const uint8_t *src, size_t n, uint8_t *dst)
{
    size_t at = 0;
    uint32_t bits = 0, held = 0;
    for (size_t i = 0; how != 1 && i < n; i++) {
        if (how == 2)
            dst[at++] = 128;
        dst[at++] = 0;
        dst[at++] = src[i];
    }
    for (size_t i = 0; how == 1 && i <= n; i++) {
        bits = bits << 18 | 256u << 9 | (i < n ? src[i] : 257u);
        for (held += 18; held >= 8; held -= 8)
            dst[at++] = (uint8_t)(bits >> (held - 8));
    }
    if (how == 1)
        dst[at++] = (uint8_t)(bits << (8 - held));
    return at;
}

static void test_a_block_may_be_packed_badly(void)
{
    enum { W = 240, H = 100, MOST = 3 * W * H };
    static uint8_t plain[MOST], packed[3 * MOST];
    uint64_t seed = 69;
    char said[TGI_ERR_TEXT];
    for (int k = 0; k < 6; k++) {
        const int how = k / 2, planar = k % 2;
        form f = {.w = W, .h = H, .bh = H, .across = 1, .down = 1, .fill = 1};
        f.compression = how == 1 ? COMPRESSION_LZW : COMPRESSION_PACKBITS;
        f.planar = planar;
        write_file(&f, &seed);
        TIFF *t = TIFFOpen(path, "r+");
        for (uint32_t i = 0; i < (planar ? 3 : 1); i++) {
            const size_t n = planar ? W * H : MOST;
            for (size_t p = 0; p < n; p++)
                plain[p] = (uint8_t)tg_rand(&seed);
            const size_t m = pack_badly(how, plain, n, packed);
            CHECK(TIFFWriteRawStrip(t, i, packed, (tmsize_t)m) == (tmsize_t)m);
        }
        CHECK(TIFFRewriteDirectory(t));
        TIFFClose(t);
        CHECK_EQ(differing(&f, said), how == 2 ? -1 : 0); /* nobody's bound */
        CHECK_STR(how == 2 ? "" : said, "");
        CHECK(how != 2 || strstr(said, ", more than pixels take, ") != NULL);
    }
}

/* All pixels, interleaved RGB. */
static void read_rgb(uint32_t w, uint32_t h, uint8_t *rgb)
{
    const tgi_open_opts o = {.threads = 1};
    tgi_err err = {0};
    tgi_source *s = NULL;
    CHECK_OK(tgi_source_open(path, &o, &s, &err), err);
    if (s)
        CHECK_OK(
            s->ops->read(s, 0, 0, 0, 3, 0, h, 0, w, rgb, 3 * (size_t)w, TGI_INTERLEAVED, &err),
            err);
    tgi_source_close(&s);
}

/* Of 4 x 4 pixels that share a colour libtiff reads whole units rightly, and loses those at the
 * edges: they are the corner of an image that ends a little later. */
static void test_units_of_4_x_4_are_whole_ones_cut_off(void)
{
    static uint8_t part[3 * 96 * 96], all[3 * 96 * 96];
    char said[TGI_ERR_TEXT];
    uint64_t seed = 63;
    for (int i = 0; i < 40; i++) {
        form f = drawn(i, &seed);
        f.across = f.down = 4;
        f.bw = 0, f.bh = 96;
        uint64_t again = seed;
        write_file(&f, &seed);
        read_rgb(f.w, f.h, part);
        const uint32_t w = f.w, h = f.h;
        f.w = (w + 3) / 4 * 4, f.h = (h + 3) / 4 * 4;
        write_file(&f, &again);
        read_rgb(f.w, f.h, all);
        if (f.w % 16 == 0) /* libtiff takes its rows for others elsewhere */
            CHECK_EQ(differing(&f, said), 0);
        for (uint32_t y = 0; y < h; y++)
            CHECK(memcmp(part + 3 * (size_t)y * w, all + 3 * (size_t)y * f.w, 3 * w) == 0);
    }
}

/* libtiff turns the bits of strips around, and forgets those of tiles. */
static void test_bits_the_other_way_round_are_turned(void)
{
    static uint8_t plain[3 * 96 * 96], turned[3 * 96 * 96];
    uint64_t seed = 64;
    for (int i = 0; i < 40; i++) {
        form f = drawn(i, &seed);
        uint64_t again = seed;
        write_file(&f, &seed);
        read_rgb(f.w, f.h, plain);
        f.fill = 2;
        write_file(&f, &again);
        read_rgb(f.w, f.h, turned);
        CHECK(memcmp(plain, turned, 3 * (size_t)f.w * f.h) == 0);
    }
}

/* The file's strips, the last of which is moved behind its end, or cut. */
static void test_planes_are_looked_up_before_they_are_read(void)
{
    uint64_t seed = 67;
    char said[TGI_ERR_TEXT];
    for (int i = 0; i < 2; i++) {
        form f = drawn(2, &seed); /* deflate */
        f.planar = f.across = f.down = 1;
        f.w = 50, f.h = 24, f.bh = 8, f.bw = 0, f.big_endian = 0;
        write_file(&f, &seed);
        FILE *file = fopen(path, "rb+");
        uint8_t e[12];
        uint32_t at = 0, n = 0, value = i ? 4 : 1u << 30;
        uint16_t tag = 0;
        fseek(file, 4, SEEK_SET);
        CHECK(fread(&at, 4, 1, file) == 1);
        fseek(file, (long)at, SEEK_SET);
        CHECK(fread(&n, 2, 1, file) == 1);
        while (n-- && tag != (i ? 279 : 273)) {
            CHECK(fread(e, 12, 1, file) == 1);
            memcpy(&tag, e, 2);
        }
        const int size = e[2] == 3 ? 2 : 4;
        CHECK(size == 4 || i);
        memcpy(&at, e + 8, 4);
        fseek(file, (long)at + 8 * size, SEEK_SET);
        CHECK(fwrite(&value, (size_t)size, 1, file) == 1);
        fclose(file);
        CHECK_EQ(differing(&f, said), -1);
        const char *says = i ? "plane 0, strip 2: YCbCr, plane 3 of 3: deflate data "
                             : "plane 0, strip 2: YCbCr, plane 3 of 3: block 8 of all planes";
        CHECK(strstr(said, says) != NULL);
        if (!strstr(said, says))
            fprintf(stderr, "  %s\n", said);
    }
}

/* The entry of a tag in the directory of a little-endian file, and where it lies. */
static long entry_of(FILE *file, uint16_t tag, uint8_t e[12])
{
    uint32_t at = 0, n = 0;
    fseek(file, 4, SEEK_SET);
    CHECK(fread(&at, 4, 1, file) == 1);
    fseek(file, (long)at, SEEK_SET);
    CHECK(fread(&n, 2, 1, file) == 1);
    long entry = (long)at + 2;
    for (uint16_t is = 0; n--; entry += 12) {
        fseek(file, entry, SEEK_SET);
        CHECK(fread(e, 12, 1, file) == 1);
        memcpy(&is, e, 2);
        if (is == tag)
            break;
    }
    return entry;
}

/* Levels and coefficients as whole numbers, as some write them. */
static void test_levels_may_be_whole_numbers(void)
{
    static uint8_t fractions[3 * 96 * 96], whole[3 * 96 * 96];
    uint64_t seed = 65;
    form f = drawn(1, &seed);
    f.big_endian = 0;
    write_file(&f, &seed);
    read_rgb(f.w, f.h, fractions);
    FILE *file = fopen(path, "rb+");
    uint8_t e[12], v[6][8], longs[6][4];
    uint32_t at;
    const long entry = entry_of(file, 532, e);
    memcpy(&at, e + 8, 4);
    fseek(file, (long)at, SEEK_SET);
    CHECK(e[2] == 5 && fread(v, sizeof v, 1, file) == 1);
    for (int i = 0; i < 6; i++) {
        uint32_t above, below;
        memcpy(&above, v[i], 4);
        memcpy(&below, v[i] + 4, 4);
        above /= below;
        memcpy(longs[i], &above, 4);
    }
    fseek(file, (long)at, SEEK_SET);
    CHECK(fwrite(longs, sizeof longs, 1, file) == 1);
    e[2] = 4;
    fseek(file, entry, SEEK_SET);
    CHECK(fwrite(e, 12, 1, file) == 1);
    fclose(file);
    read_rgb(f.w, f.h, whole);
    CHECK(memcmp(fractions, whole, 3 * (size_t)f.w * f.h) == 0);
}

static void test_numbers_that_mean_no_colour_are_damage(void)
{
    static const tgi_tiff_ycbcr bad[] = {
        {.n_coefficients = 3, .coefficients = {0.3F, 0, 0.1F}},
        {.n_coefficients = 3, .coefficients = {NAN, 0.6F, 0.1F}},
        {.n_coefficients = 3, .coefficients = {0.3F, 0.6F, INFINITY}},
        {.n_reference = 6, .reference = {0, 4e9F, 128, 255, 128, 255}},
        {.n_reference = 6, .reference = {0, 255, NAN, 255, 128, 255}}};
    tgi_ycbcr t;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tgi_err err = {0};
        CHECK_STATUS(tgi_ycbcr_init(&bad[i], &t, &err), TG_E_FORMAT, err);
    }
}

/* A page with NaN among its levels is named for them, and not for being unlike itself. */
static void test_so_is_nan_in_a_file(void)
{
    static const float levels[6] = {0, NAN, 128, 255, 128, 255};
    const tgi_open_opts o = {.threads = 1};
    uint64_t seed = 65;
    form f = drawn(1, &seed);
    f.big_endian = 0;
    write_file(&f, &seed);
    FILE *file = fopen(path, "rb+");
    uint8_t e[12];
    uint32_t at;
    const long entry = entry_of(file, 532, e);
    memcpy(&at, e + 8, 4);
    fseek(file, (long)at, SEEK_SET);
    CHECK(fwrite(levels, sizeof levels, 1, file) == 1);
    e[2] = TIFF_FLOAT;
    fseek(file, entry, SEEK_SET);
    CHECK(fwrite(e, 12, 1, file) == 1);
    fclose(file);
    tgi_err err = {0};
    tgi_source *s = NULL;
    CHECK_EQ(tgi_source_open(path, &o, &s, &err), TG_E_FORMAT);
    CHECK(strstr(err.text, "ReferenceBlackWhite of 0 to ") != NULL);
    tgi_source_close(&s);
}

static void test_a_decoder_takes_what_is_planned(void)
{
    for (int i = 0; i < 32; i++) {
        const tgi_packing p = {.compression = i & 16 ? TGI_TIFF_PLANES_AS_RGB : TGI_TIFF_AS_RGB,
                               .stored_as = i % 2 ? TGI_TIFF_LZW : TGI_TIFF_PACKBITS,
                               .fill_order = i & 2 ? 2 : 1,
                               .photometric = TGI_TIFF_YCBCR,
                               .width = 61,
                               .samples = 3,
                               .bits = 8,
                               .format = 1,
                               .ycbcr = {.subsampling = {i & 4 ? 4 : 2, i & 8 ? 2 : 1}},
                               .block_bytes = 61 * 3 * 37};
        tgi_mem_stats before, open;
        tgi_unpack *u = NULL;
        tgi_err err = {0};
        tgi_mem_get_stats(&before);
        CHECK_OK(tgi_unpack_open(&p, &u, &err), err);
        tgi_mem_get_stats(&open);
        CHECK_EQ(open.live_bytes - before.live_bytes, tgi_unpack_bytes(&p));
        tgi_unpack_close(&u);
    }
}

int main(void)
{
    snprintf(path, sizeof path, "test_tiff_ycbcr.%d.tif", (int)getpid());
    TIFFSetWarningHandler(be_quiet);
    TIFFSetErrorHandler(be_quiet);
    RUN(test_the_colours_are_those_of_libtiff);
    RUN(test_so_are_those_of_planes);
    RUN(test_a_block_that_is_cut_off_is_named);
    RUN(test_a_block_may_be_packed_badly);
    RUN(test_units_of_4_x_4_are_whole_ones_cut_off);
    RUN(test_bits_the_other_way_round_are_turned);
    RUN(test_planes_are_looked_up_before_they_are_read);
    RUN(test_levels_may_be_whole_numbers);
    RUN(test_numbers_that_mean_no_colour_are_damage);
    RUN(test_so_is_nan_in_a_file);
    RUN(test_a_decoder_takes_what_is_planned);
    unlink(path);
    return TEST_END();
}

/* Old JPEG in TIFF: strip by strip, in any order and on any page, it is what libtiff reads of
 * the whole file; damage that libtiff or libjpeg sees ends in a status, though they go on. */
#include "io/image.h"
#include "tests/unit/old_jpeg_files.h"

static char path[256];
static int doubts; /* of libjpeg, and errors */

static void on_error(const char *module, const char *fmt, va_list ap)
{
    (void)module, (void)fmt, (void)ap;
    doubts++;
}

static void on_warning(const char *module, const char *fmt, va_list ap)
{
    (void)fmt, (void)ap;
    doubts += strcmp(module, "LibJpeg") == 0;
}

/* One page of the file by libtiff, RGB or grey; false: it said something is wrong. */
static bool by_libtiff(const old_form *f, int page, uint8_t *dst)
{
    const size_t n = (size_t)f->w * f->h;
    uint32_t *rgba = calloc(n, 4);
    doubts = 0;
    TIFF *t = TIFFOpen(path, "rm");
    bool good = t && TIFFSetDirectory(t, (tdir_t)page);
    if (good && f->colour) {
        good = TIFFReadRGBAImageOriented(t, f->w, f->h, rgba, ORIENTATION_TOPLEFT, 1) == 1;
        for (size_t i = 0; i < n; i++) {
            dst[3 * i] = (uint8_t)TIFFGetR(rgba[i]);
            dst[3 * i + 1] = (uint8_t)TIFFGetG(rgba[i]);
            dst[3 * i + 2] = (uint8_t)TIFFGetB(rgba[i]);
        }
    }
    for (uint32_t y = 0, s = 0; good && !f->colour && y < f->h; y += f->rows, s++)
        good = TIFFReadEncodedStrip(t, s, dst + (size_t)y * f->w, -1) > 0;
    if (t)
        TIFFClose(t);
    free(rgba);
    return good && !doubts;
}

static tg_status by_us(const old_form *f, int page, int backwards, uint8_t *dst, tgi_err *err)
{
    const int samples = f->colour ? 3 : 1;
    const tgi_open_opts o = {.threads = 1, .pages = 1};
    const size_t pitch = (size_t)f->w * (size_t)samples;
    tgi_source *s = NULL;
    tg_status st = tgi_source_open(path, &o, &s, err);
    for (int64_t k = 0, n = (f->h + 10) / 11; st == TG_OK && k < n; k++) {
        const int64_t y = 11 * (backwards ? n - 1 - k : k);
        st = s->ops->read(s, 0, page, 0, samples, y, tgi_min(f->h, y + 11), 0, f->w,
                          dst + (size_t)y * pitch, pitch, TGI_INTERLEAVED, err);
    }
    tgi_source_close(&s);
    return st;
}

static void tell(const old_form *f, const tgi_err *err)
{
    fprintf(stderr, "  %u x %u, %u rows, flavour %d, %u x %u, colour %d, BE %d, big %d: %s\n",
            f->w, f->h, f->rows, (int)f->flavour, f->across, f->down, f->colour, f->big_endian,
            f->bigtiff, err->text);
}

static void test_every_strip_is_what_libtiff_reads(void)
{
    uint64_t seed = 71;
    static uint8_t want[3 * 120 * 100], got[3 * 120 * 100];
    for (int i = 0; i < 420; i++) {
        const old_form f = old_drawn(i, &seed);
        const size_t n = (size_t)f.w * f.h * (f.colour ? 3 : 1);
        uint64_t again = seed;
        old_file o = old_make(&f, &seed);
        old_form plain = f; /* libtiff 4.5 reads several strips wrongly in the other order */
        plain.big_endian = 0;
        old_file o2 = old_make(&plain, &again);
        for (int k = f.pages - 1; k >= 0; k--) {
            tgi_err err = {0};
            old_write(path, o2.bytes, o2.n);
            CHECK(by_libtiff(&f, k, want));
            old_write(path, o.bytes, o.n);
            memset(got, 1, sizeof got);
            CHECK_OK(by_us(&f, k, i % 2, got, &err), err);
            const int same = memcmp(want, got, n) == 0;
            CHECK(same);
            if (!same || err.text[0])
                tell(&f, &err);
        }
        free(o.bytes);
        free(o2.bytes);
    }
}

/* Tiles one below the other, of which the image ends inside the last, or one. libtiff reads them
 * as RGBA; what it makes of several in files of the other order is not right. */
static void test_so_is_every_tile(void)
{
    uint64_t seed = 76;
    static uint8_t want[3 * 120 * 120], got[3 * 120 * 120];
    for (int i = 0; i < 160; i++) {
        tgi_err err = {0};
        old_form f = old_drawn(4 * i + 1, &seed);
        f.w = 16 * (uint32_t)tg_rand_in(&seed, 2, 7);
        f.rows = 16 * (uint32_t)tg_rand_in(&seed, 1, 3);
        f.h = f.rows * (f.flavour == OLD_STREAM ? 1 : (uint32_t)tg_rand_in(&seed, 1, 2));
        f.crop = (uint32_t)tg_rand_in(&seed, 0, 15);
        f.tiled = 1, f.pages = 1, f.silent = i % 3 == 0;
        f.big_endian &= f.rows == f.h;
        old_file o = old_make(&f, &seed);
        old_write(path, o.bytes, o.n);
        free(o.bytes);
        f.w -= f.crop, f.h -= f.crop;
        CHECK(by_libtiff(&f, 0, want));
        memset(got, 1, sizeof got);
        CHECK_OK(by_us(&f, 0, i % 2, got, &err), err);
        const int same = memcmp(want, got, (size_t)3 * f.w * f.h) == 0;
        CHECK(same);
        if (!same || err.text[0])
            tell(&f, &err);
    }
}

/* Only some damage is seen: where nobody said a word, the pixels are still those of libtiff. */
static void test_damage_that_is_seen_is_no_pixels(void)
{
    uint64_t seed = 72;
    static uint8_t want[3 * 120 * 100], got[3 * 120 * 100];
    int seen = 0, unseen = 0;
    for (int i = 0; i < 240; i++) {
        old_form f = old_drawn(i, &seed);
        f.pages = 1;
        f.big_endian = 0;
        const size_t n = (size_t)f.w * f.h * (f.colour ? 3 : 1);
        old_file o = old_make(&f, &seed);
        for (int k = 0; k < 3; k++) {
            tgi_err err = {0};
            const size_t strip = (size_t)tg_rand_in(&seed, 0, o.n_strips - 1);
            const size_t at =
                o.strip[strip] + (size_t)tg_rand_in(&seed, 0, (int64_t)o.strip_n[strip] - 1);
            const uint8_t was = o.bytes[at];
            o.bytes[at] = k ? (uint8_t)tg_rand(&seed) : 0xff;
            old_write(path, o.bytes, o.n);
            memset(got, 1, sizeof got);
            const tg_status st = by_us(&f, 0, i % 2, got, &err);
            CHECK(st == TG_OK || st == TG_E_FORMAT);
            if (!by_libtiff(&f, 0, want)) {
                seen++;
                CHECK_EQ(st, TG_E_FORMAT);
                CHECK(strstr(err.text, "old JPEG data: ") != NULL);
                if (!strstr(err.text, "old JPEG data: "))
                    tell(&f, &err);
            } else {
                unseen++;
                CHECK_OK(st, err);
                CHECK(memcmp(want, got, n) == 0);
            }
            o.bytes[at] = was;
        }
        free(o.bytes);
    }
    printf("damage seen %d, not seen %d\n", seen, unseen);
    CHECK(seen > 100 && unseen > 100);
}

/* A strip with the bytes gone that it ends in. */
static void test_a_strip_that_is_cut_off_is_named_and_so_are_those_behind_it(void)
{
    uint64_t seed = 73;
    uint8_t first[6][3 * 64 * 16], got[3 * 64 * 16];
    for (int flavour = OLD_HEAD; flavour < OLD_FLAVOURS; flavour++) {
        const old_form f = {.w = 64,
                            .h = 96,
                            .rows = 16,
                            .colour = 1,
                            .across = 2,
                            .down = 2,
                            .flavour = (old_flavour)flavour,
                            .pages = 1};
        const tgi_open_opts opts = {.threads = 1};
        old_file o = old_make(&f, &seed);
        tgi_source *s = NULL;
        tgi_err err = {0};
        memset(o.bytes + o.strip[3] + 4, 0xff, o.strip_n[3] - 4);
        old_write(path, o.bytes, o.n);
        CHECK_OK(tgi_source_open(path, &opts, &s, &err), err);
        for (int turn = 0; turn < 2; turn++)
            for (int k = 0; k < 6; k++) {
                char name[40];
                const int strip = turn ? 5 - k : k;
                err = (tgi_err){0};
                const tg_status st = s->ops->read(s, 0, 0, 0, 3, 16 * strip, 16 * strip + 16, 0,
                                                  64, got, 192, TGI_INTERLEAVED, &err);
                CHECK_EQ(st, strip < 3 ? TG_OK : TG_E_FORMAT);
                if (!turn)
                    memcpy(first[strip], got, sizeof got);
                CHECK(st != TG_OK || memcmp(first[strip], got, sizeof got) == 0);
                snprintf(name, sizeof name, "strip %d: old JPEG data", strip);
                CHECK(st == TG_OK || strstr(err.text, name) != NULL);
            }
        tgi_source_close(&s);
        free(o.bytes);
    }
}

/* Another number at byte `at` of a tag's entry: 0 the tag, 4 the count, 8 the value. */
static void bend(old_file *o, int tag, int at, uint32_t value)
{
    size_t e = (size_t)o->bytes[4] | (size_t)o->bytes[5] << 8 | (size_t)o->bytes[6] << 16;
    for (e += 2; (o->bytes[e] | o->bytes[e + 1] << 8) != tag; e += 12)
        CHECK(e < o->n);
    old_number(o, o->bytes + e + (size_t)at, value, at ? 4 : 2);
}

/* What a file can say that is no image, or none that libtiff reads rightly. */
static void test_what_is_not_read_is_refused_by_name(void)
{
    static const struct {
        int tag, at;
        uint32_t value;
        const char *says;
    } bent[] = {
        {262, 8, 8, "photometric 8, is not supported"},
        {277, 8, 2, "photometric 6 (YCbCr)"},
        {519, 4, 4, "tag 519 has 4 values"},
        {519, 8, 1 << 20, "lie past the end"},
        {530, 8, 4 | 4 << 16, "a colour for 4 x 4 pixels"},
        {278, 8, 24, "Incompatible vertical subsampling"},
        {257, 8, 70000, "old JPEG of 64 x 70000 pixels"},
        {521, 0, 40000, "Missing JPEG tables"},
        {519, 0, 40000, "Missing JPEG tables"},
        {512, 0, 322, "old JPEG in tiles side by side"},
    };
    uint64_t seed = 74;
    static uint8_t got[3 * 120 * 100];
    const old_form f = {.w = 64,
                        .h = 96,
                        .rows = 16,
                        .colour = 1,
                        .across = 2,
                        .down = 2,
                        .flavour = OLD_TABLES,
                        .pages = 1};
    for (size_t k = 0; k < sizeof bent / sizeof bent[0]; k++) {
        tgi_err err = {0};
        old_file o = old_make(&f, &seed);
        bend(&o, bent[k].tag, bent[k].at, bent[k].value);
        if (bent[k].value == 322)
            bend(&o, 278, 0, 323);
        old_write(path, o.bytes, o.n);
        const tg_status st = by_us(&f, 0, 0, got, &err);
        CHECK(st == TG_E_FORMAT || st == TG_E_UNSUPPORTED);
        CHECK(strstr(err.text, bent[k].says) != NULL);
        if (!strstr(err.text, bent[k].says))
            fprintf(stderr, "  %zu: status %d, %s\n", k, (int)st, err.text);
        free(o.bytes);
    }
}

static void test_it_is_refused_where_only_fuzzed_readers_are_allowed(void)
{
    uint64_t seed = 75;
    tg_env was;
    const old_form f = old_drawn(1, &seed);
    uint8_t got[3 * 120 * 100];
    tgi_err err = {0};
    old_file o = old_make(&f, &seed);
    old_write(path, o.bytes, o.n);
    tg_env_lend(&was, "TEGULA_BLOCK_UNTRUSTED", "1");
    CHECK_EQ(by_us(&f, 0, 0, got, &err), TG_E_UNSUPPORTED);
    CHECK(strstr(err.text, "the decoder of old JPEG is libtiff's") != NULL);
    tg_env_back(&was);
    free(o.bytes);
}

int main(void)
{
    snprintf(path, sizeof path, "test_tiff_old_jpeg.%d.tif", (int)getpid());
    TIFFSetWarningHandler(on_warning);
    TIFFSetErrorHandler(on_error);
    RUN(test_every_strip_is_what_libtiff_reads);
    RUN(test_so_is_every_tile);
    RUN(test_damage_that_is_seen_is_no_pixels);
    RUN(test_a_strip_that_is_cut_off_is_named_and_so_are_those_behind_it);
    RUN(test_what_is_not_read_is_refused_by_name);
    RUN(test_it_is_refused_where_only_fuzzed_readers_are_allowed);
    unlink(path);
    return TEST_END();
}

/* ThunderScan: rows that were packed in every way there is come back, and where libtiff reads
 * rows rightly they are its own; what is damaged ends in a status. */
#include "engine/base/arith.h"
#include "io/image.h"
#include "tests/tg_test.h"

#include <tiffio.h>

static char path[256];

static void be_quiet(const char *module, const char *fmt, va_list ap)
{
    (void)module, (void)fmt, (void)ap;
}

/* The byte for n differences from `last` on, of 2 or 3 bits; -1: they have no such. The last
 * one may be skipped. */
static int differences(const uint8_t *pixel, uint32_t left, unsigned last, int wide)
{
    static const int two[] = {-1, 0, 1}, three[] = {-3, -2, -1, 0, 1, 2, 3};
    static const int two_code[] = {3, 0, 1}, three_code[] = {5, 6, 7, 0, 1, 2, 3};
    const uint32_t slots = wide ? 2 : 3;
    int code = wide ? 2 : 1, bits = wide ? 3 : 2;
    for (uint32_t i = 0; i < slots; i++) {
        int found = i < left ? -1 : wide ? 4 : 2; /* skipped */
        for (int k = 0; i < left && k < (wide ? 7 : 3); k++)
            if (((last + (unsigned)(wide ? three : two)[k]) & 15) == pixel[i])
                found = (wide ? three_code : two_code)[k];
        if (found < 0)
            return -1;
        last = i < left ? pixel[i] : last;
        code = code << bits | found;
    }
    return code;
}

/* One row; `runs_end` says whether a run may be its last code. Returns its bytes. */
static size_t pack_row(const uint8_t *pixel, uint32_t w, int runs_end, uint8_t *dst,
                       uint64_t *seed)
{
    size_t n = 0;
    unsigned last = 0;
    for (uint32_t x = 0; x < w;) {
        const uint32_t left = w - x;
        uint32_t run = 0;
        const int wide = (int)(tg_rand(seed) & 1),
                  code = tg_rand(seed) % 4 ? differences(pixel + x, left, last, wide) : -1;
        while (run < left && run < 63 && pixel[x + run] == last)
            run++;
        if (run && !runs_end && run == left)
            run--;
        if (tg_rand(seed) % 8 == 0)
            dst[n++] = wide ? 0x80 | 4 << 3 | 4 : 0; /* of nothing */
        if (run && tg_rand(seed) % 4) {
            dst[n++] = (uint8_t)run;
            x += run;
        } else if (code >= 0) {
            dst[n++] = (uint8_t)code;
            x += (uint32_t)tgi_min(left, wide ? 2 : 3);
        } else {
            dst[n++] = 0xc0 | pixel[x++];
        }
        last = pixel[x - 1];
    }
    return n;
}

typedef struct form {
    uint32_t w, h, rows;
    int runs_end, fill;
} form;

/* `cut` bytes are missing at the end of each strip. */
static void write_file(const form *f, const uint8_t *pixels, size_t cut, uint64_t *seed)
{
    uint8_t *packed = malloc(3 * (size_t)f->w * f->rows + 8);
    TIFF *t = TIFFOpen(path, "w");
    TIFFSetField(t, TIFFTAG_IMAGEWIDTH, f->w);
    TIFFSetField(t, TIFFTAG_IMAGELENGTH, f->h);
    TIFFSetField(t, TIFFTAG_BITSPERSAMPLE, 4);
    TIFFSetField(t, TIFFTAG_SAMPLESPERPIXEL, 1);
    TIFFSetField(t, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
    TIFFSetField(t, TIFFTAG_COMPRESSION, COMPRESSION_THUNDERSCAN);
    TIFFSetField(t, TIFFTAG_ROWSPERSTRIP, f->rows);
    TIFFSetField(t, TIFFTAG_FILLORDER, f->fill);
    for (uint32_t y = 0, s = 0; y < f->h; y += f->rows, s++) {
        size_t n = 0;
        for (uint32_t r = y; r < tgi_min(f->h, y + f->rows); r++)
            n += pack_row(pixels + (size_t)r * f->w, f->w, f->runs_end, packed + n, seed);
        if (f->fill == 2)
            TIFFReverseBits(packed, (tmsize_t)n);
        n -= tgi_min(n - 1, cut);
        CHECK(TIFFWriteRawStrip(t, s, packed, (tmsize_t)n) == (tmsize_t)n);
    }
    TIFFClose(t);
    free(packed);
}

static tg_status read_file(const form *f, uint8_t *dst, size_t budget, tgi_err *err)
{
    const tgi_open_opts o = {.threads = 1, .decode_budget = budget};
    tgi_source *s = NULL;
    tg_status st = tgi_source_open(path, &o, &s, err);
    if (st == TG_OK)
        CHECK_EQ(s->ops->info(s)->dtype, TG_DTYPE_U8);
    for (int64_t y = 0; st == TG_OK && y < f->h; y += 3)
        st = s->ops->read(s, 0, 0, 0, 1, y, tgi_min(f->h, y + 3), 0, f->w,
                          dst + (size_t)y * f->w, f->w, 0, err);
    tgi_source_close(&s);
    return st;
}

static form drawn(int i, uint8_t *pixels, uint64_t *seed)
{
    const form f = {.w = (uint32_t)tg_rand_in(seed, 1, 90),
                    .h = (uint32_t)tg_rand_in(seed, 1, 40),
                    .rows = (uint32_t)tg_rand_in(seed, 1, 40),
                    .runs_end = i % 2,
                    .fill = 1 + (i % 5 == 0)};
    const int rough = i % 3; /* runs, slopes, noise */
    unsigned v = 0;
    for (size_t k = 0; k < (size_t)f.w * f.h; k++) {
        if (rough == 2 || tg_rand(seed) % (rough ? 2 : 20) == 0)
            v += (unsigned)tg_rand(seed) >> (rough == 2 ? 0 : 30);
        pixels[k] = v & 15;
    }
    return f;
}

static void test_pixels_come_back_and_are_those_of_libtiff(void)
{
    static uint8_t pixels[90 * 40], got[90 * 40], row[64];
    uint64_t seed = 81;
    for (int i = 0; i < 300; i++) {
        tgi_err err = {0};
        const form f = drawn(i, pixels, &seed);
        write_file(&f, pixels, 0, &seed);
        CHECK_OK(read_file(&f, got, i % 4 ? 0 : 9000, &err), err);
        CHECK(memcmp(got, pixels, (size_t)f.w * f.h) == 0);
        if (f.runs_end) /* libtiff 4.5 leaves out a run at the end */
            continue;
        TIFF *t = TIFFOpen(path, "r");
        for (uint32_t y = 0; y < f.h; y++) {
            int bad = TIFFReadScanline(t, row, y, 0) != 1;
            for (uint32_t x = 0; x < f.w; x++)
                bad += (row[x / 2] >> (x % 2 ? 0 : 4) & 15) != got[y * f.w + x];
            CHECK_EQ(bad, 0);
        }
        TIFFClose(t);
    }
}

static void test_a_strip_that_is_cut_off_is_named(void)
{
    static uint8_t pixels[90 * 40], got[90 * 40];
    uint64_t seed = 82;
    for (int i = 0; i < 40; i++) {
        tgi_err err = {0};
        form f = drawn(3 * i + 2, pixels, &seed);
        f.w = 90, f.h = f.rows = 40;
        for (size_t k = 0; k < sizeof pixels; k++)
            pixels[k] = (uint8_t)(k * 7 & 15); /* no runs, no code of nothing at the end */
        write_file(&f, pixels, 1 + (size_t)i, &seed);
        CHECK_EQ(read_file(&f, got, 0, &err), TG_E_FORMAT);
        CHECK(strstr(err.text, "strip 0: ThunderScan data ends after") != NULL);
    }
}

static void test_a_run_beyond_its_row_is_refused(void)
{
    const form f = {.w = 20, .h = 2, .rows = 2, .fill = 1};
    uint8_t got[40], pixels[40] = {0};
    uint64_t seed = 83;
    tgi_err err = {0};
    write_file(&f, pixels, 0, &seed);
    TIFF *t = TIFFOpen(path, "r+");
    CHECK_EQ(TIFFWriteRawStrip(t, 0, (uint8_t[]){10, 11, 20}, 3), 3);
    CHECK(TIFFRewriteDirectory(t));
    TIFFClose(t);
    CHECK_EQ(read_file(&f, got, 0, &err), TG_E_FORMAT);
    CHECK(strstr(err.text, "a run goes beyond its row") != NULL);
}

int main(void)
{
    snprintf(path, sizeof path, "test_thunderscan.%d.tif", (int)getpid());
    TIFFSetWarningHandler(be_quiet);
    TIFFSetErrorHandler(be_quiet);
    RUN(test_pixels_come_back_and_are_those_of_libtiff);
    RUN(test_a_strip_that_is_cut_off_is_named);
    RUN(test_a_run_beyond_its_row_is_refused);
    unlink(path);
    return TEST_END();
}

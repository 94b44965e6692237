/* The TIFF reader against sample files that others wrote, against files that break, and
 * against itself: any box equals the crop of the whole. */
#include "engine/base/arith.h"
#include "io/image.h"
#include "tests/md5.h"
#include "tests/tg_test.h"

#include <dirent.h>

#define TIFF_DIR TG_SHARED_DATA "/data/tiff/"
#define BAD_DIR TG_SHARED_DATA "/data/bad/tiff/"

/* Files that issue 2 part 7 does not cover, with the words that must name why. */
static const struct {
    const char *file, *words;
} refused[] = {
    {"he_ome_tiled_jpeg_be.tif", "compression 7 (JPEG)"},
    {"slide_svs_tiled_jpeg_pyramid.svs", "compression 7 (JPEG)"},
    {"tiled_jpeg_rgb.tif", "compression 7 (JPEG)"},
    {"jpeg_ycbcr_subsampled.tif", "compression 7 (JPEG)"},
    {"cmyk_jpeg_tiled.tif", "compression 7 (JPEG)"},
    {"lzma_rgb.tif", "compression 34925 (LZMA)"},
    {"webp_rgb.tif", "compression 50001 (WebP)"},
    {"u12_packed.tiff", "12 bits per sample"},
    {"u24_packed.tif", "24 bits per sample"},
    {"miniswhite_1bit.tiff", "1 bits per sample"},
    {"ome_multifile_Z1.ome.tiff", "multi-file OME-TIFF"},
    {"ome_multifile_Z2.ome.tiff", "multi-file OME-TIFF"},
};
#define N_REFUSED (sizeof refused / sizeof refused[0])

static const char *refusal_of(const char *file)
{
    for (size_t i = 0; i < N_REFUSED; i++)
        if (strcmp(refused[i].file, file) == 0)
            return refused[i].words;
    return NULL;
}

/* A quoted CSV line cut into fields in place. */
static int split_csv(char *line, char **field, int cap)
{
    int n = 0;
    for (char *p = line; n < cap; p++) {
        const int quoted = *p == '"';
        char *w = p += quoted;
        field[n++] = w;
        while (*p && *p != '\n' && (quoted ? *p != '"' || p[1] == '"' : *p != ',')) {
            p += quoted && *p == '"';
            *w++ = *p++;
        }
        p += quoted && *p == '"';
        const int last = *p != ',';
        *w = 0;
        if (last)
            break;
    }
    return n;
}

enum { F_FILE = 0, F_SHAPE0 = 2, F_AXES = 3, F_DTYPE = 4, F_SERIES = 5, F_LEVELS = 6,
       F_BIG = 9, F_BIGTIFF = 10, F_COMPRESSION = 11, F_TILED = 17, F_FLAVOR = 21, F_SHAPE = 26,
       F_MD5 = 27, F_COUNT = 35 };

/* Read all planes in bands of `rows` rows, order of the file (S last or S before Y), into the
 * sum. The host is little-endian here, as the reference sums are. */
static tg_status sum_image(tg_source *s, int64_t rows, char hex[33], tgi_err *err)
{
    const tg_image_info *i = s->ops->info(s);
    const size_t size = tgi_dtype_size(i->dtype);
    const size_t row = (size_t)i->width * size, n = (size_t)i->samples;
    const size_t band = row * (size_t)rows;
    uint8_t *planar = malloc(band * n), *mixed = malloc(band * n);
    md5 m;
    tg_status st = TG_OK;
    md5_init(&m);
    for (int64_t p = 0; p < i->n_planes && st == TG_OK; p++) {
        const int outer = i->planar_samples ? i->samples : 1; /* sample planes one by one */
        for (int k = 0; k < outer && st == TG_OK; k++)
            for (int64_t y = 0; y < i->height && st == TG_OK; y += rows) {
                const int64_t ye = tgi_min(i->height, y + rows);
                const int k1 = outer > 1 ? k + 1 : i->samples;
                const size_t got = (size_t)(ye - y) * row * (size_t)(k1 - k);
                st = s->ops->read(s, 0, p, k, k1, y, ye, 0, i->width, planar, row, band, err);
                if (outer > 1 || n == 1) {
                    md5_add(&m, planar, got);
                    continue;
                }
                for (size_t e = 0; e < got / size; e++)
                    memcpy(mixed + e * size, planar + e % n * band + e / n * size, size);
                md5_add(&m, mixed, got);
            }
    }
    md5_hex(&m, hex);
    free(planar);
    free(mixed);
    return st;
}

/* "3x512x512" and "ZYX" of an image with axes of length 1 left out. */
static void describe(const tg_image_info *i, char *shape, char *axes, size_t cap)
{
    size_t n = 0;
    shape[0] = 0;
    for (int k = 0; k < i->n_axes; k++)
        if (i->shape[k] > 1) {
            n += (size_t)snprintf(shape + n, cap - n, n ? "x%lld" : "%lld",
                                  (long long)i->shape[k]);
            *axes++ = i->axes[k];
        }
    *axes = 0;
}

static int n_matched, n_refused;

static void check_metadata(const tg_image_info *i, char **f)
{
    char shape[128], axes[16];
    describe(i, shape, axes, sizeof shape);
    CHECK_STR(shape, f[F_SHAPE]);
    /* Where the reference unpacked the file first, only page 0 is its array. */
    if (strcmp(f[F_SHAPE0], f[F_SHAPE]) == 0)
        CHECK_STR(axes, f[F_AXES]);
    CHECK_STR(tgi_dtype_name(i->dtype), f[F_DTYPE]);
    CHECK_EQ(i->n_series, atoi(f[F_SERIES]));
    CHECK_EQ(i->n_levels, atoi(f[F_LEVELS]));
    CHECK_EQ(i->big_endian, strcmp(f[F_BIG], "big") == 0);
    CHECK_EQ(i->bigtiff, atoi(f[F_BIGTIFF]));
    CHECK_EQ(i->tiled, atoi(f[F_TILED]));
}

static void check_row(char **f)
{
    char path[512], hex[33];
    tgi_err err = {0};
    tg_source *s = NULL;
    const char *words = refusal_of(f[F_FILE]);
    snprintf(path, sizeof path, "%s%s", TIFF_DIR, f[F_FILE]);
    if (words) {
        const tg_status st = tgi_source_open(path, NULL, &s, &err);
        CHECK_EQ(st, TG_E_UNSUPPORTED);
        CHECK(strstr(err.text, words) != NULL);
        if (!strstr(err.text, words))
            fprintf(stderr, "%s: %s\n", f[F_FILE], err.text);
        n_refused++;
        tgi_source_close(&s);
        return;
    }
    const tg_io_mode modes[] = {TG_IO_MAP, TG_IO_READ};
    for (int m = 0; m < 2; m++) {
        const tg_open_opts o = {.threads = 1, .io = modes[m]};
        const int before = tg_failures;
        CHECK_OK(tgi_source_open(path, &o, &s, &err), err);
        if (!s)
            return;
        const tg_image_info *i = s->ops->info(s);
        const int first_only = strcmp(f[F_SHAPE0], f[F_SHAPE]) != 0;
        if (first_only) /* the reference has page 0 alone */
            ((tg_image_info *)(uintptr_t)i)->n_planes = 1;
        else
            check_metadata(i, f);
        CHECK_OK(sum_image(s, m ? 7 : i->height, hex, &err), err);
        CHECK_STR(hex, f[F_MD5]);
        tgi_source_close(&s);
        if (tg_failures != before)
            fprintf(stderr, "  in %s, mode %d\n", f[F_FILE], m);
        else
            n_matched += m;
    }
}

static void test_sample_files_match_their_sums_or_are_refused_by_name(void)
{
    char line[4096], *field[F_COUNT];
    FILE *csv = fopen(TIFF_DIR "index.csv", "r");
    CHECK(csv && fgets(line, sizeof line, csv));
    while (csv && fgets(line, sizeof line, csv))
        if (split_csv(line, field, F_COUNT) > F_MD5)
            check_row(field);
    if (csv)
        fclose(csv);
    printf("%d files match, %d refused by name\n", n_matched, n_refused);
    CHECK_EQ(n_refused, N_REFUSED);
    CHECK_EQ(n_matched, 49);
}

int main(void)
{
    if (access(TIFF_DIR "index.csv", R_OK) != 0)
        TEST_SKIP("no sample images");
    RUN(test_sample_files_match_their_sums_or_are_refused_by_name);
    return TEST_END();
}

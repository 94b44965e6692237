/* The TIFF reader against sample files that others wrote, against files that break, and
 * against itself: any box equals the crop of the whole. */
#include "engine/base/arith.h"
#include "io/image.h"
#include "tests/md5.h"
#include "tests/tg_test.h"

#include <dirent.h>
#include <math.h>

#define TIFF_DIR TG_SHARED_DATA "/data/tiff/"
#define BAD_DIR TG_SHARED_DATA "/data/bad/tiff/"

/* Files that issue 2 part 7 does not cover, with the words that must name why. */
static const struct {
    const char *file, *words;
} refused[] = {
    {NULL, NULL}, /* none today */
};
#define N_REFUSED (sizeof refused / sizeof refused[0] - 1)

static const char *refusal_of(const char *file)
{
    for (size_t i = 0; refused[i].file; i++)
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

enum {
    F_FILE = 0,
    F_SHAPE0 = 2,
    F_AXES = 3,
    F_DTYPE = 4,
    F_SERIES = 5,
    F_LEVELS = 6,
    F_BIG = 9,
    F_BIGTIFF = 10,
    F_COMPRESSION = 11,
    F_TILED = 17,
    F_FLAVOR = 21,
    F_SHAPE = 26,
    F_MD5 = 27,
    F_COUNT = 35
};

/* Read all planes in bands of `rows` rows, order of the file (S last or S before Y), into the
 * sum. The host is little-endian here, as the reference sums are. */
static tg_status sum_image(tgi_source *s, int64_t rows, char hex[33], tgi_err *err)
{
    const tgi_image_info *i = s->ops->info(s);
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
static void describe(const tgi_image_info *i, char *shape, char *axes, size_t cap)
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

static void check_metadata(const tgi_image_info *i, char **f)
{
    char shape[128], axes[16];
    describe(i, shape, axes, sizeof shape);
    CHECK_STR(shape, f[F_SHAPE0]);
    CHECK_STR(axes, f[F_AXES]);
    CHECK_STR(tgi_dtype_name(i->dtype), f[F_DTYPE]);
    if (f[F_FLAVOR][0] && strcmp(f[F_FLAVOR], "geotiff") != 0 && i->note[0] == 0)
        CHECK(strstr(i->flavor, f[F_FLAVOR]) != NULL);
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
    tgi_source *s = NULL;
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
    for (int m = 0; m < 2; m++) { /* all rows at once, and a few at a time */
        const tgi_open_opts o = {.threads = 1};
        const int before = tg_failures;
        CHECK_OK(tgi_source_open(path, &o, &s, &err), err);
        if (!s)
            return;
        const tgi_image_info *i = s->ops->info(s);
        check_metadata(i, f);
        if (strcmp(f[F_SHAPE0], f[F_SHAPE]) != 0) /* the reference unpacked page 0 alone */
            ((tgi_image_info *)(uintptr_t)i)->n_planes = 1;
        CHECK_OK(sum_image(s, m ? 7 : i->height, hex, &err), err);
        CHECK_STR(hex, f[F_MD5]);
        tgi_source_close(&s);
        if (tg_failures != before)
            fprintf(stderr, "  in %s, pass %d\n", f[F_FILE], m);
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
    CHECK_EQ(n_matched, 61);
}

/* ---- Boxes ---- */

static uint8_t *whole_plane(tgi_source *s, int64_t plane, tgi_err *err)
{
    const tgi_image_info *i = s->ops->info(s);
    const size_t row = (size_t)i->width * tgi_dtype_size(i->dtype);
    const size_t one = row * (size_t)i->height;
    uint8_t *all = malloc(one * (size_t)i->samples);
    CHECK_OK(
        s->ops->read(s, 0, plane, 0, i->samples, 0, i->height, 0, i->width, all, row, one, err),
        *err);
    return all;
}

/* The same box with the samples of a pixel side by side holds the same as `box`. */
static void check_interleaved(tgi_source *s, int64_t plane, int s0, int s1, int64_t y0,
                              int64_t y1, int64_t x0, int64_t x1, const uint8_t *box,
                              size_t pitch, size_t spitch)
{
    const size_t size = tgi_dtype_size(s->ops->info(s)->dtype), n = (size_t)(s1 - s0);
    const size_t row = (size_t)(x1 - x0) * n * size + 3;
    uint8_t *got = malloc(row * (size_t)(y1 - y0));
    tgi_err err = {0};
    int equal = 1;
    memset(got, 0xa5, row * (size_t)(y1 - y0));
    CHECK_OK(s->ops->read(s, 0, plane, s0, s1, y0, y1, x0, x1, got, row, TGI_INTERLEAVED, &err),
             err);
    for (size_t y = 0; y < (size_t)(y1 - y0); y++) {
        for (size_t x = 0; x < (size_t)(x1 - x0); x++)
            for (size_t k = 0; k < n; k++)
                equal &= memcmp(got + y * row + (x * n + k) * size,
                                box + k * spitch + y * pitch + x * size, size) == 0;
        equal &= got[y * row + row - 1] == 0xa5; /* the gap stays untouched */
    }
    CHECK(equal);
    free(got);
}

static void check_box(tgi_source *s, const uint8_t *all, int64_t plane, uint64_t *seed)
{
    const tgi_image_info *i = s->ops->info(s);
    const size_t size = tgi_dtype_size(i->dtype);
    const int64_t y0 = tg_rand_in(seed, 0, i->height - 1),
                  x0 = tg_rand_in(seed, 0, i->width - 1);
    const int64_t y1 = tg_rand_in(seed, y0 + 1, i->height);
    const int64_t x1 = tg_rand_in(seed, x0 + 1, i->width);
    const int s0 = (int)tg_rand_in(seed, 0, i->samples - 1);
    const int s1 = (int)tg_rand_in(seed, s0 + 1, i->samples);
    const size_t len = (size_t)(x1 - x0) * size;
    const size_t pitch = len + (size_t)tg_rand_in(seed, 0, 9); /* gaps must stay untouched */
    const size_t spitch = pitch * (size_t)(y1 - y0) + (size_t)tg_rand_in(seed, 0, 9);
    uint8_t *box = malloc(spitch * (size_t)(s1 - s0));
    tgi_err err = {0};
    int equal = 1;
    memset(box, 0xa5, spitch * (size_t)(s1 - s0));
    CHECK_OK(s->ops->read(s, 0, plane, s0, s1, y0, y1, x0, x1, box, pitch, spitch, &err), err);
    for (int k = s0; k < s1; k++)
        for (int64_t y = y0; y < y1; y++) {
            const uint8_t *got = box + (size_t)(k - s0) * spitch + (size_t)(y - y0) * pitch;
            const size_t at = ((size_t)k * (size_t)i->height + (size_t)y) * (size_t)i->width;
            equal &= memcmp(got, all + (at + (size_t)x0) * size, len) == 0;
            for (size_t g = len; g < pitch; g++)
                equal &= got[g] == 0xa5;
        }
    CHECK(equal);
    check_interleaved(s, plane, s0, s1, y0, y1, x0, x1, box, pitch, spitch);
    free(box);
}

static void test_any_box_equals_the_crop_of_the_whole(void)
{
    uint64_t seed = 20240611;
    int boxes = 0;
    DIR *d = opendir(TIFF_DIR);
    printf("seed %llu\n", (unsigned long long)seed);
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[512];
        tgi_err err = {0};
        tgi_source *s = NULL;
        /* Small budgets take the path with fewer slots than a row of tiles. */
        const tgi_open_opts o = {.threads = 1,
                                 .decode_budget = tg_rand(&seed) & 1 ? 0 : 3u << 20};
        snprintf(path, sizeof path, "%s%s", TIFF_DIR, e->d_name);
        if (strcmp(e->d_name, "index.csv") == 0 || e->d_name[0] == '.' ||
            refusal_of(e->d_name) || tgi_source_open(path, &o, &s, &err) != TG_OK)
            continue;
        const int64_t plane = tg_rand_in(&seed, 0, s->ops->info(s)->n_planes - 1);
        uint8_t *all = whole_plane(s, plane, &err);
        const int before = tg_failures;
        for (int b = 0; b < 30; b++, boxes++)
            check_box(s, all, plane, &seed);
        if (tg_failures != before)
            fprintf(stderr, "  in %s\n", e->d_name);
        free(all);
        tgi_source_close(&s);
    }
    if (d)
        closedir(d);
    printf("%d boxes\n", boxes);
    CHECK(boxes >= 45 * 30); /* a few files exceed the small budget */
}

static void test_levels_of_a_pyramid_are_opened_by_number(void)
{
    tgi_err err = {0};
    tgi_source *s = NULL;
    const char *path = TIFF_DIR "derived_ome_pyramid_subifd_bigtiff_deflate.ome.tif";
    for (int level = 0; level < 3; level++) {
        const tgi_open_opts o = {.threads = 1, .level = level};
        CHECK_OK(tgi_source_open(path, &o, &s, &err), err);
        const tgi_image_info *i = s->ops->info(s);
        const int64_t want_h[] = {1094, 547, 274}, want_w[] = {1536, 768, 384};
        CHECK_EQ(i->height, want_h[level]);
        CHECK_EQ(i->width, want_w[level]);
        CHECK_EQ(i->n_levels, 3);
        CHECK_EQ(i->level_w[2], 384);
        free(whole_plane(s, 0, &err));
        tgi_source_close(&s);
    }
    const tgi_open_opts o = {.threads = 1, .level = 3};
    CHECK_STATUS(tgi_source_open(path, &o, &s, &err), TG_E_ARG, err);
}

static void check_size(const char *file, int series, int level, int64_t h, int64_t w, int64_t n)
{
    char path[512];
    tgi_err err = {0};
    tgi_source *s = NULL;
    const tgi_open_opts o = {.threads = 1, .series = series, .level = level};
    snprintf(path, sizeof path, "%s%s", TIFF_DIR, file);
    CHECK_OK(tgi_source_open(path, &o, &s, &err), err);
    if (!s)
        return;
    CHECK_EQ(s->ops->info(s)->height, h);
    CHECK_EQ(s->ops->info(s)->width, w);
    CHECK_EQ(s->ops->info(s)->n_planes, n);
    free(whole_plane(s, n - 1, &err));
    tgi_source_close(&s);
}

static void test_series_beyond_the_first_are_opened_by_number(void)
{
    tgi_err err = {0};
    tgi_source *s = NULL;
    check_size("subifd_chain_tiled_lzw.tif", 0, 1, 128, 256, 2); /* SubIFDs of both pages */
    check_size("subifd_chain_tiled_lzw.tif", 1, 0, 256, 512, 1); /* only page 0 has this one */
    check_size("slide_svs_tiled_jpeg_pyramid.svs", 2, 0, 463, 387, 1); /* the label: LZW */
    const tgi_open_opts o = {.threads = 1, .series = 2};
    CHECK_OK(tgi_source_open(TIFF_DIR "slide_svs_tiled_jpeg_pyramid.svs", &o, &s, &err), err);
    if (s) {
        const tgi_image_info *i = s->ops->info(s);
        CHECK_EQ(i->n_series, 4);
        CHECK_STR(i->series[0].name, "baseline");
        CHECK_STR(i->series[1].name, "thumbnail");
        CHECK_STR(i->series[2].name, "label");
        CHECK_STR(i->series[3].name, "macro");
        CHECK_EQ(i->series[3].width, 1280);
        tgi_source_close(&s);
    }
    const tgi_open_opts none = {.threads = 1, .series = 4};
    CHECK_STATUS(tgi_source_open(TIFF_DIR "slide_svs_tiled_jpeg_pyramid.svs", &none, &s, &err),
                 TG_E_ARG, err);
}

static void test_metadata_of_imagej_and_ome_arrive(void)
{
    tgi_err err = {0};
    tgi_source *s = NULL;
    CHECK_OK(
        tgi_source_open(TIFF_DIR "derived_imagej_hyperstack_t20_z6_c2_u16.tif", NULL, &s, &err),
        err);
    CHECK_STR(s->ops->info(s)->axes, "TZCYX");
    CHECK_STR(s->ops->info(s)->flavor, "imagej");
    CHECK_EQ(s->ops->info(s)->n_planes, 240);
    CHECK_STR(s->ops->info(s)->note, ""); /* it has no tables, and none are missing */
    tgi_source_close(&s);
    CHECK_OK(tgi_source_open(TIFF_DIR "ome_3ch_5z_int8_be.ome.tif", NULL, &s, &err), err);
    CHECK_STR(s->ops->info(s)->axes, "TCZYX"); /* XYZCT, reversed; T of length 1 stays */
    CHECK_EQ(s->ops->info(s)->meta.n_channels, 3);
    tgi_source_close(&s);
}

/* Sizes along y and x of a sample, in micrometres, at a level or in a series; 0: not known. */
static void check_sizes(const char *file, int series, double y, double x)
{
    char path[512];
    tgi_err err = {0};
    tgi_source *s = NULL;
    const tgi_open_opts o = {.threads = 1, .series = series};
    snprintf(path, sizeof path, "%s%s", TIFF_DIR, file);
    CHECK_OK(tgi_source_open(path, &o, &s, &err), err);
    if (!s)
        return;
    const tgi_image_meta *m = &s->ops->info(s)->meta;
    CHECK(fabs(m->physical[1] - y) < 1e-12 && fabs(m->physical[2] - x) < 1e-12);
    CHECK_STR(m->unit[2], x > 0 ? "\xc2\xb5m" : "");
    tgi_source_close(&s);
}

static void test_sizes_that_makers_of_instruments_wrote_are_found(void)
{
    check_sizes("slide_svs_tiled_jpeg_pyramid.svs", 0, 0.499, 0.499);
    check_sizes("slide_svs_tiled_jpeg_pyramid.svs", 1, 0, 0); /* the thumbnail has others */
    check_sizes("sem_fei_u8.tif", 0, 0.00770833, 0.00770833); /* an electron microscope */
}

/* ---- Broken files ---- */

static void read_everything(tgi_source *s, tgi_err *err)
{
    const tgi_image_info *i = s->ops->info(s);
    const size_t row = (size_t)i->width * tgi_dtype_size(i->dtype);
    const int64_t rows = tgi_min(i->height, 16);
    if (row > 1u << 20 || i->samples > 64)
        return; /* opened, and too large to look at here */
    uint8_t *buf = malloc(row * (size_t)rows * (size_t)i->samples);
    for (int64_t p = 0; p < tgi_min(i->n_planes, 8); p++)
        for (int64_t y = 0; y < tgi_min(i->height, 4096); y += rows) {
            const int64_t ye = tgi_min(i->height, y + rows);
            const tg_status st = s->ops->read(s, 0, p, 0, i->samples, y, ye, 0, i->width, buf,
                                              row, row * (size_t)rows, err);
            CHECK(st == TG_OK || st == TG_E_FORMAT || st == TG_E_UNSUPPORTED);
            if (st != TG_OK)
                *err = (tgi_err){0};
        }
    free(buf);
}

static void test_broken_files_end_in_a_status_and_little_memory(void)
{
    int n = 0, opened = 0;
    DIR *d = opendir(BAD_DIR);
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[512];
        if (e->d_name[0] != '.') {
            const tgi_open_opts o = {.threads = 1};
            tgi_err err = {0};
            tgi_source *s = NULL;
            snprintf(path, sizeof path, "%s%s", BAD_DIR, e->d_name);
            const tg_status st = tgi_source_open(path, &o, &s, &err);
            CHECK(st == TG_OK || st == TG_E_FORMAT || st == TG_E_UNSUPPORTED ||
                  st == TG_E_BUDGET);
            CHECK(st == TG_OK || err.text[0]);
            if (st == TG_OK) {
                opened++;
                read_everything(s, &err);
            }
            tgi_source_close(&s);
            n++;
        }
    }
    if (d)
        closedir(d);
    tgi_mem_stats m;
    tgi_mem_get_stats(&m);
    printf("%d openings, %d succeeded, peak %zu bytes\n", n, opened, m.peak_bytes);
    CHECK_EQ(n, 34);
    CHECK(m.peak_bytes < 32u << 20);
}

int main(void)
{
    if (access(TIFF_DIR "index.csv", R_OK) != 0)
        TEST_SKIP("no sample images");
    RUN(test_sample_files_match_their_sums_or_are_refused_by_name);
    RUN(test_any_box_equals_the_crop_of_the_whole);
    RUN(test_levels_of_a_pyramid_are_opened_by_number);
    RUN(test_series_beyond_the_first_are_opened_by_number);
    RUN(test_metadata_of_imagej_and_ome_arrive);
    RUN(test_sizes_that_makers_of_instruments_wrote_are_found);
    RUN(test_broken_files_end_in_a_status_and_little_memory);
    return TEST_END();
}

/* Copy: what goes through the reader and the writer comes out as it went in. */
#include "job_help.h"

#include "engine/base/clock.h"

#define TIFF_DIR TG_SHARED_DATA "/data/tiff/"

static uint64_t seed = 20261;

/* A made-up stack of 16-bit planes as .npy; the pixels stay in `stack`. */
enum { PLANES = 5, HEIGHT = 70, WIDTH = 300 };
static uint16_t stack[PLANES][HEIGHT][WIDTH];

static void make_stack(void)
{
    const tgi_desc d = {TG_DTYPE_U16, 3, {PLANES, HEIGHT, WIDTH}};
    tgi_err err = {0};
    for (int p = 0; p < PLANES; p++)
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++)
                stack[p][y][x] = (uint16_t)(1000 * p + 3 * y + x + tg_rand_in(&seed, 0, 30));
    CHECK_OK(tgi_npy_save(in_folder("stack.npy"), &d, stack, &err), err);
}

static void check_equal_to_stack(const char *path)
{
    tgi_err err = {0};
    tgi_desc d = {0};
    void *data = NULL;
    CHECK_OK(tgi_npy_load(path, 0, &d, &data, &err), err);
    CHECK_EQ(d.dtype, TG_DTYPE_U16);
    CHECK_EQ(d.dim[0], PLANES);
    CHECK(data && memcmp(data, stack, sizeof stack) == 0);
    tgi_free(data);
}

static void test_an_array_survives_the_way_through_every_compression(void)
{
    static const char *const codecs[] = {"none", "deflate", "deflate:9", "zstd", "lzw"};
    for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++) {
        CHECK_COPY(TG_OK, "input", in_folder("stack.npy"), "output", in_folder("stack.tif"),
                   "compress", codecs[i], "yes", "");
        CHECK_COPY(TG_OK, "input", in_folder("stack.tif"), "output", in_folder("back.npy"),
                   "yes", "");
        check_equal_to_stack(in_folder("back.npy"));
        CHECK(!exists(in_folder("stack.tif.journal")));
        CHECK(!exists(in_folder("stack.tif.partial")));
        CHECK(!exists(in_folder("back.npy.partial")));
    }
}

static void check_box(const char *path, const int *planes, int n, int y0, int y1, int x0,
                      int x1)
{
    tgi_source *s = open_image(path);
    if (!s)
        return;
    const tgi_image_info *info = s->ops->info(s);
    CHECK_EQ(info->n_planes, n);
    CHECK_EQ(info->height, y1 - y0);
    CHECK_EQ(info->width, x1 - x0);
    for (int p = 0; p < n && info->n_planes == n; p++) {
        uint16_t *got = pixels_of(s, p, 0, y1 - y0, 0, x1 - x0);
        int wrong = 0;
        for (int y = y0; y < y1; y++)
            for (int x = x0; x < x1; x++)
                wrong += got[(y - y0) * (x1 - x0) + x - x0] != stack[planes[p]][y][x];
        CHECK_EQ(wrong, 0);
        free(got);
    }
    tgi_source_close(&s);
}

static void test_a_box_and_some_planes_are_those_of_the_input(void)
{
    static const int planes[] = {1, 3, 4}, all[] = {0, 1, 2, 3, 4};
    static const char *const out[] = {"box.tif", "box.npy"};
    for (int i = 0; i < 2; i++) {
        CHECK_COPY(TG_OK, "input", in_folder("stack.npy"), "output", in_folder(out[i]), "roi",
                   "10:51,20:290", "planes", "1,3-");
        check_box(in_folder(out[i]), planes, 3, 10, 51, 20, 290);
        CHECK_COPY(TG_OK, "input", in_folder("stack.npy"), "output", in_folder(out[i]), "roi",
                   "69:,299:", "yes", "");
        check_box(in_folder(out[i]), all, 5, 69, 70, 299, 300);
    }
    CHECK_COPY(TG_E_ARG, "input", in_folder("stack.npy"), "output", in_folder("no.tif"), "roi",
               "10:71,0:5");
    CHECK_COPY(TG_E_ARG, "input", in_folder("stack.npy"), "output", in_folder("no.tif"),
               "planes", "5");
    CHECK(!exists(in_folder("no.tif")));
}

static void test_conversion_rounds_half_to_even_and_clips(void)
{
    const float in[8] = {0.5f, 1.5f, 2.5f, -3.0f, 300.0f, NAN, 254.5f, 7.25f};
    const uint8_t want[8] = {0, 2, 2, 0, 255, 0, 254, 7};
    const tgi_desc d = {TG_DTYPE_F32, 2, {1, 8}};
    tgi_err err = {0};
    static const char *const out[] = {"f.tif", "f.npy"};
    CHECK_OK(tgi_npy_save(in_folder("floats.npy"), &d, in, &err), err);
    for (int i = 0; i < 2; i++) {
        CHECK_COPY(TG_OK, "input", in_folder("floats.npy"), "output", in_folder(out[i]),
                   "dtype", "uint8", "axes", "YX");
        tgi_desc got = {0};
        void *data = NULL;
        if (i == 0)
            CHECK_COPY(TG_OK, "input", in_folder("f.tif"), "output", in_folder("g.npy"));
        CHECK_OK(tgi_npy_load(in_folder(i ? "f.npy" : "g.npy"), 0, &got, &data, &err), err);
        CHECK_EQ(got.dtype, TG_DTYPE_U8);
        CHECK(data && memcmp(data, want, sizeof want) == 0);
        tgi_free(data);
    }
}

static void test_an_output_that_exists_is_left_alone(void)
{
    static const char *const out[] = {"there.tif", "there.npy"};
    for (int i = 0; i < 2; i++) {
        char text[8] = {0};
        FILE *f = fopen(in_folder(out[i]), "wb");
        CHECK(f && fputs("mine", f) >= 0 && fclose(f) == 0);
        CHECK_COPY(TG_E_EXISTS, "input", in_folder("stack.npy"), "output", in_folder(out[i]));
        CHECK(strstr(tg_ctx_detail(ctx), "-y") != NULL);
        f = fopen(in_folder(out[i]), "rb");
        CHECK(f && fread(text, 1, 7, f) == 4 && fclose(f) == 0);
        CHECK_STR(text, "mine");
        CHECK_COPY(TG_OK, "input", in_folder("stack.npy"), "output", in_folder(out[i]), "yes",
                   "");
        static const int all[] = {0, 1, 2, 3, 4};
        check_box(in_folder(out[i]), all, PLANES, 0, HEIGHT, 0, WIDTH);
    }
}

static void test_a_missing_input_leaves_no_output(void)
{
    CHECK_COPY(TG_E_NOT_FOUND, "input", in_folder("absent.tif"), "output",
               in_folder("none.tif"));
    CHECK_COPY(TG_E_ARG, "input", in_folder("stack.npy"));
    CHECK(!exists(in_folder("none.tif")));
    CHECK(!exists(in_folder("none.tif.partial")));
}

/* ---- Real files -------------------------------------------------------------------------- */

static void compare_images(const char *a_path, const char *b_path)
{
    tgi_source *a = open_image(a_path), *b = open_image(b_path);
    if (a && b) {
        const tgi_image_info *i = a->ops->info(a), *k = b->ops->info(b);
        const int same = i->n_planes == k->n_planes && i->height == k->height &&
                         i->width == k->width && i->samples == k->samples;
        const tg_dtype want = i->dtype == TG_DTYPE_BOOL ? TG_DTYPE_U8 : i->dtype;
        CHECK(same);
        CHECK(k->dtype == want || k->dtype == i->dtype);
        const size_t n = (size_t)(i->height * i->width * i->samples) * tgi_dtype_size(i->dtype);
        int wrong = 0;
        for (int64_t p = 0; same && p < i->n_planes; p++) {
            void *x = pixels_of(a, p, 0, i->height, 0, i->width);
            void *y = pixels_of(b, p, 0, i->height, 0, i->width);
            wrong += !x || !y || memcmp(x, y, n) != 0;
            free(x);
            free(y);
        }
        CHECK_EQ(wrong, 0);
        if (!same || wrong)
            fprintf(stderr, "  %s: axes %s became %s\n", a_path, i->axes, k->axes);
    }
    if (a)
        tgi_source_close(&a);
    if (b)
        tgi_source_close(&b);
}

/* Every shared file that this build reads and that is small: to TIFF and as TIFF again. */
static void test_real_files_come_out_with_the_same_pixels(void)
{
    DIR *d = opendir(TIFF_DIR);
    int copied = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[512];
        tgi_err err = {0};
        tgi_source *s = NULL;
        const tgi_open_opts o = {.threads = 1};
        snprintf(path, sizeof path, "%s%s", TIFF_DIR, e->d_name);
        if (e->d_name[0] == '.' || !strstr(e->d_name, ".tif") ||
            tgi_source_open(path, &o, &s, &err) != TG_OK)
            continue;
        const tgi_image_info *i = s->ops->info(s);
        const int small = i->n_planes * i->height * i->width * i->samples < 3000000;
        tgi_source_close(&s);
        if (!small)
            continue;
        CHECK_COPY(TG_OK, "input", path, "output", in_folder("real.tif"), "compress",
                   copied % 2 ? "zstd" : "none", "yes", "");
        compare_images(path, in_folder("real.tif"));
        copied++;
    }
    if (d)
        closedir(d);
    printf("     %d files\n", copied);
    CHECK(copied >= 25);
}

static void test_interleaved_samples_keep_their_place_in_an_array(void)
{
    tgi_source *s = open_image(TIFF_DIR "rgb_u16.tif");
    if (!s)
        return;
    const tgi_image_info *i = s->ops->info(s);
    const int64_t h = i->height, w = i->width;
    uint16_t *want = pixels_of(s, 0, 0, h, 0, w);
    CHECK_EQ(i->samples, 3);
    tgi_desc d = {0};
    void *data = NULL;
    tgi_err err = {0};
    CHECK_COPY(TG_OK, "input", TIFF_DIR "rgb_u16.tif", "output", in_folder("rgb.npy"));
    CHECK_OK(tgi_npy_load(in_folder("rgb.npy"), 0, &d, &data, &err), err);
    CHECK_EQ(d.rank, 3);
    CHECK_EQ(d.dim[2], 3);
    int wrong = 0;
    for (int64_t k = 0; data && k < h * w; k++)
        for (int c = 0; c < 3; c++)
            wrong += ((uint16_t *)data)[3 * k + c] != want[c * h * w + k];
    CHECK_EQ(wrong, 0);
    tgi_free(data);
    free(want);
    tgi_source_close(&s);
}

static void count_events(void *user, const tg_progress *p)
{
    *(int *)user += strcmp(p->phase, "copy") != 0;
}

/* Each event looks at the process, which costs as much as a row: they come by time, not by rows. */
static void test_events_of_objects_come_by_time(void)
{
    int events = 0;
    tg_ctx *watched = NULL;
    tg_opts *o = NULL;
    const tg_ctx_opts how = {.size = sizeof how, .progress = count_events, .user = &events};
    CHECK_EQ(tg_ctx_open(&how, &watched), TG_OK);
    CHECK_EQ(tg_opts_new(watched, &o), TG_OK);
    CHECK_EQ(tg_opts_set(o, "input", in_folder("stack.npy")), TG_OK);
    CHECK_EQ(tg_opts_set(o, "output", in_folder("objects.tif")), TG_OK);
    CHECK_EQ(tg_opts_set(o, "post", "threshold:2000,label"), TG_OK);
    const double begun = tgi_seconds();
    CHECK_EQ(tg_copy(watched, o), TG_OK);
    const double most = 10 + (tgi_seconds() - begun) / 0.02;
    CHECK(events > 0);
    CHECK(events <= most);
    tg_opts_free(&o);
    tg_ctx_close(&watched);
}

int main(void)
{
    help_open();
    make_stack();
    RUN(test_an_array_survives_the_way_through_every_compression);
    RUN(test_a_box_and_some_planes_are_those_of_the_input);
    RUN(test_conversion_rounds_half_to_even_and_clips);
    RUN(test_an_output_that_exists_is_left_alone);
    RUN(test_a_missing_input_leaves_no_output);
    RUN(test_events_of_objects_come_by_time);
    if (tg_has(TIFF_DIR "rgb_u16.tif")) {
        RUN(test_real_files_come_out_with_the_same_pixels);
        RUN(test_interleaved_samples_keep_their_place_in_an_array);
    }
    help_close();
    return TEST_END();
}

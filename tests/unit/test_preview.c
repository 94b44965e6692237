/* Preview: the picture holds the pixels that the full run writes. */
#include "engine/post/otsu.h"
#include "engine/verbs/preview_objects.h"
#include "job_help.h"
#include "tests/made_nets.h"

#include <zlib.h>

#define MODEL TG_SOURCE_DIR "/models/tegula_denoise.onnx"
#define SUPER TG_SHARED_DATA "/data/models/fsrcnn_x2/model.onnx"

enum { HEIGHT = 600, WIDTH = 1100, CROP = 256 };

static uint64_t seed = 77;

/* ---- Reading the picture ----------------------------------------------------------------- */

typedef struct picture {
    int64_t h, w;
    int samples;
    uint8_t *pixels;
} picture;

static uint32_t u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void unfilter(picture *p, const uint8_t *rows)
{
    const int64_t n = p->w * p->samples;
    for (int64_t y = 0; y < p->h; y++, rows += n + 1) {
        CHECK(rows[0] <= 2);
        for (int64_t i = 0; i < n; i++) {
            const int left = i < p->samples ? 0 : p->pixels[y * n + i - p->samples];
            const int up = y ? p->pixels[(y - 1) * n + i] : 0;
            const int predicted = rows[0] == 1 ? left : rows[0] == 2 ? up : 0;
            p->pixels[y * n + i] = (uint8_t)(rows[1 + i] + predicted);
        }
    }
}

/* Pixels are released with free. */
static picture read_png(const char *path)
{
    static uint8_t file[8 << 20], idat[8 << 20];
    picture p = {0};
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(file, 1, sizeof file, f) : 0;
    size_t packed = 0;
    if (f)
        fclose(f);
    CHECK(n > 33 && memcmp(file, "\x89PNG\r\n\x1a\n", 8) == 0);
    for (size_t at = 8; at + 12 <= n; at += u32(file + at) + 12) {
        const uint8_t *data = file + at + 8;
        if (memcmp(file + at + 4, "IHDR", 4) == 0)
            p = (picture){u32(data + 4), u32(data), data[9] == 2 ? 3 : 1, NULL};
        if (memcmp(file + at + 4, "IDAT", 4) == 0) {
            memcpy(idat + packed, data, u32(file + at));
            packed += u32(file + at);
        }
    }
    uLongf raw = (uLongf)(p.h * (p.w * p.samples + 1));
    uint8_t *rows = malloc(raw);
    p.pixels = malloc(raw);
    CHECK(rows && p.pixels && uncompress(rows, &raw, idat, packed) == Z_OK);
    CHECK_EQ(raw, p.h * (p.w * p.samples + 1));
    unfilter(&p, rows);
    free(rows);
    return p;
}

/* ---- Jobs -------------------------------------------------------------------------------- */

static tg_status job(int preview, const char *model, const char *input, const char *output,
                     const char *name, const char *value)
{
    tg_opts *o = NULL;
    tg_job *j = NULL;
    CHECK_EQ(tg_opts_new(ctx, &o), TG_OK);
    CHECK_EQ(tg_opts_set(o, "model", model), TG_OK);
    CHECK_EQ(tg_opts_set(o, "input", input), TG_OK);
    CHECK_EQ(tg_opts_set(o, "output", output), TG_OK);
    CHECK_EQ(tg_opts_set(o, "normalize", "percentile:2,99"), TG_OK);
    CHECK_EQ(tg_opts_set(o, "ram", "200MiB"), TG_OK);
    CHECK_EQ(tg_opts_set(o, "threads", "2"), TG_OK);
    if (name)
        CHECK_EQ(tg_opts_set(o, name, value), TG_OK);
    tg_status st = tg_job_open(ctx, o, &j);
    if (st == TG_OK)
        st = preview ? tg_job_preview(j) : tg_job_run(j, NULL);
    tg_job_close(&j);
    tg_opts_free(&o);
    return st;
}

#define CHECK_JOB(want, ...)                                                                   \
    do {                                                                                       \
        const tg_status got_ = job(__VA_ARGS__);                                               \
        if (got_ != (want))                                                                    \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, tg_ctx_detail(ctx));            \
        CHECK_EQ(got_, want);                                                                  \
    } while (0)

/* Flat, with noise in three crops of the grid; the strongest at (1,0), then (0,2), then (1,3).
 */
static void make_image(void)
{
    const tgi_desc d = {TG_DTYPE_F32, 2, {HEIGHT, WIDTH}};
    static float v[HEIGHT][WIDTH];
    tgi_err err = {0};
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            const int gy = y / CROP, gx = x / CROP;
            const float a = gy == 1 && gx == 0   ? 9
                            : gy == 0 && gx == 2 ? 6
                            : gy == 1 && gx == 3 ? 4
                                                 : 0.5f;
            v[y][x] = 50 + a * tg_rand_unit(&seed) + 0.01f * (float)x;
        }
    CHECK_OK(tgi_npy_save(in_folder("image.npy"), &d, v, &err), err);
    CHECK_COPY(TG_OK, "input", in_folder("image.npy"), "output", in_folder("image.tif"), "axes",
               "YX");
    /* Apart from its descriptor the network's output stays in its own units. */
    CHECK_EQ(symlink(MODEL, in_folder("net.onnx")), 0);
}

static void test_objects_are_outlined(void)
{
    enum { SIDE = 8, GAP = 6 };
    float raw[SIDE * SIDE], y[SIDE * SIDE], scratch[3 * SIDE * SIDE];
    for (int i = 0; i < SIDE * SIDE; i++) {
        raw[i] = (float)(i % 7);
        y[i] = i % SIDE < 4 ? 1 : 2;
    }
    const tgi_panel a = {.data = raw, .h = SIDE, .w = SIDE, .channels = 1};
    tgi_panel b = {
        .data = y, .h = SIDE, .w = SIDE, .channels = 1, .objects = TGI_PANEL_NUMBERS};
    void *memory = malloc(TGI_OTSU_BYTES);
    CHECK(memory != NULL);
    for (int above = 0; above < 4; above++) {
        tgi_picture p = tgi_picture_layout(1, &a, &b);
        CHECK_EQ(p.samples, 3);
        p.pixels = malloc((size_t)(p.height * p.width) * 3);
        tgi_picture_begin(&p);
        tgi_picture_row(&p, 0, &a, &b, scratch);
        for (int r = 0; r < SIDE; r++)
            for (int c = 0; c < SIDE; c++) {
                const uint8_t *q =
                    p.pixels + ((GAP + r) * p.width + 3 * GAP + 2 * SIDE + c) * 3;
                const int edge = q[0] == 255 && q[1] == 220 && q[2] == 0;
                CHECK_EQ(edge, c == 3); /* the pixel that has another object beside it */
                CHECK(edge || (q[0] == q[1] && q[1] == q[2]));
            }
        free(p.pixels);
        b.objects = above ? TGI_PANEL_OTSU : TGI_PANEL_ABOVE;
        b.level = above ? 0 : 1.5f; /* 2 is an object, 1 is none: the same outline */
        b.sigmoid = above == 2;
        CHECK_EQ(tgi_preview_objects_bytes(&b), above ? TGI_OTSU_BYTES : 0);
        tgi_preview_objects_level(&b, memory);
        CHECK(b.level >= 1 && b.level < 2);
    }
    free(memory);
}

/* The picture that the input and the full run's output give at these places. */
static void check_against(const char *output, const char *png, const int64_t (*at)[2], int n,
                          double mul, double add)
{
    static float raw[CROP * CROP], scratch[3 * CROP * CROP];
    tgi_source *in = open_image(in_folder("image.tif")), *out = open_image(output);
    picture got = read_png(png);
    for (int i = 0; in && out && i < n; i++) {
        float *x = pixels_of(in, 0, at[i][0], at[i][0] + CROP, at[i][1], at[i][1] + CROP);
        float *y = pixels_of(out, 0, at[i][0], at[i][0] + CROP, at[i][1], at[i][1] + CROP);
        for (int k = 0; k < CROP * CROP; k++)
            raw[k] = x[k] * (float)mul + (float)add;
        const tgi_panel a = {.data = raw, .h = CROP, .w = CROP, .channels = 1},
                        b = {.data = y, .h = CROP, .w = CROP, .channels = 1};
        tgi_picture want = tgi_picture_layout(n, &a, &b);
        want.pixels = malloc((size_t)(want.height * want.width));
        CHECK_EQ(got.h, want.height);
        CHECK_EQ(got.w, want.width);
        CHECK_EQ(got.samples, 1);
        tgi_picture_begin(&want);
        tgi_picture_row(&want, i, &a, &b, scratch);
        const size_t from = (size_t)(want.height / n * i * want.width);
        const size_t rows = (size_t)(CROP * want.width);
        CHECK(memcmp(got.pixels + from + 6 * (size_t)want.width,
                     want.pixels + from + 6 * (size_t)want.width, rows) == 0);
        free(want.pixels);
        free(x);
        free(y);
    }
    free(got.pixels);
    if (in)
        tgi_source_close(&in);
    if (out)
        tgi_source_close(&out);
}

static void check_against_run(const char *png, const int64_t (*at)[2], int n, double mul,
                              double add)
{
    check_against(in_folder("out.tif"), png, at, n, mul, add);
}

/* The map of --normalize percentile:2,99, from the run's receipt of statistics. */
static void map_of_statistics(double *mul, double *add)
{
    char text[4096] = {0};
    FILE *f = fopen(in_folder("stats.json"), "rb");
    CHECK(f && fread(text, 1, sizeof text - 1, f) > 0);
    if (f)
        fclose(f);
    const char *low = strstr(text, "\"low\":"), *high = strstr(text, "\"high\":");
    CHECK(low && high);
    if (!low || !high)
        return;
    const double lo = strtod(low + 6, NULL), hi = strtod(high + 7, NULL);
    *mul = 1.0 / (hi - lo);
    *add = -lo * *mul;
}

static void test_the_densest_places_show_what_the_run_writes(void)
{
    static const int64_t places[3][2] = {{256, 0}, {0, 512}, {256, 768}};
    double mul = 1, add = 0;
    CHECK_JOB(TG_OK, 0, in_folder("net.onnx"), in_folder("image.tif"), in_folder("out.tif"),
              "stats", in_folder("stats.json"));
    map_of_statistics(&mul, &add);
    CHECK_JOB(TG_OK, 1, in_folder("net.onnx"), in_folder("image.tif"), in_folder("three.png"),
              NULL, NULL);
    check_against_run(in_folder("three.png"), places, 3, mul, add);
}

static void test_a_place_that_is_asked_for_is_shown_alone(void)
{
    double mul = 1, add = 0;
    map_of_statistics(&mul, &add);
    /* the centre moves to a multiple of the network's period, and inside the image */
    static const int64_t middle[1][2] = {{172, 384}}, corner[1][2] = {{344, 844}};
    CHECK_JOB(TG_OK, 1, in_folder("net.onnx"), in_folder("image.tif"), in_folder("at.png"),
              "at", "300,513");
    check_against_run(in_folder("at.png"), middle, 1, mul, add);
    CHECK_JOB(TG_OK, 1, in_folder("net.onnx"), in_folder("image.tif"), in_folder("corner.png"),
              "at", "599,1099");
    check_against_run(in_folder("corner.png"), corner, 1, mul, add);
    CHECK_JOB(TG_E_ARG, 1, in_folder("net.onnx"), in_folder("image.tif"), in_folder("no.png"),
              "at", "600,0");
    CHECK(!exists(in_folder("no.png")));
}

static void test_an_existing_picture_is_left_alone(void)
{
    char text[8] = {0};
    FILE *f = fopen(in_folder("mine.png"), "wb");
    CHECK(f && fputs("mine", f) >= 0 && fclose(f) == 0);
    CHECK_JOB(TG_E_EXISTS, 1, in_folder("net.onnx"), in_folder("image.tif"),
              in_folder("mine.png"), NULL, NULL);
    f = fopen(in_folder("mine.png"), "rb");
    CHECK(f && fread(text, 1, 7, f) == 4 && fclose(f) == 0);
    CHECK_STR(text, "mine");
    CHECK_JOB(TG_OK, 1, in_folder("net.onnx"), in_folder("image.tif"), in_folder("mine.png"),
              "yes", "");
}

static void test_a_small_image_is_one_panel_of_its_own_size(void)
{
    CHECK_JOB(TG_OK, 1, in_folder("net.onnx"), in_folder("image.tif"), in_folder("small.png"),
              "roi", "3:53,10:77");
    picture p = read_png(in_folder("small.png"));
    CHECK_EQ(p.h, 50 + 2 * 6);
    CHECK_EQ(p.w, 3 * 67 + 4 * 6);
    free(p.pixels);
}

/* At the right border a crop reaches further left than a cell of its size in the middle. */
static void test_crops_fit_images_of_any_width(void)
{
    static const char *const roi[] = {"0:300,0:512", "0:300,0:516", "0:300,0:768",
                                      "0:300,0:600", "0:520,0:1024"};
    for (size_t i = 0; i < sizeof roi / sizeof roi[0]; i++) {
        CHECK_JOB(TG_OK, 1, in_folder("net.onnx"), in_folder("image.tif"),
                  in_folder("width.png"), "roi", roi[i]);
        CHECK_EQ(unlink(in_folder("width.png")), 0);
    }
}

static void test_super_resolution_enlarges_the_raw_panel(void)
{
    CHECK_JOB(TG_OK, 1, SUPER, in_folder("image.tif"), in_folder("super.png"), "at", "300,500");
    picture p = read_png(in_folder("super.png"));
    CHECK_EQ(p.h, CROP + 2 * 6);
    CHECK_EQ(p.w, 3 * CROP + 4 * 6);
    int unequal = 0, result_blocks = 0;
    for (int64_t y = 6; y < 6 + CROP; y += 2)
        for (int64_t x = 6; x < 6 + CROP; x += 2) {
            const uint8_t *a = p.pixels + y * p.w + x, *b = a + CROP + 6;
            unequal += a[0] != a[1] || a[0] != a[p.w] || a[0] != a[p.w + 1];
            result_blocks += b[0] == b[1] && b[0] == b[p.w] && b[0] == b[p.w + 1];
        }
    CHECK_EQ(unequal, 0);
    CHECK(result_blocks < CROP * CROP / 8);
    free(p.pixels);
}

/* A network that gives back what it gets: a 1x1 convolution with ones on the diagonal, over
 * `rank` - 2 axes. */
static void make_identity(const char *path, int channels, int rank)
{
    const int64_t open[5] = {1, channels, 0, 0, 0}, w_dim[5] = {channels, channels, 1, 1, 1};
    static const char *const in[] = {"x", "w", NULL};
    float w[9] = {0};
    bytes g = {0};
    for (int i = 0; i < channels; i++)
        w[i * (channels + 1)] = 1;
    b_port(&g, 11, "x", rank, open);
    b_port(&g, 12, "y", rank, open);
    b_init(&g, "w", 1, rank, w_dim, w, sizeof *w * (size_t)(channels * channels));
    b_node(&g, "Conv", in, "y", NULL);
    bytes m = b_model(&g, 13);
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(m.p, 1, m.n, f) == m.n && fclose(f) == 0);
    b_free(&m);
}

enum { SIDE = 64, GAP = 6 };

/* Sample k of the raw panel (0) or the result (1) at (y, x). */
static int shown(const picture *p, int panel, int64_t y, int64_t x, int k)
{
    return p->pixels[((GAP + y) * p->w + GAP + panel * (SIDE + GAP) + x) * p->samples + k];
}

/* Of an identity network: one row of three panels, raw and result the same. */
static void check_panels(const picture *p, int samples)
{
    int unequal = 0;
    CHECK_EQ(p->samples, samples);
    CHECK_EQ(p->h, SIDE + 2 * GAP);
    CHECK_EQ(p->w, 3 * SIDE + 4 * GAP);
    for (int64_t y = 0; y < SIDE; y++)
        for (int64_t x = 0; x < SIDE; x++)
            for (int k = 0; k < samples; k++)
                unequal += shown(p, 0, y, x, k) != shown(p, 1, y, x, k);
    CHECK_EQ(unequal, 0);
}

static void test_colours_keep_their_places(void)
{
    const tgi_desc d = {TG_DTYPE_U8, 3, {SIDE, SIDE, 3}};
    static uint8_t v[SIDE][SIDE][3];
    tgi_err err = {0};
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            v[y][x][0] = (uint8_t)(3 * x); /* red grows to the right, green down */
            v[y][x][1] = (uint8_t)(3 * y);
            v[y][x][2] = (uint8_t)(189 - 3 * x); /* blue to the left */
        }
    CHECK_OK(tgi_npy_save(in_folder("rgb.npy"), &d, v, &err), err);
    CHECK_COPY(TG_OK, "input", in_folder("rgb.npy"), "output", in_folder("rgb.tif"), "axes",
               "YXS");
    make_identity(in_folder("rgb.onnx"), 3, 4);
    CHECK_JOB(TG_OK, 1, in_folder("rgb.onnx"), in_folder("rgb.tif"), in_folder("rgb.png"), NULL,
              NULL);
    picture p = read_png(in_folder("rgb.png"));
    check_panels(&p, 3);
    CHECK(shown(&p, 0, 32, 60, 0) > shown(&p, 0, 32, 3, 0) + 100);
    CHECK(shown(&p, 0, 60, 32, 1) > shown(&p, 0, 3, 32, 1) + 100);
    CHECK(shown(&p, 0, 32, 3, 2) > shown(&p, 0, 32, 60, 2) + 100);
    CHECK_NEAR(shown(&p, 0, 3, 32, 0), shown(&p, 0, 60, 32, 0), 1);
    free(p.pixels);
}

static void test_of_a_volume_the_middle_slab_is_shown(void)
{
    enum { DEPTH = 7 };
    const tgi_desc d = {TG_DTYPE_U8, 3, {DEPTH, SIDE, SIDE}};
    static uint8_t v[DEPTH][SIDE][SIDE];
    tgi_err err = {0};
    for (int z = 0; z < DEPTH; z++) /* stripes lie down but in the middle, where they stand */
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++)
                v[z][y][x] = (uint8_t)((z == DEPTH / 2 ? x : y) / 8 % 2 ? 200 : 20);
    CHECK_OK(tgi_npy_save(in_folder("volume.npy"), &d, v, &err), err);
    CHECK_COPY(TG_OK, "input", in_folder("volume.npy"), "output", in_folder("volume.tif"),
               "axes", "ZYX");
    make_identity(in_folder("volume.onnx"), 1, 5);
    CHECK_JOB(TG_OK, 1, in_folder("volume.onnx"), in_folder("volume.tif"),
              in_folder("volume.png"), NULL, NULL);
    picture p = read_png(in_folder("volume.png"));
    check_panels(&p, 1);
    CHECK(shown(&p, 0, 4, 12, 0) > shown(&p, 0, 4, 4, 0) + 100);
    CHECK_EQ(shown(&p, 0, 4, 4, 0), shown(&p, 0, 12, 4, 0));
    free(p.pixels);
    CHECK_JOB(TG_OK, 1, in_folder("volume.onnx"), in_folder("volume.tif"),
              in_folder("first.png"), "at", "0,32,32");
    p = read_png(in_folder("first.png"));
    check_panels(&p, 1);
    CHECK(shown(&p, 0, 12, 4, 0) > shown(&p, 0, 4, 4, 0) + 100);
    free(p.pixels);
}

/* A cell of all rows has no room above and below the image, the crop's halo ends at its edge. */
static void test_crops_fit_volumes_of_any_height(void)
{
    enum { MOST = 300, DEPTH = 5 };
    static const char *const roi[] = {"0:64,0:64", "0:200,0:300", "0:257,0:257", "0:300,0:300"};
    static const int64_t open[3] = {0, 0, 0}, k[3] = {3, 3, 3};
    const tgi_desc d = {TG_DTYPE_U8, 3, {DEPTH, MOST, MOST}};
    static uint8_t v[DEPTH][MOST][MOST];
    tgi_err err = {0};
    for (int z = 0; z < DEPTH; z++)
        for (int y = 0; y < MOST; y++)
            for (int x = 0; x < MOST; x++)
                v[z][y][x] = (uint8_t)tg_rand_in(&seed, 0, 255);
    CHECK_OK(tgi_npy_save(in_folder("rows.npy"), &d, v, &err), err);
    CHECK_COPY(TG_OK, "input", in_folder("rows.npy"), "output", in_folder("rows.tif"), "axes",
               "ZYX");
    made m = made_begin(3, 1, open);
    made_conv(&m, made_conv(&m, "x", 1, 4, k, 1, 1, NULL), 4, 1, k, 1, 1, "y");
    made_end(&m, in_folder("rows.onnx"));
    for (size_t i = 0; i < sizeof roi / sizeof roi[0]; i++) {
        CHECK_JOB(TG_OK, 1, in_folder("rows.onnx"), in_folder("rows.tif"),
                  in_folder("rows.png"), "roi", roi[i]);
        CHECK_EQ(unlink(in_folder("rows.png")), 0);
    }
}

/* ---- Networks that read the whole image -------------------------------------------------- */

/* A norm over all pixels, among two convolutions over `side` pixels to and from `channels`. */
static void make_norm(const char *path, int spatial, int64_t channels, int64_t side)
{
    static const int64_t open[3] = {0, 0, 0};
    const int64_t k[3] = {side, side, side};
    float ones[64], zeros[64] = {0};
    made m = made_begin(spatial, 1, open);
    for (int i = 0; i < 64; i++)
        ones[i] = 1;
    const char *scale = made_name(&m), *shift = made_name(&m);
    b_init(&m.g, scale, 1, 1, &channels, ones, sizeof *ones * (size_t)channels);
    b_init(&m.g, shift, 1, 1, &channels, zeros, sizeof *zeros * (size_t)channels);
    const char *a = channels > 1 ? made_conv(&m, "x", 1, channels, k, 1, side / 2, NULL) : "x";
    const char *b = made_node(&m, "InstanceNormalization", a, scale, shift, NULL, NULL,
                              channels > 1 ? NULL : "y");
    if (channels > 1)
        made_conv(&m, b, channels, 1, k, 1, side / 2, "y");
    made_end(&m, path);
}

/* In a budget that all of the image does not fit: the crops come out of stages, and are those of a
 * run in one; what passes between them may lie on disk. */
static void test_a_network_with_norms_is_shown_in_stages(void)
{
    static const int64_t places[3][2] = {{256, 0}, {0, 512}, {256, 768}},
                         middle[1][2] = {{172, 385}};
    double mul = 1, add = 0;
    map_of_statistics(&mul, &add);
    make_norm(in_folder("norm.onnx"), 2, 32, 3);
    CHECK_JOB(TG_OK, 0, in_folder("norm.onnx"), in_folder("image.tif"), in_folder("normed.tif"),
              "ram", "1GiB");
    CHECK_JOB(TG_OK, 1, in_folder("norm.onnx"), in_folder("image.tif"), in_folder("much.png"),
              "ram", "1GiB");
    check_against(in_folder("normed.tif"), in_folder("much.png"), places, 3, mul, add);
    CHECK_JOB(TG_OK, 1, in_folder("norm.onnx"), in_folder("image.tif"), in_folder("little.png"),
              "ram", "24MiB");
    check_against(in_folder("normed.tif"), in_folder("little.png"), places, 3, mul, add);
    CHECK_JOB(TG_OK, 1, in_folder("norm.onnx"), in_folder("image.tif"), in_folder("disk.png"),
              "scratch", in_folder(""));
    check_against(in_folder("normed.tif"), in_folder("disk.png"), places, 3, mul, add);
    CHECK_JOB(TG_OK, 1, in_folder("norm.onnx"), in_folder("image.tif"), in_folder("one.png"),
              "at", "300,513");
    check_against(in_folder("normed.tif"), in_folder("one.png"), middle, 1, mul, add);
}

/* Of seven images the middle one is another: shown as the slab of a volume, and as a plane. */
static void test_the_right_image_comes_out_of_a_whole_pass(void)
{
    make_norm(in_folder("norm3.onnx"), 3, 1, 1);
    CHECK_JOB(TG_OK, 1, in_folder("norm3.onnx"), in_folder("volume.tif"), in_folder("slab.png"),
              NULL, NULL);
    picture p = read_png(in_folder("slab.png"));
    check_panels(&p, 1);
    CHECK(shown(&p, 1, 4, 12, 0) > shown(&p, 1, 4, 4, 0) + 100);
    free(p.pixels);
    make_norm(in_folder("norm2.onnx"), 2, 1, 1);
    CHECK_JOB(TG_OK, 1, in_folder("norm2.onnx"), in_folder("volume.tif"),
              in_folder("plane.png"), NULL, NULL);
    p = read_png(in_folder("plane.png"));
    check_panels(&p, 1);
    CHECK(shown(&p, 1, 4, 12, 0) > shown(&p, 1, 4, 4, 0) + 100);
    free(p.pixels);
}

/* What a preview sets aside of a job is there again for its run: who makes the output. */
static void test_a_job_that_was_previewed_runs(void)
{
    tg_opts *o = NULL;
    tg_job *j = NULL;
    CHECK_EQ(tg_opts_new(ctx, &o), TG_OK);
    CHECK_EQ(tg_opts_set(o, "model", in_folder("rgb.onnx")), TG_OK);
    CHECK_EQ(tg_opts_set(o, "input", in_folder("rgb.tif")), TG_OK);
    CHECK_EQ(tg_opts_set(o, "output", in_folder("both.png")), TG_OK);
    CHECK_EQ(tg_opts_set(o, "yes", "true"), TG_OK);
    CHECK_EQ(tg_job_open(ctx, o, &j), TG_OK);
    CHECK_EQ(tg_job_preview(j), TG_OK);
    CHECK_EQ(tg_job_run(j, NULL), TG_OK);
    tg_job_close(&j);
    tg_opts_free(&o);
    picture p = read_png(in_folder("both.png"));
    CHECK_EQ(p.h, SIDE);
    CHECK_EQ(p.w, SIDE);
    free(p.pixels);
}

int main(void)
{
    help_open();
    make_image();
    RUN(test_the_densest_places_show_what_the_run_writes);
    RUN(test_a_place_that_is_asked_for_is_shown_alone);
    RUN(test_an_existing_picture_is_left_alone);
    RUN(test_a_small_image_is_one_panel_of_its_own_size);
    RUN(test_crops_fit_images_of_any_width);
    RUN(test_colours_keep_their_places);
    RUN(test_of_a_volume_the_middle_slab_is_shown);
    RUN(test_crops_fit_volumes_of_any_height);
    RUN(test_a_network_with_norms_is_shown_in_stages);
    RUN(test_the_right_image_comes_out_of_a_whole_pass);
    RUN(test_a_job_that_was_previewed_runs);
    RUN(test_objects_are_outlined);
    if (tg_has(SUPER))
        RUN(test_super_resolution_enlarges_the_raw_panel);
    help_close();
    return TEST_END();
}

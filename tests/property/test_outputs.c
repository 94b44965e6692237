/* What a run writes where the network has several outputs, outputs that are no images, or two
 * frames at its input: files by name, equal to the golden arrays or to each other. */
#include "engine/base/arith.h"
#include "tests/made_nets.h"
#include "tests/unit/job_help.h"

#define HEADS TG_SOURCE_DIR "/tests/golden/heads/"
#define H 24
#define W 36

/* Run a job of NAME, VALUE pairs; the detail is in the context. */
static tg_status run(const char *name, ...)
{
    va_list ap;
    tg_job *job = NULL;
    tg_run_result r = {.size = sizeof r};
    va_start(ap, name);
    tg_opts *o = opts_of(ap);
    va_end(ap);
    (void)name;
    tg_status st = tg_job_open(ctx, o, &job);
    if (st == TG_OK)
        st = tg_job_run(job, &r);
    tg_job_close(&job);
    tg_opts_free(&o);
    return st;
}

#define CHECK_RUN(want, ...)                                                                   \
    do {                                                                                       \
        const tg_status got_ = run("", __VA_ARGS__, "ram", "1GiB", NULL);                      \
        if (got_ != (want))                                                                    \
            fprintf(stderr, "%s:%d: run: %s\n", __FILE__, __LINE__, tg_ctx_detail(ctx));       \
        CHECK_EQ(got_, want);                                                                  \
    } while (0)

static float *array_of(const char *path, tgi_desc *d)
{
    tgi_err err = {0};
    void *p = NULL;
    CHECK_OK(tgi_npy_load(path, 0, d, &p, &err), err);
    return p;
}

static void make_picture(void)
{
    tgi_desc d;
    tgi_err err = {0};
    float *p = array_of(HEADS "small.in.npy", &d);
    const tgi_desc image = {TG_DTYPE_F32, 3, {H, W, 3}};
    CHECK_OK(tgi_npy_save(in_folder("picture.npy"), &image, p, &err), err);
    CHECK_COPY(TG_OK, "input", in_folder("picture.npy"), "axes", "YXS", "output",
               in_folder("picture.tif"));
    tgi_free(p);
}

static void check_near(const float *got, const float *want, int64_t n, int64_t step)
{
    int64_t bad = 0;
    for (int64_t i = 0; i < n; i++)
        bad += !(fabsf(got[i] - want[i * step]) <= 3e-6f + 3e-6f * fabsf(want[i * step]));
    CHECK(n > 0);
    CHECK_EQ(bad, 0);
}

/* Plane p of a TIFF against every step-th element of a golden array. */
static void check_plane(const char *path, int64_t plane, const float *want, int64_t step)
{
    tgi_source *s = open_image(path);
    const tgi_image_info *i = s->ops->info(s);
    float *got = pixels_of(s, plane, 0, i->height, 0, i->width);
    check_near(got, want, i->height * i->width, step);
    free(got);
    tgi_source_close(&s);
}

static void check_array(const char *path, const char *golden)
{
    tgi_desc a, b;
    float *got = array_of(path, &a), *want = array_of(golden, &b);
    int64_t n = 0;
    CHECK(tgi_desc_same_shape(&a, &b));
    tgi_desc_count(&b, &n);
    check_near(got, want, n, 1);
    tgi_free(got);
    tgi_free(want);
}

static void test_a_folder_takes_a_file_for_each_output(void)
{
    char dir[160];
    tgi_desc d;
    snprintf(dir, sizeof dir, "%s/", folder);
    CHECK_RUN(TG_OK, "model", HEADS "model.onnx", "input", in_folder("picture.tif"), "output",
              dir);
    float *enhanced = array_of(HEADS "small.enhanced.npy", &d);
    for (int c = 0; c < 3; c++) /* the golden has channels last, the stack planes */
        check_plane(in_folder("enhanced.tif"), c, enhanced + c, 3);
    float *mask = array_of(HEADS "small.mask.npy", &d);
    check_plane(in_folder("mask.tif"), 0, mask, 1);
    tgi_free(enhanced);
    tgi_free(mask);
    check_array(in_folder("mean.npy"), HEADS "small.mean.npy");
    check_array(in_folder("table.npy"), HEADS "small.table.npy");
    CHECK(!exists(in_folder("enhanced.npy")));
    CHECK(!exists(in_folder("table.npy.partial")));
    /* What is there is not overwritten without being asked. */
    CHECK_RUN(TG_E_EXISTS, "model", HEADS "model.onnx", "input", in_folder("picture.tif"),
              "output", dir);
}

static void test_arrays_give_the_same_files_as_an_image(void)
{
    char dir[160];
    snprintf(dir, sizeof dir, "%s/arrays/", folder);
    CHECK_RUN(TG_OK, "model", HEADS "model.onnx", "input", HEADS "small.in.npy", "output", dir);
    const char *const names[] = {"enhanced", "mask", "mean", "table"};
    for (int i = 0; i < 4; i++) {
        char got[256], want[256];
        snprintf(got, sizeof got, "%s%s.npy", dir, names[i]);
        snprintf(want, sizeof want, HEADS "small.%s.npy", names[i]);
        check_array(got, want);
        unlink(got);
    }
    rmdir(dir);
}

static void test_an_image_file_takes_the_first_output(void)
{
    tgi_desc d;
    CHECK_RUN(TG_OK, "model", HEADS "model.onnx", "input", in_folder("picture.tif"), "output",
              in_folder("first.tif"));
    float *enhanced = array_of(HEADS "small.enhanced.npy", &d);
    tgi_source *s = open_image(in_folder("first.tif"));
    CHECK_EQ(s->ops->info(s)->samples, 3); /* as the input's channels were */
    float *got = pixels_of(s, 0, 0, H, 0, W);
    for (int c = 0; c < 3; c++)
        check_near(got + c * H * W, enhanced + c, H * W, 3);
    free(got);
    tgi_source_close(&s);
    tgi_free(enhanced);
}

/* y: [1,C,H*W], which is no image. */
static void make_table(const char *path)
{
    const int64_t open[2] = {0, 0}, k[2] = {3, 3}, shape[3] = {1, 4, -1};
    made m = made_begin(2, 3, open);
    const char *f = made_conv(&m, "x", 3, 4, k, 1, 1, NULL);
    made_node(&m, "Reshape", f, made_longs(&m, 3, shape), NULL, NULL, NULL, "y");
    made_end(&m, path);
}

static void test_what_is_no_image_is_refused_as_one_and_written_as_an_array(void)
{
    tgi_desc d;
    make_table(in_folder("table.onnx"));
    CHECK_RUN(TG_E_UNSUPPORTED, "model", in_folder("table.onnx"), "input",
              in_folder("picture.tif"), "output", in_folder("no.tif"));
    CHECK(strstr(tg_ctx_detail(ctx), "no image: give -o OUT.npy"));
    CHECK(!exists(in_folder("no.tif")));
    CHECK_RUN(TG_OK, "model", in_folder("table.onnx"), "input", in_folder("picture.tif"),
              "output", in_folder("rows.npy"));
    float *rows = array_of(in_folder("rows.npy"), &d);
    CHECK_EQ(d.rank, 3);
    CHECK_EQ(d.dim[1], 4);
    CHECK_EQ(d.dim[2], H * W);
    /* The same convolution whose result stays an image, as an array. */
    const int64_t open[2] = {0, 0}, k[2] = {3, 3};
    made m = made_begin(2, 3, open);
    made_conv(&m, "x", 3, 4, k, 1, 1, "y");
    made_end(&m, in_folder("plain.onnx"));
    CHECK_RUN(TG_OK, "model", in_folder("plain.onnx"), "input", in_folder("picture.tif"),
              "output", in_folder("plain.npy"));
    float *plain = array_of(in_folder("plain.npy"), &d);
    CHECK_EQ(d.rank, 4);
    CHECK_EQ(memcmp(rows, plain, (size_t)(4 * H * W) * sizeof *rows), 0);
    tgi_free(rows);
    tgi_free(plain);
}

static void test_two_planes_feed_two_channels_but_slices_do_not(void)
{
    const int64_t open[2] = {0, 0}, k[2] = {3, 3};
    const tgi_desc stack = {TG_DTYPE_F32, 3, {2, H, W}},
                   batch = {TG_DTYPE_F32, 4, {1, 2, H, W}};
    float x[2 * H * W];
    uint64_t seed = 11;
    tgi_err err = {0};
    tgi_desc d;
    made m = made_begin(2, 2, open);
    made_conv(&m, "x", 2, 1, k, 1, 1, "y");
    made_end(&m, in_folder("frames.onnx"));
    for (int i = 0; i < 2 * H * W; i++)
        x[i] = tg_rand_unit(&seed);
    CHECK_OK(tgi_npy_save(in_folder("stack.npy"), &stack, x, &err), err);
    CHECK_OK(tgi_npy_save(in_folder("batch.npy"), &batch, x, &err), err);
    CHECK_COPY(TG_OK, "input", in_folder("stack.npy"), "axes", "TYX", "output",
               in_folder("frames.tif"));
    CHECK_RUN(TG_OK, "model", in_folder("frames.onnx"), "input", in_folder("frames.tif"),
              "output", in_folder("flow.npy"));
    CHECK_RUN(TG_OK, "model", in_folder("frames.onnx"), "input", in_folder("batch.npy"),
              "output", in_folder("want.npy"));
    float *got = array_of(in_folder("flow.npy"), &d),
          *want = array_of(in_folder("want.npy"), &d);
    CHECK_EQ(memcmp(got, want, sizeof x / 2), 0);
    tgi_free(got);
    tgi_free(want);
    CHECK_RUN(TG_E_ARG, "model", in_folder("frames.onnx"), "input", in_folder("frames.tif"),
              "axes", "ZYX", "output", in_folder("no.npy"));
    CHECK(strstr(tg_ctx_detail(ctx), "takes 2 channels"));
}

/* Planes 1 and 4 of six, chosen by --planes, against an array of these two. */
static void test_chosen_planes_of_a_series_feed_the_channels(void)
{
    enum { N = 6, PLANE = H * W };
    const int64_t open[2] = {0, 0}, k[2] = {3, 3};
    const tgi_desc stack = {TG_DTYPE_F32, 3, {N, H, W}}, pair = {TG_DTYPE_F32, 4, {1, 2, H, W}};
    static float x[N * PLANE], two[2 * PLANE];
    uint64_t seed = 12;
    tgi_err err = {0};
    tgi_desc d;
    made m = made_begin(2, 2, open);
    made_conv(&m, "x", 2, 1, k, 1, 1, "y");
    made_end(&m, in_folder("pair.onnx"));
    for (int i = 0; i < N * PLANE; i++)
        x[i] = tg_rand_unit(&seed);
    memcpy(two, x + 1 * PLANE, PLANE * sizeof *x);
    memcpy(two + PLANE, x + 4 * PLANE, PLANE * sizeof *x);
    CHECK_OK(tgi_npy_save(in_folder("series.npy"), &stack, x, &err), err);
    CHECK_OK(tgi_npy_save(in_folder("pair.npy"), &pair, two, &err), err);
    CHECK_COPY(TG_OK, "input", in_folder("series.npy"), "axes", "TYX", "output",
               in_folder("series.tif"));
    CHECK_RUN(TG_OK, "model", in_folder("pair.onnx"), "input", in_folder("series.tif"),
              "planes", "1,4", "output", in_folder("pair_got.npy"));
    CHECK_RUN(TG_OK, "model", in_folder("pair.onnx"), "input", in_folder("pair.npy"), "output",
              in_folder("pair_want.npy"));
    float *got = array_of(in_folder("pair_got.npy"), &d),
          *want = array_of(in_folder("pair_want.npy"), &d);
    CHECK_EQ(memcmp(got, want, PLANE * sizeof *got), 0);
    tgi_free(got);
    tgi_free(want);
    CHECK_RUN(TG_E_ARG, "model", in_folder("pair.onnx"), "input", in_folder("series.tif"),
              "planes", "1,4,5", "output", in_folder("no.npy"));
    CHECK(strstr(tg_ctx_detail(ctx), "as many of them with --planes"));
}

static void test_verify_runs_the_stages_of_a_network(void)
{
    const int64_t open[2] = {0, 0}, k[2] = {3, 3};
    tg_opts *o = NULL;
    tg_job *job = NULL;
    tg_verify_result r = {.size = sizeof r};
    made m = made_begin(2, 3, open);
    const char *f = made_conv(&m, "x", 3, 4, k, 1, 1, NULL);
    const char *p = made_node(&m, "GlobalAveragePool", f, NULL, NULL, NULL, NULL, NULL);
    made_node(&m, "Mul", f, p, NULL, NULL, NULL, "y");
    made_end(&m, in_folder("squeeze.onnx"));
    CHECK_EQ(tg_opts_new(ctx, &o), TG_OK);
    CHECK_EQ(tg_opts_set(o, "model", in_folder("squeeze.onnx")), TG_OK);
    CHECK_EQ(tg_opts_set(o, "input", in_folder("picture.tif")), TG_OK);
    CHECK_EQ(tg_opts_set(o, "ram", "1GiB"), TG_OK);
    CHECK_EQ(tg_job_open(ctx, o, &job), TG_OK);
    CHECK_EQ(tg_job_verify(job, &r), TG_OK);
    CHECK_STR(r.not_tiled, "");
    CHECK_EQ(r.stages, 2);
    CHECK(r.tiles > r.stages); /* the output at least is cut */
    CHECK(r.bit_equal);
    CHECK(r.reference_relative_l2 < 1e-6);
    CHECK(r.output_max > r.output_min);
    tg_job_close(&job);
    tg_opts_free(&o);
}

int main(void)
{
    help_open();
    make_picture();
    test_a_folder_takes_a_file_for_each_output();
    test_arrays_give_the_same_files_as_an_image();
    test_an_image_file_takes_the_first_output();
    test_what_is_no_image_is_refused_as_one_and_written_as_an_array();
    test_two_planes_feed_two_channels_but_slices_do_not();
    test_chosen_planes_of_a_series_feed_the_channels();
    test_verify_runs_the_stages_of_a_network();
    help_close();
    return TEST_END();
}

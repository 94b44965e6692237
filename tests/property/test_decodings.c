/* How often the plan says that a streamed input is decoded is how often the run decodes it,
 * whatever lies between the image and the network: padding to the same size, filled extents,
 * fixed boxes, volumes, regions. */
#include "engine/job/job.h"
#include "engine/job/plan_scratch.h"
#include "tests/made_nets.h"
#include "tests/unit/job_help.h"
#include "tests/unit/tiff_layout.h"

static const int64_t open2[2] = {0, 0}, open3[3] = {0, 0, 0}, k3[3] = {3, 3, 3},
                     k5x3[2] = {5, 3};

/* ---- Networks ---------------------------------------------------------------------------- */

static void plain(const char *path)
{
    made m = made_begin(2, 1, open2);
    const char *a = made_conv(&m, "x", 1, 8, k3, 1, 1, NULL);
    made_conv(&m, a, 8, 1, k3, 1, 1, "y");
    made_end(&m, path);
}

/* Eats 3 + 3 rows and 2 + 2 columns. */
static void eats(const char *path)
{
    made m = made_begin(2, 1, open2);
    const char *a = made_conv(&m, "x", 1, 8, k5x3, 1, 0, NULL);
    made_conv(&m, a, 8, 1, k3, 1, 0, "y");
    made_end(&m, path);
}

/* Eats 150 rows at each side: whole bands lie in the padding, and what they are mirrored from
 * is further back than the reader keeps. */
static void eats_much(const char *path)
{
    made m = made_begin(2, 1, open2);
    const char *a = made_conv(&m, "x", 1, 8, k3, 1, 0, NULL);
    made_conv(&m, made_slice(&m, a, 149, -149, 0, INT32_MAX), 8, 1, k3, 1, 1, "y");
    made_end(&m, path);
}

/* Takes multiples of 32. */
static void deep(const char *path)
{
    made m = made_begin(2, 1, open2);
    const char *a = made_conv(&m, "x", 1, 2, k3, 1, 1, NULL);
    const char *b = made_up(&m, made_pool(&m, a, 32), 2, 2, 32);
    made_conv(&m, made_concat(&m, 1, b, a), 4, 1, k3, 1, 1, "y");
    made_end(&m, path);
}

static void doubles(const char *path)
{
    made m = made_begin(2, 1, open2);
    made_conv(&m, made_up(&m, "x", 1, 8, 2), 8, 1, k3, 1, 0, "y");
    made_end(&m, path);
}

static void boxed_as(const char *path, int64_t start, int64_t pad)
{
    static const int64_t ext[2] = {64, 96};
    made m = made_begin(2, 1, ext);
    const char *a = made_conv(&m, "x", 1, 8, k3, 1, pad, NULL);
    const char *b = made_conv(&m, made_pool(&m, a, 2), 8, 8, k3, 1, 1, NULL);
    const char *c = made_concat(&m, 1, made_up(&m, b, 8, 8, 2), a);
    made_conv(&m, made_slice(&m, c, start, 60, start, 92), 16, 1, k3, 1, pad, "y");
    made_end(&m, path);
}

static void boxed(const char *path)
{
    boxed_as(path, 0, 1);
}

/* Valid convolutions and a crop: padded before, too. */
static void boxed_and_eats(const char *path)
{
    boxed_as(path, 2, 0);
}

static void volume(const char *path, int64_t pad)
{
    made m = made_begin(3, 1, open3);
    const char *a = made_conv(&m, "x", 1, 4, k3, 1, pad, NULL);
    made_conv(&m, a, 4, 1, k3, 1, pad, "y");
    made_end(&m, path);
}

static void volume_plain(const char *path)
{
    volume(path, 1);
}

static void volume_eats(const char *path)
{
    volume(path, 0);
}

/* ---- Jobs -------------------------------------------------------------------------------- */

typedef struct fit_case {
    const char *name;
    void (*net)(const char *path);
    int planes, samples;
    uint32_t strip; /* rows of a strip; 0: all */
    int64_t last;   /* row of the region; one pass decodes all above it */
    const char *const *more;
} fit_case;

static const char *const cells[] = {"tile", "512x96", NULL};
static const char *const raw[] = {"tile", "512x96", "raw-size", "true", NULL};
static const char *const same[] = {"tile", "512x96", "same-size", "true", NULL};
static const char *const edge[] = {"tile", "512x96", "same-size", "true", "pad", "edge", NULL};
static const char *const zero[] = {"tile", "512x96", "same-size", "true", "pad", "zero", NULL};
static const char *const rows[] = {"tile", "128x96", NULL};
static const char *const rows_raw[] = {"tile", "128x96", "raw-size", "true", NULL};
static const char *const rows_same[] = {"tile", "128x96", "same-size", "true", NULL};
static const char *const roi[] = {"tile", "512x96", "roi", "50:350,100:800", NULL};
static const char *const roi_same[] = {"tile", "512x96",         "same-size", "true",
                                       "roi",  "50:350,100:800", NULL};
static const char *const bare[] = {NULL};
static const char *const roi_bare[] = {"roi", "50:350,100:800", NULL};
static const char *const cubes[] = {"tile", "5x256x512", NULL};
static const char *const cubes_same[] = {"tile", "5x256x512", "same-size", "true", NULL};
static const char *const cubes_edge[] = {"tile", "5x256x512", "same-size", "true",
                                         "pad",  "edge",      NULL};

static const fit_case cases[] = {
    {"as it is", plain, 1, 1, 0, 400, cells},
    {"as it is, in strips", plain, 1, 1, 150, 400, cells},
    {"a region", plain, 1, 1, 0, 350, roi},
    {"cut in rows", plain, 1, 1, 0, 400, rows},
    {"cut in rows and strips", plain, 1, 1, 150, 400, rows},
    {"cut in rows, raw", eats, 1, 1, 0, 400, rows_raw},
    {"cut in rows, same size", eats, 1, 1, 0, 400, rows_same},
    {"cut in rows, much padding", eats_much, 1, 1, 0, 400, rows_same},
    {"cut in rows, multiples of 32", deep, 1, 1, 0, 400, rows},
    {"cut in rows, twice as large", doubles, 1, 1, 0, 400, rows_same},
    {"raw", eats, 1, 1, 0, 400, raw},
    {"same size", eats, 1, 1, 0, 400, same},
    {"same size, in strips", eats, 1, 1, 150, 400, same},
    {"same size, edge", eats, 1, 1, 0, 400, edge},
    {"same size, zero", eats, 1, 1, 0, 400, zero},
    {"same size, a region", eats, 1, 1, 0, 350, roi_same},
    {"same size, samples", eats, 1, 3, 0, 400, same},
    {"much padding", eats_much, 1, 1, 0, 400, same},
    {"much padding, edge", eats_much, 1, 1, 0, 400, edge},
    {"multiples of 32", deep, 1, 1, 0, 400, cells},
    {"multiples of 32, a region", deep, 1, 1, 0, 350, roi},
    {"twice as large", doubles, 1, 1, 0, 400, same},
    {"boxes", boxed, 1, 1, 0, 400, bare},
    {"boxes, in strips", boxed, 1, 1, 150, 400, bare},
    {"boxes, a region", boxed, 1, 1, 0, 350, roi_bare},
    {"boxes, padded before", boxed_and_eats, 1, 1, 0, 400, bare},
    {"a volume", volume_plain, 11, 1, 0, 400, cubes},
    {"a volume, same size", volume_eats, 11, 1, 0, 400, cubes_same},
    {"a volume, edge", volume_eats, 11, 1, 0, 400, cubes_edge}};

static void write_input(const fit_case *c)
{
    layout a = {.compression = 8,
                .predictor = 1,
                .bits = 8,
                .format = 1,
                .samples = c->samples,
                .mode = "wl",
                .w = 900,
                .h = 400,
                .block_w = 900,
                .block_h = 400};
    uint64_t seed = 5;
    if (c->strip)
        a.block_h = c->strip;
    for (int k = 0; k < c->planes; k++, a.mode = "a") {
        uint8_t *pixels = make_pixels(&a, &seed);
        write_tiff(in_folder("in.tif"), &a, pixels);
        free(pixels);
    }
}

static tg_job *open_job(const fit_case *c)
{
    const char *const o[] = {"model",  in_folder("net.onnx"),
                             "input",  in_folder("in.tif"),
                             "output", in_folder("out.tif"),
                             "ram",    "24MiB",
                             "yes",    "true",
                             NULL};
    tg_opts *opts = NULL;
    tg_job *job = NULL;
    CHECK_EQ(tg_opts_new(ctx, &opts), TG_OK);
    for (const char *const *p = o; p[0]; p += 2)
        CHECK_EQ(tg_opts_set(opts, p[0], p[1]), TG_OK);
    for (const char *const *p = c->more; p[0]; p += 2)
        CHECK_EQ(tg_opts_set(opts, p[0], p[1]), TG_OK);
    if (tg_job_open(ctx, opts, &job) != TG_OK)
        fprintf(stderr, "  %s: %s\n", c->name, tg_ctx_detail(ctx));
    tg_opts_free(&opts);
    return job;
}

static void one_fit(const fit_case *c)
{
    tg_plan_info p = {.size = sizeof p};
    tg_run_result res = {.size = sizeof res};
    c->net(in_folder("net.onnx"));
    write_input(c);
    tg_job *job = open_job(c);
    tg_status st = job ? tg_job_plan(job, &p) : TG_E_INTERNAL;
    if (st == TG_OK)
        st = tg_job_run(job, &res);
    CHECK_EQ(st, TG_OK);
    if (st != TG_OK) {
        fprintf(stderr, "  %s: %s\n", c->name, tg_ctx_detail(ctx));
        tg_job_close(&job);
        return;
    }
    const uint64_t once = 900u * (uint64_t)(c->last * c->planes * c->samples);
    const double passes = (double)job->source->ops->decoded_bytes(job->source) / (double)once;
    const tgi_scratch_part *s = &job->plan.scratch;
    if (tgi_job_streams_input(job) && passes != s->passes)
        fprintf(stderr, "  %s: decoded %.4f times, planned %.4f\n", c->name, passes, s->passes);
    CHECK(tgi_job_streams_input(job));
    CHECK_NEAR(s->passes, passes, 1e-9);
    CHECK_EQ(s->bytes, (uint64_t)(job->map.extent[0] * job->map.extent[1] * job->map.extent[2] *
                                  c->samples));
    tg_job_close(&job);
    unlink(in_folder("out.tif"));
}

static void the_plan_counts_what_the_run_decodes(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        one_fit(&cases[i]);
}

int main(void)
{
    if (TG_SANITIZED) /* its memory counts as the process's: a budget so small is none there */
        return 77;
    TIFFSetWarningHandler(NULL);
    help_open();
    RUN(the_plan_counts_what_the_run_decodes);
    help_close();
    return TEST_END();
}

/* The public door, end to end, on files the test makes: what a run writes is what the network
 * and the stated normalisation give, whatever the budget, the region or the compression. */
#include "engine/base/arith.h"
#include "io/image.h"
#include "io/npy.h"
#include "kernels/backend.h"
#include "tests/tg_test.h"

#include <sys/stat.h>

#define H 150
#define W 203
#define PLANES 3

/* Small budgets would be refused under a sanitizer. */
#define SMALL(size) (TG_SANITIZED ? "1GiB" : (size))

static char folder[64];
static const char model[] = TG_SOURCE_DIR "/models/tegula_denoise.onnx";

static const char *in_folder(const char *name)
{
    static char path[4][160];
    static int next;
    char *p = path[next++ & 3];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

/* A smooth picture with noise, another brightness in each plane. */
static void draw(uint16_t *px)
{
    uint64_t seed = 7;
    for (int p = 0; p < PLANES; p++)
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++)
                px[(p * H + y) * W + x] =
                    (uint16_t)(900 + 300 * p + 400 * sin(x / 11.0) * cos(y / 17.0) +
                               100 * tg_rand_unit(&seed));
}

static tg_status with_options(tg_ctx *ctx, const char *const *o, tg_opts **out)
{
    tg_status st = tg_opts_new(ctx, out);
    for (; st == TG_OK && o[0]; o += 2)
        st = tg_opts_set(*out, o[0], o[1]);
    return st;
}

/* Run a job of NAME, VALUE pairs; `expect` is its status. */
static void run_job(const char *const *o, tg_status expect, tg_run_result *res)
{
    tg_ctx *ctx = NULL;
    tg_opts *opts = NULL;
    tg_job *job = NULL;
    res->size = sizeof *res;
    CHECK_EQ(tg_ctx_open(NULL, &ctx), TG_OK);
    tg_status st = with_options(ctx, o, &opts);
    if (st == TG_OK)
        st = tg_job_open(ctx, opts, &job);
    if (st == TG_OK)
        st = tg_job_run(job, res);
    CHECK_EQ(st, expect);
    if (st != expect)
        fprintf(stderr, "  %s\n", tg_ctx_detail(ctx));
    tg_job_close(&job);
    tg_opts_free(&opts);
    tg_ctx_close(&ctx);
}

static void copy_file(const char *from, const char *to)
{
    tg_ctx *ctx = NULL;
    tg_opts *opts = NULL;
    CHECK_EQ(tg_ctx_open(NULL, &ctx), TG_OK);
    CHECK_EQ(tg_opts_new(ctx, &opts), TG_OK);
    CHECK_EQ(tg_opts_set(opts, "input", from), TG_OK);
    CHECK_EQ(tg_opts_set(opts, "output", to), TG_OK);
    CHECK_EQ(tg_opts_set(opts, "yes", "true"), TG_OK);
    const tg_status st = tg_copy(ctx, opts);
    CHECK_EQ(st, TG_OK);
    if (st != TG_OK)
        fprintf(stderr, "  %s\n", tg_ctx_detail(ctx));
    tg_opts_free(&opts);
    tg_ctx_close(&ctx);
}

/* All pixels of a file, planes in order; *n elements. */
static void *pixels_of(const char *path, tg_dtype want, size_t *n)
{
    tgi_err err = {0};
    tgi_source *s = NULL;
    const tgi_open_opts o = {.threads = 1};
    CHECK_OK(tgi_source_open(path, &o, &s, &err), err);
    if (!s)
        exit(1);
    const tgi_image_info *i = s->ops->info(s);
    CHECK_EQ(i->dtype, want);
    const size_t size = tgi_dtype_size(i->dtype), row = (size_t)i->width * size;
    *n = (size_t)(i->n_planes * i->height * i->width);
    char *px = malloc(*n * size);
    for (int64_t p = 0; p < i->n_planes; p++)
        CHECK_OK(s->ops->read(s, 0, p, 0, 1, 0, i->height, 0, i->width,
                              px + (size_t)(p * i->height) * row, row, row * (size_t)i->height,
                              &err),
                 err);
    tgi_source_close(&s);
    return px;
}

static void make_input(void)
{
    static uint16_t px[PLANES * H * W];
    const tgi_desc d = {TG_DTYPE_U16, 3, {PLANES, H, W}};
    tgi_err err = {0};
    draw(px);
    CHECK_OK(tgi_npy_save(in_folder("in.npy"), &d, px, &err), err);
    copy_file(in_folder("in.npy"), in_folder("in.tif"));
    size_t n;
    uint16_t *back = pixels_of(in_folder("in.tif"), TG_DTYPE_U16, &n);
    CHECK_EQ(n, PLANES * H * W);
    CHECK(memcmp(back, px, sizeof px) == 0);
    free(back);
}

/* ---- Tests ------------------------------------------------------------------------------- */

static void test_every_budget_and_codec_gives_the_same_pixels(void)
{
    static const struct {
        const char *ram, *compress, *tile, *threads;
    } ways[] = {
        {"2GiB", "none", "auto", "1"},         {SMALL("8MiB"), "none", "auto", "2"},
        {SMALL("12MiB"), "zstd", "auto", "2"}, {"1GiB", "deflate", "64", "3"},
        {"1GiB", "lzw", "48x80", "2"},         {SMALL("100MiB"), "none", "16x208", "1"}};
    tg_run_result r;
    uint16_t *first = NULL;
    size_t n, n0 = 0;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const char *const o[] = {"model",    model,
                                 "input",    in_folder("in.tif"),
                                 "output",   in_folder("out.tif"),
                                 "ram",      ways[i].ram,
                                 "compress", ways[i].compress,
                                 "tile",     ways[i].tile,
                                 "threads",  ways[i].threads,
                                 "exact",    "true", /* else kernels follow the budget */
                                 "yes",      "true",
                                 NULL};
        run_job(o, TG_OK, &r);
        CHECK(r.measured_peak_bytes <= r.budget_bytes);
        const double parts = r.compute_seconds + r.stall_read_seconds + r.stall_write_seconds +
                             r.convert_seconds;
        CHECK(r.compute_seconds > 0 && r.convert_seconds > 0);
        CHECK(parts <= r.bands_seconds && parts >= 0.5 * r.bands_seconds);
        CHECK(r.processor_seconds > 0);
        CHECK(TG_SANITIZED || r.measured_peak_bytes <= r.predicted_peak_bytes);
        uint16_t *px = pixels_of(in_folder("out.tif"), TG_DTYPE_U16, &n);
        if (!first) {
            first = px;
            n0 = n;
            continue;
        }
        CHECK_EQ(n, n0);
        CHECK(memcmp(px, first, n * sizeof *px) == 0);
        free(px);
    }
    free(first);
}

/* A region's result differs from the crop of the whole only where the network reads beyond the
 * region's border: with the same statistics the middle is the same. */
static void test_a_region_is_the_crop_away_from_its_border(void)
{
    tg_run_result r;
    size_t n, nr;
    remove(in_folder("stats.json"));
    const char *const whole[] = {"model",  model,
                                 "input",  in_folder("in.tif"),
                                 "output", in_folder("whole.tif"),
                                 "stats",  in_folder("stats.json"),
                                 "dtype",  "float32",
                                 "exact",  "true",
                                 "yes",    "true",
                                 NULL};
    run_job(whole, TG_OK, &r);
    const char *const part[] = {"model",  model,
                                "input",  in_folder("in.tif"),
                                "output", in_folder("part.tif"),
                                "stats",  in_folder("stats.json"),
                                "roi",    "20:140,40:180",
                                "planes", "1",
                                "dtype",  "float32",
                                "exact",  "true",
                                "yes",    "true",
                                NULL};
    run_job(part, TG_OK, &r);
    float *a = pixels_of(in_folder("whole.tif"), TG_DTYPE_F32, &n);
    float *b = pixels_of(in_folder("part.tif"), TG_DTYPE_F32, &nr);
    CHECK_EQ(nr, 120 * 140);
    int64_t bad = 0;
    for (int y = 32; y < 88; y++) /* 32 pixels are more than the network's reach */
        for (int x = 32; x < 108; x++)
            bad += b[y * 140 + x] != a[(1 * H + 20 + y) * W + 40 + x];
    CHECK_EQ(bad, 0);
    free(a);
    free(b);
}

static int by_value(const void *a, const void *b)
{
    return (int)*(const uint16_t *)a - (int)*(const uint16_t *)b;
}

static double percentile(const uint16_t *sorted, size_t n, double q)
{
    const double pos = (double)(n - 1) * q / 100;
    const size_t i = (size_t)pos;
    return sorted[i] + (pos - (double)i) * (sorted[i + (i + 1 < n)] - sorted[i]);
}

static void test_statistics_are_those_of_the_whole_series(void)
{
    size_t n;
    uint16_t *px = pixels_of(in_folder("in.tif"), TG_DTYPE_U16, &n);
    qsort(px, n, sizeof *px, by_value);
    char text[4096], want[64];
    FILE *f = fopen(in_folder("stats.json"), "rb");
    CHECK(f != NULL);
    const size_t got = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[got] = 0;
    if (f)
        fclose(f);
    snprintf(want, sizeof want, "\"count\":%zu", n);
    CHECK(strstr(text, want) != NULL);
    const char *low = strstr(text, "\"low\":"), *high = strstr(text, "\"high\":");
    CHECK(low && high);
    CHECK_NEAR(low ? strtod(low + 6, NULL) : 0, percentile(px, n, 1), 1e-9);
    CHECK_NEAR(high ? strtod(high + 7, NULL) : 0, percentile(px, n, 99.8), 1e-9);
    free(px);
}

/* The result of x.npy. free(). */
static float *array_run(const char *precision, const char *exact, const char *ram,
                        const char *tile)
{
    tg_run_result r;
    tgi_desc d;
    void *y = NULL;
    tgi_err err = {0};
    const char *const o[] = {"model",     model,
                             "input",     in_folder("x.npy"),
                             "output",    in_folder("y.npy"),
                             "exact",     exact,
                             "precision", precision,
                             "ram",       ram,
                             "tile",      tile,
                             "yes",       "true",
                             NULL};
    run_job(o, TG_OK, &r);
    CHECK_OK(tgi_npy_load(in_folder("y.npy"), 0, &d, &y, &err), err);
    CHECK(d.rank == 4 && d.dim[0] == 2 && d.dim[1] == 1 && d.dim[2] == 64 && d.dim[3] == 72);
    float *copy = malloc(2 * 64 * 72 * sizeof *copy);
    CHECK(copy != NULL);
    if (copy && y)
        memcpy(copy, y, 2 * 64 * 72 * sizeof *copy);
    tgi_free(y);
    return copy;
}

/* Relative L2 distance of two such results. */
static double distance(const float *a, const float *b)
{
    double num = 0, den = 0;
    for (size_t i = 0; i < 2 * 64 * 72; i++) {
        num += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        den += (double)b[i] * b[i];
    }
    return sqrt(num / den);
}

static void test_arrays_go_in_and_out_as_they_are(void)
{
    const tgi_desc d = {TG_DTYPE_F32, 4, {2, 1, 64, 72}};
    static float x[2 * 64 * 72];
    uint64_t seed = 3;
    tgi_err err = {0};
    for (size_t i = 0; i < sizeof x / sizeof x[0]; i++)
        x[i] = tg_rand_unit(&seed);
    CHECK_OK(tgi_npy_save(in_folder("x.npy"), &d, x, &err), err);
    float *direct = array_run("fp32", "true", "4GiB", "auto");
    float *direct_cut = array_run("fp32", "true", SMALL("5MiB"), "17");
    float *fast = array_run("fp32", "false", "4GiB", "auto");
    float *fast_cut = array_run("fp32", "false", "4GiB", "17");
    CHECK(memcmp(direct, direct_cut, sizeof x) == 0);
    CHECK(memcmp(fast, fast_cut, sizeof x) == 0);
    const double off = distance(fast, direct);
    CHECK(off > 0 && off < 1e-5); /* --exact is not the default */
    free(direct);
    free(direct_cut);
    free(fast);
    free(fast_cut);
}

static void test_bf16_is_near_fp32_and_the_same_however_it_is_cut(void)
{
    const tgi_isa isa = tgi_isa_detect(TGI_ISA_COUNT);
    if (!tgi_isa_has_bf16(isa)) {
        printf("no AVX512_BF16: nothing to compare\n");
        return;
    }
    /* A picture: of noise alone a denoiser leaves next to nothing to be relative to. */
    const tgi_desc d = {TG_DTYPE_F32, 4, {2, 1, 64, 72}};
    static float x[2 * 64 * 72];
    uint64_t seed = 3;
    tgi_err err = {0};
    for (int i = 0; i < 2 * 64 * 72; i++)
        x[i] = (float)(sin(i % 72 / 9.0) * cos(i / 72 / 7.0)) + 0.1f * tg_rand_unit(&seed);
    CHECK_OK(tgi_npy_save(in_folder("x.npy"), &d, x, &err), err);
    float *fp32 = array_run("fp32", "true", "4GiB", "auto");
    float *bf16 = array_run("bf16", "true", "4GiB", "auto");
    float *cut = array_run("bf16", "true", SMALL("6MiB"), "17");
    CHECK(memcmp(bf16, cut, 2 * 64 * 72 * sizeof *cut) == 0);
    const double off = distance(bf16, fp32);
    CHECK(off > 1e-5 && off < 5e-3); /* it was in bfloat16, and right */
    free(fp32);
    free(bf16);
    free(cut);
}

static void test_the_receipt_names_the_precision(void)
{
    char text[8192];
    tg_run_result r;
    const int has = tgi_isa_has_bf16(tgi_isa_detect(TGI_ISA_COUNT));
    const char *const o[] = {"model",     model,
                             "input",     in_folder("in.tif"),
                             "precision", has ? "bf16" : "fp32",
                             "output",    in_folder("p.tif"),
                             NULL};
    run_job(o, TG_OK, &r);
    FILE *f = fopen(in_folder("p.tif.tegula.json"), "rb");
    CHECK(f != NULL);
    const size_t got = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[got] = 0;
    if (f)
        fclose(f);
    CHECK(strstr(text, has ? "\"precision\":\"bf16\"" : "\"precision\":\"fp32\"") != NULL);
    CHECK(strstr(text, has ? "kernels, bf16 products" : "kernels, fp32 products") != NULL);
}

static void test_bf16_is_refused_where_the_processor_lacks_it(void)
{
    tg_env env;
    tg_run_result r;
    struct stat st;
    const char *const o[] = {"model",     model,  "input",  in_folder("in.tif"), "isa", "avx2",
                             "precision", "bf16", "output", in_folder("no.tif"), NULL};
    run_job(o, TG_E_DEVICE, &r);
    CHECK(stat(in_folder("no.tif"), &st) != 0);
    tg_env_lend(&env, "TEGULA_ISA", "avx2"); /* and where it must not be used */
    const char *const capped[] = {"model",     model,  "input",  in_folder("in.tif"),
                                  "precision", "bf16", "output", in_folder("no.tif"),
                                  NULL};
    run_job(capped, TG_E_DEVICE, &r);
    tg_env_back(&env);
    CHECK(stat(in_folder("no.tif"), &st) != 0);
}

static void test_refusals_come_before_any_file(void)
{
    tg_run_result r;
    struct stat st;
    const char *const small[] = {
        "model", model,  "input", in_folder("in.tif"), "output", in_folder("no.tif"),
        "ram",   "2MiB", NULL};
    run_job(small, TG_E_BUDGET, &r);
    CHECK(stat(in_folder("no.tif"), &st) != 0 && stat(in_folder("no.tif.partial"), &st) != 0);
    const char *const there[] = {
        "model", model, "input", in_folder("in.tif"), "output", in_folder("out.tif"), NULL};
    run_job(there, TG_E_EXISTS, &r);
    const char *const none[] = {
        "model", model, "input", in_folder("absent.tif"), "output", in_folder("no.tif"), NULL};
    run_job(none, TG_E_NOT_FOUND, &r);
    const char *const large[] = {"model",  model,
                                 "input",  in_folder("in.tif"),
                                 "output", in_folder("no.tif"),
                                 "ram",    "6MiB",
                                 "tile",   "192",
                                 NULL};
    run_job(large, TG_E_BUDGET, &r);
}

/* Plan with a --ram or, NULL, without one: bytes of the margin's line, -1 when there is none.
 * The lines of memory are the peak. */
static int64_t margin_line(const char *ram, tg_plan_info *p)
{
    const char *const o[] = {"model",
                             model,
                             "input",
                             in_folder("in.tif"),
                             "output",
                             in_folder("none.tif"),
                             ram ? "ram" : NULL,
                             ram,
                             NULL};
    tg_ctx *ctx = NULL;
    tg_opts *opts = NULL;
    tg_job *job = NULL;
    int64_t margin = -1;
    uint64_t memory = 0;
    int margins = 0;
    p->size = sizeof *p;
    CHECK_EQ(tg_ctx_open(NULL, &ctx), TG_OK);
    CHECK_EQ(with_options(ctx, o, &opts), TG_OK);
    CHECK_EQ(tg_job_open(ctx, opts, &job), TG_OK);
    CHECK_EQ(tg_job_plan(job, p), TG_OK);
    for (size_t i = 0; i < p->n_lines; i++) {
        memory += p->lines[i].kind == TG_PLAN_MEMORY ? p->lines[i].bytes : 0;
        if (p->lines[i].kind == TG_PLAN_MARGIN) {
            CHECK_STR(p->lines[i].name, "margin");
            margin = (int64_t)p->lines[i].bytes;
            margins++;
        }
    }
    CHECK_EQ(memory, p->peak_bytes);
    CHECK(margins <= 1);
    p->lines = NULL;
    tg_job_close(&job);
    tg_opts_free(&opts);
    tg_ctx_close(&ctx);
    return margin;
}

static void test_the_margin_is_a_line_of_a_plan_whose_budget_nobody_gave(void)
{
    tg_plan_info p;
    const int64_t half = 512 << 20;
    const int64_t margin = margin_line(NULL, &p);
    const int64_t tenth = ((int64_t)p.budget_bytes + margin) / 10; /* of free and ours */
    CHECK_EQ(margin, tenth > half ? tenth : half);
    CHECK_EQ(margin_line("1GiB", &p), -1);
    CHECK_EQ(p.budget_bytes, 1 << 30);
    CHECK_EQ(margin_line("1GB", &p), -1);
    CHECK_EQ(p.budget_bytes, 1000000000);
    CHECK_EQ(margin_line("80%", &p), -1); /* of what is free, and all of that */
}

int main(void)
{
    snprintf(folder, sizeof folder, "%s/tegula-job-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(folder))
        return 1;
    RUN(make_input);
    RUN(test_every_budget_and_codec_gives_the_same_pixels);
    RUN(test_a_region_is_the_crop_away_from_its_border);
    RUN(test_statistics_are_those_of_the_whole_series);
    RUN(test_arrays_go_in_and_out_as_they_are);
    RUN(test_bf16_is_near_fp32_and_the_same_however_it_is_cut);
    RUN(test_the_receipt_names_the_precision);
    RUN(test_bf16_is_refused_where_the_processor_lacks_it);
    RUN(test_refusals_come_before_any_file);
    RUN(test_the_margin_is_a_line_of_a_plan_whose_budget_nobody_gave);
    char command[96];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    CHECK_EQ(system(command), 0);
    return TEST_END();
}

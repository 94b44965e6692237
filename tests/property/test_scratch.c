/* Inputs in large compressed blocks: any budget plans, the plan's count of decodings is the
 * decoder's own, and with scratch every block is decoded once and no byte of the result
 * changes. */
#include "engine/base/arith.h"
#include "engine/ends/decoded.h"
#include "engine/job/job.h"
#include "engine/job/plan_scratch.h"
#include "tests/made_nets.h"
#include "tests/unit/tiff_layout.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char folder[64], model[96];

/* Small, because a thread sanitizer looks at every vector that a kernel adds up: with a network
 * of 32 channels it needs more than six minutes, three quarters of them there. */
static void make_model(void)
{
    static const int64_t open2[2] = {0, 0}, k3[2] = {3, 3};
    snprintf(model, sizeof model, "%s/net.onnx", folder);
    made m = made_begin(2, 1, open2);
    made_conv(&m, made_conv(&m, "x", 1, 2, k3, 1, 1, NULL), 2, 1, k3, 1, 1, "y");
    made_end(&m, model);
}

static const char *in_folder(const char *name)
{
    static char path[4][160];
    static int next;
    char *p = path[next++ & 3];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

static int entries(const char *path)
{
    int n = 0;
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.' || e->d_name[1] == 't';
    if (d)
        closedir(d);
    return n;
}

/* ---- The source in front of the source --------------------------------------------------- */

static const layout page = {.compression = 8,
                            .predictor = 2,
                            .bits = 16,
                            .format = 1,
                            .samples = 3,
                            .mode = "wl",
                            .w = 301,
                            .h = 260,
                            .block_w = 301,
                            .block_h = 260};

/* Two pages of one strip each, three samples a pixel; pixels[k] of page k. */
static void make_pages(uint8_t *pixels[2])
{
    uint64_t seed = 11;
    layout a = page;
    for (int k = 0; k < 2; k++, a.mode = "a") {
        pixels[k] = make_pixels(&a, &seed);
        write_tiff(in_folder("pages.tif"), &a, pixels[k]);
    }
}

/* Every sample of every plane is an item; a part of the image only. */
static tgi_mapping part_of_the_pages(void)
{
    return (tgi_mapping){.spatial = 2,
                         .origin = {0, 20, 31},
                         .extent = {1, 200, 240},
                         .channels = 1,
                         .loops_samples = 1,
                         .n_loop = 2,
                         .loop = {{'I', 2, 1}, {'S', 3, 0}},
                         .n_items = 6};
}

static tgi_source *open_streamed(int threads)
{
    const tgi_open_opts o = {.threads = threads, .decode_budget = 1u << 20};
    tgi_err err = {0};
    tgi_source *s = NULL;
    CHECK_OK(tgi_source_open(in_folder("pages.tif"), &o, &s, &err), err);
    CHECK(s && s->ops->stream_rows(s) > 0);
    return s;
}

/* One box inside the part, all samples, against the pixels it was made from. */
static int box_is_right(tgi_source *s, int thread, uint8_t *pixels[2], uint64_t *seed)
{
    const int plane = (int)tg_rand_in(seed, 0, 1);
    const int64_t y0 = tg_rand_in(seed, 20, 219), y1 = tg_rand_in(seed, y0 + 1, 220);
    const int64_t x0 = tg_rand_in(seed, 31, 270), x1 = tg_rand_in(seed, x0 + 1, 271);
    const int together = (int)tg_rand_in(seed, 0, 1); /* samples side by side, or planes */
    const size_t pixel = together ? 6 : 2, row = (size_t)(x1 - x0) * pixel;
    const size_t all = together ? 2 : row * (size_t)(y1 - y0);
    uint8_t *got = malloc((size_t)(x1 - x0) * (size_t)(y1 - y0) * 6);
    tgi_err err = {0};
    int equal = s->ops->read(s, thread, plane, 0, 3, y0, y1, x0, x1, got, row,
                             together ? TGI_INTERLEAVED : all, &err) == TG_OK;
    for (int64_t y = y0; y < y1; y++)
        for (int64_t x = x0; x < x1; x++)
            for (size_t k = 0; k < 3; k++)
                equal &=
                    memcmp(got + k * all + (size_t)(y - y0) * row + (size_t)(x - x0) * pixel,
                           pixels[plane] + (((size_t)y * page.w + (size_t)x) * 3 + k) * 2,
                           2) == 0;
    free(got);
    return equal;
}

typedef struct reader {
    tgi_source *s;
    int thread, equal;
    uint8_t **pixels;
} reader;

static void *read_boxes(void *arg)
{
    reader *r = arg;
    uint64_t seed = 100 + (uint64_t)r->thread;
    r->equal = 1;
    for (int i = 0; i < 60; i++)
        r->equal &= box_is_right(r->s, r->thread, r->pixels, &seed);
    return NULL;
}

static void test_boxes_in_any_order_and_from_two_threads_decode_every_block_once(void)
{
    uint8_t *pixels[2];
    make_pages(pixels);
    const tgi_mapping m = part_of_the_pages();
    tgi_source *inner = open_streamed(2), *s = NULL;
    tgi_err err = {0};
    uint64_t kept = 0;
    CHECK_OK(tgi_decoded_file_bytes(&m, inner->ops->info(inner), &kept, &err), err);
    CHECK_EQ(kept, 2 * 3 * 200 * 240 * 2);
    CHECK_OK(tgi_decoded_open(inner, 2, &m, folder, &s, &err), err);
    pthread_t t[2];
    reader r[2];
    for (int i = 0; s && i < 2; i++) {
        r[i] = (reader){s, i, 0, pixels};
        CHECK_EQ(pthread_create(&t[i], NULL, read_boxes, &r[i]), 0);
    }
    for (int i = 0; s && i < 2; i++) {
        pthread_join(t[i], NULL);
        CHECK(r[i].equal);
    }
    uint16_t last[3];
    for (int plane = 0; s && plane < 2; plane++)
        CHECK_OK(s->ops->read(s, 0, plane, 0, 3, 219, 220, 31, 32, last, 2, 2, &err), err);
    CHECK_EQ(inner->ops->decoded_bytes(inner), 2 * 220 * page.w * 3 * 2);
    CHECK_EQ(entries(folder), 2); /* the network; the scratch file has no name */
    char outside[8];
    CHECK_STATUS(s->ops->read(s, 0, 0, 0, 1, 19, 20, 31, 32, outside, 2, 2, &err),
                 TG_E_INTERNAL, err);
    tgi_source_close(&s);
    tgi_source_close(&inner);
    free(pixels[0]);
    free(pixels[1]);
    unlink(in_folder("pages.tif"));
}

/* ---- Jobs -------------------------------------------------------------------------------- */

typedef struct outcome {
    tg_status st;
    double passes; /* as the plan counts them */
    uint64_t decoded, peak, budget;
    int64_t strips;
    int used, streams;
    char line[192], detail[512]; /* of the plan's "scratch" or "decoding" */
} outcome;

static void note_plan(tg_job *job, const tg_plan_info *p, outcome *r)
{
    r->peak = p->peak_bytes;
    r->budget = p->budget_bytes;
    r->strips = p->strips;
    r->passes = job->plan.scratch.passes;
    r->used = job->plan.scratch.used;
    r->streams = tgi_job_streams_input(job);
    for (size_t i = 0; i < p->n_lines; i++)
        if (strcmp(p->lines[i].name, "scratch") == 0 ||
            strcmp(p->lines[i].name, "decoding") == 0)
            snprintf(r->line, sizeof r->line, "%s", p->lines[i].note);
}

/* Plan, and run when there is an output, a job of NAME, VALUE pairs. */
static outcome do_job(const char *const *o, int run)
{
    tg_ctx *ctx = NULL;
    tg_opts *opts = NULL;
    tg_job *job = NULL;
    outcome r = {0};
    tg_plan_info p = {.size = sizeof p};
    tg_run_result res = {.size = sizeof res};
    CHECK_EQ(tg_ctx_open(NULL, &ctx), TG_OK);
    r.st = tg_opts_new(ctx, &opts);
    for (; r.st == TG_OK && o[0]; o += 2)
        r.st = tg_opts_set(opts, o[0], o[1]);
    if (r.st == TG_OK)
        r.st = tg_job_open(ctx, opts, &job);
    if (r.st == TG_OK)
        r.st = tg_job_plan(job, &p);
    if (r.st == TG_OK)
        note_plan(job, &p, &r);
    if (r.st == TG_OK && run)
        r.st = tg_job_run(job, &res);
    if (r.st == TG_OK && run) {
        r.decoded = job->source->ops->decoded_bytes(job->source);
        CHECK(TG_SANITIZED || res.measured_peak_bytes <= res.predicted_peak_bytes);
    }
    snprintf(r.detail, sizeof r.detail, "%s", tg_ctx_detail(ctx));
    tg_job_close(&job);
    tg_opts_free(&opts);
    tg_ctx_close(&ctx);
    return r;
}

static char *contents(const char *path, size_t *n)
{
    struct stat st;
    FILE *f = fopen(path, "rb");
    CHECK(f && fstat(fileno(f), &st) == 0);
    if (!f)
        exit(1);
    char *p = malloc((size_t)st.st_size + 1);
    *n = fread(p, 1, (size_t)st.st_size, f);
    fclose(f);
    return p;
}

static void same_files(const char *a, const char *b)
{
    size_t n, m;
    char *x = contents(a, &n), *y = contents(b, &m);
    CHECK(n == m && memcmp(x, y, n) == 0);
    free(x);
    free(y);
}

/* A sixty-fourth of it is too small to hold the strip. A sanitizer's own memory counts as the
 * process's, so there it is larger, and so is the strip. */
static const char *budget(int compression)
{
    return TG_SANITIZED ? "512MiB" : compression == 50000 ? "60MiB" : "32MiB";
}

static void size_strip(layout *a)
{
    const int zstd = a->compression == 50000; /* its window takes more than 4 MiB */
    const int pixel = a->bits / 8 * (a->planar ? 1 : a->samples);
    a->w = TG_SANITIZED || zstd ? 1600 : 900;
    a->h = TG_SANITIZED ? (uint32_t)(5 << 20) / a->w / (uint32_t)pixel : zstd ? 1600 : 400;
    a->block_w = a->w;
    a->block_h = a->h;
}

static void one_way(const layout *a, const char *normalize, int statistics)
{
    uint64_t seed = 5;
    uint8_t *pixels = make_pixels(a, &seed);
    write_tiff(in_folder("in.tif"), a, pixels);
    free(pixels);
    const char *const o[] = {"model",     model,
                             "input",     in_folder("in.tif"),
                             "output",    in_folder("plain.tif"),
                             "ram",       budget(a->compression),
                             "tile",      "4096x352",
                             "normalize", normalize,
                             "exact",     "true", /* else kernels may change with the budget */
                             "yes",       "true",
                             NULL};
    const char *with[sizeof o / sizeof o[0] + 2];
    memcpy(with, o, sizeof o);
    with[5] = in_folder("scratch.tif");
    with[16] = "scratch";
    with[17] = folder;
    with[18] = NULL;
    const outcome plain = do_job(o, 1), kept = do_job(with, 1);
    CHECK_EQ(plain.st, TG_OK);
    CHECK_EQ(kept.st, TG_OK);
    if (plain.st != TG_OK || kept.st != TG_OK) {
        fprintf(stderr, "  %s | %s\n", plain.detail, kept.detail);
        return;
    }
    same_files(in_folder("plain.tif"), in_folder("scratch.tif"));
    CHECK_EQ(entries(folder), 6); /* network, in, two results, two receipts */
    const uint64_t once = (uint64_t)a->w * a->h * (uint64_t)(a->planar ? 1 : a->samples) *
                          (uint64_t)a->bits / 8 * (uint64_t)(a->planar ? a->samples : 1);
    CHECK(plain.streams && kept.used && !plain.used);
    CHECK(strstr(plain.line, "--scratch DIR") != NULL);
    CHECK_EQ(kept.decoded, once);
    CHECK_NEAR(plain.passes, (double)plain.decoded / (double)once, 1e-9);
    /* Samples of a pixel are items: each decodes the others too. */
    const double again = a->planar ? 1 : a->samples;
    CHECK_NEAR(plain.passes, again * (statistics + (double)plain.strips), 1e-9);
}

static void test_scratch_changes_no_byte_and_decodes_once(void)
{
    static const struct {
        int compression, predictor, bits, format, samples, planar;
        const char *normalize;
        int statistics;
    } ways[] = {
        {8, 1, 8, 1, 1, 0, "percentile:1,99", 1}, {8, 3, 32, 3, 1, 0, "percentile:1,99", 2},
        {5, 2, 16, 1, 1, 0, "minmax", 1},         {32773, 1, 16, 1, 1, 0, "scale:0.001,0", 0},
        {50000, 2, 16, 1, 1, 0, "zscore", 1},     {5, 2, 8, 1, 3, 0, "minmax", 1},
        {8, 2, 16, 1, 2, 1, "minmax", 1}};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        layout a = {.compression = ways[i].compression,
                    .predictor = ways[i].predictor,
                    .bits = ways[i].bits,
                    .format = ways[i].format,
                    .samples = ways[i].samples,
                    .planar = ways[i].planar,
                    .mode = i & 1 ? "wb" : "wl8"};
        size_strip(&a);
        if (a.predictor == 3)
            a.mode = "wl"; /* see test_tiff_made.c */
        one_way(&a, ways[i].normalize, ways[i].statistics);
    }
}

static void write_empty_giant(uint32_t side)
{
    layout a = {.compression = 8, .predictor = 1, .bits = 16, .format = 1, .samples = 1};
    a.mode = "wl8";
    a.w = a.h = a.block_w = a.block_h = side;
    uint8_t *pixels = calloc((size_t)side * side, 2);
    write_tiff(in_folder("giant.tif"), &a, pixels);
    free(pixels);
}

static void test_a_plane_in_one_strip_is_planned_smaller_and_not_refused(void)
{
    static const char *const ram[] = {"64MiB", "16MiB", "10MiB"};
    int64_t strips = 0;
    write_empty_giant(4096); /* 32 MiB of pixels */
    for (size_t i = 0; i < 3 && !TG_SANITIZED; i++) {
        const char *const o[] = {"model", model,  "input", in_folder("giant.tif"),
                                 "ram",   ram[i], NULL};
        const outcome r = do_job(o, 0);
        CHECK_EQ(r.st, TG_OK);
        CHECK(r.peak <= r.budget && r.strips >= strips);
        strips = r.strips;
    }
    CHECK(TG_SANITIZED || strips >= 4);
}

static void test_scratch_that_gains_nothing_is_accepted_and_said(void)
{
    layout a = page;
    uint64_t seed = 3;
    a.compression = 1;
    a.predictor = 1;
    uint8_t *pixels = make_pixels(&a, &seed);
    for (int tiles = 0; tiles < 2; tiles++) {
        a.tiled = tiles;
        a.compression = tiles ? 8 : 1;
        a.block_w = tiles ? 64 : a.w;
        a.block_h = tiles ? 64 : a.h;
        write_tiff(in_folder("small.tif"), &a, pixels);
        const char *const o[] = {"model", model,    "input",   in_folder("small.tif"),
                                 "ram",   "100MiB", "scratch", folder,
                                 NULL};
        const outcome r = do_job(o, 0);
        CHECK_EQ(r.st, TG_SANITIZED ? r.st : TG_OK);
        CHECK(TG_SANITIZED || strncmp(r.line, "not used: ", 10) == 0);
        CHECK(!r.used);
    }
    free(pixels);
}

static void test_a_scratch_folder_that_will_not_do_is_named(void)
{
    const char *const o[] = {
        "model", model, "input", in_folder("small.tif"), "scratch", in_folder("nowhere"), NULL};
    outcome r = do_job(o, 0);
    CHECK_EQ(r.st, TG_E_NOT_FOUND);
    CHECK(strstr(r.detail, "nowhere") != NULL);
    const char *const file[] = {
        "model", model, "input", in_folder("small.tif"), "scratch", in_folder("small.tif"),
        NULL};
    CHECK_EQ(do_job(file, 0).st, TG_E_NOT_FOUND);
    /* Root may write anywhere: another user looks. */
    tgi_scratch_place place;
    tgi_err err = {0};
    CHECK_EQ(mkdir(in_folder("shut"), 0555), 0);
    CHECK_EQ(chmod(folder, 0755), 0);
    const pid_t child = fork();
    if (child == 0)
        _exit((geteuid() == 0 && setuid(65534) != 0) ||
              tgi_scratch_look(in_folder("shut"), &place, &err) != TG_E_EXISTS ||
              strstr(err.text, "shut") == NULL);
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_EQ(status, 0);
}

int main(void)
{
    snprintf(folder, sizeof folder, "%s/tegula-scratch-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(folder))
        return 1;
    TIFFSetWarningHandler(NULL);
    make_model();
    RUN(test_boxes_in_any_order_and_from_two_threads_decode_every_block_once);
    RUN(test_scratch_changes_no_byte_and_decodes_once);
    RUN(test_a_plane_in_one_strip_is_planned_smaller_and_not_refused);
    RUN(test_scratch_that_gains_nothing_is_accepted_and_said);
    RUN(test_a_scratch_folder_that_will_not_do_is_named);
    char command[96];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    CHECK_EQ(system(command), 0);
    return TEST_END();
}

/* Whatever the network and its cells: tiles of a stopped run that were damaged are computed
 * again, and the file is the undisturbed one, byte for byte. A damaged tile asks for rows in
 * the middle of a cell, which no other run begins and ends with. */
#include "io/npy.h"
#include "tests/made_nets.h"
#include "tests/tg_test.h"

#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 1 << 22, TRIALS = 12 };
static char folder[] = "/tmp/tg_mended_XXXXXX", in[64], out[64], partial[80], journal[80];
static char net[64];
static const int64_t k3[3] = {3, 3, 3}, open3[3] = {0, 0, 0};
static int stopping;
static char warned[512];

/* OUT appears while the run computes: it may not be replaced, so all tiles stay in OUT.partial.
 */
static void on_progress(void *user, const tg_progress *p)
{
    (void)user;
    if (!stopping || strcmp(p->phase, "run") != 0)
        return;
    FILE *f = fopen(out, "wb");
    CHECK(f && !fclose(f));
}

static void on_log(void *user, tg_log_level level, const char *line)
{
    (void)user;
    if (level == TG_LOG_WARN)
        snprintf(warned, sizeof warned, "%s", line);
}

/* run, or copy without a model; NAME, VALUE pairs up to NULL. */
static tg_status give(const char *const *pairs)
{
    const tg_ctx_opts how = {.size = sizeof how, .progress = on_progress, .log = on_log};
    tg_run_result r = {.size = sizeof r};
    tg_ctx *ctx = NULL;
    tg_opts *o = NULL;
    tg_job *job = NULL;
    warned[0] = 0;
    CHECK_EQ(tg_ctx_open(&how, &ctx), TG_OK);
    CHECK_EQ(tg_opts_new(ctx, &o), TG_OK);
    const int is_run = strcmp(pairs[0], "model") == 0;
    for (; pairs[0]; pairs += 2)
        CHECK_EQ(tg_opts_set(o, pairs[0], pairs[1]), TG_OK);
    tg_status st = is_run ? tg_job_open(ctx, o, &job) : tg_copy(ctx, o);
    if (is_run && st == TG_OK)
        st = tg_job_run(job, &r);
    if (st != TG_OK && !stopping)
        fprintf(stderr, "  %s\n", tg_ctx_detail(ctx));
    tg_job_close(&job);
    tg_opts_free(&o);
    tg_ctx_close(&ctx);
    return st;
}
#define GIVE(...) give((const char *const[]){__VA_ARGS__, NULL})

static void make_input(int64_t d, int64_t h, int64_t w)
{
    char array[80];
    const tgi_desc desc = {TG_DTYPE_F32, 3, {d, h, w}};
    float *px = malloc((size_t)(d * h * w) * sizeof *px);
    uint64_t seed = 11;
    tgi_err e = {0};
    for (int64_t i = 0; px && i < d * h * w; i++)
        px[i] = tg_rand_unit(&seed);
    snprintf(array, sizeof array, "%s.npy", in);
    CHECK_OK(tgi_npy_save(array, &desc, px, &e), e);
    CHECK_EQ(GIVE("input", array, "output", in, "axes", "ZYX", "yes", "true"), TG_OK);
    unlink(array);
    free(px);
}

static uint8_t *slurp(const char *path, size_t *n)
{
    uint8_t *p = malloc(MOST);
    FILE *f = fopen(path, "rb");
    *n = f ? fread(p, 1, MOST, f) : 0;
    CHECK(*n > 0 && *n < MOST);
    if (f)
        fclose(f);
    return p;
}

static void spill(const char *path, const uint8_t *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(p, 1, n, f) == n && !fclose(f));
}

static void mend(const char *tile, const char *compress)
{
    size_t n[4];
    uint64_t seed = 7;
    int mended = 0;
    unlink(out);
    CHECK_EQ(GIVE("model", net, "input", in, "output", out, "tile", tile, "compress", compress),
             TG_OK);
    uint8_t *whole = slurp(out, &n[0]);
    unlink(out);
    stopping = 1;
    CHECK_EQ(GIVE("model", net, "input", in, "output", out, "tile", tile, "compress", compress),
             TG_E_EXISTS);
    stopping = 0;
    uint8_t *tiles = slurp(partial, &n[1]), *progress = slurp(journal, &n[2]);
    for (int trial = 0; trial < TRIALS; trial++) {
        unlink(out);
        spill(partial, tiles, n[1]);
        spill(journal, progress, n[2]);
        FILE *f = fopen(partial, "r+b");
        for (int k = 0; f && k <= trial % 4; k++) {
            const size_t at = n[1] / 8 + (size_t)(tg_rand(&seed) % (n[1] - n[1] / 8));
            CHECK(!fseek(f, (long)at, SEEK_SET) && fputc(tiles[at] ^ 0x20, f) != EOF);
        }
        CHECK(f && !fclose(f));
        CHECK_EQ(
            GIVE("model", net, "input", in, "output", out, "tile", tile, "compress", compress),
            TG_OK);
        mended += strstr(warned, "were damaged") != NULL;
        uint8_t *got = slurp(out, &n[3]);
        CHECK(n[3] == n[0] && !memcmp(got, whole, n[0]));
        free(got);
    }
    CHECK(mended > TRIALS / 2); /* else the front of the file was hit, which is written anew */
    free(whole);
    free(tiles);
    free(progress);
    unlink(out);
}

static void a_plain_network_in_cells_of_any_height(void)
{
    made m = made_begin(2, 1, open3);
    const char *a = made_conv(&m, "x", 1, 8, k3, 1, 1, NULL);
    const char *b = made_conv(&m, made_pool(&m, a, 2), 8, 8, k3, 1, 1, NULL);
    made_conv(&m, made_concat(&m, 1, made_up(&m, b, 8, 8, 2), a), 16, 1, k3, 1, 1, "y");
    made_end(&m, net);
    make_input(2, 200, 240);
    mend("16x16", "none");
    mend("192x32", "lzw");
    mend("208x240", "none");
}

static void a_network_that_makes_the_image_larger_or_smaller(void)
{
    made m = made_begin(2, 1, open3);
    const char *a = made_conv(&m, "x", 1, 8, k3, 1, 1, NULL);
    made_up(&m, a, 8, 1, 2);
    made_conv(&m, made_up(&m, a, 8, 8, 2), 8, 1, k3, 1, 1, "y");
    made_end(&m, net);
    make_input(1, 120, 136);
    mend("256x48", "lzw");
    m = made_begin(2, 1, open3);
    made_conv(&m, made_pool(&m, made_conv(&m, "x", 1, 8, k3, 1, 1, NULL), 2), 8, 1, k3, 1, 1,
              "y");
    made_end(&m, net);
    mend("64x32", "none");
}

static void a_network_that_reads_all_of_the_image(void)
{
    static const int64_t eight[1] = {8};
    made m = made_begin(2, 1, open3);
    const char *a = made_conv(&m, "x", 1, 8, k3, 1, 1, NULL);
    const char *scale = made_weights(&m, 1, eight), *bias = made_weights(&m, 1, eight);
    const char *b = made_node(&m, "InstanceNormalization", a, scale, bias, NULL, NULL, NULL);
    made_conv(&m, b, 8, 1, k3, 1, 1, "y");
    made_end(&m, net);
    make_input(1, 160, 144);
    mend("auto", "none");
}

static void a_network_of_one_size_in_boxes(void)
{
    static const int64_t ext[2] = {64, 96};
    made m = made_begin(2, 1, ext);
    const char *a = made_conv(&m, "x", 1, 8, k3, 1, 1, NULL);
    const char *b = made_conv(&m, made_pool(&m, a, 2), 8, 8, k3, 1, 1, NULL);
    const char *c = made_concat(&m, 1, made_up(&m, b, 8, 8, 2), a);
    made_conv(&m, made_slice(&m, c, 3, 61, 3, 93), 16, 1, k3, 1, 1, "y");
    made_end(&m, net);
    make_input(1, 200, 255);
    mend("auto", "lzw");
}

static void volumes(void)
{
    made m = made_begin(3, 1, open3);
    made_conv(&m, made_conv(&m, "x", 1, 8, k3, 1, 1, NULL), 8, 1, k3, 1, 0, "y");
    made_end(&m, net);
    make_input(11, 37, 41);
    mend("4x16x32", "none");
    mend("11x48x48", "lzw");
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    snprintf(in, sizeof in, "%s/in.tif", folder);
    snprintf(out, sizeof out, "%s/out.tif", folder);
    snprintf(net, sizeof net, "%s/net.onnx", folder);
    snprintf(partial, sizeof partial, "%s.partial", out);
    snprintf(journal, sizeof journal, "%s.journal", out);
    RUN(a_plain_network_in_cells_of_any_height);
    RUN(a_network_that_makes_the_image_larger_or_smaller);
    RUN(a_network_that_reads_all_of_the_image);
    RUN(a_network_of_one_size_in_boxes);
    RUN(volumes);
    char receipt[80];
    snprintf(receipt, sizeof receipt, "%s.tegula.json", out);
    const char *const all[] = {in, out, net, partial, journal, receipt};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        unlink(all[i]);
    rmdir(folder);
    return TEST_END();
}

/* Tiled equals whole, bit for bit: real networks cut at random, several threads, against one
 * cell and one band. */
#include "kernels/backend.h"
#include "tests/net_run.h"

static const char *const models[] = {"kair_dncnn25",
                                     "unet2d_nuclei_broad",
                                     "fmd_noise2noise_unet",
                                     "compact_x2_nomosuni",
                                     "span_x2_nomosuni",
                                     "fsrcnn_x2",
                                     "super_resolution_10",
                                     "sci_low_light",
                                     "own",
                                     "heads",
                                     "deeplab_v3"};

typedef struct subject {
    tgi_graph *g;
    tgi_net *net;
    float *in, *whole, *tiled;
    size_t n_out;
} subject;

static int open_graph(const char *model, tgi_graph **g, tgi_err *err)
{
    char path[512];
    if (strcmp(model, "own") == 0)
        snprintf(path, sizeof path, "%s/models/tegula_denoise.onnx", TG_SOURCE_DIR);
    else if (strcmp(model, "heads") == 0) /* what is no image is computed in every cell */
        snprintf(path, sizeof path, "%s/tests/golden/heads/model.onnx", TG_SOURCE_DIR);
    else
        snprintf(path, sizeof path, "%s/data/models/%s/model.onnx", TG_SHARED_DATA, model);
    if (!tg_has(path))
        return 0;
    CHECK_OK(tgi_graph_import_onnx(path, g, err), *err);
    CHECK_OK(tgi_graph_finish(*g, 0, err), *err);
    return 1;
}

/* The extent asked for, as far as the network takes it. */
static int64_t extent(const tgi_graph *g, int k, int64_t n)
{
    const int64_t fixed = tgi_graph_fixed_extent(g, k);
    return fixed ? fixed : tgi_graph_extent(g, k, n);
}

static void open_subject(subject *s, int64_t h, int64_t w, unsigned flags, uint64_t *seed,
                         tgi_err *err)
{
    const tgi_port *p = &s->g->in[0];
    const tgi_desc in = {TG_DTYPE_F32,
                         4,
                         {1, p->perm[1] >= 0 ? p->file_dim[p->perm[1]] : 1, extent(s->g, 1, h),
                          extent(s->g, 2, w)}};
    int64_t n;
    CHECK_OK(tgi_net_new(s->g, tgi_backend_for(tgi_isa_detect(TGI_ISA_COUNT)), &in, flags,
                         &s->net, err),
             *err);
    tgi_desc_count(&in, &n);
    s->in = malloc((size_t)n * sizeof(float));
    for (int64_t i = 0; i < n; i++)
        s->in[i] = 0.5f + 0.5f * tg_rand_unit(seed);
    s->n_out = net_out_count(s->net, 0);
    s->whole = malloc(s->n_out * sizeof(float));
    s->tiled = malloc(s->n_out * sizeof(float));
    net_io io = {.in = {s->in}, .out = {s->whole}};
    const int64_t uncut[3] = {0, 0, 0};
    CHECK_OK(net_run(s->net, uncut, 1 << 20, 1, &io, -1, err), *err);
}

static void close_subject(subject *s)
{
    tgi_net_free(&s->net);
    free(s->in);
    free(s->whole);
    free(s->tiled);
}

/* One pixel, primes, larger than the image, and what lies between. */
static int64_t random_cut(uint64_t *seed, int64_t dim)
{
    static const int64_t primes[] = {2,  3,  5,  7,  11, 13, 17, 19,
                                     23, 29, 31, 37, 41, 43, 47, 53};
    switch (tg_rand_in(seed, 0, 3)) {
    case 0:
        return primes[tg_rand_in(seed, 0, 15)];
    case 1:
        return dim + tg_rand_in(seed, 0, 9);
    case 2:
        return 1;
    default:
        return tg_rand_in(seed, 1, dim);
    }
}

/* Compare the cell that was computed; the rest of `tiled` is untouched NaN. */
static int64_t count_differences(const subject *s, int64_t *compared)
{
    int64_t bad = 0;
    *compared = 0;
    for (size_t i = 0; i < s->n_out; i++) {
        uint32_t a, b;
        memcpy(&a, &s->tiled[i], 4);
        memcpy(&b, &s->whole[i], 4);
        if (a == 0x7fc0dead)
            continue;
        (*compared)++;
        bad += a != b;
    }
    return bad;
}

static void check_one(subject *s, uint64_t *seed, int threads, tgi_err *err)
{
    const tgi_desc *out = &s->net->shapes.desc[s->net->out[0]];
    const int64_t cut[3] = {0, random_cut(seed, out->dim[2]), random_cut(seed, out->dim[3])};
    const int64_t band = tg_rand_in(seed, 1, 40);
    const int64_t ny = tgi_ceil_div(out->dim[2], tgi_min(cut[1], out->dim[2]));
    const int64_t nx = tgi_ceil_div(out->dim[3], tgi_min(cut[2], out->dim[3]));
    const int64_t cell = tg_rand_in(seed, 0, ny * nx - 1);
    const uint32_t mark = 0x7fc0dead;
    for (size_t i = 0; i < s->n_out; i++)
        memcpy(&s->tiled[i], &mark, 4);
    net_io io = {.in = {s->in}, .out = {s->tiled}};
    CHECK_OK(net_run(s->net, cut, band, threads, &io, cell, err), *err);
    int64_t compared;
    const int64_t bad = count_differences(s, &compared);
    CHECK(compared > 0);
    CHECK_EQ(bad, 0);
    if (bad)
        fprintf(stderr, "  cut %lldx%lld band %lld cell %lld threads %d: %lld of %lld differ\n",
                (long long)cut[1], (long long)cut[2], (long long)band, (long long)cell, threads,
                (long long)bad, (long long)compared);
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 20261121;
    const int rounds = argc > 3 ? atoi(argv[3]) : 24;
    int found = 0;
    tgi_err err = {0};
    if (net_must_skip())
        TEST_SKIP("no AVX512_BF16");
    printf("seed %llu\n", (unsigned long long)seed);
    for (size_t m = 0; m < sizeof models / sizeof models[0]; m++) {
        subject s = {0};
        if (argc > 1 && strcmp(argv[1], "all") != 0 && strcmp(argv[1], models[m]) != 0)
            continue;
        if (!open_graph(models[m], &s.g, &err))
            continue;
        found++;
        const int before = tg_failures;
        for (int size = 0; size < 2; size++) {
            open_subject(&s, size ? 67 : 96, size ? 101 : 64, net_flags((uint64_t)size), &seed,
                         &err);
            const int n = s.g->fixed_size ? rounds / 12 : rounds / 2; /* those are large */
            for (int i = 0; i < n; i++)
                check_one(&s, &seed, i % 3 + 1, &err);
            close_subject(&s);
        }
        tgi_graph_free(&s.g);
        printf("%s %s\n", tg_failures == before ? "ok  " : "FAIL", models[m]);
        fflush(stdout);
    }
    if (!found)
        TEST_SKIP("the model's files are not there");
    return TEST_END();
}

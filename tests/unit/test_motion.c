/* Motions from frame to frame: those of the reference (tools/train_flow.py --golden), on the grid where they end; behind what is
 * hidden those of what is around it. */
#include "engine/inpaint/motion.h"

#include "engine/base/mem.h"
#include "engine/base/reserve.h"
#include "io/npy.h"
#include "tests/tg_test.h"

#include <stdlib.h>

#define GOLDEN TG_SOURCE_DIR "/tests/golden/flow/"
#define NETWORK TG_SOURCE_DIR "/configs/networks/flow.onnx"

static tgi_graph *network;

static void *load(const char *name, tgi_desc *d)
{
    char path[1024];
    void *data = NULL;
    tgi_err e = {0};
    snprintf(path, sizeof path, GOLDEN "%s", name);
    CHECK_OK(tgi_npy_load(path, 0, d, &data, &e), e);
    return data;
}

static float *luma_of(const char *name, int64_t *h, int64_t *w)
{
    tgi_desc d;
    uint8_t *rgb = load(name, &d);
    *h = d.dim[0];
    *w = d.dim[1];
    float *y = malloc((size_t)(*h * *w) * sizeof *y);
    for (int64_t i = 0; rgb && i < *h * *w; i++)
        y[i] = (0.299f * (float)rgb[3 * i] + 0.587f * (float)rgb[3 * i + 1] +
                0.114f * (float)rgb[3 * i + 2]) /
               255.0f;
    tgi_free(rgb);
    return y;
}

typedef struct finder {
    tgi_motions *m;
    tgi_reserve *reserve;
    tgi_threads *pool;
    tgi_schedule_run *run;
    float *out;
} finder;

static finder open_finder(int64_t h, int64_t w, int threads)
{
    finder f = {0};
    tgi_err e = {0};
    void *weights, *block;
    CHECK_OK(tgi_motions_new(network, tgi_backend_for(tgi_isa_best()), h, w, threads, NULL,
                             &f.m, &e),
             e);
    const tgi_want want[] = {{"weights", f.m->schedule->weight_bytes, &weights},
                             {"block", f.m->schedule->block_bytes, &block}};
    CHECK_OK(tgi_reserve_all(want, 2, 0, &f.reserve, &e), e);
    CHECK_OK(tgi_threads_open(threads, &f.pool, &e), e);
    f.m->pool = f.pool;
    const tgi_schedule_memory m = {.weights = weights, .block = block, .pool = f.pool};
    CHECK_OK(tgi_schedule_open(f.m->schedule, &m, &f.run, &e), e);
    f.out = malloc(f.m->bytes);
    return f;
}

static void close_finder(finder *f)
{
    tgi_schedule_close(&f->run);
    tgi_threads_close(&f->pool);
    tgi_reserve_close(&f->reserve);
    tgi_motions_free(&f->m);
    free(f->out);
}

static void find(finder *f, const float *a, const float *b, const uint8_t *hidden)
{
    tgi_err e = {0};
    const tgi_motion_frame first = {a, hidden}, second = {b, hidden};
    CHECK_OK(tgi_motions_find(f->m, f->run, &first, &second, f->out, &e), e);
}

static void test_motions_are_those_of_the_reference(void)
{
    int64_t h, w;
    tgi_desc d;
    float *a = luma_of("image1.npy", &h, &w), *b = luma_of("image2.npy", &h, &w);
    float *level = load("level1.npy", &d);
    uint8_t *hidden = calloc((size_t)(h * w), 1);
    for (int threads = 1; threads <= 2; threads++) {
        finder f = open_finder(h, w, threads);
        CHECK_EQ(f.m->step, 4);
        CHECK_EQ(f.m->rows, d.dim[1]);
        CHECK_EQ(f.m->columns, d.dim[2]);
        find(&f, a, b, hidden);
        double most = 0;
        for (int64_t i = 0; level && i < 2 * f.m->rows * f.m->columns; i++)
            most = fmax(most, fabs((double)f.out[i] - 2 * (double)level[i]));
        printf("     %d thread%s: at most %.2g pixels beside the reference\n", threads,
               threads > 1 ? "s" : "", most);
        CHECK(most < 2e-3);
        close_finder(&f);
    }
    tgi_free(level);
    free(a);
    free(b);
    free(hidden);
}

/* Smooth, with something to see on every scale. */
static float shade(double y, double x)
{
    return (float)(0.5 + 0.2 * sin(x / 3) * cos(y / 4) + 0.15 * sin((x + 2 * y) / 9) +
                   0.1 * cos((x - y) / 2.2));
}

/* A pan, and a square in front of it that stands still: behind it and around it the pan is found. */
static void test_a_pan_goes_on_behind_what_is_hidden(void)
{
    enum { H = 96, W = 128 };
    const double pan[2] = {1.5, -0.75}; /* x, y */
    static float a[H * W], b[H * W];
    static uint8_t hidden[H * W];
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            const int in = y >= 36 && y < 60 && x >= 50 && x < 78;
            a[y * W + x] = in ? 0.9f : shade(y, x);
            b[y * W + x] = in ? 0.9f : shade(y - pan[1], x - pan[0]);
            hidden[y * W + x] = (uint8_t)in;
        }
    finder f = open_finder(H, W, 2);
    find(&f, a, b, hidden);
    double most = 0;
    for (int64_t i = 40 / f.m->step; i < 56 / f.m->step; i++)
        for (int64_t j = 54 / f.m->step; j < 74 / f.m->step; j++)
            for (int c = 0; c < 4; c++) {
                const double v = f.out[(c * f.m->rows + i) * f.m->columns + j];
                most = fmax(most, fabs(v - (c < 2 ? pan[c] : -pan[c - 2])));
            }
    printf("     at most %.2g pixels beside the pan\n", most);
    CHECK(most < 0.3);
    close_finder(&f);
}

int main(void)
{
    tgi_err e = {0};
    CHECK_OK(tgi_graph_load_onnx(NETWORK, 0, &network, &e), e);
    if (network) {
        RUN(test_motions_are_those_of_the_reference);
        RUN(test_a_pan_goes_on_behind_what_is_hidden);
    }
    tgi_graph_free(&network);
    return TEST_END();
}

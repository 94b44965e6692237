/* What other frames show behind something: against a background that is known, and the same bits whatever the order, the threads and
 * the memory. */
#include "engine/inpaint/propagate.h"

#include "engine/graph/graph.h"
#include "tests/tg_test.h"

#include <stdlib.h>

enum { H = 72, W = 96, N = 24, REACH = 10 };
#define PLANE ((size_t)(H * W))

static tgi_graph *network;

/* A film: a pan over a smooth pattern, and a box in front of it that goes to and fro. */
typedef struct film {
    int fails_at; /* this frame cannot be read; -1: all can */
    int hides_all, reads;
} film;

static double pattern(int c, double y, double x)
{
    return 128 + 40 * sin(x / (3.1 + c)) * cos(y / 4.2) + 30 * sin((x + 2 * y) / 8.7 + c) +
           20 * cos((x - y) / 2.7);
}

static void known(int64_t k, int64_t y, int64_t x, uint8_t rgb[3])
{
    for (int c = 0; c < 3; c++)
        rgb[c] = (uint8_t)lrint(
            pattern(c, (double)y + 0.4 * (double)k, (double)x + 1.7 * (double)k));
}

static int in_box(int64_t k, int64_t y, int64_t x)
{
    const int64_t at = 20 + (k * 5) % 40;
    return y >= 26 && y < 44 && x >= at && x < at + 16;
}

static tg_status frame(void *user, int64_t k, void *pixels, uint8_t *hidden, tgi_err *err)
{
    film *f = user;
    uint8_t *to = pixels;
    f->reads++;
    if (k == f->fails_at)
        return tgi_fail(err, TG_E_FORMAT, "frame %lld is damaged", (long long)k);
    for (int64_t y = 0; y < H; y++)
        for (int64_t x = 0; x < W; x++, to += 3) {
            const int in = in_box(k, y, x);
            known(k, y, x, to);
            if (in)
                memset(to, 250, 3);
            hidden[y * W + x] = (uint8_t)(in || k == f->hides_all);
        }
    return TG_OK;
}

static tgi_propagate *opened(film *f, int threads, int follows, const char *scratch)
{
    tgi_propagate *p = NULL;
    tgi_err e = {0};
    const tgi_propagate_how how = {.height = H,
                                   .width = W,
                                   .samples = 3,
                                   .dtype = TG_DTYPE_U8,
                                   .lo = 0,
                                   .hi = N,
                                   .reach = REACH,
                                   .threads = threads,
                                   .network = follows ? network : NULL,
                                   .be = tgi_backend_for(tgi_isa_best()),
                                   .scratch = scratch,
                                   .user = f,
                                   .frame = frame};
    CHECK_OK(tgi_propagate_new(&how, &p, &e), e);
    return p;
}

static uint8_t *whole_film(void)
{
    static uint8_t all[N * H * W * 3];
    static int is_made;
    film f = {.fails_at = -1, .hides_all = -1};
    tgi_err e = {0};
    if (is_made)
        return all;
    tgi_propagate *p = opened(&f, 2, 1, NULL);
    for (int64_t k = 0; k < N; k++) {
        tgi_propagated out;
        CHECK_OK(tgi_propagate_make(p, k, &out, &e), e);
        memcpy(all + (size_t)k * PLANE * 3, out.pixels, PLANE * 3);
    }
    CHECK_EQ(f.reads, N);
    tgi_propagate_free(&p);
    is_made = 1;
    return all;
}

static void test_the_background_comes_back(void)
{
    double sum = 0, n = 0;
    int64_t outside = 0;
    const uint8_t *all = whole_film();
    for (int64_t k = 0; k < N; k++)
        for (int64_t i = 0; i < H * W; i++) {
            uint8_t want[3];
            known(k, i / W, i % W, want);
            for (int c = 0; c < 3; c++) {
                const int d = all[((size_t)k * PLANE + (size_t)i) * 3 + (size_t)c] - want[c];
                if (in_box(k, i / W, i % W)) {
                    sum += d * d;
                    n++;
                } else
                    outside += d != 0;
            }
        }
    const double db = 10 * log10(255 * 255 * n / fmax(sum, 1));
    printf("     %.1f dB of what was hidden\n", db);
    CHECK_EQ(outside, 0);
    CHECK(db > 35);
}

/* Frames in that order. */
static void same_frames(tgi_propagate *p, int64_t first, int64_t step, int n)
{
    const uint8_t *all = whole_film();
    tgi_err e = {0};
    for (int i = 0; i < n; i++) {
        tgi_propagated out;
        const int64_t k = first + i * step;
        CHECK_OK(tgi_propagate_make(p, k, &out, &e), e);
        CHECK(memcmp(out.pixels, all + (size_t)k * PLANE * 3, PLANE * 3) == 0);
    }
}

static void test_order_threads_and_memory_change_nothing(void)
{
    film f = {.fails_at = -1, .hides_all = -1};
    tgi_propagate *p = opened(&f, 1, 1, NULL);
    same_frames(p, 13, 1, 5); /* from amid it */
    same_frames(p, 20, -1, 4);
    same_frames(p, 2, 7, 3);
    tgi_propagate_free(&p);
    p = opened(&f, 3, 1, ".");
    const size_t most = tgi_propagate_bytes(p);
    CHECK_EQ(tgi_propagate_disk(p), 0);
    int steps = 0;
    while (tgi_propagate_shrink(p))
        steps++;
    CHECK(steps > 1 && tgi_propagate_bytes(p) < most && tgi_propagate_disk(p) > 0);
    CHECK(tgi_propagate_in_memory(p) < tgi_propagate_span(p));
    same_frames(p, 0, 1, N);
    CHECK(!tgi_propagate_shrink(p)); /* it runs */
    tgi_propagate_free(&p);
}

static void test_without_a_network_each_frame_is_filled_by_itself(void)
{
    film f = {.fails_at = -1, .hides_all = -1};
    tgi_propagate *p = opened(&f, 1, 0, NULL);
    tgi_err e = {0};
    tgi_propagated out;
    for (int64_t k = 3; k >= 0; k--) {
        CHECK_OK(tgi_propagate_make(p, k, &out, &e), e);
        int64_t left = 0, beside = 0;
        for (int64_t i = 0; i < H * W; i++) {
            uint8_t want[3];
            known(k, i / W, i % W, want);
            left += out.left[i] != in_box(k, i / W, i % W);
            beside += !in_box(k, i / W, i % W) &&
                      memcmp((const uint8_t *)out.pixels + 3 * i, want, 3) != 0;
        }
        CHECK_EQ(left, 0);
        CHECK_EQ(beside, 0);
    }
    CHECK_EQ(f.reads, 4);
    tgi_propagate_free(&p);
}

static void test_a_frame_that_is_hidden_wholly(void)
{
    film f = {.fails_at = -1, .hides_all = 9};
    tgi_propagate *p = opened(&f, 2, 1, NULL);
    tgi_err e = {0};
    tgi_propagated out;
    CHECK_OK(tgi_propagate_make(p, 9, &out, &e), e);
    CHECK_EQ(out.all_hidden, 1);
    int64_t black = 0;
    for (size_t i = 0; i < 3 * PLANE; i++)
        black += ((const uint8_t *)out.pixels)[i] == 0;
    CHECK_EQ(black, 0); /* other frames show it */
    CHECK_OK(tgi_propagate_make(p, 10, &out, &e), e);
    CHECK_EQ(out.all_hidden, 0);
    tgi_propagate_free(&p);
}

static void test_what_cannot_be_read_can_be_tried_again(void)
{
    film f = {.fails_at = 12, .hides_all = -1};
    for (int follows = 0; follows < 2; follows++) {
        tgi_propagate *p = opened(&f, 1, follows, NULL);
        tgi_err e = {0};
        tgi_propagated out;
        f.fails_at = 12;
        CHECK_STATUS(tgi_propagate_make(p, 12, &out, &e), TG_E_FORMAT, e);
        f.fails_at = -1;
        if (follows)
            same_frames(p, 12, 1, 2);
        else
            CHECK_OK(tgi_propagate_make(p, 12, &out, &e), e);
        CHECK_STATUS(tgi_propagate_make(p, N, &out, &e), TG_E_ARG, e);
        tgi_propagate_free(&p);
    }
}

int main(void)
{
    tgi_err e = {0};
    CHECK_OK(tgi_graph_load_onnx(TG_SOURCE_DIR "/configs/networks/flow.onnx", 0, &network, &e),
             e);
    if (network) {
        RUN(test_the_background_comes_back);
        RUN(test_order_threads_and_memory_change_nothing);
        RUN(test_without_a_network_each_frame_is_filled_by_itself);
        RUN(test_a_frame_that_is_hidden_wholly);
        RUN(test_what_cannot_be_read_can_be_tried_again);
    }
    tgi_graph_free(&network);
    return TEST_END();
}

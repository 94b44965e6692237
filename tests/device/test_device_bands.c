/* How bands are chosen for a device: as tall as keeps its multiprocessors busy, and no taller;
 * in the memory there is. By the model of device_time.h: no device is asked. */
#include "engine/plan/choose.h"
#include "engine/plan/device_time.h"
#include "tests/device/fake_device.h"
#include "tests/made_nets.h"
#include "tests/net_run.h"

#include <unistd.h>

typedef struct subject {
    tgi_graph *g;
    tgi_net *net;
    tgi_stages *stages;
    tgi_rates rates;
} subject;

/* Three levels down and up again: rows are an eighth in the middle. */
static tgi_graph *make_graph(const char *path)
{
    static const int64_t ext[3] = {0, 0, 0}, k3[3] = {3, 3, 3};
    tgi_graph *g = NULL;
    tgi_err err = {0};
    made m = made_begin(2, 1, ext);
    char skip[3][16];
    const char *x = "x";
    int64_t c = 1;
    for (int level = 0; level < 3; level++) {
        x = made_conv(&m, x, c, 16, k3, 1, 1, NULL);
        snprintf(skip[level], sizeof skip[level], "%s", x);
        x = made_pool(&m, x, 2);
        c = 16;
    }
    x = made_conv(&m, x, 16, 16, k3, 1, 1, NULL);
    for (int level = 2; level >= 0; level--) {
        x = made_concat(&m, 1, made_up(&m, x, 16, 8, 2), skip[level]);
        x = made_conv(&m, x, 24, 16, k3, 1, 1, NULL);
    }
    made_conv(&m, x, 16, 1, k3, 1, 1, "y");
    made_end(&m, path);
    CHECK_OK(tgi_graph_import_onnx(path, &g, &err), err);
    CHECK_OK(tgi_graph_finish(g, 0, &err), err);
    return g;
}

static subject open_subject(int64_t side, int multiprocessors)
{
    char path[64];
    tgi_err err = {0};
    subject s = {0};
    const tgi_desc in = {TG_DTYPE_F32, 4, {1, 1, side, side}};
    snprintf(path, sizeof path, "/tmp/tegula_bands_%d.onnx", (int)getpid());
    s.g = make_graph(path);
    unlink(path);
    CHECK_OK(tgi_net_new(s.g, fake_backend(TG_DTYPE_F32), &in, 0, &s.net, &err), err);
    CHECK_OK(tgi_stages_new(s.net, &s.stages, &err), err);
    s.rates = tgi_device_rates(multiprocessors, TG_DTYPE_F16);
    return s;
}

static void close_subject(subject *s)
{
    tgi_stages_free(&s->stages);
    tgi_net_free(&s->net);
    tgi_graph_free(&s->g);
}

static double pixels_too(void *user, const tgi_tiling *t)
{
    const subject *s = user;
    const tgi_slot *in = &t->slot[s->net->in[0]];
    return tgi_device_seconds(&s->rates, t, 4.0 * (double)in->ring * (double)in->width);
}

static tgi_choice choose(subject *s, size_t limit, int whole)
{
    tgi_choice c;
    tgi_err err = {0};
    const tgi_choose_args a = {.stage = &s->stages->one,
                               .threads = 1,
                               .limit_bytes = limit,
                               .unit = {1, 1, 1},
                               .whole = whole,
                               .seconds = pixels_too,
                               .tallest = 4096,
                               .user = s};
    CHECK_OK(tgi_choose(&a, &c, &err), err);
    CHECK(c.chosen_bytes <= limit);
    return c;
}

/* Band height for so many multiprocessors and bytes. */
static int64_t band_for(int64_t side, int multiprocessors, size_t limit)
{
    subject s = open_subject(side, multiprocessors);
    tgi_choice c = choose(&s, limit, 0);
    const int64_t band = c.tiling.band;
    tgi_tiling_free(&c.tiling);
    close_subject(&s);
    return band;
}

static void test_a_large_device_gets_taller_bands_than_a_small_one(void)
{
    const int64_t small = band_for(4096, 2, (size_t)1 << 34);
    const int64_t large = band_for(4096, 132, (size_t)1 << 34);
    CHECK(small < large);
    CHECK(large > 32); /* what a processor would be given */
}

static void test_less_memory_costs_time_but_always_fits(void)
{
    subject s = open_subject(4096, 132);
    tgi_choice c = choose(&s, (size_t)1 << 34, 0);
    double before = c.seconds;
    size_t limit = c.chosen_bytes;
    tgi_tiling_free(&c.tiling);
    for (int i = 0; i < 4; i++) {
        limit /= 2;
        c = choose(&s, limit, 0);
        CHECK(c.seconds >= before * 0.98);
        CHECK(c.seconds < before * 2);
        before = c.seconds;
        tgi_tiling_free(&c.tiling);
    }
    close_subject(&s);
}

/* The goal of 85 % of the untiled rate, as far as the model of a device's time goes. */
static void test_bands_in_a_quarter_of_the_memory_take_little_longer_than_the_whole(void)
{
    subject s = open_subject(16384, 132);
    tgi_choice untiled = choose(&s, SIZE_MAX, 1);
    const double whole = tgi_device_seconds(&s.rates, &untiled.tiling, 0);
    CHECK(untiled.chosen_bytes > (size_t)16 << 30);
    tgi_choice tiled = choose(&s, (size_t)4 << 30, 0);
    CHECK(whole / tgi_device_seconds(&s.rates, &tiled.tiling, 0) > 0.85);
    tgi_tiling_free(&untiled.tiling);
    tgi_tiling_free(&tiled.tiling);
    close_subject(&s);
}

/* Half of the memory for two parts in a hundred of the time is left to others. */
static void test_memory_that_does_not_pay_is_not_taken(void)
{
    subject s = open_subject(4096, 132);
    tgi_choice c = choose(&s, (size_t)1 << 34, 0);
    int dearer = 0;
    for (int i = 0; i < c.n_tried; i++) {
        const tgi_tried *r = &c.tried[i];
        CHECK(r->seconds > c.seconds * 0.98);
        CHECK(r->bytes >= c.chosen_bytes || r->seconds > c.least_seconds * 1.02);
        dearer += r->bytes > 2 * c.chosen_bytes;
    }
    CHECK(dearer > 0);
    tgi_tiling_free(&c.tiling);
    close_subject(&s);
}

static int lanes_for(int64_t side, int multiprocessors)
{
    subject s = open_subject(side, multiprocessors);
    tgi_choice c = choose(&s, (size_t)1 << 34, 0);
    const int lanes = tgi_device_lanes_wanted(&s.rates, &c.tiling);
    CHECK(lanes == 1 || c.tiling.bands == c.tiling.cells);
    tgi_tiling_free(&c.tiling);
    close_subject(&s);
    return lanes;
}

static void test_small_images_are_computed_beside_each_other(void)
{
    CHECK_EQ(lanes_for(64, 132), TGI_DEVICE_LANES);
    CHECK_EQ(lanes_for(8192, 132), 1);
    CHECK_EQ(lanes_for(256, 2), 1); /* one band, and enough */
    CHECK(lanes_for(128, 4) < lanes_for(128, 132));
}

static void test_all_items_take_as_long_as_kernels_or_pixels_do(void)
{
    subject s = open_subject(64, 132);
    tgi_choice c = choose(&s, (size_t)1 << 34, 0);
    const tgi_tiling *t = &c.tiling;
    const double alone = tgi_device_seconds(&s.rates, t, 0);
    CHECK_NEAR(tgi_device_all_seconds(&s.rates, t, 1, 1, 0), alone, 1e-12);
    CHECK_NEAR(tgi_device_all_seconds(&s.rates, t, 10, 1, 0), 10 * alone, 1e-11);
    /* Beside each other they take less, but for what keeps the device busy by itself. */
    const double four = tgi_device_all_seconds(&s.rates, t, 10, 4, 0);
    CHECK(four >= 10 * alone / 4 && four < 10 * alone / 2);
    CHECK(tgi_device_all_seconds(&s.rates, t, 10, 1000000, 0) > 0.01 * alone);
    /* A terabyte takes the host longer than the kernels take; half as much half as long. */
    const double much = tgi_device_all_seconds(&s.rates, t, 10, 1, 1e12);
    CHECK(much > 100 && much > 10 * alone);
    CHECK_NEAR(tgi_device_all_seconds(&s.rates, t, 10, 1, 5e11), much / 2, 1e-6 * much);
    /* Few pixels hide behind the kernels, but for a band of them. */
    const double few = tgi_device_all_seconds(&s.rates, t, 10, 1, 1e4);
    CHECK(few > 10 * alone && few < 10.1 * alone);
    tgi_tiling_free(&c.tiling);
    close_subject(&s);
}

static void test_seconds_follow_the_share_of_busy_blocks(void)
{
    const tgi_rates r = tgi_device_rates(10, TG_DTYPE_F16);
    const tgi_rates one = tgi_device_rates(1, TG_DTYPE_F32);
    CHECK(r.flops > 10 * one.flops);
    CHECK(r.blocks == 10 * one.blocks);
    CHECK(tgi_device_blocks(1, 1) == 1);
    CHECK(tgi_device_blocks(129, 65) == 4);
    CHECK(tgi_device_rates(0, TG_DTYPE_F16).flops > r.flops); /* unknown: not the smallest */
}

int main(void)
{
    RUN(test_a_large_device_gets_taller_bands_than_a_small_one);
    RUN(test_less_memory_costs_time_but_always_fits);
    RUN(test_bands_in_a_quarter_of_the_memory_take_little_longer_than_the_whole);
    RUN(test_memory_that_does_not_pay_is_not_taken);
    RUN(test_small_images_are_computed_beside_each_other);
    RUN(test_all_items_take_as_long_as_kernels_or_pixels_do);
    RUN(test_seconds_follow_the_share_of_busy_blocks);
    return TEST_END();
}

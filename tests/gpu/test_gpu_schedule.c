/* Networks of a schedule on a device: attention of frames in windows, whose keys and values are there at once while queries
 * come in bands. The numbers are the processor's, and the same bits in any room. Runs on a real device (label gpu), on the
 * emulated one and on the fake one. */
#include "engine/base/arith.h"
#include "engine/exec/schedule_run.h"
#include "engine/graph/draft.h"
#include "tests/cuda/device_run.h"
#include "tests/tg_test.h"

#include <math.h>

enum {
    FRAMES = 4,
    ASKED = 3,
    CHANNELS = 64,
    HIGH = 23,
    WIDE = 31,
    POOL_HIGH = 5,
    POOL_WIDE = 7
};
#define WINDOWS_HIGH ((HIGH + 4) / 5)
#define WINDOWS_WIDE ((WIDE + 8) / 9)

static const tgi_device_ops *ops;
static tgi_device *device;

static tgi_graph *make_graph(void)
{
    static float bias[2][CHANNELS]; /* outlives the graph */
    uint64_t seed = 3;
    for (int i = 0; i < 2 * CHANNELS; i++)
        bias[i / CHANNELS][i % CHANNELS] = tg_rand_unit(&seed);
    static const int64_t dim[1] = {CHANNELS};
    tgi_graph *g = NULL;
    tgi_err e = {0};
    tgi_draft d;
    tgi_draft_begin(&d);
    const int src[8] = {
        tgi_draft_input(&d, "queries", ASKED * CHANNELS, HIGH, WIDE),
        tgi_draft_input(&d, "keys", FRAMES * CHANNELS, HIGH, WIDE),
        tgi_draft_input(&d, "values", FRAMES * CHANNELS, HIGH, WIDE),
        tgi_draft_input(&d, "pooled keys", FRAMES * CHANNELS, POOL_HIGH, POOL_WIDE),
        tgi_draft_input(&d, "pooled values", FRAMES * CHANNELS, POOL_HIGH, POOL_WIDE),
        tgi_draft_input(&d, "masked windows", 1, WINDOWS_HIGH, WINDOWS_WIDE),
        tgi_draft_floats(&d, "key bias", 1, dim, bias[0], NULL),
        tgi_draft_floats(&d, "value bias", 1, dim, bias[1], NULL)};
    const int v = tgi_draft_node(&d, "WindowAttention", "attention", 8, src);
    tgi_draft_int(&d, "frames", FRAMES);
    tgi_draft_int(&d, "asked", ASKED);
    tgi_draft_int(&d, "heads", 2);
    tgi_draft_int(&d, "window_h", 5);
    tgi_draft_int(&d, "window_w", 9);
    tgi_draft_int(&d, "first", 1);
    tgi_draft_float(&d, "scale", 1.0f / sqrtf(CHANNELS / 2));
    tgi_draft_output(&d, v);
    CHECK_OK(tgi_draft_finish(&d, &g, &e), e);
    return g;
}

static const int64_t shape[7][3] = {
    {ASKED * CHANNELS, HIGH, WIDE},
    {FRAMES * CHANNELS, HIGH, WIDE},
    {FRAMES * CHANNELS, HIGH, WIDE},
    {FRAMES * CHANNELS, POOL_HIGH, POOL_WIDE},
    {FRAMES * CHANNELS, POOL_HIGH, POOL_WIDE},
    {1, WINDOWS_HIGH, WINDOWS_WIDE},
    {ASKED * CHANNELS, HIGH, WIDE},
};

static double seconds(void *user, const tgi_tiling *t, const tgi_sched_stay *stays)
{
    (void)user;
    (void)stays;
    return t->flops / 1e12 + 1e-6 * (double)(t->cells * t->bands);
}

static size_t extra(void *user, const tgi_tiling *t, const tgi_sched_stay *always)
{
    (void)user;
    return tgi_schedule_device_extra(ops, t, always);
}

static void *room_of(size_t n)
{
    return aligned_alloc(64, tgi_align_size(n < 64 ? 64 : n, 64));
}

/* What the network gives, dense; `be` NULL: of the processor. *room: there, then used; *bands: how many. */
static float *made(const tgi_graph *g, const tgi_kernel_set *be, size_t *room, int64_t *bands)
{
    const tgi_sched_device how = {.be = be, .room = *room, .seconds = seconds, .extra = extra};
    const tgi_kernel_set *here = tgi_backend_for(tgi_isa_best());
    tgi_sched_need need = {0};
    tgi_schedule *s = NULL;
    tgi_err e = {0};
    CHECK_OK(tgi_schedule_new(&s, &e), e);
    s->flags = TGI_NET_EXACT;
    s->device = be ? &how : NULL;
    const int net = tgi_schedule_net(s, g, here, shape[0][0], HIGH, WIDE, 2);
    tgi_schedule_called(s, net);
    CHECK_OK(tgi_schedule_plan(s, &e), e);
    tgi_schedule_memory m = {.weights = room_of(s->weight_bytes),
                             .block = room_of(s->block_bytes)};
    tgi_sched_card card = {0};
    CHECK_OK(tgi_threads_open(2, &m.pool, &e), e);
    if (be) {
        CHECK_OK(tgi_schedule_device_need(ops, s, &need, &e), e);
        CHECK_OK(tgi_sched_card_open(ops, device, &need, &card, &e), e);
        CHECK(need.room <= *room);
        m.card = &card;
    }
    tgi_schedule_run *run = NULL;
    CHECK_OK(tgi_schedule_open(s, &m, &run, &e), e);
    tgi_sched_at at[7];
    for (int i = 0; i < 7; i++) {
        uint64_t seed = (uint64_t)i + 11;
        const int64_t n = shape[i][0] * shape[i][1] * shape[i][2];
        float *x = malloc((size_t)n * sizeof *x);
        for (int64_t k = 0; k < n; k++)
            x[k] = i == 5 ? (float)(k % 3 == 0) : i == 6 ? NAN : tg_rand_unit(&seed);
        at[i] = tgi_sched_here(x);
    }
    for (int twice = 0; twice < 2; twice++) /* what is loaded once is loaded again */
        CHECK_OK(tgi_schedule_call(run, net, at, &at[6], &e), e);
    *room = need.room;
    *bands = s->net[net].choice.tiling.bands;
    tgi_schedule_close(&run);
    tgi_sched_card_close(&card);
    tgi_threads_close(&m.pool);
    free(m.weights);
    free(m.block);
    for (int i = 0; i < 6; i++)
        free((void *)(uintptr_t)at[i].at);
    tgi_schedule_free(&s);
    return (float *)(uintptr_t)at[6].at;
}

static void in_rooms(const tgi_graph *g, const float *want, tg_dtype element, double allowed)
{
    const size_t n = (size_t)ASKED * CHANNELS * HIGH * WIDE;
    const tgi_kernel_set *be = device_has(element) ? ops->backend(element) : NULL;
    size_t room[2] = {(size_t)256 << 20, 0};
    int64_t bands[2] = {0};
    float *got[2] = {NULL};
    double other = 0, all = 0;
    if (!be) {
        printf("  no kernels of %s\n", tgi_dtype_name(element));
        return;
    }
    for (int k = 0; k < 2; k++) {
        got[k] = made(g, be, &room[k], &bands[k]);
        room[1] = k ? room[1] : room[0] * 15 / 16;
    }
    for (size_t i = 0; i < n; i++) {
        const double d = (double)got[0][i] - (double)want[i];
        other += d * d;
        all += (double)want[i] * (double)want[i];
    }
    printf("  %s: %.2g of the processor's, %lld and %lld bands, %zu and %zu bytes\n",
           tgi_dtype_name(element), sqrt(other / all), (long long)bands[0], (long long)bands[1],
           room[0], room[1]);
    CHECK(sqrt(other / all) < allowed);
    CHECK(bands[0] < bands[1]);
    CHECK(memcmp(got[0], got[1], n * sizeof(float)) == 0);
    free(got[0]);
    free(got[1]);
}

static void test_attention_streams_its_queries(void)
{
    tgi_graph *g = make_graph();
    size_t none = 0;
    int64_t bands;
    float *want = made(g, NULL, &none, &bands);
    in_rooms(g, want, TG_DTYPE_F32, 1e-6);
    in_rooms(g, want, TG_DTYPE_F16, 1e-3);
    free(want);
    tgi_graph_free(&g);
}

int main(void)
{
    ops = device_of_test(&device);
    if (!ops)
        return 77;
    RUN(test_attention_streams_its_queries);
    return TEST_END();
}

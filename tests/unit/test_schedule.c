/* Schedules of several networks: what their steps compute is what the networks compute one by one, in a block whose
 * buffers meet nobody while they are alive. */
#include "engine/exec/schedule_run.h"

#include "engine/base/mem.h"
#include "io/npy.h"
#include "tests/made_nets.h"
#include "tests/net_run.h"

#define C 2
#define MODEL "test_schedule.onnx"

static tgi_graph *graph;

static void make_network(void)
{
    const int64_t k[2] = {3, 3};
    tgi_err e = {0};
    made m = made_begin(2, C, (const int64_t[]){0, 0});
    const char *v = made_conv(&m, "x", C, 5, k, 1, 1, NULL);
    v = made_node(&m, "Relu", v, NULL, NULL, NULL, NULL, NULL);
    made_conv(&m, v, 5, C, k, 1, 1, "y");
    made_end(&m, MODEL);
    CHECK_OK(tgi_graph_load_onnx(MODEL, 0, &graph, &e), e);
}

/* What the network makes of x, [C,h,w]. */
static void apply(const float *x, int64_t h, int64_t w, float *y)
{
    const tgi_desc in = {TG_DTYPE_F32, 4, {1, C, h, w}};
    tgi_net *net = NULL;
    tgi_err e = {0};
    net_io io = {.in = {x}, .out = {y}};
    CHECK_OK(tgi_net_new(graph, tgi_backend_for(tgi_isa_best()), &in, 0, &net, &e), e);
    CHECK_OK(net_run(net, (const int64_t[]){0, 0, 0}, 8, 1, &io, -1, &e), e);
    tgi_net_free(&net);
}

/* ---- Functions of the caller -------------------------------------------------------------- */

typedef struct frames {
    const float *x;
    int64_t h, w;
    int calls;
} frames;

static tg_status put(void *user, const tgi_sched_step *step, void *const *buffer, tgi_err *err)
{
    frames *f = user;
    (void)err;
    f->calls++;
    memcpy(buffer[step->out[0]], f->x, (size_t)(C * f->h * f->w) * sizeof(float));
    return TG_OK;
}

/* Every other row and column. */
static tg_status thin(void *user, const tgi_sched_step *step, void *const *buffer, tgi_err *err)
{
    frames *f = user;
    const float *from = buffer[step->in[0]];
    float *to = buffer[step->out[0]];
    (void)err;
    f->calls++;
    for (int64_t c = 0; c < C; c++)
        for (int64_t y = 0; y < f->h / 2; y++)
            for (int64_t x = 0; x < f->w / 2; x++)
                *to++ = from[(c * f->h + 2 * y) * f->w + 2 * x];
    return TG_OK;
}

static tg_status refuse(void *user, const tgi_sched_step *step, void *const *buffer,
                        tgi_err *err)
{
    (void)user;
    (void)step;
    (void)buffer;
    return tgi_fail(err, TG_E_CANCELLED, "asked to stop");
}

static tgi_sched_step work(tgi_sched_work *f, int in, int out)
{
    return (tgi_sched_step){.name = "work",
                            .net = TGI_SCHED_WORK,
                            .work = f,
                            .in = {in},
                            .n_in = in >= 0,
                            .out = {out},
                            .n_out = 1};
}

static tgi_sched_step network(int net, int in, int out)
{
    return (tgi_sched_step){
        .name = "network", .net = net, .in = {in}, .n_in = 1, .out = {out}, .n_out = 1};
}

/* ---- A run -------------------------------------------------------------------------------- */

typedef struct memory {
    char *weights, *block;
    tgi_schedule_run *run;
    tgi_threads *pool;
} memory;

#define CANARY 64

/* In memory that is full of NaN, with a canary behind each block. */
static memory open_run(const tgi_schedule *s, int threads)
{
    tgi_err e = {0};
    memory m = {.weights = aligned_alloc(64, tgi_align_size(s->weight_bytes, 64) + CANARY),
                .block = aligned_alloc(64, tgi_align_size(s->block_bytes, 64) + CANARY)};
    memset(m.weights, 0xff, s->weight_bytes);
    memset(m.block, 0xff, s->block_bytes);
    memset(m.weights + s->weight_bytes, 0x5a, CANARY);
    memset(m.block + s->block_bytes, 0x5a, CANARY);
    CHECK_OK(tgi_threads_open(threads, &m.pool, &e), e);
    const tgi_schedule_memory how = {.weights = m.weights, .block = m.block, .pool = m.pool};
    CHECK_OK(tgi_schedule_open(s, &how, &m.run, &e), e);
    return m;
}

static void close_run(memory *m, const tgi_schedule *s)
{
    for (int i = 0; i < CANARY; i++) {
        CHECK(m->weights[s->weight_bytes + (size_t)i] == 0x5a);
        CHECK(m->block[s->block_bytes + (size_t)i] == 0x5a);
    }
    tgi_schedule_close(&m->run);
    tgi_threads_close(&m->pool);
    free(m->weights);
    free(m->block);
}

static float *noise(int64_t n, uint64_t seed)
{
    float *x = malloc((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = tg_rand_unit(&seed);
    return x;
}

static void check_same(const float *a, const float *b, int64_t n)
{
    int64_t other = 0;
    for (int64_t i = 0; i < n; i++)
        other += !(a[i] == b[i]);
    CHECK_EQ(other, 0);
}

static int alive_together(const tgi_sched_buffer *a, const tgi_sched_buffer *b)
{
    return a->first <= b->last && b->first <= a->last && a->first <= a->last &&
           b->first <= b->last;
}

static void check_places(const tgi_schedule *s)
{
    size_t sum = 0;
    for (int i = 0; i < s->n_buffers; i++) {
        const tgi_sched_buffer *a = &s->buffer[i];
        sum += tgi_align_size(a->bytes, 64);
        CHECK(a->offset + a->bytes <= s->block_bytes);
        for (int k = 0; k < i; k++) {
            const tgi_sched_buffer *b = &s->buffer[k];
            CHECK(!alive_together(a, b) || a->offset + a->bytes <= b->offset ||
                  b->offset + b->bytes <= a->offset);
        }
    }
    for (int i = 0; i < s->n_nets; i++)
        sum += tgi_align_size(s->net[i].choice.tiling.arena_bytes, 64);
    CHECK(s->block_bytes <= sum);
}

/* ---- Tests -------------------------------------------------------------------------------- */

static void test_steps_compute_what_their_networks_do(void)
{
    const int64_t h = 22, w = 34, n = C * h * w;
    const tgi_kernel_set *be = tgi_backend_for(tgi_isa_best());
    tgi_schedule *s = NULL;
    tgi_err e = {0};
    CHECK_OK(tgi_schedule_new(&s, &e), e);
    const int a = tgi_schedule_buffer(s, "a", C, h, w),
              b = tgi_schedule_buffer(s, "b", C, h, w),
              c = tgi_schedule_buffer(s, "c", C, h, w),
              d = tgi_schedule_buffer(s, "d", C, h / 2, w / 2),
              f = tgi_schedule_buffer(s, "f", C, h / 2, w / 2);
    tgi_schedule_keep(s, f);
    const int large = tgi_schedule_net(s, graph, be, C, h, w, 2);
    const int small = tgi_schedule_net(s, graph, be, C, h / 2, w / 2, 2);
    CHECK(large != small);
    CHECK_EQ(tgi_schedule_net(s, graph, be, C, h, w, 2), large);
    const tgi_sched_step steps[] = {work(put, -1, a), network(large, a, b),
                                    network(large, b, c), work(thin, c, d),
                                    network(small, d, f)};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        tgi_schedule_step(s, &steps[i]);
    CHECK_OK(tgi_schedule_plan(s, &e), e);
    CHECK_EQ(s->buffer[a].first, 0);
    CHECK_EQ(s->buffer[a].last, 1);
    CHECK_EQ(s->buffer[c].first, 2);
    CHECK_EQ(s->buffer[c].last, 3);
    CHECK_EQ(s->buffer[f].first, 0);
    CHECK_EQ(s->buffer[f].last, 4);
    CHECK(s->flops > 0);
    check_places(s);

    float *x = noise(n, 3), *y = malloc((size_t)n * sizeof *y),
          *z = malloc((size_t)n * sizeof *z);
    apply(x, h, w, y);
    apply(y, h, w, z);
    frames user = {.x = x, .h = h, .w = w};
    void *const buffers[] = {z, y};
    tgi_sched_step plain = work(thin, 0, 1);
    CHECK_OK(thin(&user, &plain, buffers, &e), e);
    apply(y, h / 2, w / 2, z);
    for (int threads = 1; threads <= 2; threads++) {
        memory m = open_run(s, threads);
        for (int round = 0; round < 2; round++) { /* it can be run again */
            user.calls = 0;
            CHECK_OK(tgi_schedule_steps(m.run, 0, 2, &user, &e), e);
            CHECK_EQ(user.calls, 1);
            CHECK_OK(tgi_schedule_steps(m.run, 2, s->n_steps, &user, &e), e);
            CHECK_EQ(user.calls, 2);
            check_same(tgi_schedule_at(m.run, f), z, n / 4);
        }
        close_run(&m, s);
    }
    free(x);
    free(y);
    free(z);
    tgi_schedule_free(&s);
}

static void repeat(int times)
{
    const int64_t h = 17, w = 21, n = C * h * w;
    tgi_schedule *s = NULL;
    tgi_err e = {0};
    CHECK_OK(tgi_schedule_new(&s, &e), e);
    const int a = tgi_schedule_buffer(s, "a", C, h, w),
              b = tgi_schedule_buffer(s, "b", C, h, w);
    tgi_schedule_keep(s, a);
    tgi_schedule_keep(s, b);
    tgi_sched_step step =
        network(tgi_schedule_net(s, graph, tgi_backend_for(tgi_isa_best()), C, h, w, 1), a, b);
    step.repeat = times;
    step.n_state = 1;
    tgi_schedule_step(s, &step);
    CHECK_OK(tgi_schedule_plan(s, &e), e);
    float *x = noise(n, 9), *y = malloc((size_t)n * sizeof *y);
    memory m = open_run(s, 1);
    memcpy(tgi_schedule_at(m.run, a), x, (size_t)n * sizeof *x);
    CHECK_OK(tgi_schedule_steps(m.run, 0, 1, NULL, &e), e);
    for (int i = 0; i < times; i++) {
        apply(x, h, w, y);
        memcpy(x, y, (size_t)n * sizeof *x);
    }
    check_same(tgi_schedule_at(m.run, b), x, n);
    close_run(&m, s);
    free(x);
    free(y);
    tgi_schedule_free(&s);
}

static void test_a_repeated_network_gets_what_it_gave(void)
{
    for (int times = 1; times <= 4; times++)
        repeat(times);
}

#define FLOW TG_SHARED_DATA "/data/models/nanoflownet/"

static float *golden(const char *name)
{
    tgi_desc d;
    void *data = NULL;
    tgi_err e = {0};
    CHECK_OK(tgi_npy_load(name, 0, &d, &data, &e), e);
    return data;
}

/* Any network from a file, of several outputs: a flow network and its answer. */
static void test_a_network_of_others(void)
{
    enum { H = 128, W = 160, N = 2 * (H / 4) * (W / 4) };
    tgi_graph *g = NULL;
    tgi_schedule *s = NULL;
    tgi_err e = {0};
    if (!tg_has(FLOW "model.onnx"))
        return;
    CHECK_OK(tgi_graph_load_onnx(FLOW "model.onnx", 0, &g, &e), e);
    CHECK_OK(tgi_schedule_new(&s, &e), e);
    const int pair = tgi_schedule_buffer(s, "pair", 2, H, W);
    const int flow[2] = {tgi_schedule_buffer(s, "flow", 2, H / 4, W / 4),
                         tgi_schedule_buffer(s, "coarse", 2, H / 4, W / 4)};
    for (int i = 0; i < 2; i++)
        tgi_schedule_keep(s, flow[i]);
    const int net = tgi_schedule_net(s, g, tgi_backend_for(tgi_isa_best()), 2, H, W, 2);
    tgi_sched_step step = network(net, pair, flow[0]);
    step.out[step.n_out++] = flow[1];
    tgi_schedule_step(s, &step);
    CHECK_OK(tgi_schedule_plan(s, &e), e);
    memory m = open_run(s, 2);
    float *in = golden(FLOW "s128x160.in.npy");
    float *want[2] = {golden(FLOW "s128x160.out0.npy"), golden(FLOW "s128x160.out1.npy")};
    memcpy(tgi_schedule_at(m.run, pair), in, 2 * H * W * sizeof *in);
    CHECK_OK(tgi_schedule_steps(m.run, 0, 1, NULL, &e), e);
    for (int o = 0; o < 2; o++) {
        const float *got = tgi_schedule_at(m.run, flow[o]);
        double most = 0;
        for (int i = 0; i < N; i++)
            most = fmax(most, fabs((double)got[i] - want[o][i]) - 1e-3 * fabs(want[o][i]));
        printf("     output %d: %.2g beside the golden's, beyond its thousandth\n", o, most);
        CHECK(most < 3.3e-3); /* as the golden says */
        tgi_free(want[o]);
    }
    tgi_free(in);
    close_run(&m, s);
    tgi_schedule_free(&s);
    tgi_graph_free(&g);
}

static void test_what_does_not_fit_is_named(void)
{
    tgi_schedule *s = NULL;
    tgi_err e = {0};
    CHECK_OK(tgi_schedule_new(&s, &e), e);
    CHECK_STATUS(tgi_schedule_plan(s, &e), TG_E_ARG, e);
    const int a = tgi_schedule_buffer(s, "frame", C, 8, 8),
              b = tgi_schedule_buffer(s, "result", C, 8, 9);
    const int net = tgi_schedule_net(s, graph, tgi_backend_for(tgi_isa_best()), C, 8, 8, 1);
    const tgi_sched_step step = network(net, a, b);
    tgi_schedule_step(s, &step);
    e = (tgi_err){0};
    CHECK_EQ(tgi_schedule_plan(s, &e), TG_E_ARG);
    CHECK_STR(e.text,
              "step \"network\": buffer \"result\" is [2,8,9], the network has [2,8,8] there");
    tgi_schedule_free(&s);
}

static void test_a_function_may_end_the_run(void)
{
    tgi_schedule *s = NULL;
    tgi_err e = {0};
    CHECK_OK(tgi_schedule_new(&s, &e), e);
    const int a = tgi_schedule_bytes(s, "bytes", 100);
    const tgi_sched_step first = work(refuse, -1, a);
    tgi_schedule_step(s, &first);
    CHECK_OK(tgi_schedule_plan(s, &e), e);
    memory m = open_run(s, 1);
    CHECK_STATUS(tgi_schedule_steps(m.run, 0, 1, NULL, &e), TG_E_CANCELLED, e);
    close_run(&m, s);
    tgi_schedule_free(&s);
}

int main(void)
{
    make_network();
    RUN(test_steps_compute_what_their_networks_do);
    RUN(test_a_repeated_network_gets_what_it_gave);
    RUN(test_a_network_of_others);
    RUN(test_what_does_not_fit_is_named);
    RUN(test_a_function_may_end_the_run);
    tgi_graph_free(&graph);
    remove(MODEL);
    return TEST_END();
}

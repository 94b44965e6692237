/* A schedule whose networks a device computes: the numbers are those of the processor's schedule, for any room of the
 * device, and it takes what was planned. */
#include "engine/base/arith.h"
#include "engine/exec/schedule_run.h"
#include "tests/device/fake_device.h"
#include "tests/made_nets.h"

#include <math.h>

#define C 12 /* more than lie dense */
#define H 37
#define W 50

static tgi_graph *make_graph(void)
{
    static const int64_t ext[3] = {0, 0, 0}, k3[3] = {3, 3, 3};
    tgi_graph *g = NULL;
    tgi_err e = {0};
    made m = made_begin(2, C, ext);
    const char *a = made_conv(&m, "x", C, 7, k3, 1, 1, NULL);
    a = made_node(&m, "Tanh", a, NULL, NULL, NULL, NULL, NULL);
    made_conv(&m, a, 7, C, k3, 1, 1, "y");
    made_end(&m, "test_device_schedule.onnx");
    CHECK_OK(tgi_graph_load_onnx("test_device_schedule.onnx", 0, &g, &e), e);
    return g;
}

/* ---- Planned ----------------------------------------------------------------------------- */

static double seconds(void *user, const tgi_tiling *t, const tgi_sched_stay *stays)
{
    (void)user;
    (void)stays;
    return t->flops / 1e12 + 1e-6 * (double)(t->cells * t->bands);
}

static size_t extra(void *user, const tgi_tiling *t, const tgi_sched_stay *always)
{
    return tgi_schedule_device_extra(user, t, always);
}

typedef struct planned {
    tgi_schedule *s;
    tgi_sched_device device;
    int a, b, net;
} planned;

/* b = a after three times through the network; b + what a call makes of it. */
static void plan(planned *p, const tgi_graph *g, int lanes, size_t room, int here)
{
    const tgi_kernel_set *be = tgi_backend_for(tgi_isa_best());
    tgi_err e = {0};
    CHECK_OK(tgi_schedule_new(&p->s, &e), e);
    p->s->lanes = lanes ? be->lanes : 0;
    p->s->flags = TGI_NET_EXACT;
    p->device = (tgi_sched_device){.be = fake_backend(TG_DTYPE_F32),
                                   .room = room,
                                   .seconds = seconds,
                                   .extra = extra,
                                   .user = (void *)(uintptr_t)fake_device_ops()};
    p->s->device = here ? NULL : &p->device;
    p->a = tgi_schedule_buffer(p->s, "a", C, H, W);
    p->b = tgi_schedule_buffer(p->s, "b", C, H, W);
    tgi_schedule_keep(p->s, p->a);
    tgi_schedule_keep(p->s, p->b);
    p->net = tgi_schedule_net(p->s, g, be, C, H, W, 2);
    tgi_schedule_called(p->s, p->net);
    tgi_schedule_step(p->s, &(tgi_sched_step){.name = "thrice",
                                              .net = p->net,
                                              .repeat = 3,
                                              .in = {p->a},
                                              .n_in = 1,
                                              .out = {p->b},
                                              .n_out = 1,
                                              .n_state = 1});
}

static float *numbers(int64_t n)
{
    uint64_t seed = 7;
    float *x = malloc((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = tg_rand_unit(&seed);
    return x;
}

/* Element c, y, x of a buffer. */
static size_t place_of(const tgi_schedule *s, int64_t c, int64_t y, int64_t x)
{
    const int64_t n = tgi_sched_lanes(s->lanes, C);
    return n == 1 ? (size_t)((c * H + y) * W + x)
                  : (size_t)(y * tgi_sched_row((int)n, C, W) + (c / n * W + x) * n + c % n);
}

/* ---- Run --------------------------------------------------------------------------------- */

typedef struct memory {
    void *weights, *block;
    tgi_threads *pool;
    tgi_device *device;
    tgi_sched_card card;
    tgi_schedule_run *run;
} memory;

static int stop_after; /* bands; 0: never */

static tg_status stop(void *user, tgi_err *err)
{
    (void)user;
    return stop_after && --stop_after == 0 ? tgi_fail(err, TG_E_CANCELLED, "stopped") : TG_OK;
}

/* Full of NaN. */
static void *room_of(size_t n)
{
    const size_t all = tgi_align_size(n < 64 ? 64 : n, 64);
    void *p = aligned_alloc(64, all & (SIZE_MAX >> 1));
    memset(p, 0xff, all & (SIZE_MAX >> 1));
    return p;
}

static tg_status open_run(memory *m, const tgi_schedule *s, tgi_sched_need *need, tgi_err *e)
{
    const tgi_device_ops *ops = fake_device_ops();
    *m = (memory){.weights = room_of(s->weight_bytes), .block = room_of(s->block_bytes)};
    CHECK_OK(tgi_threads_open(2, &m->pool, e), *e);
    if (s->device) {
        CHECK_OK(tgi_schedule_device_need(ops, s, need, e), *e);
        CHECK_EQ(s->weight_bytes, 0);
        TGI_TRY(ops->open(0, &m->device, e));
        TGI_TRY(tgi_sched_card_open(ops, m->device, need, &m->card, e));
    }
    const tgi_schedule_memory how = {.weights = m->weights,
                                     .block = m->block,
                                     .pool = m->pool,
                                     .card = &m->card,
                                     .stop = stop};
    return tgi_schedule_open(s, &how, &m->run, e);
}

static void close_run(memory *m)
{
    tgi_schedule_close(&m->run);
    tgi_sched_card_close(&m->card);
    if (m->device)
        fake_device_ops()->close(&m->device);
    tgi_threads_close(&m->pool);
    free(m->weights);
    free(m->block);
}

/* After the steps, and a call of the network with b: dense. */
static float *made_by(const tgi_graph *g, int lanes, size_t room, int here)
{
    const int64_t n = (int64_t)C * H * W;
    planned p;
    memory m;
    tgi_err e = {0};
    tgi_sched_need need = {0};
    float *x = numbers(n), *y = malloc((size_t)n * sizeof *y);
    plan(&p, g, lanes, room, here);
    CHECK_OK(tgi_schedule_plan(p.s, &e), e);
    CHECK_OK(open_run(&m, p.s, &need, &e), e);
    float *a = tgi_schedule_at(m.run, p.a), *b = tgi_schedule_at(m.run, p.b);
    memset(a, 0, p.s->buffer[p.a].bytes);
    for (int64_t i = 0; i < n; i++)
        a[place_of(p.s, i / (H * W), i / W % H, i % W)] = x[i];
    CHECK_OK(tgi_schedule_steps(m.run, 0, 1, NULL, &e), e);
    const tgi_sched_at in[1] = {tgi_sched_here(b)}, out[1] = {tgi_sched_here(a)};
    CHECK_OK(tgi_schedule_call(m.run, p.net, in, out, &e), e);
    for (int64_t i = 0; i < n; i++)
        y[i] = a[place_of(p.s, i / (H * W), i / W % H, i % W)];
    if (!here) {
        CHECK(need.room <= room);
        CHECK(fake_used_bytes() <= fake.context_bytes + tgi_sched_need_device(&need));
    }
    close_run(&m);
    CHECK_EQ(fake_open_things(), 0);
    tgi_schedule_free(&p.s);
    free(x);
    return y;
}

static void test_it_gives_what_the_processor_gives(void)
{
    static const size_t room[] = {(size_t)64 << 20, (size_t)64 << 10, (size_t)32 << 10};
    tgi_graph *g = make_graph();
    for (int lanes = 0; lanes < 2; lanes++) {
        float *want = made_by(g, lanes, 0, 1), *first = NULL;
        for (size_t k = 0; k < sizeof room / sizeof room[0]; k++) {
            fake_reset();
            float *got = made_by(g, lanes, room[k], 0);
            double other = 0, all = 0;
            for (int64_t i = 0; i < (int64_t)C * H * W; i++) {
                const double d = (double)got[i] - (double)want[i];
                other += d * d;
                all += (double)want[i] * (double)want[i];
            }
            CHECK(sqrt(other / all) < 1e-6); /* 1.5e-7 was seen */
            CHECK(!first || memcmp(got, first, sizeof(float) * C * H * W) == 0);
            if (first)
                free(got);
            else
                first = got;
        }
        free(want);
        free(first);
    }
    tgi_graph_free(&g);
}

static void test_too_little_room_is_refused_when_it_is_planned(void)
{
    tgi_graph *g = make_graph();
    planned p;
    tgi_err e = {0};
    plan(&p, g, 1, 4096, 0);
    CHECK_EQ(tgi_schedule_plan(p.s, &e), TG_E_BUDGET);
    tgi_schedule_free(&p.s);
    tgi_graph_free(&g);
}

static void test_what_a_device_lacks_is_given_back(void)
{
    static const fake_call fails[] = {FAKE_ALLOC, FAKE_PIN, FAKE_PROGRAM};
    tgi_graph *g = make_graph();
    for (size_t k = 0; k < sizeof fails / sizeof fails[0]; k++) {
        planned p;
        memory m;
        tgi_err e = {0};
        tgi_sched_need need = {0};
        plan(&p, g, 1, (size_t)1 << 20, 0);
        CHECK_OK(tgi_schedule_plan(p.s, &e), e);
        fake_reset();
        fake.fail_at[fails[k]] = 1;
        fake.fail_with[fails[k]] = TG_E_NOMEM;
        /* memory that cannot be pinned is ordinary */
        CHECK_EQ(open_run(&m, p.s, &need, &e), fails[k] == FAKE_PIN ? TG_OK : TG_E_NOMEM);
        fake.fail_at[fails[k]] = 0;
        close_run(&m);
        CHECK_EQ(fake_open_things(), 0);
        tgi_schedule_free(&p.s);
    }
    tgi_graph_free(&g);
}

#define LESS_W 20

/* What of a network was still to be sent or computed when it was stopped lies in the room of all of them. */
static void test_what_was_stopped_disturbs_no_other(void)
{
    tgi_graph *g = make_graph();
    planned p;
    memory m;
    tgi_err e = {0};
    tgi_sched_need need = {0};
    plan(&p, g, 0, (size_t)32 << 10, 0);
    const int less = tgi_schedule_net(p.s, g, fake_backend(TG_DTYPE_F32), C, H, LESS_W, 2);
    const int c = tgi_schedule_buffer(p.s, "c", C, H, LESS_W),
              d = tgi_schedule_buffer(p.s, "d", C, H, LESS_W);
    tgi_schedule_called(p.s, less);
    tgi_schedule_keep(p.s, c);
    tgi_schedule_keep(p.s, d);
    CHECK_OK(tgi_schedule_plan(p.s, &e), e);
    fake_reset();
    fake.eager[TGI_QUEUE_UPLOAD] = 1;
    CHECK_OK(open_run(&m, p.s, &need, &e), e);
    float *x = numbers((int64_t)C * H * W);
    const size_t little = p.s->buffer[d].bytes, all = p.s->buffer[p.b].bytes;
    float *first = malloc(little), *whole = malloc(all);
    memcpy(tgi_schedule_at(m.run, p.a), x, all);
    memcpy(tgi_schedule_at(m.run, c), x, little);
    const tgi_sched_at in[2] = {tgi_sched_here(tgi_schedule_at(m.run, p.a)),
                                tgi_sched_here(tgi_schedule_at(m.run, c))},
                       out[2] = {tgi_sched_here(tgi_schedule_at(m.run, p.b)),
                                 tgi_sched_here(tgi_schedule_at(m.run, d))};
    CHECK_OK(tgi_schedule_call(m.run, p.net, &in[0], &out[0], &e), e);
    CHECK_OK(tgi_schedule_call(m.run, less, &in[1], &out[1], &e), e);
    memcpy(whole, out[0].at, all);
    memcpy(first, out[1].at, little);
    for (int bands = 1; bands < 6; bands++) {
        stop_after = bands;
        CHECK_EQ(tgi_schedule_call(m.run, p.net, &in[0], &out[0], &e), TG_E_CANCELLED);
        memset(tgi_schedule_at(m.run, d), 0, little);
        CHECK_OK(tgi_schedule_call(m.run, less, &in[1], &out[1], &e), e);
        CHECK(memcmp(first, out[1].at, little) == 0);
        CHECK_OK(tgi_schedule_call(m.run, p.net, &in[0], &out[0], &e), e);
        CHECK(memcmp(whole, out[0].at, all) == 0);
    }
    free(x);
    free(first);
    free(whole);
    close_run(&m);
    tgi_schedule_free(&p.s);
    tgi_graph_free(&g);
}

/* ---- Buffers that stay ------------------------------------------------------------------- */

#define N ((int64_t)C * H * W)

typedef struct staying {
    tgi_schedule *s;
    int x, once, again, zero, state, y, of_zero, pair, put, small, net, less;
    const float *from; /* as buffers lie */
    float *got[5];     /* y, of_zero, of a part, of what was put */
} staying;

static tg_status fill(void *user, const tgi_sched_step *step, void *const *buffer, tgi_err *err)
{
    const staying *t = user;
    (void)err;
    memcpy(buffer[step->out[0]], t->from, t->s->buffer[t->x].bytes);
    return TG_OK;
}

static tg_status take(void *user, const tgi_sched_step *step, void *const *buffer, tgi_err *err)
{
    const staying *t = user;
    (void)err;
    for (int i = 0; i < 2; i++)
        memcpy(t->got[i], buffer[step->in[i]], t->s->buffer[t->y].bytes);
    return TG_OK;
}

static void through(const staying *t, int in, int out, int repeat)
{
    tgi_schedule_step(t->s, &(tgi_sched_step){.name = "net",
                                              .net = t->net,
                                              .repeat = repeat,
                                              .in = {in},
                                              .n_in = 1,
                                              .out = {out},
                                              .n_out = 1,
                                              .n_state = repeat > 1});
}

/* Copies, zeros, a state that is handed on, a part of more channels, what the host puts there. */
static void plan_staying(staying *t, const tgi_graph *g, int lanes,
                         const tgi_sched_device *device)
{
    const tgi_kernel_set *be = tgi_backend_for(tgi_isa_best());
    int *const one[] = {&t->x,     &t->once, &t->again,   &t->zero,
                        &t->state, &t->y,    &t->of_zero, &t->put};
    tgi_err e = {0};
    CHECK_OK(tgi_schedule_new(&t->s, &e), e);
    t->s->lanes = lanes ? be->lanes : 0;
    t->s->flags = TGI_NET_EXACT;
    t->s->device = device;
    for (size_t i = 0; i < sizeof one / sizeof one[0]; i++)
        *one[i] = tgi_schedule_buffer(t->s, "one", C, H, W);
    t->pair = tgi_schedule_buffer(t->s, "pair", (int64_t)2 * C, H, W);
    t->net = tgi_schedule_net(t->s, g, be, C, H, W, 2);
    tgi_schedule_called(t->s, t->net);
    tgi_schedule_keep(t->s, t->pair);
    tgi_schedule_keep(t->s, t->put);
    tgi_schedule_writes(t->s, t->net, 0, t->pair, 1);
    tgi_schedule_reads(t->s, t->net, 0, t->pair, 2);
    tgi_schedule_writes(t->s, t->net, 0, t->put, 1);
    tgi_schedule_reads(t->s, t->net, 0, t->put, 1);
    t->less = tgi_schedule_net(t->s, g, be, C, H, LESS_W, 2);
    t->small = tgi_schedule_buffer(t->s, "small", C, H, LESS_W);
    tgi_schedule_called(t->s, t->less);
    tgi_schedule_keep(t->s, t->small);
    tgi_schedule_writes(t->s, t->less, 0, t->small, 1);
    tgi_schedule_reads(t->s, t->less, 0, t->small, 1);
    tgi_schedule_step(
        t->s,
        &(tgi_sched_step){
            .name = "fill", .net = TGI_SCHED_WORK, .work = fill, .out = {t->x}, .n_out = 1});
    through(t, t->x, t->once, 1);
    tgi_schedule_step(t->s, &(tgi_sched_step){.name = "copy",
                                              .net = TGI_SCHED_COPY,
                                              .in = {t->once},
                                              .n_in = 1,
                                              .out = {t->again, t->zero},
                                              .n_out = 2});
    through(t, t->again, t->state, 2);
    through(t, t->state, t->y, 1);
    through(t, t->zero, t->of_zero, 1);
    tgi_schedule_step(t->s, &(tgi_sched_step){.name = "take",
                                              .net = TGI_SCHED_WORK,
                                              .work = take,
                                              .in = {t->y, t->of_zero},
                                              .n_in = 2});
    CHECK_OK(tgi_schedule_plan(t->s, &e), e);
}

/* What all of it gives, in far bytes of the device; *stays: of them used, *sent: uploads. */
static void run_staying(const tgi_graph *g, int lanes, size_t far, float *got[5], size_t *stays,
                        int *sent)
{
    static const int64_t shape[3] = {C, H, W};
    const tgi_sched_device device = {.be = fake_backend(TG_DTYPE_F32),
                                     .room = (size_t)64 << 10,
                                     .far = far,
                                     .seconds = seconds,
                                     .extra = extra,
                                     .user = (void *)(uintptr_t)fake_device_ops()};
    staying t = {0};
    memory m;
    tgi_err e = {0};
    tgi_sched_need need = {0};
    plan_staying(&t, g, lanes, &device);
    const size_t all = t.s->buffer[t.x].bytes;
    float *from = numbers((int64_t)(all / sizeof(float)));
    t.from = from;
    for (int i = 0; i < 5; i++)
        t.got[i] = got[i] = room_of(all);
    CHECK_OK(open_run(&m, t.s, &need, &e), e);
    CHECK_OK(tgi_schedule_steps(m.run, 0, t.s->n_steps, &t, &e), e);
    /* One is sent while what was sent before may not have been computed yet. */
    const tgi_sched_at pair = tgi_schedule_place(m.run, t.pair),
                       small = tgi_schedule_place(m.run, t.small),
                       from_here = tgi_sched_here(from), of_small = tgi_sched_here(got[3]),
                       of_part = tgi_sched_here(got[2]),
                       part = lanes ? tgi_schedule_part(m.run, pair, C, W, 1, 2) : from_here;
    if (lanes)
        CHECK_OK(tgi_schedule_call(m.run, t.net, &from_here, &part, &e), e);
    CHECK_OK(tgi_schedule_call(m.run, t.less, &from_here, &small, &e), e);
    CHECK_OK(tgi_schedule_call(m.run, t.net, &part, &of_part, &e), e);
    CHECK_OK(tgi_schedule_call(m.run, t.less, &small, &of_small, &e), e);
    const tgi_sched_at put = tgi_schedule_place(m.run, t.put), last = tgi_sched_here(got[4]);
    CHECK_OK(tgi_schedule_put(m.run, shape, got[2], put, &e), e);
    CHECK_OK(tgi_schedule_call(m.run, t.net, &put, &last, &e), e);
    CHECK(need.far <= far && need.far == t.s->far_bytes);
    CHECK(fake_used_bytes() <= fake.context_bytes + tgi_sched_need_device(&need));
    *stays = t.s->far_bytes;
    *sent = fake_count(FAKE_UPLOAD);
    close_run(&m);
    CHECK_EQ(fake_open_things(), 0);
    tgi_schedule_free(&t.s);
    free(from);
}

/* Numbers that are not the same, of arrays as buffers lie; what fills up their lanes is anything. */
static int64_t differ(const float *a, const float *b, int lanes)
{
    const tgi_schedule like = {.lanes = lanes ? tgi_backend_for(tgi_isa_best())->lanes : 0};
    int64_t n = 0;
    for (int64_t i = 0; i < N; i++) {
        const size_t at = place_of(&like, i / (H * W), i / W % H, i % W);
        n += memcmp(&a[at], &b[at], sizeof *a) != 0;
    }
    return n;
}

/* In any room for them the same bits; where all of them stay little is sent. */
static void test_buffers_that_stay(void)
{
    tgi_graph *g = make_graph();
    for (int k = 0; k < 4; k++) {
        const int lanes = k % 2;
        float *want[5];
        size_t none, some, before = 0;
        int most, sent;
        fake_reset();
        fake.eager[TGI_QUEUE_UPLOAD] = k / 2;
        run_staying(g, lanes, 0, want, &none, &most);
        CHECK_EQ(none, 0);
        for (size_t far = 50000; far <= 1600000; far *= 2) {
            float *got[5];
            fake_reset();
            fake.eager[TGI_QUEUE_UPLOAD] = k / 2;
            run_staying(g, lanes, far, got, &some, &sent);
            CHECK(some >= before && some <= far && sent <= most);
            before = some;
            for (int i = 0; i < 5; i++) {
                CHECK(differ(got[i], want[i], lanes) == 0);
                free(got[i]);
            }
        }
        CHECK(before > 5 * sizeof(float) * N && 2 * sent < most);
        for (int i = 0; i < 5; i++)
            free(want[i]);
    }
    tgi_graph_free(&g);
}

/* Many bands hide what has to travel; the fewer are better where all stays. */
static double by_what_travels(void *user, const tgi_tiling *t, const tgi_sched_stay *stays)
{
    (void)user;
    return stays->in == 1 && stays->out == 1 ? (double)t->bands : 1 / (double)t->bands;
}

static int64_t bands_of(const tgi_graph *g, size_t far, int64_t of_host)
{
    const tgi_kernel_set *be = tgi_backend_for(tgi_isa_best());
    const tgi_sched_device device = {.be = fake_backend(TG_DTYPE_F32),
                                     .room = (size_t)1 << 20,
                                     .far = far,
                                     .seconds = by_what_travels,
                                     .extra = extra,
                                     .user = (void *)(uintptr_t)fake_device_ops()};
    tgi_schedule *s = NULL;
    tgi_err e = {0};
    CHECK_OK(tgi_schedule_new(&s, &e), e);
    s->device = &device;
    const int net = tgi_schedule_net(s, g, be, C, H, W, 2),
              stays = tgi_schedule_buffer(s, "stays", C, H, W),
              goes = tgi_schedule_bytes(s, "goes", sizeof(float) * N);
    tgi_schedule_called(s, net);
    tgi_schedule_keep(s, stays);
    tgi_schedule_reads(s, net, 0, stays, 2);
    tgi_schedule_writes(s, net, 0, stays, 2);
    if (of_host) /* no network alone: it is looked at */
        tgi_schedule_step(s, &(tgi_sched_step){.name = "look",
                                               .net = TGI_SCHED_WORK,
                                               .in = {stays},
                                               .n_in = 1,
                                               .out = {goes},
                                               .n_out = 1});
    CHECK_OK(tgi_schedule_plan(s, &e), e);
    CHECK_EQ(tgi_schedule_stays(s, stays), far && !of_host);
    CHECK_EQ(s->far_missed > 0, 0);
    const int64_t n = s->net[net].choice.tiling.bands;
    tgi_schedule_free(&s);
    return n;
}

static void test_networks_are_cut_for_what_stays(void)
{
    tgi_graph *g = make_graph();
    const size_t much = (size_t)1 << 24;
    CHECK(bands_of(g, 0, 0) > 1);
    CHECK_EQ(bands_of(g, much, 0), 1);
    CHECK(bands_of(g, much, 1) > 1);
    tgi_graph_free(&g);
}

int main(void)
{
    RUN(test_it_gives_what_the_processor_gives);
    RUN(test_too_little_room_is_refused_when_it_is_planned);
    RUN(test_what_a_device_lacks_is_given_back);
    RUN(test_what_was_stopped_disturbs_no_other);
    RUN(test_buffers_that_stay);
    RUN(test_networks_are_cut_for_what_stays);
    return TEST_END();
}

/* The executor for devices, against a device that is late, poisoned and has a clock: results
 * equal those of the processor's executor whatever the cut; copies, kernels and the host
 * overlap; failures are answered and leave nothing behind. */
#include "engine/base/arith.h"
#include "engine/run/device_exec.h"
#include "tests/device/fake_device.h"
#include "tests/made_nets.h"
#include "tests/net_run.h"

#include <unistd.h>

#define CH 3

/* ---- Networks ---------------------------------------------------------------------------- */

/* A skip, a concat, pooling, upsampling; 2-D or 3-D. */
static tg_graph *make_graph(int spatial, const char *path)
{
    static const int64_t ext[3] = {0, 0, 0}, k3[3] = {3, 3, 3}, k1[3] = {1, 1, 1};
    tg_graph *g = NULL;
    tgi_err err = {0};
    made m = made_begin(spatial, CH, ext);
    const char *a = made_conv(&m, "x", CH, 6, k3, 1, 1, NULL);
    a = made_node(&m, "LeakyRelu", a, NULL, NULL, NULL, NULL, NULL);
    char skip[16];
    snprintf(skip, sizeof skip, "%s", a);
    const char *d = made_conv(&m, made_pool(&m, skip, 2), 6, 10, k3, 1, 1, NULL);
    const char *up = made_up(&m, d, 10, 5, 2);
    const char *cat = made_concat(&m, 1, up, skip);
    const char *s = made_conv(&m, cat, 11, 9, k3, 1, 1, NULL);
    s = made_node(&m, "Abs", s, NULL, NULL, NULL, NULL, NULL);
    made_conv(&m, s, 9, 2, k1, 1, 0, "y");
    made_end(&m, path);
    CHECK_OK(tgi_graph_import_onnx(path, &g, &err), err);
    CHECK_OK(tgi_graph_finish(g, 0, &err), err);
    return g;
}

/* ---- An owner of pixels: dense arrays, read into two staging buffers -------------------- */

typedef struct owner {
    const tg_net *net;
    const float *in; /* [C, (D,) H, W] */
    float *out;
    float *staging[2];
    size_t staging_floats;
    tg_box ahead; /* read into staging already, at once: as early as a reader may */
    int has_ahead, next;
    double fetch_seconds, take_seconds; /* of the fake clock */
    int64_t takes, order_broken;
    int64_t last_row;
} owner;

static void read_box(owner *o, const tg_box *b, float *dst)
{
    const tg_desc *d = &o->net->shapes.desc[o->net->in[0]];
    const int r = d->rank;
    const int64_t h = d->dim[r - 2], w = d->dim[r - 1], depth = r == 5 ? d->dim[2] : 1;
    const tg_range z = r == 5 ? b->ax[2] : (tg_range){0, 1};
    for (int64_t k = z.lo; k < z.hi; k++)
        for (int64_t c = 0; c < CH; c++)
            for (int64_t y = b->ax[r - 2].lo; y < b->ax[r - 2].hi; y++)
                for (int64_t x = b->ax[r - 1].lo; x < b->ax[r - 1].hi; x++)
                    *dst++ = o->in[((c * depth + k) * h + y) * w + x];
}

/* The reader's thread has its own time: what is asked ahead costs the host none. */
static void ahead(void *user, const tg_box *box)
{
    owner *o = user;
    o->has_ahead = !tgi_box_empty(box);
    if (!o->has_ahead)
        return;
    o->ahead = *box;
    for (size_t i = 0; i < o->staging_floats; i++)
        o->staging[o->next][i] = NAN;
    read_box(o, box, o->staging[o->next]);
}

static tg_status fetch(void *user, const tg_box *box, tg_device_pixels *px, const void **at,
                       size_t *n_bytes, tgi_err *err)
{
    owner *o = user;
    const tg_desc *d = &o->net->shapes.desc[o->net->in[0]];
    const int r = d->rank;
    (void)err;
    float *mem = o->staging[o->next];
    o->next = !o->next;
    if (!o->has_ahead || !tgi_box_equal(&o->ahead, box)) {
        fake_host_works(o->fetch_seconds);
        read_box(o, box, mem);
    }
    o->has_ahead = 0;
    *px = (tg_device_pixels){.type = TG_DTYPE_F32,
                             .channels = CH,
                             .together = 1,
                             .rows = box->ax[r - 2],
                             .cols = box->ax[r - 1],
                             .extent = {r == 5 ? d->dim[2] : 1, d->dim[r - 2], d->dim[r - 1]},
                             .pad = TG_LOAD_ZERO,
                             .mul = 1};
    int64_t n = CH;
    for (int a = 2; a < r; a++)
        n *= tgi_range_len(box->ax[a]);
    CHECK((size_t)n <= o->staging_floats);
    *at = mem;
    *n_bytes = (size_t)n * sizeof(float);
    return TG_OK;
}

static tg_status take(void *user, const tg_device_cell *cell, const tg_box *box,
                      const void *pixels, const uint32_t *counts, tgi_err *err)
{
    owner *o = user;
    const tg_desc *d = &o->net->shapes.desc[o->net->out[0]];
    const int r = d->rank;
    const int64_t h = d->dim[r - 2], w = d->dim[r - 1], depth = r == 5 ? d->dim[2] : 1;
    const tg_range z = r == 5 ? box->ax[2] : (tg_range){0, 1};
    const float *src = pixels;
    (void)err;
    fake_host_works(o->take_seconds);
    o->takes++;
    const int64_t row = cell->cell * 1000000 + box->ax[2].lo;
    o->order_broken += row <= o->last_row;
    o->last_row = row;
    CHECK_EQ(counts[0], 0);
    for (int64_t k = z.lo; k < z.hi; k++)
        for (int64_t c = 0; c < d->dim[1]; c++)
            for (int64_t y = box->ax[r - 2].lo; y < box->ax[r - 2].hi; y++)
                for (int64_t x = box->ax[r - 1].lo; x < box->ax[r - 1].hi; x++)
                    o->out[((c * depth + k) * h + y) * w + x] = *src++;
    return TG_OK;
}

/* ---- Subjects ---------------------------------------------------------------------------- */

typedef struct subject {
    tg_graph *g;
    tg_net *net, *plain;
    float *in, *got, *want;
    size_t n_in, n_out;
} subject;

static subject open_subject(int spatial, const tg_desc *in)
{
    char path[64];
    uint64_t seed = 77;
    tgi_err err = {0};
    int64_t n = 0;
    subject s = {0};
    snprintf(path, sizeof path, "/tmp/tegula_device_%d.onnx", (int)getpid());
    s.g = make_graph(spatial, path);
    unlink(path);
    CHECK_OK(tgi_net_new(s.g, fake_backend(), in, 0, &s.net, &err), err);
    CHECK_OK(tgi_net_new(s.g, tgi_backend_for(TG_ISA_PORTABLE), in, TG_NET_REFERENCE, &s.plain,
                         &err),
             err);
    tgi_desc_count(in, &n);
    s.n_in = (size_t)n;
    s.in = malloc(s.n_in * sizeof(float));
    for (size_t i = 0; i < s.n_in; i++)
        s.in[i] = tg_rand_unit(&seed);
    s.n_out = net_out_count(s.net, 0);
    s.got = malloc(s.n_out * sizeof(float));
    s.want = malloc(s.n_out * sizeof(float));
    return s;
}

static void close_subject(subject *s)
{
    tgi_net_free(&s->net);
    tgi_net_free(&s->plain);
    tgi_graph_free(&s->g);
    free(s->in);
    free(s->got);
    free(s->want);
}

/* Run every cell of a cut on the fake device; `o`: times of the host, or NULL. */
static tg_status run_cut(const subject *s, const int64_t cut[3], int64_t band, owner *o,
                         tgi_err *err)
{
    tg_stages *stages = NULL;
    tg_tiling t;
    tg_device *device = NULL;
    tg_device_exec *e = NULL;
    const tg_device_ops *ops = fake_device_ops();
    CHECK_OK(tgi_stages_new(s->net, &stages, err), *err);
    CHECK_OK(tgi_tiling_make(&stages->one, cut, band, 1, NULL, &t, err), *err);
    const tg_slot *slot = &t.slot[s->net->in[0]];
    o->net = s->net;
    o->in = s->in;
    o->out = s->got;
    o->last_row = -1;
    o->staging_floats = (size_t)(CH * slot->ring * slot->rows * slot->width);
    for (int k = 0; k < 2; k++)
        o->staging[k] = malloc(o->staging_floats * sizeof(float));
    const tg_device_form form = {.in_type = TG_DTYPE_F32,
                                 .out_type = TG_DTYPE_F32,
                                 .out_channels = s->net->values[s->net->out[0]].c,
                                 .out_together = 1,
                                 .in_bytes = o->staging_floats * sizeof(float)};
    const tg_device_io io = {o, fetch, ahead, take};
    tg_status st = ops->open(0, &device, err);
    if (st == TG_OK)
        st = tgi_device_exec_open(ops, device, &t, &form, &io, &e, err);
    for (int64_t k = 0; st == TG_OK && k < t.cells; k++) {
        tg_range core[3];
        int done = 0;
        const tg_device_cell cell = {.cell = k, .mul = 1};
        tgi_tiling_cell(&t, k, core);
        tgi_device_exec_begin(e, &cell, core);
        while (st == TG_OK && !done)
            st = tgi_device_exec_band(e, &done, err);
    }
    if (st == TG_OK)
        st = tgi_device_exec_drain(e, err);
    tgi_device_exec_close(&e);
    ops->close(&device);
    for (int k = 0; k < 2; k++)
        free(o->staging[k]);
    tgi_tiling_free(&t);
    tgi_stages_free(&stages);
    return st;
}

static int64_t differences(const subject *s)
{
    int64_t bad = 0;
    for (size_t i = 0; i < s->n_out; i++)
        bad += memcmp(&s->got[i], &s->want[i], sizeof(float)) != 0;
    return bad;
}

static const int64_t uncut[3] = {0, 0, 0};

/* ---- Tests ------------------------------------------------------------------------------- */

static void test_one_cell_equals_the_processors_references(void)
{
    const tg_desc in = {TG_DTYPE_F32, 4, {1, CH, 44, 36}};
    tgi_err err = {0};
    owner o = {0};
    fake_reset();
    subject s = open_subject(2, &in);
    net_io io = {.in = {s.in}, .out = {s.want}};
    CHECK_OK(net_run(s.plain, uncut, 1 << 20, 1, &io, -1, &err), err);
    CHECK_OK(run_cut(&s, uncut, 1 << 20, &o, &err), err);
    double worst = 0;
    for (size_t i = 0; i < s.n_out; i++)
        worst = fabs((double)s.got[i] - (double)s.want[i]) <= worst
                    ? worst
                    : fabs((double)s.got[i] - (double)s.want[i]); /* NaN stays */
    CHECK(worst == 0);                                            /* the same references */
    size_t distinct = 0;
    for (size_t i = 1; i < s.n_out; i++)
        distinct += isfinite(s.got[i]) && s.got[i] != s.got[i - 1];
    CHECK(distinct > s.n_out * 9 / 10); /* not a constant, which any cut would give */
    CHECK_EQ(o.takes, 1);
    close_subject(&s);
}

static void cut_and_compare(int spatial, const tg_desc *in, int rounds)
{
    uint64_t seed = 20261121;
    tgi_err err = {0};
    owner whole = {0};
    fake_reset();
    subject s = open_subject(spatial, in);
    CHECK_OK(run_cut(&s, uncut, 1 << 20, &whole, &err), err);
    memcpy(s.want, s.got, s.n_out * sizeof(float));
    for (int i = 0; i < rounds; i++) {
        int64_t cut[3];
        owner o = {0};
        fake_reset();
        for (int a = 0; a < 3; a++)
            cut[a] = tg_rand_in(&seed, 0, 2) ? tg_rand_in(&seed, 3, 40) : 0;
        for (int q = 0; q < TG_QUEUE_COUNT; q++) /* all eight ways of who is early */
            fake.eager[q] = i >> q & 1;
        const int64_t band = tg_rand_in(&seed, 1, 24);
        memset(s.got, 0xff, s.n_out * sizeof(float));
        CHECK_OK(run_cut(&s, cut, band, &o, &err), err);
        const int64_t bad = differences(&s);
        CHECK_EQ(bad, 0);
        CHECK_EQ(o.order_broken, 0);
        CHECK_EQ(fake_open_things(), 0);
        if (bad)
            fprintf(stderr, "  %d: cut %lldx%lldx%lld band %lld\n", i, (long long)cut[0],
                    (long long)cut[1], (long long)cut[2], (long long)band);
    }
    close_subject(&s);
}

static void test_any_cut_of_an_image_gives_the_same_bits(void)
{
    const tg_desc in = {TG_DTYPE_F32, 4, {1, CH, 60, 46}};
    cut_and_compare(2, &in, 24);
}

static void test_any_cut_of_a_volume_gives_the_same_bits(void)
{
    const tg_desc in = {TG_DTYPE_F32, 5, {1, CH, 14, 16, 12}};
    cut_and_compare(3, &in, 8);
}

/* Bands of equal work on the fake clock; returns when the last one is handed out. */
static double time_bands(const subject *s, double up, double run, double down, double take_s,
                         int64_t *bands)
{
    tgi_err err = {0};
    owner o = {.fetch_seconds = 1, .take_seconds = take_s};
    fake_reset();
    fake.run_seconds = run;
    fake.upload_per_byte = up / (CH * 8.0 * 24.0 * sizeof(float));
    fake.download_per_byte = down / (2 * 8.0 * 24.0 * sizeof(float) + 256); /* and counts */
    CHECK_OK(run_cut(s, uncut, 8, &o, &err), err);
    *bands = fake_count(FAKE_RUN);
    return fake_now();
}

/* With everything in one queue a band would take the sum of its parts, and with a wait after
 * each as well; overlapped it takes the longest part. */
static void test_copies_kernels_and_the_host_overlap(void)
{
    const tg_desc in = {TG_DTYPE_F32, 4, {1, CH, 400, 24}};
    static const double parts[][4] = {/* upload, run, download, host */
                                      {4, 10, 4, 6},
                                      {10, 6, 4, 4},
                                      {4, 6, 10, 4},
                                      {4, 6, 4, 10}};
    fake_reset();
    subject s = open_subject(2, &in);
    for (int i = 0; i < 4; i++) {
        int64_t n;
        const double *p = parts[i];
        const double spent = time_bands(&s, p[0], p[1], p[2], p[3], &n);
        const double sum = p[0] + p[1] + p[2] + p[3];
        CHECK(n >= 50);
        /* filling and draining the queues once, the first fetch, weights and the counts that
           ride in the downloads: a few bands' worth */
        CHECK(spent < 10.0 * (double)n * 1.04 + 3 * sum);
        CHECK(spent < 0.55 * sum * (double)n);
        printf("  up %g run %g down %g host %g: %.2f a band, in turn %.0f\n", p[0], p[1], p[2],
               p[3], spent / (double)n, sum);
    }
    close_subject(&s);
}

/* The compute queue does not starve: between its first and its last band it works. */
static void test_kernels_follow_each_other_without_a_gap(void)
{
    const tg_desc in = {TG_DTYPE_F32, 4, {1, CH, 320, 24}};
    int64_t n;
    const fake_work *log;
    double busy = 0, first = -1, last = 0;
    fake_reset();
    subject s = open_subject(2, &in);
    (void)time_bands(&s, 6, 10, 6, 8, &n);
    const int k = fake_log(&log);
    for (int i = 0; i < k; i++) {
        if (log[i].queue != TG_QUEUE_COMPUTE)
            continue;
        first = first < 0 ? log[i].from : first;
        last = log[i].to;
        busy += log[i].to - log[i].from;
    }
    CHECK(busy > 0.97 * (last - first));
    close_subject(&s);
}

static void test_what_is_needed_is_what_is_taken(void)
{
    const tg_desc in = {TG_DTYPE_F32, 4, {1, CH, 60, 46}};
    tgi_err err = {0};
    owner o = {0};
    tg_stages *stages = NULL;
    tg_tiling t;
    tg_device_need need;
    fake_reset();
    subject s = open_subject(2, &in);
    CHECK_OK(run_cut(&s, uncut, 8, &o, &err), err);
    const size_t peak = fake_peak_bytes();
    CHECK_OK(tgi_stages_new(s.net, &stages, &err), err);
    CHECK_OK(tgi_tiling_make(&stages->one, uncut, 8, 1, NULL, &t, &err), err);
    const tg_slot *slot = &t.slot[s.net->in[0]];
    const tg_device_form form = {TG_DTYPE_F32, TG_DTYPE_F32, 2, 1,
                                 (size_t)(CH * slot->ring * slot->rows * slot->width) *
                                     sizeof(float)};
    CHECK_OK(tgi_device_need_of(fake_device_ops(), &t, &form, &need, &err), err);
    CHECK_EQ(need.block + need.program, peak);
    CHECK_EQ(need.weights + need.constants + need.arena + need.pixels, need.block);
    tgi_tiling_free(&t);
    tgi_stages_free(&stages);
    close_subject(&s);
}

/* Every call that can fail, the first and later ones: answered with its code, nothing left. */
static void test_any_failure_is_answered_and_leaves_nothing(void)
{
    const tg_desc in = {TG_DTYPE_F32, 4, {1, CH, 40, 30}};
    fake_reset();
    subject s = open_subject(2, &in);
    for (int call = 0; call < FAKE_CALLS; call++)
        for (int k = 1; k <= 4; k++) {
            tgi_err err = {0};
            owner o = {0};
            fake_reset();
            fake.fail_at[call] = k;
            fake.fail_with[call] =
                call == FAKE_ALLOC || call == FAKE_PIN ? TG_E_NOMEM : TG_E_DEVICE;
            const tg_status st = run_cut(&s, uncut, 6, &o, &err);
            if (fake_count((fake_call)call) < k) {
                CHECK_EQ(st, TG_OK); /* there are not so many calls of it */
                continue;
            }
            CHECK_EQ(st, fake.fail_with[call]);
            CHECK(err.text[0]);
            CHECK_EQ(fake_open_things(), 0);
        }
    close_subject(&s);
}

int main(void)
{
    RUN(test_one_cell_equals_the_processors_references);
    RUN(test_any_cut_of_an_image_gives_the_same_bits);
    RUN(test_any_cut_of_a_volume_gives_the_same_bits);
    RUN(test_copies_kernels_and_the_host_overlap);
    RUN(test_kernels_follow_each_other_without_a_gap);
    RUN(test_what_is_needed_is_what_is_taken);
    RUN(test_any_failure_is_answered_and_leaves_nothing);
    return TEST_END();
}

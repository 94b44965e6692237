/* The executor for devices, against a device that is late, poisoned and has a clock: results
 * equal those of the processor's executor whatever the cut; copies, kernels and the host
 * overlap; failures are answered and leave nothing behind. */
#include "engine/base/arith.h"
#include "engine/exec/device_exec.h"
#include "tests/device/fake_device.h"
#include "tests/made_nets.h"
#include "tests/net_run.h"

#include <unistd.h>

#define CH 3

/* ---- Networks ---------------------------------------------------------------------------- */

/* Kinds of subjects: 2 and 3, an image or a volume; with LABELS, the numbers of its channels.
 */
#define FORKED 0
#define BOTH 1
#define LABELS 10

static tgi_graph *finished(made *m, const char *path, unsigned flags)
{
    tgi_graph *g = NULL;
    tgi_err err = {0};
    made_end(m, path);
    CHECK_OK(tgi_graph_import_onnx(path, &g, &err), err);
    CHECK_OK(tgi_graph_finish(g, flags, &err), err);
    return g;
}

/* A skip, a concat, pooling, upsampling; 2-D or 3-D. */
static tgi_graph *make_graph(int spatial, const char *path)
{
    static const int64_t ext[3] = {0, 0, 0}, k3[3] = {3, 3, 3}, k1[3] = {1, 1, 1};
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
    return finished(&m, path, 0);
}

/* The number of the largest of seven channels, none of which is that everywhere. */
static tgi_graph *make_labels(int spatial, const char *path)
{
    static const int64_t ext[3] = {0, 0, 0}, k3[3] = {3, 3, 3};
    made m = made_begin(spatial, CH, ext);
    made_conv(&m, made_conv(&m, "x", CH, 6, k3, 1, 1, NULL), 6, 7, k3, 1, 1, "y");
    return finished(&m, path, TGI_GRAPH_LABELS);
}

/* Channels, and the number of the smallest of each pixel. */
static tgi_graph *make_both(const char *path)
{
    static const int64_t ext[3] = {0, 0, 0}, k3[3] = {3, 3, 3}, any[5] = {0};
    bytes axis = {0}, a = {0};
    made m = made_begin(2, CH, ext);
    const char *logits = made_conv(&m, "x", CH, 6, k3, 1, 1, "logits");
    b_port(&m.g, 12, logits, 4, any);
    b_str(&axis, 1, "axis");
    b_int(&axis, 3, 1);
    b_int(&axis, 20, 2);
    b_msg(&a, 5, &axis);
    made_node(&m, "ArgMin", logits, NULL, NULL, NULL, &a, "y");
    return finished(&m, path, 0);
}

/* Two inputs of different channels; two outputs, at a quarter and a sixteenth of their size. */
static tgi_graph *make_forked(const char *path)
{
    static const int64_t ext[3] = {0, 0, 0}, k3[3] = {3, 3, 3}, open[5] = {1, 2, 0, 0, 0};
    made m = made_begin(2, CH, ext);
    b_port(&m.g, 11, "z", 4, open);
    const char *x = made_conv(&m, "x", CH, 5, k3, 2, 1, NULL);
    const char *z = made_pool(&m, made_conv(&m, "z", 2, 4, k3, 1, 1, NULL), 2);
    const char *a = made_pool(&m, made_concat(&m, 1, x, z), 2);
    const char *fine = made_conv(&m, a, 9, 3, k3, 1, 1, "fine");
    const int64_t any[5] = {0};
    b_port(&m.g, 12, fine, 4, any);
    made_conv(&m, made_pool(&m, made_pool(&m, fine, 2), 2), 3, 2, k3, 1, 1, "y");
    tgi_graph *g = finished(&m, path, 0);
    CHECK_EQ(g->n_in, 2);
    CHECK_EQ(g->n_out, 2);
    return g;
}

/* ---- An owner of pixels: dense arrays, read into two staging buffers -------------------- */

#define PORTS 2

typedef struct port {
    const float *data; /* [C, (D,) H, W] */
    float *staging[2];
    size_t floats; /* of each */
    int next, has_ahead;
    tgi_box ahead; /* read into staging already, at once: as early as a reader may */
} port;

typedef struct owner {
    const tgi_net *net;
    port in[PORTS];
    float *out[PORTS];
    double fetch_seconds, take_seconds; /* of the fake clock */
    int announces;                      /* the cell that comes is announced */
    int only_first;                     /* nobody takes the others */
    int lanes;
    int64_t takes[PORTS], order_broken, read_ahead;
    int64_t last_row[PORTS];
} owner;

typedef struct extent {
    tgi_range z, y, x;
    int64_t depth, h, w;
} extent;

static extent extent_of(const tgi_desc *d, const tgi_box *b)
{
    const int r = d->rank;
    return (extent){r == 5 ? b->ax[2] : (tgi_range){0, 1},
                    b->ax[r - 2],
                    b->ax[r - 1],
                    r == 5 ? d->dim[2] : 1,
                    d->dim[r - 2],
                    d->dim[r - 1]};
}

static const tgi_desc *desc_in(const owner *o, int i)
{
    return &o->net->shapes.desc[o->net->in[i]];
}

static void read_box(const owner *o, int i, const tgi_box *b, float *dst)
{
    const tgi_desc *d = desc_in(o, i);
    const extent e = extent_of(d, b);
    for (int64_t k = e.z.lo; k < e.z.hi; k++)
        for (int64_t c = 0; c < d->dim[1]; c++)
            for (int64_t y = e.y.lo; y < e.y.hi; y++)
                for (int64_t x = e.x.lo; x < e.x.hi; x++)
                    *dst++ = o->in[i].data[((c * e.depth + k) * e.h + y) * e.w + x];
}

/* The reader's thread has its own time: what is asked ahead costs the host none. */
static void ahead(void *user, const tgi_device_cell *cell, const tgi_box *box)
{
    owner *o = user;
    (void)cell;
    for (int i = 0; i < o->net->n_in; i++) {
        port *p = &o->in[i];
        p->has_ahead = !tgi_box_empty(&box[i]);
        if (!p->has_ahead)
            continue;
        p->ahead = box[i];
        for (size_t k = 0; k < p->floats; k++)
            p->staging[p->next][k] = NAN;
        read_box(o, i, &box[i], p->staging[p->next]);
    }
}

static tg_status fetch(void *user, const tgi_device_cell *cell, int i, const tgi_box *box,
                       tgi_device_pixels *px, const void **at, size_t *n_bytes, tgi_err *err)
{
    owner *o = user;
    port *p = &o->in[i];
    const tgi_desc *d = desc_in(o, i);
    const int r = d->rank;
    (void)cell;
    (void)err;
    float *mem = p->staging[p->next];
    p->next = !p->next;
    o->read_ahead += p->has_ahead;
    if (!p->has_ahead || !tgi_box_equal(&p->ahead, box)) {
        fake_host_works(o->fetch_seconds);
        read_box(o, i, box, mem);
    }
    p->has_ahead = 0;
    *px = (tgi_device_pixels){.type = TG_DTYPE_F32,
                              .channels = d->dim[1],
                              .together = 1,
                              .rows = box->ax[r - 2],
                              .cols = box->ax[r - 1],
                              .extent = {r == 5 ? d->dim[2] : 1, d->dim[r - 2], d->dim[r - 1]},
                              .pad = TGI_LOAD_ZERO,
                              .mul = 1};
    int64_t n = d->dim[1];
    for (int a = 2; a < r; a++)
        n *= tgi_range_len(box->ax[a]);
    CHECK((size_t)n <= p->floats);
    *at = mem;
    *n_bytes = (size_t)n * sizeof(float);
    return TG_OK;
}

static tg_status take(void *user, const tgi_device_cell *cell, int out, const tgi_box *box,
                      const void *pixels, const uint32_t *counts, tgi_err *err)
{
    owner *o = user;
    const tgi_desc *d = &o->net->shapes.desc[o->net->out[out]];
    const extent e = extent_of(d, box);
    const float *src = pixels;
    (void)err;
    fake_host_works(o->take_seconds);
    o->takes[out]++;
    const int64_t row = cell->cell * 1000000 + box->ax[2].lo;
    o->order_broken += row <= o->last_row[out];
    o->last_row[out] = row;
    CHECK_EQ(counts[0], 0);
    for (int64_t k = e.z.lo; k < e.z.hi; k++)
        for (int64_t c = 0; c < d->dim[1]; c++)
            for (int64_t y = e.y.lo; y < e.y.hi; y++)
                for (int64_t x = e.x.lo; x < e.x.hi; x++)
                    o->out[out][((c * e.depth + k) * e.h + y) * e.w + x] = *src++;
    return TG_OK;
}

/* ---- Subjects ---------------------------------------------------------------------------- */

typedef struct subject {
    tgi_graph *g;
    tgi_net *net, *plain;
    float *in[PORTS], *got[PORTS], *want[PORTS];
    size_t n_out[PORTS];
} subject;

static tgi_graph *make_of_kind(int kind, const char *path)
{
    return kind == FORKED  ? make_forked(path)
           : kind == BOTH  ? make_both(path)
           : kind > LABELS ? make_labels(kind - LABELS, path)
                           : make_graph(kind, path);
}

static subject open_subject(int kind, const tgi_desc *in)
{
    char path[64];
    uint64_t seed = 77;
    tgi_err err = {0};
    subject s = {0};
    snprintf(path, sizeof path, "/tmp/tegula_device_%d.onnx", (int)getpid());
    s.g = make_of_kind(kind, path);
    unlink(path);
    CHECK_OK(tgi_net_new(s.g, fake_backend(TG_DTYPE_F32), in, 0, &s.net, &err), err);
    CHECK_OK(tgi_net_new(s.g, tgi_backend_for(TGI_ISA_PORTABLE), in, TGI_NET_REFERENCE,
                         &s.plain, &err),
             err);
    for (int i = 0; i < s.net->n_in; i++) {
        int64_t n = 0;
        tgi_desc_count(&in[i], &n);
        s.in[i] = malloc((size_t)n * sizeof(float));
        for (int64_t k = 0; k < n; k++)
            s.in[i][k] = tg_rand_unit(&seed);
    }
    for (int o = 0; o < s.net->n_out; o++) {
        s.n_out[o] = net_out_count(s.net, o);
        s.got[o] = malloc(s.n_out[o] * sizeof(float));
        s.want[o] = malloc(s.n_out[o] * sizeof(float));
    }
    return s;
}

static void close_subject(subject *s)
{
    tgi_net_free(&s->net);
    tgi_net_free(&s->plain);
    tgi_graph_free(&s->g);
    for (int i = 0; i < PORTS; i++) {
        free(s->in[i]);
        free(s->got[i]);
        free(s->want[i]);
    }
}

static tgi_device_form form_of(const tgi_tiling *t, const owner *o)
{
    const tgi_net *net = t->net;
    tgi_device_form f = {.lanes = o->lanes};
    for (int i = 0; i < net->n_in; i++) {
        const tgi_slot *slot = &t->slot[net->in[i]];
        f.in[i].type = TG_DTYPE_F32;
        f.in[i].bytes =
            (size_t)(net->values[net->in[i]].c * slot->ring * slot->rows * slot->width) *
            sizeof(float);
    }
    for (int k = 0; k < (o->only_first ? 1 : net->n_out); k++)
        f.out[k] = (tgi_device_port){
            .type = TG_DTYPE_F32, .channels = net->values[net->out[k]].c, .together = 1};
    return f;
}

static void open_owner(owner *o, const subject *s, const tgi_device_form *form)
{
    o->net = s->net;
    for (int i = 0; i < s->net->n_in; i++) {
        port *p = &o->in[i];
        p->data = s->in[i];
        p->floats = form->in[i].bytes / sizeof(float);
        for (int k = 0; k < 2; k++)
            p->staging[k] = malloc(form->in[i].bytes);
    }
    for (int k = 0; k < PORTS; k++) {
        o->out[k] = s->got[k];
        o->last_row[k] = -1;
    }
}

static tg_status run_cells(const tgi_tiling *t, const owner *o, tgi_device_exec *e,
                           tgi_err *err)
{
    for (int64_t k = 0; k < t->cells; k++) {
        tgi_range core[3];
        const tgi_device_cell cell = {.cell = k, .mul = 1}, next = {.cell = k + 1, .mul = 1};
        tgi_tiling_cell(t, k, core);
        tgi_device_exec_begin(e, &cell, core);
        if (o->announces && k + 1 < t->cells) {
            tgi_tiling_cell(t, k + 1, core);
            tgi_device_exec_expect(e, &next, core);
        }
        TGI_TRY(tgi_device_exec_bands(e, NULL, NULL, err));
    }
    return tgi_device_exec_drain(e, err);
}

/* Run every cell of a cut on the fake device; `o`: times of the host, and what it does. */
static tg_status run_cut(const subject *s, const int64_t cut[3], int64_t band, owner *o,
                         tgi_err *err)
{
    tgi_stages *stages = NULL;
    tgi_tiling t;
    tgi_device *device = NULL;
    tgi_device_exec *e = NULL;
    const tgi_device_ops *ops = fake_device_ops();
    CHECK_OK(tgi_stages_new(s->net, &stages, err), *err);
    CHECK_OK(tgi_tiling_make(&stages->one, cut, band, 1, NULL, &t, err), *err);
    const tgi_device_form form = form_of(&t, o);
    const tgi_device_io io = {.user = o, .fetch = fetch, .ahead = ahead, .take = take};
    open_owner(o, s, &form);
    tg_status st = ops->open(0, &device, err);
    if (st == TG_OK)
        st = tgi_device_exec_open(ops, device, &t, &form, &io, &e, err);
    if (st == TG_OK)
        st = run_cells(&t, o, e, err);
    tgi_device_exec_close(&e);
    ops->close(&device);
    for (int i = 0; i < PORTS; i++)
        for (int k = 0; k < 2; k++)
            free(o->in[i].staging[k]);
    tgi_tiling_free(&t);
    tgi_stages_free(&stages);
    return st;
}

static int64_t differences(const subject *s)
{
    int64_t bad = 0;
    for (int o = 0; o < s->net->n_out; o++)
        for (size_t i = 0; i < s->n_out[o]; i++)
            bad += memcmp(&s->got[o][i], &s->want[o][i], sizeof(float)) != 0;
    return bad;
}

static const int64_t uncut[3] = {0, 0, 0};

/* ---- Tests ------------------------------------------------------------------------------- */

static void whole_against_references(int kind, const tgi_desc *in)
{
    tgi_err err = {0};
    owner o = {0};
    fake_reset();
    subject s = open_subject(kind, in);
    net_io io = {.in = {s.in[0], s.in[1]}, .out = {s.want[0], s.want[1]}};
    CHECK_OK(net_run(s.plain, uncut, 1 << 20, 1, &io, -1, &err), err);
    CHECK_OK(run_cut(&s, uncut, 1 << 20, &o, &err), err);
    for (int k = 0; k < s.net->n_out; k++) {
        double worst = 0;
        size_t distinct = 0;
        for (size_t i = 0; i < s.n_out[k]; i++) {
            const double d = fabs((double)s.got[k][i] - (double)s.want[k][i]);
            worst = d <= worst ? worst : d; /* NaN stays */
            distinct += i > 0 && isfinite(s.got[k][i]) && s.got[k][i] != s.got[k][i - 1];
        }
        CHECK(worst == 0);                     /* the same references */
        CHECK(distinct > s.n_out[k] * 9 / 10); /* not a constant, which any cut would give */
        CHECK_EQ(o.takes[k], 1);
    }
    close_subject(&s);
}

static void test_one_cell_equals_the_processors_references(void)
{
    const tgi_desc in = {TG_DTYPE_F32, 4, {1, CH, 44, 36}};
    const tgi_desc two[2] = {{TG_DTYPE_F32, 4, {1, CH, 64, 96}},
                             {TG_DTYPE_F32, 4, {1, 2, 64, 96}}};
    whole_against_references(2, &in);
    whole_against_references(FORKED, two);
}

static void cut_and_compare(int kind, const tgi_desc *in, int rounds)
{
    uint64_t seed = 20261121;
    tgi_err err = {0};
    owner whole = {0};
    fake_reset();
    subject s = open_subject(kind, in);
    CHECK_OK(run_cut(&s, uncut, 1 << 20, &whole, &err), err);
    for (int k = 0; k < s.net->n_out; k++)
        memcpy(s.want[k], s.got[k], s.n_out[k] * sizeof(float));
    for (int i = 0; i < rounds; i++) {
        int64_t cut[3];
        owner o = {.announces = i % 3 != 0,
                   .lanes = i % 2 ? 1 : (int)tg_rand_in(&seed, 2, TGI_DEVICE_LANES)};
        fake_reset();
        for (int a = 0; a < 3; a++)
            cut[a] = tg_rand_in(&seed, 0, 2) ? tg_rand_in(&seed, 3, 40) : 0;
        for (int q = 0; q < TGI_QUEUE_COUNT; q++) /* who is early: all eight ways of one lane */
            fake.eager[q] =
                q <= (int)TGI_QUEUE_COMPUTE ? i >> q & 1 : (int)tg_rand_in(&seed, 0, 1);
        const int64_t band = tg_rand_in(&seed, 1, 24);
        for (int k = 0; k < s.net->n_out; k++)
            memset(s.got[k], 0xff, s.n_out[k] * sizeof(float));
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
    const tgi_desc in = {TG_DTYPE_F32, 4, {1, CH, 60, 46}};
    cut_and_compare(2, &in, 24);
}

static void test_any_cut_of_a_volume_gives_the_same_bits(void)
{
    const tgi_desc in = {TG_DTYPE_F32, 5, {1, CH, 14, 16, 12}};
    cut_and_compare(3, &in, 8);
}

/* Outputs at two scales end their bands at different times, and in cells that share a pixel of
 * the coarse one. */
static void test_any_cut_of_two_inputs_and_two_outputs_gives_the_same_bits(void)
{
    const tgi_desc in[2] = {{TG_DTYPE_F32, 4, {1, CH, 80, 112}},
                            {TG_DTYPE_F32, 4, {1, 2, 80, 112}}};
    cut_and_compare(FORKED, in, 24);
}

static int has_op(const tgi_net *net, const char *op)
{
    int n = 0;
    for (int i = 0; i < net->n_nodes; i++)
        n += strcmp(net->nodes[i].node->op->name, op) == 0;
    return n;
}

/* The step that makes pixels reads the channels: neither a node nor a value of numbers is left.
 */
static void labels_against_references(int spatial, const tgi_desc *in)
{
    tgi_err err = {0};
    owner o = {0};
    size_t seen[7] = {0};
    fake_reset();
    subject s = open_subject(LABELS + spatial, in);
    CHECK_EQ(has_op(s.net, "ArgMax"), 0);
    CHECK_EQ(has_op(s.plain, "ArgMax"), 1);
    CHECK_EQ(s.net->pick[0], TGI_PICK_FIRST_LARGEST);
    CHECK_EQ(s.net->values[s.net->held[0]].c, 7);
    net_io io = {.in = {s.in[0]}, .out = {s.want[0]}};
    CHECK_OK(net_run(s.plain, uncut, 1 << 20, 1, &io, -1, &err), err);
    CHECK_OK(run_cut(&s, uncut, 1 << 20, &o, &err), err);
    CHECK_EQ(differences(&s), 0);
    for (size_t i = 0; i < s.n_out[0]; i++)
        seen[s.want[0][i] >= 0 && s.want[0][i] < 7 ? (int)s.want[0][i] : 0]++;
    for (int k = 0; k < 7; k++)
        CHECK(seen[k] > s.n_out[0] / 50);
    close_subject(&s);
    cut_and_compare(LABELS + spatial, in, 12);
}

static void test_numbers_of_channels_are_found_where_pixels_leave(void)
{
    const tgi_desc image = {TG_DTYPE_F32, 4, {1, CH, 60, 46}};
    const tgi_desc volume = {TG_DTYPE_F32, 5, {1, CH, 14, 16, 12}};
    labels_against_references(2, &image);
    labels_against_references(3, &volume);
}

/* Channels that are an output too are that: their numbers come from a node. */
static void test_channels_and_their_numbers_are_two_outputs(void)
{
    const tgi_desc in = {TG_DTYPE_F32, 4, {1, CH, 60, 46}};
    tgi_err err = {0};
    owner o = {0};
    fake_reset();
    subject s = open_subject(BOTH, &in);
    CHECK_EQ(has_op(s.net, "ArgMin"), 1);
    CHECK_EQ(s.net->pick[0], TGI_PICK_NONE);
    CHECK_EQ(s.net->pick[1], TGI_PICK_NONE);
    net_io io = {.in = {s.in[0]}, .out = {s.want[0], s.want[1]}};
    CHECK_OK(net_run(s.plain, uncut, 1 << 20, 1, &io, -1, &err), err);
    CHECK_OK(run_cut(&s, uncut, 1 << 20, &o, &err), err);
    CHECK_EQ(differences(&s), 0);
    close_subject(&s);
}

static void test_an_output_that_nobody_takes_costs_nothing(void)
{
    const tgi_desc in[2] = {{TG_DTYPE_F32, 4, {1, CH, 64, 96}},
                            {TG_DTYPE_F32, 4, {1, 2, 64, 96}}};
    tgi_err err = {0};
    owner both = {0}, one = {.only_first = 1};
    fake_reset();
    subject s = open_subject(FORKED, in);
    CHECK_OK(run_cut(&s, uncut, 16, &both, &err), err);
    const int downloads = fake_count(FAKE_DOWNLOAD);
    const size_t peak = fake_peak_bytes();
    memcpy(s.want[0], s.got[0], s.n_out[0] * sizeof(float));
    fake_reset();
    CHECK_OK(run_cut(&s, uncut, 16, &one, &err), err);
    CHECK_EQ(memcmp(s.want[0], s.got[0], s.n_out[0] * sizeof(float)), 0);
    CHECK_EQ(one.takes[1], 0);
    CHECK_EQ(downloads - fake_count(FAKE_DOWNLOAD), both.takes[1]);
    CHECK(fake_peak_bytes() < peak);
    close_subject(&s);
}

/* Bands of equal work on the fake clock; returns when the last one is handed out. (The pixels
 * that set the speeds are those of the net with one input and one output.) */
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
    const tgi_desc in = {TG_DTYPE_F32, 4, {1, CH, 400, 24}};
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
    const tgi_desc in = {TG_DTYPE_F32, 4, {1, CH, 320, 24}};
    int64_t n;
    const fake_work *log;
    double busy = 0, first = -1, last = 0;
    fake_reset();
    subject s = open_subject(2, &in);
    (void)time_bands(&s, 6, 10, 6, 8, &n);
    const int k = fake_log(&log);
    for (int i = 0; i < k; i++) {
        if (log[i].queue != TGI_QUEUE_COMPUTE)
            continue;
        first = first < 0 ? log[i].from : first;
        last = log[i].to;
        busy += log[i].to - log[i].from;
    }
    CHECK(busy > 0.97 * (last - first));
    double seconds[3];
    tgi_err err = {0};
    CHECK_OK(fake_device_ops()->times(NULL, seconds, &err), err);
    CHECK(fabs(seconds[TGI_QUEUE_COMPUTE] - busy) < 1e-6 * busy);
    close_subject(&s);
}

/* Two inputs and two outputs are one upload and one download: an event each, and no wait
 * between them. A band of 16 rows yields four of the one and one of the other. */
static void test_ports_of_a_band_travel_together(void)
{
    const tgi_desc in[2] = {{TG_DTYPE_F32, 4, {1, CH, 1600, 32}},
                            {TG_DTYPE_F32, 4, {1, 2, 1600, 32}}};
    tgi_err err = {0};
    owner o = {.fetch_seconds = 1, .take_seconds = 2};
    fake_reset();
    subject s = open_subject(FORKED, in);
    fake.run_seconds = 10;
    fake.upload_per_byte = 8 / ((CH + 2) * 16.0 * 32.0 * sizeof(float));
    fake.download_per_byte = 8 / ((3 * 4 * 8 + 2 * 1 * 2) * (double)sizeof(float) + 2 * 256);
    CHECK_OK(run_cut(&s, uncut, 16, &o, &err), err);
    const double n = fake_count(FAKE_RUN);
    CHECK(n >= 100);
    CHECK(o.takes[0] > 95 && o.takes[1] > 95);
    CHECK(fake_now() < 10 * n * 1.04 + 3 * (8 + 10 + 8 + 5));
    printf("  two inputs and outputs: %.2f a band, in turn %d\n", fake_now() / n,
           8 + 10 + 8 + 2 * 2);
    close_subject(&s);
}

/* Cells of one band each: reading is less than the kernels take, and so is taking what comes
 * back, but both together, by the caller's thread, are more. */
static double time_cells(const subject *s, int announces, owner *o)
{
    static const int64_t cut[3] = {0, 16, 0};
    tgi_err err = {0};
    *o = (owner){.fetch_seconds = 8, .take_seconds = 6, .announces = announces};
    fake_reset();
    fake.run_seconds = 10;
    CHECK_OK(run_cut(s, cut, 1 << 20, o, &err), err);
    return fake_now() / fake_count(FAKE_RUN);
}

static void test_the_first_rows_of_the_next_cell_are_read_ahead(void)
{
    const tgi_desc in = {TG_DTYPE_F32, 4, {1, CH, 480, 24}};
    owner o;
    fake_reset();
    subject s = open_subject(2, &in);
    const double without = time_cells(&s, 0, &o);
    const int64_t inside = o.read_ahead;
    const double with = time_cells(&s, 1, &o);
    printf("  cells of one band: %.2f each, not announced %.2f\n", with, without);
    CHECK_EQ(o.read_ahead - inside, 480 / 16 - 1); /* one for each cell but the first */
    CHECK(with < 10 * 1.04 + 1);                   /* filling and draining 30 cells */
    CHECK(without > 1.2 * with);
    close_subject(&s);
}

/* A device that a cell of one band does not fill takes as many at once as there are lanes; the
 * results are the same and leave in the same order. */
static void test_small_cells_are_computed_beside_each_other(void)
{
    static const int64_t cut[3] = {0, 16, 0};
    const tgi_desc in = {TG_DTYPE_F32, 4, {1, CH, 480, 24}};
    double took[TGI_DEVICE_LANES + 1] = {0};
    tgi_err err = {0};
    fake_reset();
    subject s = open_subject(2, &in);
    for (int lanes = 1; lanes <= TGI_DEVICE_LANES; lanes *= 2) {
        owner o = {.announces = 1, .lanes = lanes, .take_seconds = 1};
        fake_reset();
        fake.run_seconds = 40;
        memset(s.got[0], 0xff, s.n_out[0] * sizeof(float));
        CHECK_OK(run_cut(&s, cut, 1 << 20, &o, &err), err);
        CHECK_EQ(o.order_broken, 0);
        if (lanes == 1)
            memcpy(s.want[0], s.got[0], s.n_out[0] * sizeof(float));
        CHECK_EQ(differences(&s), 0);
        took[lanes] = fake_now() / fake_count(FAKE_RUN);
        printf("  %d lanes: %.1f a cell of 40\n", lanes, took[lanes]);
        CHECK(took[lanes] < 40.0 / lanes * 1.1 + 2);
    }
    CHECK(took[1] >= 40);
    close_subject(&s);
}

static void need_against_taken(int lanes)
{
    const tgi_desc in[2] = {{TG_DTYPE_F32, 4, {1, CH, 64, 96}},
                            {TG_DTYPE_F32, 4, {1, 2, 64, 96}}};
    tgi_err err = {0};
    owner o = {.lanes = lanes};
    tgi_stages *stages = NULL;
    tgi_tiling t;
    tgi_device_need need;
    fake_reset();
    subject s = open_subject(FORKED, in);
    CHECK_OK(run_cut(&s, uncut, 8, &o, &err), err);
    const size_t peak = fake_peak_bytes();
    CHECK_OK(tgi_stages_new(s.net, &stages, &err), err);
    CHECK_OK(tgi_tiling_make(&stages->one, uncut, 8, 1, NULL, &t, &err), err);
    const tgi_device_form form = form_of(&t, &o);
    CHECK_OK(tgi_device_need_of(fake_device_ops(), &t, &form, &need, &err), err);
    CHECK_EQ(need.block + need.program, peak);
    CHECK_EQ(need.weights + need.constants + need.arena + need.pixels, need.block);
    tgi_tiling_free(&t);
    tgi_stages_free(&stages);
    close_subject(&s);
}

static void test_what_is_needed_is_what_is_taken(void)
{
    need_against_taken(1);
    need_against_taken(5);
}

/* Every call that can fail, the first and later ones: answered with its code, nothing left. */
static void test_any_failure_is_answered_and_leaves_nothing(void)
{
    const tgi_desc in[2] = {{TG_DTYPE_F32, 4, {1, CH, 48, 32}},
                            {TG_DTYPE_F32, 4, {1, 2, 48, 32}}};
    fake_reset();
    subject s = open_subject(FORKED, in);
    for (int call = 0; call < FAKE_CALLS; call++)
        for (int k = 1; k <= 4; k++) {
            tgi_err err = {0};
            owner o = {.lanes = k};
            fake_reset();
            fake.fail_at[call] = k;
            fake.fail_with[call] = call == FAKE_ALLOC ? TG_E_NOMEM : TG_E_DEVICE;
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
    RUN(test_any_cut_of_two_inputs_and_two_outputs_gives_the_same_bits);
    RUN(test_numbers_of_channels_are_found_where_pixels_leave);
    RUN(test_channels_and_their_numbers_are_two_outputs);
    RUN(test_an_output_that_nobody_takes_costs_nothing);
    RUN(test_copies_kernels_and_the_host_overlap);
    RUN(test_kernels_follow_each_other_without_a_gap);
    RUN(test_ports_of_a_band_travel_together);
    RUN(test_the_first_rows_of_the_next_cell_are_read_ahead);
    RUN(test_small_cells_are_computed_beside_each_other);
    RUN(test_what_is_needed_is_what_is_taken);
    RUN(test_any_failure_is_answered_and_leaves_nothing);
    return TEST_END();
}

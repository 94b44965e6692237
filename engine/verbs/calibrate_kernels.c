/* calibrate_kernels.c - the speed of each kind of kernel, taken from a network that has one of
 * each and runs through planner and executor like any other.
 *
 *     x 1 -stem-> 16 -conv-> 16 -depthwise-> 16 -pool-> 16 -1x1-> 64 -conv-> 64 -1x1-> 64
 *                  |                                                                   |
 *                  |                      32 <-transposed 2x2- 64 <-sigmoid- 64 <-groups
 *                  +---- concat 48 <----------+
 *                          |
 *                          few -> 2 -erf-> 2
 *
 * The first 1x1 layer has 4 KiB of weights and moves 320 bytes a pixel: nearly all of its time
 * is memory's, which the speed of bytes is taken from. The time that the others' bytes take is
 * then taken off theirs, as squares are.
 *
 * Not fused, so that each operator is timed alone; in bands of 16 rows, as plans have them. */
#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/clock.h"
#include "engine/base/mem.h"
#include "engine/exec/dense.h"
#include "engine/job/pass.h"
#include "engine/verbs/calibrate.h"
#include "kernels/ops/op_attrs.h"
#include "tegula.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROWS 128
#define COLUMNS 2048
#define BAND 16
#define ROUNDS_MAX 24
#define ENOUGH_SECONDS 0.4 /* of a set of kernels, once it ran twice */

/* ---- The network ------------------------------------------------------------------------- */

typedef struct draft {
    tgi_graph *g;
    tg_status st;
    tgi_err *err;
    int n; /* values named so far */
} draft;

static int new_value(draft *d)
{
    char name[16];
    int v = -1;
    snprintf(name, sizeof name, "v%d", d->n++);
    if (d->st == TG_OK)
        d->st = tgi_graph_add_value(d->g, name, &v, d->err);
    return v;
}

/* Small numbers of both signs: sums stay near 1 through the network, so that no kernel meets
 * infinities or denormals. */
static int weights(draft *d, const tgi_desc *desc, float scale)
{
    char name[16];
    int64_t n = 0;
    int v = -1;
    if (d->st != TG_OK || !tgi_desc_count(desc, &n))
        return v;
    float *w = tgi_calloc(TGI_TAG_MISC, (size_t)n, sizeof *w);
    if (!w) {
        d->st = tgi_fail(d->err, TG_E_NOMEM, "no memory for a network to measure");
        return v;
    }
    uint32_t s = 1;
    for (int64_t i = 0; i < n; i++) {
        s = s * 1664525u + 1013904223u;
        w[i] = scale * ((float)(s >> 8) / 8388608.0f - 1.0f);
    }
    snprintf(name, sizeof name, "k%d", d->n++);
    d->st = tgi_graph_add_const(d->g, name, desc, w, 0, &v, d->err);
    tgi_free(w);
    return v;
}

static void *add(draft *d, const char *op, int n_src, const int *src, int *out)
{
    tgi_node *node = NULL;
    *out = new_value(d);
    if (d->st == TG_OK)
        d->st = tgi_graph_add_node(d->g, op, op, n_src, src, 1, out, &node, d->err);
    return node ? node->attrs : NULL;
}

static void fill(tgi_ints *list, int n, int64_t v)
{
    list->n = n;
    for (int i = 0; i < n; i++)
        list->v[i] = v;
}

static int conv(draft *d, int from, int64_t ci, int64_t co, int64_t k, int64_t groups)
{
    const tgi_desc w = {TG_DTYPE_F32, 4, {co, ci / groups, k, k}};
    const int64_t taps = w.dim[1] * k * k;
    const float fan = (float)taps;
    const int src[2] = {from, weights(d, &w, 3.0f / fan)};
    int out;
    conv_attrs *a = add(d, "Conv", 2, src, &out);
    if (a) {
        fill(&a->kernel_shape, 2, k);
        fill(&a->pads, 4, k / 2);
        a->group = groups;
    }
    return out;
}

static int transposed(draft *d, int from, int64_t ci, int64_t co)
{
    const tgi_desc w = {TG_DTYPE_F32, 4, {ci, co, 2, 2}};
    const int src[2] = {from, weights(d, &w, 3.0f / (float)ci)};
    int out;
    conv_attrs *a = add(d, "ConvTranspose", 2, src, &out);
    if (a) {
        fill(&a->kernel_shape, 2, 2);
        fill(&a->strides, 2, 2);
    }
    return out;
}

static int pool(draft *d, int from)
{
    int out;
    pool_attrs *a = add(d, "MaxPool", 1, &from, &out);
    if (a) {
        fill(&a->kernel_shape, 2, 2);
        fill(&a->strides, 2, 2);
    }
    return out;
}

static int plain(draft *d, const char *op, int n, int a, int b)
{
    const int src[2] = {a, b};
    int out;
    add(d, op, n, src, &out);
    return out;
}

static int joined(draft *d, int a, int b)
{
    const int src[2] = {a, b};
    int out;
    axis_attrs *at = add(d, "Concat", 2, src, &out);
    if (at)
        at->axis = 1;
    return out;
}

static tg_status make_graph(tgi_graph **out, tgi_err *err)
{
    static const int64_t dims[4] = {1, 1, -1, -1};
    draft d = {.err = err};
    d.st = tgi_graph_new(&d.g, err);
    const int x = new_value(&d);
    if (d.st == TG_OK)
        d.st = tgi_graph_add_input(d.g, x, 4, dims, err);
    const int stem = conv(&d, x, 1, 16, 3, 1);
    const int top = conv(&d, conv(&d, stem, 16, 16, 3, 1), 16, 16, 3, 16);
    int v = conv(&d, pool(&d, top), 16, 64, 1, 1);
    v = conv(&d, conv(&d, v, 64, 64, 3, 1), 64, 64, 1, 1);
    v = plain(&d, "Sigmoid", 1, conv(&d, v, 64, 64, 3, 8), -1);
    v = joined(&d, transposed(&d, v, 64, 32), stem);
    v = plain(&d, "Erf", 1, conv(&d, v, 48, 2, 3, 1), -1);
    if (d.st == TG_OK)
        d.st = tgi_graph_add_output(d.g, v, err);
    if (d.st == TG_OK)
        d.st = tgi_graph_finish(d.g, TGI_GRAPH_NO_FUSE, err);
    if (d.st != TG_OK)
        tgi_graph_free(&d.g);
    else
        *out = d.g;
    return d.st;
}

/* ---- Running it -------------------------------------------------------------------------- */

typedef struct bench {
    tgi_net *net;
    tgi_stages *stages;
    tgi_tiling tiling;
    tgi_pass pass;
    tgi_dense_io io;
    double *seconds; /* per node: [0] its median; then ROUNDS_MAX rounds of all nodes */
} bench;

static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static tg_status stop(void *user, tgi_err *err)
{
    (void)user;
    return tgi_cancel_signal() ? tgi_fail(err, TG_E_CANCELLED, "stopped; nothing was kept")
                               : TG_OK;
}

static void bench_close(bench *b)
{
    tgi_pass_close(&b->pass);
    tgi_tiling_free(&b->tiling);
    tgi_stages_free(&b->stages);
    tgi_net_free(&b->net);
    tgi_free(b->seconds);
}

static tg_status bench_open(bench *b, const tgi_graph *g, const tgi_kernel_set *be,
                            unsigned flags, int threads, tgi_err *err)
{
    const tgi_desc in = {TG_DTYPE_F32, 4, {1, 1, ROWS, COLUMNS}};
    const int64_t uncut[3] = {0, 0, 0};
    void *pixels;
    TGI_TRY(tgi_net_new(g, be, &in, flags, &b->net, err));
    TGI_TRY(tgi_stages_new(b->net, &b->stages, err));
    TGI_TRY(tgi_tiling_make(&b->stages->one, uncut, BAND, threads, NULL, &b->tiling, err));
    const size_t plane = (size_t)ROWS * COLUMNS * sizeof(float);
    const tgi_want want = {"pixels", 3 * plane, &pixels};
    TGI_TRY(tgi_pass_take(&b->pass, NULL, &b->tiling, 0, &want, 1, 0, err));
    float *x = pixels;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        x[i] = (float)(i % 251) / 250.0f;
    b->io = (tgi_dense_io){.net = b->net, .in = {x}, .out = {x + ROWS * COLUMNS}};
    const tgi_pass_end end = {
        .user = &b->io, .load = tgi_dense_load, .store = tgi_dense_store, .stop = stop};
    TGI_TRY(tgi_pass_open(&b->pass, NULL, &end, err));
    b->seconds = tgi_calloc(TGI_TAG_MISC, (ROUNDS_MAX + 1) * (size_t)b->stages->one.n_nodes,
                            sizeof(double));
    return b->seconds ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory to keep times in");
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Each node's median of some rounds: the best would promise what a run seldom has. On one
 * thread it is processor time that counts, which other programs disturb less. */
static tg_status bench_run(bench *b, int threads, tgi_err *err)
{
    const int n = b->stages->one.n_nodes;
    double of_node[ROUNDS_MAX];
    int rounds = 0;
    const double begin = tgi_seconds();
    for (int r = -1;
         rounds < 3 || (rounds < ROUNDS_MAX && tgi_seconds() - begin < ENOUGH_SECONDS); r++) {
        tgi_range core[3];
        double *now = b->seconds + (1 + (r > 0 ? r : 0)) * n;
        memset(now, 0,
               (size_t)n * sizeof *now); /* also what the first left, which touched memory */
        tgi_exec_time_nodes(b->pass.exec, threads > 1 ? tgi_seconds : processor_seconds, now);
        tgi_tiling_cell(&b->tiling, 0, core);
        TGI_TRY(tgi_pass_core(&b->pass, core, err));
        rounds = r + 1;
    }
    for (int k = 0; k < n; k++) {
        for (int r = 0; r < rounds; r++)
            of_node[r] = b->seconds[(1 + r) * n + k];
        qsort(of_node, (size_t)rounds, sizeof of_node[0], by_size);
        b->seconds[k] = of_node[rounds / 2];
    }
    return TG_OK;
}

/* Bytes a second, by the layer that is bound by them: at the rate of operations that a layer
 * of many has its arithmetic would take `compute` seconds. */
static double speed_of_bytes(const bench *b)
{
    const tgi_stage *one = &b->stages->one;
    double rate = 0, bytes = 0, seconds = 0, work = 0;
    for (int k = 0; k < one->n_nodes; k++) {
        const tgi_net_node *n = tgi_stage_node(one, k);
        const int64_t from = n->src[0].dim[1], to = n->dst[0].dim[1];
        if (from == 64 && to == 64 && b->seconds[k] > 0)
            rate = fmax(rate, tgi_speed_work(&b->tiling, k) / b->seconds[k]);
        if (from == 16 && to == 64) {
            bytes = tgi_speed_bytes(&b->tiling, k);
            work = tgi_speed_work(&b->tiling, k);
            seconds = b->seconds[k];
        }
    }
    const double memory = rate > 0 ? tgi_speed_alone(seconds, work / rate) : 0;
    return memory > 0 ? bytes / memory : 0;
}

static void set_speed(tgi_speeds *s, const char *key, int all, double rate)
{
    double single = rate;
    for (int i = 0; all && i < s->n_kernels; i++)
        if (strcmp(s->kernel[i].key, key) == 0)
            single = s->kernel[i].one;
    if (key[0] && rate > 0)
        tgi_speed_set(s, key, single, rate);
}

/* Rates of one set of kernels, by key; work and seconds of equal keys are added. */
static void collect(const bench *b, int all, tgi_speeds *s)
{
    const tgi_stage *one = &b->stages->one;
    const double bytes = speed_of_bytes(b);
    char key[48], other[48];
    for (int k = 0; k < one->n_nodes; k++) {
        double work = 0, seconds = 0;
        tgi_speed_key(tgi_stage_node(one, k), key, sizeof key);
        for (int j = 0; j < one->n_nodes; j++) {
            tgi_speed_key(tgi_stage_node(one, j), other, sizeof other);
            if (strcmp(key, other) != 0)
                continue;
            tgi_speed_bytes_key(tgi_stage_node(one, j), other, sizeof other);
            const double memory =
                other[0] && bytes > 0 ? tgi_speed_bytes(&b->tiling, j) / bytes : 0;
            work += tgi_speed_work(&b->tiling, j);
            /* what is bound by memory alone: half of its time, at least, is arithmetic's */
            seconds += fmax(tgi_speed_alone(b->seconds[j], memory), b->seconds[j] / 2);
        }
        set_speed(s, key, all, seconds > 0 ? work / seconds : 0);
        tgi_speed_bytes_key(tgi_stage_node(one, k), other, sizeof other);
        set_speed(s, other, all, bytes);
    }
}

static tg_status measure_set(const tgi_graph *g, const tgi_kernel_set *be, unsigned flags,
                             tgi_speeds *s, tgi_err *err)
{
    for (int all = 0; all < 2; all++) {
        bench b = {0};
        tg_status st = bench_open(&b, g, be, flags, all ? s->processors : 1, err);
        if (st == TG_OK)
            st = bench_run(&b, all ? s->processors : 1, err);
        if (st == TG_OK)
            collect(&b, all, s);
        bench_close(&b);
        TGI_TRY(st);
    }
    return TG_OK;
}

tg_status tgi_calibrate_kernels(tgi_speeds *s, tgi_err *err)
{
    tgi_graph *g = NULL;
    TGI_TRY(make_graph(&g, err));
    tg_status st = TG_OK;
    for (tgi_isa isa = tgi_isa_detect(TGI_ISA_COUNT);; isa = (tgi_isa)(isa - 1)) {
        const tgi_kernel_set *be = tgi_backend_for(isa);
        if (be && st == TG_OK)
            st = measure_set(g, be, TGI_NET_EXACT, s, err); /* direct sums */
        if (be && st == TG_OK)
            st = measure_set(g, be, 0, s, err);
        if (be && st == TG_OK && tgi_isa_has_bf16(isa))
            st = measure_set(g, be, TGI_NET_EXACT | TGI_NET_KINDS(TGI_KIND_BF16), s, err);
        if (isa == TGI_ISA_PORTABLE)
            break;
    }
    tgi_graph_free(&g);
    return st;
}

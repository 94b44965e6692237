/* bench_gpu_net - a whole network on a device, warm, through the plugin and the executor that
 * jobs use: pixels in pinned memory, uint16 in and out, one cell without cuts.
 *
 * usage: bench_gpu_net [--size N] [--items N] [--rounds N] [--precision fp32|fp16]
 *                      [--kinds measured|all|none] MODEL.onnx
 *
 * Kinds of variants that pay on this device only (wgmma) are measured and used as a job does
 * it; `all` and `none` use what there is, or nothing of them, whatever it gains.
 *
 * First the answer at a small size is compared with the reference kernels (relative L2). Then
 * `items` images follow each other, upload, kernels and download overlapping, `rounds` times;
 * one row of JSON: megapixels of the input a second. --items 1 is the time of one image, alone.
 * Exit 77 without a device. */
#include "bench/measure.h"
#include "engine/base/clock.h"
#include "engine/device/gains.h"
#include "engine/exec/device_exec.h"
#include "engine/graph/graph.h"
#include "tests/cuda/device_run.h"
#include "tests/net_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL 64

static struct {
    int64_t size, items;
    int rounds;
    tg_dtype element;
    const char *kinds, *model;
} set = {1024, 8, 9, TG_DTYPE_F16, "measured", NULL};

static const tgi_device_ops *ops;
static tgi_device *d;
static unsigned kinds; /* of variants that nets may use: TGI_KIND_* */
static tgi_err err;

_Noreturn static void die(const char *what)
{
    fprintf(stderr, "bench_gpu_net: %s\n", what);
    exit(1);
}

static void must(tg_status st)
{
    if (st != TG_OK)
        die(err.text);
}

/* ---- A network on the device, and its pixels --------------------------------------------- */

typedef struct subject {
    tgi_net *net;
    tgi_stages *stages;
    tgi_tiling tiling;
    tgi_device_exec *exec;
    tg_dtype type; /* of pixels, on both ends */
    void *pixels;  /* pinned, dense; the whole image */
    float *out;    /* where float32 results go; or NULL */
    size_t n_out;
} subject;

static size_t count(const tgi_desc *desc)
{
    int64_t n = 0;
    return tgi_desc_count(desc, &n) ? (size_t)n : 0;
}

static tg_status fetch(void *user, const tgi_device_cell *cell, int i, const tgi_box *box,
                       tgi_device_pixels *out, const void **at, size_t *bytes, tgi_err *e)
{
    const subject *s = user;
    const tgi_desc *in = &s->net->shapes.desc[s->net->in[0]];
    (void)cell, (void)i, (void)e;
    for (int a = TGI_STREAM_AXIS; a < box->rank; a++)
        if (box->ax[a].lo != 0 || box->ax[a].hi != in->dim[a])
            die("the whole image was expected");
    *out = (tgi_device_pixels){.type = s->type,
                               .channels = in->dim[1],
                               .together = 1,
                               .rows = box->ax[box->rank - 2],
                               .cols = box->ax[box->rank - 1],
                               .extent = {1, in->dim[2], in->dim[3]},
                               .pad = TGI_LOAD_ZERO,
                               .mul = s->type == TG_DTYPE_F32 ? 1.0f : 1.0f / 65535.0f};
    *at = s->pixels;
    *bytes = count(in) * tgi_dtype_size(s->type);
    return TG_OK;
}

static void ahead(void *user, const tgi_device_cell *cell, const tgi_box *box)
{
    (void)user, (void)cell, (void)box;
}

static tg_status take(void *user, const tgi_device_cell *cell, int o, const tgi_box *box,
                      const void *pixels, const uint32_t *counts, tgi_err *e)
{
    const subject *s = user;
    (void)cell, (void)o, (void)box, (void)counts, (void)e;
    if (s->out)
        memcpy(s->out, pixels, s->n_out * sizeof(float));
    return TG_OK;
}

static void put_pixels(const subject *s, const float *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s->type == TG_DTYPE_F32)
            ((float *)s->pixels)[i] = from[i];
        else
            ((uint16_t *)s->pixels)[i] = (uint16_t)lrintf(from[i] * 65535.0f);
}

static float *noise(size_t n)
{
    uint64_t seed = 88172645463325252u;
    float *x = tgi_malloc(TGI_TAG_MISC, n * sizeof *x);
    if (!x)
        die("out of memory");
    for (size_t i = 0; i < n; i++)
        x[i] = 0.5f + 0.5f * tg_rand_unit(&seed);
    return x;
}

static void open_subject(subject *s, const tgi_graph *g, const tgi_kernel_set *be, int64_t side,
                         tg_dtype type)
{
    const int64_t ext[3] = {1, side, side}, uncut[3] = {0, 0, 0};
    const tgi_device_io io = {s, fetch, ahead, take};
    tgi_desc in[TGI_MAX_PORTS];
    memset(s, 0, sizeof *s);
    s->type = type;
    tgi_graph_input_descs(g, ext, in);
    must(tgi_net_new(g, be, in, TGI_NET_KINDS(kinds), &s->net, &err));
    if (s->net->n_in != 1 || s->net->n_out != 1 || in[0].rank != 4)
        die("one image in and one out are wanted");
    must(tgi_stages_new(s->net, &s->stages, &err));
    must(tgi_tiling_make(&s->stages->one, uncut, side, 1, NULL, &s->tiling, &err));
    s->n_out = net_out_count(s->net, 0);
    const size_t n_in = count(&in[0]);
    must(ops->pin(d, n_in * tgi_dtype_size(type), &s->pixels, &err));
    float *x = noise(n_in);
    put_pixels(s, x, n_in);
    tgi_free(x);
    tgi_device_form form = {0};
    form.in[0] = (tgi_device_port){.type = type, .bytes = n_in * tgi_dtype_size(type)};
    form.out[0] = (tgi_device_port){
        .type = type, .channels = s->net->values[s->net->out[0]].c, .together = 1};
    must(tgi_device_exec_open(ops, d, &s->tiling, &form, &io, &s->exec, &err));
}

static void close_subject(subject *s)
{
    tgi_device_exec_close(&s->exec);
    ops->unpin(d, s->pixels);
    tgi_tiling_free(&s->tiling);
    tgi_stages_free(&s->stages);
    tgi_net_free(&s->net);
}

/* Seconds of `items` images behind each other. */
static double time_of(subject *s, int64_t items)
{
    const tgi_device_cell cell = {.mul = s->type == TG_DTYPE_F32 ? 1.0f : 65535.0f};
    const double from = measure_now();
    for (int64_t i = 0; i < items; i++) {
        tgi_range core[3];
        tgi_tiling_cell(&s->tiling, 0, core);
        tgi_device_exec_begin(s->exec, &cell, core);
        must(tgi_device_exec_bands(s->exec, NULL, NULL, &err));
    }
    must(tgi_device_exec_drain(s->exec, &err));
    return measure_now() - from;
}

/* ---- The answer -------------------------------------------------------------------------- */

/* Relative L2 against the reference kernels of the processor. */
static double distance(const tgi_graph *g, const tgi_kernel_set *be, int64_t side)
{
    const int64_t ext[3] = {1, side, side}, uncut[3] = {0, 0, 0};
    subject s;
    tgi_desc in[TGI_MAX_PORTS];
    tgi_net *plain = NULL;
    double of = 0, off = 0;
    open_subject(&s, g, be, side, TG_DTYPE_F32);
    s.out = noise(s.n_out);
    float *want = noise(s.n_out);
    (void)time_of(&s, 1);
    tgi_graph_input_descs(g, ext, in);
    must(
        tgi_net_new(g, tgi_backend_for(TGI_ISA_PORTABLE), in, TGI_NET_REFERENCE, &plain, &err));
    net_io io = {.in = {s.pixels}, .out = {want}};
    must(net_run(plain, uncut, side, 1, &io, -1, &err));
    for (size_t i = 0; i < s.n_out; i++) {
        of += (double)want[i] * want[i];
        off += ((double)s.out[i] - want[i]) * ((double)s.out[i] - want[i]);
    }
    tgi_net_free(&plain);
    tgi_free(s.out);
    tgi_free(want);
    close_subject(&s);
    return sqrt(off / of);
}

/* ---- The program ------------------------------------------------------------------------- */

/* What a job would use (engine/job/device_kinds.c), but for libraries. */
static unsigned kinds_of_device(void)
{
    const unsigned there =
        set.element == TG_DTYPE_F32 ? 0 : device_described()->kinds & TGI_KIND_WGMMA;
    uint64_t room, total;
    double gain = 0;
    if (!there || strcmp(set.kinds, "measured") != 0)
        return strcmp(set.kinds, "none") == 0 ? 0 : there;
    must(ops->memory(d, &room, &total, &err));
    must(tgi_gain_measure(TGI_GAIN_WGMMA, ops, d, device_described(), room, &gain, &err));
    return gain >= tgi_gain_worth(TGI_GAIN_WGMMA) ? there : 0;
}

static int64_t side_of(const tgi_graph *g, int64_t wanted)
{
    const int64_t unit = g->divisor[1] > g->divisor[2] ? g->divisor[1] : g->divisor[2];
    if (g->fixed_size)
        return g->base[1];
    return (wanted + unit - 1) / unit * unit;
}

/* The file's name, or its folder's where all are called model.onnx. */
static const char *name_of(const char *path, char *buf, size_t cap)
{
    const char *end = strrchr(path, '/');
    if (end && strcmp(end, "/model.onnx") != 0)
        path = end + 1;
    end = end && path <= end ? end : path + strlen(path);
    const char *from = end;
    while (from > path && from[-1] != '/')
        from--;
    snprintf(buf, cap, "%.*s", (int)(end - from), from);
    return buf;
}

static void measure(const tgi_graph *g, const tgi_kernel_set *be)
{
    double t[ROUNDS_MAX];
    subject s;
    const int half = set.element == TG_DTYPE_F16;
    const double l2 = distance(g, be, side_of(g, set.size < SMALL ? set.size : SMALL));
    if (!(l2 < (half ? 2e-2 : 1e-4))) {
        fprintf(stderr, "relative L2 %g\n", l2);
        die("the answer is wrong, so nothing is timed");
    }
    const int64_t side = side_of(g, set.size);
    open_subject(&s, g, be, side, TG_DTYPE_U16);
    (void)time_of(&s, 2);
    for (int i = 0; i < set.rounds; i++)
        t[i] = time_of(&s, set.items);
    const double mp = (double)(set.items * side * side) * 1e-6;
    const double median = measure_median(t, set.rounds);
    char name[128];
    printf("{\"family\": \"gpu_nets\", \"case\": \"%s %lldx%lld\", \"element\": \"%s\", "
           "\"items\": %lld, \"mps\": {\"median\": %.3f, \"min\": %.3f, \"max\": %.3f, "
           "\"rounds\": %d}, \"arena_bytes\": %zu, \"answer_relative_l2\": %.3g, "
           "\"kinds\": \"%s\", \"nodes_of_kinds\": %d}\n",
           name_of(set.model, name, sizeof name), (long long)side, (long long)side,
           tgi_dtype_name(set.element), (long long)set.items, mp / median,
           mp / t[set.rounds - 1], mp / t[0], set.rounds, s.tiling.arena_bytes, l2,
           kinds & TGI_KIND_WGMMA ? "wgmma" : "", tgi_net_nodes_of(s.net, kinds));
    close_subject(&s);
}

static int read_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        const long n = strtol(value, NULL, 10);
        if (strcmp(argv[i], "--precision") == 0)
            set.element = strcmp(value, "fp32") == 0 ? TG_DTYPE_F32 : TG_DTYPE_F16;
        else if (strcmp(argv[i], "--kinds") == 0)
            set.kinds = value;
        else if (strcmp(argv[i], "--size") == 0 && n > 0)
            set.size = n;
        else if (strcmp(argv[i], "--items") == 0 && n > 0)
            set.items = n;
        else if (strcmp(argv[i], "--rounds") == 0 && n > 0)
            set.rounds = n < ROUNDS_MAX ? (int)n : ROUNDS_MAX;
        else if (argv[i][0] != '-' && !set.model && i + 1 == argc)
            set.model = argv[i];
        else
            return 0;
        i += argv[i][0] == '-';
    }
    return set.model != NULL &&
           (strcmp(set.kinds, "measured") == 0 || strcmp(set.kinds, "all") == 0 ||
            strcmp(set.kinds, "none") == 0);
}

int main(int argc, char **argv)
{
    tgi_graph *g = NULL;
    if (!read_options(argc, argv))
        die("usage: bench_gpu_net [--size N] [--items N] [--rounds N] "
            "[--precision fp32|fp16] [--kinds measured|all|none] MODEL.onnx");
    ops = device_of_test(&d);
    if (!ops)
        return 77;
    const tgi_kernel_set *be = ops->backend(set.element);
    if (!be)
        die("the device has no such numbers");
    kinds = kinds_of_device();
    must(tgi_graph_import_onnx(set.model, &g, &err));
    must(tgi_graph_finish(g, 0, &err));
    measure(g, be);
    tgi_graph_free(&g);
    return 0;
}

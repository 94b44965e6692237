/* bench_gpu_net - a whole network on a device, warm, through the plugin and the executor that
 * jobs use: pixels in pinned memory, uint16 in and out, one cell without cuts.
 *
 * usage: bench_gpu_net [--size N] [--items LIST] [--rounds N] [--precision fp32|fp16]
 *                      [--kinds measured|all|none] MODEL.onnx
 *
 * Kinds of variants that pay on this device only (wgmma) are measured and used as a job does
 * it; `all` and `none` use what there is, or nothing of them, whatever it gains.
 *
 * First the answer at a small size is compared with the reference kernels (relative L2). Then
 * `items` images follow each other, upload, kernels and download overlapping, `rounds` times,
 * and so often in a round that kernels work for 20 ms. One row of JSON for each number of LIST
 * (8; 1 is one image, alone), megapixels of the input a second, by two clocks: `kernel_mps` by
 * the device's events around the kernels of each image, `run_mps` by the host's clock around
 * all of it, copies and waiting included. Behind the last round one more image is compared,
 * all of it, with what the processor's tuned kernels make of the same pixels (relative L2; the
 * largest difference by the standard deviation of the answer; the rounding to uint16 is no
 * difference), and no row is printed where it is wrong. `without_graph`: parts whose launches
 * go one by one, since the driver made no graph of them. Exit 77 without a device. */
#include "bench/measure.h"
#include "engine/device/gains.h"
#include "engine/exec/device_exec.h"
#include "engine/graph/graph.h"
#include "tests/cuda/device_run.h"
#include "tests/net_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SMALL 64
#define ROUND_SECONDS 0.02 /* of kernels, at least */
#define BAND 64            /* rows that the processor computes at once */
#define MOST_ITEMS 4

static struct {
    int64_t size, items[MOST_ITEMS];
    int n_items, rounds;
    tg_dtype element;
    const char *kinds, *model;
} set = {1024, {8}, 1, 9, TG_DTYPE_F16, "measured", NULL};

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
    void *out;     /* where results go, of the same type; or NULL */
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
        memcpy(s->out, pixels, s->n_out * tgi_dtype_size(s->type));
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

/* A picture: squares of 16 pixels, each of some grey, with noise. */
static void draw(const tgi_desc *in, float *x)
{
    for (int64_t c = 0, i = 0; c < in->dim[1]; c++)
        for (int64_t row = 0; row < in->dim[2]; row++)
            for (int64_t col = 0; col < in->dim[3]; col++, i++) {
                const uint32_t square =
                    (uint32_t)(c * 31 + row / 16 * 1021 + col / 16 + 1) * 2654435761u;
                x[i] = 0.75f * (float)(square >> 16) / 65535.0f + 0.25f * x[i];
            }
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
    const tgi_device_io io = {.user = s, .fetch = fetch, .ahead = ahead, .take = take};
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
    draw(&in[0], x);
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

typedef struct took {
    double kernels, run; /* seconds, by the device's events and by the host's clock */
} took;

/* `items` images behind each other, `times` over. */
static took time_of(subject *s, int64_t items, int64_t times)
{
    const tgi_device_cell cell = {.mul = s->type == TG_DTYPE_F32 ? 1.0f : 65535.0f};
    double before[3], after[3];
    must(ops->times(d, before, &err));
    const double from = measure_now();
    for (int64_t k = 0; k < times; k++) {
        for (int64_t i = 0; i < items; i++) {
            tgi_range core[3];
            tgi_tiling_cell(&s->tiling, 0, core);
            tgi_device_exec_begin(s->exec, &cell, core);
            must(tgi_device_exec_bands(s->exec, NULL, NULL, &err));
        }
        must(tgi_device_exec_drain(s->exec, &err));
    }
    const double run = measure_now() - from;
    must(ops->times(d, after, &err));
    return (took){after[2] - before[2], run};
}

/* ---- Answers ----------------------------------------------------------------------------- */

/* Relative L2, which one pixel of many hardly moves, and the largest difference by the standard
 * deviation of the answer: about 1 for a pixel that is another's. */
typedef struct off {
    double l2, worst;
} off;

/* `steps` > 0: values of [0,1] in so many steps, whose rounding is no difference. */
static off compare(const float *got, const float *want, size_t n, double steps)
{
    double of = 0, all = 0, sum = 0, worst = 0;
    for (size_t i = 0; i < n; i++) {
        double w = want[i], by;
        if (steps > 0)
            w = w > 0 ? (w < 1 ? w : 1) : 0;
        by = fabs(got[i] - w);
        if (steps > 0)
            by = by > 0.51 / steps ? by - 0.51 / steps : 0;
        all += w;
        of += w * w;
        sum += by * by;
        worst = by > worst ? by : worst; /* a NaN shows in the sum */
    }
    const double mean = all / (double)n;
    return (off){sqrt(sum / of), worst > 0 ? worst / sqrt(of / (double)n - mean * mean) : 0};
}

/* What kernels of the processor make of the same image. */
static void on_cpu(const tgi_graph *g, int64_t side, unsigned flags, float *in, float *out)
{
    const int64_t ext[3] = {1, side, side}, uncut[3] = {0, 0, 0};
    const int plain = flags & TGI_NET_REFERENCE;
    const int64_t band = plain || side < BAND ? side : BAND;
    const int threads = plain ? 1 : (int)sysconf(_SC_NPROCESSORS_ONLN);
    tgi_desc desc[TGI_MAX_PORTS];
    tgi_net *net = NULL;
    tgi_graph_input_descs(g, ext, desc);
    must(tgi_net_new(g,
                     tgi_backend_for(plain ? TGI_ISA_PORTABLE : tgi_isa_detect(TGI_ISA_COUNT)),
                     desc, flags, &net, &err));
    net_io io = {.in = {in}, .out = {out}};
    must(net_run(net, uncut, band, threads, &io, -1, &err));
    tgi_net_free(&net);
}

static off small_answer(const tgi_graph *g, const tgi_kernel_set *be, int64_t side)
{
    subject s;
    open_subject(&s, g, be, side, TG_DTYPE_F32);
    float *got = noise(s.n_out), *want = noise(s.n_out);
    s.out = got;
    (void)time_of(&s, 1, 1);
    on_cpu(g, side, TGI_NET_REFERENCE, s.pixels, want);
    const off by = compare(got, want, s.n_out, 0);
    tgi_free(got);
    tgi_free(want);
    close_subject(&s);
    return by;
}

static float *from_u16(const uint16_t *p, size_t n)
{
    float *x = tgi_malloc(TGI_TAG_MISC, n * sizeof *x);
    if (!x)
        die("out of memory");
    for (size_t i = 0; i < n; i++)
        x[i] = (float)p[i] / 65535.0f;
    return x;
}

/* What the processor makes of the pixels of the subject that is timed. */
static float *wanted(const subject *s, const tgi_graph *g, int64_t side)
{
    float *in = from_u16(s->pixels, count(&s->net->shapes.desc[s->net->in[0]]));
    float *want = noise(s->n_out);
    on_cpu(g, side, TGI_NET_EXACT, in, want);
    tgi_free(in);
    return want;
}

/* Of that subject, run once more. */
static off timed_answer(subject *s, const float *want)
{
    s->out = tgi_calloc(TGI_TAG_MISC, s->n_out, sizeof(uint16_t));
    if (!s->out)
        die("out of memory");
    (void)time_of(s, 1, 1);
    float *got = from_u16(s->out, s->n_out);
    const off by = compare(got, want, s->n_out, 65535);
    tgi_free(got);
    tgi_free(s->out);
    s->out = NULL; /* nobody copies while it is timed */
    return by;
}

static void must_be_right(const char *at, off by)
{
    const int half = set.element == TG_DTYPE_F16;
    if (by.l2 < (half ? 2e-2 : 1e-4) && by.worst < (half ? 0.5 : 2.5e-3))
        return;
    fprintf(stderr, "bench_gpu_net: the answer at %s is wrong: relative L2 %g, worst %g\n", at,
            by.l2, by.worst);
    exit(1);
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

static void print_rates(const char *name, const char *clock, double mp, double *t)
{
    const double median = measure_median(t, set.rounds);
    printf("\"%s\": {\"clock\": \"%s\", \"median\": %.6g, \"min\": %.6g, \"max\": %.6g, "
           "\"rounds\": %d}, ",
           name, clock, mp / median, mp / t[set.rounds - 1], mp / t[0], set.rounds);
}

typedef struct rates {
    int64_t items, times;
    double kernels[ROUNDS_MAX], runs[ROUNDS_MAX]; /* seconds of a round */
} rates;

static void time_rounds(subject *s, rates *r)
{
    (void)time_of(s, 1, 1); /* what the first run makes is made */
    const took once = time_of(s, 1, 1);
    if (!(once.kernels > 0))
        die("the device keeps no times");
    r->times = (int64_t)(ROUND_SECONDS / once.kernels) / r->items + 1;
    for (int i = 0; i < set.rounds; i++) {
        const took t = time_of(s, r->items, r->times);
        r->kernels[i] = t.kernels;
        r->runs[i] = t.run;
    }
}

static void print_row(const subject *s, int64_t side, rates *r, off small, off by)
{
    const double mp = (double)(r->items * r->times * side * side) * 1e-6;
    char name[128];
    printf("{\"family\": \"gpu_nets\", \"case\": \"%s %lldx%lld\", \"element\": \"%s\", "
           "\"items\": %lld, ",
           name_of(set.model, name, sizeof name), (long long)side, (long long)side,
           tgi_dtype_name(set.element), (long long)r->items);
    print_rates("kernel_mps", "events", mp, r->kernels);
    print_rates("run_mps", "host", mp, r->runs);
    printf(
        "\"round_ms\": %.2f, \"arena_bytes\": %zu, \"reference_relative_l2\": %.3g, "
        "\"answer_relative_l2\": %.3g, \"answer_worst\": %.3g, \"answer_beside\": \"cpu %s\", "
        "\"kinds\": \"%s\", \"nodes_of_kinds\": %d, \"without_graph\": %d}\n",
        r->kernels[0] * 1e3, s->tiling.arena_bytes, small.l2, by.l2, by.worst,
        tgi_isa_name(tgi_isa_detect(TGI_ISA_COUNT)), kinds & TGI_KIND_WGMMA ? "wgmma" : "",
        tgi_net_nodes_of(s->net, kinds), tgi_device_exec_loose(s->exec));
    fflush(stdout);
}

static void measure(const tgi_graph *g, const tgi_kernel_set *be)
{
    const int64_t side = side_of(g, set.size);
    subject s;
    const off small = small_answer(g, be, side_of(g, set.size < SMALL ? set.size : SMALL));
    must_be_right("a small size", small);
    open_subject(&s, g, be, side, TG_DTYPE_U16);
    float *want = wanted(&s, g, side);
    for (int i = 0; i < set.n_items; i++) {
        rates r = {.items = set.items[i]};
        time_rounds(&s, &r);
        const off by = timed_answer(&s, want);
        must_be_right("the timed size", by);
        print_row(&s, side, &r, small, by);
    }
    tgi_free(want);
    close_subject(&s);
}

/* Numbers by commas. 0: it is none. */
static int read_items(const char *list)
{
    char *end;
    for (set.n_items = 0; set.n_items < MOST_ITEMS; list = end + 1) {
        const long n = strtol(list, &end, 10);
        if (n <= 0 || (*end && *end != ','))
            return 0;
        set.items[set.n_items++] = n;
        if (!*end)
            return 1;
    }
    return 0;
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
        else if (strcmp(argv[i], "--items") == 0 && read_items(value))
            ;
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
        die("usage: bench_gpu_net [--size N] [--items LIST] [--rounds N] "
            "[--precision fp32|fp16] [--kinds measured|all|none] MODEL.onnx");
    setenv("TEGULA_CUDA_TIMES", "1", 1);
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

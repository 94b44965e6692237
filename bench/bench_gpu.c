/* bench_gpu - convolutions on a device, through the plugin that the command opens.
 *
 * usage: bench_gpu [--case TEXT] [--precision fp16|fp32] [--side N] [--channels N]
 *                  [--rounds N] [--f16 TFLOPS] [--f32 TFLOPS] [--copy GBS]
 *                  [--f16-sustained TFLOPS] [--f32-sustained TFLOPS] [--copy-sustained GBS]
 *
 * --case takes the layers alone whose names contain TEXT (for a profiler), --precision one type
 * of numbers.
 *
 * Each case is first compared with the reference kernel, at a side of at most 48. Then it is
 * timed by the device's own events: the layer so often in one program that a round takes 20 ms
 * between two events (TIMED of them at most: a round's length stands in the row, `round_ms`).
 * What the last round left is compared, all of it, with the processor's tuned kernel of the
 * same size: relative L2, and the largest difference by the root mean square of the answer. A
 * row of JSON a case, or the reason why there is none; `without_graph`: parts of its program
 * that the driver made no graph of. Shares are of the ceilings given (bench/gpu_peak.cu), of
 * bursts and sustained ones. Bytes are those that must move once: source, result, weights.
 * Where a kind of variants that the device has would be preferred, there is a row of it too:
 * kinds are not compared with each other before they ran. Exit 77 without a device. */
#include "bench/layer_case.h"
#include "bench/measure.h"
#include "engine/base/mem.h"
#include "tests/cuda/device_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUND_SECONDS 0.02
#define TIMED 4096 /* a program has 4 KiB of the device's memory for each */
#define CHECK_SIDE 48

/* Sides are so that source and result of halves are 128 MB together: no cache holds them. */
static const layer layers[] = {
    {"conv 3x3 32", 32, 32, 0, 1024, 1024, 3, 1, 1, 0, 0},
    {"conv 3x3 64", 64, 64, 0, 720, 720, 3, 1, 1, 0, 0},
    {"conv 3x3 128", 128, 128, 0, 512, 512, 3, 1, 1, 0, 0},
    {"conv 3x3 256", 256, 256, 0, 360, 360, 3, 1, 1, 0, 0},
    {"conv 3x3 512", 512, 512, 0, 256, 256, 3, 1, 1, 0, 0},
    {"conv 3x3 3 to 64", 3, 64, 0, 720, 720, 3, 1, 1, 0, 0},
    {"conv 3x3 64 to 1", 64, 1, 0, 720, 720, 3, 1, 1, 0, 0},
    {"conv 1x1 64", 64, 64, 0, 720, 720, 1, 1, 1, 0, 0},
    {"conv 1x1 256", 256, 256, 0, 360, 360, 1, 1, 1, 0, 0},
    {"conv 1x1 512", 512, 512, 0, 256, 256, 1, 1, 1, 0, 0},
    {"conv 3x3 stride 2, 64 to 128", 64, 128, 0, 720, 720, 3, 2, 1, 0, 0},
    {"transposed 2x2 stride 2, 128 to 64", 128, 64, 0, 360, 360, 2, 2, 1, 1, 0},
    {"depthwise 3x3 64", 64, 64, 0, 720, 720, 3, 1, 64, 0, 0},
};

static struct {
    int64_t side, channels; /* at most */
    int rounds;
    double f16[2], f32[2], copy[2]; /* ceilings in bursts, sustained: TFLOP/s, GB/s; 0: none */
    const char *only;               /* in the names of layers */
    const char *precision;          /* NULL: both */
} set = {1024, 512, 9, {0}, {0}, {0}, "", NULL};

static const tgi_device_ops *ops;
static tgi_device *d;
static tgi_threads *pool; /* for the processor's answers */
static tgi_err err;

static void must(tg_status st)
{
    if (st != TG_OK)
        layer_die(err.text);
}

/* ---- A layer on the device --------------------------------------------------------------- */

typedef struct on_device {
    layer_case k;
    tg_dtype element;
    tgi_view src, dst;
    tgi_operand operand;
    tgi_device_step *steps; /* `times` of the same */
    int times;
    tgi_device_program *p;
    void *at[4];  /* source, result, weights, scratch */
    size_t bytes; /* that move at least */
} on_device;

static size_t floats_of(const tgi_view *v)
{
    return v->z_pitch * (size_t)v->z_ring;
}

static void *put(const void *from, size_t bytes)
{
    void *at = NULL;
    must(ops->alloc(d, bytes, &at, &err));
    if (from)
        must(ops->upload(d, TGI_QUEUE_COMPUTE, at, from, bytes, &err));
    must(ops->sync(d, NULL, &err));
    return at;
}

static void put_view(on_device *o, int i, const tgi_view *host, tgi_view *there)
{
    const size_t n = floats_of(host), bytes = n * device_element_bytes(o->element);
    void *copy = tgi_malloc(TGI_TAG_MISC, bytes);
    if (!copy)
        layer_die("out of memory");
    device_to_elements(o->element, host->base, n, copy);
    o->at[i] = put(copy, bytes);
    tgi_free(copy);
    *there = *host;
    there->base = o->at[i];
}

static void as_halves(float *p, size_t n)
{
    device_round(TG_DTYPE_F16, p, n);
}

/* Pixels and weights as the device holds them. */
static layer_choice choice_of(tg_dtype element, unsigned kinds)
{
    return (layer_choice){.kinds = kinds, .round = element == TG_DTYPE_F16 ? as_halves : NULL};
}

/* The layer `times` over in one program. */
static void repeat(on_device *o, int times)
{
    const tgi_device_step step = o->steps[0];
    size_t held = 0;
    if (o->p)
        ops->program_close(&o->p);
    tgi_free(o->steps);
    o->steps = tgi_malloc(TGI_TAG_MISC, (size_t)times * sizeof *o->steps);
    if (!o->steps)
        layer_die("out of memory");
    for (int i = 0; i < times; i++)
        o->steps[i] = step;
    o->times = times;
    must(ops->program_open(d, TGI_QUEUE_COMPUTE, o->steps, times, &o->p, &held, &err));
}

static int open_layer(on_device *o, const layer *l, const tgi_kernel_set *be, unsigned kinds)
{
    const layer_choice any = choice_of(be->element, kinds);
    memset(o, 0, sizeof *o);
    o->element = be->element;
    if (!layer_case_open(&o->k, l, be, &any, NULL)) {
        layer_case_close(&o->k);
        return 0;
    }
    put_view(o, 0, &o->k.sv, &o->src);
    put_view(o, 1, &o->k.dv, &o->dst);
    o->at[2] = put(o->k.mem[2], o->k.packed_bytes);
    if (o->k.scratch_bytes)
        o->at[3] = put(NULL, o->k.scratch_bytes);
    o->operand = (tgi_operand){1, &o->src};
    o->steps = tgi_malloc(TGI_TAG_MISC, sizeof *o->steps);
    if (!o->steps)
        layer_die("out of memory");
    tgi_device_step *step = o->steps;
    *step = (tgi_device_step){.kind = TGI_STEP_NODE, .variant = o->k.v, .call = o->k.call};
    step->call.src = &o->operand;
    step->call.dst = &o->dst;
    step->call.packed = o->at[2];
    step->call.scratch = o->at[3];
    for (int a = 0; a < o->k.dst.rank; a++)
        step->call.most[a] = o->k.dst.dim[a];
    o->bytes =
        (layer_count(&o->k.src[0]) + layer_count(&o->k.dst) + layer_count(&o->k.src[1])) *
        device_element_bytes(o->element);
    repeat(o, 1);
    return 1;
}

static void close_layer(on_device *o)
{
    ops->program_close(&o->p);
    for (int i = 0; i < 4; i++)
        ops->release(d, o->at[i]);
    tgi_free(o->steps);
    layer_case_close(&o->k);
}

/* Seconds of a round, between two events of the device. */
static double round_of(on_device *o)
{
    double seconds;
    must(ops->program_time(o->p, o->steps, &seconds, &err));
    return seconds;
}

/* ---- Answers ----------------------------------------------------------------------------- */

/* How far the device's answer is off: relative L2, which one pixel of many hardly moves, and the
 * largest difference by the root mean square of the whole answer. */
typedef struct off {
    double l2, worst;
} off;

/* What stands in the device's result now, dense. */
static float *answer_of(on_device *o)
{
    const size_t stored = floats_of(&o->dst), bytes = device_element_bytes(o->element);
    float *got = layer_floats(layer_count(&o->k.dst));
    void *raw = tgi_malloc(TGI_TAG_MISC, stored * bytes);
    if (!raw)
        layer_die("out of memory");
    must(ops->download(d, TGI_QUEUE_COMPUTE, raw, o->at[1], stored * bytes, &err));
    must(ops->sync(d, NULL, &err));
    device_from_elements(o->element, raw, stored, o->k.dv.base);
    layer_case_dense(&o->k, got);
    tgi_free(raw);
    return got;
}

static off compare(on_device *o, const float *want)
{
    const size_t n = layer_count(&o->k.dst);
    float *got = answer_of(o);
    double of = 0, sum = 0, worst = 0;
    for (size_t i = 0; i < n; i++) {
        const double by = fabs((double)got[i] - want[i]);
        of += (double)want[i] * want[i];
        sum += by * by;
        worst = by > worst ? by : worst; /* a NaN shows in the sum */
    }
    free(got);
    return (off){sqrt(sum / of), worst / sqrt(of / (double)n)};
}

/* From the reference. */
static off small_answer(on_device *o)
{
    float *want = layer_floats(layer_count(&o->k.dst));
    (void)round_of(o);
    layer_case_reference(&o->k, want);
    const off by = compare(o, want);
    free(want);
    return by;
}

/* The answer of the processor's tuned kernel, of direct sums. */
static float *answer_of_cpu(const layer *l, tg_dtype element)
{
    layer_choice direct = choice_of(element, 0);
    layer_case k;
    direct.exact = 1;
    if (!layer_case_open(&k, l, tgi_backend_for(tgi_isa_detect(TGI_ISA_COUNT)), &direct, pool))
        layer_die("the processor has no kernel for this layer");
    float *want = layer_floats(layer_count(&k.dst));
    layer_case_answer(&k, want);
    layer_case_close(&k);
    return want;
}

/* One pixel that is missing or another's is off by about 1; halves by 2^-11 of their size. */
static int is_right(tg_dtype element, off by)
{
    const int half = element == TG_DTYPE_F16;
    return by.l2 < (half ? 5e-3 : 1e-5) && by.worst < (half ? 5e-2 : 1e-4);
}

/* ---- A row ------------------------------------------------------------------------------- */

static layer capped(layer l, int64_t side)
{
    l.h = l.h < side ? l.h : side;
    l.w = l.w < side ? l.w : side;
    return l;
}

static void share(const char *name, double part, const double of[2])
{
    static const char *const kinds[] = {"", "_sustained"};
    for (int i = 0; i < 2; i++)
        if (of[i] > 0)
            printf(", \"%s_share%s\": %.4f", name, kinds[i], part / of[i]);
}

static int wrong_row(const layer *l, const on_device *o, const char *at, off by)
{
    printf("{\"family\": \"gpu_ops\", \"case\": \"%s\", \"element\": \"%s\", "
           "\"answer_relative_l2\": %.3g, \"answer_worst\": %.3g, "
           "\"error\": \"wrong at %s, so no times\"}\n",
           l->name, tgi_dtype_name(o->element), by.l2, by.worst, at);
    fflush(stdout);
    return 0;
}

/* Seconds of one, `set.rounds` times. */
static void times_of(on_device *o, double *t)
{
    (void)round_of(o); /* what the first run makes is made */
    double took = round_of(o);
    for (int i = 0; i < 3 && took < ROUND_SECONDS / 2 && o->times < TIMED; i++) {
        const double n = took > 0 ? o->times * ROUND_SECONDS / took + 1 : TIMED;
        repeat(o, n < TIMED ? (int)n : TIMED);
        (void)round_of(o);
        took = round_of(o);
    }
    for (int i = 0; i < set.rounds; i++)
        t[i] = round_of(o) / o->times;
}

static void right_row(const layer *l, const on_device *o, double *t, off reference, off by)
{
    const int half = o->element == TG_DTYPE_F16;
    const double median = measure_median(t, set.rounds);
    const double tflops = o->k.flops / median * 1e-12, gbs = (double)o->bytes / median * 1e-9;
    printf(
        "{\"family\": \"gpu_ops\", \"case\": \"%s %lldx%lld\", \"element\": \"%s\", "
        "\"variant\": \"%s\", \"clock\": \"events\", \"us\": {\"median\": %.2f, "
        "\"min\": %.2f, \"max\": %.2f, \"rounds\": %d}, \"round_ms\": %.2f, "
        "\"tflops\": %.3f, \"gbs\": %.1f, \"reference_relative_l2\": %.3g, "
        "\"answer_relative_l2\": %.3g, \"answer_worst\": %.3g, \"answer_beside\": \"cpu %s\"",
        l->name, (long long)l->h, (long long)l->w, tgi_dtype_name(o->element), o->k.v->name,
        median * 1e6, t[0] * 1e6, t[set.rounds - 1] * 1e6, set.rounds, t[0] * o->times * 1e3,
        tflops, gbs, reference.l2, by.l2, by.worst,
        tgi_isa_name(tgi_isa_detect(TGI_ISA_COUNT)));
    printf(", \"without_graph\": %d", ops->program_loose(o->p));
    share("peak", tflops, half ? set.f16 : set.f32);
    share("copy", gbs, set.copy);
    printf("}\n");
    fflush(stdout);
}

/* 0: wrong. `*want`: what the processor answers at this size, once it was asked. */
static int row(const layer *base, const tgi_kernel_set *be, unsigned kinds, float **want)
{
    const layer small = capped(*base, CHECK_SIDE < set.side ? CHECK_SIDE : set.side);
    const layer large = capped(*base, set.side);
    double t[ROUNDS_MAX];
    on_device o;
    const int there = open_layer(&o, &small, be, kinds);
    if (kinds && (!there || !(o.k.v->kinds & kinds))) {
        if (there)
            close_layer(&o);
        return 1;
    }
    if (!there) {
        printf("{\"family\": \"gpu_ops\", \"case\": \"%s\", \"element\": \"%s\", "
               "\"variant\": null}\n",
               base->name, tgi_dtype_name(be->element));
        return 1;
    }
    const off reference = small_answer(&o);
    close_layer(&o);
    if (!is_right(be->element, reference))
        return wrong_row(&small, &o, "a small size", reference);
    if (!open_layer(&o, &large, be, kinds))
        layer_die("a kernel of the small size does not take the large one");
    times_of(&o, t);
    if (!*want)
        *want = answer_of_cpu(&large, be->element);
    const off by = compare(&o, *want);
    const int right = is_right(be->element, by);
    if (right)
        right_row(&large, &o, t, reference, by);
    else
        wrong_row(&large, &o, "the timed size", by);
    close_layer(&o);
    return right;
}

/* Of a layer with the kernels that are always used, and with the kinds that there are where one
 * is preferred where it is allowed. Returns how many answers were wrong. */
static int rows_of(const layer *l, const tgi_kernel_set *be, unsigned kinds)
{
    float *want = NULL;
    int wrong = !row(l, be, 0, &want);
    for (unsigned kind = 1; kind && kind <= kinds; kind <<= 1)
        if (kinds & kind)
            wrong += !row(l, be, kind, &want);
    free(want);
    return wrong;
}

static int rows(unsigned kinds)
{
    static const tg_dtype types[] = {TG_DTYPE_F16, TG_DTYPE_F32};
    static const char *const names[] = {"fp16", "fp32"};
    int wrong = 0;
    for (int t = 0; t < 2; t++) {
        if (set.precision && strcmp(set.precision, names[t]) != 0)
            continue;
        const tgi_kernel_set *be = ops->backend(types[t]);
        for (size_t i = 0; be && i < sizeof layers / sizeof *layers; i++)
            if (layers[i].ci <= set.channels && layers[i].co <= set.channels &&
                strstr(layers[i].name, set.only))
                wrong += rows_of(&layers[i], be, kinds);
    }
    return wrong;
}

static const struct ceiling {
    const char *option;
    double *to;
} ceilings[] = {
    {"--f16", &set.f16[0]},   {"--f16-sustained", &set.f16[1]},
    {"--f32", &set.f32[0]},   {"--f32-sustained", &set.f32[1]},
    {"--copy", &set.copy[0]}, {"--copy-sustained", &set.copy[1]},
};

static double *ceiling_of(const char *option)
{
    for (size_t i = 0; i < sizeof ceilings / sizeof *ceilings; i++)
        if (strcmp(option, ceilings[i].option) == 0)
            return ceilings[i].to;
    return NULL;
}

static double number(int argc, char **argv, int i)
{
    char *end = NULL;
    const double v = i + 1 < argc ? strtod(argv[i + 1], &end) : 0;
    if (!end || *end || v <= 0)
        layer_die("usage: bench_gpu [--case TEXT] [--precision fp16|fp32] [--side N] "
                  "[--channels N] [--rounds N] [--f16 TFLOPS] [--f32 TFLOPS] [--copy GBS] "
                  "[--f16-sustained TFLOPS] [--f32-sustained TFLOPS] [--copy-sustained GBS]");
    return v;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        const char **text = strcmp(argv[i], "--case") == 0        ? &set.only
                            : strcmp(argv[i], "--precision") == 0 ? &set.precision
                                                                  : NULL;
        if (text && i + 1 < argc) {
            *text = argv[i + 1];
            continue;
        }
        const double v = number(argc, argv, i);
        if (strcmp(argv[i], "--side") == 0)
            set.side = (int64_t)v;
        else if (strcmp(argv[i], "--channels") == 0)
            set.channels = (int64_t)v;
        else if (strcmp(argv[i], "--rounds") == 0)
            set.rounds = v < ROUNDS_MAX ? (int)v : ROUNDS_MAX;
        else if (ceiling_of(argv[i]))
            *ceiling_of(argv[i]) = v;
        else
            number(0, argv, 0);
    }
    ops = device_of_test(&d);
    if (!ops)
        return 77;
    must(tgi_threads_open((int)sysconf(_SC_NPROCESSORS_ONLN), &pool, &err));
    const int library = device_open_library(ops, d);
    const int wrong =
        rows((device_kinds() & TGI_KIND_WGMMA) | (library ? TGI_KIND_LIBRARY : 0));
    if (library)
        must(ops->library(d, 0, &err));
    tgi_threads_close(&pool);
    return wrong ? 1 : 0;
}

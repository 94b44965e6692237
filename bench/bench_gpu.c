/* bench_gpu - convolutions on a device, through the plugin that the command opens.
 *
 * usage: bench_gpu [--case TEXT] [--precision fp16|fp32] [--side N] [--channels N]
 *                  [--rounds N] [--f16 TFLOPS] [--f32 TFLOPS] [--copy GBS]
 *
 * --case takes the layers alone whose names contain TEXT (for a profiler), --precision one type
 * of numbers.
 *
 * Each case is checked before it is timed (relative L2 against the reference kernel, at a side
 * of at most 48), then run so often that a round takes 50 ms: one program, one graph launch a
 * run, one wait at the end. A row of JSON a case; shares are of the ceilings given
 * (bench/gpu_peak.cu). Bytes are those that must move once: source, result, weights. Where a
 * kind of variants that the device has would be preferred, there is a row of it too: kinds are
 * not compared with each other before they ran. Exit 77 without a device. */
#include "bench/layer_case.h"
#include "bench/measure.h"
#include "engine/base/mem.h"
#include "tests/cuda/device_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUND_SECONDS 0.05
#define CHECK_SIDE 48

/* Sides are so that source and result of halves are 128 MB together: no cache holds them. */
static const layer layers[] = {
    {"conv 3x3 32", 32, 32, 0, 1024, 1024, 3, 1, 1, 0},
    {"conv 3x3 64", 64, 64, 0, 720, 720, 3, 1, 1, 0},
    {"conv 3x3 128", 128, 128, 0, 512, 512, 3, 1, 1, 0},
    {"conv 3x3 256", 256, 256, 0, 360, 360, 3, 1, 1, 0},
    {"conv 3x3 512", 512, 512, 0, 256, 256, 3, 1, 1, 0},
    {"conv 3x3 3 to 64", 3, 64, 0, 720, 720, 3, 1, 1, 0},
    {"conv 3x3 64 to 1", 64, 1, 0, 720, 720, 3, 1, 1, 0},
    {"conv 1x1 64", 64, 64, 0, 720, 720, 1, 1, 1, 0},
    {"conv 1x1 256", 256, 256, 0, 360, 360, 1, 1, 1, 0},
    {"conv 1x1 512", 512, 512, 0, 256, 256, 1, 1, 1, 0},
    {"conv 3x3 stride 2, 64 to 128", 64, 128, 0, 720, 720, 3, 2, 1, 0},
    {"transposed 2x2 stride 2, 128 to 64", 128, 64, 0, 360, 360, 2, 2, 1, 1},
    {"depthwise 3x3 64", 64, 64, 0, 720, 720, 3, 1, 64, 0},
};

static struct {
    int64_t side, channels; /* at most */
    int rounds;
    double f16, f32, copy; /* ceilings: TFLOP/s, GB/s; 0: not given */
    const char *only;      /* in the names of layers */
    const char *precision; /* NULL: both */
} set = {1024, 512, 9, 0, 0, 0, "", NULL};

static const tgi_device_ops *ops;
static tgi_device *d;
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
    tgi_device_step step;
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

static int open_layer(on_device *o, const layer *l, const tgi_kernel_set *be, unsigned kinds)
{
    const layer_choice any = {.kinds = kinds};
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
    o->step = (tgi_device_step){.kind = TGI_STEP_NODE, .variant = o->k.v, .call = o->k.call};
    o->step.call.src = &o->operand;
    o->step.call.dst = &o->dst;
    o->step.call.packed = o->at[2];
    o->step.call.scratch = o->at[3];
    for (int a = 0; a < o->k.dst.rank; a++)
        o->step.call.most[a] = o->k.dst.dim[a];
    o->bytes =
        (layer_count(&o->k.src[0]) + layer_count(&o->k.dst) + layer_count(&o->k.src[1])) *
        device_element_bytes(o->element);
    size_t held = 0;
    must(ops->program_open(d, TGI_QUEUE_COMPUTE, &o->step, 1, &o->p, &held, &err));
    return 1;
}

static void close_layer(on_device *o)
{
    ops->program_close(&o->p);
    for (int i = 0; i < 4; i++)
        ops->release(d, o->at[i]);
    layer_case_close(&o->k);
}

static double time_of(on_device *o, int64_t runs)
{
    const double from = measure_now();
    for (int64_t i = 0; i < runs; i++)
        must(ops->program_run(o->p, &o->step, &err));
    must(ops->sync(d, NULL, &err));
    return (measure_now() - from) / (double)runs;
}

/* Distance of the device's answer from the reference, of numbers rounded as the device has
 * them.
 */
static double distance(on_device *o)
{
    const size_t n = layer_count(&o->k.dst), stored = floats_of(&o->dst);
    float *want = layer_floats(n), *got = layer_floats(n);
    void *raw = tgi_malloc(TGI_TAG_MISC, stored * device_element_bytes(o->element));
    if (!raw)
        layer_die("out of memory");
    time_of(o, 1);
    must(ops->download(d, TGI_QUEUE_COMPUTE, raw, o->at[1],
                       stored * device_element_bytes(o->element), &err));
    must(ops->sync(d, NULL, &err));
    device_round(o->element, o->k.sv.base, floats_of(&o->k.sv));
    device_round(o->element, o->k.w, layer_count(&o->k.src[1]));
    layer_case_reference(&o->k, want);
    device_from_elements(o->element, raw, stored, o->k.dv.base);
    layer_case_dense(&o->k, got);
    double of = 0, off = 0;
    for (size_t i = 0; i < n; i++) {
        of += (double)want[i] * want[i];
        off += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
    }
    tgi_free(raw);
    free(want);
    free(got);
    return sqrt(off / of);
}

/* ---- A row ------------------------------------------------------------------------------- */

static layer capped(layer l, int64_t side)
{
    l.h = l.h < side ? l.h : side;
    l.w = l.w < side ? l.w : side;
    return l;
}

static void share(const char *name, double part, double of)
{
    if (of > 0)
        printf(", \"%s\": %.4f", name, part / of);
}

/* 0: wrong. */
static int row(const layer *base, const tgi_kernel_set *be, unsigned kinds)
{
    const layer small = capped(*base, CHECK_SIDE < set.side ? CHECK_SIDE : set.side);
    const layer large = capped(*base, set.side);
    const int half = be->element == TG_DTYPE_F16;
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
    const double l2 = distance(&o);
    close_layer(&o);
    const int right = l2 < (half ? 5e-3 : 1e-5);
    if (!right || !open_layer(&o, &large, be, kinds)) {
        printf("{\"family\": \"gpu_ops\", \"case\": \"%s\", \"element\": \"%s\", "
               "\"answer_relative_l2\": %.3g, \"error\": \"wrong, so not timed\"}\n",
               base->name, tgi_dtype_name(be->element), l2);
        return 0;
    }
    double once = time_of(&o, 1); /* what the first run makes is made */
    once = time_of(&o, 3);
    const int64_t runs = once < ROUND_SECONDS ? (int64_t)(ROUND_SECONDS / once) + 1 : 1;
    for (int i = 0; i < set.rounds; i++)
        t[i] = time_of(&o, runs);
    const double median = measure_median(t, set.rounds);
    const double tflops = o.k.flops / median * 1e-12, gbs = (double)o.bytes / median * 1e-9;
    printf("{\"family\": \"gpu_ops\", \"case\": \"%s %lldx%lld\", \"element\": \"%s\", "
           "\"variant\": \"%s\", \"us\": {\"median\": %.2f, \"min\": %.2f, \"max\": %.2f, "
           "\"rounds\": %d}, \"tflops\": %.3f, \"gbs\": %.1f, \"answer_relative_l2\": %.3g",
           base->name, (long long)large.h, (long long)large.w, tgi_dtype_name(be->element),
           o.k.v->name, median * 1e6, t[0] * 1e6, t[set.rounds - 1] * 1e6, set.rounds, tflops,
           gbs, l2);
    share("peak_share", tflops, half ? set.f16 : set.f32);
    share("copy_share", gbs, set.copy);
    printf("}\n");
    fflush(stdout);
    close_layer(&o);
    return 1;
}

/* Of all layers, or of those for which a variant of these kinds is preferred where it is
 * allowed. Returns how many answers were wrong. */
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
                wrong += !row(&layers[i], be, kinds);
    }
    return wrong;
}

static double number(int argc, char **argv, int i)
{
    char *end = NULL;
    const double v = i + 1 < argc ? strtod(argv[i + 1], &end) : 0;
    if (!end || *end || v <= 0)
        layer_die("usage: bench_gpu [--case TEXT] [--precision fp16|fp32] [--side N] "
                  "[--channels N] [--rounds N] [--f16 TFLOPS] [--f32 TFLOPS] [--copy GBS]");
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
        else if (strcmp(argv[i], "--f16") == 0)
            set.f16 = v;
        else if (strcmp(argv[i], "--f32") == 0)
            set.f32 = v;
        else if (strcmp(argv[i], "--copy") == 0)
            set.copy = v;
        else
            number(0, argv, 0);
    }
    ops = device_of_test(&d);
    if (!ops)
        return 77;
    const int library = device_open_library(ops, d);
    int wrong = rows(0);
    if (device_kinds() & TGI_KIND_WGMMA)
        wrong += rows(TGI_KIND_WGMMA);
    if (library) {
        wrong += rows(TGI_KIND_LIBRARY);
        must(ops->library(d, 0, &err));
    }
    return wrong ? 1 : 0;
}

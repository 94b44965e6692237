/* bench_op.c - one operator, one shape: our variant beside oneDNN's direct convolution.
 *
 *   bench_op [--threads N] [--isa NAME] [--rounds N] [--exact] [--precision fp32|bf16]
 *            [--variant NAME] [--json] [FILTER]
 *   bench_op --errors [--isa NAME] [--precision fp32|bf16] [FILTER]
 *
 * With --precision bf16 the peer is our own direct kernel in float32.
 *
 * Protocol: both compute the same layer (bias and ReLU included) from the same numbers; the
 * answers are compared first; then both are timed in turns, `rounds` times (10 or more);
 * reported are medians, the median and the range of the rounds' ratios, and the share of the
 * multiply-add peak measured in the same rounds. With one thread the clock is the thread's
 * processor time, so a busy machine disturbs caches only; with more it is the wall's. Between
 * turns we sleep: the peer's OpenMP workers spin for a while after a loop and would steal from
 * ours. ">= 1" in the ratio column means we are faster. Without oneDNN the reference checks the
 * answer and the peer's columns are empty.
 *
 * Operations count as direct convolution: 2 per multiply-add.
 *
 * --errors times nothing: it prints each layer's distance from the reference kernels, which sum
 * in float64, for the direct sum and for the default variant. */
#include "bench/layer_case.h"
#include "bench/measure.h"

#ifdef TG_HAVE_DNNL
#include <dnnl.h>
#endif

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TURN_SECONDS 0.02
#define BF16_L2 5e-3 /* two operands of 8 bits: 2e-3 to 3e-3 */

static const layer layers[] = {
    {"3x3 1->32 @256", 1, 32, 0, 256, 256, 3, 1, 1, 0, 0},
    {"3x3 32->32 @256", 32, 32, 0, 256, 256, 3, 1, 1, 0, 0},
    {"3x3 16->16 @256", 16, 16, 0, 256, 256, 3, 1, 1, 0, 0},
    {"3x3 64->64 @128", 64, 64, 0, 128, 128, 3, 1, 1, 0, 0},
    {"3x3 128->128 @64", 128, 128, 0, 64, 64, 3, 1, 1, 0, 0},
    {"3x3 256->256 @32", 256, 256, 0, 32, 32, 3, 1, 1, 0, 0},
    {"3x3 512->512 @16", 512, 512, 0, 16, 16, 3, 1, 1, 0, 0},
    {"3x3 48->48 @128", 48, 48, 0, 128, 128, 3, 1, 1, 0, 0},
    {"3x3 96->96 @128", 96, 96, 0, 128, 128, 3, 1, 1, 0, 0},
    {"3x3 97->64 @128", 97, 64, 0, 128, 128, 3, 1, 1, 0, 0},
    {"3x3 144->144 @64", 144, 144, 0, 64, 64, 3, 1, 1, 0, 0},
    {"3x3 s2 64->128 @128", 64, 128, 0, 128, 128, 3, 2, 1, 0, 0},
    {"1x1 64->64 @256", 64, 64, 0, 256, 256, 1, 1, 1, 0, 0},
    {"1x1 256->64 @64", 256, 64, 0, 64, 64, 1, 1, 1, 0, 0},
    {"1x1 512->512 @32", 512, 512, 0, 32, 32, 1, 1, 1, 0, 0},
    {"5x5 32->32 @256", 32, 32, 0, 256, 256, 5, 1, 1, 0, 0},
    {"7x7 s2 3->64 @256", 3, 64, 0, 256, 256, 7, 2, 1, 0, 0},
    {"3x3 64->1 @256", 64, 1, 0, 256, 256, 3, 1, 1, 0, 0},
    {"3x3 48->3 @256", 48, 3, 0, 256, 256, 3, 1, 1, 0, 0},
    {"T2x2 s2 128->64 @64", 128, 64, 0, 64, 64, 2, 2, 1, 1, 0},
    {"T4x4 s2 32->32 @64", 32, 32, 0, 64, 64, 4, 2, 1, 1, 0},
    {"T4x4 s2 64->3 @96", 64, 3, 0, 96, 96, 4, 2, 1, 1, 0},
    {"T9x9 s2 56->1 @128", 56, 1, 0, 128, 128, 9, 2, 1, 1, 0},
    {"T2x2 s2 32->1 @256", 32, 1, 0, 256, 256, 2, 2, 1, 1, 0},
    {"dw 3x3 64 @256", 64, 64, 0, 256, 256, 3, 1, 64, 0, 0},
    {"g32 3x3 128->128 @64", 128, 128, 0, 64, 64, 3, 1, 32, 0, 0},
    {"g16 3x3 128->128 @64", 128, 128, 0, 64, 64, 3, 1, 16, 0, 0},
    {"g8 3x3 128->128 @64", 128, 128, 0, 64, 64, 3, 1, 8, 0, 0},
    {"3-D 3x3x3 32->32 @16x128", 32, 32, 16, 128, 128, 3, 1, 1, 0, 0},
    {"T7x7 s3 512->40 @20x36", 512, 40, 0, 20, 36, 7, 3, 1, 1, 0},
    {"T7x7 s3 512->40 @60x107", 512, 40, 0, 60, 107, 7, 3, 1, 1, 0},
    {"T7x7 s3 512->128 @20x36", 512, 128, 0, 20, 36, 7, 3, 1, 1, 0},
    {"T7x7 s3 512->128 @60x107", 512, 128, 0, 60, 107, 7, 3, 1, 1, 0},
    {"7x7 s3 40->512 @60x108", 40, 512, 0, 60, 108, 7, 3, 1, 0, 0},
    {"7x7 s3 40->512 @180x320", 40, 512, 0, 180, 320, 7, 3, 1, 0, 0},
    {"7x7 s3 128->512 @60x108", 128, 512, 0, 60, 108, 7, 3, 1, 0, 0},
    {"7x7 s3 128->512 @180x320", 128, 512, 0, 180, 320, 7, 3, 1, 0, 0},
    {"1x5 256->256 @90x160", 256, 256, 0, 90, 160, 1, 1, 1, 0, 5},
    {"5x1 256->256 @90x160", 256, 256, 0, 90, 160, 5, 1, 1, 0, 1},
    {"3x3 256->256 @90x160", 256, 256, 0, 90, 160, 3, 1, 1, 0, 0},
    {"1x1 512->512 @60x107", 512, 512, 0, 60, 107, 1, 1, 1, 0, 0},
};

typedef struct work { /* a layer, both ways */
    layer_case c;
    float *y;       /* the answer to compare with, dense */
    layer_case own; /* the peer of --precision bf16 */
    int has_own;
#ifdef TG_HAVE_DNNL
    dnnl_primitive_t prim;
    dnnl_memory_t mem_src, mem_w, mem_b, mem_dst;
    char peer[64];
#endif
} work;

/* ---- the peer ---------------------------------------------------------------------------- */

#ifdef TG_HAVE_DNNL
static dnnl_engine_t engine;
static dnnl_stream_t stream;

static void ok(dnnl_status_t s, const char *what)
{
    if (s != dnnl_success)
        layer_die(what);
}

/* Copy between a plain host array and the peer's own layout. */
static void reorder(dnnl_memory_t from, dnnl_memory_t to)
{
    const dnnl_memory_desc_t *a, *b;
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t p;
    ok(dnnl_memory_get_memory_desc(from, &a), "memory");
    ok(dnnl_memory_get_memory_desc(to, &b), "memory");
    ok(dnnl_reorder_primitive_desc_create(&pd, a, engine, b, engine, NULL), "reorder");
    ok(dnnl_primitive_create(&p, pd), "reorder");
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    ok(dnnl_primitive_execute(p, stream, 2, args), "reorder");
    dnnl_stream_wait(stream);
    dnnl_primitive_destroy(p);
    dnnl_primitive_desc_destroy(pd);
}

static dnnl_memory_t peer_memory(dnnl_primitive_desc_t pd, dnnl_query_t what, int i)
{
    dnnl_memory_t m;
    ok(dnnl_memory_create(&m, dnnl_primitive_desc_query_md(pd, what, i), engine,
                          DNNL_MEMORY_ALLOCATE),
       "memory");
    return m;
}

static dnnl_memory_t plain_memory(const dnnl_memory_desc_t *md, float *host)
{
    dnnl_memory_t m;
    ok(dnnl_memory_create(&m, md, engine, host), "memory");
    return m;
}

/* Dimensions as the peer wants them: weights [g][o][i][k...], o before i when transposed too.
 */
static void peer_dims(const work *k, int nd, dnnl_dims_t sd, dnnl_dims_t wd, dnnl_dims_t dd,
                      dnnl_dims_t pads)
{
    const int g = k->c.l->groups > 1;
    for (int i = 0; i < nd; i++) {
        sd[i] = k->c.src[0].dim[i];
        dd[i] = k->c.dst.dim[i];
        wd[i + g] = k->c.src[1].dim[i];
    }
    if (g) {
        wd[0] = k->c.l->groups;
        wd[1] = k->c.l->co / k->c.l->groups;
        wd[2] = k->c.l->ci / k->c.l->groups;
    } else {
        wd[0] = k->c.l->co;
        wd[1] = k->c.l->ci;
    }
    for (int i = 0; i < nd - 2; i++) { /* what the last window reads, not what it may */
        const int64_t p = k->c.attrs.pads.v[i], s = k->c.l->s, size = wd[i + 2 + g];
        pads[i] = k->c.l->transposed ? p : (dd[i + 2] - 1) * s + size - p - sd[i + 2];
    }
}

static int peer_side(work *k)
{
    const int nd = k->c.l->d ? 5 : 4;
    dnnl_dims_t sd, wd, dd, bd = {k->c.l->co}, str, dil = {0}, pl, pr;
    const dnnl_format_tag_t plain = nd == 4 ? dnnl_nchw : dnnl_ncdhw;
    const dnnl_format_tag_t plain_w = k->c.l->groups > 1   ? dnnl_goihw
                                      : k->c.l->transposed ? dnnl_iohw
                                      : nd == 4            ? dnnl_oihw
                                                           : dnnl_oidhw;
    dnnl_memory_desc_t any[4], host[4];
    dnnl_primitive_desc_t pd;
    dnnl_status_t rc;
    peer_dims(k, nd, sd, wd, dd, pr);
    for (int i = 0; i < 3; i++) {
        str[i] = k->c.l->s;
        pl[i] = k->c.attrs.pads.v[i];
    }
    const int wn = nd + (k->c.l->groups > 1);
    ok(dnnl_memory_desc_init_by_tag(&any[0], nd, sd, dnnl_f32, dnnl_format_tag_any), "md");
    ok(dnnl_memory_desc_init_by_tag(&any[1], wn, wd, dnnl_f32, dnnl_format_tag_any), "md");
    ok(dnnl_memory_desc_init_by_tag(&any[2], 1, bd, dnnl_f32, dnnl_a), "md");
    ok(dnnl_memory_desc_init_by_tag(&any[3], nd, dd, dnnl_f32, dnnl_format_tag_any), "md");
    ok(dnnl_memory_desc_init_by_tag(&host[0], nd, sd, dnnl_f32, plain), "md");
    ok(dnnl_memory_desc_init_by_tag(&host[1], wn, wd, dnnl_f32, plain_w), "md");
    ok(dnnl_memory_desc_init_by_tag(&host[3], nd, dd, dnnl_f32, plain), "md");
    dnnl_primitive_attr_t at;
    dnnl_post_ops_t po;
    ok(dnnl_primitive_attr_create(&at), "attr");
    ok(dnnl_post_ops_create(&po), "post ops");
    ok(dnnl_post_ops_append_eltwise(po, 1.f, dnnl_eltwise_relu, 0, 0), "relu");
    ok(dnnl_primitive_attr_set_post_ops(at, po), "post ops");
    if (k->c.l->transposed) {
        dnnl_deconvolution_desc_t cd;
        rc = dnnl_dilated_deconvolution_forward_desc_init(
            &cd, dnnl_forward_inference, dnnl_deconvolution_direct, &any[0], &any[1], &any[2],
            &any[3], str, dil, pl, pr);
        if (rc == dnnl_success)
            rc = dnnl_primitive_desc_create(&pd, &cd, at, engine, NULL);
    } else {
        dnnl_convolution_desc_t cd;
        rc = dnnl_dilated_convolution_forward_desc_init(
            &cd, dnnl_forward_inference, dnnl_convolution_direct, &any[0], &any[1], &any[2],
            &any[3], str, dil, pl, pr);
        if (rc == dnnl_success)
            rc = dnnl_primitive_desc_create(&pd, &cd, at, engine, NULL);
    }
    if (rc != dnnl_success)
        return 0;
    const char *impl = "";
    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&impl);
    snprintf(k->peer, sizeof k->peer, "%s", impl);
    ok(dnnl_primitive_create(&k->prim, pd), "primitive");
    k->mem_src = peer_memory(pd, dnnl_query_src_md, 0);
    k->mem_w = peer_memory(pd, dnnl_query_weights_md, 0);
    k->mem_b = plain_memory(&any[2], k->c.b);
    k->mem_dst = peer_memory(pd, dnnl_query_dst_md, 0);
    dnnl_memory_t hs = plain_memory(&host[0], k->c.x), hw = plain_memory(&host[1], k->c.w);
    reorder(hs, k->mem_src);
    reorder(hw, k->mem_w);
    dnnl_memory_destroy(hs);
    dnnl_memory_destroy(hw);
    k->y = layer_floats(layer_count(&k->c.dst));
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, k->mem_src},
                                    {DNNL_ARG_WEIGHTS, k->mem_w},
                                    {DNNL_ARG_BIAS, k->mem_b},
                                    {DNNL_ARG_DST, k->mem_dst}};
    ok(dnnl_primitive_execute(k->prim, stream, 4, args), "execute");
    dnnl_memory_t hd = plain_memory(&host[3], k->y);
    reorder(k->mem_dst, hd);
    dnnl_memory_destroy(hd);
    return 1;
}

static void peer_run(work *k)
{
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, k->mem_src},
                                    {DNNL_ARG_WEIGHTS, k->mem_w},
                                    {DNNL_ARG_BIAS, k->mem_b},
                                    {DNNL_ARG_DST, k->mem_dst}};
    ok(dnnl_primitive_execute(k->prim, stream, 4, args), "execute");
    dnnl_stream_wait(stream);
}

static void peer_open(int threads, tgi_isa isa)
{
    void (*set)(int) = (void (*)(int))(uintptr_t)dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    if (set)
        set(threads);
    if (isa == TGI_ISA_AVX2)
        dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
    ok(dnnl_engine_create(&engine, dnnl_cpu, 0), "engine");
    ok(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags), "stream");
}
#else
static int peer_side(work *k)
{
    (void)k;
    return 0;
}
static void peer_run(work *k)
{
    (void)k;
}
static void peer_open(int threads, tgi_isa isa)
{
    (void)threads, (void)isa;
}
#endif

static void own_run(work *k)
{
    layer_case_run(&k->own);
}

typedef struct settings {
    int threads, rounds, json, errors;
    layer_choice want;
    const tgi_kernel_set *be;
    tgi_threads *pool;
} settings;

/* ---- measuring --------------------------------------------------------------------------- */

static void turn_ours(work *k)
{
    layer_case_run(&k->c);
}

/* Seconds of one run: enough repetitions to fill a turn. */
static double timed(work *k, void (*run)(work *), int reps)
{
    run(k);
    const double t0 = measure_now();
    for (int i = 0; i < reps; i++)
        run(k);
    return (measure_now() - t0) / reps;
}

static int repetitions(work *k, void (*run)(work *))
{
    const double once = timed(k, run, 1);
    return once > TURN_SECONDS ? 1 : (int)(TURN_SECONDS / once) + 1;
}

/* The peer is ready to run, its answer in k->y. 0: there is none. */
static int any_peer(work *k, const settings *s)
{
    const layer_choice direct = {.exact = 1};
    if (!s->want.kinds)
        return peer_side(k);
    k->has_own = layer_case_open(&k->own, k->c.l, s->be, &direct, s->pool);
    if (!k->has_own)
        return 0;
    k->y = layer_floats(layer_count(&k->c.dst));
    layer_case_answer(&k->own, k->y);
    return 1;
}

/* Relative L2 distance of our answer from the peer's, or from the reference's. */
static double distance(work *k)
{
    const size_t n = layer_count(&k->c.dst);
    float *got = layer_floats(n);
    double num = 0, den = 1e-30;
    if (!k->y) {
        k->y = layer_floats(n);
        layer_case_reference(&k->c, k->y);
    }
    layer_case_answer(&k->c, got);
    for (size_t i = 0; i < n; i++) {
        const double d = (double)got[i] - (double)k->y[i];
        num += d * d;
        den += (double)k->y[i] * (double)k->y[i];
    }
    free(got);
    return sqrt(num / den);
}

static void release(work *k)
{
    layer_case_close(&k->c);
    if (k->has_own)
        layer_case_close(&k->own);
    free(k->y);
#ifdef TG_HAVE_DNNL
    if (k->prim) {
        dnnl_primitive_destroy(k->prim);
        dnnl_memory_destroy(k->mem_src);
        dnnl_memory_destroy(k->mem_w);
        dnnl_memory_destroy(k->mem_b);
        dnnl_memory_destroy(k->mem_dst);
    }
#endif
}

/* The ratio of every round, sorted, is the spread. `theirs` NULL: no peer. */
static void report(const work *k, const settings *s, double *ours, double *theirs, double top,
                   double off)
{
    double ratio[ROUNDS_MAX] = {0};
    for (int i = 0; theirs && i < s->rounds; i++)
        ratio[i] = theirs[i] / ours[i];
    const double middle = measure_median(ratio, s->rounds);
    const double t = measure_median(ours, s->rounds), g = k->c.flops / 1e9;
    const double p = theirs ? measure_median(theirs, s->rounds) : 0;
    if (s->json)
        printf("{\"layer\":\"%s\",\"variant\":\"%s\",\"isa\":\"%s\",\"threads\":%d,"
               "\"gflops\":%.1f,\"gflops_best\":%.1f,\"peer_gflops\":%.1f,\"ratio\":%.3f,"
               "\"ratio_min\":%.3f,\"ratio_max\":%.3f,\"peak_gflops\":%.1f,"
               "\"relative_l2\":%.2e}\n",
               k->c.l->name, k->c.v->name, s->be->name, s->threads, g / t, g / ours[0],
               p > 0 ? g / p : 0.0, middle, ratio[0], ratio[s->rounds - 1], top / 1e9, off);
    else
        printf("%-26s %-14s %7.1f GF/s %3.0f %% of peak | peer %7.1f | ratio %5.2f "
               "(%.2f to %.2f) | L2 %.0e\n",
               k->c.l->name, k->c.v->name, g / t, top > 0 ? 100e9 * g / t / top : 0.0,
               p > 0 ? g / p : 0.0, middle, ratio[0], ratio[s->rounds - 1], off);
}

/* Relative L2 against the sum in float64, for one choice of kernels; negative: no variant. */
static double error_of(const layer *l, const settings *s, int exact)
{
    work k = {0};
    layer_choice want = s->want;
    want.exact = exact;
    const double off = layer_case_open(&k.c, l, s->be, &want, s->pool) ? distance(&k) : -1;
    release(&k);
    return off;
}

static int errors_of_layer(const layer *l, const settings *s)
{
    const double direct = error_of(l, s, 1), fast = error_of(l, s, 0);
    printf("%-26s %s  direct %.1e  default %.1e\n", l->name, s->be->name, direct, fast);
    const double most = s->want.kinds ? BF16_L2 : 1e-5;
    return !(direct < most && fast < most);
}

static int bench_layer(const layer *l, const settings *s)
{
    work k = {0};
    double ours[ROUNDS_MAX], theirs[ROUNDS_MAX], peaks[ROUNDS_MAX];
    if (!layer_case_open(&k.c, l, s->be, &s->want, s->pool)) {
        fprintf(stderr, "%-26s no variant%s%s: skipped\n", l->name, s->want.variant ? " " : "",
                s->want.variant ? s->want.variant : "");
        release(&k);
        return 0;
    }
    void (*const run_peer)(work *) = s->want.kinds ? own_run : peer_run;
    const int peer = any_peer(&k, s);
    const double off = distance(&k);
    if (!(off < (k.c.v->kinds ? BF16_L2 : 1e-5))) {
        printf("%-26s WRONG: relative L2 %.2e\n", l->name, off);
        release(&k);
        return 1;
    }
    const int reps = repetitions(&k, turn_ours),
              peer_reps = peer ? repetitions(&k, run_peer) : 0;
    for (int i = 0; i < s->rounds; i++) {
        ours[i] = timed(&k, turn_ours, reps);
        if (s->threads > 1)
            usleep(5000);
        theirs[i] = peer ? timed(&k, run_peer, peer_reps) : 0;
        if (s->threads > 1)
            usleep(20000);
        peaks[i] = measure_peak(s->be->isa) * s->threads;
    }
    report(&k, s, ours, peer ? theirs : NULL, measure_median(peaks, s->rounds), off);
    fflush(stdout);
    release(&k);
    return 0;
}

int main(int argc, char **argv)
{
    settings s = {.threads = 1, .rounds = 11};
    tgi_isa cap = TGI_ISA_COUNT;
    tgi_err err = {0};
    const char *filter = "";
    int wrong = 0;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--json") == 0)
            s.json = 1;
        else if (strcmp(argv[i], "--exact") == 0)
            s.want.exact = 1;
        else if (strcmp(argv[i], "--errors") == 0)
            s.errors = 1;
        else if (strcmp(argv[i], "--threads") == 0)
            s.threads = (int)strtol(value, NULL, 10), i++;
        else if (strcmp(argv[i], "--rounds") == 0)
            s.rounds = (int)strtol(value, NULL, 10), i++;
        else if (strcmp(argv[i], "--isa") == 0 && tgi_isa_parse(value, &cap))
            i++;
        else if (strcmp(argv[i], "--precision") == 0)
            s.want.kinds = strcmp(value, "bf16") == 0 ? TGI_KIND_BF16 : 0, i++;
        else if (strcmp(argv[i], "--variant") == 0)
            s.want.variant = value, i++;
        else if (argv[i][0] == '-')
            layer_die("usage: bench_op [--threads N] [--isa NAME] [--rounds N] [--exact] "
                      "[--precision fp32|bf16] [--variant NAME] [--json] [FILTER]");
        else
            filter = argv[i];
    }
    if (s.rounds < 1 || s.rounds > ROUNDS_MAX)
        layer_die("--rounds: 1 to 101; 10 or more for numbers that count");
    if (s.threads == 1)
        measure_clock(CLOCK_THREAD_CPUTIME_ID);
    s.be = tgi_backend_for(tgi_isa_detect(cap));
    if (tgi_threads_open(s.threads, &s.pool, &err) != TG_OK)
        layer_die(err.text);
    if (s.want.kinds && !tgi_isa_has_bf16(s.be->isa))
        layer_die("--precision bf16: this processor has no AVX512_BF16");
    peer_open(s.threads, s.be->isa);
    if (!s.json && !s.errors)
        printf("%s, %d thread(s), %d rounds, medians\n", s.be->name, s.threads, s.rounds);
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        if (strstr(layers[i].name, filter))
            wrong |= s.errors ? errors_of_layer(&layers[i], &s) : bench_layer(&layers[i], &s);
    tgi_threads_close(&s.pool);
    return wrong;
}

/* bench_op.c - one operator, one shape: our variant beside oneDNN's direct convolution.
 *
 *   bench_op [--threads N] [--isa NAME] [--rounds N] [--json] [FILTER]
 *
 * Protocol: both compute the same layer (bias and ReLU included) from the same numbers; the
 * answers are compared first; then both are timed in turns, `rounds` times (10 or more), and
 * medians are reported with their ratio and with the share of the multiply-add peak measured in
 * the same rounds. With one thread the clock is the thread's processor time, so a busy machine
 * disturbs caches only; with more it is the wall's. Between turns we sleep: the peer's OpenMP
 * workers spin for a while after a loop and would steal from ours. ">= 1" in the ratio column
 * means we are faster. Without oneDNN the reference checks the answer and the peer's columns
 * are empty.
 *
 * Operations count as direct convolution: 2 per multiply-add. */
#include "engine/base/mem.h"
#include "kernels/backend.h"
#include "kernels/ops/geometry.h"
#include "kernels/ops/op_attrs.h"
#include "kernels/threads.h"

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

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define ROUNDS_MAX 101
#define TURN_SECONDS 0.02

typedef struct layer {
    const char *name;
    int64_t ci, co, d, h, w, k, s, groups; /* d 0: 2-D */
    int transposed;
} layer;

static const layer layers[] = {
    {"3x3 1->32 @256", 1, 32, 0, 256, 256, 3, 1, 1, 0},
    {"3x3 32->32 @256", 32, 32, 0, 256, 256, 3, 1, 1, 0},
    {"3x3 64->64 @128", 64, 64, 0, 128, 128, 3, 1, 1, 0},
    {"3x3 128->128 @64", 128, 128, 0, 64, 64, 3, 1, 1, 0},
    {"3x3 256->256 @32", 256, 256, 0, 32, 32, 3, 1, 1, 0},
    {"3x3 512->512 @16", 512, 512, 0, 16, 16, 3, 1, 1, 0},
    {"3x3 48->48 @128", 48, 48, 0, 128, 128, 3, 1, 1, 0},
    {"3x3 96->96 @128", 96, 96, 0, 128, 128, 3, 1, 1, 0},
    {"3x3 97->64 @128", 97, 64, 0, 128, 128, 3, 1, 1, 0},
    {"3x3 144->144 @64", 144, 144, 0, 64, 64, 3, 1, 1, 0},
    {"3x3 s2 64->128 @128", 64, 128, 0, 128, 128, 3, 2, 1, 0},
    {"1x1 64->64 @256", 64, 64, 0, 256, 256, 1, 1, 1, 0},
    {"1x1 256->64 @64", 256, 64, 0, 64, 64, 1, 1, 1, 0},
    {"5x5 32->32 @256", 32, 32, 0, 256, 256, 5, 1, 1, 0},
    {"7x7 s2 3->64 @256", 3, 64, 0, 256, 256, 7, 2, 1, 0},
    {"3x3 64->1 @256", 64, 1, 0, 256, 256, 3, 1, 1, 0},
    {"3x3 48->3 @256", 48, 3, 0, 256, 256, 3, 1, 1, 0},
    {"T2x2 s2 128->64 @64", 128, 64, 0, 64, 64, 2, 2, 1, 1},
    {"T4x4 s2 32->32 @64", 32, 32, 0, 64, 64, 4, 2, 1, 1},
    {"dw 3x3 64 @256", 64, 64, 0, 256, 256, 3, 1, 64, 0},
    {"3-D 3x3x3 32->32 @16x128", 32, 32, 16, 128, 128, 3, 1, 1, 0},
};

typedef struct work { /* a layer with its data, both ways */
    const layer *l;
    conv_attrs attrs;
    tg_desc src[3], dst;
    tg_const cst[3];
    const tg_const *cp[3];
    tg_op_ctx ctx;
    float *x, *w, *b, *y; /* dense; y: the peer's answer or NULL */
    const tg_variant *v;
    tg_view sv, dv;
    tg_operand operand;
    float *mem[3]; /* source view, destination view, packed weights */
    tg_epi_step relu;
    tg_call call;
    double flops;
#ifdef TG_HAVE_DNNL
    dnnl_primitive_t prim;
    dnnl_memory_t mem_src, mem_w, mem_b, mem_dst;
    char peer[64];
#endif
} work;

static clockid_t bench_clock = CLOCK_MONOTONIC;
static double now(void)
{
    struct timespec t;
    clock_gettime(bench_clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "bench_op: %s\n", what);
    exit(1);
}

static float *floats(size_t n)
{
    void *p = NULL;
    if (posix_memalign(&p, 4096, (n + 64) * sizeof(float)))
        die("out of memory");
    memset(p, 0, (n + 64) * sizeof(float));
    return p;
}

static float *noise(size_t n, float scale)
{
    static uint32_t s = 1;
    float *p = floats(n);
    for (size_t i = 0; i < n; i++) {
        s = s * 1664525u + 1013904223u;
        p[i] = scale * ((float)(s >> 8) / 8388608.0f - 1.0f);
    }
    return p;
}

static size_t count(const tg_desc *d)
{
    int64_t n = 0;
    return tgi_desc_count(d, &n) ? (size_t)n : 0;
}

static tg_desc desc(const layer *l, int64_t a, int64_t b, int64_t d, int64_t h, int64_t w)
{
    return l->d ? (tg_desc){TG_DTYPE_F32, 5, {a, b, d, h, w}}
                : (tg_desc){TG_DTYPE_F32, 4, {a, b, h, w}};
}

/* ---- our side ------------------------------------------------------------------------------
 */

static tg_view make_view(const tg_desc *d, int cb, int64_t border, float **mem)
{
    tg_view v = {.c = d->dim[1], .cb = cb, .x0 = -border};
    v.width = tgi_desc_axis(d, TG_X) + 2 * border;
    v.y_ring = tgi_desc_axis(d, TG_Y);
    v.z_ring = tgi_desc_axis(d, TG_Z);
    v.y_pitch = (size_t)(v.width * cb);
    v.z_pitch = v.y_pitch * (size_t)v.y_ring;
    v.block_pitch = v.z_pitch * (size_t)v.z_ring;
    *mem = floats(v.block_pitch * (size_t)tgi_view_blocks(&v));
    v.base = *mem;
    return v;
}

static void each(const tg_desc *d, const tg_view *v, float *dense, int to_view)
{
    size_t i = 0;
    for (int64_t c = 0; c < d->dim[1]; c++)
        for (int64_t z = 0; z < tgi_desc_axis(d, TG_Z); z++)
            for (int64_t y = 0; y < tgi_desc_axis(d, TG_Y); y++)
                for (int64_t x = 0; x < tgi_desc_axis(d, TG_X); x++, i++) {
                    float *p = tgi_view_at(v, c, z, y, x);
                    if (to_view)
                        *p = dense[i];
                    else
                        dense[i] = *p;
                }
}

static void shape_layer(work *k, const layer *l)
{
    const int64_t kd = l->d ? l->k : 1;
    const int n = l->d ? 3 : 2;
    k->l = l;
    k->attrs = (conv_attrs){.group = l->groups,
                            .kernel_shape.n = -1,
                            .dilations.n = -1,
                            .output_padding.n = -1,
                            .output_shape.n = -1};
    k->attrs.strides.n = n;
    k->attrs.pads.n = 2 * n;
    for (int i = 0; i < 2 * n; i++) {
        k->attrs.strides.v[i % n] = l->s;
        k->attrs.pads.v[i] = l->transposed ? (l->k - l->s) / 2 : l->k / 2;
    }
    k->src[0] = desc(l, 1, l->ci, l->d, l->h, l->w);
    k->src[1] = desc(l, l->transposed ? l->ci : l->co,
                     (l->transposed ? l->co : l->ci) / l->groups, kd, l->k, l->k);
    k->src[2] = (tg_desc){TG_DTYPE_F32, 1, {l->co}};
    k->ctx = (tg_op_ctx){&k->attrs, 17, 3, 1, k->src, &k->dst, k->cp};
    tgi_geom g;
    tgi_err err = {0};
    if ((l->transposed ? tgi_conv_transpose_geometry(&k->ctx, &g, &err)
                       : tgi_conv_geometry(&k->ctx, &g, &err)) != TG_OK)
        die(err.text);
    k->dst = desc(l, 1, l->co, g.out[TG_Z], g.out[TG_Y], g.out[TG_X]);
    k->flops = 2.0 * (double)count(&k->src[1]) *
               (double)(l->transposed ? count(&k->src[0]) / (size_t)l->ci
                                      : count(&k->dst) / (size_t)l->co);
}

static int our_side(work *k, const tg_backend *be, tg_threads *pool)
{
    tg_layout_hint lay = {.lanes = be->lanes, .n_src = 3, .src_segs = {1}};
    const int64_t border = k->l->k;
    const double fan = (double)count(&k->src[1]) / (double)k->l->co;
    k->x = noise(count(&k->src[0]), 1);
    k->w = noise(count(&k->src[1]), (float)sqrt(3.0 / fan));
    k->b = noise((size_t)k->l->co, 0.1f);
    k->cst[1] = (tg_const){k->src[1], k->w};
    k->cst[2] = (tg_const){k->src[2], k->b};
    k->cp[1] = &k->cst[1];
    k->cp[2] = &k->cst[2];
    lay.seg_c[0][0] = k->l->ci;
    lay.src_cb[0] = k->l->ci <= 4 ? 1 : be->lanes;
    lay.dst_cb = k->l->co <= 4 ? 1 : be->lanes;
    k->v = tgi_variant_pick(be, k->l->transposed ? "ConvTranspose" : "Conv", &k->ctx, &lay);
    if (!k->v)
        return 0;
    k->sv = make_view(&k->src[0], lay.src_cb[0], border, &k->mem[0]);
    k->dv = make_view(&k->dst, lay.dst_cb, 0, &k->mem[1]);
    each(&k->src[0], &k->sv, k->x, 1);
    k->mem[2] = floats(k->v->packed_bytes(&k->ctx, &lay) / sizeof(float));
    k->v->pack(&k->ctx, &lay, k->mem[2]);
    k->operand = (tg_operand){1, &k->sv};
    k->relu = (tg_epi_step){TG_EPI_RELU, -1, 0, 0, NULL};
    k->call = (tg_call){&k->ctx,   &k->operand, &k->dv, tgi_box_full(&k->dst), &k->relu, 1,
                        k->mem[2], NULL,        pool};
    return 1;
}

/* ---- the peer ------------------------------------------------------------------------------
 */

#ifdef TG_HAVE_DNNL
static dnnl_engine_t engine;
static dnnl_stream_t stream;

static void ok(dnnl_status_t s, const char *what)
{
    if (s != dnnl_success)
        die(what);
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
    const int g = k->l->groups > 1;
    for (int i = 0; i < nd; i++) {
        sd[i] = k->src[0].dim[i];
        dd[i] = k->dst.dim[i];
        wd[i + g] = k->src[1].dim[i];
    }
    if (g) {
        wd[0] = k->l->groups;
        wd[1] = k->l->co / k->l->groups;
        wd[2] = k->l->ci / k->l->groups;
    } else {
        wd[0] = k->l->co;
        wd[1] = k->l->ci;
    }
    for (int i = 0; i < nd - 2; i++) { /* what the last window reads, not what it may */
        const int64_t p = k->attrs.pads.v[0], s = k->l->s;
        pads[i] = k->l->transposed ? p : (dd[i + 2] - 1) * s + k->l->k - p - sd[i + 2];
    }
}

static int peer_side(work *k)
{
    const int nd = k->l->d ? 5 : 4;
    dnnl_dims_t sd, wd, dd, bd = {k->l->co}, str, dil = {0}, pl, pr;
    const dnnl_format_tag_t plain = nd == 4 ? dnnl_nchw : dnnl_ncdhw;
    const dnnl_format_tag_t plain_w = k->l->groups > 1   ? dnnl_goihw
                                      : k->l->transposed ? dnnl_iohw
                                      : nd == 4          ? dnnl_oihw
                                                         : dnnl_oidhw;
    dnnl_memory_desc_t any[4], host[4];
    dnnl_primitive_desc_t pd;
    dnnl_status_t rc;
    peer_dims(k, nd, sd, wd, dd, pr);
    for (int i = 0; i < 3; i++) {
        str[i] = k->l->s;
        pl[i] = k->attrs.pads.v[0];
    }
    const int wn = nd + (k->l->groups > 1);
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
    if (k->l->transposed) {
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
    k->mem_b = plain_memory(&any[2], k->b);
    k->mem_dst = peer_memory(pd, dnnl_query_dst_md, 0);
    dnnl_memory_t hs = plain_memory(&host[0], k->x), hw = plain_memory(&host[1], k->w);
    reorder(hs, k->mem_src);
    reorder(hw, k->mem_w);
    dnnl_memory_destroy(hs);
    dnnl_memory_destroy(hw);
    k->y = floats(count(&k->dst));
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

static void peer_open(int threads, tg_isa isa)
{
    void (*set)(int) = (void (*)(int))(uintptr_t)dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    if (set)
        set(threads);
    if (isa == TG_ISA_AVX2)
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
static void peer_open(int threads, tg_isa isa)
{
    (void)threads, (void)isa;
}
#endif

/* ---- measuring -----------------------------------------------------------------------------
 */

#define PEAK_STEPS 200000

#if defined(__x86_64__)
/* Independent chains of multiply-adds: more than latency times units, fewer than registers. */
#define PEAK(name, isa_flags, vec, set1, fma, lanes_, chains)                                  \
    __attribute__((target(isa_flags), noinline)) static double name(void)                      \
    {                                                                                          \
        vec a[chains];                                                                         \
        const vec x = set1(0.999999f), y = set1(1e-9f);                                        \
        for (int i = 0; i < chains; i++)                                                       \
            a[i] = set1((float)i);                                                             \
        const double t0 = now();                                                               \
        for (int k = 0; k < PEAK_STEPS; k++) {                                                 \
            _Pragma("GCC unroll 20") for (int i = 0; i < chains; i++) a[i] = fma(a[i], x, y);  \
            __asm__ volatile("" ::"v"(a[0]));                                                  \
        }                                                                                      \
        for (int i = 0; i < chains; i++)                                                       \
            __asm__ volatile("" ::"v"(a[i]));                                                  \
        return 2.0 * chains * lanes_ * PEAK_STEPS / (now() - t0);                              \
    }
PEAK(peak_avx2, "avx2,fma", __m256, _mm256_set1_ps, _mm256_fmadd_ps, 8, 12)
PEAK(peak_avx512, "avx512f", __m512, _mm512_set1_ps, _mm512_fmadd_ps, 16, 20)
#endif

/* Multiply-adds a second times two, of one thread; 0: not known. */
static double peak(tg_isa isa)
{
#if defined(__x86_64__)
    if (isa == TG_ISA_AVX512)
        return peak_avx512();
    if (isa == TG_ISA_AVX2)
        return peak_avx2();
#endif
    (void)isa;
    return 0;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *t, int n)
{
    qsort(t, (size_t)n, sizeof *t, by_value);
    return t[n / 2];
}

static void turn_ours(work *k)
{
    k->v->run(&k->call);
}

/* Seconds of one run: enough repetitions to fill a turn. */
static double timed(work *k, void (*run)(work *), int reps)
{
    run(k);
    const double t0 = now();
    for (int i = 0; i < reps; i++)
        run(k);
    return (now() - t0) / reps;
}

static int repetitions(work *k, void (*run)(work *))
{
    const double once = timed(k, run, 1);
    return once > TURN_SECONDS ? 1 : (int)(TURN_SECONDS / once) + 1;
}

/* Relative L2 distance of our answer from the peer's, or from the reference's. */
static double distance(work *k)
{
    float *got = floats(count(&k->dst));
    double num = 0, den = 1e-30;
    if (!k->y) {
        const tg_op *op = tgi_op_find(k->v->op);
        tgi_err err = {0};
        k->y = floats(count(&k->dst));
        if (!op || op->ref(&k->call, &err) != TG_OK)
            die("no reference");
        each(&k->dst, &k->dv, k->y, 0);
        for (size_t i = 0; i < count(&k->dst); i++)
            k->y[i] = k->y[i] > 0 ? k->y[i] : 0;
    }
    turn_ours(k);
    each(&k->dst, &k->dv, got, 0);
    for (size_t i = 0; i < count(&k->dst); i++) {
        const double d = (double)got[i] - (double)k->y[i];
        num += d * d;
        den += (double)k->y[i] * (double)k->y[i];
    }
    free(got);
    return sqrt(num / den);
}

static void release(work *k)
{
    free(k->x);
    free(k->w);
    free(k->b);
    free(k->y);
    for (int i = 0; i < 3; i++)
        free(k->mem[i]);
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

typedef struct settings {
    int threads, rounds, json;
    const tg_backend *be;
    tg_threads *pool;
} settings;

static int bench_layer(const layer *l, const settings *s)
{
    work k = {0};
    double ours[ROUNDS_MAX], theirs[ROUNDS_MAX], peaks[ROUNDS_MAX];
    shape_layer(&k, l);
    if (!our_side(&k, s->be, s->pool)) {
        printf("%-26s no variant: the reference runs\n", l->name);
        release(&k);
        return 0;
    }
    const int peer = peer_side(&k);
    const double off = distance(&k);
    if (!(off < 1e-5)) {
        printf("%-26s WRONG: relative L2 %.2e\n", l->name, off);
        release(&k);
        return 1;
    }
    const int reps = repetitions(&k, turn_ours),
              peer_reps = peer ? repetitions(&k, peer_run) : 0;
    for (int i = 0; i < s->rounds; i++) {
        ours[i] = timed(&k, turn_ours, reps);
        if (s->threads > 1)
            usleep(5000);
        theirs[i] = peer ? timed(&k, peer_run, peer_reps) : 0;
        if (s->threads > 1)
            usleep(20000);
        peaks[i] = peak(s->be->isa) * s->threads;
    }
    const double t = median(ours, s->rounds), p = median(theirs, s->rounds);
    const double top = median(peaks, s->rounds);
    if (s->json)
        printf("{\"layer\":\"%s\",\"variant\":\"%s\",\"isa\":\"%s\",\"threads\":%d,"
               "\"gflops\":%.1f,\"gflops_best\":%.1f,\"peer_gflops\":%.1f,\"ratio\":%.3f,"
               "\"peak_gflops\":%.1f,\"relative_l2\":%.2e}\n",
               l->name, k.v->name, s->be->name, s->threads, k.flops / t / 1e9,
               k.flops / ours[0] / 1e9, peer ? k.flops / p / 1e9 : 0.0, peer ? p / t : 0.0,
               top / 1e9, off);
    else
        printf(
            "%-26s %-14s %7.1f GF/s %3.0f %% of peak | peer %7.1f | ratio %5.2f (best %5.2f) "
            "| L2 %.0e\n",
            l->name, k.v->name, k.flops / t / 1e9, top > 0 ? 100 * k.flops / t / top : 0.0,
            peer ? k.flops / p / 1e9 : 0.0, peer ? p / t : 0.0,
            peer ? theirs[0] / ours[0] : 0.0, off);
    fflush(stdout);
    release(&k);
    return 0;
}

int main(int argc, char **argv)
{
    settings s = {.threads = 1, .rounds = 11};
    tg_isa cap = TG_ISA_COUNT;
    tgi_err err = {0};
    const char *filter = "";
    int wrong = 0;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--json") == 0)
            s.json = 1;
        else if (strcmp(argv[i], "--threads") == 0)
            s.threads = atoi(value), i++;
        else if (strcmp(argv[i], "--rounds") == 0)
            s.rounds = atoi(value), i++;
        else if (strcmp(argv[i], "--isa") == 0 && tgi_isa_parse(value, &cap))
            i++;
        else if (argv[i][0] == '-')
            die("usage: bench_op [--threads N] [--isa NAME] [--rounds N] [--json] [FILTER]");
        else
            filter = argv[i];
    }
    if (s.rounds < 1 || s.rounds > ROUNDS_MAX)
        die("--rounds: 1 to 101; 10 or more for numbers that count");
    if (s.threads == 1)
        bench_clock = CLOCK_THREAD_CPUTIME_ID;
    s.be = tgi_backend_for(tgi_isa_detect(cap));
    if (tgi_threads_open(s.threads, &s.pool, &err) != TG_OK)
        die(err.text);
    peer_open(s.threads, s.be->isa);
    if (!s.json)
        printf("%s, %d thread(s), %d rounds, medians\n", s.be->name, s.threads, s.rounds);
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        if (strstr(layers[i].name, filter))
            wrong |= bench_layer(&layers[i], &s);
    tgi_threads_close(&s.pool);
    return wrong;
}

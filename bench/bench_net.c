/* bench_net.c - a real network, warm: import, plan and execute as a job does, from arrays in
 * memory, whole image untiled and in full-width bands.
 *
 *   bench_net [--size LIST] [--threads N] [--rounds N] [--isa NAME] [--exact]
 *             [--precision fp32|bf16] [--cpu] [--nodes] [--expect IN.npy OUT.npy]
 *             [--answer FILE.npy] [--json | --serve] MODEL.onnx
 *
 *   --size    configurations by commas: HxW, or N for NxN, whole; with @ROWS in bands of so
 *             many rows, with @auto as the planner cuts it when memory is no matter:
 *             512,1024@auto,1024x4096@64
 *   --expect  compare the answer to this input with this array first
 *   --answer  write what the first configuration yields (for a peer to compare with)
 *   --cpu     processor time of all threads instead of the wall's
 *   --nodes   then also where the last configuration's time goes, node by node
 *   --serve   one turn of every configuration for each line on stdin, until its end: lets a
 *             script take turns with another program; JSON on stdout
 *
 * Before anything is timed, the answer at a small size is compared with the reference kernels
 * (float64 sums), and every banded answer must equal the whole one bit for bit. Then the
 * configurations run in turns, `rounds` times. A turn repeats the pass until it takes
 * TURN_SECONDS; copying the dense arrays in and out is part of a pass. GFLOP/s count direct
 * convolution. The input is image(c,y,x) = ((37x + 61y + 17c) mod 255) / 255.
 *
 * Memory: `arena` and `weights` are the plan's blocks; peak RSS is VmHWM of the whole process,
 * dense arrays and mapped files included. Ask for one configuration when it shall be its own.
 */
#include "bench/measure.h"
#include "engine/base/arith.h"
#include "engine/base/json.h"
#include "engine/base/mem.h"
#include "engine/base/reserve.h"
#include "engine/exec/dense.h"
#include "engine/plan/choose.h"
#include "engine/plan/speed.h"
#include "io/npy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONFIGS_MAX 16
#define TURN_SECONDS 0.25
#define SMALL 48 /* sides of the image that the reference computes, at least */
/* Sums in another order, and transforms, move a value by some 1e-6 of its size per layer; a
 * wrong weight or a missed pixel by more than 1e-3 of the whole. */
#define WRONG_L2 1e-4
#define BF16_L2 2e-2 /* products of bfloat16: 1e-4 to 6e-3 was seen */

typedef struct settings {
    const char *model, *answer, *expect_in, *expect_out;
    int64_t h[CONFIGS_MAX], w[CONFIGS_MAX], band[CONFIGS_MAX];
    int n_config, threads, rounds, exact, bf16, json, serve, nodes;
    const tgi_kernel_set *be;
    tgi_threads *pool;
} settings;

typedef struct picture { /* the network at one size, with an image */
    int64_t h, w;
    tgi_net *net;
    tgi_stages *stages; /* run as one */
    tgi_reserve *weights;
    void *packed;
    float *in[TGI_MAX_PORTS], *out, *first; /* first: the answer to hold others against */
    size_t n_out;
} picture;

#define AS_PLANNED (-1) /* band height: the planner's choice, memory no matter */

typedef struct config {
    picture *p;
    int64_t band; /* 0: whole */
    tgi_tiling tiling;
    tgi_exec *exec;
    tgi_dense_io io;
    int reps;
    double t[ROUNDS_MAX];
} config;

_Noreturn static void die(const char *what, const char *detail)
{
    fprintf(stderr, "bench_net: %s%s%s\n", what, *detail ? ": " : "", detail);
    exit(1);
}

static void must(tg_status st, const tgi_err *err, const char *what)
{
    if (st != TG_OK)
        die(what, err->text[0] ? err->text : tg_status_name(st));
}

static void *claim(size_t bytes)
{
    void *p = tgi_malloc(TGI_TAG_MISC, bytes + 1);
    if (!p)
        die("out of memory", "");
    return p;
}

/* ---- The network at a size --------------------------------------------------------------- */

static unsigned net_flags(const settings *s)
{
    return (s->exact ? TGI_NET_EXACT : 0) | (s->bf16 ? TGI_NET_KINDS(TGI_KIND_BF16) : 0);
}

static float *dense_input(const tgi_desc *d)
{
    int64_t n = 0, i = 0;
    tgi_desc_count(d, &n);
    const int64_t w = d->dim[d->rank - 1], rows = n / (d->dim[1] * w);
    float *x = claim((size_t)n * sizeof *x);
    for (int64_t c = 0; c < d->dim[1]; c++)
        for (int64_t y = 0; y < rows; y++)
            for (int64_t col = 0; col < w; col++)
                x[i++] = (float)((col * 37 + y * 61 + c * 17) % 255) / 255.0f;
    return x;
}

static void check_size(const tgi_graph *g, int64_t h, int64_t w)
{
    char text[160];
    const int64_t want[2] = {h, w};
    for (int i = 0; i < 2; i++) {
        const int64_t fixed = g->base[1 + i], unit = g->divisor[1 + i];
        if (!(g->fixed_size ? want[i] == fixed : want[i] % unit == 0)) {
            snprintf(text, sizeof text, "%lldx%lld; the network takes %s %lld", (long long)h,
                     (long long)w, g->fixed_size ? "only" : "multiples of",
                     (long long)(g->fixed_size ? fixed : unit));
            die("size", text);
        }
    }
}

static void picture_open(picture *p, const tgi_graph *g, int64_t h, int64_t w,
                         const tgi_kernel_set *be, unsigned flags)
{
    tgi_desc in[TGI_MAX_PORTS];
    tgi_err e = {0};
    int64_t n = 0;
    const int64_t ext[3] = {1, h, w};
    check_size(g, h, w);
    memset(p, 0, sizeof *p);
    p->h = h;
    p->w = w;
    tgi_graph_input_descs(g, ext, in);
    must(tgi_net_new(g, be, in, flags, &p->net, &e), &e, "network");
    must(tgi_stages_new(p->net, &p->stages, &e), &e, "stages");
    must(tgi_reserve_open(p->net->packed_bytes + 64, &p->weights, &e), &e, "weights");
    must(tgi_reserve_take(p->weights, "weights", p->net->packed_bytes, &p->packed, &e), &e,
         "weights");
    tgi_net_pack(p->net, p->packed, NULL);
    for (int i = 0; i < g->n_in; i++)
        p->in[i] = dense_input(&in[i]);
    tgi_desc_count(&p->net->shapes.desc[p->net->out[0]], &n);
    p->n_out = (size_t)n;
    p->out = claim(p->n_out * sizeof(float));
}

static void picture_close(picture *p)
{
    for (int i = 0; i < TGI_MAX_PORTS; i++)
        tgi_free(p->in[i]);
    tgi_free(p->out);
    tgi_free(p->first);
    tgi_reserve_close(&p->weights);
    tgi_stages_free(&p->stages);
    tgi_net_free(&p->net);
}

/* ---- Configurations ---------------------------------------------------------------------- */

static void config_plan(config *c, picture *p, int64_t band, int threads)
{
    tgi_err e = {0};
    const int64_t cut[3] = {0, 0, 0};
    const int64_t rows = tgi_net_dim(p->net, p->net->in[0], TGI_STREAM_AXIS);
    const tgi_stage *one = &p->stages->one;
    if (band > 0 && one->whole_op)
        die("no bands: a node reads the whole image", one->whole_op);
    memset(c, 0, sizeof *c);
    c->p = p;
    c->io = (tgi_dense_io){.net = p->net, .out = {p->out}};
    for (int i = 0; i < p->net->n_in; i++)
        c->io.in[i] = p->in[i];
    if (band == AS_PLANNED && !one->whole_op) {
        const tgi_choose_args a = {.stage = one,
                                   .threads = threads,
                                   .limit_bytes = SIZE_MAX,
                                   .unit = {1, 1, 1},
                                   .flops_per_second = 2e11 * threads};
        tgi_choice choice;
        must(tgi_choose(&a, &choice, &e), &e, "plan");
        c->tiling = choice.tiling;
        c->band = c->tiling.band;
        return;
    }
    c->band = band > 0 ? band : 0;
    must(tgi_tiling_make(one, cut, band > 0 ? band : rows, threads, NULL, &c->tiling, &e), &e,
         "plan");
}

static void config_open(config *c, void *arena, tgi_threads *pool)
{
    tgi_err e = {0};
    const tgi_exec_io io = {.user = &c->io, .load = tgi_dense_load, .store = tgi_dense_store};
    must(tgi_exec_open(&c->tiling, c->p->packed, arena, pool, &io, &c->exec, &e), &e, "open");
}

static void config_close(config *c)
{
    tgi_exec_close(&c->exec);
    tgi_tiling_free(&c->tiling);
}

static void pass(config *c)
{
    tgi_err e = {0};
    tgi_range core[3];
    for (int64_t k = 0; k < c->tiling.cells; k++) {
        tgi_tiling_cell(&c->tiling, k, core);
        must(tgi_exec_cell(c->exec, core, &e), &e, "run");
    }
}

/* Seconds of a pass. */
static double turn(config *c)
{
    const double t0 = measure_now();
    for (int i = 0; i < c->reps; i++)
        pass(c);
    return (measure_now() - t0) / c->reps;
}

/* The first pass is for warmth, the second says how often a turn repeats. */
static void warm(config *c)
{
    c->reps = 1;
    pass(c);
    const double once = turn(c);
    c->reps = once > TURN_SECONDS ? 1 : (int)(TURN_SECONDS / once) + 1;
}

/* ---- Checks ------------------------------------------------------------------------------ */

static double relative_l2(const float *got, const float *want, size_t n)
{
    double num = 0, den = 1e-30;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)got[i] - (double)want[i];
        num += d * d;
        den += (double)want[i] * (double)want[i];
    }
    return sqrt(num / den);
}

/* One whole pass of a picture; its answer stays in p->out. */
static void pass_once(picture *p, int threads, tgi_threads *pool)
{
    config c;
    void *arena;
    tgi_err e = {0};
    tgi_reserve *mem = NULL;
    config_plan(&c, p, 0, threads);
    must(tgi_reserve_open(c.tiling.arena_bytes + 64, &mem, &e), &e, "arena");
    must(tgi_reserve_take(mem, "arena", c.tiling.arena_bytes, &arena, &e), &e, "arena");
    config_open(&c, arena, pool);
    pass(&c);
    config_close(&c);
    tgi_reserve_close(&mem);
}

static int64_t small_side(const tgi_graph *g, int axis)
{
    return g->fixed_size ? g->base[axis]
                         : tgi_align_up(tgi_max(g->minimum[axis], SMALL), g->divisor[axis]);
}

static void verdict(const settings *s, double off, const char *what)
{
    char text[64];
    snprintf(text, sizeof text, "relative L2 %.2e", off);
    if (!(off < (s->bf16 ? BF16_L2 : WRONG_L2)))
        die(what, text);
}

static double check_reference(const settings *s, const tgi_graph *g)
{
    picture ref, own;
    const int64_t h = small_side(g, 1), w = small_side(g, 2);
    picture_open(&ref, g, h, w, s->be, TGI_NET_REFERENCE);
    picture_open(&own, g, h, w, s->be, net_flags(s));
    pass_once(&ref, 1, NULL);
    pass_once(&own, s->threads, s->pool);
    const double off = relative_l2(own.out, ref.out, ref.n_out);
    picture_close(&ref);
    picture_close(&own);
    verdict(s, off, "the answer is not that of the reference kernels");
    return off;
}

static float *load_floats(const char *path, tgi_desc *d)
{
    void *data = NULL;
    tgi_err e = {0};
    must(tgi_npy_load(path, 0, d, &data, &e), &e, path);
    if (d->dtype != TG_DTYPE_F32 || d->rank < 4)
        die("wanted a float32 array of rank 4", path);
    return data;
}

static double check_expected(const settings *s, const tgi_graph *g)
{
    picture p;
    tgi_desc din, dout;
    int64_t n = 0, m = 0;
    if (!s->expect_in)
        return NAN;
    float *x = load_floats(s->expect_in, &din), *y = load_floats(s->expect_out, &dout);
    picture_open(&p, g, din.dim[2], din.dim[3], s->be, net_flags(s));
    tgi_desc_count(&p.net->shapes.desc[p.net->in[0]], &n);
    if (!tgi_desc_count(&din, &m) || m != n || !tgi_desc_count(&dout, &m) ||
        (size_t)m != p.n_out)
        die("the arrays of --expect have other shapes than the network's", "");
    memcpy(p.in[0], x, (size_t)n * sizeof *x);
    pass_once(&p, s->threads, s->pool);
    const double off = relative_l2(p.out, y, p.n_out);
    picture_close(&p);
    tgi_free(x);
    tgi_free(y);
    verdict(s, off, "the answer is not that of --expect");
    return off;
}

/* After the warm-up each configuration has left its answer in p->out. */
static void check_bands(config *c)
{
    picture *p = c->p;
    const size_t bytes = p->n_out * sizeof(float);
    if (!p->first) {
        p->first = claim(bytes);
        memcpy(p->first, p->out, bytes);
    } else if (memcmp(p->first, p->out, bytes) != 0) {
        die("bands and whole image differ", p->net->g->in[0].name);
    }
    memset(p->out, 0, bytes);
}

static void save_answer(const settings *s, const picture *p)
{
    tgi_err e = {0};
    if (s->answer)
        must(tgi_npy_save(s->answer, &p->net->shapes.desc[p->net->out[0]], p->out, &e), &e,
             s->answer);
}

/* ---- Reports ----------------------------------------------------------------------------- */

static void put(tgi_jw *w)
{
    char *text = NULL;
    tgi_err e = {0};
    tgi_jw_end(w, '}');
    must(tgi_jw_take(w, &text, &e), &e, "JSON");
    puts(text);
    fflush(stdout);
    tgi_free(text);
}

static tgi_jw event(const char *name)
{
    tgi_jw w = {0};
    tgi_jw_begin(&w, NULL, '{');
    tgi_jw_str(&w, "event", name);
    return w;
}

static void describe(tgi_jw *w, const config *c)
{
    tgi_jw_int(w, "height", c->p->h);
    tgi_jw_int(w, "width", c->p->w);
    tgi_jw_int(w, "band", c->band);
    tgi_jw_int(w, "repeats", c->reps);
    tgi_jw_uint(w, "arena_bytes", c->tiling.arena_bytes);
    tgi_jw_uint(w, "weights_bytes", c->p->net->packed_bytes);
    tgi_jw_num(w, "gflop", c->tiling.whole_flops / 1e9);
}

static void say_ready(const settings *s, const config *c, int n, double ref, double expect)
{
    tgi_jw w = event("ready");
    tgi_jw_str(&w, "isa", s->be->name);
    tgi_jw_int(&w, "threads", s->threads);
    tgi_jw_bool(&w, "exact", s->exact);
    tgi_jw_num(&w, "reference_relative_l2", ref);
    tgi_jw_num(&w, "expect_relative_l2", expect);
    tgi_jw_begin(&w, "configs", '[');
    for (int i = 0; i < n; i++) {
        tgi_jw_begin(&w, NULL, '{');
        describe(&w, &c[i]);
        tgi_jw_end(&w, '}');
    }
    tgi_jw_end(&w, ']');
    put(&w);
}

static void say_config(const settings *s, config *c)
{
    double all[ROUNDS_MAX]; /* in the order of the rounds */
    memcpy(all, c->t, sizeof all);
    const double mid = measure_median(c->t, s->rounds), best = c->t[0];
    const double mad = measure_mad(c->t, s->rounds, mid);
    const double mpix = (double)(c->p->h * c->p->w) / 1e6, gf = c->tiling.whole_flops / 1e9;
    if (s->json) {
        tgi_jw w = event("config");
        describe(&w, c);
        tgi_jw_num(&w, "seconds", mid);
        tgi_jw_begin(&w, "seconds_all", '[');
        for (int i = 0; i < s->rounds; i++)
            tgi_jw_num(&w, NULL, all[i]);
        tgi_jw_end(&w, ']');
        tgi_jw_num(&w, "seconds_min", best);
        tgi_jw_num(&w, "seconds_mad", mad);
        tgi_jw_num(&w, "mpix_per_second", mpix / mid);
        tgi_jw_num(&w, "gflops", gf / mid);
        put(&w);
        return;
    }
    char band[24] = "whole";
    if (c->band > 0)
        snprintf(band, sizeof band, "%lld", (long long)c->band);
    printf("%5lldx%-5lld %6s%10.2f%10.2f%8.2f%10.3f%9.1f%11.1f\n", (long long)c->p->h,
           (long long)c->p->w, band, 1e3 * mid, 1e3 * best, 1e3 * mad, mpix / mid, gf / mid,
           (double)c->tiling.arena_bytes / (double)(1 << 20));
}

static void say_end(const settings *s)
{
    if (s->json || s->serve) {
        tgi_jw w = event("end");
        tgi_jw_uint(&w, "peak_rss_bytes", measure_peak_rss());
        put(&w);
        return;
    }
    printf("peak RSS of the process %.1f MiB\n", (double)measure_peak_rss() / (1 << 20));
}

/* What `tegula calibrate` would expect of a node, as a share of what was measured. */
static void say_expected(const tgi_speeds *s, const config *c, int k, int threads, double ms)
{
    const double seconds = s->n_kernels ? tgi_speed_node(s, &c->tiling, k, threads) : -1;
    if (seconds < 0)
        printf("           ");
    else
        printf("  x %5.2f  ", 1e3 * seconds / ms);
}

/* One more turn with a clock around each node; what the nodes leave is moving arrays in and out
 * and walking the bands. Where the machine was calibrated: x expected over measured. */
static void say_nodes(config *c, int threads)
{
    tgi_speeds speeds = {0};
    (void)tgi_speeds_load(&speeds, NULL);
    const tgi_stage *one = &c->p->stages->one;
    double *t = claim((size_t)one->n_nodes * sizeof *t), nodes = 0;
    memset(t, 0, (size_t)one->n_nodes * sizeof *t);
    tgi_exec_time_nodes(c->exec, measure_now, t);
    const double all = turn(c);
    for (int k = 0; k < one->n_nodes; k++)
        nodes += t[k] / c->reps;
    for (int k = 0; k < one->n_nodes; k++) {
        const tgi_net_node *n = tgi_stage_node(one, k);
        char shape[96];
        printf("%8.2f ms %5.1f %%", 1e3 * t[k] / c->reps, 100 * t[k] / c->reps / all);
        say_expected(&speeds, c, k, threads, 1e3 * t[k] / c->reps);
        printf("%-18s %-16s %s\n", n->node->op->name,
               n->variant ? n->variant->name : "reference",
               tgi_desc_text(&n->dst[0], shape, sizeof shape));
        for (int i = 0; i < n->n_epi; i++)
            printf("%35s+ %s\n", "", n->node->epi[i].from);
    }
    printf("%8.2f ms in nodes, %.2f ms around them\n", 1e3 * nodes, 1e3 * (all - nodes));
    tgi_free(t);
}

/* ---- Turns ------------------------------------------------------------------------------- */

static void run_rounds(const settings *s, config *c, int n)
{
    for (int r = 0; r < s->rounds; r++)
        for (int i = 0; i < n; i++)
            c[i].t[r] = turn(&c[i]);
    if (!s->json)
        printf("%11s %6s%10s%10s%8s%10s%9s%11s\n", "HxW", "band", "ms", "best", "MAD", "MPix/s",
               "GF/s", "arena MiB");
    for (int i = 0; i < n; i++)
        say_config(s, &c[i]);
}

static void run_served(config *c, int n)
{
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        tgi_jw w = event("turn");
        tgi_jw_begin(&w, "seconds", '[');
        for (int i = 0; i < n; i++)
            tgi_jw_num(&w, NULL, turn(&c[i]));
        tgi_jw_end(&w, ']');
        put(&w);
    }
}

/* All configurations take turns, so one arena serves them. */
static tgi_reserve *shared_arena(const config *c, int n, void **at)
{
    size_t most = 0;
    tgi_err e = {0};
    tgi_reserve *mem = NULL;
    for (int i = 0; i < n; i++)
        most = c[i].tiling.arena_bytes > most ? c[i].tiling.arena_bytes : most;
    must(tgi_reserve_open(most + 64, &mem, &e), &e, "arena");
    must(tgi_reserve_take(mem, "arena", most, at, &e), &e, "arena");
    return mem;
}

/* Configurations of one size share its picture. Returns the number of pictures. */
static int plan_all(const settings *s, const tgi_graph *g, picture *p, config *c)
{
    int n = 0;
    for (int i = 0; i < s->n_config; i++) {
        int k = 0;
        while (k < n && (p[k].h != s->h[i] || p[k].w != s->w[i]))
            k++;
        if (k == n)
            picture_open(&p[n++], g, s->h[i], s->w[i], s->be, net_flags(s));
        config_plan(&c[i], &p[k], s->band[i], s->threads);
    }
    return n;
}

static void bench(const settings *s, const tgi_graph *g)
{
    void *arena;
    picture pictures[CONFIGS_MAX];
    config configs[CONFIGS_MAX];
    const double ref = check_reference(s, g), expect = check_expected(s, g);
    const int n = s->n_config, n_pictures = plan_all(s, g, pictures, configs);
    tgi_reserve *mem = shared_arena(configs, n, &arena);
    for (int i = 0; i < n; i++) {
        config_open(&configs[i], arena, s->pool);
        warm(&configs[i]);
        if (i == 0)
            save_answer(s, configs[i].p);
        check_bands(&configs[i]);
    }
    if (s->serve || s->json)
        say_ready(s, configs, n, ref, expect);
    else
        printf("%s, %s, %d threads, %d rounds, relative L2 to the reference %.1e\n", s->model,
               s->be->name, s->threads, s->rounds, ref);
    if (s->serve)
        run_served(configs, n);
    else
        run_rounds(s, configs, n);
    if (s->nodes)
        say_nodes(&configs[n - 1], s->threads);
    say_end(s);
    for (int i = 0; i < n; i++)
        config_close(&configs[i]);
    for (int i = 0; i < n_pictures; i++)
        picture_close(&pictures[i]);
    tgi_reserve_close(&mem);
}

/* ---- Arguments --------------------------------------------------------------------------- */

static void parse_sizes(settings *s, const char *text)
{
    for (s->n_config = 0; *text; text += *text == ',') {
        char *end;
        const int i = s->n_config++;
        if (i == CONFIGS_MAX)
            die("--size", "too many");
        s->h[i] = s->w[i] = strtoll(text, &end, 10);
        s->band[i] = 0;
        if (end != text && *end == 'x')
            s->w[i] = strtoll(end + 1, &end, 10);
        if (end != text && strncmp(end, "@auto", 5) == 0) {
            s->band[i] = AS_PLANNED;
            end += 5;
        } else if (end != text && *end == '@') {
            s->band[i] = strtoll(end + 1, &end, 10);
        }
        if (end == text || (*end && *end != ',') || s->h[i] < 1 || s->w[i] < 1 ||
            s->band[i] < AS_PLANNED)
            die("--size", text);
        text = end;
    }
}

/* The option at argv[i]; returns how many arguments it took. */
static int parse_one(settings *s, char **argv, int i, int argc, tgi_isa *cap)
{
    const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
    if (strcmp(name, "--json") == 0 || strcmp(name, "--serve") == 0) {
        s->json |= name[2] == 'j';
        s->serve |= name[2] == 's';
        return 1;
    }
    if (strcmp(name, "--exact") == 0)
        return s->exact = 1;
    if (strcmp(name, "--nodes") == 0)
        return s->nodes = 1;
    if (strcmp(name, "--cpu") == 0) {
        measure_clock(CLOCK_PROCESS_CPUTIME_ID);
        return 1;
    }
    if (name[0] != '-') {
        s->model = name;
        return 1;
    }
    if (strcmp(name, "--size") == 0)
        parse_sizes(s, value);
    else if (strcmp(name, "--threads") == 0)
        s->threads = (int)strtol(value, NULL, 10);
    else if (strcmp(name, "--rounds") == 0)
        s->rounds = (int)strtol(value, NULL, 10);
    else if (strcmp(name, "--answer") == 0)
        s->answer = value;
    else if (strcmp(name, "--precision") == 0)
        s->bf16 = strcmp(value, "bf16") == 0;
    else if (strcmp(name, "--expect") == 0 && i + 2 < argc) {
        s->expect_in = value;
        s->expect_out = argv[i + 2];
        return 3;
    } else if (strcmp(name, "--isa") != 0 || !tgi_isa_parse(value, cap))
        die("unknown option, or a value is missing (see the top of bench_net.c)", name);
    return 2;
}

int main(int argc, char **argv)
{
    settings s = {.threads = 2, .rounds = 11};
    tgi_isa cap = TGI_ISA_COUNT;
    tgi_err e = {0};
    tgi_graph *g = NULL;
    parse_sizes(&s, "512,1024");
    for (int i = 1; i < argc;)
        i += parse_one(&s, argv, i, argc, &cap);
    if (!s.model || !s.n_config)
        die("which model?", "bench_net [options] MODEL.onnx");
    if (s.rounds < 1 || s.rounds > ROUNDS_MAX || s.threads < 1 || s.threads > 256)
        die("--rounds 1 to 101, --threads 1 to 256", "");
    s.be = tgi_backend_for(tgi_isa_detect(cap));
    if (s.bf16 && !tgi_isa_has_bf16(s.be->isa))
        die("--precision bf16", "this processor has no AVX512_BF16");
    must(tgi_threads_open(s.threads, &s.pool, &e), &e, "threads");
    must(tgi_graph_import_onnx(s.model, &g, &e), &e, s.model);
    must(tgi_graph_finish(g, 0, &e), &e, s.model);
    bench(&s, g);
    tgi_graph_free(&g);
    tgi_threads_close(&s.pool);
    return 0;
}

/* bench_propainter.c - the networks of ProPainter at the size of a film, each by itself, and the units of work that they make up.
 *
 *   bench_propainter [--isa NAME] [--size WxH] [--threads N] [--rounds N] [--frames N] [--refs N] [--nodes NET] WEIGHTS
 *
 * WEIGHTS: the folder of the three files. A unit is a pair of RAFT (one direction), a motion in a completion window
 * (one direction), a step of the generator with so many frames (18) of which so many are references (7), a quarter of
 * its windows masked. Prints for each network its calls in a unit, milliseconds of a call (the median of the rounds, 5; with one
 * thread of its processor time, else of the wall's) and its rate, then seconds of a unit. --nodes: of that network, milliseconds and kernel of each node. Numbers that
 * go in are noise: nothing here depends on them but the reach of offsets. */
#include "bench/measure.h"
#include "engine/inpaint/pp_complete.h"
#include "engine/inpaint/pp_flow.h"
#include "engine/inpaint/pp_generate.h"
#include "engine/inpaint/pp_weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct settings {
    const tgi_kernel_set *be;
    tgi_threads *pool;
    int threads, rounds, frames, refs;
    int64_t high, wide;
    const char *nodes, *weights;
} settings;

static clockid_t clock_of = CLOCK_MONOTONIC;

static double now(void)
{
    struct timespec t;
    clock_gettime(clock_of, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void die(const tgi_err *e)
{
    fprintf(stderr, "bench_propainter: %s\n", e->text);
    exit(1);
}

static float noise(uint32_t *at)
{
    *at = *at * 1664525u + 1013904223u;
    return (float)(*at >> 8) / 8388608.0f - 1.0f;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct bound {
    const settings *o;
    const tgi_schedule *s;
    tgi_schedule_run *run;
} bound;

static float *port(const bound *b, const tgi_net *net, int value, int is_windows)
{
    const int64_t *d = net->values[value].ext.dim;
    const size_t n = (size_t)tgi_sched_floats(b->s->lanes, d[1], d[2], d[3]);
    float *p = measure_room(n * sizeof *p);
    uint32_t at = 7;
    for (size_t i = 0; i < n; i++)
        p[i] = is_windows ? (float)(i % 4 == 0) : noise(&at);
    return p;
}

static void print_nodes(const tgi_net *net, const tgi_stage *st, const double *seconds,
                        int rounds)
{
    for (int k = 0; k < st->n_nodes; k++) {
        const tgi_net_node *n = &net->nodes[st->node[k]];
        const tgi_desc *d = &n->dst[0];
        const double ms = seconds[k] * 1e3 / rounds,
                     ops = n->flops_per_element * (double)(d->dim[1] * d->dim[2] * d->dim[3]);
        printf("    %-20s %-16s %8.2f ms %7.1f GFLOP/s  [%lld,%lld,%lld] %s\n",
               n->node->op->name, n->variant ? n->variant->name : "reference", ms,
               ops / ms * 1e-6, (long long)d->dim[1], (long long)d->dim[2],
               (long long)d->dim[3], n->node->name);
    }
}

/* Seconds of a call. */
static double time_net(const bound *b, int net, const char *name, double calls)
{
    const settings *o = b->o;
    const tgi_net *n = b->s->net[net].net;
    const tgi_stage *st = b->s->net[net].choice.tiling.stage;
    tgi_sched_at in[TGI_MAX_PORTS] = {{0}}, out[TGI_MAX_PORTS] = {{0}};
    double *took = measure_room((size_t)o->rounds * sizeof *took),
           *nodes = measure_room((size_t)st->n_nodes * sizeof *nodes);
    tgi_err e = {0};
    for (int i = 0; i < n->n_in; i++)
        in[i].at = port(b, n, n->in[i], strstr(name, "attend") && i == 5);
    for (int i = 0; i < n->n_out; i++)
        out[i].at = port(b, n, n->out[i], 0);
    const int shown = o->nodes && strcmp(o->nodes, name) == 0;
    for (int r = -1; r < o->rounds; r++) {
        if (r == 0 && shown)
            tgi_exec_time_nodes(tgi_schedule_exec(b->run, net), now, nodes);
        const double t0 = now();
        if (tgi_schedule_call(b->run, net, in, out, &e) != TG_OK)
            die(&e);
        if (r >= 0)
            took[r] = now() - t0;
    }
    qsort(took, (size_t)o->rounds, sizeof *took, ascending);
    const double s = took[o->rounds / 2], flops = b->s->net[net].choice.tiling.flops;
    printf("  %-22s %6.1f calls %9.2f ms %8.2f GFLOP %7.1f GFLOP/s  arena %6.1f MiB\n", name,
           calls, s * 1e3, flops * 1e-9, flops / s * 1e-9,
           (double)b->s->net[net].choice.tiling.arena_bytes / 1048576);
    if (shown)
        print_nodes(n, st, nodes, o->rounds);
    for (int i = 0; i < n->n_in; i++)
        free((void *)(uintptr_t)in[i].at);
    for (int i = 0; i < n->n_out; i++)
        free((void *)(uintptr_t)out[i].at);
    free(took);
    free(nodes);
    return s * calls;
}

static tgi_pp_at at_size(const settings *o)
{
    return (tgi_pp_at){o->be, o->high, o->wide, o->threads, 0, NULL};
}

static bound open_run(const settings *o, const tgi_schedule *s)
{
    bound b = {.o = o, .s = s};
    tgi_err e = {0};
    const tgi_schedule_memory m = {.weights = measure_room(s->weight_bytes),
                                   .block = measure_room(s->block_bytes),
                                   .pool = o->pool};
    if (tgi_schedule_open(s, &m, &b.run, &e) != TG_OK)
        die(&e);
    return b;
}

static void bench_flow(const settings *o, const tgi_weights *w)
{
    const tgi_pp_at at = at_size(o);
    tgi_pp_flow *f = NULL;
    tgi_err e = {0};
    double all = 0;
    if (tgi_pp_flow_new(w, &at, 20, &f, &e) != TG_OK)
        die(&e);
    const bound b = open_run(o, f->schedule);
    static const char *const name[4] = {"features", "context", "update", "upsample"};
    static const double calls[4] = {0.5, 0.5, 20, 1};
    printf("RAFT, a pair, one direction, 20 iterations, a frame's features shared by four "
           "pairs' ends\n");
    for (int i = 0; i < 4; i++)
        all += time_net(&b, i, name[i], calls[i]);
    printf("  %.3f s\n", all);
}

static void bench_complete(const settings *o, const tgi_weights *w)
{
    const tgi_pp_at at = at_size(o);
    tgi_pp_complete *c = NULL;
    tgi_err e = {0};
    double all = 0;
    if (tgi_pp_complete_new(w, &at, 10, &c, &e) != TG_OK)
        die(&e);
    const bound b = open_run(o, c->schedule);
    printf("completion, a motion, one direction\n");
    all += time_net(&b, c->lead, "lead", 1);
    for (int i = 0; i < TGI_PP_BLENDS; i++) {
        char name[16];
        snprintf(name, sizeof name, "blend %d", i);
        all += time_net(&b, c->blend[i], name, 1);
    }
    all += time_net(&b, c->recur[0][0], "recur back", 1);
    all += time_net(&b, c->recur[1][0], "recur forward", 1);
    all += time_net(&b, c->decode, "decode", 1);
    printf("  %.3f s\n", all);
}

static void bench_generate(const settings *o, const tgi_weights *w)
{
    tgi_pp_sorts has = {0};
    const int local = o->frames - o->refs;
    const tgi_pp_at at = at_size(o);
    tgi_pp_generate *g = NULL;
    tgi_err e = {0};
    double all = 0;
    has[o->frames] = (uint64_t)1 << (local - 1);
    if (tgi_pp_generate_new(w, &at, has, local, &g, &e) != TG_OK)
        die(&e);
    const bound b = open_run(o, g->schedule);
    printf("generator, a step of %d frames, %d of them references\n", o->frames, o->refs);
    all += time_net(&b, g->net_encode, "encode", o->frames);
    all += time_net(&b, g->net_propagate[0][0], "propagate back", local - 1);
    all += time_net(&b, g->net_propagate[1][0], "propagate forward", local - 1);
    all += time_net(&b, g->net_join, "join", local);
    all += time_net(&b, g->net_split, "split", o->frames);
    all += time_net(&b, g->block[0].net_keys, "keys", 8.0 * o->frames);
    all += time_net(&b, g->block[0].net_queries, "queries", 8.0 * o->frames);
    all += time_net(&b, tgi_pp_attention_of(g, 0, o->frames, local)->net, "attend", 7);
    all += time_net(&b, tgi_pp_attention_of(g, TGI_PP_BLOCKS - 1, o->frames, local)->net,
                    "attend, the last", 1);
    all += time_net(&b, g->block[0].net_mix, "mix", 8.0 * o->frames);
    all += time_net(&b, g->net_compose, "compose", local);
    printf("  %.3f s\n", all);
}

static const char *value_of(int argc, char **argv, const char *name)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return argv[i + 1];
    return NULL;
}

static int number_of(int argc, char **argv, const char *name, int otherwise)
{
    const char *v = value_of(argc, argv, name);
    return v ? atoi(v) : otherwise;
}

int main(int argc, char **argv)
{
    tgi_weights *w[3];
    tgi_err e = {0};
    tgi_isa isa = TGI_ISA_COUNT;
    long long wide = 432, high = 240;
    const char *size = value_of(argc, argv, "--size"), *set = value_of(argc, argv, "--isa");
    if (argc < 2 || argv[argc - 1][0] == '-' || (set && !tgi_isa_parse(set, &isa)) ||
        (size && sscanf(size, "%lldx%lld", &wide, &high) != 2)) {
        fprintf(stderr, "bench_propainter [--size WxH] [--threads N] ... WEIGHTS\n");
        return 2;
    }
    settings o = {.be = tgi_backend_for(tgi_isa_detect(isa)),
                  .threads = number_of(argc, argv, "--threads", 2),
                  .rounds = number_of(argc, argv, "--rounds", 5),
                  .frames = number_of(argc, argv, "--frames", 18),
                  .refs = number_of(argc, argv, "--refs", 7),
                  .high = high,
                  .wide = wide,
                  .nodes = value_of(argc, argv, "--nodes")};
    if (o.threads == 1)
        clock_of = CLOCK_THREAD_CPUTIME_ID;
    if (tgi_threads_open(o.threads, &o.pool, &e) != TG_OK ||
        tgi_pp_weights_open(argv[argc - 1], w, &e) != TG_OK)
        die(&e);
    printf("%s, %lldx%lld, %d threads, median of %d\n", o.be->name, wide, high, o.threads,
           o.rounds);
    bench_flow(&o, w[0]);
    bench_complete(&o, w[1]);
    bench_generate(&o, w[2]);
    return 0;
}

/* bench_stream.c - what row streaming is worth: the reference U-Net over a 4096 x 4096 image
 * with 192 MiB for its activations, in strips, in the usual square tiles and in our own square
 * tiles.
 *
 *   bench_stream [--rounds N] [--threads N] [--json]
 *
 * usual tile   the network over core and halo (96, exact for direct sums) as if they were an
 *              image, the core cut out
 * own tile     of each value only what the core needs (the executor's cells)
 * strip        full height, as wide as fits, streamed in bands
 *
 * Each turn computes one interior cell of its kind (a strip from top to bottom),
 * kinds in turns, `rounds` times; the rate is kept pixels a second, the median is reported.
 * With direct sums all three give the same bits (the tests show that); transforms read whole
 * blocks and would want a larger halo for the usual tile, which is left out in its favour. */
#include "bench/measure.h"
#include "engine/base/arith.h"
#include "engine/exec/exec.h"
#include "engine/plan/choose.h"
#include "tests/memory/ref_unet.h"
#include "tests/planned.h"

#define SIDE 4096
#define HALO 96

typedef struct kind {
    const char *name;
    planned net;
    tgi_tiling tiling;
    tgi_range core[3];
    double kept; /* pixels of a turn */
    tgi_exec *exec;
    void *packed, *arena;
    double rate[ROUNDS_MAX];
} kind;

static tg_status load(void *user, int i, const tgi_view *v, const tgi_box *box, tgi_err *err)
{
    (void)user, (void)i, (void)err;
    for (int64_t y = box->ax[2].lo; y < box->ax[2].hi; y++) {
        float *row = tgi_view_row(v, 0, 0, y) - v->x0 * v->cb;
        for (int64_t x = box->ax[3].lo; x < box->ax[3].hi; x++)
            row[x * v->cb] = (float)((x * 37 + y * 61) % 255) / 255.0f;
    }
    return TG_OK;
}

static tg_status store(void *user, int o, const tgi_view *v, const tgi_box *box, tgi_err *err)
{
    (void)user, (void)o, (void)v, (void)box, (void)err;
    return TG_OK;
}

/* The tiling when its arena fits in `limit`. */
static int fits(const planned *p, int64_t cut, int64_t band, int threads, size_t limit,
                tgi_tiling *t)
{
    tgi_err e = {0};
    const int64_t c[3] = {1, cut, cut};
    CHECK_OK(tgi_tiling_make(p->one, c, band, threads, NULL, t, &e), e);
    if (t->arena_bytes <= limit)
        return 1;
    tgi_tiling_free(t);
    return 0;
}

static void plan_strip(kind *k, const tgi_graph *g, int threads, size_t limit)
{
    tgi_choice c;
    tgi_err e = {0};
    k->net = planned_open(g, SIDE, SIDE);
    const tgi_choose_args a = {.stage = k->net.one,
                               .threads = threads,
                               .limit_bytes = limit,
                               .unit = {1, 1, 64},
                               .flops_per_second = 3e11};
    CHECK_OK(tgi_choose(&a, &c, &e), e);
    k->tiling = c.tiling;
    const int64_t w = k->tiling.cut[2], x = SIDE / 2 / w * w;
    k->core[0] = (tgi_range){0, SIDE};
    k->core[1] = (tgi_range){x, tgi_min(x + w, SIDE)};
}

static void plan_usual(kind *k, const tgi_graph *g, int threads, size_t limit)
{
    for (int64_t padded = 2 * HALO + 16; padded <= SIDE; padded += 16) {
        tgi_tiling t;
        planned net = planned_open(g, padded, padded);
        if (!fits(&net, 0, padded, threads, limit, &t)) {
            planned_close(&net);
            break;
        }
        tgi_tiling_free(&k->tiling);
        planned_close(&k->net);
        k->net = net;
        k->tiling = t;
        k->core[0] = k->core[1] = (tgi_range){0, padded};
        k->kept = (double)(padded - 2 * HALO) * (double)(padded - 2 * HALO);
    }
}

static void plan_own(kind *k, const tgi_graph *g, int threads, size_t limit)
{
    tgi_tiling t;
    k->net = planned_open(g, SIDE, SIDE);
    for (int64_t side = 64; side <= SIDE && fits(&k->net, side, SIDE, threads, limit, &t);
         side += 32) {
        tgi_tiling_free(&k->tiling);
        k->tiling = t;
        const int64_t at = SIDE / 2 / side * side;
        k->core[0] = k->core[1] = (tgi_range){at, at + side};
    }
}

static void open_kind(kind *k, tgi_threads *pool)
{
    tgi_err e = {0};
    const tgi_exec_io io = {.user = k, .load = load, .store = store};
    if (k->kept == 0)
        k->kept = (double)tgi_range_len(k->core[0]) * (double)tgi_range_len(k->core[1]);
    k->packed = aligned_alloc(64, tgi_align_size(k->net.net->packed_bytes + 64, 64));
    k->arena = aligned_alloc(64, tgi_align_size(k->tiling.arena_bytes + 64, 64));
    memset(k->arena, 0, k->tiling.arena_bytes);
    tgi_net_pack(k->net.net, k->packed, NULL);
    CHECK_OK(tgi_exec_open(&k->tiling, k->packed, k->arena, pool, &io, &k->exec, &e), e);
}

static void turn(kind *k, int round)
{
    tgi_err e = {0};
    const double t0 = measure_now();
    CHECK_OK(tgi_exec_cell(k->exec, k->core, &e), e);
    k->rate[round] = k->kept / 1e6 / (measure_now() - t0);
}

static void close_kind(kind *k)
{
    tgi_exec_close(&k->exec);
    tgi_tiling_free(&k->tiling);
    planned_close(&k->net);
    free(k->packed);
    free(k->arena);
}

static int option(int argc, char **argv, const char *name, int fallback, int most)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return (int)tgi_clamp(strtol(argv[i + 1], NULL, 10), 1, most);
    return fallback;
}

/* `first` is sorted already, or the same kind. */
static void report(kind *k, const kind *first, int rounds, int json)
{
    const long long h = tgi_range_len(k->core[0]), w = tgi_range_len(k->core[1]);
    if (json) {
        printf("{\"kind\":\"%s\",\"height\":%lld,\"width\":%lld,\"arena_bytes\":%zu,"
               "\"mpix_per_second\":[",
               k->name, h, w, k->tiling.arena_bytes);
        for (int r = 0; r < rounds; r++)
            printf("%s%.4f", r ? "," : "", k->rate[r]);
        puts("]}");
        return;
    }
    char cell[48];
    const double mid = measure_median(k->rate, rounds);
    snprintf(cell, sizeof cell, "%lldx%lld", h, w);
    printf("%-12s%10s%10.1f%12.3f%14.2f\n", k->name, cell,
           (double)k->tiling.arena_bytes / (double)(1 << 20), mid,
           first->rate[rounds / 2] / mid);
}

int main(int argc, char **argv)
{
    const int rounds = option(argc, argv, "--rounds", 5, ROUNDS_MAX);
    const int threads = option(argc, argv, "--threads", 2, 256);
    const size_t limit = (size_t)192 << 20;
    const int json = argc > 1 && strcmp(argv[argc - 1], "--json") == 0;
    kind kinds[3] = {{.name = "strip"}, {.name = "usual tile"}, {.name = "own tile"}};
    tgi_threads *pool = NULL;
    tgi_err e = {0};
    tgi_graph *g = ref_unet(4);
    CHECK_OK(tgi_threads_open(threads, &pool, &e), e);
    plan_strip(&kinds[0], g, threads, limit);
    plan_usual(&kinds[1], g, threads, limit);
    plan_own(&kinds[2], g, threads, limit);
    for (int i = 0; i < 3; i++)
        open_kind(&kinds[i], pool);
    for (int r = -1; r < rounds; r++) /* the first is for warmth */
        for (int i = 0; i < 3; i++)
            turn(&kinds[i], r < 0 ? 0 : r);
    if (!json)
        printf("%-12s%10s%10s%12s%14s\n", "kind", "cell", "MiB", "MPix/s", "strip/this");
    for (int i = 0; i < 3; i++)
        report(&kinds[i], &kinds[0], rounds, json);
    for (int i = 0; i < 3; i++)
        close_kind(&kinds[i]);
    tgi_threads_close(&pool);
    tgi_graph_free(&g);
    return TEST_END();
}

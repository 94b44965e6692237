/* bench_pool.c - allocations of a real run, replayed on a pool.
 *
 *     tegula run ... --trace run.json
 *     bench_pool [--rounds N] [--json] [--most-ns N] [--least-hits SHARE] run.json
 *
 * The timeline's allocations and frees are made again in their order on a pool of host memory
 * with default settings, from the same thread, without what the run did in between. Printed:
 * the hit rate of the first pass on an empty pool (a raw call is a miss), the time of single
 * allocations out of the cache (median and 99th percentile), and the same trace through malloc.
 * The contents are not touched: what is timed is the allocator. With limits (a test) it exits 1
 * when the median or the hit rate of the first pass is beyond them. */
#include "engine/base/json.h"
#include "engine/base/mem.h"
#include "engine/base/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct step { /* one call: of allocation `i`, or its free */
    int64_t at_ns;
    int32_t i;
    int is_free;
} step;

typedef struct replay {
    step *step;
    size_t *bytes;
    void **block;
    uint32_t *ns; /* of each allocation, all passes */
    int n_allocs, n_steps;
    size_t n_ns, cap_ns;
} replay;

static int by_time(const void *a, const void *b)
{
    const step *x = a, *y = b;
    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    return x->i != y->i ? (x->i < y->i ? -1 : 1) : x->is_free - y->is_free;
}

static int count(const tgi_json *events)
{
    int n = 0;
    for (const tgi_json *e = tgi_json_first(events); e; e = tgi_json_next(e))
        n++;
    return n;
}

static int load(const char *path, int rounds, replay *r)
{
    tgi_json *doc = NULL;
    tgi_err e = {0};
    if (tgi_json_load(path, &doc, &e) != TG_OK) {
        fprintf(stderr, "bench_pool: %s\n", e.text);
        return 0;
    }
    const tgi_json *events = tgi_json_get(doc, "events");
    const int n = count(events);
    *r = (replay){.step = calloc((size_t)n * 2, sizeof *r->step),
                  .bytes = calloc((size_t)n, sizeof *r->bytes),
                  .block = calloc((size_t)n, sizeof *r->block),
                  .cap_ns = (size_t)n * (size_t)(rounds + 1)};
    r->ns = calloc(r->cap_ns ? r->cap_ns : 1, sizeof *r->ns);
    for (const tgi_json *v = tgi_json_first(events); v; v = tgi_json_next(v)) {
        int64_t begin = 0, end = INT64_MAX, bytes = 0;
        if (!tgi_json_int(tgi_json_get(v, "begin_ns"), &begin) ||
            !tgi_json_int(tgi_json_get(v, "bytes"), &bytes))
            continue;
        (void)tgi_json_int(tgi_json_get(v, "end_ns"), &end); /* null: after all others */
        r->bytes[r->n_allocs] = (size_t)bytes;
        r->step[r->n_steps++] = (step){begin, r->n_allocs, 0};
        r->step[r->n_steps++] = (step){end, r->n_allocs++, 1};
    }
    tgi_json_free(&doc);
    qsort(r->step, (size_t)r->n_steps, sizeof *r->step, by_time);
    return r->n_allocs > 0;
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* One pass; pool NULL: malloc. 0 when an allocation is refused. */
static int pass(replay *r, tg_pool *pool)
{
    for (int k = 0; k < r->n_steps; k++) {
        const step *s = &r->step[k];
        if (s->is_free) {
            if (pool)
                tg_pool_free(pool, r->block[s->i]);
            else
                free(r->block[s->i]);
            continue;
        }
        void *p = NULL;
        const int64_t t0 = now_ns();
        if (pool)
            tg_pool_alloc(pool, r->bytes[s->i], "replay", &p);
        else
            p = malloc(r->bytes[s->i] ? r->bytes[s->i] : 1);
        const int64_t t1 = now_ns();
        if (!p)
            return 0;
        r->block[s->i] = p;
        if (r->n_ns < r->cap_ns)
            r->ns[r->n_ns++] = (uint32_t)(t1 - t0);
    }
    return 1;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Percentile of the passes' single allocations, and none are kept. */
static void times_of(replay *r, double *median, double *p99)
{
    qsort(r->ns, r->n_ns, sizeof *r->ns, by_number);
    *median = r->n_ns ? r->ns[r->n_ns / 2] : 0;
    *p99 = r->n_ns ? r->ns[r->n_ns * 99 / 100] : 0;
    r->n_ns = 0;
}

typedef struct limits {
    double most_ns, least_hits;
} limits;

static int measure(replay *r, int rounds, int json, const limits *l)
{
    tg_raw raw;
    tg_pool *pool = NULL;
    tg_pool_stats first = {.size = sizeof first}, last = {.size = sizeof last};
    double median, p99, malloc_median, malloc_p99;
    tg_raw_host(&raw);
    if (tg_pool_open(NULL, &raw, NULL, &pool) != TG_OK)
        return 0;
    int ok = pass(r, pool);
    tg_pool_get_stats(pool, &first);
    r->n_ns = 0;
    for (int i = 0; ok && i < rounds; i++)
        ok = pass(r, pool);
    times_of(r, &median, &p99);
    tg_pool_get_stats(pool, &last);
    tg_pool_close(&pool, NULL);
    for (int i = 0; ok && i <= rounds; i++) {
        r->n_ns = i ? r->n_ns : 0;
        ok = pass(r, NULL);
    }
    times_of(r, &malloc_median, &malloc_p99);
    if (!ok)
        return 0;
    const double warm = last.allocs > first.allocs ? (double)(last.hits - first.hits) /
                                                         (double)(last.allocs - first.allocs)
                                                   : 0;
    printf(json ? "{\"allocs\":%d,\"hit_rate\":%.5f,\"warm_hit_rate\":%.5f,\"median_ns\":%.0f,"
                  "\"p99_ns\":%.0f,\"malloc_median_ns\":%.0f,\"malloc_p99_ns\":%.0f,"
                  "\"raw_allocs\":%llu,\"peak_bytes\":%llu,\"reserved_peak_bytes\":%llu}\n"
                : "%d allocations: hit rate %.4f on an empty pool, %.4f on a warm one; median "
                  "%.0f ns, 99 %% below %.0f ns (malloc %.0f, %.0f); %llu raw calls, peak %llu "
                  "bytes in %llu reserved\n",
           r->n_allocs, first.hit_rate, warm, median, p99, malloc_median, malloc_p99,
           (unsigned long long)last.raw_allocs, (unsigned long long)last.allocated_peak_bytes,
           (unsigned long long)last.reserved_peak_bytes);
    return median <= l->most_ns && first.hit_rate >= l->least_hits;
}

int main(int argc, char **argv)
{
    int rounds = 20, json = 0, i = 1;
    limits l = {1e9, 0};
    for (; i < argc && argv[i][0] == '-'; i++)
        if (strcmp(argv[i], "--json") == 0)
            json = 1;
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            rounds = atoi(argv[++i]);
        else if (strcmp(argv[i], "--most-ns") == 0 && i + 1 < argc)
            l.most_ns = atof(argv[++i]);
        else if (strcmp(argv[i], "--least-hits") == 0 && i + 1 < argc)
            l.least_hits = atof(argv[++i]);
    replay r = {0};
    if (i + 1 != argc || rounds < 1 || rounds > 10000) {
        fprintf(stderr, "usage: bench_pool [--rounds N] [--json] [--most-ns N] "
                        "[--least-hits SHARE] TIMELINE.json\n");
        return 64;
    }
    const int ok = load(argv[i], rounds, &r) && measure(&r, rounds, json, &l);
    free(r.step);
    free(r.bytes);
    free(r.block);
    free(r.ns);
    return ok ? 0 : 1;
}

/* A pool under random use: blocks never overlap, every number equals a model's, and when all
 * blocks are free each segment is one block again. With an argument: that many operations of
 * each thread; the seeds are fixed. */
#include "engine/base/pool_priv.h"
#include "tests/fake_raw.h"
#include "tests/tg_test.h"

#include <pthread.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define THREADS 4
#define SLOTS 96

static int64_t operations = 250000;

/* ---- Many threads ------------------------------------------------------------------------ */

typedef struct held {
    unsigned char *at;
    size_t bytes;
    uint64_t stamp;
} held;

typedef struct user {
    tg_pool *pool;
    pthread_barrier_t *meet;
    int index;
    held slot[SLOTS];
    uint64_t allocs, frees, bytes, blocks, wrong;
} user;

/* Mostly small, some large: as programs ask. */
static size_t some_size(uint64_t *seed)
{
    const uint64_t r = tg_rand(seed) >> 33, kind = r % 100;
    if (kind < 70)
        return (size_t)(tg_rand(seed) >> 33) % 2000;
    if (kind < 97)
        return (size_t)(tg_rand(seed) >> 33) % (64 * KIB);
    return (size_t)(tg_rand(seed) >> 33) % (3 * MIB);
}

/* A stamp at both ends: whoever overlaps the block writes over one of them. */
static void stamp(held *h, uint64_t value)
{
    h->stamp = value;
    if (h->bytes >= 2 * sizeof value) {
        memcpy(h->at, &value, sizeof value);
        memcpy(h->at + h->bytes - sizeof value, &value, sizeof value);
    }
}

static int intact(const held *h)
{
    return h->bytes < 2 * sizeof h->stamp ||
           (memcmp(h->at, &h->stamp, sizeof h->stamp) == 0 &&
            memcmp(h->at + h->bytes - sizeof h->stamp, &h->stamp, sizeof h->stamp) == 0);
}

static void let_go(user *u, held *h)
{
    u->wrong += !intact(h);
    u->wrong += tg_pool_free(u->pool, h->at) != TG_OK;
    u->frees++;
    u->bytes -= h->bytes;
    u->blocks--;
    h->at = NULL;
}

static void take(user *u, held *h, uint64_t *seed)
{
    static const char *const tags[] = {"a", "b", "c"};
    void *p = NULL;
    h->bytes = some_size(seed);
    if (tg_pool_alloc(u->pool, h->bytes, tags[tg_rand(seed) % 3], &p) != TG_OK) {
        u->wrong++;
        return;
    }
    h->at = p;
    u->wrong += (uintptr_t)p % 256 != 0;
    stamp(h, tg_rand(seed));
    u->allocs++;
    u->bytes += h->bytes;
    u->blocks++;
}

static void *use_pool(void *arg)
{
    user *u = arg;
    uint64_t seed = 77 + (uint64_t)u->index;
    for (int64_t i = 0; i < operations; i++) {
        held *h = &u->slot[tg_rand(&seed) % SLOTS];
        if (h->at)
            let_go(u, h);
        else
            take(u, h, &seed);
        if (u->index == 0 && i % 5000 == 4999)
            (i / 5000 % 3 == 0   ? tg_pool_empty_cache
             : i / 5000 % 3 == 1 ? tg_pool_collect
                                 : tg_pool_compact)(u->pool);
        if (i % (operations / 8) == 0) { /* all stand still while one looks */
            pthread_barrier_wait(u->meet);
            pthread_barrier_wait(u->meet);
        }
    }
    return NULL;
}

static int by_address(const void *a, const void *b)
{
    const tg_pool_block *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

static void check_no_overlap(tg_pool *pool)
{
    static tg_pool_block rows[THREADS * SLOTS];
    const size_t n = tg_pool_large(pool, 1, rows, THREADS * SLOTS);
    CHECK(n <= THREADS * SLOTS);
    qsort(rows, n, sizeof rows[0], by_address);
    for (size_t i = 1; i < n; i++)
        CHECK((const char *)rows[i - 1].at + rows[i - 1].bytes <= (const char *)rows[i].at);
}

static void check_model(tg_pool *pool, const fake *f, const user *users)
{
    uint64_t allocs = 0, frees = 0, bytes = 0, blocks = 0;
    tg_pool_stats s = {.size = sizeof s};
    for (int t = 0; t < THREADS; t++) {
        allocs += users[t].allocs;
        frees += users[t].frees;
        bytes += users[t].bytes;
        blocks += users[t].blocks;
    }
    CHECK_EQ(tg_pool_get_stats(pool, &s), TG_OK);
    CHECK_EQ(s.allocs, allocs);
    CHECK_EQ(s.frees, frees);
    CHECK_EQ(s.live, blocks);
    CHECK_EQ(s.allocated_bytes, bytes);
    CHECK_EQ(s.reserved_bytes, f->held);
    CHECK_EQ(s.raw_allocs, f->allocs);
    CHECK_EQ(s.raw_frees, f->frees);
    CHECK_EQ(s.active_bytes + s.inactive_bytes, s.reserved_bytes);
    CHECK(s.allocated_bytes <= s.active_bytes && s.active_bytes <= s.reserved_bytes);
    CHECK(s.allocated_peak_bytes >= s.allocated_bytes);
    CHECK_STR(tgi_pool_broken(pool) ? tgi_pool_broken(pool) : "fine", "fine");
}

static void test_a_million_operations_of_four_threads_keep_blocks_apart_and_numbers_true(void)
{
    static user users[THREADS];
    pthread_t id[THREADS];
    pthread_barrier_t meet;
    fake f = {.total = 4096 * (uint64_t)MIB};
    const tg_raw raw = fake_raw(&f, TG_MEMORY_HOST);
    const tg_pool_opts o = {.size = sizeof o, .preallocate = {64, 32, 16, 8, 4, 2}};
    tg_pool *pool = NULL;
    CHECK_EQ(tg_pool_open(NULL, &raw, &o, &pool), TG_OK);
    CHECK_EQ(f.allocs, 1);
    CHECK_EQ(pthread_barrier_init(&meet, NULL, THREADS + 1), 0);
    for (int t = 0; t < THREADS; t++) {
        users[t] = (user){.pool = pool, .meet = &meet, .index = t};
        CHECK_EQ(pthread_create(&id[t], NULL, use_pool, &users[t]), 0);
    }
    for (int64_t i = 0; i < operations; i += operations / 8) {
        pthread_barrier_wait(&meet);
        check_model(pool, &f, users);
        check_no_overlap(pool);
        pthread_barrier_wait(&meet);
    }
    for (int t = 0; t < THREADS; t++)
        CHECK_EQ(pthread_join(id[t], NULL), 0);
    for (int t = 0; t < THREADS; t++) {
        for (int i = 0; i < SLOTS; i++)
            if (users[t].slot[i].at)
                let_go(&users[t], &users[t].slot[i]);
        CHECK_EQ(users[t].wrong, 0);
    }
    check_model(pool, &f, users);
    tg_pool_stats s = {.size = sizeof s};
    tg_pool_get_stats(pool, &s);
    printf("%llu allocations, hit rate %.4f, %llu raw calls, peak %llu MiB\n",
           (unsigned long long)s.allocs, s.hit_rate, (unsigned long long)s.raw_allocs,
           (unsigned long long)(s.allocated_peak_bytes / MIB));
    for (const tgi_segment *g = pool->segments; g; g = g->next)
        CHECK(g->room == ROOM_SLOTS || (g->first && g->first == g->last));
    tg_pool_empty_cache(pool);
    CHECK_EQ(f.held, 0);
    tg_pool_close(&pool, NULL);
    pthread_barrier_destroy(&meet);
}

/* ---- One thread, exactly ----------------------------------------------------------------- */

static void test_peaks_of_the_pool_and_of_scopes_equal_a_model_after_every_operation(void)
{
    fake f = {.total = 1024 * (uint64_t)MIB};
    const tg_raw raw = fake_raw(&f, TG_MEMORY_DEVICE);
    uint64_t seed = 5, now = 0, peak = 0, window[4], start[4];
    held slot[SLOTS] = {{0}};
    tgi_scope scope[4];
    tg_pool *pool = NULL;
    int64_t wrong = 0;
    CHECK_EQ(tg_pool_open(NULL, &raw, NULL, &pool), TG_OK);
    for (int i = 0; i < 4; i++) {
        tgi_scope_open(pool, &scope[i]);
        window[i] = start[i] = 0;
    }
    for (int64_t i = 0; i < operations / 4; i++) {
        held *h = &slot[tg_rand(&seed) % SLOTS];
        void *p = NULL;
        if (h->at) {
            wrong += tg_pool_free(pool, h->at) != TG_OK;
            now -= h->bytes;
            h->at = NULL;
        } else {
            h->bytes = some_size(&seed);
            wrong += tg_pool_alloc(pool, h->bytes, "x", &p) != TG_OK;
            h->at = p;
            now += h->bytes;
        }
        peak = now > peak ? now : peak;
        for (int k = 0; k < 4; k++)
            window[k] = now > window[k] ? now : window[k];
        const int k = (int)(tg_rand(&seed) >> 40) % 64;
        uint64_t scope_now, scope_peak;
        if (k < 4) { /* reset one of them: the others do not notice */
            tgi_scope_reset(pool, &scope[k]);
            window[k] = start[k] = now;
        } else if (k < 8) {
            tgi_scope_read(pool, &scope[k - 4], &scope_now, &scope_peak);
            wrong += scope_now != now || scope_peak != window[k - 4] ||
                     scope[k - 4].start_bytes != start[k - 4];
        }
    }
    tg_pool_stats s = {.size = sizeof s};
    tg_pool_get_stats(pool, &s);
    CHECK_EQ(wrong, 0);
    CHECK_EQ(s.allocated_bytes, now);
    CHECK_EQ(s.allocated_peak_bytes, peak);
    for (int i = 0; i < 4; i++)
        tgi_scope_close(pool, &scope[i]);
    CHECK(pool->scopes == NULL);
    tg_pool_close(&pool, NULL);
    CHECK_EQ(f.held, 0);
}

static void test_blocks_freed_in_any_order_merge_to_the_segment_they_were_cut_from(void)
{
    uint64_t seed = 11;
    for (int round = 0; round < 200; round++) {
        fake f = {.total = 64 * (uint64_t)MIB};
        const tg_raw raw = fake_raw(&f, TG_MEMORY_DEVICE);
        const tg_pool_opts o = {.size = sizeof o, .margin_bytes = TG_POOL_NONE};
        void *p[256];
        int n = 0;
        tg_pool *pool = NULL;
        CHECK_EQ(tg_pool_open(NULL, &raw, &o, &pool), TG_OK);
        while (n < 256 && f.allocs < 2) {
            CHECK_EQ(tg_pool_alloc(pool, (size_t)tg_rand_in(&seed, 1, 40000), "x", &p[n]),
                     TG_OK);
            n++;
        }
        CHECK(n > 40);
        for (int i = n - 1; i > 0; i--) { /* shuffle */
            const int j = (int)tg_rand_in(&seed, 0, i);
            void *t = p[i];
            p[i] = p[j];
            p[j] = t;
        }
        for (int i = 0; i < n; i++)
            CHECK_EQ(tg_pool_free(pool, p[i]), TG_OK);
        CHECK_EQ(pool->n_idle, pool->n_segments);
        for (const tgi_segment *g = pool->segments; g; g = g->next)
            CHECK(g->first == g->last && g->first->bytes == g->bytes);
        CHECK(tgi_pool_broken(pool) == NULL);
        tg_pool_close(&pool, NULL);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1)
        operations = atoll(argv[1]);
    RUN(test_a_million_operations_of_four_threads_keep_blocks_apart_and_numbers_true);
    RUN(test_peaks_of_the_pool_and_of_scopes_equal_a_model_after_every_operation);
    RUN(test_blocks_freed_in_any_order_merge_to_the_segment_they_were_cut_from);
    return TEST_END();
}

/* The pool through its public door: classes, limits, cache, statistics, timeline, leaks. */
#include "engine/base/json.h"
#include "engine/base/pool.h"
#include "tests/fake_raw.h"
#include "tests/tg_test.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static tg_pool *open_pool(fake *f, const tg_pool_opts *o)
{
    static const tg_pool_opts plain = {.size = sizeof plain, .margin_bytes = TG_POOL_NONE};
    const tg_raw raw = fake_raw(f, TG_MEMORY_DEVICE);
    tg_pool *pool = NULL;
    CHECK_EQ(tg_pool_open(NULL, &raw, o ? o : &plain, &pool), TG_OK);
    if (!pool)
        exit(1);
    return pool;
}

static tg_pool_stats stats(tg_pool *pool)
{
    tg_pool_stats s = {.size = sizeof s};
    CHECK_EQ(tg_pool_get_stats(pool, &s), TG_OK);
    CHECK_STR(tgi_pool_broken(pool) ? tgi_pool_broken(pool) : "fine", "fine");
    return s;
}

static void *take(tg_pool *pool, size_t bytes)
{
    void *p = NULL;
    CHECK_EQ(tg_pool_alloc(pool, bytes, "test", &p), TG_OK);
    return p;
}

/* ---- Taking and giving ------------------------------------------------------------------- */

static void test_small_requests_share_a_segment_and_come_back_without_a_raw_call(void)
{
    fake f = {.total = 64 * MIB};
    tg_pool *pool = open_pool(&f, NULL);
    void *a = take(pool, 1000), *b = take(pool, 100 * KIB);
    CHECK_EQ(f.allocs, 1);
    CHECK_EQ(f.held, 2 * MIB);
    CHECK_EQ((char *)b - (char *)a, 1024);
    tg_pool_stats s = stats(pool);
    CHECK_EQ(s.allocated_bytes, 1000 + 100 * KIB);
    CHECK_EQ(s.active_bytes, 1024 + 100 * KIB);
    CHECK_EQ(s.reserved_bytes, 2 * MIB);
    CHECK_EQ(s.inactive_bytes, 2 * MIB - 1024 - 100 * KIB);
    CHECK_NEAR(s.fragmentation, (2097152.0 - 1000 - 102400) / 2097152, 1e-12);
    CHECK_EQ(s.cached_bytes, 0);
    CHECK_EQ(tg_pool_free(pool, a), TG_OK);
    CHECK(take(pool, 990) == a); /* the smallest hole that fits, not the large rest */
    s = stats(pool);
    CHECK_EQ(s.allocs, 3);
    CHECK_EQ(s.hits, 2);
    CHECK_NEAR(s.hit_rate, 2.0 / 3, 1e-12);
    tg_pool_close(&pool, NULL);
    CHECK(pool == NULL);
    CHECK_EQ(f.held, 0);
}

static void test_nothing_reserved_is_not_fragmented(void)
{
    fake f = {.total = 64 * MIB};
    tg_pool *pool = open_pool(&f, NULL);
    const tg_pool_stats s = stats(pool);
    CHECK_NEAR(s.fragmentation, 0, 0);
    CHECK_NEAR(s.hit_rate, 0, 0);
    tg_pool_close(&pool, NULL);
}

static void test_the_best_of_several_holes_is_taken(void)
{
    fake f = {.total = 256 * MIB};
    tg_pool *pool = open_pool(&f, NULL);
    static const size_t sizes[] = {9, 5, 7, 6, 8};
    void *hole[5], *wall[5];
    for (int i = 0; i < 5; i++) {
        hole[i] = take(pool, sizes[i] * 10 * KIB);
        wall[i] = take(pool, 256);
    }
    for (int i = 0; i < 5; i++)
        tg_pool_free(pool, hole[i]);
    CHECK(take(pool, 58 * KIB) == hole[3]);
    CHECK(take(pool, 58 * KIB) == hole[2]);
    CHECK(take(pool, 90 * KIB) == hole[0]);
    CHECK(wall[0] != NULL);
    tg_pool_close(&pool, NULL);
}

static void test_what_is_no_block_in_use_is_not_freed(void)
{
    fake f = {.total = 64 * MIB}, g = {.total = 64 * MIB};
    tg_pool *pool = open_pool(&f, NULL), *other = open_pool(&g, NULL);
    char *a = take(pool, 4096);
    CHECK_EQ(tg_pool_free(pool, a + 256), TG_E_ARG);
    CHECK_EQ(tg_pool_free(other, a), TG_E_ARG);
    CHECK_EQ(tg_pool_free(pool, NULL), TG_OK);
    CHECK_EQ(tg_pool_free(pool, a), TG_OK);
    CHECK_EQ(tg_pool_free(pool, a), TG_E_ARG);
    CHECK_EQ(stats(pool).bad_frees, 2);
    CHECK_EQ(tg_pool_free(tg_pool_engine(), a), TG_E_ARG);
    tg_pool_close(&pool, NULL);
    tg_pool_close(&other, NULL);
}

static void test_a_block_of_another_size_keeps_its_contents(void)
{
    fake f = {.total = 64 * MIB};
    const tg_raw raw = fake_raw(&f, TG_MEMORY_HOST);
    tg_pool *pool = NULL;
    const tg_pool_opts o = {.size = sizeof o, .margin_bytes = TG_POOL_NONE};
    CHECK_EQ(tg_pool_open(NULL, &raw, &o, &pool), TG_OK);
    char *p = take(pool, 1000);
    memset(p, 7, 1000);
    char *q = tgi_pool_resize(pool, p, 1020, "here"); /* in its 1024 */
    CHECK(q == p);
    q = tgi_pool_resize(pool, q, 300 * KIB, "here");
    CHECK(q && q != p && q[0] == 7 && q[999] == 7);
    CHECK_EQ(tgi_pool_bytes_of(pool, q), 300 * KIB);
    CHECK_EQ(tgi_pool_bytes_of(pool, p), 0);
    CHECK(tgi_pool_resize(pool, q, 100 * MIB, "here") == NULL); /* refused: as it was */
    CHECK(q[999] == 7);
    CHECK_EQ(stats(pool).live, 1);
    tg_pool_close(&pool, NULL);
}

/* ---- Limits ------------------------------------------------------------------------------ */

static void test_fraction_and_margin_bound_what_is_reserved(void)
{
    fake f = {.total = 100 * MIB};
    const tg_pool_opts o = {.size = sizeof o, .margin_bytes = 10 * MIB};
    tg_pool *pool = open_pool(&f, &o);
    void *p = NULL;
    char text[512];
    CHECK_EQ(tg_pool_alloc(pool, 80 * MIB + 1, "big", &p), TG_E_BUDGET); /* 0.8 of 100 */
    CHECK(tg_pool_detail(pool, text, sizeof text) > 0);
    CHECK(strstr(text, "tried to allocate 80.00 MiB") != NULL);
    CHECK(strstr(text, "free 100.00 MiB, margin 10.00 MiB") != NULL);
    CHECK(strstr(text, "nobody") != NULL);
    CHECK_EQ(tg_pool_alloc(pool, 80 * MIB, "big", &p), TG_OK);
    CHECK_EQ(tg_pool_free(pool, p), TG_OK);
    tg_pool_empty_cache(pool);
    f.others = 15 * MIB; /* free 85, less 10 */
    CHECK_EQ(tg_pool_alloc(pool, 75 * MIB + 1, "big", &p), TG_E_BUDGET);
    CHECK_EQ(tg_pool_alloc(pool, 75 * MIB, "big", &p), TG_OK);
    CHECK_EQ(tg_pool_pressure(pool), 0);
    f.others++;
    CHECK_EQ(tg_pool_pressure(pool), 1);
    CHECK_EQ(stats(pool).pressure, 1);
    CHECK_EQ(tg_pool_alloc(pool, 1, "small", &p), TG_E_BUDGET);
    tg_pool_detail(pool, text, sizeof text);
    CHECK(strstr(text, "held by big 75.00 MiB") != NULL);
    CHECK_EQ(tg_pool_set_memory_fraction(pool, 1.1), TG_E_ARG);
    CHECK_EQ(tg_pool_set_memory_fraction(pool, 0), TG_E_ARG);
    CHECK_EQ(tg_pool_set_memory_fraction(pool, 1), TG_OK);
    tg_pool_close(&pool, NULL);
}

static void test_the_margin_is_512_MiB_or_a_tenth_unless_said(void)
{
    static const uint64_t totals[] = {2048, 16384};
    static const uint64_t margins[] = {512 * MIB, 16384 * MIB / 10};
    for (int i = 0; i < 2; i++) {
        fake f = {.total = totals[i] * MIB};
        const tg_pool_opts o = {.size = sizeof o};
        tg_pool *pool = open_pool(&f, &o);
        f.others = f.total - margins[i];
        CHECK_EQ(tg_pool_pressure(pool), 0);
        f.others++;
        CHECK_EQ(tg_pool_pressure(pool), 1);
        tg_pool_close(&pool, NULL);
    }
}

static void test_the_cache_limit_gives_back_rarely_used_sizes_first(void)
{
    fake f = {.total = 1024 * MIB};
    const tg_pool_opts o = {.size = sizeof o,
                            .margin_bytes = TG_POOL_NONE,
                            .cache_limit = "1%",
                            .compact_above = 1};
    tg_pool *pool = open_pool(&f, &o); /* 10.24 MiB */
    void *often = NULL, *rare;
    for (int i = 0; i < 5; i++) {
        often = take(pool, 6 * MIB);
        tg_pool_free(pool, often);
    }
    CHECK_EQ(f.allocs, 1);
    rare = take(pool, 8 * MIB);
    tg_pool_free(pool, rare); /* 14 MiB idle are too much */
    CHECK_EQ(stats(pool).inactive_bytes, 6 * MIB);
    CHECK(take(pool, 6 * MIB) == often);
    CHECK_EQ(f.allocs, 2);
    tg_pool_free(pool, often);
    CHECK_EQ(tg_pool_set_cache_limit(pool, "5 apples"), TG_E_ARG);
    CHECK_EQ(f.held, 6 * MIB);
    CHECK_EQ(tg_pool_set_cache_limit(pool, "5MiB"), TG_OK);
    CHECK_EQ(f.held, 0);
    tg_pool_close(&pool, NULL);
}

static void test_collecting_keeps_what_is_often_asked_for(void)
{
    fake f = {.total = 1024 * MIB};
    const tg_pool_opts o = {.size = sizeof o, .margin_bytes = TG_POOL_NONE, .compact_above = 1};
    tg_pool *pool = open_pool(&f, &o);
    for (int i = 0; i < 3; i++)
        tg_pool_free(pool, take(pool, 6 * MIB));
    tg_pool_free(pool, take(pool, 20 * MIB));
    CHECK_EQ(stats(pool).cached_bytes, 26 * MIB);
    CHECK_EQ(tg_pool_collect(pool), 20 * MIB);
    CHECK_EQ(tg_pool_collect(pool), 0);
    CHECK_EQ(f.held, 6 * MIB);
    CHECK_EQ(tg_pool_empty_cache(pool), 6 * MIB);
    CHECK_EQ(f.held, 0);
    tg_pool_close(&pool, NULL);
}

static void test_twice_is_often_and_what_was_asked_for_long_ago_counts_half(void)
{
    fake f = {.total = 1024 * MIB};
    const tg_pool_opts o = {.size = sizeof o, .margin_bytes = TG_POOL_NONE, .compact_above = 1};
    tg_pool *pool = open_pool(&f, &o);
    for (int i = 0; i < 3; i++)
        tg_pool_free(pool, take(pool, 6 * MIB));
    for (int i = 0; i < 2; i++)
        tg_pool_free(pool, take(pool, 20 * MIB));
    tg_pool_free(pool, take(pool, 50 * MIB));
    CHECK_EQ(tg_pool_collect(pool), 50 * MIB); /* once is rarely, twice is not */
    while (tgi_pool_requests(pool) < 8191)
        tg_pool_free(pool, take(pool, 1000));
    CHECK_EQ(tg_pool_collect(pool), 0);
    tg_pool_free(pool, take(pool, 1000)); /* the 8,192nd: 3 and 2 become 1 */
    CHECK_EQ(tg_pool_collect(pool), 26 * MIB);
    CHECK_EQ(f.held, 2 * MIB); /* thousands of 1000 bytes are remembered */
    tg_pool_close(&pool, NULL);
}

static void test_compaction_returns_half_of_what_is_reserved_to_the_raw_allocator(void)
{
    fake f = {.total = 1024 * MIB};
    tg_pool *pool = open_pool(&f, NULL);
    void *p[20];
    for (int i = 0; i < 20; i++)
        p[i] = take(pool, 4 * MIB);
    for (int i = 0; i < 20; i += 2)
        tg_pool_free(pool, p[i]);
    CHECK_NEAR(stats(pool).fragmentation, 0.5, 1e-12);
    CHECK_EQ(f.held, 80 * MIB);
    CHECK_EQ(tg_pool_compact(pool), 40 * MIB);
    CHECK_EQ(f.held, 40 * MIB);
    CHECK_EQ(f.frees, 10);
    CHECK(stats(pool).fragmentation < 0.05);
    tg_pool_close(&pool, NULL);
}

static void test_a_pool_about_to_grow_compacts_when_too_much_lies_idle(void)
{
    fake f = {.total = 1024 * MIB};
    tg_pool *pool = open_pool(&f, NULL);
    void *p[10];
    for (int i = 0; i < 10; i++)
        p[i] = take(pool, 4 * MIB);
    for (int i = 0; i < 3; i++)
        tg_pool_free(pool, p[i]);
    take(pool, 8 * MIB); /* 0.3 idle: not above */
    CHECK_EQ(f.frees, 0);
    for (int i = 3; i < 6; i++)
        tg_pool_free(pool, p[i]); /* 24 of 48 idle */
    take(pool, 9 * MIB);
    CHECK_EQ(f.frees, 4); /* 8 of 32 are 0.25 */
    tg_pool_close(&pool, NULL);
}

static void test_a_refusal_first_empties_the_cache(void)
{
    fake f = {.total = 20 * MIB};
    const tg_pool_opts o = {.size = sizeof o,
                            .margin_bytes = TG_POOL_NONE,
                            .memory_fraction = 1,
                            .compact_above = 1};
    tg_pool *pool = open_pool(&f, &o);
    tg_pool_free(pool, take(pool, 12 * MIB));
    take(pool, 16 * MIB);
    CHECK_EQ(f.held, 16 * MIB);
    take(pool, 2 * MIB);
    take(pool, 1 * MIB); /* wants 2 MiB to carve from, takes them: 20 */
    void *p = NULL;
    CHECK_EQ(tg_pool_alloc(pool, 2 * MIB, "x", &p), TG_E_BUDGET);
    CHECK(p == NULL);
    CHECK_EQ(stats(pool).refused, 1);
    tg_pool_close(&pool, NULL);
}

static void test_preallocated_classes_come_out_of_one_segment(void)
{
    fake f = {.total = 1024 * MIB};
    const tg_pool_opts o = {.size = sizeof o,
                            .margin_bytes = TG_POOL_NONE,
                            .preallocate = {10, 10, 10, 10, 10, 10}};
    tg_pool *pool = open_pool(&f, &o);
    void *p[60];
    static const size_t sizes[] = {1024, 4096, 16 * KIB, 64 * KIB, 256 * KIB, MIB};
    CHECK_EQ(f.allocs, 1);
    CHECK_EQ(f.held, 10 * (1024 + 4096 + 16 * KIB + 64 * KIB + 256 * KIB + MIB) / 4096 * 4096 +
                         (10 * 1024 % 4096 ? 4096 : 0));
    for (int i = 0; i < 60; i++)
        p[i] = take(pool, sizes[i / 10] - (size_t)(i % 3));
    CHECK_EQ(f.allocs, 1);
    CHECK_NEAR(stats(pool).hit_rate, 1, 0);
    take(pool, 1000);
    CHECK_EQ(f.allocs, 2);
    for (int i = 0; i < 60; i++)
        CHECK_EQ(tg_pool_free(pool, p[i]), TG_OK);
    CHECK_EQ(tg_pool_compact(pool), 0); /* was asked for: stays */
    CHECK(tg_pool_empty_cache(pool) > 13 * MIB);
    CHECK_EQ(f.held, 2 * MIB);
    tg_pool_close(&pool, NULL);
}

static void test_wrong_options_are_named(void)
{
    fake f = {.total = 64 * MIB};
    tg_raw raw = fake_raw(&f, TG_MEMORY_HOST);
    tg_ctx *ctx = NULL;
    tg_pool *pool = NULL;
    CHECK_EQ(tg_ctx_open(NULL, &ctx), TG_OK);
    const tg_pool_opts wrong[] = {{.size = 1},
                                  {.size = sizeof *wrong, .memory_fraction = 1.5},
                                  {.size = sizeof *wrong, .memory_fraction = NAN},
                                  {.size = sizeof *wrong, .compact_above = -1},
                                  {.size = sizeof *wrong, .align_bytes = 100},
                                  {.size = sizeof *wrong, .cache_limit = "12"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_EQ(tg_pool_open(ctx, &raw, &wrong[i], &pool), TG_E_ARG);
        CHECK(*tg_ctx_detail(ctx) != 0 && pool == NULL);
    }
    raw.alloc = NULL;
    CHECK_EQ(tg_pool_open(ctx, &raw, NULL, &pool), TG_E_ARG);
    CHECK_EQ(tg_pool_open(ctx, NULL, NULL, &pool), TG_E_ARG);
    tg_ctx_close(&ctx);
}

/* ---- Refusals ---------------------------------------------------------------------------- */

static void test_every_raw_allocation_may_fail(void)
{
    static const size_t sizes[] = {100, 3 * MIB, 900 * KIB, 900 * KIB, 900 * KIB, 5 * MIB, 40};
    for (uint64_t n = 1; n <= 2; n++) /* once: a second try may help; twice: it does not */
        for (uint64_t k = 1; k <= 8; k++) {
            fake f = {.total = 1024 * MIB, .fail_from = k, .fail_n = n};
            tg_pool *pool = open_pool(&f, NULL);
            int refused = 0;
            for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
                void *p = NULL;
                const tg_status st = tg_pool_alloc(pool, sizes[i], "x", &p);
                CHECK(st == TG_OK ? p != NULL : st == TG_E_NOMEM && p == NULL);
                refused += st != TG_OK;
                CHECK(tgi_pool_broken(pool) == NULL);
            }
            CHECK(refused <= (int)n);
            CHECK_EQ(stats(pool).refused, refused);
            CHECK_EQ(stats(pool).live, 7 - refused);
            tg_pool_close(&pool, NULL);
            CHECK_EQ(f.held, 0);
        }
}

static void test_requests_of_the_library_fail_at_the_raw_call_too(void)
{
    tgi_mem_trim();
    for (int large = 0; large < 2; large++) {
        const size_t bytes = large ? 3 * MIB : 100;
        tgi_mem_fail_raw_at(1);
        CHECK(tgi_malloc(TGI_TAG_MISC, bytes) == NULL);
        void *p = tgi_malloc(TGI_TAG_MISC, bytes);
        CHECK(p != NULL);
        tgi_mem_fail_at(1);
        CHECK(tgi_realloc_n(TGI_TAG_MISC, p, 2, bytes) == NULL);
        p = tgi_realloc_n(TGI_TAG_MISC, p, 2, bytes);
        CHECK(p != NULL);
        tgi_free(p);
    }
    tgi_mem_fail_raw_at(0);
}

static void test_memory_of_the_library_grows_shrinks_and_is_zeroed(void)
{
    unsigned char *p = tgi_malloc(TGI_TAG_MISC, 10);
    size_t n = 10;
    memset(p, 1, 10);
    for (int i = 0; i < 14; i++) { /* across the border between malloc and pages */
        p = tgi_realloc_n(TGI_TAG_MISC, p, n * 3, 1);
        CHECK(p && p[0] == 1 && p[n - 1] == 1);
        n *= 3;
        memset(p, 1, n);
    }
    CHECK(n > 40 * MIB);
    p = tgi_realloc_n(TGI_TAG_MISC, p, 100, 1);
    CHECK(p && p[99] == 1);
    tgi_free(p);
    for (int i = 0; i < 3; i++) { /* the second comes out of the cache, full of ones */
        p = tgi_calloc(TGI_TAG_MISC, 1, MIB);
        size_t sum = 0;
        for (size_t k = 0; k < MIB; k++)
            sum += p[k];
        CHECK_EQ(sum, 0);
        memset(p, 1, MIB);
        tgi_free(p);
    }
    CHECK_STR(tgi_pool_broken(tgi_pool_engine()) ? "broken" : "fine", "fine");
    tg_pool_stats s = {.size = sizeof s};
    CHECK_EQ(tg_pool_get_stats(tg_pool_engine(), &s), TG_OK);
    CHECK(s.inactive_bytes <= 4 * MIB);
    tgi_mem_trim();
}

/* ---- Looking ----------------------------------------------------------------------------- */

static void test_large_blocks_are_listed_with_their_place(void)
{
    fake f = {.total = 1024 * MIB};
    tg_pool *pool = open_pool(&f, NULL);
    tg_pool_block row[2];
    void *p = NULL;
    take(pool, 99 * MIB);
    const int line = __LINE__ + 1;
    CHECK_EQ(tg_pool_alloc(pool, 100 * MIB, "frames", &p), TG_OK);
    char want[64];
    snprintf(want, sizeof want, "tests/unit/test_pool.c:%d", line);
    CHECK_EQ(tg_pool_large(pool, 0, row, 2), 1);
    CHECK(row[0].at == p && row[0].bytes == 100 * MIB);
    CHECK_STR(row[0].tag, "frames");
    CHECK_STR(row[0].site, want);
    CHECK_EQ(tg_pool_large(pool, 1, row, 1), 2);
    CHECK_EQ(row[0].bytes, 99 * MIB);
    char *text = NULL;
    CHECK_EQ(tg_pool_report(pool, &text), TG_OK);
    CHECK(strstr(text, "large:   100.00 MiB of frames") && strstr(text, want));
    CHECK(strstr(text, "pool device 0\n") && strstr(text, "fragmentation"));
    tg_text_free(text);
    tg_pool_close(&pool, NULL);
}

static void test_the_report_says_who_holds_what(void)
{
    fake f = {.total = 1024 * MIB};
    tg_pool *pool = open_pool(&f, NULL);
    char want[1024], *text = NULL;
    void *p = NULL;
    take(pool, 1000);
    const int line = __LINE__ + 1;
    CHECK_EQ(tg_pool_alloc(pool, 100 * MIB, "frames", &p), TG_OK);
    tg_pool_free(pool, take(pool, 8 * MIB));
    snprintf(want, sizeof want,
             "pool device 0\n"
             "  allocated       100.00 MiB   peak   108.00 MiB\n"
             "  reserved        110.00 MiB   peak   110.00 MiB\n"
             "  active          100.00 MiB   peak   108.00 MiB\n"
             "  inactive         10.00 MiB   peak    10.00 MiB\n"
             "  fragmentation         9.1 %%\n"
             "  3 allocations, 1 frees, 2 in use, hit rate 0.0 %%\n"
             "  3 raw allocations, 0 raw frees, 3 segments, 0 refused\n"
             "  held by test               1000 B\n"
             "  held by frames         100.00 MiB\n"
             "  large:   100.00 MiB of frames, allocated at tests/unit/test_pool.c:%d\n",
             line);
    CHECK_EQ(tg_pool_report(pool, &text), TG_OK);
    CHECK_STR(text, want);
    tg_text_free(text);
    tg_pool_profile(pool, 1);
    tg_pool_free(pool, take(pool, 8 * MIB));
    CHECK_EQ(tg_pool_free(pool, &f), TG_E_ARG);
    CHECK_EQ(tg_pool_report(pool, &text), TG_OK);
    CHECK(strstr(text, " us an allocation, mean of 1\n") != NULL);
    CHECK(strstr(text, "  1 frees of what was no block in use\n") != NULL);
    tg_text_free(text);
    tg_pool_close(&pool, NULL);
}

static void test_holders_are_told_by_tag(void)
{
    fake f = {.total = 1024 * MIB};
    tg_pool *pool = open_pool(&f, NULL);
    const char *tag[4];
    uint64_t bytes[4];
    void *p = NULL;
    CHECK_EQ(tgi_pool_holders(pool, tag, bytes, 4), 0);
    take(pool, 1000);
    take(pool, 24);
    CHECK_EQ(tg_pool_alloc(pool, 7 * MIB, "frames", &p), TG_OK);
    CHECK_EQ(tgi_pool_holders(pool, tag, bytes, 4), 2);
    CHECK_STR(tag[0], "test");
    CHECK_EQ(bytes[0], 1024);
    CHECK_STR(tag[1], "frames");
    CHECK_EQ(bytes[1], 7 * MIB);
    CHECK_EQ(tgi_pool_holders(pool, tag, bytes, 1), 1);
    tg_pool_free(pool, p);
    CHECK_EQ(tgi_pool_holders(pool, tag, bytes, 4), 1);
    tg_pool_close(&pool, NULL);
}

static void test_pinned_memory_is_known_as_such(void)
{
    tg_raw raw;
    tg_pool *pool = NULL;
    const tg_pool_opts o = {.size = sizeof o, .segment_bytes = TG_POOL_NONE};
    void *p = NULL;
    tg_raw_pinned(&raw);
    CHECK_EQ(tg_pool_open(NULL, &raw, &o, &pool), TG_OK);
    if (tg_pool_alloc(pool, 8192, "staging", &p) == TG_OK) { /* RLIMIT_MEMLOCK may be 0 */
        memset(p, 1, 8192);
        CHECK_EQ(tg_pool_is_pinned(pool, (char *)p + 8191), 1);
        CHECK_EQ(tg_pool_is_pinned(pool, &raw), 0);
    }
    tg_pool_close(&pool, NULL);
    tg_raw_host(&raw);
    CHECK_EQ(tg_pool_open(NULL, &raw, NULL, &pool), TG_OK);
    CHECK_EQ(tg_pool_alloc(pool, 5 * MIB, "x", &p), TG_OK);
    CHECK_EQ(tg_pool_is_pinned(pool, p), 0);
    CHECK(raw.total_bytes(NULL) > raw.free_bytes(NULL));
    tg_pool_close(&pool, NULL);
}

static void test_peaks_can_be_counted_anew(void)
{
    fake f = {.total = 1024 * MIB};
    tg_pool *pool = open_pool(&f, NULL);
    tg_pool_free(pool, take(pool, 50 * MIB));
    take(pool, 10 * MIB); /* out of the 50, as the rest is worth keeping */
    tg_pool_stats s = stats(pool);
    CHECK_EQ(s.allocated_peak_bytes, 50 * MIB);
    CHECK_EQ(s.active_peak_bytes, 50 * MIB);
    CHECK_EQ(s.reserved_peak_bytes, 50 * MIB);
    CHECK_EQ(s.inactive_peak_bytes, 50 * MIB);
    tg_pool_reset_peaks(pool);
    s = stats(pool);
    CHECK_EQ(s.allocated_peak_bytes, 10 * MIB);
    CHECK_EQ(s.inactive_peak_bytes, 40 * MIB);
    tg_pool_close(&pool, NULL);
}

typedef struct pieces {
    char at[4096];
    size_t n;
} pieces;

static int append(void *user, const char *s, size_t n)
{
    pieces *t = user;
    if (t->n + n > sizeof t->at)
        return 1;
    memcpy(t->at + t->n, s, n);
    t->n += n;
    return 0;
}

/* In a file, or in memory. */
static tg_status begin_timeline(tg_pool *pool, int in_file)
{
    char name[] = "tegula_timeline_XXXXXX";
    if (!in_file)
        return tg_pool_profile(pool, 1);
    const int fd = mkstemp(name);
    CHECK(fd >= 0 && unlink(name) == 0);
    const tg_status st = tgi_pool_profile_file(pool, fd);
    close(fd);
    return st;
}

static void check_timeline(int in_file)
{
    fake f = {.total = 1024 * MIB};
    tg_pool *pool = open_pool(&f, NULL);
    static pieces t;
    tgi_json *doc = NULL;
    tgi_err e = {0};
    void *p = NULL;
    void *before = take(pool, 77); /* not in it */
    t.n = 0;
    CHECK_EQ(begin_timeline(pool, in_file), TG_OK);
    void *a = take(pool, 1000);
    CHECK_EQ(tg_pool_alloc_at(pool, 2000, "a\"b", "odd\\path.c:1", &p), TG_OK);
    tg_pool_free(pool, a);
    tg_pool_free(pool, before);
    CHECK_EQ(tg_pool_profile(pool, 0), TG_OK);
    take(pool, 5); /* nor this */
    CHECK_EQ(tg_pool_timeline(pool, append, &t), TG_OK);
    CHECK_OK(tgi_json_parse(t.at, t.n, "timeline", &doc, &e), e);
    const tgi_json *events = tgi_json_get(doc, "events");
    const tgi_json *x = tgi_json_first(events), *y = tgi_json_next(x);
    const char *tag = NULL, *site = NULL;
    int64_t begin = -1, end = -1, bytes = 0;
    CHECK(x && y && !tgi_json_next(y));
    CHECK(tgi_json_int(tgi_json_get(x, "begin_ns"), &begin) &&
          tgi_json_int(tgi_json_get(x, "end_ns"), &end) && 0 <= begin && begin < end);
    CHECK(tgi_json_int(tgi_json_get(x, "bytes"), &bytes) && bytes == 1000);
    CHECK(tgi_json_str(tgi_json_get(y, "tag"), &tag) && strcmp(tag, "a\"b") == 0);
    CHECK(tgi_json_str(tgi_json_get(y, "site"), &site) && strcmp(site, "odd\\path.c:1") == 0);
    CHECK(!tgi_json_int(tgi_json_get(y, "end_ns"), &end)); /* null: in use */
    tgi_json_free(&doc);
    t.n = sizeof t.at - 10;
    CHECK_EQ(tg_pool_timeline(pool, append, &t), TG_E_IO);
    tg_pool_close(&pool, NULL);
}

static void test_the_timeline_is_JSON_with_begin_end_size_tag_and_site(void)
{
    check_timeline(0);
    check_timeline(1);
}

/* More events than one chunk has; then one in memory again. */
static void test_a_timeline_in_a_file_grows_and_needs_a_disk(void)
{
    fake f = {.total = 1024 * MIB};
    tg_pool *pool = open_pool(&f, NULL);
    CHECK_EQ(begin_timeline(pool, 1), TG_OK);
    for (int i = 0; i < 10000; i++)
        tg_pool_free(pool, take(pool, 16));
    CHECK_EQ(tg_pool_profile(pool, 0), TG_OK);
    static pieces t;
    t.n = 0;
    CHECK_EQ(tg_pool_timeline(pool, append, &t), TG_E_IO); /* `pieces` is too small */
    CHECK(strstr(t.at, "\"recorded\":10000,\"dropped\":0") != NULL);
    CHECK_EQ(tg_pool_profile(pool, 1), TG_OK);
    CHECK_EQ(tg_pool_profile(pool, 0), TG_OK);
    CHECK_EQ(tgi_pool_profile_file(pool, -1), TG_E_ARG);
    CHECK_EQ(tg_pool_profile_in(pool, NULL), TG_E_ARG);
    CHECK_EQ(tg_pool_profile_in(pool, "no_such_folder"), TG_E_NOT_FOUND);
    struct statfs s; /* some containers have neither */
    if (statfs("/dev/shm", &s) == 0 && s.f_type == TMPFS_MAGIC && access("/dev/shm", W_OK) == 0)
        CHECK_EQ(tg_pool_profile_in(pool, "/dev/shm"), TG_E_UNSUPPORTED);
    const int fd = open("/dev/full", O_RDWR);
    CHECK(fd < 0 || tgi_pool_profile_file(pool, fd) == TG_E_IO);
    if (fd >= 0)
        close(fd);
    tg_pool_close(&pool, NULL);
}

/* ---- Leaks ------------------------------------------------------------------------------- */

static void test_a_planted_leak_is_reported_with_file_and_line(void)
{
    fake f = {.total = 1024 * MIB};
    tg_pool *pool = open_pool(&f, NULL);
    tg_pool_checkpoint a = {.size = sizeof a}, b = {.size = sizeof b};
    char line[64], *leaks = NULL, want[160];
    void *p = NULL;
    tg_pool_free(pool, take(pool, 4000));
    CHECK_EQ(tg_pool_leaks(pool, &leaks), TG_OK);
    CHECK_STR(leaks, "no leak\n");
    tg_text_free(leaks);
    void *old = take(pool, 100);
    CHECK_EQ(tg_pool_check(pool, &a), TG_OK);
    CHECK_EQ(tg_pool_check(pool, &b), TG_OK);
    CHECK_EQ(tg_pool_compare(&a, &b, line, sizeof line), 0);
    CHECK_STR(line, "no leak");
    const int at = __LINE__ + 1;
    CHECK_EQ(tg_pool_alloc(pool, 3 * MIB / 2, "frames", &p), TG_OK);
    CHECK_EQ(tg_pool_check(pool, &b), TG_OK);
    CHECK_EQ(tg_pool_compare(&a, &b, line, sizeof line), 3 * MIB / 2);
    CHECK_STR(line, "leak: 1.50 MiB");
    CHECK_EQ(tg_pool_compare(&b, &a, line, sizeof line), 0);
    CHECK_STR(line, "no leak");
    snprintf(
        want, sizeof want,
        "leak: 1572864 bytes of frames, allocated at tests/unit/test_pool.c:%d (number 3)\n"
        "leak: 1.50 MiB in 1 blocks of pool device 0\n",
        at);
    CHECK_EQ(tg_pool_leaks_since(pool, &a, &leaks), TG_OK);
    CHECK_STR(leaks, want);
    tg_text_free(leaks);
    tg_pool_free(pool, old);
    tg_pool_close(&pool, &leaks);
    CHECK_STR(leaks, want);
    tg_text_free(leaks);
    CHECK_EQ(f.held, 0); /* given back all the same */
}

static void test_leak_checking_is_switched_while_running(void)
{
    fake f = {.total = 1024 * MIB};
    tg_pool *pool = open_pool(&f, NULL);
    char *leaks = NULL;
    take(pool, 100);
    tg_pool_leak_check(pool, 0);
    CHECK_EQ(tg_pool_leaks(pool, &leaks), TG_OK);
    CHECK_STR(leaks, "no leak\n");
    tg_text_free(leaks);
    tg_pool_leak_check(pool, 1); /* from here on */
    CHECK_EQ(tg_pool_leaks(pool, &leaks), TG_OK);
    CHECK_STR(leaks, "no leak\n");
    tg_text_free(leaks);
    take(pool, 333);
    CHECK_EQ(tg_pool_leaks(pool, &leaks), TG_OK);
    CHECK(strncmp(leaks, "leak: 333 bytes of test", 23) == 0);
    tg_text_free(leaks);
    tg_pool_leak_check(pool, 0);
    tg_pool_close(&pool, &leaks);
    CHECK(leaks == NULL);
}

static void test_the_librarys_own_leaks_name_their_place(void)
{
    char text[512], want[64];
    const int line = __LINE__ + 1;
    void *p = tgi_malloc(TGI_TAG_IO, 40);
    tgi_pool_leak_text(tgi_pool_engine(), 0, UINT64_MAX, text, sizeof text);
    snprintf(want, sizeof want, "40 bytes of io, allocated at tests/unit/test_pool.c:%d", line);
    CHECK(strstr(text, want) != NULL);
    tgi_free(p);
    tgi_pool_leak_text(tgi_pool_engine(), 0, UINT64_MAX, text, sizeof text);
    CHECK_STR(text, "no leak\n");
}

int main(void)
{
    RUN(test_small_requests_share_a_segment_and_come_back_without_a_raw_call);
    RUN(test_nothing_reserved_is_not_fragmented);
    RUN(test_the_best_of_several_holes_is_taken);
    RUN(test_what_is_no_block_in_use_is_not_freed);
    RUN(test_a_block_of_another_size_keeps_its_contents);
    RUN(test_fraction_and_margin_bound_what_is_reserved);
    RUN(test_the_margin_is_512_MiB_or_a_tenth_unless_said);
    RUN(test_the_cache_limit_gives_back_rarely_used_sizes_first);
    RUN(test_collecting_keeps_what_is_often_asked_for);
    RUN(test_twice_is_often_and_what_was_asked_for_long_ago_counts_half);
    RUN(test_compaction_returns_half_of_what_is_reserved_to_the_raw_allocator);
    RUN(test_a_pool_about_to_grow_compacts_when_too_much_lies_idle);
    RUN(test_a_refusal_first_empties_the_cache);
    RUN(test_preallocated_classes_come_out_of_one_segment);
    RUN(test_wrong_options_are_named);
    RUN(test_every_raw_allocation_may_fail);
    RUN(test_requests_of_the_library_fail_at_the_raw_call_too);
    RUN(test_memory_of_the_library_grows_shrinks_and_is_zeroed);
    RUN(test_large_blocks_are_listed_with_their_place);
    RUN(test_the_report_says_who_holds_what);
    RUN(test_holders_are_told_by_tag);
    RUN(test_pinned_memory_is_known_as_such);
    RUN(test_peaks_can_be_counted_anew);
    RUN(test_the_timeline_is_JSON_with_begin_end_size_tag_and_site);
    RUN(test_a_timeline_in_a_file_grows_and_needs_a_disk);
    RUN(test_a_planted_leak_is_reported_with_file_and_line);
    RUN(test_leak_checking_is_switched_while_running);
    RUN(test_the_librarys_own_leaks_name_their_place);
    return TEST_END();
}

/* Traces: golden lines with numbers that are not zero, and every way out of a scope. */
#define TG_TRACE_EMIT keep_line
static void keep_line(void *user, const char *line);

#include "tests/fake_raw.h"
#include "tests/tg_test.h"

#include <tegula_trace.h>

#include <pthread.h>

#define MIB ((size_t)1 << 20)

static char said[4096];

static void keep_line(void *user, const char *line)
{
    (void)user;
    snprintf(said + strlen(said), sizeof said - strlen(said), "%s\n", line);
}

static fake memory;
static tg_pool *pool;

static void *take(size_t mib)
{
    void *p = NULL;
    CHECK_EQ(tg_pool_alloc(pool, mib * MIB, "test", &p), TG_OK);
    return p;
}

static void give(void *p)
{
    CHECK_EQ(tg_pool_free(pool, p), TG_OK);
}

static void expect(const char *text)
{
    CHECK_STR(said, text);
    said[0] = 0;
}

static tg_trace_opts named(const char *ctx)
{
    return (tg_trace_opts){.size = sizeof(tg_trace_opts), .ctx = ctx, .emit = keep_line};
}

static void test_used_and_peaked_are_told_apart(void)
{
    tg_trace t;
    const tg_trace_opts o = named(NULL);
    void *before = take(30); /* not counted: it was there */
    CHECK_EQ(tg_trace_begin(&t, pool, &o), TG_OK);
    void *kept = take(40);
    give(take(200));
    tg_trace_report(&t, NULL);
    give(kept);
    tg_trace_report(&t, NULL); /* 240 at the peak, none of it used now */
    give(before);
    tg_trace_report(&t, NULL); /* less than at the start */
    tg_trace_end(&t);
    expect("△Used Peaked MB:     40    200\n"
           "△Used Peaked MB:      0    240\n"
           "△Used Peaked MB:    -30    240\n"
           "△Used Peaked MB:    -30    240 (exit)\n");
}

static void test_context_and_subcontext_are_shown_where_they_are(void)
{
    tg_trace t;
    char line[TG_TRACE_TEXT];
    tg_trace_opts o = named("train");
    CHECK_EQ(tg_trace_begin(&t, pool, &o), TG_OK);
    void *p = take(12345);
    CHECK_STR(tg_trace_to_string(&t, NULL, line, sizeof line),
              "△Used Peaked MB:  12345      0 (train)");
    tg_trace_report(&t, "after load");
    tg_trace_report_n_reset(&t, "epoch 1");
    give(take(7));
    tg_trace_report(&t, "epoch 2");
    tg_trace_end(&t);
    tg_trace_end(&t); /* once */
    give(p);
    expect("△Used Peaked MB:  12345      0 (train: after load)\n"
           "△Used Peaked MB:  12345      0 (train: epoch 1)\n"
           "△Used Peaked MB:      0      7 (train: epoch 2)\n"
           "△Used Peaked MB:      0      7 (train: exit)\n");
    o = named(NULL);
    o.no_exit_report = 1;
    CHECK_EQ(tg_trace_begin(&t, pool, &o), TG_OK);
    CHECK_STR(tg_trace_to_string(&t, "alone", line, sizeof line),
              "△Used Peaked MB:      0      0 (alone)");
    CHECK_STR(tg_trace_to_string(&t, "alone", line, 19), "△Used Peaked MB:");
    tg_trace_end(&t);
    expect("");
}

static void test_a_stopped_trace_keeps_its_values(void)
{
    tg_trace t;
    tg_trace_data d;
    const tg_trace_opts o = named("stop");
    CHECK_EQ(tg_trace_begin(&t, pool, &o), TG_OK);
    void *p = take(5);
    give(take(9));
    tg_trace_stop(&t);
    void *q = take(100);
    CHECK_EQ(tg_trace_get(&t, &d), TG_OK);
    CHECK(d.used_bytes == (int64_t)(5 * MIB) && d.peaked_bytes == (int64_t)(9 * MIB));
    CHECK(d.used_mib == 5 && d.peaked_mib == 9);
    tg_trace_reset(&t); /* stopped: nothing to count from */
    tg_trace_stop(&t);
    tg_trace_report(&t, "frozen");
    tg_trace_start(&t); /* counts from here */
    give(q);
    tg_trace_report(&t, "again");
    tg_trace_end(&t);
    CHECK_EQ(tg_trace_get(&t, &d), TG_OK); /* readable after the end */
    CHECK_EQ(d.used_mib, -100);
    tg_trace_start(&t); /* for good */
    CHECK_EQ(tg_trace_get(&t, &d), TG_OK);
    CHECK_EQ(d.used_mib, -100);
    give(p);
    expect("△Used Peaked MB:      5      9 (stop: frozen)\n"
           "△Used Peaked MB:   -100      0 (stop: again)\n"
           "△Used Peaked MB:   -100      0 (stop: exit)\n");
}

static void test_silence_is_switched_back_and_forth(void)
{
    tg_trace t;
    tg_trace_opts o = named("quiet");
    o.silent = 1;
    CHECK_EQ(tg_trace_begin(&t, pool, &o), TG_OK);
    void *p = take(3);
    tg_trace_report(&t, "no");
    tg_trace_silent(&t, 0);
    tg_trace_report(&t, "yes");
    tg_trace_silent(&t, 1);
    tg_trace_report_n_reset(&t, "no"); /* silent, but reset */
    tg_trace_silent(&t, 0);
    tg_trace_report(&t, "reset");
    tg_trace_silent(&t, 1);
    tg_trace_end(&t);
    give(p);
    expect("△Used Peaked MB:      3      0 (quiet: yes)\n"
           "△Used Peaked MB:      0      0 (quiet: reset)\n");
}

static void test_traces_overlap_and_reset_without_noticing_each_other(void)
{
    tg_trace a, b, c;
    tg_trace_data d;
    tg_trace_opts o = named(NULL);
    o.silent = 1;
    tg_trace_begin(&a, pool, &o);
    give(take(50));
    tg_trace_begin(&b, pool, &o);
    void *p = take(20);
    give(take(10));
    tg_trace_begin(&c, pool, &o);
    tg_trace_reset(&b);
    give(take(5));
    tg_trace_get(&a, &d);
    CHECK(d.used_mib == 20 && d.peaked_mib == 30); /* 50 less the 20 */
    tg_trace_get(&b, &d);
    CHECK(d.used_mib == 0 && d.peaked_mib == 5);
    tg_trace_end(&b); /* not the last begun */
    tg_trace_get(&c, &d);
    CHECK(d.used_mib == 0 && d.peaked_mib == 5);
    give(p);
    tg_trace_get(&a, &d);
    CHECK(d.used_mib == 0 && d.peaked_mib == 50);
    tg_trace_get(&c, &d);
    CHECK(d.used_mib == -20 && d.peaked_mib == 5);
    tg_trace_end(&a);
    tg_trace_end(&c);
}

/* ---- Scopes ------------------------------------------------------------------------------ */

static int leave_by(int way)
{
    TG_TRACE_FUNCTION(pool);
    void *p = take(2);
    if (way == 0) {
        give(p);
        return 0;
    }
    for (int i = 0; i < 3; i++) {
        TG_TRACE_SCOPE(pool, "loop");
        give(take(4));
        if (way == 1 && i == 1)
            break;
        if (way == 2)
            goto out;
    }
out:
    give(p);
    return way;
}

static void test_a_scope_reports_on_every_way_out(void)
{
    CHECK_EQ(leave_by(0), 0);
    expect("△Used Peaked MB:      0      2 (leave_by: exit)\n");
    CHECK_EQ(leave_by(1), 1);
    expect("△Used Peaked MB:      0      4 (loop: exit)\n"
           "△Used Peaked MB:      0      4 (loop: exit)\n"
           "△Used Peaked MB:      0      6 (leave_by: exit)\n");
    CHECK_EQ(leave_by(2), 2);
    expect("△Used Peaked MB:      0      4 (loop: exit)\n"
           "△Used Peaked MB:      0      6 (leave_by: exit)\n");
}

static void test_a_trace_of_nothing_is_harmless(void)
{
    tg_trace t;
    tg_trace_data d = {1, 1, 1, 1};
    const tg_trace_opts wrong = {.size = 3};
    CHECK_EQ(tg_trace_begin(&t, NULL, NULL), TG_E_ARG);
    tg_trace_report(&t, "x");
    CHECK_EQ(tg_trace_get(&t, &d), TG_OK);
    CHECK(d.used_bytes == 0 && d.peaked_mib == 0);
    tg_trace_end(&t);
    CHECK_EQ(tg_trace_begin(&t, pool, &wrong), TG_E_ARG);
    CHECK_EQ(tg_trace_outside(&t, &d), TG_E_UNSUPPORTED);
    tg_trace_end(&t);
    expect("");
}

static void test_memory_outside_of_pools_is_sampled_and_says_so(void)
{
    tg_trace t;
    tg_trace_data d;
    tg_trace_opts o = named("decode");
    o.outside_ms = 1;
    CHECK_EQ(tg_trace_begin(&t, pool, &o), TG_OK);
    char *volatile p = malloc(64 * MIB);
    if (p)
        memset(p, 1, 64 * MIB);
    usleep(50000);
    CHECK_EQ(tg_trace_outside(&t, &d), TG_OK);
    if (!TG_SANITIZED)
        CHECK(d.used_mib >= 62 && d.used_mib <= 72);
    free(p);
    usleep(20000);
    CHECK_EQ(tg_trace_outside(&t, &d), TG_OK);
    if (!TG_SANITIZED)
        CHECK(d.used_mib < 8 && d.peaked_mib >= 55);
    tg_trace_end(&t);
    CHECK(strstr(said, "△Used Peaked MB:      0      0 (decode: exit)\n") == said);
    CHECK(strstr(said, "(decode: outside the pool, sampled every 1 ms)\n") != NULL);
    said[0] = 0;
}

static void *trace_alone(void *arg)
{
    tg_trace t;
    tg_trace_data d;
    int64_t *worst = arg;
    const tg_trace_opts o = {.size = sizeof o};
    for (int i = 0; i < 2000; i++) {
        void *p = NULL;
        tg_trace_begin(&t, pool, &o);
        if (tg_pool_alloc(pool, MIB, "test", &p) == TG_OK)
            tg_pool_free(pool, p);
        tg_trace_get(&t, &d);
        const int64_t peak = d.peaked_bytes + (d.used_bytes > 0 ? d.used_bytes : 0);
        if (peak < *worst)
            *worst = peak;
        tg_trace_end(&t);
    }
    return NULL;
}

static void test_traces_of_several_threads_see_at_least_their_own(void)
{
    pthread_t id[4];
    int64_t worst[4];
    for (int i = 0; i < 4; i++) {
        worst[i] = INT64_MAX;
        CHECK_EQ(pthread_create(&id[i], NULL, trace_alone, &worst[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(pthread_join(id[i], NULL), 0);
        /* What others give back in between is missing in the sum, at most 3 MiB of it. */
        CHECK(worst[i] >= -(int64_t)(2 * MIB));
    }
}

static void test_the_librarys_own_memory_can_be_traced(void)
{
    tg_trace t;
    tg_trace_data d;
    CHECK_EQ(tg_trace_begin(&t, tg_pool_engine(), NULL), TG_OK);
    void *p = tgi_malloc(TGI_TAG_MISC, 100);
    tgi_free(tgi_malloc(TGI_TAG_MISC, 3 * MIB));
    CHECK_EQ(tg_trace_get(&t, &d), TG_OK);
    CHECK(d.used_bytes == 100 && d.peaked_bytes == (int64_t)(3 * MIB));
    tgi_free(p);
    tg_trace_end(&t);
}

int main(void)
{
    memory = (fake){.total = 1ull << 40};
    const tg_raw raw = fake_raw(&memory, TG_MEMORY_DEVICE);
    CHECK_EQ(tg_pool_open(NULL, &raw, NULL, &pool), TG_OK);
    RUN(test_used_and_peaked_are_told_apart);
    RUN(test_context_and_subcontext_are_shown_where_they_are);
    RUN(test_a_stopped_trace_keeps_its_values);
    RUN(test_silence_is_switched_back_and_forth);
    RUN(test_traces_overlap_and_reset_without_noticing_each_other);
    RUN(test_a_scope_reports_on_every_way_out);
    RUN(test_a_trace_of_nothing_is_harmless);
    RUN(test_memory_outside_of_pools_is_sampled_and_says_so);
    RUN(test_traces_of_several_threads_see_at_least_their_own);
    RUN(test_the_librarys_own_memory_can_be_traced);
    char *leaks = NULL;
    tg_pool_close(&pool, &leaks);
    CHECK(leaks == NULL);
    return TEST_END();
}

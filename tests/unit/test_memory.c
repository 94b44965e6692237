/* Sizes as people write them, and the one reservation. */
#include "engine/base/reserve.h"
#include "engine/base/size.h"
#include "engine/memory/monitor.h"
#include "tests/tg_test.h"

#include <sys/resource.h>
#include <sys/wait.h>

#define MIB ((size_t)1 << 20)

static void test_sizes_read_with_their_units(void)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } rows[] = {{"1GiB", 1ull << 30}, {"512MiB", 512ull << 20},
                {"1.5KiB", 1536},     {"2TiB", 2ull << 40},
                {"1GB", 1000000000},  {"3MB", 3000000},
                {"7KB", 7000},        {"1TB", 1000000000000},
                {"80%", 800},         {"12.5%", 125},
                {"100%", 1000},       {"0.5GiB", 512ull << 20},
                {"0MiB", 0},          {"8000000TiB", 8000000ull << 40}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tgi_err e = {0};
        uint64_t b = 1;
        CHECK_OK(tgi_size_parse(rows[i].text, 1000, &b, &e), e);
        CHECK_EQ(b, rows[i].bytes);
    }
}

static void test_sizes_that_would_be_guesses_are_refused_with_advice(void)
{
    static const char *const rows[][2] = {
        {"1024", "1024MiB"},      {"", "no size"},
        {"GiB", "no size"},       {"-1GiB", "no size"},
        {"1gib", "unit"},         {"1 GiB", "unit"},
        {"1GiBx", "unit"},        {"1.2.3GiB", "no size"},
        {".", "no size"},         {"0%", "percentage"},
        {"101%", "percentage"},   {"1e3MiB", "unit"},
        {"8388609TiB", "larger"}, {"99999999999999999999TiB", "larger"},
        {"1,5GiB", "unit"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tgi_err e = {0};
        uint64_t b = 42;
        CHECK_EQ(tgi_size_parse(rows[i][0], 1000, &b, &e), TG_E_ARG);
        if (!strstr(e.text, rows[i][1]))
            fprintf(stderr, "%s: %s\n", rows[i][0], e.text);
        CHECK(strstr(e.text, rows[i][1]) != NULL);
        CHECK_EQ(b, 42);
    }
    tgi_err e = {0};
    uint64_t b;
    CHECK_STATUS(tgi_size_parse("80%", 0, &b, &e), TG_E_ARG, e); /* of what? */
}

static void test_sizes_are_shown_with_two_decimals(void)
{
    char t[32];
    CHECK_STR(tgi_size_text(1ull << 30, t, sizeof t), "1.00 GiB");
    CHECK_STR(tgi_size_text(201326592, t, sizeof t), "192.00 MiB");
    CHECK_STR(tgi_size_text(1610612736, t, sizeof t), "1.50 GiB");
    CHECK_STR(tgi_size_text(17613, t, sizeof t), "17.20 KiB");
    CHECK_STR(tgi_size_text(0, t, sizeof t), "0 B");
    CHECK_STR(tgi_size_text(1023, t, sizeof t), "1023 B");
    CHECK_STR(tgi_size_text(1024, t, sizeof t), "1.00 KiB");
    CHECK_STR(tgi_size_text((1ull << 30) - 1, t, sizeof t), "1.00 GiB"); /* not 1024.00 MiB */
    CHECK_STR(tgi_size_text(UINT64_MAX, t, sizeof t), "16.00 EiB");
    CHECK_STR(tgi_size_above(6 << 20, t, sizeof t), "6.00 MiB"); /* both: exact stays */
    CHECK_STR(tgi_size_below(6 << 20, t, sizeof t), "6.00 MiB");
    CHECK_STR(tgi_size_above((6 << 20) + 1, t, sizeof t), "6.01 MiB");
    CHECK_STR(tgi_size_below((6 << 20) - 2, t, sizeof t), "5.99 MiB");
    CHECK_STR(tgi_size_below(4676648, t, sizeof t), "4.46 MiB"); /* what 4.46MiB is read as */
    CHECK_STR(tgi_size_above((1 << 30) - 1, t, sizeof t), "1.00 GiB");
    CHECK_STR(tgi_size_below((1 << 30) - 2, t, sizeof t), "1023.99 MiB");
    CHECK_STR(tgi_size_above(17, t, sizeof t), "17 B");
}

/* "needs 6.00 MiB, the budget is 6.00 MiB" tells nothing. */
static void test_a_need_is_told_as_more_than_a_budget_below_it(void)
{
    static const uint64_t unit[] = {1u << 10, 1u << 20, 1u << 30};
    char need[32], have[32];
    int same = 0;
    CHECK_STR(tgi_size_below((6 << 20) - 1, have, sizeof have), "5.99 MiB");
    for (int u = 0; u < 3; u++)
        for (uint64_t hundredth = 101; hundredth < 102400; hundredth++)
            for (uint64_t b = hundredth * unit[u] / 100 - 2, i = 0; i < 4; i++, b++)
                same += strcmp(tgi_size_below(b, have, sizeof have),
                               tgi_size_above(b + 1, need, sizeof need)) == 0;
    CHECK_EQ(same, 0);
}

static void test_blocks_lie_apart_aligned_and_in_the_ledger(void)
{
    tgi_err e = {0};
    tgi_reserve *r = NULL;
    char *a, *b;
    void *c;
    CHECK_OK(tgi_reserve_open(3 * MIB + 5, &r, &e), e);
    CHECK_EQ(tgi_reserve_bytes(r), 3 * MIB + 4096);
    CHECK_OK(tgi_reserve_take(r, "first", 100, (void **)&a, &e), e);
    CHECK_OK(tgi_reserve_take(r, "second", 2 * MIB, (void **)&b, &e), e);
    CHECK_EQ((uintptr_t)a % (2 * MIB), 0);
    CHECK_EQ((uintptr_t)b % 64, 0);
    CHECK(b >= a + 100);
    memset(a, 1, 100);
    memset(b, 2, 2 * MIB);
    CHECK(a[99] == 1 && b[0] == 2);
    CHECK_STATUS(tgi_reserve_take(r, "third", 2 * MIB, &c, &e), TG_E_INTERNAL, e);
    CHECK_STATUS(tgi_reserve_take(r, "huge", SIZE_MAX, &c, &e), TG_E_INTERNAL, e);
    int n = 0;
    const tgi_block *ledger = tgi_reserve_blocks(r, &n);
    CHECK_EQ(n, 2);
    CHECK_STR(ledger[1].name, "second");
    CHECK_EQ(ledger[1].bytes, 2 * MIB);
    tgi_reserve_close(&r);
    CHECK(r == NULL);
    tgi_reserve_close(&r);
}

static void test_a_reservation_is_resident_at_once_and_no_larger_than_asked(void)
{
    tgi_err e = {0};
    tgi_reserve *r = NULL;
    const size_t bytes = 33 * MIB; /* ends in the middle of a huge page */
    const uint64_t before = tgi_mem_measured();
    CHECK_OK(tgi_reserve_open(bytes, &r, &e), e);
    const uint64_t with = tgi_mem_measured();
    tgi_reserve_close(&r);
    const uint64_t after = tgi_mem_measured();
    /* The kernel batches its page counters per processor: some 64 pages each. */
    const int64_t slack = (int64_t)MIB;
    CHECK((int64_t)(with - before) >= (int64_t)bytes - slack);
    CHECK((int64_t)(with - before) <= (int64_t)bytes + slack);
    /* A sanitizer keeps a byte for each 8 that are no longer to be touched. */
    CHECK((int64_t)(after - before) <= slack + (TG_SANITIZED ? (int64_t)bytes / 8 : 0));
}

static void test_the_poison_counts_the_pages_a_run_has_written(void)
{
    tgi_err e = {0};
    tgi_reserve *r = NULL;
    char *a;
    void *b;
    setenv("TEGULA_POISON", "1", 1);
    CHECK_OK(tgi_reserve_open(MIB, &r, &e), e);
    unsetenv("TEGULA_POISON");
    CHECK_OK(tgi_reserve_take(r, "arena", 10 * 4096, (void **)&a, &e), e);
    CHECK_OK(tgi_reserve_take(r, "other", 4096, &b, &e), e);
    CHECK_NEAR(tgi_reserve_touched(r, "arena"), 0, 0);
    a[0] = 0;               /* first page: one byte, and a zero, is a write */
    a[9 * 4096 + 4095] = 7; /* last page */
    CHECK_NEAR(tgi_reserve_touched(r, "arena"), 0.2, 1e-12);
    CHECK_NEAR(tgi_reserve_touched(r, "other"), 0, 0);
    tgi_reserve_close(&r);
    CHECK_OK(tgi_reserve_open(MIB, &r, &e), e);
    CHECK_OK(tgi_reserve_take(r, "arena", 4096, (void **)&a, &e), e);
    CHECK_EQ(a[17], 0);
    CHECK_NEAR(tgi_reserve_touched(r, "arena"), 1, 0);
    tgi_reserve_close(&r);
}

static size_t opened_and_closed(size_t bytes, void **at)
{
    tgi_err e = {0};
    tgi_reserve *r = NULL;
    const uint64_t before = tgi_mem_measured();
    CHECK_OK(tgi_reserve_open(bytes, &r, &e), e);
    CHECK_OK(tgi_reserve_take(r, "all", bytes, at, &e), e);
    const uint64_t more = tgi_mem_measured() - before;
    memset(*at, 1, bytes);
    CHECK(TG_SANITIZED || tgi_mem_measured() - before < more + MIB); /* it was resident */
    CHECK_EQ(tgi_pages_kept(), 0);
    tgi_reserve_close(&r);
    return tgi_pages_kept();
}

static void test_pages_wait_for_the_next_reservation_while_that_is_asked_for(void)
{
    void *first, *again, *taken;
    CHECK_EQ(opened_and_closed(96 * MIB, &first), 0);
    tgi_pages_keep(1);
    tgi_pages_keep(1);
    const uint64_t before = tgi_mem_measured();
    CHECK_EQ(opened_and_closed(96 * MIB, &first),
             64 * MIB); /* less what lies between two jobs */
    const uint64_t waits = tgi_mem_measured() - before;
    CHECK(TG_SANITIZED || (waits >= 63 * MIB && waits < 66 * MIB));
    CHECK_EQ(opened_and_closed(96 * MIB, &again), 64 * MIB);
    CHECK(again == first);
    CHECK_EQ(opened_and_closed(128 * MIB, &again), 96 * MIB);
    CHECK_EQ(opened_and_closed(40 * MIB, &again), 8 * MIB);
    CHECK_EQ(opened_and_closed(32 * MIB, &again), 0);
    CHECK_EQ(opened_and_closed(96 * MIB, &again), 64 * MIB);
    taken = tgi_malloc(TGI_TAG_PLAN, 10 * MIB); /* what others take is taken off it */
    CHECK(taken && tgi_pages_kept() <= 54 * MIB && tgi_pages_kept() > 50 * MIB);
    tgi_free(taken);
    tgi_pages_keep(0);
    CHECK(tgi_pages_kept() > 0);
    tgi_pages_keep_at_most(20 * MIB + 1);
    CHECK_EQ(tgi_pages_kept(), 20 * MIB);
    tgi_pages_keep_at_most(0);
    CHECK_EQ(tgi_pages_kept(), 0);
    CHECK_EQ(opened_and_closed(96 * MIB, &again), 64 * MIB);
    tgi_pages_keep(0);
    CHECK_EQ(tgi_pages_kept(), 0);
    CHECK(TG_SANITIZED || tgi_mem_measured() < before + 2 * MIB);
}

static void test_a_reservation_nobody_can_give_is_refused(void)
{
    static const size_t absurd[] = {SIZE_MAX, SIZE_MAX / 2, (size_t)1 << 50};
    for (size_t i = 0; i < 3; i++) {
        tgi_err e = {0};
        tgi_reserve *r = NULL;
        CHECK_STATUS(tgi_reserve_open(absurd[i], &r, &e), TG_E_NOMEM, e);
        CHECK(r == NULL);
    }
    tgi_err e = {0};
    tgi_reserve *r = NULL;
    tgi_mem_fail_at(1);
    CHECK_STATUS(tgi_reserve_open(MIB, &r, &e), TG_E_NOMEM, e);
    tgi_mem_fail_at(0);
}

/* In a child: limits cannot be raised again. */
static int refused_under_a_limit(void)
{
    tgi_err e = {0};
    tgi_reserve *r = NULL;
    tgi_free_memory f;
    const struct rlimit limit = {512 * MIB, 512 * MIB};
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        return 2;
    const uint64_t room = tgi_mem_available(&f);
    if (room >= 512 * MIB || f.rlimit < 256 * MIB || f.bytes > f.rlimit)
        return 3;
    if (f.bytes == f.rlimit && strcmp(f.limited_by, "RLIMIT_AS") != 0)
        return 4;
    if (tgi_reserve_open(600 * MIB, &r, &e) != TG_E_NOMEM)
        return 5;
    return 0;
}

static void test_an_address_space_limit_is_seen_and_obeyed(void)
{
    if (TG_SANITIZED)
        return;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0)
        _exit(refused_under_a_limit());
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

int main(void)
{
    RUN(test_sizes_read_with_their_units);
    RUN(test_sizes_that_would_be_guesses_are_refused_with_advice);
    RUN(test_sizes_are_shown_with_two_decimals);
    RUN(test_a_need_is_told_as_more_than_a_budget_below_it);
    RUN(test_blocks_lie_apart_aligned_and_in_the_ledger);
    RUN(test_a_reservation_is_resident_at_once_and_no_larger_than_asked);
    RUN(test_the_poison_counts_the_pages_a_run_has_written);
    RUN(test_pages_wait_for_the_next_reservation_while_that_is_asked_for);
    RUN(test_a_reservation_nobody_can_give_is_refused);
    RUN(test_an_address_space_limit_is_seen_and_obeyed);
    return TEST_END();
}

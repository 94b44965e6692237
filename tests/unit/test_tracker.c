/* The tracker on made-up machines, whose memory a test sets, and on this one. */
#include "engine/base/clock.h"
#include "engine/base/reserve.h"
#include "engine/memory/log_file.h"
#include "engine/memory/log_read.h"
#include "engine/memory/monitor.h"
#include "engine/memory/tracker.h"
#include "tests/tg_test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#define MIB ((uint64_t)1 << 20)

/* ---- A machine ---- */

static char machine[] = "tegula_tracker_machine";
static char csv[] = "tegula_tracker.csv";

static void put(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s%s", machine, name);
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0);
    if (f)
        fclose(f);
}

/* The process holds so many MiB: anonymous, of files. */
static void holds(int anon, int file)
{
    char text[256];
    snprintf(text, sizeof text,
             "VmHWM:\t%d kB\nRssAnon:\t%d kB\nRssFile:\t%d kB\nRssShmem:\t0 kB\nVmPTE:\t0 kB\n"
             "VmSwap:\t0 kB\n",
             500 << 10, anon << 10, file << 10);
    put("/proc/self/status", text);
}

static void begin_machine(void)
{
    char path[64];
    mkdir(machine, 0700);
    snprintf(path, sizeof path, "%s/proc", machine);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/proc/self", machine);
    mkdir(path, 0700);
    put("/proc/meminfo", "MemTotal: 16384000 kB\nMemAvailable:    8192000 kB\n");
    holds(10, 1);
}

static void end_machine(void)
{
    static const char *const names[] = {"/proc/self/status", "/proc/meminfo", "/proc/self",
                                        "/proc", ""};
    char path[64];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s%s", machine, names[i]);
        CHECK_EQ(remove(path), 0);
    }
}

static int gpu_is_lost;

static int two_gpus(int i, uint64_t *used_bytes, uint64_t *free_bytes)
{
    *used_bytes = (uint64_t)(3 + i) * MIB;
    *free_bytes = (uint64_t)(97 - i) * MIB;
    return !(gpu_is_lost && i == 0);
}

static tg_tracker *open_by_updates(int64_t updates, const char *path, int go_on, int n_gpus)
{
    tgi_err e = {0};
    tg_tracker *t = NULL;
    const tgi_tracker_opts o = {.every = {.updates = updates},
                                .csv = path,
                                .how = TGI_SIDE_REPLACE,
                                .go_on = go_on,
                                .look = {.root = machine, .n_gpus = n_gpus, .gpu = two_gpus}};
    CHECK_OK(tgi_tracker_open(&o, &t, &e), e);
    return t;
}

/* ---- Samples ---- */

static void test_by_updates_the_first_and_each_tenth_is_a_sample(void)
{
    begin_machine();
    tg_tracker *t = open_by_updates(10, NULL, 0, 0);
    tg_tracker_row row = {.size = sizeof row};
    int fresh = 0;
    for (int i = 0; i < 25; i++) {
        holds(20 + i, 0);
        CHECK_EQ(tg_tracker_update(t, NULL, i, &row), TG_OK);
        CHECK_EQ(row.fresh, i % 10 == 0);
        CHECK_EQ(row.tile, i / 10 * 10); /* the latest sample's, also in between */
        CHECK_EQ(row.measured_bytes, (uint64_t)(20 + i / 10 * 10) * MIB);
        fresh += row.fresh;
    }
    CHECK_EQ(fresh, 3);
    tg_tracker_maxima m = {.size = sizeof m};
    CHECK_EQ(tg_tracker_close(&t, &m), TG_OK);
    CHECK_EQ(m.updates, 25);
    CHECK_EQ(m.samples, 1 + 3 + 1); /* and one at each end */
    CHECK_EQ(m.measured.bytes, 44 * MIB);
    CHECK(t == NULL);
    end_machine();
}

static void test_a_row_is_what_the_machine_says(void)
{
    begin_machine();
    tg_tracker *t = open_by_updates(1, NULL, 0, 2);
    holds(70, 5);
    tg_tracker_expect(t, 80 * MIB, 90 * MIB);
    tg_tracker_row row = {.size = sizeof row};
    CHECK_EQ(tg_tracker_update(t, "decode", 7, &row), TG_OK);
    CHECK_EQ(row.fresh, 1);
    CHECK_STR(row.phase, "decode");
    CHECK_EQ(row.tile, 7);
    CHECK_EQ(row.measured_bytes, 70 * MIB);
    CHECK_EQ(row.peak_bytes, 70 * MIB);
    CHECK_EQ(row.anonymous_bytes, 70 * MIB);
    CHECK_EQ(row.file_bytes, 5 * MIB);
    CHECK_EQ(row.high_water_bytes, 500 * MIB);
    CHECK_EQ(row.available_bytes, 8192000ull * 1024);
    CHECK_EQ(row.predicted_bytes, 80 * MIB);
    CHECK_EQ(row.budget_bytes, 90 * MIB);
    CHECK_EQ(row.n_gpus, 2);
    CHECK_EQ(row.gpu_used_bytes[1], 4 * MIB);
    CHECK_EQ(row.gpu_free_bytes[1], 96 * MIB);
    gpu_is_lost = 1;
    tg_tracker_update(t, NULL, 8, &row);
    gpu_is_lost = 0;
    CHECK_EQ(row.gpu_used_bytes[0] + row.gpu_free_bytes[0], 0);
    CHECK_EQ(row.gpu_used_bytes[1], 4 * MIB);
    CHECK_STR(row.phase, "decode"); /* NULL: as before */
    tgi_tracker_close(&t, NULL);
    end_machine();
}

static void test_the_pool_counts_blocks_and_reservations(void)
{
    tgi_err e = {0};
    tgi_reserve *r = NULL;
    uint64_t a0, r0, a1, r1;
    void *p = NULL;
    tgi_pool_now(&a0, &r0);
    CHECK_OK(tgi_reserve_open(4 * MIB, &r, &e), e);
    CHECK_OK(tgi_reserve_take(r, "half", 2 * MIB, &p, &e), e);
    tgi_pool_now(&a1, &r1);
    CHECK(r1 - r0 >= 4 * MIB && r1 - r0 < 5 * MIB);
    CHECK(a1 - a0 >= 2 * MIB && a1 - a0 < 3 * MIB);
    tgi_reserve_close(&r);
    tgi_pool_now(&a1, &r1);
    CHECK_EQ(a1, a0);
    CHECK_EQ(r1, r0);
}

static void test_maxima_carry_the_phase_and_tile_they_had(void)
{
    begin_machine();
    tg_tracker *t = open_by_updates(1, NULL, 0, 2);
    holds(30, 90);
    tgi_tracker_update(t, "statistics", 1);
    holds(50, 40);
    tgi_tracker_update(t, "run", 17);
    holds(20, 0);
    tgi_tracker_update(t, "finish", 20);
    tg_tracker_maxima m = {.size = sizeof m};
    CHECK_EQ(tg_tracker_maxima_now(t, &m), TG_OK);
    CHECK_EQ(m.measured.bytes, 50 * MIB);
    CHECK_STR(m.measured.phase, "run");
    CHECK_EQ(m.measured.tile, 17);
    CHECK_EQ(m.resident.bytes, 120 * MIB); /* with file pages it was earlier */
    CHECK_STR(m.resident.phase, "statistics");
    CHECK_EQ(m.n_gpus, 2);
    CHECK_EQ(m.gpu_used[0].bytes, 3 * MIB);
    CHECK_STR(m.gpu_used[0].phase, "start"); /* the first of equals */
    CHECK_EQ(m.least_available_bytes, 8192000ull * 1024);
    tgi_tracker_close(&t, NULL);
    end_machine();
}

static void test_another_phase_is_a_sample_at_once(void)
{
    begin_machine();
    tg_tracker *t = open_by_updates(1000, NULL, 0, 0);
    CHECK_EQ(tgi_tracker_update(t, "start", 0), 1); /* the first update */
    CHECK_EQ(tgi_tracker_update(t, "start", 1), 0);
    CHECK_EQ(tgi_tracker_update(t, "run", 1), 1);
    CHECK_EQ(tgi_tracker_update(t, "run", 2), 0);
    CHECK_EQ(tgi_tracker_update(t, "run,\"2\"\n", 2), 1);
    tg_tracker_row row;
    tgi_tracker_row(t, &row);
    CHECK_STR(row.phase, "run__2__"); /* nothing that CSV would have to quote */
    CHECK_EQ(tgi_tracker_update(t,
                                "\xff\xc3\xa9"
                                "a phase whose name is far too long",
                                2),
             1);
    tgi_tracker_row(t, &row);
    CHECK_STR(row.phase, "_\xc3\xa9"
                         "a phase whose name is far to");
    tgi_tracker_close(&t, NULL);
    end_machine();
}

/* ---- By time, on this machine ---- */

static void nap(int ms)
{
    const struct timespec t = {0, ms * 1000000L};
    nanosleep(&t, NULL);
}

static uint64_t peak_of(tg_tracker *t)
{
    tg_tracker_maxima m;
    tgi_tracker_maxima(t, &m);
    return m.measured.bytes;
}

/* Up to ten seconds until the sampling thread has seen it: machines are busy. */
static void wait_until(tg_tracker *t, int peak, uint64_t low, uint64_t high)
{
    for (int i = 0; i < 500; i++, nap(20)) {
        const uint64_t v = peak ? peak_of(t) : tgi_tracker_current(t);
        if (v >= low && v <= high)
            return;
    }
}

static tg_tracker *open_by_time(int64_t ms, int peak_ms, const char *path)
{
    tgi_err e = {0};
    tg_tracker *t = NULL;
    const tgi_tracker_opts o = {
        .every = {.ms = ms}, .peak_ms = peak_ms, .csv = path, .look = tgi_look_here(0)};
    CHECK_OK(tgi_tracker_open(&o, &t, &e), e);
    return t;
}

static void test_the_peak_stays_after_the_memory_is_gone(void)
{
    const size_t bytes = 48 * MIB;
    const uint64_t before = tgi_mem_measured();
    CHECK(before > 0);
    tg_tracker *t = open_by_time(3600000, 1, NULL); /* rows would come hours too late */
    char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    memset(p, 1, bytes);
    tgi_tracker_update(t, "start", 3);
    wait_until(t, 1, before + bytes * 9 / 10, UINT64_MAX);
    munmap(p, bytes);
    wait_until(t, 0, 0, before + bytes / 2);
    CHECK(tgi_tracker_current(t) < before + bytes / 2);
    CHECK(peak_of(t) >= before + bytes * 9 / 10);
    tg_tracker_maxima m;
    tg_tracker_row row;
    tgi_tracker_update(t, "end", 4);
    tgi_tracker_row(t, &row); /* what lay between two rows is in the second one */
    CHECK_EQ(row.peak_bytes, peak_of(t));
    CHECK(row.measured_bytes < before + bytes / 2);
    const double t0 = tgi_seconds();
    tgi_tracker_close(&t, &m);
    CHECK(tgi_seconds() - t0 < 5); /* nobody waits for the interval */
    CHECK(m.measured.bytes >= before + bytes * 9 / 10 && t == NULL);
    CHECK_EQ(m.samples, 3);
    tgi_tracker_close(&t, &m);
}

static void test_by_time_rows_come_by_themselves(void)
{
    tg_tracker *t = open_by_time(20, 0, csv);
    const double t0 = tgi_seconds();
    tgi_tracker_update(t, "run", 17);
    nap(250);
    tg_tracker_maxima m;
    tgi_tracker_close(&t, &m);
    const double most = (tgi_seconds() - t0) / 0.01 + 3;
    CHECK(m.samples >= 3 && (double)m.samples <= most);
    tgi_memlog *log = NULL;
    tgi_err e = {0};
    CHECK_OK(tgi_memlog_read(csv, &log, &e), e);
    if (log) {
        CHECK_EQ(log->rows, m.samples);
        CHECK_EQ(log->max.bytes, m.measured.bytes); /* the file knows the maximum, too */
        CHECK_EQ(log->n_phases, 2);
    }
    tgi_free(log);
    unlink(csv);
}

static void test_a_stalled_log_does_not_stall_the_labels(void)
{
    int end[2];
    char path[64], junk[4096];
    CHECK_EQ(pipe(end), 0);
    fcntl(end[1], F_SETPIPE_SZ, 4096);
    fcntl(end[1], F_SETFL, O_NONBLOCK);
    snprintf(path, sizeof path, "/proc/self/fd/%d", end[1]);
    tg_tracker *t = open_by_time(1, 0, path);
    memset(junk, ' ', sizeof junk);
    while (write(end[1], junk, 64) > 0) /* nobody reads */
        ;
    nap(50);
    const double t0 = tgi_seconds();
    for (int i = 0; i < 1000; i++)
        tgi_tracker_update(t, "start", i);
    CHECK(tgi_seconds() - t0 < 1);
    signal(SIGPIPE, SIG_IGN);
    close(end[0]); /* the reader goes: the log ends, and says so */
    tg_tracker_maxima m;
    tgi_tracker_close(&t, &m);
    CHECK(strstr(m.problem, "the memory log ended") != NULL);
    close(end[1]);
}

/* ---- The file ---- */

static size_t read_all(char *out, size_t cap)
{
    FILE *f = fopen(csv, "r");
    const size_t n = f ? fread(out, 1, cap - 1, f) : 0;
    if (f)
        fclose(f);
    out[n] = 0;
    return n;
}

static void test_the_log_is_the_documented_columns_and_a_line_per_sample(void)
{
    char text[8192];
    begin_machine();
    tg_tracker *t = open_by_updates(1, csv, 0, 2);
    holds(70, 5);
    tgi_tracker_expect(t, 80, 90);
    tgi_tracker_update(t, "run", 7);
    tgi_tracker_close(&t, NULL);
    read_all(text, sizeof text);
    static const char head[] =
        TGI_LOG_COLUMNS ",gpu0_used_bytes,gpu0_free_bytes,gpu1_used_bytes,gpu1_free_bytes\n";
    CHECK(strncmp(text, head, sizeof head - 1) == 0);
    int lines = 0;
    for (const char *p = text; (p = strchr(p, '\n')) != NULL; p++)
        lines++;
    CHECK_EQ(lines, 1 + 3);
    const char *row = strstr(text, ",run,7,");
    CHECK(row &&
          strncmp(row, ",run,7,73400320,73400320,73400320,5242880,0,0,0,524288000,", 57) == 0);
    CHECK(row && strstr(row, ",8388608000,80,90,0,0,0,3145728,101711872,4194304,100663296\n"));
    unlink(csv);
    end_machine();
}

static void test_lines_say_how_long_a_clock_ran_since_the_one_before(void)
{
    char text[8192];
    tgi_busy decoding = {9000000},
             encoding = {0}; /* what was before it is watched counts not */
    begin_machine();
    tg_tracker *t = open_by_updates(1, csv, 0, 0);
    tgi_tracker_watch(t, TGI_BUSY_DECODE, &decoding);
    tgi_tracker_watch(t, TGI_BUSY_ENCODE, &encoding);
    decoding.ns += 30600000;
    tgi_tracker_update(t, "run", 1);
    decoding.ns += 500000; /* parts of a millisecond are not lost */
    tgi_busy_begin(&encoding);
    const int64_t begun = tgi_busy_now();
    while (tgi_busy_now() < begun + 25000000)
        ;
    tgi_tracker_update(t, NULL, 2); /* and work that still goes on is seen */
    tgi_busy_end(&encoding);
    CHECK(tgi_busy_ms(&encoding) >= 25 && encoding.ns > 0);
    tgi_tracker_close(&t, NULL);
    read_all(text, sizeof text);
    tgi_memlog *log = NULL;
    tgi_err e = {0};
    CHECK_OK(tgi_memlog_read(csv, &log, &e), e);
    if (log && log->n_groups == 4) {
        const tgi_memlog_group *g = log->group;
        CHECK_EQ(g[0].busy_ms[TGI_BUSY_DECODE], 0);
        CHECK_EQ(g[1].busy_ms[TGI_BUSY_DECODE], 30);
        CHECK_EQ(g[2].busy_ms[TGI_BUSY_DECODE], 1);
        CHECK_EQ(g[1].busy_ms[TGI_BUSY_ENCODE], 0);
        CHECK(g[2].busy_ms[TGI_BUSY_ENCODE] >= 25);
        CHECK_EQ(log->busy_ms[TGI_BUSY_DECODE], 31);
        CHECK_EQ(log->busy_ms[TGI_BUSY_COMPUTE], 0);
    }
    CHECK(log && log->n_groups == 4);
    tgi_free(log);
    unlink(csv);
    end_machine();
}

static void test_a_run_that_goes_on_appends_and_its_time_goes_on(void)
{
    begin_machine();
    tg_tracker *t = open_by_updates(1, csv, 1, 0); /* nothing there yet */
    tgi_tracker_close(&t, NULL);
    char text[8192];
    FILE *f = fopen(csv, "a");
    CHECK(f &&
          fputs("1000.250,run,5,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1\n1000.900,run,6,1,1,", f) > 0);
    if (f)
        fclose(f); /* as a full disk leaves it */
    t = open_by_updates(1, csv, 1, 0);
    tgi_tracker_close(&t, NULL);
    read_all(text, sizeof text);
    CHECK(strstr(text, "1000.900") == NULL); /* a part of a line is cut off */
    CHECK(strstr(text, "\n1000.25") != NULL && strstr(text, "\n1000.25")[9] == ',');
    tgi_memlog *log = NULL;
    tgi_err e = {0};
    CHECK_OK(tgi_memlog_read(csv, &log, &e), e); /* one header, time never goes back */
    if (log) {
        CHECK_EQ(log->rows, 2 + 1 + 2);
        CHECK(log->to >= 1000.25 && log->to < 1010);
    }
    tgi_free(log);
    t = open_by_updates(1, csv, 1, 2); /* other columns: anew */
    tgi_tracker_close(&t, NULL);
    read_all(text, sizeof text);
    CHECK(strstr(text, "1000.25") == NULL && strstr(text, "gpu1_free_bytes") != NULL);
    t = open_by_updates(1, csv, 0, 2); /* not to go on: anew */
    tgi_tracker_close(&t, NULL);
    read_all(text, sizeof text);
    int lines = 0;
    for (const char *p = text; (p = strchr(p, '\n')) != NULL; p++)
        lines++;
    CHECK_EQ(lines, 1 + 2);
    unlink(csv);
    end_machine();
}

static void test_a_full_disk_ends_the_log_and_nothing_else(void)
{
    struct rlimit was, small;
    char text[8192];
    begin_machine();
    signal(SIGXFSZ, SIG_IGN);
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &was), 0);
    small = was;
    small.rlim_cur = 700;
    tg_tracker *t = open_by_updates(1, csv, 0, 0);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (int i = 0; i < 20; i++) {
        holds(30 + i, 0);
        tgi_tracker_update(t, "run", i);
    }
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &was), 0);
    tg_tracker_maxima m;
    tgi_tracker_close(&t, &m);
    CHECK(strstr(m.problem, "the memory log ended") != NULL);
    CHECK_EQ(m.measured.bytes, 49 * MIB);
    const size_t n = read_all(text, sizeof text);
    CHECK(n > 300 && n <= 700 && text[n - 1] == '\n'); /* whole lines alone */
    unlink(csv);
    end_machine();
}

static void test_what_cannot_be_opened_is_refused(void)
{
    tgi_err e = {0};
    tg_tracker *t = NULL;
    tgi_tracker_opts o = {.every = {.updates = 1}, .csv = "no_such_folder/log.csv"};
    o.look = tgi_look_here(0);
    CHECK_STATUS(tgi_tracker_open(&o, &t, &e), TG_E_EXISTS, e);
    o.csv = "/dev/full";
    CHECK_STATUS(tgi_tracker_open(&o, &t, &e), TG_E_IO, e);
    tgi_mem_fail_at(1);
    CHECK_STATUS(tgi_tracker_open(&o, &t, &e), TG_E_NOMEM, e);
    tgi_mem_fail_at(0);
    tg_tracker_opts p = {.size = sizeof p, .every = "10"};
    CHECK_EQ(tg_tracker_open(NULL, &p, &t), TG_E_ARG); /* ten what? */
    p.every = NULL;
    p.peak_ms = -1;
    CHECK_EQ(tg_tracker_open(NULL, &p, &t), TG_E_ARG);
    p.size--;
    CHECK_EQ(tg_tracker_open(NULL, &p, &t), TG_E_ARG);
    CHECK_EQ(tg_tracker_open(NULL, NULL, NULL), TG_E_ARG);
    CHECK_EQ(tg_tracker_update(NULL, "run", 1, NULL), TG_E_ARG);
    CHECK(t == NULL);
    CHECK_EQ(tg_tracker_open(NULL, NULL, &t), TG_OK); /* no file, every tenth update */
    tg_tracker_row row = {.size = 1};
    CHECK_EQ(tg_tracker_update(t, "run", 1, &row), TG_E_ARG);
    row.size = sizeof row;
    CHECK_EQ(tg_tracker_update(t, "run", 1, &row), TG_OK);
    CHECK(row.measured_bytes > 0 && row.fresh);
    CHECK_EQ(tg_tracker_close(&t, NULL), TG_OK);
    CHECK_EQ(tg_tracker_close(&t, NULL), TG_OK);
}

static void test_intervals_are_times_or_updates(void)
{
    static const struct {
        const char *text;
        int64_t ms, updates; /* 0 and 0: refused */
    } rows[] = {{"500ms", 500, 0},
                {"2s", 2000, 0},
                {"1.5s", 1500, 0},
                {"1ms", 1, 0},
                {"10u", 0, 10},
                {"1u", 0, 1},
                {"24h", 86400000, 0},
                {"0.4ms", 0, 0},
                {"25h", 0, 0},
                {"0u", 0, 0},
                {"-1u", 0, 0},
                {"10", 0, 0},
                {"10x", 0, 0},
                {"u", 0, 0},
                {"", 0, 0},
                {"1.5u", 0, 0},
                {"9999999999999999999u", 0, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tgi_err e = {0};
        tgi_interval_spec s = {0, 0};
        const int right = rows[i].ms || rows[i].updates;
        CHECK_STATUS(tgi_interval_parse(rows[i].text, &s, &e), right ? TG_OK : TG_E_ARG, e);
        CHECK_EQ(s.ms, rows[i].ms);
        CHECK_EQ(s.updates, rows[i].updates);
    }
}

int main(void)
{
    RUN(test_by_updates_the_first_and_each_tenth_is_a_sample);
    RUN(test_a_row_is_what_the_machine_says);
    RUN(test_the_pool_counts_blocks_and_reservations);
    RUN(test_maxima_carry_the_phase_and_tile_they_had);
    RUN(test_another_phase_is_a_sample_at_once);
    RUN(test_the_peak_stays_after_the_memory_is_gone);
    RUN(test_by_time_rows_come_by_themselves);
    RUN(test_a_stalled_log_does_not_stall_the_labels);
    RUN(test_the_log_is_the_documented_columns_and_a_line_per_sample);
    RUN(test_lines_say_how_long_a_clock_ran_since_the_one_before);
    RUN(test_a_run_that_goes_on_appends_and_its_time_goes_on);
    RUN(test_a_full_disk_ends_the_log_and_nothing_else);
    RUN(test_what_cannot_be_opened_is_refused);
    RUN(test_intervals_are_times_or_updates);
    return TEST_END();
}

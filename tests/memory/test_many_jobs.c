/* test_many_jobs.c - a program that runs many inpaint jobs, one after the other, holds no more behind the last one than
 * behind the first ones: memory as the library counts it, as malloc counts it and as the system does, descriptors, threads.
 * Some of the jobs fail, and are refused, on purpose.
 *
 *     test_many_jobs [PLUGIN] [weights FOLDER]
 *
 * PLUGIN: libtegula_av.so, for jobs that write a film by it. `weights`: 12 jobs of ProPainter instead.
 *
 * malloc keeps small blocks for each thread (its tcache), which it counts as in use: up to 50 KB until all have been seen.
 * So the test runs without (GLIBC_TUNABLES), and what remains is a page or three: the first use of an arena.
 * A leak of 1 KiB a job is four times what each bound allows (LEAST). By hand, to see the test fail: TG_LEAK=BYTES leaks so
 * many a job here. */
#include "tests/tg_test.h"

#include <dirent.h>
#include <malloc.h>
#include <sys/stat.h>
#include <tegula.h>
#include <tegula_memory.h>
#include <tegula_pool.h>

enum {
    LEAST = 256,   /* bytes a job that are too much */
    PAGES = 16384, /* of the system's count, beside: it is one of pages */
    SIDE = 24,
    LARGE = 128, /* ProPainter takes no smaller ones */
    FRAMES = 4
};

typedef struct kind {
    const char *name;
    const char *option[12]; /* names and values */
    tg_status ends;
    int needs_plugin;
} kind;

static const kind kinds[] = {
    {"smooth", {"method", "smooth", "mask-box", "4,4,9,9", "output", "a.y4m"}, TG_OK, 0},
    {"propagate", {"method", "propagate", "mask", "mask.y4m", "output", "b.y4m"}, TG_OK, 0},
    {"pictures", {"method", "smooth", "mask", "mask.y4m", "output", "p%d.png"}, TG_OK, 0},
    {"resized", {"mask-box", "4,4,9,9", "output", "c.y4m", "resize-ratio", "0.8"}, TG_OK, 0},
    {"broken", {"mask-box", "4,4,9,9", "output", "d.y4m", "input", "cut.y4m"}, TG_E_FORMAT, 0},
    {"refused", {"mask-box", "4,4,9,9", "output", "e.y4m", "ram", "1MiB"}, TG_E_BUDGET, 0},
    {"missing", {"mask", "none.png", "output", "f.y4m"}, TG_E_NOT_FOUND, 0},
    {"film", {"mask-box", "4,4,9,9", "output", "g.mkv", "codec", "ffv1"}, TG_OK, 1},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* ---- Films ------------------------------------------------------------------------------- */

/* `cut` bytes are missing at the end. */
static void draw(const char *name, int side, int is_mask, int cut)
{
    static unsigned char pixels[LARGE * LARGE * 3 / 2];
    FILE *f = fopen(name, "wb");
    if (!f)
        exit(2);
    fprintf(f, "YUV4MPEG2 W%d H%d F25:1 %s\n", side, side, is_mask ? "Cmono" : "C420");
    for (int k = 0; k < FRAMES; k++) {
        const size_t n = (size_t)(side * side);
        memset(pixels, 128, sizeof pixels);
        for (int y = 0; y < side; y++)
            for (int x = 0; x < side; x++)
                pixels[y * side + x] =
                    (unsigned char)(is_mask ? (x > side / 3 && x < side / 2 && y > side / 3 &&
                                               y < side / 2) *
                                                  255
                                            : 40 + (9 * x + 5 * y + 7 * k) % 160);
        fputs("FRAME\n", f);
        fwrite(pixels, 1, (is_mask ? n : n * 3 / 2) - (k == FRAMES - 1 ? (size_t)cut : 0), f);
    }
    fclose(f);
}

/* ---- Jobs -------------------------------------------------------------------------------- */

static tg_status run_with(tg_ctx *ctx, tg_opts *o, const char *const *option)
{
    tg_job *job = NULL;
    tg_run_result res = {.size = sizeof res};
    tg_status st = tg_opts_set(o, "yes", "");
    for (int i = 0; st == TG_OK && option[i]; i += 2)
        st = tg_opts_set(o, option[i], option[i + 1]);
    if (st == TG_OK && !tg_opts_get(o, "input"))
        st = tg_opts_set(o, "input", "film.y4m");
    if (st == TG_OK && !tg_opts_get(o, "ram"))
        st = tg_opts_set(o, "ram", "1GiB");
    if (st == TG_OK)
        st = tg_opts_set(o, "threads", "2");
    if (st == TG_OK)
        st = tg_job_open(ctx, o, &job);
    if (st == TG_OK)
        st = tg_job_run(job, &res);
    tg_job_close(&job);
    return st;
}

static void one_job(const char *name, const char *const *option, tg_status ends)
{
    tg_ctx *ctx = NULL;
    tg_opts *o = NULL;
    tg_status st = tg_ctx_open(NULL, &ctx);
    if (st == TG_OK)
        st = tg_opts_new(ctx, &o);
    if (st == TG_OK)
        st = run_with(ctx, o, option);
    if (st != ends)
        fprintf(stderr, "%s: %s\n", name, tg_ctx_detail(ctx));
    CHECK_STR(tg_status_name(st), tg_status_name(ends));
    tg_opts_free(&o);
    tg_ctx_close(&ctx);
}

/* For whoever wants to see the test fail: by malloc, or, negative, of the library's own kind. */
static void leak(void)
{
    const char *bytes = getenv("TG_LEAK");
    const long n = bytes ? strtol(bytes, NULL, 10) : 0;
    void *volatile lost = n > 0   ? malloc((size_t)n)
                          : n < 0 ? tgi_malloc(TGI_TAG_MISC, (size_t)-n)
                                  : NULL;
    if (lost)
        memset(lost, 1, (size_t)labs(n));
}

/* ---- What is held ------------------------------------------------------------------------ */

typedef struct held {
    long long counted, blocks; /* by the library's pool */
    long long malloced;        /* by malloc, of everybody */
    long long resident;        /* by the system: what counts against a budget */
    int descriptors, threads;
} held;

static int entries_of(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static held look(void)
{
    tg_pool_stats s = {.size = sizeof s};
    tg_process_memory m = {.size = sizeof m};
    held h = {.descriptors = entries_of("/proc/self/fd"),
              .threads = entries_of("/proc/self/task")};
    (void)tg_mem_clear(); /* what is only cached is not held */
    CHECK_EQ(tg_pool_get_stats(tg_pool_engine(), &s), TG_OK);
    CHECK_EQ(tg_memory_process(NULL, &m), TG_OK);
    const struct mallinfo2 i = mallinfo2();
    h.counted = (long long)s.allocated_bytes;
    h.blocks = (long long)s.live;
    h.malloced = (long long)(i.uordblks + i.hblkhd);
    h.resident = (long long)m.measured_bytes;
    return h;
}

static void compare(const held *first, const held *last, int jobs)
{
    const long long bound = (long long)LEAST * jobs;
    printf("  %d jobs: counted %+lld bytes in %+lld blocks, malloc %+lld, resident %+lld, "
           "descriptors %+d, threads %+d; allowed %lld\n",
           jobs, last->counted - first->counted, last->blocks - first->blocks,
           last->malloced - first->malloced, last->resident - first->resident,
           last->descriptors - first->descriptors, last->threads - first->threads, bound);
    CHECK_EQ(last->counted, first->counted);
    CHECK_EQ(last->blocks, first->blocks);
    CHECK_EQ(last->descriptors, first->descriptors);
    CHECK_EQ(last->threads, first->threads);
    if (TG_SANITIZED) /* its runtime keeps what was freed */
        return;
    CHECK(last->malloced - first->malloced < bound);
    CHECK(last->resident - first->resident < bound + PAGES);
}

static int with_plugin;

static void many_jobs_hold_no_more_than_some(void)
{
    enum { WARM = 3, ROUNDS = 29 };
    held first = {0};
    int n = 0;
    for (int i = 0; i < ROUNDS; i++) {
        if (i == WARM) {
            first = look();
            n = 0;
        }
        for (int k = 0; k < KINDS; k++)
            if (with_plugin || !kinds[k].needs_plugin) {
                one_job(kinds[k].name, kinds[k].option, kinds[k].ends);
                leak();
                n++;
            }
    }
    const held last = look();
    compare(&first, &last, n);
}

static const char *weights;

static void many_jobs_of_propainter_hold_no_more_than_some(void)
{
    const char *const option[] = {"mask", "mask.y4m", "output", "w.y4m", "raft-iter",
                                  "1",    "weights",  weights,  NULL};
    enum { WARM = 3, JOBS = 12 };
    held first = {0};
    for (int i = 0; i < JOBS; i++) {
        if (i == WARM)
            first = look();
        one_job("propainter", option, TG_OK);
        leak();
    }
    const held last = look();
    compare(&first, &last, JOBS - WARM);
}

static void run_in(const char *folder)
{
    const int side = weights ? LARGE : SIDE;
    if (chdir(folder) != 0)
        exit(2);
    draw("film.y4m", side, 0, 0);
    draw("mask.y4m", side, 1, 0);
    draw("cut.y4m", side, 0, 100);
    if (weights)
        RUN(many_jobs_of_propainter_hold_no_more_than_some);
    else
        RUN(many_jobs_hold_no_more_than_some);
}

static void remove_all(const char *folder)
{
    DIR *d = opendir(folder);
    for (const struct dirent *e; d && (e = readdir(d));)
        (void)unlink(e->d_name);
    if (d)
        closedir(d);
    (void)rmdir(folder);
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/tegula_many_XXXXXX";
    if (!getenv("GLIBC_TUNABLES")) {
        setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1);
        execv("/proc/self/exe", argv);
    }
    with_plugin = argc > 1;
    if (argc > 1)
        setenv("TEGULA_AV_PLUGIN", argv[1], 1);
    weights = argc > 3 ? argv[3] : NULL;
    if (!mkdtemp(folder))
        return 2;
    run_in(folder);
    remove_all(folder);
    return TEST_END();
}

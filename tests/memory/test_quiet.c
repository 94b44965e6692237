/* Between the first and the last band a run allocates nothing, and of the arena that it
 * reserved it writes nearly every page. Both are watched from inside a real job through the
 * public door: malloc is interposed by this program, and the reservation is poisoned before the
 * run. */
#include "engine/base/reserve.h"
#include "tests/tg_test.h"

#include <stdatomic.h>
#include <sys/stat.h>

static char folder[64];

/* ---- malloc, counted --------------------------------------------------------------------- */

static atomic_int watching;
static atomic_long calls;
static atomic_size_t call_bytes;

#if !TG_SANITIZED && defined(__GLIBC__)
#define TG_COUNTS_MALLOC 1
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *malloc(size_t n);
void *calloc(size_t n, size_t size);
void *realloc(void *p, size_t n);

static void count(size_t n)
{
    if (!atomic_load(&watching))
        return;
    atomic_fetch_add(&calls, 1);
    atomic_fetch_add(&call_bytes, n);
}

__attribute__((visibility("default"))) void *malloc(size_t n)
{
    count(n);
    return __libc_malloc(n);
}

__attribute__((visibility("default"))) void *calloc(size_t n, size_t size)
{
    count(n * size);
    return __libc_calloc(n, size);
}

__attribute__((visibility("default"))) void *realloc(void *p, size_t n)
{
    count(n);
    return __libc_realloc(p, n);
}
#endif

/* ---- A job, watched ---------------------------------------------------------------------- */

typedef struct seen {
    uint64_t before, after; /* requests of our own */
    int begun, ended;
    double written; /* percent of the arena's pages */
    int used, peaked, used_by_bands, peaked_by_bands, used_at_exit, peaked_at_exit; /* traced */
} seen;

/* The run's own trace: of the reservation on, behind the bands, at the end. */
static void take_trace(seen *s, const char *line)
{
    static const char head[] = "\u25b3Used Peaked MB:";
    int used = 0, peaked = 0, n = 0;
    if (strncmp(line, head, sizeof head - 1) != 0)
        return;
    CHECK_EQ(sscanf(line + sizeof head - 1, "%d %d%n", &used, &peaked, &n), 2);
    const char *where = line + sizeof head - 1 + n;
    if (strcmp(where, " (run: reserve)") == 0)
        s->used = used, s->peaked = peaked;
    else if (strcmp(where, " (run: bands)") == 0)
        s->used_by_bands = used, s->peaked_by_bands = peaked;
    else if (strcmp(where, " (run: exit)") == 0)
        s->used_at_exit = used, s->peaked_at_exit = peaked;
}

static void on_log(void *user, tg_log_level level, const char *line)
{
    seen *s = user;
    tgi_mem_stats m;
    (void)level;
    take_trace(s, line);
    if (strcmp(line, "bands begin") == 0) {
        tgi_mem_get_stats(&m);
        s->before = m.requests;
        s->begun++;
        atomic_store(&watching, 1);
    } else if (strncmp(line, "bands end", 9) == 0) {
        atomic_store(&watching, 0);
        tgi_mem_get_stats(&m);
        s->after = m.requests;
        s->ended++;
        CHECK_EQ(sscanf(line, "bands end; %lf", &s->written), 1);
    }
}

static const char *path_of(const char *name)
{
    static char path[2][128];
    static int next;
    char *p = path[next++ & 1];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

/* A grey or RGB picture as the writer's own copy of an array. */
static void make_image(int h, int w, int channels)
{
    FILE *f = fopen(path_of("in.npy"), "wb");
    char head[118];
    uint64_t seed = 9;
    CHECK(f != NULL);
    if (!f)
        exit(1);
    if (channels == 1)
        snprintf(head, sizeof head,
                 "{'descr': '|u1', 'fortran_order': False, 'shape': (%d, %d), }", h, w);
    else
        snprintf(head, sizeof head,
                 "{'descr': '|u1', 'fortran_order': False, 'shape': (%d, %d, %d), }", channels,
                 h, w);
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, f);
    fprintf(f, "%-117s\n", head);
    for (int64_t i = 0; i < (int64_t)h * w * channels; i++)
        fputc((int)(tg_rand(&seed) >> 56), f);
    CHECK_EQ(fclose(f), 0);
    tg_ctx *ctx = NULL;
    tg_opts *o = NULL;
    CHECK_EQ(tg_ctx_open(NULL, &ctx), TG_OK);
    CHECK_EQ(tg_opts_new(ctx, &o), TG_OK);
    CHECK_EQ(tg_opts_set(o, "input", path_of("in.npy")), TG_OK);
    CHECK_EQ(tg_opts_set(o, "output", path_of("in.tif")), TG_OK);
    CHECK_EQ(tg_opts_set(o, "axes", channels == 1 ? "YX" : "CYX"), TG_OK);
    CHECK_EQ(tg_opts_set(o, "compress", "deflate"), TG_OK);
    CHECK_EQ(tg_opts_set(o, "yes", "true"), TG_OK);
    CHECK_EQ(tg_copy(ctx, o), TG_OK);
    tg_opts_free(&o);
    tg_ctx_close(&ctx);
}

static void run_job(const char *model, const char *ram, const char *compress, seen *s)
{
    const tg_ctx_opts co = {.size = sizeof co, .log = on_log, .user = s};
    const char *const o[][2] = {{"model", model},
                                {"input", path_of("in.tif")},
                                {"ram", TG_SANITIZED ? "192MiB" : ram},
                                {"compress", compress},
                                {"output", path_of("out.tif")},
                                {"dtype", "float32"},
                                {"threads", "2"},
                                {"yes", "true"}};
    tg_ctx *ctx = NULL;
    tg_opts *opts = NULL;
    tg_job *job = NULL;
    tg_run_result res = {.size = sizeof res};
    *s = (seen){.used_at_exit = -1};
    atomic_store(&calls, 0);
    atomic_store(&call_bytes, 0);
    CHECK_EQ(tg_ctx_open(&co, &ctx), TG_OK);
    CHECK_EQ(tg_opts_new(ctx, &opts), TG_OK);
    for (size_t i = 0; i < sizeof o / sizeof o[0]; i++)
        CHECK_EQ(tg_opts_set(opts, o[i][0], o[i][1]), TG_OK);
    tg_status st = tg_job_open(ctx, opts, &job);
    if (st == TG_OK)
        st = tg_job_run(job, &res);
    atomic_store(&watching, 0);
    CHECK_EQ(st, TG_OK);
    if (st != TG_OK)
        fprintf(stderr, "  %s\n", tg_ctx_detail(ctx));
    CHECK(res.bands > 1);
    tg_job_close(&job);
    tg_opts_free(&opts);
    tg_ctx_close(&ctx);
}

typedef struct row {
    const char *name;
    int channels, h, w;
    const char *ram;
} row;

static const row rows[] = {{"own", 1, 700, 1500, "48MiB"},
                           {"unet2d_nuclei_broad", 1, 512, 1024, "64MiB"},
                           {"fmd_noise2noise_unet", 1, 384, 512, "160MiB"},
                           {"kair_dncnn25", 1, 400, 300, "64MiB"},
                           {"span_x2_nomosuni", 3, 400, 160, "64MiB"},
                           {"compact_x2_nomosuni", 3, 400, 128, "64MiB"},
                           {"fsrcnn_x2", 1, 400, 900, "64MiB"},
                           {"super_resolution_10", 1, 400, 700, "64MiB"},
                           {"sci_low_light", 3, 600, 1200, "64MiB"}};

static void watch_row(const row *r, const char *compress)
{
    seen s;
    char model[768];
    snprintf(model, sizeof model, "%s/data/models/%s/model.onnx", TG_SHARED_DATA, r->name);
    if (strcmp(r->name, "own") == 0)
        snprintf(model, sizeof model, "%s/models/tegula_denoise.onnx", TG_SOURCE_DIR);
    if (!tg_has(model))
        return;
    make_image(r->h, r->w, r->channels);
    run_job(model, r->ram, compress, &s);
    printf("%-22s %-8s %5.1f %% of the arena written; in the bands %llu requests of ours, %ld "
           "calls of malloc (%zu bytes)\n",
           r->name, compress, s.written, (unsigned long long)(s.after - s.before),
           atomic_load(&calls), atomic_load(&call_bytes));
    CHECK_EQ(s.begun, 1);
    CHECK_EQ(s.ended, 1);
    CHECK_EQ(s.after - s.before, 0);
    CHECK(s.written >= 95.0);
    CHECK(s.used > 0 && s.peaked == 0); /* the reservation is what the run takes ... */
    CHECK(abs(s.used_by_bands - s.used) <= 1 && s.peaked_by_bands <= 1);
    CHECK(s.used_at_exit == 0 && abs(s.peaked_at_exit - s.used) <= 1); /* ... and gives back */
    CHECK(atomic_load(&call_bytes) <= 64 * 1024); /* the libraries' own, once */
}

static void test_bands_allocate_nothing_and_write_the_arena_they_reserved(void)
{
    static const char *const ways[] = {"none", "deflate", "zstd"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        watch_row(&rows[i], ways[i % 3]);
}

static void test_the_share_written_is_counted_by_pages(void)
{
    tgi_reserve *r = NULL;
    tgi_err e = {0};
    void *p = NULL;
    CHECK_OK(tgi_reserve_open(100 * 4096, &r, &e), e);
    CHECK_OK(tgi_reserve_take(r, "arena", 100 * 4096, &p, &e), e);
    CHECK_NEAR(tgi_reserve_touched(r, "arena"), 0.0, 0.0);
    memset(p, 0, 25 * 4096);
    CHECK_NEAR(tgi_reserve_touched(r, "arena"), 0.25, 1e-12);
    tgi_reserve_close(&r);
}

#ifdef TG_COUNTS_MALLOC
static void test_the_interposed_malloc_counts(void)
{
    atomic_store(&calls, 0);
    atomic_store(&watching, 1);
    void *volatile p = malloc(100); /* volatile: the pair is not optimised away */
    void *q = tgi_malloc(TGI_TAG_MISC, 10);
    atomic_store(&watching, 0);
    CHECK(p && q);
    CHECK_EQ(atomic_load(&calls), 2);
    free(p);
    tgi_free(q);
}
#endif

int main(void)
{
    char wipe[128];
    setenv("TEGULA_POISON", "1", 1);
    snprintf(folder, sizeof folder, "/tmp/tegula-quiet-XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    RUN(test_the_share_written_is_counted_by_pages);
#ifdef TG_COUNTS_MALLOC
    RUN(test_the_interposed_malloc_counts);
#endif
    RUN(test_bands_allocate_nothing_and_write_the_arena_they_reserved);
    snprintf(wipe, sizeof wipe, "rm -rf '%s'", folder);
    if (system(wipe) != 0)
        perror(wipe);
    return TEST_END();
}

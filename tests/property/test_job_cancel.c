/* tg_job_cancel stops the call on one job and no other: two threads, each with a context and a
 * job of its own, are held in the midst of their runs; one is cancelled there, the other goes
 * on to its end. */
#include "tests/unit/job_help.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#define MODEL TG_SOURCE_DIR "/models/tegula_denoise.onnx"

static char *read_all(const char *path, size_t *n)
{
    struct stat st = {0};
    FILE *f = fopen(path, "rb");
    CHECK(f != NULL && stat(path, &st) == 0);
    char *all = calloc((size_t)st.st_size + 1, 1);
    *n = f && all ? fread(all, 1, (size_t)st.st_size, f) : 0;
    CHECK(*n > 0 && *n == (size_t)st.st_size);
    if (f)
        fclose(f);
    return all;
}

typedef struct runner {
    char input[160], output[160];
    atomic_int midst, go; /* it is in the midst of its run; it may go on */
    tg_job *job;
    tg_status st, again;
    char detail[256];
} runner;

static void wait_until(const atomic_int *flag)
{
    while (!atomic_load(flag))
        usleep(1000);
}

static void hold(void *user, const tg_progress *p)
{
    runner *r = user;
    if (strcmp(p->phase, "run") != 0)
        return;
    atomic_store(&r->midst, 1);
    wait_until(&r->go);
}

/* On threads of their own nothing is CHECKed: who joins them does. */
static tg_status options(tg_ctx *of, const char *input, const char *output, tg_opts **out)
{
    const char *const set[][2] = {{"model", MODEL},  {"tile", "64"},   {"threads", "1"},
                                  {"ram", "256MiB"}, {"input", input}, {"output", output}};
    tg_status st = tg_opts_new(of, out);
    for (size_t i = 0; i < sizeof set / sizeof set[0] && st == TG_OK; i++)
        st = tg_opts_set(*out, set[i][0], set[i][1]);
    return st;
}

static void *run(void *arg)
{
    runner *r = arg;
    const tg_ctx_opts how = {.size = sizeof how, .progress = hold, .user = r};
    tg_run_result res = {.size = sizeof res};
    tg_ctx *own = NULL;
    tg_opts *o = NULL;
    r->st = tg_ctx_open(&how, &own);
    if (r->st == TG_OK)
        r->st = options(own, r->input, r->output, &o);
    if (r->st == TG_OK)
        r->st = tg_job_open(own, o, &r->job);
    if (r->st == TG_OK)
        r->st = tg_job_run(r->job, &res);
    snprintf(r->detail, sizeof r->detail, "%s", tg_ctx_detail(own));
    if (r->st == TG_E_CANCELLED) /* the request went with the call */
        r->again = tg_job_run(r->job, &res);
    tg_job_close(&r->job);
    tg_opts_free(&o);
    tg_ctx_close(&own);
    atomic_store(&r->midst, 1); /* of one that did not come so far */
    return NULL;
}

static void test_one_of_two_runs_is_cancelled(void)
{
    static runner a, b;
    pthread_t of_a, of_b;
    char *bytes[2];
    size_t n[2];
    snprintf(a.input, sizeof a.input, "%s", in_folder("x.tif"));
    snprintf(b.input, sizeof b.input, "%s", in_folder("x.tif"));
    snprintf(a.output, sizeof a.output, "%s", in_folder("a.tif"));
    snprintf(b.output, sizeof b.output, "%s", in_folder("b.tif"));
    CHECK_EQ(pthread_create(&of_a, NULL, run, &a), 0);
    CHECK_EQ(pthread_create(&of_b, NULL, run, &b), 0);
    wait_until(&a.midst);
    wait_until(&b.midst);
    tg_job_cancel(a.job);
    tg_job_cancel(a.job);
    atomic_store(&a.go, 1);
    CHECK_EQ(pthread_join(of_a, NULL), 0);
    CHECK_EQ(a.st, TG_E_CANCELLED);
    CHECK_EQ(a.again, TG_OK);
    CHECK(strstr(a.detail, "stopped by its caller") != NULL);
    atomic_store(&b.go, 1);
    CHECK_EQ(pthread_join(of_b, NULL), 0);
    if (b.st != TG_OK)
        fprintf(stderr, "the other run: %s\n", b.detail);
    CHECK_EQ(b.st, TG_OK);
    bytes[0] = read_all(a.output, &n[0]);
    bytes[1] = read_all(b.output, &n[1]);
    CHECK(n[0] == n[1] && bytes[0] && bytes[1] && memcmp(bytes[0], bytes[1], n[0]) == 0);
    free(bytes[0]);
    free(bytes[1]);
}

/* With nothing running the request is the next call's, once. */
static void test_a_request_between_calls(void)
{
    tg_opts *o = NULL;
    CHECK_EQ(options(ctx, in_folder("x.tif"), in_folder("c.tif"), &o), TG_OK);
    tg_job *job = NULL;
    tg_plan_info p = {.size = sizeof p};
    CHECK_EQ(tg_job_open(ctx, o, &job), TG_OK);
    tg_job_cancel(job);
    CHECK_EQ(tg_job_plan(job, &p), TG_E_CANCELLED);
    CHECK_EQ(tg_job_plan(job, &p), TG_OK);
    tg_job_cancel(NULL);
    CHECK_EQ(tg_cancel_signal(), 0);
    tg_job_close(&job);
    tg_opts_free(&o);
}

int main(void)
{
    const tgi_desc d = {TG_DTYPE_F32, 2, {384, 384}};
    static float x[384 * 384];
    uint64_t seed = 5;
    tgi_err err = {0};
    help_open();
    for (size_t i = 0; i < sizeof x / sizeof x[0]; i++)
        x[i] = tg_rand_unit(&seed);
    CHECK_OK(tgi_npy_save(in_folder("x.npy"), &d, x, &err), err);
    CHECK_COPY(TG_OK, "input", in_folder("x.npy"), "output", in_folder("x.tif"));
    RUN(test_one_of_two_runs_is_cancelled);
    RUN(test_a_request_between_calls);
    help_close();
    return TEST_END();
}

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
    char output[160];
    atomic_int midst, go; /* it is in the midst of its run; it may go on */
    tg_job *job;
    tg_status st;
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

static tg_opts *options(tg_ctx *of, const char *output)
{
    static const char *const set[][2] = {
        {"model", MODEL}, {"tile", "64"}, {"threads", "1"}, {"ram", "256MiB"}};
    tg_opts *o = NULL;
    CHECK_EQ(tg_opts_new(of, &o), TG_OK);
    for (size_t i = 0; i < sizeof set / sizeof set[0]; i++)
        CHECK_EQ(tg_opts_set(o, set[i][0], set[i][1]), TG_OK);
    CHECK_EQ(tg_opts_set(o, "input", in_folder("x.tif")), TG_OK);
    CHECK_EQ(tg_opts_set(o, "output", output), TG_OK);
    return o;
}

static void *run(void *arg)
{
    runner *r = arg;
    const tg_ctx_opts how = {.size = sizeof how, .progress = hold, .user = r};
    tg_run_result res = {.size = sizeof res};
    tg_ctx *own = NULL;
    r->st = tg_ctx_open(&how, &own);
    tg_opts *o = options(own, r->output);
    r->st = tg_job_open(own, o, &r->job);
    if (r->st == TG_OK)
        r->st = tg_job_run(r->job, &res);
    snprintf(r->detail, sizeof r->detail, "%s", tg_ctx_detail(own));
    if (r->st == TG_E_CANCELLED) /* the request went with the call */
        CHECK_EQ(tg_job_run(r->job, &res), TG_OK);
    tg_job_close(&r->job);
    tg_opts_free(&o);
    tg_ctx_close(&own);
    return NULL;
}

static void test_one_of_two_runs_is_cancelled(void)
{
    static runner a, b;
    pthread_t of_a, of_b;
    char *bytes[2];
    size_t n[2];
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
    tg_opts *o = options(ctx, in_folder("c.tif"));
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

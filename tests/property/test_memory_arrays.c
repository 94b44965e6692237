/* Inputs and outputs in memory (tegula_array.h): the bytes of the same job from file to file,
 * under the same budget, from arrays of any strides and from functions, on the running thread
 * and one call at a time. The network is the one that is shipped: [N,1,H,W] to [N,1,H,W]. */
#include "engine/base/arith.h"
#include "io/npy.h"
#include "tegula_array.h"
#include "tests/unit/job_help.h"

#include <pthread.h>

#define MODEL TG_SOURCE_DIR "/models/tegula_denoise.onnx"

enum { N = 2, H = 96, W = 132 };
#define ALL ((size_t)N * H * W)

static float pixels[N][H][W], want[N][H][W], got[N][H][W];

static void draw(uint64_t seed)
{
    for (size_t i = 0; i < ALL; i++)
        (&pixels[0][0][0])[i] = tg_rand_unit(&seed);
}

static tg_array array_of(void *data, int rank, const int64_t *shape)
{
    tg_array a = {.size = sizeof a, .dtype = TG_DTYPE_F32, .rank = rank, .data = data};
    memcpy(a.shape, shape, (size_t)rank * sizeof *shape);
    return a;
}

static tg_array batch_of(void *data)
{
    return array_of(data, 4, (const int64_t[]){N, 1, H, W});
}

static tg_opts *options(void)
{
    tg_opts *o = NULL;
    CHECK_EQ(tg_opts_new(ctx, &o), TG_OK);
    CHECK_EQ(tg_opts_set(o, "model", MODEL), TG_OK);
    /* A sanitizer's memory counts as the process's. */
    CHECK_EQ(tg_opts_set(o, "ram", TG_SANITIZED ? "1GiB" : "40MiB"), TG_OK);
    CHECK_EQ(tg_opts_set(o, "tile", "64x48"), TG_OK); /* several cells */
    return o;
}

/* From file to file. */
static void make_want(void)
{
    const tgi_desc d = {TG_DTYPE_F32, 4, {N, 1, H, W}};
    char in[256], out[256];
    tgi_err e = {0};
    tgi_desc got_desc;
    void *data = NULL;
    tg_job *job = NULL;
    tg_opts *o = options();
    snprintf(in, sizeof in, "%s", in_folder("in.npy"));
    snprintf(out, sizeof out, "%s", in_folder("out.npy"));
    CHECK_OK(tgi_npy_save(in, &d, pixels, &e), e);
    tg_opts_set(o, "input", in);
    tg_opts_set(o, "output", out);
    tg_opts_set(o, "yes", "true");
    CHECK_EQ(tg_job_open(ctx, o, &job), TG_OK);
    CHECK_EQ(tg_job_run(job, NULL), TG_OK);
    CHECK_OK(tgi_npy_load(out, 0, &got_desc, &data, &e), e);
    CHECK(data && tgi_desc_same_shape(&got_desc, &d));
    if (data)
        memcpy(want, data, sizeof want);
    tgi_free(data);
    tg_job_close(&job);
    tg_opts_free(&o);
}

static tg_status run_arrays(const tg_array *in, const tg_array *out, tg_run_result *res)
{
    tg_opts *o = options();
    tg_job *job = NULL;
    tg_status st = tg_opts_set_source(o, NULL, in);
    if (st == TG_OK)
        st = tg_opts_set_sink(o, NULL, out);
    if (st == TG_OK)
        st = tg_job_open(ctx, o, &job);
    if (st == TG_OK)
        st = tg_job_run(job, res);
    tg_job_close(&job);
    tg_opts_free(&o);
    return st;
}

static void check_run(const tg_array *in, const tg_array *out)
{
    const tg_status st = run_arrays(in, out, NULL);
    CHECK_EQ(st, TG_OK);
    if (st != TG_OK)
        fprintf(stderr, "%s\n", tg_ctx_detail(ctx));
}

/* ---- The same as files ------------------------------------------------------------------- */

static void test_memory_to_memory_gives_the_bytes_of_file_to_file(void)
{
    const tg_array in = batch_of(pixels), out = batch_of(got);
    tg_run_result res = {.size = sizeof res};
    memset(got, 0xee, sizeof got);
    CHECK_EQ(run_arrays(&in, &out, &res), TG_OK);
    CHECK(memcmp(got, want, sizeof want) == 0);
    CHECK(res.predicted_peak_bytes > 0 && res.predicted_peak_bytes <= res.budget_bytes);
    CHECK(TG_SANITIZED || res.measured_peak_bytes <= res.predicted_peak_bytes);
    CHECK(res.output == NULL);
    printf("     peak %.1f MiB of %.1f MiB planned\n",
           (double)res.measured_peak_bytes / 1048576.0,
           (double)res.predicted_peak_bytes / 1048576.0);
}

static void test_an_image_in_and_memory_out(void)
{
    char image[256], file[256];
    const tgi_desc d = {TG_DTYPE_F32, 4, {1, 1, H, W}};
    tgi_err e = {0};
    snprintf(file, sizeof file, "%s", in_folder("plane.npy"));
    snprintf(image, sizeof image, "%s", in_folder("plane.tif"));
    CHECK_OK(tgi_npy_save(file, &d, pixels, &e), e);
    CHECK_EQ(copy("", "input", file, "output", image, NULL), TG_OK);
    tg_opts *o = options();
    tg_job *job = NULL;
    const char *name = NULL;
    tg_array out = {.size = sizeof out};
    tg_opts_set(o, "input", image);
    tg_opts_set(o, "normalize", "none");
    CHECK_EQ(tg_opts_set_sink(o, "denoised", &out), TG_OK);
    CHECK_EQ(tg_job_open(ctx, o, &job), TG_OK);
    CHECK_EQ(tg_job_output(job, 0, &name, &out), TG_OK);
    CHECK_STR(name, "denoised");
    CHECK(out.dtype == TG_DTYPE_F32 && out.rank == 4 && out.shape[2] == H && out.shape[3] == W);
    CHECK_EQ(tg_job_output(job, 1, NULL, &out), TG_E_NOT_FOUND);
    CHECK_EQ(tg_job_run(job, NULL), TG_E_ARG); /* no data yet */
    memset(got, 0xee, sizeof got);
    out.data = got;
    CHECK_EQ(tg_job_run(job, NULL), TG_OK);
    CHECK(memcmp(got[0], want[0], sizeof got[0]) == 0);
    tg_job_close(&job);
    tg_opts_free(&o);
}

static void test_memory_in_and_a_file_out(void)
{
    const tg_array in = batch_of(pixels);
    char path[256];
    tgi_desc d;
    void *data = NULL;
    tgi_err e = {0};
    tg_job *job = NULL;
    tg_opts *o = options();
    snprintf(path, sizeof path, "%s", in_folder("from_memory.npy"));
    CHECK_EQ(tg_opts_set_source(o, "image", &in), TG_OK);
    tg_opts_set(o, "output", path);
    CHECK_EQ(tg_job_open(ctx, o, &job), TG_OK);
    CHECK_EQ(tg_job_run(job, NULL), TG_OK);
    CHECK_OK(tgi_npy_load(path, 0, &d, &data, &e), e);
    CHECK(data && memcmp(data, want, sizeof want) == 0);
    tgi_free(data);
    tg_job_close(&job);
    tg_opts_free(&o);
}

/* ---- How arrays may lie ------------------------------------------------------------------ */

/* Axes in memory in another order, and with gaps. */
static void check_layout(const char *what, const int64_t in_stride[4],
                         const int64_t out_stride[4])
{
    enum { ROOM = 4 * N * H * W };
    static float a[ROOM], b[ROOM];
    tg_array in = batch_of(a), out = batch_of(b);
    int wrong = 0;
    for (int i = 0; i < ROOM; i++)
        b[i] = -7;
    for (int n = 0; n < N; n++)
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++)
                a[n * in_stride[0] + y * in_stride[2] + x * in_stride[3]] = pixels[n][y][x];
    for (int k = 0; k < 4; k++) {
        in.stride[k] = in_stride[k] * (int64_t)sizeof(float);
        out.stride[k] = out_stride[k] * (int64_t)sizeof(float);
    }
    check_run(&in, &out);
    for (int n = 0; n < N; n++)
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++) {
                float *at = &b[n * out_stride[0] + y * out_stride[2] + x * out_stride[3]];
                wrong += memcmp(at, &want[n][y][x], sizeof *at) != 0;
                *at = -7;
            }
    CHECK_EQ(wrong, 0);
    for (int i = 0; i < ROOM; i++) /* nothing beside the elements was written */
        wrong += b[i] != -7;
    CHECK_EQ(wrong, 0);
    if (wrong)
        fprintf(stderr, "     %s\n", what);
}

static void test_any_strides(void)
{
    const int64_t plain[4] = {H * W, H * W, W, 1}, pitch[4] = {(W + 12) * H, 1, W + 12, 1},
                  turned[4] = {H * W, 9, 1, H}, apart[4] = {2 * H * W, 1, 2 * W, 2},
                  mixed[4] = {1, 1, N * W, N};
    check_layout("rows with a pitch", pitch, pitch);
    check_layout("columns side by side", turned, turned);
    check_layout("every second element", apart, apart);
    check_layout("samples interleaved", mixed, mixed);
    check_layout("one way in, another out", turned, apart);
    check_layout("plain", plain, pitch);
}

static void test_one_row_for_all(void)
{
    tg_array in = batch_of(pixels), out = batch_of(got);
    static float full[N][H][W], there[N][H][W];
    in.stride[3] = sizeof(float); /* all else 0 */
    check_run(&in, &out);
    for (int n = 0; n < N; n++)
        for (int y = 0; y < H; y++)
            memcpy(full[n][y], pixels[0][0], sizeof full[n][y]);
    tg_array in2 = batch_of(full), out2 = batch_of(there);
    check_run(&in2, &out2);
    CHECK(memcmp(got, there, sizeof there) == 0);
}

static void test_axes_of_one_may_be_left_out_in_front(void)
{
    const int64_t two[] = {H, W}, three[] = {1, H, W}, out_shape[] = {1, 1, H, W};
    for (int k = 0; k < 2; k++) {
        const tg_array in = array_of(pixels, k ? 3 : 2, k ? three : two),
                       out = array_of(got, 4, out_shape);
        memset(got, 0xee, sizeof got);
        check_run(&in, &out);
        CHECK(memcmp(got[0], want[0], sizeof got[0]) == 0);
    }
}

static void test_other_types_are_their_numbers(void)
{
    static uint8_t bytes[N][H][W];
    static float floats[N][H][W], there[N][H][W];
    for (size_t i = 0; i < ALL; i++)
        (&floats[0][0][0])[i] = (&bytes[0][0][0])[i] = (uint8_t)(i * 2654435761u >> 24);
    tg_array in = batch_of(bytes), out = batch_of(got);
    const tg_array in2 = batch_of(floats), out2 = batch_of(there);
    in.dtype = TG_DTYPE_U8;
    check_run(&in, &out);
    check_run(&in2, &out2);
    CHECK(memcmp(got, there, sizeof there) == 0);
}

/* ---- Functions --------------------------------------------------------------------------- */

typedef struct mover {
    pthread_t on;
    int inside, wrong, calls;
    float *from, *to;
    int fail_at;                /* this call answers TG_E_IO; 0: none does */
    int cancel_at;              /* this call cancels *job; 0: none does */
    int64_t moved, cancel_when; /* elements so far, and at which */
    tg_job **job;
    tg_job **other;  /* that the first call runs, */
    tg_status inner; /* with this answer */
} mover;

static tg_status move(void *user, int64_t first, int64_t n, void *elements)
{
    mover *m = user;
    m->wrong += m->inside++ != 0 || !pthread_equal(m->on, pthread_self()) || n < 1 ||
                first < 0 || first + n > (int64_t)ALL;
    m->calls++;
    if (m->from)
        memcpy(elements, m->from + first, (size_t)n * sizeof(float));
    else
        memcpy(m->to + first, elements, (size_t)n * sizeof(float));
    m->moved += n;
    if (m->calls == m->cancel_at || (m->cancel_when && m->moved == m->cancel_when))
        tg_job_cancel(*m->job);
    if (m->other && m->calls == 1)
        m->inner = tg_job_run(*m->other, NULL);
    m->inside--;
    return m->calls == m->fail_at ? TG_E_IO : TG_OK;
}

static tg_array moved(mover *m)
{
    tg_array a = batch_of(NULL);
    m->on = pthread_self();
    a.move = move;
    a.user = m;
    return a;
}

static void test_functions_on_the_running_thread_one_at_a_time(void)
{
    mover from = {.from = &pixels[0][0][0]}, to = {.to = &got[0][0][0]};
    const tg_array in = moved(&from), out = moved(&to);
    memset(got, 0xee, sizeof got);
    check_run(&in, &out);
    CHECK(memcmp(got, want, sizeof want) == 0);
    CHECK_EQ(from.wrong + to.wrong, 0);
    CHECK(from.calls > 2 && to.calls > 2);
}

static void test_what_a_function_answers_ends_the_run(void)
{
    mover from = {.from = &pixels[0][0][0], .fail_at = 2}, to = {.to = &got[0][0][0]};
    tg_array in = moved(&from), out = moved(&to);
    CHECK_EQ(run_arrays(&in, &out, NULL), TG_E_IO);
    CHECK(strstr(tg_ctx_detail(ctx), "source") != NULL);
    CHECK_EQ(from.calls, 2);
    from = (mover){.from = &pixels[0][0][0]};
    to.fail_at = 1;
    in = moved(&from), to.calls = 0;
    CHECK_EQ(run_arrays(&in, &out, NULL), TG_E_IO);
    CHECK(strstr(tg_ctx_detail(ctx), "sink") != NULL);
    CHECK_EQ(to.calls, 1);
}

static tg_job *job_of(const tg_array *in, const tg_array *out)
{
    tg_opts *o = options();
    tg_job *job = NULL;
    CHECK_EQ(tg_opts_set_source(o, NULL, in), TG_OK);
    CHECK_EQ(tg_opts_set_sink(o, NULL, out), TG_OK);
    CHECK_EQ(tg_job_open(ctx, o, &job), TG_OK);
    tg_opts_free(&o);
    return job;
}

static void test_a_function_may_cancel_its_job(void)
{
    mover from = {.from = &pixels[0][0][0], .cancel_at = 3};
    tg_array in = moved(&from), out = batch_of(got);
    tg_job *job = job_of(&in, &out);
    from.job = &job;
    CHECK_EQ(tg_job_run(job, NULL), TG_E_CANCELLED);
    from.cancel_at = 0;
    memset(got, 0xee, sizeof got);
    CHECK_EQ(tg_job_run(job, NULL), TG_OK);
    CHECK(memcmp(got, want, sizeof want) == 0);
    tg_job_close(&job);
}

/* The call it came in failed for another reason, or was through before it looked. */
static void test_a_request_that_stopped_nothing_is_the_next_calls(void)
{
    mover from = {.from = &pixels[0][0][0], .fail_at = 2, .cancel_at = 2},
          to = {.to = &got[0][0][0]};
    tg_array in = moved(&from), out = moved(&to);
    tg_job *job = job_of(&in, &out);
    from.job = to.job = &job;
    CHECK_EQ(tg_job_run(job, NULL), TG_E_IO);
    CHECK_EQ(tg_job_run(job, NULL), TG_E_CANCELLED);
    from.fail_at = from.cancel_at = 0;
    CHECK_EQ(tg_job_run(job, NULL), TG_OK);
    to.moved = 0;
    to.cancel_when = (int64_t)ALL; /* the last ones */
    const tg_status st = tg_job_run(job, NULL);
    to.cancel_when = 0;
    CHECK(st == TG_OK || st == TG_E_CANCELLED);
    CHECK_EQ(tg_job_plan(job, NULL), st == TG_OK ? TG_E_CANCELLED : TG_OK);
    CHECK_EQ(tg_job_run(job, NULL), TG_OK);
    tg_job_close(&job);
}

/* A runs B, and B runs A: the plan of A is in use. */
static void test_a_job_at_work_is_not_run_again_by_way_of_another(void)
{
    static float other[N][H][W];
    mover a = {.from = &pixels[0][0][0]}, b = {.from = &pixels[0][0][0]};
    tg_array in_a = moved(&a), out_a = batch_of(got), in_b = moved(&b), out_b = batch_of(other);
    tg_job *of_a = job_of(&in_a, &out_a), *of_b = job_of(&in_b, &out_b);
    a.other = &of_b;
    b.other = &of_a;
    memset(got, 0xee, sizeof got);
    CHECK_EQ(tg_job_run(of_a, NULL), TG_OK);
    CHECK_EQ(a.inner, TG_OK);
    CHECK_EQ(b.inner, TG_E_BUSY);
    CHECK(memcmp(got, want, sizeof want) == 0 && memcmp(other, want, sizeof want) == 0);
    tg_job_close(&of_a);
    tg_job_close(&of_b);
}

/* What a call in it left in the context is not what the outer one says. */
static void test_the_detail_is_that_of_the_call_which_ended_last(void)
{
    mover from = {.from = &pixels[0][0][0], .fail_at = 1};
    tg_verify_result v = {.size = sizeof v};
    tg_array in = moved(&from), out = batch_of(got);
    tg_job *job = job_of(&in, &out);
    from.other = &job;
    CHECK_EQ(tg_job_verify(job, &v), TG_E_IO);
    CHECK_EQ(from.inner, TG_E_BUSY);
    CHECK(strstr(tg_ctx_detail(ctx), "function of the source") != NULL);
    tg_job_close(&job);
}

/* ---- Again, and refusals ----------------------------------------------------------------- */

static void test_one_job_runs_again_on_other_pixels(void)
{
    static float other[N][H][W], there[N][H][W];
    tg_array in = batch_of(pixels), out = batch_of(got);
    tg_opts *o = options();
    tg_job *job = NULL;
    tg_opts_set_source(o, NULL, &in);
    tg_opts_set_sink(o, NULL, &out);
    CHECK_EQ(tg_job_open(ctx, o, &job), TG_OK);
    tg_opts_free(&o);
    CHECK_EQ(tg_job_run(job, NULL), TG_OK);
    for (size_t i = 0; i < ALL; i++)
        (&other[0][0][0])[i] = -(&pixels[0][0][0])[i];
    in.data = other;
    out.data = there;
    CHECK_EQ(tg_job_run(job, NULL), TG_OK);
    CHECK(memcmp(there, want, sizeof want) != 0);
    in.data = pixels;
    CHECK_EQ(tg_job_run(job, NULL), TG_OK);
    CHECK(memcmp(there, want, sizeof want) == 0 && memcmp(got, want, sizeof want) == 0);
    in.shape[2]--; /* another shape than was planned is refused each time */
    for (int k = 0; k < 2; k++)
        CHECK_EQ(tg_job_run(job, NULL), TG_E_ARG);
    in.shape[2]++;
    memset(there, 0xee, sizeof there);
    CHECK_EQ(tg_job_run(job, NULL), TG_OK);
    CHECK(memcmp(there, want, sizeof want) == 0);
    tg_job_close(&job);
}

static void test_verify_reads_what_is_there_now(void)
{
    tg_array in = batch_of(NULL), out = batch_of(got);
    tg_verify_result v = {.size = sizeof v};
    tg_opts *o = options();
    tg_job *job = NULL;
    tg_opts_set_source(o, NULL, &in);
    tg_opts_set_sink(o, NULL, &out);
    CHECK_EQ(tg_job_open(ctx, o, &job), TG_OK);
    CHECK_EQ(tg_job_plan(job, NULL), TG_OK);
    v.tiles = 777;
    v.output_max = -5;
    CHECK_EQ(tg_job_verify(job, &v), TG_E_ARG); /* no data */
    CHECK(v.tiles == 777 && v.output_max == -5 && v.outputs == NULL);
    in.data = pixels;
    CHECK_EQ(tg_job_verify(job, &v), TG_OK);
    tg_job_close(&job);
    tg_opts_free(&o);
}

/* What the list of regions would be named without an output is somebody's. */
static void test_damage_of_an_image_is_counted_and_nothing_written(void)
{
    char image[256], file[256];
    const tgi_desc d = {TG_DTYPE_F32, 4, {1, 1, H, W}};
    tgi_err e = {0};
    snprintf(file, sizeof file, "%s", in_folder("whole.npy"));
    snprintf(image, sizeof image, "%s", in_folder("damaged.tif"));
    CHECK_OK(tgi_npy_save(file, &d, pixels, &e), e);
    CHECK_EQ(copy("", "input", file, "output", image, "compress", "deflate", NULL), TG_OK);
    FILE *f = fopen(image, "r+b");
    CHECK(f && fseek(f, -4096, SEEK_END) == 0);
    for (int i = 0; f && i < 64; i++)
        fputc(0x5a, f);
    if (f)
        fclose(f);
    FILE *theirs = fopen(".errors.partial", "wx");
    CHECK(theirs != NULL);
    if (theirs)
        fclose(theirs);
    tg_opts *o = options();
    tg_job *job = NULL;
    tg_run_result res = {.size = sizeof res};
    tg_array out = array_of(got, 4, (const int64_t[]){1, 1, H, W});
    tg_opts_set(o, "input", image);
    tg_opts_set(o, "normalize", "none");
    tg_opts_set(o, "on-bad-tile", "fill");
    tg_opts_set_sink(o, NULL, &out);
    CHECK_EQ(tg_job_open(ctx, o, &job), TG_OK);
    CHECK_EQ(tg_job_run(job, &res), TG_E_FORMAT);
    CHECK(res.bad_regions > 0);
    CHECK(strstr(tg_ctx_detail(ctx), "count as 0") != NULL);
    CHECK(exists(".errors.partial") && !exists(".errors.json"));
    unlink(".errors.partial");
    CHECK_EQ(tg_job_run(job, &res), TG_E_FORMAT);
    CHECK(!exists(".errors.partial"));
    tg_job_close(&job);
    tg_opts_free(&o);
}

static void refused(const tg_array *in, const tg_array *out, const char *words)
{
    CHECK_EQ(run_arrays(in, out, NULL), TG_E_ARG);
    CHECK(strstr(tg_ctx_detail(ctx), words) != NULL);
    if (!strstr(tg_ctx_detail(ctx), words))
        fprintf(stderr, "wanted \"%s\", got \"%s\"\n", words, tg_ctx_detail(ctx));
}

static void test_refusals_say_why(void)
{
    const tg_array good = batch_of(pixels), to = batch_of(got);
    tg_array bad = good;
    bad.size = 0;
    refused(&bad, &to, "size");
    bad = good, bad.dtype = (tg_dtype)99;
    refused(&bad, &to, "dtype");
    bad = good, bad.rank = 9;
    refused(&bad, &to, "rank is 9");
    bad = good, bad.shape[2] = 0;
    refused(&bad, &to, "shape[2]");
    bad = good, bad.shape[2] = bad.shape[3] = INT64_MAX / 4;
    refused(&bad, &to, "more elements");
    bad = good, bad.stride[3] = -4;
    refused(&bad, &to, "stride[3]");
    bad = good, bad.stride[3] = 6;
    refused(&bad, &to, "multiple of 4");
    bad = good, bad.data = (char *)pixels + 1;
    refused(&bad, &to, "not a multiple of 4, the size");
    bad = good, bad.move = move;
    refused(&bad, &to, "the first source: array.data and array.move are both set");
    bad = to, bad.move = move;
    refused(&good, &bad, "the sink of \"denoised\": array.data and array.move are both set");
    bad = good, bad.data = NULL;
    refused(&bad, &to, "no data");
    bad = good, bad.shape[1] = 2;
    refused(&bad, &to, "source holds [2,2,96,132] float32");
    bad = to, bad.shape[3]--;
    refused(&good, &bad, "the sink of \"denoised\" is [2,1,96,131] float32");
    bad = to, bad.dtype = TG_DTYPE_I32;
    refused(&good, &bad, "the output [2,1,96,132] float32");
    bad = to, bad.stride[3] = 4, bad.stride[2] = 4 * (W - 1), bad.stride[0] = 4 * H * W;
    refused(&good, &bad, "in one place");
    bad = to, bad.data = &pixels[1][0][0];
    refused(&good, &bad, "memory of a source");
}

/* The first refusal decides nothing for the second. */
static void test_a_refused_precision_is_refused_each_time(void)
{
    static const char *const set[][2] = {{"fp16", "auto"}, {"bf16", "portable"}};
    const tg_array in = batch_of(pixels), out = batch_of(got);
    for (int k = 0; k < 2; k++) {
        char first[256];
        tg_verify_result v = {.size = sizeof v};
        tg_opts *o = options();
        tg_job *job = NULL;
        tg_opts_set(o, "device", "cpu");
        tg_opts_set(o, "precision", set[k][0]);
        tg_opts_set(o, "isa", set[k][1]);
        tg_opts_set_source(o, NULL, &in);
        tg_opts_set_sink(o, NULL, &out);
        CHECK_EQ(tg_job_open(ctx, o, &job), TG_OK);
        CHECK_EQ(tg_job_plan(job, NULL), TG_E_DEVICE);
        snprintf(first, sizeof first, "%s", tg_ctx_detail(ctx));
        CHECK(strstr(first, set[k][0]) != NULL);
        CHECK_EQ(tg_job_plan(job, NULL), TG_E_DEVICE);
        CHECK_STR(tg_ctx_detail(ctx), first);
        CHECK_EQ(tg_job_verify(job, &v), TG_E_DEVICE);
        CHECK_EQ(tg_job_run(job, NULL), TG_E_DEVICE);
        CHECK_STR(tg_ctx_detail(ctx), first);
        tg_job_close(&job);
        tg_opts_free(&o);
    }
}

/* What the program itself holds, no option of the job makes smaller. */
static void test_a_refusal_names_what_the_program_holds(void)
{
    const size_t much = (size_t)48 << 20;
    const tg_array in = batch_of(pixels), out = batch_of(got);
    char *held = malloc(much);
    tg_opts *o = options();
    tg_job *job = NULL;
    CHECK(held != NULL);
    if (held)
        memset(held, 1, much);
    tg_opts_set(o, "ram", "16MiB");
    tg_opts_set_source(o, NULL, &in);
    tg_opts_set_sink(o, NULL, &out);
    CHECK_EQ(tg_job_open(ctx, o, &job), TG_OK);
    CHECK_EQ(tg_job_plan(job, NULL), TG_E_BUDGET);
    CHECK(strstr(tg_ctx_detail(ctx), "MiB of it the program held before") != NULL);
    CHECK(held && held[much - 1] == 1);
    tg_job_close(&job);
    tg_opts_free(&o);
    free(held);
}

/* What was opened in vain is no input for who asks again. */
static void test_a_refused_input_is_refused_again(void)
{
    tg_plan_info plan = {.size = sizeof plan};
    for (int k = 0; k < 2; k++) {
        tg_array in = batch_of(pixels);
        tg_opts *o = options();
        tg_job *job = NULL;
        char first[256];
        if (k == 0)
            in.shape[1] = 2;
        else
            tg_opts_set(o, "output", in_folder("none.tif"));
        CHECK_EQ(tg_opts_set_source(o, NULL, &in), TG_OK);
        CHECK_EQ(tg_job_open(ctx, o, &job), TG_OK);
        CHECK_EQ(tg_job_plan(job, &plan), TG_E_ARG);
        snprintf(first, sizeof first, "%s", tg_ctx_detail(ctx));
        CHECK_EQ(tg_job_plan(job, &plan), TG_E_ARG);
        CHECK(strcmp(first, tg_ctx_detail(ctx)) == 0);
        tg_job_close(&job);
        tg_opts_free(&o);
    }
}

static void test_strides_out_of_any_memory(void)
{
    const tg_array good = batch_of(pixels), to = batch_of(got);
    tg_array bad = good;
    bad.stride[0] = bad.stride[2] = INT64_MAX / 16 * 4, bad.stride[3] = 4;
    refused(&bad, &to, "out of any memory");
    bad = to, bad.stride[0] = bad.stride[2] = INT64_MAX / 16 * 4, bad.stride[3] = 4;
    refused(&good, &bad, "out of any memory");
    bad = good;
    bad.stride[0] = (int64_t)1 << 62, bad.stride[2] = 4 * W, bad.stride[3] = 4;
    refused(&bad, &to, "stride[0] leads out of any memory");
    bad.shape[0] = 1; /* there is no next one */
    tg_array one = to;
    one.shape[0] = 1;
    check_run(&bad, &one);
}

static void test_refusals_of_names_and_files(void)
{
    const tg_array in = batch_of(pixels), out = batch_of(got);
    static const char *const words[] = {"no output \"masks\"", "writes no files",
                                        "a source and a file", "has two arrays"};
    for (int k = 0; k < 4; k++) { /* all by opening it */
        tg_opts *o = options();
        tg_job *job = NULL;
        tg_opts_set_source(o, NULL, &in);
        if (k < 2)
            tg_opts_set_sink(o, k == 0 ? "masks" : NULL, &out);
        if (k == 3)
            tg_opts_set_source(o, "image", &in);
        if (k == 1)
            tg_opts_set(o, "output", in_folder("none.npy"));
        if (k == 2)
            tg_opts_set(o, "input", in_folder("in.npy"));
        CHECK_EQ(tg_job_open(ctx, o, &job), TG_E_ARG);
        CHECK(strstr(tg_ctx_detail(ctx), words[k]) != NULL);
        tg_job_close(&job);
        tg_opts_free(&o);
    }
}

/* What would change nothing is refused; defaults and a preset's are not. */
static void test_options_of_images_are_refused(void)
{
    static const char *const set[][3] = {{"roi", "0:8,0:8", "--roi is for images"},
                                         {"planes", "0", "--planes is for images"},
                                         {"series", "0", "--series is for images"},
                                         {"level", "1", "--level is for images"},
                                         {"pad", "zero", "--pad is for images"},
                                         {"compress", "zstd:3", "--compress is for images"},
                                         {"pyramid", "mean", "--pyramid is for one image"},
                                         {"level", "0", NULL},
                                         {"pad", "reflect", NULL},
                                         {"compress", "none", NULL},
                                         {"preset", "archive", NULL}};
    const tg_array in = batch_of(pixels), out = batch_of(got);
    for (size_t k = 0; k < sizeof set / sizeof set[0]; k++) {
        tg_opts *o = options();
        tg_job *job = NULL;
        char *json = NULL;
        tg_opts_set_source(o, NULL, &in);
        tg_opts_set_sink(o, NULL, &out);
        CHECK_EQ(tg_opts_set(o, set[k][0], set[k][1]), TG_OK);
        CHECK_EQ(tg_job_open(ctx, o, &job), set[k][2] ? TG_E_ARG : TG_OK);
        CHECK(!set[k][2] || strstr(tg_ctx_detail(ctx), set[k][2]) != NULL);
        if (job)
            CHECK_EQ(tg_job_save_json(job, &json), TG_OK);
        if (json) /* a job file asks for what it says */
            CHECK(strstr(json, "zstd") == NULL);
        tg_text_free(json);
        tg_job_close(&job);
        tg_opts_free(&o);
    }
}

int main(void)
{
    help_open();
    draw(1);
    make_want();
    RUN(test_memory_to_memory_gives_the_bytes_of_file_to_file);
    RUN(test_an_image_in_and_memory_out);
    RUN(test_memory_in_and_a_file_out);
    RUN(test_any_strides);
    RUN(test_one_row_for_all);
    RUN(test_axes_of_one_may_be_left_out_in_front);
    RUN(test_other_types_are_their_numbers);
    RUN(test_functions_on_the_running_thread_one_at_a_time);
    RUN(test_what_a_function_answers_ends_the_run);
    RUN(test_a_function_may_cancel_its_job);
    RUN(test_a_request_that_stopped_nothing_is_the_next_calls);
    RUN(test_a_job_at_work_is_not_run_again_by_way_of_another);
    RUN(test_the_detail_is_that_of_the_call_which_ended_last);
    RUN(test_one_job_runs_again_on_other_pixels);
    RUN(test_verify_reads_what_is_there_now);
    RUN(test_damage_of_an_image_is_counted_and_nothing_written);
    RUN(test_refusals_say_why);
    RUN(test_a_refused_precision_is_refused_each_time);
    RUN(test_a_refusal_names_what_the_program_holds);
    RUN(test_a_refused_input_is_refused_again);
    RUN(test_strides_out_of_any_memory);
    RUN(test_refusals_of_names_and_files);
    RUN(test_options_of_images_are_refused);
    help_close();
    return TEST_END();
}

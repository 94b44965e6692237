/* Inputs and outputs in memory (tegula_array.h), where test_memory_arrays.c has one of each:
 * networks of several inputs and outputs, int64 and bool, volumes, channels last, sources that
 * overlap themselves; and functions that answer oddly, cancel, or call back into their job.
 * What comes out is computed here again. */
#include "tegula_array.h"
#include "tegula_memory.h"
#include "tests/made_nets.h"
#include "tests/unit/job_help.h"

#include <limits.h>
#include <pthread.h>

enum { N = 2, C = 3, H = 40, W = 52 };
#define PIXELS ((size_t)H * W)
#define ALL ((size_t)N * C * PIXELS)
#define LABELS ((size_t)N * PIXELS)

static float a[ALL], b[ALL], want_sum[ALL], got_sum[ALL];
static int64_t want_label[LABELS], got_label[LABELS];
static uint8_t want_over[ALL];
static char ports[256], flat[256], volume[256], scalar[256];

/* ---- Networks ---------------------------------------------------------------------------- */

static void write_net(bytes *graph, const char *path)
{
    bytes model = b_model(graph, 13);
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(model.p, 1, model.n, f) == model.n);
    if (f)
        fclose(f);
    b_free(&model);
}

static bytes begin_two_inputs(void)
{
    const int64_t dim[4] = {0, C, 0, 0};
    bytes g = {0};
    b_str(&g, 2, "ports");
    b_port(&g, 11, "a", 4, dim);
    b_port(&g, 11, "b", 4, dim);
    return g;
}

/* sum = a + b, float32; label = which channel of it is largest, int64; over = a > b, bool. */
static void make_ports(void)
{
    const int64_t dim[4] = {0, C, 0, 0}, one[4] = {0, 1, 0, 0};
    const char *const both[] = {"a", "b", NULL}, *const sum[] = {"sum", NULL};
    bytes g = begin_two_inputs(), axis = {0}, attrs = {0};
    b_str(&axis, 1, "axis");
    b_int(&axis, 3, 1);
    b_int(&axis, 20, 2);
    b_msg(&attrs, 5, &axis);
    b_node(&g, "Add", both, "sum", NULL);
    b_node(&g, "ArgMax", sum, "label", &attrs);
    b_node(&g, "Greater", both, "over", NULL);
    b_port(&g, 12, "sum", 4, dim);
    b_port_of(&g, 12, "label", 7, 4, one);
    b_port_of(&g, 12, "over", 9, 4, dim);
    write_net(&g, ports);
}

/* sum, and its mean over each plane: an output that is no image. */
static void make_flat(void)
{
    const int64_t dim[4] = {0, C, 0, 0}, two[2] = {0, C};
    const char *const both[] = {"a", "b", NULL}, *const sum[] = {"sum", NULL},
                      *const mean[] = {"m", NULL};
    bytes g = begin_two_inputs();
    b_node(&g, "Add", both, "sum", NULL);
    b_node(&g, "GlobalAveragePool", sum, "m", NULL);
    b_node(&g, "Flatten", mean, "mean", NULL);
    b_port(&g, 12, "sum", 4, dim);
    b_port(&g, 12, "mean", 2, two);
    write_net(&g, flat);
}

static void make_scalar(void)
{
    const int64_t dim[4] = {0, C, 0, 0};
    const char *const both[] = {"a", "b", NULL};
    bytes g = {0};
    b_str(&g, 2, "scalar");
    b_port(&g, 11, "a", 4, dim);
    b_port(&g, 11, "b", 0, NULL);
    b_node(&g, "Mul", both, "product", NULL);
    b_port(&g, 12, "product", 4, dim);
    write_net(&g, scalar);
}

static void make_volume(void)
{
    static const int64_t open[3] = {0}, k[3] = {3, 3, 3};
    made m = made_begin(3, 1, open);
    made_conv(&m, made_conv(&m, "x", 1, 2, k, 1, 1, NULL), 2, 2, k, 1, 1, "y");
    made_end(&m, volume);
}

static size_t at(int64_t n, int64_t c, int64_t y, int64_t x)
{
    return (size_t)(((n * C + c) * H + y) * W + x);
}

static void compute_want(void)
{
    for (size_t i = 0; i < ALL; i++) {
        want_sum[i] = a[i] + b[i];
        want_over[i] = a[i] > b[i];
    }
    for (size_t k = 0; k < LABELS; k++) {
        const int64_t n = (int64_t)(k / PIXELS), p = (int64_t)(k % PIXELS);
        want_label[k] = 0;
        for (int64_t c = 1; c < C; c++)
            if (want_sum[at(n, c, 0, p)] > want_sum[at(n, want_label[k], 0, p)])
                want_label[k] = c;
    }
}

static void draw(void)
{
    uint64_t seed = 7;
    for (size_t i = 0; i < ALL; i++) {
        a[i] = tg_rand_unit(&seed);
        b[i] = tg_rand_unit(&seed);
    }
    compute_want();
}

/* ---- Jobs -------------------------------------------------------------------------------- */

static tg_array array_of(tg_dtype type, void *data, int rank, const int64_t *shape)
{
    tg_array t = {.size = sizeof t, .dtype = type, .rank = rank, .data = data};
    memcpy(t.shape, shape, (size_t)rank * sizeof *shape);
    return t;
}

static tg_array batch_of(tg_dtype type, void *data, int64_t channels)
{
    return array_of(type, data, 4, (const int64_t[]){N, channels, H, W});
}

/* Channels last, as pictures lie in most programs. */
static void channels_last(tg_array *t, int64_t size)
{
    const int64_t ch = t->shape[1];
    t->stride[0] = size * H * W * ch;
    t->stride[1] = size;
    t->stride[2] = size * W * ch;
    t->stride[3] = size * ch;
}

typedef struct work {
    tg_opts *o;
    tg_job *job;
} work;

static work begin(const char *model, const tg_array *in_a, const tg_array *in_b)
{
    work w = {0};
    CHECK_EQ(tg_opts_new(ctx, &w.o), TG_OK);
    CHECK_EQ(tg_opts_set(w.o, "model", model), TG_OK);
    CHECK_EQ(tg_opts_set(w.o, "ram", "1GiB"), TG_OK);
    CHECK_EQ(tg_opts_set(w.o, "tile", "16x24"), TG_OK); /* several cells */
    CHECK_EQ(tg_opts_set_source(w.o, in_b ? "a" : NULL, in_a), TG_OK);
    if (in_b)
        CHECK_EQ(tg_opts_set_source(w.o, "b", in_b), TG_OK);
    return w;
}

static tg_status work_run(work *w)
{
    tg_status st = TG_OK;
    if (!w->job)
        st = tg_job_open(ctx, w->o, &w->job);
    return st == TG_OK ? tg_job_run(w->job, NULL) : st;
}

static void work_end(work *w)
{
    tg_job_close(&w->job);
    tg_opts_free(&w->o);
}

static void check_status(tg_status got, tg_status want, const char *words)
{
    CHECK_EQ(got, want);
    if (words)
        CHECK(strstr(tg_ctx_detail(ctx), words) != NULL);
    if (got != want || (words && !strstr(tg_ctx_detail(ctx), words)))
        fprintf(stderr, "wanted \"%s\", got %s: \"%s\"\n", words ? words : "",
                tg_status_name(got), tg_ctx_detail(ctx));
}

/* ---- Several inputs and outputs ---------------------------------------------------------- */

/* Elements that a function took, and how often each came. */
typedef struct taker {
    char *to;
    size_t size, all;
    uint8_t *times;
} taker;

static tg_status take(void *user, int64_t first, int64_t n, void *elements)
{
    taker *t = user;
    if (first < 0 || n < 1 || (size_t)(first + n) > t->all)
        return TG_E_INTERNAL;
    memcpy(t->to + (size_t)first * t->size, elements, (size_t)n * t->size);
    for (int64_t i = first; i < first + n; i++)
        t->times[i]++;
    return TG_OK;
}

static void check_once(const taker *t)
{
    size_t other = 0;
    for (size_t i = 0; i < t->all; i++)
        other += t->times[i] != 1;
    CHECK_EQ(other, 0);
}

static void test_every_port_has_its_own_array(void)
{
    static float last_a[ALL], last_sum[ALL];
    static uint8_t times[LABELS], spread[2 * ALL];
    tg_array in_a = batch_of(TG_DTYPE_F32, last_a, C), in_b = batch_of(TG_DTYPE_F32, b, C),
             sum = batch_of(TG_DTYPE_F32, last_sum, C), label = batch_of(TG_DTYPE_I64, NULL, 1),
             over = batch_of(TG_DTYPE_BOOL, spread, C);
    taker t = {(char *)got_label, sizeof *got_label, LABELS, times};
    channels_last(&in_a, sizeof(float));
    channels_last(&sum, sizeof(float));
    label.move = take;
    label.user = &t;
    for (int64_t k = 3, step = 2; k >= 0; step *= over.shape[k--])
        over.stride[k] = step; /* every second byte */
    for (int n = 0; n < N; n++)
        for (int c = 0; c < C; c++)
            for (int p = 0; p < H * W; p++)
                last_a[((size_t)n * PIXELS + (size_t)p) * C + (size_t)c] = a[at(n, c, 0, p)];
    memset(spread, 0x5a, sizeof spread);
    work w = begin(ports, &in_a, &in_b);
    CHECK_EQ(tg_opts_set_sink(w.o, "over", &over), TG_OK);
    CHECK_EQ(tg_opts_set_sink(w.o, "sum", &sum), TG_OK);
    CHECK_EQ(tg_opts_set_sink(w.o, "label", &label), TG_OK);
    check_status(work_run(&w), TG_OK, NULL);
    work_end(&w);
    size_t wrong = 0;
    for (int n = 0; n < N; n++)
        for (int c = 0; c < C; c++)
            for (int p = 0; p < H * W; p++)
                wrong += last_sum[((size_t)n * PIXELS + (size_t)p) * C + (size_t)c] !=
                         want_sum[at(n, c, 0, p)];
    CHECK_EQ(wrong, 0);
    CHECK(memcmp(got_label, want_label, sizeof want_label) == 0);
    check_once(&t);
    for (size_t i = 0; i < ALL; i++)
        wrong += spread[2 * i] != want_over[i] || spread[2 * i + 1] != 0x5a;
    CHECK_EQ(wrong, 0);
}

static void test_outputs_without_a_sink_are_dropped(void)
{
    const tg_array in_a = batch_of(TG_DTYPE_F32, a, C), in_b = batch_of(TG_DTYPE_F32, b, C);
    tg_array out = {.size = sizeof out};
    const char *name = NULL;
    work w = begin(ports, &in_a, &in_b);
    CHECK_EQ(tg_opts_set_sink(w.o, "label", &out), TG_OK);
    CHECK_EQ(tg_job_open(ctx, w.o, &w.job), TG_OK);
    CHECK_EQ(tg_job_output(w.job, 2, &name, &out), TG_OK);
    CHECK_STR(name, "over");
    CHECK(out.dtype == TG_DTYPE_BOOL && out.rank == 4 && out.shape[1] == C);
    CHECK_EQ(tg_job_output(w.job, 1, &name, &out), TG_OK);
    CHECK_STR(name, "label");
    CHECK(out.dtype == TG_DTYPE_I64 && out.shape[0] == N && out.shape[1] == 1);
    out.data = got_label;
    memset(got_label, 0xee, sizeof got_label);
    check_status(work_run(&w), TG_OK, NULL);
    CHECK(memcmp(got_label, want_label, sizeof want_label) == 0);
    work_end(&w);
}

static void test_what_is_no_image_comes_once(void)
{
    const tg_array in_a = batch_of(TG_DTYPE_F32, a, C), in_b = batch_of(TG_DTYPE_F32, b, C);
    static float mean[N * C];
    static uint8_t once[N * C], times[ALL];
    tg_array sum = batch_of(TG_DTYPE_F32, NULL, C),
             out = array_of(TG_DTYPE_F32, NULL, 2, (const int64_t[]){N, C});
    taker t = {(char *)mean, sizeof *mean, N * C, once},
          all = {(char *)got_sum, sizeof *got_sum, ALL, times};
    out.move = sum.move = take;
    out.user = &t;
    sum.user = &all;
    work w = begin(flat, &in_a, &in_b);
    CHECK_EQ(tg_opts_set_sink(w.o, "mean", &out), TG_OK);
    CHECK_EQ(tg_opts_set_sink(w.o, "sum", &sum), TG_OK);
    check_status(work_run(&w), TG_OK, NULL);
    work_end(&w);
    check_once(&t);
    check_once(&all);
    CHECK(memcmp(got_sum, want_sum, sizeof want_sum) == 0);
    for (int k = 0; k < N * C; k++) {
        double s = 0;
        for (size_t i = 0; i < PIXELS; i++)
            s += want_sum[(size_t)k * PIXELS + i];
        CHECK_NEAR(mean[k], s / (double)PIXELS, 1e-5);
    }
}

/* ---- How arrays may lie ------------------------------------------------------------------ */

static void check_sum_of(const tg_array *in_b)
{
    const tg_array in_a = batch_of(TG_DTYPE_F32, a, C),
                   sum = batch_of(TG_DTYPE_F32, got_sum, C);
    memset(got_sum, 0xee, sizeof got_sum);
    work w = begin(ports, &in_a, in_b);
    CHECK_EQ(tg_opts_set_sink(w.o, "sum", &sum), TG_OK);
    check_status(work_run(&w), TG_OK, NULL);
    work_end(&w);
}

/* Elements of a source may lie in one place: windows that slide, a row for all, one number. */
static void test_a_source_may_overlap_itself(void)
{
    static const int64_t step[][4] = {{1, 1, 1, 1}, {0, 0, 1, 1},  {0, 5, 3, 2}, {7, 0, 0, 3},
                                      {1, 0, 0, 0}, {W, 1, W, 0},  {2, 2, 0, 2}, {0, 64, 0, 0},
                                      {0, 1, C, C}, {3, 300, 1, 3}};
    for (size_t k = 0; k < sizeof step / sizeof step[0]; k++) {
        tg_array in_b = batch_of(TG_DTYPE_F32, b, C);
        size_t wrong = 0;
        for (int i = 0; i < 4; i++)
            in_b.stride[i] = step[k][i] * (int64_t)sizeof(float);
        check_sum_of(&in_b);
        for (int n = 0; n < N; n++)
            for (int c = 0; c < C; c++)
                for (int y = 0; y < H; y++)
                    for (int x = 0; x < W; x++)
                        wrong += got_sum[at(n, c, y, x)] !=
                                 a[at(n, c, y, x)] + b[n * step[k][0] + c * step[k][1] +
                                                       y * step[k][2] + x * step[k][3]];
        CHECK_EQ(wrong, 0);
        if (wrong)
            fprintf(stderr, "     strides %zu\n", k);
    }
}

/* All strides 0 are C order; an axis of 1 in front whose stride is not 0 makes the others count. */
static void test_one_number_for_all(void)
{
    static const float number = 0.25f;
    tg_array in_b =
        array_of(TG_DTYPE_F32, (void *)(uintptr_t)&number, 5, (const int64_t[]){1, N, C, H, W});
    size_t wrong = 0;
    in_b.stride[0] = sizeof number;
    check_sum_of(&in_b);
    for (size_t i = 0; i < ALL; i++)
        wrong += got_sum[i] != a[i] + number;
    CHECK_EQ(wrong, 0);
}

static void test_a_sink_that_overlaps_itself_is_refused(void)
{
    static const int64_t step[][4] = {{0, PIXELS, W, 1},
                                      {PIXELS, PIXELS, W, 1},
                                      {C * PIXELS, PIXELS, 1, 1},
                                      {1, 1, 1, 1},
                                      {C * PIXELS, PIXELS, W - 1, 1}};
    const tg_array in_a = batch_of(TG_DTYPE_F32, a, C), in_b = batch_of(TG_DTYPE_F32, b, C);
    for (size_t k = 0; k < sizeof step / sizeof step[0]; k++) {
        tg_array sum = batch_of(TG_DTYPE_F32, got_sum, C);
        for (int i = 0; i < 4; i++)
            sum.stride[i] = step[k][i] * (int64_t)sizeof(float);
        work w = begin(ports, &in_a, &in_b);
        CHECK_EQ(tg_opts_set_sink(w.o, "sum", &sum), TG_OK);
        check_status(work_run(&w), TG_E_ARG, "the sink of \"sum\" has elements in one place");
        work_end(&w);
    }
}

static void test_two_sinks_in_one_place_are_refused(void)
{
    const tg_array in_a = batch_of(TG_DTYPE_F32, a, C), in_b = batch_of(TG_DTYPE_F32, b, C),
                   sum = batch_of(TG_DTYPE_F32, got_sum, C),
                   over = batch_of(TG_DTYPE_BOOL, (char *)got_sum + sizeof got_sum - 1, C);
    work w = begin(ports, &in_a, &in_b);
    CHECK_EQ(tg_opts_set_sink(w.o, "sum", &sum), TG_OK);
    CHECK_EQ(tg_opts_set_sink(w.o, "over", &over), TG_OK);
    check_status(work_run(&w), TG_E_ARG, "second sink");
    work_end(&w);
}

/* A volume whose axes lie the other way round is the same volume. */
static void test_volumes_of_any_order(void)
{
    enum { D = 12, V = D * 20 * 28 };
    static float plain[V], turned[V], want[2 * V], got[2 * V];
    const int64_t shape[5] = {1, 1, D, 20, 28}, two[5] = {1, 2, D, 20, 28};
    tg_array in = array_of(TG_DTYPE_F32, plain, 5, shape),
             out = array_of(TG_DTYPE_F32, want, 5, two);
    uint64_t seed = 3;
    for (int z = 0; z < D; z++)
        for (int y = 0; y < 20; y++)
            for (int x = 0; x < 28; x++)
                turned[(x * 20 + y) * D + z] = plain[(z * 20 + y) * 28 + x] =
                    tg_rand_unit(&seed);
    for (int k = 0; k < 2; k++) {
        work w = begin(volume, &in, NULL);
        CHECK_EQ(tg_opts_set(w.o, "tile", k ? "8x8x16" : "16x24"), TG_OK);
        CHECK_EQ(tg_opts_set_sink(w.o, NULL, &out), TG_OK);
        check_status(work_run(&w), TG_OK, NULL);
        work_end(&w);
        in.data = turned;
        out.data = got;
        for (int i = 0; i < 3; i++) {
            in.stride[4 - i] = 4 * (i == 0 ? 20 * D : i == 1 ? D : 1);
            out.stride[4 - i] = 4 * (i == 0 ? 40 * D : i == 1 ? 2 * D : 2);
        }
        out.stride[1] = 4; /* channels last, too */
    }
    size_t wrong = 0;
    for (int c = 0; c < 2; c++)
        for (int z = 0; z < D; z++)
            for (int y = 0; y < 20; y++)
                for (int x = 0; x < 28; x++)
                    wrong += got[((x * 20 + y) * D + z) * 2 + c] !=
                             want[((c * D + z) * 20 + y) * 28 + x];
    CHECK_EQ(wrong, 0);
}

/* ---- Functions that answer oddly --------------------------------------------------------- */

typedef struct odd {
    const float *from;
    float *to;
    int answer, calls, answer_at; /* the call that answers so */
    tg_job **job;
    tg_status inner;
    int what; /* a call back into the job */
    int cancel;
} odd;

static void *cancel_it(void *job)
{
    tg_job_cancel(job);
    return NULL;
}

static void call_back(odd *u)
{
    tg_array out = {.size = sizeof out};
    tg_verify_result v = {.size = sizeof v};
    u->inner = u->what == 0   ? tg_job_run(*u->job, NULL)
               : u->what == 1 ? tg_job_plan(*u->job, NULL)
               : u->what == 2 ? tg_job_output(*u->job, 0, NULL, &out)
                              : tg_job_verify(*u->job, &v);
}

static tg_status oddly(void *user, int64_t first, int64_t n, void *elements)
{
    odd *u = user;
    pthread_t other;
    if (u->from)
        memcpy(elements, u->from + first, (size_t)n * sizeof(float));
    else
        memcpy(u->to + first, elements, (size_t)n * sizeof(float));
    if (++u->calls != u->answer_at)
        return TG_OK;
    if (u->cancel && pthread_create(&other, NULL, cancel_it, *u->job) == 0)
        pthread_join(other, NULL);
    else if (u->job)
        call_back(u);
    return (tg_status)u->answer;
}

static tg_array function_of(odd *u)
{
    tg_array t = batch_of(TG_DTYPE_F32, NULL, C);
    t.move = oddly;
    t.user = u;
    return t;
}

/* Each way: the run ends with that status, says which array it was, and goes well the next time. */
static void test_a_run_ends_with_what_a_function_answers(void)
{
#define VALUE(name, value, sentence) value,
    static const int answers[] = {TG_STATUS_LIST(VALUE) 1, 99, -99, INT_MAX, INT_MIN};
#undef VALUE
    odd from = {.from = b, .answer_at = 2}, to = {.to = got_sum, .answer_at = 2};
    const tg_array in_a = batch_of(TG_DTYPE_F32, a, C), in_b = function_of(&from),
                   sum = function_of(&to);
    work w = begin(ports, &in_a, &in_b);
    CHECK_EQ(tg_opts_set_sink(w.o, "sum", &sum), TG_OK);
    for (size_t k = 1; k < sizeof answers / sizeof answers[0]; k++)
        for (int source = 0; source < 2; source++) {
            char words[120];
            from.answer = source ? answers[k] : 0;
            to.answer = source ? 0 : answers[k];
            from.calls = to.calls = 0;
            snprintf(words, sizeof words, "the function of the %s \"%s\" answered %s",
                     source ? "source" : "sink", source ? "b" : "sum",
                     tg_status_name((tg_status)answers[k]));
            const int known = k + 5 < sizeof answers / sizeof answers[0];
            check_status(work_run(&w), known ? (tg_status)answers[k] : TG_E_IO, words);
            CHECK_EQ((source ? from : to).calls, 2);
            CHECK(tg_ctx_refusal(ctx) == NULL); /* what the function lacks is its own */
        }
    from.answer = to.answer = 0;
    memset(got_sum, 0xee, sizeof got_sum);
    check_status(work_run(&w), TG_OK, NULL);
    CHECK(memcmp(got_sum, want_sum, sizeof want_sum) == 0);
    work_end(&w);
}

static void test_another_thread_cancels_while_a_function_works(void)
{
    odd from = {.from = b, .answer_at = 3}, to = {.to = got_sum, .answer_at = 3};
    const tg_array in_a = batch_of(TG_DTYPE_F32, a, C), in_b = function_of(&from),
                   sum = function_of(&to);
    work w = begin(ports, &in_a, &in_b);
    CHECK_EQ(tg_opts_set_sink(w.o, "sum", &sum), TG_OK);
    CHECK_EQ(tg_job_open(ctx, w.o, &w.job), TG_OK);
    for (int k = 0; k < 2; k++) {
        odd *u = k ? &from : &to;
        from.calls = to.calls = 0;
        u->job = &w.job;
        u->cancel = 1;
        check_status(work_run(&w), TG_E_CANCELLED, "starts over");
        u->job = NULL;
        u->cancel = 0;
    }
    memset(got_sum, 0xee, sizeof got_sum);
    check_status(work_run(&w), TG_OK, NULL);
    CHECK(memcmp(got_sum, want_sum, sizeof want_sum) == 0);
    work_end(&w);
}

/* The plan that is in use would be another one, or gone. */
static void test_a_function_cannot_work_on_its_job(void)
{
    odd from = {.from = b, .answer_at = 2};
    const tg_array in_a = batch_of(TG_DTYPE_F32, a, C), in_b = function_of(&from),
                   sum = batch_of(TG_DTYPE_F32, got_sum, C);
    work w = begin(ports, &in_a, &in_b);
    CHECK_EQ(tg_opts_set_sink(w.o, "sum", &sum), TG_OK);
    CHECK_EQ(tg_job_open(ctx, w.o, &w.job), TG_OK);
    for (from.what = 0; from.what < 4; from.what++) {
        from.job = &w.job;
        from.calls = 0;
        from.inner = TG_OK;
        memset(got_sum, 0xee, sizeof got_sum);
        check_status(work_run(&w), TG_OK, NULL);
        CHECK_EQ(from.inner, TG_E_BUSY);
        CHECK(memcmp(got_sum, want_sum, sizeof want_sum) == 0);
    }
    work_end(&w);
}

/* ---- Refusals ---------------------------------------------------------------------------- */

static void test_nothing_is_an_argument(void)
{
    const tg_array in = batch_of(TG_DTYPE_F32, a, C);
    tg_array out = {.size = sizeof out}, none = {0};
    CHECK_EQ(tg_opts_set_source(NULL, NULL, &in), TG_E_ARG);
    CHECK_EQ(tg_opts_set_sink(NULL, NULL, &out), TG_E_ARG);
    CHECK_EQ(tg_job_output(NULL, 0, NULL, &out), TG_E_ARG);
    work w = begin(ports, &in, &in);
    check_status(tg_opts_set_source(w.o, "a", &none), TG_E_ARG, "source of \"a\": array.size");
    check_status(tg_opts_set_sink(w.o, NULL, &none), TG_E_ARG, "first sink: array.size");
    CHECK_EQ(tg_opts_set_sink(w.o, "sum", &out), TG_OK);
    CHECK_EQ(tg_job_open(ctx, w.o, &w.job), TG_OK);
    check_status(tg_job_output(w.job, 0, NULL, NULL), TG_E_ARG, "tg_job_output: array is NULL");
    check_status(tg_job_verify(w.job, NULL), TG_E_ARG, "tg_job_verify: result is NULL");
    check_status(tg_opts_open_output(w.o, NULL, TG_OUTPUT_OPEN, NULL), TG_E_ARG,
                 "tg_opts_open_output: NULL");
    struct {
        tg_plan_info plan;
        char more;
    } later = {.plan.size = sizeof later, .more = 1};
    check_status(tg_job_plan(w.job, &later.plan), TG_E_ARG,
                 "members that this version does not know");
    tg_plan_info unset = {0};
    check_status(tg_job_plan(w.job, &unset), TG_E_ARG, "plan_info.size is 0");
    check_status(tg_job_output(w.job, -1, NULL, &out), TG_E_NOT_FOUND, "3 outputs");
    check_status(tg_job_output(w.job, INT_MAX, NULL, &out), TG_E_NOT_FOUND, "3 outputs");
    check_status(tg_job_run(w.job, NULL), TG_E_ARG, "the sink of \"sum\": array.dtype");
    work_end(&w);
}

static void test_a_source_taken_back_is_missing(void)
{
    const tg_array in = batch_of(TG_DTYPE_F32, a, C), sum = batch_of(TG_DTYPE_F32, got_sum, C);
    work w = begin(ports, &in, &in);
    CHECK_EQ(tg_opts_set_source(w.o, "b", NULL), TG_OK);
    CHECK_EQ(tg_opts_set_source(w.o, "never given", NULL), TG_OK);
    CHECK_EQ(tg_opts_set_sink(w.o, NULL, &sum), TG_OK);
    check_status(work_run(&w), TG_E_ARG, "input \"b\" has no array");
    work_end(&w);
}

static void test_shapes_that_do_not_go_together(void)
{
    const tg_array in = batch_of(TG_DTYPE_F32, a, C), sum = batch_of(TG_DTYPE_F32, got_sum, C);
    static const struct {
        int axis;
        int64_t value;
        const char *words;
    } bad[] = {{0, 0, "source of \"b\": array.shape[0] is 0"},
               {3, -1, "source of \"b\": array.shape[3] is -1"},
               {0, INT64_MAX, "source of \"b\": array.shape has more elements"},
               {0, N + 1, "3 samples, the first input 2"},
               {1, 1, "the network's input \"b\" wants 3 on axis 1"}};
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        tg_array in_b = in;
        work w = begin(ports, &in, &in);
        in_b.shape[bad[k].axis] = bad[k].value;
        tg_status st = tg_opts_set_source(w.o, "b", &in_b);
        if (st == TG_OK)
            st = tg_opts_set_sink(w.o, NULL, &sum);
        check_status(st == TG_OK ? work_run(&w) : st, TG_E_ARG, bad[k].words);
        work_end(&w);
    }
}

/* The graph has four axes for it, and says so. */
static void test_a_number_as_a_second_input(void)
{
    static const float two = 2;
    tg_array in_b = {.size = sizeof in_b, .dtype = TG_DTYPE_F32};
    const tg_array in_a = array_of(TG_DTYPE_F32, a, 4, (const int64_t[]){1, C, H, W}),
                   out = array_of(TG_DTYPE_F32, got_sum, 4, (const int64_t[]){1, C, H, W});
    in_b.data = (void *)(uintptr_t)&two;
    work w = begin(scalar, &in_a, &in_b);
    CHECK_EQ(tg_opts_set_sink(w.o, NULL, &out), TG_OK);
    check_status(work_run(&w), TG_E_ARG, "network's input \"b\" is [any,1,any,any]: reshape");
    work_end(&w);
}

/* ---- Files beside ------------------------------------------------------------------------ */

/* A log has a name of its own; a picture is named after an output, and there is none. */
static void test_a_log_and_a_picture_without_an_output(void)
{
    const tg_array in = batch_of(TG_DTYPE_F32, a, C), in_b = batch_of(TG_DTYPE_F32, b, C),
                   sum = batch_of(TG_DTYPE_F32, got_sum, C);
    for (int plot = 0; plot < 2; plot++) {
        work w = begin(ports, &in, &in_b);
        CHECK_EQ(tg_opts_set_sink(w.o, NULL, &sum), TG_OK);
        CHECK_EQ(tg_opts_set(w.o, plot ? "plot" : "log", plot ? "" : in_folder("own.csv")),
                 TG_OK);
        for (int again = 0; again < 2; again++) /* the log is its own, then */
            check_status(work_run(&w), plot ? TG_E_ARG : TG_OK,
                         plot ? "no output to name the picture after" : NULL);
        work_end(&w);
        CHECK(exists(in_folder("own.csv")));
        CHECK(!exists(".memory.csv") && !exists(".memory.svg"));
    }
}

static void test_a_copy_takes_no_arrays(void)
{
    const tg_array in = batch_of(TG_DTYPE_F32, a, C);
    tg_array sum = batch_of(TG_DTYPE_F32, got_sum, C);
    for (int k = 0; k < 2; k++) {
        tg_opts *o = NULL;
        CHECK_EQ(tg_opts_new(ctx, &o), TG_OK);
        CHECK_EQ(tg_opts_set(o, "input", in_folder("none.npy")), TG_OK);
        CHECK_EQ(tg_opts_set(o, "output", in_folder("none.tif")), TG_OK);
        CHECK_EQ(k ? tg_opts_set_source(o, NULL, &in) : tg_opts_set_sink(o, NULL, &sum), TG_OK);
        check_status(tg_copy(ctx, o), TG_E_ARG, "copies files");
        tg_opts_free(&o);
    }
}

static void test_a_preview_of_arrays_is_refused(void)
{
    const tg_array in = batch_of(TG_DTYPE_F32, a, C), in_b = batch_of(TG_DTYPE_F32, b, C),
                   sum = batch_of(TG_DTYPE_F32, got_sum, C);
    work w = begin(ports, &in, &in_b);
    CHECK_EQ(tg_opts_set_sink(w.o, NULL, &sum), TG_OK);
    CHECK_EQ(tg_job_open(ctx, w.o, &w.job), TG_OK);
    check_status(tg_job_preview(w.job), TG_E_UNSUPPORTED, "not arrays");
    check_status(work_run(&w), TG_OK, NULL);
    work_end(&w);
}

int main(void)
{
    help_open();
    snprintf(ports, sizeof ports, "%s", in_folder("ports.onnx"));
    snprintf(flat, sizeof flat, "%s", in_folder("flat.onnx"));
    snprintf(volume, sizeof volume, "%s", in_folder("volume.onnx"));
    snprintf(scalar, sizeof scalar, "%s", in_folder("scalar.onnx"));
    make_ports();
    make_flat();
    make_volume();
    make_scalar();
    draw();
    RUN(test_every_port_has_its_own_array);
    RUN(test_outputs_without_a_sink_are_dropped);
    RUN(test_what_is_no_image_comes_once);
    RUN(test_a_source_may_overlap_itself);
    RUN(test_one_number_for_all);
    RUN(test_a_sink_that_overlaps_itself_is_refused);
    RUN(test_two_sinks_in_one_place_are_refused);
    RUN(test_volumes_of_any_order);
    RUN(test_a_run_ends_with_what_a_function_answers);
    RUN(test_another_thread_cancels_while_a_function_works);
    RUN(test_a_function_cannot_work_on_its_job);
    RUN(test_nothing_is_an_argument);
    RUN(test_a_source_taken_back_is_missing);
    RUN(test_shapes_that_do_not_go_together);
    RUN(test_a_number_as_a_second_input);
    RUN(test_a_log_and_a_picture_without_an_output);
    RUN(test_a_copy_takes_no_arrays);
    RUN(test_a_preview_of_arrays_is_refused);
    help_close();
    return TEST_END();
}

/* The plugin's library of products on the emulated runtime, the library being a pretended one
 * (fake_cublaslt.cc): opening and closing it, every way in which it is not there, products
 * between graphs of launches, and each thing that it may answer. The kernels here are toys. */
#include "kernels/cuda/cu_plugin.cuh"
#include "tests/cuda/toys.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
#include "tests/tg_test.h"
const tgi_device_ops *tgi_device_plugin(uint32_t abi);
}

static const tgi_device_ops *ops;
static tgi_err err;

/* ---- Toys: y = 3 * x by a product ---------------------------------------------------------
 */

#define SIDE 4 /* numbers of a column */
#define MOST 1024
#define ROW_BYTES (MOST * sizeof(float))

static int64_t toy_k = SIDE; /* of the next product's form */
static int64_t toy_most = MOST / SIDE;

/* Columns of four numbers times what `packed` holds. */
static void toy_triple(const tgi_call *c)
{
    cu_product p;
    memset(&p, 0, sizeof p);
    p.form.m = SIDE;
    p.form.k = toy_k;
    p.form.n = MOST;
    p.form.batch = 1;
    p.form.lda = p.form.ldb = p.form.ldc = p.form.ldd = SIDE;
    p.form.type = TG_DTYPE_F32;
    p.form.align_a = p.form.align_b = p.form.align_d = CU_PRODUCT_ALIGNMENT;
    p.form.image = 1;
    p.form.alpha = 1;
    p.most_n = toy_most;
    p.most_batch = 1;
    if (tgi_range_len(c->box.ax[3]) > 0) {
        p.n_pieces = 1;
        p.piece[0].a = c->packed;
        p.piece[0].b = c->src[0].seg[0].base;
        p.piece[0].d = c->dst[0].base;
        p.piece[0].n = tgi_range_len(c->box.ax[3]) / SIDE;
        p.piece[0].batch = 1;
    }
    cu_put_product(c->recorder, &p);
}

static const tgi_variant triple_variant = toy_variant("toy_triple", toy_triple);

const tgi_kernel_set *cu_backend_of(tg_dtype)
{
    return NULL;
}
void cu_pixels_put(const tgi_device_step *)
{
}

/* ---- Three steps over one row: count into a, triple into b, double into `out` ------------ */

struct band {
    tgi_view row[4]; /* nothing, a, b, out */
    tgi_operand src[3];
    tgi_device_step step[3];
};

/* The product's matrix lies behind the rows a and b. */
static void make_band(band *b, char *at, void *out, int64_t first, int64_t n)
{
    *b = band();
    b->row[1].base = (float *)(void *)at;
    b->row[2].base = (float *)(void *)(at + ROW_BYTES);
    b->row[3].base = (float *)out;
    for (int i = 0; i < 3; i++) {
        tgi_device_step *s = &b->step[i];
        b->src[i].n_seg = 1;
        b->src[i].seg = &b->row[i];
        s->kind = TGI_STEP_NODE;
        s->variant = i == 0 ? &count_variant : i == 1 ? &triple_variant : &double_variant;
        s->call.src = &b->src[i];
        s->call.dst = &b->row[i + 1];
        s->call.packed = at + 2 * ROW_BYTES;
        s->call.box.rank = 4;
        s->call.box.ax[3] = {first, first + n};
        s->call.most[3] = MOST;
    }
}

/* ---- The machine ------------------------------------------------------------------------- */

static void pretend(const char *words)
{
    setenv("TEGULA_FAKE_CUBLASLT", words, 1);
}

static tgi_device *open_device(const char *words)
{
    tgi_device *d = NULL;
    tg_emulated_begin();
    pretend(words);
    CHECK_OK(ops->open(0, &d, &err), err);
    return d;
}

static void end_device(tgi_device **d)
{
    ops->close(d);
    pretend("");
    CHECK(*d == NULL);
    CHECK_EQ(tg_emulated_alive(), 0);
}

static int said(const char *word)
{
    const int yes = strstr(err.text, word) != NULL && !strchr(err.text, '\n');
    if (!yes)
        fprintf(stderr, "\"%s\" says nothing of %s\n", err.text, word);
    err = {};
    return yes;
}

/* What a band needs, with the matrix in its place. */
static char *make_rows(tgi_device *d)
{
    float matrix[SIDE * SIDE] = {0};
    void *at = NULL;
    for (int i = 0; i < SIDE; i++)
        matrix[i * SIDE + i] = 3;
    CHECK_OK(ops->alloc(d, 2 * ROW_BYTES + sizeof matrix, &at, &err), err);
    CHECK_OK(ops->upload(d, TGI_QUEUE_COMPUTE, (char *)at + 2 * ROW_BYTES, matrix,
                         sizeof matrix, &err),
             err);
    return (char *)at;
}

#define RUNS 9

/* Runs that are put in without waiting, each into a row of its own; then all are looked at. */
static void check_runs(tgi_device *d)
{
    void *out = NULL, *got = NULL;
    size_t bytes = 0, counted = 0;
    tgi_device_program *p = NULL;
    band b;
    char *rows = make_rows(d);
    CHECK_OK(ops->alloc(d, RUNS * ROW_BYTES, &out, &err), err);
    CHECK_OK(ops->pin(d, RUNS * ROW_BYTES, &got, &err), err);
    make_band(&b, NULL, NULL, 0, 0); /* at rest */
    CHECK_OK(ops->program_open(NULL, TGI_QUEUE_COMPUTE, b.step, 3, NULL, &counted, &err), err);
    CHECK_OK(ops->program_open(d, TGI_QUEUE_COMPUTE, b.step, 3, &p, &bytes, &err), err);
    CHECK_EQ(bytes, counted);
    for (int i = 0; i < RUNS; i++) { /* other places, other boxes; the last is empty */
        make_band(&b, rows, (char *)out + (size_t)i * ROW_BYTES, i, (RUNS - 1 - i) * 100);
        CHECK_OK(ops->program_run(p, b.step, &err), err);
        memset(&b, 0xff, sizeof b); /* read before the call returned */
    }
    CHECK_OK(ops->download(d, TGI_QUEUE_COMPUTE, got, out, RUNS * ROW_BYTES, &err), err);
    CHECK_OK(ops->sync(d, NULL, &err), err);
    for (int i = 0; i < RUNS; i++) {
        const float *row = (const float *)got + (size_t)i * MOST;
        const int n = (RUNS - 1 - i) * 100;
        int bad = 0;
        for (int x = 0; x < MOST; x++)
            bad += x < n ? row[x] != 6 * (float)(x + i) : row[x] == row[x];
        CHECK_EQ(bad, 0);
    }
    ops->program_close(&p);
    ops->release(d, rows);
    ops->release(d, out);
    ops->unpin(d, got);
}

/* ---- Opening ----------------------------------------------------------------------------- */

static void test_what_it_takes_is_taken_when_it_is_opened_and_given_back_when_it_is_closed(void)
{
    const uint64_t taken = ((uint64_t)32 << 20) + TGI_QUEUE_COUNT * 256; /* and workspaces */
    uint64_t before = 0, open = 0, after = 0, total = 0;
    tgi_device *d = open_device("mib=32");
    CHECK_OK(ops->memory(d, &before, &total, &err), err);
    CHECK_OK(ops->library(d, 0, &err), err); /* nothing to close */
    CHECK_OK(ops->library(d, 1, &err), err);
    CHECK_OK(ops->library(d, 1, &err), err); /* it is open */
    CHECK_OK(ops->memory(d, &open, &total, &err), err);
    CHECK_EQ(before - open, taken);
    check_runs(d);
    CHECK_OK(ops->memory(d, &after, &total, &err), err);
    CHECK_EQ(open, after);
    CHECK_OK(ops->library(d, 0, &err), err);
    CHECK_OK(ops->memory(d, &after, &total, &err), err);
    CHECK_EQ(before, after);
    CHECK_OK(ops->library(d, 1, &err), err);
    end_device(&d); /* with it */
}

/* One line says why, and the device goes on without. */
static void refused(const char *words, tg_status status, const char *why)
{
    uint64_t f = 0, t = 0, before = 0;
    tgi_device *d = open_device(words);
    CHECK_OK(ops->memory(d, &before, &t, &err), err);
    CHECK_EQ(ops->library(d, 1, &err), status);
    CHECK(said(why));
    CHECK_OK(ops->memory(d, &f, &t, &err), err);
    CHECK_EQ(f, before);
    CHECK_OK(ops->sync(d, NULL, &err), err);
    pretend("");
    const char *at = getenv("TEGULA_CUBLASLT");
    if (at && at[0] == '/' && !strstr(at, "libm.so")) {
        CHECK_OK(ops->library(d, 1, &err), err);
        check_runs(d);
    }
    end_device(&d);
}

static void test_a_library_that_is_not_there_or_does_not_fit_is_told_in_a_line(void)
{
    char own[1024];
    snprintf(own, sizeof own, "%s", getenv("TEGULA_CUBLASLT"));
    refused("version=12", TG_E_UNSUPPORTED,
            "cuBLASLt 12.1.2: the plugin was built with CUDA 13");
    refused("nocreate", TG_E_UNSUPPORTED, "CUBLAS_STATUS_NOT_INITIALIZED");
    refused("none", TG_E_UNSUPPORTED, "no algorithm");
    refused("wrong", TG_E_UNSUPPORTED, "cuBLASLt 13.1.2 computes wrongly");
    refused("fail=2", TG_E_UNSUPPORTED, "CUBLAS_STATUS_EXECUTION_FAILED");
    refused("mib=4096", TG_E_NOMEM, "CUBLAS_STATUS_ALLOC_FAILED");
    setenv("TEGULA_CUBLASLT", "none", 1);
    refused("", TG_E_UNSUPPORTED, "TEGULA_CUBLASLT=none");
    setenv("TEGULA_CUBLASLT", "/nowhere/libcublasLt.so.13", 1);
    pretend("");
    tgi_device *d = open_device("");
    CHECK_EQ(ops->library(d, 1, &err), TG_E_UNSUPPORTED);
    CHECK(said("/nowhere/libcublasLt.so.13"));
    setenv("TEGULA_CUBLASLT", "libm.so.6", 1); /* one, but not this */
    CHECK_EQ(ops->library(d, 1, &err), TG_E_UNSUPPORTED);
    CHECK(said("the library has no cublasLtGetProperty"));
    setenv("TEGULA_CUBLASLT", own, 1);
    CHECK_OK(ops->library(d, 1, &err), err);
    end_device(&d);
}

/* ---- Programs ---------------------------------------------------------------------------- */

static void test_products_come_between_the_launches_before_and_after_them(void)
{
    tgi_device *d = open_device("");
    CHECK_OK(ops->library(d, 1, &err), err);
    check_runs(d);
    tg_emulated.no_graphs = 1;
    check_runs(d);
    tg_emulated.no_graphs = 0;
    setenv("TEGULA_CUDA_STEPS", "1", 1);
    check_runs(d);
    unsetenv("TEGULA_CUDA_STEPS");
    end_device(&d);
}

static void test_their_time_is_measured_with_the_launches(void)
{
    double seconds[3] = {0};
    setenv("TEGULA_CUDA_TIMES", "1", 1);
    tgi_device *d = open_device("");
    unsetenv("TEGULA_CUDA_TIMES");
    CHECK_OK(ops->library(d, 1, &err), err);
    check_runs(d);
    CHECK_OK(ops->times(d, seconds, &err), err);
    CHECK(seconds[2] > 0);
    end_device(&d);
}

/* Opened at rest, with the status and reason that it has to give. */
static void check_open(tgi_device *d, tg_status status, const char *why)
{
    tgi_device_program *p = NULL;
    size_t bytes = 0;
    band b;
    make_band(&b, NULL, NULL, 0, 0);
    CHECK_EQ(ops->program_open(d, TGI_QUEUE_COMPUTE, b.step, 3, &p, &bytes, &err), status);
    CHECK(p == NULL && said("toy_triple"));
    err = {};
    (void)ops->program_open(d, TGI_QUEUE_COMPUTE, b.step, 3, &p, &bytes, &err);
    CHECK(said(why));
}

static void test_what_it_does_not_compute_is_said_when_a_program_is_opened(void)
{
    tgi_device *d = open_device("");
    check_open(d, TG_E_UNSUPPORTED, "the library is not open");
    CHECK_OK(ops->library(d, 1, &err), err);
    pretend("none");
    check_open(d, TG_E_UNSUPPORTED, "no algorithm");
    pretend("small");
    toy_most = 30000;
    check_open(d, TG_E_UNSUPPORTED, "does not compute 1 matrices of 30000 columns");
    toy_most = MOST / SIDE;
    pretend("");
    toy_k = SIDE + 1; /* a matrix that is not there */
    check_open(d, TG_E_UNSUPPORTED, "CUBLAS_STATUS_INVALID_VALUE");
    toy_k = SIDE;
    check_runs(d); /* nothing of it stuck */
    end_device(&d);
}

static void test_an_algorithm_that_parts_its_sums_is_not_taken_though_it_is_offered(void)
{
    tgi_device *d = open_device("careless");
    CHECK_OK(ops->library(d, 1, &err), err);
    check_runs(d);
    end_device(&d);
}

static void test_a_product_that_fails_is_the_devices_failure_and_names_its_step(void)
{
    uint64_t f, t;
    size_t bytes = 0;
    tgi_device_program *p = NULL;
    band b;
    tgi_device *d = open_device("fail=5"); /* three are of opening it */
    CHECK_OK(ops->library(d, 1, &err), err);
    char *rows = make_rows(d);
    make_band(&b, rows, rows, 0, 8);
    CHECK_OK(ops->program_open(d, TGI_QUEUE_COMPUTE, b.step, 3, &p, &bytes, &err), err);
    CHECK_OK(ops->program_run(p, b.step, &err), err);
    CHECK_EQ(ops->program_run(p, b.step, &err), TG_E_DEVICE);
    CHECK(said("toy_triple: cuBLASLt 13.1.2: cublasLtMatmul: CUBLAS_STATUS_EXECUTION_FAILED"));
    CHECK_EQ(ops->memory(d, &f, &t, &err), TG_E_DEVICE);
    CHECK(said("toy_triple"));
    CHECK_STATUS(ops->library(d, 0, &err), TG_E_DEVICE, err);
    ops->program_close(&p);
    ops->release(d, rows);
    end_device(&d);
}

static void test_another_product_than_when_it_was_opened_is_our_fault(void)
{
    size_t bytes = 0;
    tgi_device_program *p = NULL;
    band b;
    tgi_device *d = open_device("");
    CHECK_OK(ops->library(d, 1, &err), err);
    char *rows = make_rows(d);
    make_band(&b, rows, rows, 0, 8);
    CHECK_OK(ops->program_open(d, TGI_QUEUE_COMPUTE, b.step, 3, &p, &bytes, &err), err);
    toy_k = SIDE - 1;
    CHECK_EQ(ops->program_run(p, b.step, &err), TG_E_INTERNAL);
    CHECK(said("a product is another than when the program was opened"));
    toy_k = SIDE;
    b.row[1].base += 1; /* no place for 16 bytes */
    CHECK_EQ(ops->program_run(p, b.step, &err), TG_E_INTERNAL);
    CHECK(said("odd addresses"));
    b.row[1].base -= 1;
    CHECK_EQ(ops->library(d, 0, &err), TG_E_INTERNAL); /* it is still used */
    CHECK(said("programs are open"));
    CHECK_OK(ops->program_run(p, b.step, &err), err);
    CHECK_OK(ops->sync(d, NULL, &err), err);
    ops->program_close(&p);
    CHECK_OK(ops->library(d, 0, &err), err);
    ops->release(d, rows);
    end_device(&d);
}

/* ---- Any failure ------------------------------------------------------------------------- */

/* A device, its library and one run; the first status that is not TG_OK. */
static tg_status small_job(tgi_err *e)
{
    tgi_device *d = NULL;
    tgi_device_program *p = NULL;
    void *at = NULL;
    size_t bytes = 0;
    band b;
    tg_status st = ops->open(0, &d, e);
    if (st == TG_OK)
        st = ops->library(d, 1, e);
    if (st == TG_OK)
        st = ops->alloc(d, 3 * ROW_BYTES, &at, e);
    make_band(&b, (char *)at, at, 0, 8);
    if (st == TG_OK)
        st = ops->program_open(d, TGI_QUEUE_COMPUTE, b.step, 3, &p, &bytes, e);
    if (st == TG_OK)
        st = ops->program_run(p, b.step, e);
    if (st == TG_OK)
        st = ops->sync(d, NULL, e);
    ops->program_close(&p);
    if (d) {
        ops->release(d, at);
        ops->close(&d);
    }
    return st;
}

static void test_any_call_and_any_request_for_memory_can_fail(void)
{
    tg_emulated_begin();
    CHECK_OK(small_job(&err), err);
    const int calls = tg_emulated_fail_call(0, cudaSuccess);
    for (int k = 1; k <= calls; k++) {
        tg_emulated_begin();
        tg_emulated_fail_call(k, cudaErrorUnknown);
        err = {};
        const tg_status st = small_job(&err);
        CHECK(st == TG_E_DEVICE || st == TG_OK);
        CHECK(st == TG_OK || err.text[0]);
        tg_emulated_fail_call(0, cudaSuccess);
        CHECK_EQ(tg_emulated_alive(), 0);
    }
    int refusals = 0;
    for (int k = 1; k <= 20; k++) {
        tg_emulated_begin();
        tgi_mem_fail_at((uint64_t)k);
        err = {};
        const tg_status st = small_job(&err);
        tgi_mem_fail_at(0);
        CHECK(st == TG_E_NOMEM || st == TG_OK);
        refusals += st == TG_E_NOMEM;
        CHECK_EQ(tg_emulated_alive(), 0);
    }
    CHECK(refusals >= 9);
    err = {};
}

int main(void)
{
    ops = tgi_device_plugin(TGI_DEVICE_ABI);
    if (!ops || !getenv("TEGULA_CUBLASLT")) {
        printf("TEGULA_CUBLASLT names the pretended library\n");
        return 1;
    }
    RUN(test_what_it_takes_is_taken_when_it_is_opened_and_given_back_when_it_is_closed);
    RUN(test_a_library_that_is_not_there_or_does_not_fit_is_told_in_a_line);
    RUN(test_products_come_between_the_launches_before_and_after_them);
    RUN(test_their_time_is_measured_with_the_launches);
    RUN(test_what_it_does_not_compute_is_said_when_a_program_is_opened);
    RUN(test_an_algorithm_that_parts_its_sums_is_not_taken_though_it_is_offered);
    RUN(test_a_product_that_fails_is_the_devices_failure_and_names_its_step);
    RUN(test_another_product_than_when_it_was_opened_is_our_fault);
    RUN(test_any_call_and_any_request_for_memory_can_fail);
    return TEST_END();
}

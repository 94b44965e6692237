/* The host side of the CUDA plugin on the emulated runtime: answers of a device that is not
 * there, memory that ends, queues that are as late as they may be, programs, and every call of
 * the runtime failing in turn. The kernels here are toys. */
#include "kernels/cuda/cu_plugin.cuh"
#include "tests/cuda/toys.cuh"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern "C" {
#include "tests/tg_test.h"
const tgi_device_ops *tgi_device_plugin(uint32_t abi);
}

static const tgi_device_ops *ops;
static tgi_err err;

/* ---- Toys ------------------------------------------------------------------------------- */

/* toy_count with 4 KiB less. */
static void toy_less(const tgi_call *c)
{
    shared_wanted -= 4096;
    launch_toy(c, toy_count_kernel);
    shared_wanted += 4096;
}

const tgi_kernel_set *cu_backend_of(tg_dtype)
{
    return NULL;
}

static int pixel_steps;
void cu_pixels_put(const tgi_device_step *step)
{
    pixel_steps += step->pixels.element == TG_DTYPE_F16;
}

/* ---- Two steps over one row: count into `mid`, double into `out` ------------------------- */

#define MOST 1000
#define ROW_BYTES (MOST * sizeof(float))

struct band {
    tgi_view mid, out;
    tgi_operand src;
    tgi_device_step step[2];
};

static void make_band(band *b, void *mid, void *out, int64_t first, int64_t n)
{
    *b = band();
    b->mid.base = (float *)mid;
    b->out.base = (float *)out;
    b->src.n_seg = 1;
    b->src.seg = &b->mid;
    for (int i = 0; i < 2; i++) {
        tgi_device_step *s = &b->step[i];
        s->kind = TGI_STEP_NODE;
        s->variant = i ? &double_variant : &count_variant;
        s->call.src = &b->src;
        s->call.dst = i ? &b->out : &b->mid;
        s->call.box.rank = 4;
        s->call.box.ax[3] = {first, first + n};
        s->call.most[3] = MOST;
    }
}

static tgi_device *open_device(void)
{
    tgi_device *d = NULL;
    CHECK_OK(ops->open(0, &d, &err), err);
    return d;
}

/* Give all back: what is alive then was forgotten by the code under test. */
static void end_device(tgi_device **d)
{
    ops->close(d);
    CHECK(*d == NULL);
    CHECK_EQ(tg_emulated_alive(), 0);
}

static void machine_without(int driver, int devices)
{
    tg_emulated_begin();
    tg_emulated.driver = driver;
    tg_emulated.devices = devices;
}

static int said(const char *word)
{
    const int yes = strstr(err.text, word) != NULL;
    if (!yes)
        fprintf(stderr, "\"%s\" says nothing of %s\n", err.text, word);
    return yes;
}

/* ---- Devices ----------------------------------------------------------------------------- */

static void test_a_missing_driver_an_old_one_and_no_device_are_told_apart(void)
{
    int n = 7;
    machine_without(0, 0);
    CHECK_EQ(ops->count(&n, &err), TG_E_DEVICE);
    CHECK(n == 0 && said("no NVIDIA driver"));
    err = {};
    machine_without(11040, 1);
    CHECK_EQ(ops->count(&n, &err), TG_E_DEVICE);
    CHECK(said("CUDA 11.4") && said("CUDA 13.0"));
    err = {};
    machine_without(13000, 0);
    CHECK_OK(ops->count(&n, &err), err);
    CHECK_EQ(n, 0);
    tgi_device *d = NULL;
    CHECK_EQ(ops->open(0, &d, &err), TG_E_DEVICE);
    CHECK(d == NULL && said("the driver shows none"));
    err = {};
    tg_emulated_begin();
    CHECK_EQ(ops->open(1, &d, &err), TG_E_DEVICE);
    CHECK(said("ids are 0 to 0"));
    err = {};
    tg_emulated_fail_call(1, cudaErrorUnknown);
    CHECK_EQ(ops->count(&n, &err), TG_E_DEVICE);
    CHECK(said("cudaErrorUnknown"));
    err = {};
}

static void test_a_device_is_described_without_opening_it(void)
{
    tgi_device_info info;
    tg_emulated_begin();
    CHECK_OK(ops->describe(0, &info, &err), err);
    CHECK_STR(info.name, "Emulated 0");
    CHECK_STR(info.uuid, "GPU-00112233-4455-6677-8899-aabbccddeeff");
    CHECK_STR(info.driver, "driver of CUDA 13.0, runtime 13.0");
    CHECK(info.major == 9 && info.minor == 0 && info.total_bytes == (size_t)256 << 20);
    CHECK_EQ(tg_emulated_device_bytes(), 0);
    CHECK_STATUS(ops->describe(3, &info, &err), TG_E_DEVICE, err);
}

static int count_modules(void)
{
    int n = 0;
    for (const cu_module *m = cu_modules; m; m = m->next)
        n++;
    return n;
}

static void test_every_kernel_is_loaded_with_the_device(void)
{
    const int modules = count_modules();
    CHECK(modules > 1);                       /* this source's, and those of the host side */
    for (const int driver : {13000, 12030}) { /* the second has no such calls */
        tg_emulated_begin();
        tg_emulated.driver = driver;
        tg_emulated.runtime = 12000;
        const int before = tg_emulated_loaded();
        tgi_device *d = open_device();
        CHECK_EQ(tg_emulated_loaded() - before, driver == 13000 ? 2 * modules : 0);
        end_device(&d);
    }
}

static void test_devices_that_cannot_be_used_are_refused_with_the_reason(void)
{
    tgi_device *d = NULL;
    tg_emulated_begin();
    tg_emulated.major = 6;
    tg_emulated.minor = 1;
    CHECK_EQ(ops->open(0, &d, &err), TG_E_DEVICE);
    CHECK(said("6.1") && said("7.5"));
    err = {};
    tg_emulated_begin();
    tg_emulated.no_kernels = 1;
    CHECK_EQ(ops->open(0, &d, &err), TG_E_DEVICE);
    CHECK(said("no kernels for compute capability 9.0"));
    err = {};
    tg_emulated_begin();
    tg_emulated.wrong = 1;
    CHECK_EQ(ops->open(0, &d, &err), TG_E_DEVICE);
    CHECK(said("computes wrongly"));
    err = {};
    CHECK(d == NULL);
    CHECK_EQ(tg_emulated_alive(), 0);
}

static void test_a_plugin_of_another_abi_gives_no_table(void)
{
    CHECK(tgi_device_plugin(TGI_DEVICE_ABI + 1) == NULL);
    CHECK(getenv("CUDA_MODULE_LOADING") == NULL); /* the environment is the program's */
    CHECK_STR(ops->name, "cuda");
    CHECK_EQ(ops->abi, TGI_DEVICE_ABI);
}

/* ---- Memory ------------------------------------------------------------------------------ */

static void test_no_memory_is_told_with_its_size_and_does_not_stick(void)
{
    uint64_t before = 0, after = 0, total = 0;
    void *at = NULL, *small = NULL;
    tg_emulated_begin();
    tgi_device *d = open_device();
    CHECK_OK(ops->memory(d, &before, &total, &err), err);
    CHECK(total == (uint64_t)256 << 20 && before == total - ((uint64_t)8 << 20));
    CHECK_EQ(ops->alloc(d, (size_t)before + 1, &at, &err), TG_E_NOMEM);
    CHECK(at == NULL && err.tried_bytes == before + 1 && said("GPU 0") &&
          said("out of memory"));
    err = {};
    CHECK_OK(ops->alloc(d, (size_t)before, &at, &err), err); /* all of it */
    CHECK_STATUS(ops->alloc(d, 1, &small, &err), TG_E_NOMEM, err);
    ops->release(d, at);
    ops->release(d, NULL);
    CHECK_OK(ops->memory(d, &after, &total, &err), err);
    CHECK_EQ(before, after);
    end_device(&d);
}

/* ---- Queues ------------------------------------------------------------------------------ */

struct pair {
    float *up, *down; /* pinned */
    void *device;
};

static pair make_pair(tgi_device *d)
{
    pair p = {};
    void *a = NULL, *b = NULL;
    CHECK_OK(ops->pin(d, ROW_BYTES, &a, &err), err);
    CHECK_OK(ops->pin(d, ROW_BYTES, &b, &err), err);
    CHECK_OK(ops->alloc(d, ROW_BYTES, &p.device, &err), err);
    p.up = (float *)a;
    p.down = (float *)b;
    for (int i = 0; i < MOST; i++)
        p.up[i] = (float)i;
    return p;
}

static void drop_pair(tgi_device *d, const pair *p)
{
    ops->unpin(d, p->up);
    ops->unpin(d, p->down);
    ops->release(d, p->device);
}

static void test_a_queue_that_waits_sees_what_the_other_did_and_one_that_does_not_does_not(void)
{
    for (int waits = 0; waits < 2; waits++) {
        tgi_device_event *e = NULL;
        tg_emulated_begin();
        tgi_device *d = open_device();
        pair p = make_pair(d);
        CHECK_OK(ops->event_new(d, &e, &err), err);
        CHECK_OK(ops->wait(d, TGI_QUEUE_UPLOAD, e, &err), err); /* never recorded: past */
        CHECK_OK(ops->sync(d, e, &err), err);
        CHECK_OK(ops->upload(d, TGI_QUEUE_UPLOAD, p.device, p.up, ROW_BYTES, &err), err);
        CHECK_OK(ops->record(d, TGI_QUEUE_UPLOAD, e, &err), err);
        if (waits)
            CHECK_OK(ops->wait(d, TGI_QUEUE_DOWNLOAD, e, &err), err);
        CHECK_OK(ops->download(d, TGI_QUEUE_DOWNLOAD, p.down, p.device, ROW_BYTES, &err), err);
        CHECK_OK(ops->record(d, TGI_QUEUE_DOWNLOAD, e, &err), err);
        CHECK_OK(ops->sync(d, e, &err), err);
        CHECK_EQ(p.down[MOST - 1] == MOST - 1, waits);
        ops->event_free(d, e);
        ops->event_free(d, NULL);
        drop_pair(d, &p);
        end_device(&d);
    }
}

static void test_waiting_for_nothing_in_particular_empties_every_queue(void)
{
    tg_emulated_begin();
    tgi_device *d = open_device();
    pair p = make_pair(d);
    CHECK_OK(ops->upload(d, TGI_QUEUE_DOWNLOAD, p.device, p.up, ROW_BYTES, &err), err);
    CHECK_OK(ops->download(d, TGI_QUEUE_DOWNLOAD, p.down, p.device, ROW_BYTES, &err), err);
    CHECK(p.down[1] != 1);
    CHECK_OK(ops->sync(d, NULL, &err), err);
    CHECK(p.down[1] == 1);
    drop_pair(d, &p);
    end_device(&d);
}

/* ---- Programs ---------------------------------------------------------------------------- */

#define RUNS 11

/* Runs that are put in without waiting, each into a row of its own; then all are looked at. */
static void check_runs(tgi_device *d, int expect_status)
{
    void *mid = NULL, *out = NULL, *got = NULL;
    size_t bytes = 0, counted = 0;
    tgi_device_program *p = NULL;
    band b;
    CHECK_OK(ops->alloc(d, ROW_BYTES, &mid, &err), err);
    CHECK_OK(ops->alloc(d, RUNS * ROW_BYTES, &out, &err), err);
    CHECK_OK(ops->pin(d, RUNS * ROW_BYTES, &got, &err), err);
    make_band(&b, mid, out, 0, MOST);
    CHECK_OK(ops->program_open(NULL, TGI_QUEUE_COMPUTE, b.step, 2, NULL, &counted, &err), err);
    CHECK_OK(ops->program_open(d, TGI_QUEUE_COMPUTE, b.step, 2, &p, &bytes, &err), err);
    CHECK_EQ(bytes, counted);
    CHECK_EQ(bytes, (size_t)4 << 20);
    for (int i = 0; i < RUNS; i++) { /* other places, other boxes; the last is empty */
        make_band(&b, mid, (char *)out + (size_t)i * ROW_BYTES, i, (RUNS - 1 - i) * 100);
        CHECK_OK(ops->program_run(p, b.step, &err), err);
        memset(&b, 0xff, sizeof b); /* read before the call returned */
    }
    CHECK_OK(ops->download(d, TGI_QUEUE_COMPUTE, got, out, RUNS * ROW_BYTES, &err), err);
    CHECK_STATUS(ops->sync(d, NULL, &err), expect_status, err);
    for (int i = 0; expect_status == TG_OK && i < RUNS; i++) {
        const float *row = (const float *)got + (size_t)i * MOST;
        const int n = (RUNS - 1 - i) * 100;
        for (int x = 0; x < n; x++)
            if (row[x] != 2 * (float)(x + i)) {
                CHECK_EQ(row[x], 2 * (x + i));
                break;
            }
        CHECK(row[n < MOST ? n : MOST - 1] != row[n < MOST ? n : MOST - 1] || n == MOST);
    }
    ops->program_close(&p);
    CHECK(p == NULL);
    ops->program_close(&p);
    ops->release(d, mid);
    ops->release(d, out);
    ops->unpin(d, got);
}

static void test_runs_put_in_ahead_have_each_their_own_views_and_boxes(void)
{
    tg_emulated_begin();
    tgi_device *d = open_device();
    check_runs(d, TG_OK);
    end_device(&d);
}

static void test_without_graphs_launches_go_one_by_one_with_the_same_result(void)
{
    tg_emulated_begin();
    tgi_device *d = NULL;
    tg_emulated.no_graphs = 1;
    CHECK_OK(ops->open(0, &d, &err), err); /* its first launch, too */
    check_runs(d, TG_OK);
    tg_emulated.no_graphs = 0;
    setenv("TEGULA_CUDA_STEPS", "1", 1);
    check_runs(d, TG_OK);
    unsetenv("TEGULA_CUDA_STEPS");
    end_device(&d);
}

static void test_other_launches_than_when_it_was_opened_are_our_fault(void)
{
    void *at = NULL;
    size_t bytes = 0;
    tgi_device_program *p = NULL;
    band b;
    tg_emulated_begin();
    tgi_device *d = open_device();
    CHECK_OK(ops->alloc(d, 2 * ROW_BYTES, &at, &err), err);
    make_band(&b, at, (char *)at + ROW_BYTES, 0, 10);
    CHECK_OK(ops->program_open(d, TGI_QUEUE_COMPUTE, b.step, 2, &p, &bytes, &err), err);
    b.step[1].call.most[3] = MOST / 2; /* another grid */
    CHECK_EQ(ops->program_run(p, b.step, &err), TG_E_INTERNAL);
    CHECK(said("toy_double") && said("launch 1 of 2"));
    err = {};
    b.step[1].call.most[3] = MOST;
    b.step[1].variant = &count_variant; /* another kernel */
    CHECK_STATUS(ops->program_run(p, b.step, &err), TG_E_INTERNAL, err);
    b.step[1].variant = &double_variant;
    b.step[1].kind = TGI_STEP_STORE; /* none at all */
    CHECK_STATUS(ops->program_run(p, b.step, &err), TG_E_INTERNAL, err);
    b.step[1].kind = TGI_STEP_NODE;
    shared_wanted = 16; /* other shared memory */
    CHECK_STATUS(ops->program_run(p, b.step, &err), TG_E_INTERNAL, err);
    shared_wanted = 0;
    CHECK_OK(ops->program_run(p, b.step, &err), err); /* nothing of it stuck */
    CHECK_OK(ops->sync(d, NULL, &err), err);
    ops->program_close(&p);
    ops->release(d, at);
    end_device(&d);
}

static void test_pixels_go_through_their_own_door_and_a_program_may_be_empty(void)
{
    size_t bytes = 0;
    tgi_device_program *p = NULL;
    tgi_device_step steps[2] = {};
    steps[0].kind = TGI_STEP_LOAD;
    steps[1].kind = TGI_STEP_STORE;
    steps[0].pixels.element = steps[1].pixels.element = TG_DTYPE_F16;
    tg_emulated_begin();
    tgi_device *d = open_device();
    pixel_steps = 0;
    CHECK_OK(ops->program_open(d, TGI_QUEUE_COMPUTE, steps, 2, &p, &bytes, &err), err);
    CHECK_OK(ops->program_run(p, steps, &err), err);
    CHECK_EQ(pixel_steps, 6); /* counted, noted, run */
    CHECK_OK(ops->sync(d, NULL, &err), err);
    ops->program_close(&p);
    end_device(&d);
}

static void test_shared_memory_is_asked_for_and_too_much_is_refused(void)
{
    tg_emulated_begin();
    tgi_device *d = open_device();
    shared_wanted = 56 << 10; /* more than a kernel has without asking */
    check_runs(d, TG_OK);
    band two; /* the same kernel twice, the second time with less */
    size_t held = 0;
    void *at = NULL;
    tgi_device_program *both = NULL;
    const tgi_variant less = toy_variant("toy_less", toy_less);
    CHECK_OK(ops->alloc(d, 2 * ROW_BYTES, &at, &err), err);
    make_band(&two, at, (char *)at + ROW_BYTES, 0, 10);
    two.step[1].variant = &less;
    CHECK_OK(ops->program_open(d, TGI_QUEUE_COMPUTE, two.step, 2, &both, &held, &err), err);
    CHECK_OK(ops->program_run(both, two.step, &err), err);
    CHECK_OK(ops->sync(d, NULL, &err), err);
    ops->program_close(&both);
    ops->release(d, at);
    shared_wanted = tg_emulated_shared_most + 16;
    band b;
    size_t bytes = 0;
    tgi_device_program *p = NULL;
    make_band(&b, NULL, NULL, 0, 0);
    CHECK_EQ(ops->program_open(d, TGI_QUEUE_COMPUTE, b.step, 2, &p, &bytes, &err), TG_E_DEVICE);
    CHECK(p == NULL && said("toy_count") && said("shared memory"));
    err = {};
    shared_wanted = 0;
    end_device(&d);
}

static void test_launches_that_no_device_makes_are_our_fault(void)
{
    tg_emulated_begin();
    tgi_device *d = open_device();
    band b;
    size_t bytes = 0;
    tgi_device_program *p = NULL;
    make_band(&b, NULL, NULL, 0, 0);
    b.step[0].call.most[3] = 0; /* no blocks */
    CHECK_EQ(ops->program_open(d, TGI_QUEUE_COMPUTE, b.step, 2, &p, &bytes, &err),
             TG_E_INTERNAL);
    CHECK(p == NULL && said("toy_count: a launch of 0 x 1 x 1"));
    err = {};
    end_device(&d);
}

/* ---- Failures ---------------------------------------------------------------------------- */

static void test_a_failed_launch_shows_in_the_next_sync_and_in_all_after_it(void)
{
    uint64_t f, t;
    void *at = NULL;
    tgi_device *other = NULL;
    tg_emulated_begin();
    tgi_device *d = open_device();
    tg_emulated_fail_launch(2 * RUNS - 1, cudaErrorIllegalAddress); /* not waited for yet */
    check_runs(d, TG_E_DEVICE);
    CHECK_EQ(ops->memory(d, &f, &t, &err), TG_E_DEVICE);
    CHECK(said("illegal memory access") && said("GPU 0"));
    err = {};
    CHECK_STATUS(ops->alloc(d, 1, &at, &err), TG_E_DEVICE, err);
    CHECK_STATUS(ops->sync(d, NULL, &err), TG_E_DEVICE, err);
    CHECK_STATUS(ops->open(0, &other, &err), TG_E_DEVICE, err); /* as the driver has it */
    end_device(&d);
}

static void test_a_copy_that_fails_once_is_not_forgotten(void)
{
    tg_emulated_begin();
    tgi_device *d = open_device();
    pair p = make_pair(d);
    const cudaError_t with[] = {cudaErrorUnknown, cudaErrorMemoryAllocation};
    for (int w = 0; w < 2; w++) {
        tg_emulated_fail_call(2, with[w]); /* 1: making the device current */
        CHECK_STATUS(ops->upload(d, TGI_QUEUE_UPLOAD, p.device, p.up, ROW_BYTES, &err),
                     TG_E_DEVICE, err);
        CHECK_EQ(ops->sync(d, NULL, &err), TG_E_DEVICE);
        CHECK(said("cudaMemcpyAsync"));
        err = {};
        drop_pair(d, &p);
        end_device(&d);
        d = open_device(); /* the driver is well: who opens again can go on */
        p = make_pair(d);
    }
    drop_pair(d, &p);
    end_device(&d);
}

static void test_steps_one_by_one_name_the_one_that_failed(void)
{
    tg_emulated_begin();
    tgi_device *d = open_device();
    void *at = NULL;
    band b;
    size_t bytes = 0;
    tgi_device_program *p = NULL;
    setenv("TEGULA_CUDA_STEPS", "1", 1);
    CHECK_OK(ops->alloc(d, 2 * ROW_BYTES, &at, &err), err);
    make_band(&b, at, (char *)at + ROW_BYTES, 0, 10);
    CHECK_OK(ops->program_open(d, TGI_QUEUE_COMPUTE, b.step, 2, &p, &bytes, &err), err);
    unsetenv("TEGULA_CUDA_STEPS");
    tg_emulated_fail_launch(2, cudaErrorLaunchFailure);
    CHECK_EQ(ops->program_run(p, b.step, &err), TG_E_DEVICE);
    CHECK(said("toy_double"));
    err = {};
    ops->program_close(&p);
    ops->release(d, at);
    end_device(&d);
}

/* All of a small job; the first status that is not TG_OK. */
static tg_status small_job(tgi_err *e)
{
    tgi_device *d = NULL;
    tgi_device_event *done = NULL;
    tgi_device_program *p = NULL;
    void *at = NULL, *got = NULL;
    size_t bytes = 0;
    uint64_t f = 0, t = 0;
    band b;
    tg_status st = ops->open(0, &d, e);
    if (st == TG_OK)
        st = ops->memory(d, &f, &t, e);
    if (st == TG_OK)
        st = ops->alloc(d, 2 * ROW_BYTES, &at, e);
    if (st == TG_OK)
        st = ops->pin(d, ROW_BYTES, &got, e);
    if (st == TG_OK)
        st = ops->event_new(d, &done, e);
    make_band(&b, at, (char *)at + ROW_BYTES, 5, 10);
    if (st == TG_OK)
        st = ops->program_open(d, TGI_QUEUE_COMPUTE, b.step, 2, &p, &bytes, e);
    if (st == TG_OK)
        st = ops->program_run(p, b.step, e);
    if (st == TG_OK)
        st = ops->record(d, TGI_QUEUE_COMPUTE, done, e);
    if (st == TG_OK)
        st = ops->wait(d, TGI_QUEUE_DOWNLOAD, done, e);
    if (st == TG_OK)
        st = ops->download(d, TGI_QUEUE_DOWNLOAD, got, (char *)at + ROW_BYTES, ROW_BYTES, e);
    if (st == TG_OK)
        st = ops->sync(d, NULL, e);
    if (st == TG_OK)
        CHECK_EQ(((float *)got)[9], 2 * (9 + 5));
    ops->program_close(&p);
    if (d) {
        ops->event_free(d, done);
        ops->release(d, at);
        ops->unpin(d, got);
        ops->close(&d);
    }
    return st;
}

static void test_any_call_can_fail_and_nothing_is_left_behind(void)
{
    tg_emulated_begin();
    CHECK_OK(small_job(&err), err);
    const int calls = tg_emulated_fail_call(0, cudaSuccess);
    CHECK(calls > 40);
    const cudaError_t with[] = {cudaErrorUnknown, cudaErrorMemoryAllocation};
    for (int w = 0; w < 2; w++) {
        int good = 0;
        for (int k = 1; k <= calls; k++) {
            tg_emulated_begin();
            tg_emulated_fail_call(k, with[w]);
            err = {};
            const tg_status st = small_job(&err);
            CHECK(st == TG_E_DEVICE || (st == TG_E_NOMEM && w) || st == TG_OK);
            CHECK(st == TG_OK || err.text[0]);
            good += st == TG_OK;
            tg_emulated_fail_call(0, cudaSuccess);
            CHECK_EQ(tg_emulated_alive(), 0);
        }
        /* Only making a graph may fail without harm, and giving things back. */
        CHECK(good > 0 && good <= 14);
    }
    err = {};
}

static void test_any_request_for_host_memory_can_fail(void)
{
    const int requests = 6 + count_modules();
    for (int k = 1; k <= requests + 1; k++) {
        tg_emulated_begin();
        tgi_mem_fail_at((uint64_t)k);
        const tg_status st = small_job(&err);
        tgi_mem_fail_at(0);
        CHECK_EQ(st, k <= requests ? TG_E_NOMEM : TG_OK);
        err = {};
        CHECK_EQ(tg_emulated_alive(), 0);
    }
}

int main(void)
{
    ops = tgi_device_plugin(TGI_DEVICE_ABI);
    if (!ops)
        return 1;
    RUN(test_a_missing_driver_an_old_one_and_no_device_are_told_apart);
    RUN(test_a_device_is_described_without_opening_it);
    RUN(test_every_kernel_is_loaded_with_the_device);
    RUN(test_devices_that_cannot_be_used_are_refused_with_the_reason);
    RUN(test_a_plugin_of_another_abi_gives_no_table);
    RUN(test_no_memory_is_told_with_its_size_and_does_not_stick);
    RUN(test_a_queue_that_waits_sees_what_the_other_did_and_one_that_does_not_does_not);
    RUN(test_waiting_for_nothing_in_particular_empties_every_queue);
    RUN(test_runs_put_in_ahead_have_each_their_own_views_and_boxes);
    RUN(test_without_graphs_launches_go_one_by_one_with_the_same_result);
    RUN(test_other_launches_than_when_it_was_opened_are_our_fault);
    RUN(test_pixels_go_through_their_own_door_and_a_program_may_be_empty);
    RUN(test_shared_memory_is_asked_for_and_too_much_is_refused);
    RUN(test_launches_that_no_device_makes_are_our_fault);
    RUN(test_a_failed_launch_shows_in_the_next_sync_and_in_all_after_it);
    RUN(test_a_copy_that_fails_once_is_not_forgotten);
    RUN(test_steps_one_by_one_name_the_one_that_failed);
    RUN(test_any_call_can_fail_and_nothing_is_left_behind);
    RUN(test_any_request_for_host_memory_can_fail);
    return TEST_END();
}

/* A device through the plugin's table: memory that ends, copies, the order of queues, programs
 * with many bands on their way, and a launch that fails. Runs on a real device (label gpu), and
 * on the emulated one that is a plugin.
 *
 * Usage: test_gpu_device [--watched]: by a tool that takes device memory itself and reports
 * every illegal access (compute-sanitizer); nothing is said of memory then, and nothing broken.
 */
#include "kernels/ops/op_attrs.h"
#include "tests/cuda/device_run.h"
#include "tests/tg_test.h"

#include <sys/wait.h>

#define MIB ((size_t)1 << 20)

static const tgi_device_ops *ops;
static tgi_device *d;
static tgi_err err;
static uint64_t seed = 88172645463325252u;
static int watched;

static uint64_t free_now(void)
{
    uint64_t f = 0, t = 0;
    CHECK_OK(ops->memory(d, &f, &t, &err), err);
    return f;
}

/* ---- Memory ------------------------------------------------------------------------------ */

static void test_what_is_allocated_is_missing_and_comes_back(void)
{
    int seen = 0;
    for (int tries = 0; tries < 5 && !seen; tries++) { /* others may use the device too */
        void *at = NULL;
        const uint64_t before = free_now();
        CHECK_OK(ops->alloc(d, 64 * MIB, &at, &err), err);
        CHECK((uintptr_t)at % 256 == 0);
        const uint64_t during = free_now();
        ops->release(d, at);
        seen =
            before >= during + 64 * MIB && before <= during + 66 * MIB && free_now() == before;
    }
    CHECK(seen);
}

static void test_a_neighbour_with_all_the_memory_is_refused_room_and_no_more(void)
{
    void *ballast[1024] = {NULL}, *at = NULL, *pinned = NULL;
    int n = 0;
    size_t piece = 1024 * MIB;
    while (piece >= MIB && n < 1024) {
        if (ops->alloc(d, piece, &ballast[n], &err) == TG_OK) {
            n++;
            continue;
        }
        CHECK_EQ(err.code, TG_E_NOMEM);
        CHECK_EQ(err.tried_bytes, piece);
        memset(&err, 0, sizeof err);
        piece /= 2;
    }
    printf("  %d pieces of ballast, %llu bytes left\n", n, (unsigned long long)free_now());
    CHECK_STATUS(ops->alloc(d, 64 * MIB, &at, &err), TG_E_NOMEM, err);
    CHECK(at == NULL);
    CHECK_OK(ops->pin(d, MIB, &pinned, &err), err); /* the host's is another matter */
    ops->unpin(d, pinned);
    while (n > 0)
        ops->release(d, ballast[--n]);
    CHECK_OK(ops->alloc(d, 64 * MIB, &at, &err), err); /* nothing of it stuck */
    ops->release(d, at);
}

/* ---- Copies and queues ------------------------------------------------------------------- */

static void test_copies_of_any_size_and_place_come_back(void)
{
    enum { BYTES = 3 * 1024 * 1024 + 77 };
    void *up = NULL, *down = NULL, *there = NULL;
    uint8_t *plain = tgi_malloc(TGI_TAG_MISC, BYTES);
    CHECK_OK(ops->pin(d, BYTES, &up, &err), err);
    CHECK_OK(ops->pin(d, BYTES, &down, &err), err);
    CHECK_OK(ops->alloc(d, BYTES, &there, &err), err);
    CHECK(plain && up && down && there);
    for (int i = 0; i < 40 && plain && up && down && there; i++) {
        const size_t at = (size_t)tg_rand_in(&seed, 0, 1000),
                     n = (size_t)tg_rand_in(&seed, 0, i % 4 ? 5000 : BYTES - 1000);
        uint8_t *from = i % 2 ? plain : up, *to = i % 3 ? down : plain;
        for (size_t k = 0; k < n; k++)
            from[k] = (uint8_t)tg_rand(&seed);
        uint8_t last = n ? from[n - 1] : 0, first = n ? from[0] : 0;
        CHECK_OK(ops->upload(d, TGI_QUEUE_UPLOAD, (char *)there + at, from, n, &err), err);
        CHECK_OK(ops->sync(d, NULL, &err), err);
        memset(to, 0, n);
        CHECK_OK(ops->download(d, TGI_QUEUE_DOWNLOAD, to, (char *)there + at, n, &err), err);
        CHECK_OK(ops->sync(d, NULL, &err), err);
        CHECK(n == 0 || (to[0] == first && to[n - 1] == last));
        CHECK(from == to || memcmp(from, to, n) == 0);
    }
    ops->release(d, there);
    ops->unpin(d, up);
    ops->unpin(d, down);
    tgi_free(plain);
}

/* A large upload and a download that has to wait for it, many times: without the wait the
 * download would be first. */
static void test_a_queue_waits_for_an_event_of_another(void)
{
    enum { BYTES = 64 * 1024 * 1024, TAIL = 4096 };
    void *up = NULL, *down = NULL, *there = NULL;
    tgi_device_event *e = NULL;
    CHECK_OK(ops->pin(d, BYTES, &up, &err), err);
    CHECK_OK(ops->pin(d, TAIL, &down, &err), err);
    CHECK_OK(ops->alloc(d, BYTES, &there, &err), err);
    CHECK_OK(ops->event_new(d, &e, &err), err);
    CHECK_OK(ops->wait(d, TGI_QUEUE_DOWNLOAD, e, &err), err); /* never recorded: past */
    for (int i = 0; i < 8 && up && down && there; i++) {
        memset(up, i + 1, BYTES);
        memset(down, 0, TAIL);
        CHECK_OK(ops->upload(d, TGI_QUEUE_UPLOAD, there, up, BYTES, &err), err);
        CHECK_OK(ops->record(d, TGI_QUEUE_UPLOAD, e, &err), err);
        CHECK_OK(ops->wait(d, TGI_QUEUE_DOWNLOAD, e, &err), err);
        CHECK_OK(ops->download(d, TGI_QUEUE_DOWNLOAD, down, (char *)there + BYTES - TAIL, TAIL,
                               &err),
                 err);
        CHECK_OK(ops->record(d, TGI_QUEUE_DOWNLOAD, e, &err), err);
        CHECK_OK(ops->sync(d, e, &err), err);
        CHECK_EQ(((uint8_t *)down)[TAIL - 1], i + 1);
    }
    ops->event_free(d, e);
    ops->release(d, there);
    ops->unpin(d, up);
    ops->unpin(d, down);
}

/* ---- Programs ---------------------------------------------------------------------------- */

#define CHANNELS 8
#define ROWS 16
#define COLUMNS 200
#define BANDS 24
#define BAND_FLOATS ((size_t)CHANNELS * ROWS * COLUMNS)

/* Load, Relu, store, over one band of an image: the steps and what they point to. */
typedef struct band {
    tgi_op_ctx ctx;
    tgi_desc desc;
    tgi_view in, out;
    tgi_operand src, stored;
    tgi_device_step step[3];
} band;

static void view_of(tgi_view *v, tg_dtype element, char *at, size_t offset)
{
    const size_t bytes = element == TG_DTYPE_F16 ? 2 : 4;
    *v = (tgi_view){.base = (float *)(void *)(at + offset * bytes),
                    .c = CHANNELS,
                    .cb = CHANNELS,
                    .width = COLUMNS,
                    .block_pitch = BAND_FLOATS,
                    .z_pitch = BAND_FLOATS,
                    .y_pitch = (size_t)CHANNELS * COLUMNS,
                    .z_ring = 1,
                    .y_ring = ROWS};
}

static const tgi_variant *relu_of(const tgi_kernel_set *be, const tgi_op_ctx *ctx)
{
    const tgi_layout_hint hint = {.lanes = be->lanes,
                                  .n_src = 1,
                                  .src_cb = {CHANNELS},
                                  .src_segs = {1},
                                  .seg_c = {{CHANNELS}},
                                  .dst_cb = CHANNELS};
    return tgi_variant_pick(be, "Relu", ctx, &hint);
}

/* Band i of an image of BANDS * ROWS rows: pixels at `up`, result at `down` (device addresses).
 */
static int make_band(band *b, const tgi_kernel_set *be, char *arena, void *up, void *down,
                     int i)
{
    const tgi_range rows = {(int64_t)i * ROWS, (int64_t)(i + 1) * ROWS}, cols = {0, COLUMNS};
    *b = (band){.desc = {TG_DTYPE_F32, 4, {1, CHANNELS, (int64_t)BANDS * ROWS, COLUMNS}}};
    static const tgi_constant *const no_consts[1] = {NULL};
    b->ctx = (tgi_op_ctx){.opset = 14,
                          .n_src = 1,
                          .n_dst = 1,
                          .src = &b->desc,
                          .dst = &b->desc,
                          .const_src = no_consts};
    view_of(&b->in, be->element, arena, 0);
    view_of(&b->out, be->element, arena, BAND_FLOATS);
    b->src = (tgi_operand){1, &b->in};
    b->stored = (tgi_operand){1, &b->out};
    const tgi_device_pixels pixels = {.at = up,
                                      .type = TG_DTYPE_F32,
                                      .element = be->element,
                                      .channels = CHANNELS,
                                      .together = 1,
                                      .rows = rows,
                                      .cols = cols,
                                      .extent = {1, (int64_t)BANDS * ROWS, COLUMNS},
                                      .pad = TGI_LOAD_ZERO,
                                      .mul = 1};
    const tgi_call call = {.ctx = &b->ctx,
                           .box = {4, {{0, 1}, {0, CHANNELS}, rows, cols}},
                           .most = {1, CHANNELS, ROWS, COLUMNS}};
    for (int s = 0; s < 3; s++)
        b->step[s].call = call;
    b->step[0].kind = TGI_STEP_LOAD;
    b->step[0].call.dst = &b->in;
    b->step[0].pixels = pixels;
    b->step[1].kind = TGI_STEP_NODE;
    b->step[1].variant = relu_of(be, &b->ctx);
    b->step[1].call.src = &b->src;
    b->step[1].call.dst = &b->out;
    b->step[2].kind = TGI_STEP_STORE;
    b->step[2].call.src = &b->stored;
    b->step[2].pixels = pixels;
    b->step[2].pixels.at = down;
    return b->step[1].variant != NULL;
}

/* Uploads, bands and downloads in three queues, two buffers on each side, as the executor has
 * them; every number is looked at. */
static void run_image(const tgi_kernel_set *be, tgi_device_program *p, char *arena,
                      char *const *up, char *const *down, const float *image, float *result)
{
    enum { BYTES = sizeof(float) * BAND_FLOATS };
    tgi_device_event *e[2][3] = {{NULL}}; /* uploaded, computed, downloaded; per buffer */
    for (int k = 0; k < 6; k++)
        CHECK_OK(ops->event_new(d, &e[k / 3][k % 3], &err), err);
    for (int i = 0; i < BANDS; i++) {
        tgi_device_event **of = e[i % 2];
        band b;
        CHECK(make_band(&b, be, arena, up[i % 2], down[i % 2], i));
        CHECK_OK(ops->wait(d, TGI_QUEUE_UPLOAD, of[1], &err), err); /* read by band i-2 */
        CHECK_OK(ops->upload(d, TGI_QUEUE_UPLOAD, up[i % 2], image + (size_t)i * BAND_FLOATS,
                             BYTES, &err),
                 err);
        CHECK_OK(ops->record(d, TGI_QUEUE_UPLOAD, of[0], &err), err);
        CHECK_OK(ops->wait(d, TGI_QUEUE_COMPUTE, of[0], &err), err);
        CHECK_OK(ops->wait(d, TGI_QUEUE_COMPUTE, of[2], &err), err); /* band i-2 is away */
        CHECK_OK(ops->program_run(p, b.step, &err), err);
        CHECK_OK(ops->record(d, TGI_QUEUE_COMPUTE, of[1], &err), err);
        CHECK_OK(ops->wait(d, TGI_QUEUE_DOWNLOAD, of[1], &err), err);
        CHECK_OK(ops->download(d, TGI_QUEUE_DOWNLOAD, result + (size_t)i * BAND_FLOATS,
                               down[i % 2], BYTES, &err),
                 err);
        CHECK_OK(ops->record(d, TGI_QUEUE_DOWNLOAD, of[2], &err), err);
    }
    CHECK_OK(ops->sync(d, NULL, &err), err);
    for (int k = 0; k < 6; k++)
        ops->event_free(d, e[k / 3][k % 3]);
}

/* Numbers that a half holds, so that both element types give them back. */
static void fill(float *image, float *result)
{
    for (size_t i = 0; i < BANDS * BAND_FLOATS; i++) {
        image[i] = (float)tg_rand_in(&seed, -2048, 2048);
        result[i] = NAN;
    }
}

static void program_of(const tgi_kernel_set *be)
{
    char *up[2] = {NULL}, *down[2] = {NULL}, *arena = NULL;
    void *image = NULL, *result = NULL;
    tgi_device_program *p = NULL;
    size_t bytes = 0, counted = 0;
    band b;
    CHECK_OK(ops->pin(d, BANDS * BAND_FLOATS * sizeof(float), &image, &err), err);
    CHECK_OK(ops->pin(d, BANDS * BAND_FLOATS * sizeof(float), &result, &err), err);
    CHECK_OK(ops->alloc(d, 2 * BAND_FLOATS * sizeof(float), (void **)&arena, &err), err);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(ops->alloc(d, BAND_FLOATS * sizeof(float), (void **)&up[i], &err), err);
        CHECK_OK(ops->alloc(d, BAND_FLOATS * sizeof(float), (void **)&down[i], &err), err);
    }
    if (!make_band(&b, be, arena, up[0], down[0], 0)) {
        CHECK(!"a variant of Relu");
        return;
    }
    CHECK_OK(ops->program_open(NULL, TGI_QUEUE_COMPUTE, b.step, 3, NULL, &counted, &err), err);
    const uint64_t before = free_now();
    CHECK_OK(ops->program_open(d, TGI_QUEUE_COMPUTE, b.step, 3, &p, &bytes, &err), err);
    const uint64_t opened = free_now();
    CHECK_EQ(counted, bytes);
    fill(image, result);
    run_image(be, p, arena, up, down, image, result);
    size_t wrong = 0;
    for (size_t i = 0; i < BANDS * BAND_FLOATS; i++) {
        const float x = ((float *)image)[i];
        wrong += ((float *)result)[i] != (x > 0 ? x : 0);
    }
    CHECK_EQ(wrong, 0);
    const uint64_t after = free_now();
    printf("  %s: a program says %zu bytes, took %lld; its runs took %lld more\n", be->name,
           bytes, (long long)before - (long long)opened, (long long)opened - (long long)after);
    CHECK(watched || before <= opened + bytes);
    CHECK(watched || opened <= after); /* nothing is taken later */
    ops->program_close(&p);
    for (int i = 0; i < 2; i++) {
        ops->release(d, up[i]);
        ops->release(d, down[i]);
    }
    ops->release(d, arena);
    ops->unpin(d, image);
    ops->unpin(d, result);
}

static void test_bands_in_three_queues_give_every_number(void)
{
    static const tg_dtype types[] = {TG_DTYPE_F32, TG_DTYPE_F16};
    for (int t = 0; t < 2; t++) {
        const tgi_kernel_set *be = ops->backend(types[t]);
        CHECK(be != NULL);
        if (be)
            program_of(be);
    }
}

static void test_launches_one_by_one_give_the_same(void)
{
    setenv("TEGULA_CUDA_STEPS", "1", 1);
    program_of(ops->backend(TG_DTYPE_F32));
    unsetenv("TEGULA_CUDA_STEPS");
}

/* ---- Opening again, and failing ---------------------------------------------------------- */

static void test_devices_opened_and_closed_leave_nothing(void)
{
    uint64_t before = 0;
    for (int i = 0; i < 6; i++) {
        tgi_device *other = NULL;
        CHECK_OK(ops->open(device_described()->id, &other, &err), err);
        ops->close(&other);
        CHECK(other == NULL);
        if (i == 1) /* what the first opening makes stays with the process */
            before = free_now();
    }
    CHECK(watched || free_now() + 2 * MIB >= before);
}

/* A launch that reads where nothing is: in a process of its own, for the context is lost. */
static int break_it(void)
{
    char *arena = NULL;
    tgi_device_program *p = NULL;
    size_t bytes = 0;
    uint64_t f, t;
    band b;
    const tgi_kernel_set *be = ops->backend(TG_DTYPE_F32);
    CHECK_OK(ops->alloc(d, 2 * BAND_FLOATS * sizeof(float), (void **)&arena, &err), err);
    CHECK(make_band(&b, be, arena, arena, arena, 0));
    CHECK_OK(ops->program_open(d, TGI_QUEUE_COMPUTE, b.step, 3, &p, &bytes, &err), err);
    b.step[0].pixels.at = (void *)(uintptr_t)0x10000; /* nobody's */
    tg_status st = ops->program_run(p, b.step, &err);
    if (st == TG_OK)
        st = ops->sync(d, NULL, &err);
    CHECK_EQ(st, TG_E_DEVICE);
    printf("%s\n", err.text);
    memset(&err, 0, sizeof err);
    CHECK_STATUS(ops->memory(d, &f, &t, &err), TG_E_DEVICE, err); /* and so on */
    CHECK_STATUS(ops->sync(d, NULL, &err), TG_E_DEVICE, err);
    ops->program_close(&p);
    ops->release(d, arena);
    return TEST_END();
}

/* Take all but `mib` of the device, say so, and wait for a line: a neighbour for others. */
static int hold(size_t mib)
{
    void *ballast[1024] = {NULL};
    int n = 0;
    for (size_t piece = 1024 * MIB; piece >= 16 * MIB && n < 1024;) {
        const uint64_t left = free_now();
        if (left >= piece + mib * MIB && ops->alloc(d, piece, &ballast[n], &err) == TG_OK)
            n++;
        else
            piece /= 2;
        memset(&err, 0, sizeof err);
    }
    printf("holding all but %llu MiB\n", (unsigned long long)(free_now() / MIB));
    fflush(stdout);
    (void)getchar();
    while (n > 0)
        ops->release(d, ballast[--n]);
    return TEST_END();
}

static void test_a_launch_that_fails_is_never_forgotten(const char *self)
{
    char command[2048];
    if (strncmp(ops->name, "cuda", 4) != 0 || getenv("TEGULA_EMULATED"))
        return; /* the emulated device would end with us */
    snprintf(command, sizeof command, "'%s' --break", self);
    CHECK_EQ(system(command), 0);
}

int main(int argc, char **argv)
{
    ops = device_of_test(&d);
    if (!ops)
        return 77;
    if (argc == 2 && strcmp(argv[1], "--break") == 0)
        return break_it();
    if (argc == 2 && strcmp(argv[1], "--there") == 0)
        return 0;
    if (argc == 3 && strcmp(argv[1], "--hold") == 0)
        return hold((size_t)strtoul(argv[2], NULL, 10));
    watched = argc == 2 && strcmp(argv[1], "--watched") == 0;
    if (!watched) {
        RUN(test_what_is_allocated_is_missing_and_comes_back);
        RUN(test_a_neighbour_with_all_the_memory_is_refused_room_and_no_more);
    }
    RUN(test_copies_of_any_size_and_place_come_back);
    RUN(test_a_queue_waits_for_an_event_of_another);
    RUN(test_bands_in_three_queues_give_every_number);
    RUN(test_launches_one_by_one_give_the_same);
    RUN(test_devices_opened_and_closed_leave_nothing);
    if (!watched)
        test_a_launch_that_fails_is_never_forgotten(argv[0]);
    return TEST_END();
}

/* How much faster a device is in half precision: measured by its own convolution on the fake
 * device's clock, kept in the user's cache folder, measured again when it cannot be believed.
 */
#include "engine/device/gains.h"
#include "engine/device/measured.h"
#include "io/text_file.h"
#include "tests/device/fake_device.h"
#include "tests/tg_test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROOM ((uint64_t)64 << 20)

static char folder[64], file[96];

/* ---- The fake device with two types of activations --------------------------------------- */

static double run_seconds[2];            /* of a layer in float32, in half precision */
static double launch_seconds;            /* more, of each program */
static double first_seconds;             /* more, of the first run of each program */
static const tgi_kernel_set *offered[2]; /* the same variants under two types */
static int programs_opened, runs[2], comparing;
static int times[2]; /* that the layer is in the program, the last one opened */
static void *plain;  /* where the first of each two computes: in float32, or without the kind */

static const tgi_kernel_set *backend_of(tg_dtype element)
{
    offered[0] = fake_backend(TG_DTYPE_F32);
    offered[1] = fake_backend(TG_DTYPE_F16);
    return element == TG_DTYPE_F16 ? offered[1] : element == TG_DTYPE_F32 ? offered[0] : NULL;
}

static const tgi_kernel_set *only_float32(tg_dtype element)
{
    return element == TG_DTYPE_F32 ? fake_backend(TG_DTYPE_F32) : NULL;
}

static tg_status open_program(tgi_device *d, tgi_device_queue q, const tgi_device_step *steps,
                              int n, tgi_device_program **out, size_t *bytes, tgi_err *err)
{
    const tg_status st = fake_device_ops()->program_open(d, q, steps, n, out, bytes, err);
    if (n == 1 && programs_opened++ % 2 == 0)
        plain = steps->call.dst->base;
    times[steps->call.dst->base != plain] = n;
    runs[steps->call.dst->base != plain] = 0;
    return st;
}

/* What is computed is the same number everywhere, but for what a test wants. */
enum { GOOD, WRONG_AT_THE_END, NOT_WRITTEN } other_results;
static int kinds_seen;
static tg_status time_program(tgi_device_program *p, const tgi_device_step *steps,
                              double *seconds, tgi_err *err)
{
    const tgi_view *v = steps->call.dst;
    const size_t bytes = (size_t)v->y_ring * v->y_pitch * 2;
    (void)err, (void)p;
    const int half = v->base != plain;
    kinds_seen |= (int)steps->variant->kinds << (half ? 8 : 0);
    if (comparing && !(half && other_results == NOT_WRITTEN)) {
        memset(v->base, 0x11, bytes);
        ((char *)v->base)[bytes - 1] ^= half && other_results == WRONG_AT_THE_END;
    }
    *seconds = run_seconds[half] * times[half] + launch_seconds +
               (runs[half]++ == 0 ? first_seconds : 0);
    return TG_OK;
}

static tgi_device_ops ops;
static tgi_device *device;
static tgi_device_info info = {.name = "Fake 1000",
                               .uuid = "GPU-1",
                               .driver = "driver of CUDA 12.4, runtime 13.0",
                               .multiprocessors = 2};

static void begin(double in_fp32, double in_fp16)
{
    tgi_err err = {0};
    fake_reset();
    ops = *fake_device_ops();
    ops.backend = backend_of;
    ops.program_open = open_program;
    ops.program_time = time_program;
    run_seconds[0] = in_fp32;
    run_seconds[1] = in_fp16;
    first_seconds = launch_seconds = 0;
    other_results = GOOD;
    programs_opened = runs[0] = runs[1] = comparing = kinds_seen = 0;
    CHECK_OK(ops.open(0, &device, &err), err);
}

static double measure(void)
{
    tgi_err err = {0};
    double gain = -1;
    CHECK_OK(tgi_gain_measure(TGI_GAIN_HALF, &ops, device, &info, ROOM, &gain, &err), err);
    ops.close(&device);
    CHECK_EQ(fake_open_things(), 0);
    return gain;
}

/* ---- Measuring --------------------------------------------------------------------------- */

static void test_the_gain_is_that_of_the_devices_own_times(void)
{
    begin(4e-3, 1e-3);
    CHECK_NEAR(measure(), 4, 1e-9);
    begin(1e-3, 2e-3); /* no matrix units */
    CHECK_NEAR(measure(), 0.5, 1e-9);
    CHECK_EQ(programs_opened, 2);
}

static void test_what_the_first_run_takes_more_does_not_count(void)
{
    begin(2e-3, 1e-3);
    first_seconds = 0.5;
    CHECK_NEAR(measure(), 2, 1e-9);
}

static void test_a_slow_device_is_not_asked_often(void)
{
    begin(1.0, 0.5);
    CHECK_NEAR(measure(), 2, 1e-9);
    CHECK(runs[0] == 2 && runs[1] == 2 && times[0] == 1 && times[1] == 1);
}

static void test_a_layer_of_microseconds_is_not_measured_by_its_launch(void)
{
    begin(40e-6, 20e-6);
    launch_seconds = 30e-6; /* alone they would be 70 and 50: 1.4 */
    CHECK_NEAR(measure(), 2, 0.02);
    CHECK(times[0] * run_seconds[0] >= 2.5e-3 && times[1] * run_seconds[1] >= 1.9e-3);
    begin(2e-6, 1e-6); /* no more of them than a program takes */
    CHECK_NEAR(measure(), 2, 1e-9);
    CHECK(times[0] == 512 && times[1] == 512);
}

static void test_a_device_that_fails_leaves_nothing_behind(void)
{
    for (int i = 1; i <= 4; i++) {
        tgi_err err = {0};
        double gain = -1;
        begin(1e-3, 1e-3);
        fake.fail_at[FAKE_ALLOC] = i;
        fake.fail_with[FAKE_ALLOC] = TG_E_NOMEM;
        CHECK_EQ(tgi_gain_measure(TGI_GAIN_HALF, &ops, device, &info, ROOM, &gain, &err),
                 TG_E_NOMEM);
        CHECK(gain == 0);
        ops.close(&device);
        CHECK_EQ(fake_open_things(), 0);
    }
}

static void test_no_more_is_taken_than_is_allowed(void)
{
    tgi_err err = {0};
    double gain = -1;
    begin(1e-3, 1e-3);
    CHECK_EQ(tgi_gain_measure(TGI_GAIN_HALF, &ops, device, &info, 1 << 20, &gain, &err),
             TG_E_BUDGET);
    CHECK_EQ(fake_count(FAKE_ALLOC), 0);
    CHECK_OK(tgi_gain_measure(TGI_GAIN_HALF, &ops, device, &info, ROOM, &gain, &err), err);
    CHECK(fake_peak_bytes() <= ((size_t)8 << 20) + 32 * 49152);
    ops.close(&device);
}

/* Its half-precision layers, of which there are two. */
static double measure_kind(double without, double with, int results)
{
    tgi_err err = {0};
    double gain = -1;
    begin(without, with);
    comparing = 1;
    other_results = results;
    CHECK_OK(tgi_gain_measure(TGI_GAIN_WGMMA, &ops, device, &info, ROOM, &gain, &err), err);
    ops.close(&device);
    CHECK_EQ(fake_open_things(), 0);
    return gain;
}

static void test_a_kind_gains_only_if_it_computes_the_same(void)
{
    CHECK_NEAR(measure_kind(3e-3, 1e-3, GOOD), 3, 1e-9);
    CHECK_EQ(kinds_seen, TGI_KIND_WGMMA << 8); /* of the second program alone */
    CHECK(measure_kind(3e-3, 1e-3, WRONG_AT_THE_END) == 0);
    CHECK(measure_kind(3e-3, 1e-3, NOT_WRITTEN) == 0);
}

static void test_a_device_without_the_kind_gains_nothing_by_it(void)
{
    tgi_err err = {0};
    double gain = -1;
    begin(1e-3, 1e-3);
    ops.backend = only_float32;
    CHECK_OK(tgi_gain_measure(TGI_GAIN_WGMMA, &ops, device, &info, ROOM, &gain, &err), err);
    CHECK(gain == 0 && programs_opened == 0);
    ops.close(&device);
}

/* ---- Keeping ----------------------------------------------------------------------------- */

static void write_file(const char *text)
{
    tgi_err err = {0};
    CHECK_OK(tgi_write_text(file, text, 1, &err), err);
}

static int known(const tgi_device_info *of, tgi_measured *m)
{
    tgi_measured_read(of, m);
    return m->gain[TGI_GAIN_HALF] >= 0;
}

static void keep(const tgi_device_info *of, double gain)
{
    const tgi_measured m = {.gain = {gain, -1, -1}, .context_bytes = 300u << 20};
    tgi_err err = {0};
    CHECK_OK(tgi_measured_write(of, &m, &err), err);
}

static void test_what_is_kept_is_of_one_device_driver_and_version(void)
{
    tgi_measured m = {0};
    tgi_device_info other = info, newer = info;
    snprintf(other.uuid, sizeof other.uuid, "GPU-2");
    snprintf(newer.driver, sizeof newer.driver, "driver of CUDA 13.1, runtime 13.0");
    CHECK(!known(&info, &m));
    keep(&info, 3.25);
    CHECK(known(&info, &m));
    CHECK(m.gain[0] == 3.25 && m.context_bytes == 300u << 20);
    CHECK(!known(&other, &m));
    CHECK(!known(&newer, &m));
    keep(&other, 0.5);
    CHECK(known(&info, &m) && m.gain[0] == 3.25);
    CHECK(known(&other, &m) && m.gain[0] == 0.5);
    keep(&newer, 4); /* one row for a device */
    CHECK(!known(&info, &m));
    CHECK(known(&newer, &m) && m.gain[0] == 4);
    unlink(file);
}

static void test_a_damaged_file_is_none(void)
{
    static const char *const damaged[] = {
        "", "{", "[]", "{\"devices\":3}", "{\"devices\":[1,{},[]]}", "\xff\xfe", "null"};
    tgi_measured m = {0};
    keep(&info, 2);
    char text[1024] = "";
    FILE *f = fopen(file, "r");
    CHECK(f && fread(text, 1, sizeof text - 1, f) > 0);
    if (f)
        fclose(f);
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        write_file(damaged[i]);
        CHECK(!known(&info, &m));
    }
    static const char *const values[] = {"-2", "1e9", "\"2\"", "null"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char wrong[1100];
        char *at = strstr(text, "\"half_gain\":");
        CHECK(at != NULL);
        if (!at)
            break;
        const char *rest = strpbrk(at, ",}");
        snprintf(wrong, sizeof wrong, "%.*s\"half_gain\":%s%s", (int)(at - text), text,
                 values[i], rest);
        write_file(wrong);
        CHECK(!known(&info, &m));
    }
    write_file("{\"devices\":[7]}"); /* and is written over */
    keep(&info, 2);
    CHECK(known(&info, &m) && m.gain[0] == 2);
    unlink(file);
}

static void test_without_a_folder_nothing_is_kept(void)
{
    const tgi_measured m = {.gain = {2, -1, -1}};
    tgi_measured read;
    tgi_err err = {0};
    unsetenv("TEGULA_CACHE");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    CHECK_EQ(tgi_measured_write(&info, &m, &err), TG_E_NOT_FOUND);
    CHECK(!known(&info, &read));
    setenv("TEGULA_CACHE", folder, 1);
}

int main(void)
{
    snprintf(folder, sizeof folder, "/tmp/tegula_gains_XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    snprintf(file, sizeof file, "%s/devices.json", folder);
    setenv("TEGULA_CACHE", folder, 1);
    RUN(test_the_gain_is_that_of_the_devices_own_times);
    RUN(test_what_the_first_run_takes_more_does_not_count);
    RUN(test_a_slow_device_is_not_asked_often);
    RUN(test_a_layer_of_microseconds_is_not_measured_by_its_launch);
    RUN(test_a_device_that_fails_leaves_nothing_behind);
    RUN(test_no_more_is_taken_than_is_allowed);
    RUN(test_a_kind_gains_only_if_it_computes_the_same);
    RUN(test_a_device_without_the_kind_gains_nothing_by_it);
    RUN(test_what_is_kept_is_of_one_device_driver_and_version);
    RUN(test_a_damaged_file_is_none);
    RUN(test_without_a_folder_nothing_is_kept);
    unlink(file);
    rmdir(folder);
    return TEST_END();
}

/* The device's library, on jobs through the public door: it is opened where the figures that
 * were kept say that the plan gains by it and its memory fits, and nowhere else; what it takes
 * is part of the plan; a run goes on with what its output was begun with. The fake device's
 * library computes all convolutions, the same numbers. */
#include "tests/device/device_job.h"

#include "engine/device/measured.h"

#define LIBRARY_BYTES ((size_t)1 << 20)

static const tgi_device_info info = {.name = "Fake 1000", .driver = "none"};

/* What is known of the device: as if an earlier job had measured it. */
static void know(double gain)
{
    const tgi_measured m = {
        .gain = {1, -1, gain}, .context_bytes = 1, .library_bytes = LIBRARY_BYTES};
    tgi_err err = {0};
    CHECK_OK(tgi_measured_write(&info, &m, &err), err);
}

static void reset_device(double gain)
{
    reset();
    settings->kinds = TGI_KIND_LIBRARY;
    settings->library_bytes = LIBRARY_BYTES;
    know(gain);
}

static void begin(double gain)
{
    reset_device(gain);
    forget_output();
}

static outcome run_in(const char *vram)
{
    return run_with(
        OPTIONS("device", "cuda", "precision", "fp32", "vram", vram, "tile", "32x32"));
}

/* The receipt names what computed the output. */
static int receipt_says(const char *what)
{
    char path[192], text[16384];
    snprintf(path, sizeof path, "%s.tegula.json", output);
    FILE *f = fopen(path, "r");
    CHECK(f != NULL);
    const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = 0;
    return strstr(text, what) != NULL;
}

static void test_a_plan_that_gains_by_it_opens_it_and_counts_it(void)
{
    begin(1);
    outcome o = run_in("8MiB");
    CHECK(took_what_was_planned(&o, "without"));
    CHECK_EQ(count(FAKE_LIBRARY), 0);
    CHECK(!receipt_says("cuda fp32 0.0 library"));
    const size_t without = (size_t)o.device_peak;
    const uint64_t pixels = hash_file(output);
    begin(2);
    o = run_in("8MiB");
    CHECK(took_what_was_planned(&o, "with"));
    CHECK_EQ(count(FAKE_LIBRARY), 1);
    CHECK_EQ(o.device_peak, without + LIBRARY_BYTES);
    CHECK(receipt_says("cuda fp32 0.0 library"));
    CHECK_EQ(hash_file(output), pixels); /* the fake's library computes the same */
}

static void test_it_is_left_out_when_the_user_says_so_or_wants_exact_sums(void)
{
    begin(2);
    outcome o = run_with(OPTIONS("device", "cuda", "no-cublas", "true"));
    CHECK_EQ(o.st, TG_OK);
    CHECK_EQ(count(FAKE_LIBRARY), 0);
    begin(2);
    o = run_with(OPTIONS("device", "cuda", "exact", "true"));
    CHECK_EQ(o.st, TG_OK);
    CHECK_EQ(count(FAKE_LIBRARY), 0);
}

/* From too little for it up: never a refusal where there is a plan without it, never more than
 * the budget, and where it is opened it fits. */
static void test_no_budget_is_broken_and_none_refused_because_of_it(void)
{
    int opened = 0, closed = 0, refused = 0;
    for (int kib = 64; kib <= 4096; kib += kib / 4) {
        char vram[32];
        snprintf(vram, sizeof vram, "%dKiB", kib);
        begin(1);
        const outcome plain = run_in(vram);
        begin(4);
        const outcome o = run_in(vram);
        CHECK_EQ(o.st, plain.st);
        CHECK(o.device_peak <= (uint64_t)kib << 10);
        CHECK(peak_bytes() <= (size_t)kib << 10);
        refused += o.st == TG_E_BUDGET;
        opened += o.st == TG_OK && o.res.device_predicted_bytes > LIBRARY_BYTES &&
                  receipt_says("0.0 library");
        closed += o.st == TG_OK && !receipt_says("0.0 library");
    }
    CHECK(opened > 0 && closed > 0 && refused > 0);
}

static void test_a_device_without_one_goes_on_without(void)
{
    begin(2);
    settings->library_bytes = 0; /* it was removed */
    outcome o = run_in("8MiB");
    CHECK(took_what_was_planned(&o, "none"));
    CHECK(!receipt_says("0.0 library"));
    begin(2);
    settings->fail_at[FAKE_LIBRARY] = 1;
    settings->fail_with[FAKE_LIBRARY] = TG_E_NOMEM;
    o = run_in("8MiB");
    CHECK(took_what_was_planned(&o, "no memory"));
    CHECK(!receipt_says("0.0 library"));
}

static void test_a_layer_that_it_cannot_do_is_planned_without_it(void)
{
    begin(2);
    settings->fail_at[FAKE_PROGRAM] = 1;
    settings->fail_with[FAKE_PROGRAM] = TG_E_UNSUPPORTED;
    const outcome o = run_in("8MiB");
    CHECK_EQ(o.st, TG_OK);
    CHECK(strstr(o.warnings, "planned again without its library"));
    CHECK(!receipt_says("cuda fp32 0.0 library"));
}

static void test_it_is_not_opened_to_measure_it_where_there_is_little_room(void)
{
    begin(1);
    const tgi_measured nothing = {.gain = {1, -1, -1}, .context_bytes = 1};
    tgi_err err = {0};
    CHECK_OK(tgi_measured_write(&info, &nothing, &err), err);
    CHECK_EQ(run_in("64MiB").st, TG_OK);
    CHECK_EQ(count(FAKE_LIBRARY), 0);
    settings->bytes = (size_t)4 << 30;
    forget_output();
    CHECK_EQ(run_in("4GiB").st, TG_OK);
    CHECK(count(FAKE_LIBRARY) >= 1);
    tgi_measured m;
    tgi_measured_read(&info, &m);
    CHECK(m.gain[TGI_GAIN_LIBRARY] > 0);
    CHECK_EQ(m.library_bytes, LIBRARY_BYTES);
}

/* Whatever was measured since: the same command gives the same bytes. */
static void test_a_run_goes_on_with_what_its_output_was_begun_with(void)
{
    for (int with = 0; with < 2; with++) {
        begin(with ? 2 : 1);
        settings->fail_at[FAKE_RUN] = 11;
        settings->fail_with[FAKE_RUN] = TG_E_DEVICE;
        CHECK_EQ(run_in("8MiB").st, TG_E_DEVICE_LOST);
        reset_device(with ? 1 : 2);
        outcome o = run_with(OPTIONS("device", "cuda", "precision", "fp32", "vram", "8MiB",
                                     "tile", "32x32", "no-cublas", "true"));
        CHECK_EQ(o.st, with ? TG_E_CHANGED : TG_OK);
        if (with)
            o = run_in("8MiB");
        CHECK_EQ(o.st, TG_OK);
        CHECK(o.res.tiles_resumed > 0);
        CHECK_EQ(receipt_says("cuda fp32 0.0 library"), with);
    }
}

/* What it leaves behind when it is closed is the context's from then on. */
static void test_what_a_closed_library_keeps_breaks_no_budget(void)
{
    int ran = 0;
    for (int kib = 256; kib <= 4096; kib += kib / 4) {
        char vram[32];
        snprintf(vram, sizeof vram, "%dKiB", kib);
        begin(4);
        settings->library_keeps = LIBRARY_BYTES / 4;
        const outcome o = run_in(vram);
        CHECK(o.st == TG_OK || o.st == TG_E_BUDGET);
        CHECK(peak_bytes() <= (size_t)kib << 10);
        if (o.st == TG_OK)
            CHECK_EQ(o.res.device_predicted_bytes, o.res.device_measured_bytes);
        ran += o.st == TG_OK && !strstr(o.warnings, "planned again");
    }
    CHECK(ran > 0);
}

/* Nobody has to trust it: the next command is computed without. */
static void test_a_library_that_breaks_the_device_is_not_measured_again(void)
{
    const tgi_measured nothing = {.gain = {1, -1, -1}, .context_bytes = 1};
    tgi_err err = {0};
    tgi_measured m;
    begin(1);
    CHECK_OK(tgi_measured_write(&info, &nothing, &err), err);
    settings->bytes = (size_t)4 << 30;
    settings->fail_at[FAKE_RUN] = 1;
    settings->fail_with[FAKE_RUN] = TG_E_DEVICE;
    outcome o = run_in("4GiB");
    CHECK(o.st == TG_E_DEVICE || o.st == TG_E_DEVICE_LOST);
    CHECK(strstr(o.warnings, "could not be measured"));
    tgi_measured_read(&info, &m);
    CHECK(m.gain[TGI_GAIN_LIBRARY] == 0);
    reset();
    settings->kinds = TGI_KIND_LIBRARY;
    settings->library_bytes = LIBRARY_BYTES;
    settings->bytes = (size_t)4 << 30;
    o = run_in("4GiB");
    CHECK_EQ(o.st, TG_OK);
    CHECK_EQ(count(FAKE_LIBRARY), 0);
}

/* It may choose another algorithm, whose sums end otherwise. */
static void test_another_version_of_it_does_not_go_on(void)
{
    begin(2);
    settings->fail_at[FAKE_RUN] = 11;
    settings->fail_with[FAKE_RUN] = TG_E_DEVICE;
    CHECK_EQ(run_in("8MiB").st, TG_E_DEVICE_LOST);
    reset_device(2);
    settings->newer_library = 1;
    const outcome o = run_in("8MiB");
    CHECK_EQ(o.st, TG_E_CHANGED);
    CHECK(strstr(o.detail, "Fake library 2"));
    reset_device(2);
    CHECK_EQ(run_in("8MiB").st, TG_OK);
}

int main(void)
{
    char kept[128];
    begin_in("device_library", FAKE_PLUGIN, TG_SOURCE_DIR "/models/tegula_denoise.onnx");
    setenv("TEGULA_CACHE", folder, 1);
    make_input();
    RUN(test_a_plan_that_gains_by_it_opens_it_and_counts_it);
    RUN(test_it_is_left_out_when_the_user_says_so_or_wants_exact_sums);
    RUN(test_no_budget_is_broken_and_none_refused_because_of_it);
    RUN(test_a_device_without_one_goes_on_without);
    RUN(test_a_layer_that_it_cannot_do_is_planned_without_it);
    RUN(test_it_is_not_opened_to_measure_it_where_there_is_little_room);
    RUN(test_what_a_closed_library_keeps_breaks_no_budget);
    RUN(test_a_library_that_breaks_the_device_is_not_measured_again);
    RUN(test_another_version_of_it_does_not_go_on);
    RUN(test_a_run_goes_on_with_what_its_output_was_begun_with);
    forget_output();
    unlink(input);
    snprintf(kept, sizeof kept, "%s/devices.json", folder);
    unlink(kept);
    rmdir(folder);
    return TEST_END();
}

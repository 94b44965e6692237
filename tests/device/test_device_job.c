/* Jobs on a device, end to end through the public door, with the fake one as the plugin: the
 * same pixels in whatever memory, budgets that hold, ways back to the processor, memory that a
 * neighbour takes, failures that leave a journal the same command goes on from. */
#include "tests/device/device_job.h"

static char array_in[128], array_out[128];

/* ---- Tests ------------------------------------------------------------------------------- */

static void test_pixels_do_not_depend_on_the_devices_memory(void)
{
    static const char *const vram[] = {"64MiB", "4MiB", "3MiB", "2700KiB"};
    uint16_t *first = NULL;
    for (int i = 0; i < 4; i++) {
        reset();
        settings->context_bytes = (size_t)2 << 20;
        forget_output();
        const outcome o = run_with(OPTIONS("device", "cuda", "vram", vram[i], "precision",
                                           "fp32", "tile", i == 3 ? "48x32" : "auto"));
        if (!took_what_was_planned(&o, vram[i]))
            continue;
        uint16_t *px = pixels_of(output);
        if (!first)
            first = px;
        CHECK(memcmp(first, px, H * W * sizeof *px) == 0);
        if (px != first)
            tgi_free(px);
    }
    tgi_free(first);
}

static void test_what_the_device_gives_is_what_the_processor_gives(void)
{
    reset();
    forget_output();
    outcome o = run_with(OPTIONS("device", "cuda", "dtype", "uint16"));
    CHECK_EQ(o.st, TG_OK);
    uint16_t *device = pixels_of(output);
    forget_output();
    o = run_with(
        OPTIONS("device", "cpu", "dtype", "uint16", "isa", "portable", "exact", "true"));
    CHECK_EQ(o.st, TG_OK);
    CHECK(!o.on_device);
    uint16_t *processor = pixels_of(output);
    int64_t differ = 0, far = 0;
    for (int i = 0; i < H * W; i++) {
        differ += device[i] != processor[i];
        far += abs(device[i] - processor[i]) > 1;
    }
    CHECK_EQ(far, 0);
    CHECK(differ < H * W / 500); /* sums of another order, near a half */
    tgi_free(device);
    tgi_free(processor);
}

static void test_auto_goes_back_to_the_processor_and_says_why(void)
{
    reset();
    settings->devices = 0;
    forget_output();
    outcome o = run_with(NULL);
    CHECK_EQ(o.st, TG_OK);
    CHECK(!o.on_device && strstr(o.warnings, "no device"));
    CHECK(strstr(o.notice, "no device"));
    reset();
    settings->bytes = (size_t)100 << 10; /* nothing fits */
    forget_output();
    o = run_with(NULL);
    CHECK_EQ(o.st, TG_OK);
    CHECK(!o.on_device && strstr(o.warnings, "computed by the processor"));
}

static void test_a_device_that_is_named_is_that_or_an_error(void)
{
    reset();
    settings->devices = 0;
    forget_output();
    outcome o = run_with(OPTIONS("device", "cuda"));
    CHECK_EQ(o.st, TG_E_DEVICE);
    CHECK(strstr(o.detail, "no device"));
    reset();
    o = run_with(OPTIONS("device", "cuda", "vram", "100KiB"));
    CHECK_EQ(o.st, TG_E_BUDGET);
    CHECK(strstr(o.detail, "--vram"));
    char least[32] = "";
    const char *give = strstr(o.detail, "give --vram ");
    CHECK(give && sscanf(give, "give --vram %31[^,]", least) == 1);
    reset();
    o = run_with(OPTIONS("device", "cuda", "vram", least)); /* what it says is enough */
    CHECK_EQ(o.st, TG_OK);
    forget_output();
}

/* A neighbour takes memory between the plan and the run. */
static void test_memory_that_a_neighbour_took_makes_a_smaller_plan(void)
{
    reset();
    forget_output();
    CHECK_EQ(run_with(OPTIONS("device", "cuda", "dtype", "uint16")).st, TG_OK);
    uint16_t *whole = pixels_of(output);
    reset();
    forget_output();
    settings->fail_at[FAKE_ALLOC] = 1;
    settings->fail_with[FAKE_ALLOC] = TG_E_NOMEM;
    outcome o = run_with(OPTIONS("device", "cuda", "dtype", "uint16"));
    CHECK_EQ(o.st, TG_OK);
    CHECK(o.on_device && strstr(o.warnings, "planned again"));
    uint16_t *px = pixels_of(output);
    CHECK(memcmp(px, whole, H * W * sizeof *px) == 0);
    tgi_free(px);
    reset(); /* in the middle of the bands */
    forget_output();
    settings->fail_at[FAKE_RUN] = 3;
    settings->fail_with[FAKE_RUN] = TG_E_NOMEM;
    o = run_with(OPTIONS("device", "cuda", "vram", "1MiB", "dtype", "uint16"));
    CHECK_EQ(o.st, TG_OK);
    CHECK(strstr(o.warnings, "planned again"));
    px = pixels_of(output);
    CHECK(memcmp(px, whole, H * W * sizeof *px) == 0);
    tgi_free(px);
    tgi_free(whole);
}

static void test_a_device_that_fails_leaves_a_journal_to_go_on_from(void)
{
    static const fake_call calls[] = {FAKE_UPLOAD, FAKE_RUN, FAKE_DOWNLOAD, FAKE_SYNC};
    reset();
    forget_output();
    CHECK_EQ(run_with(OPTIONS("device", "cuda", "vram", "1MiB", "tile", "32x32")).st, TG_OK);
    const uint64_t whole = hash_file(output);
    for (int i = 0; i < 4; i++) {
        reset();
        forget_output();
        settings->fail_at[calls[i]] = 9;
        settings->fail_with[calls[i]] = TG_E_DEVICE;
        outcome o = run_with(OPTIONS("device", "cuda", "vram", "1MiB", "tile", "32x32"));
        CHECK_EQ(o.st, TG_E_DEVICE_LOST);
        CHECK(access(output, F_OK) != 0);
        reset();
        o = run_with(OPTIONS("device", "cuda", "vram", "1MiB", "tile", "32x32"));
        CHECK_EQ(o.st, TG_OK);
        CHECK(o.res.tiles_resumed > 0);
        CHECK_EQ(hash_file(output), whole);
    }
}

/* Flip a bit of the interrupted output every `step` bytes. */
static void damage(int64_t step)
{
    char partial[192];
    snprintf(partial, sizeof partial, "%s.partial", output);
    FILE *f = fopen(partial, "r+b");
    CHECK(f && !fseek(f, 0, SEEK_END));
    for (int64_t at = f ? ftell(f) - 9 : 0; at > 0; at -= step) {
        CHECK(!fseek(f, (long)at, SEEK_SET));
        const int c = fgetc(f);
        CHECK(!fseek(f, (long)at, SEEK_SET) && fputc(c ^ 4, f) != EOF);
    }
    if (f)
        fclose(f);
}

/* The cells of damaged tiles are queued a second time, after the last of the others. */
static void test_damaged_tiles_of_an_interrupted_run_are_computed_again(void)
{
    static const int64_t step[] = {1 << 30, 20000, 3000, 500}; /* one tile .. all of them */
    reset();
    forget_output();
    CHECK_EQ(run_with(OPTIONS("device", "cuda", "vram", "1MiB", "tile", "32x32")).st, TG_OK);
    const uint64_t whole = hash_file(output);
    for (int i = 0; i < 4; i++) {
        reset();
        forget_output();
        settings->fail_at[FAKE_RUN] = 9 + i;
        settings->fail_with[FAKE_RUN] = TG_E_DEVICE;
        outcome o = run_with(OPTIONS("device", "cuda", "vram", "1MiB", "tile", "32x32"));
        CHECK_EQ(o.st, TG_E_DEVICE_LOST);
        damage(step[i]);
        reset();
        o = run_with(OPTIONS("device", "cuda", "vram", "1MiB", "tile", "32x32"));
        CHECK_EQ(o.st, TG_OK);
        CHECK(strstr(o.warnings, "were damaged and are computed again"));
        CHECK(o.on_device && (i > 0 || o.res.tiles_resumed > 0));
        CHECK_EQ(hash_file(output), whole);
    }
    forget_output();
}

static void test_a_run_goes_on_only_with_what_it_began_with(void)
{
    reset();
    forget_output();
    settings->fail_at[FAKE_RUN] = 7;
    settings->fail_with[FAKE_RUN] = TG_E_DEVICE;
    outcome o = run_with(OPTIONS("device", "cuda", "vram", "1MiB", "tile", "32x32"));
    CHECK_EQ(o.st, TG_E_DEVICE_LOST);
    reset();
    settings->devices = 0;
    o = run_with(OPTIONS("tile", "32x32")); /* auto, and the GPU is gone */
    CHECK_EQ(o.st, TG_E_CHANGED);
    CHECK(strstr(o.detail, "cuda") || strstr(o.detail, "device"));
    forget_output();
}

/* ---- Arrays ------------------------------------------------------------------------------ */

static float *array_of(const char *path)
{
    tgi_desc d;
    void *data = NULL;
    tgi_err err = {0};
    CHECK_OK(tgi_npy_load(path, (size_t)1 << 24, &d, &data, &err), err);
    CHECK_EQ(d.rank, 4);
    CHECK_EQ(d.dim[0], 2);
    return data;
}

/* What an image became: no axis but its own. */
static float *image_array(void)
{
    tgi_desc d = {0};
    void *data = NULL;
    tgi_err err = {0};
    CHECK_OK(tgi_npy_load(array_out, (size_t)1 << 24, &d, &data, &err), err);
    int64_t n = 0;
    CHECK_EQ(d.dtype, TG_DTYPE_F32);
    CHECK(tgi_desc_count(&d, &n) && n == H * W);
    return data;
}

static outcome run_array(const char *const *extra)
{
    unlink(array_out);
    return run_from(array_in, array_out, extra);
}

/* What it cannot do is told, and not a figure of memory. */
static void test_a_device_that_cannot_count_says_what_it_cannot_do(void)
{
    reset();
    settings->uncountable = 1;
    forget_output();
    outcome o = run_with(OPTIONS("device", "cuda"));
    CHECK_EQ(o.st, TG_E_UNSUPPORTED);
    CHECK(strstr(o.detail, "counts no launches") && !strstr(o.detail, "EiB"));
    o = run_array(OPTIONS("device", "cuda"));
    CHECK_EQ(o.st, TG_E_UNSUPPORTED);
    CHECK(strstr(o.detail, "counts no launches") && !strstr(o.detail, "EiB"));
    o = run_with(NULL); /* nobody named it */
    CHECK_EQ(o.st, TG_OK);
    CHECK(!o.on_device && strstr(o.notice, "counts no launches"));
    forget_output();
}

static void test_arrays_do_not_depend_on_the_devices_memory(void)
{
    static const char *const vram[] = {"64MiB", "4MiB", "3MiB", "2700KiB"};
    float *first = NULL;
    for (int i = 0; i < 4; i++) {
        reset();
        settings->context_bytes = (size_t)2 << 20;
        const outcome o = run_array(OPTIONS("device", "cuda", "vram", vram[i], "precision",
                                            "fp32", "tile", i == 3 ? "48x32" : "auto"));
        if (!took_what_was_planned(&o, vram[i]))
            continue;
        float *px = array_of(array_out);
        if (!first)
            first = px;
        CHECK(memcmp(first, px, sizeof(float) * 2 * H * W) == 0);
        if (px != first)
            tgi_free(px);
    }
    tgi_free(first);
    reset();
    outcome o = run_array(OPTIONS("device", "cuda", "vram", "100KiB"));
    CHECK_EQ(o.st, TG_E_BUDGET);
    CHECK(strstr(o.detail, "--vram"));
    o = run_array(OPTIONS("device", "cuda", "ram", "1MiB"));
    CHECK_EQ(o.st, TG_E_BUDGET);
    CHECK(strstr(o.detail, "--ram"));
}

static void test_arrays_of_the_device_are_those_of_the_processor(void)
{
    double d2 = 0, s2 = 0;
    reset();
    CHECK_EQ(run_array(OPTIONS("device", "cuda")).st, TG_OK);
    float *device = array_of(array_out);
    const outcome o = run_array(OPTIONS("device", "cpu", "exact", "true"));
    CHECK_EQ(o.st, TG_OK);
    CHECK(!o.on_device);
    float *processor = array_of(array_out);
    for (int i = 0; i < 2 * H * W; i++) {
        d2 += pow((double)device[i] - (double)processor[i], 2);
        s2 += pow((double)processor[i], 2);
    }
    CHECK(s2 > 0);
    printf("  relative L2 %.3g\n", sqrt(d2 / s2));
    CHECK(sqrt(d2 / s2) < 1e-5); /* sums of another order */
    tgi_free(device);
    tgi_free(processor);
}

/* An image's rows go through the loader into staging that is pinned, two buffers by turns: of
 * several bands the second is used too. */
static void test_an_image_into_an_array_in_several_bands(void)
{
    static const char *const vram[] = {"3MiB", "2700KiB"};
    unlink(array_out);
    outcome o = run_from(input, array_out, OPTIONS("device", "cpu", "exact", "true"));
    CHECK_EQ(o.st, TG_OK);
    CHECK(!o.on_device);
    float *want = image_array();
    for (int i = 0; i < 2; i++) {
        double worst = 0;
        reset();
        settings->context_bytes = (size_t)2 << 20;
        unlink(array_out);
        o = run_from(input, array_out,
                     OPTIONS("device", "cuda", "vram", vram[i], "precision", "fp32", "tile",
                             i == 1 ? "48x32" : "auto"));
        if (!took_what_was_planned(&o, vram[i]))
            continue;
        CHECK(count(FAKE_RUN) > 2); /* bands: the second buffer and the first again */
        float *px = image_array();
        for (int k = 0; k < H * W; k++) {
            const double d = fabs((double)px[k] - (double)want[k]) / fabs((double)want[k]);
            worst = d <= worst ? worst : d; /* NaN stays */
        }
        CHECK(worst < 1e-5); /* sums of another order */
        tgi_free(px);
    }
    tgi_free(want);
}

/* There is no journal: the next attempt, in the same call, fills all of it. */
static void test_arrays_begin_again_when_a_neighbour_took_the_memory(void)
{
    static const fake_call calls[] = {FAKE_ALLOC, FAKE_RUN};
    reset();
    CHECK_EQ(run_array(OPTIONS("device", "cuda")).st, TG_OK);
    float *whole = array_of(array_out);
    for (int i = 0; i < 2; i++) {
        reset();
        settings->fail_at[calls[i]] = i ? 3 : 1;
        settings->fail_with[calls[i]] = TG_E_NOMEM;
        const outcome o = run_array(OPTIONS("device", "cuda", "vram", "1MiB"));
        CHECK_EQ(o.st, TG_OK);
        CHECK(o.on_device && strstr(o.warnings, "planned again"));
        float *px = array_of(array_out);
        CHECK(memcmp(px, whole, sizeof(float) * 2 * H * W) == 0);
        tgi_free(px);
    }
    tgi_free(whole);
}

/* Memory that is not pinned does, too. */
static void test_a_system_that_pins_no_memory_is_slower(void)
{
    reset();
    CHECK_EQ(run_array(OPTIONS("device", "cuda")).st, TG_OK);
    float *whole = array_of(array_out);
    for (int from = 1; from <= 3; from++) {
        reset();
        settings->fail_at[FAKE_PIN] = -from;
        settings->fail_with[FAKE_PIN] = TG_E_NOMEM;
        const outcome o = run_array(OPTIONS("device", "cuda"));
        CHECK_EQ(o.st, TG_OK);
        CHECK(o.on_device && strstr(o.warnings, "pins no memory"));
        CHECK(!strstr(o.warnings, "planned again"));
        float *px = array_of(array_out);
        CHECK(memcmp(px, whole, sizeof(float) * 2 * H * W) == 0);
        tgi_free(px);
    }
    tgi_free(whole);
}

/* Nor are graphs needed; that there are none is said. */
static void test_a_driver_that_makes_no_graph_is_slower(void)
{
    reset();
    CHECK_EQ(run_array(OPTIONS("device", "cuda")).st, TG_OK);
    float *whole = array_of(array_out);
    reset();
    settings->loose = 3;
    const outcome o = run_array(OPTIONS("device", "cuda"));
    CHECK_EQ(o.st, TG_OK);
    CHECK(o.on_device && strstr(o.warnings, "made no graph of"));
    float *px = array_of(array_out);
    CHECK(memcmp(px, whole, sizeof(float) * 2 * H * W) == 0);
    tgi_free(px);
    tgi_free(whole);
}

/* A smaller plan on the device would not help. */
static void test_memory_of_the_host_is_no_reason_to_plan_smaller(void)
{
    int refused = 0;
    tgi_mem_stats before, after;
    reset();
    tgi_mem_get_stats(&before);
    CHECK_EQ(run_array(OPTIONS("device", "cuda")).st, TG_OK);
    tgi_mem_get_stats(&after);
    const uint64_t n = after.requests - before.requests;
    for (int i = 6; i <= 80; i++) { /* behind the options */
        reset();
        settings->hollow = 1;
        tgi_mem_fail_at(n * (uint64_t)i / 80);
        const outcome o = run_array(OPTIONS("device", "cuda"));
        tgi_mem_fail_at(0);
        refused += o.st == TG_E_NOMEM;
        CHECK(o.st == TG_E_NOMEM || o.st == TG_OK);
        CHECK(!strstr(o.warnings, "planned again"));
    }
    printf("  %llu requests, %d of 75 refusals end the job\n", (unsigned long long)n, refused);
    CHECK(refused > 20);
}

static void test_a_device_that_fails_leaves_no_array(void)
{
    static const fake_call calls[] = {FAKE_UPLOAD, FAKE_RUN, FAKE_DOWNLOAD, FAKE_SYNC};
    char partial[192];
    snprintf(partial, sizeof partial, "%s.partial", array_out);
    for (int i = 0; i < 4; i++) {
        reset();
        settings->fail_at[calls[i]] = 9;
        settings->fail_with[calls[i]] = TG_E_DEVICE;
        const outcome o = run_array(OPTIONS("device", "cuda", "vram", "1MiB", "tile", "32x32"));
        CHECK_EQ(o.st, TG_E_DEVICE_LOST);
        CHECK(strstr(o.detail, "starts over"));
        CHECK(access(array_out, F_OK) != 0 && access(partial, F_OK) != 0);
    }
    reset();
    settings->devices = 0;
    const outcome o = run_array(NULL); /* auto, and there is none */
    CHECK_EQ(o.st, TG_OK);
    CHECK(!o.on_device && strstr(o.notice, "no device"));
}

/* ---- How long ---------------------------------------------------------------------------- */

static tg_plan_info plan_of(const char *from, const char *device)
{
    tg_plan_info info = {.size = sizeof info};
    tg_ctx *ctx = NULL;
    tg_job *job = NULL;
    CHECK_EQ(tg_ctx_open(NULL, &ctx), TG_OK);
    tg_opts *opts = options_of(ctx, from, OPTIONS("device", device, "tile", "32x32"));
    CHECK_EQ(tg_job_open(ctx, opts, &job), TG_OK);
    CHECK_EQ(tg_job_plan(job, &info), TG_OK);
    info.lines = NULL; /* views of the job */
    tg_job_close(&job);
    tg_opts_free(&opts);
    tg_ctx_close(&ctx);
    return info;
}

static void test_samples_of_a_batch_take_their_time(void)
{
    static const char *const device[] = {"cpu", "cuda"};
    char one[160];
    tgi_desc d = {TG_DTYPE_F32, 4, {1, 1, H, W}};
    tgi_err err = {0};
    float *px = tgi_calloc(TGI_TAG_MISC, 9 * H * W, sizeof *px);
    snprintf(one, sizeof one, "%s.one.npy", array_in);
    for (int i = 0; i < 2; i++) {
        reset();
        d.dim[0] = 1;
        CHECK_OK(tgi_npy_save(one, &d, px, &err), err);
        const tg_plan_info alone = plan_of(one, device[i]);
        d.dim[0] = 9;
        CHECK_OK(tgi_npy_save(one, &d, px, &err), err);
        const tg_plan_info nine = plan_of(one, device[i]);
        CHECK_EQ(alone.items, 1);
        CHECK_EQ(nine.items, 9);
        CHECK_NEAR(nine.flops, 9 * alone.flops, 1e-9 * nine.flops);
        /* What a run takes before its first sample and behind its last one, it takes once: on a
         * device the first band's pixels come in, and the last one's go out. */
        d.dim[0] = 5;
        CHECK_OK(tgi_npy_save(one, &d, px, &err), err);
        const tg_plan_info five = plan_of(one, device[i]);
        CHECK_NEAR(nine.seconds_estimate - five.seconds_estimate,
                   five.seconds_estimate - alone.seconds_estimate,
                   1e-9 * nine.seconds_estimate);
        CHECK(nine.seconds_estimate > 2 * alone.seconds_estimate &&
              nine.seconds_estimate < 9.5 * alone.seconds_estimate);
        CHECK(!nine.calibrated);
        printf("  %s: %.3g s, nine %.3g s\n", device[i], alone.seconds_estimate,
               nine.seconds_estimate);
    }
    unlink(one);
    tgi_free(px);
}

/* ---- Verify ------------------------------------------------------------------------------ */

static void verify_with(const char *const *extra, tg_status expect, tg_verify_result *r)
{
    tg_ctx *ctx = NULL;
    tg_job *job = NULL;
    CHECK_EQ(tg_ctx_open(NULL, &ctx), TG_OK);
    tg_opts *opts = options_of(ctx, input, extra);
    CHECK_EQ(tg_job_open(ctx, opts, &job), TG_OK);
    const tg_status st = tg_job_verify(job, r);
    CHECK_EQ(st, expect);
    if (st != expect)
        fprintf(stderr, "  %s\n", tg_ctx_detail(ctx));
    tg_job_close(&job);
    tg_opts_free(&opts);
    tg_ctx_close(&ctx);
    CHECK_EQ(open_things(), 0);
}

static void test_verify_compares_the_device_with_the_processor(void)
{
    tg_verify_result r = {.size = sizeof r};
    reset();
    verify_with(OPTIONS("vram", "1MiB"), TG_OK, &r);
    CHECK(strstr(r.device, "Fake 1000"));
    CHECK_STR(r.device_precision, "fp32");
    CHECK(r.device_bit_equal && r.device_tiles > 1);
    CHECK(r.device_relative_l2 > 0 && r.device_relative_l2 < 1e-5); /* Winograd here */
    CHECK(r.device_psnr > 90);
    CHECK(r.bit_equal && r.tiles > 0); /* the processor's part is as ever */
    reset();
    settings->devices = 0;
    memset(&r, 0, sizeof r);
    r.size = sizeof r;
    verify_with(NULL, TG_OK, &r);
    CHECK_STR(r.device, "");
    verify_with(OPTIONS("precision", "fp16"), TG_E_DEVICE, &r);
    reset();
    settings->fail_at[FAKE_RUN] = 2;
    settings->fail_with[FAKE_RUN] = TG_E_DEVICE;
    verify_with(NULL, TG_E_DEVICE, &r);
    /* Too little for it: refused before anything is computed, or left out as a run would. */
    reset();
    settings->context_bytes = (size_t)2 << 20;
    verify_with(OPTIONS("vram", "2100KiB", "device", "cuda"), TG_E_BUDGET, &r);
    CHECK_EQ(count(FAKE_RUN), 0);
    verify_with(OPTIONS("vram", "2100KiB"), TG_OK, &r);
    CHECK_STR(r.device, "");
    verify_with(OPTIONS("vram", "2700KiB"), TG_OK, &r);
    CHECK(r.device[0] && r.device_bit_equal && r.device_tiles > 1);
    CHECK(peak_bytes() <= (size_t)2700 << 10);
}

static void run_image_tests(void)
{
    make_input();
    RUN(test_pixels_do_not_depend_on_the_devices_memory);
    RUN(test_what_the_device_gives_is_what_the_processor_gives);
    RUN(test_auto_goes_back_to_the_processor_and_says_why);
    RUN(test_a_device_that_is_named_is_that_or_an_error);
    RUN(test_a_device_that_cannot_count_says_what_it_cannot_do);
    RUN(test_memory_that_a_neighbour_took_makes_a_smaller_plan);
    RUN(test_a_device_that_fails_leaves_a_journal_to_go_on_from);
    RUN(test_damaged_tiles_of_an_interrupted_run_are_computed_again);
    RUN(test_a_run_goes_on_only_with_what_it_began_with);
    RUN(test_verify_compares_the_device_with_the_processor);
    RUN(test_an_image_into_an_array_in_several_bands);
    forget_output();
    unlink(input);
}

int main(void)
{
    begin_in("device_job", FAKE_PLUGIN, TG_SOURCE_DIR "/models/tegula_denoise.onnx");
    snprintf(array_in, sizeof array_in, "%s/array.npy", folder);
    snprintf(array_out, sizeof array_out, "%s/result.npy", folder);
    make_array_of(array_in, 2);
    if (TG_READS_OME)
        run_image_tests();
    else
        printf("skipped of images: this build is without libxml2, which reads them back\n");
    RUN(test_arrays_do_not_depend_on_the_devices_memory);
    RUN(test_arrays_of_the_device_are_those_of_the_processor);
    RUN(test_arrays_begin_again_when_a_neighbour_took_the_memory);
    RUN(test_a_system_that_pins_no_memory_is_slower);
    RUN(test_a_driver_that_makes_no_graph_is_slower);
    RUN(test_memory_of_the_host_is_no_reason_to_plan_smaller);
    RUN(test_a_device_that_fails_leaves_no_array);
    RUN(test_samples_of_a_batch_take_their_time);
    unlink(array_in);
    unlink(array_out);
    rmdir(folder);
    return TEST_END();
}

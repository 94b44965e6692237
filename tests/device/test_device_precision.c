/* What a network's descriptor says of precision, against what was measured of the device and
 * what was asked for by name. Only plans are made: the fake device computes in float32 alone.
 */
#include "tests/device/device_job.h"

#include "engine/device/measured.h"

#include <tegula_memory.h>

static char descriptor[128];

static void describe(const char *text)
{
    FILE *f = fopen(descriptor, "w");
    CHECK(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0);
}

static tgi_device_info fake_info(void)
{
    tgi_device_info info = {.name = "Fake 1000", .driver = "none"};
    return info;
}

/* A new device, on which halves were measured to gain so much; < 0: not yet. */
static void begin(double half_gain)
{
    const tgi_device_info info = fake_info();
    const tgi_measured m = {.gain = {half_gain, -1, -1}};
    tgi_err err = {0};
    reset();
    settings->halves = 1;
    CHECK_OK(tgi_measured_write(&info, &m, &err), err);
}

/* "precision" of a plan with these options; what it warned of. */
static const char *planned(const char *const *extra, char warnings[1024], int *by_descriptor)
{
    static char precision[16];
    outcome o = {.st = TG_OK};
    tg_ctx_opts how = {.size = sizeof how, .log = on_log, .user = &o};
    tg_ctx *ctx = NULL;
    tg_job *job = NULL;
    char *json = NULL;
    precision[0] = 0;
    CHECK_EQ(tg_ctx_open(&how, &ctx), TG_OK);
    tg_opts *opts = options_of(ctx, input, extra);
    CHECK_EQ(tg_opts_set(opts, "descriptor", descriptor), TG_OK);
    CHECK_EQ(tg_job_open(ctx, opts, &job), TG_OK);
    CHECK_EQ(tg_job_plan_json(job, 0, &json), TG_OK);
    const char *at = json ? strstr(json, "\"precision\":\"") : NULL;
    CHECK(at && sscanf(at, "\"precision\":\"%15[a-z0-9]", precision) == 1);
    *by_descriptor =
        json && strstr(json, "\"precision\",\"value\":\"fp32\",\"origin\":\"descriptor\"");
    snprintf(warnings, 1024, "%s", o.warnings);
    tg_text_free(json);
    tg_job_close(&job);
    tg_opts_free(&opts);
    tg_ctx_close(&ctx);
    CHECK_EQ(open_things(), 0);
    return precision;
}

static const char needs[] = "needs fp32";

static void test_auto_is_what_pays_unless_the_descriptor_says_fp32(void)
{
    char warnings[1024];
    int by_descriptor;
    describe("{}");
    begin(3);
    CHECK_STR(planned(OPTIONS("device", "cuda"), warnings, &by_descriptor), "fp16");
    begin(1);
    CHECK_STR(planned(OPTIONS("device", "cuda"), warnings, &by_descriptor), "fp32");
    CHECK(!by_descriptor);
    describe("{\"precision\": \"auto\"}");
    begin(3);
    CHECK_STR(planned(OPTIONS("device", "cuda"), warnings, &by_descriptor), "fp16");
    describe("{\"precision\": \"fp32\"}");
    CHECK_STR(planned(OPTIONS("device", "cuda"), warnings, &by_descriptor), "fp32");
    CHECK(by_descriptor);
    CHECK_STR(planned(OPTIONS("device", "cuda", "precision", "auto"), warnings, &by_descriptor),
              "fp32");
    CHECK(!strstr(warnings, needs));
}

/* What would not be taken is not worth the device's time. */
static void test_nothing_is_measured_for_a_descriptor_that_says_fp32(void)
{
    const tgi_device_info info = fake_info();
    tgi_measured m;
    char warnings[1024];
    int by_descriptor;
    describe("{\"precision\": \"fp32\"}");
    begin(-1);
    settings->fail_at[FAKE_RUN] = 1; /* a plan computes nothing */
    settings->fail_with[FAKE_RUN] = TG_E_DEVICE;
    CHECK_STR(planned(OPTIONS("device", "cuda"), warnings, &by_descriptor), "fp32");
    CHECK_EQ(count(FAKE_RUN), 0);
    tgi_measured_read(&info, &m);
    CHECK(m.gain[TGI_GAIN_HALF] < 0);
}

static void test_who_asks_for_halves_by_name_gets_them_and_is_told(void)
{
    char warnings[1024];
    int by_descriptor;
    begin(3);
    describe("{\"precision\": \"fp32\"}");
    CHECK_STR(planned(OPTIONS("device", "cuda", "precision", "fp16"), warnings, &by_descriptor),
              "fp16");
    CHECK(strstr(warnings, needs) && strstr(warnings, "--precision fp16"));
    CHECK_STR(planned(OPTIONS("device", "cuda", "precision", "fp32"), warnings, &by_descriptor),
              "fp32");
    CHECK(!strstr(warnings, needs));
    describe("{}");
    CHECK_STR(planned(OPTIONS("device", "cuda", "precision", "fp16"), warnings, &by_descriptor),
              "fp16");
    CHECK(!strstr(warnings, needs));
}

static int offers_halves(void)
{
    tg_ctx *ctx = NULL;
    tg_job *job = NULL;
    tg_plan_info info = {.size = sizeof info};
    CHECK_EQ(tg_ctx_open(NULL, &ctx), TG_OK);
    tg_opts *opts = options_of(ctx, input, OPTIONS("device", "cuda", "vram", "250KiB"));
    CHECK_EQ(tg_opts_set(opts, "precision", "fp32"), TG_OK);
    CHECK_EQ(tg_opts_set(opts, "descriptor", descriptor), TG_OK);
    CHECK_EQ(tg_job_open(ctx, opts, &job), TG_OK);
    CHECK_EQ(tg_job_plan(job, &info), TG_E_BUDGET);
    const tg_refusal *r = tg_ctx_refusal(ctx);
    int found = 0;
    CHECK(r && r->n_remedies > 0);
    for (size_t i = 0; r && i < r->n_remedies; i++)
        for (size_t k = 0; k < r->remedy[i].n_options; k++)
            found |= strcmp(r->remedy[i].option[k].value, "fp16") == 0;
    tg_job_close(&job);
    tg_opts_free(&opts);
    tg_ctx_close(&ctx);
    return found;
}

/* Nor is recommended what the network's author says would not do. */
static void test_a_refusal_offers_no_halves_against_the_descriptor(void)
{
    begin(3);
    describe("{}");
    CHECK(offers_halves());
    describe("{\"precision\": \"fp32\"}");
    CHECK(!offers_halves());
}

/* The refusal of the first plan leaves nothing that the second would go on with. */
static void test_a_device_that_cannot_is_refused_each_time(void)
{
    tg_ctx *ctx = NULL;
    tg_job *job = NULL;
    begin(3);
    CHECK_EQ(tg_ctx_open(NULL, &ctx), TG_OK);
    tg_opts *opts =
        options_of(ctx, input, OPTIONS("device", "cuda", "precision", "bf16", "yes", "true"));
    CHECK_EQ(tg_job_open(ctx, opts, &job), TG_OK);
    for (int k = 0; k < 2; k++) {
        CHECK_EQ(tg_job_plan(job, NULL), TG_E_UNSUPPORTED);
        CHECK(strstr(tg_ctx_detail(ctx), "--device cuda: it ") != NULL);
    }
    tg_job_close(&job);
    tg_opts_free(&opts);
    tg_ctx_close(&ctx);
}

int main(void)
{
    char kept[128];
    begin_in("device_precision", FAKE_PLUGIN, TG_SOURCE_DIR "/models/tegula_denoise.onnx");
    snprintf(input, sizeof input, "%s/in.npy", folder);
    snprintf(descriptor, sizeof descriptor, "%s/says.json", folder);
    snprintf(kept, sizeof kept, "%s/devices.json", folder);
    setenv("TEGULA_CACHE", folder, 1);
    make_array_of(input, 1);
    RUN(test_auto_is_what_pays_unless_the_descriptor_says_fp32);
    RUN(test_nothing_is_measured_for_a_descriptor_that_says_fp32);
    RUN(test_who_asks_for_halves_by_name_gets_them_and_is_told);
    RUN(test_a_refusal_offers_no_halves_against_the_descriptor);
    RUN(test_a_device_that_cannot_is_refused_each_time);
    unlink(kept);
    unlink(descriptor);
    unlink(input);
    rmdir(folder);
    return TEST_END();
}

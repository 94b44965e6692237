/* device_job.h - jobs through the public door, with the fake device as the plugin. */
#ifndef TG_DEVICE_JOB_H
#define TG_DEVICE_JOB_H

#include "engine/base/mem.h"
#include "io/npy.h"
#include "tests/device/fake_device.h"
#include "tests/tg_test.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <tegula.h>
#include <unistd.h>

#define H 120
#define W 88

static char folder[64], input[128], output[128];
static const char *model;

/* The plugin's own fake: another copy than ours would be. */
static fake_settings *settings;
static void (*reset)(void);
static size_t (*peak_bytes)(void);
static int (*count)(fake_call call), (*open_things)(void);

static inline void find_plugin(const char *path)
{
    void *dl = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(dl != NULL);
    if (!dl) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    settings = (fake_settings *)dlsym(dl, "fake");
    *(void **)&reset = dlsym(dl, "fake_reset");
    *(void **)&peak_bytes = dlsym(dl, "fake_peak_bytes");
    *(void **)&count = dlsym(dl, "fake_count");
    *(void **)&open_things = dlsym(dl, "fake_open_things");
    CHECK(settings && reset && peak_bytes && count && open_things);
}

static inline void make_input(void)
{
    static uint16_t px[H * W];
    uint64_t seed = 3;
    for (int i = 0; i < H * W; i++)
        px[i] = (uint16_t)(1000 + 300 * sin(i / 900.0) + 80 * tg_rand_unit(&seed));
    const tgi_desc d = {TG_DTYPE_U16, 2, {H, W}};
    tgi_err err = {0};
    char array[160];
    tg_ctx *ctx = NULL;
    tg_opts *opts = NULL;
    snprintf(array, sizeof array, "%s.npy", input);
    CHECK_OK(tgi_npy_save(array, &d, px, &err), err);
    CHECK_EQ(tg_ctx_open(NULL, &ctx), TG_OK);
    CHECK_EQ(tg_opts_new(ctx, &opts), TG_OK);
    CHECK_EQ(tg_opts_set(opts, "input", array), TG_OK);
    CHECK_EQ(tg_opts_set(opts, "output", input), TG_OK);
    CHECK_EQ(tg_copy(ctx, opts), TG_OK);
    tg_opts_free(&opts);
    tg_ctx_close(&ctx);
    unlink(array);
}

/* Samples [1,H,W] of noise, as an array. */
static inline void make_array_of(const char *path, int samples)
{
    const tgi_desc d = {TG_DTYPE_F32, 4, {samples, 1, H, W}};
    float *px = tgi_calloc(TGI_TAG_MISC, (size_t)samples * H * W, sizeof *px);
    uint64_t seed = 5;
    tgi_err err = {0};
    for (int i = 0; px && i < samples * H * W; i++)
        px[i] = tg_rand_unit(&seed);
    CHECK_OK(tgi_npy_save(path, &d, px, &err), err);
    tgi_free(px);
}

typedef struct outcome {
    tg_status st;
    char detail[512], warnings[1024], notice[256];
    uint64_t device_peak, device_budget;
    int on_device;
    tg_run_result res;
} outcome;

static inline void on_log(void *user, tg_log_level level, const char *line)
{
    outcome *o = user;
    if (level > TG_LOG_INFO)
        return;
    const size_t n = strlen(o->warnings);
    snprintf(o->warnings + n, sizeof o->warnings - n, "%s\n", line);
}

/* Options of a job of the model: the input, and NAME, VALUE pairs up to NULL. */
static inline tg_opts *options_of(tg_ctx *ctx, const char *from, const char *const *extra)
{
    tg_opts *opts = NULL;
    CHECK_EQ(tg_opts_new(ctx, &opts), TG_OK);
    CHECK_EQ(tg_opts_set(opts, "model", model), TG_OK);
    CHECK_EQ(tg_opts_set(opts, "input", from), TG_OK);
    for (; extra && extra[0]; extra += 2)
        CHECK_EQ(tg_opts_set(opts, extra[0], extra[1]), TG_OK);
    return opts;
}

/* Plan and run with NAME, VALUE pairs beside the usual ones. */
static inline outcome run_from(const char *from, const char *to, const char *const *extra)
{
    outcome o = {.res = {.size = sizeof(tg_run_result)}};
    tg_ctx_opts how = {.size = sizeof how, .log = on_log, .user = &o};
    tg_ctx *ctx = NULL;
    tg_job *job = NULL;
    tg_plan_info info = {.size = sizeof info};
    CHECK_EQ(tg_ctx_open(&how, &ctx), TG_OK);
    tg_opts *opts = options_of(ctx, from, extra);
    CHECK_EQ(tg_opts_set(opts, "output", to), TG_OK);
    CHECK_EQ(tg_opts_set(opts, "threads", "1"), TG_OK);
    o.st = tg_job_open(ctx, opts, &job);
    if (o.st == TG_OK)
        o.st = tg_job_plan(job, &info);
    if (o.st == TG_OK) {
        o.on_device = info.device != NULL;
        snprintf(o.notice, sizeof o.notice, "%s", info.device_notice ? info.device_notice : "");
        o.device_peak = info.device_peak_bytes;
        o.device_budget = info.device_budget_bytes;
        o.st = tg_job_run(job, &o.res);
    }
    snprintf(o.detail, sizeof o.detail, "%s", tg_ctx_detail(ctx));
    tg_job_close(&job);
    tg_opts_free(&opts);
    tg_ctx_close(&ctx);
    CHECK_EQ(open_things(), 0);
    return o;
}

static inline outcome run_with(const char *const *extra)
{
    return run_from(input, output, extra);
}

static inline uint64_t hash_file(const char *path)
{
    uint64_t h = 1469598103934665603u;
    FILE *f = fopen(path, "rb");
    CHECK(f != NULL);
    for (int c; f && (c = fgetc(f)) != EOF;)
        h = (h ^ (uint64_t)c) * 1099511628211u;
    if (f)
        fclose(f);
    return h;
}

static inline void forget_output(void)
{
    char path[192];
    static const char *const ends[] = {"", ".partial", ".journal", ".json", ".receipt.json"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        snprintf(path, sizeof path, "%s%s", output, ends[i]);
        unlink(path);
    }
}

/* Pixels of a one-plane uint16 image. */
static inline uint16_t *pixels_of(const char *path)
{
    char array[192];
    tg_ctx *ctx = NULL;
    tg_opts *opts = NULL;
    tgi_desc d;
    void *data = NULL;
    tgi_err err = {0};
    snprintf(array, sizeof array, "%s.npy", path);
    CHECK_EQ(tg_ctx_open(NULL, &ctx), TG_OK);
    CHECK_EQ(tg_opts_new(ctx, &opts), TG_OK);
    CHECK_EQ(tg_opts_set(opts, "input", path), TG_OK);
    CHECK_EQ(tg_opts_set(opts, "output", array), TG_OK);
    CHECK_EQ(tg_copy(ctx, opts), TG_OK);
    CHECK_OK(tgi_npy_load(array, (size_t)1 << 24, &d, &data, &err), err);
    CHECK_EQ(d.dtype, TG_DTYPE_U16);
    tg_opts_free(&opts);
    tg_ctx_close(&ctx);
    unlink(array);
    return data;
}

#define OPTIONS(...) ((const char *const[]){__VA_ARGS__, NULL})

static inline int took_what_was_planned(const outcome *o, const char *vram)
{
    CHECK_EQ(o->st, TG_OK);
    if (o->st != TG_OK) {
        fprintf(stderr, "  %s: %s\n", vram, o->detail);
        return 0;
    }
    CHECK(o->on_device);
    CHECK_EQ(o->device_peak, peak_bytes()); /* planned to the byte */
    CHECK(o->device_peak <= o->device_budget);
    CHECK_EQ(o->res.device_predicted_bytes, o->device_peak);
    CHECK_EQ(o->res.device_measured_bytes, o->device_peak); /* by the driver's own figures */
    return 1;
}

/* A folder with an input, and the plugin found. */
static inline void begin_in(const char *name, const char *plugin, const char *net)
{
    snprintf(folder, sizeof folder, "/tmp/tegula_%s_XXXXXX", name);
    CHECK(mkdtemp(folder) != NULL);
    snprintf(input, sizeof input, "%s/in.tif", folder);
    snprintf(output, sizeof output, "%s/out.tif", folder);
    setenv("TEGULA_CUDA_PLUGIN", plugin, 1);
    find_plugin(plugin);
    model = net;
}

#endif

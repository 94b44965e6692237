/* fake_engine.c - a test double of the library behind the command: the real option table and
 * sets of options, canned answers for everything that would read a file.
 *
 * What it does is chosen by the base name of the input: "TG_E_NAME.x" fails with that status
 * when the job is opened; "slow.*" reports progress for up to ten seconds or until it is
 * cancelled; "differs.*" makes verify find a difference; anything else succeeds. */
#include "engine/base/ctx.h"
#include "engine/base/mem.h"
#include "engine/settings/opts.h"
#include "tegula_memory.h"
#include <tegula_array.h>
#include <tegula_estimate.h>
#include <tegula_preset.h>

#include <math.h>
#include <stdarg.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct tg_ctx {
    tgi_err err;
    tg_ctx_opts opts;
};

struct tg_job {
    tg_ctx *ctx;
    const tg_opts *opts; /* the command's outlive the job */
    tg_setting setting[128];
    char input[256], output[256];
    tg_plan_line line[4];
};

static volatile int cancel_signal;

tgi_err *tgi_ctx_err(tg_ctx *ctx)
{
    if (!ctx)
        return NULL;
    memset(&ctx->err, 0, sizeof ctx->err);
    return &ctx->err;
}

tg_status tg_ctx_open(const tg_ctx_opts *opts, tg_ctx **out)
{
    tg_ctx *ctx = tgi_calloc(TGI_TAG_MISC, 1, sizeof *ctx);
    if (!ctx)
        return TG_E_NOMEM;
    if (opts)
        ctx->opts = *opts;
    *out = ctx;
    return TG_OK;
}

void tg_ctx_close(tg_ctx **ctx)
{
    if (ctx && *ctx) {
        tgi_free(*ctx);
        *ctx = NULL;
    }
}

const char *tg_ctx_detail(const tg_ctx *ctx)
{
    return ctx->err.text;
}

void tg_cancel(int signal_number)
{
    cancel_signal = signal_number;
}

int tg_cancel_signal(void)
{
    return cancel_signal;
}

void tg_text_free(char *text)
{
    tgi_free(text);
}

/* The status named by the input, TG_OK when it names none. */
static tg_status named_status(tg_ctx *ctx, const char *input)
{
#define X(name, value, sentence)                                                               \
    if (strncmp(input, #name ".", sizeof #name) == 0)                                          \
        return tgi_fail(tgi_ctx_err(ctx), name, "%s: canned detail\nof two lines", input);
    TG_STATUS_LIST(X)
#undef X
    return TG_OK;
}

static tg_status give_text(const char *text, char **out)
{
    *out = tgi_strdup(TGI_TAG_MISC, text);
    return *out ? TG_OK : TG_E_NOMEM;
}

tg_status tg_describe(tg_ctx *ctx, const char *path, char **json)
{
    const tg_status st = named_status(ctx, path);
    if (st != TG_OK)
        return st;
    return give_text(
        "{\n\t\"kind\": \"image\", \"shape\": [3, 480, 640], \"axes\": \"ZYX\",\n"
        "\t\"file_bytes\": 1048576, \"description\": \"a \\\"b\\\" \\u00b5m\\n\",\n"
        "\t\"levels\": [{\"height\": 480, \"width\": 640}, {\"height\": 240, "
        "\"width\": 320}],\n\t\"empty\": [], \"physical\": {\"z\": 2.5, \"unit\": "
        "\"um\"}}\n",
        json);
}

void tg_ctx_keep_model(tg_ctx *ctx, int keep)
{
    (void)ctx;
    (void)keep;
}

tg_status tg_describe_part(tg_ctx *ctx, const char *path, const tg_opts *opts, char **json)
{
    (void)opts;
    return tg_describe(ctx, path, json);
}

/* A run in stages; "stopped", "finished" and "stale" in the name are that. */
tg_status tg_output_look(tg_ctx *ctx, const char *output, tg_output_status *out)
{
    static const char *const word[] = {"running", "stopped", "finished", "stale"};
    const tg_status st = named_status(ctx, output);
    if (st != TG_OK)
        return st;
    *out = (tg_output_status){.size = sizeof *out,
                              .process = 123,
                              .input = "in.tif",
                              .model = "net.onnx",
                              .tiles = 4,
                              .tiles_in_all = 15,
                              .item = 1,
                              .items = 2,
                              .stage = 3,
                              .stages = 5,
                              .cell = 2,
                              .cells = 7,
                              .rows = 128,
                              .rows_in_all = 256,
                              .fraction = 0.25,
                              .seconds = 10,
                              .seconds_left = 30};
    if (strstr(output, "film"))
        out->frames = 40, out->frames_safe = 32, out->frames_in_all = 150,
        out->frames_per_second = 4;
    for (int i = 0; i < 4; i++)
        if (strstr(output, word[i]))
            out->state = (tg_output_state)i;
    if (out->state == TG_STATE_STALE)
        snprintf(out->why, sizeof out->why, "OUT.journal is damaged");
    return TG_OK;
}

tg_status tg_job_open(tg_ctx *ctx, const tg_opts *o, tg_job **out)
{
    const char *input = tg_opts_get(o, "input"), *output = tg_opts_get(o, "output");
    if (!input)
        input = tg_opts_get(o, "input-tensor");
    const tg_status st = named_status(ctx, input);
    if (st != TG_OK)
        return st;
    tg_job *job = tgi_calloc(TGI_TAG_MISC, 1, sizeof *job);
    if (!job)
        return TG_E_NOMEM;
    job->ctx = ctx;
    job->opts = o;
    snprintf(job->input, sizeof job->input, "%s", input);
    snprintf(job->output, sizeof job->output, "%s", output ? output : "");
    *out = job;
    return TG_OK;
}

int tg_job_is_one_image(const tg_job *job)
{
    (void)job;
    return 0;
}

void tg_job_close(tg_job **job)
{
    if (job && *job) {
        tgi_free(*job);
        *job = NULL;
    }
}

tg_status tg_job_plan(tg_job *job, tg_plan_info *out)
{
    const tg_plan_line line[4] = {
        {"weights", "packed for avx2", 12 << 20, 0, 0},
        {"arena", "42 values", 391u << 20, 0, 0},
        {"baseline", "this process before the first band", 9 << 20, 0, 0},
        {"output", "deflate, at most", 8ull << 30, 1, 100ull << 30},
    };
    memcpy(job->line, line, sizeof line);
    if (out)
        *out = (tg_plan_info){.size = sizeof *out,
                              .peak_bytes = 412u << 20,
                              .budget_bytes = 1u << 30,
                              .arena_bytes = 391u << 20,
                              .lower_bound_bytes = 390u << 20,
                              .tile = {1, 4096, 1024},
                              .halo = {0, 94, 94},
                              .strips = 3,
                              .bands = 192,
                              .items = 2,
                              .flops = 1.25e12,
                              .recomputed_fraction = 0.0512,
                              .seconds_estimate = 252.0,
                              .lines = job->line,
                              .n_lines = 4};
    return TG_OK;
}

#define REJECTED                                                                               \
    "\"rejected\":[{\"tile\":[1,4096,2048],\"band\":16,\"bytes\":1610612736,"                  \
    "\"seconds_estimate\":126.25331,\"recomputed_fraction\":0.02289788797586767,"              \
    "\"why\":\"does not fit\"},{\"tile\":[8,64,128],\"band\":1,\"bytes\":4096,"                \
    "\"seconds_estimate\":0.25,\"recomputed_fraction\":0,\"why\":\"slower\"}]"

tg_status tg_job_plan_json(tg_job *job, int why, char **json)
{
    (void)job;
    return give_text(why ? "{\"peak_bytes\":432013312," REJECTED "}"
                         : "{\n\t\"peak_bytes\":\t432013312\n}",
                     json);
}

tg_status tg_job_rejected_json(const tg_job *job, char **json)
{
    (void)job;
    return give_text("{" REJECTED "}", json);
}

/* What was set, the defaults, and one value that the engine found. */
tg_status tg_job_settings(tg_job *job, const tg_setting **list, size_t *n)
{
    size_t rows;
    const tg_option *t = tg_option_table(&rows);
    *n = 0;
    *list = job->setting;
    for (size_t i = 0; i < rows && *n < 127; i++) {
        const char *value = tg_opts_get(job->opts, t[i].name);
        const char *origin = tg_opts_origin(job->opts, t[i].name);
        if (!value || !tgi_opt_in_preset((tgi_opt)i) || !strstr(t[i].verbs, "run"))
            continue;
        if (strcmp(t[i].name, "threads") == 0 && strcmp(value, "auto") == 0)
            value = "2", origin = "worked out";
        job->setting[(*n)++] = (tg_setting){t[i].name, value, origin,
                                            t[i].fallback && strcmp(value, t[i].fallback) == 0};
    }
    return TG_OK;
}

void tgi_ctx_log(tg_ctx *ctx, tg_log_level level, const char *fmt, ...)
{
    char line[768];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (ctx->opts.log)
        ctx->opts.log(ctx->opts.user, level, line);
}

tg_status tg_job_save_json(tg_job *job, char **json)
{
    (void)job;
    return give_text("{\"model\":\"m.onnx\",\"ram\":\"1GiB\"}", json);
}

static void sleep_ms(long ms)
{
    const struct timespec t = {0, ms * 1000000};
    nanosleep(&t, NULL);
}

/* Twelve reports as if each took five seconds; slow inputs really wait and can be cancelled. */
static tg_status progress(tg_job *job, bool slow)
{
    const tg_ctx_opts *o = &job->ctx->opts;
    const int n = slow ? 1000 : 12;
    if (strncmp(job->input, "warns.", 6) == 0 && o->log) {
        o->log(o->user, TG_LOG_WARN, "uint16 input from 90 to 4095 and no --normalize");
        o->log(o->user, TG_LOG_INFO, "an info line");
        o->log(o->user, TG_LOG_DEBUG, "a debug line");
    }
    const int64_t before = strncmp(job->input, "resumed.", 8) == 0 ? 352 : 0;
    const int64_t all = before ? 1344 : n;
    const bool film = strncmp(job->input, "film.", 5) == 0,
               endless = strcmp(job->input, "-") == 0;
    for (int i = 1; i <= n; i++) {
        const tg_progress p = {.phase = i == 1 ? "statistics" : "run",
                               .fraction = endless ? -1 : (double)i / n,
                               .seconds = slow ? i * 0.01 : i * 5.0,
                               .eta_seconds = i < 3 ? -1.0 : (n - i) * 5.0,
                               .memory_bytes = 405u << 20,
                               .predicted_bytes = 412u << 20,
                               .budget_bytes = 1u << 30,
                               .tiles_done = before + i * (all - before) / n,
                               .tiles_total = all,
                               .tiles_resumed = before,
                               .frames_done = film || endless ? 10 * i : 0,
                               .frames_total = film ? 10 * n : 0};
        if (o->progress)
            o->progress(o->user, &p);
        if (slow)
            sleep_ms(10);
        if (cancel_signal)
            return tgi_fail(tgi_ctx_err(job->ctx), TG_E_CANCELLED,
                            "stopped after %d tiles; the same command continues", i);
    }
    return TG_OK;
}

tg_status tg_job_run(tg_job *job, tg_run_result *out)
{
    while (strncmp(job->input, "stuck.", 6) == 0)
        sleep_ms(10); /* never looks at the request: the second signal must end it */
    const tg_status st = progress(job, strncmp(job->input, "slow.", 5) == 0);
    if (st != TG_OK)
        return st;
    const int64_t before = strncmp(job->input, "film.resumed.", 13) == 0 ? 30 : 0;
    *out = (tg_run_result){.size = sizeof *out,
                           .predicted_peak_bytes = 412u << 20,
                           .measured_peak_bytes = 405u << 20,
                           .budget_bytes = 1u << 30,
                           .seconds = 252.25,
                           .compute_seconds = 240.5,
                           .bands_seconds = 250.0,
                           .stall_read_seconds = 1.5,
                           .stall_write_seconds = 3.0,
                           .convert_seconds = 5.0,
                           .processor_seconds = 480.5,
                           .megapixels_per_second = 12.5,
                           .tiles = 10,
                           .bands = 640,
                           .tiles_resumed = strncmp(job->input, "resumed.", 8) == 0 ? 2 : 0,
                           .tiles_begun = 12,
                           .recomputed_fraction = 0.0512,
                           .output = job->output,
                           .frames = strncmp(job->input, "film.", 5) == 0 ? 120 - before : 0,
                           .frames_resumed = before};
    return TG_OK;
}

tg_status tg_job_verify(tg_job *job, tg_verify_result *out)
{
    const bool differs = strncmp(job->input, "differs.", 8) == 0;
    static tg_verify_output canned[2];
    canned[0] = (tg_verify_output){.name = "y",
                                   .min = -0.5,
                                   .max = 1.5,
                                   .max_abs_difference = differs ? 0.125 : 0.0,
                                   .relative_l2 = differs ? 1e-3 : 0.0,
                                   .bit_equal = !differs,
                                   .reference_max_abs = 1e-6,
                                   .reference_relative_l2 = 0.1,
                                   .reference_psnr = 126.0};
    canned[1] = (tg_verify_output){.name = "mask\n",
                                   .bit_equal = 1,
                                   .reference_psnr = HUGE_VAL,
                                   .device_max_abs = HUGE_VAL,
                                   .device_psnr = NAN,
                                   .device_bit_equal = 1,
                                   .device_nonfinite = 3};
    *out = (tg_verify_result){.size = sizeof *out,
                              .max_abs_difference = differs ? 0.125 : 0.0,
                              .relative_l2 = differs ? 1e-3 : 0.0,
                              .output_min = -0.5,
                              .output_max = 1.5,
                              .bit_equal = !differs,
                              .tiles = 9,
                              .reference_max_abs = 1e-6,
                              .reference_relative_l2 = 0.1,
                              .reference_psnr = 126.0,
                              .items = 1,
                              .outputs = canned,
                              .n_outputs = 1};
    if (strncmp(job->input, "device.", 7) == 0) { /* two outputs, on a device */
        canned[0].device_max_abs = 1e-3;
        canned[0].device_psnr = 60;
        canned[0].device_bit_equal = 1;
        snprintf(out->device, sizeof out->device, "%s", "cuda:0, Fake");
        snprintf(out->device_precision, sizeof out->device_precision, "%s", "fp16");
        out->device_bit_equal = 1;
        out->device_max_abs = HUGE_VAL;
        out->device_psnr = NAN;
        out->device_tiles = 6;
        out->items = 4;
        out->n_outputs = 2;
    }
    return TG_OK;
}

tg_status tg_job_preview(tg_job *job)
{
    return job->output[0] ? TG_OK : TG_E_ARG;
}

/* One finding of each state; with a job, one more that blocks. */
tg_status tg_doctor(tg_ctx *ctx, const char *root, const tg_opts *job, tg_finding **list,
                    size_t *n)
{
    static const tg_finding canned[] = {
        {"ram", TG_FINDING_OK, "8.00 GiB free", ""},
        {"gpu", TG_FINDING_NOTICE, "GPU 0: a\nb (pid 7) holds 1.00 GiB", "kill 7"},
        {"job", TG_FINDING_BLOCKS, "needs 9.00 GiB", "tegula run --config JOB --ram 9GiB"}};
    (void)root;
    *n = job ? 3 : 2;
    *list = tgi_calloc(TGI_TAG_MISC, *n, sizeof **list);
    if (!*list)
        return tgi_fail(tgi_ctx_err(ctx), TG_E_NOMEM, "no memory for canned findings");
    memcpy(*list, canned, *n * sizeof **list);
    return TG_OK;
}

/* "data" succeeds; anything else fails, and answers all the same. */
tg_status tg_estimate_json(tg_ctx *ctx, const char *what, const tg_opts *o,
                           const char *const *files, size_t n_files, char **json)
{
    static const char answer[] =
        "{\"estimate\":\"data\",\"needed\":{\"total_bytes\":602112000},"
        "\"available_memory_gib\":32.5,\"projected_seconds\":0.0125,\"deadline_seconds\":86400,"
        "\"reasons\":[\"a list of texts that together are longer than seventy letters\","
        "\"has a line for each of them\"]}";
    (void)o;
    (void)files;
    (void)n_files;
    const tg_status st = give_text(answer, json);
    return st != TG_OK || strcmp(what, "data") == 0
               ? st
               : tgi_fail(tgi_ctx_err(ctx), TG_E_DEVICE, "none is done in 1ms");
}

tg_status tg_calibrate(tg_ctx *ctx, char **json)
{
    (void)ctx;
    return give_text("{\"processor\":\"fake\"}", json);
}

tg_status tg_copy(tg_ctx *ctx, const tg_opts *o)
{
    return named_status(ctx, tg_opts_get(o, "input"));
}

tg_status tg_convert_weights(tg_ctx *ctx, const tg_opts *o)
{
    return named_status(ctx, tg_opts_get(o, "input"));
}

const tg_remedy *tg_ctx_remedy(const tg_ctx *ctx, size_t k)
{
    (void)ctx;
    (void)k;
    return NULL;
}

/* Canned: a plan that needs 12 GiB, and two ways out. */
const tg_refusal *tg_ctx_refusal(const tg_ctx *ctx)
{
    static tg_refusal r;
    if (ctx->err.code != TG_E_BUDGET)
        return NULL;
    r = (tg_refusal){.asked_by = "the plan",
                     .tried_bytes = 12ull << 30,
                     .free_bytes = 8ull << 30,
                     .limited_by = "cgroup /job",
                     .budget_bytes = 1ull << 30,
                     .holder = {{"graph", 30u << 20}, {"io", 1u << 20}},
                     .n_holders = 2,
                     .remedy = {{.option = {{"threads", "1"}},
                                 .n_options = 1,
                                 .loses = "time",
                                 .peak_bytes = 1000u << 20},
                                {.option = {{"scratch", "/my tmp"}, {"ram", "2GiB"}},
                                 .n_options = 2,
                                 .loses = "disk space",
                                 .peak_bytes = 900u << 20}},
                     .n_remedies = 2};
    return &r;
}

tg_status tg_inpaint_auto(tg_ctx *ctx, tg_opts *o, char **json)
{
    (void)ctx;
    (void)o;
    *json = NULL;
    return TG_OK;
}

tg_status tg_preset_auto(tg_ctx *ctx, const tg_opts *o, char **json)
{
    const char *input = tg_opts_get(o, "input");
    const tg_status st = named_status(ctx, input ? input : "");
    return st == TG_OK ? give_text("{\"machine\":\"here\",\"predicted_seconds\":12.5,"
                                   "\"preset\":{\"settings\":{\"threads\":\"8\"}},"
                                   "\"reasons\":[\"threads 8: of 8 processors\"]}",
                                   json)
                       : st;
}

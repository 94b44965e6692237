/* What asking for a plan costs a device: nothing, once it is known what a context takes there
 * and the management library says what is free; and that a run measures, whatever was known.
 * Each test is a process of its own, since a context belongs to one. */
#include "tests/device/device_job.h"

#include "engine/device/measured.h"

#include <sys/wait.h>
#include <tegula_memory.h>

#define MIB ((size_t)1 << 20)
#define CONTEXT (3 * MIB)
#define LIBRARY_BYTES MIB

static const tgi_device_info told = {.name = "Fake 1000", .driver = "none", .uuid = FAKE_UUID};

static void know(uint64_t context_bytes, double library_gain)
{
    const tgi_measured m = {.gain = {-1, -1, library_gain},
                            .context_bytes = context_bytes,
                            .library_bytes = library_gain > 0 ? LIBRARY_BYTES : 0};
    tgi_err err = {0};
    CHECK_OK(tgi_measured_write(&told, &m, &err), err);
}

static uint64_t known_context(void)
{
    tgi_measured m;
    tgi_measured_read(&told, &m);
    return m.context_bytes;
}

/* ---- A job, asked first and run then ----------------------------------------------------- */

typedef struct asked {
    tg_ctx *ctx;
    tg_opts *opts;
    tg_job *job;
    outcome log;
    tg_plan_info plan;
    tg_status st;
} asked;

static asked *open_job(const char *vram, const char *device)
{
    asked *a = calloc(1, sizeof *a);
    tg_ctx_opts how = {.size = sizeof how, .log = on_log, .user = &a->log};
    a->plan.size = sizeof a->plan;
    CHECK_EQ(tg_ctx_open(&how, &a->ctx), TG_OK);
    a->opts =
        options_of(a->ctx, input, OPTIONS("output", output, "device", device, "tile", "32x32"));
    if (vram)
        CHECK_EQ(tg_opts_set(a->opts, "vram", vram), TG_OK);
    CHECK_EQ(tg_job_open(a->ctx, a->opts, &a->job), TG_OK);
    return a;
}

static asked *ask(const char *vram, const char *device)
{
    asked *a = open_job(vram, device);
    a->st = tg_job_plan(a->job, &a->plan);
    return a;
}

static tg_run_result run(asked *a)
{
    tg_run_result r = {.size = sizeof r};
    unlink(output);
    a->st = tg_job_run(a->job, &r);
    if (a->st == TG_OK && r.device_predicted_bytes)
        CHECK_EQ(r.device_measured_bytes, r.device_predicted_bytes);
    return r;
}

static void end(asked *a)
{
    tg_job_close(&a->job);
    tg_opts_free(&a->opts);
    tg_ctx_close(&a->ctx);
    CHECK_EQ(open_things(), 0);
    free(a);
}

/* ---- Tests ------------------------------------------------------------------------------- */

static void the_first_plan_makes_a_context_and_keeps_what_it_took(void)
{
    asked *a = ask("8MiB", "cuda");
    CHECK_EQ(a->st, TG_OK);
    CHECK_EQ(count(FAKE_OPEN), 1);
    CHECK_EQ(known_context(), CONTEXT);
    end(a);
}

static void a_second_job_of_the_process_counts_the_context_that_is_there(void)
{
    settings->keeps_context = 1;
    know(CONTEXT, -1);
    uint64_t took[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        asked *a = ask("8MiB", "cuda");
        took[i] = run(a).device_predicted_bytes;
        CHECK_EQ(a->st, TG_OK);
        CHECK(peak_bytes() <= 8 * MIB);
        end(a);
    }
    CHECK(took[0] > CONTEXT);
    CHECK_EQ(took[1], took[0]);
}

static void a_plan_makes_none_and_says_what_the_run_then_takes(void)
{
    static const char *const vram[] = {"8MiB", NULL, "90%"};
    know(CONTEXT, -1);
    for (int i = 0; i < 3 && count(FAKE_OPEN) == 0; i++) {
        asked *a = ask(vram[i], i == 1 ? "auto" : "cuda");
        CHECK_EQ(a->st, TG_OK);
        CHECK(a->plan.device && a->plan.device_peak_bytes > CONTEXT);
        CHECK_EQ(count(FAKE_OPEN), 0);
        if (i == 2) { /* one of them is run: from then on the process has a context */
            const tg_run_result r = run(a);
            CHECK_EQ(a->st, TG_OK);
            CHECK_EQ(count(FAKE_OPEN), 1);
            CHECK_EQ(r.device_predicted_bytes, a->plan.device_peak_bytes);
            CHECK_EQ(r.device_budget_bytes, a->plan.device_budget_bytes);
            CHECK_EQ(peak_bytes(), a->plan.device_peak_bytes);
        }
        end(a);
    }
    asked *a = ask("8MiB", "cuda");
    CHECK_EQ(count(FAKE_OPEN), 2);
    end(a);
}

static void a_run_that_nobody_asked_about_measures(void)
{
    know(CONTEXT - MIB, -1);
    asked *a = open_job("8MiB", "cuda");
    const tg_run_result r = run(a);
    CHECK_EQ(a->st, TG_OK);
    CHECK_EQ(count(FAKE_OPEN), 1);
    CHECK_EQ(r.device_predicted_bytes, peak_bytes());
    CHECK_EQ(known_context(), CONTEXT);
    end(a);
}

static void a_run_replaces_what_was_wrong(void)
{
    know(CONTEXT / 2, -1);
    asked *a = ask("5MiB", "cuda");
    CHECK_EQ(a->st, TG_OK);
    CHECK_EQ(count(FAKE_OPEN), 0);
    CHECK(a->plan.device_peak_bytes > CONTEXT / 2);
    const tg_run_result r = run(a);
    CHECK_EQ(a->st, TG_OK);
    CHECK_EQ(r.device_predicted_bytes, peak_bytes());
    CHECK(peak_bytes() > CONTEXT && peak_bytes() <= 5 * MIB);
    CHECK_EQ(known_context(), CONTEXT);
    CHECK(!strstr(a->log.warnings, "gone")); /* nobody took anything */
    end(a);
}

static void a_run_plans_again_when_a_neighbour_came_meanwhile(void)
{
    know(CONTEXT, -1);
    settings->bytes = 16 * MIB;
    asked *a = ask("16MiB", "cuda");
    const uint64_t before = a->plan.device_peak_bytes;
    settings->taken = 16 * MIB - CONTEXT - MIB;
    const tg_run_result r = run(a);
    CHECK_EQ(a->st, TG_OK);
    CHECK(r.device_predicted_bytes < before && r.device_predicted_bytes <= CONTEXT + MIB);
    CHECK_EQ(known_context(), CONTEXT);
    end(a);
}

/* Who comes or goes while a context is made changes what is free, and not the context: counted
 * in, a budget would refuse what fits; counted out, it would be broken. */
static void meanwhile(long comes)
{
    settings->listed = 1;
    settings->taken = 20 * MIB;
    settings->comes = comes;
    asked *a = ask("8MiB", "cuda");
    CHECK_EQ(a->st, TG_OK);
    CHECK_EQ(known_context(), CONTEXT);
    settings->taken += MIB; /* before it runs, too */
    const tg_run_result r = run(a);
    CHECK_EQ(a->st, TG_OK);
    CHECK_EQ(r.device_measured_bytes, peak_bytes());
    CHECK(peak_bytes() <= 8 * MIB);
    end(a);
}

static void somebody_who_comes_while_a_context_is_made(void)
{
    meanwhile(5 * (long)MIB);
}

static void somebody_who_goes_while_a_context_is_made(void)
{
    meanwhile(-5 * (long)MIB);
}

/* Without the list all that went is ours, to be safe. */
static void somebody_else_whom_nobody_names_counts_as_ours(void)
{
    settings->comes = 2 * (long)MIB;
    asked *a = ask("8MiB", "cuda");
    CHECK_EQ(a->st, TG_OK);
    CHECK_EQ(known_context(), CONTEXT + 2 * MIB);
    CHECK(a->plan.device_peak_bytes > CONTEXT + 2 * MIB);
    end(a);
}

static void a_device_that_is_gone_at_the_run(void)
{
    know(CONTEXT, -1);
    for (int named = 0; named < 2; named++) {
        asked *a = ask("8MiB", named ? "cuda" : "auto");
        CHECK_EQ(a->st, TG_OK);
        CHECK(a->plan.device != NULL);
        settings->fail_at[FAKE_OPEN] = count(FAKE_OPEN) + 1;
        settings->fail_with[FAKE_OPEN] = TG_E_DEVICE;
        const tg_run_result r = run(a);
        CHECK_EQ(a->st, named ? TG_E_DEVICE : TG_OK);
        CHECK(named || (!r.device && strstr(a->log.warnings, "computed by the processor")));
        end(a);
    }
}

static void without_a_management_library_the_device_is_asked(void)
{
    know(CONTEXT, -1);
    settings->told = 0;
    asked *a = ask("8MiB", "cuda");
    CHECK_EQ(a->st, TG_OK);
    CHECK_EQ(count(FAKE_OPEN), 1);
    end(a);
}

/* An instance of a device (MIG) under the name of the whole. */
static void a_part_of_a_device_is_not_told_of_by_the_whole(void)
{
    settings->told_beside = 4 * settings->bytes;
    asked *a = ask("8MiB", "cuda");
    CHECK_EQ(a->st, TG_OK);
    const tg_run_result r = run(a);
    CHECK_EQ(a->st, TG_OK);
    CHECK_EQ(r.device_predicted_bytes, peak_bytes());
    CHECK_EQ(known_context(), 0); /* as long as nobody tells what was there before */
    end(a);
}

static void the_library_is_not_opened_for_a_question_either(void)
{
    settings->kinds = TGI_KIND_LIBRARY;
    settings->library_bytes = LIBRARY_BYTES;
    know(CONTEXT, 4);
    asked *a = ask("8MiB", "cuda");
    CHECK_EQ(a->st, TG_OK);
    CHECK_EQ(count(FAKE_OPEN) + count(FAKE_LIBRARY), 0);
    const tg_run_result r = run(a);
    CHECK_EQ(a->st, TG_OK);
    CHECK_EQ(count(FAKE_LIBRARY), 1);
    CHECK_EQ(r.device_predicted_bytes, a->plan.device_peak_bytes);
    CHECK_EQ(peak_bytes(), a->plan.device_peak_bytes);
    end(a);
}

static void a_library_that_is_gone_is_left_out(void)
{
    settings->kinds = TGI_KIND_LIBRARY;
    settings->library_bytes = 0;
    know(CONTEXT, 4);
    asked *a = ask("8MiB", "cuda");
    CHECK_EQ(a->st, TG_OK);
    const tg_run_result r = run(a);
    CHECK_EQ(a->st, TG_OK);
    CHECK_EQ(r.device_predicted_bytes, peak_bytes());
    CHECK(r.device_predicted_bytes < a->plan.device_peak_bytes);
    end(a);
}

static void what_nobody_has_measured_takes_a_context(void)
{
    settings->kinds = TGI_KIND_LIBRARY;
    settings->library_bytes = LIBRARY_BYTES;
    know(CONTEXT, -1);
    asked *a = ask("8MiB", "cuda");
    CHECK_EQ(a->st, TG_OK);
    CHECK_EQ(count(FAKE_OPEN), 1);
    const tg_run_result r = run(a);
    CHECK_EQ(count(FAKE_OPEN), 1);
    CHECK_EQ(r.device_predicted_bytes, a->plan.device_peak_bytes);
    end(a);
}

/* What would do is planned with the figures of the refusal: the context that is there would be
 * counted as free memory's lack, and another one as nothing. */
static void a_refusal_tells_what_does_and_makes_no_context_for_it(void)
{
    asked *a = ask("3100KiB", "cuda");
    CHECK_EQ(a->st, TG_E_BUDGET);
    CHECK_EQ(count(FAKE_OPEN), 1);
    const tg_refusal *r = tg_ctx_refusal(a->ctx);
    CHECK(r && r->n_remedies == 2 && r->budget_bytes == 3100 << 10);
    CHECK(r && r->free_bytes == settings->bytes && strstr(r->limited_by, "Fake 1000"));
    CHECK_STR(r->remedy[0].option[0].name, "vram");
    CHECK_STR(r->remedy[1].option[0].name, "device");
    char vram[256];
    snprintf(vram, sizeof vram, "%s", r->remedy[0].option[0].value);
    const uint64_t told_peak = r->remedy[0].peak_bytes;
    end(a);
    a = ask(vram, "cuda");
    CHECK_EQ(a->st, TG_OK);
    CHECK_EQ(a->plan.device_peak_bytes, told_peak);
    end(a);
}

/* ---- Processes --------------------------------------------------------------------------- */

static void in_a_process(void (*test)(void), const char *name)
{
    char cache[128];
    int status = 0;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        tg_failures = 0;
        reset();
        settings->told = 1;
        settings->context_bytes = CONTEXT;
        test();
        fflush(NULL);
        _exit(tg_failures != 0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    printf("%s %s\n", status ? "FAIL" : "ok  ", name);
    snprintf(cache, sizeof cache, "%s/devices.json", folder);
    unlink(cache);
}

int main(void)
{
    begin_in("device_ask", FAKE_PLUGIN, TG_SOURCE_DIR "/models/tegula_denoise.onnx");
    snprintf(input, sizeof input, "%s/in.npy", folder);
    snprintf(output, sizeof output, "%s/out.npy", folder);
    setenv("TEGULA_NVML", FAKE_PLUGIN, 1);
    setenv("TEGULA_CACHE", folder, 1);
    make_array_of(input, 1);
#define IN_A_PROCESS(test) in_a_process(test, #test)
    IN_A_PROCESS(the_first_plan_makes_a_context_and_keeps_what_it_took);
    IN_A_PROCESS(a_second_job_of_the_process_counts_the_context_that_is_there);
    IN_A_PROCESS(a_plan_makes_none_and_says_what_the_run_then_takes);
    IN_A_PROCESS(a_run_that_nobody_asked_about_measures);
    IN_A_PROCESS(a_run_replaces_what_was_wrong);
    IN_A_PROCESS(a_run_plans_again_when_a_neighbour_came_meanwhile);
    IN_A_PROCESS(somebody_who_comes_while_a_context_is_made);
    IN_A_PROCESS(somebody_who_goes_while_a_context_is_made);
    IN_A_PROCESS(somebody_else_whom_nobody_names_counts_as_ours);
    IN_A_PROCESS(a_device_that_is_gone_at_the_run);
    IN_A_PROCESS(without_a_management_library_the_device_is_asked);
    IN_A_PROCESS(a_part_of_a_device_is_not_told_of_by_the_whole);
    IN_A_PROCESS(the_library_is_not_opened_for_a_question_either);
    IN_A_PROCESS(a_library_that_is_gone_is_left_out);
    IN_A_PROCESS(what_nobody_has_measured_takes_a_context);
    IN_A_PROCESS(a_refusal_tells_what_does_and_makes_no_context_for_it);
    unlink(input);
    unlink(output);
    rmdir(folder);
    return TEST_END();
}

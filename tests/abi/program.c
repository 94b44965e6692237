/* program.c - a program built with the headers of before: its structs are smaller than today's,
 * and it runs as it did. Usage: abi_before MODEL FOLDER, abi_before --shapes. */
#include "shapes.h"

#include <stdio.h>
#include <string.h>
#include <tegula.h>
#include <tegula_memory.h>
#include <tegula_pool.h>
#include <tegula_tracker.h>
#include <unistd.h>

#define GUARD 0x5a

/* A struct with something behind it that is the program's own. */
#define GUARDED(type, name)                                                                    \
    struct {                                                                                   \
        type it;                                                                               \
        unsigned char behind[64];                                                              \
    } name;                                                                                    \
    memset(&name, 0, sizeof name);                                                             \
    memset(name.behind, GUARD, sizeof name.behind);                                            \
    name.it.size = sizeof name.it

static int failures;

static void check(int good, const char *what)
{
    if (!good) {
        printf("NOT: %s\n", what);
        failures++;
    }
}

static void untouched(const unsigned char *behind, const char *what)
{
    for (int i = 0; i < 64; i++)
        if (behind[i] != GUARD) {
            check(0, what);
            return;
        }
}

/* An array of 1 x 1 x 32 x 48 float32. */
static void write_input(const char *path)
{
    static float pixels[32 * 48];
    char head[128];
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(head + 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 32, 48), }",
           67);
    head[127] = '\n';
    for (int i = 0; i < 32 * 48; i++)
        pixels[i] = (float)(i % 17) / 17;
    FILE *f = fopen(path, "wb");
    check(f && fwrite(head, 1, 128, f) == 128 && fwrite(pixels, 4, 32 * 48, f) == 32 * 48 &&
              fclose(f) == 0,
          "the input is written");
}

static void run_a_job(const char *model, const char *folder)
{
    char in[512], out[512];
    tg_ctx *ctx = NULL;
    tg_opts *o = NULL;
    tg_job *job = NULL;
    GUARDED(tg_plan_info, plan);
    GUARDED(tg_run_result, res);
    GUARDED(tg_verify_result, verified);
    snprintf(in, sizeof in, "%s/before-in.npy", folder);
    snprintf(out, sizeof out, "%s/before-out.npy", folder);
    unlink(out);
    write_input(in);
    tg_status st = tg_ctx_open(NULL, &ctx);
    if (st == TG_OK && (st = tg_opts_new(ctx, &o)) == TG_OK &&
        (st = tg_opts_set(o, "model", model)) == TG_OK &&
        (st = tg_opts_set(o, "input", in)) == TG_OK &&
        (st = tg_opts_set(o, "output", out)) == TG_OK &&
        (st = tg_opts_set(o, "ram", "1GiB")) == TG_OK &&
        (st = tg_job_open(ctx, o, &job)) == TG_OK &&
        (st = tg_job_plan(job, &plan.it)) == TG_OK && (st = tg_job_run(job, &res.it)) == TG_OK)
        st = tg_job_verify(job, &verified.it);
    check(st == TG_OK, ctx ? tg_ctx_detail(ctx) : "a context");
    check(plan.it.size == sizeof plan.it && plan.it.peak_bytes > 0 && plan.it.n_lines > 0 &&
              plan.it.items == 1,
          "the plan is told");
    check(res.it.size == sizeof res.it && res.it.predicted_peak_bytes > 0 && res.it.output &&
              strcmp(res.it.output, out) == 0,
          "the result is told");
    check(verified.it.size == sizeof verified.it && verified.it.bit_equal &&
              verified.it.n_outputs == 1,
          "the comparison is told");
    untouched(plan.behind, "what lies behind a plan");
    untouched(res.behind, "what lies behind a result");
    untouched(verified.behind, "what lies behind a comparison");
    check(access(out, R_OK) == 0, "the output is there");
    tg_job_close(&job);
    tg_opts_free(&o);
    tg_ctx_close(&ctx);
}

/* A program of tomorrow asks for something that this library does not know, or does not. */
static void ask_for_more(void)
{
    struct {
        tg_system_memory it;
        uint64_t more;
    } s = {.it = {.size = sizeof s}};
    check(tg_memory_system("/", &s.it) == TG_OK && s.it.total_bytes > 0 &&
              s.it.size == sizeof s && s.more == 0,
          "a larger struct whose end is zero");
    s.more = 1;
    check(tg_memory_system("/", &s.it) == TG_E_ARG, "a larger struct whose end is set");
    s.it.size = 3;
    check(tg_memory_system("/", &s.it) == TG_E_ARG, "a size that is none");
    s.it.size = sizeof(size_t) + sizeof(uint64_t);
    s.it.available_bytes = 77;
    check(tg_memory_system("/", &s.it) == TG_OK && s.it.total_bytes > 0 &&
              s.it.available_bytes == 77,
          "a smaller struct gets its own members");
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--shapes") == 0) {
        print_shapes();
        return 0;
    }
    if (argc != 3)
        return 2;
    run_a_job(argv[1], argv[2]);
    ask_for_more();
    printf("%d failed\n", failures);
    return failures != 0;
}

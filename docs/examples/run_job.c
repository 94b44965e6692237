/* run_job.c - run a network over an image, file to file, with progress and with an answer to a
 * refusal.
 *
 *     run_job MODEL INPUT OUTPUT RAM
 *
 * Ctrl-C stops it with a valid journal; the same command continues. Exit code: 0 done, 2 the
 * budget is too small (what would do is printed), 1 anything else. */
#include <signal.h>
#include <stdio.h>

#include <tegula.h>
#include <tegula_memory.h>

/* On the thread that called tg_job_run, at most some ten times a second. */
static void show_progress(void *user, const tg_progress *p)
{
    char now[TG_SIZE_TEXT], most[TG_SIZE_TEXT];

    (void)user;
    fprintf(stderr, "%s %3.0f %%, %s of %s\n", p->phase, 100 * p->fraction,
            tg_size_text(p->memory_bytes, now, sizeof now),
            tg_size_text(p->predicted_bytes, most, sizeof most));
}

static void show_line(void *user, tg_log_level level, const char *line)
{
    (void)user;
    if (level <= TG_LOG_WARN)
        fprintf(stderr, "%s\n", line);
}

/* Each remedy was planned: with these options the job fits. */
static void show_refusal(const tg_refusal *r)
{
    char peak[TG_SIZE_TEXT];

    for (size_t i = 0; i < r->n_remedies; i++) {
        const tg_remedy *m = &r->remedy[i];
        printf("would fit:");
        for (size_t k = 0; k < m->n_options; k++)
            printf(" %s=%s", m->option[k].name, m->option[k].value);
        printf(", peak %s\n", tg_size_text(m->peak_bytes, peak, sizeof peak));
    }
}

static tg_status work(tg_ctx *ctx, tg_opts *o, char **argv)
{
    tg_job *job = NULL;
    tg_plan_info plan = {.size = sizeof plan};
    tg_run_result res = {.size = sizeof res};
    tg_status st;

    if ((st = tg_opts_set(o, "model", argv[1])) == TG_OK &&
        (st = tg_opts_set(o, "input", argv[2])) == TG_OK &&
        (st = tg_opts_set(o, "output", argv[3])) == TG_OK &&
        (st = tg_opts_set(o, "ram", argv[4])) == TG_OK &&
        (st = tg_job_open(ctx, o, &job)) == TG_OK && (st = tg_job_plan(job, &plan)) == TG_OK &&
        (st = tg_job_run(job, &res)) == TG_OK)
        printf("%s: %lld tiles, %.0f %% of the predicted memory\n", res.output,
               (long long)(res.tiles + res.tiles_resumed),
               100.0 * (double)res.measured_peak_bytes / (double)res.predicted_peak_bytes);
    tg_job_close(&job);
    return st;
}

int main(int argc, char **argv)
{
    tg_ctx_opts options = {.size = sizeof options, .log = show_line, .progress = show_progress};
    tg_ctx *ctx = NULL;
    tg_opts *o = NULL;
    tg_status st;

    if (argc != 5) {
        fprintf(stderr, "usage: run_job MODEL INPUT OUTPUT RAM\n");
        return 1;
    }
    if (tg_ctx_open(&options, &ctx) != TG_OK)
        return 1;
    signal(SIGINT, tg_cancel); /* signal handlers may call it */
    if ((st = tg_opts_new(ctx, &o)) == TG_OK)
        st = work(ctx, o, argv);
    if (st != TG_OK) {
        const tg_refusal *r = tg_ctx_refusal(ctx); /* NULL when it is not about memory */
        printf("%s: %s\n", tg_status_name(st), tg_ctx_detail(ctx));
        if (r)
            show_refusal(r);
    }
    tg_opts_free(&o);
    tg_ctx_close(&ctx);
    return st == TG_OK ? 0 : st == TG_E_BUDGET ? 2 : 1;
}

/* plan_only.c - say what a job would need, without running it: no pixel is read, nothing is
 * written.
 *
 *     plan_only MODEL INPUT RAM */
#include <stdio.h>

#include <tegula.h>
#include <tegula_memory.h>

static void show(const tg_plan_info *plan)
{
    char text[TG_SIZE_TEXT], budget[TG_SIZE_TEXT];

    for (size_t i = 0; i < plan->n_lines; i++)
        if (plan->lines[i].kind == TG_PLAN_MEMORY && plan->lines[i].bytes > 0)
            printf("%-12s %12s\n", plan->lines[i].name,
                   tg_size_text(plan->lines[i].bytes, text, sizeof text));
    printf("peak         %12s of %s\n", tg_size_text(plan->peak_bytes, text, sizeof text),
           tg_size_text(plan->budget_bytes, budget, sizeof budget));
}

int main(int argc, char **argv)
{
    tg_ctx *ctx = NULL;
    tg_opts *o = NULL;
    tg_job *job = NULL;
    tg_plan_info plan = {.size = sizeof plan}; /* every struct with a `size` wants it set */
    tg_status st;

    if (argc != 4) {
        fprintf(stderr, "usage: plan_only MODEL INPUT RAM\n");
        return 1;
    }
    if ((st = tg_ctx_open(NULL, &ctx)) == TG_OK && (st = tg_opts_new(ctx, &o)) == TG_OK &&
        (st = tg_opts_set(o, "model", argv[1])) == TG_OK &&
        (st = tg_opts_set(o, "input", argv[2])) == TG_OK &&
        (st = tg_opts_set(o, "ram", argv[3])) == TG_OK &&
        (st = tg_job_open(ctx, o, &job)) == TG_OK)
        st = tg_job_plan(job, &plan);
    if (st == TG_OK)
        show(&plan);
    else
        fprintf(stderr, "%s\n", ctx ? tg_ctx_detail(ctx) : tg_status_sentence(st));
    tg_job_close(&job); /* each of these takes a NULL, too */
    tg_opts_free(&o);
    tg_ctx_close(&ctx);
    return st == TG_OK ? 0 : 1;
}

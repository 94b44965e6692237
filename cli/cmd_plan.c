/* cmd_plan.c - tegula plan: what a run would need; touches no pixel. */
#include "batch.h"
#include "cli.h"
#include "text.h"

static tg_status print_json(cli *c, tg_job *job)
{
    char *json = NULL;
    const tg_status st = tg_job_plan_json(job, cli_flag(c, "why"), &json);
    if (st == TG_OK)
        cli_print_event("plan", NULL, json);
    tg_text_free(json);
    return st;
}

static void print_member(const char *json, const char *key, const char *title)
{
    size_t n = 0;
    const char *member = cli_json_member(json, key, &n);
    if (!member)
        return;
    puts(title);
    cli_print_json_n(stdout, member, n);
}

static void print_staged(const char *json)
{
    size_t n = 0;
    const char *staged = cli_json_member(json, "staged", &n);
    if (staged)
        cli_print_stages(staged, n);
    else
        print_member(json, "stage_list", "stages");
}

static void print_rejected(const char *json)
{
    size_t n = 0;
    const char *list = cli_json_member(json, "rejected", &n);
    if (list)
        cli_print_rejected(list, n);
}

/* Nothing fits: what was tried. The refusal itself follows on stderr. */
static void say_what_was_tried(cli *c, tg_job *job)
{
    char *json = NULL;
    if (tg_job_rejected_json(job, &json) == TG_OK) {
        if (c->json)
            cli_print_event("rejected", NULL, json);
        else
            print_rejected(json);
    }
    tg_text_free(json);
}

/* Where the network is cut, scratch, and the plans that lost, from the library's JSON. */
static tg_status print_why(tg_job *job, int64_t stages)
{
    char *json = NULL;
    const tg_status st = tg_job_plan_json(job, 1, &json);
    if (st == TG_OK && stages > 1) {
        print_member(json, "stage_cuts", "cut into stages");
        print_staged(json);
    }
    if (st == TG_OK) {
        print_member(json, "scratch", "input, decoded to scratch");
        print_rejected(json);
    }
    tg_text_free(json);
    return st;
}

static tg_status show(cli *c, tg_job *job)
{
    tg_plan_info plan = {.size = sizeof plan};
    tg_status st = tg_job_plan(job, &plan);
    if (st == TG_E_BUDGET && cli_flag(c, "why"))
        say_what_was_tried(c, job);
    if (st != TG_OK)
        return st;
    if (c->json)
        return print_json(c, job);
    st = cli_print_plan(c, job, &plan);
    return st == TG_OK && cli_flag(c, "why") ? print_why(job, plan.stages) : st;
}

tg_status cli_cmd_plan(cli *c)
{
    char name[BATCH_PATH];
    tg_job *job = NULL;
    tg_status st = TG_OK;
    if (cli_each_asked(c))
        return cli_plan_each(c);
    if (cli_each_of_one(c, name))
        st = cli_each_take_name(c, name);
    if (st == TG_OK)
        st = tg_job_open(c->ctx, c->opts, &job);
    tg_ctx_keep_model(c->ctx, 0); /* of cli_each_of_one */
    c->opened = st == TG_OK;
    if (st == TG_OK)
        st = show(c, job);
    if (st == TG_OK)
        st = cli_save_job(c, job);
    tg_job_close(&job);
    return st;
}

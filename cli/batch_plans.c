/* batch_plans.c - what all jobs of a list take: a line for each, and a sum. Touches no pixel. */
#include "batch.h"
#include "text.h"

#include <string.h>

typedef struct planned {
    uint64_t peak[BATCH_AT_ONCE]; /* the largest, largest first */
    double least, most;           /* seconds, of all */
    double longest[2];            /* least and most of one */
    uint64_t outputs;             /* bytes, of all */
    uint64_t budget;              /* of the last */
    int refused;
} planned;

static void count(planned *p, const tg_plan_info *i)
{
    uint64_t peak = i->peak_bytes;
    const double most = i->seconds_estimate,
                 least = i->seconds_least > 0 ? i->seconds_least : most;
    for (size_t k = 0; k < i->n_lines; k++)
        if (i->lines[k].kind == TG_PLAN_DISK && strcmp(i->lines[k].name, "output") == 0)
            p->outputs += i->lines[k].bytes;
    p->budget = i->budget_bytes;
    p->most += most;
    p->least += least;
    p->longest[0] = least > p->longest[0] ? least : p->longest[0];
    p->longest[1] = most > p->longest[1] ? most : p->longest[1];
    for (int k = 0; k < BATCH_AT_ONCE; k++)
        if (peak > p->peak[k]) {
            const uint64_t was = p->peak[k];
            p->peak[k] = peak;
            peak = was;
        }
}

static void put_row(const char *number, const char *peak, const char *time)
{
    printf("  %-6s  %-11s  %-26s  ", number, peak, time);
}

static void show_plan(batch *b, const batch_job *j, tg_job *job, const tg_plan_info *i)
{
    char number[16], a[CLI_TEXT], t[3 * CLI_TEXT], *json = NULL;
    if (b->c->json && tg_job_plan_json(job, cli_flag(b->c, "why"), &json) == TG_OK)
        cli_print_event("plan", j->input, json);
    tg_text_free(json);
    if (b->c->json)
        return;
    snprintf(number, sizeof number, "%d", (int)(j - b->job) + 1);
    put_row(number, cli_size(i->peak_bytes, a),
            cli_span(i->seconds_least, i->seconds_estimate, t));
    cli_put_clean(stdout, j->input);
    putchar('\n');
}

static void show_refused(batch *b, const batch_job *j, tg_status st)
{
    char number[16];
    const char *why = j->hindered ? j->hindered : tg_ctx_detail(b->c->ctx);
    if (b->c->json) {
        fputs("{\"event\":\"plan\"", stdout);
        cli_json_text(stdout, "file", j->input);
        cli_json_int(stdout, "exit", cli_exit_code(st));
        cli_json_text(stdout, "detail", why);
        fputs("}\n", stdout);
        return;
    }
    snprintf(number, sizeof number, "%d", (int)(j - b->job) + 1);
    put_row(number, "-", "-");
    cli_batch_put_of(stdout, j, why);
    putchar('\n');
}

static tg_status plan_one(batch *b, const batch_job *j, cli_batch_open *open, planned *p)
{
    tg_plan_info info = {.size = sizeof info};
    tg_job *job = NULL;
    tg_status st = open(b, j, &job);
    if (st == TG_OK)
        st = tg_job_plan(job, &info);
    if (st == TG_OK) {
        count(p, &info);
        show_plan(b, j, job, &info);
    } else if (st != TG_E_CANCELLED) {
        show_refused(b, j, st);
        p->refused++;
    }
    tg_job_close(&job);
    return st == TG_E_CANCELLED ? st : TG_OK;
}

static void show_sum(const batch *b, const planned *p)
{
    uint64_t peak = 0;
    char a[CLI_TEXT], d[CLI_TEXT], e[CLI_TEXT], f[CLI_TEXT], t[3 * CLI_TEXT];
    for (int i = 0; i < b->at_once; i++)
        peak += p->peak[i];
    /* One behind the other has all of the budget each. */
    const uint64_t budget = b->share_bytes ? b->budget_bytes : p->budget,
                   share = b->share_bytes ? b->share_bytes : p->budget;
    double least = p->least / b->at_once, most = p->most / b->at_once;
    least = least > p->longest[0] ? least : p->longest[0];
    most = most > p->longest[1] ? most : p->longest[1];
    if (b->c->json) {
        fputs("{\"event\":\"batch\"", stdout);
        cli_json_int(stdout, "jobs", b->n);
        cli_json_int(stdout, "refused", p->refused);
        cli_json_int(stdout, "at_once", b->at_once);
        cli_json_uint(stdout, "peak_bytes", peak);
        cli_json_uint(stdout, "output_bytes", p->outputs);
        cli_json_real(stdout, "seconds_least", least);
        cli_json_real(stdout, "seconds_estimate", most);
        cli_json_uint(stdout, "budget_bytes", budget);
        cli_json_uint(stdout, "share_bytes", share);
        fputs("}\n", stdout);
        return;
    }
    if (p->refused == b->n) { /* there is no sum, and no plan said its budget */
        put_row("all", "-", "-");
        puts("none of them can run");
        return;
    }
    put_row("all", cli_size(peak, a), cli_span(least, most, t));
    printf("%d at once, each of %s; budget %s; outputs %s\n", b->at_once, cli_size(share, d),
           cli_size(budget, e), cli_size(p->outputs, f));
}

tg_status cli_batch_plan(batch *b, cli_batch_open *open)
{
    planned p = {.refused = 0};
    tg_status st = TG_OK;
    if (!b->c->json) {
        put_row("job", "peak", "time");
        puts("input");
    }
    for (int i = 0; st == TG_OK && i < b->n; i++)
        st = tg_cancel_signal()
                 ? cli_fail(b->c, TG_E_CANCELLED, "stopped by signal %d", tg_cancel_signal())
                 : plan_one(b, &b->job[i], open, &p);
    if (st != TG_OK)
        return st;
    show_sum(b, &p);
    b->c->reported = p.refused > 0; /* each in its line */
    return p.refused ? TG_E_FORMAT : TG_OK;
}

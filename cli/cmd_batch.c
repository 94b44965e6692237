/* cmd_batch.c - tegula inpaint of many films: the list, the checks, then a plan of all or a run of each (batch.h). */
#include "batch.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>
#include <tegula_preset.h>
#include <unistd.h>

/* ---- Memory ------------------------------------------------------------------------------ */

void *cli_batch_take(batch *b, size_t bytes)
{
    void *at = NULL;
    return tg_pool_alloc(b->pool, bytes, "batch", &at) == TG_OK ? at : NULL;
}

char *cli_batch_text(batch *b, const char *text)
{
    const size_t n = strlen(text) + 1;
    char *at = cli_batch_take(b, n);
    if (at)
        memcpy(at, text, n);
    return at;
}

tg_status cli_batch_no_memory(batch *b)
{
    return cli_fail(b->c, TG_E_NOMEM, "%s: no memory for a list of jobs", b->list);
}

batch_job *cli_batch_add(batch *b)
{
    const size_t cells = (size_t)(b->n_columns ? b->n_columns : 1) * sizeof(char *);
    if (b->n == BATCH_JOBS)
        return NULL;
    if (b->n == b->room) {
        const int room = b->room ? 2 * b->room : 64;
        batch_job *grown = cli_batch_take(b, (size_t)room * sizeof *grown);
        if (!grown)
            return NULL;
        if (b->n)
            memcpy(grown, b->job, (size_t)b->n * sizeof *grown);
        (void)tg_pool_free(b->pool, b->job);
        b->job = grown;
        b->room = room;
    }
    batch_job *j = &b->job[b->n];
    *j = (batch_job){.cell = cli_batch_take(b, cells)};
    if (!j->cell)
        return NULL;
    memset(j->cell, 0, cells);
    b->n++;
    return j;
}

const char *cli_batch_place(const batch *b, const batch_job *j, char *buf, size_t cap)
{
    if (j && j->line)
        snprintf(buf, cap, "%s: line %d", b->list, j->line);
    else
        snprintf(buf, cap, "%s", j ? j->input : b->list);
    return buf;
}

/* ---- What a batch does not go with ------------------------------------------------------- */

/* One file, and many jobs that would write it. */
static tg_status names_one_file(cli *c)
{
    static const char *const one[] = {"log", "trace", "live", "plot"};
    for (size_t i = 0; i < sizeof one / sizeof one[0]; i++) {
        const char *value = tg_opts_get(c->opts, one[i]);
        if (value && *value)
            return cli_fail(
                c, TG_E_ARG,
                "--%s names one file, and a batch has many jobs: give each its own in "
                "a column %s of the table",
                one[i], one[i]);
    }
    return TG_OK;
}

bool cli_batch_asked(const cli *c)
{
    return tg_opts_get(c->opts, "batch") || tg_opts_get(c->opts, "video-dir") ||
           tg_opts_get(c->opts, "mask-dir") || tg_opts_get(c->opts, "batch-log") ||
           strcmp(tg_opts_origin(c->opts, "jobs"), "default") != 0;
}

static tg_status check_options(cli *c)
{
    const tg_opts *o = c->opts;
    const char *table = tg_opts_get(o, "batch");
    if (!table && !tg_opts_get(o, "video-dir"))
        return cli_fail(
            c, TG_E_ARG,
            "--mask-dir, --jobs and --batch-log are of many films: --batch JOBS.csv, or "
            "--video-dir DIR, is missing");
    if (table && tg_opts_get(o, "video-dir"))
        return cli_fail(c, TG_E_ARG,
                        "--batch and --video-dir are two ways to say what is to be "
                        "done: give one");
    if (tg_opts_get(o, "input"))
        return cli_fail(c, TG_E_ARG, "\"%s\": --%s says what is read already",
                        tg_opts_get(o, "input"), table ? "batch" : "video-dir");
    if (table && tg_opts_get(o, "output"))
        return cli_fail(c, TG_E_ARG, "-o \"%s\": outputs of --batch stand in its table",
                        tg_opts_get(o, "output"));
    if (table && tg_opts_get(o, "mask-dir"))
        return cli_fail(c, TG_E_ARG, "--mask-dir belongs to --video-dir");
    if (tg_opts_get(o, "preview"))
        return cli_fail(c, TG_E_ARG, "--preview is of one film");
    return names_one_file(c);
}

/* ---- The log's name ---------------------------------------------------------------------- */

static tg_status name_log(batch *b)
{
    char path[BATCH_PATH], folder[BATCH_PATH];
    const char *table = tg_opts_get(b->c->opts, "batch");
    tg_status st = TG_OK;
    int n;
    if (!table)
        st = cli_batch_output_folder(b, folder, sizeof folder);
    if (st != TG_OK || tg_opts_get(b->c->opts, "batch-log"))
        return st;
    if (table) {
        const size_t m = strlen(table);
        const int keep = (int)(m > 4 && strcmp(table + m - 4, ".csv") == 0 ? m - 4 : m);
        n = snprintf(path, sizeof path, "%.*s.log.csv", keep, table);
    } else {
        n = snprintf(path, sizeof path, "%s/batch.log.csv", folder);
    }
    return n < (int)sizeof path ? tg_opts_set(b->c->opts, "batch-log", path)
                                : cli_fail(b->c, TG_E_ARG, "%s: the name is too long", b->list);
}

/* ---- A plan ------------------------------------------------------------------------------ */

typedef struct planned {
    uint64_t peak[BATCH_AT_ONCE]; /* the largest, largest first */
    double least, most;           /* seconds, of all */
    double longest[2];            /* least and most of one */
    int refused;
} planned;

static void count(planned *p, const tg_plan_info *i)
{
    uint64_t peak = i->peak_bytes;
    const double most = i->seconds_estimate,
                 least = i->seconds_least > 0 ? i->seconds_least : most;
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
    if (b->c->json && tg_job_plan_json(job, 0, &json) == TG_OK)
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

static tg_status plan_one(batch *b, const batch_job *j, planned *p)
{
    tg_plan_info info = {.size = sizeof info};
    tg_opts *o = NULL;
    tg_job *job = NULL;
    tg_status st = j->hindered ? TG_E_NOT_FOUND : cli_batch_options(b, j, true, &o);
    const char *config = st == TG_OK ? tg_opts_get(b->c->opts, "config") : NULL;
    if (config)
        st = tg_opts_load(o, config);
    if (st == TG_OK)
        st = tg_job_open(b->c->ctx, o, &job);
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
    tg_opts_free(&o);
    return st == TG_E_CANCELLED ? st : TG_OK;
}

static void show_sum(const batch *b, const planned *p)
{
    uint64_t peak = 0;
    char a[CLI_TEXT], d[CLI_TEXT], e[CLI_TEXT], t[3 * CLI_TEXT];
    for (int i = 0; i < b->at_once; i++)
        peak += p->peak[i];
    double least = p->least / b->at_once, most = p->most / b->at_once;
    least = least > p->longest[0] ? least : p->longest[0];
    most = most > p->longest[1] ? most : p->longest[1];
    if (b->c->json) {
        fputs("{\"event\":\"batch\"", stdout);
        cli_json_int(stdout, "jobs", b->n);
        cli_json_int(stdout, "refused", p->refused);
        cli_json_int(stdout, "at_once", b->at_once);
        cli_json_uint(stdout, "peak_bytes", peak);
        cli_json_real(stdout, "seconds_least", least);
        cli_json_real(stdout, "seconds_estimate", most);
        cli_json_uint(stdout, "budget_bytes", b->budget_bytes);
        cli_json_uint(stdout, "share_bytes", b->share_bytes);
        fputs("}\n", stdout);
        return;
    }
    put_row("all", cli_size(peak, a), cli_span(least, most, t));
    printf("%d at once, each of %s; budget %s\n", b->at_once, cli_size(b->share_bytes, d),
           cli_size(b->budget_bytes, e));
}

static tg_status plan_all(batch *b)
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
                 : plan_one(b, &b->job[i], &p);
    if (st != TG_OK)
        return st;
    show_sum(b, &p);
    b->c->reported = p.refused > 0; /* each in its line */
    return p.refused ? TG_E_FORMAT : TG_OK;
}

/* ---- In order ---------------------------------------------------------------------------- */

static tg_status run_all(batch *b)
{
    tg_status st = cli_batch_log_open(b);
    if (st == TG_OK)
        st = cli_batch_run(b);
    return st == TG_OK ? cli_batch_summary(b) : st;
}

static tg_status work(batch *b)
{
    const char *table = tg_opts_get(b->c->opts, "batch");
    tg_status st = table ? cli_batch_read_table(b, table) : cli_batch_read_folders(b);
    if (st == TG_OK)
        st = cli_batch_share(b);
    if (st == TG_OK)
        st = name_log(b);
    if (st == TG_OK)
        st = cli_batch_check(b, tg_opts_get(b->c->opts, "batch-log"));
    if (st != TG_OK)
        return st;
    return cli_flag(b->c, "plan") ? plan_all(b) : run_all(b);
}

tg_status cli_cmd_batch(cli *c)
{
    batch b = {.c = c, .list = "the batch", .log = -1, .t0 = cli_now()};
    const tg_pool_opts how = {
        .size = sizeof how, .name = "batch", .margin_bytes = TG_POOL_NONE};
    tg_raw raw = {.size = sizeof raw};
    tg_status st = check_options(c);
    if (st != TG_OK)
        return st;
    tg_raw_host(&raw);
    st = tg_pool_open(c->ctx, &raw, &how, &b.pool);
    if (st == TG_OK)
        st = work(&b);
    if (b.log >= 0)
        close(b.log);
    tg_pool_close(&b.pool, NULL);
    return st;
}

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

static tg_status open_job(batch *b, const batch_job *j, tg_job **out)
{
    tg_opts *o = NULL;
    tg_status st = j->hindered ? TG_E_NOT_FOUND : cli_batch_options(b, j, true, &o);
    const char *config = st == TG_OK ? tg_opts_get(b->c->opts, "config") : NULL;
    if (config)
        st = tg_opts_load(o, config);
    if (st == TG_OK)
        st = tg_job_open(b->c->ctx, o, out);
    tg_opts_free(&o);
    return st;
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
    return cli_flag(b->c, "plan") ? cli_batch_plan(b, open_job) : run_all(b);
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

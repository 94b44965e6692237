/* batch_share.c - one budget for all jobs that run at once: what is allowed, less what the batch holds itself, in equal
 * parts; and so the threads. A part is fixed when the batch begins, so what a job gets does not depend on which others
 * are at work. */
#include "batch.h"
#include "text.h"

#include <stdlib.h>

#include <tegula_memory.h>

enum { MORE = 1 << 20 }; /* that the batch takes while it runs */

/* As a job reads --ram: a percentage is of what is free and what this process has already. */
static tg_status budget_of(batch *b)
{
    tg_free_memory now = {.size = sizeof now};
    tg_process_memory own = {.size = sizeof own};
    const char *ram = tg_opts_get(b->c->opts, "ram");
    char a[CLI_TEXT], c[CLI_TEXT];
    tg_status st = tg_memory_free_now(NULL, &now);
    if (st == TG_OK)
        st = tg_memory_process(NULL, &own);
    if (st != TG_OK)
        return cli_fail(b->c, st, "the system does not say how much memory is free");
    const uint64_t held = own.measured_bytes;
    b->budget_bytes = now.budget_bytes;
    if (ram &&
        (st = tg_size_parse(b->c->ctx, ram, now.free_bytes + held, &b->budget_bytes)) != TG_OK)
        return st;
    if (b->budget_bytes < held + MORE + (uint64_t)b->at_once * MORE)
        return cli_fail(b->c, TG_E_BUDGET,
                        "the budget is %s, and the batch itself takes %s of it: give a larger "
                        "--ram",
                        cli_size(b->budget_bytes, a), cli_size(held + MORE, c));
    b->share_bytes = (b->budget_bytes - held - MORE) / (uint64_t)b->at_once;
    return TG_OK;
}

static int processors(cli *c)
{
    char *json = NULL;
    size_t n = 0;
    int usable = 1;
    if (tg_memory_json(c->ctx, NULL, &json) == TG_OK) {
        const char *p = cli_json_member(json, "processors", &n);
        const char *v = p ? cli_json_member(p, "usable", &n) : NULL;
        usable = v ? atoi(v) : 1;
    }
    tg_text_free(json);
    return usable > 1 ? usable : 1;
}

tg_status cli_batch_share(batch *b)
{
    const char *jobs = tg_opts_get(b->c->opts, "jobs"), *t = tg_opts_get(b->c->opts, "threads");
    const int asked = jobs ? atoi(jobs) : 1;
    b->at_once = asked < b->n ? asked : b->n;
    if (b->at_once > 1) {
        const int all = t && atoi(t) > 0 ? atoi(t) : processors(b->c);
        b->threads = all > b->at_once ? all / b->at_once : 1;
    }
    return budget_of(b);
}

/* cmd_doctor.c - tegula doctor [JOB.json]: findings, each with its remedy; 0 when none blocks.
 */
#include "cli.h"
#include "text.h"

#include <string.h>

static const char *const words[] = {"ok", "notice", "blocks"};

/* A remedy with the job's own file in place of JOB. */
static const char *remedy_of(const tg_finding *f, const char *file, char *buf, size_t cap)
{
    static const char mark[] = "--config JOB";
    const char *at = file && !strchr(file, '\'') ? strstr(f->remedy, mark) : NULL;
    if (!at)
        return f->remedy;
    snprintf(buf, cap, "%.*s--config '%s'%s", (int)(at - f->remedy), f->remedy, file,
             at + sizeof mark - 1);
    return buf;
}

static void print_text(const tg_finding *f, const char *file)
{
    char buf[5000];
    printf("  %-8s %-10s ", words[f->state], f->about);
    cli_put_clean(stdout, f->says);
    if (f->remedy[0]) {
        fputs("\n           ->         ", stdout);
        cli_put_clean(stdout, remedy_of(f, file, buf, sizeof buf));
    }
    putchar('\n');
}

static void print_json(const tg_finding *list, size_t n, size_t blocks, const char *file)
{
    char buf[5000];
    printf("{\"event\":\"doctor\",\"blocks\":%zu,\"findings\":[", blocks);
    for (size_t i = 0; i < n; i++) {
        fputs(i ? ",{\"about\":" : "{\"about\":", stdout);
        cli_json_string(stdout, list[i].about);
        cli_json_text(stdout, "state", words[list[i].state]);
        cli_json_text(stdout, "says", list[i].says);
        cli_json_text(stdout, "remedy",
                      list[i].remedy[0] ? remedy_of(&list[i], file, buf, sizeof buf) : NULL);
        fputc('}', stdout);
    }
    fputs("]}\n", stdout);
}

tg_status cli_cmd_doctor(cli *c)
{
    tg_finding *list = NULL;
    tg_opts *job = NULL;
    const char *file = c->n_files ? c->files[0] : NULL;
    size_t n = 0, blocks = 0;
    tg_status st = TG_OK;
    if (file && (st = tg_opts_new(c->ctx, &job)) == TG_OK)
        st = tg_opts_load(job, file);
    if (st == TG_OK)
        st = tg_doctor(c->ctx, tg_opts_get(c->opts, "root"), job, &list, &n);
    for (size_t i = 0; i < n; i++)
        blocks += list[i].state == TG_FINDING_BLOCKS;
    if (st == TG_OK && c->json)
        print_json(list, n, blocks, file);
    for (size_t i = 0; i < n && !c->json; i++)
        print_text(&list[i], file);
    tg_memory_list_free(list);
    tg_opts_free(&job);
    if (st == TG_OK && blocks)
        st = cli_fail(c, TG_E_BUDGET, "%zu finding%s block%s", blocks, blocks == 1 ? "" : "s",
                      blocks == 1 ? "s" : "");
    return st;
}

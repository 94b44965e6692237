/* cmd_copy.c - tegula copy: the same reader and writer, no network. */
#include "cli.h"
#include "text.h"

tg_status cli_cmd_copy(cli *c)
{
    char t[CLI_TEXT], m[3 * CLI_TEXT];
    const double start = cli_now();
    const char *out = tg_opts_get(c->opts, "output");
    const tg_status st = tg_copy(c->ctx, c->opts);
    if (st != TG_OK)
        return st;
    cli_progress_clear(c);
    if (c->json) {
        fputs("{\"event\":\"done\"", stdout);
        cli_json_real(stdout, "seconds", cli_now() - start);
        cli_json_text(stdout, "output", out);
        fputs("}\n", stdout);
    } else if (!c->quiet) {
        cli_put_clean(stdout, out);
        printf(": copied in %s%s; %s\n", cli_seconds(cli_now() - start, t),
               cli_memory(c->progress.memory, c->progress.budget, m), cli_opens_in(out));
    }
    return TG_OK;
}

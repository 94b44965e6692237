/* cmd_info.c - tegula info FILE...: one block, or one JSON line, per file. */
#include "cli.h"
#include "text.h"

tg_status cli_cmd_info(cli *c)
{
    for (int i = 0; i < c->n_files; i++) {
        char *json = NULL;
        const tg_status st = tg_describe(c->ctx, c->files[i], &json);
        if (st != TG_OK)
            return st;
        if (c->json) {
            cli_print_event("info", json);
        } else {
            cli_put_clean(stdout, c->files[i]);
            putchar('\n');
            cli_print_json(stdout, json);
        }
        tg_text_free(json);
    }
    return TG_OK;
}

/* cmd_info.c - tegula info FILE...: one block, or one JSON line, per file. */
#include "cli.h"
#include "text.h"

static tg_status show(cli *c, const char *path)
{
    char *json = NULL;
    const tg_status st = tg_describe_part(c->ctx, path, c->opts, &json);
    if (st != TG_OK)
        return st;
    if (c->json) {
        cli_print_event("info", path, json);
    } else {
        cli_put_clean(stdout, path);
        putchar('\n');
        (c->verbose ? cli_print_json : cli_print_json_page)(stdout, json);
    }
    tg_text_free(json);
    return TG_OK;
}

/* A file that cannot be described does not hide the ones after it, a request to stop does; the
 * exit code is the last failure's. */
tg_status cli_cmd_info(cli *c)
{
    tg_status st = TG_OK;
    for (int i = 0; i < c->n_files; i++) {
        const tg_status one = show(c, c->files[i]);
        if (one == TG_OK)
            continue;
        st = one;
        cli_report(c, one);
        c->reported = true;
        if (one == TG_E_CANCELLED)
            break;
    }
    return st;
}

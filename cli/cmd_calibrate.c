/* cmd_calibrate.c - tegula calibrate: measure this machine once. */
#include "cli.h"
#include "text.h"

tg_status cli_cmd_calibrate(cli *c)
{
    char t[CLI_TEXT];
    char *json = NULL;
    const double start = cli_now();
    const tg_status st = tg_calibrate(c->ctx, &json);
    if (st != TG_OK)
        return st;
    cli_progress_clear(c);
    if (c->json)
        cli_print_event("calibrate", NULL, json);
    else if (!c->quiet)
        printf("measured in %s; tegula plan estimates by it from now on\n",
               cli_seconds(cli_now() - start, t));
    tg_text_free(json);
    return TG_OK;
}

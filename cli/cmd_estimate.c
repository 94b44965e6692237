/* cmd_estimate.c - tegula estimate data|batch|training|gpu|video: the library's answer as lines, or
 * as one JSON object. What does not fit is shown too, and the exit code is 71. */
#include "cli.h"
#include "text.h"

tg_status cli_cmd_estimate(cli *c)
{
    char *json = NULL;
    if (!c->n_files)
        return cli_fail(c, TG_E_ARG, "estimate what? data, batch, training, gpu or video");
    const tg_status st =
        tg_estimate_json(c->ctx, c->files[0], c->opts, (const char *const *)c->files + 1,
                         (size_t)c->n_files - 1, &json);
    if (json && c->json)
        cli_print_event("estimate", NULL, json);
    else if (json)
        cli_print_json(stdout, json);
    tg_text_free(json);
    return st;
}

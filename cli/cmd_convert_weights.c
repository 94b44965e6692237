/* cmd_convert_weights.c - tegula convert-weights: tensors of any file that is read, as safetensors. */
#include "cli.h"
#include "text.h"

tg_status cli_cmd_convert_weights(cli *c)
{
    char t[CLI_TEXT];
    const double start = cli_now();
    const char *out = tg_opts_get(c->opts, "output");
    const tg_status st = tg_convert_weights(c->ctx, c->opts);
    if (st != TG_OK)
        return st;
    if (c->json) {
        fputs("{\"event\":\"done\"", stdout);
        cli_json_real(stdout, "seconds", cli_now() - start);
        cli_json_text(stdout, "output", out);
        fputs("}\n", stdout);
    } else if (!c->quiet) {
        cli_put_clean(stdout, out);
        printf(": converted in %s\n", cli_seconds(cli_now() - start, t));
    }
    return TG_OK;
}

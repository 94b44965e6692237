/* cmd_preview.c - tegula preview: three crops as a PNG, before an hour is spent on the image.
 */
#include "cli.h"
#include "text.h"

#include <string.h>

static const char *what_it_shows(const tg_opts *o)
{
    const char *method = tg_opts_get(o, "method");
    const char *post = tg_opts_get(o, "post"), *labels = tg_opts_get(o, "labels");
    if (!tg_opts_get(o, "preview"))
        return labels || (post && strcmp(post, "none") != 0)
                   ? "raw, result, and outlines or difference"
                   : "raw, result and difference";
    if (method ? strcmp(method, "propagate") != 0 : tg_opts_get(o, "weights") != NULL)
        return "frame, mask, result";
    return "frame, mask, motion, what is revealed, result";
}

tg_status cli_cmd_preview(cli *c)
{
    tg_job *job = NULL;
    const double start = cli_now();
    const char *out = tg_opts_get(c->opts, "output");
    tg_status st = tg_job_open(c->ctx, c->opts, &job);
    c->opened = st == TG_OK;
    if (st == TG_OK)
        st = tg_job_preview(job);
    tg_job_close(&job);
    if (st != TG_OK)
        return st;
    cli_progress_clear(c);
    char t[CLI_TEXT], m[3 * CLI_TEXT];
    if (c->json) {
        fputs("{\"event\":\"done\"", stdout);
        cli_json_real(stdout, "seconds", cli_now() - start);
        cli_json_text(stdout, "output", out);
        fputs("}\n", stdout);
    } else if (!c->quiet) {
        cli_put_clean(stdout, out);
        printf(": %s in %s%s; open with any image viewer\n", what_it_shows(c->opts),
               cli_seconds(cli_now() - start, t),
               cli_memory(c->progress.memory, c->progress.budget, m));
    }
    return TG_OK;
}

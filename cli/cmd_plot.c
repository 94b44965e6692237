/* cmd_plot.c - tegula plot LOG.csv -o OUT.svg: draw what --log wrote. */
#include "cli.h"
#include "text.h"

#include <string.h>
#include <tegula_tracker.h>
#include <unistd.h>

static tg_theme theme_of(const char *name)
{
    return strcmp(name, "dark") == 0    ? TG_THEME_DARK
           : strcmp(name, "light") == 0 ? TG_THEME_LIGHT
                                        : TG_THEME_AUTO;
}

static void close_text(const char *out, const tg_plot_result *r)
{
    char a[CLI_TEXT], t[CLI_TEXT];
    cli_put_clean(stdout, out);
    printf(": %lld samples in %s, maximum %s in phase ", (long long)r->samples,
           cli_seconds(r->seconds, t), cli_size(r->maximum.bytes, a));
    cli_put_clean(stdout, r->maximum.phase);
    printf(", tile %lld%s\n", (long long)r->maximum.tile,
           r->unfinished ? "; the last line has no end and is left out" : "");
}

static void close_event(const char *out, const tg_plot_result *r)
{
    fputs("{\"event\":\"done\"", stdout);
    cli_json_int(stdout, "samples", r->samples);
    cli_json_real(stdout, "seconds", r->seconds);
    cli_json_uint(stdout, "maximum_bytes", r->maximum.bytes);
    cli_json_real(stdout, "maximum_seconds", r->maximum.seconds);
    cli_json_text(stdout, "maximum_phase", r->maximum.phase);
    cli_json_int(stdout, "maximum_tile", r->maximum.tile);
    cli_json_uint(stdout, "predicted_bytes", r->predicted_bytes);
    cli_json_uint(stdout, "budget_bytes", r->budget_bytes);
    fputs(r->unfinished ? ",\"unfinished\":true" : ",\"unfinished\":false", stdout);
    cli_json_text(stdout, "output", out);
    fputs("}\n", stdout);
}

tg_status cli_cmd_plot(cli *c)
{
    const char *out = tg_opts_get(c->opts, "output");
    const tg_plot_opts o = {.size = sizeof o, .theme = theme_of(tg_opts_get(c->opts, "theme"))};
    tg_plot_result r = {.size = sizeof r};
    int there;
    tg_status st = tg_opts_open_output(c->opts, "output", TG_OUTPUT_LOOK, &there);
    if (there >= 0)
        close(there);
    if (st == TG_OK)
        st = tg_plot(c->ctx, tg_opts_get(c->opts, "input"), out, &o, &r);
    if (st != TG_OK)
        return st;
    if (c->json)
        close_event(out, &r);
    else if (!c->quiet)
        close_text(out, &r);
    return TG_OK;
}

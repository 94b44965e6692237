/* cmd_inpaint.c - tegula inpaint: a run, its plan, or a strip of one frame, of a job that removes something from a film. */
#include "batch.h"

#include <string.h>

static tg_status check(cli *c)
{
    if (!tg_opts_get(c->opts, "input"))
        return cli_fail(c, TG_E_ARG, "inpaint: the input file is missing");
    const char *mode = tg_opts_get(c->opts, "mode");
    if (!tg_opts_get(c->opts, "mask") && !tg_opts_get(c->opts, "mask-box") &&
        !(mode && strstr(mode, "outpainting")))
        return cli_fail(c, TG_E_ARG,
                        "what is to be removed is missing: --mask FILE, or --mask-box x,y,w,h; "
                        "--mode outpainting takes none");
    if (cli_flag(c, "plan") && tg_opts_get(c->opts, "preview"))
        return cli_fail(c, TG_E_ARG, "--plan makes no frame, and --preview one");
    if (!cli_flag(c, "plan") && !tg_opts_get(c->opts, "output"))
        return cli_fail(c, TG_E_ARG, "the output (-o %s) is missing",
                        tg_opts_get(c->opts, "preview") ? "OUT.png" : "OUT.mp4");
    return TG_OK;
}

/* Nobody asked for a method: which one it is. */
static void say_method(const cli *c)
{
    const char *origin = tg_opts_origin(c->opts, "method");
    if (!c->quiet && !c->json && !cli_flag(c, "plan") &&
        (!origin || strcmp(origin, "default") == 0) && !tg_opts_get(c->opts, "weights"))
        fputs("method: propagate, built in: what other frames show; it invents nothing "
              "(--method)\n",
              stderr);
}

/* --preset auto, --allow-lower-quality: settings are chosen before anything else. */
static tg_status choose(cli *c)
{
    char *json = NULL;
    const tg_status st = tg_inpaint_auto(c->ctx, c->opts, &json);
    if (json && c->json)
        cli_print_event("inpaint_auto", NULL, json);
    else if (json && !c->quiet)
        cli_print_ways(cli_flag(c, "plan") ? stdout : stderr, json);
    tg_text_free(json);
    return st;
}

/* Nothing that a run left is worth going on with: what is begun anew replaces it. */
static bool is_empty(cli *c)
{
    tg_output_status s = {.size = sizeof s};
    return tg_output_look(c->ctx, tg_opts_get(c->opts, "output"), &s) == TG_OK &&
           s.state != TG_STATE_FINISHED && s.tiles <= 0 && s.frames_safe <= 0;
}

/* Memory that was planned is not there: with --allow-lower-quality settings are chosen for what is. What is safe by then was
 * made with others, so it stays what it is. */
static tg_status run_with_less(cli *c)
{
    static const char *const share[] = {"80%", "60%", "40%"};
    tg_status st = cli_cmd_run(c);
    for (int i = 0; i < 3 && st == TG_E_NOMEM && cli_flag(c, "allow-lower-quality"); i++) {
        if ((is_empty(c) && tg_opts_set(c->opts, "yes", "") != TG_OK) ||
            tg_opts_set(c->opts, "ram", share[i]) != TG_OK)
            return st;
        cli_progress_clear(c);
        if (!c->quiet)
            fprintf(stderr, "memory that was free is gone: settings for %s of what is\n",
                    share[i]);
        st = choose(c);
        if (st == TG_OK)
            st = cli_cmd_run(c);
    }
    return st;
}

tg_status cli_cmd_inpaint(cli *c)
{
    if (cli_batch_asked(c))
        return cli_cmd_batch(c);
    tg_status st = check(c);
    if (st == TG_OK)
        st = choose(c);
    if (st != TG_OK)
        return st;
    say_method(c);
    return cli_flag(c, "plan")               ? cli_cmd_plan(c)
           : tg_opts_get(c->opts, "preview") ? cli_cmd_preview(c)
                                             : run_with_less(c);
}

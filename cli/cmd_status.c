/* cmd_status.c - tegula status OUT: how far a run is.
 *
 * The exit code is that of the run: 0 works, 130 was stopped and goes on with the same command, 73 the
 * output is finished, 65 nobody goes on with what is there. */
#include "cli.h"
#include "text.h"

#include <inttypes.h>
#include <math.h>

static const char *word_of(tg_output_state state)
{
    static const char *const word[] = {"running", "stopped", "finished", "stale"};
    return (unsigned)state < 4 ? word[state] : "?";
}

static tg_status answer_of(tg_output_state state)
{
    static const tg_status answer[] = {TG_OK, TG_E_CANCELLED, TG_E_EXISTS, TG_E_CHANGED};
    return (unsigned)state < 4 ? answer[state] : TG_E_INTERNAL;
}

/* ---- For programs ------------------------------------------------------------------------ */

static double known(double v)
{
    return v < 0 ? (double)NAN : v;
}

static void put_known(const char *key, int64_t v, int is_known)
{
    if (is_known)
        cli_json_int(stdout, key, v);
    else
        cli_json_real(stdout, key, (double)NAN);
}

static void print_event(const char *output, const tg_output_status *s)
{
    const int staged = s->stages > 1;
    fputs("{\"event\":\"status\"", stdout);
    cli_json_text(stdout, "output", output);
    cli_json_text(stdout, "state", word_of(s->state));
    if (s->why[0])
        cli_json_text(stdout, "why", s->why);
    put_known("process", s->process, s->process != 0);
    cli_json_text(stdout, "input", s->input[0] ? s->input : NULL);
    cli_json_text(stdout, "model", s->model[0] ? s->model : NULL);
    put_known("item", s->item, staged);
    put_known("items", s->items, staged);
    put_known("stage", s->stage, staged);
    put_known("stages", s->stages, s->stages != 0);
    cli_json_key(stdout, "again");
    fputs(s->again ? "true" : "false", stdout);
    put_known("cell", s->cell, staged);
    put_known("cells", s->cells, staged);
    put_known("rows", s->rows, staged);
    put_known("rows_in_all", s->rows_in_all, staged);
    cli_json_int(stdout, "tiles", s->tiles);
    put_known("tiles_in_all", s->tiles_in_all, s->tiles_in_all != 0);
    cli_json_real(stdout, "fraction", known(s->fraction));
    cli_json_real(stdout, "seconds", known(s->seconds));
    cli_json_real(stdout, "seconds_left", known(s->seconds_left));
    cli_json_real(stdout, "tiles_per_second",
                  s->tiles_per_second > 0 ? s->tiles_per_second : (double)NAN);
    if (s->frames_in_all) {
        cli_json_int(stdout, "frames", s->frames);
        cli_json_int(stdout, "frames_safe", s->frames_safe);
        cli_json_int(stdout, "frames_in_all", s->frames_in_all);
        cli_json_real(stdout, "frames_per_second",
                      s->frames_per_second > 0 ? s->frames_per_second : (double)NAN);
    }
    fputs("}\n", stdout);
}

/* ---- For people -------------------------------------------------------------------------- */

static void put_name(const char *what, const char *name)
{
    if (!name[0])
        return;
    printf("  %-9s", what);
    cli_put_clean(stdout, name);
    putchar('\n');
}

static void put_stage(const tg_output_status *s)
{
    if (s->stages == 1)
        puts("  stages   one");
    if (s->stages < 2)
        return;
    if (s->items > 1)
        printf("  item     %" PRId64 " of %" PRId64 "\n", s->item, s->items);
    printf("  stage    %" PRId64 " of %" PRId64 "%s; cell %" PRId64 " of %" PRId64
           ", row %" PRId64 " of %" PRId64 "\n",
           s->stage, s->stages, s->again ? ", once more" : "", s->cell, s->cells, s->rows,
           s->rows_in_all);
}

static void put_time(const tg_output_status *s)
{
    char t[CLI_TEXT];
    if (s->seconds < 0)
        return;
    printf("  time     %s", cli_seconds(s->seconds, t));
    if (s->frames_per_second > 0)
        printf(", %.3g fps", s->frames_per_second);
    else if (s->tiles_per_second > 0)
        printf(", %.3g tiles/s", s->tiles_per_second);
    if (s->seconds_left >= 0)
        printf(", about %s left", cli_seconds(s->seconds_left, t));
    putchar('\n');
}

static void put_state(const tg_output_status *s)
{
    fputs(word_of(s->state), stdout);
    if (s->state == TG_STATE_RUNNING && s->process)
        printf(", process %" PRId64, s->process);
    if (s->state == TG_STATE_STOPPED)
        fputs("; the same command goes on, if its input and model are as they were", stdout);
    if (s->why[0])
        printf(": %s; the command with -y starts over", s->why);
    putchar('\n');
}

static void print_text(const char *output, const tg_output_status *s)
{
    cli_put_clean(stdout, output);
    fputs(": ", stdout);
    put_state(s);
    if (s->state == TG_STATE_FINISHED)
        return;
    put_name("input", s->input);
    put_name("model", s->model);
    put_stage(s);
    if (s->frames_in_all)
        printf("  frames   %" PRId64 " of %" PRId64, s->frames, s->frames_in_all);
    else
        printf("  tiles    %" PRId64, s->tiles);
    if (s->frames_in_all && s->frames_safe != s->frames)
        printf(", %" PRId64 " of them safe", s->frames_safe);
    if (s->tiles_in_all && !s->frames_in_all)
        printf(" of %" PRId64, s->tiles_in_all);
    if (s->fraction >= 0)
        printf("; %.1f %% of the work", 100 * s->fraction);
    putchar('\n');
    put_time(s);
}

tg_status cli_cmd_status(cli *c)
{
    tg_output_status s = {.size = sizeof s};
    const char *output = tg_opts_get(c->opts, "input");
    const tg_status st = tg_output_look(c->ctx, output, &s);
    if (st != TG_OK)
        return st;
    if (c->json)
        print_event(output, &s);
    else if (!c->quiet)
        print_text(output, &s);
    c->reported = true; /* how the run stands is no failure of the question */
    return answer_of(s.state);
}

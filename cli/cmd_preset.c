/* cmd_preset.c - tegula preset list|show|save|auto: named sets of settings. */
#include "cli.h"
#include "text.h"

#include <inttypes.h>
#include <string.h>

static const char *from_text(const tg_preset_info *i)
{
    return i->from == TG_PRESET_BUILT_IN ? "built in"
           : i->from == TG_PRESET_FILE   ? "file"
                                         : "yours";
}

/* Members of an object, the first without a comma. */
static void put_members(const tg_preset_info *i)
{
    static const char *const from[] = {"built in", "user", "file"};
    fputs("\"name\":", stdout);
    cli_json_string(stdout, i->name);
    cli_json_text(stdout, "from", from[i->from]);
    cli_json_key(stdout, "hides_built_in");
    fputs(i->hides ? "true" : "false", stdout);
    cli_json_text(stdout, "path", i->path);
    cli_json_text(stdout, "description", i->description);
    if (i->problem[0])
        cli_json_text(stdout, "problem", i->problem);
    if (i->why[0])
        cli_json_text(stdout, "why", i->why);
    if (!i->device.memory_bytes)
        return;
    fputs(",\"device\":{\"memory_bytes\":", stdout);
    printf("%" PRIu64, i->device.memory_bytes);
    cli_json_int(stdout, "tile", i->device.tile);
    cli_json_int(stdout, "batch", i->device.batch);
    cli_json_text(stdout, "precision", i->device.precision);
    fputc('}', stdout);
}

/* ---- list -------------------------------------------------------------------------------- */

static void list_text(const tg_preset_info *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        printf("  %-16s %-8s  ", list[i].name, from_text(&list[i]));
        if (list[i].problem[0])
            fputs("does not load: ", stdout);
        cli_put_clean(stdout, list[i].problem[0] ? list[i].problem : list[i].description);
        puts(list[i].hides ? " (in place of the built-in one)" : "");
    }
}

static void list_json(const tg_preset_info *list, size_t n)
{
    fputs("{\"event\":\"presets\",\"presets\":[", stdout);
    for (size_t i = 0; i < n; i++) {
        fputs(i ? ",{" : "{", stdout);
        put_members(&list[i]);
        fputc('}', stdout);
    }
    fputs("]}\n", stdout);
}

static tg_status list(cli *c)
{
    tg_preset_info *all = NULL;
    size_t n = 0;
    const tg_status st = tg_preset_list(c->ctx, &all, &n);
    if (st == TG_OK && c->json)
        list_json(all, n);
    else if (st == TG_OK)
        list_text(all, n);
    tg_preset_list_free(all);
    return st;
}

enum { MEANING = 24 }; /* column */

/* ---- show -------------------------------------------------------------------------------- */

static bool is_set(const tg_opts *o, const char *name)
{
    return strcmp(tg_opts_origin(o, name), "default") != 0;
}

static void show_text(const tg_preset_info *i, const tg_opts *o)
{
    size_t n;
    char size[CLI_TEXT];
    const tg_option *t = tg_option_table(&n);
    printf("%s (%s: ", i->name, from_text(i));
    cli_put_clean(stdout, i->path);
    fputs(")\n  ", stdout);
    cli_put_wrapped(stdout, i->description, 2, 2);
    if (i->why[0]) {
        fputs("  ", stdout);
        cli_put_wrapped(stdout, i->why, 2, 2);
    }
    for (size_t k = 0; k < n; k++) {
        if (!is_set(o, t[k].name))
            continue;
        const int at = printf("  %s=", t[k].name);
        cli_put_clean(stdout, tg_opts_get(o, t[k].name));
        const int end = at + (int)strlen(tg_opts_get(o, t[k].name));
        const int column = end < MEANING ? MEANING : end + 2;
        printf("%*s", column - end, "");
        cli_put_wrapped(stdout, t[k].help, column, MEANING);
    }
    if (i->device.memory_bytes)
        printf("  device part, %s: tile %" PRId64 ", batch %" PRId64
               ", %s; not used: a plan on a GPU chooses its own\n",
               cli_size(i->device.memory_bytes, size), i->device.tile, i->device.batch,
               i->device.precision);
}

static void show_json(const tg_preset_info *i, const tg_opts *o)
{
    size_t n;
    bool comma = false;
    const tg_option *t = tg_option_table(&n);
    fputs("{\"event\":\"preset\",", stdout);
    put_members(i);
    fputs(",\"settings\":[", stdout);
    for (size_t k = 0; k < n; k++) {
        if (!is_set(o, t[k].name))
            continue;
        fputs(comma ? ",{\"name\":" : "{\"name\":", stdout);
        cli_json_string(stdout, t[k].name);
        cli_json_text(stdout, "value", tg_opts_get(o, t[k].name));
        cli_json_text(stdout, "meaning", t[k].help);
        fputc('}', stdout);
        comma = true;
    }
    fputs("]}\n", stdout);
}

static tg_status show(cli *c)
{
    tg_preset_info info;
    tg_opts *settings = NULL;
    const tg_status st = tg_preset_load(c->ctx, c->files[1], &info, &settings);
    if (st == TG_OK && c->json)
        show_json(&info, settings);
    else if (st == TG_OK)
        show_text(&info, settings);
    tg_opts_free(&settings);
    return st;
}

/* ---- save -------------------------------------------------------------------------------- */

static tg_status save(cli *c)
{
    tg_preset_info info;
    const tg_status st = tg_preset_save(c->ctx, c->files[1], c->opts, &info);
    if (st == TG_OK && c->json) {
        fputs("{\"event\":\"done\"", stdout);
        cli_json_text(stdout, "name", info.name);
        cli_json_text(stdout, "output", info.path);
        fputs("}\n", stdout);
    } else if (st == TG_OK && !c->quiet) {
        cli_put_clean(stdout, info.path);
        printf(": --preset %s takes it\n", info.name);
    }
    return st;
}

/* ---- auto -------------------------------------------------------------------------------- */

static tg_status automatic(cli *c)
{
    char *json = NULL;
    const char *output = strcmp(tg_opts_origin(c->opts, "output"), "command line") == 0
                             ? tg_opts_get(c->opts, "output")
                             : NULL; /* a job file's is the job's */
    tg_status st = TG_OK;
    if (c->n_files > 1)
        st = tg_opts_set(c->opts, "input", c->files[1]);
    if (st == TG_OK)
        st = tg_preset_auto(c->ctx, c->opts, &json);
    if (st == TG_OK && c->json)
        cli_print_event("preset_auto", NULL, json);
    else if (st == TG_OK && !c->quiet)
        cli_print_json(stdout, json);
    if (st == TG_OK && output && !c->json && !c->quiet) {
        cli_put_clean(stdout, output);
        puts(": --preset takes it");
    }
    tg_text_free(json);
    return st;
}

/* ---- Words ------------------------------------------------------------------------------- */

static const struct {
    const char *word;
    int min_files, max_files; /* behind the word */
    const char *what;         /* they are */
    tg_status (*run)(cli *c);
} words[] = {
    {"list", 0, 0, "", list},
    {"show", 1, 1, " NAME", show},
    {"save", 1, 1, " NAME", save},
    {"auto", 0, 1, " -m MODEL INPUT", automatic},
};

tg_status cli_cmd_preset(cli *c)
{
    const int n = c->n_files - 1;
    char known[96] = "";
    for (size_t i = 0, at = 0; i < sizeof words / sizeof words[0]; i++) {
        at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", i ? ", " : "",
                               words[i].word);
        if (n < 0 || strcmp(words[i].word, c->files[0]) != 0)
            continue;
        if (n < words[i].min_files || n > words[i].max_files)
            return cli_fail(c, TG_E_ARG, "write: tegula preset %s%s", words[i].word,
                            words[i].what);
        return words[i].run(c);
    }
    return cli_fail(c, TG_E_ARG, "preset%s%s: one of %s is expected", n < 0 ? "" : " ",
                    n < 0 ? "" : c->files[0], known);
}

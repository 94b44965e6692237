/* parse.c - words of the command line into options, from the library's table alone.
 *
 * Known spellings: --name VALUE, --name=VALUE, --switch, --name[=VALUE], -m VALUE, -mVALUE, -qv
 * (switches together), -- (only files follow). A value is taken as it comes, even when it
 * begins with a dash; what it may be is the table's business (tg_opts_set), and so is naming
 * the nearest option for a misspelt one. */
#include "cli.h"

#include <string.h>

bool cli_word_in(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *p = list; p && (p = strstr(p, word)) != NULL; p += n)
        if ((p == list || p[-1] == ' ') && (p[n] == ' ' || p[n] == 0))
            return true;
    return false;
}

bool cli_flag(const cli *c, const char *name)
{
    const char *v = tg_opts_get(c->opts, name);
    return v && cli_word_in("true yes on 1", v);
}

static tg_status unknown(cli *c, const char *word, size_t n)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(n < 63 ? n : 63), word);
    return tg_opts_set(c->opts, name, ""); /* fails, and its detail names the nearest */
}

/* Why an option that a verb might well have is not one of it; "" where nobody would ask. */
static const char *why_not(const cli *c, const char *option)
{
    if (strcmp(option, "output") == 0 && c->verb->run == cli_cmd_status)
        return ": name the output alone, tegula status OUT";
    if (strcmp(option, "raw") == 0 && c->verb->run == cli_cmd_info)
        return ": frames without a header say nothing of themselves, plan says how many there "
               "are";
    return strcmp(option, "machine") == 0 ? ": a job runs on the machine it is started on, "
                                            "plan says what it would do there"
                                          : "";
}

static tg_status belongs(cli *c, const tg_option *o)
{
    return cli_word_in(o->verbs, c->verb->name)
               ? TG_OK
               : cli_fail(c, TG_E_ARG, "--%s means nothing to %s%s (it belongs to: %s)",
                          o->name, c->verb->name, why_not(c, o->name), o->verbs);
}

static tg_status set(cli *c, const tg_option *o, const char *value)
{
    const tg_status st = belongs(c, o);
    if (st != TG_OK)
        return st;
    const char *name = o->name;
    if (strcmp(name, "input") == 0 && strchr(value, '='))
        name = "input-tensor"; /* --input NAME=FILE */
    if (strcmp(name, "verbose") == 0)
        c->verbose++;
    return tg_opts_set(c->opts, name, value);
}

static tg_status missing(cli *c, const tg_option *o)
{
    const tg_status st = belongs(c, o);
    return st != TG_OK
               ? st
               : cli_fail(c, TG_E_ARG, "--%s: a value is missing (%s)", o->name, o->arg);
}

/* --name, --name VALUE, --name=VALUE. `next` is the following word or NULL. */
static tg_status long_option(cli *c, const char *word, const char *next, bool *took_next)
{
    const char *eq = strchr(word, '=');
    const size_t n = eq ? (size_t)(eq - word) : strlen(word);
    const tg_option *o = n > 0 ? tg_option_find(word, n) : NULL;
    if (!o || (n == 1 && o->name[1])) /* -m is no --m, but --z is a name */
        return unknown(c, word, n);
    if (eq)
        return set(c, o, eq + 1);
    if (!o->arg || *o->arg == '[') /* nothing need follow */
        return set(c, o, o->arg ? "" : "true");
    if (!next)
        return missing(c, o);
    *took_next = true;
    return set(c, o, next);
}

/* -q, -qv, -m VALUE, -mVALUE. */
static tg_status short_options(cli *c, const char *word, const char *next, bool *took_next)
{
    for (const char *p = word; *p; p++) {
        const tg_option *o = tg_option_find(p, 1);
        if (*p == 'h') {
            c->help = true;
            continue;
        }
        if (!o)
            return cli_fail(c, TG_E_ARG, "there is no option \"-%c\"", *p < 0x21 ? '?' : *p);
        if (!o->name[1]) /* --z is a name, and has no letter */
            return cli_fail(c, TG_E_ARG, "there is no option \"-%c\"; --%c is one", *p, *p);
        if (o->arg && !p[1] && !next)
            return missing(c, o);
        if (o->arg) {
            *took_next = !p[1];
            return set(c, o, p[1] ? p + 1 : next);
        }
        const tg_status st = set(c, o, "true");
        if (st != TG_OK)
            return st;
    }
    return TG_OK;
}

tg_status cli_parse(cli *c, int argc, char **argv)
{
    bool only_files = false;
    c->files = argv; /* kept words move to the front: a slot is read before it is overwritten */
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i], *next = i + 1 < argc ? argv[i + 1] : NULL;
        bool took_next = false;
        tg_status st = TG_OK;
        if (only_files || word[0] != '-' || !word[1])
            c->files[c->n_files++] = argv[i];
        else if (strcmp(word, "--") == 0)
            only_files = true;
        else if (strcmp(word, "--help") == 0)
            c->help = true;
        else if (strcmp(word, "--man") == 0 && strcmp(c->verb->name, "help") == 0)
            c->man = true;
        else if (word[1] == '-')
            st = long_option(c, word + 2, next, &took_next);
        else
            st = short_options(c, word + 1, next, &took_next);
        if (st != TG_OK)
            return st;
        i += took_next;
    }
    c->json = cli_flag(c, "json");
    c->quiet = cli_flag(c, "quiet");
    return TG_OK;
}

/* refusal_text.c - a memory refusal after its first line: figures, holders, and commands that
 * were planned and fit. For people indented below the line, with --json members of the event.
 *
 * A command is the one that was given, with the options of the remedy in place of what they
 * were: it can be copied and run as it is. */
#include "cli.h"
#include "text.h"

#include <inttypes.h>
#include <string.h>

#include <tegula_memory.h>

/* The option that a word of the command line gives; *takes_next when its value is the next
 * word. */
static const tg_option *option_of(const char *word, bool *takes_next)
{
    const char *eq = strchr(word, '=');
    const bool is_long = word[0] == '-' && word[1] == '-' && word[2];
    const size_t n = !is_long ? 0 : eq ? (size_t)(eq - word) - 2 : strlen(word + 2);
    const tg_option *o = is_long ? tg_option_find(word + 2, n) : NULL;
    *takes_next = o && o->arg && !eq;
    return o;
}

/* --c is --channels, but where it is a regular expression for names of files. */
static bool replaced(const tg_remedy *r, const tg_option *o, const char *value)
{
    const bool same = o && strcmp(o->name, "c") == 0 && !(value && strchr(value, '('));
    for (size_t i = 0; o && i < r->n_options; i++)
        if (strcmp(r->option[i].name, same ? "channels" : o->name) == 0)
            return true;
    return false;
}

/* Append ` word`, quoted for a shell where it has to be. Control characters cannot be shown. */
static void add_word(char *out, size_t cap, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_@%+=:,./-";
    const bool quote = !*word || strspn(word, plain) != strlen(word);
    size_t n = strlen(out);
    if (n + 4 * strlen(word) + 4 > cap)
        return;
    if (n)
        out[n++] = ' ';
    if (quote)
        out[n++] = '\'';
    for (; *word; word++) {
        if (quote && *word == '\'') {
            memcpy(out + n, "'\\''", 4);
            n += 4;
        } else {
            out[n++] = *word;
        }
    }
    if (quote)
        out[n++] = '\'';
    out[n] = 0;
}

static void add_options(const tg_remedy *r, char *out, size_t cap)
{
    char name[64];
    for (size_t i = 0; i < r->n_options; i++) {
        bool takes_value = false;
        snprintf(name, sizeof name, "--%s", r->option[i].name);
        add_word(out, cap, name);
        (void)option_of(name, &takes_value);
        if (takes_value)
            add_word(out, cap, r->option[i].value);
    }
}

/* The whole command; the options alone when it was longer than we keep. */
static void compose(const cli *c, const tg_remedy *r, char *out, size_t cap)
{
    bool added = false, skip = false;
    out[0] = 0;
    for (int i = 0; i < c->n_words; i++) {
        bool takes_next = false;
        const bool end = strcmp(c->words[i], "--") == 0;
        const tg_option *o = added || skip ? NULL : option_of(c->words[i], &takes_next);
        if (skip) {
            skip = false;
            continue;
        }
        if (replaced(r, o, takes_next && i + 1 < c->n_words ? c->words[i + 1] : c->words[i])) {
            skip = takes_next;
            continue;
        }
        if (end && !added) {
            add_options(r, out, cap);
            added = true;
        }
        add_word(out, cap, c->words[i]);
    }
    if (!added)
        add_options(r, out, cap);
}

enum { COMMAND = 16384 };

static void put_options(const tg_remedy *r)
{
    fputc('{', stdout);
    for (size_t k = 0; k < r->n_options; k++) {
        if (k)
            fputc(',', stdout);
        cli_json_string(stdout, r->option[k].name);
        fputc(':', stdout);
        cli_json_string(stdout, r->option[k].value);
    }
    fputc('}', stdout);
}

void cli_remedies_text(const cli *c)
{
    static char command[COMMAND];
    const tg_remedy *r;
    fputs("  such as:\n", stderr);
    for (size_t k = 0; (r = tg_ctx_remedy(c->ctx, k)); k++) {
        compose(c, r, command, sizeof command);
        fputs("    ", stderr);
        cli_put_clean(stderr, command);
        fputc('\n', stderr);
    }
}

void cli_remedies_json(const cli *c)
{
    static char command[COMMAND];
    const tg_remedy *r;
    fputs(",\"remedies\":[", stdout);
    for (size_t k = 0; (r = tg_ctx_remedy(c->ctx, k)); k++) {
        compose(c, r, command, sizeof command);
        fputs(k ? ",{\"command\":" : "{\"command\":", stdout);
        cli_json_string(stdout, command);
        fputs(",\"options\":", stdout);
        put_options(r);
        fputc('}', stdout);
    }
    fputc(']', stdout);
}

void cli_refusal_text(const cli *c, const tg_refusal *r)
{
    static char command[COMMAND];
    char a[CLI_TEXT], b[CLI_TEXT];
    fprintf(stderr, "  %s", r->asked_by);
    if (r->tried_bytes)
        fprintf(stderr, " tried to allocate %s", cli_size(r->tried_bytes, a));
    fprintf(stderr, "; free %s (", cli_size(r->free_bytes, a));
    cli_put_clean(stderr, r->limited_by);
    fputc(')', stderr);
    if (r->budget_bytes)
        fprintf(stderr, ", budget %s", cli_size(r->budget_bytes, b));
    fputs(r->n_holders ? "\n  held now:" : "", stderr);
    for (size_t i = 0; i < r->n_holders; i++)
        fprintf(stderr, "%s %s %s", i ? "," : "", r->holder[i].tag,
                cli_size(r->holder[i].bytes, a));
    fputc('\n', stderr);
    if (r->n_remedies)
        fputs("  what would do, least loss first:\n", stderr);
    for (size_t i = 0; i < r->n_remedies; i++) {
        compose(c, &r->remedy[i], command, sizeof command);
        fputs("    ", stderr);
        cli_put_clean(stderr, command);
        fprintf(stderr, "\n      peak %s; loses %s\n", cli_size(r->remedy[i].peak_bytes, a),
                r->remedy[i].loses);
    }
}

void cli_refusal_json(const cli *c, const tg_refusal *r)
{
    static char command[COMMAND];
    cli_json_text(stdout, "asked_by", r->asked_by);
    cli_json_uint(stdout, "tried_bytes", r->tried_bytes);
    cli_json_uint(stdout, "free_bytes", r->free_bytes);
    cli_json_text(stdout, "limited_by", r->limited_by);
    cli_json_uint(stdout, "budget_bytes", r->budget_bytes);
    fputs(",\"held\":{", stdout);
    for (size_t i = 0; i < r->n_holders; i++) {
        if (i)
            fputc(',', stdout);
        cli_json_string(stdout, r->holder[i].tag);
        fprintf(stdout, ":%" PRIu64, r->holder[i].bytes);
    }
    fputs("},\"remedies\":[", stdout);
    for (size_t i = 0; i < r->n_remedies; i++) {
        compose(c, &r->remedy[i], command, sizeof command);
        fputs(i ? ",{\"command\":" : "{\"command\":", stdout);
        cli_json_string(stdout, command);
        fputs(",\"options\":", stdout);
        put_options(&r->remedy[i]);
        cli_json_uint(stdout, "peak_bytes", r->remedy[i].peak_bytes);
        cli_json_text(stdout, "loses", r->remedy[i].loses);
        fputc('}', stdout);
    }
    fputc(']', stdout);
}

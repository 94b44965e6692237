/* help.c - --help and the manual page, both from the verb and option tables. */
#include "cli.h"

#include <string.h>

enum { WIDTH = 80, HELP_COLUMN = 26 };

static void put_clean(FILE *to, const char *text, int n)
{
    for (int i = 0; i < n; i++)
        fputc((unsigned char)text[i] < 0x20 || text[i] == 0x7f ? '?' : text[i], to);
}

/* Both as one text, of any length. */
static void put_wrapped(FILE *to, const char *text, const char *more, int at, int indent)
{
    while (*text || *more) {
        const int n = (int)strcspn(text, " "), rest = text[n] ? 0 : (int)strcspn(more, " ");
        if (at > indent && at + n + rest + 1 > WIDTH) {
            fprintf(to, "\n%*s", indent, "");
            at = indent;
        } else if (at > indent) {
            fputc(' ', to);
            at++;
        }
        put_clean(to, text, n);
        put_clean(to, more, rest);
        at += n + rest;
        text += n;
        if (!*text) {
            text = more + rest;
            more = "";
        }
        text += *text == ' ';
    }
    fputc('\n', to);
}

void cli_put_wrapped(FILE *to, const char *text, int at, int indent)
{
    put_wrapped(to, text, "", at, indent);
}

/* "-m, --model FILE": the spelling on the command line; returns its length. */
static int spelling(const tg_option *o, char *buf, size_t cap)
{
    const bool letter = o->alias && !o->alias[1];
    const int n = snprintf(buf, cap, "%s%s%s--%s%s%s", letter ? "-" : "",
                           letter ? o->alias : "", letter ? ", " : "", o->name,
                           o->arg && *o->arg != '[' ? " " : "", o->arg ? o->arg : "");
    return n < (int)cap ? n : (int)cap - 1;
}

/* What the row adds to its sentence: default, other name. */
static const char *addition(const tg_option *o, char *buf, size_t cap)
{
    const bool other = o->alias && o->alias[1];
    snprintf(buf, cap, "%s%s%s%s%s", o->fallback ? " (default: " : "",
             o->fallback ? o->fallback : "", o->fallback ? ")" : "", other ? "; also --" : "",
             other ? o->alias : "");
    return buf;
}

static void option_line(FILE *to, const tg_option *o)
{
    char left[96], added[96];
    const int n = spelling(o, left, sizeof left);
    fprintf(to, "  %s", left);
    if (n + 4 > HELP_COLUMN)
        fprintf(to, "\n%*s", HELP_COLUMN, "");
    else
        fprintf(to, "%*s", HELP_COLUMN - n - 2, "");
    put_wrapped(to, o->help, addition(o, added, sizeof added), HELP_COLUMN, HELP_COLUMN);
}

void cli_help_all(FILE *to)
{
    fputs("tegula runs neural networks over images that do not fit in memory and films of any\n"
          "length: inside a memory budget it states beforehand, without seams, and "
          "resumable.\n\n",
          to);
    for (int i = 0; i < cli_n_verbs; i++) {
        const cli_verb *v = &cli_verbs[i];
        fprintf(to, "  tegula %-8s %s\n", v->name, v->synopsis);
        fprintf(to, "%*s", 18, "");
        cli_put_wrapped(to, v->sentence, 18, 18);
    }
    fputs("\ntegula VERB --help lists the options of a verb.\n", to);
}

void cli_help_verb(FILE *to, const cli_verb *v)
{
    size_t n;
    const tg_option *t = tg_option_table(&n);
    bool any = false;
    fprintf(to, "tegula %s%s%s\n\n", v->name, *v->synopsis ? " " : "", v->synopsis);
    cli_put_wrapped(to, v->sentence, 0, 0);
    for (size_t i = 0; i < n; i++) {
        if (!cli_word_in(t[i].verbs, v->name))
            continue;
        if (!any)
            fputs("\nOptions:\n", to);
        any = true;
        option_line(to, &t[i]);
    }
}

/* Text for troff: no line may begin with a dot, and '-' and '\' have spellings of their own. */
static void man_text(FILE *to, const char *s)
{
    for (const char *p = s; *p; p++) {
        if (p == s && (*p == '.' || *p == '\''))
            fputs("\\&", to);
        if (*p == '\\')
            fputs("\\e", to);
        else if (*p == '-')
            fputs("\\-", to);
        else
            fputc(*p, to);
    }
}

static void man_verbs(FILE *to)
{
    fputs(".SH SYNOPSIS\n", to);
    for (int i = 0; i < cli_n_verbs; i++) {
        if (i)
            fputs(".br\n", to);
        fprintf(to, ".B tegula %s\n", cli_verbs[i].name);
        if (*cli_verbs[i].synopsis) {
            man_text(to, cli_verbs[i].synopsis);
            fputc('\n', to);
        }
    }
    fputs(".SH DESCRIPTION\n"
          "tegula runs neural networks over images that do not fit in memory and films of any\n"
          "length: inside a memory budget it states beforehand, without seams, and "
          "resumable.\n.SS Verbs\n",
          to);
    for (int i = 0; i < cli_n_verbs; i++) {
        fprintf(to, ".TP\n.B %s\n", cli_verbs[i].name);
        man_text(to, cli_verbs[i].sentence);
        fputc('\n', to);
    }
}

static void man_options(FILE *to)
{
    size_t n;
    const tg_option *t = tg_option_table(&n);
    char text[96];
    fputs(".SH OPTIONS\nThe long names are also the keys of job files (\\-\\-config, "
          "\\-\\-save).\n",
          to);
    for (size_t i = 0; i < n; i++) {
        fputs(".TP\n.B ", to);
        spelling(&t[i], text, sizeof text);
        man_text(to, text);
        fputc('\n', to);
        man_text(to, t[i].help);
        man_text(to, addition(&t[i], text, sizeof text));
        fprintf(to, ".\nVerbs: %s.\n", t[i].verbs);
    }
}

/* name of a status without the prefix, exit code, sentence */
static void man_exit_codes(FILE *to)
{
    static const tg_status statuses[] = {
#define X(name, value, text) name,
        TG_STATUS_LIST(X)
#undef X
    };
    fputs(".SH EXIT STATUS\n", to);
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        if (statuses[i] == TG_E_CANCELLED)
            fputs(".TP\n.B 130, 143, 129\n", to);
        else
            fprintf(to, ".TP\n.B %d\n", cli_exit_code(statuses[i]));
        fprintf(to, "%s: ", tg_status_name(statuses[i]));
        man_text(to, tg_status_sentence(statuses[i]));
        fputs(".\n", to);
    }
}

void cli_help_man(FILE *to)
{
    fprintf(to,
            ".\\\" Made by \"tegula help --man\" from the option table; do not edit.\n"
            ".TH TEGULA 1 \"\" \"tegula %s\" \"User Commands\"\n"
            ".SH NAME\ntegula \\- neural networks over images larger than memory and films of "
            "any length\n",
            TG_VERSION_STRING);
    man_verbs(to);
    man_options(to);
    man_exit_codes(to);
    fputs(".SH ENVIRONMENT\n"
          ".TP\n.B NO_COLOR\nWhen set and not empty, the progress line has no colours.\n"
          ".TP\n.B COLUMNS\nWidth of the progress line where the terminal does not tell.\n"
          ".TP\n.B XDG_CONFIG_HOME\nWhose tegula/presets has your presets "
          "(default: ~/.config).\n"
          ".TP\n.B TEGULA_NVML\nThe GPU driver's management library; \"none\" does without.\n"
          ".SH EXAMPLES\n"
          ".nf\ntegula plan \\-m model.onnx big.tif \\-\\-ram 1GiB\n"
          "tegula run \\-m model.onnx big.tif \\-o out.tif \\-\\-ram 1GiB\n"
          "tegula run \\-m model.onnx film.mp4 \\-o out.mp4\n"
          "tegula verify \\-m model.onnx big.tif \\-\\-roi 0:2048,0:2048\n.fi\n",
          to);
}

tg_status cli_cmd_help(cli *c)
{
    if (c->man) {
        cli_help_man(stdout);
        return TG_OK;
    }
    if (!c->n_files) {
        cli_help_all(stdout);
        return TG_OK;
    }
    const cli_verb *v = cli_verb_find(c->files[0]);
    if (!v)
        return cli_no_verb(c, c->files[0]);
    cli_help_verb(stdout, v);
    return TG_OK;
}

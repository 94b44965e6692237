/* comma_locale.h - a locale with a decimal comma for a test, made where none is installed. */
#ifndef TG_COMMA_LOCALE_H
#define TG_COMMA_LOCALE_H

#include "tests/tg_test.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct tg_commas {
    char folder[32]; /* "": nothing was made */
    tg_env path;
} tg_commas;

static inline int tg_commas_make(tg_commas *c)
{
    static const char source[] = "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \"\"\n"
                                 "grouping -1\nEND LC_NUMERIC\n";
    char command[160], name[48];
    snprintf(c->folder, sizeof c->folder, "/tmp/tg_commas_XXXXXX");
    if (!mkdtemp(c->folder)) {
        c->folder[0] = 0;
        return 0;
    }
    tg_env_lend(&c->path, "LOCPATH", c->folder);
    snprintf(name, sizeof name, "%s/source", c->folder);
    FILE *f = fopen(name, "w");
    if (!f || fputs(source, f) < 0 || fclose(f) != 0)
        return 0;
    snprintf(command, sizeof command,
             "cd %s && localedef -c -i source -f UTF-8 ./comma >/dev/null 2>&1", c->folder);
    if (system(command) <
        0) /* it warns of what the locale lacks: what counts is what it made */
        return 0;
    return setlocale(LC_NUMERIC, "comma") != NULL;
}

/* 1: numbers have a decimal comma until tg_commas_end. */
static inline int tg_commas_begin(tg_commas *c)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    memset(c, 0, sizeof *c);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (setlocale(LC_NUMERIC, names[i]))
            return 1;
    if (tg_commas_make(c))
        return 1;
    printf("     (no locale with a comma on this machine: checked in C only)\n");
    return 0;
}

static inline void tg_commas_end(const tg_commas *c)
{
    char command[64];
    setlocale(LC_NUMERIC, "C");
    if (!c->folder[0])
        return;
    tg_env_back(&c->path);
    snprintf(command, sizeof command, "rm -r %s", c->folder);
    CHECK(system(command) == 0);
}

#endif

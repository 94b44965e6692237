/* made_machine.h - machines made up of files: /proc and cgroup trees in a folder of their own,
 * for whoever reads the system below a root. One machine at a time. */
#ifndef TG_MADE_MACHINE_H
#define TG_MADE_MACHINE_H

#include "tests/tg_test.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static char machine[64]; /* the root */

static inline int machine_remove(const char *path, const struct stat *st, int flag,
                                 struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static inline void end_machine(void)
{
    CHECK_EQ(nftw(machine, machine_remove, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* A file of the machine, with the folders above it. */
static inline void put(const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof full, "%s%s", machine, path);
    for (char *p = full + strlen(machine) + 1; (p = strchr(p, '/')) != NULL; *p++ = '/') {
        *p = 0;
        CHECK(mkdir(full, 0700) == 0 || errno == EEXIST);
    }
    FILE *f = fopen(full, "w");
    CHECK(f != NULL && fputs(text, f) >= 0);
    if (f)
        fclose(f);
}

static inline void begin_machine(const char *meminfo, const char *groups)
{
    snprintf(machine, sizeof machine, "tegula_machine_XXXXXX");
    CHECK(mkdtemp(machine) != NULL);
    put("/proc/meminfo", meminfo);
    if (groups)
        put("/proc/self/cgroup", groups);
}

#endif

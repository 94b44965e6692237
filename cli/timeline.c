/* timeline.c - --trace FILE: every allocation of the library while a verb runs, as JSON. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tegula_pool.h>
#include <unistd.h>

static const char *wanted(const cli *c)
{
    return c->opts ? tg_opts_get(c->opts, "trace") : NULL;
}

/* Events of a long plan are megabytes: they wait in a file, where no budget counts them, beside
 * the timeline's own or where temporary files are. */
static tg_status begin(cli *c)
{
    const char *path = wanted(c), *slash = strrchr(path, '/'), *temporary = getenv("TMPDIR");
    char beside[1024];
    snprintf(beside, sizeof beside, "%.*s", slash ? (int)(slash - path) + 1 : 1,
             slash ? path : ".");
    const char *const folders[] = {beside, temporary ? temporary : "/tmp", "/var/tmp"};
    tg_status st = TG_E_IO;
    for (size_t i = 0; st != TG_OK && i < sizeof folders / sizeof *folders; i++)
        st = tg_pool_profile_in(tg_pool_engine(), folders[i]);
    if (st != TG_OK)
        st = tg_pool_profile(tg_pool_engine(), 1);
    return st == TG_OK ? TG_OK : cli_fail(c, st, "no memory for a timeline of allocations");
}

/* The file is looked at before the verb begins, and written when it has ended: what is there
 * may turn out to be one of the verb's own. */
tg_status cli_timeline_begin(cli *c)
{
    c->trace = -1;
    if (!wanted(c))
        return TG_OK;
    tg_status st = tg_opts_open_output(c->opts, "trace", TG_OUTPUT_LOOK, &c->trace);
    if (st != TG_OK)
        return st;
    return begin(c);
}

static int put(void *user, const char *text, size_t n)
{
    return fwrite(text, 1, n, user) != n;
}

/* The file to write to; NULL with a status. */
static FILE *open_trace(cli *c, tg_status *st)
{
    if (c->trace < 0)
        *st = tg_opts_open_output(c->opts, "trace", TG_OUTPUT_OPEN, &c->trace);
    else if (ftruncate(c->trace, 0) != 0 && errno != EINVAL) /* a pipe has nothing to cut */
        *st = TG_E_IO;
    FILE *f = *st == TG_OK ? fdopen(c->trace, "w") : NULL;
    if (*st == TG_OK && !f)
        *st = TG_E_NOMEM;
    if (f)
        c->trace = -1;
    return f;
}

/* What the same command is asked to mend finds no file of its own in its way; and what was
 * refused may have been refused for this very name. */
static bool leaves_none(tg_status st)
{
    return st == TG_E_CANCELLED || st == TG_E_NO_SPACE || st == TG_E_IO || st == TG_E_BUSY ||
           st == TG_E_DEVICE_LOST || st == TG_E_ARG || st == TG_E_EXISTS;
}

tg_status cli_timeline_end(cli *c, tg_status st)
{
    const char *path = wanted(c);
    if (!path)
        return st;
    tg_pool_profile(tg_pool_engine(), 0);
    /* A verb that failed before it knew all of its files replaces nothing. */
    const bool may = st == TG_OK || (!leaves_none(st) && (c->opened || c->trace < 0));
    if (may && st != TG_OK && !c->reported) { /* opening the file is another question to the */
        cli_report(c, st);                    /* library, whose answer would take its place */
        c->reported = true;
    }
    tg_status written = TG_OK;
    FILE *f = may ? open_trace(c, &written) : NULL;
    if (f && (tg_pool_timeline(tg_pool_engine(), put, f) != TG_OK) | (fclose(f) != 0))
        written = TG_E_IO;
    if (c->trace >= 0)
        close(c->trace);
    c->trace = -1;
    if (written == TG_OK || st != TG_OK) /* what the verb failed of is the news */
        return st;
    return cli_fail(c, written,
                    "%s: the timeline of allocations could not be written; all else is done, "
                    "and another run with -y writes one",
                    path);
}

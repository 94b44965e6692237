/* timeline.c - --trace FILE: every allocation of the library while a verb runs, as JSON. */
#include "cli.h"

#include <tegula_pool.h>

static const char *wanted(const cli *c)
{
    return c->opts ? tg_opts_get(c->opts, "trace") : NULL;
}

tg_status cli_timeline_begin(cli *c)
{
    if (!wanted(c))
        return TG_OK;
    const tg_status st = tg_pool_profile(tg_pool_engine(), 1);
    return st == TG_OK ? TG_OK : cli_fail(c, st, "no memory for a timeline of allocations");
}

static int put(void *user, const char *text, size_t n)
{
    return fwrite(text, 1, n, user) != n;
}

tg_status cli_timeline_end(cli *c, tg_status st)
{
    const char *path = wanted(c);
    if (!path)
        return st;
    tg_pool_profile(tg_pool_engine(), 0);
    FILE *f = fopen(path, "w");
    int bad = f ? tg_pool_timeline(tg_pool_engine(), put, f) != TG_OK : 1;
    bad |= f && fclose(f) != 0;
    if (!bad || st != TG_OK) /* what the verb failed of is the news */
        return st;
    return cli_fail(c, TG_E_IO, "%s: the timeline of allocations could not be written", path);
}

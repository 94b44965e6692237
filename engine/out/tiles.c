/* tiles.c - the tiles of a journal's file. */
#include "engine/out/journal.h"

static int64_t appended(const void *j)
{
    return tgi_journal_appended(j);
}

static int64_t safe(const void *j)
{
    return tgi_journal_committed(j);
}

static int has(const void *j, int64_t tile)
{
    return tgi_journal_has_tile(j, tile);
}

static tg_status append(void *j, int64_t tile, const void *bytes, size_t n, tgi_err *err)
{
    return tgi_journal_append(j, tile, bytes, n, err);
}

static tg_status sync(void *j, tgi_err *err)
{
    return tgi_journal_sync(j, err);
}

static double sync_due(const void *j)
{
    return tgi_journal_sync_due(j);
}

static void begin(void *j)
{
    tgi_journal_begin_tile(j);
}

tgi_tiles tgi_journal_tiles(tgi_journal *j)
{
    return (tgi_tiles){.user = j,
                       .appended = appended,
                       .safe = safe,
                       .has = has,
                       .append = append,
                       .sync = sync,
                       .sync_due = sync_due,
                       .begin = begin};
}

/* tiles.h - where the writer's tiles go, in the order in which they are appended: into the file that a
 * journal keeps (tgi_journal_tiles), or into the frames of a film (film_tiles.h). */
#ifndef TGI_TILES_H
#define TGI_TILES_H

#include "engine/base/status.h"

#include <stddef.h>
#include <stdint.h>

/* One thread at a time calls append, sync and sync_due; `has` and `begin` may be called meanwhile by
 * the one that fills tiles, `has` of none that it has handed on. */
typedef struct tgi_tiles {
    void *user;
    /* Tiles that are there, and of these, on the disk. */
    int64_t (*appended)(const void *user);
    int64_t (*safe)(const void *user);
    int (*has)(const void *user, int64_t tile);
    /* One tile, as it was encoded. */
    tg_status (*append)(void *user, int64_t tile, const void *bytes, size_t n, tgi_err *err);
    tg_status (*sync)(void *user, tgi_err *err);
    double (*sync_due)(const void *user); /* seconds; < 0: nothing waits for a sync */
    void (*begin)(void *user);            /* one more tile is begun */
} tgi_tiles;

#endif

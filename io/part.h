/* part.h - an output that is written in any order and gets its name when it is whole.
 *
 * It grows as PATH.partial, locked for as long as it is open: a second writer of PATH is told
 * (TG_E_BUSY) before it changes a byte. Its disk space is taken at the beginning, where the
 * filesystem can. The name is given with all bytes on the disk. Nothing goes on from a partial
 * file without a journal: the next writer of PATH discards it.
 *
 * Until it is complete it begins with TGI_PART_MARK instead of its own first bytes. So nobody
 * takes it for a whole file, and what somebody else has at that name is not taken for it. */
#ifndef TGI_PART_H
#define TGI_PART_H

#include "engine/base/status.h"

#include <stddef.h>
#include <stdint.h>

#define TGI_PART_MARK "tegula: growing\n"
#define TGI_PART_MARK_BYTES 16u
#define TGI_PART_GROWS UINT64_MAX /* of unknown size, but longer than the mark */

typedef struct tgi_part {
    int fd;      /* -1: closed */
    int replace; /* an older file of the name is replaced */
    int at_once; /* as in the spec: there is no mark */
    int keep;    /* it is complete: it has its name, or waits for it, as somebody was told */
    uint64_t bytes;
    char *path, *partial;
    const char *told;                /* of both, what messages name; a view */
    char first[TGI_PART_MARK_BYTES]; /* what the mark stands for */
} tgi_part;

#define TGI_PART_CLOSED ((tgi_part){.fd = -1})

typedef struct tgi_part_spec {
    const char *path;
    const char *ending; /* ".partial" */
    uint64_t bytes;     /* exact, or TGI_PART_GROWS */
    int replace;        /* PATH */
    int at_once;        /* all is written in one call: no mark, and no room is taken before */
    const void *head;   /* what the file will begin with, where that is known: its own bytes */
    size_t head_bytes;  /* tell a complete one that was stopped before it had its name */
} tgi_part_spec;

/* Create PATH.ending. TG_E_BUSY another holds it, TG_E_EXISTS PATH is there and not to be
 * replaced, or something that is not ours stands in the way, or nothing can be created,
 * TG_E_NO_SPACE, TG_E_IO. *out stays closed when it fails. */
tg_status tgi_part_create(const tgi_part_spec *spec, tgi_part *out, tgi_err *err);
/* What an earlier run completed and did not name any more: open and locked as it is, for
 * tgi_part_name; drop leaves it there. `head` tells it, `bytes` is not looked at.
 * TG_E_NOT_FOUND, TG_E_EXISTS it is none, TG_E_BUSY, TG_E_IO. */
tg_status tgi_part_open_complete(const tgi_part_spec *spec, tgi_part *out, tgi_err *err);
/* A file without a name in `folder`, which can be opened by what `partial` says as long as it
 * is open, and is gone afterwards, also by a kill. It never gets a name; messages say `of`. */
tg_status tgi_part_unnamed(const char *folder, const char *of, uint64_t bytes, tgi_part *out,
                           tgi_err *err);
/* n bytes at `at`, inside of it. Several threads may write at once, each byte once. */
tg_status tgi_part_write(tgi_part *p, uint64_t at, const void *bytes, size_t n, tgi_err *err);
/* Complete and sync, and give it its name: one after the other, so that of several outputs all
 * can be on the disk before the first one has a name; then tgi_part_drop closes it.
 * TG_E_EXISTS: PATH came to be meanwhile, the result stays where the detail says. */
tg_status tgi_part_sync(const tgi_part *p, tgi_err *err);
tg_status tgi_part_name(tgi_part *p, tgi_err *err);
/* Close, and remove what has no name yet; safe on TGI_PART_CLOSED. */
void tgi_part_drop(tgi_part *p);

#endif

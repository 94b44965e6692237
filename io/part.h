/* part.h - an output that is written in any order and gets its name when it is whole.
 *
 * It grows as PATH.partial, locked for as long as it is open: a second writer of PATH is told
 * (TG_E_BUSY) before it changes a byte. Its disk space is taken at the beginning, where the
 * filesystem can. The name is given with all bytes on the disk. Nothing goes on from a partial
 * file without a journal: the next writer of PATH discards it. */
#ifndef TGI_PART_H
#define TGI_PART_H

#include "engine/base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct tgi_part {
    int fd;      /* -1: closed */
    int replace; /* an older file of the name is replaced */
    int keep;    /* it is complete: it has its name, or somebody was told where it stays */
    char *path, *partial;
} tgi_part;

#define TGI_PART_CLOSED ((tgi_part){.fd = -1})

/* Create PATH.partial of `bytes` bytes. TG_E_BUSY another holds it, TG_E_EXISTS PATH is there
 * and not to be replaced, or nothing can be created, TG_E_NO_SPACE, TG_E_IO. *out stays closed
 * when it fails. */
tg_status tgi_part_create(const char *path, uint64_t bytes, int replace, tgi_part *out,
                          tgi_err *err);
/* n bytes at `at`. Several threads may write at once. */
tg_status tgi_part_write(const tgi_part *p, uint64_t at, const void *bytes, size_t n,
                         tgi_err *err);
/* Sync, and give it its name: one after the other, so that of several outputs all can be on the
 * disk before the first one has a name; then tgi_part_drop closes it. TG_E_EXISTS: PATH came to
 * be meanwhile, the result stays where the detail says. */
tg_status tgi_part_sync(const tgi_part *p, tgi_err *err);
tg_status tgi_part_name(tgi_part *p, tgi_err *err);
/* Close, and remove what has no name yet; safe on TGI_PART_CLOSED. */
void tgi_part_drop(tgi_part *p);

#endif

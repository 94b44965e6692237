/* journal_check.h - is what earlier runs wrote still what OUT.journal says? Private to
 * journal.c.
 *
 * The tiles that a run finds are read back once, beside its own work, and compared with their
 * records. Those that do not hold are marked in `length`; the run computes them again. Tiles
 * that it wrote itself are not read. */
#ifndef TGI_JOURNAL_CHECK_H
#define TGI_JOURNAL_CHECK_H

#include "engine/base/beside.h"
#include "engine/out/journal_file.h"

/* In the length of a tile, which is below 2^31 (io/sink.h). */
#define TGI_TILE_DAMAGED 0x80000000u
/* All memory that this needs, the journal's own. */
#define TGI_CHECK_BUFFER 65536u

typedef struct tgi_journal_check {
    /* Given: n records of the journal from `records_at` on, with this checksum; the tiles they
     * tell of, one behind the other in `data` from `at` on. */
    const tgi_journal_file *file;
    uint64_t records_at;
    int64_t n;
    uint32_t records_check;
    int data;
    const char *partial;
    uint64_t at;
    uint32_t *length; /* per tile id */
    char *buffer;     /* TGI_CHECK_BUFFER bytes, until finished; then for tgi_check_record */
    /* The reader's until it is stopped. */
    tgi_beside beside;
    int64_t next;       /* record */
    int64_t loaded;     /* the first of those in the buffer; -1: none */
    uint32_t left, sum; /* of tile `next`: bytes to read, checksum so far */
    uint32_t records_sum;
    int64_t damaged;
    int failed; /* to read the journal itself */
} tgi_journal_check;

/* Start with what is given. */
void tgi_check_begin(tgi_journal_check *c);
/* Read what the thread has not. `tick` (or NULL) is called between reads with the fraction
 * done; what it answers but TG_OK is answered here. */
tg_status tgi_check_finish(tgi_journal_check *c,
                           tg_status (*tick)(void *user, double fraction, tgi_err *err),
                           void *user, tgi_err *err);
void tgi_check_stop(tgi_journal_check *c); /* at any time */
/* The record of a tile, after finish: quick when tiles are asked for in the records' order. */
tg_status tgi_check_record(tgi_journal_check *c, int64_t tile, tgi_journal_record *out,
                           tgi_err *err);

/* Checksum and size of a whole file. TG_E_CANCELLED on a signal. */
tg_status tgi_check_file(const char *path, void *buffer, uint32_t *check, uint64_t *bytes,
                         tgi_err *err);
/* FINAL and no partial file: is `path` what was to get that name, with each tile as recorded?
 */
tg_status tgi_check_output(const tgi_journal_file *f, const tgi_journal_slot *s,
                           const char *path, void *buffer, int *yes, tgi_err *err);

#endif

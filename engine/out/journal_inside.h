/* journal_inside.h - the journal from inside, for the files that are it: journal.c begins,
 * appends and finishes, journal_resume.c reads back and mends. The invariants stand at the top
 * of journal.c. */
#ifndef TGI_JOURNAL_INSIDE_H
#define TGI_JOURNAL_INSIDE_H

#include "engine/out/journal.h"
#include "engine/out/journal_check.h"
#include "engine/out/journal_file.h"

#define TGI_JOURNAL_PENDING 2048 /* records kept in memory between two writes */

struct tgi_journal {
    char *path, *partial; /* OUT, OUT.partial */
    char *made;           /* OUT.made */
    int is_made;          /* it is complete, with this checksum and size */
    int mine;             /* a head of ours is in OUT.journal: so is what lies beside it */
    int claimed;          /* by this run, and nothing is behind it yet */
    int unknown; /* files lie beside a journal without a head: whose, the layout says */
    int another; /* a damaged tile was computed again, and is not what it was */
    uint32_t made_check;
    uint64_t made_bytes;
    tgi_journal_file file; /* OUT.journal */
    int data;              /* OUT.partial; -1: closed */
    int overwrite, locked;
    int ready, broken; /* begun or resumed; a sync failed */
    tgi_journal_kind state;
    tgi_journal_policy policy;
    tgi_journal_slot s; /* the newest slot */
    void *job, *stats;
    const tgi_sink_layout *layout;
    uint64_t *offset; /* per tile id; 0: not there (tiles never begin at 0) */
    uint32_t *length; /* with TGI_TILE_DAMAGED */
    tgi_journal_record *pending;
    int n_pending;
    int64_t appended;
    int64_t begun; /* tiles, by all runs that worked on this output */
    uint64_t file_bytes, hinted;
    uint32_t records_check; /* of all appended records */
    uint32_t data_check;    /* of all appended tiles in a row */
    double first_unsafe;    /* when the oldest uncommitted tile came */
    char *scratch;          /* TGI_SINK_SCRATCH bytes; the check's while that is open */
    tgi_journal_check check;
    int open_check;     /* tiles of earlier runs were not read back yet */
    int mending;        /* they were, and some are damaged; then not changed any more */
    int64_t damaged;    /* how many are still to be written again; who appends counts */
    tgi_bad_tiles *bad; /* whose state goes into each slot; NULL: none */
};
_Static_assert(TGI_SINK_SCRATCH >= TGI_CHECK_BUFFER, "the check reads into the scratch");

/* journal.c */
int tgi_journal_exists(const char *path);
tg_status tgi_journal_unlink_there(const char *path, tgi_err *err);
/* fdatasync of the journal; a failure ends this journal's writing (invariant 10). */
tg_status tgi_journal_sync_file(tgi_journal *j, tgi_err *err);
/* Make *next the newest slot. The slot in memory is the one on disk again when writing it
 * fails, so that the next attempt does not skip a place (invariant 3). */
tg_status tgi_journal_next_slot(tgi_journal *j, const tgi_journal_slot *next, tgi_err *err);
/* Take memory for the tiles of this layout. */
tg_status tgi_journal_tables(tgi_journal *j, const tgi_sink_layout *layout, tgi_err *err);
/* Write the front, and answer its checksum; `dry`: that alone. */
tg_status tgi_journal_front(tgi_journal *j, int with_offsets, int dry, uint32_t *check,
                            tgi_err *err);
/* Take the disk space of an output whose size is known. */
tg_status tgi_journal_reserve(tgi_journal *j, tgi_err *err);

/* journal_resume.c: was this tile found damaged, and not written again? And that. */
int tgi_journal_is_damaged(const tgi_journal *j, int64_t tile_id);
tg_status tgi_journal_mend(tgi_journal *j, int64_t tile_id, const void *bytes, size_t n,
                           tgi_err *err);

/* journal_lost.c: what lies beside a journal without a head tells itself that it is ours, as
 * one of `layout` (NULL: not known), or is TG_E_EXISTS. */
tg_status tgi_journal_know(tgi_journal *j, const tgi_sink_layout *layout, tgi_err *err);

#endif

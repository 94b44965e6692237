/* journal_inside.h - the inside of the journal, for the files that make it up. journal.c
 * begins, appends and finishes; journal_look.c says what it knows; journal_resume.c reads back and
 * mends; journal_lost.c knows files whose journal was lost. The invariants stand at the top of journal.c. */
#ifndef TGI_JOURNAL_INSIDE_H
#define TGI_JOURNAL_INSIDE_H

#include "engine/out/journal.h"
#include "engine/out/journal_check.h"
#include "engine/out/journal_file.h"

#define TGI_JOURNAL_PENDING 2048 /* records kept in memory between two writes */

struct tgi_journal {
    char *path, *partial; /* OUT, OUT.partial */
    char *made;           /* OUT.made */
    int is_made;          /* OUT.made is complete, with made_check and made_bytes */
    int mine;             /* OUT.journal has a head of ours, so the files beside it are ours */
    int claimed;          /* this run wrote the head, and nothing behind it yet */
    int unknown; /* files lie beside a journal without a head; the layout tells whose */
    int another; /* a damaged tile was computed again and came out different */
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
    uint64_t *offset; /* by tile id; 0: not there (no tile begins at 0) */
    uint32_t *length; /* with TGI_TILE_DAMAGED */
    tgi_journal_record *pending;
    int n_pending;
    int64_t appended;
    int64_t begun; /* tiles, by all runs that worked on this output */
    uint64_t file_bytes, hinted;
    uint32_t records_check; /* of all appended records */
    uint32_t data_check;    /* of all appended tiles in a row */
    double first_unsafe;    /* when the oldest uncommitted tile came */
    char *scratch;          /* TGI_SINK_SCRATCH bytes; lent to the check while that is open */
    tgi_journal_check check;
    int open_check;     /* tiles of earlier runs are still to be read back */
    int mending;        /* all were read, and some are damaged; stays as it is from then on */
    int64_t damaged;    /* tiles still to be written again; the appender counts them */
    tgi_bad_tiles *bad; /* its state goes into each slot; NULL: none */
};
_Static_assert(TGI_SINK_SCRATCH >= TGI_CHECK_BUFFER, "the check reads into the scratch");

/* journal.c */
int tgi_journal_exists(const char *path);
tg_status tgi_journal_unlink_there(const char *path, tgi_err *err);
/* Sync the journal (fdatasync). After a failure nothing more is written to it (invariant
 * 10). */
tg_status tgi_journal_sync_file(tgi_journal *j, tgi_err *err);
/* Make *next the newest slot. When writing fails, the slot in memory becomes the one on disk
 * again, so the next attempt skips no place (invariant 3). */
tg_status tgi_journal_next_slot(tgi_journal *j, const tgi_journal_slot *next, tgi_err *err);
/* Allocate the tables for the tiles of this layout. */
tg_status tgi_journal_tables(tgi_journal *j, const tgi_sink_layout *layout, tgi_err *err);
/* Write the front and give its checksum. `dry`: give the checksum alone. */
tg_status tgi_journal_front(tgi_journal *j, int with_offsets, int dry, uint32_t *check,
                            tgi_err *err);
/* Reserve the disk space of an output whose size is known. */
tg_status tgi_journal_reserve(tgi_journal *j, tgi_err *err);

/* journal_resume.c: was this tile found damaged and not written again? Write it again. */
int tgi_journal_is_damaged(const tgi_journal *j, int64_t tile_id);
tg_status tgi_journal_mend(tgi_journal *j, int64_t tile_id, const void *bytes, size_t n,
                           tgi_err *err);

/* journal_lost.c: recognise the files beside a journal without a head as ours, of this `layout`
 * (NULL: not known). TG_E_EXISTS: they are not. */
tg_status tgi_journal_know(tgi_journal *j, const tgi_sink_layout *layout, tgi_err *err);

#endif

/* journal.c - the durable progress of one output.
 *
 * The bytes of OUT.journal are journal_file.h; here is when which of them is written.
 *
 * Words: a tile is *appended* when it is in OUT.partial and its record in memory or in the
 * journal; it is *committed* when a durable slot counts it.
 *
 * Invariants
 *  1. Data first: a slot that counts n tiles is written only after fdatasync of OUT.partial
 *     returned with all n of them.
 *  2. A slot carries the checksum of the n records it counts. So slot and records go out with
 *     one fdatasync, in any order: a slot whose records did not arrive is invalid.
 *  3. A new slot never overwrites the newest durable one. After a crash the slot found is made
 *     durable in its own place before the other place is used again.
 *  4. Tile i lies behind tile i-1 without a gap; the first behind the front. So any prefix of
 *     valid records is a valid state.
 *  5. Texts that a durable slot points to are never overwritten; statistics are replaced by
 *     writing behind them, and only while there is no record.
 *  6. OUT appears by rename, after fdatasync of complete data and offsets, and after a durable
 *     slot said FINAL. OUT.journal disappears only after the folder was synced with the new
 *     name, and last of all files that have no use then.
 *  7. Tiles that earlier runs wrote are read back before OUT gets its name. One that does not
 *     match its record is computed again and written in its place, and only if it is what the
 *     record says: no tile behind it moves, and no record changes.
 *  8. A slot names how much of the list of what could not be decoded (bad_tiles.h) was there
 *     when it was written; that is synced before any tile that was computed from it.
 *  9. OUT.partial and OUT.made exist only behind a head of OUT.journal that is on the disk, and
 *     go before it: so they are known for ours. Without a head they are somebody's.
 * 10. After a failed fdatasync nothing is written any more (what it left in the page cache
 *     proves nothing); the next run starts at the last slot on the disk.
 *
 * States on disk, who leaves them, and what the next run does
 *
 *   nothing             -> journal created and locked by open()
 *   head alone          -> claim(), or begin(): a run is here; FRESH
 *   no valid slot,      crash in begin() or before the first slot is durable;
 *   at most one tried   -> FRESH: begin() discards all files
 *   no head, a partial  somebody's files
 *   or made file        -> TG_E_EXISTS; where the caller may overwrite, begin() looks whether
 *                          they begin as its own would (the journal was lost), and discards
 *                          them
 *   slot n < all        crash in append()/sync()
 *                       -> RESUME: resume() cuts OUT.partial to the committed length
 *   slot n = all        crash in finish() before FINAL -> RESUME, nothing to append, finish()
 *   FINAL, OUT.partial  crash before the rename        -> the same
 *   FINAL, no partial,  crash between rename and unlink
 *   OUT as promised     -> FINISHED: clear_finished() removes the journal
 *   FINAL and made,     crash between rename and unlink: OUT came from OUT.made
 *   OUT as promised     -> FINISHED, whether OUT.partial is still there or not
 *   slot, no partial    somebody removed the data      -> FRESH
 *   both slots damaged, -> TG_E_FORMAT: a person must decide; FRESH where he did
 *   or the head
 *   another format      -> TG_E_CHANGED, or FRESH where the caller may overwrite
 *
 * The lock is an open-file-description lock on OUT.journal; it dies with its holder.
 * Source: the pager of SQLite (atomiccommit.html) for the style of argument; Rebello et al.,
 * "Can applications recover from fsync failures?" (2020) for invariants 3 and 10. */
#include "engine/out/journal.h"

#include "engine/base/clock.h"
#include "engine/base/mem.h"
#include "engine/base/versions.h"
#include "engine/out/journal_inside.h"
#include "engine/out/stage_log.h"
#include "io/crc32c.h"
#include "io/file_ops.h"
#include "io/part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WRITE_BEHIND                                                                           \
    (8u << 20) /* hand data to the disk early, so that a sync has little to do */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- Slots and texts --------------------------------------------------------------------- */

/* fdatasync of the journal; a failure ends this journal's writing (invariant 10). */
tg_status tgi_journal_sync_file(tgi_journal *j, tgi_err *err)
{
    const tg_status st = tgi_file_sync(j->file.fd, j->file.name, err);
    j->broken |= st != TG_OK;
    return st;
}

static tg_status sync_data(tgi_journal *j, tgi_err *err)
{
    const tg_status st = tgi_file_sync(j->data, j->partial, err);
    j->broken |= st != TG_OK;
    return st;
}

/* Make the current state in j->s the newest slot. The slot in memory is the one on disk again
 * when writing it fails, so that the next attempt does not skip a place (invariant 3). */
tg_status tgi_journal_next_slot(tgi_journal *j, const tgi_journal_slot *next, tgi_err *err)
{
    const tgi_journal_slot before = j->s;
    j->s = *next;
    j->s.sequence = before.sequence + 1;
    if (j->bad)
        tgi_bad_tiles_state(j->bad, &j->s.bad);
    tg_status st = tgi_journal_file_slot(&j->file, &j->s, err);
    if (st == TG_OK)
        st = tgi_journal_sync_file(j, err);
    if (st != TG_OK)
        j->s = before;
    return st;
}

/* A copy of a text, with a 0 behind it. */
static tg_status keep_text(void **kept, const void *text, size_t n, tgi_err *err)
{
    char *p = tgi_malloc(TGI_TAG_JOURNAL, n + 1);
    if (!p)
        return tgi_fail(err, TG_E_NOMEM, "no memory for %zu bytes of the journal", n);
    if (n)
        memcpy(p, text, n);
    p[n] = 0;
    tgi_free(*kept);
    *kept = p;
    return TG_OK;
}

/* ---- Open: lock and look ----------------------------------------------------------------- */

int tgi_journal_exists(const char *path)
{
    struct stat st;
    return !lstat(path, &st);
}

static tg_status lock(tgi_journal *j, tgi_err *err)
{
    const tg_status st = tgi_journal_file_lock(&j->file, j->path, err);
    j->locked = st == TG_OK;
    return st;
}

/* Decide the state from what is on disk; reads only. */
static tg_status look(tgi_journal *j, tgi_err *err)
{
    tgi_journal_found f;
    const tg_status st = tgi_journal_file_look(&j->file, &f, err);
    j->job = f.job;
    j->stats = f.stats;
    if (st != TG_OK)
        return st;
    if (f.format && !j->overwrite)
        return tgi_fail(err, TG_E_CHANGED,
                        "%s: begun by another tegula (format %d of its journal, this one has "
                        "%d): finish it with the tegula that began it, or give -y to discard "
                        "that output and start over",
                        j->file.name, f.format, TGI_JOURNAL_FORMAT);
    if (!f.found && f.tried > 1 && !j->overwrite)
        return tgi_fail(err, TG_E_FORMAT,
                        "%s: damaged; give -y to discard that output and start over",
                        j->file.name);
    j->mine = f.head;
    if (!f.head) { /* no run of ours was here before, or its journal was lost */
        const char *there = tgi_journal_exists(j->partial) ? j->partial
                            : tgi_journal_exists(j->made)  ? j->made
                                                           : NULL;
        if (there && !j->overwrite)
            return tgi_file_in_the_way(there, err);
        j->unknown = there != NULL;
    }
    if (!f.found)
        return TG_OK;
    j->s = f.slot;
    j->begun = tgi_journal_file_begun(&j->file);
    const int partial = tgi_journal_exists(j->partial);
    int ours = 0;
    if (j->s.final == 2 || (j->s.final && !partial))
        TGI_TRY(tgi_check_output(&j->file, &j->s, j->path, j->scratch, &ours, err));
    if (ours)
        j->state = TGI_JOURNAL_FINISHED;
    else if (partial)
        j->state = TGI_JOURNAL_RESUME;
    else if (j->s.final && tgi_journal_exists(j->path) && !j->overwrite)
        return tgi_fail(err, TG_E_CHANGED,
                        "%s: is not as it was finished: damaged, or another file; -y computes "
                        "it again",
                        j->path);
    return TG_OK;
}

static char *joined(const char *path, const char *end)
{
    const size_t n = strlen(path), m = strlen(end) + 1;
    char *p = tgi_malloc(TGI_TAG_JOURNAL, n + m);
    if (p) {
        memcpy(p, path, n);
        memcpy(p + n, end, m);
    }
    return p;
}

static void default_policy(tgi_journal_policy *p)
{
    const char *tiles = p->tiles ? NULL : getenv("TEGULA_SYNC_TILES");
    p->tiles = tiles ? strtoll(tiles, NULL, 10) : p->tiles;
    if (!p->bytes)
        p->bytes = 64u << 20;
    if (!(p->seconds > 0))
        p->seconds = 5;
}

tg_status tgi_journal_open(const char *path, int overwrite, const tgi_journal_policy *policy,
                           tgi_journal **out, tgi_err *err)
{
    tgi_journal *j = tgi_calloc(TGI_TAG_JOURNAL, 1, sizeof *j);
    if (!j)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the journal");
    j->file.fd = j->data = -1;
    j->overwrite = overwrite;
    if (policy)
        j->policy = *policy;
    default_policy(&j->policy);
    j->path = tgi_strdup(TGI_TAG_JOURNAL, path);
    j->partial = joined(path, ".partial");
    j->made = joined(path, ".made");
    j->file.name = joined(path, ".journal");
    j->scratch = tgi_malloc(TGI_TAG_JOURNAL, TGI_SINK_SCRATCH);
    tg_status st = TG_E_NOMEM;
    if (!j->path || !j->partial || !j->made || !j->file.name || !j->scratch)
        tgi_fail(err, st, "no memory for the journal of %s", path);
    else if (!overwrite && tgi_journal_exists(path) && !tgi_journal_exists(j->file.name))
        st = tgi_fail(err, TG_E_EXISTS, "%s: exists already; -y replaces it", path);
    else if ((st = lock(j, err)) == TG_OK && (st = look(j, err)) == TG_OK && !overwrite &&
             tgi_journal_exists(path) && j->state != TGI_JOURNAL_FINISHED)
        st = tgi_fail(err, TG_E_EXISTS, "%s: exists already; -y replaces it", path);
    if (st != TG_OK) {
        tgi_journal_close(&j);
        return st;
    }
    *out = j;
    return TG_OK;
}

int tgi_journal_left_finished(const char *path)
{
    struct stat st;
    tgi_err none = {0};
    tgi_journal *j = NULL;
    char *name = joined(path, ".journal");
    /* An empty one would be removed by the close. */
    const int finished = name && tgi_journal_exists(path) && !lstat(name, &st) && st.st_size &&
                         tgi_journal_open(path, 0, NULL, &j, &none) == TG_OK &&
                         j->state == TGI_JOURNAL_FINISHED;
    tgi_journal_close(&j);
    tgi_free(name);
    return finished;
}

tgi_journal_kind tgi_journal_state(const tgi_journal *j)
{
    return j->state;
}

const void *tgi_journal_job(const tgi_journal *j, size_t *n)
{
    *n = j->job && j->s.sequence ? j->s.job.bytes : 0;
    return *n ? j->job : "";
}

const void *tgi_journal_stats(const tgi_journal *j, size_t *n)
{
    *n = j->stats && j->s.sequence ? j->s.stats.bytes : 0;
    return *n ? j->stats : "";
}

/* ---- Begin -------------------------------------------------------------------- */

size_t tgi_journal_bytes(const tgi_sink_layout *layout)
{
    return sizeof(tgi_journal) + TGI_SINK_SCRATCH +
           TGI_JOURNAL_PENDING * sizeof(tgi_journal_record) +
           (size_t)layout->n_tiles * TGI_JOURNAL_TILE_BYTES;
}

tg_status tgi_journal_tables(tgi_journal *j, const tgi_sink_layout *layout, tgi_err *err)
{
    const size_t n = (size_t)layout->n_tiles;
    tgi_free(j->offset);
    tgi_free(j->length);
    tgi_free(j->pending);
    j->layout = layout;
    j->offset = tgi_calloc(TGI_TAG_JOURNAL, n, sizeof *j->offset);
    j->length = tgi_calloc(TGI_TAG_JOURNAL, n, sizeof *j->length);
    j->pending = tgi_calloc(TGI_TAG_JOURNAL, TGI_JOURNAL_PENDING, sizeof *j->pending);
    if (!j->offset || !j->length || !j->pending)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the journal of %zu tiles", n);
    return TG_OK;
}

/* Writes the front as it is generated; NULL journal data: only the checksum. */
typedef struct front_writer {
    tgi_journal *j;
    uint64_t at;
    uint32_t check;
    int dry;
} front_writer;

static tg_status front_part(void *arg, const void *bytes, size_t n, tgi_err *err)
{
    front_writer *w = arg;
    w->check = tgi_crc32c(w->check, bytes, n);
    const uint64_t at = w->at;
    w->at += n;
    return w->dry ? TG_OK : tgi_file_pwrite(w->j->data, w->j->partial, bytes, n, at, err);
}

tg_status tgi_journal_front(tgi_journal *j, int with_offsets, int dry, uint32_t *check,
                            tgi_err *err)
{
    front_writer w = {.j = j, .dry = dry};
    const tg_status st =
        tgi_sink_front(j->layout, with_offsets ? j->offset : NULL,
                       with_offsets ? j->length : NULL, j->scratch, front_part, &w, err);
    *check = w.check;
    return st;
}

tg_status tgi_journal_reserve(tgi_journal *j, tgi_err *err)
{
    if (j->layout->compression != TGI_COMPRESSION_NONE)
        return TG_OK;
    return tgi_file_reserve(j->data, j->partial, j->layout->file_bytes, err);
}

tg_status tgi_journal_unlink_there(const char *path, tgi_err *err)
{
    return tgi_journal_exists(path) ? tgi_file_unlink(path, err) : TG_OK;
}

tg_status tgi_journal_claim(tgi_journal *j, const tgi_sink_layout *layout, tgi_err *err)
{
    if (j->mine)
        return TG_OK;
    TGI_TRY(tgi_journal_know(j, layout, err));
    j->claimed = 1;
    TGI_TRY(tgi_journal_file_head(&j->file, err));
    TGI_TRY(tgi_journal_sync_file(j, err));
    j->mine = 1;
    return TG_OK;
}

/* The slots' places go first, in case the old slots still count something. Only behind a head
 * that is on the disk is there ever a partial file. What a run in stages wrote down goes before
 * there is a slot: it says nothing about the job that begins (stage_log.h). */
static tg_status empty_both(tgi_journal *j, tgi_err *err)
{
    if (!j->claimed) {
        TGI_TRY(tgi_journal_file_head(&j->file, err));
        TGI_TRY(tgi_journal_sync_file(j, err));
    }
    j->claimed = 0;
    TGI_TRY(tgi_journal_unlink_there(j->made, err));
    TGI_TRY(tgi_journal_unlink_there(j->partial, err));
    TGI_TRY(tgi_stage_log_discard(j->path, err));
    return tgi_file_create(j->partial, &j->data, err);
}

/* What runs have made of this output: nothing can go on with it. The journal goes last, and
 * only if nothing stays that it alone knows for ours. */
static void remove_all(tgi_journal *j)
{
    (void)tgi_stage_log_discard(j->path, NULL);
    if (!j->mine || (tgi_journal_unlink_there(j->made, NULL) == TG_OK &&
                     tgi_journal_unlink_there(j->partial, NULL) == TG_OK))
        tgi_file_unlink(j->file.name, NULL);
    j->locked = j->ready = 0;
    j->broken = 1;
}

static tg_status write_beginning(tgi_journal *j, const void *job, size_t n, tgi_err *err)
{
    TGI_TRY(empty_both(j, err));
    TGI_TRY(tgi_journal_reserve(j, err));
    tgi_journal_slot s = {0};
    TGI_TRY(tgi_journal_front(j, 0, 0, &s.front_check, err));
    TGI_TRY(sync_data(j, err));
    TGI_TRY(tgi_journal_file_text(&j->file, job, n, TGI_JOURNAL_TEXTS, &s.job, err));
    s.stats = (tgi_journal_text){.at = TGI_JOURNAL_TEXTS + n};
    s.records_at = (s.stats.at + 63) / 64 * 64;
    s.file_bytes = j->layout->front_bytes;
    TGI_TRY(tgi_journal_sync_file(j, err));
    TGI_TRY(tgi_journal_next_slot(j, &s, err));
    return tgi_file_sync_dir(j->path, err);
}

tg_status tgi_journal_begin(tgi_journal *j, const tgi_sink_layout *layout, const void *job,
                            size_t job_bytes, tgi_err *err)
{
    if (j->ready)
        return tgi_fail(err, TG_E_INTERNAL, "%s: begun twice", j->file.name);
    if (!j->overwrite && tgi_journal_exists(j->path))
        return tgi_fail(err, TG_E_EXISTS, "%s: exists already; -y replaces it", j->path);
    TGI_TRY(tgi_journal_tables(j, layout, err));
    TGI_TRY(tgi_journal_claim(j, layout, err));
    TGI_TRY(keep_text(&j->job, job, job_bytes, err));
    memset(&j->s, 0, sizeof j->s);
    const tg_status st = write_beginning(j, job, job_bytes, err);
    if (st != TG_OK) { /* nothing was done yet that is worth keeping */
        remove_all(j);
        return st;
    }
    j->appended = j->begun = 0;
    j->file_bytes = j->hinted = layout->front_bytes;
    j->records_check = j->data_check = 0;
    j->n_pending = 0;
    j->ready = 1;
    j->state = TGI_JOURNAL_RESUME;
    return TG_OK;
}

/* The output has its name, on the disk. The journal goes last: by it the same command knows
 * what else is of no use any more. */
static tg_status remove_rest(tgi_journal *j, int made, tgi_err *err)
{
    if (made)
        TGI_TRY(tgi_file_unlink(j->partial, err));
    if (j->bad)
        TGI_TRY(tgi_bad_tiles_remove(j->bad, err));
    return tgi_file_unlink(j->file.name, err);
}

tg_status tgi_journal_clear_finished(tgi_journal *j, tgi_err *err)
{
    if (j->state != TGI_JOURNAL_FINISHED)
        return tgi_fail(err, TG_E_INTERNAL, "%s: the output is not finished", j->file.name);
    TGI_TRY(tgi_file_sync_dir(j->path, err));
    return remove_rest(j, j->s.final == 2, err);
}

tg_status tgi_journal_set_stats(tgi_journal *j, const void *stats, size_t n, tgi_err *err)
{
    if (!j->ready || j->broken || j->appended)
        return tgi_fail(err, TG_E_INTERNAL, "%s: statistics come before the first tile",
                        j->file.name);
    TGI_TRY(keep_text(&j->stats, stats, n, err));
    tgi_journal_slot s = j->s;
    TGI_TRY(tgi_journal_file_text(&j->file, stats, n, j->s.records_at, &s.stats,
                                  err)); /* invariant 5 */
    s.records_at = (s.stats.at + n + 63) / 64 * 64;
    TGI_TRY(tgi_journal_sync_file(j, err));
    return tgi_journal_next_slot(j, &s, err);
}

/* ---- Append and sync --------------------------------------------------------------------- */

static tg_status usable(const tgi_journal *j, tgi_err *err)
{
    if (!j->ready)
        return tgi_fail(err, TG_E_INTERNAL, "%s: neither begun nor resumed", j->file.name);
    if (j->broken)
        return tgi_fail(err, TG_E_IO, "%s: a sync failed before; run the same command again",
                        j->path);
    return TG_OK;
}

/* Records may stand in the journal ahead of the slot that counts them. */
static tg_status write_records(tgi_journal *j, tgi_err *err)
{
    const int64_t first = j->appended - j->n_pending;
    if (j->n_pending)
        TGI_TRY(tgi_file_pwrite(j->file.fd, j->file.name, j->pending,
                                (size_t)j->n_pending * sizeof(tgi_journal_record),
                                tgi_journal_record_at(&j->s, first), err));
    j->n_pending = 0;
    return TG_OK;
}

tg_status tgi_journal_sync(tgi_journal *j, tgi_err *err)
{
    TGI_TRY(usable(j, err));
    if (j->appended == (int64_t)j->s.n_tiles)
        return TG_OK;
    TGI_TRY(sync_data(j, err)); /* invariant 1 */
    TGI_TRY(write_records(j, err));
    tgi_journal_slot s = j->s;
    s.n_tiles = (uint64_t)j->appended;
    s.file_bytes = j->file_bytes;
    s.records_check = j->records_check;
    return tgi_journal_next_slot(j, &s, err);
}

double tgi_journal_sync_due(const tgi_journal *j)
{
    if (!j->ready || j->broken || j->appended == (int64_t)j->s.n_tiles)
        return -1;
    const double left = j->first_unsafe + j->policy.seconds - now();
    return left > 0 ? left : 0;
}

/* Start writing what is complete, without waiting; only a hint. */
static void write_behind(tgi_journal *j)
{
#ifdef __linux__
    if (j->file_bytes - j->hinted < WRITE_BEHIND)
        return;
    sync_file_range(j->data, (off_t)j->hinted, (off_t)(j->file_bytes - j->hinted),
                    SYNC_FILE_RANGE_WRITE);
    j->hinted = j->file_bytes;
#else
    (void)j;
#endif
}

void tgi_journal_watch_bad(tgi_journal *j, tgi_bad_tiles *bad)
{
    j->bad = bad;
}

void tgi_journal_begin_tile(tgi_journal *j)
{
    tgi_journal_file_set_begun(&j->file, ++j->begun);
}

tg_status tgi_journal_append(tgi_journal *j, int64_t tile_id, const void *bytes, size_t n,
                             tgi_err *err)
{
    TGI_TRY(usable(j, err));
    if (tgi_journal_is_damaged(j, tile_id))
        return tgi_journal_mend(j, tile_id, bytes, n, err);
    if (tile_id < 0 || tile_id >= j->layout->n_tiles || j->offset[tile_id] || !n ||
        n > j->layout->tile_bound)
        return tgi_fail(err, TG_E_INTERNAL, "%s: tile %lld of %zu bytes is not the next one",
                        j->path, (long long)tile_id, n);
    if (j->n_pending == TGI_JOURNAL_PENDING)
        TGI_TRY(write_records(j, err));
    TGI_TRY(tgi_file_pwrite(j->data, j->partial, bytes, n, j->file_bytes, err));
    const tgi_journal_record r = {(uint64_t)tile_id, (uint32_t)n, tgi_crc32c(0, bytes, n)};
    if (j->appended == (int64_t)j->s.n_tiles)
        j->first_unsafe = now();
    j->offset[tile_id] = j->file_bytes;
    j->length[tile_id] = (uint32_t)n;
    j->file_bytes += n;
    j->pending[j->n_pending++] = r;
    j->records_check = tgi_crc32c(j->records_check, &r, sizeof r);
    j->data_check = tgi_crc32c_join(j->data_check, r.check, r.length);
    j->appended++;
    write_behind(j);
    const tgi_journal_policy *p = &j->policy;
    if ((p->tiles && j->appended - (int64_t)j->s.n_tiles >= p->tiles) ||
        j->file_bytes - j->s.file_bytes >= p->bytes || tgi_journal_sync_due(j) == 0)
        return tgi_journal_sync(j, err);
    return TG_OK;
}

/* The partial file becomes a complete one. */
static tg_status complete(tgi_journal *j, tgi_journal_slot *s, tgi_err *err)
{
    TGI_TRY(usable(j, err));
    if (j->appended != j->layout->n_tiles || j->open_check || j->damaged)
        return tgi_fail(err, TG_E_INTERNAL,
                        "%s: %lld of %lld tiles are written, %lld damaged%s", j->path,
                        (long long)j->appended, (long long)j->layout->n_tiles,
                        (long long)j->damaged, j->open_check ? ", not all read back" : "");
    TGI_TRY(tgi_journal_sync(j, err));
    *s = j->s;
    TGI_TRY(tgi_journal_front(j, 1, 0, &s->final_check, err));
    return sync_data(j, err);
}

tg_status tgi_journal_make(tgi_journal *j, tgi_journal_maker *make, void *arg, tgi_err *err)
{
    tgi_journal_slot s;
    TGI_TRY(complete(j, &s, err));
    TGI_TRY(make(arg, j->partial, j->made, err));
    TGI_TRY(tgi_check_file(j->made, j->scratch, &j->made_check, &j->made_bytes, err));
    j->is_made = 1;
    return TG_OK;
}

tg_status tgi_journal_seal(tgi_journal *j, tgi_err *err)
{
    tgi_journal_slot s;
    TGI_TRY(complete(j, &s, err));
    s.final = j->is_made ? 2 : 1;
    if (j->is_made) {
        s.final_check = j->made_check;
        s.made_bytes = (uint32_t)j->made_bytes;
    }
    return tgi_journal_next_slot(j, &s, err);
}

const char *tgi_journal_complete(const tgi_journal *j)
{
    return j->is_made ? j->made : j->partial;
}

tg_status tgi_journal_take_complete(tgi_journal *j, int *yes, tgi_err *err)
{
    *yes = 0;
    if (j->ready || j->state != TGI_JOURNAL_RESUME || !j->s.final)
        return TG_OK;
    j->is_made = j->s.final == 2;
    TGI_TRY(tgi_check_output(&j->file, &j->s, tgi_journal_complete(j), j->scratch, yes, err));
    j->ready = *yes;
    return TG_OK;
}

tg_status tgi_journal_name(tgi_journal *j, tgi_err *err)
{
    if (!j->ready || !j->s.final)
        return tgi_fail(err, TG_E_INTERNAL, "%s: is not complete", j->path);
    const tg_status st = tgi_file_rename(tgi_journal_complete(j), j->path, j->overwrite, err);
    if (st == TG_OK || st == TG_E_EXISTS) /* it has its name, or the detail says where it is: */
        j->ready = 0;                     /* nothing may be written or removed any more */
    TGI_TRY(st);
    j->state = TGI_JOURNAL_FINISHED;
    TGI_TRY(tgi_file_sync_dir(j->path, err));
    return remove_rest(j, j->is_made, err);
}

tg_status tgi_journal_finish(tgi_journal *j, tgi_err *err)
{
    TGI_TRY(tgi_journal_seal(j, err));
    return tgi_journal_name(j, err);
}

tg_status tgi_journal_output_check(tgi_journal *j, uint32_t *crc32c, uint64_t *bytes,
                                   tgi_err *err)
{
    uint32_t front;
    if (!j->ready || j->appended != j->layout->n_tiles)
        return tgi_fail(err, TG_E_INTERNAL, "%s: tiles are missing", j->path);
    if (j->is_made) {
        *crc32c = j->made_check;
        *bytes = j->made_bytes;
        return TG_OK;
    }
    TGI_TRY(tgi_journal_front(j, 1, 1, &front, err));
    *crc32c = tgi_crc32c_join(front, j->data_check, j->file_bytes - j->layout->front_bytes);
    *bytes = j->file_bytes;
    return TG_OK;
}

void tgi_journal_drop(tgi_journal **j)
{
    if (*j && (*j)->ready && (*j)->state == TGI_JOURNAL_RESUME)
        remove_all(*j);
    tgi_journal_close(j);
}

int tgi_journal_is_another(const tgi_journal *j)
{
    return j->another;
}

void tgi_journal_forget(tgi_journal *j)
{
    if (j->ready)
        remove_all(j);
}

int tgi_journal_abandon(tgi_journal *j)
{
    if (!j->ready || j->s.n_tiles)
        return 0;
    remove_all(j);
    return 1;
}

void tgi_journal_close(tgi_journal **j)
{
    tgi_journal *p = *j;
    if (!p)
        return;
    tgi_check_stop(&p->check);
    uint64_t size;
    if (p->locked && tgi_file_size(p->file.fd, p->file.name, &size, NULL) == TG_OK &&
        (p->claimed || !size))
        tgi_file_unlink(p->file.name, NULL); /* open() made it and nothing was begun */
    if (p->data >= 0)
        close(p->data);
    if (p->file.fd >= 0)
        close(p->file.fd);
    tgi_free(p->path);
    tgi_free(p->partial);
    tgi_free(p->made);
    tgi_free(p->file.name);
    tgi_free(p->scratch);
    tgi_free(p->job);
    tgi_free(p->stats);
    tgi_free(p->offset);
    tgi_free(p->length);
    tgi_free(p->pending);
    tgi_free(p);
    *j = NULL;
}

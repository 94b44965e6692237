/* journal.h - an output that survives a crash at any moment.
 *
 * A run writes OUT.partial and keeps OUT.journal beside it; at the end the first is renamed to
 * OUT and the second removed. Killed anywhere, the next run finds how many tiles are safely
 * there and goes on behind them; the finished bytes are those of an undisturbed run. The state
 * machine and the invariants stand at the top of journal.c.
 *
 * How a run uses it:
 *
 *     tgi_journal_open(path, overwrite, &policy, &j)   locks, looks, changes no byte
 *     switch (tgi_journal_state(j))
 *     FINISHED: stored job equals ours? tgi_journal_clear_finished(j), done.
 *     RESUME:   stored job (tgi_journal_job) equals ours? tgi_journal_resume(j, layout)
 *               else refuse with TG_E_CHANGED, or start over with tgi_journal_begin.
 *     FRESH:    tgi_journal_begin(j, layout, job, n)
 *     [tgi_journal_set_stats]                          once, before the first tile
 *     for seq from tgi_journal_appended(j): tgi_journal_append(j, tile id, bytes, n)
 *     tgi_journal_recheck(j): tiles that were found damaged are appended once more
 *     [tgi_journal_make]                               the output is no TIFF
 *     tgi_journal_finish(j)
 *     tgi_journal_close(&j)                            at any time; keeps what is there
 *
 * One thread at a time (usually the committer, commit.h). */
#ifndef TGI_JOURNAL_H
#define TGI_JOURNAL_H

#include "engine/base/sha256.h"
#include "engine/base/status.h"
#include "engine/out/bad_tiles.h"
#include "engine/out/tiles.h"
#include "io/sink.h"

#include <stddef.h>
#include <stdint.h>

typedef struct tgi_journal tgi_journal;

typedef enum tgi_journal_kind {
    TGI_JOURNAL_FRESH,   /* nothing to go on from */
    TGI_JOURNAL_RESUME,  /* a valid journal and its partial file */
    TGI_JOURNAL_FINISHED /* OUT is complete; only the journal was not removed any more */
} tgi_journal_kind;

/* When appended tiles are made safe: as soon as one of these is reached. 0: default
 * (by count only when the environment variable TEGULA_SYNC_TILES says so, 64 MiB, 5 s). What a
 * crash costs is what lies behind the last sync. */
typedef struct tgi_journal_policy {
    int64_t tiles;
    uint64_t bytes;
    double seconds;
} tgi_journal_policy;

/* Lock the output `path` and look at what is there; neither OUT nor its partial file is
 * touched, and an existing journal is only read.
 * @param policy  NULL: defaults.
 * @return TG_E_BUSY    another process holds this output
 *         TG_E_EXISTS  OUT is there, it is not the result of the journal, and `overwrite` is 0
 *         TG_E_FORMAT  OUT.journal is not ours, or damaged beyond both slots; the detail says
 *                      what to do
 *         TG_E_IO, TG_E_NO_SPACE, TG_E_NOMEM */
tg_status tgi_journal_open(const char *path, int overwrite, const tgi_journal_policy *policy,
                           tgi_journal **out, tgi_err *err);
/* 1: `path` is there, and OUT.journal beside it is that of its own run, which was stopped
 * behind the name. Changes nothing. */
int tgi_journal_left_finished(const char *path);
tgi_journal_kind tgi_journal_state(const tgi_journal *j);

/* The job text and the statistics stored by the interrupted run: opaque bytes, *n = 0 and a
 * non-NULL pointer when there are none. View of the journal, until the next begin or set. */
const void *tgi_journal_job(const tgi_journal *j, size_t *n);
const void *tgi_journal_stats(const tgi_journal *j, size_t *n);

/* Say on the disk that a run of ours is here, before it makes files of other names: nothing of
 * them is anybody else's then. It comes before begin, which does it too; a journal that is
 * closed without begin goes again. Where there is one of ours nothing is done.
 * @return TG_E_EXISTS  OUT.partial or OUT.made lies there without a journal, and does not begin
 *                      as one of `layout` (NULL: not known yet) */
tg_status tgi_journal_claim(tgi_journal *j, const tgi_sink_layout *layout, tgi_err *err);
/* Start from nothing: leftovers of an earlier run are discarded, the front of zeros written,
 * the space of an uncompressed output reserved (TG_E_NO_SPACE here, not hours later; then
 * nothing is left behind). `job` is copied; `layout` is borrowed until close. */
tg_status tgi_journal_begin(tgi_journal *j, const tgi_sink_layout *layout, const void *job,
                            size_t job_bytes, tgi_err *err);
/* Go on behind the last safe tile. A thread of the journal's begins to read back all tiles that
 * are there (it allocates nothing). `layout` is borrowed until close.
 * @return TG_E_CHANGED  the partial file was begun with another layout */
tg_status tgi_journal_resume(tgi_journal *j, const tgi_sink_layout *layout, tgi_err *err);
/* After the last tile that was missing: wait until that thread is through, helping it. `tick`
 * (NULL: none) is called meanwhile with the fraction done; what it answers but TG_OK is
 * answered here. *n_damaged tiles are not what was written: has_tile says 0 of them from now
 * on, and append puts each in its old place, where it must be what it was (TG_E_CHANGED).
 * finish wants this to have been called, and none of them left. Nobody else uses the journal
 * meanwhile. */
tg_status tgi_journal_recheck(tgi_journal *j,
                              tg_status (*tick)(void *user, double fraction, tgi_err *err),
                              void *user, int64_t *n_damaged, tgi_err *err);
/* Only in state FINISHED: remove the leftover journal, and before it what else has no use any
 * more. The output stays. */
tg_status tgi_journal_clear_finished(tgi_journal *j, tgi_err *err);

/* Store the statistics (durably, at once); only while no tile has been appended. */
tg_status tgi_journal_set_stats(tgi_journal *j, const void *stats, size_t n, tgi_err *err);

/* What of the input could not be decoded, as the newest safe state knows it; and from now on
 * the state of `bad`, borrowed until close, goes into each new one; OUT.errors.partial goes
 * before the journal when the output has its name. */
const tgi_bad_state *tgi_journal_bad(const tgi_journal *j);
void tgi_journal_watch_bad(tgi_journal *j, tgi_bad_tiles *bad);

/* The checksum of the whole input, "" while no run has read all of it. Said
 * once it is; another thread may append meanwhile. */
void tgi_journal_input_sum(const tgi_journal *j, char sha256[TGI_SHA256_TEXT]);
void tgi_journal_say_input(const tgi_journal *j, const char *sha256);
/* What frames of a film that was read had beside their pixels, in bits (tgi_av_ops); to be said before
 * what is made of them is appended. */
int64_t tgi_journal_beside(const tgi_journal *j);
void tgi_journal_say_beside(const tgi_journal *j, int64_t bits);
/* All tiles are there and sealed: nothing is computed for this output any more. */
int tgi_journal_is_sealed(const tgi_journal *j);

/* Append one encoded tile, and sync when the policy says so. Tiles come in the plan's order;
 * each tile id once. After TG_E_NO_SPACE or TG_E_IO from writing the tile itself, the tiles
 * before it can still be made safe by tgi_journal_sync; after a failed sync the journal accepts
 * nothing. */
tg_status tgi_journal_append(tgi_journal *j, int64_t tile_id, const void *bytes, size_t n,
                             tgi_err *err);
/* Count one more tile begun. By the caller that asks for tiles, while another thread appends:
 * the count shares nothing with the rest. */
void tgi_journal_begin_tile(tgi_journal *j);
/* Tiles begun by all runs that worked on this output; beyond its tiles, computed again. After a
 * power failure it may be too small, after a kill it is exact. */
int64_t tgi_journal_begun(const tgi_journal *j);
/* Make everything appended so far safe now. */
tg_status tgi_journal_sync(tgi_journal *j, tgi_err *err);
/* Seconds until the policy's time limit asks for a sync; < 0 when nothing waits for one. */
double tgi_journal_sync_due(const tgi_journal *j);

/* An output that cannot be written tile by tile is made out of the tiles at the end: all tiles
 * are there, `partial` becomes a complete TIFF, and `make` writes `made`, durably. Before
 * finish, which gives that file the name and removes the TIFF; a crash in between makes it
 * again. */
typedef tg_status tgi_journal_maker(void *arg, const char *partial, const char *made,
                                    tgi_err *err);
tg_status tgi_journal_make(tgi_journal *j, tgi_journal_maker *make, void *arg, tgi_err *err);

/* All tiles are there: fill in the offsets, make it durable, give it its name, remove the
 * journal. Called again (by the next run) after a crash at any point in between, it completes.
 */
tg_status tgi_journal_finish(tgi_journal *j, tgi_err *err);
/* The same in two steps, so that of several outputs all can be on the disk before the first one
 * has its name. The layout is not needed after the first. */
tg_status tgi_journal_seal(tgi_journal *j, tgi_err *err);
tg_status tgi_journal_name(tgi_journal *j, tgi_err *err);
/* What that gives the name to: OUT.partial, or OUT.made. A view. */
const char *tgi_journal_complete(const tgi_journal *j);
/* In state RESUME: *yes when what is there was sealed, and is read back as it was then; then
 * tgi_journal_name may follow. TG_E_IO, TG_E_CANCELLED. */
tg_status tgi_journal_take_complete(tgi_journal *j, int *yes, tgi_err *err);
/* Close; what this run has written, and has no name yet, is removed. */
void tgi_journal_drop(tgi_journal **j);

/* The input turned out to be damaged: when no run has made a tile safe, nothing is worth
 * keeping and both files are removed (1); else they stay (0). Before close. */
int tgi_journal_abandon(tgi_journal *j);
/* 1: append said that a damaged tile, computed again, is not what it was. Nothing can go on
 * with it; with `overwrite` the caller forgets it and begins again. */
int tgi_journal_is_another(const tgi_journal *j);
/* What is there was made of an input that is another one now: remove both files, whatever they
 * hold. Before close. */
void tgi_journal_forget(tgi_journal *j);
/* Close files and release the lock; files stay as they are, so nothing synced is lost. */
void tgi_journal_close(tgi_journal **j);

/* Tiles written: the next sequence number. */
int64_t tgi_journal_appended(const tgi_journal *j);
int64_t tgi_journal_committed(const tgi_journal *j);   /* of these, safe */
uint64_t tgi_journal_file_bytes(const tgi_journal *j); /* front and tiles so far */
/* CRC-32C of the whole output as it will be, offsets filled in, and its size, without reading
 * it back: joined from the tiles' checksums (that of a made one was read). Only when all tiles
 * are there. */
tg_status tgi_journal_output_check(tgi_journal *j, uint32_t *crc32c, uint64_t *bytes,
                                   tgi_err *err);
/* Read back an appended tile as it was encoded; at most `cap` bytes, *n of them. Another thread
 * may append other tiles meanwhile. */
tg_status tgi_journal_read_tile(const tgi_journal *j, int64_t tile_id, void *bytes, size_t cap,
                                size_t *n, tgi_err *err);
/* The first n bytes of it. */
tg_status tgi_journal_read_head(const tgi_journal *j, int64_t tile_id, void *bytes, size_t n,
                                tgi_err *err);
/* A tile that an earlier run appended as the i-th, i its number, was these bytes (what lies there may
 * be damaged); TG_E_CHANGED: it was not (tgi_journal_is_another). */
tg_status tgi_journal_same_tile(tgi_journal *j, int64_t tile_id, const void *bytes, size_t n,
                                tgi_err *err);
/* Bytes of a tile, as it was encoded; 0: it is not there. */
size_t tgi_journal_tile_bytes(const tgi_journal *j, int64_t tile_id);
/* 1 when this tile is written already (for a run that goes on with another plan). */
int tgi_journal_has_tile(const tgi_journal *j, int64_t tile_id);

/* What the writer gives its tiles to. A view of the journal. */
tgi_tiles tgi_journal_tiles(tgi_journal *j);

/* Once begun or resumed: say who works on it (journal_file.h), for tegula status. `segment`: of a film,
 * whose tiles are packets; else 0. */
void tgi_journal_introduce(const tgi_journal *j, const char *input, const char *model,
                           int segment);
/* The same: how many frames of the film are done. */
void tgi_journal_say_frames(const tgi_journal *j, int64_t n);

/* Of a journal's tables, for each tile: where it lies, and its length. */
#define TGI_JOURNAL_TILE_BYTES (sizeof(uint64_t) + sizeof(uint32_t))
/* Memory that a journal of this layout holds after begin or resume (a line of the plan),
 * without the job and statistics texts. Nothing is allocated between that and close. */
size_t tgi_journal_bytes(const tgi_sink_layout *layout);

#endif

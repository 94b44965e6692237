/* commit.h - the way of finished tiles to the disk: any order in, the plan's order out.
 *
 * The engine asks for the raw slot of sequence number `seq` (the tile's place in the plan's
 * order), fills it with pixels and submits it. Encoder threads compress slots, one thread - the
 * committer - appends them (tiles.h) strictly in order and syncs by its policy:
 *
 *     slot(seq) -> [filling] -> submit -> [queued] -> encoder -> [ready] -> committer -> [free]
 *
 * The window is a ring of slots: seq uses slot seq % window, and tgi_commit_slot(seq) waits
 * until seq - window is on its way to disk. That wait is the back-pressure. Rule for callers:
 * never wait for a slot while holding an unsubmitted one that is `window` or more behind it; a
 * row of tiles filled together needs window >= tiles in the row (twice that to overlap).
 *
 * Any number of threads may call slot and submit. Errors stick: the first one of encoder or
 * committer is what every later call answers. All memory comes from the caller. */
#ifndef TGI_COMMIT_H
#define TGI_COMMIT_H

#include "engine/out/tiles.h"
#include "io/sink.h"

typedef struct tgi_commit tgi_commit;

/* Bytes of memory a window takes, encoder state included (64-byte aligned block). */
size_t tgi_commit_bytes(const tgi_sink_layout *layout, int window, int encoders);
/* Threads it starts (stacks of 256 KiB, the committer's of 1 MiB): the committer, and the encoders when compressing. */
int tgi_commit_threads(const tgi_sink_layout *layout, int encoders);

typedef struct tgi_commit_opts {
    tgi_tiles to;                  /* ours alone until close; borrowed */
    const tgi_sink_layout *layout; /* borrowed */
    int window;                    /* slots, >= 1 */
    int encoders;                  /* threads that compress, >= 1; no matter when NONE */
    void *memory;                  /* tgi_commit_bytes, 64-byte aligned; borrowed until close */
} tgi_commit_opts;

/* Start the threads. The first sequence number is what opts->to has. */
tg_status tgi_commit_open(const tgi_commit_opts *opts, tgi_commit **out, tgi_err *err);

/* Wait for the raw slot of `seq`: tile_bytes, rows of tile_w pixels without gaps, samples
 * interleaved, native byte order. What lies outside the image is zeroed by submit.
 * TG_E_CANCELLED after tgi_commit_stop, else the sticky error. */
tg_status tgi_commit_slot(tgi_commit *c, int64_t seq, void **slot, tgi_err *err);
/* The slot of `seq` holds tile `tile_id`, complete. Does not wait. */
tg_status tgi_commit_submit(tgi_commit *c, int64_t seq, int64_t tile_id, tgi_err *err);
/* Wait until every submitted tile that follows without a gap is written, then sync. */
tg_status tgi_commit_flush(tgi_commit *c, tgi_err *err);
/* Ctrl-C: wake all waiters with TG_E_CANCELLED, start no further encoding. What is encoded and
 * next in order is still written and synced by tgi_commit_close. Callable from any thread. */
void tgi_commit_stop(tgi_commit *c);
/* Seconds that tgi_commit_slot and tgi_commit_flush waited. */
double tgi_commit_wait_seconds(tgi_commit *c);
/* Tiles written so far, those of earlier runs included: the sequence number after them. More
 * than the output has, when damaged ones were written again. Any thread. */
int64_t tgi_commit_written(tgi_commit *c);
/* Stop the threads, having written what is ready in order, and sync; NULL allowed. Returns the
 * sticky error, if any; submitted tiles behind a gap are given up. What they went to stays open. */
tg_status tgi_commit_close(tgi_commit **c, tgi_err *err);

#endif

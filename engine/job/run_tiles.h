/* run_tiles.h - the steps of a run whose output is an image, tile by tile. */
#ifndef TGI_RUN_TILES_H
#define TGI_RUN_TILES_H

#include "engine/ends/store.h"
#include "engine/job/run.h"

extern const tgi_run_steps tgi_tile_steps;

/* What takes rows and hands finished tiles to `to`, in the memory of the pass. On failure what was opened is the
 * caller's, too. */
tg_status tgi_run_open_writer(tgi_run *r, tgi_tiles to, tgi_commit **commit, tgi_store **store,
                              tgi_err *err);
/* It takes no more: what it has is written, or after a failure `st` left. Returns what all of it ends in. */
tg_status tgi_run_close_writer(tgi_commit **commit, tg_status st, tgi_err *err);

/* A share of clipped values that is worth a warning. */
#define TGI_CLIPPED_MANY 0.01
/* Warn where more were clipped; `store` may be NULL. */
void tgi_warn_of_clipped(tg_job *job, const tgi_store *store);

#endif

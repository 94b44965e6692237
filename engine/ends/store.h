/* store.h - finished rows of the network's output into tiles of the file.
 *
 * Rows arrive from the executor in order. A *group* is what completes together: one row of
 * tiles of an image, one slab of a volume, times the channels. When the first row of a group
 * comes, a slot of the writer's window is taken for each of its tiles; with the last row they
 * are submitted. Groups and tiles are numbered in the plan's order:
 *
 *     item -> cell -> group (down) -> channel -> tile row (volumes) -> tile column
 *
 * Tiles that an earlier run has committed are skipped, so a plan that differs from the
 * journal's still finishes the file. */
#ifndef TGI_STORE_H
#define TGI_STORE_H

#include "engine/ends/stats.h"
#include "engine/out/commit.h"
#include "engine/plan/mapping.h"
#include "engine/plan/tiling.h"
#include "kernels/backend.h"
#include "kernels/threads.h"

typedef struct tgi_store tgi_store;

typedef struct tgi_store_opts {
    const tgi_mapping *map;
    const tgi_tiling *tiling;
    const tgi_sink_layout *layout;
    tgi_tiles to; /* where the commit writes them */
    tgi_commit *commit;
    tgi_threads *pool;
    const tgi_kernel_set *be; /* which converts */
} tgi_store_opts;

tg_status tgi_store_open(const tgi_store_opts *o, tgi_store **out, tgi_err *err);
void tgi_store_close(tgi_store **s);
/* Tiles of a group at most: the writer's window must be at least this. */
int64_t tgi_store_group_tiles(const tgi_mapping *m, const tgi_tiling *t, int64_t tile_h,
                              int64_t tile_w, int volume);

/* Begin cell `core` of an item; output pixel o of the file is o + shift[] (z,y,x) there, and
 * `affine` maps network values to output values. Answers rows (slabs) of the cell: from the
 * first that is still missing to the last; empty when it is complete. */
tgi_range tgi_store_cell(tgi_store *s, int64_t item, const tgi_range *core,
                         const int64_t shift[3], tgi_affine affine);
/* What that would answer, while another cell is still being stored. */
tgi_range tgi_store_missing(tgi_store *s, int64_t item, const tgi_range *core,
                            const int64_t shift[3]);
/* The executor's store callback. */
tg_status tgi_store_rows(void *store, int o, const tgi_view *view, const tgi_box *box,
                         tgi_err *err);
/* The same for pixels that a device has converted: dense, as tgi_device_pixels says, over `box`
 * of the network's output; counts: two for each of its rows. */
tg_status tgi_store_pixels(tgi_store *s, const tgi_box *box, const void *pixels,
                           const uint32_t *counts, tgi_err *err);
int64_t tgi_store_tiles_done(const tgi_store *s); /* submitted by this run */
/* Values of the network that are NaN or infinite, in the tiles of this run. */
int64_t tgi_store_nonfinite(const tgi_store *s);
/* Share of the values of this run that an integer output cannot hold and that were clipped. */
double tgi_store_clipped(const tgi_store *s);

#endif

/* pass.h - a pass of a network over cells: reservation, threads, packed weights, rows in, bands,
 * times. Who needs one hands it an end: where rows come from and go to, and what is done between
 * bands.
 *
 * A run takes what its plan says, on the processor or on a device (tgi_pass_reserve), and walks
 * all cells of all items. Verify, preview and calibrate bring a tiling of their own
 * (tgi_pass_take), and may walk one core of it. */
#ifndef TGI_PASS_H
#define TGI_PASS_H

#include "engine/ends/carried.h"
#include "engine/exec/exec.h"
#include "engine/job/pass_stages.h"
#include "engine/job/run_device.h"
#include "engine/memory/tracker.h"

typedef struct tgi_pass_end {
    void *user;
    /* Rows of input i, where they do not come from an image; NULL: they do. */
    tg_status (*load)(void *user, int i, const tgi_view *view, const tgi_box *box,
                      tgi_err *err);
    tg_status (*store)(void *user, int o, const tgi_view *view, const tgi_box *box,
                       tgi_err *err);
    /* Not TG_OK: the pass ends. `stop` is asked between nodes and cells, `tick` after each
     * band. NULL: never. */
    tg_status (*stop)(void *user, tgi_err *err);
    tg_status (*tick)(void *user, tgi_err *err);
    /* The pass turns to a cell, whose core begins at pixel `at` of the output: rows of it that
     * are still missing. NULL: all are. */
    tgi_range (*turn)(void *user, int64_t item, const tgi_range core[3], const int64_t at[3],
                      tgi_affine out);
    /* 0: nothing of the item is missing; a pass in stages leaves it out. NULL: all are missing. */
    int (*wants)(void *user, int64_t item);
    /* Of a network that hands values from frame to frame: all of them are computed from *first on, with what
     * holds before it; and an item is about to begin. NULL: from the first one on. */
    tg_status (*first)(void *user, int64_t *first, tgi_err *err);
    tg_status (*begins)(void *user, int64_t item, tgi_err *err);
} tgi_pass_end;

typedef struct tgi_pass {
    tg_job *job;              /* borrowed; NULL: rows do not come from a job's image */
    const tgi_tiling *tiling; /* borrowed; NULL: rows are read, nothing is computed */
    tgi_pass_end end;
    tgi_reserve *reserve;
    tgi_threads *pool;
    tgi_exec *exec;        /* NULL on a device */
    tgi_run_device device; /* in its place */
    tgi_loader *loader;    /* of an image */
    tgi_stats *sets;       /* of an image: job->map.n_stats of them, zero */
    tgi_carried carried;   /* from frame to frame, in carried_memory */
    void *carried_memory;
    int64_t at_in[3];       /* where the loader's boxes lie */
    tgi_pass_stages stages; /* of a net in several: tiling and exec are those at hand */
    void *arena, *packed, *staging[2], *window, *rows, *receipt; /* blocks of the plan */
    size_t staging_bytes;       /* of each; both are the same one where nothing is read ahead */
    int64_t item, cells, bands; /* the item at hand; cells and bands that are behind it */
    tgi_busy busy;              /* while kernels work, or a device is waited for */
    tgi_affine out;             /* of that item: from the network's numbers to the file's */
} tgi_pass;

/* All memory of the plan, weights in it, before anything else is touched. TG_E_NOMEM, with what
 * is free: it is not there. Whatever it answers, and again and again: tgi_pass_close. */
tg_status tgi_pass_reserve(tgi_pass *p, tg_job *job, tgi_err *err);
/* The memory of one tiling on the processor: weights, arena, `staging` bytes for rows of an
 * image, the n blocks that are wanted beside them, and `more` bytes. `job` and `t` as in
 * tgi_pass: not both are NULL. */
tg_status tgi_pass_take(tgi_pass *p, tg_job *job, const tgi_tiling *t, size_t staging,
                        const tgi_want *beside, int n, size_t more, tgi_err *err);
/* On the device that is open: the cells of one tiling, once. `io` fetches and takes their pixels,
 * in `form`. It takes no memory here, and there is nothing to open. */
tg_status tgi_pass_take_device(tgi_pass *p, tg_job *job, const tgi_tiling *t,
                               const tgi_device_form *form, const tgi_device_io *io,
                               tgi_err *err);
/* Rows of an image come from `source`, borrowed; NULL: inputs are arrays. */
tg_status tgi_pass_open(tgi_pass *p, tgi_source *source, const tgi_pass_end *end, tgi_err *err);
/* One core, which the slots of the tiling hold; the loader is turned to its place. */
tg_status tgi_pass_core(tgi_pass *p, const tgi_range core[3], tgi_err *err);
/* All cells; again: what is missing of them. */
tg_status tgi_pass_walk(tgi_pass *p, tgi_err *err);
/* Parts of these that a pass in stages calls for each: the loader, the executor of p->tiling; its
 * cells from one on, for the item at hand; rows of an input of the network, which is input i of the
 * stage. */
tg_status tgi_pass_open_loader(tgi_pass *p, tgi_source *source, tgi_err *err);
tg_status tgi_pass_open_exec(tgi_pass *p, tgi_err *err);
tg_status tgi_pass_walk_cells(tgi_pass *p, int64_t from, tgi_err *err);
/* ... rows of an output of the network. */
tg_status tgi_pass_store_port(tgi_pass *p, int port, const tgi_view *view, const tgi_box *box,
                              tgi_err *err);
tg_status tgi_pass_load_port(tgi_pass *p, int port, int i, const tgi_view *view,
                             const tgi_box *box, tgi_err *err);
/* Where the time went. `write_wait`: seconds that `store` waited for what writes. */
void tgi_pass_times(const tgi_pass *p, double write_wait, tg_run_result *res);
/* Nothing is read or handed to the end any more; memory and threads, which the end may still
 * use, are there. */
void tgi_pass_stop(tgi_pass *p);
/* The rest. */
void tgi_pass_close(tgi_pass *p);

#endif

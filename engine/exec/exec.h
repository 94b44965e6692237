/* exec.h - obeys a tiling: walks the bands of a cell, calls the kernels, allocates nothing.
 *
 * One executor works on one cell at a time. The caller hands in rows of the inputs when asked
 * and takes finished rows of the outputs at the end of each band, both through views. */
#ifndef TGI_EXEC_H
#define TGI_EXEC_H

#include "engine/base/busy.h"
#include "engine/plan/tiling.h"
#include "kernels/threads.h"

typedef struct tgi_exec tgi_exec;

typedef struct tgi_exec_io {
    void *user;
    /* Fill input i: rows of the stream axis; columns (and rows of axis 3) as `box` says, in the
     * input's image coordinates, all inside the image. Write through the view. */
    tg_status (*load)(void *user, int i, const tgi_view *view, const tgi_box *box,
                      tgi_err *err);
    /* Take rows of output o that lie in the cell's core. */
    tg_status (*store)(void *user, int o, const tgi_view *view, const tgi_box *box,
                       tgi_err *err);
    /* Asked before every node: TG_E_CANCELLED, with the job's own words, ends the band. NULL:
     * never. */
    tg_status (*stop)(void *user, tgi_err *err);
    /* Where input i lies that is read in place (tgi_stage_in), dense, [z][y][block][x][lane], in
     * the lanes of the net. NULL: the stage has none such. */
    const float *(*place)(void *user, int i);
    /* Fill a row of pixels [p) of input i, which is loaded in pieces (tgi_stage_in), through the
     * view: x is a pixel's number. NULL: the stage has none such. */
    tg_status (*piece)(void *user, int i, const tgi_view *view, tgi_range p, tgi_err *err);
} tgi_exec_io;

/* `packed`: weights written by tgi_net_pack; `arena`: tiling->arena_bytes, 64-byte aligned;
 * both borrowed, as is the pool (may be NULL). Returned; tgi_exec_close. */
tg_status tgi_exec_open(const tgi_tiling *t, const void *packed, void *arena, tgi_threads *pool,
                        const tgi_exec_io *io, tgi_exec **out, tgi_err *err);
/* What it takes beside arena and weights. */
size_t tgi_exec_bytes(const tgi_tiling *t);
void tgi_exec_close(tgi_exec **e);

/* Begin a cell: core[axis-2] in output-0 pixels; the stream range may be any part of the cell's
 * (resume). 0: it has no band. */
int tgi_exec_begin(tgi_exec *e, const tgi_range *core);
/* One band: feed, compute, hand out. *done is set when the cell is complete. */
tg_status tgi_exec_band(tgi_exec *e, int *done, tgi_err *err);
/* Run a whole cell. */
tg_status tgi_exec_cell(tgi_exec *e, const tgi_range *core, tgi_err *err);
/* Rows of input i that the next band will ask for: what a reader can fetch ahead. */
void tgi_exec_next_load(const tgi_exec *e, int i, tgi_box *box);
/* Where the seconds of all bands so far went: kernels, the load callback, the store callback.
 */
typedef struct tgi_exec_times {
    double compute, load, store;
} tgi_exec_times;
tgi_exec_times tgi_exec_seconds(const tgi_exec *e);
/* From now on `busy`, borrowed, runs while kernels do: `compute` of the seconds above. */
void tgi_exec_watch(tgi_exec *e, tgi_busy *busy);
/* From now on add what each node takes by `clock` to seconds[its position in the stage], which
 * is borrowed. */
void tgi_exec_time_nodes(tgi_exec *e, double (*clock)(void), double *seconds);

#endif

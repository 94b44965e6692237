/* stream.h - which rows and columns of every value a piece of output needs, and when they can
 * be computed: the arithmetic of bands and strips, shared by the planner (which only counts)
 * and the executor (which also runs the kernels), so that the two cannot disagree.
 *
 * A *cell* is a box of output that is computed in one go: the whole width or a strip of it on
 * the tile axes, any range of rows on the stream axis. Boxes are separable, so each axis is
 * treated alone: tgi_axis_need for the tile axes, tgi_flow for the stream axis.
 *
 * THE FLOW of one cell, per value v, in rows of v:
 *
 *        lo[v]      keep[v]              end[v]           hi[v]
 *          |  gone    |  in the ring       |  not yet       |
 *
 *  1. rows outside [lo,hi) are never computed; hi comes from the cell backward, so the last
 *     band of a cell stops exactly where its core ends.
 *  2. inputs are fed up to multiples of the band height in *absolute* rows: a run that begins
 *     in the middle (resume, shard) meets the same band ends and needs no larger ring.
 *  3. a node computes [end, e) with the largest e whose needed rows are all there.
 *  4. after a band, keep is the first row that any later row of a consumer still reads.
 */
#ifndef TGI_STREAM_H
#define TGI_STREAM_H

#include "engine/plan/stage.h"

/* Intervals of every value on one axis when the stage's output 0 must yield `core` (the other
 * outputs yield their proportional share). stored[v]: with the columns outside the image that a
 * consumer reads as zeros; inside[v]: clipped to the image, what is computed. Arrays of
 * net->n_values; values that the stage does not know stay as they are in them. */
void tgi_axis_need(const tgi_stage *stage, int axis, tgi_range core, tgi_range *stored,
                   tgi_range *inside);
/* The same of n cores, in one walk over the nodes: those of value v from stored[v * n] and
 * inside[v * n] on. */
void tgi_axis_needs(const tgi_stage *stage, int axis, const tgi_range *core, int n,
                    tgi_range *stored, tgi_range *inside);

/* The share of output `o` that goes with `core` of output 0 on an axis; of a reduction that of
 * whole granules. */
tgi_range tgi_axis_share(const tgi_stage *stage, int axis, int o, tgi_range core);

typedef struct tgi_flow {
    const tgi_stage *stage;
    int64_t band;
    int64_t at; /* row of input 0 up to which the bands so far go, a multiple of `band` */
    int64_t *lo, *hi, *end, *keep; /* net->n_values each */
    int64_t *step;                 /* rows that a node yielded last, by its first result */
    tgi_range *work;               /* two arrays of n_values for tgi_axis_need */
} tgi_flow;

tg_status tgi_flow_open(tgi_flow *f, const tgi_stage *stage, tgi_err *err);
/* What that takes. */
size_t tgi_flow_bytes(const tgi_stage *stage);
void tgi_flow_close(tgi_flow *f);
/* Start a cell whose output 0 covers rows `core`. Bands end at the same rows wherever a cell begins:
 * one that goes on in the midst of another takes no more of any value in a band than that one does. */
void tgi_flow_begin(tgi_flow *f, tgi_range core, int64_t band);
/* Rows to load into the stage's input i for the next band; advances end. Empty when it has all.
 */
tgi_range tgi_flow_feed(tgi_flow *f, int i);
/* How far values are: v at at[v * stride]. */
typedef struct tgi_reached {
    const int64_t *at;
    int64_t stride;
} tgi_reached;
/* Up to which row node i (of the net) can compute when it has rows below `from` and values are
 * as far as `ends` says. */
int64_t tgi_flow_reach(tgi_flow *f, int i, tgi_reached ends, int64_t from);
/* Rows that the node at position k of the stage can compute now; advances end of its outputs.
 * May be empty. */
tgi_range tgi_flow_advance(tgi_flow *f, int k);
/* End of a band: rows no later step reads are given up. */
void tgi_flow_release(tgi_flow *f);
/* 1 when every output is complete. */
int tgi_flow_done(const tgi_flow *f);

/* What walking the bands costs beside arithmetic. */
typedef struct tgi_flow_cost {
    double calls;        /* of kernels: a node has none in bands that complete no row of it */
    double weight_bytes; /* packed weights that those calls read */
} tgi_flow_cost;

/* What going through the bands of cells adds up to. */
typedef struct tgi_flow_count {
    int64_t *ring;          /* per value: most rows alive together */
    unsigned char *carried; /* per value: 1 when rows survive a band */
    double *rows;           /* per position: rows computed, added to */
    int64_t *band_rows;     /* per position: most rows computed in one band */
    int64_t *fed;           /* per value that is loaded: most rows fed at once */
    tgi_flow_cost *cost;    /* added to */
} tgi_flow_count;

/* What a cell needs, by going through its bands without computing; adds to the number of bands.
 * Ends when somebody asks to stop. */
tg_status tgi_flow_simulate(tgi_flow *f, tgi_range core, int64_t band, const tgi_flow_count *c,
                            int64_t *bands, tgi_err *err);

#endif

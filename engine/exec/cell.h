/* cell.h - where a cell stands: the intervals and views of all values while its bands go by.
 * What the executors of processor and device have in common. */
#ifndef TGI_CELL_H
#define TGI_CELL_H

#include "engine/plan/tiling.h"

typedef struct tgi_cell {
    const tgi_tiling *t;
    const tgi_stage *stage;
    const tgi_net *net; /* the stage's */
    void *arena;        /* views count from here; an address of the device there */
    tgi_flow flow;
    tgi_range core[3];
    tgi_range *stored[3], *inside[3]; /* [axis - 2]: per value (tile axes) */
    tgi_range *ranges;                /* their storage */
    tgi_view *view;                   /* per value */
} tgi_cell;

/* `t` and `arena` borrowed. Safe to close any time after it was zeroed. */
tg_status tgi_cell_open(tgi_cell *c, const tgi_tiling *t, void *arena, tgi_err *err);
/* What that takes. */
size_t tgi_cell_bytes(const tgi_tiling *t);
void tgi_cell_close(tgi_cell *c);
/* Begin: core[axis-2] in output-0 pixels; the stream range may be any part of the cell's
 * (resume). */
void tgi_cell_begin(tgi_cell *c, const tgi_range *core);
/* Box of rows [r) of a value over all its computed columns. */
tgi_box tgi_cell_rows(const tgi_cell *c, int v, tgi_range r);
/* Of output o, rows [from, its end): what the core keeps of them. */
tgi_box tgi_cell_kept(const tgi_cell *c, int o, int64_t from);
/* Rows of input i that the next band will ask for. */
tgi_box tgi_cell_next_load(const tgi_cell *c, int i);
/* The operands of the node at position k; their views go to seg[]. Returns how many. */
int tgi_cell_operands(const tgi_cell *c, int k, tgi_view *seg, tgi_operand *src);

#endif

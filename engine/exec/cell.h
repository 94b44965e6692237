/* cell.h - where a cell stands: the intervals and views of all values while its bands go by.
 * What the executors of processor and device have in common. */
#ifndef TGI_CELL_H
#define TGI_CELL_H

#include "engine/plan/tiling.h"

typedef struct tg_cell {
    const tg_tiling *t;
    const tg_stage *stage;
    const tg_net *net; /* the stage's */
    void *arena;       /* views count from here; an address of the device there */
    tg_flow flow;
    tg_range core[3];
    tg_range *stored[3], *inside[3]; /* [axis - 2]: per value (tile axes) */
    tg_range *ranges;                /* their storage */
    tg_view *view;                   /* per value */
} tg_cell;

/* `t` and `arena` borrowed. Safe to close any time after it was zeroed. */
tg_status tgi_cell_open(tg_cell *c, const tg_tiling *t, void *arena, tgi_err *err);
void tgi_cell_close(tg_cell *c);
/* Begin: core[axis-2] in output-0 pixels; the stream range may be any part of the cell's
 * (resume). */
void tgi_cell_begin(tg_cell *c, const tg_range *core);
/* Box of rows [r) of a value over all its computed columns. */
tg_box tgi_cell_rows(const tg_cell *c, int v, tg_range r);
/* Of output o, rows [from, its end): what the core keeps of them. */
tg_box tgi_cell_kept(const tg_cell *c, int o, int64_t from);
/* Rows of input i that the next band will ask for. */
tg_box tgi_cell_next_load(const tg_cell *c, int i);
/* The operands of the node at position k; their views go to seg[]. Returns how many. */
int tgi_cell_operands(const tg_cell *c, int k, tg_view *seg, tg_operand *src);

#endif

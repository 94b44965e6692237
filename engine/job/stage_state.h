/* stage_state.h - what a run in stages writes down, and how the next one goes on with it.
 *
 * A record (out/stage_log.h) is written between bands, when rows of kept values are on the disk:
 *
 *   which item, stage and cell; per output of the stage, rows of the cell that are handed out;
 *   numbers of reductions that are finished, states of those that are being gathered;
 *   values in memory, where they are few;
 *   a sum of each value on disk;
 *   how far the list is of what could not be decoded (--on-bad-tile fill): its rows are in values by
 *   then, and the journal states it with the first tile only.
 *
 * GOING ON. What is kept on disk is read once and compared with its sum. Values in memory are gone:
 * their stages run again, without gathering what is known. Of the stage at hand the rows that are
 * there stay, if it has the same cells and bands as before; else it begins again. When anything is
 * missing or damaged the item begins with its first stage. Output tiles stay in any case. */
#ifndef TGI_STAGE_STATE_H
#define TGI_STAGE_STATE_H

#include "engine/out/bad_tiles.h"
#include "engine/out/stage_log.h"
#include "engine/plan/staged.h"

#include <stdatomic.h>

typedef struct tgi_stage_record {
    uint64_t id;   /* of the file of kept values */
    uint64_t plan; /* checksum of cut and places */
    int64_t item, items;
    int32_t stage, stages; /* at hand; how many */
    int64_t cell, cells;   /* of the stage */
    int64_t cut[3], band;  /* its tiling */
    /* For who watches (tg_output_look); nobody goes on with it. The stage that is computed may be an
     * earlier one, whose values in memory are gone. */
    int32_t at, again;
    int64_t at_cell, at_cells, rows, rows_in_all; /* of its output 0, in the cell */
    double did, left, item_work; /* of this run; of the item at hand; of a whole item */
    double began, written;       /* by the clock of the day */
    int64_t process;
    tgi_bad_state bad; /* of OUT.errors.partial, when it was written */
} tgi_stage_record;

typedef struct tgi_stage_state {
    tgi_stage_log *log; /* NULL: nothing is written down */
    tgi_stage_owner owner;
    tgi_stage_record now;
    int64_t *done;          /* per output of the stage: rows of the cell handed out; -1: none */
    int n_done;             /* outputs of a stage, at most */
    _Atomic uint64_t *sums; /* per kept value */
    unsigned char *needs;   /* per stage: it runs for the item at hand */
    int goes_on;            /* `now` is of an earlier run, and its item has not come yet */
    int resumed;            /* stage, from 1, in which this run went on; 0: in none */
    double last;            /* when a record was written */
    int64_t row0;           /* of the cell at hand */
    double to_do, behind;   /* work of the item at hand, of items before it */
    int fd;                 /* of the kept file; -1 */
} tgi_stage_state;

struct tgi_pass;

/* Open for output OUT; `job`: checksum of what its journal says. */
tg_status tgi_stage_state_open(struct tgi_pass *p, const char *output, uint64_t job,
                               tgi_err *err);
void tgi_stage_state_close(tgi_stage_state *s);
/* Before the run goes on beside its journal: *bad is what that knows, and what the newest record knows
 * where this is more. */
void tgi_stage_state_bad(const char *output, uint64_t job, tgi_bad_state *bad);
/* An item begins: *stage and *cell where to go on, 0 and 0 mostly. `needs` is set. */
tg_status tgi_stage_state_item(struct tgi_pass *p, int *stage, int64_t *cell, tgi_err *err);
/* The box of output o that a cell of a stage hands out, up to row `end` (-1: all of it). */
tgi_box tgi_stage_state_share(const tgi_tiling *t, int o, int64_t cell, int64_t end);
/* A stage begins at a cell; the record says so when it is written next. */
void tgi_stage_state_turn(struct tgi_pass *p, int64_t cell);
/* The same for who watches: a cell of the stage that is computed, its rows; up to which row it is
 * handed out. */
void tgi_stage_state_watch(struct tgi_pass *p, int64_t cell, const tgi_range *rows);
void tgi_stage_state_rows(struct tgi_pass *p, int64_t end);
/* Of all work, and of what this run has to do: what is behind it. 0: not known. */
int tgi_stage_state_progress(const struct tgi_pass *p, double *done, double *own);
/* Write a record now, or when it is time. */
tg_status tgi_stage_state_write(struct tgi_pass *p, tgi_err *err);
tg_status tgi_stage_state_tick(struct tgi_pass *p, tgi_err *err);
/* All is in the output: nothing of it is of use any more, nor what an earlier run in stages left
 * that this one, which is none, went on with. The blocks of the disk are free then. */
tg_status tgi_stage_state_remove(struct tgi_pass *p, const char *output, tgi_err *err);

#endif

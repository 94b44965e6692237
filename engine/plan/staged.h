/* staged.h - a network that is computed stage by stage: a tiling for each stage, and where what
 * passes from one to another is kept.
 *
 * An image that fits is computed in one stage. Where it does not, and operators read whole
 * extents, the cut of stage.h is run instead:
 *
 *   stage 0      stage 1     stage 2          cells and bands within each; one after another
 *      |--- value a --|         |             kept: in memory, else in a scratch file
 *      |--- value b ------------|
 *      |~~~ numbers ~~|~~~~~~~~~|             of reductions: a few floats, always at hand
 *
 * MEMORY. All stages use one arena (on a device, `room`, each has an executor of its own, and
 * arena_bytes and window_bytes are those of no block), which holds the rows on their way in behind it; the values
 * kept in memory share a block by the stages in which they are alive (arena.h), those on disk a
 * file in the same way. Reductions that are being gathered have a block of states. */
#ifndef TGI_STAGED_H
#define TGI_STAGED_H

#include "engine/plan/choose.h"

typedef struct tgi_kept_value {
    int value;
    int made, last; /* the stage that yields it, and the last one that reads it */
    int needed; /* on disk: the last one in which a run that goes on may want it, to make values in
                   memory again; `last` or later */
    int on_disk;
    uint64_t bytes;
    uint64_t at; /* in the block in memory, or in the file */
} tgi_kept_value;

/* Of a reduction, one part of its operand: its stage gathers a state (kernels/granule.h), and of
 * all parts of a node come numbers. Listed by stage, node and channel. */
typedef struct tgi_gathered {
    int node;        /* of the net */
    int stage;       /* that gathers it */
    int out;         /* of the stage */
    int64_t channel; /* of the operand: the part's first */
    tgi_desc full;   /* of the part */
    size_t state_at, state_bytes;
    size_t numbers_at; /* of the node: floats */
} tgi_gathered;

typedef struct tgi_staged {
    tgi_stages *cut;    /* borrowed: stage[k] */
    int n;              /* stages */
    tgi_tiling *tiling; /* n */
    tgi_kept_value *kept;
    int n_kept;
    tgi_gathered *gathered;
    int n_gathered;
    size_t kept_bytes;    /* of the block in memory */
    uint64_t disk_bytes;  /* of the file */
    uint64_t moved_bytes; /* written to the file and read from it, all together */
    size_t state_bytes;   /* of the block of states, of one stage at a time */
    size_t moments_at;    /* in it: room for what is gathered of all channels of a node */
    size_t n_numbers;     /* floats */
    size_t n_channels;    /* of a reduction's operand, at most */
    size_t held_bytes;    /* by this struct and by the tables of its stages */
    size_t arena_bytes;   /* with the rows on their way in */
    size_t window_bytes;  /* beside it, of the stage that hands out the net's first output */
    double seconds;
} tgi_staged;

typedef struct tgi_staged_args {
    tgi_choose_args choose;  /* `stage` is not looked at */
    tgi_stages *cut;         /* lifetimes are filled in */
    const tgi_stages *other; /* a second cut that is held beside it, or NULL */
    uint64_t disk_limit;     /* bytes that may be kept on disk */
    int one_of_many; /* nobody asks what the smallest plan would take where values alone are too much */
    /* Cell and band of the stage of the output that an interrupted run had: they stay where they fit,
     * for tiles lie in the file in the order of the cells. Band 0: there was none. */
    int64_t was_cut[3], was_band;
    /* Bytes of the input rows that are read ahead, a part of what choose.extra answers: they
     * lie in the arena's block. NULL: none. */
    size_t (*rows)(void *user, const tgi_tiling *t);
    /* Stages have memory of their own, of a device: so many bytes for each of them, where `beside`
     * bytes lie in this machine's memory as long as they run; 0: there is no room for those.
     * NULL: all share choose.limit_bytes. */
    size_t (*room)(void *user, size_t beside);
} tgi_staged_args;

/* Choose a tiling for each stage, and what is kept where: as much in memory as is fastest. Into
 * out->staged, and out->tiling, of the stage that hands out the net's first output.
 * TG_E_BUDGET: nothing fits; out->smallest_bytes says what the smallest would take, as far as
 * disk_limit goes. What was tried before in one pass stays listed. Release with tgi_choice_free. */
tg_status tgi_choose_staged(const tgi_staged_args *a, tgi_choice *out, tgi_err *err);
void tgi_staged_free(tgi_staged **s);
/* Plans that were tried later leave marks in the cut, of other places; those of `s` are what it is
 * to run with. NULL: nothing. */
void tgi_staged_settle(tgi_staged *s);

/* All memory that a staged run has beside weights, arena and window. */
static inline size_t tgi_staged_beside(const tgi_staged *s)
{
    return tgi_sat_add(
        tgi_sat_add(s->kept_bytes, s->state_bytes),
        tgi_sat_add(tgi_align_size(s->n_numbers * sizeof(float), 64), s->held_bytes));
}

/* The stage that hands out the net's first output. */
int tgi_stages_last(const tgi_stages *s);
/* How a value is kept: dense, [z][y][block][x][lane], as in views of full rings, in lanes of the net;
 * of a device in planes. */
uint64_t tgi_kept_bytes(const tgi_net *net, int v);
/* Channels that lie side by side there. */
int tgi_kept_lanes(const tgi_net *net, int v);
/* Where value v is kept; NULL: it is not. */
const tgi_kept_value *tgi_kept_of(const tgi_staged *s, int v);
/* The reduction that yields value v; NULL: none does. */
const tgi_gathered *tgi_gathered_of(const tgi_staged *s, int v);

#endif

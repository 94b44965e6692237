/* stage.h - where the pass over the image has to be interrupted, and what is kept meanwhile.
 *
 * Between net and tiling. An operator that reads the whole extent of a value (op_class
 * TGI_OP_WHOLE) cannot give its first pixel before the last pixel of that value is there: the
 * value ends a *stage*. A stage is a part of the net that one pass in cells and bands computes;
 * tiling and executor work on stages and on nothing else, and a job is a loop over them.
 *
 * What a node needs of the whole extent, by its operands and attributes, decides where it lies:
 *
 *   a reduction (tgi_reduce, op.h: a mean, the numbers of a norm): gathered while the rows of its
 *                     operand pass. The stage hands it out; it is no node of any stage. Later
 *                     stages load its few numbers.
 *   all pixels at once, or large arrays that are no images: a stage of such nodes and nothing
 *                     else, whose operands are stored before and whose results are stored. The
 *                     layers around it still stream.
 *   all pixels of some operands and rows of another (attention: keys and values, queries): it
 *                     streams; what it reads whole was stored by an earlier stage and is loaded at
 *                     once.
 *   rows out of rows: a stage that streams.
 *
 * INVARIANTS of the cut
 *  1. every node lies in the earliest stage that can compute it or, of those that only stream, in
 *     the first one that uses what it yields; there are as many stages as this order demands.
 *  2. a value used in a later stage than its own is stored, or its nodes are in the later stage's
 *     list too: recomputed. The inputs of the net are at hand in every stage.
 *  3. in[]: the first n_loaded are read from outside, the others recomputed. in[0] drives: bands
 *     are counted in its rows, and it has the most of those that are not loaded at once.
 *     A loaded value is the result of no node of the stage. Where nothing large is loaded but at
 *     once, a cell is one band.
 *  4. out[0] is what cells are cut of: an output of the net, or what has the most rows.
 *
 * An image that fits is computed in one stage, `one`: the whole net, in which whole-extent
 * operators find their operands from edge to edge. The bits are the same. */
#ifndef TGI_STAGE_H
#define TGI_STAGE_H

#include "engine/base/json.h"
#include "engine/plan/fit.h"
#include "engine/plan/net.h"

typedef struct tgi_stage_in {
    int value;
    int recomputed; /* 0: stored (or an input of the net) and loaded */
    int at_once;    /* a node reads all of it: loaded in the first band of each cell, or: */
    int in_place;   /* kept in memory: it is read where it lies, and never loaded */
    int in_pieces;  /* kept on disk: each band loads it piece by piece (tgi_stage_piece) */
} tgi_stage_in;

typedef struct tgi_stage_out {
    int value;
    int whole;       /* net index of the whole-extent node that waits for it, or -1 */
    int reduced;     /* 1: the node's reduction of the value; 0: the value itself */
    int64_t channel; /* of a reduction: the value's first channel in the node's operand */
    int port;        /* which output of the net it is; -1: none */
    tgi_pick pick;   /* of an output of the net: what it is of the value's channels */
} tgi_stage_out;

typedef struct tgi_stage_value {
    int live;        /* has a buffer in this stage */
    int first, last; /* positions in node[]: -1 = loaded, n_nodes = handed out */
} tgi_stage_value;

typedef struct tgi_stage {
    const tgi_net *net; /* borrowed */
    int *node;          /* indices into net->nodes, in order */
    int n_nodes;
    tgi_stage_in *in;
    int n_in, n_loaded;
    tgi_stage_out *out;
    int n_out;
    tgi_fit fit[3];          /* [axis - 2]: what of output 0 is wanted, and in which boxes */
    tgi_stage_value *values; /* net->n_values; of the cut NULL until tgi_stage_lifetimes */
    const char *whole_op;    /* a node computed here from a whole extent at once, or NULL */
} tgi_stage;

/* What a cut stores: values that are dearer to make again than to move `dearer` times, and of no
 * more than `most` bytes. */
typedef struct tgi_sparing {
    double most, dearer;
} tgi_sparing;

#define TGI_SPARES_NOTHING ((tgi_sparing){1e300, 1})
#define TGI_SPARES_ALL ((tgi_sparing){0, 1})

typedef struct tgi_stages {
    tgi_stage one;    /* the net uncut */
    tgi_stage *stage; /* the cut */
    int n;
    /* The same, where less is stored: a list by this member, in no order (tgi_stages_spare). */
    struct tgi_stages *sparing;
    tgi_sparing spares;
    size_t bytes;   /* of a sparing cut: what it takes */
    size_t floor;   /* what tgi_choose_staged found that its stages need, the last one */
    int floor_used; /* aside, with so many fast kernels; -1: not known */
} tgi_stages;

/* What a processor computes while a disk moves one byte: 1e11 operations a second against 1e9
 * bytes. */
#define TGI_FLOPS_PER_BYTE 100.0

/* `net` borrowed. Returned; tgi_stages_free. */
tg_status tgi_stages_new(const tgi_net *net, tgi_stages **out, tgi_err *err);
void tgi_stages_free(tgi_stages **s);
/* Cut once more, for who has no room to store all that pays: *out is one of s->sparing, whose `one`
 * names the net alone. What the net's outputs are wanted of is not said yet (tgi_stages_fit). */
tg_status tgi_stages_spare(tgi_stages *s, tgi_sparing by, tgi_stages **out, tgi_err *err);
/* Do they compute the same in the same stages? */
int tgi_stages_alike(const tgi_stages *a, const tgi_stages *b);
/* Of the sparing cuts none is left but `n` of these. */
void tgi_stages_spare_only(tgi_stages *s, const tgi_stages *const *keep, int n);
/* Sizes of the values that are stored, largest first, each once: *n of them in *out, tgi_free. */
tg_status tgi_stages_sizes(const tgi_stages *s, double **out, int *n, tgi_err *err);
/* Bytes of the tables that a plan has filled in, in stages that are cut. */
size_t tgi_stages_held(const tgi_stages *s);
/* Back to what it was before a plan: no table of its stages, no sparing cut. */
void tgi_stages_forget(tgi_stages *s);
/* 1: it hands other values on to later stages, and for these computes all rows of its cells. */
int tgi_stage_hands_on(const tgi_stage *s);
/* Which value lives from when to when in a stage of the cut, filled in when the stage is cut into
 * cells: a table of all values of the net for each of thousands of stages would be gigabytes
 * that nobody looks at. */
tg_status tgi_stage_lifetimes(tgi_stage *s, tgi_err *err);
/* Narrow what is wanted of the net's output 0 (at first all of it) to what `fit` (z,y,x) keeps,
 * in every stage that hands it out first. */
void tgi_stages_fit(tgi_stages *s, const tgi_fit fit[3]);

/* Pixels of a piece of what is loaded in pieces; 0: the stage has none such. */
int64_t tgi_stage_piece(const tgi_stage *s);
/* Bytes of a piece of value v. */
size_t tgi_stage_piece_bytes(const tgi_stage *s, int v);
/* How often a band looks at value v, over all nodes and their operands. */
int tgi_stage_looks_at(const tgi_stage *s, int v);
/* Which sources of its node k come in pieces, as bits. */
uint32_t tgi_stage_pieces_of(const tgi_stage *s, int k);

/* Node at position k of the stage. */
static inline const tgi_net_node *tgi_stage_node(const tgi_stage *s, int k)
{
    return &s->net->nodes[s->node[k]];
}

/* Extent of output o's value along an axis; output 0 is what tilings cut. */
static inline int64_t tgi_stage_out_dim(const tgi_stage *s, int o, int axis)
{
    return tgi_net_dim(s->net, s->out[o].value, axis);
}

static inline int64_t tgi_stage_in_dim(const tgi_stage *s, int i, int axis)
{
    return tgi_net_dim(s->net, s->in[i].value, axis);
}

/* What reads whole extents, in words: "GlobalAveragePool "Pooling1" and 3 more read the whole
 * image"; "" where nothing does. */
void tgi_stage_whole_text(const tgi_stage *s, char *buf, size_t cap);

/* What the cut leaves: "MatMul "mix" and 2 more need all pixels of an operand at once", the
 * operand has to fit by itself; "" where every stage streams. */
void tgi_stages_at_once_text(const tgi_stages *s, char *buf, size_t cap);
/* Which of them needs most at once: its name, stage and bytes. Returned: how many bytes; 0 and "": none. */
size_t tgi_stages_largest_text(const tgi_stages *s, char *buf, size_t cap);
/* Where these are several: the member "whole_image_only_operators", all their names. */
void tgi_stages_at_once_json(tgi_jw *w, const tgi_stages *s);

/* Members of an open object: "stages" (how many), "stage_cuts" (which operator, after which
 * stage), "whole_image_only" (`at_once`, unless it is "") and, with `detail`, "stage_list" (what
 * each reads and hands out). */
void tgi_stages_json(tgi_jw *w, const tgi_stages *s, const char *at_once, int detail);

#endif

/* stage.h - where the pass over the image has to be interrupted, and what is kept meanwhile.
 *
 * Between net and tiling. An operator that reads the whole extent of a value (op_class
 * TGI_OP_WHOLE) cannot give its first pixel before the last pixel of that value is there: the
 * value ends a *stage*. A stage is a part of the net that one pass in cells and bands computes;
 * tiling and executor work on stages and on nothing else, and a job is a loop over them.
 *
 * What an operator needs of the whole extent decides where its node lies (tgi_whole, op.h):
 *
 *   TGI_WHOLE_REDUCED  a small result per channel, nothing else (GlobalAveragePool): the node
 *                     belongs to the stage that it ends, which hands out the reduction.
 *   TGI_WHOLE_STATS    statistics, then each pixel by itself (InstanceNormalization): the stage
 *                     hands out the statistics, the node lies in a later one and reads the
 *                     pixels there, stored or recomputed.
 *   TGI_WHOLE_VALUE    all pixels: the stage stores the value, the node lies in a later one.
 *
 * INVARIANTS of the cut
 *  1. an operator's whole read ends in the earliest stage it can; operators that wait for the
 *     same stage share one cut. There are as many stages as this order demands, no more.
 *  2. every other node lies in the first stage that uses what it yields, so it is computed at
 *     most one stage before it is needed for good, and never for nobody.
 *  3. a value used in a later stage than its own is stored, or its nodes are in the later
 *     stage's list too: recomputed. The inputs of the net are at hand in every stage.
 *  4. in[]: the first n_loaded are read from outside, the others recomputed.
 *
 * TODAY one stage is executed: `one`, the whole net, which computes whole-extent operators from
 * values that are there from edge to edge. The cut in stage[] is what plan and info show. */
#ifndef TGI_STAGE_H
#define TGI_STAGE_H

#include "engine/base/json.h"
#include "engine/plan/fit.h"
#include "engine/plan/net.h"

typedef struct tgi_stage_in {
    int value;
    int recomputed; /* 0: stored (or an input of the net) and loaded */
} tgi_stage_in;

typedef struct tgi_stage_out {
    int value;
    int whole;     /* net index of the whole-extent node that waits for it, or -1 */
    int reduced;   /* 1: the node's reduction of the value; 0: the value itself, stored */
    tgi_pick pick; /* of an output of the net: what it is of the value's channels */
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

typedef struct tgi_stages {
    tgi_stage one;    /* the net uncut */
    tgi_stage *stage; /* the cut */
    int n;
} tgi_stages;

/* `net` borrowed. Returned; tgi_stages_free. */
tg_status tgi_stages_new(const tgi_net *net, tgi_stages **out, tgi_err *err);
void tgi_stages_free(tgi_stages **s);
/* Who lives from when to when in a stage of the cut, for who tiles it: a table of all values of
 * the net for each of thousands of stages would be gigabytes that nobody looks at. */
tg_status tgi_stage_lifetimes(tgi_stage *s, tgi_err *err);
/* Narrow what is wanted of the net's output 0 (at first all of it) to what `fit` (z,y,x) keeps,
 * in every stage that hands it out first. */
void tgi_stages_fit(tgi_stages *s, const tgi_fit fit[3]);

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

/* Members of an open object: "stages" (how many), "stage_cuts" (which operator, after which
 * stage) and, with `detail`, "stage_list" (what each reads and hands out). */
void tgi_stages_json(tgi_jw *w, const tgi_stages *s, int detail);

#endif

/* graph_priv.h - what the files of engine/graph share and nobody else needs: ownership, edits
 * while a graph is being made canonical, and attributes by name.
 *
 * Edits only mark: a dropped node keeps its place with op == NULL until tgi_graph_clean, so
 * loops over nodes by index stay valid while they edit. */
#ifndef TGI_GRAPH_PRIV_H
#define TGI_GRAPH_PRIV_H

#include "engine/base/mem.h"
#include "engine/graph/graph.h"
#include "engine/graph/readers.h"
#include "io/onnx.h"

#define TGI_MAX_NODES 32768 /* a plan takes some kilobytes for each */
#define TGI_MAX_VALUES (8 * TGI_MAX_NODES)

typedef struct tgi_graph_priv {
    void **blocks; /* owned constant data */
    int n_blocks, cap_blocks;
    int cap_values, cap_nodes;
    int finished;
    tgi_readers readers;             /* of every value, by operands and epilogues */
    tgi_onnx_model *model;           /* keeps the mapped file open */
    int lines;                       /* windows slide over one axis: inputs may be [N,C,L] */
    tgi_desc base_in[TGI_MAX_PORTS]; /* inputs at the base size, graph order */
    /* Of an input that is tied to an output (tgi_graph_tie): that output's port, and the ratio of its open
     * extents to those of input 0 that is being tried. */
    int tied_to[TGI_MAX_PORTS]; /* -1: to none */
    int n_tied;
    struct {
        int64_t up, down;
    } ratio[TGI_MAX_PORTS];
} tgi_graph_priv;

static inline tgi_graph_priv *tgi_priv(const tgi_graph *g)
{
    return g->arena_;
}

/* Memory that lives as long as the graph; NULL with err filled. */
void *tgi_graph_own(tgi_graph *g, size_t bytes, tgi_err *err);

/* ---- Edits (before the graph is finished) ------------------------------------------------ */

/* How many operands, epilogue steps and graph outputs read the value; TGI_MANY_USES: as many or
 * more. */
#define TGI_MANY_USES 3
int tgi_graph_uses(const tgi_graph *g, int value);
/* The nodes that read `value`, in any order: entries behind *at (-1: from the beginning) are
 * looked through; -1 at the end. A node that is changed on the way may be missed or met again.
 */
int tgi_graph_next_reader(const tgi_graph *g, int value, int *at);
/* Let source k of the node read `value`. Whoever edits operands does it by this, or readers go
 * unseen. */
tg_status tgi_graph_set_src(tgi_graph *g, int node, int k, int value, tgi_err *err);
/* The node reads `value` from now on, by an epilogue. */
tg_status tgi_graph_note_reader(tgi_graph *g, int node, int value, tgi_err *err);
/* The only node that reads `value` as an operand, or -1: none, several, an epilogue or an
 * output. */
int tgi_graph_only_user(const tgi_graph *g, int value);
/* Let every reader of `from`, graph outputs too, read `to`. */
tg_status tgi_graph_replace(tgi_graph *g, int from, int to, tgi_err *err);
/* tgi_value.units of `from` for `to`, which has the same rows and columns. A rewrite that takes an
 * axis of extent one away also takes the operators that asked for it (Squeeze, Gemm); then inference
 * asks, at every size. */
void tgi_graph_take_units(tgi_graph *g, int from, int to);
/* Mark a node as gone. */
void tgi_graph_drop(tgi_graph *g, int node);
/* Remove gone and dead nodes, restore topological order and `producer`. TG_E_FORMAT on a cycle.
 */
tg_status tgi_graph_clean(tgi_graph *g, tgi_err *err);
/* Producer of a value if it is a live node of this operator, else NULL. */
tgi_node *tgi_graph_maker(const tgi_graph *g, int value, const char *op);
/* Remember a rewrite for `info -v` (the first 32 lines). */
tg_status tgi_graph_note(tgi_graph *g, tgi_err *err, const char *fmt, ...) TGI_PRINTF(3, 4);
int tgi_node_is(const tgi_node *n, const char *op);

/* ---- Attributes by name: import and rewriting only --------------------------------------- */

int64_t tgi_attr_int(const tgi_node *n, const char *name, int64_t absent);
float tgi_attr_float(const tgi_node *n, const char *name, float absent);
const tgi_ints *tgi_attr_ints(const tgi_node *n,
                              const char *name); /* NULL: absent or not given */
int tgi_attr_enum_is(const tgi_node *n, const char *name, const char *choice);
/* Set one; 0 when the op has no such attribute or choice, or the value is out of range. */
int tgi_attr_set_int(tgi_node *n, const char *name, int64_t v);
int tgi_attr_set_float(tgi_node *n, const char *name, float v);
int tgi_attr_set_enum(tgi_node *n, const char *name, const char *choice);
const tgi_attr *tgi_attr_row(const tgi_op *op, const char *name);

/* ---- Constants --------------------------------------------------------------------------- */

/* One element of a numeric constant. */
double tgi_const_get(const tgi_constant *c, int64_t i);
/* 1 and *out when `v` is a float constant of one element. */
int tgi_value_scalar(const tgi_graph *g, int v, float *out);
/* A float constant that gives each of `channels` one number (or all the same one) when
 * broadcast against rank-`rank` activations: writes channel k to out[k]. 0 when it is anything
 * else. */
int tgi_value_channels(const tgi_graph *g, int v, int rank, int64_t channels, float *out);

/* 1: a failed inference that says nothing about the size it was asked for: the search ends. */
static inline int tgi_search_ends(tg_status st)
{
    return st == TG_E_NOMEM || st == TG_E_CANCELLED;
}

/* ---- Phases of tgi_graph_finish ---------------------------------------------------------- */

/* What tgi_free_sizes replaced: source `src` of the node that yields `dst` was `constant`. */
typedef struct tgi_freed_item {
    int dst, src, constant;
} tgi_freed_item;
typedef struct tgi_freed {
    tgi_freed_item *item; /* tgi_free */
    int n;
} tgi_freed;

tg_status tgi_fold_constants(tgi_graph *g, tgi_err *err);
/* Operations of the node's `eval`, about: what it reads, and what each result takes. */
double tgi_eval_work(const tgi_op *op, const tgi_op_ctx *ctx);
/* free_sizes.c: expressions in place of constants that hold the declared size; and back. */
tg_status tgi_free_sizes(tgi_graph *g, tgi_freed *f, tgi_err *err);
tg_status tgi_fix_sizes(tgi_graph *g, const tgi_freed *f, tgi_err *err);
/* ties.c: the k-th ratios that are tried for inputs which are tied, where the file leaves extents open; 0: there are
 * no more. TG_E_FORMAT: at these shapes one of them is not what the output gives. */
int tgi_ties_set(tgi_graph *g, int64_t k);
tg_status tgi_ties_hold(const tgi_graph *g, const tgi_desc *in, const tgi_shapes *s,
                        tgi_err *err);
tg_status tgi_size_find_base(tgi_graph *g, tgi_err *err);
/* Find out whether the network works on images or on volumes: sets g->spatial and g->base. Call it
 * after tgi_rewrite_edges. TG_E_UNSUPPORTED: neither. */
tg_status tgi_size_find_rank(tgi_graph *g, tgi_err *err);
tg_status tgi_size_analyse(tgi_graph *g, tgi_err *err);
/* Inputs of another size than the base, k = 1 or 2, at which inference succeeds; of 2 the extents
 * are odd where that works, and declared ones are changed where inference takes others. *found
 * 0: no other size works. */
tg_status tgi_size_other(const tgi_graph *g, int k, tgi_desc *in, int *found, tgi_err *err);
/* 1: of [N,?,?,c] the file gives the last extent only. */
int tgi_size_channels_last(const tgi_graph *g, int port);
/* rewrite_edges.c: outputs that the file declares without a shape have the one that is
 * inferred, as long as the graph's axes are the file's. */
tg_status tgi_describe_outputs(tgi_graph *g, tgi_err *err);
tg_status tgi_rewrite_edges(tgi_graph *g, tgi_err *err);
/* rewrite_lines.c: [N,C,L] as [N,C,1,L]. */
tg_status tgi_rewrite_lines(tgi_graph *g, tgi_err *err);
/* 1: there are windows, and all of them slide over one axis. */
int tgi_has_lines_only(const tgi_graph *g);
/* rewrite_tokens.c: rows of a matrix that are pixels, as pixels. */
tg_status tgi_rewrite_tokens(tgi_graph *g, unsigned flags, tgi_err *err);
tg_status tgi_rewrite_canonical(tgi_graph *g, unsigned flags, tgi_err *err);
/* rewrite_parts.c: batch norm in parts; instance norm and upsampling out of parts. */
tg_status tgi_split_norms(tgi_graph *g, const tgi_shapes *s, tgi_err *err);
tg_status tgi_join_norms(tgi_graph *g, const tgi_shapes *s, tgi_err *err);
tg_status tgi_join_doublings(tgi_graph *g, const tgi_shapes *s, tgi_err *err);
tg_status tgi_rewrite_fuse(tgi_graph *g, tgi_err *err);
tg_status tgi_infer_base(const tgi_graph *g, tgi_shapes *out, tgi_err *err);

#endif

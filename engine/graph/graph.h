/* graph.h - the intermediate representation: values and nodes, in execution order.
 *
 * A graph is built by an importer, made canonical by rewrite.c, and immutable afterwards;
 * shapes of a particular image live in a tgi_shapes beside it, so one graph serves every size.
 *
 * INVARIANTS after tgi_graph_finish:
 *  1. nodes are in topological order; no node is dead; each value has one producer at most.
 *  2. shape arithmetic was folded away.
 *  3. an activation is an *image*, [1,C,(D,)H,W] held as float32, or *flat*: an array of any
 *     rank and type that is there as a whole or not at all (tokens, tables of boxes). Where the
 *     model's own input or output has another order of axes (NHWC), `tgi_port.perm` says so and
 *     the graph inside is NC(D)HW. A node that reads or yields something flat, or whose op has
 *     no kernel for images, is evaluated on whole arrays (tgi_node_is_flat).
 *  4. a fused pointwise op is an entry in its host node's epi[], in order of application.
 */
#ifndef TGI_GRAPH_H
#define TGI_GRAPH_H

#include "kernels/op.h"

#define TGI_MAX_PORTS 16
#define TGI_MAX_EPI 16

typedef struct tgi_value {
    char *name;
    int producer; /* node index, or -1 for graph inputs and constants */
    int is_const;
    tgi_constant cst; /* is_const: data owned by the graph or view of the mapped model */
    int declared;     /* 1: `decl` holds the shape that the file declares */
    tgi_desc decl;    /* -1 for a free dimension */
    unsigned units; /* bit a: axis a, of extent one, was taken away; see tgi_graph_take_units */
} tgi_value;

/* One fused pointwise step; `value` is the other operand of a binary step (an activation), else
 * -1. step.src is set by the planner. step.vec points into graph-owned memory. */
typedef struct tgi_epi {
    tgi_epi_step step;
    int value;
    const char *from; /* name of the op it came from, static: "Relu" */
} tgi_epi;

typedef struct tgi_node {
    char *name;
    const tgi_op *op;
    const char *part_of; /* the model's operator that this does the work of, static; NULL: op */
    tgi_op_kind op_class; /* of this node; valid once the graph is finished */
    void *attrs;          /* op->attrs_size bytes, owned */
    int opset;
    int exact; /* 1: by no variant that rearranges sums, whatever the others run by */
    int n_src, n_dst;
    int src[TGI_OP_MAX_SRC]; /* value ids; -1: not given */
    int dst[TGI_OP_MAX_DST]; /* value ids; after fusion: what the last epilogue step yields */
    int n_epi;
    tgi_epi epi[TGI_MAX_EPI];
} tgi_node;

/* The operator as the model names it: what is said to people. */
static inline const char *tgi_node_op_name(const tgi_node *n)
{
    return n->part_of ? n->part_of : n->op->name;
}

/* A graph input or output as the model's file sees it. */
typedef struct tgi_port {
    int value;
    int file_rank; /* rank in the model's file */
    /* declared; -1 where free (also a fixed one freed by proof) */
    int64_t file_dim[TGI_MAX_RANK];
    int perm[TGI_MAX_RANK]; /* graph axis i is file axis perm[i], -1: an axis of size 1 that
                                  the file does not have */
    tg_dtype file_dtype;    /* declared; TG_DTYPE_NONE: not */
    char *name;
} tgi_port;

typedef struct tgi_graph {
    tgi_value *values;
    int n_values;
    tgi_node *nodes;
    int n_nodes;
    tgi_port in[TGI_MAX_PORTS], out[TGI_MAX_PORTS];
    int n_in, n_out;
    int opset;
    int64_t n_params; /* elements of float constants that came from the file */
    int spatial;      /* spatial axes: 2 (H,W) or 3 (D,H,W) */
    int64_t base[3];  /* z,y,x of in[0]: an extent for which inference succeeds; the declared
                         one where the file declares it */
    int fixed_size;   /* 1: the declared spatial size could not be freed */
    /* z,y,x: extents that work are divisor * k + remainder, from minimum on (1 and 0: any) */
    int64_t divisor[3], remainder[3];
    int64_t minimum[3];   /* smallest extent for which inference succeeds */
    char *fixed_why;      /* which node holds the size, when fixed_size */
    char *together[2];    /* why samples along axis 0 or 1 of the file's inputs may not be
                             computed one by one; NULL: they may (samples.h) */
    const tgi_op **plain; /* of each node of the model that is no shape arithmetic; owned */
    int n_plain;
    int n_rewrites;
    char *rewrites[32]; /* what was rewritten, for `info -v` and the fingerprint */
    void *arena_;       /* private: owned constant data */
} tgi_graph;

/* Shapes of every value for one input size. desc[v].dtype == TG_DTYPE_NONE: not computed
 * (dead). known[v].data != NULL: at this size the value is a constant (shape arithmetic); a
 * node all of whose outputs are known is not executed (tgi_node_is_known). */
typedef struct tgi_shapes {
    tgi_desc *desc; /* n_values */
    int n_values;
    tgi_constant *known; /* n_values */
    void *arena_;        /* private: data of `known` */
} tgi_shapes;

/* Build. */
tg_status tgi_graph_new(tgi_graph **out, tgi_err *err);
void tgi_graph_free(tgi_graph **g);
/* Add a value; `name` copied. Returned in *id. */
tg_status tgi_graph_add_value(tgi_graph *g, const char *name, int *id, tgi_err *err);
/* Add a constant with a copy of the data (or, with `borrow`, a view that outlives the graph).
 */
tg_status tgi_graph_add_const(tgi_graph *g, const char *name, const tgi_desc *desc,
                              const void *data, int borrow, int *id, tgi_err *err);
/* Append a node with default attributes; `*out` is valid until the next append. */
tg_status tgi_graph_add_node(tgi_graph *g, const char *op, const char *name, int n_src,
                             const int *src, int n_dst, const int *dst, tgi_node **out,
                             tgi_err *err);
tg_status tgi_graph_add_input(tgi_graph *g, int value, int file_rank, const int64_t *file_dim,
                              tgi_err *err);
tg_status tgi_graph_add_output(tgi_graph *g, int value, tgi_err *err);
/* Canonical forms, folding, fusion; frees or fixes the spatial size; finds divisors. After it
 * the graph is immutable. `flags` below. */
#define TGI_GRAPH_NO_FUSE 1u    /* keep every op a node: what the reference pass runs */
#define TGI_GRAPH_NO_COMMUTE 2u /* keep 1x1 after Resize */
#define TGI_GRAPH_LABELS 4u     /* output 0 becomes the number of its largest channel */
#define TGI_GRAPH_NO_TOKENS 8u  /* keep arrays that are images in another order of axes */
tg_status tgi_graph_finish(tgi_graph *g, unsigned flags, tgi_err *err);

/* Import: parse and lower the file. The mapping stays open inside the graph. */
tg_status tgi_graph_import_onnx(const char *path, tgi_graph **out, tgi_err *err);
/* Import and finish, with the flags of tgi_graph_finish; what goes wrong names the file. */
tg_status tgi_graph_load_onnx(const char *path, unsigned flags, tgi_graph **out, tgi_err *err);
/* Before it is finished: input `in` holds what output `out` gave of the frame before, so that it has its shape,
 * whatever its ratio to the image. Inputs and outputs that are not tied come first from then on; an output that is written as
 * well, or tied to several inputs, is listed again for each of them. TG_E_ARG: there are no such, or not one input is left
 * for the image. */
typedef struct tgi_tie {
    char out[128], in[128];
} tgi_tie;
tg_status tgi_graph_tie(tgi_graph *g, const tgi_tie *tie, int n, tgi_err *err);
/* The output that input `in` is tied to; -1: none, TGI_TIED_TO_FILE: `out` was "", so it holds the same for each
 * frame. */
#define TGI_TIED_TO_FILE (-2)
int tgi_graph_tied_to(const tgi_graph *g, int in);
/* 1: an input is tied to output `out`. */
int tgi_graph_is_carried(const tgi_graph *g, int out);
/* tgi_graph_load_onnx of a network whose inputs are tied so. */
tg_status tgi_graph_load_tied(const char *path, unsigned flags, const tgi_tie *tie, int n,
                              tgi_graph **out, tgi_err *err);
/* What the network's description adds (card.h): steps before and behind it, sizes. */
struct tgi_card;
#define TGI_GRAPH_BARE 16u /* without the steps before it: --normalize stands for them */
/* A package (io/package.h) or an ONNX file. `card`: what holds of it, borrowed until this returns; NULL: what the package
 * itself says. */
tg_status tgi_graph_load_card(const char *path, const struct tgi_card *card, unsigned flags,
                              const tgi_tie *tie, int n, tgi_graph **out, tgi_err *err);
/* The file that the network was read from, which a package names; NULL: it was made otherwise. */
const char *tgi_graph_path(const tgi_graph *g);
/* The i-th file beside the model that holds weights of it: its name below the model's folder.
 * NULL: no more. */
const char *tgi_graph_file(const tgi_graph *g, int i);
/* As tgi_onnx_part_at and tgi_onnx_sum; of a network made otherwise there are no parts. */
struct tgi_onnx_part;
int tgi_graph_part(const tgi_graph *g, int i, struct tgi_onnx_part *out);
void tgi_graph_sum(const tgi_graph *g);
/* As tgi_onnx_unchanged: whoever packed weights asks whether they were the model's. */
tg_status tgi_graph_unchanged(const tgi_graph *g, tgi_err *err);
/* The second half: lower parsed structs. *model is taken on success (set to NULL). */
struct tgi_onnx_model;
tg_status tgi_graph_lower_onnx(struct tgi_onnx_model **model, tgi_graph **out, tgi_err *err);

/* Shapes for input descs (one per graph input, graph order of axes). Reports the first
 * conflict, naming the node. Release with tgi_shapes_free. */
tg_status tgi_graph_infer(const tgi_graph *g, const tgi_desc *in, tgi_shapes *out,
                          tgi_err *err);
void tgi_shapes_free(tgi_shapes *s);
/* 1: this size alone decides what the node yields; there is nothing to execute. */
int tgi_node_is_known(const tgi_shapes *s, const tgi_node *n);

/* 1: the kernels for images work on values of this shape; otherwise the value is flat. */
int tgi_is_image(const tgi_graph *g, const tgi_desc *d);
/* 1: the node runs as op->eval over whole arrays: it waits for all of its operands. */
int tgi_node_is_flat(const tgi_graph *g, const tgi_shapes *s, const tgi_node *n);

/* Input descs (graph order, N = 1) when the first input has extents ext[] = z,y,x; further
 * inputs keep their ratio to it. `in` holds TGI_MAX_PORTS. Valid after tgi_graph_finish. */
void tgi_graph_input_descs(const tgi_graph *g, const int64_t ext[3], tgi_desc *in);

/* 1: axis k (index into z,y,x) is one of the model's first input; lines have no rows. */
int tgi_graph_has_axis(const tgi_graph *g, int k);
/* The one extent that works on axis k, or 0: it is free. An axis that is not there has one. */
int64_t tgi_graph_fixed_extent(const tgi_graph *g, int k);
/* Smallest extent >= n of a free axis k that works. */
int64_t tgi_graph_extent(const tgi_graph *g, int k, int64_t n);

/* Fill the context of one node from shapes. `src`/`dst`/`consts` are caller's scratch arrays of
 * TGI_OP_MAX_SRC / TGI_OP_MAX_DST; the context points into them. For a fused node dst shapes
 * are those of the unfused op too (all steps keep the shape). */
void tgi_node_ctx(const tgi_graph *g, const tgi_shapes *s, const tgi_node *n, tgi_desc *src,
                  tgi_desc *dst, const tgi_constant **consts, tgi_op_ctx *ctx);

/* Text of the graph, a node a line, for -v and debugging. Returned; tgi_free. */
char *tgi_graph_print(const tgi_graph *g, const tgi_shapes *s);

#endif

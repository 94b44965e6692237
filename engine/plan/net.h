/* net.h - a graph at one image size: shapes, the physical layout of every value, the kernel of
 * every node. The first of the deciding phases after import; immutable afterwards.
 *
 * Layout: a value of few channels (at most TGI_PLANAR_MAX) is stored planar, others in blocks
 * of the instruction set's lanes. A Concat over channels whose consumers all take segmented
 * operands is *virtual*: it has no node and no buffer, its consumers read the parts. So is
 * nearest upsampling by two whose consumers all read doubled views: they read its source.
 *
 * On a device an output that only says which channel of a pixel is the largest (ArgMax at the
 * end of a network, or --labels) has neither: the step that makes pixels of it reads the
 * channels themselves. What is in memory for an output is `held`, which else is the output.
 *
 * A *flat* value (graph.h) is dense and row-major; planning sees one row of it, of as many
 * columns as it has floats. A flat node reads all of its operands and computes all of its
 * results at once: operands and results that are images pass through dense copies in scratch.
 * On a device its elements have the backend's type, whatever they are: one column each.
 *
 * Axes: activations are [N,C,<stream>,<tile axes...>]. Axis 2 is the stream axis (y, or z of a
 * volume): bands advance along it. The axes after it are cut into strips. */
#ifndef TGI_NET_H
#define TGI_NET_H

#include "engine/base/arith.h"
#include "engine/graph/graph.h"
#include "engine/plan/reads.h"
#include "kernels/backend.h"
#include "kernels/threads.h"

#define TGI_PLANAR_MAX 4
#define TGI_MAX_OPERANDS (TGI_OP_MAX_SRC + TGI_MAX_EPI)

typedef struct tgi_net_operand {
    int n_seg; /* 0: a constant or not given */
    int value[TGI_MAX_SEG];
    unsigned char doubled[TGI_MAX_SEG]; /* the part is the value, upsampled by its reader */
} tgi_net_operand;

typedef struct tgi_net_node {
    const tgi_node *node;
    tgi_op_ctx ctx; /* points into the arrays below */
    tgi_desc src[TGI_OP_MAX_SRC], dst[TGI_OP_MAX_DST];
    const tgi_constant *consts[TGI_OP_MAX_SRC];
    int n_operands; /* ctx.n_src, then the epilogue's activations */
    tgi_net_operand operand[TGI_MAX_OPERANDS];
    int n_epi;
    int flat;                  /* over whole arrays: as op->eval, or on a device by a variant */
    const struct tgi_net *net; /* whose node it is */
    tgi_epi_step epi[TGI_MAX_EPI];
    tgi_layout_hint hint;
    int exact;                  /* no variant that rearranges its sum */
    unsigned kinds;             /* of variants that are allowed: TGI_KIND_* */
    const tgi_variant *variant; /* NULL: the reference */
    size_t packed_bytes, packed_offset;
    double flops_per_element; /* of dst[0], epilogue included */
    double cost;              /* time of the variant over that of its flops */
} tgi_net_node;

typedef struct tgi_net_value {
    int64_t c; /* logical channels */
    int cb;    /* 1 or lanes */
    int is_out;
    int flat;
    int wide;     /* float32 on any device (tgi_op.wide) */
    tgi_desc ext; /* as planning counts: the image's shape; of a flat value [1,1,(1,)1,floats],
                    on a device [1,1,(1,)1,elements] */
} tgi_net_value;

typedef struct tgi_net {
    const tgi_graph *g; /* borrowed, or `split` */
    /* the same with other nodes (graph/split.h), each made of the one before; NULL: as it was */
    tgi_graph *split[2];
    const tgi_kernel_set *be;
    tgi_shapes shapes;
    int rank; /* of all activations: 4 or 5 */
    tgi_net_node *nodes;
    int n_nodes;
    tgi_net_value *values; /* g->n_values */
    int n_values;
    int in[TGI_MAX_PORTS], out[TGI_MAX_PORTS], n_in, n_out;
    int held[TGI_MAX_PORTS];      /* the value that is in memory for each output */
    tgi_pick pick[TGI_MAX_PORTS]; /* how the output follows from the channels of `held` */
    size_t packed_bytes;          /* all weights in kernel form */
    int *fast;          /* nodes that may rearrange their sums, see tgi_net_use_fast */
    int n_fast, n_used; /* how many there are, and how many do */
    tgi_reads reads;
    int reads_model; /* some node computes from the model's own bytes: nothing packs them */
} tgi_net;

#define TGI_NET_REFERENCE 1u /* reference kernels only, planar layout, no virtual concat */
#define TGI_NET_EXACT 2u     /* no variant that rearranges sums */
/* Variants of these kinds (TGI_KIND_*) where they cost less. */
#define TGI_NET_KINDS(kinds) ((unsigned)(kinds) << 8)

/* `in`: one desc per graph input, N = 1. `g` borrowed. Returned; tgi_net_free. Norms over
 * pixels become two nodes each, and the net has more values than `g`. */
tg_status tgi_net_new(const tgi_graph *g, const tgi_kernel_set *be, const tgi_desc *in,
                      unsigned flags, tgi_net **out, tgi_err *err);
void tgi_net_free(tgi_net **net);

/* Let the first n nodes of `fast` use variants that rearrange their sums (Winograd), the others
 * the direct ones. The list is ordered by the time that a byte of packed weights saves. A new
 * net uses all; tilings made before the call no longer hold. */
void tgi_net_use_fast(tgi_net *net, int n);

/* How many nodes have a variant of one of these kinds. */
int tgi_net_nodes_of(const tgi_net *net, unsigned kinds);

/* Pick the node's kernel anew, with a new hint. */
void tgi_net_pick_variant(const tgi_net *net, tgi_net_node *n, unsigned flags);

/* net_views.c: remove the nodes whose readers can read what they read; part of tgi_net_new. */
tg_status tgi_net_remove_views(tgi_net *net, tgi_err *err);

/* Check that the model's bytes are still those that were opened. Some nodes compute from them
 * while the bands run; so whoever keeps the result of a band asks after it. TG_E_FORMAT: they
 * changed. */
tg_status tgi_net_unchanged(const tgi_net *net, tgi_err *err);

/* phase.c: place the blocks of block-wise kernels; part of tgi_net_new. */
tg_status tgi_net_align_blocks(tgi_net *net, tgi_err *err);

/* Write all packed weights at `dst` (packed_bytes, 64-byte aligned), on all threads. */
void tgi_net_pack(const tgi_net *net, void *dst, tgi_threads *pool);
/* The same for a model that is a file. TG_E_FORMAT: the file changed since the net was made. */
tg_status tgi_net_load(const tgi_net *net, void *dst, tgi_threads *pool, tgi_err *err);

/* Box of operand j that box `dst` of the node reads: the variant's rule, the op's, or the same
 * box. May reach outside the image where the op reads zeros. */
void tgi_net_need(const tgi_net_node *n, const tgi_box *dst, int j, tgi_box *need);

/* Bytes of one element of a value where it is computed. */
static inline size_t tgi_net_element_bytes(const tgi_net *net, const tgi_net_value *v)
{
    return v->wide ? sizeof(float) : tgi_element_bytes(net->be);
}

/* Extent of a value along an axis, as planning counts. */
static inline int64_t tgi_net_dim(const tgi_net *net, int value, int axis)
{
    return net->values[value].ext.dim[axis];
}

/* Which input of the net a value is; -1: none. */
static inline int tgi_net_port(const tgi_net *net, int v)
{
    for (int i = 0; i < net->n_in; i++)
        if (net->in[i] == v)
            return i;
    return -1;
}

/* Bytes of a value as a dense array of its own type, on the host. */
size_t tgi_net_dense_bytes(const tgi_net *net, int value);
/* Scratch of a flat node: a dense copy of each operand and result that is an image, and what
 * its variant wants beside. */
size_t tgi_net_flat_scratch(const tgi_net *net, const tgi_net_node *n);

/* Text of the choices (variant per node), part of the numerics fingerprint. tgi_free. */
char *tgi_net_text(const tgi_net *net);

#endif

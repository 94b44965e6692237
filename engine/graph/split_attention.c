/* split_attention.c - a finished graph whose attention of pixels is what the model wrote, products
 * and a Softmax over arrays: a device that has kernels for those and none for PixelAttention
 * computes it so, with the matrix of all pixels by all pixels. Extents are constants: such a graph
 * is one of a single size.
 *
 * Arrays are [heads, ...], of three axes: never of the rank of images. */
#include "engine/graph/graph_priv.h"
#include "engine/graph/split.h"
#include "kernels/ops/op_attrs.h"

#include <string.h>

#define PARTS_MOST 12  /* nodes that one becomes */
#define VALUES_MOST 16 /* values that it needs, constants too */

/* What nodes and constants point to, for one PixelAttention. */
typedef struct storage {
    union {
        tgi_ints perm;
        axis_attrs axis;
        char bytes[sizeof(tgi_ints) + 64]; /* of any other */
    } attrs[PARTS_MOST];
    int64_t list[4][TGI_MAX_RANK];
    float scale;
} storage;

static int is_wanted(const tgi_graph *g, const tgi_shapes *s, const tgi_node *n)
{
    (void)g;
    (void)s;
    return tgi_node_is(n, "PixelAttention");
}

/* The node that is taken apart, and how far that is. */
typedef struct part {
    tgi_split *to;
    const tgi_node *of;
    storage *own;
    int n_lists, n_nodes;
} part;

static int add_value(part *p)
{
    p->to->values[p->to->graph.n_values] = (tgi_value){.name = p->of->name};
    return p->to->graph.n_values++;
}

static int add_const(part *p, const tgi_desc *d, const void *data)
{
    const int v = add_value(p);
    p->to->values[v].is_const = 1;
    p->to->values[v].producer = -1;
    p->to->values[v].cst = (tgi_constant){*d, data};
    return v;
}

/* A node over arrays of one or two values; its attributes are the defaults. dst -1: a new
 * value. */
static int add_node(part *p, const char *op, int a, int b, int dst)
{
    tgi_node *n = &p->to->nodes[p->to->graph.n_nodes++];
    *n = *p->of;
    n->op = tgi_op_find(op);
    n->op_class = n->op->classify ? TGI_OP_DENSE : n->op->op_class;
    n->part_of = tgi_node_op_name(p->of);
    n->opset = 13;
    n->attrs = &p->own->attrs[p->n_nodes++];
    tgi_attrs_default(n->op->attrs, n->attrs);
    n->n_src = b >= 0 ? 2 : 1;
    n->src[0] = a;
    n->src[1] = b;
    n->src[2] = -1;
    n->dst[0] = dst >= 0 ? dst : add_value(p);
    return n->dst[0];
}

static int reshape(part *p, int v, const int64_t *to, int rank, int dst)
{
    const tgi_desc d = {.dtype = TG_DTYPE_I64, .rank = 1, .dim = {rank}};
    int64_t *list = p->own->list[p->n_lists++];
    memcpy(list, to, (size_t)rank * sizeof *to);
    return add_node(p, "Reshape", v, add_const(p, &d, list), dst);
}

/* [heads, a, b] as [heads, b, a]. */
static int turn(part *p, int v)
{
    const int out = add_node(p, "Transpose", v, -1, -1);
    p->own->attrs[p->n_nodes - 1].perm = (tgi_ints){3, {0, 2, 1}};
    return out;
}

/* [heads, channels of a head, pixels] of an image. */
static int flatten(part *p, const tgi_shapes *s, int v, int64_t heads)
{
    const tgi_desc *d = &s->desc[v];
    int64_t to[3] = {heads, d->dim[1] / heads, 1};
    for (int a = 2; a < d->rank; a++)
        to[2] *= d->dim[a];
    return reshape(p, v, to, 3, -1);
}

static void split_node(tgi_split *to, const tgi_node *n, const tgi_shapes *s, int k)
{
    storage *own = (storage *)to->own + k;
    static const tgi_desc number = {.dtype = TG_DTYPE_F32};
    const attention_attrs *a = n->attrs;
    const tgi_desc *out = &s->desc[n->dst[0]];
    part p = {to, n, own, 0, 0};
    own->scale = a->scale;
    const int q = turn(&p, flatten(&p, s, n->src[0], a->heads));
    const int product = add_node(&p, "MatMul", q, flatten(&p, s, n->src[1], a->heads), -1);
    const int scaled = add_node(&p, "Mul", product, add_const(&p, &number, &own->scale), -1);
    const int weights = add_node(&p, "Softmax", scaled, -1, -1);
    const int values = turn(&p, flatten(&p, s, n->src[2], a->heads));
    const int sums = turn(&p, add_node(&p, "MatMul", weights, values, -1));
    reshape(&p, sums, out->dim, out->rank, n->dst[0]);
}

tg_status tgi_split_attention_of(const tgi_graph *g, const tgi_shapes *s, tgi_graph **out,
                                 tgi_err *err)
{
    static const tgi_split_rule rule = {.what = "nodes of attention",
                                        .wanted = is_wanted,
                                        .apart = split_node,
                                        .nodes = PARTS_MOST - 1,
                                        .values = VALUES_MOST,
                                        .bytes = sizeof(storage)};
    return tgi_split_of(g, s, &rule, out, err);
}

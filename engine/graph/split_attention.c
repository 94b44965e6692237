/* split_attention.c - a finished graph whose attention of pixels is what the model wrote, products
 * and a Softmax over arrays: a device that has kernels for those and none for PixelAttention
 * computes it so, with the matrix of all pixels by all pixels. Extents are constants: such a graph
 * is one of a single size.
 *
 * Arrays are [heads, ...], of three axes: never of the rank of images. */
#include "engine/graph/split_attention.h"
#include "engine/graph/graph_priv.h"
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

typedef struct split {
    tgi_graph graph; /* first: what others see */
    tgi_value *values;
    tgi_node *nodes;
    storage *own;
} split;

static int is_attention(const tgi_node *n)
{
    return tgi_node_is(n, "PixelAttention");
}

/* ---- Nodes ------------------------------------------------------------------------------- */

/* The node that is taken apart, and how far that is. */
typedef struct part {
    split *to;
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

static void split_node(split *to, const tgi_node *n, const tgi_shapes *s, storage *own)
{
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

/* ---- The graph --------------------------------------------------------------------------- */

static void fill(split *to, const tgi_graph *g, const tgi_shapes *s)
{
    int k = 0;
    to->graph = *g;
    to->graph.values = to->values;
    to->graph.nodes = to->nodes;
    to->graph.n_nodes = 0;
    memcpy(to->values, g->values, (size_t)g->n_values * sizeof *g->values);
    for (int i = 0; i < g->n_nodes; i++)
        if (is_attention(&g->nodes[i]))
            split_node(to, &g->nodes[i], s, &to->own[k++]);
        else
            to->nodes[to->graph.n_nodes++] = g->nodes[i];
    for (int i = 0; i < to->graph.n_nodes; i++)
        for (int d = 0; d < to->nodes[i].n_dst; d++)
            to->values[to->nodes[i].dst[d]].producer = i;
}

tg_status tgi_split_attention_of(const tgi_graph *g, const tgi_shapes *s, tgi_graph **out,
                                 tgi_err *err)
{
    int n = 0;
    for (int i = 0; i < g->n_nodes; i++)
        n += is_attention(&g->nodes[i]);
    *out = NULL;
    if (!n)
        return TG_OK;
    split *to = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *to);
    if (to) {
        const size_t values = (size_t)g->n_values + (size_t)n * VALUES_MOST;
        const size_t nodes = (size_t)g->n_nodes + (size_t)n * PARTS_MOST;
        to->values = tgi_calloc(TGI_TAG_PLAN, values, sizeof *to->values);
        to->nodes = tgi_calloc(TGI_TAG_PLAN, nodes, sizeof *to->nodes);
        to->own = tgi_calloc(TGI_TAG_PLAN, (size_t)n, sizeof *to->own);
        *out = &to->graph;
    }
    if (!to || !to->values || !to->nodes || !to->own) {
        tgi_split_attention_free(out);
        return tgi_fail(err, TG_E_NOMEM, "no memory for attention of pixels in %d parts",
                        n * PARTS_MOST);
    }
    fill(to, g, s);
    return TG_OK;
}

void tgi_split_attention_free(tgi_graph **g)
{
    split *s = (split *)(void *)*g;
    if (!s)
        return;
    tgi_free(s->values);
    tgi_free(s->nodes);
    tgi_free(s->own);
    tgi_free(s);
    *g = NULL;
}

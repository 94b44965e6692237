/* split_norms.c - a finished graph whose norms over pixels are two nodes each: NormNumbers, which
 * reads the whole image and yields a few numbers, and NormApply, which changes each pixel by
 * them. So a pass over an image larger than memory ends at the first, and the second goes with
 * the layers behind it.
 *
 * The graph itself stays as it is, since a device has kernels for the norms as they are. What is
 * made here is another list of nodes and values over the same names, constants and attributes. */
#include "engine/graph/split_norms.h"
#include "engine/graph/graph_priv.h"
#include "kernels/ops/op_attrs.h"

#include <string.h>

typedef struct split {
    tgi_graph graph; /* first: what others see */
    tgi_value *values;
    tgi_node *nodes;
    norm_numbers_attrs *attrs; /* of the nodes that are new */
} split;

/* A norm over the pixels of an image, by constant numbers? */
static int splits(const tgi_graph *g, const tgi_shapes *s, const tgi_node *n)
{
    if (!tgi_node_is(n, "InstanceNormalization") && !tgi_node_is(n, "GroupNormalization"))
        return 0;
    return n->op_class == TGI_OP_WHOLE && !tgi_node_is_flat(g, s, n) && n->n_src == 3 &&
           n->src[0] >= 0 && !g->values[n->src[0]].is_const;
}

static int count(const tgi_graph *g, const tgi_shapes *s)
{
    int n = 0;
    for (int i = 0; i < g->n_nodes; i++)
        n += splits(g, s, &g->nodes[i]);
    return n;
}

/* Both nodes; number `k` of the new ones yields value `v`. */
static void split_node(split *to, const tgi_node *n, int k, int v)
{
    norm_numbers_attrs *a = &to->attrs[k];
    tgi_node *numbers = &to->nodes[to->graph.n_nodes++];
    tgi_node *apply = &to->nodes[to->graph.n_nodes++];
    *a = (norm_numbers_attrs){.epsilon = tgi_attr_float(n, "epsilon", 1e-5f),
                              .groups = tgi_attr_int(n, "num_groups", 0)};
    *numbers = *apply = *n;
    numbers->part_of = apply->part_of = tgi_node_op_name(n);
    numbers->op = tgi_op_find("NormNumbers");
    numbers->op_class = TGI_OP_WHOLE;
    numbers->attrs = a;
    numbers->n_epi = 0;
    numbers->dst[0] = v;
    apply->op = tgi_op_find("NormApply");
    apply->op_class = TGI_OP_LOCAL;
    apply->attrs = NULL;
    apply->n_src = 2;
    apply->src[1] = v;
    apply->src[2] = -1;
}

static void fill(split *to, const tgi_graph *g, const tgi_shapes *s)
{
    int k = 0;
    to->graph = *g;
    to->graph.values = to->values;
    to->graph.nodes = to->nodes;
    to->graph.n_nodes = 0;
    memcpy(to->values, g->values, (size_t)g->n_values * sizeof *g->values);
    for (int i = 0; i < g->n_nodes; i++) {
        if (!splits(g, s, &g->nodes[i])) {
            to->nodes[to->graph.n_nodes++] = g->nodes[i];
            continue;
        }
        to->values[g->n_values + k] = (tgi_value){.name = g->nodes[i].name};
        split_node(to, &g->nodes[i], k, g->n_values + k);
        k++;
    }
    to->graph.n_values = g->n_values + k;
    for (int i = 0; i < to->graph.n_nodes; i++)
        for (int d = 0; d < to->nodes[i].n_dst; d++)
            to->values[to->nodes[i].dst[d]].producer = i;
}

tg_status tgi_split_norms_of(const tgi_graph *g, const tgi_shapes *s, tgi_graph **out,
                             tgi_err *err)
{
    const int n = count(g, s);
    *out = NULL;
    if (!n)
        return TG_OK;
    split *to = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *to);
    if (to) {
        to->values = tgi_calloc(TGI_TAG_PLAN, (size_t)(g->n_values + n), sizeof *to->values);
        to->nodes = tgi_calloc(TGI_TAG_PLAN, (size_t)(g->n_nodes + n), sizeof *to->nodes);
        to->attrs = tgi_calloc(TGI_TAG_PLAN, (size_t)n, sizeof *to->attrs);
        *out = &to->graph;
    }
    if (!to || !to->values || !to->nodes || !to->attrs) {
        tgi_split_norms_free(out);
        return tgi_fail(err, TG_E_NOMEM, "no memory to split %d norms", n);
    }
    fill(to, g, s);
    return TG_OK;
}

void tgi_split_norms_free(tgi_graph **g)
{
    split *s = (split *)(void *)*g;
    if (!s)
        return;
    tgi_free(s->values);
    tgi_free(s->nodes);
    tgi_free(s->attrs);
    tgi_free(s);
    *g = NULL;
}

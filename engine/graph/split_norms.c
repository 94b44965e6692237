/* split_norms.c - a finished graph whose norms over pixels are two nodes each: NormNumbers, which
 * reads the whole image and yields a few numbers, and NormApply, which changes each pixel by
 * them. So a pass over an image larger than memory ends at the first, and the second goes with
 * the layers behind it.
 *
 * The graph itself stays as it is: that is what `info` shows and what references compute. What is
 * made here is another list of nodes and values over the same names, constants and attributes. */
#include "engine/graph/graph_priv.h"
#include "engine/graph/split.h"
#include "kernels/ops/op_attrs.h"

#include <string.h>

/* A norm over the pixels of an image, by constant numbers? */
static int is_wanted(const tgi_graph *g, const tgi_shapes *s, const tgi_node *n)
{
    if (!tgi_node_is(n, "InstanceNormalization") && !tgi_node_is(n, "GroupNormalization"))
        return 0;
    return n->op_class == TGI_OP_WHOLE && !tgi_node_is_flat(g, s, n) && n->n_src == 3 &&
           n->src[0] >= 0 && !g->values[n->src[0]].is_const;
}

static void split_node(tgi_split *to, const tgi_node *n, const tgi_shapes *s, int k)
{
    norm_numbers_attrs *a = (norm_numbers_attrs *)to->own + k;
    const int v = to->graph.n_values++;
    (void)s;
    to->values[v] = (tgi_value){.name = n->name};
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

tg_status tgi_split_norms_of(const tgi_graph *g, const tgi_shapes *s, tgi_graph **out,
                             tgi_err *err)
{
    static const tgi_split_rule rule = {.what = "norms",
                                        .wanted = is_wanted,
                                        .apart = split_node,
                                        .nodes = 1,
                                        .values = 1,
                                        .bytes = sizeof(norm_numbers_attrs)};
    return tgi_split_of(g, s, &rule, out, err);
}

/* split.c - lists of nodes and values in which some nodes of a graph are several. */
#include "engine/graph/split.h"
#include "engine/graph/graph_priv.h"

#include <string.h>

static int count(const tgi_graph *g, const tgi_shapes *s, const tgi_split_rule *rule)
{
    int n = 0;
    for (int i = 0; i < g->n_nodes; i++)
        n += rule->wanted(g, s, &g->nodes[i]);
    return n;
}

static void fill(tgi_split *to, const tgi_graph *g, const tgi_shapes *s,
                 const tgi_split_rule *rule)
{
    int k = 0;
    to->graph = *g;
    to->graph.values = to->values;
    to->graph.nodes = to->nodes;
    to->graph.n_nodes = 0;
    memcpy(to->values, g->values, (size_t)g->n_values * sizeof *g->values);
    for (int i = 0; i < g->n_nodes; i++)
        if (rule->wanted(g, s, &g->nodes[i]))
            rule->apart(to, &g->nodes[i], s, k++);
        else
            to->nodes[to->graph.n_nodes++] = g->nodes[i];
    for (int i = 0; i < to->graph.n_nodes; i++)
        for (int d = 0; d < to->nodes[i].n_dst; d++)
            to->values[to->nodes[i].dst[d]].producer = i;
}

tg_status tgi_split_of(const tgi_graph *g, const tgi_shapes *s, const tgi_split_rule *rule,
                       tgi_graph **out, tgi_err *err)
{
    const int n = count(g, s, rule);
    *out = NULL;
    if (!n)
        return TG_OK;
    tgi_split *to = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *to);
    if (to) {
        const size_t values = (size_t)g->n_values + (size_t)n * (size_t)rule->values;
        const size_t nodes = (size_t)g->n_nodes + (size_t)n * (size_t)rule->nodes;
        to->values = tgi_calloc(TGI_TAG_PLAN, values, sizeof *to->values);
        to->nodes = tgi_calloc(TGI_TAG_PLAN, nodes, sizeof *to->nodes);
        to->own = tgi_calloc(TGI_TAG_PLAN, (size_t)n, rule->bytes);
        *out = &to->graph;
    }
    if (!to || !to->values || !to->nodes || !to->own) {
        tgi_split_free(out);
        return tgi_fail(err, TG_E_NOMEM, "no memory to take %d %s apart", n, rule->what);
    }
    fill(to, g, s, rule);
    return TG_OK;
}

void tgi_split_free(tgi_graph **g)
{
    tgi_split *s = (tgi_split *)(void *)*g;
    if (!s)
        return;
    tgi_free(s->values);
    tgi_free(s->nodes);
    tgi_free(s->own);
    tgi_free(s);
    *g = NULL;
}

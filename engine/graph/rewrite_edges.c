/* rewrite_edges.c - operators at the border of the graph that only rename axes move into the
 * ports: NHWC inputs and outputs, extra axes of extent one.
 *
 * A relabel is a Transpose, or a Reshape (Unsqueeze, Squeeze, Flatten) that keeps the sequence
 * of extents other than one. At an input its result becomes the input, and tgi_port.perm
 * remembers which file axis each axis was; at an output its source becomes the output. Whoever
 * reads or writes the file permutes; the graph inside is [N,C,(D,)H,W] and computes nothing for
 * it. */
#include "engine/graph/graph_priv.h"

#include <string.h>

#define MAX_CHAIN 8 /* relabels in a row */

/* Axis i of the result is axis map[i] of the source, or -1: an axis of extent one that the
 * source does not have. */
typedef struct relabel {
    int rank;
    int map[TGI_MAX_RANK];
} relabel;

static int names_relabel(const tgi_node *n)
{
    static const char *const ops[] = {"Transpose", "Reshape", "Unsqueeze", "Squeeze",
                                      "Flatten"};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (tgi_node_is(n, ops[i]))
            return n->n_epi == 0 && n->n_dst == 1;
    return 0;
}

static int match_transpose(const tgi_node *n, const tgi_desc *a, relabel *r)
{
    const tgi_ints *perm = tgi_attr_ints(n, "perm");
    if (perm && perm->n != a->rank)
        return 0;
    r->rank = a->rank;
    for (int i = 0; i < a->rank; i++)
        r->map[i] = perm ? (int)perm->v[i] : a->rank - 1 - i;
    return 1;
}

/* Pair axes of extent one: the first with the first (batch), the last with the last (channels),
 * the rest in order. What is left over on the right has no source. */
static void pair_units(const int *from, int n_from, const int *to, int n_to, relabel *r)
{
    for (int i = 0; i < n_to; i++)
        r->map[to[i]] = i < n_from ? from[i] : -1;
    if (n_to >= 2 && n_from > n_to)
        r->map[to[n_to - 1]] = from[n_from - 1];
}

static int match_reshape(const tgi_desc *a, const tgi_desc *b, relabel *r)
{
    int from[TGI_MAX_RANK], to[TGI_MAX_RANK], n_from = 0, n_to = 0, i = 0;
    r->rank = b->rank;
    for (int j = 0; j < b->rank; j++) {
        if (b->dim[j] == 1) {
            to[n_to++] = j;
            continue;
        }
        for (; i < a->rank && a->dim[i] == 1; i++)
            from[n_from++] = i;
        if (i >= a->rank || a->dim[i] != b->dim[j])
            return 0;
        r->map[j] = i++;
    }
    for (; i < a->rank; i++) {
        if (a->dim[i] != 1)
            return 0;
        from[n_from++] = i;
    }
    pair_units(from, n_from, to, n_to, r);
    return 1;
}

static int match_relabel(const tgi_node *n, const tgi_shapes *s, relabel *r)
{
    if (!names_relabel(n))
        return 0;
    const tgi_desc *a = &s->desc[n->src[0]], *b = &s->desc[n->dst[0]];
    return tgi_node_is(n, "Transpose") ? match_transpose(n, a, r) : match_reshape(a, b, r);
}

/* Is the value, perhaps through more relabels, read by an operator on images? Otherwise a
 * transpose at the input is the start of something else (tokens) and stays. */
static int feeds_image_op(const tgi_graph *g, const tgi_shapes *s, int v, int depth)
{
    const int rank = s->desc[v].rank;
    int at = -1, i;
    while ((i = tgi_graph_next_reader(g, v, &at)) >= 0) {
        const tgi_node *n = &g->nodes[i];
        if (names_relabel(n)) {
            if (depth < MAX_CHAIN && feeds_image_op(g, s, n->dst[0], depth + 1))
                return 1;
        } else if (n->op_class != TGI_OP_DENSE && (rank == 4 || rank == 5)) {
            return 1;
        }
    }
    return 0;
}

/* Readers of `v` that are the same relabel as R yield the same value. *same = 0, and nothing is
 * changed, when another reads it. */
static tg_status only_relabels(tgi_graph *g, const tgi_shapes *s, int v, int first,
                               const relabel *r, int *same, tgi_err *err)
{
    int at = -1, i;
    *same = 0;
    while ((i = tgi_graph_next_reader(g, v, &at)) >= 0) {
        relabel other;
        if (i != first && (!match_relabel(&g->nodes[i], s, &other) || other.rank != r->rank ||
                           memcmp(other.map, r->map, (size_t)r->rank * sizeof *r->map) != 0))
            return TG_OK;
    }
    *same = 1;
    while ((i = tgi_graph_next_reader(g, v, &at)) >= 0) {
        if (i == first)
            continue;
        TGI_TRY(tgi_graph_replace(g, g->nodes[i].dst[0], g->nodes[first].dst[0], err));
        tgi_graph_drop(g, i);
    }
    return TG_OK;
}

/* perm of a value that is relabelled `r` from one with `perm`. */
static void compose(const relabel *r, int *perm)
{
    int old[TGI_MAX_RANK];
    memcpy(old, perm, sizeof old);
    for (int i = 0; i < TGI_MAX_RANK; i++)
        perm[i] = i < r->rank && r->map[i] >= 0 ? old[r->map[i]] : -1;
}

/* Let input `port` be what node i relabels it to. */
static void take_relabel(tgi_graph *g, const tgi_shapes *s, int port, int i, const relabel *r)
{
    tgi_port *p = &g->in[port];
    const int v = p->value, b = g->nodes[i].dst[0];
    tgi_graph_drop(g, i);
    for (int a = 0; a < r->rank; a++)
        if (r->map[a] >= 0 && g->values[v].units & 1u << r->map[a])
            g->values[b].units |= 1u << a;
    for (int k = 0; k < g->n_out; k++)
        if (g->out[k].value == v) {
            compose(r, g->out[k].perm);
            g->out[k].value = b;
        }
    compose(r, p->perm);
    p->value = b;
    tgi_priv(g)->base_in[port] = s->desc[b];
}

/* Move one relabel into an input; *moved when there was one. */
static tg_status step_input(tgi_graph *g, const tgi_shapes *s, int port, int *moved,
                            tgi_err *err)
{
    const int v = g->in[port].value;
    relabel r;
    *moved = 0;
    for (int i = 0; i < g->n_nodes; i++) {
        const tgi_node *n = &g->nodes[i];
        if (!n->op || n->src[0] != v || !match_relabel(n, s, &r) ||
            !feeds_image_op(g, s, n->dst[0], 0))
            continue;
        TGI_TRY(only_relabels(g, s, v, i, &r, moved, err));
        if (*moved)
            take_relabel(g, s, port, i, &r);
        return TG_OK;
    }
    return TG_OK;
}

/* Does the value come, perhaps through relabels, from an operator on images or an input? */
static int comes_from_image_op(const tgi_graph *g, const tgi_shapes *s, int v, int depth)
{
    const int rank = s->desc[v].rank, p = g->values[v].producer;
    if (p >= 0 && names_relabel(&g->nodes[p]) && depth < MAX_CHAIN &&
        comes_from_image_op(g, s, g->nodes[p].src[0], depth + 1))
        return 1;
    return !g->values[v].is_const && (p < 0 || !names_relabel(&g->nodes[p])) &&
           (rank == 4 || rank == 5);
}

static int step_output(tgi_graph *g, const tgi_shapes *s, int port)
{
    tgi_port *p = &g->out[port];
    const int made_by = g->values[p->value].producer;
    relabel r;
    int perm[TGI_MAX_RANK];
    if (made_by < 0 || !match_relabel(&g->nodes[made_by], s, &r) ||
        !comes_from_image_op(g, s, g->nodes[made_by].src[0], 0))
        return 0;
    const int src = g->nodes[made_by].src[0], rank = s->desc[src].rank;
    for (int i = 0; i < TGI_MAX_RANK; i++) {
        perm[i] = -1;
        for (int j = 0; j < r.rank; j++)
            if (r.map[j] == i)
                perm[i] = p->perm[j];
        if (i >= 2 && i < rank && perm[i] < 0) /* the file has no such axis */
            g->values[src].units |= 1u << i;
    }
    memcpy(p->perm, perm, sizeof perm);
    p->value = src;
    return 1;
}

/* File axes of extent one that no graph axis names: the first is the batch, the last channels.
 */
static void tidy(tgi_port *p, int rank)
{
    int used[TGI_MAX_RANK] = {0};
    for (int i = 0; i < rank; i++)
        if (p->perm[i] >= 0)
            used[p->perm[i]] = 1;
    if (p->perm[0] < 0 && p->file_rank > 0 && !used[0] && p->file_rank >= rank) {
        p->perm[0] = 0;
        used[0] = 1;
    }
    for (int i = p->file_rank - 1; i >= 0 && p->perm[1] < 0; i--)
        if (!used[i])
            p->perm[1] = i;
}

tg_status tgi_describe_outputs(tgi_graph *g, tgi_err *err)
{
    tgi_shapes s;
    TGI_TRY(tgi_infer_base(g, &s, err));
    for (int i = 0; i < g->n_out; i++) {
        tgi_port *p = &g->out[i];
        const tgi_desc *d = &s.desc[p->value];
        for (int x = 0; x < d->rank && p->file_rank == 0; x++)
            p->file_dim[x] = d->dim[x];
        p->file_rank = d->rank;
    }
    tgi_shapes_free(&s);
    return TG_OK;
}

static tg_status step_ports(tgi_graph *g, const tgi_shapes *s, int *moved, tgi_err *err)
{
    for (int i = 0; i < g->n_in; i++) {
        int more = 1;
        for (int k = 0; k < MAX_CHAIN && more; k++) {
            TGI_TRY(step_input(g, s, i, &more, err));
            *moved += more;
        }
        tidy(&g->in[i], tgi_priv(g)->base_in[i].rank);
    }
    for (int i = 0; i < g->n_out; i++) {
        for (int k = 0; k < MAX_CHAIN && step_output(g, s, i); k++)
            ++*moved;
        tidy(&g->out[i], s->desc[g->out[i].value].rank);
    }
    return TG_OK;
}

tg_status tgi_rewrite_edges(tgi_graph *g, tgi_err *err)
{
    tgi_shapes s;
    int moved = 0;
    TGI_TRY(tgi_infer_base(g, &s, err));
    const tg_status st = step_ports(g, &s, &moved, err);
    tgi_shapes_free(&s);
    TGI_TRY(st);
    if (moved)
        TGI_TRY(tgi_graph_note(g, err, "axes relabelled at the edges (%d operators)", moved));
    return tgi_graph_clean(g, err);
}

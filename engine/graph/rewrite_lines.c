/* rewrite_lines.c - networks over lines, [N,C,L]: signals, spectra, sequences.
 *
 * A line is an image of one row. Every node on lines that can be said of [N,C,1,L] is said so
 * (line_ops.h), with a Squeeze behind it for whoever still reads the line, and an Unsqueeze
 * where a line comes from somewhere else; most of both are dead at once. Ports are relabelled:
 * the row is an axis that the file does not have. What is left are networks over images, with
 * their kernels, tiles and budget; what cannot be said of rows (MatMul over tokens) stays what
 * it was and is evaluated on whole arrays.
 *
 * Not every value of three axes is a line: an image without its batch has as many, and so have
 * tokens. What a window slides over, or what is resized, is one (says_so); from there it
 * spreads over operators that can be said of rows, and ends at those that cannot. */
#include "engine/base/cancel.h"
#include "engine/graph/line_ops.h"

#include <string.h>

typedef struct lines {
    tgi_graph *g;
    const tgi_shapes *s;
    int n;               /* values that there are shapes of */
    int *raised;         /* of each of them: the value with the axis, or -1 */
    unsigned char *line; /* of each of them */
} lines;

/* ---- Which values are lines -------------------------------------------------------------- */

/* May the value be one? */
static int could_be(const lines *l, int v)
{
    const tgi_desc *d = v < 0 ? NULL : &l->s->desc[v];
    return d && !l->g->values[v].is_const && !l->s->known[v].data && d->rank == TGI_LINE_RANK &&
           d->dim[0] == 1;
}

static int mark(lines *l, int v)
{
    const int is_new = could_be(l, v) && !l->line[v];
    if (is_new)
        l->line[v] = 1;
    return is_new;
}

/* Does the node read or yield a line? */
static int touches(const lines *l, const tgi_node *n)
{
    for (int k = 0; k < n->n_src; k++)
        if (n->src[k] >= 0 && l->line[n->src[k]])
            return 1;
    for (int k = 0; k < n->n_dst; k++)
        if (l->line[n->dst[k]])
            return 1;
    return 0;
}

/* A reduction that leaves out the axes it folds: its result is no line, what it reads may be.
 */
static int leaves_axes_out(const lines *l, const tgi_node *n)
{
    return tgi_attr_row(n->op, "keepdims") && !tgi_attr_int(n, "keepdims", 1) &&
           could_be(l, n->src[0]) && !l->g->values[n->dst[0]].is_const;
}

/* May the node be said of rows? An operand of more axes keeps it from that. */
static int may_change(const lines *l, const tgi_node *n)
{
    if (!tgi_line_op_of(n) || n->n_epi || tgi_node_is_known(l->s, n))
        return 0;
    for (int k = 0; k < n->n_src; k++)
        if (n->src[k] >= 0 && l->s->desc[n->src[k]].rank > TGI_LINE_RANK)
            return 0;
    return could_be(l, n->dst[0]) || leaves_axes_out(l, n);
}

static int mark_around(lines *l, const tgi_node *n)
{
    int found = 0;
    for (int k = 0; k < n->n_src; k++)
        found |= n->src[k] >= 0 && mark(l, n->src[k]);
    for (int k = 0; k < n->n_dst; k++)
        found |= mark(l, n->dst[k]);
    return found;
}

/* Mark all lines; 0: there are none. */
static int find_lines(lines *l)
{
    int found = 0, more = 1;
    for (int i = 0; i < l->g->n_nodes; i++) {
        const tgi_node *n = &l->g->nodes[i];
        const tgi_line_op *op = tgi_line_op_of(n);
        if (op && op->says_so && could_be(l, n->src[0]) && may_change(l, n))
            found |= mark_around(l, n);
    }
    while (more && !tgi_cancel_signal()) {
        more = 0;
        for (int i = 0; i < 2 * l->g->n_nodes; i++) { /* there and back: long chains at once */
            const int at = i < l->g->n_nodes ? i : 2 * l->g->n_nodes - 1 - i;
            const tgi_node *n = &l->g->nodes[at];
            if (touches(l, n) && may_change(l, n))
                more |= mark_around(l, n);
        }
    }
    return found;
}

/* ---- Values with the axis ---------------------------------------------------------------- */

/* An Unsqueeze or Squeeze by constant axes. */
static tg_status add_axes_node(tgi_graph *g, const char *op, int src, const tgi_ints *axes,
                               int dst, tgi_err *err)
{
    const char *const name = g->values[dst].name;
    const tgi_desc d = {.dtype = TG_DTYPE_I64, .rank = 1, .dim = {axes->n}};
    const int is_input = g->opset >= 13; /* before, an attribute */
    int two[2] = {src, -1};
    tgi_node *n;
    if (is_input)
        TGI_TRY(tgi_graph_add_const(g, "axes", &d, axes->v, 0, &two[1], err));
    TGI_TRY(tgi_graph_add_node(g, op, name, 1 + is_input, two, 1, &dst, &n, err));
    const tgi_attr *row = tgi_attr_row(n->op, "axes");
    *(tgi_ints *)(void *)((char *)n->attrs + row->offset) = *axes;
    return TG_OK;
}

/* The shape with an axis of one before its last. */
static tgi_desc raised_desc(const tgi_desc *d)
{
    tgi_desc r = *d;
    r.rank = d->rank + 1;
    r.dim[r.rank - 1] = d->dim[d->rank - 1];
    r.dim[r.rank - 2] = 1;
    return r;
}

/* Graph axes 0, 1, row, 2 instead of 0, 1, 2. */
static void relabel_port(tgi_port *p)
{
    p->perm[TGI_ROW_AXIS + 1] = p->perm[TGI_ROW_AXIS];
    p->perm[TGI_ROW_AXIS] = -1;
}

/* Let an input be the row that v was the line of. 1: it is one. */
static int raise_input(lines *l, int v, int row)
{
    for (int i = 0; i < l->g->n_in; i++)
        if (l->g->in[i].value == v) {
            l->g->in[i].value = row;
            relabel_port(&l->g->in[i]);
            tgi_priv(l->g)->base_in[i] = raised_desc(&l->s->desc[v]);
            return 1;
        }
    return 0;
}

/* The value with the axis of one before its last, where it has two axes at least: as operands
 * are broadcast, what has fewer is the same for rows. */
static tg_status raise(lines *l, int v, int *out, tgi_err *err)
{
    tgi_graph *g = l->g;
    *out = v;
    if (v < 0 || v >= l->n || l->s->desc[v].rank < 2)
        return TG_OK;
    if (l->raised[v] < 0) {
        const tgi_desc d = raised_desc(&l->s->desc[v]);
        const tgi_ints axis = {1, {d.rank - 2}};
        if (g->values[v].is_const) {
            TGI_TRY(tgi_graph_add_const(g, g->values[v].name, &d, g->values[v].cst.data, 1,
                                        &l->raised[v], err));
        } else {
            TGI_TRY(tgi_graph_add_value(g, g->values[v].name, &l->raised[v], err));
            if (l->line[v] && raise_input(l, v, l->raised[v]))
                TGI_TRY(add_axes_node(g, "Squeeze", l->raised[v], &axis, v, err));
            else
                TGI_TRY(add_axes_node(g, "Unsqueeze", v, &axis, l->raised[v], err));
        }
    }
    *out = l->raised[v];
    return TG_OK;
}

/* ---- Nodes ------------------------------------------------------------------------------- */

/* Result k of a node on rows, and what it was of lines. */
static tg_status lower_result(lines *l, int node, int k, const tgi_ints *drop, tgi_err *err)
{
    static const tgi_ints just_row = {1, {TGI_ROW_AXIS}};
    const int was = l->g->nodes[node].dst[k];
    int row;
    TGI_TRY(tgi_graph_add_value(l->g, l->g->values[was].name, &row, err));
    l->g->nodes[node].dst[k] = row;
    l->g->values[row].producer = node;
    l->g->values[was].producer = -1;
    if (drop->n < 0)
        l->raised[was] = row;
    return add_axes_node(l->g, "Squeeze", row, drop->n < 0 ? &just_row : drop, was, err);
}

static tg_status change_node(lines *l, int i, int *changed, tgi_err *err)
{
    const tgi_line_op *op = tgi_line_op_of(&l->g->nodes[i]);
    tgi_on_rows r = {.n_src = l->g->nodes[i].n_src, .drop = {.n = -1}};
    int yes = 1;
    memcpy(r.src, l->g->nodes[i].src, sizeof r.src);
    if (op->change)
        TGI_TRY(op->change(l->g, l->s, i, &r, &yes, err));
    if (!yes)
        return TG_OK;
    for (int k = 0; k < r.n_src; k++)
        TGI_TRY(raise(l, r.src[k], &r.src[k], err));
    l->g->nodes[i].n_src = r.n_src;
    for (int k = 0; k < r.n_src; k++)
        TGI_TRY(tgi_graph_set_src(l->g, i, k, r.src[k], err));
    for (int k = 0; k < l->g->nodes[i].n_dst; k++)
        TGI_TRY(lower_result(l, i, k, &r.drop, err));
    ++*changed;
    return TG_OK;
}

/* Extents of a line are those of its row: nobody has to make the line to know them. */
static tg_status change_shapes(lines *l, int n_nodes, tgi_err *err)
{
    static const int64_t of_row[3] = {0, 1, 3};
    const tgi_desc d = {.dtype = TG_DTYPE_I64, .rank = 1, .dim = {TGI_LINE_RANK}};
    tgi_graph *g = l->g;
    for (int i = 0; i < n_nodes; i++) {
        const int v = g->nodes[i].src[0];
        if (!tgi_node_is(&g->nodes[i], "Shape") || v < 0 || v >= l->n || !l->line[v] ||
            l->raised[v] < 0 || tgi_attr_int(&g->nodes[i], "start", 0) ||
            tgi_attr_int(&g->nodes[i], "end", TGI_LINE_RANK) < TGI_LINE_RANK)
            continue;
        const int was = g->nodes[i].dst[0];
        int two[2];
        TGI_TRY(tgi_graph_add_value(g, g->values[was].name, &two[0], err));
        TGI_TRY(tgi_graph_set_src(g, i, 0, l->raised[v], err));
        g->nodes[i].dst[0] = two[0];
        g->values[two[0]].producer = i;
        g->values[was].producer = -1;
        TGI_TRY(tgi_graph_add_const(g, "axes of a line", &d, of_row, 0, &two[1], err));
        TGI_TRY(tgi_graph_add_node(g, "Gather", g->nodes[i].name, 2, two, 1, &was, NULL, err));
    }
    return TG_OK;
}

static void relabel_outputs(lines *l)
{
    for (int i = 0; i < l->g->n_out; i++) {
        tgi_port *p = &l->g->out[i];
        if (p->value < l->n && l->line[p->value] && l->raised[p->value] >= 0) {
            p->value = l->raised[p->value];
            relabel_port(p);
        }
    }
}

static tg_status change_all(lines *l, tgi_err *err)
{
    const int n_nodes = l->g->n_nodes;
    int changed = 0;
    for (int i = 0; i < n_nodes; i++)
        if (touches(l, &l->g->nodes[i]) && may_change(l, &l->g->nodes[i]))
            TGI_TRY(change_node(l, i, &changed, err));
    if (!changed)
        return TG_OK;
    TGI_TRY(change_shapes(l, n_nodes, err));
    relabel_outputs(l);
    TGI_TRY(tgi_graph_note(l->g, err, "lines [N,C,L] are images of one row (%d operators)",
                           changed));
    TGI_TRY(tgi_graph_clean(l->g, err));
    TGI_TRY(tgi_fold_constants(l->g, err)); /* lists that are longer now */
    return tgi_graph_clean(l->g, err);
}

tg_status tgi_rewrite_lines(tgi_graph *g, tgi_err *err)
{
    tgi_shapes s;
    TGI_TRY(tgi_infer_base(g, &s, err));
    lines l = {.g = g, .s = &s, .n = g->n_values};
    l.raised = tgi_calloc(TGI_TAG_GRAPH, (size_t)l.n + 1, sizeof *l.raised);
    l.line = tgi_calloc(TGI_TAG_GRAPH, (size_t)l.n + 1, 1);
    tg_status st =
        l.raised && l.line ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory to find lines");
    if (st == TG_OK) {
        memset(l.raised, -1, (size_t)l.n * sizeof *l.raised);
        if (find_lines(&l))
            st = change_all(&l, err);
    }
    tgi_free(l.raised);
    tgi_free(l.line);
    tgi_shapes_free(&s);
    return st;
}

/* ---- Before there are shapes ------------------------------------------------------------- */

/* Axes that a window slides over, by its kernel or its weights; 0: not known. */
static int window_axes(const tgi_graph *g, const tgi_node *n)
{
    const tgi_ints *k = tgi_attr_ints(n, "kernel_shape");
    const int w = n->n_src > 1 ? n->src[1] : -1;
    if (k)
        return k->n;
    return (tgi_node_is(n, "Conv") || tgi_node_is(n, "ConvTranspose")) && w >= 0 &&
                   g->values[w].is_const
               ? g->values[w].cst.desc.rank - 2
               : 0;
}

int tgi_has_lines_only(const tgi_graph *g)
{
    int found = 0;
    for (int i = 0; i < g->n_nodes; i++) {
        const int axes = window_axes(g, &g->nodes[i]);
        if (axes > 1)
            return 0;
        found |= axes == 1;
    }
    return found;
}

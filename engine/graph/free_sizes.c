/* free_sizes.c - constants of an export that hold the declared size, turned into expressions.
 *
 *   Resize to constant sizes      ->  Resize to Shape(reference) * p / q
 *   Slice up to the input's end   ->  Slice to the end
 *
 * The reference of a Resize is, in this order: its own input, where every spatial size is a
 * whole multiple or a whole fraction of the input's extent; a value that its output is joined
 * with, where that has just these extents (33 from 17, as skips of odd sizes ask for); the
 * graph's input, by whole multiples or fractions. At the declared size the expression gives the
 * constant. Whether it holds elsewhere is not decided here: inference has to agree at two more
 * sizes (spatial.c), else the constants are put back. */
#include "engine/graph/graph_priv.h"

#include "engine/base/arith.h"
#include "engine/base/cancel.h"

#include <stdio.h>
#include <string.h>

/* Where a Resize has its sizes, a Slice its ends. */
#define SIZES 3
#define ENDS 2
#define AXES 3
#define STEPS 4
#define TO_THE_END INT64_MAX

static tg_status add_value(tgi_graph *g, const char *name, const char *what, int *id,
                           tgi_err *err)
{
    char text[256];
    snprintf(text, sizeof text, "%.200s %s", name, what);
    return tgi_graph_add_value(g, text, id, err);
}

static tg_status add_longs(tgi_graph *g, const char *name, int n, const int64_t *v, int *id,
                           tgi_err *err)
{
    const tgi_desc d = {.dtype = TG_DTYPE_I64, .rank = 1, .dim = {n}};
    return tgi_graph_add_const(g, name, &d, v, 0, id, err);
}

/* The constant int64 list that node n reads at source k; NULL: something else. */
static const tgi_constant *list_at(const tgi_graph *g, const tgi_node *n, int k)
{
    const int v = k < n->n_src ? n->src[k] : -1;
    const tgi_constant *c = v >= 0 && g->values[v].is_const ? &g->values[v].cst : NULL;
    return c && c->desc.dtype == TG_DTYPE_I64 && c->desc.rank == 1 ? c : NULL;
}

/* ---- Resize ------------------------------------------------------------------------------ */

typedef struct target {
    int rank;
    int64_t size[TGI_MAX_RANK]; /* what the constant says, all axes */
} target;

/* 1: node n is a Resize to constant sizes of all axes of its input. */
static int read_target(const tgi_graph *g, const tgi_shapes *s, const tgi_node *n, target *t)
{
    const tgi_constant *c = tgi_node_is(n, "Resize") ? list_at(g, n, SIZES) : NULL;
    const tgi_ints *axes = c ? tgi_attr_ints(n, "axes") : NULL;
    if (!c || axes || !tgi_attr_enum_is(n, "keep_aspect_ratio_policy", "stretch"))
        return 0;
    t->rank = s->desc[n->src[0]].rank;
    if (t->rank < 4 || c->desc.dim[0] != t->rank)
        return 0;
    memcpy(t->size, c->data, (size_t)t->rank * sizeof t->size[0]);
    return 1;
}

/* 1: each spatial size is a whole multiple or fraction of the reference's extent. */
static int is_ratio(const target *t, const tgi_desc *ref)
{
    if (ref->rank != t->rank)
        return 0;
    for (int a = 2; a < t->rank; a++)
        if (t->size[a] < 1 || (t->size[a] % ref->dim[a] && ref->dim[a] % t->size[a]))
            return 0;
    return 1;
}

static int has_extents(const target *t, const tgi_desc *d)
{
    return d->rank == t->rank &&
           memcmp(&d->dim[2], &t->size[2], (size_t)(t->rank - 2) * sizeof d->dim[0]) == 0;
}

/* Does `value` depend on what node `from` yields? Nodes are in order. */
static tg_status depends(const tgi_graph *g, int value, int from, int *yes, tgi_err *err)
{
    unsigned char *after = tgi_calloc(TGI_TAG_GRAPH, (size_t)g->n_values + 1, 1);
    if (!after)
        return tgi_fail(err, TG_E_NOMEM, "no memory to follow a value");
    for (int i = from; i < g->n_nodes; i++) {
        const tgi_node *n = &g->nodes[i];
        int reached = i == from;
        for (int k = 0; k < n->n_src; k++)
            reached |= n->src[k] >= 0 && after[n->src[k]];
        for (int k = 0; k < n->n_dst && reached; k++)
            after[n->dst[k]] = 1;
    }
    *yes = after[value];
    tgi_free(after);
    return TG_OK;
}

/* A value that reader r of node i's output joins with it, of the target's extents; -1: none. */
static tg_status joined_by(const tgi_graph *g, const tgi_shapes *s, int i, int r,
                           const target *t, int *ref, tgi_err *err)
{
    const tgi_node *n = &g->nodes[r];
    for (int k = 0; k < n->n_src && *ref < 0; k++) {
        const int v = n->src[k];
        int cycle = 0;
        if (v < 0 || v == g->nodes[i].dst[0] || g->values[v].is_const ||
            !has_extents(t, &s->desc[v]))
            continue;
        TGI_TRY(depends(g, v, i, &cycle, err));
        if (!cycle)
            *ref = v;
    }
    return TG_OK;
}

/* The first reader of node i's output behind `from`, in the order of nodes; -1: there is none.
 */
static int reader_behind(const tgi_graph *g, int i, int from)
{
    const int v = g->nodes[i].dst[0];
    int at = -1, r, first = -1;
    while ((r = tgi_graph_next_reader(g, v, &at)) >= 0)
        if (r > from && (first < 0 || r < first))
            first = r;
    return first;
}

/* A value that some reader of node i's output joins with it, of the target's extents; -1: none.
 */
static tg_status joined_with(const tgi_graph *g, const tgi_shapes *s, int i, const target *t,
                             int *ref, tgi_err *err)
{
    *ref = -1;
    for (int r = i; *ref < 0 && (r = reader_behind(g, i, r)) >= 0;)
        TGI_TRY(joined_by(g, s, i, r, t, ref, err));
    return TG_OK;
}

static tg_status find_reference(const tgi_graph *g, const tgi_shapes *s, int i, const target *t,
                                int *ref, tgi_err *err)
{
    const int own = g->nodes[i].src[0], input = g->in[0].value;
    *ref = own;
    if (is_ratio(t, &s->desc[own]))
        return TG_OK;
    TGI_TRY(joined_with(g, s, i, t, ref, err));
    if (*ref < 0 && is_ratio(t, &s->desc[input]))
        *ref = input;
    return TG_OK;
}

/* Shape(ref) * p / q, which is the target at the declared size. */
static tg_status add_expression(tgi_graph *g, const char *name, const tgi_desc *ref_desc,
                                int ref, const target *t, int *out, tgi_err *err)
{
    int64_t p[TGI_MAX_RANK], q[TGI_MAX_RANK];
    int ids[4], pv, qv;
    for (int a = 0; a < t->rank; a++) {
        const int64_t r = ref_desc->dim[a];
        const int whole = t->size[a] % r == 0;
        const int part = !whole && r % t->size[a] == 0;
        p[a] = whole ? t->size[a] / r : part ? 1 : t->size[a]; /* channels: any ratio */
        q[a] = whole ? 1 : part ? r / t->size[a] : r;
    }
    TGI_TRY(add_longs(g, "p", t->rank, p, &pv, err));
    TGI_TRY(add_longs(g, "q", t->rank, q, &qv, err));
    TGI_TRY(add_value(g, name, "shape", &ids[0], err));
    TGI_TRY(add_value(g, name, "times", &ids[1], err));
    TGI_TRY(add_value(g, name, "sizes", &ids[2], err));
    TGI_TRY(tgi_graph_add_node(g, "Shape", name, 1, &ref, 1, &ids[0], NULL, err));
    const int mul[2] = {ids[0], pv}, div[2] = {ids[1], qv};
    TGI_TRY(tgi_graph_add_node(g, "Mul", name, 2, mul, 1, &ids[1], NULL, err));
    TGI_TRY(tgi_graph_add_node(g, "Div", name, 2, div, 1, &ids[2], NULL, err));
    *out = ids[2];
    return TG_OK;
}

/* ---- Slice ------------------------------------------------------------------------------- */

/* The ends of a Slice that reads forward to its input's last row or column: to the end. *out
 * < 0: it has none. */
static tg_status open_ends(tgi_graph *g, const tgi_shapes *s, const tgi_node *n, int *out,
                           tgi_err *err)
{
    const tgi_constant *ends = tgi_node_is(n, "Slice") ? list_at(g, n, ENDS) : NULL;
    const tgi_constant *axes = ends ? list_at(g, n, AXES) : NULL;
    int64_t v[TGI_MAX_RANK];
    int found = 0;
    *out = -1;
    if (!axes || ends->desc.dim[0] > TGI_MAX_RANK || axes->desc.dim[0] != ends->desc.dim[0])
        return TG_OK;
    const tgi_constant *steps = list_at(g, n, STEPS);
    const tgi_desc *d = &s->desc[n->src[0]];
    const int count = (int)ends->desc.dim[0];
    for (int i = 0; i < count; i++) {
        const int64_t a = ((const int64_t *)axes->data)[i];
        const int64_t axis = a < 0 ? a + d->rank : a;
        const int forward =
            !steps || (i < steps->desc.dim[0] && ((const int64_t *)steps->data)[i] > 0);
        v[i] = ((const int64_t *)ends->data)[i];
        if (axis >= 2 && axis < d->rank && v[i] == d->dim[axis] && forward) {
            v[i] = TO_THE_END;
            found = 1;
        }
    }
    return found ? add_longs(g, "ends", count, v, out, err) : TG_OK;
}

/* ---- All of them ------------------------------------------------------------------------- */

static tg_status free_node_at(tgi_graph *g, const tgi_shapes *s, int i, tgi_freed *f,
                              tgi_err *err)
{
    target t;
    int to = -1, ref;
    const tgi_node *n = &g->nodes[i];
    const int resize = read_target(g, s, n, &t);
    if (resize) {
        TGI_TRY(find_reference(g, s, i, &t, &ref, err));
        if (ref >= 0)
            TGI_TRY(add_expression(g, n->name, &s->desc[ref], ref, &t, &to, err));
    } else {
        TGI_TRY(open_ends(g, s, n, &to, err));
    }
    if (to < 0)
        return TG_OK;
    tgi_node *now = &g->nodes[i]; /* adding nodes moves them */
    const int k = resize ? SIZES : ENDS;
    f->item[f->n++] = (tgi_freed_item){now->dst[0], k, now->src[k]};
    return tgi_graph_set_src(g, i, k, to, err);
}

tg_status tgi_free_sizes(tgi_graph *g, tgi_freed *f, tgi_err *err)
{
    tgi_shapes s;
    const int n_nodes = g->n_nodes;
    *f = (tgi_freed){0};
    TGI_TRY(tgi_infer_base(g, &s, err));
    f->item = tgi_calloc(TGI_TAG_GRAPH, (size_t)n_nodes + 1, sizeof *f->item);
    tg_status st = f->item ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory to free sizes");
    for (int i = 0; i < n_nodes && st == TG_OK; i++)
        if ((st = tgi_check_cancel(err)) == TG_OK)
            st = free_node_at(g, &s, i, f, err);
    tgi_shapes_free(&s);
    return st == TG_OK && f->n ? tgi_graph_clean(g, err) : st;
}

tg_status tgi_fix_sizes(tgi_graph *g, const tgi_freed *f, tgi_err *err)
{
    for (int i = 0; i < f->n; i++) {
        const int producer = g->values[f->item[i].dst].producer;
        if (producer >= 0)
            TGI_TRY(tgi_graph_set_src(g, producer, f->item[i].src, f->item[i].constant, err));
    }
    return f->n ? tgi_graph_clean(g, err) : TG_OK;
}

/* token_turn.c - an image becomes its array, and an array its image, where an operator has a
 * form on one of them only; and the extents of an array by those of its image. */
#include "engine/graph/token_ops.h"

#include <string.h>

#define NO_AXIS (-1)

static tg_status add_longs(tgi_graph *g, int n, const int64_t *v, int *id, tgi_err *err)
{
    const tgi_desc d = {.dtype = TG_DTYPE_I64, .rank = 1, .dim = {n}};
    return tgi_graph_add_const(g, "extents", &d, v, 0, id, err);
}

/* A node of opset 13 with one result of its own. */
static tg_status add_node(tgi_tokens *t, const char *op, const char *name, int n_src,
                          const int *src, int *out, tgi_node **n, tgi_err *err)
{
    TGI_TRY(tgi_token_add_value(t, name, out, err));
    TGI_TRY(tgi_graph_add_node(t->g, op, name, n_src, src, 1, out, n, err));
    (*n)->opset = 13;
    return TG_OK;
}

const char *tgi_token_name(const tgi_tokens *t, int v)
{
    const tgi_token *p = tgi_token_of(t, v);
    return p->op ? t->g->nodes[p->maker].name : t->g->values[v].name;
}

/* ---- Extents ----------------------------------------------------------------------------- */

/* A value that has the rows and columns of `image`, the first input where it is one: an image
 * that is read here, too, is one that nothing is fused into. */
static int extents_from(const tgi_tokens *t, int image)
{
    const tgi_extents *e = &tgi_token_of(t, image)->ext;
    for (int i = 0; i < t->g->n_in; i++) {
        const tgi_token *p = tgi_token_of(t, t->g->in[i].value);
        int same = p->seed && p->ext.at[0].rank == t->rank;
        for (int k = 0; k < e->n && same; k++)
            same = memcmp(&p->ext.at[k].dim[2], &e->at[k].dim[2],
                          (size_t)(t->rank - 2) * sizeof(int64_t)) == 0;
        if (same)
            return t->g->in[i].value;
    }
    return image;
}

/* Product of these axes of the image, [1]. `shape`: the extents of a value that has them. */
static tg_status add_extent(tgi_tokens *t, const tgi_extents *image, const tgi_merged *m,
                            int shape, int *out, tgi_err *err)
{
    int64_t channels = 1;
    int two[2] = {shape, -1}, have = -1;
    tgi_node *n;
    for (int k = 0; k < m->n; k++) {
        const int64_t axis = m->of[k];
        int part;
        if (axis == TGI_CHANNELS) {
            channels = image->at[0].dim[TGI_CHANNELS];
            continue;
        }
        TGI_TRY(add_longs(t->g, 1, &axis, &two[1], err));
        TGI_TRY(add_node(t, "Gather", "extent", 2, two, &part, &n, err));
        tgi_attr_set_int(n, "axis", 0);
        const int pair[2] = {have, part};
        if (have >= 0)
            TGI_TRY(add_node(t, "Mul", "extent", 2, pair, &have, &n, err));
        else
            have = part;
    }
    if (have >= 0 && channels == 1) {
        *out = have;
        return TG_OK;
    }
    int pair[2] = {have, -1};
    TGI_TRY(add_longs(t->g, 1, &channels, &pair[1], err));
    *out = pair[1];
    return have < 0 ? TG_OK : add_node(t, "Mul", "extent", 2, pair, out, &n, err);
}

/* The extents of an array of this order, a list that follows the image. */
static tg_status add_extents(tgi_tokens *t, int like, const tgi_extents *image,
                             const tgi_order *o, int *out, tgi_err *err)
{
    const int from = extents_from(t, like);
    int part[TGI_MAX_RANK], shape;
    tgi_node *n;
    TGI_TRY(add_node(t, "Shape", "extents", 1, &from, &shape, &n, err));
    for (int a = 0; a < o->rank; a++)
        TGI_TRY(add_extent(t, image, &o->axis[a], shape, &part[a], err));
    TGI_TRY(add_node(t, "Concat", "extents", o->rank, part, out, &n, err));
    tgi_attr_set_int(n, "axis", 0);
    return TG_OK;
}

tg_status tgi_token_shape(tgi_tokens *t, int node, int *yes, tgi_err *err)
{
    const tgi_node *n = &t->g->nodes[node];
    const int was = n->dst[0];
    const tgi_token *p = tgi_token_of(t, n->src[0]);
    const tgi_order o = p->order;
    const int image = p->image;
    const tgi_extents ext = tgi_token_of(t, image)->ext;
    int list;
    *yes =
        o.rank > 0 && !tgi_attr_int(n, "start", 0) && tgi_attr_int(n, "end", o.rank) >= o.rank;
    if (!*yes)
        return TG_OK;
    TGI_TRY(add_extents(t, image, &ext, &o, &list, err));
    return tgi_graph_replace(t->g, was, list, err);
}

/* ---- Image to array ---------------------------------------------------------------------- */

/* The axes of the image in the order of the array: the batch first, at the end those of extent
 * one, which the array names nowhere. */
static tgi_ints turned(const tgi_order *o, int rank)
{
    tgi_ints perm = {.n = 1};
    unsigned seen = 1;
    for (int a = 0; a < o->rank; a++)
        for (int k = 0; k < o->axis[a].n; k++) {
            perm.v[perm.n++] = o->axis[a].of[k];
            seen |= 1u << o->axis[a].of[k];
        }
    for (int a = 1; a < rank; a++)
        if (!(seen & 1u << a))
            perm.v[perm.n++] = a;
    return perm;
}

static int in_place(const tgi_ints *perm)
{
    for (int i = 0; i < perm->n; i++)
        if (perm->v[i] != i)
            return 0;
    return 1;
}

static tg_status transpose(tgi_tokens *t, int v, const tgi_ints *perm, const char *name,
                           int *out, tgi_err *err)
{
    tgi_node *n;
    *out = v;
    if (in_place(perm))
        return TG_OK;
    TGI_TRY(add_node(t, "Transpose", name, 1, &v, out, &n, err));
    *tgi_token_ints(n, "perm") = *perm;
    return TG_OK;
}

/* What Reshape is told to make the array of the turned image: its channels by number, rows and
 * columns as they are or what is left over. 0: two axes would be left over. */
static int reshape_list(const tgi_order *o, const tgi_extents *image, const tgi_ints *perm,
                        int64_t *list)
{
    int left = 0;
    for (int a = 0; a < o->rank; a++) {
        const tgi_merged *m = &o->axis[a];
        int varies = 0;
        for (int k = 0; k < m->n; k++)
            varies |= m->of[k] != TGI_CHANNELS;
        if (!varies)
            list[a] = m->n ? image->at[0].dim[TGI_CHANNELS] : 1;
        else if (m->n == 1 && a < perm->n && perm->v[a] == m->of[0])
            list[a] = 0;
        else if (left++)
            return 0;
        else
            list[a] = -1;
    }
    return 1;
}

/* Is the turned image the array as it is? */
static int is_turned(const tgi_order *o, const tgi_ints *perm)
{
    if (o->rank != perm->n || o->axis[0].n)
        return 0;
    for (int a = 1; a < o->rank; a++)
        if (o->axis[a].n > 1 || (o->axis[a].n == 1 && o->axis[a].of[0] != perm->v[a]))
            return 0;
    return 1;
}

tg_status tgi_token_lower(tgi_tokens *t, int array, int *yes, tgi_err *err)
{
    const tgi_token p = *tgi_token_of(t, array);
    const tgi_extents image = tgi_token_of(t, p.image)->ext;
    const tgi_ints perm = turned(&p.order, t->rank);
    const char *const name = tgi_token_name(t, array), *const op = tgi_token_of(t, array)->op;
    const int first = t->g->n_nodes;
    int64_t list[TGI_MAX_RANK];
    int two[2] = {p.image, -1};
    tgi_node *n;
    *yes = reshape_list(&p.order, &image, &perm, list);
    if (!*yes)
        return TG_OK;
    if (is_turned(&p.order, &perm) && !in_place(&perm)) {
        TGI_TRY(tgi_graph_add_node(t->g, "Transpose", name, 1, two, 1, &array, &n, err));
        n->opset = 13;
        n->part_of = op;
        *tgi_token_ints(n, "perm") = perm;
        return TG_OK;
    }
    TGI_TRY(transpose(t, p.image, &perm, name, &two[0], err));
    TGI_TRY(add_longs(t->g, p.order.rank, list, &two[1], err));
    TGI_TRY(tgi_graph_add_node(t->g, "Reshape", name, 2, two, 1, &array, &n, err));
    n->opset = 13;
    for (int k = first; k < t->g->n_nodes; k++)
        t->g->nodes[k].part_of = op;
    return TG_OK;
}

/* ---- Array to image ---------------------------------------------------------------------- */

tg_status tgi_token_raise(tgi_tokens *t, int array, const tgi_order *o,
                          const tgi_extents *image, int like, int *out, tgi_err *err)
{
    const tgi_ints perm = turned(o, t->rank);
    const char *const name = tgi_token_name(t, array), *const op = tgi_token_of(t, array)->op;
    tgi_order each = {.rank = t->rank};
    tgi_ints back = {.n = t->rank};
    int two[2] = {array, -1}, flat;
    tgi_node *n;
    for (int a = 0; a < t->rank && a < TGI_IMAGE_MOST; a++) {
        const int axis = (int)perm.v[a];
        back.v[axis] = a;
        if (axis && !tgi_extents_unit(image, axis))
            each.axis[a] = (tgi_merged){1, {axis}};
    }
    TGI_TRY(add_extents(t, like, image, &each, &two[1], err));
    TGI_TRY(add_node(t, "Reshape", name, 2, two, &flat, &n, err));
    n->part_of = op;
    TGI_TRY(tgi_token_add_image(t, t->g->values[array].name, image, out, err));
    TGI_TRY(tgi_graph_add_node(t->g, "Transpose", name, 1, &flat, 1, out, &n, err));
    n->opset = 13;
    n->part_of = op;
    *tgi_token_ints(n, "perm") = back;
    return TG_OK;
}

tg_status tgi_token_reshape(tgi_tokens *t, int v, const tgi_desc *to, int *out, tgi_err *err)
{
    int two[2] = {v, -1};
    tgi_node *n;
    TGI_TRY(add_longs(t->g, to->rank, to->dim, &two[1], err));
    return add_node(t, "Reshape", tgi_token_name(t, v), 2, two, out, &n, err);
}

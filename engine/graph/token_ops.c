/* token_ops.c - operators on an array that holds an image in another order of axes, and what
 * they are on the image: each element by itself with numbers by channel, channels that are
 * folded, normalised, cut or joined. */
#include "engine/graph/token_ops.h"

#include <string.h>

tgi_ints *tgi_token_ints(tgi_node *n, const char *name)
{
    const tgi_attr *row = tgi_attr_row(n->op, name);
    return row && row->type == TGI_ATTR_INTS
               ? (tgi_ints *)(void *)((char *)n->attrs + row->offset)
               : NULL;
}

int tgi_token_is_other(const tgi_tokens *t, int v)
{
    if (v < 0 || tgi_token_of(t, v)->image < 0)
        return 0;
    const tgi_token *p = tgi_token_of(t, v);
    const tgi_order own = tgi_order_of_image(&tgi_token_of(t, p->image)->ext);
    return !tgi_order_same(&p->order, &own);
}

int tgi_token_is_small(const tgi_tokens *t, int v)
{
    const tgi_token *p = tgi_token_of(t, v);
    if (p->ext.n == 0 || p->ext.at[0].dtype != TG_DTYPE_F32 || !tgi_extents_fixed(&p->ext))
        return 0;
    return t->g->values[v].is_const ||
           (v < t->n && !t->s[0].known[v].data && !tgi_token_is_other(t, v));
}

/* ---- Moves ------------------------------------------------------------------------------- */

/* Gather of the one element of an axis, which then is not there. */
static int gathers_single(const tgi_tokens *t, const tgi_node *n, int *axis)
{
    const tgi_token *p = tgi_token_of(t, n->src[0]);
    const int v = n->src[1], rank = p->ext.at[0].rank;
    int64_t a = tgi_attr_int(n, "axis", 0);
    a = a < 0 ? a + rank : a;
    if (v < 0 || !t->g->values[v].is_const || t->g->values[v].cst.desc.rank != 0 || a < 0 ||
        a >= rank || !tgi_extents_unit(&p->ext, (int)a))
        return 0;
    *axis = (int)a;
    return 1;
}

static int transposed(const tgi_node *n, const tgi_order *o, tgi_order *out)
{
    const tgi_ints *perm = tgi_attr_ints(n, "perm");
    int64_t reversed[TGI_MAX_RANK];
    for (int a = 0; a < o->rank; a++)
        reversed[a] = o->rank - 1 - a;
    if (perm && perm->n != o->rank)
        return 0;
    tgi_order_permute(o, perm ? perm->v : reversed, out);
    return 1;
}

int tgi_token_moves(const tgi_tokens *t, const tgi_node *n, tgi_order *out)
{
    static const char *const same_sequence[] = {"Reshape", "Squeeze", "Unsqueeze", "Flatten",
                                                "Identity"};
    const tgi_token *p = tgi_token_of(t, n->src[0]);
    const tgi_token *d = tgi_token_of(t, n->dst[0]);
    const tgi_extents *image = &tgi_token_of(t, p->image)->ext;
    int axis, moves = 0;
    for (size_t i = 0; i < sizeof same_sequence / sizeof same_sequence[0]; i++)
        moves |= tgi_node_is(n, same_sequence[i]);
    if (n->n_dst != 1 || n->n_epi)
        return 0;
    if (moves || (tgi_node_is(n, "Concat") && n->n_src == 1))
        return tgi_order_regroup(&p->order, image, &d->ext, out);
    if (tgi_node_is(n, "Transpose"))
        return transposed(n, &p->order, out) && tgi_order_fits(out, image, &d->ext);
    if (tgi_node_is(n, "Gather") && gathers_single(t, n, &axis)) {
        *out = p->order;
        tgi_order_remove(out, axis);
        return tgi_order_fits(out, image, &d->ext);
    }
    return 0;
}

/* ---- Nodes ------------------------------------------------------------------------------- */

/* The same operator with the same attributes, of other operands. */
static tg_status add_like(tgi_tokens *t, int node, int n_src, const int *src, int n_dst,
                          const int *dst, tgi_node **out, tgi_err *err)
{
    const tgi_op *op = t->g->nodes[node].op;
    const int opset = t->g->nodes[node].opset;
    tgi_node *n;
    TGI_TRY(tgi_graph_add_node(t->g, op->name, t->g->nodes[node].name, n_src, src, n_dst, dst,
                               &n, err));
    if (op->attrs_size)
        memcpy(n->attrs, t->g->nodes[node].attrs, op->attrs_size);
    n->opset = opset;
    *out = n;
    return TG_OK;
}

/* Result k of the node is `order` of a new image. */
static tg_status add_result(tgi_tokens *t, int node, int k, const tgi_order *order,
                            const tgi_extents *image, int *out, tgi_err *err)
{
    const int dst = t->g->nodes[node].dst[k];
    TGI_TRY(tgi_token_add_image(t, t->g->values[dst].name, image, out, err));
    tgi_token_of(t, dst)->image = *out;
    tgi_token_of(t, dst)->order = *order;
    return TG_OK;
}

/* Has result k of the node the extents that its order gives it? */
static int fits(const tgi_tokens *t, int node, int k, const tgi_order *o,
                const tgi_extents *image)
{
    return tgi_order_fits(o, image, &tgi_token_of(t, t->g->nodes[node].dst[k])->ext);
}

/* ---- Each element by itself -------------------------------------------------------------- */

static const char *const broadcasting[] = {"Add", "Div",   "Max", "Mean", "Min", "Mod",
                                           "Mul", "PRelu", "Pow", "Sub",  "Sum"};

static int broadcasts(const tgi_node *n)
{
    for (size_t i = 0; i < sizeof broadcasting / sizeof broadcasting[0]; i++)
        if (tgi_node_is(n, broadcasting[i]))
            return n->opset >= 7;
    return 0;
}

/* One operand, which is an activation, and constants that are no arrays. */
static int is_unary(const tgi_node *n)
{
    const int bounded = tgi_node_is(n, "Clip");
    return n->op && (n->n_src == 1 || bounded) && n->n_dst == 1 &&
           n->op->op_class == TGI_OP_LOCAL && !n->op->classify && !n->op->rule &&
           !n->op->slide && !tgi_node_is(n, "Identity");
}

int tgi_token_is_pointwise(const tgi_node *n)
{
    return broadcasts(n) || is_unary(n);
}

static tg_status form_unary(tgi_tokens *t, int node, int *yes, tgi_err *err)
{
    const tgi_node *n = &t->g->nodes[node];
    const tgi_token p = *tgi_token_of(t, n->src[0]);
    const tgi_extents image = tgi_token_of(t, p.image)->ext;
    int src[TGI_OP_MAX_SRC], out;
    tgi_node *made;
    memcpy(src, n->src, sizeof src);
    for (int k = 1; k < n->n_src; k++)
        if (src[k] >= 0 && !t->g->values[src[k]].is_const)
            return TG_OK;
    if (tgi_token_of(t, n->dst[0])->ext.at[0].dtype != TG_DTYPE_F32 ||
        !fits(t, node, 0, &p.order, &image))
        return TG_OK;
    src[0] = p.image;
    *yes = 1;
    t->others++;
    TGI_TRY(add_result(t, node, 0, &p.order, &image, &out, err));
    return add_like(t, node, t->g->nodes[node].n_src, src, 1, &out, &made, err);
}

/* What an operand that is no image is to the result. */
typedef enum kind { NO_OPERAND, ONE_NUMBER, BY_CHANNEL, WHOLE_ARRAY } kind;

static kind kind_of(const tgi_tokens *t, int v, const tgi_order *o, const tgi_extents *image,
                    const tgi_extents *array)
{
    const tgi_token *p = tgi_token_of(t, v);
    const tgi_desc *d = &p->ext.at[0];
    int64_t count;
    if (tgi_token_is_small(t, v) && tgi_desc_count(d, &count)) {
        const int shift = o->rank - d->rank;
        int by = 1;
        for (int k = 0; k < d->rank; k++)
            by &= d->dim[k] == 1 || (tgi_order_is_channels(o, image, k + shift) &&
                                     d->dim[k] == image->at[0].dim[TGI_CHANNELS]);
        if (count == 1 || by)
            return count == 1 ? ONE_NUMBER : BY_CHANNEL;
    }
    return v < t->n && !t->g->values[v].is_const && !t->s[0].known[v].data &&
                   p->ext.at[0].dtype == TG_DTYPE_F32 && tgi_extents_same(&p->ext, array)
               ? WHOLE_ARRAY
               : NO_OPERAND;
}

/* Numbers by channel, or one, as an operand of images. */
static tg_status as_channels(tgi_tokens *t, int v, int64_t n, int *out, tgi_err *err)
{
    const int is_const = t->g->values[v].is_const;
    tgi_desc d = {.dtype = TG_DTYPE_F32, .rank = t->rank, .dim = {1, n}};
    if (is_const)
        d = (tgi_desc){.dtype = TG_DTYPE_F32, .rank = t->rank - 1, .dim = {n}};
    for (int k = is_const ? 1 : 2; k < d.rank; k++)
        d.dim[k] = 1;
    if (!is_const)
        return tgi_token_reshape(t, v, &d, out, err);
    if (n == 1)
        d.rank = 0;
    return tgi_graph_add_const(t->g, t->g->values[v].name, &d, t->g->values[v].cst.data, 1, out,
                               err);
}

/* Axes of the operands together: what each has more than one of. */
static void widen(tgi_extents *image, const tgi_extents *by)
{
    for (int k = 0; k < image->n; k++)
        for (int a = 1; a < image->at[k].rank; a++)
            if (by->at[k].dim[a] > image->at[k].dim[a])
                image->at[k].dim[a] = by->at[k].dim[a];
}

typedef struct joined {
    tgi_order order;
    tgi_extents image;
    int like; /* an image of all of the result's rows and columns, or -1 */
    int n;    /* operands that are images */
} joined;

/* The orders of all operands that are images, together. 0: they hold them differently. */
static int join(const tgi_tokens *t, const tgi_node *n, joined *j)
{
    *j = (joined){.like = -1};
    j->order.rank = tgi_token_of(t, n->dst[0])->ext.at[0].rank;
    for (int k = 0; k < n->n_src; k++) {
        const tgi_token *p = n->src[k] < 0 ? NULL : tgi_token_of(t, n->src[k]);
        if (!p || p->image < 0)
            continue;
        const tgi_extents *e = &tgi_token_of(t, p->image)->ext;
        if (!tgi_order_join(&j->order, &p->order))
            return 0;
        if (j->n++)
            widen(&j->image, e);
        else
            j->image = *e;
    }
    for (int k = 0; k < n->n_src; k++) {
        const tgi_token *p = n->src[k] < 0 ? NULL : tgi_token_of(t, n->src[k]);
        if (p && p->image >= 0 && tgi_extents_same(&tgi_token_of(t, p->image)->ext, &j->image))
            j->like = p->image;
    }
    return j->n > 0;
}

static tg_status operand(tgi_tokens *t, const joined *j, int v, const tgi_extents *array,
                         int *out, tgi_err *err)
{
    const tgi_token *p = tgi_token_of(t, v);
    if (p->image >= 0) {
        *out = p->image;
        return TG_OK;
    }
    switch (kind_of(t, v, &j->order, &j->image, array)) {
    case ONE_NUMBER:
        return as_channels(t, v, 1, out, err);
    case BY_CHANNEL:
        return as_channels(t, v, j->image.at[0].dim[TGI_CHANNELS], out, err);
    default:
        return tgi_token_raise(t, v, &j->order, &j->image, j->like, out, err);
    }
}

/* May all operands be those of a node on images? */
static int operands_fit(const tgi_tokens *t, const tgi_node *n, const joined *j)
{
    const tgi_extents *array = &tgi_token_of(t, n->dst[0])->ext;
    for (int k = 0; k < n->n_src; k++) {
        const int v = n->src[k];
        if (v < 0)
            return 0;
        if (tgi_token_of(t, v)->image >= 0)
            continue;
        const kind is = kind_of(t, v, &j->order, &j->image, array);
        if (is == NO_OPERAND || (is == WHOLE_ARRAY && j->like < 0) ||
            (tgi_node_is(n, "PRelu") && !t->g->values[v].is_const))
            return 0;
    }
    return !tgi_node_is(n, "PRelu") || tgi_token_of(t, n->src[1])->image < 0;
}

static tg_status form_broadcast(tgi_tokens *t, int node, int *yes, tgi_err *err)
{
    const tgi_node *n = &t->g->nodes[node];
    const tgi_extents array = tgi_token_of(t, n->dst[0])->ext;
    const int n_src = n->n_src;
    int src[TGI_OP_MAX_SRC], out;
    tgi_node *made;
    joined j;
    memcpy(src, n->src, sizeof src);
    if (array.at[0].dtype != TG_DTYPE_F32 || !join(t, n, &j) || !operands_fit(t, n, &j) ||
        !fits(t, node, 0, &j.order, &j.image))
        return TG_OK;
    *yes = 1;
    t->others++;
    for (int k = 0; k < n_src; k++)
        TGI_TRY(operand(t, &j, src[k], &array, &src[k], err));
    TGI_TRY(add_result(t, node, 0, &j.order, &j.image, &out, err));
    return add_like(t, node, n_src, src, 1, &out, &made, err);
}

/* ---- Axes that are folded ---------------------------------------------------------------- */

/* The folded axes of a reduction as bits; 0: not known. */
static unsigned folded_axes(const tgi_tokens *t, const tgi_node *n, int rank)
{
    const tgi_ints *own = tgi_attr_ints(n, "axes");
    tgi_ints axes = own ? *own : (tgi_ints){.n = 0};
    const int v = n->n_src > 1 ? n->src[1] : -1;
    unsigned bits = 0;
    int64_t count;
    if (v >= 0) {
        const tgi_constant *c = &t->g->values[v].cst;
        if (!t->g->values[v].is_const || !tgi_desc_count(&c->desc, &count) ||
            count > TGI_MAX_RANK)
            return 0;
        axes.n = (int)count;
        for (int i = 0; i < axes.n; i++)
            axes.v[i] = (int64_t)tgi_const_get(c, i);
    }
    for (int i = 0; i < axes.n; i++) {
        const int64_t a = axes.v[i] < 0 ? axes.v[i] + rank : axes.v[i];
        if (a < 0 || a >= rank)
            return 0;
        bits |= 1u << a;
    }
    return bits;
}

/* The image's axes that these of the array are. */
static tgi_ints image_axes(const tgi_order *o, unsigned bits)
{
    tgi_ints axes = {0};
    unsigned seen = 0;
    for (int a = 0; a < o->rank; a++)
        for (int k = 0; k < o->axis[a].n && (bits & 1u << a); k++)
            seen |= 1u << o->axis[a].of[k];
    for (int a = 0; a < TGI_IMAGE_MOST; a++)
        if (seen & 1u << a)
            axes.v[axes.n++] = a;
    return axes;
}

/* Channels, or all rows and columns, or both. */
static tg_status form_reduce(tgi_tokens *t, int node, int *yes, tgi_err *err)
{
    const tgi_node *n = &t->g->nodes[node];
    const tgi_token p = *tgi_token_of(t, n->src[0]);
    tgi_extents image = tgi_token_of(t, p.image)->ext;
    const unsigned bits = folded_axes(t, n, p.order.rank);
    tgi_ints axes = image_axes(&p.order, bits);
    const int keeps = tgi_attr_int(n, "keepdims", 1) != 0;
    tgi_order o = p.order;
    tgi_node *made;
    int out;
    for (int a = o.rank - 1; a >= 0; a--)
        if (bits & 1u << a) {
            o.axis[a] = (tgi_merged){0};
            if (!keeps)
                tgi_order_remove(&o, a);
        }
    if (bits && !axes.n && tgi_extents_unit(&image, TGI_CHANNELS))
        axes = (tgi_ints){1, {TGI_CHANNELS}}; /* one number is folded, whichever axis it is */
    for (int i = 0; i < axes.n; i++)
        for (int k = 0; k < image.n; k++)
            image.at[k].dim[axes.v[i]] = 1;
    if (!axes.n || (axes.v[0] != TGI_CHANNELS && axes.n != t->rank - 2) ||
        !fits(t, node, 0, &o, &image))
        return TG_OK;
    *yes = 1;
    t->others++;
    TGI_TRY(add_result(t, node, 0, &o, &image, &out, err));
    TGI_TRY(add_like(t, node, 1, &p.image, 1, &out, &made, err));
    *tgi_token_ints(made, "axes") = axes;
    tgi_attr_set_int(made, "keepdims", 1);
    return TG_OK;
}

/* Attribute `axis`, counted from the front. */
static int axis_of(const tgi_node *n, int rank, int64_t absent)
{
    int64_t a = tgi_attr_int(n, "axis", absent);
    if (a < -rank || a >= rank)
        a = absent;
    return (int)(a < 0 ? a + rank : a);
}

/* Softmax and its like; before opset 13 of all axes from one on, which then is the last. */
static tg_status form_softmax(tgi_tokens *t, int node, int *yes, tgi_err *err)
{
    const tgi_node *n = &t->g->nodes[node];
    const tgi_token p = *tgi_token_of(t, n->src[0]);
    const tgi_extents image = tgi_token_of(t, p.image)->ext;
    const int a = axis_of(n, p.order.rank, n->opset < 13 ? 1 : -1);
    tgi_node *made;
    int out;
    if (!tgi_order_is_channels(&p.order, &image, a) ||
        (n->opset < 13 && a != p.order.rank - 1) || !fits(t, node, 0, &p.order, &image))
        return TG_OK;
    *yes = 1;
    t->others++;
    TGI_TRY(add_result(t, node, 0, &p.order, &image, &out, err));
    TGI_TRY(add_like(t, node, 1, &p.image, 1, &out, &made, err));
    made->opset = 13;
    tgi_attr_set_int(made, "axis", TGI_CHANNELS);
    return TG_OK;
}

/* Is operand k left out, or one number for each channel? */
static int is_listed(const tgi_tokens *t, const tgi_node *n, int k, int64_t channels)
{
    const tgi_value *v = k < n->n_src && n->src[k] >= 0 ? &t->g->values[n->src[k]] : NULL;
    int64_t count;
    return !v || (v->is_const && v->cst.desc.dtype == TG_DTYPE_F32 &&
                  tgi_desc_count(&v->cst.desc, &count) && count == channels);
}

/* Image `*v` joined with numbers by channel, where there are some. */
static tg_status add_listed(tgi_tokens *t, const char *op, const char *name, int list, int *v,
                            tgi_err *err)
{
    const tgi_extents image = tgi_token_of(t, *v)->ext;
    int src[2] = {*v, -1};
    if (list < 0)
        return TG_OK;
    TGI_TRY(as_channels(t, list, image.at[0].dim[TGI_CHANNELS], &src[1], err));
    TGI_TRY(tgi_token_add_image(t, t->g->values[*v].name, &image, v, err));
    return tgi_graph_add_node(t->g, op, name, 2, src, 1, v, NULL, err);
}

/* LayerNormalization over channels; its scale and shift as nodes, which others may fuse. */
static tg_status form_norm(tgi_tokens *t, int node, int *yes, tgi_err *err)
{
    const tgi_node *n = &t->g->nodes[node];
    const tgi_token p = *tgi_token_of(t, n->src[0]);
    const tgi_extents image = tgi_token_of(t, p.image)->ext;
    const int64_t channels = image.at[0].dim[TGI_CHANNELS];
    const int centred = tgi_node_is(n, "LayerNormalization"), dst = n->dst[0];
    const int scale = n->src[1], shift = n->n_src > 2 ? n->src[2] : -1;
    const float epsilon = tgi_attr_float(n, "epsilon", 1e-5f);
    const int a = axis_of(n, p.order.rank, -1);
    const char *const name = n->name;
    tgi_node *made;
    int out;
    if (n->n_dst != 1 || a != p.order.rank - 1 || !tgi_order_is_channels(&p.order, &image, a) ||
        !fits(t, node, 0, &p.order, &image) || !is_listed(t, n, 1, channels) ||
        !is_listed(t, n, 2, channels))
        return TG_OK;
    *yes = 1;
    t->others++;
    TGI_TRY(tgi_token_add_image(t, t->g->values[dst].name, &image, &out, err));
    TGI_TRY(tgi_graph_add_node(t->g, "ChannelNorm", name, 1, &p.image, 1, &out, &made, err));
    tgi_attr_set_float(made, "epsilon", epsilon);
    tgi_attr_set_int(made, "centred", centred);
    TGI_TRY(add_listed(t, "Mul", name, scale, &out, err));
    TGI_TRY(add_listed(t, "Add", name, shift, &out, err));
    tgi_token_of(t, dst)->image = out;
    tgi_token_of(t, dst)->order = p.order;
    return TG_OK;
}

/* ---- Channels that are joined and cut ---------------------------------------------------- */

/* Have both the same rows and columns? Orders name axes, and those of two images may differ: H*W
 * tokens are as many as W*H. */
static int same_pixels(const tgi_extents *a, const tgi_extents *b)
{
    for (int k = 0; k < a->n; k++)
        if (memcmp(&a->at[k].dim[2], &b->at[k].dim[2],
                   (size_t)(a->at[k].rank - 2) * sizeof(int64_t)) != 0)
            return 0;
    return 1;
}

static tg_status form_concat(tgi_tokens *t, int node, int *yes, tgi_err *err)
{
    const tgi_node *n = &t->g->nodes[node];
    const int n_src = n->n_src;
    int src[TGI_OP_MAX_SRC], out;
    tgi_extents image = {0};
    tgi_order o = {0};
    tgi_node *made;
    for (int i = 0; i < n_src; i++) {
        const tgi_token *p = n->src[i] < 0 ? NULL : tgi_token_of(t, n->src[i]);
        if (!p || p->image < 0)
            return TG_OK;
        const tgi_extents *e = &tgi_token_of(t, p->image)->ext;
        const int a = axis_of(n, p->order.rank, 1);
        tgi_order with = p->order;
        if (!tgi_order_is_channels(&with, e, a))
            return TG_OK;
        with.axis[a] = (tgi_merged){1, {TGI_CHANNELS}};
        if (i && !(tgi_order_same(&with, &o) && same_pixels(e, &image)))
            return TG_OK;
        o = with;
        for (int k = 0; k < e->n && i; k++)
            image.at[k].dim[TGI_CHANNELS] += e->at[k].dim[TGI_CHANNELS];
        if (!i)
            image = *e;
        src[i] = p->image;
    }
    if (!fits(t, node, 0, &o, &image))
        return TG_OK;
    *yes = 1;
    t->others++;
    TGI_TRY(add_result(t, node, 0, &o, &image, &out, err));
    TGI_TRY(add_like(t, node, n_src, src, 1, &out, &made, err));
    tgi_attr_set_int(made, "axis", TGI_CHANNELS);
    return TG_OK;
}

static tg_status form_split(tgi_tokens *t, int node, int *yes, tgi_err *err)
{
    const tgi_node *n = &t->g->nodes[node];
    const tgi_token p = *tgi_token_of(t, n->src[0]);
    const tgi_extents image = tgi_token_of(t, p.image)->ext;
    const int a = axis_of(n, p.order.rank, 0), n_dst = n->n_dst, n_src = n->n_src;
    const int src[2] = {p.image, n_src > 1 ? n->src[1] : -1};
    int dst[TGI_OP_MAX_DST], out[TGI_OP_MAX_DST];
    tgi_extents piece[TGI_OP_MAX_DST];
    tgi_order o[TGI_OP_MAX_DST];
    tgi_node *made;
    if (!tgi_order_is_channels(&p.order, &image, a) ||
        (src[1] >= 0 && !t->g->values[src[1]].is_const))
        return TG_OK;
    memcpy(dst, n->dst, sizeof dst);
    for (int i = 0; i < n_dst; i++) {
        piece[i] = image;
        for (int k = 0; k < image.n; k++)
            piece[i].at[k].dim[TGI_CHANNELS] = tgi_token_of(t, dst[i])->ext.at[k].dim[a];
        o[i] = p.order;
        tgi_order_set_channels(&o[i], &piece[i], a);
        if (!fits(t, node, i, &o[i], &piece[i]))
            return TG_OK;
    }
    *yes = 1;
    t->others++;
    for (int i = 0; i < n_dst; i++)
        TGI_TRY(add_result(t, node, i, &o[i], &piece[i], &out[i], err));
    TGI_TRY(add_like(t, node, n_src, src, n_dst, out, &made, err));
    tgi_attr_set_int(made, "axis", TGI_CHANNELS);
    return TG_OK;
}

/* ---- The table --------------------------------------------------------------------------- */

typedef tg_status (*form_fn)(tgi_tokens *t, int node, int *yes, tgi_err *err);

static const struct {
    const char *op;
    form_fn form;
} table[] = {{"MatMul", tgi_token_product},
             {"Gemm", tgi_token_product},
             {"Einsum", tgi_token_product},
             {"Shape", tgi_token_shape},
             {"Softmax", form_softmax},
             {"LogSoftmax", form_softmax},
             {"Hardmax", form_softmax},
             {"LayerNormalization", form_norm},
             {"RMSNormalization", form_norm},
             {"Concat", form_concat},
             {"Split", form_split}};

static form_fn form_of(const tgi_node *n)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (tgi_node_is(n, table[i].op))
            return table[i].form;
    if (strncmp(n->op->name, "Reduce", 6) == 0)
        return form_reduce;
    return broadcasts(n) ? form_broadcast : is_unary(n) ? form_unary : NULL;
}

tg_status tgi_token_form(tgi_tokens *t, int node, int *yes, tgi_err *err)
{
    const form_fn form = form_of(&t->g->nodes[node]);
    const int v = t->g->nodes[node].src[0];
    *yes = 0;
    if (!form || t->g->nodes[node].n_epi)
        return TG_OK;
    const int first_only = form != form_broadcast && form != tgi_token_product;
    return first_only && tgi_token_of(t, v)->image < 0 ? TG_OK : form(t, node, yes, err);
}

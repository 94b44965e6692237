/* token_attention.c - attention of pixels to pixels, as exporters write it:
 *
 *   MatMul(Softmax(scale * MatMul(q, k turned)), v)      or v turned times the Softmax turned
 *
 * is one PixelAttention on images, which never holds the matrix of all pixels by all pixels. The
 * scale may stand on q, on k, on their product, on several of them or nowhere.
 *
 * Heads are parts of the channels: Reshape cuts the channels, Transpose puts the heads in front,
 * and behind the products the same way back. For this, orders (token_axes.h) are here those of
 * the image with its channels cut in three: [1, parts, heads, channels of a head, (D,) H, W].
 * Parts are q, k and v of one product with a matrix, picked by Gather or Split.
 *
 * What is added to the product (a mask), and a matrix that somebody else reads, keep all of it
 * as it is. */
#include "engine/graph/token_ops.h"

#include <math.h>
#include <string.h>

enum { PARTS = 1, HEADS, INNER, FIRST_PIXEL }; /* axes of a cut image */
#define MORE (FIRST_PIXEL - 2)                 /* axes that it has more */

#define CHAIN_MOST 24 /* nodes between an image and a product */

/* An array [..., pixels, channels] or [..., channels, pixels]. */
typedef struct operand {
    int image;
    int part, parts; /* part < 0: none was picked */
    tgi_extents cut; /* of the image, its channels cut */
    tgi_order order; /* of the array, by axes of `cut` */
    double factor;
} operand;

typedef struct attention {
    operand q, k, v;
    int64_t heads;
    double factor;
    int turned; /* the result is [..., channels, pixels] */
} attention;

/* ---- Small things ------------------------------------------------------------------------ */

/* The number that the value is, at every size. */
static int scalar(const tgi_tokens *t, int v, double *out)
{
    float f;
    if (v < 0)
        return 0;
    if (tgi_value_scalar(t->g, v, &f)) {
        *out = (double)f;
        return 1;
    }
    for (int k = 0; k < t->n_sizes; k++) {
        int64_t n;
        const tgi_constant *c = v < t->n ? &t->s[k].known[v] : NULL;
        if (!c || !c->data || !tgi_dtype_is_float(c->desc.dtype) ||
            !tgi_desc_count(&c->desc, &n) || n != 1 || (k && tgi_const_get(c, 0) != *out))
            return 0;
        *out = tgi_const_get(c, 0);
    }
    return 1;
}

/* Is the node an array times a number? Which array, and the number. */
static int scales(const tgi_tokens *t, const tgi_node *n, int *src, double *factor)
{
    double by;
    if (tgi_node_is(n, "Mul") && n->opset >= 7)
        for (int k = 0; k < 2; k++)
            if (scalar(t, n->src[1 - k], &by)) {
                *src = n->src[k];
                *factor *= by;
                return 1;
            }
    if (tgi_node_is(n, "Div") && n->opset >= 7 && scalar(t, n->src[1], &by) && by != 0) {
        *src = n->src[0];
        *factor /= by;
        return 1;
    }
    return 0;
}

static const tgi_node *maker(const tgi_tokens *t, int v)
{
    const int p = v < 0 ? -1 : t->g->values[v].producer;
    const tgi_node *n = p < 0 ? NULL : &t->g->nodes[p];
    return n && n->op && !n->n_epi && n->src[0] >= 0 ? n : NULL;
}

static int keeps(const tgi_node *n)
{
    return (tgi_node_is(n, "Identity") || tgi_node_is(n, "Dropout")) && n->n_dst == 1;
}

/* The maker of a value that nobody else reads, whatever passes it on. */
static const tgi_node *sole_maker(const tgi_tokens *t, int v)
{
    const tgi_node *n = maker(t, v);
    for (int k = 0; k < CHAIN_MOST && n && keeps(n) && tgi_graph_uses(t->g, v) == 1; k++)
        n = maker(t, v = n->src[0]);
    return n && n->n_dst == 1 && tgi_graph_uses(t->g, v) == 1 ? n : NULL;
}

static const tgi_extents *ext_of(const tgi_tokens *t, int v)
{
    return &tgi_token_of(t, v)->ext;
}

static int rank_of(const tgi_tokens *t, int v)
{
    return ext_of(t, v)->at[0].rank;
}

/* ---- Orders of cut images ---------------------------------------------------------------- */

static tgi_extents cut_extents(const tgi_extents *image, int64_t parts, int64_t heads)
{
    tgi_extents cut = *image;
    for (int k = 0; k < cut.n; k++) {
        const tgi_desc *d = &image->at[k];
        tgi_desc *to = &cut.at[k];
        to->rank = d->rank + MORE;
        to->dim[PARTS] = parts;
        to->dim[HEADS] = heads;
        to->dim[INNER] = d->dim[TGI_CHANNELS] / parts / heads;
        for (int a = 2; a < d->rank; a++)
            to->dim[a + MORE] = d->dim[a];
    }
    return cut;
}

static void push(tgi_merged *m, const tgi_extents *cut, int axis)
{
    if (!tgi_extents_unit(cut, axis))
        m->of[m->n++] = axis;
}

/* An order of the image as one of the cut image. */
static tgi_order cut_order(const tgi_order *o, const tgi_extents *cut)
{
    tgi_order out = {.rank = o->rank};
    for (int a = 0; a < o->rank; a++)
        for (int k = 0; k < o->axis[a].n; k++) {
            const int of = o->axis[a].of[k];
            if (of != TGI_CHANNELS) {
                push(&out.axis[a], cut, of + MORE);
                continue;
            }
            for (int c = PARTS; c <= INNER; c++)
                push(&out.axis[a], cut, c);
        }
    return out;
}

/* And back, where the channels are together. */
static int joined_order(const tgi_order *o, const tgi_extents *cut, tgi_order *out)
{
    tgi_merged channels = {0};
    for (int c = PARTS; c <= INNER; c++)
        push(&channels, cut, c);
    *out = (tgi_order){.rank = o->rank};
    for (int a = 0; a < o->rank; a++)
        for (int k = 0; k < o->axis[a].n; k++) {
            tgi_merged *to = &out->axis[a];
            const tgi_merged *from = &o->axis[a];
            if (from->of[k] >= FIRST_PIXEL) {
                to->of[to->n++] = from->of[k] - MORE;
                continue;
            }
            if (channels.n > from->n - k ||
                memcmp(&from->of[k], channels.of, (size_t)channels.n * sizeof(int)) != 0)
                return 0;
            to->of[to->n++] = TGI_CHANNELS;
            k += channels.n - 1;
        }
    return 1;
}

/* Are the axes [a, b) together that axis of the cut image, or one of extent one? */
static int is_axis(const operand *o, int a, int b, int axis)
{
    tgi_merged want = {0}, got = {0};
    push(&want, &o->cut, axis);
    for (; a < b; a++)
        for (int k = 0; k < o->order.axis[a].n; k++)
            got.of[got.n++] = o->order.axis[a].of[k];
    return got.n == want.n && (!got.n || got.of[0] == want.of[0]);
}

/* ---- Backward to images ------------------------------------------------------------------ */

/* Where the values come from an image: all of its channels, or an equal part of them. */
static int begin(const tgi_tokens *t, int v, int64_t heads, int64_t inner, operand *o)
{
    const tgi_token *p = tgi_token_of(t, v);
    const tgi_extents *image = &tgi_token_of(t, p->image)->ext;
    const int64_t channels = image->at[0].dim[TGI_CHANNELS], each = heads * inner;
    int pixels = 0;
    if (image->at[0].rank != t->rank || each < 1 || channels % each)
        return 0;
    for (int a = 2; a < t->rank; a++)
        pixels |= !tgi_extents_unit(image, a);
    *o = (operand){.image = p->image, .part = -1, .parts = (int)(channels / each), .factor = 1};
    o->cut = cut_extents(image, o->parts, heads);
    o->order = cut_order(&p->order, &o->cut);
    return pixels && channels / each <= TGI_OP_MAX_DST;
}

static int permuted(const tgi_node *n, operand *o)
{
    const tgi_ints *perm = tgi_attr_ints(n, "perm");
    const tgi_order was = o->order;
    int64_t reversed[TGI_MAX_RANK];
    for (int a = 0; a < was.rank; a++)
        reversed[a] = was.rank - 1 - a;
    if (perm && perm->n != was.rank)
        return 0;
    tgi_order_permute(&was, perm ? perm->v : reversed, &o->order);
    return 1;
}

static int regrouped(const tgi_tokens *t, int v, operand *o)
{
    const tgi_order was = o->order;
    return tgi_order_regroup(&was, &o->cut, ext_of(t, v), &o->order);
}

/* The axis that a Gather or Split speaks of, when it is that of the parts and nothing else. */
static int axis_of_parts(const tgi_node *n, const operand *o)
{
    int64_t a = tgi_attr_int(n, "axis", 0);
    a = a < 0 ? a + o->order.rank : a;
    return o->parts > 1 && o->part < 0 && a >= 0 && a < o->order.rank &&
                   is_axis(o, (int)a, (int)a + 1, PARTS)
               ? (int)a
               : -1;
}

static int picked(const tgi_tokens *t, const tgi_node *n, operand *o)
{
    const int a = axis_of_parts(n, o), v = n->src[1];
    if (a < 0 || v < 0 || !t->g->values[v].is_const || t->g->values[v].cst.desc.rank != 0)
        return 0;
    const int64_t i = (int64_t)tgi_const_get(&t->g->values[v].cst, 0);
    o->part = (int)(i < 0 ? i + o->parts : i);
    tgi_order_remove(&o->order, a);
    return o->part >= 0 && o->part < o->parts;
}

static int cut_off(const tgi_tokens *t, const tgi_node *n, int v, operand *o)
{
    const int a = axis_of_parts(n, o);
    if (a < 0 || n->n_dst != o->parts || ext_of(t, v)->at[0].dim[a] != 1)
        return 0;
    for (int k = 0; k < n->n_dst; k++)
        if (n->dst[k] == v)
            o->part = k;
    o->order.axis[a] = (tgi_merged){0};
    return 1;
}

/* Does the node yield the elements of source 0 at other places, or a part of them? */
static int moves(const tgi_node *n)
{
    static const char *const ops[] = {"Reshape",   "Squeeze", "Unsqueeze", "Flatten",
                                      "Transpose", "Gather",  "Split"};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (tgi_node_is(n, ops[i]))
            return 1;
    return keeps(n);
}

/* The order of `v`, which the node moves from what `o` says. */
static int move(const tgi_tokens *t, const tgi_node *n, int v, operand *o)
{
    return keeps(n)                      ? 1
           : tgi_node_is(n, "Transpose") ? permuted(n, o)
           : tgi_node_is(n, "Gather")    ? picked(t, n, o)
           : tgi_node_is(n, "Split")     ? cut_off(t, n, v, o)
                                         : regrouped(t, v, o);
}

/* What the value is of an image of which `heads` times `inner` channels are looked at. */
static int find_image(const tgi_tokens *t, int v, int64_t heads, int64_t inner, operand *o)
{
    const tgi_node *chain[CHAIN_MOST]; /* backward */
    int yields[CHAIN_MOST], n = 0, met = 0, src;
    double factor = 1;
    while (tgi_token_of(t, v)->image < 0) {
        const tgi_node *by = met++ < CHAIN_MOST ? maker(t, v) : NULL;
        if (!by)
            return 0;
        if (scales(t, by, &src, &factor) && rank_of(t, src) == rank_of(t, v)) {
            v = src;
            continue;
        }
        if (!moves(by))
            return 0;
        chain[n] = by;
        yields[n++] = v;
        v = by->src[0];
    }
    if (!begin(t, v, heads, inner, o))
        return 0;
    while (n-- > 0)
        if (!move(t, chain[n], yields[n], o))
            return 0;
    o->factor = factor;
    return 1;
}

/* The operand of a product whose axes are heads, pixels and channels, as `channels` says. */
static int read_operand(const tgi_tokens *t, int v, int64_t heads, int channels, operand *o)
{
    const int rank = rank_of(t, v);
    const int pixels = channels == rank - 1 ? rank - 2 : rank - 1;
    const tgi_extents *e = ext_of(t, v);
    if (!find_image(t, v, heads, e->at[0].dim[channels], o) || o->order.rank != rank ||
        (o->parts > 1 && o->part < 0))
        return 0;
    for (int k = 0; k < o->order.axis[pixels].n; k++)
        if (o->order.axis[pixels].of[k] < FIRST_PIXEL)
            return 0;
    return is_axis(o, 0, rank - 2, HEADS) && is_axis(o, channels, channels + 1, INNER);
}

/* ---- The pattern ------------------------------------------------------------------------- */

/* Does it exchange the last two axes, and no other? */
static int turns_last(const tgi_node *n, int rank)
{
    const tgi_ints *perm = tgi_attr_ints(n, "perm");
    if (!perm || perm->n != rank || rank < 2)
        return !perm && rank == 2;
    for (int a = 0; a < rank - 2; a++)
        if (perm->v[a] != a)
            return 0;
    return perm->v[rank - 2] == rank - 1;
}

/* The Softmax over the last axis that yields the value, or what is turned into it. */
static const tgi_node *softmax_of(const tgi_tokens *t, int v, int turned)
{
    const int rank = v < 0 ? 0 : rank_of(t, v);
    const tgi_node *n = sole_maker(t, v);
    if (turned && n)
        n = tgi_node_is(n, "Transpose") && turns_last(n, rank) ? sole_maker(t, n->src[0])
                                                               : NULL;
    if (!n || !tgi_node_is(n, "Softmax"))
        return NULL;
    const int64_t a = tgi_attr_int(n, "axis", n->opset < 13 ? 1 : -1);
    return a == rank - 1 || a == -1 || (a >= rank && n->opset >= 13) ? n : NULL;
}

/* How many heads the array has: the product of its axes in front of the last two. */
static int64_t count_heads(const tgi_tokens *t, int v)
{
    const tgi_extents *e = ext_of(t, v);
    int64_t heads = 1;
    for (int a = 0; a < e->at[0].rank - 2; a++) {
        heads *= e->at[0].dim[a];
        for (int k = 1; k < e->n; k++)
            if (e->at[k].dim[a] != e->at[0].dim[a])
                return 0;
        if (heads < 1 || heads > 1024)
            return 0;
    }
    return heads;
}

static int same_pixels(const operand *a, const operand *b, int at, int bt)
{
    const tgi_merged *p = &a->order.axis[at], *q = &b->order.axis[bt];
    for (int k = 0; k < a->cut.n; k++)
        if (memcmp(&a->cut.at[k].dim[FIRST_PIXEL], &b->cut.at[k].dim[FIRST_PIXEL],
                   (size_t)(a->cut.at[k].rank - FIRST_PIXEL) * sizeof(int64_t)) != 0)
            return 0;
    return p->n == q->n && memcmp(p->of, q->of, (size_t)p->n * sizeof(int)) == 0;
}

/* The product of queries and keys that the Softmax reads, and its factor. */
static const tgi_node *product_of(const tgi_tokens *t, const tgi_node *softmax, double *factor)
{
    const int rank = rank_of(t, softmax->src[0]);
    const tgi_node *n = sole_maker(t, softmax->src[0]);
    int src;
    for (int k = 0; k < CHAIN_MOST && n && scales(t, n, &src, factor); k++) {
        if (rank_of(t, src) != rank)
            return NULL;
        n = sole_maker(t, src);
    }
    return n && tgi_node_is(n, "MatMul") ? n : NULL;
}

/* Is the MatMul the last one of an attention? */
static int match(const tgi_tokens *t, const tgi_node *n, attention *a)
{
    for (int turned = 0; turned < 2; turned++) {
        const tgi_node *soft = softmax_of(t, n->src[turned], turned);
        double factor = 1;
        const tgi_node *p = soft ? product_of(t, soft, &factor) : NULL;
        const int v = n->src[1 - turned];
        if (!p || v < 0 || p->src[1] < 0)
            continue;
        const int rank = rank_of(t, p->dst[0]);
        const int values = turned ? rank - 1 : rank - 2; /* the axis of pixels of v */
        if (rank < 2 || rank_of(t, p->src[0]) != rank || rank_of(t, p->src[1]) != rank ||
            rank_of(t, v) != rank || rank_of(t, n->dst[0]) != rank)
            continue;
        a->heads = count_heads(t, p->dst[0]);
        a->turned = turned;
        if (a->heads < 1 || !read_operand(t, p->src[0], a->heads, rank - 1, &a->q) ||
            !read_operand(t, p->src[1], a->heads, rank - 2, &a->k) ||
            !read_operand(t, v, a->heads, turned ? rank - 2 : rank - 1, &a->v) ||
            !same_pixels(&a->k, &a->v, rank - 1, values))
            continue;
        a->factor = factor * a->q.factor * a->k.factor;
        /* A factor of the values would be one more node. */
        return a->v.factor == 1 && isfinite((float)a->factor);
    }
    return 0;
}

/* ---- Forward to an array of the image ---------------------------------------------------- */

typedef struct result {
    int value; /* the array that is an order of the image */
    tgi_order order;
    tgi_extents image;
} result;

/* The result as the product yields it, by axes of the cut image. */
static operand product_result(const attention *a)
{
    const int rank = a->q.order.rank;
    operand o = {.part = -1, .parts = 1};
    tgi_extents image = a->q.cut;
    for (int k = 0; k < image.n; k++)
        image.at[k].dim[INNER] = a->v.cut.at[k].dim[INNER];
    o.cut = image;
    for (int k = 0; k < image.n; k++)
        o.cut.at[k].dim[PARTS] = 1;
    o.order = a->q.order;
    o.order.axis[rank - 1] = (tgi_merged){0};
    push(&o.order.axis[rank - 1], &o.cut, INNER);
    if (a->turned) {
        o.order.axis[rank - 1] = a->q.order.axis[rank - 2];
        o.order.axis[rank - 2] = (tgi_merged){0};
        push(&o.order.axis[rank - 2], &o.cut, INNER);
    }
    return o;
}

static void join_extents(const tgi_extents *cut, tgi_extents *image)
{
    *image = *cut;
    for (int k = 0; k < cut->n; k++) {
        const tgi_desc *d = &cut->at[k];
        tgi_desc *to = &image->at[k];
        *to = (tgi_desc){TG_DTYPE_F32, d->rank - MORE, {1, d->dim[HEADS] * d->dim[INNER]}};
        for (int a = 2; a < to->rank; a++)
            to->dim[a] = d->dim[a + MORE];
    }
}

/* Behind the product, moves put the heads side by side again. */
static int find_result(const tgi_tokens *t, const tgi_node *n, const attention *a, result *r)
{
    operand o = product_result(a);
    int met = 0;
    join_extents(&o.cut, &r->image);
    r->value = n->dst[0];
    if (!tgi_order_fits(&o.order, &o.cut, ext_of(t, r->value)))
        return 0;
    while (!joined_order(&o.order, &o.cut, &r->order)) {
        const int user = tgi_graph_only_user(t->g, r->value);
        const tgi_node *by = user < 0 || met++ == CHAIN_MOST ? NULL : &t->g->nodes[user];
        if (!by || by->n_dst != 1 || by->n_epi || by->src[0] != r->value || !moves(by) ||
            !move(t, by, by->dst[0], &o))
            return 0;
        r->value = by->dst[0];
    }
    return tgi_order_fits(&r->order, &r->image, ext_of(t, r->value));
}

/* ---- What it becomes --------------------------------------------------------------------- */

/* The image of an operand: the part of the channels that it is. */
static tg_status add_part(tgi_tokens *t, const char *name, const operand *o, int *out,
                          tgi_err *err)
{
    const tgi_desc one = {.dtype = TG_DTYPE_I64, .rank = 1, .dim = {1}};
    tgi_extents image = tgi_token_of(t, o->image)->ext;
    const int64_t each = image.at[0].dim[TGI_CHANNELS] / o->parts;
    const int64_t list[3] = {o->part * each, (o->part + 1) * each, TGI_CHANNELS};
    int src[4] = {o->image};
    tgi_node *n;
    *out = o->image;
    if (o->parts == 1)
        return TG_OK;
    for (int k = 0; k < image.n; k++)
        image.at[k].dim[TGI_CHANNELS] = each;
    for (int k = 0; k < 3; k++)
        TGI_TRY(tgi_graph_add_const(t->g, "part", &one, &list[k], 0, &src[k + 1], err));
    TGI_TRY(tgi_token_add_image(t, t->g->values[o->image].name, &image, out, err));
    TGI_TRY(tgi_graph_add_node(t->g, "Slice", name, 4, src, 1, out, &n, err));
    n->opset = 13;
    return TG_OK;
}

tg_status tgi_token_attention(tgi_tokens *t, int node, int *yes, tgi_err *err)
{
    const tgi_node *n = &t->g->nodes[node];
    const char *const name = n->name;
    attention a;
    result r;
    int src[3], out;
    tgi_node *made;
    *yes = tgi_node_is(n, "MatMul") && n->n_src == 2 && match(t, n, &a) &&
           find_result(t, n, &a, &r);
    if (!*yes)
        return TG_OK;
    const operand *const of[3] = {&a.q, &a.k, &a.v};
    for (int k = 0; k < 3; k++)
        TGI_TRY(add_part(t, name, of[k], &src[k], err));
    TGI_TRY(tgi_token_add_image(t, t->g->values[r.value].name, &r.image, &out, err));
    TGI_TRY(tgi_graph_add_node(t->g, "PixelAttention", name, 3, src, 1, &out, &made, err));
    if (!tgi_attr_set_int(made, "heads", a.heads) ||
        !tgi_attr_set_float(made, "scale", (float)a.factor))
        return tgi_fail(err, TG_E_INTERNAL, "%s lacks an attribute", made->op->name);
    tgi_token_of(t, r.value)->image = out;
    tgi_token_of(t, r.value)->order = r.order;
    t->attentions++;
    return TG_OK;
}

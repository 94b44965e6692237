/* token_attention.c - attention of pixels to pixels, as exporters write it:
 *
 *   MatMul(Softmax(scale * MatMul(q, k turned)), v)      or v turned times the Softmax turned
 *
 * or either product as an Einsum, is one PixelAttention on images, which never holds the matrix of
 * all pixels by all pixels. The scale may stand on q, on k, on their product, on several of them or
 * nowhere. Heads are parts of the channels (token_parts.h): Reshape cuts the channels, Transpose
 * puts the heads in front, and behind the products the same way back.
 *
 * What is added to the product (a mask), and a matrix that somebody else reads, keep all of it
 * as it is. */
#include "engine/graph/token_parts.h"

#include <math.h>
#include <string.h>

/* A product of two arrays: axes of both and of the result by letters. */
typedef struct product {
    const tgi_node *node;
    tgi_letters of[3];
} product;

typedef struct attention {
    tgi_cut q, k, v;
    int64_t heads;
    double factor;
    product last;   /* weights times values */
    char row, mean; /* its letters of queries, and of the channels of values */
} attention;

/* ---- Products ---------------------------------------------------------------------------- */

static const tgi_extents *ext_of(const tgi_tokens *t, int v)
{
    return &tgi_token_of(t, v)->ext;
}

static int rank_of(const tgi_tokens *t, int v)
{
    return ext_of(t, v)->at[0].rank;
}

/* Rows times columns, as an Einsum would say it: the axes in front are those of both. */
static void write_letters(int rank, product *p)
{
    for (int k = 0; k < 3; k++) {
        p->of[k].n = rank;
        for (int a = 0; a < rank - 2; a++)
            p->of[k].of[a] = (char)('a' + a);
        p->of[k].of[rank - 2] = k == 1 ? 'y' : 'x';
        p->of[k].of[rank - 1] = k == 0 ? 'y' : 'z';
    }
}

/* A product of two arrays of as many axes as the result has. */
static int read_product(const tgi_tokens *t, const tgi_node *n, product *p)
{
    const int rank = n->n_src == 2 && n->dst[0] >= 0 ? rank_of(t, n->dst[0]) : 0;
    p->node = n;
    if (rank < 2 || n->src[0] < 0 || n->src[1] < 0 || n->n_epi ||
        rank_of(t, n->src[0]) != rank || rank_of(t, n->src[1]) != rank)
        return 0;
    if (tgi_node_is(n, "MatMul")) {
        write_letters(rank, p);
        return 1;
    }
    return tgi_node_is(n, "Einsum") && tgi_token_equation(n, p->of) && p->of[0].n == rank &&
           p->of[1].n == rank && p->of[2].n == rank;
}

static int has(const tgi_letters *l, char c)
{
    return tgi_letter_place(l, c) >= 0;
}

/* Operand k of the product, whose axes are heads but for those of pixels and of channels. */
static int read_operand(const tgi_tokens *t, const product *p, int k, int64_t heads,
                        char pixels, char channels, tgi_cut *c)
{
    const int v = p->node->src[k], at = tgi_letter_place(&p->of[k], pixels),
              inner = tgi_letter_place(&p->of[k], channels);
    int named = 0;
    if (at < 0 || inner < 0 || at == inner ||
        !tgi_cut_of(t, v, heads, ext_of(t, v)->at[0].dim[inner], c) ||
        c->order.rank != p->of[k].n || (c->parts > 1 && c->part < 0) ||
        !tgi_cut_is_axis(c, inner, TGI_INNER))
        return 0;
    c->pixels = c->order.axis[at];
    for (int i = 0; i < c->pixels.n; i++)
        if (c->pixels.of[i] < TGI_FIRST_PIXEL)
            return 0;
    for (int a = 0; a < c->order.rank; a++)
        if (a != at && a != inner && c->order.axis[a].n) {
            named++;
            if (!tgi_cut_is_axis(c, a, TGI_HEADS))
                return 0;
        }
    return named == (heads > 1);
}

/* Are the pixels of both those of one image, in the same order? */
static int same_pixels(const tgi_cut *a, const tgi_cut *b)
{
    const tgi_merged *p = &a->pixels, *q = &b->pixels;
    for (int k = 0; k < a->extents.n; k++)
        if (memcmp(&a->extents.at[k].dim[TGI_FIRST_PIXEL],
                   &b->extents.at[k].dim[TGI_FIRST_PIXEL],
                   (size_t)(a->extents.at[k].rank - TGI_FIRST_PIXEL) * sizeof(int64_t)) != 0)
            return 0;
    return p->n == q->n && memcmp(p->of, q->of, (size_t)p->n * sizeof(int)) == 0;
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

/* The Softmax over the last axis that yields the value, or, *turned, what is turned into it. */
static const tgi_node *softmax_of(const tgi_tokens *t, int v, int *turned)
{
    const int rank = rank_of(t, v);
    const tgi_node *n = tgi_token_sole_maker(t, v);
    *turned = n && tgi_node_is(n, "Transpose") && turns_last(n, rank);
    if (*turned)
        n = tgi_token_sole_maker(t, n->src[0]);
    if (!n || !tgi_node_is(n, "Softmax"))
        return NULL;
    const int64_t a = tgi_attr_int(n, "axis", n->opset < 13 ? 1 : -1);
    return a == rank - 1 || a == -1 || (a >= rank && n->opset >= 13) ? n : NULL;
}

/* The product of queries and keys that the Softmax reads, and its factor. */
static int likeness_of(const tgi_tokens *t, const tgi_node *softmax, double *factor, product *p)
{
    const int rank = rank_of(t, softmax->src[0]);
    const tgi_node *n = tgi_token_sole_maker(t, softmax->src[0]);
    int src;
    for (int k = 0; k < TGI_CHAIN_MOST && n && tgi_token_scales(t, n, &src, factor); k++) {
        if (rank_of(t, src) != rank)
            return 0;
        n = tgi_token_sole_maker(t, src);
    }
    return n && read_product(t, n, p);
}

/* How many heads the array has: the product of its axes but for two of them. */
static int64_t count_heads(const tgi_tokens *t, int v, int but, int and)
{
    const tgi_extents *e = ext_of(t, v);
    int64_t heads = 1;
    for (int a = 0; a < e->at[0].rank; a++) {
        if (a == but || a == and)
            continue;
        heads *= e->at[0].dim[a];
        for (int k = 1; k < e->n; k++)
            if (e->at[k].dim[a] != e->at[0].dim[a])
                return 0;
        if (heads < 1 || heads > 1024)
            return 0;
    }
    return heads;
}

/* The letter of operand k that the result does not have, or 0: none, or several. */
static char summed(const product *p, int k)
{
    char found = 0;
    for (int a = 0; a < p->of[k].n; a++)
        if (!has(&p->of[2], p->of[k].of[a])) {
            if (found)
                return 0;
            found = p->of[k].of[a];
        }
    return found && has(&p->of[1 - k], found) ? found : 0;
}

/* The letter of operand k that the other one does not have. */
static char own(const product *p, int k)
{
    for (int a = 0; a < p->of[k].n; a++)
        if (!has(&p->of[1 - k], p->of[k].of[a]))
            return p->of[k].of[a];
    return 0;
}

/* Queries and keys of the product whose result's last axis is that of keys. *row: the axis of
 * queries. */
static int read_likeness(const tgi_tokens *t, const product *p, attention *a, int *row)
{
    const char key = p->of[2].of[p->of[2].n - 1];
    const int k = has(&p->of[1], key); /* the operand that the keys are */
    const char query = own(p, 1 - k), inner = summed(p, 0);
    *row = query ? tgi_letter_place(&p->of[2], query) : -1;
    if (!inner || *row < 0 || own(p, k) != key || summed(p, 1) != inner)
        return 0;
    a->heads = count_heads(t, p->node->dst[0], *row, p->of[2].n - 1);
    return a->heads > 0 && read_operand(t, p, 1 - k, a->heads, query, inner, &a->q) &&
           read_operand(t, p, k, a->heads, key, inner, &a->k);
}

/* Operand k of the last product as weights: is it so? */
static int match_weights(const tgi_tokens *t, int k, attention *a)
{
    product like;
    const product *const p = &a->last;
    int turned, row;
    double factor = 1;
    const tgi_node *soft = softmax_of(t, p->node->src[k], &turned);
    if (!soft || !likeness_of(t, soft, &factor, &like) || !read_likeness(t, &like, a, &row))
        return 0;
    const int rank = p->of[k].n, last = rank - 1;
    if (turned && row != rank - 2)
        return 0;
    const char key = p->of[k].of[turned ? row : last];
    a->row = p->of[k].of[turned ? last : row];
    a->mean = own(p, 1 - k);
    if (!a->mean || summed(p, k) != key || summed(p, 1 - k) != key || own(p, k) != a->row ||
        !read_operand(t, p, 1 - k, a->heads, key, a->mean, &a->v) || !same_pixels(&a->k, &a->v))
        return 0;
    a->factor = factor * a->q.factor * a->k.factor;
    /* A factor of the values would be one more node. */
    return a->v.factor == 1 && isfinite((float)a->factor);
}

/* Is the node the last product of an attention? */
static int match(const tgi_tokens *t, const tgi_node *n, attention *a)
{
    return (tgi_node_is(n, "MatMul") || tgi_node_is(n, "Einsum")) &&
           read_product(t, n, &a->last) && (match_weights(t, 0, a) || match_weights(t, 1, a));
}

/* ---- Forward to an array of the image ---------------------------------------------------- */

typedef struct result {
    int value; /* the array that is an order of the image */
    tgi_order order;
    tgi_extents image;
} result;

/* The result as the product yields it. */
static tgi_cut product_result(const tgi_tokens *t, const attention *a)
{
    const tgi_letters *l = &a->last.of[2];
    const tgi_desc *d = &ext_of(t, a->last.node->dst[0])->at[0];
    tgi_cut c = {.part = -1, .parts = 1, .extents = a->q.extents, .order = {.rank = l->n}};
    for (int k = 0; k < c.extents.n; k++) {
        c.extents.at[k].dim[TGI_PARTS] = 1;
        c.extents.at[k].dim[TGI_INNER] = a->v.extents.at[k].dim[TGI_INNER];
    }
    for (int i = 0; i < l->n; i++)
        if (l->of[i] == a->row)
            c.order.axis[i] = a->q.pixels;
        else if (l->of[i] == a->mean)
            tgi_cut_push(&c, i, TGI_INNER);
        else if (d->dim[i] != 1)
            tgi_cut_push(&c, i, TGI_HEADS);
    return c;
}

static void join_extents(const tgi_extents *cut, tgi_extents *image)
{
    *image = *cut;
    for (int k = 0; k < cut->n; k++) {
        const tgi_desc *d = &cut->at[k];
        tgi_desc *to = &image->at[k];
        *to = (tgi_desc){TG_DTYPE_F32,
                         d->rank + 2 - TGI_FIRST_PIXEL,
                         {1, d->dim[TGI_HEADS] * d->dim[TGI_INNER]}};
        for (int a = 2; a < to->rank; a++)
            to->dim[a] = d->dim[a + TGI_FIRST_PIXEL - 2];
    }
}

/* Behind the product, moves put the heads side by side again. */
static int find_result(const tgi_tokens *t, const attention *a, result *r)
{
    tgi_cut c = product_result(t, a);
    int met = 0;
    join_extents(&c.extents, &r->image);
    r->value = a->last.node->dst[0];
    if (!tgi_order_fits(&c.order, &c.extents, ext_of(t, r->value)))
        return 0;
    while (!tgi_cut_joined(&c, &r->order)) {
        const int user = tgi_graph_only_user(t->g, r->value);
        const tgi_node *by = user < 0 || met++ == TGI_CHAIN_MOST ? NULL : &t->g->nodes[user];
        if (!by || by->n_dst != 1 || by->n_epi || by->src[0] != r->value ||
            !tgi_cut_move(t, by, by->dst[0], &c))
            return 0;
        r->value = by->dst[0];
    }
    return tgi_order_fits(&r->order, &r->image, ext_of(t, r->value));
}

/* ---- What it becomes --------------------------------------------------------------------- */

/* The image of an operand: the part of the channels that it is. */
static tg_status add_part(tgi_tokens *t, const char *name, const tgi_cut *o, int *out,
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
    *yes = match(t, n, &a) && find_result(t, &a, &r);
    if (!*yes)
        return TG_OK;
    const tgi_cut *const of[3] = {&a.q, &a.k, &a.v};
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

/* token_parts.c - from an array of heads and parts back to its image, through Transpose, Reshape,
 * factors and what picks a part. */
#include "engine/graph/token_parts.h"

#include <string.h>

#define MORE (TGI_FIRST_PIXEL - 2) /* axes that a cut image has more */

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
    return t->n_sizes > 0;
}

int tgi_token_scales(const tgi_tokens *t, const tgi_node *n, int *src, double *factor)
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

const tgi_node *tgi_token_sole_maker(const tgi_tokens *t, int v)
{
    const tgi_node *n = maker(t, v);
    for (int k = 0; k < TGI_CHAIN_MOST && n && keeps(n) && tgi_graph_uses(t->g, v) == 1; k++)
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
        to->dim[TGI_PARTS] = parts;
        to->dim[TGI_HEADS] = heads;
        to->dim[TGI_INNER] = d->dim[TGI_CHANNELS] / parts / heads;
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
            for (int c = TGI_PARTS; c <= TGI_INNER; c++)
                push(&out.axis[a], cut, c);
        }
    return out;
}

int tgi_cut_joined(const tgi_cut *c, tgi_order *out)
{
    tgi_merged channels = {0};
    for (int a = TGI_PARTS; a <= TGI_INNER; a++)
        push(&channels, &c->extents, a);
    *out = (tgi_order){.rank = c->order.rank};
    for (int a = 0; a < out->rank; a++)
        for (int k = 0; k < c->order.axis[a].n; k++) {
            tgi_merged *to = &out->axis[a];
            const tgi_merged *from = &c->order.axis[a];
            if (from->of[k] >= TGI_FIRST_PIXEL) {
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

int tgi_cut_is_axis(const tgi_cut *c, int a, int axis)
{
    tgi_merged want = {0};
    push(&want, &c->extents, axis);
    return c->order.axis[a].n == want.n && (!want.n || c->order.axis[a].of[0] == axis);
}

void tgi_cut_push(tgi_cut *c, int a, int axis)
{
    push(&c->order.axis[a], &c->extents, axis);
}

/* ---- Backward to images ------------------------------------------------------------------ */

/* Where the values come from an image: all of its channels, or an equal part of them. */
static int begin(const tgi_tokens *t, int v, int64_t heads, int64_t inner, tgi_cut *c)
{
    const tgi_token *p = tgi_token_of(t, v);
    const tgi_extents *image = &tgi_token_of(t, p->image)->ext;
    const int64_t channels = image->at[0].dim[TGI_CHANNELS], each = heads * inner;
    int pixels = 0;
    if (image->at[0].rank != t->rank || each < 1 || channels % each)
        return 0;
    for (int a = 2; a < t->rank; a++)
        pixels |= !tgi_extents_unit(image, a);
    *c = (tgi_cut){.image = p->image, .part = -1, .parts = (int)(channels / each), .factor = 1};
    c->extents = cut_extents(image, c->parts, heads);
    c->order = cut_order(&p->order, &c->extents);
    return pixels && channels / each <= TGI_OP_MAX_DST;
}

static int permuted(const tgi_node *n, tgi_cut *c)
{
    const tgi_ints *perm = tgi_attr_ints(n, "perm");
    const tgi_order was = c->order;
    int64_t reversed[TGI_MAX_RANK];
    for (int a = 0; a < was.rank; a++)
        reversed[a] = was.rank - 1 - a;
    if (perm && perm->n != was.rank)
        return 0;
    tgi_order_permute(&was, perm ? perm->v : reversed, &c->order);
    return 1;
}

static int regrouped(const tgi_tokens *t, int v, tgi_cut *c)
{
    const tgi_order was = c->order;
    return tgi_order_regroup(&was, &c->extents, ext_of(t, v), &c->order);
}

/* The axis that a Gather or Split speaks of, when it is that of the parts and nothing else. */
static int axis_of_parts(const tgi_node *n, const tgi_cut *c)
{
    int64_t a = tgi_attr_int(n, "axis", 0);
    a = a < 0 ? a + c->order.rank : a;
    return c->parts > 1 && c->part < 0 && a >= 0 && a < c->order.rank &&
                   tgi_cut_is_axis(c, (int)a, TGI_PARTS)
               ? (int)a
               : -1;
}

static int picked(const tgi_tokens *t, const tgi_node *n, tgi_cut *c)
{
    const int a = axis_of_parts(n, c), v = n->src[1];
    if (a < 0 || v < 0 || !t->g->values[v].is_const || t->g->values[v].cst.desc.rank != 0)
        return 0;
    const int64_t i = (int64_t)tgi_const_get(&t->g->values[v].cst, 0);
    c->part = (int)(i < 0 ? i + c->parts : i);
    tgi_order_remove(&c->order, a);
    return c->part >= 0 && c->part < c->parts;
}

static int cut_off(const tgi_tokens *t, const tgi_node *n, int v, tgi_cut *c)
{
    const int a = axis_of_parts(n, c);
    if (a < 0 || n->n_dst != c->parts || ext_of(t, v)->at[0].dim[a] != 1)
        return 0;
    for (int k = 0; k < n->n_dst; k++)
        if (n->dst[k] == v)
            c->part = k;
    c->order.axis[a] = (tgi_merged){0};
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

int tgi_cut_move(const tgi_tokens *t, const tgi_node *n, int v, tgi_cut *c)
{
    if (!moves(n))
        return 0;
    return keeps(n)                      ? 1
           : tgi_node_is(n, "Transpose") ? permuted(n, c)
           : tgi_node_is(n, "Gather")    ? picked(t, n, c)
           : tgi_node_is(n, "Split")     ? cut_off(t, n, v, c)
                                         : regrouped(t, v, c);
}

int tgi_cut_of(const tgi_tokens *t, int v, int64_t heads, int64_t inner, tgi_cut *c)
{
    const tgi_node *chain[TGI_CHAIN_MOST]; /* backward */
    int yields[TGI_CHAIN_MOST], n = 0, met = 0, src;
    double factor = 1;
    while (tgi_token_of(t, v)->image < 0) {
        const tgi_node *by = met++ < TGI_CHAIN_MOST ? maker(t, v) : NULL;
        if (!by)
            return 0;
        if (tgi_token_scales(t, by, &src, &factor) && rank_of(t, src) == rank_of(t, v)) {
            v = src;
            continue;
        }
        if (!moves(by))
            return 0;
        chain[n] = by;
        yields[n++] = v;
        v = by->src[0];
    }
    if (!begin(t, v, heads, inner, c))
        return 0;
    while (n-- > 0)
        if (!tgi_cut_move(t, chain[n], yields[n], c))
            return 0;
    c->factor = factor;
    return 1;
}

/* rewrite_tokens.c - pixels that exporters compute as rows of a matrix.
 *
 * Transformers are exported as arrays: Reshape and Transpose to [1,HW,C], products with
 * matrices, numbers and norms along the last axis, and the way back. Such an array is an image
 * in another order of axes (token_axes.h), and as long as no operator mixes its rows, what
 * happens to it happens to each pixel by itself: MatMul with a constant matrix is a 1x1
 * convolution, a norm over the last axis one over channels. As images these have kernels, are
 * computed in bands and take part in fusion; as arrays they are there as a whole.
 *
 * Which values are images, operators say: what a window slides over, and an input that is not
 * turned first. From there orders spread along the graph. Each node that reads another order
 * of an image gets its form on the image (token_ops.h), or has none; then its operands are made
 * of their images, by Transpose and Reshape, in front of it. What only moves elements
 * disappears where nobody asks for the array. */
#include "engine/graph/token_ops.h"

#include "engine/base/cancel.h"

#include <string.h>

/* ---- Values ------------------------------------------------------------------------------ */

/* Tokens for all values that there are by now. */
static tg_status make_room(tgi_tokens *t, tgi_err *err)
{
    const int n = t->g->n_values;
    if (n > t->cap) {
        const int cap = n + n / 2 + 64;
        tgi_token *of = tgi_realloc_n(TGI_TAG_GRAPH, t->of, (size_t)cap, sizeof *of);
        if (!of)
            return tgi_fail(err, TG_E_NOMEM, "no memory for the orders of %d values", cap);
        memset(of + t->cap, 0, (size_t)(cap - t->cap) * sizeof *of);
        for (int v = t->cap; v < cap; v++)
            of[v].image = -1;
        t->of = of;
        t->cap = cap;
    }
    return TG_OK;
}

tg_status tgi_token_add_value(tgi_tokens *t, const char *name, int *v, tgi_err *err)
{
    TGI_TRY(tgi_graph_add_value(t->g, name, v, err));
    return make_room(t, err);
}

/* The value is an image, in its own order. */
static void set_image(tgi_tokens *t, int v)
{
    tgi_token *p = tgi_token_of(t, v);
    p->image = v;
    p->order = tgi_order_of_image(&p->ext);
}

/* Orders name no axis that has extent one at every size: no size at which it is longer may be
 * taken any more. Squeeze, Flatten or Gemm would have refused it, and they go. */
static void hold_units(const tgi_tokens *t, int image)
{
    const tgi_extents *e = &tgi_token_of(t, image)->ext;
    for (int a = TGI_CHANNELS + 1; a < t->rank; a++)
        if (tgi_extents_unit(e, a))
            t->g->values[image].units |= 1u << a;
}

tg_status tgi_token_add_image(tgi_tokens *t, const char *name, const tgi_extents *ext, int *v,
                              tgi_err *err)
{
    TGI_TRY(tgi_token_add_value(t, name, v, err));
    tgi_token_of(t, *v)->ext = *ext;
    tgi_token_of(t, *v)->seed = 1;
    set_image(t, *v);
    hold_units(t, *v);
    return TG_OK;
}

/* ---- Images ------------------------------------------------------------------------------ */

/* May the value be one? As many channels at every size. */
static int could_be(const tgi_tokens *t, int v)
{
    const tgi_extents *e = v < 0 ? NULL : &tgi_token_of(t, v)->ext;
    if (!e || t->g->values[v].is_const || t->s[0].known[v].data)
        return 0;
    for (int k = 0; k < e->n; k++)
        if (e->at[k].rank != t->rank || e->at[k].dim[0] != 1 ||
            e->at[k].dtype != TG_DTYPE_F32 || e->at[k].dim[1] != e->at[0].dim[1])
            return 0;
    return 1;
}

static int mark(tgi_tokens *t, int v)
{
    const int is_new = could_be(t, v) && !tgi_token_of(t, v)->seed;
    if (is_new)
        tgi_token_of(t, v)->seed = 1;
    return is_new;
}

/* What it reads and yields are images, whatever else is around. */
static int says_so(const tgi_node *n)
{
    static const char *const ops[] = {"Conv",
                                      "ConvTranspose",
                                      "MaxPool",
                                      "AveragePool",
                                      "LpPool",
                                      "Resize",
                                      "GlobalAveragePool",
                                      "GlobalMaxPool",
                                      "DepthToSpace",
                                      "SpaceToDepth",
                                      "Upsample",
                                      "InstanceNormalization",
                                      "LRN",
                                      "MaxUnpool",
                                      "GroupNormalization",
                                      "BatchNormalization"};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (tgi_node_is(n, ops[i]))
            return 1;
    return 0;
}

static int touches_seed(const tgi_tokens *t, const tgi_node *n)
{
    for (int k = 0; k < n->n_src; k++)
        if (n->src[k] >= 0 && tgi_token_of(t, n->src[k])->seed)
            return 1;
    return tgi_token_of(t, n->dst[0])->seed;
}

/* Has what it reads and yields the same axes, as far as they are as many? */
static int keeps_axes(const tgi_node *n)
{
    static const char *const ops[] = {"Concat",  "Split",      "Pad",     "Slice",
                                      "Softmax", "LogSoftmax", "Hardmax", "Identity",
                                      "Dropout", "Where",      "Tile"};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (tgi_node_is(n, ops[i]))
            return 1;
    return tgi_token_is_pointwise(n);
}

static void spread(tgi_tokens *t)
{
    int more = 1;
    while (more && !tgi_cancel_signal()) {
        more = 0;
        for (int i = 0; i < 2 * t->n_nodes; i++) { /* there and back: long chains at once */
            const tgi_node *n = &t->g->nodes[i < t->n_nodes ? i : 2 * t->n_nodes - 1 - i];
            if (!n->op || !keeps_axes(n) || !touches_seed(t, n))
                continue;
            for (int k = 0; k < n->n_src; k++)
                more |= mark(t, n->src[k]);
            for (int k = 0; k < n->n_dst; k++)
                more |= mark(t, n->dst[k]);
        }
    }
}

static int only_moves(const tgi_node *n)
{
    static const char *const ops[] = {"Reshape", "Transpose", "Squeeze", "Unsqueeze",
                                      "Flatten", "Identity",  "Gather"};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (tgi_node_is(n, ops[i]))
            return 1;
    return 0;
}

/* What is first turned into an image, as others say, is none itself. */
static void find_turned(tgi_tokens *t)
{
    for (int i = t->n_nodes - 1; i >= 0; i--) {
        const tgi_node *n = &t->g->nodes[i];
        if (n->op && only_moves(n) &&
            (tgi_token_of(t, n->dst[0])->seed || tgi_token_of(t, n->dst[0])->turned))
            tgi_token_of(t, n->src[0])->turned = 1;
    }
}

static void find_images(tgi_tokens *t)
{
    for (int i = 0; i < t->n_nodes; i++) {
        const tgi_node *n = &t->g->nodes[i];
        if (says_so(n)) {
            mark(t, n->src[0]);
            mark(t, n->dst[0]);
        }
    }
    spread(t);
    find_turned(t);
    for (int i = 0; i < t->g->n_in; i++)
        if (!tgi_size_channels_last(t->g, i) && !tgi_token_of(t, t->g->in[i].value)->turned)
            mark(t, t->g->in[i].value);
    spread(t);
    for (int v = 0; v < t->n; v++)
        if (tgi_token_of(t, v)->seed && t->g->values[v].producer < 0)
            set_image(t, v);
}

/* ---- There ------------------------------------------------------------------------------- */

static int reads_token(const tgi_tokens *t, const tgi_node *n, int others_only)
{
    for (int k = 0; k < n->n_src; k++)
        if (n->src[k] >= 0 && (others_only ? tgi_token_is_other(t, n->src[k])
                                           : tgi_token_of(t, n->src[k])->image >= 0))
            return 1;
    return 0;
}

/* Results that are images in their own order are the image; what others call an image is one
 * in its own order. */
static tg_status settle_result(tgi_tokens *t, int v, tgi_err *err)
{
    const tgi_token *p = tgi_token_of(t, v);
    const int other = tgi_token_is_other(t, v);
    if (p->image >= 0 && p->image != v && !other)
        return tgi_graph_replace(t->g, v, p->image, err);
    if (p->seed && (p->image < 0 || other))
        set_image(t, v);
    return TG_OK;
}

/* Nodes from `first` on do the work of node i. */
static void credit(tgi_tokens *t, int first, int i)
{
    for (int k = first; k < t->g->n_nodes; k++)
        if (!t->g->nodes[k].part_of)
            t->g->nodes[k].part_of = tgi_node_op_name(&t->g->nodes[i]);
}

static tg_status visit(tgi_tokens *t, int i, int *formed, tgi_err *err)
{
    const tgi_node *n = &t->g->nodes[i];
    const int first = t->g->n_nodes;
    tgi_order order;
    const int moves = n->src[0] >= 0 && tgi_token_of(t, n->src[0])->image >= 0 &&
                      (tgi_token_is_other(t, n->src[0]) || n->op->op_class == TGI_OP_DENSE) &&
                      tgi_token_moves(t, n, &order);
    if (moves) {
        tgi_token_of(t, n->dst[0])->image = tgi_token_of(t, n->src[0])->image;
        tgi_token_of(t, n->dst[0])->order = order;
        hold_units(t, tgi_token_of(t, n->src[0])->image);
    } else {
        TGI_TRY(tgi_token_attention(t, i, formed, err));
        if (!*formed && reads_token(t, &t->g->nodes[i], 1))
            TGI_TRY(tgi_token_form(t, i, formed, err));
        credit(t, first, i);
    }
    for (int k = 0; k < t->g->nodes[i].n_dst; k++)
        TGI_TRY(settle_result(t, t->g->nodes[i].dst[k], err));
    return TG_OK;
}

static tg_status visit_all(tgi_tokens *t, tgi_err *err)
{
    for (int i = 0; i < t->n_nodes; i++) {
        const tgi_node *n = &t->g->nodes[i];
        int formed = 0;
        TGI_TRY(tgi_check_cancel(err));
        if (n->op && !n->n_epi && !tgi_node_is(n, "Shape") && !tgi_node_is_known(&t->s[0], n))
            TGI_TRY(visit(t, i, &formed, err));
    }
    return TG_OK;
}

/* Extents of arrays that are gone come from their images. */
static tg_status visit_shapes(tgi_tokens *t, tgi_err *err)
{
    for (int i = 0; i < t->n_nodes; i++) {
        const int v = t->g->nodes[i].op ? t->g->nodes[i].src[0] : -1;
        int yes = 0;
        if (v >= 0 && tgi_node_is(&t->g->nodes[i], "Shape") &&
            (tgi_token_is_other(t, v) || (v >= t->n && tgi_token_of(t, v)->image == v)))
            TGI_TRY(tgi_token_form(t, i, &yes, err));
        if (yes)
            tgi_graph_drop(t->g, i);
    }
    return TG_OK;
}

/* ---- And back ---------------------------------------------------------------------------- */

static void need_operands(const tgi_node *n, unsigned char *need)
{
    for (int k = 0; k < n->n_src; k++)
        if (n->src[k] >= 0)
            need[n->src[k]] = 1;
    for (int k = 0; k < n->n_epi; k++)
        if (n->epi[k].value >= 0)
            need[n->epi[k].value] = 1;
}

/* Are all results of the node arrays of an image, so that it may go? */
static int yields_tokens(const tgi_tokens *t, const tgi_node *n)
{
    for (int k = 0; k < n->n_dst; k++)
        if (tgi_token_of(t, n->dst[k])->image < 0 ||
            tgi_token_of(t, n->dst[k])->image == n->dst[k])
            return 0;
    return 1;
}

/* The node goes, unless an array that it yields is asked for and nobody else can yield it: then
 * it stays what it was. An array of an image that was there is left to the nodes that were. */
static tg_status leave(tgi_tokens *t, int i, unsigned char *need, tgi_err *err)
{
    const int n_dst = t->g->nodes[i].n_dst;
    int dst[TGI_OP_MAX_DST], asked = 0, yes = 1;
    memcpy(dst, t->g->nodes[i].dst, sizeof dst);
    for (int k = 0; k < n_dst; k++) {
        asked += need[dst[k]];
        yes &= !need[dst[k]] || (n_dst == 1 && tgi_token_of(t, dst[k])->image >= t->n);
    }
    if (!asked) {
        tgi_graph_drop(t->g, i);
        return TG_OK;
    }
    if (yes) {
        const tgi_node was = t->g->nodes[i];
        tgi_graph_drop(t->g, i);
        TGI_TRY(tgi_token_lower(t, dst[0], &yes, err));
        if (!yes) {
            t->g->nodes[i].op = was.op;
            t->g->values[dst[0]].producer = i;
        }
    }
    if (!yes)
        need_operands(&t->g->nodes[i], need);
    return TG_OK;
}

static tg_status turn_back(tgi_tokens *t, tgi_err *err)
{
    unsigned char *need = tgi_calloc(TGI_TAG_GRAPH, (size_t)t->g->n_values + 1, 1);
    tg_status st = TG_OK;
    if (!need)
        return tgi_fail(err, TG_E_NOMEM, "no memory to turn tokens back");
    for (int i = 0; i < t->g->n_out; i++)
        need[t->g->out[i].value] = 1;
    for (int i = t->g->n_nodes - 1; i >= t->n_nodes; i--)
        need_operands(&t->g->nodes[i], need); /* arrays that became images are asked for */
    for (int i = t->n_nodes - 1; i >= 0 && st == TG_OK; i--) {
        const tgi_node *n = &t->g->nodes[i];
        if (n->op && yields_tokens(t, n))
            st = leave(t, i, need, err);
        else if (n->op)
            need_operands(n, need);
    }
    tgi_free(need);
    return st;
}

/* ---- All of it --------------------------------------------------------------------------- */

static tg_status open_tokens(tgi_tokens *t, tgi_graph *g, tgi_err *err)
{
    tgi_desc in[TGI_MAX_PORTS];
    *t = (tgi_tokens){.g = g, .n = g->n_values, .n_nodes = g->n_nodes};
    t->rank = tgi_priv(g)->base_in[0].rank;
    TGI_TRY(make_room(t, err));
    TGI_TRY(tgi_infer_base(g, &t->s[0], err));
    t->n_sizes = 1;
    for (int k = 1; k < TGI_TOKEN_SIZES; k++) {
        int found = 0;
        TGI_TRY(tgi_size_other(g, k, in, &found, err));
        if (found)
            TGI_TRY(tgi_graph_infer(g, in, &t->s[t->n_sizes++], err));
    }
    for (int i = 0; i < t->n_nodes; i++)
        for (int k = 0; k < g->nodes[i].n_dst; k++) {
            tgi_token_of(t, g->nodes[i].dst[k])->maker = i;
            tgi_token_of(t, g->nodes[i].dst[k])->op = tgi_node_op_name(&g->nodes[i]);
        }
    for (int v = 0; v < t->n; v++) {
        t->of[v].ext.n = t->n_sizes;
        for (int k = 0; k < t->n_sizes; k++)
            t->of[v].ext.at[k] = t->s[k].desc[v];
    }
    return TG_OK;
}

static void close_tokens(tgi_tokens *t)
{
    for (int k = 0; k < t->n_sizes; k++)
        tgi_shapes_free(&t->s[k]);
    tgi_free(t->of);
}

static tg_status note(const tgi_tokens *t, tgi_err *err)
{
    if (t->convolutions)
        TGI_TRY(tgi_graph_note(t->g, err, "%d products of tokens -> 1x1 convolutions",
                               t->convolutions));
    if (t->small_products)
        TGI_TRY(tgi_graph_note(t->g, err,
                               "%d products of tokens with computed matrices -> "
                               "PixelMatMul",
                               t->small_products));
    if (t->attentions)
        TGI_TRY(tgi_graph_note(t->g, err,
                               "MatMul, Softmax, MatMul of tokens -> PixelAttention (%d times)",
                               t->attentions));
    if (t->others)
        TGI_TRY(tgi_graph_note(t->g, err, "%d operators on tokens are on images", t->others));
    return TG_OK;
}

/* Is there a node that could be part of another order? */
static int turns_anything(const tgi_graph *g)
{
    for (int i = 0; i < g->n_nodes; i++)
        if (tgi_node_is(&g->nodes[i], "Transpose") || tgi_node_is(&g->nodes[i], "Reshape") ||
            tgi_node_is(&g->nodes[i], "Flatten"))
            return 1;
    return 0;
}

tg_status tgi_rewrite_tokens(tgi_graph *g, unsigned flags, tgi_err *err)
{
    const int rank = tgi_priv(g)->base_in[0].rank;
    tgi_tokens t = {0};
    if (flags & TGI_GRAPH_NO_TOKENS || rank < 4 || rank > TGI_IMAGE_MOST || !turns_anything(g))
        return TG_OK;
    tg_status st = open_tokens(&t, g, err);
    if (st == TG_OK) {
        find_images(&t);
        st = visit_all(&t, err);
    }
    if (st == TG_OK)
        st = visit_shapes(&t, err);
    if (st == TG_OK)
        st = turn_back(&t, err);
    if (st == TG_OK)
        st = note(&t, err);
    close_tokens(&t);
    return st == TG_OK ? tgi_graph_clean(g, err) : st;
}

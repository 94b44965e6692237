/* rewrite_canonical.c - exporters spell one operation in many ways; here each gets its one
 * form.
 *
 *   Reshape, Transpose, Reshape        ->  DepthToSpace or SpaceToDepth
 *   Relu(x) + (x - |x|) * a            ->  PRelu with slope 2a
 *   Conv, Mul by channel, Add by channel -> Conv with folded weights (batch norm)
 *   Resize, 1x1 Conv                   ->  1x1 Conv, Resize
 *   DepthToSpace, scalar pointwise op  ->  the op, DepthToSpace
 *
 * Patterns are matched on shapes at the base size and need every intermediate value to have one
 * reader, so nothing else can miss it. Constants equal to an extent vanish with their Reshapes;
 * whether the rest is free of them, spatial.c finds out. */
#include "engine/graph/graph_priv.h"

#include "engine/base/cancel.h"

#include <string.h>

/* The producer of value `v` if it is `op`, unfused, and `v` has no other reader. */
static tgi_node *sole(const tgi_graph *g, int v, const char *op)
{
    tgi_node *n = tgi_graph_maker(g, v, op);
    return n && n->n_epi == 0 && n->n_dst == 1 && tgi_graph_uses(g, v) == 1 ? n : NULL;
}

/* Add `op` reading `src` in place of what made `dst`; the old maker is dropped. */
static tg_status put_instead(tgi_graph *g, const char *op, const char *name, int n_src,
                             const int *src, int dst, tgi_node **out, tgi_err *err)
{
    const int old = g->values[dst].producer;
    if (old >= 0)
        tgi_graph_drop(g, old);
    return tgi_graph_add_node(g, op, name, n_src, src, 1, &dst, out, err);
}

/* ---- Pixel shuffles ---------------------------------------------------------------------- */

typedef struct shuffle {
    const char *op, *mode;
    int64_t block;
} shuffle;

/* Which shuffle takes [n,c,h,w] over `mid` (six axes, permuted by `perm`) to `out`? */
static int match_shuffle(const tgi_desc *in, const tgi_desc *mid, const tgi_desc *out,
                         const int64_t *perm, shuffle *s)
{
    static const struct {
        const char *op, *mode;
        int perm[6];
        int c, h, w, b0, b1; /* axes of mid: channels, rows, columns, the two block axes */
        int grows;
    } forms[] = {
        {"DepthToSpace", "CRD", {0, 1, 4, 2, 5, 3}, 1, 4, 5, 2, 3, 1},
        {"DepthToSpace", "DCR", {0, 3, 4, 1, 5, 2}, 3, 4, 5, 1, 2, 1},
        {"SpaceToDepth", NULL, {0, 3, 5, 1, 2, 4}, 1, 2, 4, 3, 5, 0},
    };
    if (in->rank != 4 || mid->rank != 6 || out->rank != 4 || in->dim[0] != mid->dim[0])
        return 0;
    for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) {
        int same = 1;
        for (int i = 0; i < 6; i++)
            same &= perm[i] == forms[f].perm[i];
        const int64_t b = mid->dim[forms[f].b0], c = mid->dim[forms[f].c];
        const int64_t h = mid->dim[forms[f].h], w = mid->dim[forms[f].w];
        if (!same || b < 2 || b > 1024 || mid->dim[forms[f].b1] != b)
            continue;
        const tgi_desc small = {.rank = 4, .dim = {in->dim[0], c * b * b, h, w}};
        const tgi_desc large = {.rank = 4, .dim = {in->dim[0], c, h * b, w * b}};
        if (!tgi_desc_same_shape(in, forms[f].grows ? &small : &large) ||
            !tgi_desc_same_shape(out, forms[f].grows ? &large : &small))
            continue;
        *s = (shuffle){forms[f].op, forms[f].mode, b};
        return tgi_op_find(s->op) != NULL;
    }
    return 0;
}

static tg_status find_shuffles(tgi_graph *g, const tgi_shapes *s, tgi_err *err)
{
    const int n_nodes = g->n_nodes;
    for (int i = 0; i < n_nodes; i++) {
        const tgi_node *last = &g->nodes[i];
        const tgi_node *turn =
            tgi_node_is(last, "Reshape") ? sole(g, last->src[0], "Transpose") : NULL;
        const tgi_node *first = turn ? sole(g, turn->src[0], "Reshape") : NULL;
        const tgi_ints *perm = first ? tgi_attr_ints(turn, "perm") : NULL;
        shuffle f;
        tgi_node *n;
        if (!perm || perm->n != 6 ||
            !match_shuffle(&s->desc[first->src[0]], &s->desc[first->dst[0]],
                           &s->desc[last->dst[0]], perm->v, &f))
            continue;
        const int src = first->src[0], dst = last->dst[0];
        TGI_TRY(put_instead(g, f.op, g->values[dst].name, 1, &src, dst, &n, err));
        if (!tgi_attr_set_int(n, "blocksize", f.block) ||
            (f.mode && !tgi_attr_set_enum(n, "mode", f.mode)))
            return tgi_fail(err, TG_E_INTERNAL, "%s lacks an attribute", f.op);
        TGI_TRY(tgi_graph_note(g, err, "Reshape, Transpose, Reshape -> %s %lld", f.op,
                               (long long)f.block));
    }
    return tgi_graph_clean(g, err);
}

/* ---- PRelu written out ------------------------------------------------------------------- */

/* With Add(relu, mul): x and the constant of Relu(x) + (x - Abs(x)) * c. */
static int match_prelu(const tgi_graph *g, int relu_v, int mul_v, int *x, int *c)
{
    const tgi_node *relu = sole(g, relu_v, "Relu"), *mul = sole(g, mul_v, "Mul");
    for (int k = 0; relu && mul && k < 2; k++) {
        const tgi_node *sub = sole(g, mul->src[k], "Sub");
        const tgi_node *abs = sub ? sole(g, sub->src[1], "Abs") : NULL;
        if (abs && sub->src[0] == relu->src[0] && abs->src[0] == relu->src[0]) {
            *x = relu->src[0];
            *c = mul->src[1 - k];
            return 1;
        }
    }
    return 0;
}

/* Constant [C,1,1] (or [C,1,1,1]) from `v`; aligned with the channels of rank-`rank` values. */
static tg_status channel_const(tgi_graph *g, const char *name, float *v, int64_t channels,
                               int rank, int *id, tgi_err *err)
{
    tgi_desc d = {.dtype = TG_DTYPE_F32, .rank = rank - 1, .dim = {channels}};
    for (int i = 1; i < d.rank; i++)
        d.dim[i] = 1;
    return tgi_graph_add_const(g, name, &d, v, 1, id, err);
}

static tg_status find_prelus(tgi_graph *g, const tgi_shapes *s, tgi_err *err)
{
    const int n_nodes = g->n_nodes;
    int found = 0;
    for (int i = 0; i < n_nodes && g->opset >= 7 && tgi_op_find("PRelu"); i++) {
        const tgi_node *add = &g->nodes[i];
        int x, c;
        if (!tgi_node_is(add, "Add") || (!match_prelu(g, add->src[0], add->src[1], &x, &c) &&
                                         !match_prelu(g, add->src[1], add->src[0], &x, &c)))
            continue;
        const tgi_desc *d = &s->desc[x];
        if (d->rank < 4)
            continue;
        float *slope = tgi_graph_own(g, (size_t)d->dim[1] * sizeof *slope, err);
        if (!slope)
            return TG_E_NOMEM;
        if (!tgi_value_channels(g, c, d->rank, d->dim[1], slope))
            continue;
        for (int64_t k = 0; k < d->dim[1]; k++)
            slope[k] *= 2; /* exact: x - |x| is 2x below zero */
        const int dst = add->dst[0];
        int src[2] = {x, -1};
        TGI_TRY(channel_const(g, g->values[c].name, slope, d->dim[1], d->rank, &src[1], err));
        TGI_TRY(put_instead(g, "PRelu", g->values[dst].name, 2, src, dst, NULL, err));
        found++;
    }
    if (found)
        TGI_TRY(tgi_graph_note(g, err, "Relu, Abs, Sub, Mul, Add -> PRelu (%d times)", found));
    return tgi_graph_clean(g, err);
}

/* ---- Norms ------------------------------------------------------------------------------- */

/* The float constant of at least three axes that is a convolution's weights, or NULL. */
static const tgi_constant *weights_of(const tgi_graph *g, const tgi_node *conv)
{
    const int v = conv->n_src > 1 ? conv->src[1] : -1;
    if (v < 0 || !g->values[v].is_const || g->values[v].cst.desc.dtype != TG_DTYPE_F32 ||
        g->values[v].cst.desc.rank < 3)
        return NULL;
    return &g->values[v].cst;
}

/* Scale weights by output channel. Conv has [O, I/g, ...], ConvTranspose [I, O/g, ...]. */
static void scale_weights(const tgi_node *conv, const tgi_constant *w, const float *scale,
                          float *dst)
{
    const float *src = w->data;
    const int64_t d0 = w->desc.dim[0], d1 = w->desc.dim[1];
    const int64_t groups = tgi_attr_int(conv, "group", 1);
    int64_t inner = 1;
    for (int i = 2; i < w->desc.rank; i++)
        inner *= w->desc.dim[i];
    for (int64_t a = 0; a < d0; a++)
        for (int64_t b = 0; b < d1; b++) {
            const int64_t o = tgi_node_is(conv, "Conv") ? a : a / (d0 / groups) * d1 + b;
            for (int64_t k = 0; k < inner; k++) {
                const int64_t at = (a * d1 + b) * inner + k;
                dst[at] = (float)((double)src[at] * (double)scale[o]);
            }
        }
}

/* The other operand of a two-input node. */
static int other_src(const tgi_node *n, int v)
{
    return n->n_src == 2 ? n->src[n->src[0] == v] : -1;
}

static tg_status fold_norm(tgi_graph *g, const tgi_shapes *s, int conv_i, int *done,
                           tgi_err *err)
{
    const tgi_node *conv = &g->nodes[conv_i];
    const tgi_constant *w = weights_of(g, conv);
    const int mul_i = tgi_graph_only_user(g, conv->dst[0]);
    const tgi_node *mul = mul_i >= 0 ? &g->nodes[mul_i] : NULL;
    const int add_i = mul && tgi_node_is(mul, "Mul") ? tgi_graph_only_user(g, mul->dst[0]) : -1;
    const tgi_node *add = add_i >= 0 ? &g->nodes[add_i] : NULL;
    *done = 0;
    if (!w || !add || !tgi_node_is(add, "Add"))
        return TG_OK;
    const tgi_desc *d = &s->desc[conv->dst[0]];
    const int64_t c = d->dim[1];
    int64_t n_w = 0;
    const int bias_v = conv->n_src > 2 ? conv->src[2] : -1;
    if (d->rank < 4 || !tgi_desc_count(&w->desc, &n_w) ||
        (bias_v >= 0 && (!g->values[bias_v].is_const || g->values[bias_v].cst.desc.rank != 1)))
        return TG_OK;
    float *scale = tgi_graph_own(g, (size_t)c * 2 * sizeof *scale, err), *shift = scale + c;
    float *w2 = scale ? tgi_graph_own(g, (size_t)n_w * sizeof *w2, err) : NULL;
    if (!w2)
        return TG_E_NOMEM;
    if (!tgi_value_channels(g, other_src(mul, conv->dst[0]), d->rank, c, scale) ||
        !tgi_value_channels(g, other_src(add, mul->dst[0]), d->rank, c, shift))
        return TG_OK;
    scale_weights(conv, w, scale, w2);
    const float *bias = bias_v < 0 ? NULL : g->values[bias_v].cst.data;
    for (int64_t k = 0; bias && k < c; k++)
        shift[k] = (float)((double)shift[k] + (double)bias[k] * (double)scale[k]);
    const tgi_desc w_desc = w->desc, b_desc = {.dtype = TG_DTYPE_F32, .rank = 1, .dim = {c}};
    int wv, bv;
    TGI_TRY(tgi_graph_add_const(g, g->values[conv->src[1]].name, &w_desc, w2, 1, &wv, err));
    TGI_TRY(tgi_graph_add_const(g, "folded bias", &b_desc, shift, 1, &bv, err));
    tgi_node *to = &g->nodes[conv_i];
    const int dst = g->nodes[add_i].dst[0];
    tgi_graph_take_units(g, to->dst[0], dst);
    tgi_graph_take_units(g, g->nodes[mul_i].dst[0], dst);
    tgi_graph_drop(g, mul_i);
    tgi_graph_drop(g, add_i);
    to->n_src = 3;
    to->dst[0] = dst;
    g->values[dst].producer = conv_i;
    *done = 1;
    TGI_TRY(tgi_graph_set_src(g, conv_i, 1, wv, err));
    return tgi_graph_set_src(g, conv_i, 2, bv, err);
}

static int is_conv(const tgi_node *n)
{
    return tgi_node_is(n, "Conv") || tgi_node_is(n, "ConvTranspose");
}

static tg_status find_norms(tgi_graph *g, const tgi_shapes *s, tgi_err *err)
{
    int found = 0;
    for (int i = 0; i < g->n_nodes; i++) {
        int done = 0;
        TGI_TRY(tgi_check_cancel(err));
        if (is_conv(&g->nodes[i]))
            TGI_TRY(fold_norm(g, s, i, &done, err));
        found += done;
    }
    if (found)
        TGI_TRY(tgi_graph_note(g, err, "scale and shift folded into %d convolutions", found));
    return tgi_graph_clean(g, err);
}

/* ---- Exchanges --------------------------------------------------------------------------- */

static int all_equal(const tgi_ints *v, int64_t x)
{
    for (int i = 0; v && i < v->n; i++)
        if (v->v[i] != x)
            return 0;
    return 1;
}

/* A 1x1 convolution that does not add channels. */
static int is_pointwise_conv(const tgi_graph *g, const tgi_node *n)
{
    const tgi_constant *w = tgi_node_is(n, "Conv") ? weights_of(g, n) : NULL;
    if (!w || n->n_epi || tgi_attr_int(n, "group", 1) != 1 || w->desc.dim[0] > w->desc.dim[1])
        return 0;
    for (int i = 2; i < w->desc.rank; i++)
        if (w->desc.dim[i] != 1)
            return 0;
    return all_equal(tgi_attr_ints(n, "pads"), 0) && all_equal(tgi_attr_ints(n, "strides"), 1);
}

/* A Resize that mixes pixels of a channel with weights that sum to one, wherever it is: a bias
 * passes through unchanged. Explicit sizes name the channel count, so those stay. */
static int is_plain_resize(const tgi_graph *g, const tgi_node *n, const tgi_shapes *s)
{
    if ((!tgi_node_is(n, "Resize") && !tgi_node_is(n, "Upsample")) || n->n_epi ||
        (n->n_src > 3 && n->src[3] >= 0))
        return 0;
    if (tgi_attr_enum_is(n, "coordinate_transformation_mode", "tf_crop_and_resize"))
        return 0;
    for (int k = 1; k < n->n_src; k++)
        if (n->src[k] >= 0 && !g->values[n->src[k]].is_const)
            return 0;
    const tgi_desc *a = &s->desc[n->src[0]], *b = &s->desc[n->dst[0]];
    for (int i = 2; i < a->rank && i < b->rank; i++)
        if (b->dim[i] < a->dim[i])
            return 0; /* shrinking first is cheaper */
    return tgi_attr_enum_is(n, "mode", "linear") || tgi_attr_enum_is(n, "mode", "nearest");
}

/* Let `second` run before `first`, whose only reader it is (through source k). The new value
 * between them has second's channels and first's input extents. */
static tg_status exchange(tgi_graph *g, int first, int second, int k, tgi_err *err)
{
    int mid;
    TGI_TRY(tgi_graph_add_value(g, g->values[g->nodes[second].dst[0]].name, &mid, err));
    tgi_node *a = &g->nodes[first], *b = &g->nodes[second];
    tgi_graph_take_units(g, a->dst[0], b->dst[0]);
    a->dst[0] = b->dst[0];
    b->dst[0] = mid;
    g->values[a->dst[0]].producer = first;
    g->values[mid].producer = second;
    TGI_TRY(tgi_graph_set_src(g, second, k, a->src[0], err));
    return tgi_graph_set_src(g, first, 0, mid, err);
}

static tg_status exchange_resizes(tgi_graph *g, const tgi_shapes *s, tgi_err *err)
{
    int found = 0;
    for (int i = 0; i < g->n_nodes; i++) {
        const int user = g->nodes[i].op && is_plain_resize(g, &g->nodes[i], s)
                             ? tgi_graph_only_user(g, g->nodes[i].dst[0])
                             : -1;
        if (user < 0 || !is_pointwise_conv(g, &g->nodes[user]))
            continue;
        TGI_TRY(exchange(g, i, user, 0, err));
        found++;
    }
    if (found)
        TGI_TRY(tgi_graph_note(g, err, "1x1 convolution before Resize (%d times)", found));
    return tgi_graph_clean(g, err);
}

/* Does the node treat every element alike? Then it may run before a shuffle of elements: bits
 * do not change. *k is the operand that is not a constant. */
static int is_uniform(const tgi_graph *g, const tgi_node *n, int *k)
{
    float c;
    if (!n->op->as_step || n->n_dst != 1 || n->n_epi)
        return 0;
    *k = -1;
    for (int i = 0; i < n->n_src; i++) {
        if (n->src[i] < 0 || tgi_value_scalar(g, n->src[i], &c))
            continue;
        if (*k >= 0)
            return 0;
        *k = i;
    }
    return *k >= 0;
}

static tg_status exchange_shuffles(tgi_graph *g, tgi_err *err)
{
    int found = 0;
    for (int i = 0; i < g->n_nodes; i++) {
        int user, k = 0;
        while (tgi_node_is(&g->nodes[i], "DepthToSpace") &&
               (user = tgi_graph_only_user(g, g->nodes[i].dst[0])) >= 0 &&
               is_uniform(g, &g->nodes[user], &k)) {
            TGI_TRY(exchange(g, i, user, k, err));
            found++;
        }
    }
    if (found)
        TGI_TRY(
            tgi_graph_note(g, err, "pointwise operator before DepthToSpace (%d times)", found));
    return tgi_graph_clean(g, err);
}

/* One pass with shapes that match the graph as it is now. */
static tg_status pass(tgi_graph *g, tg_status (*fn)(tgi_graph *, const tgi_shapes *, tgi_err *),
                      tgi_err *err)
{
    tgi_shapes s;
    TGI_TRY(tgi_infer_base(g, &s, err));
    const tg_status st = fn(g, &s, err);
    tgi_shapes_free(&s);
    return st;
}

tg_status tgi_rewrite_canonical(tgi_graph *g, unsigned flags, tgi_err *err)
{
    TGI_TRY(pass(g, tgi_split_norms, err));
    TGI_TRY(pass(g, find_shuffles, err));
    TGI_TRY(pass(g, tgi_join_doublings, err));
    TGI_TRY(pass(g, tgi_join_norms, err));
    TGI_TRY(pass(g, find_prelus, err));
    TGI_TRY(pass(g, find_norms, err));
    if (!(flags & TGI_GRAPH_NO_COMMUTE))
        TGI_TRY(pass(g, exchange_resizes, err));
    if (!(flags & (TGI_GRAPH_NO_COMMUTE | TGI_GRAPH_NO_FUSE)))
        TGI_TRY(exchange_shuffles(g, err));
    return TG_OK;
}

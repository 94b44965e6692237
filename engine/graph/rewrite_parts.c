/* rewrite_parts.c - operators that old exports spell as several, put together again.
 *
 *   m = mean(x); d = x - m; d / sqrt(mean(d * d) + eps) [* scale + shift by channel]
 *                                                  ->  InstanceNormalization, or, where
 *                                                      means are over channels, ChannelNorm
 *   Reshape [..,1], Concat with itself, Reshape [..,2W], Concat with itself, Reshape
 *                                                  ->  Resize by two, nearest
 *
 * As one operator each is computed once instead of in five passes, keeps the image an image,
 * and says what it needs of the whole extent: statistics, or a neighbour. Means may be taken
 * over [1,C,1,H*W]: a Reshape that leaves batch and channels as they are is looked through.
 * What other nodes read of the parts stays; the rest is dead and goes.
 *
 * And the one operator that is better off as two: BatchNormalization is a scale and a shift by
 * constants, so it becomes Mul and Add, which fold into the convolution before it. */
#include "engine/graph/graph_priv.h"

#include <math.h>
#include <string.h>

/* ---- Batch norm -------------------------------------------------------------------------- */

/* y = x * s + t with s = scale / sqrt(var + eps), t = shift - mean * s, computed in double.
 * @source ONNX BatchNormalization, inference form. */
static float *scale_and_shift(tgi_graph *g, const tgi_node *n, int64_t channels, tgi_err *err)
{
    const float *c[5] = {0};
    const double eps = (double)tgi_attr_float(n, "epsilon", 1e-5f);
    for (int i = 1; i < 5; i++)
        c[i] = g->values[n->src[i]].cst.data;
    float *st = tgi_graph_own(g, 2 * (size_t)channels * sizeof *st, err);
    for (int64_t k = 0; st && k < channels; k++) {
        const double s = (double)c[1][k] / sqrt((double)c[4][k] + eps);
        st[k] = (float)s;
        st[channels + k] = (float)((double)c[2][k] - (double)c[3][k] * s);
    }
    return st;
}

/* One pair [C,1,...] of them, aligned with the channels of what node i reads. */
static tg_status split_norm(tgi_graph *g, const tgi_shapes *s, int i, tgi_err *err)
{
    const tgi_node *n = &g->nodes[i];
    const tgi_desc *x = &s->desc[n->src[0]];
    const int64_t c = x->dim[1];
    tgi_desc d = {.dtype = TG_DTYPE_F32, .rank = x->rank - 1, .dim = {c}};
    for (int k = 1; k < d.rank; k++)
        d.dim[k] = 1;
    float *st = scale_and_shift(g, n, c, err);
    if (!st)
        return TG_E_NOMEM;
    const char *const name = n->name; /* stays where it is: nodes move, names do not */
    int two[2] = {n->src[0], -1}, mid, out = n->dst[0];
    TGI_TRY(tgi_graph_add_const(g, "scale", &d, st, 1, &two[1], err));
    TGI_TRY(tgi_graph_add_value(g, g->values[out].name, &mid, err));
    tgi_graph_drop(g, i);
    TGI_TRY(tgi_graph_add_node(g, "Mul", name, 2, two, 1, &mid, NULL, err));
    two[0] = mid;
    TGI_TRY(tgi_graph_add_const(g, "shift", &d, st + c, 1, &two[1], err));
    return tgi_graph_add_node(g, "Add", name, 2, two, 1, &out, NULL, err);
}

tg_status tgi_split_norms(tgi_graph *g, const tgi_shapes *s, tgi_err *err)
{
    const int n_nodes = g->n_nodes;
    for (int i = 0; i < n_nodes; i++)
        if (tgi_node_is(&g->nodes[i], "BatchNormalization"))
            TGI_TRY(split_norm(g, s, i, err));
    return tgi_graph_clean(g, err);
}

/* ---- Instance norm ----------------------------------------------------------------------- */

/* The value behind a Reshape that keeps batch and channels and only counts pixels anew. */
static int through_reshape(const tgi_graph *g, const tgi_shapes *s, int v)
{
    const tgi_node *n = tgi_graph_maker(g, v, "Reshape");
    if (!n)
        return v;
    const tgi_desc *a = &s->desc[n->src[0]], *b = &s->desc[v];
    return a->rank >= 3 && b->rank >= 3 && a->dim[0] == b->dim[0] && a->dim[1] == b->dim[1]
               ? n->src[0]
               : v;
}

/* What is averaged over all channels of each pixel to give `v`, or -1. */
static int mean_of_channels(const tgi_graph *g, const tgi_shapes *s, int v)
{
    const tgi_node *n = tgi_graph_maker(g, v, "ReduceMean");
    const tgi_desc *d = &s->desc[v];
    if (!n || n->n_epi || d->rank < 4 || d->rank > 5 || d->dim[0] != 1 || d->dim[1] != 1)
        return -1;
    const tgi_desc *a = &s->desc[n->src[0]];
    if (a->rank != d->rank || a->dim[0] != 1 || a->dim[1] < 2)
        return -1;
    for (int i = 2; i < d->rank; i++)
        if (d->dim[i] != a->dim[i] || a->dim[i] < 2)
            return -1;
    return n->src[0];
}

/* What is averaged over all pixels of each channel to give `v`, or -1. */
static int mean_of_pixels(const tgi_graph *g, const tgi_shapes *s, int v)
{
    const tgi_node *n = tgi_graph_maker(g, v, "ReduceMean");
    if (!n)
        n = tgi_graph_maker(g, v, "GlobalAveragePool");
    const tgi_desc *d = &s->desc[v];
    if (!n || n->n_epi || d->rank < 4 || d->dim[0] != 1)
        return -1;
    const tgi_desc *a = &s->desc[n->src[0]];
    if (a->rank != d->rank || a->dim[1] != d->dim[1])
        return -1;
    int64_t pixels = 1;
    for (int i = 2; i < d->rank; i++) {
        if (d->dim[i] != 1)
            return -1;
        pixels *= a->dim[i];
    }
    return pixels > 1 ? through_reshape(g, s, n->src[0]) : -1;
}

/* The value whose square `v` is, or -1. */
static int square_of(const tgi_graph *g, int v)
{
    float power;
    const tgi_node *mul = tgi_graph_maker(g, v, "Mul"), *pow = tgi_graph_maker(g, v, "Pow");
    if (mul && mul->src[0] == mul->src[1])
        return mul->src[0];
    return pow && tgi_value_scalar(g, pow->src[1], &power) && power == 2.0f ? pow->src[0] : -1;
}

typedef struct norm {
    int x;    /* what is normalised */
    int mean; /* the mean that is taken off */
    float epsilon;
} norm;

/* The norm is called after the node that takes the mean: it reads the image, and the model has
 * it. */
static tg_status add_norm(tgi_graph *g, const char *op, const norm *m, int n_src,
                          const int *src, int dst, tgi_err *err)
{
    const tgi_node *mean = &g->nodes[g->values[m->mean].producer];
    const char *const part_of = tgi_node_op_name(mean);
    tgi_node *n;
    TGI_TRY(tgi_graph_add_node(g, op, mean->name, n_src, src, 1, &dst, &n, err));
    n->part_of = part_of;
    return tgi_attr_set_float(n, "epsilon", m->epsilon)
               ? TG_OK
               : tgi_fail(err, TG_E_INTERNAL, "%s lacks its attribute", op);
}

typedef int (*mean_fn)(const tgi_graph *g, const tgi_shapes *s, int v);

/* d / sqrt(mean(d * d) + eps) with d = x - mean(x)? */
static int match_norm(const tgi_graph *g, const tgi_shapes *s, mean_fn mean_of,
                      const tgi_node *div, norm *out)
{
    const tgi_node *root = tgi_graph_maker(g, div->src[1], "Sqrt");
    const tgi_node *sum = root ? tgi_graph_maker(g, root->src[0], "Add") : NULL;
    const tgi_node *sub = tgi_graph_maker(g, div->src[0], "Sub");
    if (!sum || !sub)
        return 0;
    const int k = tgi_value_scalar(g, sum->src[1], &out->epsilon) ? 0 : 1;
    if (k == 1 && !tgi_value_scalar(g, sum->src[0], &out->epsilon))
        return 0;
    const int squares = mean_of(g, s, sum->src[k]);
    out->x = sub->src[0];
    out->mean = sub->src[1];
    return squares >= 0 && square_of(g, squares) == div->src[0] &&
           mean_of(g, s, sub->src[1]) == out->x;
}

/* The only reader of `v`, if it is `op` with one number per channel as its other operand, which
 * go to `numbers`; else -1. */
static int channel_step(const tgi_graph *g, const tgi_shapes *s, int v, const char *op,
                        float *numbers)
{
    const int at = tgi_graph_only_user(g, v);
    const tgi_node *n = at >= 0 ? &g->nodes[at] : NULL;
    if (!n || !tgi_node_is(n, op) || n->n_src != 2 || n->n_epi)
        return -1;
    const tgi_desc *d = &s->desc[v];
    return tgi_value_channels(g, n->src[n->src[0] == v], d->rank, d->dim[1], numbers) ? at : -1;
}

static tg_status add_channels(tgi_graph *g, const char *name, int64_t n, const float *v,
                              int *id, tgi_err *err)
{
    const tgi_desc d = {.dtype = TG_DTYPE_F32, .rank = 1, .dim = {n}};
    return tgi_graph_add_const(g, name, &d, v, 1, id, err);
}

/* Put the norm in place of node `at`, and of the scale and shift behind it. */
static tg_status replace_norm(tgi_graph *g, const tgi_shapes *s, int at, const norm *m,
                              tgi_err *err)
{
    int dst = g->nodes[at].dst[0], src[3] = {m->x, -1, -1};
    const int64_t c = s->desc[dst].dim[1];
    float *scale = tgi_graph_own(g, (size_t)c * 2 * sizeof *scale, err);
    if (!scale)
        return TG_E_NOMEM;
    for (int64_t k = 0; k < c; k++) {
        scale[k] = 1;
        scale[c + k] = 0;
    }
    const int mul = channel_step(g, s, dst, "Mul", scale);
    if (mul >= 0) {
        tgi_graph_take_units(g, dst, g->nodes[mul].dst[0]);
        tgi_graph_drop(g, at);
        dst = g->nodes[mul].dst[0];
        at = mul;
    }
    const int add = channel_step(g, s, dst, "Add", scale + c);
    if (add >= 0) {
        tgi_graph_take_units(g, dst, g->nodes[add].dst[0]);
        tgi_graph_drop(g, at);
        dst = g->nodes[add].dst[0];
        at = add;
    }
    tgi_graph_drop(g, at);
    TGI_TRY(add_channels(g, "scale", c, scale, &src[1], err));
    TGI_TRY(add_channels(g, "shift", c, scale + c, &src[2], err));
    return add_norm(g, "InstanceNormalization", m, 3, src, dst, err);
}

/* The same over the channels of each pixel; scale and shift stay, which others fuse. */
static tg_status join_channel_norms(tgi_graph *g, const tgi_shapes *s, tgi_err *err)
{
    const int n_nodes = g->n_nodes;
    int found = 0;
    norm m;
    for (int i = 0; i < n_nodes; i++) {
        const tgi_node *div = &g->nodes[i];
        if (!tgi_node_is(div, "Div") || div->n_epi || div->n_src != 2 ||
            !match_norm(g, s, mean_of_channels, div, &m))
            continue;
        const int dst = div->dst[0];
        tgi_graph_drop(g, i);
        TGI_TRY(add_norm(g, "ChannelNorm", &m, 1, &m.x, dst, err));
        found++;
    }
    if (!found)
        return TG_OK;
    return tgi_graph_note(
        g, err, "means over channels, differences, roots -> ChannelNorm (%d times)", found);
}

tg_status tgi_join_norms(tgi_graph *g, const tgi_shapes *s, tgi_err *err)
{
    const int n_nodes = g->n_nodes;
    int found = 0;
    norm m;
    for (int i = 0; i < n_nodes; i++) {
        const tgi_node *div = &g->nodes[i];
        if (!tgi_node_is(div, "Div") || div->n_epi || s->desc[div->dst[0]].rank < 4 ||
            !match_norm(g, s, mean_of_pixels, div, &m))
            continue;
        TGI_TRY(replace_norm(g, s, i, &m, err));
        found++;
    }
    if (found)
        TGI_TRY(tgi_graph_note(g, err,
                               "means, differences, roots -> InstanceNormalization "
                               "(%d times)",
                               found));
    TGI_TRY(join_channel_norms(g, s, err));
    return tgi_graph_clean(g, err);
}

/* ---- Upsampling -------------------------------------------------------------------------- */

/* The operand of Concat(v, v) along axis 1 that makes `v2`, or -1. */
static int twice(const tgi_graph *g, int v2)
{
    const tgi_node *n = v2 >= 0 ? tgi_graph_maker(g, v2, "Concat") : NULL;
    if (!n || n->n_src != 2 || n->src[0] != n->src[1])
        return -1;
    const int64_t axis = tgi_attr_int(n, "axis", -1);
    return axis == 1 || axis == -1 ? n->src[0] : -1;
}

static int reshaped(const tgi_graph *g, int v)
{
    const tgi_node *n = v >= 0 ? tgi_graph_maker(g, v, "Reshape") : NULL;
    return n ? n->src[0] : -1;
}

static int is_matrix(const tgi_desc *d, int64_t rows, int64_t columns)
{
    return d->rank == 2 && d->dim[0] == rows && d->dim[1] == columns;
}

/* The image of which `last` is every pixel as a square of 2x2, or -1. */
static int match_doubling(const tgi_graph *g, const tgi_shapes *s, const tgi_node *last)
{
    const int rows2 = last->src[0], rows = twice(g, rows2);
    const int pairs = reshaped(g, rows), single = twice(g, pairs);
    const int x = reshaped(g, single);
    if (x < 0)
        return -1;
    const tgi_desc *a = &s->desc[x], *b = &s->desc[last->dst[0]];
    if (a->rank != 4 || b->rank != 4 || a->dim[0] != 1 || b->dim[0] != 1)
        return -1;
    const int64_t c = a->dim[1], h = a->dim[2], w = a->dim[3];
    return is_matrix(&s->desc[single], c * h * w, 1) &&
                   is_matrix(&s->desc[rows], c * h, 2 * w) && b->dim[1] == c &&
                   b->dim[2] == 2 * h && b->dim[3] == 2 * w
               ? x
               : -1;
}

static tg_status replace_doubling(tgi_graph *g, int at, int x, tgi_err *err)
{
    static const float factors[4] = {1, 1, 2, 2};
    const tgi_desc d = {.dtype = TG_DTYPE_F32, .rank = 1, .dim = {4}};
    const int dst = g->nodes[at].dst[0];
    int src[3] = {x, -1, -1};
    tgi_node *n;
    tgi_graph_drop(g, at);
    TGI_TRY(tgi_graph_add_const(g, "factors", &d, factors, 0, &src[2], err));
    TGI_TRY(tgi_graph_add_node(g, "Resize", g->values[dst].name, 3, src, 1, &dst, &n, err));
    n->opset = 13;
    return tgi_attr_set_enum(n, "mode", "nearest") &&
                   tgi_attr_set_enum(n, "coordinate_transformation_mode", "asymmetric") &&
                   tgi_attr_set_enum(n, "nearest_mode", "floor")
               ? TG_OK
               : tgi_fail(err, TG_E_INTERNAL, "Resize lacks an attribute");
}

tg_status tgi_join_doublings(tgi_graph *g, const tgi_shapes *s, tgi_err *err)
{
    const int n_nodes = g->n_nodes;
    int found = 0;
    for (int i = 0; i < n_nodes; i++) {
        const int x =
            tgi_node_is(&g->nodes[i], "Reshape") ? match_doubling(g, s, &g->nodes[i]) : -1;
        if (x < 0)
            continue;
        TGI_TRY(replace_doubling(g, i, x, err));
        found++;
    }
    if (found)
        TGI_TRY(
            tgi_graph_note(g, err, "Concat with itself, twice -> Resize (%d times)", found));
    return tgi_graph_clean(g, err);
}

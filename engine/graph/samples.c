/* samples.c - follows the axis of the samples through the nodes of a network. */
#include "engine/graph/samples.h"
#include "engine/graph/graph_priv.h"

#include <string.h>

/* What of an operator's work shapes do not show. */
typedef enum rule {
    BY_SHAPE, /* nothing */
    FIRST,    /* samples are axis 0 of the first operand, and only of it */
    ACROSS,   /* looks along `axis` */
    BEHIND,   /* looks along `axis` and all behind it */
    AXES,     /* looks along `axes` */
    JOINS,    /* what it joins or cuts along `axis` are no samples */
    PICKS,    /* Gather */
    TURNS,    /* Slice: may take them backwards */
    REPEATS,  /* Tile */
    ROWS      /* elements stay in their order, with other extents */
} rule;

static const struct {
    const char *op;
    rule rule;
} table[] = {{"AveragePool", FIRST},
             {"BatchNormalization", FIRST},
             {"Concat", JOINS},
             {"Conv", FIRST},
             {"ConvTranspose", FIRST},
             {"DepthToSpace", FIRST},
             {"Flatten", ROWS},
             {"Gather", PICKS},
             {"GlobalAveragePool", FIRST},
             {"GlobalMaxPool", FIRST},
             {"GroupNormalization", FIRST},
             {"Hardmax", ACROSS},
             {"InstanceNormalization", FIRST},
             {"LRN", FIRST},
             {"LayerNormalization", BEHIND},
             {"LogSoftmax", ACROSS},
             {"LpNormalization", ACROSS},
             {"LpPool", FIRST},
             {"MaxPool", FIRST},
             {"MeanVarianceNormalization", AXES},
             {"RMSNormalization", BEHIND},
             {"Reshape", ROWS},
             {"Resize", FIRST},
             {"Slice", TURNS},
             {"Softmax", ACROSS},
             {"SpaceToDepth", FIRST},
             {"Split", JOINS},
             {"Squeeze", ROWS},
             {"Tile", REPEATS},
             {"Unsqueeze", ROWS},
             {"Upsample", FIRST}};

/* A network with one sample and with two. */
typedef struct walk {
    const tgi_graph *g;
    tgi_shapes one, two;
    signed char *axis; /* per value: of the samples; NONE: the inputs do not decide it */
} walk;

#define NONE (-1)

static rule rule_of(const tgi_node *n)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (tgi_node_is(n, table[i].op))
            return table[i].rule;
    return BY_SHAPE;
}

static int axis_of_operand(const walk *w, const tgi_node *n, int i)
{
    return i < n->n_src && n->src[i] >= 0 ? w->axis[n->src[i]] : NONE;
}

/* The axis with twice the extent, if all others are as they were; else NONE. */
static int doubled_axis(const walk *w, int v)
{
    const tgi_desc *a = &w->one.desc[v], *b = &w->two.desc[v];
    int axis = NONE;
    if (a->rank != b->rank)
        return NONE;
    for (int k = 0; k < a->rank; k++)
        if (a->dim[k] != b->dim[k]) {
            if (axis != NONE || b->dim[k] != 2 * a->dim[k])
                return NONE;
            axis = k;
        }
    return axis;
}

/* Elements in front of an axis. */
static int64_t outer(const tgi_desc *d, int axis)
{
    int64_t n = 1;
    for (int k = 0; k < axis; k++)
        n *= d->dim[k];
    return n;
}

/* Attribute `axis`, from the front. */
static int attr_axis(const walk *w, const tgi_node *n, int64_t absent)
{
    const int rank = w->one.desc[n->src[0]].rank;
    int64_t axis = tgi_attr_int(n, "axis", absent);
    if (axis < -rank || axis >= rank) /* Softmax: not given */
        axis = absent;
    return (int)(axis < 0 ? axis + rank : axis);
}

static int is_softmax(const tgi_node *n)
{
    return tgi_node_is(n, "Softmax") || tgi_node_is(n, "LogSoftmax") ||
           tgi_node_is(n, "Hardmax");
}

static int looks_across(const walk *w, const tgi_node *n, int at, int behind)
{
    const int old = is_softmax(n) && n->opset < 13;
    const int axis = attr_axis(w, n, old ? 1 : -1);
    return behind || old ? at >= axis : at == axis;
}

static int is_listed(const walk *w, const tgi_node *n, int at)
{
    const tgi_ints *axes = tgi_attr_ints(n, "axes");
    const int rank = w->one.desc[n->src[0]].rank;
    if (!axes) /* of MeanVarianceNormalization: 0, 2 and 3 */
        return at != 1;
    for (int i = 0; i < axes->n; i++)
        if (axes->v[i] == at || axes->v[i] + rank == at)
            return 1;
    return 0;
}

/* Any operand with samples is joined, or cut, along their axis. */
static int joins_samples(const walk *w, const tgi_node *n)
{
    const int axis = attr_axis(w, n, tgi_node_is(n, "Split") ? 0 : 1);
    for (int i = 0; i < n->n_src; i++)
        if (axis_of_operand(w, n, i) == axis)
            return 1;
    return 0;
}

static int64_t count_of(const tgi_constant *c)
{
    int64_t n = 0;
    (void)tgi_desc_count(&c->desc, &n);
    return n;
}

/* A negative step of Slice, on whatever axis: samples could be among those. */
static int steps_back(const walk *w, const tgi_node *n)
{
    const int v = n->n_src > 4 ? n->src[4] : -1;
    const tgi_constant *steps = v < 0                      ? NULL
                                : w->g->values[v].is_const ? &w->g->values[v].cst
                                : w->one.known[v].data     ? &w->one.known[v]
                                                           : NULL;
    const tgi_constant *axes = NULL;
    const int va = n->n_src > 3 ? n->src[3] : -1, at = axis_of_operand(w, n, 0);
    const int rank = w->one.desc[n->src[0]].rank;
    if (!steps)
        return v >= 0;
    if (va >= 0)
        axes = w->g->values[va].is_const ? &w->g->values[va].cst : &w->one.known[va];
    for (int64_t i = 0; i < count_of(steps); i++) {
        const int64_t k = axes && axes->data ? (int64_t)tgi_const_get(axes, i) : i;
        if ((k == at || k + rank == at) && tgi_const_get(steps, i) < 0)
            return 1;
    }
    return 0;
}

/* Does the node look along the samples of an operand in a way that keeps the shape? */
static int mixes(const walk *w, const tgi_node *n)
{
    const int at = axis_of_operand(w, n, 0);
    const rule r = rule_of(n);
    int others = 0;
    for (int i = 1; i < n->n_src; i++)
        others |= axis_of_operand(w, n, i) != NONE;
    switch (r) {
    case FIRST:
        return at != 0 || others;
    case ACROSS:
    case BEHIND:
        return looks_across(w, n, at, r == BEHIND);
    case AXES:
        return is_listed(w, n, at);
    case JOINS:
        return joins_samples(w, n);
    case PICKS:
        return at != NONE && (others || at == attr_axis(w, n, 0));
    case TURNS:
        return others || steps_back(w, n);
    case REPEATS:
    case ROWS:
        return others || (doubled_axis(w, n->dst[0]) != NONE &&
                          outer(&w->one.desc[n->src[0]], at) !=
                              outer(&w->one.desc[n->dst[0]], doubled_axis(w, n->dst[0])));
    default:
        return 0;
    }
}

/* Tile along the samples' axis puts a copy of all behind all. */
static int repeats_samples(const walk *w, const tgi_node *n)
{
    const int at = axis_of_operand(w, n, 0);
    return rule_of(n) == REPEATS && at != NONE &&
           w->one.desc[n->src[0]].dim[at] != w->one.desc[n->dst[0]].dim[at];
}

/* A factor that is known beforehand, and another with two samples than with one. */
static int depends_on_count(const walk *w, const tgi_node *n)
{
    for (int i = 0; i < n->n_src; i++) {
        const int v = n->src[i];
        if (v < 0 || !w->one.known[v].data || w->one.known[v].desc.dtype != TG_DTYPE_F32)
            continue;
        const tgi_constant *a = &w->one.known[v], *b = &w->two.known[v];
        if (!b->data || count_of(a) != count_of(b) ||
            memcmp(a->data, b->data, (size_t)count_of(a) * sizeof(float)) != 0)
            return 1;
    }
    return 0;
}

static tg_status refuse(const tgi_node *n, tgi_err *err)
{
    return tgi_fail(err, TG_E_UNSUPPORTED,
                    "%s \"%s\" computes with several samples of a batch together",
                    tgi_node_op_name(n), n->name);
}

static tg_status follow(walk *w, const tgi_node *n, tgi_err *err)
{
    int decided = 0;
    for (int i = 0; i < n->n_src; i++)
        decided |= axis_of_operand(w, n, i) != NONE;
    if (!decided || tgi_node_is_known(&w->one, n))
        return TG_OK;
    if (mixes(w, n) || repeats_samples(w, n) || depends_on_count(w, n))
        return refuse(n, err);
    for (int d = 0; d < n->n_dst; d++) {
        const int axis = doubled_axis(w, n->dst[d]);
        if (axis == NONE)
            return refuse(n, err);
        w->axis[n->dst[d]] = (signed char)axis;
    }
    return TG_OK;
}

static tg_status follow_all(walk *w, const int *axis, tgi_err *err)
{
    const tgi_graph *g = w->g;
    memset(w->axis, NONE, (size_t)g->n_values);
    for (int i = 0; i < g->n_in; i++)
        w->axis[g->in[i].value] = (signed char)axis[i];
    for (int i = 0; i < g->n_nodes; i++)
        TGI_TRY(follow(w, &g->nodes[i], err));
    return TG_OK;
}

tg_status tgi_graph_keeps_samples(const tgi_graph *raw, const tgi_desc *in, const int *axis,
                                  tgi_err *err)
{
    walk w = {.g = raw};
    tgi_desc two[TGI_MAX_PORTS];
    for (int i = 0; i < raw->n_in; i++) {
        two[i] = in[i];
        two[i].dim[axis[i]] *= 2;
    }
    w.axis = tgi_malloc(TGI_TAG_GRAPH, (size_t)raw->n_values + 1);
    tg_status st = w.axis ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory to follow samples");
    if (st == TG_OK)
        st = tgi_graph_infer(raw, in, &w.one, err);
    if (st == TG_OK && tgi_graph_infer(raw, two, &w.two, NULL) == TG_OK)
        st = follow_all(&w, axis, err);
    tgi_shapes_free(&w.one);
    tgi_shapes_free(&w.two);
    tgi_free(w.axis);
    return st;
}

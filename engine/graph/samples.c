/* samples.c - follows the axis of the samples through the nodes of a network. */
#include "engine/graph/samples.h"
#include "engine/graph/graph_priv.h"

#include <ctype.h>
#include <string.h>

/* What a value is to the samples; from 0 on: the axis along which they lie. */
enum {
    FIXED = -1,  /* the same however many there are */
    COUNTS = -2, /* follows from how many there are: a shape, mostly */
    PLACES = -3  /* indices of MaxPool, which count over all samples */
};

#define NO_AXIS (-9)

/* What an operator makes of the samples' axis. */
typedef enum rule {
    UNKNOWN,
    ALIGNED,  /* element by element, broadcast */
    FIRST,    /* images one by one: samples are axis 0 of the first operand */
    RESIZES,  /* the same, by shapes */
    CHANNELS, /* element by element, with numbers for axis 1 */
    ACROSS,   /* looks along `axis` */
    BEHIND,   /* looks along `axis` and all behind it */
    AXES,     /* looks along `axes` */
    BY_SHAPE, /* keeps the order of what it does not fold */
    CONCAT,
    EINSUM,
    EXPAND,
    GATHER,
    GEMM,
    MAT_MUL,
    PAD,
    ROWS, /* elements stay in their order, with other extents */
    SLICE,
    SPLIT,
    TILE,
    UNPOOL
} rule;

static const struct {
    const char *op;
    rule rule;
} table[] = {{"ArgMax", BY_SHAPE},
             {"ArgMin", BY_SHAPE},
             {"AveragePool", FIRST},
             {"BatchNormalization", CHANNELS},
             {"Cast", ALIGNED},
             {"CastLike", ALIGNED},
             {"Clip", ALIGNED},
             {"Concat", CONCAT},
             {"Conv", FIRST},
             {"ConvTranspose", FIRST},
             {"DepthToSpace", FIRST},
             {"Dropout", ALIGNED},
             {"Einsum", EINSUM},
             {"Expand", EXPAND},
             {"Flatten", ROWS},
             {"Gather", GATHER},
             {"Gemm", GEMM},
             {"GlobalAveragePool", FIRST},
             {"GlobalMaxPool", FIRST},
             {"GroupNormalization", FIRST},
             {"Hardmax", ACROSS},
             {"Identity", ALIGNED},
             {"InstanceNormalization", FIRST},
             {"LRN", FIRST},
             {"LayerNormalization", BEHIND},
             {"LogSoftmax", ACROSS},
             {"LpNormalization", ACROSS},
             {"LpPool", FIRST},
             {"MatMul", MAT_MUL},
             {"MaxPool", FIRST},
             {"MaxUnpool", UNPOOL},
             {"MeanVarianceNormalization", AXES},
             {"PRelu", ALIGNED},
             {"Pad", PAD},
             {"RMSNormalization", BEHIND},
             {"Reshape", ROWS},
             {"Resize", RESIZES},
             {"Slice", SLICE},
             {"Softmax", ACROSS},
             {"SpaceToDepth", FIRST},
             {"Split", SPLIT},
             {"Squeeze", ROWS},
             {"Tile", TILE},
             {"Transpose", BY_SHAPE},
             {"Unsqueeze", ROWS},
             {"Upsample", RESIZES},
             {"Where", ALIGNED}};

static const char *const elementwise[] = {"Abs",
                                          "Acos",
                                          "Acosh",
                                          "Add",
                                          "And",
                                          "Asin",
                                          "Asinh",
                                          "Atan",
                                          "Atanh",
                                          "BitShift",
                                          "Ceil",
                                          "Celu",
                                          "BitwiseAnd",
                                          "BitwiseOr",
                                          "Cos",
                                          "Cosh",
                                          "Div",
                                          "Elu",
                                          "Equal",
                                          "BitwiseXor",
                                          "Erf",
                                          "Exp",
                                          "Floor",
                                          "Gelu",
                                          "Greater",
                                          "HardSigmoid",
                                          "HardSwish",
                                          "IsInf",
                                          "IsNaN",
                                          "LeakyRelu",
                                          "Less",
                                          "Log",
                                          "Max",
                                          "Mean",
                                          "Min",
                                          "Mish",
                                          "Mod",
                                          "Mul",
                                          "Neg",
                                          "Not",
                                          "Or",
                                          "Pow",
                                          "Relu",
                                          "Reciprocal",
                                          "Round",
                                          "Selu",
                                          "Shrink",
                                          "Sigmoid",
                                          "Sign",
                                          "Sin",
                                          "Sinh",
                                          "Softplus",
                                          "Softsign",
                                          "Sqrt",
                                          "Sub",
                                          "Sum",
                                          "Swish",
                                          "Tan",
                                          "Tanh",
                                          "Xor",
                                          "GreaterOrEqual",
                                          "LessOrEqual",
                                          "ThresholdedRelu"};

/* A network with one sample and with two. */
typedef struct walk {
    const tgi_graph *g;
    tgi_shapes one, two;
    signed char *state; /* per value: an axis, or one of the above */
} walk;

static rule rule_of(const tgi_node *n)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (tgi_node_is(n, table[i].op))
            return table[i].rule;
    for (size_t i = 0; i < sizeof elementwise / sizeof *elementwise; i++)
        if (tgi_node_is(n, elementwise[i]))
            return ALIGNED;
    return strncmp(n->op->name, "Reduce", 6) == 0 ? BY_SHAPE : UNKNOWN;
}

static int given(const tgi_node *n, int i)
{
    return i < n->n_src && n->src[i] >= 0;
}

static int state_of(const walk *w, const tgi_node *n, int i)
{
    return given(n, i) ? w->state[n->src[i]] : FIXED;
}

static const tgi_desc *desc_of(const walk *w, const tgi_node *n, int i)
{
    return &w->one.desc[n->src[i]];
}

static int64_t extent(const tgi_desc *d, int from, int to)
{
    int64_t n = 1;
    for (int k = from; k < to; k++)
        n *= d->dim[k];
    return n;
}

/* The axis with twice the extent, if all others are as they were. */
static int doubled_axis(const walk *w, int v)
{
    const tgi_desc *a = &w->one.desc[v], *b = &w->two.desc[v];
    int axis = NO_AXIS;
    if (a->rank != b->rank)
        return NO_AXIS;
    for (int k = 0; k < a->rank; k++)
        if (a->dim[k] != b->dim[k]) {
            if (axis != NO_AXIS || b->dim[k] != 2 * a->dim[k])
                return NO_AXIS;
            axis = k;
        }
    return axis;
}

/* ---- Values that are known beforehand ---------------------------------------------------- */

static const tgi_constant *known_in(const walk *w, const tgi_shapes *s, int v)
{
    return w->g->values[v].is_const ? &w->g->values[v].cst
           : s->known[v].data       ? &s->known[v]
                                    : NULL;
}

static int64_t count_of(const tgi_constant *c)
{
    int64_t n = 0;
    (void)tgi_desc_count(&c->desc, &n);
    return n;
}

/* Does each of two samples have the numbers of one? */
static int repeats(const tgi_constant *a, const tgi_constant *b, int axis)
{
    const size_t row =
        (size_t)extent(&a->desc, axis, a->desc.rank) * tgi_dtype_size(a->desc.dtype);
    const char *one = a->data, *two = b->data;
    for (int64_t o = 0; o < extent(&a->desc, 0, axis); o++, one += row, two += 2 * row)
        if (memcmp(one, two, row) != 0 || memcmp(one, two + row, row) != 0)
            return 0;
    return 1;
}

static int state_of_known(const walk *w, int v)
{
    const tgi_constant *a = &w->one.known[v], *b = &w->two.known[v];
    const int axis = doubled_axis(w, v);
    if (tgi_desc_same_shape(&a->desc, &b->desc) &&
        memcmp(a->data, b->data, (size_t)count_of(a) * tgi_dtype_size(a->desc.dtype)) == 0)
        return FIXED;
    return axis >= 0 && repeats(a, b, axis) ? axis : COUNTS;
}

/* Numbers for `axis` in operand i, one for each axis that operand `axes` lists (-1: all). 1 when
 * they are known, with one sample in *a and with two in *b; both `none` where the axis has none.
 */
static int numbers_for(const walk *w, const tgi_node *n, int i, int axes, int axis,
                       int64_t none, int64_t *a, int64_t *b)
{
    const int rank = desc_of(w, n, 0)->rank;
    *a = *b = none;
    if (!given(n, i))
        return 1;
    const tgi_constant *x = known_in(w, &w->one, n->src[i]),
                       *y = known_in(w, &w->two, n->src[i]), *list = NULL;
    if (given(n, axes) && !(list = known_in(w, &w->one, n->src[axes])))
        return 0;
    if (!x || !y || count_of(x) != count_of(y))
        return 0;
    for (int64_t k = 0; k < count_of(x); k++) {
        const int64_t at = list ? (int64_t)tgi_const_get(list, k) : k;
        if (at == axis || at + rank == axis) {
            *a = (int64_t)tgi_const_get(x, k);
            *b = (int64_t)tgi_const_get(y, k);
        }
    }
    return 1;
}

/* ---- Rules: the axis in the result, or NO_AXIS ------------------------------------------- */

static int attr_axis(const walk *w, const tgi_node *n, int64_t absent)
{
    const int rank = desc_of(w, n, 0)->rank;
    int64_t axis = tgi_attr_int(n, "axis", absent);
    if (axis < -rank || axis >= rank) /* Softmax: not given */
        axis = absent;
    return (int)(axis < 0 ? axis + rank : axis);
}

/* Operands from `first` on are the same for all samples, or shapes where those may follow. */
static int others_are(const walk *w, const tgi_node *n, int first, int counts)
{
    for (int i = first; i < n->n_src; i++)
        if (state_of(w, n, i) != FIXED && !(counts && state_of(w, n, i) == COUNTS))
            return 0;
    return 1;
}

/* All operands that have samples bring them to the same axis of the result. */
static int aligned(const walk *w, const tgi_node *n)
{
    const int axis = doubled_axis(w, n->dst[0]), rank = w->one.desc[n->dst[0]].rank;
    if (n->opset < 7 && n->n_src > 1 && state_of(w, n, 1) != FIXED)
        return NO_AXIS; /* broadcast by attributes */
    for (int i = 0; i < n->n_src; i++) {
        const int at = state_of(w, n, i);
        if (at != FIXED && (at < 0 || at - desc_of(w, n, i)->rank + rank != axis))
            return NO_AXIS;
    }
    return axis;
}

static int looks_across(const walk *w, const tgi_node *n, int at, rule r)
{
    const int soft =
        tgi_node_is(n, "Softmax") || tgi_node_is(n, "LogSoftmax") || tgi_node_is(n, "Hardmax");
    const int old = soft && n->opset < 13;
    const int axis = attr_axis(w, n, old ? 1 : -1);
    return r == BEHIND || old ? at >= axis : at == axis;
}

static int is_listed(const tgi_node *n, int at, int rank)
{
    const tgi_ints *axes = tgi_attr_ints(n, "axes");
    if (!axes) /* of MeanVarianceNormalization: 0, 2 and 3 */
        return at != 1;
    for (int i = 0; i < axes->n; i++)
        if (axes->v[i] == at || axes->v[i] + rank == at)
            return 1;
    return 0;
}

static int concat(const walk *w, const tgi_node *n)
{
    const int at = state_of(w, n, 0);
    for (int i = 0; i < n->n_src; i++)
        if (state_of(w, n, i) < 0 || state_of(w, n, i) != at)
            return NO_AXIS;
    return at == attr_axis(w, n, 1) ? NO_AXIS : at;
}

static int gather(const walk *w, const tgi_node *n)
{
    const int at = state_of(w, n, 0), of_index = state_of(w, n, 1), axis = attr_axis(w, n, 0);
    if (at == FIXED)
        return of_index >= 0 ? axis + of_index : NO_AXIS;
    if (at < 0 || of_index != FIXED || at == axis)
        return NO_AXIS;
    return at < axis ? at : at + desc_of(w, n, 1)->rank - 1;
}

static int mat_mul(const walk *w, const tgi_node *n)
{
    const int result = doubled_axis(w, n->dst[0]);
    const int ranks[2] = {desc_of(w, n, 0)->rank, desc_of(w, n, 1)->rank};
    const int rank = w->one.desc[n->dst[0]].rank;
    for (int i = 0; i < 2; i++) {
        const int at = state_of(w, n, i), summed = i == 0 ? ranks[0] - 1 : ranks[1] - 2;
        if (at == FIXED)
            continue;
        if (at < 0 || ranks[0] < 2 || ranks[1] < 2 || at == summed ||
            at - ranks[i] + rank != result)
            return NO_AXIS;
    }
    return result;
}

/* Rows of A, and perhaps of C. */
static int gemm(const walk *w, const tgi_node *n)
{
    const int c = state_of(w, n, 2);
    if (state_of(w, n, 0) != (tgi_attr_int(n, "transA", 0) ? 1 : 0) ||
        state_of(w, n, 1) != FIXED)
        return NO_AXIS;
    return c == FIXED || (c == 0 && desc_of(w, n, 2)->rank == 2) ? 0 : NO_AXIS;
}

/* The letter of axis `at` of operand i, or of the result (i -1), of an equation with neither
 * dots nor a result that goes without saying; 0: none. */
static char letter_of(const char *equation, int i, int at)
{
    const char *s = equation, *arrow = strstr(equation, "->");
    if (!arrow || strchr(equation, '.'))
        return 0;
    if (i < 0)
        s = arrow + 2;
    for (; i > 0 && s < arrow; s++)
        i -= *s == ',';
    for (; *s && *s != ',' && *s != '-'; s++)
        if (isalpha((unsigned char)*s) && at-- == 0)
            return *s;
    return 0;
}

/* All samples have one letter, which is in the result. */
static int einsum(const walk *w, const tgi_node *n)
{
    const tgi_attr *row = tgi_attr_row(n->op, "equation");
    const char *equation = (const char *)n->attrs + row->offset;
    const int axis = doubled_axis(w, n->dst[0]);
    const char letter = axis < 0 ? 0 : letter_of(equation, -1, axis);
    for (int i = 0; i < n->n_src; i++) {
        const int at = state_of(w, n, i);
        if (at != FIXED && (at < 0 || !letter || letter_of(equation, i, at) != letter))
            return NO_AXIS;
    }
    return axis;
}

/* Of what all samples share: an axis that was one, or repeats; sample by sample either way. */
static int spread(const walk *w, const tgi_node *n, rule r)
{
    const int axis = doubled_axis(w, n->dst[0]);
    const tgi_desc *from = desc_of(w, n, 0), *to = &w->one.desc[n->dst[0]];
    const int at = axis - to->rank + from->rank;
    return axis < 0 || (r == EXPAND && at >= 0 && from->dim[at] != 1) ? NO_AXIS : axis;
}

static int expand(const walk *w, const tgi_node *n)
{
    const int at = state_of(w, n, 0), axis = doubled_axis(w, n->dst[0]);
    return at - desc_of(w, n, 0)->rank + w->one.desc[n->dst[0]].rank == axis ? axis : NO_AXIS;
}

static int tile(const walk *w, const tgi_node *n)
{
    const int at = state_of(w, n, 0);
    return doubled_axis(w, n->dst[0]) == at &&
                   desc_of(w, n, 0)->dim[at] == w->one.desc[n->dst[0]].dim[at]
               ? at
               : NO_AXIS;
}

static int rows(const walk *w, const tgi_node *n)
{
    const int axis = doubled_axis(w, n->dst[0]);
    return axis >= 0 && extent(desc_of(w, n, 0), 0, state_of(w, n, 0)) ==
                            extent(&w->one.desc[n->dst[0]], 0, axis)
               ? axis
               : NO_AXIS;
}

/* All of the samples' axis, forwards; and the same of the others, however many there are. */
static int slice(const walk *w, const tgi_node *n)
{
    const int at = state_of(w, n, 0);
    int64_t a, b;
    if (desc_of(w, n, 0)->dim[at] != w->one.desc[n->dst[0]].dim[at] ||
        doubled_axis(w, n->dst[0]) != at || !numbers_for(w, n, 4, 3, at, 1, &a, &b) || a < 1)
        return NO_AXIS;
    for (int k = 0; k < desc_of(w, n, 0)->rank; k++)
        for (int i = 1; i < 5 && k != at; i += i == 2 ? 2 : 1)
            if (!numbers_for(w, n, i, 3, k, 0, &a, &b) || a != b)
                return NO_AXIS;
    return at;
}

/* Nothing is added to the samples' axis, nor taken from it. */
static int pad(const walk *w, const tgi_node *n)
{
    const int at = state_of(w, n, 0), rank = desc_of(w, n, 0)->rank;
    const tgi_ints *old = tgi_attr_ints(n, "pads");
    const tgi_constant *list = given(n, 1) ? known_in(w, &w->one, n->src[1]) : NULL;
    if (given(n, 3) || !others_are(w, n, 1, 0)) /* axes: not looked into */
        return NO_AXIS;
    for (int k = at; k <= at + rank; k += rank)
        if (list ? tgi_const_get(list, k) != 0 : !old || k >= old->n || old->v[k] != 0)
            return NO_AXIS;
    return at;
}

static int axis_of_result(const walk *w, const tgi_node *n)
{
    const rule r = rule_of(n);
    const int at = state_of(w, n, 0);
    switch (r) {
    case ALIGNED:
        return aligned(w, n);
    case CONCAT:
        return concat(w, n);
    case EINSUM:
        return einsum(w, n);
    case GATHER:
        return gather(w, n);
    case GEMM:
        return gemm(w, n);
    case MAT_MUL:
        return mat_mul(w, n);
    case UNPOOL:
        return at == 0 && state_of(w, n, 1) == PLACES && others_are(w, n, 2, 1) ? 0 : NO_AXIS;
    default:
        break;
    }
    const int by_shape = r == RESIZES || r == ROWS || r == EXPAND || r == TILE || r == SLICE;
    if (at < 0 || !others_are(w, n, 1, by_shape))
        return NO_AXIS;
    switch (r) {
    case FIRST:
    case RESIZES:
        return at == 0 && doubled_axis(w, n->dst[0]) == 0 ? 0 : NO_AXIS;
    case CHANNELS:
        return at != 1 ? at : NO_AXIS;
    case ACROSS:
    case BEHIND:
        return looks_across(w, n, at, r) ? NO_AXIS : at;
    case AXES:
        return is_listed(n, at, desc_of(w, n, 0)->rank) ? NO_AXIS : at;
    case BY_SHAPE:
        return doubled_axis(w, n->dst[0]);
    case EXPAND:
        return expand(w, n);
    case PAD:
        return pad(w, n);
    case ROWS:
        return rows(w, n);
    case SLICE:
        return slice(w, n);
    case SPLIT:
        return at == attr_axis(w, n, 0) ? NO_AXIS : at;
    case TILE:
        return tile(w, n);
    default:
        return NO_AXIS;
    }
}

/* ---- The walk ---------------------------------------------------------------------------- */

/* No operand has samples: some may follow from how many there are. */
static int without_samples(const walk *w, const tgi_node *n, int d)
{
    const rule r = rule_of(n);
    int axis = NO_AXIS;
    if (others_are(w, n, 0, 0))
        return tgi_desc_same_shape(&w->one.desc[n->dst[d]], &w->two.desc[n->dst[d]]) ? FIXED
                                                                                     : COUNTS;
    if (tgi_node_is(n, "ConstantOfShape"))
        axis = doubled_axis(w, n->dst[0]);
    else if ((r == EXPAND || r == TILE) && state_of(w, n, 0) == FIXED)
        axis = spread(w, n, r);
    return axis >= 0 ? axis : COUNTS;
}

static tg_status follow(walk *w, const tgi_node *n, tgi_err *err)
{
    int decided = 0;
    for (int i = 0; i < n->n_src; i++)
        decided |= state_of(w, n, i) >= 0 || state_of(w, n, i) == PLACES;
    const int known = tgi_node_is_known(&w->one, n) && tgi_node_is_known(&w->two, n);
    const int axis = decided && !known ? axis_of_result(w, n) : 0;
    for (int d = 0; d < n->n_dst; d++) {
        const int v = n->dst[d];
        const int state = known                                ? state_of_known(w, v)
                          : !decided                           ? without_samples(w, n, d)
                          : d > 0 && tgi_node_is(n, "MaxPool") ? PLACES
                                                               : axis;
        w->state[v] = (signed char)state;
        if (decided && !known && state != PLACES && (axis < 0 || doubled_axis(w, v) != axis))
            return tgi_fail(err, TG_E_UNSUPPORTED,
                            "%s \"%s\" is not known to keep samples of a batch apart",
                            tgi_node_op_name(n), n->name);
    }
    return TG_OK;
}

static tg_status follow_all(walk *w, int axis, tgi_err *err)
{
    const tgi_graph *g = w->g;
    memset(w->state, FIXED, (size_t)g->n_values);
    for (int i = 0; i < g->n_in; i++)
        w->state[g->in[i].value] = (signed char)axis;
    for (int i = 0; i < g->n_nodes; i++)
        TGI_TRY(follow(w, &g->nodes[i], err));
    for (int o = 0; o < g->n_out; o++)
        if (w->state[g->out[o].value] != axis)
            return tgi_fail(err, TG_E_UNSUPPORTED,
                            "the output \"%s\" does not have the samples along axis %d",
                            g->out[o].name, axis);
    return TG_OK;
}

static tg_status look(const tgi_graph *g, int axis, tgi_err *why)
{
    walk w = {.g = g};
    tgi_desc two[TGI_MAX_PORTS];
    for (int i = 0; i < g->n_in; i++) {
        two[i] = tgi_priv((tgi_graph *)(uintptr_t)g)->base_in[i];
        if (axis >= two[i].rank)
            return tgi_fail(why, TG_E_UNSUPPORTED, "the input \"%s\" has no axis %d",
                            g->in[i].name, axis);
        two[i].dim[axis] *= 2;
    }
    w.state = tgi_malloc(TGI_TAG_GRAPH, (size_t)g->n_values + 1);
    tg_status st = w.state ? TG_OK : tgi_fail(why, TG_E_NOMEM, "no memory to follow samples");
    if (st == TG_OK)
        st = tgi_infer_base(g, &w.one, why);
    if (st == TG_OK)
        st = tgi_graph_infer(g, two, &w.two, why);
    if (st == TG_OK)
        st = follow_all(&w, axis, why);
    tgi_shapes_free(&w.one);
    tgi_shapes_free(&w.two);
    tgi_free(w.state);
    return st;
}

/* Samples of a network that says that it takes one are each meant by itself. */
static int takes_many(const tgi_graph *g, int axis)
{
    for (int i = 0; i < g->n_in; i++)
        if (axis >= g->in[i].file_rank || g->in[i].file_dim[axis] != 1)
            return 1;
    return 0;
}

/* Samples may lie along the second axis where a turn of axes comes first. */
static int turns_inputs(const tgi_graph *g)
{
    for (int i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->n_in && tgi_node_is(&g->nodes[i], "Transpose"); k++)
            if (g->nodes[i].src[0] == g->in[k].value)
                return 1;
    return 0;
}

tg_status tgi_note_samples(tgi_graph *g, tgi_err *err)
{
    for (int axis = 0; axis < 1 + turns_inputs(g); axis++) {
        tgi_err why = {0};
        const tg_status st = takes_many(g, axis) ? look(g, axis, &why) : TG_OK;
        if (tgi_search_ends(st))
            return tgi_fail(err, st, "%s", why.text);
        if (st != TG_OK && !(g->together[axis] = tgi_strdup(TGI_TAG_GRAPH, why.text)))
            return tgi_fail(err, TG_E_NOMEM, "no memory for a message");
    }
    return TG_OK;
}

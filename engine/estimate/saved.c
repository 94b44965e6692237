/* saved.c - the rules of saved.h, and the walk that applies them.
 *
 * @source PyTorch, tools/autograd/derivatives.yaml (what each formula reads), and
 * torch.autograd.graph.saved_tensors_hooks, which tests/estimate/saved_tensors.py compares
 * with; autocast's lists for the element sizes: torch/amp, "CUDA Op-Specific Behavior". */
#include "engine/estimate/saved.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"

#include <string.h>

/* What an operator keeps. */
enum {
    IN = 1,      /* operand 0 */
    OUT = 2,     /* result 0 */
    OTHERS = 4,  /* each operand, when another one wants a gradient: products */
    INDEX = 8,   /* an int64 for each element of the result */
    STATS = 16,  /* mean and deviation, float32, by `stats` */
    MASK = 32,   /* a byte for each element */
    VIEW = 64,   /* the result is the operand's memory */
    EXTRA = 128, /* one more tensor of the result's size: composed of two operations */
};

/* Element size under autocast: products in half, sums and exponentials in float32, the others
 * in what they are given. */
typedef enum cast { ANY, HALF, FULL } cast;

/* What statistics are of: a channel of the batch, a channel of a sample, the rows before the
 * last axes, a group of channels of a sample. */
typedef enum stats { NO_STATS, OF_BATCH, OF_CHANNEL, OF_ROW, OF_GROUP } stats;

typedef struct rule {
    const char *op;
    int keeps;
    cast cast;
    stats stats;
    int n_params;  /* operands from 1 on that are trained when they are constants */
    int n_buffers; /* and those after them that are not */
} rule;

static const rule rules[] = {
    {"Conv", IN, HALF, NO_STATS, 2, 0},
    {"ConvTranspose", IN, HALF, NO_STATS, 2, 0},
    {"Gemm", OTHERS, HALF, NO_STATS, 2, 0},
    {"MatMul", OTHERS, HALF, NO_STATS, 1, 0},
    {"Einsum", OTHERS, HALF, NO_STATS, 1, 0},
    {"BatchNormalization", IN | STATS, ANY, OF_BATCH, 2, 2},
    {"InstanceNormalization", IN | STATS, ANY, OF_CHANNEL, 2, 0},
    {"LayerNormalization", IN | STATS, FULL, OF_ROW, 2, 0},
    {"RMSNormalization", IN | STATS, FULL, OF_ROW, 1, 0},
    {"GroupNormalization", IN | STATS, FULL, OF_GROUP, 2, 0},
    {"Relu", OUT, ANY, NO_STATS, 0, 0},
    {"Sigmoid", OUT, ANY, NO_STATS, 0, 0},
    {"Tanh", OUT, ANY, NO_STATS, 0, 0},
    {"Sqrt", OUT, ANY, NO_STATS, 0, 0},
    {"Exp", OUT, FULL, NO_STATS, 0, 0},
    {"Reciprocal", OUT, FULL, NO_STATS, 0, 0},
    {"Softmax", OUT, FULL, NO_STATS, 0, 0},
    {"LogSoftmax", OUT, FULL, NO_STATS, 0, 0},
    {"LeakyRelu", IN, ANY, NO_STATS, 0, 0},
    {"PRelu", IN, HALF, NO_STATS, 1, 0},
    {"ThresholdedRelu", IN, ANY, NO_STATS, 0, 0},
    {"Elu", IN, ANY, NO_STATS, 0, 0},
    {"Selu", IN, ANY, NO_STATS, 0, 0},
    {"Celu", IN, ANY, NO_STATS, 0, 0},
    {"Gelu", IN, ANY, NO_STATS, 0, 0},
    {"Swish", IN, ANY, NO_STATS, 0, 0},
    {"Mish", IN, ANY, NO_STATS, 0, 0},
    {"HardSwish", IN, ANY, NO_STATS, 0, 0},
    {"HardSigmoid", IN, ANY, NO_STATS, 0, 0},
    {"Clip", IN, ANY, NO_STATS, 0, 0},
    {"Abs", IN, ANY, NO_STATS, 0, 0},
    {"Erf", IN, ANY, NO_STATS, 0, 0},
    {"Sin", IN, ANY, NO_STATS, 0, 0},
    {"Cos", IN, ANY, NO_STATS, 0, 0},
    {"Softplus", IN, FULL, NO_STATS, 0, 0},
    {"Softsign", IN | EXTRA, ANY, NO_STATS, 0, 0},
    {"Log", IN, FULL, NO_STATS, 0, 0},
    {"Pow", IN, FULL, NO_STATS, 0, 0},
    {"Mul", OTHERS, ANY, NO_STATS, 1, 0},
    {"Div", OTHERS, ANY, NO_STATS, 1, 0},
    {"Max", OTHERS, ANY, NO_STATS, 0, 0},
    {"Min", OTHERS, ANY, NO_STATS, 0, 0},
    {"Add", 0, ANY, NO_STATS, 1, 0},
    {"Sub", 0, ANY, NO_STATS, 1, 0},
    {"Sum", 0, ANY, NO_STATS, 0, 0},
    {"Mean", 0, ANY, NO_STATS, 0, 0},
    {"Neg", 0, ANY, NO_STATS, 0, 0},
    {"MaxPool", IN | INDEX, ANY, NO_STATS, 0, 0},
    {"GlobalMaxPool", IN | INDEX, ANY, NO_STATS, 0, 0},
    {"AveragePool", IN, ANY, NO_STATS, 0, 0},
    {"GlobalAveragePool", 0, ANY, NO_STATS, 0, 0},
    {"ReduceMean", 0, ANY, NO_STATS, 0, 0},
    {"ReduceSum", 0, FULL, NO_STATS, 0, 0},
    {"ReduceMax", IN | OUT, ANY, NO_STATS, 0, 0},
    {"ReduceMin", IN | OUT, ANY, NO_STATS, 0, 0},
    {"ReduceL2", IN | OUT, FULL, NO_STATS, 0, 0},
    {"Dropout", MASK, ANY, NO_STATS, 0, 0},
    {"Concat", 0, ANY, NO_STATS, 0, 0},
    {"Pad", 0, ANY, NO_STATS, 0, 0},
    {"Tile", 0, ANY, NO_STATS, 0, 0},
    {"Resize", 0, ANY, NO_STATS, 0, 0},
    {"Upsample", 0, ANY, NO_STATS, 0, 0},
    {"DepthToSpace", 0, ANY, NO_STATS, 0, 0},
    {"SpaceToDepth", 0, ANY, NO_STATS, 0, 0},
    {"Gather", 0, ANY, NO_STATS, 0, 0},
    {"Cast", 0, ANY, NO_STATS, 0, 0},
    {"Identity", VIEW, ANY, NO_STATS, 0, 0},
    {"Reshape", VIEW, ANY, NO_STATS, 0, 0},
    {"Flatten", VIEW, ANY, NO_STATS, 0, 0},
    {"Squeeze", VIEW, ANY, NO_STATS, 0, 0},
    {"Unsqueeze", VIEW, ANY, NO_STATS, 0, 0},
    {"Transpose", VIEW, ANY, NO_STATS, 0, 0},
    {"Expand", VIEW, ANY, NO_STATS, 0, 0},
    {"Slice", VIEW, ANY, NO_STATS, 0, 0},
    {"Split", VIEW, ANY, NO_STATS, 0, 0},
};

static const rule unknown_rule = {"", IN | OUT | OTHERS, ANY, NO_STATS, 0, 0};

/* ---- Collecting -------------------------------------------------------------------------- */

static int64_t count_of(const tgi_desc *d)
{
    int64_t n = 0;
    return tgi_desc_count(d, &n) ? n : 0;
}

static tg_status add_item(tgi_saved *s, int value, int half, uint64_t per_sample,
                          uint64_t fixed, tgi_err *err)
{
    if (s->n_items == s->cap_items) {
        const int cap = 2 * s->cap_items + 64;
        tgi_saved_item *grown =
            tgi_realloc_n(TGI_TAG_PLAN, s->item, (size_t)cap, sizeof *grown);
        if (!grown)
            return tgi_fail(err, TG_E_NOMEM, "no memory for what is kept");
        s->item = grown;
        s->cap_items = cap;
    }
    s->item[s->n_items++] =
        (tgi_saved_item){s->n_steps, value, half, {.per_sample = per_sample, .fixed = fixed}};
    return TG_OK;
}

static uint64_t value_bytes(const tgi_saved *s, int v, int half)
{
    const tgi_desc *d = &s->shapes.desc[v];
    const size_t size =
        tgi_dtype_is_float(d->dtype) ? (half ? 2 : 4) : tgi_dtype_size(d->dtype);
    return tgi_sat_mul((size_t)count_of(d), size);
}

/* Keep a value in the element size of its reader. A cast copy is memory of its own. */
static tg_status keep(tgi_saved *s, int v, int half, tgi_err *err)
{
    const int base = half == s->half[v] ? s->alias[v] : v;
    return add_item(s, base, half, value_bytes(s, base, half), 0, err);
}

static tg_status keep_own(tgi_saved *s, uint64_t per_sample, uint64_t fixed, tgi_err *err)
{
    return per_sample + fixed ? add_item(s, -1, 0, per_sample, fixed, err) : TG_OK;
}

/* ---- One node ---------------------------------------------------------------------------- */

static const rule *rule_of(tgi_saved *s, const tgi_node *n)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (strcmp(rules[i].op, n->op->name) == 0)
            return &rules[i];
    for (int i = 0; i < s->n_assumed; i++)
        if (s->assumed[i] == n->op->name)
            return &unknown_rule;
    if (s->n_assumed < (int)(sizeof s->assumed / sizeof s->assumed[0]))
        s->assumed[s->n_assumed++] = n->op->name;
    return &unknown_rule;
}

static int is_fixed(const tgi_saved *s, int v)
{
    return s->g->values[v].is_const || s->shapes.known[v].data != NULL;
}

/* A constant of floats that training changes: by the rule, and no scalar of a pointwise op,
 * which a program writes as a number. */
static int is_param(const tgi_saved *s, const rule *r, const tgi_node *n, int i)
{
    const int v = n->src[i];
    if (v < 0 || !s->g->values[v].is_const ||
        !tgi_dtype_is_float(s->g->values[v].cst.desc.dtype))
        return 0;
    if (r->cast == HALF && r->keeps & OTHERS)
        return 1; /* products: either side */
    const int pointwise = !(r->keeps & (IN | STATS));
    if (pointwise)
        return r->n_params && count_of(&s->g->values[v].cst.desc) > 1;
    return i >= 1 && i <= r->n_params;
}

/* Count parameters and buffers of a node; 1 when it has some that are trained. `seen`: values
 * that were counted. */
static int count_params(tgi_saved *s, const rule *r, const tgi_node *n, unsigned char *seen)
{
    int any = 0;
    for (int i = 0; i < n->n_src; i++) {
        const int v = n->src[i];
        if (v < 0 || !s->g->values[v].is_const)
            continue;
        const int64_t count = count_of(&s->g->values[v].cst.desc);
        const int buffer = i > r->n_params && i <= r->n_params + r->n_buffers;
        const int param = is_param(s, r, n, i);
        any |= param;
        if (seen[v])
            continue;
        seen[v] = param || buffer;
        if (param) {
            s->parameters += count;
            s->half_read += r->cast == HALF ? count : 0;
        } else if (buffer) {
            s->buffers += (uint64_t)count * 4;
        }
    }
    return any;
}

static uint64_t stats_count(const tgi_saved *s, const rule *r, const tgi_node *n)
{
    const tgi_desc *x = &s->shapes.desc[n->src[0]];
    const int64_t channels = x->rank > 1 ? x->dim[1] : 1;
    const int64_t last = x->rank ? x->dim[x->rank - 1] : 1;
    switch (r->stats) {
    case OF_BATCH:
    case OF_CHANNEL:
    case OF_GROUP: /* at most as many groups as channels */
        return (uint64_t)channels;
    case OF_ROW:
        return (uint64_t)(last > 0 ? count_of(x) / last : 0);
    case NO_STATS:
        break;
    }
    return 0;
}

/* Operand i of a product is kept when one of the others wants a gradient: a parameter or an
 * activation that does. */
static int other_wants(const tgi_saved *s, const rule *r, const tgi_node *n, int i)
{
    for (int k = 0; k < n->n_src; k++)
        if (k != i && n->src[k] >= 0 && (s->grad[n->src[k]] || is_param(s, r, n, k)))
            return 1;
    return 0;
}

/* Gradient of a quotient's denominator reads the denominator too. */
static int keeps_operand(const tgi_saved *s, const rule *r, const tgi_node *n, int i)
{
    const int v = n->src[i];
    if (v < 0 || is_fixed(s, v))
        return 0;
    if (r->keeps & IN && i == 0)
        return 1;
    if (!(r->keeps & OTHERS))
        return 0;
    return other_wants(s, r, n, i) || (i == 1 && s->grad[v] && strcmp(n->op->name, "Div") == 0);
}

static tg_status keep_node(tgi_saved *s, const rule *r, const tgi_node *n, int out_half,
                           tgi_err *err)
{
    const int auto_cast = r->cast == ANY ? -1 : out_half;
    for (int i = 0; i < n->n_src; i++)
        if (keeps_operand(s, r, n, i))
            TGI_TRY(keep(s, n->src[i], auto_cast < 0 ? s->half[n->src[i]] : auto_cast, err));
    const int y = n->dst[0];
    const uint64_t elements = (uint64_t)count_of(&s->shapes.desc[y]);
    if (r->keeps & OUT)
        TGI_TRY(keep(s, y, out_half, err));
    if (r->keeps & EXTRA)
        TGI_TRY(keep_own(s, elements * (out_half ? 2 : 4), 0, err));
    if (r->keeps & INDEX)
        TGI_TRY(keep_own(s, elements * 8, 0, err));
    if (r->keeps & MASK)
        TGI_TRY(keep_own(s, elements, 0, err));
    const uint64_t stat_bytes = 8 * stats_count(s, r, n);
    return keep_own(s, r->stats == OF_BATCH ? 0 : stat_bytes,
                    r->stats == OF_BATCH ? stat_bytes : 0, err);
}

/* Element size of the results. O2 holds everything in half. */
static int result_half(const tgi_saved *s, const rule *r, const tgi_node *n,
                       tg_train_precision precision)
{
    if (precision == TG_TRAIN_FP32 || precision == TG_TRAIN_O2)
        return precision == TG_TRAIN_O2;
    if (r->cast != ANY)
        return r->cast == HALF;
    int half = 0, full = 0;
    for (int i = 0; i < n->n_src; i++)
        if (n->src[i] >= 0 && !is_fixed(s, n->src[i]) &&
            tgi_dtype_is_float(s->shapes.desc[n->src[i]].dtype)) {
            half |= s->half[n->src[i]];
            full |= !s->half[n->src[i]];
        }
    return half && !full; /* the wider one wins */
}

static tg_status visit(tgi_saved *s, const tgi_node *n, tg_train_precision precision,
                       unsigned char *seen, tgi_err *err)
{
    const rule *r = rule_of(s, n);
    int wants = count_params(s, r, n, seen);
    for (int i = 0; i < n->n_src; i++)
        wants |= n->src[i] >= 0 && s->grad[n->src[i]];
    const int half = result_half(s, r, n, precision);
    for (int i = 0; i < n->n_dst; i++) {
        const int y = n->dst[i];
        if (y < 0)
            continue;
        s->half[y] = (unsigned char)half;
        s->grad[y] = (unsigned char)(wants && tgi_dtype_is_float(s->shapes.desc[y].dtype));
        s->alias[y] = r->keeps & VIEW && n->src[0] >= 0 && !is_fixed(s, n->src[0])
                          ? s->alias[n->src[0]]
                          : y;
    }
    if (wants)
        TGI_TRY(keep_node(s, r, n, half, err));
    return TG_OK;
}

/* ---- All of them ------------------------------------------------------------------------- */

static tg_status make_arrays(tgi_saved *s, tgi_err *err)
{
    const size_t n = (size_t)s->g->n_values + 1;
    s->alias = tgi_calloc(TGI_TAG_PLAN, n, sizeof *s->alias);
    s->half = tgi_calloc(TGI_TAG_PLAN, n, 1);
    s->grad = tgi_calloc(TGI_TAG_PLAN, n, 1);
    s->step_node = tgi_calloc(TGI_TAG_PLAN, (size_t)s->g->n_nodes + 1, sizeof *s->step_node);
    if (!s->alias || !s->half || !s->grad || !s->step_node)
        return tgi_fail(err, TG_E_NOMEM, "no memory for what is kept");
    for (int v = 0; v < s->g->n_values; v++)
        s->alias[v] = v;
    return TG_OK;
}

tg_status tgi_saved_find(const tgi_graph *g, const tgi_desc *in, tg_train_precision precision,
                         tgi_saved *out, tgi_err *err)
{
    *out = (tgi_saved){.g = g};
    TGI_TRY(make_arrays(out, err));
    TGI_TRY(tgi_graph_infer(g, in, &out->shapes, err));
    unsigned char *seen = tgi_calloc(TGI_TAG_PLAN, (size_t)g->n_values + 1, 1);
    tg_status st = seen ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory for what is kept");
    for (int i = 0; i < g->n_in && precision == TG_TRAIN_O2; i++)
        out->half[g->in[i].value] = 1;
    for (int i = 0; st == TG_OK && i < g->n_nodes; i++) {
        if (!g->nodes[i].op || tgi_node_is_known(&out->shapes, &g->nodes[i]))
            continue;
        st = visit(out, &g->nodes[i], precision, seen, err);
        out->step_node[out->n_steps++] = i;
    }
    tgi_free(seen);
    return st;
}

void tgi_saved_free(tgi_saved *s)
{
    tgi_shapes_free(&s->shapes);
    tgi_free(s->alias);
    tgi_free(s->half);
    tgi_free(s->grad);
    tgi_free(s->step_node);
    tgi_free(s->item);
    *s = (tgi_saved){0};
}

/* import_onnx.c - ONNX structs to our graph.
 *
 * Nodes become nodes one by one, attributes go into the op's struct by its tgi_attr rows. What
 * carries no arithmetic disappears here: Constant, Identity, Dropout, casts between float types
 * (everything computes in float32; half and double weights are converted), and If with a
 * constant condition, whose branch is read in place.
 *
 * Names are scoped: a branch sees the names around it, and its own vanish at its end. The
 * entries form a stack, newest first in each hash bucket, so leaving a scope is popping. */
#include "engine/graph/graph_priv.h"

#include "engine/base/cancel.h"
#include "engine/graph/card.h"
#include "kernels/half.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_BRANCHES 8

typedef struct entry {
    const char *name;
    int value;
    int next; /* in the bucket */
} entry;

typedef struct lower {
    tgi_graph *g;
    entry *e;
    int n, cap;
    int scope; /* first entry of the innermost scope */
    int depth;
    int bucket[4096];
} lower;

/* ---- Names ------------------------------------------------------------------------------- */

static int slot(const char *name)
{
    uint32_t h = 2166136261u; /* FNV-1a */
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 16777619u;
    return (int)((h ^ h >> 15) % 4096);
}

static int find(const lower *l, const char *name)
{
    for (int i = l->bucket[slot(name)]; i >= 0; i = l->e[i].next)
        if (strcmp(l->e[i].name, name) == 0)
            return i;
    return -1;
}

/* Let `name` mean `value` in the innermost scope. */
static tg_status bind(lower *l, const char *name, int value, tgi_err *err)
{
    const int old = find(l, name);
    if (old >= l->scope)
        return tgi_fail(err, TG_E_FORMAT, "the name \"%s\" is given twice", name);
    if (l->n == l->cap) {
        const int cap = l->cap ? l->cap * 2 : 256;
        entry *e = tgi_realloc_n(TGI_TAG_GRAPH, l->e, (size_t)cap, sizeof *e);
        if (!e)
            return tgi_fail(err, TG_E_NOMEM, "no memory for %d names", cap);
        l->e = e;
        l->cap = cap;
    }
    const int b = slot(name);
    l->e[l->n] = (entry){name, value, l->bucket[b]};
    l->bucket[b] = l->n++;
    return TG_OK;
}

static void leave_scope(lower *l, int n)
{
    while (l->n > n) {
        const entry *e = &l->e[--l->n];
        l->bucket[slot(e->name)] = e->next;
    }
}

static tg_status look_up(const lower *l, const char *name, int *value, tgi_err *err)
{
    const int i = find(l, name);
    if (i < 0)
        return tgi_fail(err, TG_E_FORMAT, "value \"%s\" is used before it is produced", name);
    *value = l->e[i].value;
    return TG_OK;
}

/* ---- Constants --------------------------------------------------------------------------- */

/* Half or double elements as float32. */
static tg_status to_float(lower *l, const tgi_onnx_tensor *t, const tgi_desc *d,
                          const char *name, int *id, tgi_err *err)
{
    const size_t size = tgi_dtype_size(t->desc.dtype), n = t->bytes / size;
    const unsigned char *p = t->data;
    float *f = tgi_graph_own(l->g, n * sizeof *f, err);
    if (!f)
        return TG_E_NOMEM;
    for (size_t i = 0; i < n; i++, p += size) {
        uint16_t h;
        double x;
        if (size == 2) {
            memcpy(&h, p, sizeof h);
            f[i] = tgi_half_to_float(h);
        } else {
            memcpy(&x, p, sizeof x);
            f[i] = (float)x;
        }
    }
    return tgi_graph_add_const(l->g, name, d, f, 1, id, err);
}

/* A constant from a tensor; its data stay in the mapped file when they are aligned there. */
static tg_status add_tensor(lower *l, const tgi_onnx_tensor *t, const char *name, int *id,
                            tgi_err *err)
{
    tgi_desc d = t->desc;
    const size_t size = tgi_dtype_size(d.dtype);
    if (tgi_dtype_is_float(d.dtype)) {
        d.dtype = TG_DTYPE_F32;
        if (t->desc.dtype != TG_DTYPE_F32)
            return to_float(l, t, &d, name, id, err);
    }
    const int aligned = (uintptr_t)t->data % size == 0;
    return tgi_graph_add_const(l->g, name, &d, t->data, aligned, id, err);
}

static const tgi_onnx_attr *attr_named(const tgi_onnx_node *n, const char *name)
{
    for (int i = 0; i < n->n_attr; i++)
        if (strcmp(n->attr[i].name, name) == 0)
            return &n->attr[i];
    return NULL;
}

static tg_status lower_constant(lower *l, const tgi_onnx_node *n, tgi_err *err)
{
    const tgi_onnx_attr *a = n->n_attr == 1 ? &n->attr[0] : NULL;
    int id = -1;
    tgi_desc d = {.rank = 0};
    if (n->n_out != 1 || !a)
        return tgi_fail(err, TG_E_FORMAT, "a Constant has one output and one attribute");
    if (a->kind == TGI_ONNX_TENSOR) {
        TGI_TRY(add_tensor(l, a->t, n->out[0], &id, err));
        return bind(l, n->out[0], id, err);
    }
    const void *data = a->kind == TGI_ONNX_FLOAT    ? (const void *)&a->f
                       : a->kind == TGI_ONNX_INT    ? (const void *)&a->i
                       : a->kind == TGI_ONNX_FLOATS ? (const void *)a->floats
                       : a->kind == TGI_ONNX_INTS   ? (const void *)a->ints
                                                    : NULL;
    if (!data)
        return tgi_fail(err, TG_E_UNSUPPORTED, "Constant \"%s\" of strings or sparse data",
                        n->name);
    d.dtype =
        a->kind == TGI_ONNX_FLOAT || a->kind == TGI_ONNX_FLOATS ? TG_DTYPE_F32 : TG_DTYPE_I64;
    if (a->kind == TGI_ONNX_FLOATS || a->kind == TGI_ONNX_INTS) {
        d.rank = 1;
        d.dim[0] = (int64_t)a->n;
    }
    TGI_TRY(tgi_graph_add_const(l->g, n->out[0], &d, data, 0, &id, err));
    return bind(l, n->out[0], id, err);
}

/* ---- Attributes -------------------------------------------------------------------------- */

static tg_status wrong_kind(const tgi_onnx_attr *a, tgi_err *err)
{
    return tgi_fail(err, TG_E_FORMAT, "attribute \"%s\" has a wrong type or value", a->name);
}

static tg_status fill_list(tgi_node *node, const tgi_attr *row, const tgi_onnx_attr *a,
                           tgi_err *err)
{
    void *at = (char *)node->attrs + row->offset;
    if (a->n > TGI_ATTR_MAX_INTS)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "attribute \"%s\" lists %zu numbers, at most %d "
                        "are done",
                        a->name, a->n, TGI_ATTR_MAX_INTS);
    if (row->type == TGI_ATTR_INTS) {
        tgi_ints *v = at;
        v->n = (int)a->n;
        for (size_t i = 0; i < a->n; i++)
            v->v[i] = a->ints[i];
    } else {
        tgi_floats *v = at;
        v->n = (int)a->n;
        for (size_t i = 0; i < a->n; i++)
            v->v[i] = a->floats[i];
    }
    return TG_OK;
}

static tg_status fill_attr(tgi_node *node, const tgi_onnx_attr *a, tgi_err *err)
{
    const tgi_attr *row = a->name[0] ? tgi_attr_row(node->op, a->name) : NULL;
    if (!row)
        return tgi_fail(err, TG_E_UNSUPPORTED, "attribute \"%s\" is not implemented", a->name);
    switch (row->type) {
    case TGI_ATTR_INT:
        return a->kind == TGI_ONNX_INT && tgi_attr_set_int(node, a->name, a->i)
                   ? TG_OK
                   : wrong_kind(a, err);
    case TGI_ATTR_FLOAT:
        return a->kind == TGI_ONNX_FLOAT && tgi_attr_set_float(node, a->name, a->f)
                   ? TG_OK
                   : wrong_kind(a, err);
    case TGI_ATTR_INTS:
        return a->kind == TGI_ONNX_INTS ? fill_list(node, row, a, err) : wrong_kind(a, err);
    case TGI_ATTR_FLOATS:
        return a->kind == TGI_ONNX_FLOATS ? fill_list(node, row, a, err) : wrong_kind(a, err);
    case TGI_ATTR_ENUM:
        if (a->kind != TGI_ONNX_STRING)
            return wrong_kind(a, err);
        return tgi_attr_set_enum(node, a->name, a->s)
                   ? TG_OK
                   : tgi_fail(err, TG_E_UNSUPPORTED, "%s = \"%s\" is not implemented", a->name,
                              a->s);
    case TGI_ATTR_STRING:
        return a->kind == TGI_ONNX_STRING && snprintf((char *)node->attrs + row->offset,
                                                      TGI_ATTR_TEXT, "%s", a->s) < TGI_ATTR_TEXT
                   ? TG_OK
                   : wrong_kind(a, err);
    case TGI_ATTR_IGNORED:
        return TG_OK;
    }
    return TG_OK;
}

/* ---- Nodes ------------------------------------------------------------------------------- */

static int given(const char *const *names, int n)
{
    while (n > 0 && !names[n - 1][0])
        n--; /* optional ones at the end */
    return n;
}

static int is_float(const tgi_graph *g, int v)
{
    const tgi_value *x = &g->values[v];
    return (x->is_const ? x->cst.desc.dtype : x->decl.dtype) == TG_DTYPE_F32;
}

/* New values for a node's outputs, bound to their names. decl.dtype remembers "float" for
 * casts. */
static tg_status make_outputs(lower *l, const tgi_onnx_node *n, int n_dst, int any_float,
                              int *dst, tgi_err *err)
{
    for (int i = 0; i < n_dst; i++) {
        TGI_TRY(tgi_graph_add_value(l->g, n->out[i], &dst[i], err));
        l->g->values[dst[i]].decl.dtype = any_float ? TG_DTYPE_F32 : TG_DTYPE_NONE;
        if (n->out[i][0])
            TGI_TRY(bind(l, n->out[i], dst[i], err));
    }
    return TG_OK;
}

static int is_float_type(const tgi_onnx_attr *to)
{
    return to && to->kind == TGI_ONNX_INT && (to->i == 1 || to->i == 10 || to->i == 11);
}

/* Does the node yield integers or bools from floats? */
static int yields_other(const tgi_onnx_node *n)
{
    static const char *const ops[] = {
        "Shape",  "Size",   "Equal", "Greater", "GreaterOrEqual", "Less",  "LessOrEqual",
        "And",    "Or",     "Xor",   "Not",     "IsInf",          "IsNaN", "ArgMax",
        "ArgMin", "NonZero"};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (strcmp(n->op_type, ops[i]) == 0)
            return 1;
    return strcmp(n->op_type, "Cast") == 0 && !is_float_type(attr_named(n, "to"));
}

static tg_status lower_plain(lower *l, const tgi_onnx_node *n, tgi_err *err)
{
    int src[TGI_OP_MAX_SRC], dst[TGI_OP_MAX_DST], any_float = 0;
    int n_src = given((const char *const *)n->in, n->n_in);
    const int n_dst = given((const char *const *)n->out, n->n_out);
    tgi_node *node;
    const tgi_op *op = tgi_op_find(n->op_type);
    if (!op || op->internal)
        return tgi_fail(err, TG_E_UNSUPPORTED, "the operator is not implemented in this build");
    if (n_src > TGI_OP_MAX_SRC || n_dst > TGI_OP_MAX_DST || n_dst < 1)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "%d inputs and %d outputs; at most %d and %d are "
                        "done",
                        n_src, n_dst, TGI_OP_MAX_SRC, TGI_OP_MAX_DST);
    for (int i = 0; i < n_src; i++) {
        src[i] = -1;
        if (n->in[i][0])
            TGI_TRY(look_up(l, n->in[i], &src[i], err));
        any_float |= src[i] >= 0 && is_float(l->g, src[i]);
    }
    any_float = any_float && !yields_other(n);
    const tgi_onnx_attr *fill =
        strcmp(n->op_type, "ConstantOfShape") == 0 ? attr_named(n, "value") : NULL;
    if (fill && n_src == 1 &&
        fill->kind == TGI_ONNX_TENSOR) { /* a tensor fits no attribute row */
        TGI_TRY(add_tensor(l, fill->t, n->out[0], &src[n_src], err));
        any_float |= is_float(l->g, src[n_src++]);
    }
    TGI_TRY(make_outputs(l, n, n_dst, any_float, dst, err));
    /* A node without a name is called after its first output, for messages. */
    TGI_TRY(tgi_graph_add_node(l->g, n->op_type, n->name[0] ? n->name : n->out[0], n_src, src,
                               n_dst, dst, &node, err));
    for (int i = 0; i < n->n_attr; i++)
        if (&n->attr[i] != fill)
            TGI_TRY(fill_attr(node, &n->attr[i], err));
    return TG_OK;
}

/* Output 0 is input 0. */
static tg_status lower_alias(lower *l, const tgi_onnx_node *n, tgi_err *err)
{
    int v = -1;
    if (n->n_in < 1 || n->n_out < 1)
        return tgi_fail(err, TG_E_FORMAT, "it has no input or no output");
    TGI_TRY(look_up(l, n->in[0], &v, err));
    return bind(l, n->out[0], v, err);
}

/* Of a single part nothing is joined. */
static tg_status lower_concat(lower *l, const tgi_onnx_node *n, tgi_err *err)
{
    return n->n_in == 1 ? lower_alias(l, n, err) : lower_plain(l, n, err);
}

static tg_status lower_cast(lower *l, const tgi_onnx_node *n, tgi_err *err)
{
    const int i = n->n_in == 1 ? find(l, n->in[0]) : -1;
    const int to_float = is_float_type(attr_named(n, "to"));
    if (i >= 0 && to_float && is_float(l->g, l->e[i].value))
        return lower_alias(l, n, err);
    TGI_TRY(lower_plain(l, n, err));
    tgi_node *node = &l->g->nodes[l->g->n_nodes - 1];
    if (!to_float)
        return TG_OK;
    l->g->values[node->dst[0]].decl.dtype = TG_DTYPE_F32;
    return tgi_attr_set_int(node, "to", 1)
               ? TG_OK
               : tgi_fail(err, TG_E_INTERNAL, "Cast lacks its attribute");
}

/* In its inference form, whatever the opset calls it; what it is of, the shapes will say. */
static tg_status lower_norm(lower *l, const tgi_onnx_node *n, tgi_err *err)
{
    int src[5], out;
    const tgi_onnx_attr *a = attr_named(n, "epsilon"), *train = attr_named(n, "training_mode");
    tgi_node *node;
    if (n->n_in != 5 || given((const char *const *)n->out, n->n_out) != 1 ||
        (train && train->i))
        return tgi_fail(err, TG_E_UNSUPPORTED, "BatchNormalization in its training form");
    for (int i = 0; i < 5; i++) {
        TGI_TRY(look_up(l, n->in[i], &src[i], err));
        const tgi_value *v = &l->g->values[src[i]];
        if (i > 0 &&
            (!v->is_const || v->cst.desc.dtype != TG_DTYPE_F32 || v->cst.desc.rank != 1 ||
             v->cst.desc.dim[0] != l->g->values[src[1]].cst.desc.dim[0]))
            return tgi_fail(err, TG_E_UNSUPPORTED,
                            "its statistics are not constant vectors of "
                            "one length");
    }
    TGI_TRY(make_outputs(l, n, 1, 1, &out, err));
    TGI_TRY(
        tgi_graph_add_node(l->g, "BatchNormalization", n->name, 5, src, 1, &out, &node, err));
    const float eps = a && a->kind == TGI_ONNX_FLOAT ? a->f : 1e-5f;
    return tgi_attr_set_float(node, "epsilon", eps) && tgi_attr_set_int(node, "is_test", 1)
               ? TG_OK
               : tgi_fail(err, TG_E_INTERNAL, "BatchNormalization lacks its attributes");
}

static tg_status lower_nodes(lower *l, const tgi_onnx_graph *og, tgi_err *err);

static tg_status bind_inits(lower *l, const tgi_onnx_graph *og, tgi_err *err)
{
    for (int i = 0; i < og->n_init; i++) {
        int id = -1;
        TGI_TRY(add_tensor(l, &og->init[i], og->init[i].name, &id, err));
        TGI_TRY(bind(l, og->init[i].name, id, err));
    }
    return TG_OK;
}

/* If with a constant condition: the branch, read in its own scope. */
static tg_status lower_if(lower *l, const tgi_onnx_node *n, tgi_err *err)
{
    int cond = -1, result[TGI_OP_MAX_DST];
    if (n->n_in != 1 || n->n_out > TGI_OP_MAX_DST)
        return tgi_fail(err, TG_E_FORMAT, "If takes one condition");
    TGI_TRY(look_up(l, n->in[0], &cond, err));
    const tgi_value *v = &l->g->values[cond];
    int64_t count;
    if (!v->is_const || !tgi_desc_count(&v->cst.desc, &count) || count != 1)
        return tgi_fail(err, TG_E_UNSUPPORTED, "If with a condition that is not a constant");
    const tgi_onnx_attr *a =
        attr_named(n, tgi_const_get(&v->cst, 0) != 0 ? "then_branch" : "else_branch");
    if (!a || a->kind != TGI_ONNX_GRAPH || a->g->n_out != n->n_out)
        return tgi_fail(err, TG_E_FORMAT, "If without the branch that its condition chooses");
    if (l->depth >= MAX_BRANCHES)
        return tgi_fail(err, TG_E_UNSUPPORTED, "branches nest too deep");
    const int outer = l->scope, mark = l->n;
    l->scope = mark;
    l->depth++;
    TGI_TRY(bind_inits(l, a->g, err));
    TGI_TRY(lower_nodes(l, a->g, err));
    for (int i = 0; i < n->n_out; i++)
        TGI_TRY(look_up(l, a->g->out[i].name, &result[i], err));
    leave_scope(l, mark);
    l->scope = outer;
    l->depth--;
    for (int i = 0; i < n->n_out; i++)
        TGI_TRY(bind(l, n->out[i], result[i], err));
    return TG_OK;
}

static tg_status lower_node(lower *l, const tgi_onnx_node *n, tgi_err *err)
{
    static const struct {
        const char *op;
        tg_status (*fn)(lower *, const tgi_onnx_node *, tgi_err *);
    } special[] = {{"Constant", lower_constant},      {"Identity", lower_alias},
                   {"Dropout", lower_alias},          {"Cast", lower_cast},
                   {"Concat", lower_concat},          {"If", lower_if},
                   {"BatchNormalization", lower_norm}};
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++)
        if (strcmp(n->op_type, special[i].op) == 0)
            return special[i].fn(l, n, err);
    return lower_plain(l, n, err);
}

static tg_status lower_nodes(lower *l, const tgi_onnx_graph *og, tgi_err *err)
{
    for (int i = 0; i < og->n_node; i++) {
        const tgi_onnx_node *n = &og->node[i];
        tgi_err local = {0};
        TGI_TRY(tgi_check_cancel(err));
        const tg_status st = lower_node(l, n, &local);
        if (st != TG_OK)
            return tgi_fail(err, st, "%s \"%s\": %s", n->op_type,
                            n->name[0] ? n->name
                            : n->n_out ? n->out[0]
                                       : "",
                            local.text);
    }
    return TG_OK;
}

/* Graph inputs that are not initializers (IR 3 lists those too). */
static tg_status lower_inputs(lower *l, const tgi_onnx_graph *og, tgi_err *err)
{
    for (int i = 0; i < og->n_in; i++) {
        const tgi_onnx_port *p = &og->in[i];
        int id = -1;
        if (find(l, p->name) >= 0)
            continue;
        if (p->dtype == TG_DTYPE_NONE)
            return tgi_fail(err, TG_E_UNSUPPORTED, "input \"%s\" is not a tensor of numbers",
                            p->name);
        TGI_TRY(tgi_graph_add_value(l->g, p->name, &id, err));
        TGI_TRY(tgi_graph_add_input(l->g, id, p->rank, p->dim, err));
        l->g->in[l->g->n_in - 1].file_dtype = p->dtype;
        TGI_TRY(bind(l, p->name, id, err));
    }
    return TG_OK;
}

static tg_status lower_outputs(lower *l, const tgi_onnx_graph *og, tgi_err *err)
{
    if (og->n_out == 0)
        return tgi_fail(err, TG_E_FORMAT, "the model has no output");
    for (int i = 0; i < og->n_out; i++) {
        const tgi_onnx_port *p = &og->out[i];
        int id = -1;
        TGI_TRY(look_up(l, p->name, &id, err));
        TGI_TRY(tgi_graph_add_output(l->g, id, err));
        tgi_port *out = &l->g->out[l->g->n_out - 1];
        out->file_dtype = p->dtype;
        if (strcmp(out->name, p->name) != 0) { /* an alias: the file's name is the user's */
            tgi_free(out->name);
            if (!(out->name = tgi_strdup(TGI_TAG_GRAPH, p->name)))
                return tgi_fail(err, TG_E_NOMEM, "no memory for a name");
        }
        out->file_rank = p->rank < 0 ? 0 : p->rank;
        for (int k = 0; k < out->file_rank; k++)
            out->file_dim[k] = p->dim[k];
    }
    return TG_OK;
}

static tg_status lower_graph(lower *l, const tgi_onnx_graph *og, tgi_err *err)
{
    TGI_TRY(bind_inits(l, og, err));
    TGI_TRY(lower_inputs(l, og, err));
    TGI_TRY(lower_nodes(l, og, err));
    return lower_outputs(l, og, err);
}

tg_status tgi_graph_lower_onnx(tgi_onnx_model **model, tgi_graph **out, tgi_err *err)
{
    tgi_graph *g = NULL;
    tgi_err local = {0};
    TGI_TRY(tgi_graph_new(&g, err));
    lower *l = tgi_calloc(TGI_TAG_GRAPH, 1, sizeof *l);
    tg_status st = TG_E_NOMEM;
    if (l) {
        l->g = g;
        g->opset = (int)(*model)->opset;
        memset(l->bucket, -1, sizeof l->bucket);
        st = lower_graph(l, &(*model)->graph, &local);
        tgi_free(l->e);
    }
    tgi_free(l);
    if (st != TG_OK) {
        tgi_graph_free(&g);
        return tgi_fail(err, st, "%s", local.text[0] ? local.text : tgi_status_sentence(st));
    }
    tgi_priv(g)->model = *model;
    *model = NULL;
    *out = g;
    return TG_OK;
}

tg_status tgi_graph_import_onnx(const char *path, tgi_graph **out, tgi_err *err)
{
    tgi_onnx_model *m = NULL;
    TGI_TRY(tgi_onnx_open(path, &m, err));
    const tg_status st = tgi_graph_lower_onnx(&m, out, err);
    if (st != TG_OK)
        tgi_err_prefix(err, "%s", path);
    tgi_onnx_close(&m);
    return st;
}

tg_status tgi_graph_load_onnx(const char *path, unsigned flags, tgi_graph **out, tgi_err *err)
{
    return tgi_graph_load_tied(path, flags, NULL, 0, out, err);
}

static tg_status finish(const tgi_card *card, unsigned flags, const tgi_tie *tie, int n,
                        tgi_graph *g, tgi_err *err)
{
    const unsigned known = flags & ~(TGI_GRAPH_BARE | TGI_GRAPH_PLAIN);
    if (card)
        TGI_TRY(tgi_card_apply(card, (flags & TGI_GRAPH_BARE) != 0, g, err));
    TGI_TRY(tgi_graph_tie(g, tie, n, err));
    TGI_TRY(tgi_graph_finish(g, known, err));
    return card ? tgi_card_check(card, g, err) : TG_OK;
}

/* The network of a package, and what it says where nobody said more. */
static tg_status import_package(const char *path, tgi_card **says, tgi_graph **out,
                                tgi_err *err)
{
    tgi_package *p = NULL;
    tgi_onnx_model *m = NULL;
    TGI_TRY(tgi_package_open(path, &p, err));
    tg_status st = tgi_card_of_package(p, says, err);
    if (st == TG_OK)
        st = tgi_package_onnx(p, (*says)->source, (*says)->sha256, (*says)->beside, &m, err);
    tgi_package_close(&p);
    if (st == TG_OK)
        st = tgi_graph_lower_onnx(&m, out, err);
    tgi_onnx_close(&m);
    return st;
}

tg_status tgi_graph_load_card(const char *path, const tgi_card *card, unsigned flags,
                              const tgi_tie *tie, int n, tgi_graph **out, tgi_err *err)
{
    tgi_card *own = NULL;
    tgi_graph *g = NULL;
    tgi_err e = {0};
    const int packed = tgi_package_named(path);
    tg_status st =
        packed ? import_package(path, &own, &g, &e) : tgi_graph_import_onnx(path, &g, &e);
    const int named = st != TG_OK && !packed; /* the detail has the path already */
    if (st == TG_OK)
        st = finish(card || flags & TGI_GRAPH_PLAIN ? card : own, flags, tie, n, g, &e);
    tgi_card_free(&own);
    if (st == TG_OK) {
        *out = g;
        return TG_OK;
    }
    tgi_graph_free(&g);
    return named || strncmp(e.text, path, strlen(path)) == 0
               ? tgi_fail(err, st, "%s", e.text)
               : tgi_fail(err, st, "%s: %s", path, e.text);
}

tg_status tgi_graph_load_tied(const char *path, unsigned flags, const tgi_tie *tie, int n,
                              tgi_graph **out, tgi_err *err)
{
    return tgi_graph_load_card(path, NULL, flags, tie, n, out, err);
}

/* line_ops.c - the table of line_ops.h: lists of spatial extents begin with one more, axis 2 is
 * axis 3, lists over all axes have one more entry. Lists that are computed of shapes are put
 * together by nodes; where they are constants, folding makes constants of those. */
#include "engine/graph/line_ops.h"

#include <string.h>

/* ---- Attributes -------------------------------------------------------------------------- */

static tgi_ints *ints_of(tgi_node *n, const char *name)
{
    const tgi_attr *row = tgi_attr_row(n->op, name);
    return row && row->type == TGI_ATTR_INTS ? (tgi_ints *)((char *)n->attrs + row->offset)
                                             : NULL;
}

/* The axis of a row that axis `a` of a line is; counted from the end where `a` is. */
static int64_t row_axis(int64_t a)
{
    return a >= TGI_ROW_AXIS ? a + 1 : a < -1 ? a - 1 : a;
}

static int is_line_axis(int64_t a)
{
    return a >= -TGI_LINE_RANK && a < TGI_LINE_RANK;
}

/* ---- Windows ----------------------------------------------------------------------------- */

/* What a list of windows says of the row axis. */
static const struct {
    const char *name;
    int64_t row;
} window_lists[] = {{"kernel_shape", 1}, {"strides", 1},        {"dilations", 1},
                    {"pads", 0},         {"output_padding", 0}, {"output_shape", 1}};
#define N_WINDOW_LISTS ((int)(sizeof window_lists / sizeof window_lists[0]))

static tg_status change_window(tgi_graph *g, const tgi_shapes *s, int node, tgi_on_rows *r,
                               int *yes, tgi_err *err)
{
    tgi_node *n = &g->nodes[node];
    (void)s;
    (void)r;
    (void)err;
    for (int i = 0; i < N_WINDOW_LISTS; i++) {
        const tgi_ints *v = tgi_attr_ints(n, window_lists[i].name);
        if (v && v->n != (strcmp(window_lists[i].name, "pads") == 0 ? 2 : 1))
            *yes = 0;
    }
    for (int i = 0; i < N_WINDOW_LISTS && *yes; i++) {
        tgi_ints *v = ints_of(n, window_lists[i].name);
        const int64_t row = window_lists[i].row;
        if (v && v->n == 1)
            *v = (tgi_ints){2, {row, v->v[0]}};
        else if (v && v->n == 2)
            *v = (tgi_ints){4, {row, v->v[0], row, v->v[1]}};
    }
    return TG_OK;
}

/* ---- One axis ---------------------------------------------------------------------------- */

/* The attribute `axis`; what is no axis of a line is a default. */
static tg_status change_axis(tgi_graph *g, const tgi_shapes *s, int node, tgi_on_rows *r,
                             int *yes, tgi_err *err)
{
    tgi_node *n = &g->nodes[node];
    const int64_t a = tgi_attr_int(n, "axis", -1);
    (void)s;
    (void)r;
    (void)yes;
    (void)err;
    if (is_line_axis(a))
        tgi_attr_set_int(n, "axis", row_axis(a));
    return TG_OK;
}

/* Images are joined and cut along channels only; a line that is joined at its ends stays one.
 */
static tg_status change_channels(tgi_graph *g, const tgi_shapes *s, int node, tgi_on_rows *r,
                                 int *yes, tgi_err *err)
{
    const int64_t a = tgi_attr_int(&g->nodes[node], "axis", 0);
    *yes = a == 1 || a == 1 - TGI_LINE_RANK;
    return *yes ? change_axis(g, s, node, r, yes, err) : TG_OK;
}

/* ArgMax over channels; without the axis where the model leaves it out. */
static tg_status change_arg(tgi_graph *g, const tgi_shapes *s, int node, tgi_on_rows *r,
                            int *yes, tgi_err *err)
{
    tgi_node *n = &g->nodes[node];
    TGI_TRY(change_channels(g, s, node, r, yes, err));
    if (*yes && !tgi_attr_int(n, "keepdims", 1)) {
        tgi_attr_set_int(n, "keepdims", 1);
        r->drop = (tgi_ints){2, {1, TGI_ROW_AXIS}};
    }
    return TG_OK;
}

/* ---- Lists ------------------------------------------------------------------------------- */

static tg_status add_longs(tgi_graph *g, const char *name, const tgi_ints *v, int *id,
                           tgi_err *err)
{
    const tgi_desc d = {.dtype = TG_DTYPE_I64, .rank = 1, .dim = {v->n}};
    return tgi_graph_add_const(g, name, &d, v->v, 0, id, err);
}

/* The constant list of integers `v`, or n = -1. */
static tgi_ints const_list(const tgi_graph *g, int v)
{
    tgi_ints list = {.n = -1};
    int64_t count;
    if (v < 0 || !g->values[v].is_const || tgi_dtype_is_float(g->values[v].cst.desc.dtype) ||
        !tgi_desc_count(&g->values[v].cst.desc, &count) || count > TGI_MAX_RANK)
        return list;
    list.n = (int)count;
    for (int i = 0; i < list.n; i++)
        list.v[i] = (int64_t)tgi_const_get(&g->values[v].cst, i);
    return list;
}

/* All of them axes of a line? Then of a row instead. */
static int change_axes(tgi_ints *v)
{
    for (int i = 0; i < v->n; i++)
        if (!is_line_axis(v->v[i]))
            return 0;
    for (int i = 0; i < v->n; i++)
        v->v[i] = row_axis(v->v[i]);
    return 1;
}

/* A constant of one element of this type. */
static tg_status add_one(tgi_graph *g, tg_dtype type, int x, int *id, tgi_err *err)
{
    const float f = (float)x;
    const int32_t i = x;
    const int64_t l = x;
    const tgi_desc d = {.dtype = type, .rank = 1, .dim = {1}};
    const void *data = type == TG_DTYPE_F32   ? (const void *)&f
                       : type == TG_DTYPE_I32 ? (const void *)&i
                       : type == TG_DTYPE_I64 ? (const void *)&l
                                              : NULL;
    if (!data)
        return tgi_fail(err, TG_E_UNSUPPORTED, "a list of %s", tgi_dtype_name(type));
    return tgi_graph_add_const(g, "of the row", &d, data, 0, id, err);
}

/* Operand k of the node, a list of one (or, `twice`, two) entries for each axis of a line: with
 * `fill` for the row axis. *yes = 0: it is no such list. */
static tg_status relist(tgi_graph *g, const tgi_shapes *s, int node, int k, int twice, int fill,
                        tgi_on_rows *r, int *yes, tgi_err *err)
{
    const tgi_node *n = &g->nodes[node];
    const int list = n->src[k];
    const char *const name = n->name;
    const tgi_desc *d = &s->desc[list];
    int two[2] = {list, -1}, all, out;
    tgi_ints at = {4, {0, 1, 3, 2}};
    if (twice)
        at = (tgi_ints){8, {0, 1, 6, 2, 3, 4, 6, 5}};
    if (d->rank != 1 || d->dim[0] != (twice ? 6 : 3)) {
        *yes = 0;
        return TG_OK;
    }
    TGI_TRY(add_one(g, d->dtype, fill, &two[1], err));
    TGI_TRY(tgi_graph_add_value(g, name, &all, err));
    tgi_node *made;
    TGI_TRY(tgi_graph_add_node(g, "Concat", name, 2, two, 1, &all, &made, err));
    tgi_attr_set_int(made, "axis", 0);
    two[0] = all;
    TGI_TRY(add_longs(g, "axes", &at, &two[1], err));
    TGI_TRY(tgi_graph_add_value(g, name, &out, err));
    TGI_TRY(tgi_graph_add_node(g, "Gather", name, 2, two, 1, &out, &made, err));
    r->src[k] = out;
    return TG_OK;
}

/* Operand k is a constant list of axes. */
static tg_status reaxes(tgi_graph *g, int node, int k, tgi_on_rows *r, int *yes, tgi_err *err)
{
    tgi_ints axes = const_list(g, g->nodes[node].src[k]);
    if (axes.n < 0 || !change_axes(&axes)) {
        *yes = 0;
        return TG_OK;
    }
    return add_longs(g, "axes", &axes, &r->src[k], err);
}

static int given(const tgi_node *n, int k)
{
    return k < n->n_src && n->src[k] >= 0;
}

static int64_t list_length(const tgi_shapes *s, const tgi_node *n, int k)
{
    return given(n, k) && s->desc[n->src[k]].rank == 1 ? s->desc[n->src[k]].dim[0] : 0;
}

/* ---- Pad, Slice, Tile -------------------------------------------------------------------- */

static tg_status change_pad(tgi_graph *g, const tgi_shapes *s, int node, tgi_on_rows *r,
                            int *yes, tgi_err *err)
{
    tgi_node *n = &g->nodes[node];
    if (given(n, 3))
        return reaxes(g, node, 3, r, yes, err);
    if (n->opset >= 11)
        return relist(g, s, node, 1, 1, 0, r, yes, err);
    tgi_ints *v = ints_of(n, "pads");
    *yes = v && v->n == 6;
    if (*yes)
        *v = (tgi_ints){8, {v->v[0], v->v[1], 0, v->v[2], v->v[3], v->v[4], 0, v->v[5]}};
    return TG_OK;
}

/* Without axes the lists are of the first ones. */
static tg_status change_slice(tgi_graph *g, const tgi_shapes *s, int node, tgi_on_rows *r,
                              int *yes, tgi_err *err)
{
    tgi_node *n = &g->nodes[node];
    tgi_ints first = {0, {0, 1, 3}};
    if (n->opset < 10) {
        tgi_ints *v = ints_of(n, "axes");
        const tgi_ints *starts = tgi_attr_ints(n, "starts");
        first.n = starts ? starts->n : -1;
        *yes = v && first.n >= 1 && first.n <= TGI_LINE_RANK && (v->n < 0 || change_axes(v));
        if (*yes && v->n < 0)
            *v = first;
        return TG_OK;
    }
    if (given(n, 3))
        return reaxes(g, node, 3, r, yes, err);
    first.n = (int)list_length(s, n, 1);
    *yes = first.n >= 1 && first.n <= TGI_LINE_RANK;
    if (!*yes)
        return TG_OK;
    r->n_src = r->n_src < 4 ? 4 : r->n_src;
    return add_longs(g, "axes", &first, &r->src[3], err);
}

static tg_status change_tile(tgi_graph *g, const tgi_shapes *s, int node, tgi_on_rows *r,
                             int *yes, tgi_err *err)
{
    *yes = g->nodes[node].opset >= 6;
    return *yes ? relist(g, s, node, 1, 0, 1, r, yes, err) : TG_OK;
}

/* ---- Resize ------------------------------------------------------------------------------ */

/* Where the lists are inputs: roi, scales and sizes behind the data, before opset 11 scales. */
static tg_status change_resize_lists(tgi_graph *g, const tgi_shapes *s, int node,
                                     tgi_on_rows *r, int *yes, tgi_err *err)
{
    const tgi_node n = g->nodes[node]; /* nodes move, their numbers stay */
    const int scales = n.opset >= 11 ? 2 : 1;
    if (scales == 2 && list_length(s, &n, 1) > 0)
        TGI_TRY(relist(g, s, node, 1, 1, 0, r, yes, err));
    for (int k = scales; k <= 3 && *yes; k++)
        if (list_length(s, &n, k) > 0)
            TGI_TRY(relist(g, s, node, k, 0, 1, r, yes, err));
    return TG_OK;
}

static tg_status change_resize(tgi_graph *g, const tgi_shapes *s, int node, tgi_on_rows *r,
                               int *yes, tgi_err *err)
{
    tgi_node *n = &g->nodes[node];
    const tgi_attr *row = tgi_attr_row(n->op, "scales");
    tgi_floats *f = row ? (tgi_floats *)((char *)n->attrs + row->offset) : NULL;
    tgi_ints *axes = ints_of(n, "axes");
    if (axes && axes->n >= 0)
        *yes = change_axes(axes);
    else if (f && f->n >= 0 && (*yes = f->n == TGI_LINE_RANK))
        *f = (tgi_floats){4, {f->v[0], f->v[1], 1, f->v[2]}};
    else if (!f || f->n < 0)
        return change_resize_lists(g, s, node, r, yes, err);
    return TG_OK;
}

/* ---- Reductions -------------------------------------------------------------------------- */

/* Axes of the row that are folded where those of the line are: with L its row, so that it reads
 * as a reduction over pixels. */
static void fold_rows(tgi_ints *axes)
{
    const int n = axes->n;
    for (int i = 0; i < n; i++)
        if (axes->v[i] == TGI_ROW_AXIS + 1 || axes->v[i] == -1)
            axes->v[axes->n++] = TGI_ROW_AXIS;
}

/* The result lacks what is folded, and the row. */
static void drop_folded(const tgi_ints *axes, tgi_on_rows *r)
{
    unsigned bits = 1u << TGI_ROW_AXIS;
    for (int i = 0; i < axes->n; i++)
        bits |= 1u << (axes->v[i] < 0 ? axes->v[i] + TGI_LINE_RANK + 1 : axes->v[i]);
    if (axes->n <= 0)
        bits = 0xf;
    r->drop.n = 0;
    for (int k = 0; k <= TGI_LINE_RANK; k++)
        if (bits & 1u << k)
            r->drop.v[r->drop.n++] = k;
}

static tg_status change_reduce(tgi_graph *g, const tgi_shapes *s, int node, tgi_on_rows *r,
                               int *yes, tgi_err *err)
{
    tgi_node *n = &g->nodes[node];
    const int listed = given(n, 1);
    tgi_ints *own = ints_of(n, "axes");
    tgi_ints axes = listed ? const_list(g, n->src[1]) : *own;
    (void)s;
    *yes = !(listed && axes.n < 0) && axes.n <= TGI_LINE_RANK && change_axes(&axes) &&
           !(axes.n <= 0 && tgi_attr_int(n, "noop_with_empty_axes", 0));
    if (!*yes)
        return TG_OK;
    fold_rows(&axes);
    if (!tgi_attr_int(n, "keepdims", 1)) {
        tgi_attr_set_int(n, "keepdims", 1);
        drop_folded(&axes, r);
    }
    if (!listed)
        *own = axes;
    return listed ? add_longs(g, "axes", &axes, &r->src[1], err) : TG_OK;
}

/* ---- Several operands -------------------------------------------------------------------- */

/* Before opset 7 an attribute says where the second operand lies; only numbers are the same
 * there. */
static tg_status change_broadcast(tgi_graph *g, const tgi_shapes *s, int node, tgi_on_rows *r,
                                  int *yes, tgi_err *err)
{
    const tgi_node *n = &g->nodes[node];
    (void)r;
    (void)err;
    for (int k = 0; k < n->n_src && n->opset < 7; k++) {
        int64_t count = 0;
        const int rank = n->src[k] < 0 ? 0 : s->desc[n->src[k]].rank;
        if (n->src[k] >= 0 && rank != TGI_LINE_RANK &&
            (!tgi_desc_count(&s->desc[n->src[k]], &count) || count != 1))
            *yes = 0;
    }
    return TG_OK;
}

/* ---- The table --------------------------------------------------------------------------- */

static const tgi_line_op table[] = {
    {"Conv", 1, change_window},
    {"ConvTranspose", 1, change_window},
    {"MaxPool", 1, change_window},
    {"AveragePool", 1, change_window},
    {"LpPool", 1, change_window},
    {"GlobalAveragePool", 1, NULL},
    {"GlobalMaxPool", 1, NULL},
    {"Resize", 1, change_resize},
    {"Upsample", 1, change_resize},
    {"InstanceNormalization", 0, NULL},
    {"GroupNormalization", 0, NULL},
    {"Softmax", 0, change_axis},
    {"LogSoftmax", 0, change_axis},
    {"Hardmax", 0, change_axis},
    {"LpNormalization", 0, change_axis},
    {"ArgMax", 0, change_arg},
    {"ArgMin", 0, change_arg},
    {"Concat", 0, change_channels},
    {"Split", 0, change_channels},
    {"Pad", 0, change_pad},
    {"Slice", 0, change_slice},
    {"Tile", 0, change_tile},
    {"CastLike", 0, NULL},
};

static const char *const broadcasting[] = {
    "Add",  "And",         "BitShift", "Div",  "Equal", "Greater", "GreaterOrEqual",
    "Less", "LessOrEqual", "Max",      "Mean", "Min",   "Mod",     "Mul",
    "Or",   "PRelu",       "Pow",      "Sub",  "Sum",   "Where",   "Xor"};

static const tgi_line_op broadcast = {"", 0, change_broadcast}, same = {"", 0, NULL},
                         reduction = {"", 0, change_reduce};

const tgi_line_op *tgi_line_op_of(const tgi_node *n)
{
    for (size_t i = 0; n->op && i < sizeof table / sizeof table[0]; i++)
        if (tgi_node_is(n, table[i].op))
            return &table[i];
    for (size_t i = 0; n->op && i < sizeof broadcasting / sizeof broadcasting[0]; i++)
        if (tgi_node_is(n, broadcasting[i]))
            return &broadcast;
    if (n->op && strncmp(n->op->name, "Reduce", 6) == 0)
        return &reduction;
    if (!n->op)
        return NULL;
    /* Each element by itself: there is no axis that it could speak of. */
    const int by_itself = n->n_src == 1 && n->op->op_class == TGI_OP_LOCAL &&
                          !n->op->classify && !n->op->rule && !n->op->slide;
    return n->op->as_step || by_itself ? &same : NULL;
}

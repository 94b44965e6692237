/* draft.c - see draft.h. */
#include "engine/graph/draft.h"

#include "engine/graph/graph_priv.h"

#include <stdio.h>
#include <string.h>

#define OPSET 19

void tgi_draft_begin(tgi_draft *d)
{
    *d = (tgi_draft){0};
    d->st = tgi_graph_new(&d->graph, &d->err);
    if (d->st == TG_OK)
        d->graph->opset = OPSET;
}

tg_status tgi_draft_finish(tgi_draft *d, tgi_graph **out, tgi_err *err)
{
    if (d->st == TG_OK)
        d->st = tgi_graph_finish(d->graph, 0, &d->err);
    if (d->st == TG_OK)
        *out = d->graph;
    else
        tgi_graph_free(&d->graph);
    d->graph = NULL;
    return d->st == TG_OK ? TG_OK : tgi_fail(err, d->st, "%s", d->err.text);
}

/* ---- Values ------------------------------------------------------------------------------ */

static int add_value(tgi_draft *d, const char *name)
{
    int v = -1;
    if (d->st == TG_OK)
        d->st = tgi_graph_add_value(d->graph, name, &v, &d->err);
    return v;
}

int tgi_draft_input(tgi_draft *d, const char *name, int64_t c, int64_t h, int64_t w)
{
    const int64_t dim[4] = {1, c, h, w};
    const int v = add_value(d, name);
    if (d->st == TG_OK)
        d->st = tgi_graph_add_input(d->graph, v, 4, dim, &d->err);
    return v;
}

void tgi_draft_output(tgi_draft *d, int value)
{
    if (d->st == TG_OK)
        d->st = tgi_graph_add_output(d->graph, value, &d->err);
}

static int add_const(tgi_draft *d, const char *name, const tgi_desc *desc, const void *data,
                     int borrow)
{
    int v = -1;
    if (d->st == TG_OK)
        d->st = tgi_graph_add_const(d->graph, name, desc, data, borrow, &v, &d->err);
    return v;
}

int tgi_draft_floats(tgi_draft *d, const char *name, int rank, const int64_t *dim,
                     const float *data, float **room)
{
    tgi_desc desc = {TG_DTYPE_F32, rank, {0}};
    size_t n = sizeof(float);
    for (int i = 0; i < rank; i++) {
        desc.dim[i] = dim[i];
        n *= (size_t)dim[i];
    }
    if (data || d->st != TG_OK)
        return add_const(d, name, &desc, data, 1);
    float *own = tgi_graph_own(d->graph, n, &d->err);
    d->st = own ? TG_OK : TG_E_NOMEM;
    *room = own;
    return add_const(d, name, &desc, own, 1);
}

int tgi_draft_list(tgi_draft *d, int n, const int64_t *v)
{
    const tgi_desc desc = {TG_DTYPE_I64, 1, {n}};
    return add_const(d, "list", &desc, v, 0);
}

/* ---- Nodes ------------------------------------------------------------------------------- */

int tgi_draft_node(tgi_draft *d, const char *op, const char *name, int n, const int *src)
{
    const int v = add_value(d, name);
    if (d->st == TG_OK)
        d->st = tgi_graph_add_node(d->graph, op, name, n, src, 1, &v, NULL, &d->err);
    return v;
}

static tgi_node *last_node(tgi_draft *d)
{
    return d->st == TG_OK && d->graph->n_nodes ? &d->graph->nodes[d->graph->n_nodes - 1] : NULL;
}

static void check_set(tgi_draft *d, const char *attr, int was_set)
{
    if (d->st == TG_OK && !was_set)
        d->st = tgi_fail(&d->err, TG_E_INTERNAL, "%s takes no such %s", last_node(d)->op->name,
                         attr);
}

void tgi_draft_int(tgi_draft *d, const char *attr, int64_t v)
{
    tgi_node *n = last_node(d);
    check_set(d, attr, n && tgi_attr_set_int(n, attr, v));
}

void tgi_draft_float(tgi_draft *d, const char *attr, float v)
{
    tgi_node *n = last_node(d);
    check_set(d, attr, n && tgi_attr_set_float(n, attr, v));
}

void tgi_draft_enum(tgi_draft *d, const char *attr, const char *choice)
{
    tgi_node *n = last_node(d);
    check_set(d, attr, n && tgi_attr_set_enum(n, attr, choice));
}

void tgi_draft_exact(tgi_draft *d)
{
    tgi_node *n = last_node(d);
    if (n)
        n->exact = 1;
}

void tgi_draft_ints(tgi_draft *d, const char *attr, int n, const int64_t *v)
{
    tgi_node *node = last_node(d);
    const tgi_attr *row = node ? tgi_attr_row(node->op, attr) : NULL;
    check_set(d, attr, row && row->type == TGI_ATTR_INTS && n <= TGI_ATTR_MAX_INTS);
    if (d->st != TG_OK)
        return;
    tgi_ints *to = (tgi_ints *)(void *)((char *)node->attrs + row->offset);
    to->n = n;
    memcpy(to->v, v, (size_t)n * sizeof *v);
}

static void pair(tgi_draft *d, const char *attr, const int64_t v[2], int64_t none)
{
    const int64_t given[2] = {v[0] ? v[0] : none, v[1] ? v[1] : none};
    tgi_draft_ints(d, attr, 2, given);
}

static int window(tgi_draft *d, const char *op, const char *name, int x, int weight, int bias,
                  const tgi_draft_window *w)
{
    const int src[3] = {x, weight, bias};
    const int64_t pads[4] = {w->pad[0], w->pad[1], w->pad[0], w->pad[1]};
    const int v = tgi_draft_node(d, op, name, bias >= 0 ? 3 : 2, src);
    pair(d, "kernel_shape", w->kernel, 1);
    pair(d, "strides", w->stride, 1);
    pair(d, "dilations", w->dilation, 1);
    tgi_draft_ints(d, "pads", 4, pads);
    tgi_draft_int(d, "group", w->group ? w->group : 1);
    return v;
}

int tgi_draft_conv(tgi_draft *d, const char *name, int x, int weight, int bias,
                   const tgi_draft_window *w)
{
    return window(d, "Conv", name, x, weight, bias, w);
}

int tgi_draft_conv_transpose(tgi_draft *d, const char *name, int x, int weight, int bias,
                             const tgi_draft_window *w)
{
    const int v = window(d, "ConvTranspose", name, x, weight, bias, w);
    pair(d, "output_padding", w->more, 0);
    return v;
}

int tgi_draft_channels(tgi_draft *d, int x, int64_t from, int64_t until)
{
    const int64_t axis = 1, step = 1;
    const int src[5] = {x, tgi_draft_list(d, 1, &from), tgi_draft_list(d, 1, &until),
                        tgi_draft_list(d, 1, &axis), tgi_draft_list(d, 1, &step)};
    return tgi_draft_node(d, "Slice", "channels", 5, src);
}

int tgi_draft_concat(tgi_draft *d, int n, const int *part)
{
    const int v = tgi_draft_node(d, "Concat", "side by side", n, part);
    tgi_draft_int(d, "axis", 1);
    return v;
}

int tgi_draft_unary(tgi_draft *d, const char *op, int x)
{
    return tgi_draft_node(d, op, op, 1, &x);
}

int tgi_draft_binary(tgi_draft *d, const char *op, int a, int b)
{
    const int src[2] = {a, b};
    return tgi_draft_node(d, op, op, 2, src);
}

int tgi_draft_scale(tgi_draft *d, int x, float by)
{
    const int64_t one = 1;
    float *room = NULL;
    const int factor = tgi_draft_floats(d, "factor", 1, &one, NULL, &room);
    if (d->st == TG_OK)
        *room = by;
    return tgi_draft_binary(d, "Mul", x, factor);
}

int tgi_draft_leaky(tgi_draft *d, int x, float slope)
{
    const int v = tgi_draft_unary(d, "LeakyRelu", x);
    tgi_draft_float(d, "alpha", slope);
    return v;
}

int tgi_draft_enlarge(tgi_draft *d, int x, int64_t h, int64_t w)
{
    const int64_t size[2] = {h, w}, axes[2] = {2, 3};
    const int src[4] = {x, -1, -1, tgi_draft_list(d, 2, size)};
    const int v = tgi_draft_node(d, "Resize", "enlarge", 4, src);
    tgi_draft_enum(d, "mode", "linear");
    tgi_draft_enum(d, "coordinate_transformation_mode", "align_corners");
    tgi_draft_ints(d, "axes", 2, axes);
    return v;
}

int tgi_draft_pad(tgi_draft *d, int x, const int64_t before[2], const int64_t after[2],
                  int repeat)
{
    const int64_t all[4] = {before[0], before[1], after[0], after[1]}, axes[2] = {2, 3};
    const int src[4] = {x, tgi_draft_list(d, 4, all), -1, tgi_draft_list(d, 2, axes)};
    const int v = tgi_draft_node(d, "Pad", "pad", 4, src);
    tgi_draft_enum(d, "mode", repeat ? "edge" : "constant");
    return v;
}

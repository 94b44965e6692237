/* graph.c - building, editing and printing the intermediate representation.
 *
 * Values and nodes live in two growing arrays and are named by index; nothing is ever moved
 * while a rewrite runs (see graph_priv.h). tgi_graph_finish strings the phases together:
 *
 *   clean -> fold constants -> base size -> tokens -> canonical forms -> edges -> sizes -> fuse
 *   -> check
 *
 * Every phase leaves a graph that infers; the last one checks the invariants of graph.h, so the
 * planner never meets a graph that it cannot execute. */
#include "engine/graph/graph_priv.h"

#include "engine/base/arith.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

tg_status tgi_graph_new(tgi_graph **out, tgi_err *err)
{
    tgi_graph *g = tgi_calloc(TGI_TAG_GRAPH, 1, sizeof *g);
    if (g && !(g->arena_ = tgi_calloc(TGI_TAG_GRAPH, 1, sizeof(tgi_graph_priv)))) {
        tgi_free(g);
        g = NULL;
    }
    if (!g)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a graph");
    for (int i = 0; i < TGI_MAX_PORTS; i++)
        tgi_priv(g)->tied_to[i] = -1;
    g->opset = 17;
    g->spatial = 2;
    for (int i = 0; i < 3; i++)
        g->divisor[i] = g->minimum[i] = 1;
    *out = g;
    return TG_OK;
}

static void free_node(tgi_node *n)
{
    tgi_free(n->name);
    tgi_free(n->attrs);
    n->name = NULL;
    n->attrs = NULL;
}

void tgi_graph_free(tgi_graph **gp)
{
    if (!gp || !*gp)
        return;
    tgi_graph *g = *gp;
    tgi_graph_priv *p = tgi_priv(g);
    for (int i = 0; i < g->n_values; i++)
        tgi_free(g->values[i].name);
    for (int i = 0; i < g->n_nodes; i++)
        free_node(&g->nodes[i]);
    for (int i = 0; i < g->n_in; i++)
        tgi_free(g->in[i].name);
    for (int i = 0; i < g->n_out; i++)
        tgi_free(g->out[i].name);
    for (int i = 0; i < g->n_rewrites; i++)
        tgi_free(g->rewrites[i]);
    for (int i = 0; i < p->n_blocks; i++)
        tgi_free(p->blocks[i]);
    tgi_onnx_close(&p->model);
    tgi_free(p->blocks);
    tgi_readers_free(&p->readers);
    tgi_free(p);
    tgi_free(g->fixed_why);
    tgi_free(g->together[0]);
    tgi_free(g->together[1]);
    tgi_free(g->values);
    tgi_free(g->nodes);
    tgi_free(g);
    *gp = NULL;
}

const char *tgi_graph_path(const tgi_graph *g)
{
    const tgi_graph_priv *p = tgi_priv(g);
    return p->model ? tgi_onnx_path(p->model) : NULL;
}

const char *tgi_graph_file(const tgi_graph *g, int i)
{
    const tgi_graph_priv *p = tgi_priv(g);
    return p->model ? tgi_onnx_file(p->model, i) : NULL;
}

int tgi_graph_part(const tgi_graph *g, int i, struct tgi_onnx_part *out)
{
    const tgi_graph_priv *p = tgi_priv(g);
    return p->model && tgi_onnx_part_at(p->model, i, out);
}

void tgi_graph_sum(const tgi_graph *g)
{
    const tgi_graph_priv *p = tgi_priv(g);
    if (p->model)
        tgi_onnx_sum(p->model);
}

tg_status tgi_graph_unchanged(const tgi_graph *g, tgi_err *err)
{
    const tgi_graph_priv *p = tgi_priv(g);
    return p->model ? tgi_onnx_unchanged(p->model, err) : TG_OK;
}

/* Make room for one more element; doubles. */
static tg_status grow(void **array, int n, int *cap, size_t size, int max, const char *what,
                      tgi_err *err)
{
    if (n < *cap)
        return TG_OK;
    if (n >= max)
        return tgi_fail(err, TG_E_UNSUPPORTED, "a graph of more than %d %s", max, what);
    const int cap2 = *cap ? *cap * 2 : 64;
    void *p = tgi_realloc_n(TGI_TAG_GRAPH, *array, (size_t)cap2, size);
    if (!p)
        return tgi_fail(err, TG_E_NOMEM, "no memory for %d %s", cap2, what);
    *array = p;
    *cap = cap2;
    return TG_OK;
}

void *tgi_graph_own(tgi_graph *g, size_t bytes, tgi_err *err)
{
    tgi_graph_priv *p = tgi_priv(g);
    void *blocks = p->blocks;
    if (grow(&blocks, p->n_blocks, &p->cap_blocks, sizeof *p->blocks, INT32_MAX, "constants",
             err) != TG_OK)
        return NULL;
    p->blocks = blocks;
    void *b = tgi_calloc(TGI_TAG_GRAPH, 1, bytes ? bytes : 1);
    if (!b)
        tgi_fail(err, TG_E_NOMEM, "no memory for a constant of %zu bytes", bytes);
    else
        p->blocks[p->n_blocks++] = b;
    return b;
}

tg_status tgi_graph_add_value(tgi_graph *g, const char *name, int *id, tgi_err *err)
{
    void *values = g->values;
    TGI_TRY(grow(&values, g->n_values, &tgi_priv(g)->cap_values, sizeof *g->values,
                 TGI_MAX_VALUES, "values", err));
    g->values = values;
    char *copy = tgi_strdup(TGI_TAG_GRAPH, name);
    if (!copy)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a name");
    g->values[g->n_values] = (tgi_value){.name = copy, .producer = -1};
    *id = g->n_values++;
    return TG_OK;
}

tg_status tgi_graph_add_const(tgi_graph *g, const char *name, const tgi_desc *desc,
                              const void *data, int borrow, int *id, tgi_err *err)
{
    int64_t count;
    size_t bytes;
    if (!tgi_desc_count(desc, &count) ||
        !tgi_mul_ok((size_t)count, tgi_dtype_size(desc->dtype), &bytes))
        return tgi_fail(err, TG_E_FORMAT, "constant \"%s\": its extents overflow", name);
    if (!borrow) {
        void *copy = tgi_graph_own(g, bytes, err);
        if (!copy)
            return TG_E_NOMEM;
        if (bytes)
            memcpy(copy, data, bytes);
        data = copy;
    }
    TGI_TRY(tgi_graph_add_value(g, name, id, err));
    g->values[*id].is_const = 1;
    g->values[*id].cst = (tgi_constant){*desc, data};
    return TG_OK;
}

static tg_status check_ids(const tgi_graph *g, int n, const int *ids, int may_miss,
                           tgi_err *err)
{
    for (int i = 0; i < n; i++)
        if (ids[i] >= g->n_values || ids[i] < (may_miss ? -1 : 0))
            return tgi_fail(err, TG_E_ARG, "value %d does not exist", ids[i]);
    return TG_OK;
}

static tg_status check_new_node(const tgi_graph *g, const char *op, const char *name, int n_src,
                                const int *src, int n_dst, const int *dst, tgi_err *err)
{
    if (n_src > TGI_OP_MAX_SRC || n_dst > TGI_OP_MAX_DST || n_dst < 1)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "%s \"%s\": %d inputs and %d outputs; at most %d "
                        "and %d are done",
                        op, name, n_src, n_dst, TGI_OP_MAX_SRC, TGI_OP_MAX_DST);
    if (n_src < 1 || src[0] < 0) /* no operator of ours does without its first input */
        return tgi_fail(err, TG_E_FORMAT, "%s \"%s\" has no input", op, name);
    TGI_TRY(check_ids(g, n_src, src, 1, err));
    TGI_TRY(check_ids(g, n_dst, dst, 0, err));
    for (int i = 0; i < n_dst; i++)
        if (g->values[dst[i]].producer >= 0 || g->values[dst[i]].is_const)
            return tgi_fail(err, TG_E_FORMAT, "%s \"%s\": value \"%s\" is produced twice", op,
                            name, g->values[dst[i]].name);
    return TG_OK;
}

static tg_status enter_readers(tgi_graph *g, int node, tgi_err *err)
{
    const tgi_node *n = &g->nodes[node];
    for (int k = 0; k < n->n_src; k++)
        TGI_TRY(tgi_graph_note_reader(g, node, n->src[k], err));
    for (int k = 0; k < n->n_epi; k++)
        TGI_TRY(tgi_graph_note_reader(g, node, n->epi[k].value, err));
    return TG_OK;
}

tg_status tgi_graph_add_node(tgi_graph *g, const char *op, const char *name, int n_src,
                             const int *src, int n_dst, const int *dst, tgi_node **out,
                             tgi_err *err)
{
    const tgi_op *o = tgi_op_find(op);
    void *nodes = g->nodes;
    if (!o)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "operator %s (node \"%s\") is not implemented in this build", op, name);
    TGI_TRY(check_new_node(g, op, name, n_src, src, n_dst, dst, err));
    TGI_TRY(grow(&nodes, g->n_nodes, &tgi_priv(g)->cap_nodes, sizeof *g->nodes, TGI_MAX_NODES,
                 "nodes", err));
    g->nodes = nodes;
    tgi_node n = {
        .op = o, .op_class = o->op_class, .opset = g->opset, .n_src = n_src, .n_dst = n_dst};
    n.name = tgi_strdup(TGI_TAG_GRAPH, name);
    n.attrs = tgi_calloc(TGI_TAG_GRAPH, 1, o->attrs_size ? o->attrs_size : 1);
    if (!n.name || !n.attrs) {
        free_node(&n);
        return tgi_fail(err, TG_E_NOMEM, "no memory for node \"%s\"", name);
    }
    tgi_attrs_default(o->attrs, n.attrs);
    for (int i = 0; i < TGI_OP_MAX_SRC; i++)
        n.src[i] = i < n_src ? src[i] : -1;
    for (int i = 0; i < TGI_OP_MAX_DST; i++)
        n.dst[i] = i < n_dst ? dst[i] : -1;
    for (int i = 0; i < n_dst; i++)
        g->values[dst[i]].producer = g->n_nodes;
    g->nodes[g->n_nodes] = n;
    if (out)
        *out = &g->nodes[g->n_nodes];
    g->n_nodes++;
    return enter_readers(g, g->n_nodes - 1, err);
}

static tg_status new_port(tgi_graph *g, int value, tgi_port *p, tgi_err *err)
{
    TGI_TRY(check_ids(g, 1, &value, 0, err));
    *p = (tgi_port){.value = value};
    for (int i = 0; i < TGI_MAX_RANK; i++) {
        p->perm[i] = i;
        p->file_dim[i] = -1;
    }
    p->name = tgi_strdup(TGI_TAG_GRAPH, g->values[value].name);
    return p->name ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory for a port");
}

tg_status tgi_graph_add_input(tgi_graph *g, int value, int file_rank, const int64_t *file_dim,
                              tgi_err *err)
{
    if (g->n_in >= TGI_MAX_PORTS)
        return tgi_fail(err, TG_E_UNSUPPORTED, "more than %d inputs", TGI_MAX_PORTS);
    if (file_rank > TGI_MAX_RANK)
        return tgi_fail(err, TG_E_UNSUPPORTED, "an input of rank %d", file_rank);
    tgi_port *p = &g->in[g->n_in];
    TGI_TRY(new_port(g, value, p, err));
    g->n_in++;
    tgi_value *v = &g->values[value];
    p->file_rank = file_rank < 0 ? 0 : file_rank; /* 0: unknown until the base size is found */
    v->declared = file_rank > 0;
    v->decl = (tgi_desc){.dtype = TG_DTYPE_F32, .rank = p->file_rank};
    for (int i = 0; i < p->file_rank; i++)
        v->decl.dim[i] = p->file_dim[i] = file_dim[i] > 0 ? file_dim[i] : -1;
    return TG_OK;
}

tg_status tgi_graph_add_output(tgi_graph *g, int value, tgi_err *err)
{
    if (g->n_out >= TGI_MAX_PORTS)
        return tgi_fail(err, TG_E_UNSUPPORTED, "more than %d outputs", TGI_MAX_PORTS);
    TGI_TRY(new_port(g, value, &g->out[g->n_out], err));
    g->n_out++;
    return TG_OK;
}

/* ---- Edits ------------------------------------------------------------------------------- */

int tgi_node_is(const tgi_node *n, const char *op)
{
    return n->op && strcmp(n->op->name, op) == 0;
}

/* Operands and epilogue steps by which a live node reads the value. */
static int reads(const tgi_graph *g, int node, int value)
{
    const tgi_node *n = &g->nodes[node];
    int count = 0;
    for (int k = 0; n->op && k < n->n_src; k++)
        count += n->src[k] == value;
    for (int k = 0; n->op && k < n->n_epi; k++)
        count += n->epi[k].value == value;
    return count;
}

/* Was the node met among the entries before `end`? Asked behind few of them. */
static int met_before(const tgi_readers *r, int value, int end, int node)
{
    for (int e = tgi_readers_of(r, value); e != end; e = r->entry[e].next)
        if (r->entry[e].node == node)
            return 1;
    return 0;
}

int tgi_graph_uses(const tgi_graph *g, int value)
{
    const tgi_readers *r = &tgi_priv(g)->readers;
    int uses = 0, last = -1;
    for (int i = 0; i < g->n_out; i++)
        uses += g->out[i].value == value;
    for (int e = tgi_readers_of(r, value); e >= 0 && uses < TGI_MANY_USES;
         e = r->entry[e].next) {
        const int node = r->entry[e].node, n = reads(g, node, value);
        if (n && !met_before(r, value, e, node)) {
            uses += n;
            last = e;
        } else if (last >= 0) { /* stale: the next walk is without it */
            r->entry[last].next = r->entry[e].next;
        } else {
            r->first[value] = r->entry[e].next;
        }
    }
    return uses < TGI_MANY_USES ? uses : TGI_MANY_USES;
}

int tgi_graph_next_reader(const tgi_graph *g, int value, int *at)
{
    const tgi_readers *r = &tgi_priv(g)->readers;
    int e = *at < 0 ? tgi_readers_of(r, value) : r->entry[*at].next;
    while (e >= 0 && !reads(g, r->entry[e].node, value))
        e = r->entry[e].next;
    *at = e;
    return e < 0 ? -1 : r->entry[e].node;
}

int tgi_graph_only_user(const tgi_graph *g, int value)
{
    int at = -1;
    if (tgi_graph_uses(g, value) != 1)
        return -1;
    const int node = tgi_graph_next_reader(g, value, &at);
    for (int k = 0; node >= 0 && k < g->nodes[node].n_src; k++)
        if (g->nodes[node].src[k] == value)
            return node;
    return -1; /* an epilogue or an output */
}

tg_status tgi_graph_note_reader(tgi_graph *g, int node, int value, tgi_err *err)
{
    return value < 0 ? TG_OK : tgi_readers_add(&tgi_priv(g)->readers, value, node, err);
}

tg_status tgi_graph_set_src(tgi_graph *g, int node, int k, int value, tgi_err *err)
{
    g->nodes[node].src[k] = value;
    return tgi_graph_note_reader(g, node, value, err);
}

tg_status tgi_graph_replace(tgi_graph *g, int from, int to, tgi_err *err)
{
    int at = -1, i;
    tgi_graph_take_units(g, from, to);
    while ((i = tgi_graph_next_reader(g, from, &at)) >= 0) {
        tgi_node *n = &g->nodes[i];
        for (int k = 0; k < n->n_src; k++)
            if (n->src[k] == from)
                n->src[k] = to;
        for (int k = 0; k < n->n_epi; k++)
            if (n->epi[k].value == from)
                n->epi[k].value = to;
        TGI_TRY(tgi_graph_note_reader(g, i, to, err));
    }
    for (i = 0; i < g->n_out; i++)
        if (g->out[i].value == from)
            g->out[i].value = to;
    return TG_OK;
}

void tgi_graph_take_units(tgi_graph *g, int from, int to)
{
    g->values[to].units |= g->values[from].units;
}

void tgi_graph_drop(tgi_graph *g, int node)
{
    tgi_node *n = &g->nodes[node];
    for (int k = 0; k < n->n_dst; k++)
        if (g->values[n->dst[k]].producer == node)
            g->values[n->dst[k]].producer = -1;
    n->op = NULL;
}

tgi_node *tgi_graph_maker(const tgi_graph *g, int value, const char *op)
{
    const int p = value >= 0 ? g->values[value].producer : -1;
    return p >= 0 && tgi_node_is(&g->nodes[p], op) ? &g->nodes[p] : NULL;
}

tg_status tgi_graph_note(tgi_graph *g, tgi_err *err, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    const int max = (int)(sizeof g->rewrites / sizeof g->rewrites[0]);
    if (g->n_rewrites >= max)
        return TG_OK;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    char *s = tgi_strdup(TGI_TAG_GRAPH, text);
    if (!s)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a note");
    g->rewrites[g->n_rewrites++] = s;
    return TG_OK;
}

/* What a depth-first walk from the outputs needs: 0 unseen, 1 open, 2 placed. */
typedef struct sorter {
    unsigned char *state;
    int *order, n_order;
    int *stack, *next; /* node and its next operand to visit */
} sorter;

/* Operand k of a node, epilogue operands last; -1 where it has no producer, -2 past the end. */
static int operand_node(const tgi_graph *g, const tgi_node *n, int k)
{
    int v;
    if (k < n->n_src)
        v = n->src[k];
    else if (k < n->n_src + n->n_epi)
        v = n->epi[k - n->n_src].value;
    else
        return -2;
    return v < 0 ? -1 : g->values[v].producer;
}

static tg_status visit(const tgi_graph *g, sorter *s, int root, tgi_err *err)
{
    int depth = 0;
    if (s->state[root])
        return TG_OK;
    s->state[root] = 1;
    s->stack[0] = root;
    s->next[0] = 0;
    while (depth >= 0) {
        const int i = s->stack[depth];
        const int p = operand_node(g, &g->nodes[i], s->next[depth]++);
        if (p == -2) {
            s->state[i] = 2;
            s->order[s->n_order++] = i;
            depth--;
        } else if (p >= 0 && s->state[p] == 1) {
            return tgi_fail(err, TG_E_FORMAT, "node \"%s\" depends on itself",
                            g->nodes[p].name);
        } else if (p >= 0 && s->state[p] == 0) {
            s->state[p] = 1;
            s->stack[++depth] = p;
            s->next[depth] = 0;
        }
    }
    return TG_OK;
}

/* The order of the file is kept where it is legal: nodes are roots in file order once they are
 * known to be alive, so a graph that needs no sorting is not changed. */
static tg_status sort_nodes(const tgi_graph *g, sorter *s, tgi_err *err)
{
    for (int i = 0; i < g->n_out; i++)
        if (g->values[g->out[i].value].producer >= 0)
            TGI_TRY(visit(g, s, g->values[g->out[i].value].producer, err));
    unsigned char *const live = s->state; /* 2: alive */
    for (int i = 0; i < g->n_nodes; i++)
        live[i] = live[i] == 2 ? 0 : 3;
    s->n_order = 0;
    for (int i = 0; i < g->n_nodes; i++)
        TGI_TRY(visit(g, s, i, err));
    return TG_OK;
}

static tg_status permute(tgi_graph *g, const sorter *s, tgi_err *err)
{
    tgi_node *nodes = tgi_calloc(TGI_TAG_GRAPH, (size_t)s->n_order + 1, sizeof *nodes);
    if (!nodes)
        return tgi_fail(err, TG_E_NOMEM, "no memory to sort %d nodes", s->n_order);
    for (int i = 0; i < g->n_values; i++)
        g->values[i].producer = -1;
    for (int i = 0; i < s->n_order; i++) {
        nodes[i] = g->nodes[s->order[i]];
        g->nodes[s->order[i]] = (tgi_node){0}; /* moved */
        for (int k = 0; k < nodes[i].n_dst; k++)
            g->values[nodes[i].dst[k]].producer = i;
    }
    for (int i = 0; i < g->n_nodes; i++)
        free_node(&g->nodes[i]);
    tgi_free(g->nodes);
    g->nodes = nodes;
    g->n_nodes = s->n_order;
    tgi_priv(g)->cap_nodes = s->n_order + 1;
    tgi_readers_clear(&tgi_priv(g)->readers);
    for (int i = 0; i < g->n_nodes; i++)
        TGI_TRY(enter_readers(g, i, err));
    return TG_OK;
}

tg_status tgi_graph_clean(tgi_graph *g, tgi_err *err)
{
    const size_t n = (size_t)g->n_nodes + 1;
    sorter s = {0};
    tg_status st;
    for (int i = 0; i < g->n_nodes; i++) /* edits may have left it stale */
        for (int k = 0; g->nodes[i].op && k < g->nodes[i].n_dst; k++)
            g->values[g->nodes[i].dst[k]].producer = i;
    s.state = tgi_calloc(TGI_TAG_GRAPH, n, 1);
    s.order = tgi_calloc(TGI_TAG_GRAPH, 3 * n, sizeof *s.order);
    if (!s.state || !s.order) {
        st = tgi_fail(err, TG_E_NOMEM, "no memory to sort %d nodes", g->n_nodes);
    } else {
        s.stack = s.order + n;
        s.next = s.stack + n;
        st = sort_nodes(g, &s, err);
        if (st == TG_OK)
            st = permute(g, &s, err);
    }
    tgi_free(s.state);
    tgi_free(s.order);
    return st;
}

#include "engine/plan/stage.h"

#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/mem.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* What a processor computes while a disk moves one byte: 1e11 operations a second against 1e9
 * bytes. A value is recomputed when that, with what has to be read for it, takes less time than
 * writing and reading the value itself. */
#define FLOPS_PER_BYTE 100.0

/* What the cut is worked out with. Indices are those of the net. */
typedef struct cutter {
    const tg_net *net;
    int *producer;         /* per value: node, or -1: an input */
    int *level;            /* per node: the first stage that could compute it */
    int *home;             /* per node: the stage that does */
    int *ends;             /* per node: the stage that its whole read ends; -1: it ends none */
    unsigned char *stored; /* per value: some stage stores it */
    unsigned char *port;   /* per value: how the stage at hand gets it */
    unsigned char *here;   /* per node: in the stage at hand */
    unsigned char *cone;   /* per node, and ... */
    unsigned char *met;    /* ... per value: work of recompute_cost */
    int n;                 /* stages */
} cutter;

enum { PORT_NONE, PORT_LOADED, PORT_RECOMPUTED };

/* ---- What the net says ------------------------------------------------------------------- */

/* An image of more than a pixel, that passes through in bands? A single pixel and a flat value
 * are whole at once. */
static int is_streamed(const tg_net *net, int v)
{
    const tg_net_value *t = &net->values[v];
    int64_t pixels = 1;
    for (int a = TG_STREAM_AXIS; a < net->rank; a++)
        pixels = tgi_max(pixels, t->ext.dim[a]);
    return !t->flat && pixels > 1;
}

/* Is operand j read from edge to edge before the node's first pixel? */
static int reads_whole(const tg_net_node *n, int j)
{
    const tg_net_operand *o = &n->operand[j];
    return j < n->ctx.n_src && o->n_seg && (n->flat || n->node->op_class == TG_OP_WHOLE) &&
           is_streamed(n->net, o->value[0]);
}

/* Does the node wait for a whole extent? */
static int is_whole(const tg_net_node *n)
{
    for (int j = 0; j < n->ctx.n_src; j++)
        if (reads_whole(n, j))
            return 1;
    return 0;
}

/* A whole-extent node of this kind? */
static int is_kind(const tg_net_node *n, tg_whole kind)
{
    return is_whole(n) && (n->flat ? TG_WHOLE_VALUE : n->node->op->whole) == kind;
}

static double count_of(const tg_desc *d)
{
    double n = 1;
    for (int a = 0; a < d->rank; a++)
        n *= (double)d->dim[a];
    return n;
}

/* Moving a value once, in operations. */
static double moving_cost(const cutter *c, int v)
{
    return FLOPS_PER_BYTE * sizeof(float) * count_of(&c->net->shapes.desc[v]);
}

/* The value's producer; -1: an input of the net, or a reduction: small, and at hand. */
static int origin(const cutter *c, int v)
{
    const int p = c->producer[v];
    return p >= 0 && is_kind(&c->net->nodes[p], TG_WHOLE_REDUCED) ? -1 : p;
}

/* ---- Levels and homes -------------------------------------------------------------------- */

/* First stage in which the value can be read; a reduction is there one later than its node. */
static int there(const cutter *c, int v)
{
    const int p = c->producer[v];
    return p < 0 ? 0 : c->level[p] + is_kind(&c->net->nodes[p], TG_WHOLE_REDUCED);
}

static void find_level(cutter *c, int i)
{
    const tg_net_node *n = &c->net->nodes[i];
    int whole = -1, local = 0;
    for (int j = 0; j < n->n_operands; j++)
        for (int s = 0; s < n->operand[j].n_seg; s++) {
            const int v = n->operand[j].value[s];
            if (!reads_whole(n, j))
                local = (int)tgi_max(local, there(c, v));
            else if (c->producer[v] >= 0 || !is_kind(n, TG_WHOLE_VALUE)) /* inputs: stored */
                whole = (int)tgi_max(whole, there(c, v));
        }
    const int late = !is_kind(n, TG_WHOLE_REDUCED);
    c->level[i] = (int)tgi_max(whole + late, local);
    c->ends[i] = late ? whole : c->level[i];
}

static void use_in(cutter *c, int v, int stage)
{
    const int p = origin(c, v);
    if (p >= 0)
        c->home[p] = (int)tgi_min(c->home[p], stage);
}

/* Forward the earliest stage of each node, backward the first one that uses it. */
static void find_homes(cutter *c)
{
    const tg_net *net = c->net;
    for (int i = 0; i < net->n_nodes; i++) {
        find_level(c, i);
        c->home[i] = INT_MAX;
    }
    for (int o = 0; o < net->n_out; o++)
        use_in(c, net->held[o], there(c, net->held[o]));
    c->n = 1;
    for (int i = net->n_nodes - 1; i >= 0; i--) {
        const tg_net_node *n = &net->nodes[i];
        if (c->home[i] == INT_MAX)
            c->home[i] = c->level[i];
        for (int j = 0; j < n->n_operands; j++)
            for (int s = 0; s < n->operand[j].n_seg; s++)
                use_in(c, n->operand[j].value[s], reads_whole(n, j) ? c->ends[i] : c->home[i]);
        c->n = (int)tgi_max(c->n, tgi_max(c->home[i], c->ends[i]) + 1);
    }
}

/* ---- Stored or recomputed ---------------------------------------------------------------- */

/* Stage k would need value v, too, to recompute another: what reading it adds to the cost. Its
 * producer, when it would have to run again, joins the cone. */
static double cost_of_operand(cutter *c, int k, int v)
{
    const int p = origin(c, v);
    if (p >= 0 && (c->here[p] || c->home[p] == k))
        return 0;
    if (p >= 0 && !c->stored[v]) {
        c->cone[p] = 1;
        return 0;
    }
    const int at_hand = c->port[v] == PORT_LOADED || c->met[v];
    c->met[v] = 1;
    return at_hand ? 0 : moving_cost(c, v);
}

/* What stage k would compute and read besides its own, to have what node p yields. */
static double recompute_cost(cutter *c, int k, int p)
{
    double cost = 0;
    memset(c->cone, 0, (size_t)p + 1);
    memset(c->met, 0, (size_t)c->net->n_values);
    c->cone[p] = 1;
    for (int i = p; i >= 0; i--) {
        const tg_net_node *n = &c->net->nodes[i];
        if (!c->cone[i])
            continue;
        if (is_kind(n, TG_WHOLE_VALUE))
            return HUGE_VAL; /* would need its input stored once more */
        cost += n->flops_per_element * count_of(&n->dst[0]);
        for (int j = 0; j < n->n_operands; j++)
            for (int s = 0; s < n->operand[j].n_seg; s++)
                cost += cost_of_operand(c, k, n->operand[j].value[s]);
    }
    return cost;
}

/* Stage k reads value v: from where? */
static void read_in(cutter *c, int k, int v, int must_store)
{
    const int p = origin(c, v);
    if (c->port[v] || (p >= 0 && c->home[p] == k))
        return;
    if (p >= 0 && !c->here[p]) {
        c->stored[v] |= must_store || recompute_cost(c, k, p) > 2 * moving_cost(c, v);
        c->here[p] = !c->stored[v];
    }
    c->port[v] = p >= 0 && c->here[p] ? PORT_RECOMPUTED : PORT_LOADED;
}

static void read_operand(cutter *c, int k, const tg_net_operand *o, int must_store)
{
    for (int s = 0; s < o->n_seg; s++)
        read_in(c, k, o->value[s], must_store);
}

/* Nodes and inputs of stage k. Backward, so that what is recomputed asks for its inputs too. */
static tg_status collect(cutter *c, int k, tgi_err *err)
{
    const tg_net *net = c->net;
    memset(c->port, PORT_NONE, (size_t)net->n_values);
    for (int i = 0; i < net->n_nodes; i++)
        c->here[i] = c->home[i] == k;
    for (int i = 0; i < net->n_nodes; i++) {
        const tg_net_node *n = &net->nodes[i];
        if (c->ends[i] == k && is_kind(n, TG_WHOLE_STATS))
            read_operand(c, k, &n->operand[0], 0);
        for (int j = 0; c->here[i] && is_kind(n, TG_WHOLE_VALUE) && j < n->ctx.n_src; j++)
            read_operand(c, k, &n->operand[j], 1);
    }
    for (int i = net->n_nodes - 1; i >= 0; i--) {
        TGI_TRY(tgi_check_cancel(err));
        for (int j = 0; c->here[i] && j < net->nodes[i].n_operands; j++)
            read_operand(c, k, &net->nodes[i].operand[j], 0);
    }
    return TG_OK;
}

/* ---- The stages' structs ----------------------------------------------------------------- */

static tg_status open_stage(tg_stage *s, const tg_net *net, int n_nodes, int n_in, tgi_err *err)
{
    *s = (tg_stage){.net = net};
    s->node = tgi_calloc(TGI_TAG_PLAN, (size_t)n_nodes + 1, sizeof *s->node);
    s->in = tgi_calloc(TGI_TAG_PLAN, (size_t)n_in + 1, sizeof *s->in);
    if (!s->node || !s->in)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a stage of %d nodes", n_nodes);
    return TG_OK;
}

static void close_stage(tg_stage *s)
{
    tgi_free(s->node);
    tgi_free(s->in);
    tgi_free(s->out);
    tgi_free(s->values);
}

tg_status tgi_stage_lifetimes(tg_stage *s, tgi_err *err)
{
    if (!s->values)
        s->values = tgi_calloc(TGI_TAG_PLAN, (size_t)s->net->n_values + 1, sizeof *s->values);
    if (!s->values)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a stage of %d nodes", s->n_nodes);
    for (int v = 0; v < s->net->n_values; v++)
        s->values[v] = (tg_stage_value){0, -1, -1};
    for (int i = 0; i < s->n_loaded; i++)
        s->values[s->in[i].value].live = 1;
    for (int k = 0; k < s->n_nodes; k++) {
        const tg_net_node *n = tgi_stage_node(s, k);
        for (int d = 0; d < n->ctx.n_dst; d++)
            s->values[n->node->dst[d]] = (tg_stage_value){1, k, k};
        for (int j = 0; j < n->n_operands; j++)
            for (int i = 0; i < n->operand[j].n_seg; i++)
                s->values[n->operand[j].value[i]].last = k;
    }
    for (int o = 0; o < s->n_out; o++)
        s->values[s->out[o].value].last = s->n_nodes;
    return TG_OK;
}

/* Loaded values first, the net's own inputs before stored ones. */
static void list_inputs(tg_stage *s, const cutter *c)
{
    const tg_net *net = s->net;
    for (int i = 0; i < net->n_in; i++)
        if (c->port[net->in[i]])
            s->in[s->n_in++] = (tg_stage_in){net->in[i], 0};
    for (int v = 0; v < net->n_values; v++)
        if (c->port[v] == PORT_LOADED && c->producer[v] >= 0)
            s->in[s->n_in++] = (tg_stage_in){v, 0};
    s->n_loaded = s->n_in;
    for (int v = 0; v < net->n_values; v++)
        if (c->port[v] == PORT_RECOMPUTED)
            s->in[s->n_in++] = (tg_stage_in){v, 1};
}

static tg_status take_stage(tg_stage *s, const cutter *c, tgi_err *err)
{
    const tg_net *net = c->net;
    int n_nodes = 0, n_in = 0;
    for (int i = 0; i < net->n_nodes; i++)
        n_nodes += c->here[i];
    for (int v = 0; v < net->n_values; v++)
        n_in += c->port[v] != PORT_NONE;
    TGI_TRY(open_stage(s, net, n_nodes, n_in, err));
    for (int i = 0; i < net->n_nodes; i++) {
        if (!c->here[i])
            continue;
        s->node[s->n_nodes++] = i;
        if (is_kind(&net->nodes[i], TG_WHOLE_VALUE) && !s->whole_op)
            s->whole_op = net->nodes[i].node->name;
    }
    list_inputs(s, c);
    return TG_OK;
}

/* The node that waits for stage k to store value v, or -1. */
static int waits_for(const cutter *c, int k, int v)
{
    for (int i = 0; i < c->net->n_nodes; i++) {
        const tg_net_node *n = &c->net->nodes[i];
        for (int j = 0; c->ends[i] == k && is_kind(n, TG_WHOLE_VALUE) && j < n->ctx.n_src; j++)
            for (int s = 0; s < n->operand[j].n_seg; s++)
                if (n->operand[j].value[s] == v)
                    return i;
    }
    return -1;
}

static void add_out(tg_stage *s, int v, int whole, int reduced)
{
    if (s->out)
        s->out[s->n_out] = (tg_stage_out){v, whole, reduced, TG_PICK_NONE};
    s->n_out++;
}

static void add_net_out(tg_stage *s, const tg_net *net, int o, int whole)
{
    add_out(s, net->held[o], whole, 0);
    if (s->out)
        s->out[s->n_out - 1].pick = net->pick[o];
}

/* At first all of output 0 is wanted. */
static void want_all(tg_stage *s)
{
    for (int a = TG_STREAM_AXIS; a < s->net->rank && s->n_out > 0; a++)
        s->fit[a - TG_STREAM_AXIS] = (tg_fit){.out = tgi_stage_out_dim(s, 0, a)};
}

/* What stage k hands out: known when all later stages have said what they want stored. Outputs
 * of the net first, in their order. Only counts while there is no list. */
static void list_outputs(tg_stage *s, const cutter *c, int k)
{
    const tg_net *net = c->net;
    s->n_out = 0;
    for (int o = 0; o < net->n_out; o++) {
        const int p = c->producer[net->held[o]];
        if ((p < 0 ? 0 : c->home[p]) == k)
            add_net_out(s, net, o, waits_for(c, k, net->held[o]));
    }
    for (int v = 0; v < net->n_values; v++)
        if (c->stored[v] && !net->values[v].is_out && c->home[c->producer[v]] == k)
            add_out(s, v, waits_for(c, k, v), 0);
    for (int i = 0; i < net->n_nodes; i++) {
        const tg_net_operand *o = &net->nodes[i].operand[0];
        if (c->ends[i] == k && !is_kind(&net->nodes[i], TG_WHOLE_VALUE))
            for (int g = 0; g < o->n_seg; g++)
                add_out(s, o->value[g], i, 1);
    }
}

static tg_status give_outputs(tg_stage *s, const cutter *c, int k, tgi_err *err)
{
    list_outputs(s, c, k);
    s->out = tgi_calloc(TGI_TAG_PLAN, (size_t)s->n_out + 1, sizeof *s->out);
    if (!s->out)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a stage's outputs");
    list_outputs(s, c, k);
    want_all(s);
    return TG_OK;
}

/* ---- Cut --------------------------------------------------------------------------------- */

static tg_status whole_net(const tg_net *net, tg_stage *s, tgi_err *err)
{
    TGI_TRY(open_stage(s, net, net->n_nodes, net->n_in, err));
    s->out = tgi_calloc(TGI_TAG_PLAN, (size_t)net->n_out + 1, sizeof *s->out);
    if (!s->out)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the net's outputs");
    for (int i = 0; i < net->n_nodes; i++) {
        s->node[s->n_nodes++] = i;
        if (is_whole(&net->nodes[i]) && !s->whole_op)
            s->whole_op = net->nodes[i].node->name;
    }
    for (int i = 0; i < net->n_in; i++)
        s->in[s->n_in++] = (tg_stage_in){net->in[i], 0};
    s->n_loaded = s->n_in;
    for (int o = 0; o < net->n_out; o++)
        add_net_out(s, net, o, -1);
    want_all(s);
    return tgi_stage_lifetimes(s, err);
}

static tg_status cut(cutter *c, tg_stages *s, tgi_err *err)
{
    const tg_net *net = c->net;
    for (int v = 0; v < net->n_values; v++)
        c->producer[v] = -1;
    for (int i = 0; i < net->n_nodes; i++)
        for (int d = 0; d < net->nodes[i].ctx.n_dst; d++)
            c->producer[net->nodes[i].node->dst[d]] = i;
    find_homes(c);
    s->stage = tgi_calloc(TGI_TAG_PLAN, (size_t)c->n, sizeof *s->stage);
    if (!s->stage)
        return tgi_fail(err, TG_E_NOMEM, "no memory for %d stages", c->n);
    s->n = c->n;
    for (int k = 0; k < c->n; k++) {
        TGI_TRY(collect(c, k, err));
        TGI_TRY(take_stage(&s->stage[k], c, err));
    }
    for (int k = 0; k < c->n; k++) {
        TGI_TRY(tgi_check_cancel(err));
        TGI_TRY(give_outputs(&s->stage[k], c, k, err));
    }
    return TG_OK;
}

tg_status tgi_stages_new(const tg_net *net, tg_stages **out, tgi_err *err)
{
    const size_t nv = (size_t)net->n_values, nn = (size_t)net->n_nodes;
    tg_stages *s = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *s);
    int *ints = tgi_calloc(TGI_TAG_PLAN, nv + 3 * nn + 1, sizeof *ints);
    unsigned char *flags = tgi_calloc(TGI_TAG_PLAN, 3 * nv + 2 * nn + 1, 1);
    tg_status st = TG_E_NOMEM;
    if (s && ints && flags) {
        cutter c = {.net = net,
                    .producer = ints,
                    .level = ints + nv,
                    .home = ints + nv + nn,
                    .ends = ints + nv + 2 * nn,
                    .stored = flags,
                    .port = flags + nv,
                    .met = flags + 2 * nv,
                    .here = flags + 3 * nv,
                    .cone = flags + 3 * nv + nn};
        st = whole_net(net, &s->one, err);
        if (st == TG_OK)
            st = cut(&c, s, err);
    } else {
        tgi_fail(err, st, "no memory to cut %d nodes into stages", net->n_nodes);
    }
    tgi_free(ints);
    tgi_free(flags);
    if (st != TG_OK)
        tgi_stages_free(&s);
    else
        *out = s;
    return st;
}

static void fit_stage(tg_stage *s, const tg_fit fit[3])
{
    if (s->n_out == 0 || s->out[0].reduced || s->out[0].value != s->net->held[0])
        return;
    for (int a = 0; a < s->net->rank - TG_STREAM_AXIS; a++)
        s->fit[a] = fit[a + 5 - s->net->rank];
}

void tgi_stages_fit(tg_stages *s, const tg_fit fit[3])
{
    fit_stage(&s->one, fit);
    for (int k = 0; k < s->n; k++)
        fit_stage(&s->stage[k], fit);
}

void tgi_stages_free(tg_stages **s)
{
    if (!s || !*s)
        return;
    for (int k = 0; k < (*s)->n; k++)
        close_stage(&(*s)->stage[k]);
    close_stage(&(*s)->one);
    tgi_free((*s)->stage);
    tgi_free(*s);
    *s = NULL;
}

/* ---- In words ---------------------------------------------------------------------------- */

void tgi_stage_whole_text(const tg_stage *s, char *buf, size_t cap)
{
    const tg_node *first = NULL;
    int n = 0;
    for (int k = 0; k < s->n_nodes; k++)
        if (is_whole(tgi_stage_node(s, k))) {
            first = first ? first : tgi_stage_node(s, k)->node;
            n++;
        }
    if (!first)
        snprintf(buf, cap, "%s", "");
    else if (n == 1)
        snprintf(buf, cap, "%s \"%.60s\" reads the whole image", first->op->name, first->name);
    else
        snprintf(buf, cap, "%s \"%.60s\" and %d more read the whole image", first->op->name,
                 first->name, n - 1);
}

static const char *name_of(const tg_net *net, int v)
{
    return net->g->values[v].name;
}

/* A list of the values at those outputs that are (not) reductions. */
static void put_outs(tgi_jw *w, const char *key, const tg_stage *s, int reduced)
{
    tgi_jw_begin(w, key, '[');
    for (int o = 0; o < s->n_out; o++)
        if (s->out[o].reduced == reduced)
            tgi_jw_str(w, NULL, name_of(s->net, s->out[o].value));
    tgi_jw_end(w, ']');
}

static void put_ins(tgi_jw *w, const char *key, const tg_stage *s, int recomputed)
{
    tgi_jw_begin(w, key, '[');
    for (int i = 0; i < s->n_in; i++)
        if (s->in[i].recomputed == recomputed)
            tgi_jw_str(w, NULL, name_of(s->net, s->in[i].value));
    tgi_jw_end(w, ']');
}

static void put_cut(tgi_jw *w, int k, const tg_stage *s, const tg_stage_out *o)
{
    const tg_node *n = s->net->nodes[o->whole].node;
    tgi_jw_begin(w, NULL, '{');
    tgi_jw_int(w, "after_stage", k + 1);
    tgi_jw_str(w, "value", name_of(s->net, o->value));
    tgi_jw_str(w, "operator", n->op->name);
    tgi_jw_str(w, "node", n->name);
    tgi_jw_end(w, '}');
}

void tgi_stages_json(tgi_jw *w, const tg_stages *s, int detail)
{
    tgi_jw_int(w, "stages", s->n);
    tgi_jw_begin(w, "stage_cuts", '[');
    for (int k = 0; k + 1 < s->n; k++)
        for (int o = 0; o < s->stage[k].n_out; o++)
            if (s->stage[k].out[o].whole >= 0)
                put_cut(w, k, &s->stage[k], &s->stage[k].out[o]);
    tgi_jw_end(w, ']');
    if (s->one.whole_op) {
        char text[160];
        tgi_stage_whole_text(&s->one, text, sizeof text);
        tgi_jw_str(w, "whole_image_only", text);
    }
    if (!detail)
        return;
    tgi_jw_begin(w, "stage_list", '[');
    for (int k = 0; k < s->n; k++) {
        tgi_jw_begin(w, NULL, '{');
        tgi_jw_int(w, "nodes", s->stage[k].n_nodes);
        put_ins(w, "loads", &s->stage[k], 0);
        put_ins(w, "recomputes", &s->stage[k], 1);
        put_outs(w, "hands_out", &s->stage[k], 0);
        put_outs(w, "reduces", &s->stage[k], 1);
        tgi_jw_end(w, '}');
    }
    tgi_jw_end(w, ']');
}

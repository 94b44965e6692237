/* stage_cut.c - gives each node its stage, and decides by cost which values are kept. */
#include "engine/plan/stage_cut.h"

#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/mem.h"
#include "kernels/reduce.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A value is recomputed when that, with what has to be read for it, takes less time than writing
 * and reading the value itself. */

/* Numbers 0 to n - 1 by stage: those of stage k are item[first[k]] to item[first[k + 1] - 1],
 * ascending. */
typedef struct by_stage {
    int *first, *item;
} by_stage;

/* Nodes that are still to be looked at, the last one first: a heap. */
typedef struct agenda {
    int *at, n;
} agenda;

/* What a node is to the cut. */
typedef enum kind {
    SMALL,   /* reads and yields a few numbers: runs wherever they are wanted */
    STREAMS, /* computes rows of an image out of rows */
    LOOKS,   /* the same, and each row looks at all of other operands (tgi_op.by_rows) */
    REDUCES, /* numbers of a whole image, gathered while its rows pass (tgi_reduce) */
    BULK     /* needs all pixels at once, or works on large arrays */
} kind;

/* What the cut is worked out with. Indices are those of the net. Everything about one stage is
 * taken back by the lists of what it touched: there may be as many stages as nodes. */
typedef struct cutter {
    const tgi_net *net;
    tgi_sparing by;
    unsigned char *kind;   /* per node */
    int *producer;         /* per value: node, or -1: an input */
    int *level;            /* per node: the first stage that could compute it */
    int *home;             /* per node: the stage that does; where a reduction is gathered */
    unsigned char *stored; /* per value: some stage stores it */
    int *waiter;           /* per value: the node that waits for all of it, or -1 */
    by_stage at_home;      /* nodes by home */
    by_stage ending;       /* reductions by the stage that gathers them */
    by_stage keeping;    /* values stored by their producer's home, none of the net's outputs */
    unsigned char *bulk; /* per stage: one of BULK nodes */
    int n;               /* stages */
    int out_at[TGI_MAX_PORTS]; /* stage that hands out each output of the net */

    /* The stage at hand */
    unsigned char *port; /* per value: how the stage gets it */
    unsigned char *here; /* per node: in the stage */
    int *ports, n_ports; /* values with a port */
    int *nodes, n_nodes; /* nodes that are here */
    agenda walk;

    /* Work of recomputing_exceeds: marked with the number of the question */
    int *cone; /* per node */
    int *met;  /* per value */
    size_t n_met;
    int question;
    agenda cone_walk;
} cutter;

enum { PORT_NONE, PORT_LOADED, PORT_AT_ONCE, PORT_RECOMPUTED };

/* ---- Lists ------------------------------------------------------------------------------- */

static void add_to(agenda *a, int node)
{
    int i = a->n++;
    for (; i > 0 && a->at[(i - 1) / 2] < node; i = (i - 1) / 2)
        a->at[i] = a->at[(i - 1) / 2];
    a->at[i] = node;
}

static int take_last(agenda *a)
{
    const int last = a->at[0], moved = a->at[--a->n];
    int i = 0;
    for (int child = 1; child < a->n; child = 2 * i + 1) {
        child += child + 1 < a->n && a->at[child + 1] > a->at[child];
        if (a->at[child] <= moved)
            break;
        a->at[i] = a->at[child];
        i = child;
    }
    a->at[i] = moved;
    return last;
}

/* Sort 0 to n - 1 by stage_of[i]; those with a negative one are left out. */
static void sort_by_stage(by_stage *b, const int *stage_of, int n, int n_stages)
{
    memset(b->first, 0, (size_t)(n_stages + 1) * sizeof *b->first);
    for (int i = 0; i < n; i++)
        if (stage_of[i] >= 0)
            b->first[stage_of[i] + 1]++;
    for (int k = 0; k < n_stages; k++)
        b->first[k + 1] += b->first[k];
    for (int i = 0; i < n; i++)
        if (stage_of[i] >= 0)
            b->item[b->first[stage_of[i]]++] = i;
    for (int k = n_stages; k > 0;
         k--) /* each has moved to its end: where the next one begins */
        b->first[k] = b->first[k - 1];
    b->first[0] = 0;
}

static int ascending(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* ---- What the net says ------------------------------------------------------------------- */

/* Floats of an array that no stage has to be made for. */
#define SMALL_FLOATS 16384

static double count_of(const tgi_desc *d)
{
    double n = 1;
    for (int a = 0; a < d->rank; a++)
        n *= (double)d->dim[a];
    return n;
}

double tgi_stage_value_bytes(const tgi_net *net, int v)
{
    return sizeof(float) * count_of(&net->shapes.desc[v]);
}

static int is_large_array(const tgi_net *net, int v)
{
    return net->values[v].flat && count_of(&net->values[v].ext) > SMALL_FLOATS;
}

/* A reduction whose steps behind it need no other image. */
static int is_gathered(const tgi_net_node *n)
{
    for (int k = 0; k < n->n_epi; k++)
        if (n->epi[k].src >= 0)
            return 0;
    return !n->flat && n->operand[0].n_seg && tgi_is_streamed(n->net, n->operand[0].value[0]) &&
           tgi_reduce_of(n->node->op, &n->ctx) != NULL;
}

/* Rows of an image out of its rows, and of operands that are there as a whole. */
static int looks(const tgi_net_node *n)
{
    if (n->flat || !n->node->op->by_rows || !tgi_is_streamed(n->net, n->node->dst[0]))
        return 0;
    for (int j = 0; j < n->ctx.n_src; j++)
        if (n->node->op->by_rows >> j & 1 &&
            !(n->operand[j].n_seg && tgi_is_streamed(n->net, n->operand[j].value[0])))
            return 0;
    return 1;
}

static int streams(kind k)
{
    return k == STREAMS || k == LOOKS;
}

static kind kind_of(const tgi_net_node *n)
{
    int streamed = 0, large = 0;
    if (is_gathered(n))
        return REDUCES;
    if (tgi_is_whole(n))
        return looks(n) ? LOOKS : BULK;
    for (int d = 0; d < n->ctx.n_dst; d++) {
        streamed |= tgi_is_streamed(n->net, n->node->dst[d]);
        large |= is_large_array(n->net, n->node->dst[d]);
    }
    for (int j = 0; j < n->n_operands; j++)
        for (int s = 0; s < n->operand[j].n_seg; s++) {
            streamed |= tgi_is_streamed(n->net, n->operand[j].value[s]);
            large |= is_large_array(n->net, n->operand[j].value[s]);
        }
    if (n->flat)
        return streamed || large ? BULK : SMALL;
    return streamed ? STREAMS : SMALL;
}

/* Moving a value once, in operations. */
static double moving_cost(const cutter *c, int v)
{
    return TGI_FLOPS_PER_BYTE * tgi_stage_value_bytes(c->net, v);
}

/* What is dearer to make again is stored. */
static double dear(const cutter *c, int v)
{
    return tgi_stage_value_bytes(c->net, v) > c->by.most ? INFINITY
                                                         : 2 * c->by.dearer * moving_cost(c, v);
}

/* The value's producer; -1: an input of the net, or a reduction: small, and at hand. */
static int origin(const cutter *c, int v)
{
    const int p = c->producer[v];
    return p >= 0 && c->kind[p] == REDUCES ? -1 : p;
}

/* ---- Levels and homes ----------------------------------------------------------------------
 *
 * Even levels stream, odd ones hold BULK nodes: neither keeps the other from what it is good at.
 * Levels that nothing came to are no stages in the end. */

/* First level at which a node of kind `reader` can read value v, `whole` or row by row. */
static int there(const cutter *c, int v, kind reader, int whole)
{
    const int p = c->producer[v];
    if (p < 0)
        return 0;
    const kind of = c->kind[p];
    const int by_rows = streams(reader) || reader == REDUCES;
    return c->level[p] + (of == REDUCES || (of == BULK && by_rows) ||
                          (streams(of) && (reader == BULK || (whole && by_rows))));
}

static void find_level(cutter *c, int i)
{
    const tgi_net_node *n = &c->net->nodes[i];
    const kind k = c->kind[i];
    int level = 0;
    for (int j = 0; j < n->n_operands; j++)
        for (int s = 0; s < n->operand[j].n_seg; s++)
            level = (int)tgi_max(level, there(c, n->operand[j].value[s], k,
                                              k == LOOKS && tgi_reads_whole(n, j)));
    if (k == BULK)
        level |= 1;
    else if (k != SMALL)
        level += level & 1;
    c->level[i] = level;
}

/* Value v is used at a level by a node of kind `by`: a pass over it ends before a BULK level, and
 * two levels before a streaming one that reads it whole. */
static void use_at(cutter *c, int v, int level, kind by, int whole)
{
    const int p = origin(c, v);
    if (p < 0 || c->kind[p] == BULK)
        return;
    int before = 0;
    if (streams((kind)c->kind[p]))
        before = by == BULK || level & 1 ? 1 : 2 * whole;
    c->home[p] = (int)tgi_min(c->home[p], level - before);
}

/* Where output o of the net is handed out: a reduction behind the stage that gathers it. */
static int level_of_output(const cutter *c, int o)
{
    const int p = c->producer[c->net->held[o]];
    return p < 0 ? 0 : c->home[p] + (c->kind[p] == REDUCES);
}

/* Forward the earliest level of each node, backward the first one that uses it. */
static void find_homes(cutter *c)
{
    const tgi_net *net = c->net;
    for (int i = 0; i < net->n_nodes; i++) {
        c->kind[i] = (unsigned char)kind_of(&net->nodes[i]);
        find_level(c, i);
        c->home[i] = c->kind[i] == BULK || c->kind[i] == REDUCES ? c->level[i] : INT_MAX;
    }
    for (int o = 0; o < net->n_out; o++) {
        const int p = origin(c, net->held[o]);
        if (p >= 0)
            c->home[p] = c->level[p];
    }
    for (int i = net->n_nodes - 1; i >= 0; i--) {
        const tgi_net_node *n = &net->nodes[i];
        if (c->home[i] == INT_MAX)
            c->home[i] = c->level[i];
        for (int j = 0; j < n->n_operands; j++)
            for (int s = 0; s < n->operand[j].n_seg; s++) {
                const int v = n->operand[j].value[s];
                const int whole = c->kind[i] == LOOKS && tgi_reads_whole(n, j);
                use_at(c, v, c->home[i], (kind)c->kind[i], whole);
                if (whole || (c->kind[i] == BULK && tgi_is_streamed(net, v)))
                    c->waiter[v] = i;
            }
    }
}

/* Levels become stages: those that something came to, in order. */
static void number_stages(cutter *c, int *number)
{
    const tgi_net *net = c->net;
    const int n = 2 * net->n_nodes + 3;
    memset(number, 0, (size_t)n * sizeof *number);
    for (int i = 0; i < net->n_nodes; i++)
        number[c->home[i]] = 1;
    for (int o = 0; o < net->n_out; o++)
        number[level_of_output(c, o)] = 1;
    c->n = 0;
    for (int k = 0; k < n; k++)
        if (number[k]) {
            c->bulk[c->n] = k & 1;
            number[k] = c->n++;
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
        if (c->cone[p] != c->question)
            add_to(&c->cone_walk, p);
        c->cone[p] = c->question;
        return 0;
    }
    const int loaded = c->port[v] == PORT_LOADED || c->port[v] == PORT_AT_ONCE;
    const int at_hand = loaded || c->met[v] == c->question;
    c->met[v] = c->question;
    return at_hand ? 0 : moving_cost(c, v);
}

/* Is what stage k would compute and read besides its own, to have what node p yields, more than
 * `limit`? */
static int recomputing_exceeds(cutter *c, int k, int p, double limit)
{
    double cost = 0;
    c->question++;
    c->cone[p] = c->question;
    c->cone_walk.n = 0;
    add_to(&c->cone_walk, p);
    while (c->cone_walk.n > 0 && cost <= limit) {
        const tgi_net_node *n = &c->net->nodes[take_last(&c->cone_walk)];
        const int i = (int)(n - c->net->nodes);
        if (c->kind[i] == BULK || c->kind[i] == LOOKS || (c->kind[i] == STREAMS && c->bulk[k]))
            return 1; /* would hold all of an image once more */
        cost += n->flops_per_element * count_of(&n->dst[0]);
        for (int j = 0; j < n->n_operands; j++)
            for (int s = 0; s < n->operand[j].n_seg; s++)
                cost += cost_of_operand(c, k, n->operand[j].value[s]);
    }
    return cost > limit;
}

static void join(cutter *c, int i)
{
    c->here[i] = 1;
    c->nodes[c->n_nodes++] = i;
    add_to(&c->walk, i);
}

/* Is a result of node p loaded into the stage? Then p does not run there: it would make it again. */
static int is_partly_loaded(const cutter *c, int p)
{
    const tgi_net_node *n = &c->net->nodes[p];
    for (int d = 0; d < n->ctx.n_dst; d++)
        if (c->port[n->node->dst[d]] == PORT_LOADED || c->port[n->node->dst[d]] == PORT_AT_ONCE)
            return 1;
    return 0;
}

/* Stage k reads value v: from where? */
static void read_in(cutter *c, int k, int v, int must_store)
{
    const int p = origin(c, v);
    if (c->port[v] || (p >= 0 && c->home[p] == k))
        return;
    if (p >= 0 && !c->here[p]) {
        c->stored[v] |=
            must_store || is_partly_loaded(c, p) || recomputing_exceeds(c, k, p, dear(c, v));
        if (!c->stored[v])
            join(c, p);
    }
    c->port[v] = p >= 0 && c->here[p] ? PORT_RECOMPUTED : PORT_LOADED;
    c->ports[c->n_ports++] = v;
}

/* What is read is stored if it would be the image again that a BULK stage waits for. */
static void read_operand(cutter *c, int k, const tgi_net_operand *o)
{
    for (int s = 0; s < o->n_seg; s++) {
        const int p = origin(c, o->value[s]);
        const int must = p >= 0 && (c->kind[p] == BULK || c->kind[p] == LOOKS ||
                                    (c->kind[p] == STREAMS && c->bulk[k]));
        read_in(c, k, o->value[s], must);
    }
}

/* What node i of stage k looks at, if it is one that looks: stored, and loaded at once. */
static void read_at_once(cutter *c, int k, int i)
{
    const tgi_net_node *n = &c->net->nodes[i];
    for (int j = 0; c->kind[i] == LOOKS && j < n->n_operands; j++)
        for (int s = 0; tgi_reads_whole(n, j) && s < n->operand[j].n_seg; s++) {
            read_in(c, k, n->operand[j].value[s], 1);
            c->port[n->operand[j].value[s]] = PORT_AT_ONCE;
        }
}

static void forget_stage(cutter *c)
{
    for (int i = 0; i < c->n_nodes; i++)
        c->here[c->nodes[i]] = 0;
    for (int i = 0; i < c->n_ports; i++)
        c->port[c->ports[i]] = PORT_NONE;
    c->n_nodes = c->n_ports = c->walk.n = 0;
}

/* Nodes and inputs of stage k. Backward, so that what is recomputed asks for its inputs too. */
static tg_status collect(cutter *c, int k, tgi_err *err)
{
    forget_stage(c);
    for (int a = c->at_home.first[k]; a < c->at_home.first[k + 1]; a++)
        join(c, c->at_home.item[a]);
    /* Before a reader of rows would make it again. */
    for (int a = c->at_home.first[k]; a < c->at_home.first[k + 1]; a++)
        read_at_once(c, k, c->at_home.item[a]);
    for (int e = c->ending.first[k]; e < c->ending.first[k + 1]; e++)
        read_operand(c, k, &c->net->nodes[c->ending.item[e]].operand[0]);
    for (int o = 0; o < c->net->n_out;
         o++) /* with no node of this stage: a reduction, an input */
        if (c->out_at[o] == k)
            read_in(c, k, c->net->held[o], 0);
    while (c->walk.n > 0) {
        const tgi_net_node *n = &c->net->nodes[take_last(&c->walk)];
        TGI_TRY(tgi_check_cancel(err));
        for (int j = 0; j < n->n_operands; j++)
            read_operand(c, k, &n->operand[j]);
    }
    qsort(c->nodes, (size_t)c->n_nodes, sizeof *c->nodes, ascending);
    qsort(c->ports, (size_t)c->n_ports, sizeof *c->ports, ascending);
    return TG_OK;
}

/* ---- The stages' lists ------------------------------------------------------------------- */

/* Is value a the better one to give the bands of a stage their rows, or its cells theirs? Of inputs,
 * those that are loaded at once are not asked about, unless there are no others. */
static int drives(const tgi_net *net, int a, int b)
{
    const int64_t rows =
        tgi_net_dim(net, a, TGI_STREAM_AXIS) - tgi_net_dim(net, b, TGI_STREAM_AXIS);
    return rows > 0 ||
           (rows == 0 && count_of(&net->values[a].ext) > count_of(&net->values[b].ext));
}

/* Loaded values first, and of those the driver: the one with the most rows. */
static void list_inputs(tgi_stage *s, const cutter *c)
{
    for (int pass = PORT_LOADED; pass <= PORT_RECOMPUTED; pass++) {
        for (int i = 0; i < c->n_ports; i++)
            if (c->port[c->ports[i]] == pass)
                s->in[s->n_in++] = (tgi_stage_in){.value = c->ports[i],
                                                  .recomputed = pass == PORT_RECOMPUTED,
                                                  .at_once = pass == PORT_AT_ONCE};
        if (pass == PORT_AT_ONCE)
            s->n_loaded = s->n_in;
    }
    for (int i = 1; i < s->n_loaded; i++)
        if (s->in[i].at_once <= s->in[0].at_once &&
            drives(c->net, s->in[i].value, s->in[0].value)) {
            const tgi_stage_in first = s->in[0];
            s->in[0] = s->in[i];
            s->in[i] = first;
        }
}

static tg_status take_stage(tgi_stage *s, const cutter *c, tgi_err *err)
{
    TGI_TRY(tgi_stage_open(s, c->net, c->n_nodes, c->n_ports, err));
    for (int i = 0; i < c->n_nodes; i++) {
        const tgi_net_node *n = &c->net->nodes[c->nodes[i]];
        s->node[s->n_nodes++] = c->nodes[i];
        if (c->kind[c->nodes[i]] == BULK && tgi_is_whole(n) && !s->whole_op)
            s->whole_op = n->node->name;
    }
    list_inputs(s, c);
    return TG_OK;
}

/* What stage k hands out: known when all later stages have said what they want stored. Outputs
 * of the net first, in their order. Only counts while there is no list. */
static void list_outputs(tgi_stage *s, const cutter *c, int k)
{
    const tgi_net *net = c->net;
    s->n_out = 0;
    for (int o = 0; o < net->n_out; o++)
        if (c->out_at[o] == k)
            tgi_stage_add_out_of_net(s, net, o, c->waiter[net->held[o]]);
    const int of_net = s->n_out;
    for (int i = c->keeping.first[k]; i < c->keeping.first[k + 1]; i++) {
        const int v = c->keeping.item[i];
        tgi_stage_add_out(s, v, c->waiter[v], -1);
    }
    for (int e = c->ending.first[k]; e < c->ending.first[k + 1]; e++) {
        const int i = c->ending.item[e];
        const tgi_net_operand *o = &net->nodes[i].operand[0];
        int64_t channel = 0;
        for (int g = 0; g < o->n_seg; channel += net->values[o->value[g++]].c)
            tgi_stage_add_out(s, o->value[g], i, channel);
    }
    for (int o = 1; s->out && of_net == 0 && o < s->n_out; o++)
        if (drives(net, s->out[o].value, s->out[0].value)) { /* what cells are cut of */
            const tgi_stage_out first = s->out[0];
            s->out[0] = s->out[o];
            s->out[o] = first;
        }
}

static tg_status give_outputs(tgi_stage *s, cutter *c, int k, tgi_err *err)
{
    list_outputs(s, c, k);
    s->out = tgi_calloc(TGI_TAG_PLAN, (size_t)s->n_out + 1, sizeof *s->out);
    if (s->out)
        list_outputs(s, c, k);
    if (!s->out)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a stage's outputs");
    tgi_stage_want_all(s);
    return TG_OK;
}

/* ---- Cut --------------------------------------------------------------------------------- */

static void find_kept(cutter *c)
{
    int *stage = c->met; /* no question comes after this */
    for (int v = 0; v < c->net->n_values; v++) {
        const int kept = c->stored[v] && !c->net->values[v].is_out;
        stage[v] = kept ? c->home[c->producer[v]] : -1;
    }
    sort_by_stage(&c->keeping, stage, c->net->n_values, c->n);
}

/* Which stage each node and each output belongs to. */
static void place_nodes(cutter *c)
{
    const tgi_net *net = c->net;
    int *number = c->met, *stage = c->cone; /* no question comes before this */
    for (int v = 0; v < net->n_values; v++)
        c->producer[v] = c->waiter[v] = -1;
    for (int i = 0; i < net->n_nodes; i++)
        for (int d = 0; d < net->nodes[i].ctx.n_dst; d++)
            c->producer[net->nodes[i].node->dst[d]] = i;
    find_homes(c);
    number_stages(c, number);
    for (int o = 0; o < net->n_out; o++)
        c->out_at[o] = number[level_of_output(c, o)];
    for (int i = 0; i < net->n_nodes; i++)
        c->home[i] = number[c->home[i]];
    for (int i = 0; i < net->n_nodes; i++)
        stage[i] = c->kind[i] == REDUCES ? -1 : c->home[i];
    sort_by_stage(&c->at_home, stage, net->n_nodes, c->n);
    for (int i = 0; i < net->n_nodes; i++)
        stage[i] = c->kind[i] == REDUCES ? c->home[i] : -1;
    sort_by_stage(&c->ending, stage, net->n_nodes, c->n);
    memset(c->cone, 0, (size_t)net->n_nodes * sizeof *c->cone);
    memset(c->met, 0, (size_t)c->n_met * sizeof *c->met);
}

static tg_status cut(cutter *c, tgi_stages *s, tgi_err *err)
{
    place_nodes(c);
    s->stage = tgi_calloc(TGI_TAG_PLAN, (size_t)c->n, sizeof *s->stage);
    if (!s->stage)
        return tgi_fail(err, TG_E_NOMEM, "no memory for %d stages", c->n);
    s->n = c->n;
    for (int k = 0; k < c->n; k++) {
        TGI_TRY(collect(c, k, err));
        TGI_TRY(take_stage(&s->stage[k], c, err));
    }
    find_kept(c);
    for (int k = 0; k < c->n; k++) {
        TGI_TRY(tgi_check_cancel(err));
        TGI_TRY(give_outputs(&s->stage[k], c, k, err));
    }
    return TG_OK;
}

static int *carve(int **rest, size_t n)
{
    int *at = *rest;
    *rest += n;
    return at;
}

tg_status tgi_stages_cut(const tgi_net *net, tgi_sparing by, tgi_stages *s, tgi_err *err)
{
    const size_t nv = (size_t)net->n_values, nn = (size_t)net->n_nodes;
    const size_t stages = 2 * nn + 4, met = nv > stages ? nv : stages;
    int *ints = tgi_calloc(TGI_TAG_PLAN, 5 * nn + 4 * nv + 3 * (stages + 1) + 3 * nn + met + nv,
                           sizeof *ints),
        *rest = ints;
    unsigned char *flags = tgi_calloc(TGI_TAG_PLAN, 2 * nv + 2 * nn + stages, 1);
    tg_status st = TG_E_NOMEM;
    if (ints && flags) {
        cutter c = {
            .net = net,
            .by = by,
            .producer = carve(&rest, nv),
            .level = carve(&rest, nn),
            .home = carve(&rest, nn),
            .at_home = {carve(&rest, stages + 1), carve(&rest, nn)},
            .ending = {carve(&rest, stages + 1), carve(&rest, nn)},
            .keeping = {carve(&rest, stages + 1), carve(&rest, nv)},
            .stored = flags,
            .port = flags + nv,
            .here = flags + 2 * nv,
            .kind = flags + 2 * nv + nn,
            .bulk = flags + 2 * nv + 2 * nn,
            .ports = carve(&rest, nv),
            .nodes = carve(&rest, nn),
            .waiter = carve(&rest, nv),
            .walk = {carve(&rest, nn), 0},
            .cone = carve(&rest, nn),
            .met = carve(&rest, met),
            .n_met = met,
            .cone_walk = {carve(&rest, nn), 0},
        };
        st = cut(&c, s, err);
    } else {
        tgi_fail(err, st, "no memory to cut %d nodes into stages", net->n_nodes);
    }
    tgi_free(ints);
    tgi_free(flags);
    return st;
}

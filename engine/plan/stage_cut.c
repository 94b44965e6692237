/* stage_cut.c - gives each node its stage, and decides by cost which values are kept. */
#include "engine/plan/stage_cut.h"

#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/mem.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a processor computes while a disk moves one byte: 1e11 operations a second against 1e9
 * bytes. A value is recomputed when that, with what has to be read for it, takes less time than
 * writing and reading the value itself. */
#define FLOPS_PER_BYTE 100.0

/* Numbers 0 to n - 1 by stage: those of stage k are item[first[k]] to item[first[k + 1] - 1],
 * ascending. */
typedef struct by_stage {
    int *first, *item;
} by_stage;

/* Nodes that are still to be looked at, the last one first: a heap. */
typedef struct agenda {
    int *at, n;
} agenda;

/* What the cut is worked out with. Indices are those of the net. Everything about one stage is
 * taken back by the lists of what it touched: there may be as many stages as nodes. */
typedef struct cutter {
    const tgi_net *net;
    int *producer;         /* per value: node, or -1: an input */
    int *level;            /* per node: the first stage that could compute it */
    int *home;             /* per node: the stage that does */
    int *ends;             /* per node: the stage that its whole read ends; -1: it ends none */
    unsigned char *stored; /* per value: some stage stores it */
    by_stage at_home;      /* nodes by home */
    by_stage ending;       /* nodes by the stage they end */
    by_stage keeping; /* values stored by their producer's home, none of the net's outputs */
    int n;            /* stages */

    /* The stage at hand */
    unsigned char *port; /* per value: how the stage gets it */
    unsigned char *here; /* per node: in the stage */
    int *ports, n_ports; /* values with a port */
    int *nodes, n_nodes; /* nodes that are here */
    int *waiter;         /* per value: the node that waits for it whole, or -1 */
    agenda walk;

    /* Work of recompute_cost: marked with the number of the question */
    int *cone; /* per node */
    int *met;  /* per value */
    int question;
    agenda cone_walk;
} cutter;

enum { PORT_NONE, PORT_LOADED, PORT_RECOMPUTED };

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

/* A whole-extent node of this kind? */
static int is_kind(const tgi_net_node *n, tgi_whole kind)
{
    return tgi_is_whole(n) && (n->flat ? TGI_WHOLE_VALUE : n->node->op->whole) == kind;
}

static double count_of(const tgi_desc *d)
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
    return p >= 0 && is_kind(&c->net->nodes[p], TGI_WHOLE_REDUCED) ? -1 : p;
}

/* ---- Levels and homes -------------------------------------------------------------------- */

/* First stage in which the value can be read; a reduction is there one later than its node. */
static int there(const cutter *c, int v)
{
    const int p = c->producer[v];
    return p < 0 ? 0 : c->level[p] + is_kind(&c->net->nodes[p], TGI_WHOLE_REDUCED);
}

static void find_level(cutter *c, int i)
{
    const tgi_net_node *n = &c->net->nodes[i];
    int whole = -1, local = 0;
    for (int j = 0; j < n->n_operands; j++)
        for (int s = 0; s < n->operand[j].n_seg; s++) {
            const int v = n->operand[j].value[s];
            if (!tgi_reads_whole(n, j))
                local = (int)tgi_max(local, there(c, v));
            else if (c->producer[v] >= 0 || !is_kind(n, TGI_WHOLE_VALUE)) /* inputs: stored */
                whole = (int)tgi_max(whole, there(c, v));
        }
    const int late = !is_kind(n, TGI_WHOLE_REDUCED);
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
    const tgi_net *net = c->net;
    for (int i = 0; i < net->n_nodes; i++) {
        find_level(c, i);
        c->home[i] = INT_MAX;
    }
    for (int o = 0; o < net->n_out; o++)
        use_in(c, net->held[o], there(c, net->held[o]));
    c->n = 1;
    for (int i = net->n_nodes - 1; i >= 0; i--) {
        const tgi_net_node *n = &net->nodes[i];
        if (c->home[i] == INT_MAX)
            c->home[i] = c->level[i];
        for (int j = 0; j < n->n_operands; j++)
            for (int s = 0; s < n->operand[j].n_seg; s++)
                use_in(c, n->operand[j].value[s],
                       tgi_reads_whole(n, j) ? c->ends[i] : c->home[i]);
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
        if (c->cone[p] != c->question)
            add_to(&c->cone_walk, p);
        c->cone[p] = c->question;
        return 0;
    }
    const int at_hand = c->port[v] == PORT_LOADED || c->met[v] == c->question;
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
        if (is_kind(n, TGI_WHOLE_VALUE))
            return 1; /* would need its input stored once more */
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

/* Stage k reads value v: from where? */
static void read_in(cutter *c, int k, int v, int must_store)
{
    const int p = origin(c, v);
    if (c->port[v] || (p >= 0 && c->home[p] == k))
        return;
    if (p >= 0 && !c->here[p]) {
        c->stored[v] |= must_store || recomputing_exceeds(c, k, p, 2 * moving_cost(c, v));
        if (!c->stored[v])
            join(c, p);
    }
    c->port[v] = p >= 0 && c->here[p] ? PORT_RECOMPUTED : PORT_LOADED;
    c->ports[c->n_ports++] = v;
}

static void read_operand(cutter *c, int k, const tgi_net_operand *o, int must_store)
{
    for (int s = 0; s < o->n_seg; s++)
        read_in(c, k, o->value[s], must_store);
}

/* What node i of stage k, or one that ends it, reads before its first pixel. */
static void read_whole(cutter *c, int k, int i)
{
    const tgi_net_node *n = &c->net->nodes[i];
    if (c->ends[i] == k && is_kind(n, TGI_WHOLE_STATS))
        read_operand(c, k, &n->operand[0], 0);
    for (int j = 0; c->here[i] && is_kind(n, TGI_WHOLE_VALUE) && j < n->ctx.n_src; j++)
        read_operand(c, k, &n->operand[j], 1);
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
    const int *own = c->at_home.item, *end = c->ending.item;
    int a = c->at_home.first[k], b = c->ending.first[k];
    const int a_end = c->at_home.first[k + 1], b_end = c->ending.first[k + 1];
    forget_stage(c);
    for (int i = a; i < a_end; i++)
        join(c, own[i]);
    while (a < a_end || b < b_end) { /* both in order, each node once */
        const int i = b == b_end || (a < a_end && own[a] < end[b]) ? own[a] : end[b];
        a += a < a_end && own[a] == i;
        b += b < b_end && end[b] == i;
        read_whole(c, k, i);
    }
    while (c->walk.n > 0) {
        const tgi_net_node *n = &c->net->nodes[take_last(&c->walk)];
        TGI_TRY(tgi_check_cancel(err));
        for (int j = 0; j < n->n_operands; j++)
            read_operand(c, k, &n->operand[j], 0);
    }
    qsort(c->nodes, (size_t)c->n_nodes, sizeof *c->nodes, ascending);
    qsort(c->ports, (size_t)c->n_ports, sizeof *c->ports, ascending);
    return TG_OK;
}

/* ---- The stages' lists ------------------------------------------------------------------- */

/* Loaded values first, the net's own inputs before stored ones. */
static void list_inputs(tgi_stage *s, const cutter *c)
{
    const tgi_net *net = c->net;
    for (int i = 0; i < net->n_in; i++)
        if (c->port[net->in[i]])
            s->in[s->n_in++] = (tgi_stage_in){net->in[i], 0};
    for (int i = 0; i < c->n_ports; i++)
        if (c->port[c->ports[i]] == PORT_LOADED && c->producer[c->ports[i]] >= 0)
            s->in[s->n_in++] = (tgi_stage_in){c->ports[i], 0};
    s->n_loaded = s->n_in;
    for (int i = 0; i < c->n_ports; i++)
        if (c->port[c->ports[i]] == PORT_RECOMPUTED)
            s->in[s->n_in++] = (tgi_stage_in){c->ports[i], 1};
}

static tg_status take_stage(tgi_stage *s, const cutter *c, tgi_err *err)
{
    TGI_TRY(tgi_stage_open(s, c->net, c->n_nodes, c->n_ports, err));
    for (int i = 0; i < c->n_nodes; i++) {
        const tgi_net_node *n = &c->net->nodes[c->nodes[i]];
        s->node[s->n_nodes++] = c->nodes[i];
        if (is_kind(n, TGI_WHOLE_VALUE) && !s->whole_op)
            s->whole_op = n->node->name;
    }
    list_inputs(s, c);
    return TG_OK;
}

/* Note who waits for the values that stage k stores: the first such node of each. Or, with
 * `forget`, nobody any more. */
static void note_waiters(cutter *c, int k, int forget)
{
    for (int e = c->ending.first[k + 1] - 1; e >= c->ending.first[k]; e--) {
        const int i = c->ending.item[e];
        const tgi_net_node *n = &c->net->nodes[i];
        for (int j = 0; is_kind(n, TGI_WHOLE_VALUE) && j < n->ctx.n_src; j++)
            for (int s = 0; s < n->operand[j].n_seg; s++)
                c->waiter[n->operand[j].value[s]] = forget ? -1 : i;
    }
}

/* What stage k hands out: known when all later stages have said what they want stored. Outputs
 * of the net first, in their order. Only counts while there is no list. */
static void list_outputs(tgi_stage *s, const cutter *c, int k)
{
    const tgi_net *net = c->net;
    s->n_out = 0;
    for (int o = 0; o < net->n_out; o++) {
        const int p = c->producer[net->held[o]];
        if ((p < 0 ? 0 : c->home[p]) == k)
            tgi_stage_add_out_of_net(s, net, o, c->waiter[net->held[o]]);
    }
    for (int i = c->keeping.first[k]; i < c->keeping.first[k + 1]; i++) {
        const int v = c->keeping.item[i];
        tgi_stage_add_out(s, v, c->waiter[v], 0);
    }
    for (int e = c->ending.first[k]; e < c->ending.first[k + 1]; e++) {
        const int i = c->ending.item[e];
        const tgi_net_operand *o = &net->nodes[i].operand[0];
        for (int g = 0; !is_kind(&net->nodes[i], TGI_WHOLE_VALUE) && g < o->n_seg; g++)
            tgi_stage_add_out(s, o->value[g], i, 1);
    }
}

static tg_status give_outputs(tgi_stage *s, cutter *c, int k, tgi_err *err)
{
    note_waiters(c, k, 0);
    list_outputs(s, c, k);
    s->out = tgi_calloc(TGI_TAG_PLAN, (size_t)s->n_out + 1, sizeof *s->out);
    if (s->out)
        list_outputs(s, c, k);
    note_waiters(c, k, 1);
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

static tg_status cut(cutter *c, tgi_stages *s, tgi_err *err)
{
    const tgi_net *net = c->net;
    for (int v = 0; v < net->n_values; v++)
        c->producer[v] = c->waiter[v] = -1;
    for (int i = 0; i < net->n_nodes; i++)
        for (int d = 0; d < net->nodes[i].ctx.n_dst; d++)
            c->producer[net->nodes[i].node->dst[d]] = i;
    find_homes(c);
    sort_by_stage(&c->at_home, c->home, net->n_nodes, c->n);
    sort_by_stage(&c->ending, c->ends, net->n_nodes, c->n);
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

tg_status tgi_stages_cut(const tgi_net *net, tgi_stages *s, tgi_err *err)
{
    const size_t nv = (size_t)net->n_values, nn = (size_t)net->n_nodes;
    const size_t stages = nn + 2; /* one more than there can be */
    int *ints = tgi_calloc(TGI_TAG_PLAN, 5 * nv + 9 * nn + 3 * stages, sizeof *ints),
        *rest = ints;
    unsigned char *flags = tgi_calloc(TGI_TAG_PLAN, 2 * nv + nn + 1, 1);
    tg_status st = TG_E_NOMEM;
    if (ints && flags) {
        cutter c = {
            .net = net,
            .producer = carve(&rest, nv),
            .level = carve(&rest, nn),
            .home = carve(&rest, nn),
            .ends = carve(&rest, nn),
            .stored = flags,
            .at_home = {carve(&rest, stages), carve(&rest, nn)},
            .ending = {carve(&rest, stages), carve(&rest, nn)},
            .keeping = {carve(&rest, stages), carve(&rest, nv)},
            .port = flags + nv,
            .here = flags + 2 * nv,
            .ports = carve(&rest, nv),
            .nodes = carve(&rest, nn),
            .waiter = carve(&rest, nv),
            .walk = {carve(&rest, nn), 0},
            .cone = carve(&rest, nn),
            .met = carve(&rest, nv),
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

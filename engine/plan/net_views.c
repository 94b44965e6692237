/* net_views.c - nodes that need not run, because whoever reads their result can read what they
 * read: concats, nearest upsampling, and the choice of a channel at the end.
 *
 * Each pass goes once over the nodes with a list of who reads what. A node that a pass removes
 * stays in its place, without operands and results, until the pass is over; what its readers
 * get instead was made before it, so the list holds for all nodes that are still to come. */
#include "engine/base/cancel.h"
#include "engine/base/mem.h"
#include "engine/plan/net.h"

#include <string.h>

typedef struct pass {
    tgi_net *net;
    int *first;          /* per value and one more: where its readers are in `reader` */
    int *reader;         /* nodes, in order; one that reads a value twice is there twice */
    unsigned char *gone; /* per node */
} pass;

/* ---- Who reads what ---------------------------------------------------------------------- */

static void each_part(const tgi_net *net, int *at, int *reader)
{
    for (int i = 0; i < net->n_nodes; i++)
        for (int j = 0; j < net->nodes[i].n_operands; j++)
            for (int s = 0; s < net->nodes[i].operand[j].n_seg; s++) {
                const int v = net->nodes[i].operand[j].value[s];
                if (reader)
                    reader[at[v]] = i;
                at[v]++;
            }
}

static tg_status list_readers(pass *p, tgi_err *err)
{
    const tgi_net *net = p->net;
    const size_t nv = (size_t)net->n_values;
    int n = 0;
    p->first = tgi_calloc(TGI_TAG_PLAN, 2 * nv + 2, sizeof *p->first);
    p->gone = tgi_calloc(TGI_TAG_PLAN, (size_t)net->n_nodes + 1, 1);
    if (p->first && p->gone) {
        int *at = p->first + nv + 1;
        each_part(net, at, NULL);
        for (size_t v = 0; v <= nv; v++) {
            const int count = v < nv ? at[v] : 0;
            p->first[v] = n;
            n += count;
        }
        p->reader = tgi_calloc(TGI_TAG_PLAN, (size_t)n + 1, sizeof *p->reader);
        memcpy(at, p->first, nv * sizeof *at);
        if (p->reader)
            each_part(net, at, p->reader);
    }
    if (!p->reader)
        return tgi_fail(err, TG_E_NOMEM, "no memory to list who reads %d values",
                        net->n_values);
    return TG_OK;
}

static void close_pass(pass *p)
{
    tgi_free(p->first);
    tgi_free(p->reader);
    tgi_free(p->gone);
}

/* ---- Concats ----------------------------------------------------------------------------- */

static int is_plain_concat(const tgi_net_node *n)
{
    return strcmp(n->node->op->name, "Concat") == 0 && n->n_epi == 0 && !n->flat;
}

/* Would the consumer still have a tuned kernel if operand j were these segments? */
static int takes_segments(const tgi_net *net, const tgi_net_node *n, int j,
                          const tgi_net_operand *parts)
{
    if (j >= n->ctx.n_src || n->flat)
        return 0; /* epilogue operands are single views, and so are those of arrays */
    tgi_net_node trial = *n;
    trial.operand[j] = *parts;
    tgi_net_pick_variant(net, &trial, 0);
    return trial.variant != NULL;
}

/* Operands of a concat flattened into one list; 0 when there are too many. */
static int flatten(const tgi_net_node *cat, tgi_net_operand *parts)
{
    parts->n_seg = 0;
    for (int j = 0; j < cat->ctx.n_src; j++)
        for (int s = 0; s < cat->operand[j].n_seg; s++) {
            if (parts->n_seg == TGI_MAX_SEG)
                return 0;
            parts->doubled[parts->n_seg] = cat->operand[j].doubled[s];
            parts->value[parts->n_seg++] = cat->operand[j].value[s];
        }
    return parts->n_seg > 0;
}

/* The one part of another layout than the rest, which has the concat's own; -1: all are alike;
 * -2: there are more. */
static int odd_part(const tgi_net *net, const tgi_net_operand *parts, int v)
{
    int odd = -1, alike = 1;
    if (net->be->whole_pixels)
        return -1; /* each part has a block of its own */
    for (int s = 0; s < parts->n_seg; s++) {
        alike = alike && net->values[parts->value[s]].cb == net->values[parts->value[0]].cb;
        if (net->values[parts->value[s]].cb != net->values[v].cb)
            odd = odd == -1 ? s : -2;
    }
    return alike ? -1 : odd;
}

static int reads_value(const tgi_net_node *n, int j, int v)
{
    return n->operand[j].n_seg == 1 && n->operand[j].value[0] == v;
}

static int all_take(const pass *p, int v, const tgi_net_operand *parts)
{
    for (int k = p->first[v]; k < p->first[v + 1]; k++) {
        const tgi_net_node *n = &p->net->nodes[p->reader[k]];
        for (int j = 0; j < n->n_operands; j++)
            if (reads_value(n, j, v) && !takes_segments(p->net, n, j, parts))
                return 0;
    }
    return 1;
}

static void hand_parts(pass *p, int v, const tgi_net_operand *parts)
{
    for (int k = p->first[v]; k < p->first[v + 1]; k++) {
        tgi_net_node *n = &p->net->nodes[p->reader[k]];
        for (int j = 0; j < n->n_operands; j++)
            if (reads_value(n, j, v))
                n->operand[j] = *parts;
    }
}

static void remove_node(pass *p, int at)
{
    p->net->nodes[at].n_operands = p->net->nodes[at].ctx.n_dst = 0;
    p->gone[at] = 1;
}

/* The concat copies part `odd` alone, into the layout of the others. Its value becomes that
 * part: the copy is as wide as the part, not as the whole. */
static void copy_one_part(tgi_net *net, int at, int odd_value)
{
    tgi_net_node *n = &net->nodes[at];
    const int v = n->node->dst[0];
    n->src[0] = n->dst[0] = net->shapes.desc[odd_value];
    net->shapes.desc[v] = net->values[v].ext = net->shapes.desc[odd_value];
    n->consts[0] = NULL;
    n->ctx.n_src = n->n_operands = 1;
    n->operand[0] = (tgi_net_operand){.n_seg = 1, .value = {odd_value}};
}

/* Remove node `at`, or all but one part of it, if it is a Concat that every consumer can read
 * in parts. */
static void make_virtual(pass *p, int at)
{
    tgi_net *net = p->net;
    const tgi_net_node *cat = &net->nodes[at];
    const int v = cat->node->dst[0];
    tgi_net_operand parts;
    if (!is_plain_concat(cat) || net->values[v].is_out || !flatten(cat, &parts))
        return;
    const int odd = odd_part(net, &parts, v);
    if (odd == -1 && all_take(p, v, &parts)) {
        hand_parts(p, v, &parts);
        remove_node(p, at);
    }
    if (odd < 0)
        return;
    const int part = parts.value[odd];
    const int64_t channels = net->values[v].c;
    net->values[v].c = net->values[part].c;
    parts.value[odd] = v;
    if (all_take(p, v, &parts)) {
        hand_parts(p, v, &parts);
        copy_one_part(net, at, part);
    } else {
        net->values[v].c = channels;
    }
}

/* ---- Upsampling -------------------------------------------------------------------------- */

/* Operand with every part that is value v replaced by `from`, doubled. 0: there is none. */
static int doubled_parts(const tgi_net_operand *o, int v, int from, tgi_net_operand *parts)
{
    int n = 0;
    *parts = *o;
    for (int s = 0; s < o->n_seg; s++)
        if (o->value[s] == v) {
            if (o->doubled[s])
                return 0;
            parts->value[s] = from;
            parts->doubled[s] = 1;
            n++;
        }
    return n;
}

/* Can node n read `from`, doubled, wherever it reads v? */
static int takes_doubled(const tgi_net *net, const tgi_net_node *n, int v, int from)
{
    tgi_net_operand parts;
    for (int j = 0; j < n->n_operands; j++)
        for (int s = 0; s < n->operand[j].n_seg; s++)
            if (n->operand[j].value[s] == v &&
                !(doubled_parts(&n->operand[j], v, from, &parts) &&
                  takes_segments(net, n, j, &parts)))
                return 0;
    return 1;
}

/* Remove node `at` if it is upsampling that every consumer can do while it reads. */
static void make_doubled(pass *p, int at)
{
    tgi_net *net = p->net;
    const tgi_net_node *up = &net->nodes[at];
    const int v = up->node->dst[0], from = up->operand[0].value[0];
    tgi_net_operand parts;
    if (up->n_epi || up->flat || net->values[v].is_out || !up->node->op->doubles ||
        up->operand[0].n_seg != 1 || up->operand[0].doubled[0] ||
        !up->node->op->doubles(&up->ctx))
        return;
    for (int k = p->first[v]; k < p->first[v + 1]; k++)
        if (!takes_doubled(net, &net->nodes[p->reader[k]], v, from))
            return;
    for (int k = p->first[v]; k < p->first[v + 1]; k++) {
        tgi_net_node *n = &net->nodes[p->reader[k]];
        for (int j = 0; j < n->n_operands; j++)
            if (doubled_parts(&n->operand[j], v, from, &parts))
                n->operand[j] = parts;
    }
    remove_node(p, at);
}

/* ---- A channel of each pixel ------------------------------------------------------------- */

static int is_made_here(const tgi_net *net, int v)
{
    for (int i = 0; i < net->n_nodes; i++)
        for (int d = 0; d < net->nodes[i].ctx.n_dst; d++)
            if (net->nodes[i].node->dst[d] == v)
                return 1;
    return 0;
}

/* Remove node `at` if all that it yields is an output of the net which the step that makes
 * pixels of it can find itself. */
static void make_picked(pass *p, int at)
{
    tgi_net *net = p->net;
    const tgi_net_node *n = &net->nodes[at];
    const int v = n->node->dst[0], from = n->operand[0].value[0];
    const tgi_pick pick = n->node->op->picks ? n->node->op->picks(&n->ctx) : TGI_PICK_NONE;
    if (!net->be->whole_pixels || pick == TGI_PICK_NONE || n->n_epi || n->flat ||
        !net->values[v].is_out || n->operand[0].n_seg != 1 || n->operand[0].doubled[0] ||
        net->values[from].is_out || !is_made_here(net, from) || p->first[v] < p->first[v + 1])
        return;
    for (int o = 0; o < net->n_out; o++)
        if (net->out[o] == v) {
            net->held[o] = from;
            net->pick[o] = pick;
        }
    net->values[from].is_out = 1;
    remove_node(p, at);
}

/* ---- All passes -------------------------------------------------------------------------- */

/* What is left moves together. Contexts point into their own nodes. */
static void close_ranks(tgi_net *net, const unsigned char *gone)
{
    int to = 0;
    for (int i = 0; i < net->n_nodes; i++) {
        if (gone[i])
            continue;
        tgi_net_node *n = &net->nodes[to++];
        if (n == &net->nodes[i])
            continue;
        *n = net->nodes[i];
        n->ctx.src = n->src;
        n->ctx.dst = n->dst;
        n->ctx.const_src = n->consts;
    }
    net->n_nodes = to;
}

tg_status tgi_net_remove_views(tgi_net *net, tgi_err *err)
{
    static void (*const passes[])(pass * p, int at) = {make_virtual, make_doubled, make_picked};
    for (size_t k = 0; k < sizeof passes / sizeof passes[0]; k++) {
        pass p = {.net = net};
        tg_status st = list_readers(&p, err);
        for (int i = 0; i < net->n_nodes && st == TG_OK; i++)
            if ((st = tgi_check_cancel(err)) == TG_OK)
                passes[k](&p, i);
        if (st == TG_OK)
            close_ranks(net, p.gone);
        close_pass(&p);
        TGI_TRY(st);
    }
    return TG_OK;
}

/* stage.c - makes stages, with the lifetimes of their values, and describes them as text. */
#include "engine/plan/stage.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/base/size.h"
#include "engine/graph/split.h"
#include "engine/plan/stage_cut.h"

#include <stdio.h>
#include <string.h>

/* ---- What the net says ------------------------------------------------------------------- */

int tgi_is_streamed(const tgi_net *net, int v)
{
    const tgi_net_value *t = &net->values[v];
    int64_t pixels = 1;
    for (int a = TGI_STREAM_AXIS; a < net->rank; a++)
        pixels = tgi_max(pixels, t->ext.dim[a]);
    return !t->flat && pixels > 1;
}

int tgi_reads_whole(const tgi_net_node *n, int j)
{
    const tgi_net_operand *o = &n->operand[j];
    const int whole = n->node->op_class == TGI_OP_WHOLE && !(n->node->op->by_rows >> j & 1);
    return j < n->ctx.n_src && o->n_seg && (n->flat || whole) &&
           tgi_is_streamed(n->net, o->value[0]);
}

int tgi_is_whole(const tgi_net_node *n)
{
    for (int j = 0; j < n->ctx.n_src; j++)
        if (tgi_reads_whole(n, j))
            return 1;
    return 0;
}

static int reads_by_rows(const tgi_net_node *n, int v)
{
    for (int j = 0; j < n->n_operands; j++)
        for (int g = 0; g < n->operand[j].n_seg; g++)
            if (n->operand[j].value[g] == v && !tgi_reads_whole(n, j))
                return 1;
    return 0;
}

int tgi_stage_only_looks(const tgi_stage *s, int i)
{
    const int v = s->in[i].value;
    if (!s->in[i].at_once)
        return 0;
    for (int k = 0; k < s->n_nodes; k++)
        if (reads_by_rows(tgi_stage_node(s, k), v))
            return 0;
    for (int o = 0; o < s->n_out; o++)
        if (s->out[o].value == v)
            return 0;
    return 1;
}

/* ---- Pieces ------------------------------------------------------------------------------ */

/* Of one value. Larger pieces are read no faster, and a small plan would have no room for them. */
#define PIECE_BYTES ((size_t)256 << 10)

static size_t pixel_bytes(const tgi_net_value *t)
{
    return (size_t)tgi_align_up(t->c, t->cb) * sizeof(float);
}

int64_t tgi_stage_piece(const tgi_stage *s)
{
    size_t most = 0;
    int64_t unit = 0;
    for (int i = 0; i < s->n_loaded; i++)
        if (s->in[i].in_pieces)
            most = tgi_max(most, pixel_bytes(&s->net->values[s->in[i].value]));
    for (int k = 0; most && k < s->n_nodes; k++) {
        const tgi_variant *v = tgi_stage_node(s, k)->variant;
        unit = tgi_max(unit, v ? v->piece : 0);
    }
    return most ? tgi_max(unit, (int64_t)(PIECE_BYTES / most) / unit * unit) : 0;
}

size_t tgi_stage_piece_bytes(const tgi_stage *s, int v)
{
    return (size_t)tgi_stage_piece(s) * pixel_bytes(&s->net->values[v]);
}

static int comes_in_pieces(const tgi_stage *s, int v)
{
    for (int i = 0; i < s->n_loaded; i++)
        if (s->in[i].value == v)
            return s->in[i].in_pieces;
    return 0;
}

int tgi_stage_looks_at(const tgi_stage *s, int v)
{
    int n = 0;
    for (int k = 0; k < s->n_nodes; k++) {
        const tgi_net_node *of = tgi_stage_node(s, k);
        for (int j = 0; j < of->ctx.n_src; j++)
            for (int g = 0; tgi_reads_whole(of, j) && g < of->operand[j].n_seg; g++)
                n += of->operand[j].value[g] == v;
    }
    return n;
}

uint32_t tgi_stage_pieces_of(const tgi_stage *s, int k)
{
    const tgi_net_node *n = tgi_stage_node(s, k);
    uint32_t bits = 0;
    for (int j = 0; j < n->ctx.n_src; j++)
        if (tgi_reads_whole(n, j) && comes_in_pieces(s, n->operand[j].value[0]))
            bits |= 1u << j;
    return bits;
}

/* Not in pieces what a node that must have it at once reads, or beside what is not in pieces in
 * one operand. 1: something was taken back. */
static int take_back(tgi_stage *s, const tgi_net_node *n)
{
    int changed = 0;
    for (int j = 0; j < n->ctx.n_src; j++) {
        const tgi_net_operand *o = &n->operand[j];
        int all = n->variant && n->variant->piece > 0;
        if (!tgi_reads_whole(n, j))
            continue;
        for (int g = 0; g < o->n_seg; g++)
            all = all && !o->doubled[g] && comes_in_pieces(s, o->value[g]);
        for (int g = 0; !all && g < o->n_seg; g++)
            for (int i = 0; i < s->n_loaded; i++)
                if (s->in[i].value == o->value[g] && s->in[i].in_pieces) {
                    s->in[i].in_pieces = 0;
                    changed = 1;
                }
    }
    return changed;
}

void tgi_stage_agree_on_pieces(tgi_stage *s)
{
    int changed = 1;
    while (changed) {
        changed = 0;
        for (int k = 0; k < s->n_nodes; k++)
            changed |= take_back(s, tgi_stage_node(s, k));
    }
}

/* ---- The stages' structs ----------------------------------------------------------------- */

tg_status tgi_stage_open(tgi_stage *s, const tgi_net *net, int n_nodes, int n_in, tgi_err *err)
{
    *s = (tgi_stage){.net = net};
    s->node = tgi_calloc(TGI_TAG_PLAN, (size_t)n_nodes + 1, sizeof *s->node);
    s->in = tgi_calloc(TGI_TAG_PLAN, (size_t)n_in + 1, sizeof *s->in);
    if (!s->node || !s->in)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a stage of %d nodes", n_nodes);
    return TG_OK;
}

static void close_stage(tgi_stage *s)
{
    tgi_free(s->node);
    tgi_free(s->in);
    tgi_free(s->out);
    tgi_free(s->values);
}

tg_status tgi_stage_lifetimes(tgi_stage *s, tgi_err *err)
{
    if (!s->values)
        s->values = tgi_calloc(TGI_TAG_PLAN, (size_t)s->net->n_values + 1, sizeof *s->values);
    if (!s->values)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a stage of %d nodes", s->n_nodes);
    for (int v = 0; v < s->net->n_values; v++)
        s->values[v] = (tgi_stage_value){0, -1, -1};
    for (int i = 0; i < s->n_loaded; i++)
        s->values[s->in[i].value].live = 1;
    for (int k = 0; k < s->n_nodes; k++) {
        const tgi_net_node *n = tgi_stage_node(s, k);
        for (int d = 0; d < n->ctx.n_dst; d++)
            s->values[n->node->dst[d]] = (tgi_stage_value){1, k, k};
        for (int j = 0; j < n->n_operands; j++)
            for (int i = 0; i < n->operand[j].n_seg; i++)
                s->values[n->operand[j].value[i]].last = k;
    }
    for (int o = 0; o < s->n_out; o++)
        s->values[s->out[o].value].last = s->n_nodes;
    return TG_OK;
}

void tgi_stage_add_out(tgi_stage *s, int v, int whole, int64_t channel)
{
    if (s->out)
        s->out[s->n_out] = (tgi_stage_out){.value = v,
                                           .whole = whole,
                                           .reduced = channel >= 0,
                                           .channel = channel >= 0 ? channel : 0,
                                           .port = -1,
                                           .pick = TGI_PICK_NONE};
    s->n_out++;
}

void tgi_stage_add_out_of_net(tgi_stage *s, const tgi_net *net, int o, int whole)
{
    tgi_stage_add_out(s, net->held[o], whole, -1);
    if (s->out) {
        s->out[s->n_out - 1].pick = net->pick[o];
        s->out[s->n_out - 1].port = o;
    }
}

void tgi_stage_want_all(tgi_stage *s)
{
    for (int a = TGI_STREAM_AXIS; a < s->net->rank && s->n_out > 0; a++)
        s->fit[a - TGI_STREAM_AXIS] = (tgi_fit){.out = tgi_stage_out_dim(s, 0, a)};
}

static tg_status whole_net(const tgi_net *net, tgi_stage *s, tgi_err *err)
{
    TGI_TRY(tgi_stage_open(s, net, net->n_nodes, net->n_in, err));
    s->out = tgi_calloc(TGI_TAG_PLAN, (size_t)net->n_out + 1, sizeof *s->out);
    if (!s->out)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the net's outputs");
    for (int i = 0; i < net->n_nodes; i++) {
        s->node[s->n_nodes++] = i;
        if (tgi_is_whole(&net->nodes[i]) && !s->whole_op)
            s->whole_op = net->nodes[i].node->name;
    }
    for (int i = 0; i < net->n_in; i++)
        s->in[s->n_in++] = (tgi_stage_in){.value = net->in[i]};
    s->n_loaded = s->n_in;
    for (int o = 0; o < net->n_out; o++)
        tgi_stage_add_out_of_net(s, net, o, -1);
    tgi_stage_want_all(s);
    return tgi_stage_lifetimes(s, err);
}

tg_status tgi_stages_new(const tgi_net *net, tgi_stages **out, tgi_err *err)
{
    tgi_stages *s = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *s);
    if (!s)
        return tgi_fail(err, TG_E_NOMEM, "no memory to cut %d nodes into stages", net->n_nodes);
    s->floor_used = -1;
    tg_status st = whole_net(net, &s->one, err);
    if (st == TG_OK)
        st = tgi_stages_cut(net, TGI_SPARES_NOTHING, s, err);
    if (st != TG_OK)
        tgi_stages_free(&s);
    else
        *out = s;
    return st;
}

size_t tgi_stages_held(const tgi_stages *s)
{
    size_t n = s->bytes;
    for (int k = 0; k < s->n; k++)
        if (s->stage[k].values)
            n += ((size_t)s->one.net->n_values + 1) * sizeof *s->stage[k].values;
    return n;
}

void tgi_stages_forget(tgi_stages *s)
{
    tgi_stages_spare_only(s, NULL, 0);
    for (int k = 0; k < s->n; k++) {
        tgi_free(s->stage[k].values);
        s->stage[k].values = NULL;
    }
}

int tgi_stage_hands_on(const tgi_stage *s)
{
    for (int o = 0; o < s->n_out; o++)
        if (s->out[o].port < 0)
            return 1;
    return 0;
}

/* A stage that hands other values on computes of the output what is not wanted, too. */
static void fit_stage(tgi_stage *s, const tgi_fit fit[3])
{
    if (s->n_out == 0 || s->out[0].port != 0 || tgi_stage_hands_on(s))
        return;
    for (int a = 0; a < s->net->rank - TGI_STREAM_AXIS; a++)
        s->fit[a] = fit[a + 5 - s->net->rank];
}

void tgi_stages_fit(tgi_stages *s, const tgi_fit fit[3])
{
    fit_stage(&s->one, fit);
    for (int k = 0; k < s->n; k++)
        fit_stage(&s->stage[k], fit);
    s->floor_used = -1;
}

void tgi_stages_free(tgi_stages **s)
{
    if (!s || !*s)
        return;
    for (int k = 0; k < (*s)->n; k++)
        close_stage(&(*s)->stage[k]);
    close_stage(&(*s)->one);
    tgi_stages_free(&(*s)->sparing);
    tgi_free((*s)->stage);
    tgi_free(*s);
    *s = NULL;
}

/* ---- In words ---------------------------------------------------------------------------- */

static int is_loaded_at_once(const tgi_stage *s, int v)
{
    for (int i = 0; i < s->n_loaded; i++)
        if (s->in[i].value == v && s->in[i].at_once)
            return 1;
    return 0;
}

/* Does a node need at once what this stage itself computes, or what streams into it? */
static int needs_at_once(const tgi_stage *s, const tgi_net_node *n)
{
    for (int j = 0; j < n->ctx.n_src; j++)
        for (int g = 0; tgi_reads_whole(n, j) && g < n->operand[j].n_seg; g++)
            if (!is_loaded_at_once(s, n->operand[j].value[g]))
                return 1;
    return 0;
}

/* Nodes that read a whole extent in the stage itself; *first, if it is NULL, the first of them. Several in a row that
 * do the work of one of the model's have its name, and are one. w: their names go there, or NULL. */
static int count_whole(const tgi_stage *s, const tgi_node **first, tgi_jw *w)
{
    int n = 0;
    const char *last = NULL;
    for (int k = 0; k < s->n_nodes; k++) {
        const tgi_node *node = tgi_stage_node(s, k)->node;
        if (!needs_at_once(s, tgi_stage_node(s, k)) || (last && !strcmp(last, node->name)))
            continue;
        *first = *first ? *first : node;
        last = node->name;
        n++;
        if (w)
            tgi_jw_str(w, NULL, last);
    }
    return n;
}

void tgi_stage_whole_text(const tgi_stage *s, char *buf, size_t cap)
{
    const tgi_node *first = NULL;
    const int n = count_whole(s, &first, NULL);
    if (!first)
        snprintf(buf, cap, "%s", "");
    else if (n == 1)
        snprintf(buf, cap, "%s \"%.60s\" reads the whole image", tgi_node_op_name(first),
                 first->name);
    else
        snprintf(buf, cap, "%s \"%.60s\" and %d more read the whole image",
                 tgi_node_op_name(first), first->name, n - 1);
}

void tgi_stages_at_once_text(const tgi_stages *s, char *buf, size_t cap)
{
    const tgi_node *first = NULL;
    int n = 0;
    for (int k = 0; k < s->n; k++)
        n += count_whole(&s->stage[k], &first, NULL);
    if (!first)
        snprintf(buf, cap, "%s", "");
    else if (n == 1)
        snprintf(buf, cap, "%s \"%.60s\" needs all pixels of an operand at once",
                 tgi_node_op_name(first), first->name);
    else
        snprintf(buf, cap, "%s \"%.60s\" and %d more need all pixels of an operand at once",
                 tgi_node_op_name(first), first->name, n - 1);
}

/* Of the operands that a node needs at once in the stage itself. */
static size_t bytes_at_once(const tgi_stage *s, const tgi_net_node *n)
{
    size_t bytes = 0;
    for (int j = 0; j < n->ctx.n_src; j++)
        for (int g = 0; tgi_reads_whole(n, j) && g < n->operand[j].n_seg; g++)
            if (!is_loaded_at_once(s, n->operand[j].value[g]))
                bytes = tgi_sat_add(bytes, tgi_net_dense_bytes(s->net, n->operand[j].value[g]));
    return bytes;
}

size_t tgi_stages_largest_text(const tgi_stages *s, char *buf, size_t cap)
{
    size_t most = 0;
    char size[32];
    buf[0] = 0;
    for (int k = 0; k < s->n; k++)
        for (int i = 0; i < s->stage[k].n_nodes; i++) {
            const tgi_net_node *n = tgi_stage_node(&s->stage[k], i);
            const size_t bytes = bytes_at_once(&s->stage[k], n);
            if (bytes <= most)
                continue;
            most = bytes;
            snprintf(buf, cap,
                     "%s \"%.60s\" in stage %d needs all pixels of an operand at once, %s",
                     tgi_node_op_name(n->node), n->node->name, k + 1,
                     tgi_size_text(bytes, size, sizeof size));
        }
    return most;
}

void tgi_stages_at_once_json(tgi_jw *w, const tgi_stages *s)
{
    const tgi_node *first = NULL;
    int n = 0;
    for (int k = 0; k < s->n; k++)
        n += count_whole(&s->stage[k], &first, NULL);
    if (n < 2)
        return;
    tgi_jw_begin(w, "whole_image_only_operators", '[');
    for (int k = 0; k < s->n; k++)
        count_whole(&s->stage[k], &first, w);
    tgi_jw_end(w, ']');
}

static const char *name_of(const tgi_net *net, int v)
{
    return net->g->values[v].name;
}

/* A list of the values at those outputs that are (not) reductions. */
static void put_outs(tgi_jw *w, const char *key, const tgi_stage *s, int reduced)
{
    tgi_jw_begin(w, key, '[');
    for (int o = 0; o < s->n_out; o++)
        if (s->out[o].reduced == reduced)
            tgi_jw_str(w, NULL, name_of(s->net, s->out[o].value));
    tgi_jw_end(w, ']');
}

/* Is a value of that name among the inputs before i? A rewrite may have made several of one. */
static int named_before(const tgi_stage *s, int i)
{
    const char *name = name_of(s->net, s->in[i].value);
    for (int k = 0; k < i; k++)
        if (s->in[k].recomputed == s->in[i].recomputed &&
            strcmp(name_of(s->net, s->in[k].value), name) == 0)
            return 1;
    return 0;
}

static void put_ins(tgi_jw *w, const char *key, const tgi_stage *s, int recomputed)
{
    tgi_jw_begin(w, key, '[');
    for (int i = 0; i < s->n_in; i++)
        if (s->in[i].recomputed == recomputed && !named_before(s, i))
            tgi_jw_str(w, NULL, name_of(s->net, s->in[i].value));
    tgi_jw_end(w, ']');
}

static void put_cut(tgi_jw *w, int k, const tgi_stage *s, const tgi_stage_out *o)
{
    const tgi_node *n = s->net->nodes[o->whole].node;
    tgi_jw_begin(w, NULL, '{');
    tgi_jw_int(w, "after_stage", k + 1);
    tgi_jw_str(w, "value", name_of(s->net, o->value));
    tgi_jw_str(w, "operator", tgi_node_op_name(n));
    tgi_jw_str(w, "node", n->name);
    tgi_jw_end(w, '}');
}

void tgi_stages_json(tgi_jw *w, const tgi_stages *s, const char *at_once, int detail)
{
    tgi_jw_int(w, "stages", s->n);
    tgi_jw_begin(w, "stage_cuts", '[');
    for (int k = 0; k + 1 < s->n; k++)
        for (int o = 0; o < s->stage[k].n_out; o++)
            if (s->stage[k].out[o].whole >= 0 && s->stage[k].out[o].channel == 0)
                put_cut(w, k, &s->stage[k], &s->stage[k].out[o]);
    tgi_jw_end(w, ']');
    if (at_once[0])
        tgi_jw_str(w, "whole_image_only", at_once);
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

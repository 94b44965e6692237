/* staged_text.c - adds up the stages of a plan and describes them. */
#include "engine/plan/staged_text.h"

#include "engine/base/arith.h"

/* ---- Sums -------------------------------------------------------------------------------- */

static int recomputes_value(const tgi_stage *s, int v)
{
    for (int i = s->n_loaded; i < s->n_in; i++)
        if (s->in[i].value == v)
            return 1;
    return 0;
}

/* Is position k of the stage a node that belongs to another one? */
static int is_recomputed(const tgi_stage *s, int k)
{
    const tgi_net_node *n = tgi_stage_node(s, k);
    for (int d = 0; d < n->ctx.n_dst; d++)
        if (recomputes_value(s, n->node->dst[d]))
            return 1;
    return 0;
}

static void add_stage(tgi_staged_sums *sum, const tgi_tiling *t)
{
    sum->cells += t->cells;
    sum->bands += t->bands;
    sum->flops += t->flops;
    for (int k = 0; k < t->stage->n_nodes; k++)
        if (!is_recomputed(t->stage, k))
            sum->once += t->node_flops[2 * k + 1];
    for (int a = 0; a < 3; a++)
        sum->halo[a] = tgi_max(sum->halo[a], t->halo[a]);
    if (t->lower_bound_bytes > sum->lower_bound_bytes)
        sum->lower_bound_bytes = t->lower_bound_bytes;
}

tgi_staged_sums tgi_staged_sum(const tgi_staged *s)
{
    tgi_staged_sums sum = {0};
    for (int k = 0; k < s->n; k++)
        add_stage(&sum, &s->tiling[k]);
    return sum;
}

double tgi_staged_recomputed(const tgi_staged *s)
{
    const tgi_staged_sums sum = tgi_staged_sum(s);
    return sum.flops > sum.once && sum.once > 0 ? sum.flops / sum.once - 1.0 : 0.0;
}

/* ---- As JSON ----------------------------------------------------------------------------- */

static const char *name_of(const tgi_net *net, int v)
{
    return net->g->values[v].name;
}

/* A reduction, by the model's node. */
static void put_numbers(tgi_jw *w, const tgi_node *n)
{
    tgi_jw_begin(w, NULL, '{');
    tgi_jw_str(w, "operator", tgi_node_op_name(n));
    tgi_jw_str(w, "node", n->name);
    tgi_jw_end(w, '}');
}

enum { FROM_NETWORK, FROM_STAGE, NUMBERS };

static int origin_of(const tgi_staged *s, int v)
{
    return tgi_net_port(s->cut->one.net, v) >= 0 ? FROM_NETWORK
           : tgi_gathered_of(s, v)               ? NUMBERS
                                                 : FROM_STAGE;
}

static void put_loaded(tgi_jw *w, const char *key, const tgi_staged *s, const tgi_stage *t,
                       int origin)
{
    tgi_jw_begin(w, key, '[');
    for (int i = 0; i < t->n_loaded; i++) {
        const int v = t->in[i].value;
        if (origin_of(s, v) != origin)
            continue;
        if (origin == NUMBERS)
            put_numbers(w, t->net->nodes[tgi_gathered_of(s, v)->node].node);
        else
            tgi_jw_str(w, NULL, name_of(t->net, v));
    }
    tgi_jw_end(w, ']');
}

/* What a node looks at as a whole: in pieces, or all of it. */
static void put_looks(tgi_jw *w, const tgi_stage *t, int in_pieces)
{
    tgi_jw_begin(w, in_pieces ? "reads_in_pieces" : "reads_at_once", '[');
    for (int i = 0; i < t->n_loaded; i++)
        if (t->in[i].at_once && t->in[i].in_pieces == in_pieces)
            tgi_jw_str(w, NULL, name_of(t->net, t->in[i].value));
    tgi_jw_end(w, ']');
}

static void put_kept(tgi_jw *w, const tgi_staged *s, int k)
{
    tgi_jw_begin(w, "keeps", '[');
    for (int i = 0; i < s->n_kept; i++) {
        const tgi_kept_value *v = &s->kept[i];
        if (v->made != k)
            continue;
        tgi_jw_begin(w, NULL, '{');
        tgi_jw_str(w, "value", name_of(s->cut->one.net, v->value));
        tgi_jw_uint(w, "bytes", v->bytes);
        tgi_jw_bool(w, "on_disk", v->on_disk);
        tgi_jw_int(w, "until_stage", v->last + 1);
        tgi_jw_end(w, '}');
    }
    tgi_jw_end(w, ']');
}

/* What stage k gathers, once for each node, and which outputs of the network it hands out. */
static void put_rest(tgi_jw *w, const tgi_stage *t)
{
    tgi_jw_begin(w, "gathers", '[');
    for (int o = 0; o < t->n_out; o++)
        if (t->out[o].reduced && t->out[o].channel == 0)
            put_numbers(w, t->net->nodes[t->out[o].whole].node);
    tgi_jw_end(w, ']');
    tgi_jw_begin(w, "outputs", '[');
    for (int o = 0; o < t->n_out; o++)
        if (t->out[o].port >= 0)
            tgi_jw_str(w, NULL, name_of(t->net, t->net->out[t->out[o].port]));
    tgi_jw_end(w, ']');
}

static void put_stage(tgi_jw *w, const tgi_staged *s, int k)
{
    const tgi_stage *t = &s->cut->stage[k];
    const tgi_tiling *cut = &s->tiling[k];
    int recomputed = 0;
    for (int i = 0; i < t->n_nodes; i++)
        recomputed += is_recomputed(t, i);
    tgi_jw_begin(w, NULL, '{');
    tgi_jw_int(w, "stage", k + 1);
    tgi_jw_int(w, "nodes", t->n_nodes);
    tgi_jw_int(w, "recomputed_nodes", recomputed);
    put_loaded(w, "reads_inputs", s, t, FROM_NETWORK);
    put_loaded(w, "reads_kept", s, t, FROM_STAGE);
    put_loaded(w, "reads_numbers", s, t, NUMBERS);
    put_looks(w, t, 0);
    put_looks(w, t, 1);
    put_kept(w, s, k);
    put_rest(w, t);
    tgi_jw_begin(w, "tile", '[');
    for (int a = 0; a < 3; a++)
        tgi_jw_int(w, NULL, cut->cut[a]);
    tgi_jw_end(w, ']');
    tgi_jw_int(w, "strips", cut->cells);
    tgi_jw_int(w, "band_rows", cut->band);
    tgi_jw_int(w, "bands", cut->bands);
    tgi_jw_uint(w, "arena_bytes", cut->arena_bytes);
    if (t->whole_op)
        tgi_jw_str(w, "at_once", t->whole_op);
    tgi_jw_end(w, '}');
}

void tgi_staged_json(tgi_jw *w, const tgi_staged *s)
{
    tgi_jw_begin(w, "staged", '{');
    tgi_jw_int(w, "kept_values", s->n_kept);
    tgi_jw_uint(w, "kept_bytes", s->kept_bytes);
    tgi_jw_uint(w, "kept_disk_bytes", s->disk_bytes);
    tgi_jw_uint(w, "moved_disk_bytes", s->moved_bytes);
    tgi_jw_begin(w, "stages", '[');
    for (int k = 0; k < s->n; k++)
        put_stage(w, s, k);
    tgi_jw_end(w, ']');
    tgi_jw_end(w, '}');
}

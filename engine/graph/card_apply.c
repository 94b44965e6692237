/* card_apply.c - steps of constants as nodes of the graph: before its inputs, and behind its outputs.
 *
 * They are put there before the graph is finished, so shapes, fusion, planning and every verb see one network. A step is
 * written with operators that work on images row by row: x > t is Relu(Sign(x - t)), a cut towards 0 is
 * Sign(x) * Floor(Abs(x)). */
#include "engine/graph/card.h"

#include "engine/graph/graph_priv.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define OPSET 19 /* whose operators these are, whatever the model's */

typedef struct making {
    tgi_graph *g;
    const tgi_card_port *port;
    const char *step; /* for names */
    int x;            /* the value so far */
    int count;
} making;

/* ---- Nodes ------------------------------------------------------------------------------- */

static void name_next(making *m, char *name, size_t cap)
{
    snprintf(name, cap, "%s:%s:%d", m->port->name, m->step, m->count++);
}

static tg_status node(making *m, const char *op, int n, const int *src, int *out, tgi_err *err)
{
    char name[128];
    tgi_node *made;
    int v; /* *out may be one of src */
    name_next(m, name, sizeof name);
    TGI_TRY(tgi_graph_add_value(m->g, name, &v, err));
    m->g->values[v].decl.dtype = TG_DTYPE_F32;
    TGI_TRY(tgi_graph_add_node(m->g, op, name, n, src, 1, &v, &made, err));
    made->opset = OPSET;
    *out = v;
    return TG_OK;
}

static tg_status unary(making *m, const char *op, tgi_err *err)
{
    return node(m, op, 1, &m->x, &m->x, err);
}

/* Numbers for each channel, or one, as a constant that is broadcast over the tensor. */
static tg_status constant(making *m, const double *v, int n, int rank, int *out, tgi_err *err)
{
    char name[128];
    tgi_desc d = {.dtype = TG_DTYPE_F32, .rank = rank};
    float *f = tgi_graph_own(m->g, (size_t)n * sizeof *f, err);
    if (!f)
        return TG_E_NOMEM;
    for (int i = 0; i < n; i++)
        f[i] = (float)v[i];
    for (int i = 0; i < rank; i++)
        d.dim[i] = 1;
    if (n > 1)
        d.dim[tgi_card_axis_of(m->port, 'c')] = n;
    name_next(m, name, sizeof name);
    return tgi_graph_add_const(m->g, name, &d, f, 1, out, err);
}

static tg_status binary(making *m, const char *op, const double *v, int n, tgi_err *err)
{
    int src[2] = {m->x, -1};
    TGI_TRY(constant(m, v, n, m->port->n_axes, &src[1], err));
    return node(m, op, 2, src, &m->x, err);
}

/* ---- Steps ------------------------------------------------------------------------------- */

static int all_are(const double *v, int n, double x)
{
    for (int i = 0; i < n; i++)
        if (v[i] != x)
            return 0;
    return 1;
}

static tg_status make_linear(making *m, const tgi_step *s, tgi_err *err)
{
    if (!all_are(s->a, s->n, 1))
        TGI_TRY(binary(m, "Mul", s->a, s->n, err));
    return all_are(s->b, s->n, 0) ? TG_OK : binary(m, "Add", s->b, s->n, err);
}

static tg_status clip(making *m, double lo, double hi, tgi_err *err)
{
    int src[3] = {m->x, -1, -1};
    if (isfinite(lo))
        TGI_TRY(constant(m, &lo, 1, 0, &src[1], err));
    if (isfinite(hi))
        TGI_TRY(constant(m, &hi, 1, 0, &src[2], err));
    return node(m, "Clip", src[2] >= 0 ? 3 : 2, src, &m->x, err);
}

static tg_status make_binarize(making *m, const tgi_step *s, tgi_err *err)
{
    TGI_TRY(binary(m, "Sub", s->a, s->n, err));
    TGI_TRY(unary(m, "Sign", err));
    return unary(m, "Relu", err);
}

/* Towards 0, and held in the type's range. */
static tg_status make_cast(making *m, const tgi_step *s, tgi_err *err)
{
    double lo, hi;
    int src[2] = {m->x, m->x};
    if (tgi_dtype_is_float(s->type))
        return TG_OK;
    TGI_TRY(node(m, "Sign", 1, &m->x, &src[0], err));
    TGI_TRY(node(m, "Abs", 1, &m->x, &src[1], err));
    TGI_TRY(node(m, "Floor", 1, &src[1], &src[1], err));
    TGI_TRY(node(m, "Mul", 2, src, &m->x, err));
    tgi_dtype_range(s->type, &lo, &hi);
    return clip(m, lo, hi, err);
}

static tg_status make_softmax(making *m, tgi_err *err)
{
    TGI_TRY(unary(m, "Softmax", err));
    return tgi_attr_set_int(&m->g->nodes[m->g->n_nodes - 1], "axis",
                            tgi_card_axis_of(m->port, 'c'))
               ? TG_OK
               : tgi_fail(err, TG_E_INTERNAL, "Softmax takes no axis");
}

/* Mean over the axes that are measured together. */
static tg_status mean(making *m, const tgi_step *s, int x, int *out, tgi_err *err)
{
    int64_t axes[TGI_CARD_AXES];
    int src[2] = {x, -1}, n = 0;
    char name[128];
    for (int i = 0; i < m->port->n_axes; i++) {
        const char a = m->port->axis[i].letter;
        if (a != 'b' && (a != 'c' || !s->by_channel))
            axes[n++] = i;
    }
    const tgi_desc d = {TG_DTYPE_I64, 1, {n}};
    name_next(m, name, sizeof name);
    TGI_TRY(tgi_graph_add_const(m->g, name, &d, axes, 0, &src[1], err));
    return node(m, "ReduceMean", 2, src, out, err);
}

/* (x - mean) / (deviation + eps) of the network's own output. */
static tg_status make_centre(making *m, const tgi_step *s, tgi_err *err)
{
    int two[2] = {m->x, -1}, square[2], v;
    TGI_TRY(mean(m, s, m->x, &two[1], err));
    TGI_TRY(node(m, "Sub", 2, two, &square[0], err));
    square[1] = square[0];
    two[0] = square[0];
    TGI_TRY(node(m, "Mul", 2, square, &v, err));
    TGI_TRY(mean(m, s, v, &v, err));
    TGI_TRY(node(m, "Sqrt", 1, &v, &m->x, err));
    TGI_TRY(binary(m, "Add", &s->eps, 1, err));
    two[1] = m->x;
    return node(m, "Div", 2, two, &m->x, err);
}

static tg_status make(making *m, const tgi_step *s, tgi_err *err)
{
    m->step = s->name;
    switch (s->kind) {
    case TGI_STEP_LINEAR:
        return make_linear(m, s, err);
    case TGI_STEP_CLIP:
        return clip(m, s->a[0], s->b[0], err);
    case TGI_STEP_BINARIZE:
        return make_binarize(m, s, err);
    case TGI_STEP_SIGMOID:
        return unary(m, "Sigmoid", err);
    case TGI_STEP_SOFTMAX:
        return make_softmax(m, err);
    case TGI_STEP_CAST:
        return make_cast(m, s, err);
    case TGI_STEP_MATCH: /* what of it is the input's the store does */
    case TGI_STEP_ZSCORE:
        return make_centre(m, s, err);
    case TGI_STEP_RANGE: /* the input's: the store does it */
        return TG_OK;
    }
    return TG_OK;
}

/* ---- Ports ------------------------------------------------------------------------------- */

/* Everybody who read the input reads what the steps make of it. */
static tg_status before(const tgi_card_port *p, tgi_graph *g, tgi_port *port, tgi_err *err)
{
    making m = {.g = g, .port = p, .x = port->value};
    const int was = port->value, first = g->n_nodes;
    if (p->n_loaded == p->n_step)
        return TG_OK;
    for (int i = p->n_loaded; i < p->n_step; i++)
        TGI_TRY(make(&m, &p->step[i], err));
    if (m.x == was)
        return TG_OK;
    for (int i = 0; i < first; i++)
        for (int k = 0; k < g->nodes[i].n_src; k++)
            if (g->nodes[i].src[k] == was)
                TGI_TRY(tgi_graph_set_src(g, i, k, m.x, err));
    for (int o = 0; o < g->n_out; o++)
        if (g->out[o].value == was)
            g->out[o].value = m.x;
    return tgi_graph_note(g, err, "steps of the description before \"%s\"", port->name);
}

static tg_status behind(const tgi_card_port *p, tgi_graph *g, tgi_port *port, tgi_err *err)
{
    making m = {.g = g, .port = p, .x = port->value};
    for (int i = 0; i < p->n_step; i++)
        TGI_TRY(make(&m, &p->step[i], err));
    if (m.x == port->value)
        return TG_OK;
    port->value = m.x;
    port->file_dtype = TG_DTYPE_F32;
    return tgi_graph_note(g, err, "steps of the description behind \"%s\"", port->name);
}

static tg_status check_port(const tgi_card_port *p, const tgi_port *port, const char *what,
                            tgi_err *err)
{
    if (port->file_rank > 0 && port->file_rank != p->n_axes)
        return tgi_fail(err, TG_E_FORMAT,
                        "%s \"%s\" has %d axes in the description, and %d in the network", what,
                        p->name, p->n_axes, port->file_rank);
    for (int i = 0; port->file_rank > 0 && i < p->n_axes; i++) {
        const tgi_card_axis *a = &p->axis[i];
        const int64_t is = port->file_dim[i];
        if (is > 0 && a->size > 0 && a->step == 0 && is != a->size)
            return tgi_fail(err, TG_E_FORMAT,
                            "%s \"%s\": the axis %c has %lld entries in the description, and "
                            "%lld in the network",
                            what, p->name, a->letter, (long long)a->size, (long long)is);
    }
    return TG_OK;
}

/* Images feed the first input; to others go arrays, as they are. */
static tg_status check_measured(const tgi_card *card, tgi_err *err)
{
    for (int i = 1; i < card->n_in; i++)
        if (card->in[i].n_loaded)
            return tgi_fail(
                err, TG_E_UNSUPPORTED,
                "input \"%s\": %s takes numbers of what is read, which is done for the first "
                "input alone: --normalize none, and arrays that were normalised before",
                card->in[i].name, card->in[i].step[card->in[i].n_loaded - 1].name);
    return TG_OK;
}

tg_status tgi_card_apply(const tgi_card *card, int bare, tgi_graph *g, tgi_err *err)
{
    if (card->planned)
        return TG_OK; /* all is done while pixels are loaded */
    if (g->n_in != card->n_in || g->n_out != card->n_out)
        return tgi_fail(
            err, TG_E_FORMAT,
            "the network takes %d and gives %d tensors, its description says %d and "
            "%d",
            g->n_in, g->n_out, card->n_in, card->n_out);
    if (!bare)
        TGI_TRY(check_measured(card, err));
    for (int i = 0; i < g->n_in; i++)
        TGI_TRY(check_port(&card->in[i], &g->in[i], "input", err));
    for (int o = 0; o < g->n_out; o++)
        TGI_TRY(check_port(&card->out[o], &g->out[o], "output", err));
    for (int i = 0; i < g->n_in && !bare; i++)
        TGI_TRY(before(&card->in[i], g, &g->in[i], err));
    for (int o = 0; o < g->n_out; o++)
        TGI_TRY(behind(&card->out[o], g, &g->out[o], err));
    return TG_OK;
}

/* ---- Once it is finished ----------------------------------------------------------------- */

/* Axis `at` of the graph (0 batch, 1 channel, then space) is the one that the description calls `letter`. */
static tg_status check_axis(const tgi_card_port *p, const tgi_port *port, int at, char letter,
                            tgi_err *err)
{
    const int says = tgi_card_axis_of(p, letter), is = port->perm[at];
    return is < 0 || says < 0 || says == is
               ? TG_OK
               : tgi_fail(err, TG_E_FORMAT,
                          "\"%s\": %c is axis %d in the description, and the network uses axis "
                          "%d as that",
                          p->name, letter, says, is);
}

static int64_t gcd(int64_t a, int64_t b)
{
    return b ? gcd(b, a % b) : a;
}

/* The network's own rule is divisor * k + remainder; the description's size + k * step. What holds for both. */
static tg_status narrow(tgi_graph *g, int k, const tgi_card_axis *a, tgi_err *err)
{
    const int64_t d = g->divisor[k] > 0 ? g->divisor[k] : 1, s = a->step;
    const int64_t both = d / gcd(d, s) * s;
    for (int64_t n = a->size; n < a->size + both; n += s) {
        if ((n - g->remainder[k]) % d != 0 || n < 1)
            continue;
        g->divisor[k] = both;
        g->remainder[k] = n % both;
        while (n < g->minimum[k])
            n += both;
        g->minimum[k] = n;
        return TG_OK;
    }
    return tgi_fail(err, TG_E_FORMAT,
                    "the sizes of axis %c in the description (%lld and steps of %lld) are none "
                    "that the network takes",
                    a->letter, (long long)a->size, (long long)s);
}

static tg_status check_plan(const tgi_card *card, const tgi_graph *g, tgi_err *err)
{
    const tgi_port *p = &g->in[0];
    const int64_t channels = p->perm[1] >= 0 ? p->file_dim[p->perm[1]] : 1;
    if (channels > 0 && channels != card->planned)
        return tgi_fail(err, TG_E_FORMAT,
                        "the plans have %d channels, and the network takes %lld", card->planned,
                        (long long)channels);
    if (!card->plan[g->spatial == 3].is)
        return tgi_fail(err, TG_E_FORMAT,
                        "the plans have no configuration of %d axes, and the network has them",
                        g->spatial);
    return TG_OK;
}

tg_status tgi_card_check(const tgi_card *card, tgi_graph *g, tgi_err *err)
{
    const tgi_card_port *p = &card->in[0];
    const char *axes = g->spatial == 3 ? "bczyx" : "bcyx";
    if (card->planned)
        return check_plan(card, g, err);
    for (int k = 0; axes[k]; k++)
        TGI_TRY(check_axis(p, &g->in[0], k, axes[k], err));
    for (int k = 3 - g->spatial; k < 3; k++) {
        const int i = tgi_card_axis_of(p, "zyx"[k]);
        if (i >= 0 && p->axis[i].step > 0 && p->axis[i].size > 0 && !g->fixed_size)
            TGI_TRY(narrow(g, k, &p->axis[i], err));
    }
    return TG_OK;
}

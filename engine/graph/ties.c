/* ties.c - inputs that hold what an output gave of the frame before (tgi_graph_tie): which they are, and the ratio of their extents to
 * the image's, which files seldom declare. */
#include "engine/graph/graph_priv.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"

#include <stdio.h>
#include <string.h>

/* ---- Which ------------------------------------------------------------------------------- */

static int port_of(const tgi_port *p, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(p[i].name, name) == 0)
            return i;
    return -1;
}

/* "a, b, c", as far as there is room. */
static const char *names_of(const tgi_port *p, int n, char *text, size_t cap)
{
    size_t at = 0;
    text[0] = 0;
    for (int i = 0; i < n && at + 1 < cap; i++)
        at += (size_t)snprintf(text + at, cap - at, "%s\"%.40s\"", i ? ", " : "", p[i].name);
    return text;
}

static tg_status find_ports(const tgi_graph *g, const tgi_tie *tie, int *out, int *in,
                            tgi_err *err)
{
    char text[200];
    *out = tie->out[0] ? port_of(g->out, g->n_out, tie->out) : TGI_TIED_TO_FILE;
    *in = port_of(g->in, g->n_in, tie->in);
    if (*in < 0 && !tie->out[0])
        return tgi_fail(err, TG_E_ARG, "--constant: the network has no input \"%s\", it has %s",
                        tie->in, names_of(g->in, g->n_in, text, sizeof text));
    if (*out == -1)
        return tgi_fail(err, TG_E_ARG,
                        "--state %s=%s: the network has no output \"%s\", it has %s", tie->out,
                        tie->in, tie->out, names_of(g->out, g->n_out, text, sizeof text));
    if (*in < 0)
        return tgi_fail(err, TG_E_ARG,
                        "--state %s=%s: the network has no input \"%s\", it has %s", tie->out,
                        tie->in, tie->in, names_of(g->in, g->n_in, text, sizeof text));
    return TG_OK;
}

/* Ports by their `last`, those of one in their order. moved[i]: where port i is now. */
static void move_last(tgi_port *p, int n, const unsigned char *last, int *moved)
{
    tgi_port copy[TGI_MAX_PORTS];
    int at = 0;
    memcpy(copy, p, (size_t)n * sizeof *p);
    for (int turn = 0; turn < 3; turn++)
        for (int i = 0; i < n; i++)
            if (last[i] == turn) {
                moved[i] = at;
                p[at++] = copy[i];
            }
}

/* All inputs are named: the constant that follows the image's channels in its own input, the one that declares most of
 * them; -1: none. */
static int own_constant(const tgi_graph *g, const tgi_tie *tie, int n)
{
    int own = -1;
    int64_t most = -1;
    for (int k = 0; k < n; k++) {
        const int i = tie[k].out[0] ? -1 : port_of(g->in, g->n_in, tie[k].in);
        const int64_t c = i < 0 ? -1 : g->in[i].file_rank > 1 ? g->in[i].file_dim[1] : 0;
        if (c > most) {
            most = c;
            own = k;
        }
    }
    return own;
}

/* Another port of what output o gives, of its name; its number. */
static tg_status again(tgi_graph *g, int o, int *made, tgi_err *err)
{
    char *const name = tgi_strdup(TGI_TAG_GRAPH, g->out[o].name);
    const tg_status st = name ? tgi_graph_add_output(g, g->out[o].value, err)
                              : tgi_fail(err, TG_E_NOMEM, "no memory for a port");
    if (st != TG_OK) {
        tgi_free(name);
        return st;
    }
    tgi_port *p = &g->out[g->n_out - 1];
    tgi_free(p->name); /* of the value, which a description's steps name */
    *p = g->out[o];
    p->name = name;
    *made = g->n_out - 1;
    return TG_OK;
}

/* What is written, and what each input gets, is an output of its own from here on: it goes to one place. */
static tg_status part_ports(tgi_graph *g, tgi_err *err)
{
    int *const tied = tgi_priv(g)->tied_to;
    for (int i = 0; i < g->n_in; i++) {
        int taken = tied[i] == 0;
        for (int k = 0; k < i; k++)
            taken |= tied[k] == tied[i];
        if (tied[i] >= 0 && taken)
            TGI_TRY(again(g, tied[i], &tied[i], err));
    }
    return TG_OK;
}

tg_status tgi_graph_tie(tgi_graph *g, const tgi_tie *tie, int n, tgi_err *err)
{
    unsigned char in_last[TGI_MAX_PORTS] = {0}, out_last[TGI_MAX_PORTS] = {0};
    int out[TGI_MAX_PORTS], in[TGI_MAX_PORTS], moved_in[TGI_MAX_PORTS],
        moved_out[TGI_MAX_PORTS];
    tgi_graph_priv *p = tgi_priv(g);
    if (!n)
        return TG_OK;
    const int own = g->n_in == n ? own_constant(g, tie, n) : -1;
    for (int k = 0; k < n; k++) {
        TGI_TRY(find_ports(g, &tie[k], &out[k], &in[k], err));
        for (int i = 0; i < k; i++)
            if (in[i] == in[k])
                return tgi_fail(err, TG_E_ARG,
                                "--state, --constant: input \"%s\" is named twice", tie[k].in);
        if (k == own)
            continue;
        in_last[in[k]] = out[k] < 0 ? 1 : 2;
        if (out[k] >= 0)
            out_last[out[k]] = 1;
        p->n_tied += out[k] >= 0;
    }
    if (g->n_in != n + (own < 0))
        return tgi_fail(
            err, TG_E_ARG,
            g->n_in == n
                ? "--state: all %d inputs of the network are state, and none is left "
                  "for the image"
                : "--state: the network has %d inputs, and all but one have to be state",
            g->n_in);
    move_last(g->in, g->n_in, in_last, moved_in);
    move_last(g->out, g->n_out, out_last, moved_out);
    for (int k = 0; k < n; k++)
        if (k != own)
            p->tied_to[moved_in[in[k]]] = out[k] < 0 ? out[k] : moved_out[out[k]];
    return part_ports(g, err);
}

int tgi_graph_tied_to(const tgi_graph *g, int in)
{
    return tgi_priv(g)->tied_to[in];
}

int tgi_graph_is_carried(const tgi_graph *g, int out)
{
    int yes = 0;
    for (int i = 0; i < g->n_in; i++)
        yes |= tgi_priv(g)->tied_to[i] == out;
    return yes;
}

tg_status tgi_ties_hold(const tgi_graph *g, const tgi_desc *in, const tgi_shapes *s,
                        tgi_err *err)
{
    const tgi_graph_priv *p = tgi_priv(g);
    char a[96], b[96];
    for (int i = 0; i < g->n_in && p->n_tied; i++) {
        const int o = p->tied_to[i];
        if (o < 0 || tgi_desc_same_shape(&in[i], &s->desc[g->out[o].value]))
            continue;
        return tgi_fail(
            err, TG_E_FORMAT,
            "--state %s=%s: the output is %s, the input %s: what it holds of the frame "
            "before has another shape",
            g->out[o].name, g->in[i].name,
            tgi_desc_text(&s->desc[g->out[o].value], a, sizeof a),
            tgi_desc_text(&in[i], b, sizeof b));
    }
    return TG_OK;
}

/* ---- Ratios ------------------------------------------------------------------------------ */

static const struct {
    int up, down;
} ratios[] = {{1, 1}, {1, 2}, {1, 4}, {1, 8}, {1, 16}, {1, 32}, {2, 1}, {4, 1}, {8, 1}, {3, 1}};
#define N_RATIOS ((int)(sizeof ratios / sizeof ratios[0]))

static void set_ratio(tgi_graph_priv *p, int port, int64_t up, int64_t down)
{
    p->ratio[port].up = up;
    p->ratio[port].down = down;
}

/* States as levels of a pyramid: the first or the last one is the finest, of the image's size or half of it. */
static void set_pyramid(tgi_graph *g, int64_t k)
{
    int level = (int)(k & 1);
    const int n = tgi_priv(g)->n_tied;
    for (int i = 1; i <= n; i++, level++)
        set_ratio(tgi_priv(g), k & 2 ? g->n_in - i : g->n_in - n - 1 + i, 1,
                  (int64_t)1 << level);
}

int tgi_ties_set(tgi_graph *g, int64_t k)
{
    tgi_graph_priv *p = tgi_priv(g);
    for (int i = 0; i < g->n_in; i++)
        set_ratio(p, i, 1, 1);
    if (k == 0)
        return 1;
    if (!p->n_tied)
        return 0;
    for (int i = g->n_in - p->n_tied; i < g->n_in && k < N_RATIOS; i++)
        set_ratio(p, i, ratios[k].up, ratios[k].down);
    if (k < N_RATIOS)
        return 1;
    k -= N_RATIOS;
    if (p->n_tied < 2 || p->n_tied > 30)
        return 0;
    if (k < 4) {
        set_pyramid(g, k);
        return 1;
    }
    k -= 4;
    if (p->n_tied > 2 || k >= N_RATIOS * N_RATIOS)
        return 0;
    for (int i = 0; i < 2; i++, k /= N_RATIOS)
        set_ratio(p, g->n_in - 1 - i, ratios[k % N_RATIOS].up, ratios[k % N_RATIOS].down);
    return 1;
}

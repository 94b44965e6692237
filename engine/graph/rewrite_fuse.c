/* rewrite_fuse.c - pointwise operators ride in the kernel that made their input.
 *
 * A node H may take the next operator P along when P is the only reader of H's value and P can
 * be an epilogue step. P's other operand, if an activation, has to exist before H runs: nothing
 * that depends on H's value can feed it (P is its only reader), so sorting again always
 * succeeds. Where both inputs of P could host it, the convolution does, and of two the later
 * one: its operands are the ones still in cache.
 *
 * A value with two readers can be fused too when what they make of it meets again in one
 * operator and is read nowhere else: x * sigmoid(x), (x + a) * (sigmoid(x) - b). The kernel
 * then puts the value aside (TGI_EPI_KEEP), runs one side, exchanges the two, runs the other
 * side and joins it with what was kept. */
#include "engine/graph/graph_priv.h"

#include "engine/base/arith.h"
#include "engine/base/cancel.h"

#include <string.h>

#define LANES 16 /* step.vec is padded to a multiple of this */

/* How gladly a node takes steps along; 0: never. */
static int host_rank(const tgi_graph *g, const tgi_shapes *s, const tgi_node *n)
{
    static const char *const conv[] = {"Conv", "ConvTranspose"};
    static const char *const pass[] = {"MaxPool",     "AveragePool", "InstanceNormalization",
                                       "ChannelNorm", "PixelMatMul", "FoldBias"};
    if (!n->op || n->n_dst != 1 || tgi_node_is_flat(g, s, n))
        return 0;
    for (int i = 0; i < 2; i++)
        if (tgi_node_is(n, conv[i]))
            return 3;
    for (size_t i = 0; i < sizeof pass / sizeof pass[0]; i++)
        if (tgi_node_is(n, pass[i]))
            return 2;
    return n->op->as_step ? 1 : 0;
}

static int chain_of(const tgi_node *p, int value)
{
    for (int k = 0; k < p->n_src; k++)
        if (p->src[k] == value)
            return k;
    return -1;
}

/* P as a step on its source `chain`; *other is the activation it also reads, or -1. */
static int as_step(const tgi_graph *g, const tgi_shapes *s, const tgi_node *p, int chain,
                   tgi_epi_step *step, int *other)
{
    tgi_desc src[TGI_OP_MAX_SRC], dst[TGI_OP_MAX_DST];
    const tgi_constant *consts[TGI_OP_MAX_SRC];
    tgi_op_ctx ctx;
    if (!p->op->as_step || p->n_dst != 1 || p->n_epi || tgi_node_is_flat(g, s, p))
        return 0;
    tgi_node_ctx(g, s, p, src, dst, consts, &ctx);
    *step = (tgi_epi_step){.src = -1};
    if (!p->op->as_step(&ctx, chain, step))
        return 0;
    *other = step->src >= 0 ? p->src[step->src] : -1;
    step->src = -1;
    return 1;
}

/* The constant operand of P with one number per channel, if there is one. */
static const tgi_constant *channel_operand(const tgi_graph *g, const tgi_node *p, int chain)
{
    for (int k = 0; k < p->n_src; k++) {
        int64_t n;
        if (k != chain && p->src[k] >= 0 && g->values[p->src[k]].is_const &&
            tgi_desc_count(&g->values[p->src[k]].cst.desc, &n) && n > 1)
            return &g->values[p->src[k]].cst;
    }
    return NULL;
}

/* How many values the node reads besides constants. */
static int n_operands(const tgi_node *n)
{
    int k = n->n_src;
    for (int i = 0; i < n->n_epi; i++)
        k += n->epi[i].value >= 0;
    return k;
}

/* Would the maker of `other` be the better host of P? */
static int prefers(const tgi_graph *g, const tgi_shapes *s, int host, const tgi_node *p,
                   int other)
{
    const int m = other >= 0 ? g->values[other].producer : -1;
    tgi_epi_step step;
    int unused;
    if (m < 0 || tgi_graph_uses(g, other) != 1)
        return 0;
    const int mine = host_rank(g, s, &g->nodes[host]);
    const int theirs = host_rank(g, s, &g->nodes[m]);
    if (theirs < mine || (theirs == mine && m < host) || g->nodes[m].n_epi >= TGI_MAX_EPI)
        return 0;
    return theirs > 0 && as_step(g, s, p, chain_of(p, other), &step, &unused);
}

/* P's step on its source `chain`, appended to the host's epilogue. `kept`: the other operand of
 * P is the value that was put aside. *done is 0 when the host cannot take it. */
static tg_status append(tgi_graph *g, const tgi_shapes *s, int host, const tgi_node *p,
                        int chain, int kept, int *done, tgi_err *err)
{
    tgi_node *h = &g->nodes[host];
    tgi_epi_step step;
    int other = -1;
    *done = 0;
    if (h->n_epi >= TGI_MAX_EPI || !as_step(g, s, p, chain, &step, &other))
        return TG_OK;
    if (kept) {
        step.src = TGI_EPI_KEPT;
        other = -1;
    }
    if (other >= 0 && n_operands(h) >= TGI_OP_MAX_SRC)
        return TG_OK;
    const tgi_constant *c = other < 0 ? channel_operand(g, p, chain) : NULL;
    if (c) {
        const int64_t n = s->desc[h->dst[0]].dim[1];
        int64_t held;
        if (c->desc.dtype != TG_DTYPE_F32 || !tgi_desc_count(&c->desc, &held) || held != n)
            return TG_OK;
        float *vec = tgi_graph_own(g, (size_t)tgi_align_up(n, LANES) * sizeof *vec, err);
        if (!vec)
            return TG_E_NOMEM;
        memcpy(vec, c->data, (size_t)n * sizeof *vec);
        step.vec = vec;
    }
    h->epi[h->n_epi++] = (tgi_epi){step, other, p->op->name};
    tgi_graph_take_units(g, p->src[chain], p->dst[0]);
    *done = 1;
    return tgi_graph_note_reader(g, host, other, err);
}

/* The host yields what `last` did. */
static void take_over(tgi_graph *g, int host, int dst)
{
    g->nodes[host].dst[0] = dst;
    g->values[dst].producer = host;
}

/* Try to take the only reader of H's value along; *fused tells. */
static tg_status fuse_next(tgi_graph *g, const tgi_shapes *s, int host, int *fused,
                           tgi_err *err)
{
    const int v = g->nodes[host].dst[0], user = tgi_graph_only_user(g, v);
    tgi_epi_step step;
    int other = -1;
    *fused = 0;
    if (user < 0)
        return TG_OK;
    const tgi_node *p = &g->nodes[user];
    const int chain = chain_of(p, v);
    if (!as_step(g, s, p, chain, &step, &other) || prefers(g, s, host, p, other))
        return TG_OK;
    TGI_TRY(append(g, s, host, p, chain, 0, fused, err));
    if (*fused) {
        const int dst = p->dst[0];
        tgi_graph_drop(g, user);
        take_over(g, host, dst);
    }
    return TG_OK;
}

/* ---- Two readers that meet again --------------------------------------------------------- */

#define SIDE_MAX 6

typedef struct side { /* from one reader on, each the only reader of the one before */
    int node[SIDE_MAX], n;
} side;

/* The two nodes that read v as one operand each, and nobody else does, in their order. */
static int two_readers(const tgi_graph *g, int v, int reader[2])
{
    int n = 0, at = -1, i;
    if (tgi_graph_uses(g, v) != 2)
        return 0;
    while (n < 2 && (i = tgi_graph_next_reader(g, v, &at)) >= 0) {
        int reads = 0;
        for (int k = 0; k < g->nodes[i].n_src; k++)
            reads += g->nodes[i].src[k] == v;
        if (reads == 1)
            reader[n++] = i;
    }
    if (n == 2 && reader[0] > reader[1]) {
        const int later = reader[0];
        reader[0] = reader[1];
        reader[1] = later;
    }
    return n == 2;
}

static void follow(const tgi_graph *g, int first, side *s)
{
    s->n = 0;
    for (int at = first; at >= 0 && s->n < SIDE_MAX;) {
        s->node[s->n++] = at;
        if (g->nodes[at].n_dst != 1)
            break;
        at = tgi_graph_only_user(g, g->nodes[at].dst[0]);
    }
}

/* Cut both sides in front of the node they share, which is returned; -1: they do not meet. */
static int meet(side *a, side *b)
{
    for (int i = 0; i < a->n; i++)
        for (int k = 0; k < b->n; k++)
            if (a->node[i] == b->node[k]) {
                a->n = i;
                b->n = k;
                return a->node[i];
            }
    return -1;
}

/* Append the steps of one side; *v is the running value before and after. */
static tg_status append_side(tgi_graph *g, const tgi_shapes *s, int host, const side *a, int *v,
                             int *done, tgi_err *err)
{
    *done = 1;
    for (int i = 0; i < a->n && *done; i++) {
        const tgi_node *p = &g->nodes[a->node[i]];
        TGI_TRY(append(g, s, host, p, chain_of(p, *v), 0, done, err));
        *v = p->dst[0];
    }
    return TG_OK;
}

static void mark(tgi_node *h, tgi_epi_kind kind, const char *from)
{
    h->epi[h->n_epi++] = (tgi_epi){{.kind = kind, .src = -1}, -1, from};
}

/* x * sigmoid(x), and the hard one, have a step of their own. */
static void shorten(tgi_node *h, int at)
{
    tgi_epi *e = &h->epi[at];
    const tgi_epi_kind kind = e[1].step.kind;
    if (h->n_epi != at + 3 || e[2].step.kind != TGI_EPI_MUL ||
        (kind != TGI_EPI_SIGMOID && kind != TGI_EPI_HARDSIGMOID))
        return;
    const int soft = kind == TGI_EPI_SIGMOID;
    e[0] = e[1];
    e[0].step.kind = soft ? TGI_EPI_SILU : TGI_EPI_HARDSWISH;
    e[0].from = soft ? "Silu" : "HardSwish";
    h->n_epi = at + 1;
}

/* Sides a and b of H's value and their join, appended; *done is 0 when a step does not fit, and
 * the host then is as before. */
static tg_status append_fork(tgi_graph *g, const tgi_shapes *s, int host, const side *a,
                             const side *b, int join, int *done, tgi_err *err)
{
    tgi_node *h = &g->nodes[host];
    const int before = h->n_epi;
    int v = h->dst[0], w = v;
    *done = before + a->n + b->n + 3 <= TGI_MAX_EPI;
    if (!*done)
        return TG_OK;
    mark(h, TGI_EPI_KEEP, "Keep");
    tg_status st = append_side(g, s, host, a, &v, done, err);
    if (st == TG_OK && *done && b->n) {
        mark(h, TGI_EPI_SWAP, "Swap");
        st = append_side(g, s, host, b, &w, done, err);
    }
    if (st == TG_OK && *done) {
        const tgi_node *p = &g->nodes[join];
        st = append(g, s, host, p, chain_of(p, b->n ? w : v), 1, done, err);
    }
    if (st != TG_OK || !*done)
        h->n_epi = before;
    else
        shorten(h, before);
    return st;
}

/* Try to take along both readers of H's value and the node where they meet. */
static tg_status fuse_fork(tgi_graph *g, const tgi_shapes *s, int host, int *fused,
                           tgi_err *err)
{
    int reader[2];
    side a, b;
    *fused = 0;
    if (!two_readers(g, g->nodes[host].dst[0], reader))
        return TG_OK;
    follow(g, reader[0], &a);
    follow(g, reader[1], &b);
    const int join = meet(&a, &b);
    if (join < 0)
        return TG_OK;
    if (!a.n) { /* the side that does nothing is what was kept */
        const side none = a;
        a = b;
        b = none;
    }
    TGI_TRY(append_fork(g, s, host, &a, &b, join, fused, err));
    if (!*fused)
        return TG_OK;
    const int dst = g->nodes[join].dst[0];
    for (int i = 0; i < a.n; i++)
        tgi_graph_drop(g, a.node[i]);
    for (int i = 0; i < b.n; i++)
        tgi_graph_drop(g, b.node[i]);
    tgi_graph_drop(g, join);
    take_over(g, host, dst);
    return TG_OK;
}

static tg_status fuse_all(tgi_graph *g, const tgi_shapes *s, tgi_err *err)
{
    int total = 0;
    for (int i = 0; i < g->n_nodes; i++) {
        const tgi_node *n = &g->nodes[i];
        TGI_TRY(tgi_check_cancel(err));
        int fused = n->op && !tgi_node_is_known(s, n) && host_rank(g, s, n) > 0;
        while (fused) {
            const int steps = g->nodes[i].n_epi;
            TGI_TRY(fuse_next(g, s, i, &fused, err));
            if (!fused)
                TGI_TRY(fuse_fork(g, s, i, &fused, err));
            total += g->nodes[i].n_epi - steps;
        }
    }
    if (total)
        TGI_TRY(tgi_graph_note(g, err, "%d pointwise operators fused", total));
    return tgi_graph_clean(g, err);
}

tg_status tgi_rewrite_fuse(tgi_graph *g, tgi_err *err)
{
    tgi_shapes s;
    TGI_TRY(tgi_infer_base(g, &s, err));
    const tg_status st = fuse_all(g, &s, err);
    tgi_shapes_free(&s);
    return st;
}

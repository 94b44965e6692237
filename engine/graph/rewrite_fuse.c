/* rewrite_fuse.c - pointwise operators ride in the kernel that made their input.
 *
 * A node H may take the next operator P along when P is the only reader of H's value and P can
 * be an epilogue step. P's other operand, if an activation, has to exist before H runs: nothing
 * that depends on H's value can feed it (P is its only reader), so sorting again always
 * succeeds. Where both inputs of P could host it, the convolution does, and of two the later
 * one: its operands are the ones still in cache. */
#include "engine/graph/graph_priv.h"

#include "engine/base/arith.h"

#include <string.h>

#define LANES 16 /* step.vec is padded to a multiple of this */

/* How gladly a node takes steps along; 0: never. */
static int host_rank(const tg_node *n)
{
    static const char *const conv[] = {"Conv", "ConvTranspose"};
    static const char *const pool[] = {"MaxPool", "AveragePool"};
    if (!n->op || n->n_dst != 1)
        return 0;
    for (int i = 0; i < 2; i++)
        if (tgi_node_is(n, conv[i]))
            return 3;
    for (int i = 0; i < 2; i++)
        if (tgi_node_is(n, pool[i]))
            return 2;
    return n->op->as_step ? 1 : 0;
}

static int chain_of(const tg_node *p, int value)
{
    for (int k = 0; k < p->n_src; k++)
        if (p->src[k] == value)
            return k;
    return -1;
}

/* P as a step on its source `chain`; *other is the activation it also reads, or -1. */
static int as_step(const tg_graph *g, const tg_shapes *s, const tg_node *p, int chain,
                   tg_epi_step *step, int *other)
{
    tg_desc src[TG_OP_MAX_SRC], dst[TG_OP_MAX_DST];
    const tg_const *consts[TG_OP_MAX_SRC];
    tg_op_ctx ctx;
    if (!p->op->as_step || p->n_dst != 1 || p->n_epi)
        return 0;
    tgi_node_ctx(g, s, p, src, dst, consts, &ctx);
    *step = (tg_epi_step){.src = -1};
    if (!p->op->as_step(&ctx, chain, step))
        return 0;
    *other = step->src >= 0 ? p->src[step->src] : -1;
    step->src = -1;
    return 1;
}

/* The constant operand of P with one number per channel, if there is one. */
static const tg_const *channel_operand(const tg_graph *g, const tg_node *p, int chain)
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
static int n_operands(const tg_node *n)
{
    int k = n->n_src;
    for (int i = 0; i < n->n_epi; i++)
        k += n->epi[i].value >= 0;
    return k;
}

/* Would the maker of `other` be the better host of P? */
static int prefers(const tg_graph *g, const tg_shapes *s, int host, const tg_node *p, int other)
{
    const int m = other >= 0 ? g->values[other].producer : -1;
    tg_epi_step step;
    int unused;
    if (m < 0 || tgi_graph_uses(g, other) != 1)
        return 0;
    const int mine = host_rank(&g->nodes[host]), theirs = host_rank(&g->nodes[m]);
    if (theirs < mine || (theirs == mine && m < host) || g->nodes[m].n_epi >= TG_MAX_EPI)
        return 0;
    return theirs > 0 && as_step(g, s, p, chain_of(p, other), &step, &unused);
}

/* Try to take the reader of H's value along; *fused tells. */
static tg_status fuse_next(tg_graph *g, const tg_shapes *s, int host, int *fused, tgi_err *err)
{
    tg_node *h = &g->nodes[host];
    const int v = h->dst[0], user = tgi_graph_only_user(g, v);
    tg_epi_step step;
    int other = -1;
    *fused = 0;
    if (user < 0 || h->n_epi >= TG_MAX_EPI)
        return TG_OK;
    const tg_node *p = &g->nodes[user];
    const int chain = chain_of(p, v);
    if (!as_step(g, s, p, chain, &step, &other) || prefers(g, s, host, p, other) ||
        (other >= 0 && n_operands(h) >= TG_OP_MAX_SRC))
        return TG_OK;
    const tg_const *c = other < 0 ? channel_operand(g, p, chain) : NULL;
    if (c) {
        const int64_t n = s->desc[v].dim[1];
        int64_t held;
        if (c->desc.dtype != TG_DTYPE_F32 || !tgi_desc_count(&c->desc, &held) || held != n)
            return TG_OK;
        float *vec = tgi_graph_own(g, (size_t)tgi_align_up(n, LANES) * sizeof *vec, err);
        if (!vec)
            return TG_E_NOMEM;
        memcpy(vec, c->data, (size_t)n * sizeof *vec);
        step.vec = vec;
    }
    h->epi[h->n_epi++] = (tg_epi){step, other, p->op->name};
    const int dst = p->dst[0];
    tgi_graph_drop(g, user);
    h->dst[0] = dst;
    g->values[dst].producer = host;
    *fused = 1;
    return TG_OK;
}

static tg_status fuse_all(tg_graph *g, const tg_shapes *s, tgi_err *err)
{
    int total = 0;
    for (int i = 0; i < g->n_nodes; i++) {
        int fused = host_rank(&g->nodes[i]) > 0 && !tgi_node_is_known(s, &g->nodes[i]);
        while (fused) {
            TGI_TRY(fuse_next(g, s, i, &fused, err));
            total += fused;
        }
    }
    if (total)
        TGI_TRY(tgi_graph_note(g, err, "%d pointwise operators fused", total));
    return tgi_graph_clean(g, err);
}

tg_status tgi_rewrite_fuse(tg_graph *g, tgi_err *err)
{
    tg_shapes s;
    TGI_TRY(tgi_infer_base(g, &s, err));
    const tg_status st = fuse_all(g, &s, err);
    tgi_shapes_free(&s);
    return st;
}

/* shape.c - shapes of every value for one input size, and with them the values of shape
 * arithmetic.
 *
 * One walk in node order. An op's rule sees the extents and, where known, the data of its
 * inputs. Integer tensors computed from shapes (Shape, Gather, Concat, ... feeding a Resize or
 * Reshape) are evaluated on the way by the op's `eval`, so their answers follow the size; they
 * are small, and anything larger than KNOWN_MAX elements or KNOWN_WORK operations is left
 * alone: inference is asked at hundreds of sizes. It ends when somebody asks to stop. */
#include "engine/graph/graph_priv.h"

#include "engine/base/arith.h"
#include "engine/base/cancel.h"

#include <stdio.h>
#include <string.h>

#define KNOWN_MAX 4096               /* elements of one evaluated value */
#define KNOWN_WORK 1e6               /* operations of one evaluation */
#define VALUE_MAX ((int64_t)1 << 56) /* elements of any value: bytes still fit int64 */

/* Data of known values, freed with the shapes. */
typedef struct known_block {
    struct known_block *next;
    _Alignas(16) unsigned char data[];
} known_block;

void tgi_shapes_free(tgi_shapes *s)
{
    known_block *b = s->arena_;
    while (b) {
        known_block *next = b->next;
        tgi_free(b);
        b = next;
    }
    tgi_free(s->desc);
    tgi_free(s->known);
    *s = (tgi_shapes){0};
}

int tgi_node_is_known(const tgi_shapes *s, const tgi_node *n)
{
    for (int i = 0; i < n->n_dst; i++)
        if (!s->known[n->dst[i]].data)
            return 0;
    return 1;
}

int tgi_is_image(const tgi_graph *g, const tgi_desc *d)
{
    return d->rank == g->spatial + 2 && d->dim[0] == 1;
}

/* Is it an activation that the kernel of this operator for images cannot work on? */
static int keeps_from_image(const tgi_graph *g, const tgi_shapes *s, const tgi_node *n, int v)
{
    if (v < 0 || g->values[v].is_const || s->known[v].data)
        return 0;
    return !tgi_is_image(g, &s->desc[v]) ||
           (s->desc[v].dtype != TG_DTYPE_F32 && !n->op->any_type);
}

int tgi_node_is_flat(const tgi_graph *g, const tgi_shapes *s, const tgi_node *n)
{
    if (n->op_class == TGI_OP_DENSE || !n->op->ref)
        return 1;
    for (int i = 0; i < n->n_src; i++)
        if (keeps_from_image(g, s, n, n->src[i]))
            return 1;
    for (int i = 0; i < n->n_dst; i++)
        if (keeps_from_image(g, s, n, n->dst[i]))
            return 1;
    return 0;
}

void tgi_node_ctx(const tgi_graph *g, const tgi_shapes *s, const tgi_node *n, tgi_desc *src,
                  tgi_desc *dst, const tgi_constant **consts, tgi_op_ctx *ctx)
{
    for (int i = 0; i < n->n_src; i++) {
        const int v = n->src[i];
        src[i] = v < 0 ? (tgi_desc){0} : s->desc[v];
        consts[i] = NULL;
        if (v >= 0 && g->values[v].is_const)
            consts[i] = &g->values[v].cst;
        else if (v >= 0 && s->known[v].data)
            consts[i] = &s->known[v];
    }
    for (int i = 0; i < n->n_dst; i++)
        dst[i] = s->desc[n->dst[i]];
    *ctx = (tgi_op_ctx){.attrs = n->attrs,
                        .opset = n->opset,
                        .n_src = n->n_src,
                        .n_dst = n->n_dst,
                        .src = src,
                        .dst = dst,
                        .const_src = consts};
}

/* All inputs are known, or the op asks for shapes alone. */
static int can_evaluate(const tgi_node *n, const tgi_op_ctx *ctx)
{
    if (!n->op->eval || n->n_src == 0)
        return 0;
    if (tgi_node_is(n, "Shape") || tgi_node_is(n, "Size"))
        return 1;
    for (int i = 0; i < ctx->n_src; i++)
        if (!ctx->const_src[i] && n->src[i] >= 0)
            return 0;
    return 1;
}

/* Small enough to be shape arithmetic? */
static int is_small(const tgi_node *n, const tgi_op_ctx *ctx)
{
    for (int i = 0; i < n->n_dst; i++) {
        int64_t count;
        if (!tgi_desc_count(&ctx->dst[i], &count) || count > KNOWN_MAX)
            return 0;
    }
    return tgi_node_is(n, "Shape") || tgi_node_is(n, "Size") ||
           tgi_eval_work(n->op, ctx) <= KNOWN_WORK;
}

static tg_status evaluate(const tgi_node *n, const tgi_op_ctx *ctx, tgi_shapes *s, tgi_err *err)
{
    void *data[TGI_OP_MAX_DST];
    for (int i = 0; i < n->n_dst; i++) {
        int64_t count = 0;
        tgi_desc_count(&ctx->dst[i], &count);
        known_block *b =
            tgi_calloc(TGI_TAG_GRAPH, 1,
                       sizeof *b + (size_t)(count + 1) * tgi_dtype_size(ctx->dst[i].dtype));
        if (!b)
            return tgi_fail(err, TG_E_NOMEM, "no memory for shape arithmetic");
        b->next = s->arena_;
        s->arena_ = b;
        data[i] = b->data;
    }
    TGI_TRY(n->op->eval(ctx, data, err));
    for (int i = 0; i < n->n_dst; i++)
        s->known[n->dst[i]] = (tgi_constant){ctx->dst[i], data[i]};
    return TG_OK;
}

static tg_status check_extents(const tgi_desc *d, int n, tgi_err *err)
{
    char text[128];
    for (int i = 0; i < n; i++) {
        int64_t count;
        if (d[i].rank < 0 || d[i].rank > TGI_MAX_RANK || !tgi_desc_count(&d[i], &count))
            return tgi_fail(err, TG_E_FORMAT, "the extents of output %d overflow", i);
        if (count > VALUE_MAX)
            return tgi_fail(err, TG_E_BUDGET, "output %d would be %s", i,
                            tgi_desc_text(&d[i], text, sizeof text));
        if (count == 0)
            return tgi_fail(err, TG_E_FORMAT, "output %d is empty: %s; the image is too small",
                            i, tgi_desc_text(&d[i], text, sizeof text));
    }
    return TG_OK;
}

/* A fused binary step reads a value of exactly the shape that it is applied to. */
static tg_status check_steps(const tgi_graph *g, const tgi_shapes *s, const tgi_node *n,
                             tgi_err *err)
{
    char a[128], b[128];
    for (int k = 0; k < n->n_epi; k++) {
        const int v = n->epi[k].value;
        if (v >= 0 && !tgi_desc_same_shape(&s->desc[v], &s->desc[n->dst[0]]))
            return tgi_fail(err, TG_E_FORMAT, "%s joins %s and \"%s\" of %s", n->epi[k].from,
                            tgi_desc_text(&s->desc[n->dst[0]], a, sizeof a), g->values[v].name,
                            tgi_desc_text(&s->desc[v], b, sizeof b));
    }
    return TG_OK;
}

/* Have axes that a rewrite took away extent one at this size, too? The operators that asked for
 * it are gone. */
static tg_status check_units(const tgi_value *v, const tgi_desc *d, tgi_err *err)
{
    char text[128];
    for (int a = 0; a < d->rank; a++)
        if (v->units & 1u << a && d->dim[a] != 1)
            return tgi_fail(err, TG_E_FORMAT,
                            "value \"%s\" is %s; what reads it takes extent 1 on axis %d only",
                            v->name, tgi_desc_text(d, text, sizeof text), a);
    return TG_OK;
}

static tg_status infer_node(const tgi_graph *g, const tgi_node *n, tgi_shapes *s, tgi_err *err)
{
    tgi_desc src[TGI_OP_MAX_SRC], dst[TGI_OP_MAX_DST];
    const tgi_constant *consts[TGI_OP_MAX_SRC];
    tgi_op_ctx ctx;
    for (int i = 0; i < n->n_src; i++)
        if (n->src[i] >= 0 && s->desc[n->src[i]].dtype == TG_DTYPE_NONE)
            return tgi_fail(err, TG_E_FORMAT, "value \"%s\" is used and never produced",
                            g->values[n->src[i]].name);
    tgi_node_ctx(g, s, n, src, dst, consts, &ctx);
    memset(dst, 0, sizeof dst);
    TGI_TRY(n->op->infer(&ctx, dst, err));
    for (int i = 0; i < n->n_dst; i++)
        if (dst[i].dtype == TG_DTYPE_NONE)
            return tgi_fail(err, TG_E_UNSUPPORTED, "output %d of %d is not computed", i + 1,
                            n->n_dst);
    const int evaluable = can_evaluate(n, &ctx) && is_small(n, &ctx);
    if (!evaluable)
        TGI_TRY(check_extents(dst, n->n_dst, err));
    for (int i = 0; i < n->n_dst; i++) {
        TGI_TRY(check_units(&g->values[n->dst[i]], &dst[i], err));
        s->desc[n->dst[i]] = dst[i];
    }
    TGI_TRY(check_steps(g, s, n, err));
    return evaluable ? evaluate(n, &ctx, s, err) : TG_OK;
}

static tg_status infer_all(const tgi_graph *g, const tgi_desc *in, tgi_shapes *s, tgi_err *err)
{
    for (int i = 0; i < g->n_values; i++)
        if (g->values[i].is_const)
            s->desc[i] = g->values[i].cst.desc;
    for (int i = 0; i < g->n_in; i++) {
        TGI_TRY(check_extents(&in[i], 1, err));
        TGI_TRY(check_units(&g->values[g->in[i].value], &in[i], err));
        s->desc[g->in[i].value] = in[i];
    }
    for (int i = 0; i < g->n_nodes; i++) {
        const tgi_node *n = &g->nodes[i];
        tgi_err local = {0};
        if (!n->op)
            continue;
        TGI_TRY(tgi_check_cancel(err));
        const tg_status st = infer_node(g, n, s, &local);
        if (st != TG_OK)
            return tgi_fail(err, st, "%s \"%s\": %s", tgi_node_op_name(n), n->name,
                            local.text[0] ? local.text : tgi_status_sentence(st));
    }
    return TG_OK;
}

tg_status tgi_graph_infer(const tgi_graph *g, const tgi_desc *in, tgi_shapes *out, tgi_err *err)
{
    tgi_shapes s = {.n_values = g->n_values};
    *out = s;
    const size_t n = (size_t)g->n_values + 1;
    s.desc = tgi_calloc(TGI_TAG_GRAPH, n, sizeof *s.desc);
    s.known = tgi_calloc(TGI_TAG_GRAPH, n, sizeof *s.known);
    const tg_status st = s.desc && s.known ? infer_all(g, in, &s, err)
                                           : tgi_fail(err, TG_E_NOMEM, "no memory for shapes");
    if (st != TG_OK)
        tgi_shapes_free(&s);
    *out = s;
    return st;
}

tg_status tgi_infer_base(const tgi_graph *g, tgi_shapes *out, tgi_err *err)
{
    return tgi_graph_infer(g, tgi_priv(g)->base_in, out, err);
}

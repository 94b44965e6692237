/* fold.c - nodes whose inputs are all constants become constants; and reading constants.
 *
 * Only ops with an `eval` are folded. Everything folded in one graph together stays below
 * FOLD_BYTES: a file that asks to materialise a petabyte gets TG_E_BUDGET at once. And below
 * FOLD_WORK operations: a few letters of an Einsum ask for hours. What is beyond that stays a
 * node, which the run computes like any other, and can be stopped at. */
#include "engine/graph/graph_priv.h"

#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/size.h"

#include <math.h>
#include <string.h>

#define FOLD_BYTES ((size_t)64 << 20)
/* About a second: exporters leave products of small factors behind and shape arithmetic.
 * Counted in operations, not measured, so that a graph is the same on every machine and day. */
#define FOLD_WORK 2e9

double tgi_const_get(const tgi_constant *c, int64_t i)
{
    switch (c->desc.dtype) {
    case TG_DTYPE_F32:
        return (double)((const float *)c->data)[i];
    case TG_DTYPE_F64:
        return ((const double *)c->data)[i];
    case TG_DTYPE_I64:
        return (double)((const int64_t *)c->data)[i];
    case TG_DTYPE_I32:
        return (double)((const int32_t *)c->data)[i];
    case TG_DTYPE_BOOL:
    case TG_DTYPE_U8:
        return (double)((const uint8_t *)c->data)[i];
    default:
        return 0;
    }
}

int tgi_value_scalar(const tgi_graph *g, int v, float *out)
{
    int64_t count;
    if (v < 0 || !g->values[v].is_const || g->values[v].cst.desc.dtype != TG_DTYPE_F32 ||
        !tgi_desc_count(&g->values[v].cst.desc, &count) || count != 1)
        return 0;
    *out = *(const float *)g->values[v].cst.data;
    return 1;
}

int tgi_value_channels(const tgi_graph *g, int v, int rank, int64_t channels, float *out)
{
    if (v < 0 || !g->values[v].is_const || g->values[v].cst.desc.dtype != TG_DTYPE_F32)
        return 0;
    const tgi_constant *c = &g->values[v].cst;
    const int shift = rank - c->desc.rank; /* broadcasting aligns the last axes */
    if (shift < 0)
        return 0;
    int64_t along = 1;
    for (int i = 0; i < c->desc.rank; i++) {
        if (i + shift == 1)
            along = c->desc.dim[i];
        else if (c->desc.dim[i] != 1)
            return 0;
    }
    if (along != 1 && along != channels)
        return 0;
    for (int64_t k = 0; k < channels; k++)
        out[k] = ((const float *)c->data)[along == 1 ? 0 : k];
    return 1;
}

static int all_const(const tgi_graph *g, const tgi_node *n)
{
    for (int i = 0; i < n->n_src; i++)
        if (n->src[i] >= 0 && !g->values[n->src[i]].is_const)
            return 0;
    return n->n_epi == 0;
}

double tgi_eval_work(const tgi_op *op, const tgi_op_ctx *ctx)
{
    const double each = op->flops ? op->flops(ctx) : 1;
    double work = 0;
    int64_t count;
    for (int k = 0; k < ctx->n_src; k++)
        work += tgi_desc_count(&ctx->src[k], &count) ? (double)count : 0;
    for (int k = 0; k < ctx->n_dst; k++)
        work += tgi_desc_count(&ctx->dst[k], &count) ? (double)count * each : INFINITY;
    return work;
}

typedef struct fold_budget {
    size_t bytes;
    double work;
} fold_budget;

static tg_status fold_node(tgi_graph *g, int i, fold_budget *budget, tgi_err *err)
{
    tgi_node *n = &g->nodes[i];
    tgi_desc src[TGI_OP_MAX_SRC], dst[TGI_OP_MAX_DST] = {{0}};
    const tgi_constant *consts[TGI_OP_MAX_SRC];
    void *data[TGI_OP_MAX_DST];
    char text[32];
    for (int k = 0; k < n->n_src; k++) {
        const tgi_constant *c = n->src[k] < 0 ? NULL : &g->values[n->src[k]].cst;
        src[k] = c ? c->desc : (tgi_desc){0};
        consts[k] = c;
    }
    const tgi_op_ctx ctx = {.attrs = n->attrs,
                            .opset = n->opset,
                            .n_src = n->n_src,
                            .n_dst = n->n_dst,
                            .src = src,
                            .dst = dst,
                            .const_src = consts};
    TGI_TRY(n->op->infer(&ctx, dst, err));
    size_t bytes[TGI_OP_MAX_DST], left = budget->bytes;
    for (int k = 0; k < n->n_dst; k++) {
        int64_t count;
        if (!tgi_desc_count(&dst[k], &count) ||
            !tgi_mul_ok((size_t)count, tgi_dtype_size(dst[k].dtype), &bytes[k]) ||
            bytes[k] > left)
            return tgi_fail(err, TG_E_BUDGET,
                            "its constant result does not fit the %s that folding may use",
                            tgi_size_text(FOLD_BYTES, text, sizeof text));
        left -= bytes[k];
    }
    const double work = tgi_eval_work(n->op, &ctx);
    if (work > budget->work)
        return TG_OK; /* the run computes it */
    budget->work -= work;
    budget->bytes = left;
    for (int k = 0; k < n->n_dst; k++)
        if (!(data[k] = tgi_graph_own(g, bytes[k], err)))
            return TG_E_NOMEM;
    TGI_TRY(n->op->eval(&ctx, data, err));
    for (int k = 0; k < n->n_dst; k++) {
        tgi_value *v = &g->values[n->dst[k]];
        v->is_const = 1;
        v->cst = (tgi_constant){dst[k], data[k]};
    }
    tgi_graph_drop(g, i);
    return TG_OK;
}

tg_status tgi_fold_constants(tgi_graph *g, tgi_err *err)
{
    fold_budget budget = {FOLD_BYTES, FOLD_WORK};
    for (int i = 0; i < g->n_nodes; i++) {
        const tgi_node *n = &g->nodes[i];
        if (!n->op || !n->op->eval || n->n_src == 0 || !all_const(g, n))
            continue;
        tgi_err local = {0};
        TGI_TRY(tgi_check_cancel(err));
        const tg_status st = fold_node(g, i, &budget, &local);
        if (st != TG_OK)
            return tgi_fail(err, st, "%s \"%s\": %s", n->op->name, n->name, local.text);
    }
    return TG_OK;
}

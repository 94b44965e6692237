/* dense_eval.h - a graph as it was built, node by node on whole arrays of the axes that its
 * file gives them: each operator's `eval`, which test_conformance holds against foreign
 * tensors. No rewriting, no views, no kernels: what the finished graph has to yield. */
#ifndef TG_DENSE_EVAL_H
#define TG_DENSE_EVAL_H

#include "engine/base/mem.h"
#include "engine/graph/graph.h"
#include "tests/tg_test.h"

typedef struct dense_values {
    tgi_constant *v; /* n_values; those with data that were computed are owned */
    int n;
} dense_values;

static inline void dense_node(const tgi_graph *g, const tgi_node *n, dense_values *d,
                              tgi_err *err)
{
    tgi_desc src[TGI_OP_MAX_SRC] = {{0}}, dst[TGI_OP_MAX_DST] = {{0}};
    const tgi_constant *consts[TGI_OP_MAX_SRC] = {0};
    void *data[TGI_OP_MAX_DST];
    for (int k = 0; k < n->n_src; k++)
        if (n->src[k] >= 0) {
            if (!d->v[n->src[k]].data)
                return; /* of a node that failed */
            consts[k] = &d->v[n->src[k]];
            src[k] = consts[k]->desc;
        }
    const tgi_op_ctx ctx = {.attrs = n->attrs,
                            .opset = g->opset,
                            .n_src = n->n_src,
                            .n_dst = n->n_dst,
                            .src = src,
                            .dst = dst,
                            .const_src = consts};
    if (n->op->infer(&ctx, dst, err) != TG_OK || !n->op->eval)
        return;
    for (int k = 0; k < n->n_dst; k++) {
        int64_t count = 0;
        tgi_desc_count(&dst[k], &count);
        data[k] = tgi_calloc(TGI_TAG_MISC, (size_t)count + 1, tgi_dtype_size(dst[k].dtype));
        d->v[n->dst[k]] = (tgi_constant){dst[k], data[k]};
    }
    CHECK_OK(n->op->eval(&ctx, data, err), *err);
}

/* Output 0 of an unfinished graph of one input; returned, tgi_free. NULL: a failed check. */
static inline void *dense_eval(const tgi_graph *g, const tgi_desc *in, const float *x,
                               tgi_desc *out)
{
    tgi_err err = {0};
    dense_values d = {tgi_calloc(TGI_TAG_MISC, (size_t)g->n_values, sizeof *d.v), g->n_values};
    void *result = NULL;
    for (int i = 0; i < g->n_values; i++)
        if (g->values[i].is_const)
            d.v[i] = g->values[i].cst;
    d.v[g->in[0].value] = (tgi_constant){*in, x};
    /* One that fails may be dead: an output that depends on it is missed. */
    for (int i = 0; i < g->n_nodes; i++)
        dense_node(g, &g->nodes[i], &d, &err);
    for (int i = 0; i < g->n_values; i++) {
        if (i == g->out[0].value) {
            *out = d.v[i].desc;
            result = (void *)(uintptr_t)d.v[i].data;
        } else if (!g->values[i].is_const && i != g->in[0].value) {
            tgi_free((void *)(uintptr_t)d.v[i].data);
        }
    }
    tgi_free(d.v);
    if (!result)
        fprintf(stderr, "  not computed: %s\n", err.text);
    CHECK(result != NULL);
    return result;
}

#endif

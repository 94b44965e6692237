/* split.h - a graph made of another one by taking some of its nodes apart: a list of nodes and
 * values of its own, over the names, constants and attributes of the other. It is good for
 * inference and planning alone. */
#ifndef TGI_SPLIT_H
#define TGI_SPLIT_H

#include "engine/graph/graph.h"

typedef struct tgi_split {
    tgi_graph graph; /* first: what others see */
    tgi_value *values;
    tgi_node *nodes;
    void *own; /* what new nodes and constants point to */
} tgi_split;

/* Puts what it becomes behind the nodes that `to` has: number k of those that `wanted` names. */
typedef void tgi_split_node(tgi_split *to, const tgi_node *n, const tgi_shapes *s, int k);

typedef struct tgi_split_rule {
    const char *what; /* nodes: told where there is no memory for them */
    int (*wanted)(const tgi_graph *g, const tgi_shapes *s, const tgi_node *n);
    tgi_split_node *apart;
    int nodes, values; /* more than there were, at most, for one */
    size_t bytes;      /* of `own`, for one */
} tgi_split_rule;

/* `s`: shapes of `g`. *out borrows from `g`: tgi_split_free before `g` goes. NULL: no node is
 * wanted. */
tg_status tgi_split_of(const tgi_graph *g, const tgi_shapes *s, const tgi_split_rule *rule,
                       tgi_graph **out, tgi_err *err);
void tgi_split_free(tgi_graph **g);

/* Norms over pixels as two nodes, for who computes an image in passes: the same bits but for the
 * norms. `s` at any size. */
tg_status tgi_split_norms_of(const tgi_graph *g, const tgi_shapes *s, tgi_graph **out,
                             tgi_err *err);
/* Attention of pixels as MatMul and Softmax over arrays, for devices without a kernel for it and
 * for the one size of `s`. */
tg_status tgi_split_attention_of(const tgi_graph *g, const tgi_shapes *s, tgi_graph **out,
                                 tgi_err *err);

#endif

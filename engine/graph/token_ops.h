/* token_ops.h - operators on arrays that hold an image in another order of axes (token_axes.h),
 * and what each of them is on the image itself (rewrite_tokens.c). */
#ifndef TGI_TOKEN_OPS_H
#define TGI_TOKEN_OPS_H

#include "engine/graph/graph_priv.h"
#include "engine/graph/token_axes.h"

typedef struct tgi_token {
    int image; /* the value that it holds in another order; -1: it is no such array */
    tgi_order order;
    tgi_extents ext; /* of the value itself */
    int seed;        /* an image, by the operators that it meets */
    int turned;      /* moves make an image of it */
    int maker;       /* the model's node that yields it */
    const char *op;  /* and its operator, static; NULL: there is none */
} tgi_token;

typedef struct tgi_tokens {
    tgi_graph *g;
    int rank; /* of images */
    int n_sizes;
    tgi_shapes s[TGI_TOKEN_SIZES];
    int n; /* values and nodes that the graph had */
    int n_nodes;
    tgi_token *of; /* of every value, new ones too */
    int cap;
    int convolutions, small_products, attentions, others; /* nodes that are on images now */
} tgi_tokens;

static inline tgi_token *tgi_token_of(const tgi_tokens *t, int v)
{
    return &t->of[v];
}
/* Does the value hold an image in an order that is not the image's own? */
int tgi_token_is_other(const tgi_tokens *t, int v);
/* A new image of these extents. */
tg_status tgi_token_add_image(tgi_tokens *t, const char *name, const tgi_extents *ext, int *v,
                              tgi_err *err);
/* A new value that is no image, or whose order nobody asks for. */
tg_status tgi_token_add_value(tgi_tokens *t, const char *name, int *v, tgi_err *err);

/* What the node is on the image: fills the tokens of its results, and adds nodes; pointers to
 * nodes move. *yes = 0: it has no form there. */
tg_status tgi_token_form(tgi_tokens *t, int node, int *yes, tgi_err *err);
/* The order of what a node yields that only moves elements. 0: it is another kind of node. */
int tgi_token_moves(const tgi_tokens *t, const tgi_node *n, tgi_order *out);
/* One number after the other, each element by itself: may the operands be images? */
int tgi_token_is_pointwise(const tgi_node *n);

/* token_products.c: MatMul, Gemm, Einsum. */
tg_status tgi_token_product(tgi_tokens *t, int node, int *yes, tgi_err *err);

/* The letters of one term of an Einsum, each of them once. */
typedef struct tgi_letters {
    int n;
    char of[TGI_MAX_RANK];
} tgi_letters;
/* "ij,jk->ik" into its three terms. 0: another kind of equation. */
int tgi_token_equation(const tgi_node *n, tgi_letters term[3]);
int tgi_letter_place(const tgi_letters *l, char c); /* -1: it is not there */

/* token_attention.c: is the node the last product of an attention of pixels to pixels? */
tg_status tgi_token_attention(tgi_tokens *t, int node, int *yes, tgi_err *err);

/* token_turn.c: nodes that turn an image into its array and back. */
/* *yes = 0: there is no way to say the extents of `array`, which nobody yields. */
tg_status tgi_token_lower(tgi_tokens *t, int array, int *yes, tgi_err *err);
/* The image that `array`, of this order, holds. */
tg_status tgi_token_raise(tgi_tokens *t, int array, const tgi_order *o,
                          const tgi_extents *image, int like, int *out, tgi_err *err);
/* Let result 0 of the node, a Shape, come from the image. */
tg_status tgi_token_shape(tgi_tokens *t, int node, int *yes, tgi_err *err);
/* `v` with these constant extents. */
tg_status tgi_token_reshape(tgi_tokens *t, int v, const tgi_desc *to, int *out, tgi_err *err);

/* What nodes that turn the value are called: the model's node that yields it. */
const char *tgi_token_name(const tgi_tokens *t, int v);

/* The list of integers in an attribute of the node, to be set; NULL: it has none. */
tgi_ints *tgi_token_ints(tgi_node *n, const char *name);
/* Constant or small: a float32 array of the same extents at every size that is no token. */
int tgi_token_is_small(const tgi_tokens *t, int v);

#endif

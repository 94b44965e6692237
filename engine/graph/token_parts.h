/* token_parts.h - arrays that hold an image whose channels are cut: heads, and q, k and v of one
 * product.
 *
 * Orders (token_axes.h) are here those of the image with its channels cut in three: [1, parts,
 * heads, channels of a head, (D,) H, W]. */
#ifndef TGI_TOKEN_PARTS_H
#define TGI_TOKEN_PARTS_H

#include "engine/graph/token_ops.h"

enum { TGI_PARTS = 1, TGI_HEADS, TGI_INNER, TGI_FIRST_PIXEL }; /* axes of a cut image */

#define TGI_CHAIN_MOST 24 /* nodes between an image and a product */

/* An array of pixels by channels of heads. */
typedef struct tgi_cut {
    int image;
    int part, parts;     /* part < 0: none was picked */
    tgi_extents extents; /* of the image, its channels cut */
    tgi_order order;     /* of the array */
    tgi_merged pixels;   /* the axis of it that is pixels */
    double factor;       /* that it is times the image */
} tgi_cut;

/* What the value is of an image of which `heads` times `inner` channels are looked at. 0: moves
 * and factors do not lead to one. */
int tgi_cut_of(const tgi_tokens *t, int v, int64_t heads, int64_t inner, tgi_cut *c);
/* The order behind a node that moves what is of this order to the value `v`. 0: it is no such
 * node. */
int tgi_cut_move(const tgi_tokens *t, const tgi_node *n, int v, tgi_cut *c);
/* The order by axes of the image. 0: the channels are apart. */
int tgi_cut_joined(const tgi_cut *c, tgi_order *out);
/* Is axis `a` of the array that axis of the cut image, or one of extent one? */
int tgi_cut_is_axis(const tgi_cut *c, int a, int axis);
/* Let axis `a` of the array be that axis, too. */
void tgi_cut_push(tgi_cut *c, int a, int axis);

/* The node that yields the value, whatever passes it on, if nobody else reads it; or NULL. */
const tgi_node *tgi_token_sole_maker(const tgi_tokens *t, int v);
/* Is the node an array times a number? Which array; *factor becomes times the number. */
int tgi_token_scales(const tgi_tokens *t, const tgi_node *n, int *src, double *factor);

#endif

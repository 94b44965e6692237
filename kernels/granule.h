/* granule.h - mean and variance of channels, to the same bit however the image is cut.
 *
 * A sum of floating-point numbers depends on its order, and the order in which pixels arrive
 * depends on tiles, bands and threads. So the order is fixed by image coordinates alone:
 *
 *   row      the up to 64 values of one image row inside one granule, left to right, in double:
 *            their sum, then their squared distances from their own mean (two passes)
 *   granule  64 x 64 pixels, at multiples of 64 in the image (smaller at its right and lower
 *            border), one grid per plane of a volume: its rows merged from top to bottom
 *   image    the granules merged in a binary tree over their index (z, then y, then x): 0 with
 *            1, 2 with 3, ..., then pairs of those; an odd one out goes up unmerged
 *
 * Merging is Chan's: without the cancellation of a sum of squares. Sums are kept, not means: a
 * mean is divided once, at the end.
 *
 * WHO MAY BRING WHAT. A granule's values must come row by row and undivided, so:
 *  1. a piece begins and ends on granule columns or the image's border, in x;
 *  2. of each granule, rows come from top to bottom.
 * Bands bring rows from top to bottom by nature. Tiles of any size meet both rules when each
 * takes care of its *share*: the granules whose first pixel lies in its core
 * (tgi_granule_share, on x and y). Shares of the tiles of an image partition it, whatever the
 * tiles; a tile has to compute up to 63 pixels beyond its core for them, none when its cuts are
 * multiples of 64. Which tile comes first, and how bands of several interleave, does not
 * matter. What breaks a rule is refused: the counts tell.
 *
 * @source T. F. Chan, G. H. Golub, R. J. LeVeque: Updating formulae and a pairwise algorithm
 * for computing sample variances, 1979. */
#ifndef TGI_GRANULE_H
#define TGI_GRANULE_H

#include "kernels/op.h"

#define TGI_GRANULE 64

typedef struct tgi_moments {
    double n;   /* values */
    double sum; /* of the values */
    double m2;  /* of squared distances from their mean */
} tgi_moments;

/* Chan's merge of two sets; neither is empty. The order of arguments counts, for bits. */
tgi_moments tgi_moments_merge(const tgi_moments *a, const tgi_moments *b);
static inline double tgi_moments_mean(const tgi_moments *m)
{
    return m->sum / m->n;
}
static inline double tgi_moments_variance(const tgi_moments *m)
{
    return m->m2 / m->n;
}

/* The tree of granules that arrive in the order of their index. Zero-initialise. */
typedef struct tgi_moments_tree {
    tgi_moments part[64]; /* finished subtrees, large to small */
    int n_parts;
    uint64_t n; /* leaves so far */
} tgi_moments_tree;

void tgi_tree_push(tgi_moments_tree *t, const tgi_moments *leaf);
/* Moments of all leaves; at least one was pushed. */
tgi_moments tgi_tree_finish(const tgi_moments_tree *t);

/* Moments of channel c of an operand that is there from edge to edge, of extent `full`. */
tgi_moments tgi_granule_channel(const tgi_operand *src, const tgi_desc *full, int64_t c);

/* ---- From pieces, in any order ----------------------------------------------------------- */

/* The part of an axis (x or y, of extent dim) whose granules a tile with this core adds. May be
 * empty, and may reach beyond the core. */
tgi_range tgi_granule_share(tgi_range core, int64_t dim);

typedef struct tgi_granules {
    tgi_desc full;
    int64_t gy, gx;    /* granules down and across a plane */
    int64_t per_c;     /* granules of a channel */
    tgi_moments *leaf; /* [c][z][gy][gx], borrowed */
} tgi_granules;

/* Bytes of the leaves for an activation of this shape: 24 for each 16 KiB of it. */
size_t tgi_granules_bytes(const tgi_desc *full);
/* Begin. `mem`: that many bytes, 8-byte aligned, borrowed. */
void tgi_granules_init(tgi_granules *g, const tgi_desc *full, void *mem);
/* Add all channels of `src` over a box. @return TG_E_INTERNAL when the box divides a granule's
 * row or comes before rows above it. */
tg_status tgi_granules_add(tgi_granules *g, const tgi_operand *src, const tgi_box *box,
                           tgi_err *err);
/* Moments of channel c. @return TG_E_INTERNAL when pixels are missing. */
tg_status tgi_granules_finish(const tgi_granules *g, int64_t c, tgi_moments *out, tgi_err *err);

#endif

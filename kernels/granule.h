/* granule.h - mean and variance of channels, to the same bit however the image is cut.
 *
 * A sum of floating-point numbers depends on its order, and the order in which pixels arrive
 * depends on tiles, bands and threads. So the order is fixed by image coordinates alone:
 *
 *   row      the up to 64 values of one image row inside one granule, left to right, in double:
 *            their sum, then their squared distances from their own mean (two passes)
 *   granule  64 x 64 pixels, at multiples of 64 in the image (smaller at its right and lower
 *            border), one grid per plane of a volume: its rows merged from top to bottom
 *   column   the granules that follow each other along the stream axis: down an image (y), for
 *            each granule across; through a volume (z), for each granule of a plane. They are
 *            merged in a binary tree over their index along that axis: 0 with 1, 2 with 3, ...,
 *            then pairs of those; an odd one out goes up unmerged
 *   image    the columns merged in the same tree over their index: gx in an image,
 *            gy * across + gx in a volume
 *
 * Merging is Chan's: without the cancellation of a sum of squares. Sums are kept, not means: a
 * mean is divided once, at the end.
 *
 * A column's tree needs no leaf once its sibling is there. So what is kept of an image that
 * streams by is small: per column and channel the granule that is being filled and the finished
 * subtrees, as many as a binary counter has digits. A stretch of a column that begins in its
 * middle is held as the subtrees that lie in it, twice as many at most; two stretches that meet
 * merge to the bits of one.
 *
 * WHO MAY BRING WHAT (tgi_kernel_set.granules_add). A granule's values come row by row and
 * undivided, and granules in their order:
 *  1. a piece begins and ends on granule columns or the image's border, in x;
 *  2. of each column, rows come from top to bottom without a gap; of a volume its planes, and
 *     the rows of a granule within each.
 * Bands bring rows from top to bottom by nature. Cells of any size meet both rules when each
 * takes care of its *share*: the granules whose first pixel lies in its core
 * (tgi_granule_share, on x and y), and cells above each other are computed from top to bottom.
 * Shares of the cells of an image partition it, whatever the cells; a cell has to compute up to
 * 63 pixels beyond its core for them, none when its cuts are multiples of 64. Columns are
 * independent: how pieces of different ones interleave does not matter. A cell or a part of the
 * image that cannot wait for what is above it takes a state of its own (ANYWHERE), which is
 * merged later. What breaks a rule is refused, and the state is as it was.
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

/* Chan's merge of two sets; neither is empty. The order of arguments counts, for bits. The
 * means' difference comes from sums multiplied by counts, not from means: inside a granule those
 * products of float32 data are exact more often than not, rounded means never are. */
static inline tgi_moments tgi_moments_merge(const tgi_moments *a, const tgi_moments *b)
{
    const double n = a->n + b->n, d = b->sum * a->n - a->sum * b->n;
    const tgi_moments m = {n, a->sum + b->sum, a->m2 + b->m2 + d * d / (a->n * b->n * n)};
    return m;
}
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

/* Moments of channel c of an operand that is there from edge to edge, of extent `full`. The
 * definition, in plain C. */
tgi_moments tgi_granule_channel(const tgi_operand *src, const tgi_desc *full, int64_t c);

/* ---- From pieces ------------------------------------------------------------------------- */

/* The part of an axis (x or y, of extent dim) whose granules a tile with this core adds. May be
 * empty, and may reach beyond the core. */
tgi_range tgi_granule_share(tgi_range core, int64_t dim);

/* What a state gathers, and where its columns may begin. */
#define TGI_GRANULES_MOMENTS 1u
#define TGI_GRANULES_EXTREMES                                                                  \
    2u /* the largest and smallest value, and whether a NaN was there */
#define TGI_GRANULES_ANYWHERE 4u /* columns may begin at any granule: a part of an image */

typedef struct tgi_column { /* how far a column is; the same for all channels */
    int64_t begin, end;     /* finished granules: [begin,end) along the stream axis */
    int64_t rows;           /* of granule `end`, that is being filled */
} tgi_column;

/* A state and where things lie in it. The state is the bytes at `mem`, tgi_granules_bytes of
 * them: the caller's, without pointers, the same on every instruction set. They can be copied,
 * written to a file between two calls and read back (tgi_granules_resume). */
typedef struct tgi_granules {
    tgi_desc full;
    unsigned what;
    int slots;            /* finished subtrees of a column, at most */
    int64_t leaves;       /* granules of a column, along the stream axis */
    int64_t down, across; /* columns; down: 1 of an image */
    int64_t channels;
    void *mem;
    tgi_column *column; /* [down][across] */
    double *sums;    /* [column][1 + slots][2][channel]: the granule that is being filled, then
                           finished subtrees from top to bottom; sum, then m2 */
    float *extremes; /* [column][3][channel]: largest, smallest, 1 where a NaN was */
} tgi_granules;

/* Bytes of a state: 16 for each channel, column and subtree. An image of 65,536 x 65,536 pixels
 * and 64 channels takes 11.6 MB, with ANYWHERE 20 MB. SIZE_MAX: more than that. */
size_t tgi_granules_bytes(const tgi_desc *full, unsigned what);
/* Everything but where the bytes are: `mem` and the pointers are not set. */
void tgi_granules_measure(tgi_granules *g, const tgi_desc *full, unsigned what);
/* Begin an empty state in that many bytes, 8-byte aligned, borrowed. */
void tgi_granules_init(tgi_granules *g, const tgi_desc *full, unsigned what, void *mem);
/* Go on with a state of `bytes` bytes that was read back to `mem`, 8-byte aligned, borrowed.
 * @return TG_E_FORMAT when it is none, of another shape, or its counts cannot be. Numbers
 * are not looked at: any could be sums, so a file needs a checksum of its own. */
tg_status tgi_granules_resume(tgi_granules *g, const tgi_desc *full, unsigned what, void *mem,
                              size_t bytes, tgi_err *err);
/* Put a state behind another: in each column where both have granules, `lower` begins where
 * `upper` ends, on a whole granule. Both gather the same; `upper` then has the bits of one that
 * got everything. @return TG_E_INTERNAL when a column does not meet; `upper` is as it was. */
tg_status tgi_granules_merge(tgi_granules *upper, const tgi_granules *lower, tgi_err *err);
/* 1: every pixel of the image is in it. */
int tgi_granules_complete(const tgi_granules *g);
/* Moments of channel c. @return TG_E_INTERNAL when pixels are missing. */
tg_status tgi_granules_finish(const tgi_granules *g, int64_t c, tgi_moments *out, tgi_err *err);

/* NaNs are skipped in `largest` (-inf: nothing else was there) and `smallest` (+inf), as in
 * GlobalMaxPool; an operator that hands NaN on (ReduceMax) asks has_nan. Order does not matter,
 * so a zero is +0: which of two zeros came first is not known. */
typedef struct tgi_extremes {
    float largest, smallest;
    int has_nan;
} tgi_extremes;
tg_status tgi_granules_extremes(const tgi_granules *g, int64_t c, tgi_extremes *out,
                                tgi_err *err);

/* Rows of a box of which somebody has computed the moments: sum[granule of the box, in x][2][channel]
 * for each of its rows, slab by slab, sums before squared distances. The same as granules_add of the
 * values. */
struct tgi_threads;
tg_status tgi_granules_add_rows(tgi_granules *g, const double *sum, const tgi_box *box,
                                struct tgi_threads *threads, tgi_err *err);

/* ---- For the kernel sets' granules_add ---------------------------------------------------- */

/* May all of this box be added now? @return TG_E_INTERNAL and why not. */
tg_status tgi_granules_admit(const tgi_granules *g, const tgi_box *box, tgi_err *err);
/* Where column i begins once this box is there. */
int64_t tgi_granules_begin(const tgi_granules *g, int64_t column, const tgi_box *box);
/* Columns of a box, as granules down and across; granules of it along the stream axis. */
void tgi_granules_columns(const tgi_granules *g, const tgi_box *box, tgi_range *down,
                          tgi_range *across);
tgi_range tgi_granules_leaves(const tgi_granules *g, const tgi_box *box);
/* Image rows of a column's granule, and its width. */
tgi_range tgi_granules_rows(const tgi_granules *g, int64_t column, int64_t leaf);
int64_t tgi_granules_width(const tgi_granules *g, int64_t column);
/* Where slot i of a column has the sums of its channels (i = 0: the granule that is being
 * filled); m2 are g->channels further on. */
static inline double *tgi_granules_slot(const tgi_granules *g, int64_t column, int i)
{
    return g->sums + (column * (1 + g->slots) + i) * 2 * g->channels;
}
/* Channels [c, c + n) of a finished granule: merge what it completes. `begin`: of the column,
 * which is not looked at, since all its channels are not yet there. */
void tgi_granules_push(const tgi_granules *g, int64_t column, int64_t begin, int64_t leaf,
                       int64_t c, int n, const double *sum, const double *m2);
/* A box that was admitted is there in all channels. */
void tgi_granules_advance(tgi_granules *g, const tgi_box *box);

#endif

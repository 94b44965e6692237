/* trained.h - tensors of a file of weights (io/weights.h) as constants of a network that is drafted in code
 * (graph/draft.h).
 *
 * Where the file's mapping holds them as float32 they are borrowed: the file stays open while the network lives. Others
 * are read and converted, and are the graph's own. A tensor that is missing, or has another shape, is TG_E_FORMAT of the
 * draft, by name. */
#ifndef TGI_TRAINED_H
#define TGI_TRAINED_H

#include "engine/graph/draft.h"
#include "io/weights.h"

typedef struct tgi_trained {
    tgi_draft *draft;
    const tgi_weights *file; /* NULL: all are zeros, for a plan */
} tgi_trained;

#define TGI_DIMS(...)                                                                          \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[])               \
    {                                                                                          \
        __VA_ARGS__                                                                            \
    }

/* Elements of a tensor of exactly that shape; NULL: the draft says why. */
const float *tgi_trained_floats(const tgi_trained *t, const char *name, int rank,
                                const int64_t *dim);
/* The same as a constant. */
int tgi_trained_const(const tgi_trained *t, const char *name, int rank, const int64_t *dim);

/* `name`.weight [to, from / group, k, k] and `name`.bias. `w` has all but the kernel. */
int tgi_trained_conv(const tgi_trained *t, int x, const char *name, int64_t from, int64_t to,
                     int64_t k, const tgi_draft_window *w);
/* The same with padding k / 2 and nothing else. */
int tgi_trained_same(const tgi_trained *t, int x, const char *name, int64_t from, int64_t to,
                     int64_t k);
/* `name`.weight [to, from] as a convolution of 1 x 1. */
int tgi_trained_linear(const tgi_trained *t, int x, const char *name, int64_t from, int64_t to);
/* Rows [lo, hi) of the results of a convolution of k x k, padding k / 2, with `all` rows. */
int tgi_trained_part(const tgi_trained *t, int x, const char *name, int64_t from, int64_t all,
                     int64_t lo, int64_t hi, int64_t k);
/* What ProPainter's deformable convolutions sample by: three layers `name`.conv_offset.0, .2, .4 of `c` channels over x, which
 * has `from`, then .6, of whose results two thirds become `offset` (up to `reach` pixels) and the rest `share`. */
void tgi_trained_offsets(const tgi_trained *t, int x, const char *name, int64_t from, int64_t c,
                         int64_t groups, float reach, int *offset, int *share);
/* Deformable convolution of 3 x 3, padding 1: `offset` [18 * groups], dy and dx of each tap; `share` [9 * groups]. */
int tgi_trained_deform(const tgi_trained *t, int x, int offset, int share, const char *name,
                       int64_t from, int64_t to, int64_t groups);

#endif

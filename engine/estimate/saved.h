/* saved.h - what a forward pass keeps for the backward pass, node by node.
 *
 * The rules are those of PyTorch's autograd, a row per operator in saved.c: a convolution keeps
 * its input, a ReLU its output, a pooling its input and an int64 index per output, and so on.
 * A tensor that several operators keep is there once; views share what they view. Parameters
 * are counted apart. */
#ifndef TGI_SAVED_H
#define TGI_SAVED_H

#include "engine/graph/graph.h"
#include "tegula_estimate.h"

/* Bytes that grow with the batch, and bytes that do not. */
typedef struct tgi_saved_bytes {
    uint64_t per_sample, fixed;
} tgi_saved_bytes;

/* One thing that is kept: `value` in one element size, or (value < 0) something of the node's
 * own, such as statistics, indices or a mask. */
typedef struct tgi_saved_item {
    int step; /* position among the nodes that run */
    int value;
    int half; /* 2 bytes an element */
    tgi_saved_bytes bytes;
} tgi_saved_item;

typedef struct tgi_saved {
    const tgi_graph *g; /* as imported, borrowed */
    tgi_shapes shapes;
    int *step_node; /* nodes that run, in order */
    int n_steps;
    tgi_saved_item *item;
    int n_items, cap_items;
    int *alias;              /* per value: the value whose memory it is */
    unsigned char *half;     /* per value: held in 2 bytes an element */
    unsigned char *grad;     /* per value: the backward pass wants its gradient */
    int64_t parameters;      /* elements that are trained */
    int64_t half_read;       /* of these, read by products: autocast keeps half copies */
    uint64_t buffers;        /* bytes of what is not trained: running means */
    const char *assumed[16]; /* operators without a rule: all operands and results count */
    int n_assumed;
} tgi_saved;

/* Find what is kept for one sample of extents `in` (the order of the file's axes). Release with
 * tgi_saved_free, also after a failure. */
tg_status tgi_saved_find(const tgi_graph *g, const tgi_desc *in, tg_train_precision precision,
                         tgi_saved *out, tgi_err *err);
void tgi_saved_free(tgi_saved *s);

/* Bytes of all that is kept, each once. */
tg_status tgi_saved_total(const tgi_saved *s, tgi_saved_bytes *out, tgi_err *err);

/* With checkpoints: the values at the borders of `segments` segments of about equal bytes, and
 * the largest segment computed again between them. */
tg_status tgi_saved_segments(const tgi_saved *s, int segments, tgi_saved_bytes *stored,
                             tgi_saved_bytes *largest, tgi_err *err);

#endif

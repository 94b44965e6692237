/* draft.h - a network that is written down in code, line by line, instead of read from a file.
 *
 *     tgi_draft_begin(&d);
 *     x = tgi_draft_input(&d, "x", 3, h, w);
 *     y = tgi_draft_conv(&d, "conv1", x, weight, bias, &(tgi_draft_window){.kernel = {3, 3}, .pad = {1, 1}});
 *     tgi_draft_output(&d, tgi_draft_leaky(&d, y, 0.2f));
 *     tgi_draft_finish(&d, &graph, err);
 *
 * Every function gives the number of a value, [1,C,H,W] in float32. The first thing that goes wrong is kept: later calls
 * do nothing then, and tgi_draft_finish tells it. Names are those of errors and plans. */
#ifndef TGI_DRAFT_H
#define TGI_DRAFT_H

#include "engine/graph/graph.h"

typedef struct tgi_draft {
    tgi_graph *graph;
    tg_status st;
    tgi_err err;
} tgi_draft;

void tgi_draft_begin(tgi_draft *d);
/* The finished graph, returned; tgi_graph_free. */
tg_status tgi_draft_finish(tgi_draft *d, tgi_graph **out, tgi_err *err);

int tgi_draft_input(tgi_draft *d, const char *name, int64_t c, int64_t h, int64_t w);
void tgi_draft_output(tgi_draft *d, int value);

/* A constant of float32. `data` outlives the graph, or NULL: *room, of zeros, is the graph's and to be filled. */
int tgi_draft_floats(tgi_draft *d, const char *name, int rank, const int64_t *dim,
                     const float *data, float **room);
/* A constant list of whole numbers, copied. */
int tgi_draft_list(tgi_draft *d, int n, const int64_t *v);

/* Any operator of one result; -1 in `src`: not given. Attributes of the last node that was made. */
int tgi_draft_node(tgi_draft *d, const char *op, const char *name, int n, const int *src);
void tgi_draft_int(tgi_draft *d, const char *attr, int64_t v);
void tgi_draft_float(tgi_draft *d, const char *attr, float v);
void tgi_draft_enum(tgi_draft *d, const char *attr, const char *choice);
void tgi_draft_ints(tgi_draft *d, const char *attr, int n, const int64_t *v);

/* Windows: rows, columns. 0 of stride, dilation and group: 1. */
typedef struct tgi_draft_window {
    int64_t kernel[2], stride[2], pad[2], dilation[2], group;
    int64_t more[2]; /* of a transposed one: rows and columns at the end */
} tgi_draft_window;
/* The last node sums in the written order, whatever the others run by: a layer that more rounding would show of. */
void tgi_draft_exact(tgi_draft *d);
/* bias -1: none. */
int tgi_draft_conv(tgi_draft *d, const char *name, int x, int weight, int bias,
                   const tgi_draft_window *w);
int tgi_draft_conv_transpose(tgi_draft *d, const char *name, int x, int weight, int bias,
                             const tgi_draft_window *w);
/* Channels [from, until). */
int tgi_draft_channels(tgi_draft *d, int x, int64_t from, int64_t until);
int tgi_draft_concat(tgi_draft *d, int n, const int *part);
int tgi_draft_unary(tgi_draft *d, const char *op, int x); /* "Relu", "Tanh", ... */
int tgi_draft_binary(tgi_draft *d, const char *op, int a, int b);
int tgi_draft_scale(tgi_draft *d, int x, float by);
int tgi_draft_leaky(tgi_draft *d, int x, float slope);
/* To h x w, linear, the corners stay the corners. */
int tgi_draft_enlarge(tgi_draft *d, int x, int64_t h, int64_t w);
/* Rows and columns behind the end and before the beginning: zeros, or the border repeated. */
int tgi_draft_pad(tgi_draft *d, int x, const int64_t before[2], const int64_t after[2],
                  int repeat);

#endif

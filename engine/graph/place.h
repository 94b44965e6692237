/* place.h - how the output of a graph lies over its input, axis by axis: how many output pixels
 * an input pixel makes, how many pixels are missing because convolutions were valid, and how
 * many of these at the near side.
 *
 * The scale comes from inference at two sizes. Where only one size is possible, it comes from
 * the step at which the reads of the output repeat.
 *
 * The near side comes from `need`: take the pixels of one period of the output, far from any
 * border; the centre of what they read of the input is where the output lies.
 *
 * Operators that read the whole extent say nothing about place. Those that keep the extent are
 * passed through; those that do not (global pooling) are left out. */
#ifndef TGI_PLACE_H
#define TGI_PLACE_H

#include "engine/graph/graph.h"

typedef struct tgi_place {
    int64_t up, down; /* output pixels for each `down` input pixels; up 0: the output's extent
                         does not follow the input's */
    int64_t lost;     /* output pixels missing against up/down of the input; <= 0: none */
    int64_t lead;     /* of those, before output pixel 0; negative when it lies outside */
    /* An axis of one fixed extent: the steps in which what output pixels read repeats, and the
     * output pixels that read nothing from beyond a border. step_in 0: there is no such step,
     * `why` says so. */
    int64_t step_in, step_out;
    tgi_range keep;
    char why[200];
    int whole; /* because an operator reads the whole extent */
} tgi_place;

/* Place of output 0 over input 0 on axis k (index into z,y,x). */
tg_status tgi_graph_place(const tgi_graph *g, int k, tgi_place *out, tgi_err *err);
/* The same of boxes of extent n, whatever sizes the graph takes: operators that read the whole
 * extent read the box. */
tg_status tgi_graph_place_box(const tgi_graph *g, int k, int64_t n, tgi_place *out,
                              tgi_err *err);
/* The first node that reads the whole extent of what is not known at these shapes, or NULL. */
const tgi_node *tgi_graph_whole_node(const tgi_graph *g, const tgi_shapes *s);

/* Extent of output 0 on axis k when the input's is n, the other axes at base; TG_E_FORMAT where
 * the graph does not take it. */
tg_status tgi_graph_output_extent(const tgi_graph *g, int k, int64_t n, int64_t *out,
                                  tgi_err *err);

/* How needs are walked: values of a single pixel, which are the same for every place (global
 * pooling), are left out; what is read lies a pixel or more from the images' borders, too. */
typedef enum tgi_need { TGI_NEED_ALL, TGI_NEED_PLACED, TGI_NEED_FAR } tgi_need;

/* Backward along one axis without a border: what `core` of output 0 reads of every value, even
 * beyond its image. `need`: g->n_values. Returns 1 when all of it lies inside the images. */
int tgi_graph_axis_need(const tgi_graph *g, const tgi_shapes *s, int axis, tgi_range core,
                        tgi_need how, tgi_range *need);

#endif

/* fit.h - the size a network is run at for an image, and how its output is cut back.
 *
 *      before      image extent        after
 *    |--------|----------------------|------|     what the network sees: `size`
 *         |------------------------------|        its output, scaled back
 *             |======================|            `out` pixels are kept, from `crop` on
 *
 * Raw size: nothing before; after, up to the next extent the network takes; kept is what the
 * network gives for the image. Same size: the output covers the image pixel for pixel (times its
 * scale). Before and after by what the network eats at each side; what a network gives beyond the
 * image, because it rounds sizes up or adds a border, is not kept. In boxes `out` is the same.
 *
 * A network that works at one size only is run at that size in boxes where that is possible:
 * box number a begins at a * step_in, its output at a * step_out. Seen from here such a network
 * takes the extents box + a * step_in. */
#ifndef TGI_FIT_H
#define TGI_FIT_H

#include "engine/graph/place.h"

typedef struct tgi_fit {
    int64_t before, size;
    int64_t crop, out;
    tgi_place place;
    int64_t box;  /* > 0: fixed boxes of this extent */
    int64_t core; /* output pixels of a cell of the boxes' grid; asked before there is one */
    int64_t last; /* number of the last box */
} tgi_fit;

/* Axis k (index into z,y,x) for an image of that extent. TG_E_UNSUPPORTED: the network works at
 * one size, which is smaller, and boxes are not possible. */
tg_status tgi_fit_axis(const tgi_graph *g, int k, int64_t extent, int same_size, tgi_fit *out,
                       tgi_err *err);

/* The same in boxes, each an image of its own to operators that read whole extents: boxes of
 * which `core` output pixels (0: as many as there are) are free of what a border changes. The
 * boxes' extent is the network's, where it has one; where the image is no larger than a box, it
 * is one. */
tg_status tgi_fit_axis_in_boxes(const tgi_graph *g, int k, int64_t extent, int same_size,
                                int64_t core, tgi_fit *out, tgi_err *err);

/* Where the network lies that computes output pixel o of the file (its box, where there are
 * boxes): pixel i of the image is i + *in of its input, o is o + *out of its output. */
void tgi_fit_shift(const tgi_fit *f, int64_t o, int64_t *in, int64_t *out);

#endif

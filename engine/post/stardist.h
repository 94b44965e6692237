/* stardist.h - objects from probabilities and distances along rays (StarDist, in the plane).
 *
 * Plane 0 is the probability that a value is inside an object, planes 1.. are the distances from there
 * to the object's edge along rays at equal angles, the first to the right, the second a turn further
 * down. What comes out is what `stardist` 0.9.1 makes of the same planes:
 *
 * 1. Candidates are values above a threshold, `border` values away from the edges.
 * 2. From the highest probability down, a candidate is an object unless an object found before covers
 *    too much of it: the area in common over the smaller of both areas, corners cut to whole numbers.
 *    Of equal probabilities the first in raster order comes first. (There, theirs is left to a sort
 *    that is not stable.)
 * 3. Objects are numbered from 1 in that order and painted in the opposite one; a pixel is in a polygon
 *    when its centre is, or lies on the edge.
 *
 * Candidates are read by bands of rows. One is decided as soon as all that can cover it are read, so
 * memory holds those that are not, and the objects: never the planes. The bands' height changes nothing. */
#ifndef TGI_STARDIST_H
#define TGI_STARDIST_H

#include "engine/post/post_rows.h"

#include <stddef.h>

#define TGI_STARDIST_RAYS 512 /* most */

typedef struct tgi_stardist_how {
    float prob_threshold, nms_threshold;
    int grid;              /* pixels for each value, in both directions: 1, 2, 4 */
    int border;            /* theirs is 2 */
    int64_t height, width; /* of the image, in pixels; 0: of the planes, times grid */
    int64_t band_rows;     /* rows of the planes that are read at once; 0: 64 */
    size_t limit_bytes;    /* of all that it holds; 0: no limit */
} tgi_stardist_how;

/* Their defaults where a network does not bring its own. */
#define TGI_STARDIST_HOW                                                                       \
    {                                                                                          \
        .prob_threshold = 0.5f, .nms_threshold = 0.4f, .grid = 1, .border = 2                  \
    }

typedef struct tgi_stardist_object {
    int32_t y, x;      /* pixels */
    float prob, reach; /* of its longest ray */
    uint32_t at;       /* its distances are at rays * at */
} tgi_stardist_object;

typedef struct tgi_stardist tgi_stardist;

/* Find the objects. Reads the planes twice. `rows` is used during the call only. Returned.
 * TG_E_ARG: a setting out of range; TG_E_FORMAT: a distance that is no number, or beyond 2^20 pixels;
 * TG_E_BUDGET: more candidates wait for a decision than the limit has room for. */
tg_status tgi_stardist_open(const tgi_post_rows *rows, const tgi_stardist_how *how,
                            tgi_stardist **out, tgi_err *err);
void tgi_stardist_close(tgi_stardist **s);

/* Bytes of buffers and tables for planes of `width` values and so many objects, when the longest ray has
 * `reach` pixels, if every value were a candidate and each were decided when all that can cover it are
 * read. */
size_t tgi_stardist_bytes(const tgi_stardist_how *how, int64_t width, int rays, double reach,
                          uint64_t n_objects);

uint32_t tgi_stardist_count(const tgi_stardist *s);
/* By number, from 1; views. */
const tgi_stardist_object *tgi_stardist_object_at(const tgi_stardist *s, uint32_t id);
const float *tgi_stardist_distances(const tgi_stardist *s, uint32_t id);
/* The most bytes it held. */
size_t tgi_stardist_peak(const tgi_stardist *s);

/* Rows [y0,y1) of the image, `width` numbers each, 0 where there is no object. */
void tgi_stardist_paint(tgi_stardist *s, int64_t y0, int64_t y1, uint32_t *dst);

#endif

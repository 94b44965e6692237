/* star_inside.h - what the files of StarDist share: the list of objects, and what paints them. */
#ifndef TGI_STAR_INSIDE_H
#define TGI_STAR_INSIDE_H

#include "engine/post/room.h"
#include "engine/post/stardist.h"

struct tgi_stardist {
    tgi_stardist_how how;
    int rays;
    tgi_stardist_object *objects; /* by number, less 1 */
    float *distances;
    uint32_t n;
    size_t room, room_distances;
    tgi_room memory;
    float *corner_y, *corner_x; /* of the polygon being painted */
    double *sines, *cosines;
    uint8_t *turns; /* twice a row */
    uint32_t *near; /* objects near rows [near_y0,near_y1), in the order of painting */
    uint32_t n_near;
    int64_t near_y0, near_y1;
};

tg_status tgi_star_paint_open(tgi_stardist *s, tgi_err *err);

#endif

/* tiff_front.h - what the layout and the front of an output TIFF know of each other. */
#ifndef TGI_TIFF_FRONT_H
#define TGI_TIFF_FRONT_H

#include "io/sink.h"

/* Bytes of the front, as a classic TIFF or (big) as a BigTIFF; saturated, so too large is seen. */
uint64_t tgi_tiff_front_bytes(const tgi_sink_layout *l, int big);

/* Tiles of a plane of one level. */
static inline int64_t tgi_sink_tiles_per_plane(const tgi_sink_layout *l, int level)
{
    return l->level_of[level].tiles_y * l->level_of[level].tiles_x;
}

#endif

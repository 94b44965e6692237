/* ome_grid.h - planes of an OME Image by z, c and t: DimensionOrder and TiffData as numbers. */
#ifndef TGI_OME_GRID_H
#define TGI_OME_GRID_H

#include "io/image.h"
#include "io/ome_xml.h"

typedef struct tgi_ome_grid {
    int64_t n[3], stride[3]; /* z, c, t: sizes and plane strides */
    int64_t total;           /* planes */
    int64_t per_c;           /* FirstC goes up by it from channel to channel */
} tgi_ome_grid;

/* From what the XML says and what the page is; appends the axes of planes to `info`, slowest
 * first. TG_E_FORMAT they contradict each other. */
tg_status tgi_ome_grid_make(const tgi_ome *o, int64_t width, int64_t height, int64_t spp,
                            tgi_image_info *info, tgi_ome_grid *g, tgi_err *err);
/* First plane and number of planes of a TiffData, of which `placed` counts all so far; a count
 * that is not stated is `all`. TG_E_FORMAT outside the image, or planes twice. */
tg_status tgi_ome_grid_block(const tgi_ome_grid *g, const tgi_ome_block *b, int64_t all,
                             int64_t *placed, int64_t *from, int64_t *n, tgi_err *err);
/* Names, colours, sizes move from the parse to the metadata. */
tg_status tgi_ome_take_meta(tgi_ome *o, tgi_image_meta *m, tgi_err *err);

#endif

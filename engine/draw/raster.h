/* raster.h - polygons to pixels, with exact coverage.
 *
 * Each edge adds the signed area it covers to the cells it passes; a running sum along a row
 * then is the coverage of each pixel (the method of font rasterisers; Levien, "How fast
 * rendering works in font-rs", 2016). Shapes put down together are united: pieces of one
 * winding may overlap. */
#ifndef TGI_RASTER_H
#define TGI_RASTER_H

#include "engine/draw/canvas.h"

#include <stdint.h>

typedef struct tgi_raster {
    int width, height;
    uint8_t *rgb;  /* 3 bytes a pixel, rows without gaps */
    float *cover;  /* width + 2 a row: areas of the shape being put down */
    int top, foot; /* rows that it touches: [top, foot) */
} tgi_raster;

/* White. TG_E_NOMEM. */
tg_status tgi_raster_open(int width, int height, tgi_raster *out, tgi_err *err);
void tgi_raster_close(tgi_raster *r);

/* Add pieces to the shape: a closed polygon; a line of this width with round ends and joints.
 * Coordinates are pixels. Polygons of a union have to have one winding; lines take care of it.
 */
void tgi_raster_edge(tgi_raster *r, tgi_point p, tgi_point q); /* one side of a polygon */
void tgi_raster_polygon(tgi_raster *r, const tgi_point *p, int n);
void tgi_raster_line(tgi_raster *r, const tgi_point *p, int n, double width);
/* Paint the shape, and begin the next. */
void tgi_raster_paint(tgi_raster *r, tgi_colour c);

#endif

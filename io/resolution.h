/* resolution.h - pixels per inch or centimetre, as TIFF, PNG and JPEG state the size of a
 * pixel. */
#ifndef TGI_RESOLUTION_H
#define TGI_RESOLUTION_H

#include "io/image.h"

/* Pixels per unit along x and y of an output with this metadata (NULL: nothing known), and the
 * unit as TIFF numbers it: 1 none (the pixel's aspect alone), 2 inch, 3 centimetre; 0: unknown.
 * A size of pixels in a known unit of length goes before a resolution: 96 dpi beside it is what
 * a program writes that knew nothing better. */
int tgi_resolution_of(const tgi_image_meta *m, double per_unit[2]);
/* Has a JPEG, whose densities are of 16 bits, a place for it? */
int tgi_jpeg_says(const double per_unit[2]);

#endif

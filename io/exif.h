/* exif.h - the one thing that Exif says about pixels: how to turn them. An Exif block is a TIFF
 * directory; in a JPEG it stands behind "Exif\0\0", in a PNG alone. */
#ifndef TGI_EXIF_H
#define TGI_EXIF_H

#include <stddef.h>
#include <stdint.h>

#define TGI_EXIF_BYTES 26

/* Orientation (1 to 8) of a block; 0 when it does not say. Untrusted, bounded. */
int tgi_exif_orientation(const uint8_t *p, size_t n);
/* A block that says nothing else. */
void tgi_exif_make(int orientation, uint8_t out[TGI_EXIF_BYTES]);

#endif

/* imagej_meta.h - what ImageJ keeps beside its description: lookup tables, display ranges,
 * names of planes and a text, in private tags 50838 (byte counts) and 50839 (bytes). */
#ifndef TGI_IMAGEJ_META_H
#define TGI_IMAGEJ_META_H

#include "io/image.h"
#include "io/tiff_ifd.h"

/* Read into m. False when the tags are damaged: what was read before stays. TG_E_NOMEM aside
 * nothing here is an error, since no pixel depends on it. */
tg_status tgi_imagej_meta_read(const tgi_tiff_file *t, const tgi_tiff_page *p,
                               tgi_image_meta *m, bool *whole, tgi_err *err);

/* The two tags' contents for an image of n_planes, little- or big-endian as this machine is;
 * *n_counts == 0: nothing to keep. Returned; tgi_free both. */
tg_status tgi_imagej_meta_make(const tgi_image_meta *m, int64_t n_planes, uint32_t **counts,
                               size_t *n_counts, uint8_t **bytes, size_t *n_bytes,
                               tgi_err *err);

/* Does such a stack say how large a pixel is, and how far slices are apart? Its sizes have one unit, and where one of x and y is
 * not said ImageJ takes 1 for it: it says both or none, and no distance then. */
bool tgi_imagej_says_pixel(const tgi_image_meta *m);
bool tgi_imagej_says_spacing(const tgi_image_meta *m);

#endif

/* tiff_info.h - what the tags of a page say about the image, as tgi_image_info. */
#ifndef TGI_TIFF_INFO_H
#define TGI_TIFF_INFO_H

#include "io/image.h"
#include "io/tiff_index.h"

/* Fill in texts and resolution from a page; frees the texts that were there. */
tg_status tgi_tiff_info_texts(const tgi_tiff_file *t, const tgi_tiff_page *first,
                              tgi_image_meta *m, tgi_err *err);
/* Fill in what the numbers of a page mean, its orientation, and its palette. */
tg_status tgi_tiff_info_form(const tgi_tiff_file *t, const tgi_tiff_page *p, tgi_image_meta *m,
                             tgi_err *err);
/* Fill in what ImageJ says about channels and planes. The axes must be known. */
tg_status tgi_tiff_info_imagej(const tgi_tiff_file *t, const tgi_tiff_page *first,
                               tgi_image_info *i, tgi_err *err);
/* Fill in storage and levels. Scales the sizes of pixels to the opened level. */
void tgi_tiff_info_fill(const tgi_tiff_file *t, const tgi_tiff_index *x, tgi_image_info *i);

#endif

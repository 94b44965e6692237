/* tiff_info.h - what the tags of a page say about the image, as tgi_image_info. */
#ifndef TGI_TIFF_INFO_H
#define TGI_TIFF_INFO_H

#include "io/image.h"
#include "io/tiff_index.h"

/* Texts and resolution of a page; what was there before is freed. */
tg_status tgi_tiff_info_texts(const tgi_tiff_file *t, const tgi_tiff_page *first,
                              tgi_image_meta *m, tgi_err *err);
/* What the numbers of a page mean, how they are to be turned, and its palette. */
tg_status tgi_tiff_info_form(const tgi_tiff_file *t, const tgi_tiff_page *p, tgi_image_meta *m,
                             tgi_err *err);
/* What ImageJ says about channels and planes, once the axes are known. */
tg_status tgi_tiff_info_imagej(const tgi_tiff_file *t, const tgi_tiff_page *first,
                               tgi_image_info *i, tgi_err *err);
/* Everything about storage and levels; sizes of pixels are scaled to the opened level. */
void tgi_tiff_info_fill(const tgi_tiff_file *t, const tgi_tiff_index *x, tgi_image_info *i);

#endif

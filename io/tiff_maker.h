/* tiff_maker.h - sizes of pixels that makers of instruments write in places of their own. */
#ifndef TGI_TIFF_MAKER_H
#define TGI_TIFF_MAKER_H

#include "io/image.h"
#include "io/tiff_ifd.h"

/* Fill in sizes of pixels and the flavor of `info`, where only the maker of the instrument
 * tells them; `series` is the open one. Fails with TG_E_IO or TG_E_NOMEM only: a text that it
 * does not understand is left out. */
tg_status tgi_tiff_maker_sizes(const tgi_tiff_file *t, const tgi_tiff_page *first, int series,
                               tgi_image_info *info, tgi_err *err);

#endif

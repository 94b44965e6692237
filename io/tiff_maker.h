/* tiff_maker.h - sizes of pixels that makers of instruments write in places of their own. */
#ifndef TGI_TIFF_MAKER_H
#define TGI_TIFF_MAKER_H

#include "io/image.h"
#include "io/tiff_ifd.h"

/* Sizes of pixels and the flavor of `info`, where the maker of the instrument said them and
 * nobody else did; `series` is the one that is open. TG_E_IO or TG_E_NOMEM only: a text that is
 * not understood says nothing. */
tg_status tgi_tiff_maker_sizes(const tgi_tiff_file *t, const tgi_tiff_page *first, int series,
                               tgi_image_info *info, tgi_err *err);

#endif

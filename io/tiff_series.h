/* tiff_series.h - the meaning of the pages: axes, number and order of planes, metadata. */
#ifndef TGI_TIFF_SERIES_H
#define TGI_TIFF_SERIES_H

#include "io/image.h"
#include "io/tiff_index.h"

typedef enum tgi_tiff_flavor {
    TGI_TIFF_PLAIN,
    TGI_TIFF_OME,
    TGI_TIFF_IMAGEJ,
    TGI_TIFF_SHAPED
} tgi_tiff_flavor;

typedef struct tgi_tiff_series {
    uint32_t *rank;  /* plane -> place among the index's refs; NULL: the same number */
    bool contiguous; /* fewer directories than planes: plane p begins at base + p * plane bytes
                      */
    uint64_t base;
    bool in_files;           /* after a failure: the image lies in several files, */
    char metadata_file[128]; /* described in this one, unless "": in this very file */
} tgi_tiff_series;

tgi_tiff_flavor tgi_tiff_flavor_of(const char *description);
/* Fill axes, shape, planes, flavor and metadata of `info` from the index and the description
 * (NULL: none) of the first page, and say where plane p lies. All planes that the metadata
 * claims are in the file, or it is an error: TG_E_FORMAT, or TG_E_UNSUPPORTED when they are in
 * other files. On failure the metadata filled so far stays in `info` for the caller to free. */
tg_status tgi_tiff_series_resolve(tgi_tiff_file *t, const tgi_tiff_index *x,
                                  const char *description, const char *file_name,
                                  const tgi_open_opts *o, tgi_image_info *info,
                                  tgi_tiff_series *out, tgi_err *err);
/* Size of the OME Image `image`, for finding its pages. */
tg_status tgi_tiff_series_size(const char *description, int image, int64_t *width,
                               int64_t *height, tgi_err *err);

#endif

/* tiff_series.h - what the pages mean: axes, number and order of planes, metadata. */
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
    bool in_files; /* after a failure: the image lies in several files, */
    int own;       /* the first image with planes in this file, < 0: none of several; */
    char metadata_file[256]; /* described in this one, unless "": in this very file */
} tgi_tiff_series;

tgi_tiff_flavor tgi_tiff_flavor_of(const char *description);
/* Fill axes, shape, planes, flavor and metadata of `info` from the index and the description
 * (NULL: none) of the first page, and say where plane p lies. Every plane that the metadata
 * claims must be in the file. TG_E_FORMAT: one is missing; TG_E_UNSUPPORTED: they are in other
 * files. On failure the metadata filled so far stays in `info`, and the caller frees it. */
tg_status tgi_tiff_series_resolve(tgi_tiff_file *t, const tgi_tiff_index *x,
                                  const char *description, const char *file_name,
                                  const tgi_open_opts *o, tgi_image_info *info,
                                  tgi_tiff_series *out, tgi_err *err);
/* Find the size of the OME Image `image`, to recognise its pages by; 0: it lies in other files. */
tg_status tgi_tiff_series_size(const char *description, const char *file_name, int image,
                               int64_t *width, int64_t *height, tgi_err *err);

#endif

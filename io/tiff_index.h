/* tiff_index.h - which directories of a TIFF are the planes of one of its series, and where the
 * offsets of their strips or tiles lie.
 *
 * The index visits each directory once, or twice for a resolution level. It keeps 20 bytes of
 * each (28 of old JPEG): where its arrays lie, not the arrays. A reader looks those up through
 * a small window. So a stack of a million pages costs 20 MB, and a gigapixel in a million tiles
 * costs nothing. */
#ifndef TGI_TIFF_INDEX_H
#define TGI_TIFF_INDEX_H

#include "io/image.h"
#include "io/tiff_ifd.h"

/* The two arrays of one page: position in 56 bits, type in 8. */
typedef struct tgi_tiff_ref {
    uint64_t offsets, counts;
} tgi_tiff_ref;

typedef struct tgi_tiff_index {
    tgi_tiff_page first; /* first page of the opened series, at full size */
    tgi_tiff_page page;  /* the same at the opened level */
    uint64_t n_chain;    /* directories in the main chain */
    tgi_tiff_ref *refs;  /* pages of the series at the opened level, in file order */
    uint32_t *chain;     /* place of each in the main chain */
    uint64_t *where;     /* where the directory of each lies; NULL unless `page` is old JPEG */
    uint64_t n_refs, cap;
    int n_series, n_levels; /* n_levels >= 1: of the opened series */
    tgi_series_info series[TGI_IMAGE_MAX_SERIES];
    int64_t level_h[TGI_IMAGE_MAX_LEVELS], level_w[TGI_IMAGE_MAX_LEVELS];
} tgi_tiff_index;

typedef struct tgi_tiff_index_opts {
    int series, level;
    bool aperio; /* an SVS slide: levels are tiled pages of the chain, not marked so */
    int64_t width, height; /* not 0: the series of this size, whatever its number */
    bool subifd_levels;    /* smaller SubIFDs are levels that are not marked so (tifffile's) */
    bool subifd_planes;    /* full-size SubIFDs are planes too (files without axes metadata) */
    size_t max_bytes;      /* the index itself may take */
} tgi_tiff_index_opts;

/* Build the index. TG_E_FORMAT damaged or looping chain; TG_E_ARG no such series or level;
 * TG_E_BUDGET more pages than max_bytes can hold; TG_E_UNSUPPORTED a feature by name. Give the
 * parsed first page of the file in `out->first`; it becomes the first page of the series, laid
 * out. */
tg_status tgi_tiff_index_build(tgi_tiff_file *t, const tgi_tiff_index_opts *o,
                               tgi_tiff_index *out, tgi_err *err);
void tgi_tiff_index_free(tgi_tiff_index *x);
/* Bytes that the index takes. */
size_t tgi_tiff_index_bytes(const tgi_tiff_index *x);
/* Offsets and counts of page `rank` (place among the refs) as arrays for tgi_tiff_value. */
void tgi_tiff_ref_arrays(const tgi_tiff_index *x, uint64_t rank, tgi_tiff_array *offsets,
                         tgi_tiff_array *counts);

#endif

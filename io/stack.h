/* stack.h - many files as one image: plane p of the stack is plane q of file f.
 *
 * Folders, globs and numbered names (file_set.c) and multi-file OME-TIFF (ome_set.c) end here.
 * Every file is opened once at open, so that one of another size or type is named before the
 * first pixel; after that each reader holds a few of them open and closes the one it used
 * longest ago, so neither descriptors nor memory grow with the number of files.
 *
 * Opening a file again allocates what opening it the first time did; codec_bytes counts the
 * most that all open ones can hold. */
#ifndef TGI_STACK_H
#define TGI_STACK_H

#include "io/image.h"

#define TGI_STACK_MAX_FILES (1 << 20)

typedef struct tgi_stack_plane {
    uint32_t file, plane; /* plane UINT32_MAX: not placed yet */
} tgi_stack_plane;

/* What a stack is made of. All of it is taken by tgi_stack_open, also on failure. */
typedef struct tgi_stack_spec {
    char **path;              /* n_files, owned, as is the array */
    int64_t n_files, n_extra; /* n_extra more behind them belong to it, and hold no planes */
    tgi_stack_plane *planes;  /* info.n_planes, owned */
    /* Axes, shape, n_planes and meta; what is left out (type, size of blocks, ...) comes from
     * the first file, and height, width and samples must be the files' own. */
    tgi_image_info info;
    bool pages; /* files are opened as plain pages, whatever their descriptions say */
} tgi_stack_spec;

void tgi_stack_spec_free(tgi_stack_spec *spec); /* safe on zeros and after open */
/* TG_E_FORMAT a file is of another size or type, or has not the planes it should. */
tg_status tgi_stack_open(tgi_stack_spec *spec, const tgi_open_opts *o, tgi_source **out,
                         tgi_err *err);

/* file_set.c: a folder, a glob or "img_%05d.tif". TG_E_NOT_FOUND nothing matches; TG_E_ARG the
 * names do not fill a grid of --z, --c, --t. */
tg_status tgi_file_set_open(const char *path, const tgi_open_opts *o, tgi_source **out,
                            tgi_err *err);

/* ome_set.c: the image that the OME-XML found in `path` says lies in several files of its
 * folder. TG_E_FORMAT a file is missing, or the XML names one outside the folder. */
tg_status tgi_ome_set_open(const char *path, const char *xml, const tgi_open_opts *o,
                           tgi_source **out, tgi_err *err);
#define TGI_OME_IN_NONE                                                                        \
    "of the %d images that its OME-XML describes in several files none is in a file of its "   \
    "name: give it its own name again, or say which is meant by --series N"
/* Of a file whose metadata are in `metadata_file` beside it: XML, or another TIFF. TG_E_NOT_FOUND
 * when that is not there. */
tg_status tgi_ome_set_open_companion(const char *path, const char *metadata_file,
                                     const tgi_open_opts *o, tgi_source **out, tgi_err *err);

#endif

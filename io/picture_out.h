/* picture_out.h - files written row by row from the top: PNG, JPEG, ImageJ's stacks.
 *
 * Such a file cannot be continued after a stop, so a run never writes one directly: it is made
 * out of the finished tiles (engine/job/job_picture.h). A format is one file and one line here.
 */
#ifndef TGI_PICTURE_OUT_H
#define TGI_PICTURE_OUT_H

#include "io/image.h"
#include "io/part.h"

#include <stdbool.h>

typedef struct tgi_picture_spec {
    int64_t height, width;
    int samples;
    tg_dtype dtype;
    char axes[TGI_IMAGE_MAX_AXES + 1]; /* of the whole image, as in tgi_sink_layout */
    int64_t shape[TGI_IMAGE_MAX_AXES];
    const tgi_image_meta *meta; /* what is known beside the pixels; borrowed for the call; or
                                  NULL */
} tgi_picture_spec;

typedef struct tgi_picture_writer {
    const char *name;     /* "PNG" */
    const char *suffixes; /* "|png|"; "": asked for by --format, not by name */
    /* TG_E_ARG with the format's limits; TG_E_UNSUPPORTED not in this build. */
    tg_status (*may)(const tgi_picture_spec *s, tgi_err *err);
    size_t (*bytes)(const tgi_picture_spec *s); /* held while writing, the library's included */
    /* Of formats that hold several planes (NULL: one plane is all): how many images the file
     * has; and the plane that image i is, all its samples (*sample -1) or one of them. */
    int64_t (*images)(const tgi_picture_spec *s);
    int64_t (*source)(const tgi_picture_spec *s, int64_t i, int *sample);
    /* Begin in `to`, a new file that grows; borrowed until close. */
    tg_status (*create)(tgi_part *to, const tgi_picture_spec *s, void **state, tgi_err *err);
    /* The next row, samples interleaved, native order. */
    tg_status (*row)(void *state, const void *row, tgi_err *err);
    /* After the last row: complete and on the disk, without its name. */
    tg_status (*finish)(void *state, tgi_err *err);
    void (*close)(void *state); /* at any time; the file stays open, and there */
} tgi_picture_writer;

extern const tgi_picture_writer tgi_png_writer, tgi_jpeg_writer, tgi_imagej_writer,
    tgi_tiff_picture_writer;

/* What a TIFF of that writer begins with: classic, in the machine's order, its directory first. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define TGI_TIFF_PICTURE_HEAD "II*\0\10\0\0\0"
#else
#define TGI_TIFF_PICTURE_HEAD "MM\0*\0\0\0\10"
#endif
#define TGI_TIFF_PICTURE_HEAD_BYTES ((size_t)8)

/* Whether m has a colour profile, and one for colours in this many samples (with alpha, one
 * more). */
bool tgi_icc_fits(const tgi_image_meta *m, int samples);
/* The format that a file's name asks for, or NULL. */
const tgi_picture_writer *tgi_picture_writer_for(const char *path);
/* The same of files that are one frame each, which may be TIFFs, too. */
const tgi_picture_writer *tgi_frame_writer_for(const char *path);

#endif

/* picture.h - image files that can only be read from the first row to the last: PNG, JPEG.
 *
 * A format is a row decoder (tgi_picture_ops) and a line in io_table.c; everything else is
 * here. The rows decoded last are kept, all of them when they are few enough; going back beyond
 * them begins the file again, as with the rows of a large strip of a TIFF (tiff_stream.h), and
 * the plan counts it in the same way. Where a checksum stands behind the pixels, nobody gets a
 * row before it: a picture that is not kept and not read in one call is gone over once first.
 */
#ifndef TGI_PICTURE_H
#define TGI_PICTURE_H

#include "io/image.h"
#include "io/rfile.h"

#include <stdbool.h>

typedef struct tgi_picture_ops {
    /* Read the header of an open file and make the decoder. Fills width, height, samples,
     * dtype, compression and metadata of `info`. TG_E_BUDGET: decoding needs more than
     * `budget` bytes; nothing was allocated then. `f` is borrowed. */
    tg_status (*open)(const tgi_rfile *f, size_t budget, tgi_image_info *info, void **state,
                      tgi_err *err);
    void (*close)(void *state);
    size_t (*bytes)(const void *state); /* held, the library's included */
    /* Go to the first row. Also called again. */
    tg_status (*begin)(void *state, tgi_err *err);
    /* The next row: width pixels of samples interleaved, native order. TG_E_FORMAT. */
    tg_status (*row)(void *state, uint8_t *row, tgi_err *err);
    /* Behind the last row: is what follows what a whole file has there? TG_E_FORMAT. */
    tg_status (*end)(void *state, tgi_err *err);
    /* After `end`; or NULL: does what follows the pixels have something that would have counted
     * before them? */
    bool (*behind)(const void *state);
    /* Where the end has a checksum of the pixels; else NULL. In the place of the next `row`: go
     * over it without making its pixels. No row counts before `end` was met once. */
    tg_status (*skip)(void *state, tgi_err *err);
} tgi_picture_ops;

/* The open of a source's ops table: `source` is that table, `ops` the row decoder. */
tg_status tgi_picture_open(const tgi_source_ops *source, const tgi_picture_ops *ops,
                           const char *path, const tgi_open_opts *o, tgi_source **out,
                           tgi_err *err);
/* The rest of the table. */
const tgi_image_info *tgi_picture_info(const tgi_source *s);
tg_status tgi_picture_read(tgi_source *s, int thread, int64_t plane, int s0, int s1, int64_t y0,
                           int64_t y1, int64_t x0, int64_t x1, void *dst, size_t row_pitch,
                           size_t sample_pitch, tgi_err *err);
void tgi_picture_close(tgi_source **s);
size_t tgi_picture_bytes(const tgi_source *s);
int64_t tgi_picture_keeps(const tgi_source *s);
uint64_t tgi_picture_decoded(const tgi_source *s);
int tgi_picture_held(const tgi_source *s, int64_t i, tgi_held *out);

/* Pixels per metre from a file (0: unknown) to the metadata. */
void tgi_picture_resolution(tgi_image_meta *m, double x, double y);

#endif

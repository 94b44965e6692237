/* objects.h - a table of the objects that --post numbers, as CSV: where each lies, how large it is, how bright.
 *
 * Sums are exact: of whole numbers they are whole, and a centroid or a mean is one division of
 * them. A table has the objects of each image in the order of their numbers. As many as fit the memory
 * are summed at once; of parts that touch, those that no later row can have make room for others, so
 * one pass over the image does where few are large. */
#ifndef TGI_OBJECTS_H
#define TGI_OBJECTS_H

#include "io/image.h"

typedef struct tgi_objects_opts {
    tgi_source *post; /* of a list that ends with label (post.h) */
    const char *
        path; /* FILE.csv: it grows as FILE.csv.partial and gets its name when it is complete */
    int replace; /* what is there */
    int goes_on; /* an earlier run may have written it: what is there stays if it has the same bytes */
    size_t bytes;           /* for sums */
    const double *physical; /* size of a pixel, z, y, x, all in `unit`; 0: not known */
    const char *unit;       /* of these; "": not known */
    char *const
        *channel; /* names of channels, `channels` of them, entries may be NULL; or NULL */
    int channels;
} tgi_objects_opts;

/* Memory beside `bytes`. */
size_t tgi_objects_rest(const tgi_source *post);
/* Before anything works for nothing: TG_E_EXISTS where no table of this name could be made. */
tg_status tgi_objects_place(const char *path, tgi_err *err);
/* TG_E_EXISTS, TG_E_NO_SPACE, TG_E_IO, TG_E_NOMEM, and what reading answers. */
tg_status tgi_objects_write(const tgi_objects_opts *o, tgi_err *err);

#endif

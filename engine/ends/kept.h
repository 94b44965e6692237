/* kept.h - values that pass from one stage to another (plan/staged.h): rows are written as they
 * are computed, and read as they are wanted, whatever the cells and bands of either.
 *
 * Each value lies dense, [z][y][block][x][lane], in the lanes of tgi_kept_lanes, which views of it have,
 * too: a row of a block is one piece, in memory or in a file. The numbers of reductions lie beside
 * them. */
#ifndef TGI_KEPT_H
#define TGI_KEPT_H

#include "engine/plan/staged.h"

#include <stdatomic.h>

typedef struct tgi_kept {
    const tgi_staged *plan;
    void *memory;     /* plan->kept_bytes, borrowed */
    float *numbers;   /* plan->n_numbers, borrowed */
    int fd;           /* of the file, borrowed; -1: nothing is on disk */
    const char *path; /* for messages; borrowed */
    uint64_t front;   /* bytes of the file before the values */
    /* Of each value on disk, what was written of it so far, as a sum that does not depend on the
     * order (tgi_kept_check); NULL: nobody asks. Borrowed. */
    _Atomic uint64_t *sums;
    tgi_threads *pool; /* borrowed */
    tg_status (*stop)(void *user,
                      tgi_err *err); /* asked while values are checked; NULL: nobody */
    void *user;
} tgi_kept;

/* Write rows of value v from a view, over a box inside the image. */
tg_status tgi_kept_write(const tgi_kept *k, int v, const tgi_view *view, const tgi_box *box,
                         tgi_err *err);
/* Read them; of a reduction its numbers. TG_E_IO also where the file is shorter than it was. */
tg_status tgi_kept_read(const tgi_kept *k, int v, const tgi_view *view, const tgi_box *box,
                        tgi_err *err);

/* A row of its pixels [p), counted over the image: x of the view is a pixel's number. */
tg_status tgi_kept_read_pixels(const tgi_kept *k, int v, const tgi_view *view, tgi_range p,
                               tgi_err *err);

/* Where value v lies, which is kept in memory. */
const float *tgi_kept_place(const tgi_kept *k, int v);

/* The sum of what lies in a box of a value on disk. Each bit of each number changes it: a number is
 * multiplied with an odd one that depends on its place, modulo 2^64. `room`: memory to read
 * through, 4 KiB at least. TG_E_FORMAT: the file is too short; TG_E_IO; what `stop` answers. */
tg_status tgi_kept_check(const tgi_kept *k, const tgi_kept_value *of, const tgi_box *box,
                         void *room, size_t room_bytes, uint64_t *sum, tgi_err *err);

#endif

/* components.h - connected components of masks that do not fit memory, exact whatever the cut.
 *
 * Every run of pixels in a row has a number, counted in the order of reading: part by part, plane by plane, row by
 * row. One pass over the rows joins runs that touch: parent[run] is a smaller run of the same component,
 * the smallest is its root. A second pass over the numbers alone, upwards, turns parents into
 * what pixels get: since parents are smaller, each has its answer before it is asked. A row is then
 * answered by its mask, the number of its first run, and the answers from there on.
 *
 * So what is kept is a number for each run, not for each pixel, and of rows only those that touch
 * the one at hand: of a volume the bits of one plane. All of it lies in paged arrays.
 *
 *   row 0   [1]   [2]      parent 1 1, then 3 -> 1 and, as it touches both, 2 -> 1
 *   row 1    [ 3   ]
 *
 * Source: Rosenfeld and Pfaltz 1966, two passes; He, Chao, Suzuki 2008 for runs. */
#ifndef TGI_COMPONENTS_H
#define TGI_COMPONENTS_H

#include "engine/base/status.h"

#include <stddef.h>
#include <stdint.h>

/* What pixels get. */
typedef enum tgi_components_want {
    TGI_WANT_NUMBERS, /* the component's number from 1 on, in the order of their first pixels; each
                         part counts by itself */
    TGI_WANT_LARGE, /* 1: the component has min_size pixels or more */
    TGI_WANT_HOLES  /* of runs of 0: 1 where none of its component lies at the border */
} tgi_components_want;

/* Masks: `parts` volumes, or planes where depth is 1. */
typedef struct tgi_components_spec {
    tgi_components_want want;
    int64_t parts, depth, height, width;
    int neighbours;   /* 4, 8, 6, 26; of holes: of the background */
    int64_t min_size; /* components of fewer pixels get 0; 0: none is too small */
} tgi_components_spec;

/* One row of a mask, of `width` bytes, 0 and 1. */
typedef struct tgi_mask_rows {
    void *user;
    tg_status (*row)(void *user, int64_t part, int64_t z, int64_t y, uint8_t *dst,
                     tgi_err *err);
    /* After each row; the share of them that is done. */
    tg_status (*tick)(void *user, double fraction, tgi_err *err);
} tgi_mask_rows;

typedef struct tgi_components tgi_components;

/* Bytes of all arrays, whatever the masks are; what they take at least in RAM where there is a
 * scratch file; and what is held beside them. They saturate. */
size_t tgi_components_most(const tgi_components_spec *s);
size_t tgi_components_least(const tgi_components_spec *s);
size_t tgi_components_rest(const tgi_components_spec *s);

/* `cache` bytes of the arrays in RAM: all of them (tgi_components_most), or no less than
 * tgi_components_least and `folder` for a scratch file (borrowed). Returned; close with
 * tgi_components_close. TG_E_NOMEM, and as tgi_scratch_create. */
tg_status tgi_components_open(const tgi_components_spec *s, size_t cache, const char *folder,
                              tgi_components **out, tgi_err *err);
void tgi_components_close(tgi_components **c);

/* Read all rows. What was found before is forgotten. TG_E_UNSUPPORTED: a part has more than
 * 2^32 - 1 components. */
tg_status tgi_components_find(tgi_components *c, const tgi_mask_rows *rows, tgi_err *err);
/* Most components of a part. */
uint64_t tgi_components_count(const tgi_components *c);
/* What the pixels of a row get, of which `mask` is what tgi_components_find was given. */
tg_status tgi_components_row(tgi_components *c, int64_t part, int64_t z, int64_t y,
                             const uint8_t *mask, uint32_t *out, tgi_err *err);

#endif

/* masks.h - what is to be removed from the frames of a film: pictures, a folder, a film, and boxes.
 *
 *   number     0 to 255 for each pixel, 0 keeps it: grey as it is; of colours their luma, as Pillow computes it; more
 *              bits are shifted, but what is not 0 stays so; floats count from 0 to 1; an index of a palette as it is
 *   alpha      is not looked at, unless the colours of the first mask that has anything are all the same
 *   size       of the frames, by the nearest pixel, as Pillow does it
 *   frames     one mask is for all frames; else mask k is for frame k, and the last one for those behind it
 *   growth     by the 3x3 cross, so by the distance |dx| + |dy|, after boxes were added
 *
 * What is not as one would expect is told in notes. One thread at a time. */
#ifndef TGI_MASKS_H
#define TGI_MASKS_H

#include "io/image.h"
#include "io/mask_box.h"

#include <stddef.h>
#include <stdint.h>

#define TGI_MASKS_NO_END ((int64_t)1 << 40) /* frames of a film whose end nobody knows */

typedef struct tgi_masks_how {
    const char *path;        /* picture, folder, pattern or film; NULL: boxes alone */
    const tgi_mask_box *box; /* copied */
    int n_boxes;
    int threshold; /* numbers above it are removed; < 0: all but 0, of a lossy film those above 127 */
    int invert;   /* 1: what the masks do not show is removed; boxes are removed in any case */
    int dilation; /* grown so many times */
    int64_t frames, first,
        whole; /* that are read, the film's own number of the first one, all that the film has */
    int64_t height, width;         /* of the upright frames */
    int64_t box_height, box_width; /* of the frames that boxes are said in; 0: the same */
    tgi_open_opts
        open; /* for the masks' file: budgets, decoders, spare, cancelled, surplus, but and truncated count */
} tgi_masks_how;

typedef struct tgi_masks tgi_masks;

/* Reads masks until one has anything. TG_E_ARG: nothing is removed, or all of each frame; a box lies outside. Else
 * what tgi_source_open and reading answer. */
tg_status tgi_masks_open(const tgi_masks_how *how, tgi_masks **out, tgi_err *err);
/* The mask of frame k, 0: the first that is read (tgi_masks_is_whole): [height][width] bytes, 1: removed, 0. Allocates nothing but what
 * tgi_masks_bytes counts. */
tg_status tgi_masks_read(tgi_masks *m, int64_t k, uint8_t *mask, tgi_err *err);
/* What was done with masks that are not as the frames are, a sentence: note i; NULL behind the last. */
const char *tgi_masks_note(const tgi_masks *m, int i);
/* All that it holds and will ever hold, the decoder's too. */
size_t tgi_masks_bytes(const tgi_masks *m);
/* The i-th file that `m`, a tgi_masks, is read from, as it was opened (tgi_held_files). */
int tgi_masks_held(const void *m, int64_t i, tgi_held *out);
/* 1: masks of frames that were cut off in front of and behind those that are read are known, too: k below 0, from
 * `frames` on. */
int tgi_masks_is_whole(const tgi_masks *m);
int tgi_masks_is_still(const tgi_masks *m); /* 1: the same for each frame that is read */
void tgi_masks_close(tgi_masks **m);

#endif

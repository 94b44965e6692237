/* crop.h - the part of a film's frames that a method works on (--region): the same for all frames, so that what moves
 * through it is followed. What a method sees of the rest is nothing: motion and attention of ProPainter are global, so what
 * it draws is another thing than what it draws in whole frames. */
#ifndef TGI_CROP_H
#define TGI_CROP_H

#include "io/masks.h"

typedef struct tgi_crop {
    int64_t y, x, height, width;
} tgi_crop;

/* The smallest one that holds all that is hidden in frames [from, until), which are read. Memory is that of one mask.
 * TG_E_CANCELLED; what reading answers. *none: nothing is hidden. */
tg_status tgi_crop_of_masks(tgi_masks *m, int64_t from, int64_t until, int64_t height,
                            int64_t width, tgi_crop *out, int *none, tgi_err *err);
/* With surroundings on each side: half of its longer side, 64 pixels at least. */
void tgi_crop_add_margin(tgi_crop *c);
/* Within frames of that size, its sides multiples of `step` and no less than `least`; all of an axis that has no room for
 * that. */
void tgi_crop_align(tgi_crop *c, int64_t height, int64_t width, int64_t step, int64_t least);
/* 1: `inner` lies in it. */
int tgi_crop_holds(const tgi_crop *c, const tgi_crop *inner);

#endif

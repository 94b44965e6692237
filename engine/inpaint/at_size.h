/* at_size.h - a method that works at another size than the film has, or on a part of its frames: that goes to it as Pillow makes it
 * smaller, and what it makes comes back as OpenCV makes it larger (resize.h), as in ProPainter's own script.
 *
 * What hides a pixel of the film hides each pixel of the method's that it lies in or beside. The result is pasted into the film's own
 * frame, at its size, under the film's mask; or it is all of the part (`whole`). Frames that were extended are then squeezed into the
 * film's size, as in that script, and who asks has a mask of his own.
 *
 * The film's own frame comes from a reader of its own, with masks of its own: the method reads far ahead. */
#ifndef TGI_AT_SIZE_H
#define TGI_AT_SIZE_H

#include "engine/inpaint/crop.h"
#include "engine/inpaint/extended.h"
#include "engine/inpaint/propagate.h"
#include "engine/inpaint/resize.h"
#include "io/image.h"
#include "io/masks.h"

typedef struct tgi_at_size_how {
    int64_t height, width; /* of the method's frames */
    tgi_crop part;         /* of the film's frames that they are made of */
    tgi_canvas
        canvas; /* they hold a frame of the film, and zeros around it; height 0: they are one. With `whole`, and all of the film as the part */
    tgi_source *beside;    /* the film once more, owned on TG_OK */
    tgi_masks *masks;      /* and its masks, owned on TG_OK */
    int whole;             /* 1: the result is all of the part */
    tgi_resize_how larger; /* how it is made as large as the part */
} tgi_at_size_how;

typedef struct tgi_at_size tgi_at_size;

/* For frames as `film` says. Returned; tgi_at_size_free. */
tg_status tgi_at_size_new(const tgi_image_info *film, const tgi_at_size_how *how,
                          tgi_at_size **out, tgi_err *err);
void tgi_at_size_free(tgi_at_size **a);
/* All that it holds, its reader and masks included. */
size_t tgi_at_size_bytes(const tgi_at_size *a);
const tgi_crop *tgi_at_size_part(const tgi_at_size *a);
/* That part of a frame of the film is read into *pixels, and what the frame hides, all of it, into *hidden (views); then
 * the part is made smaller. With a canvas what is hidden stays untouched. */
const tgi_crop *tgi_at_size_room(tgi_at_size *a, void **pixels, uint8_t **hidden);
void tgi_at_size_smaller(tgi_at_size *a, void *pixels, uint8_t *hidden);
/* What was made of frame k, at the film's size; views until the next call. */
tg_status tgi_at_size_compose(tgi_at_size *a, int64_t k, const tgi_propagated *made,
                              const void **pixels, const uint8_t **hidden, tgi_err *err);

#endif

/* extended.h - a film whose frames lie in the middle of larger ones, as a source: zeros around them.
 *
 * What is around is then drawn as what is removed is (--mode outpainting): a mask hides it. Where it lies is the published
 * script's rule: a side is scaled, truncated, and rounded down to a multiple of 8; half of what was added comes first. Of a
 * film whose sides are multiples of 8 that half is a multiple of 4. Of another one it is made so, and no side becomes smaller:
 * the script resizes such a film first. So samples of chroma that stand for up to 4 pixels stay what they are.
 * @source the outpainting of ProPainter's published script. */
#ifndef TGI_EXTENDED_H
#define TGI_EXTENDED_H

#include "io/image.h"
#include "io/mask_box.h"

/* Rows [y0, y1) and columns [x0, x1) are the film's; height 0: there is none. */
typedef struct tgi_canvas {
    int64_t height, width, y0, y1, x0, x1;
} tgi_canvas;

/* Of a film of that size, its sides scaled. */
tgi_canvas tgi_canvas_of(int64_t height, int64_t width, double by_height, double by_width);
/* The same at another size: what of it is wholly the film's. */
tgi_canvas tgi_canvas_at(const tgi_canvas *c, int64_t height, int64_t width);
/* Its part whose motions are the film's: beside a border that is wide the outermost 4 pixels are not, which the script's second
 * mask, that of motions, hides. */
tgi_canvas tgi_canvas_moving(const tgi_canvas *c);
/* The border as boxes in all frames: how many. */
int tgi_canvas_border(const tgi_canvas *c, tgi_mask_box box[4]);

/* `inner` is owned on TG_OK, and has the size that the canvas says. */
tg_status tgi_extended_open(tgi_source *inner, const tgi_canvas *c, tgi_source **out,
                            tgi_err *err);

#endif

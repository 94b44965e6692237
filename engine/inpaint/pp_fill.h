/* pp_fill.h - hidden pixels of ProPainter's frames that other frames show, brought along the completed motions.
 *
 * A window of frames is walked back and then forward. At each step a hidden pixel takes what the frame before has where its
 * motion leads, if the motions there and back agree and that frame has something. All decisions are bits, and every pixel
 * is one of some frame or 0, so frames stay in 8 bits (pp_pixels.h). Pixels that are not hidden never change: they are not
 * computed.
 * @source section "image propagation" of ProPainter, Zhou, Li, Chan, Loy, ICCV 2023. */
#ifndef TGI_PP_FILL_H
#define TGI_PP_FILL_H

#include "engine/base/status.h"
#include "engine/inpaint/pp_order.h"
#include "engine/inpaint/pp_pixels.h"

/* An updated frame: RGB, then bits: zero, not filled, hidden at first. */
typedef struct tgi_pp_updated {
    uint8_t *rgb, *zero, *open, *hidden;
} tgi_pp_updated;
size_t tgi_pp_updated_bytes(int64_t height, int64_t width);
tgi_pp_updated tgi_pp_updated_at(void *item, int64_t height, int64_t width);

/* One step: `now` takes from `before`; motion `to` leads there, `back` from there, [2][height][width].
 * Both may be any frames; now->rgb and the bits change. */
typedef struct tgi_pp_fill {
    tgi_threads *pool;
    int64_t height, width;
    const tgi_pp_updated *now, *before;
    const float *to, *back;
} tgi_pp_fill;
void tgi_pp_fill_step(const tgi_pp_fill *f);
/* Frame as read: zero and open where it is hidden. */
void tgi_pp_fill_begin(const tgi_pp_updated *to, const uint8_t *rgb, const uint8_t *mask,
                       int64_t height, int64_t width);

#endif

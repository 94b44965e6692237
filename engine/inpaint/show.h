/* show.h - the method that removes nothing: what would be removed is shown in green, 0.6 of it over 0.4 of the frame.
 *
 * So masks are looked at over the whole film before hours are spent. Of 8 bits each sample is cut down to a whole number in
 * float64, as the published script of ProPainter writes `masked_in`. In frames that are no RGB the first sample alone, or grey,
 * is mixed with full brightness. @source SPEC.md of the conformance data, section 1.6. */
#ifndef TGI_SHOW_H
#define TGI_SHOW_H

#include "engine/inpaint/method.h"

typedef struct tgi_show_how {
    int64_t height, width;
    int samples;
    tg_dtype dtype; /* uint8 or uint16 */
    void *user;
    /* Frame k: its pixels, rows without gaps, and what it hides, [height][width] bytes 0 or 1. */
    tg_status (*frame)(void *user, int64_t k, void *pixels, uint8_t *hidden, tgi_err *err);
} tgi_show_how;

/* Returned; its ops' free. */
tg_status tgi_show_new(const tgi_show_how *how, tgi_method **out, tgi_err *err);

#endif

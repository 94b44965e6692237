/* rgb8.h - frames of any form as RGB of 8 bits, for methods that know no other, and back. */
#ifndef TGI_RGB8_H
#define TGI_RGB8_H

#include "io/image.h"

/* n pixels of `samples` (1 to 4: grey, grey and alpha, RGB, RGB and alpha) in uint8 or uint16; alpha is not looked at. */
void tgi_rgb8_from(int samples, tg_dtype dtype, const void *from, size_t n, uint8_t *rgb);
/* Back: grey is the luma of the colours, alpha is full. */
void tgi_rgb8_to(int samples, tg_dtype dtype, const uint8_t *rgb, size_t n, void *to);

#endif

/* pp_pixels.h - pixels of ProPainter's frames in their compact forms, and as the networks want them.
 *
 * A frame is RGB in 8 bits, side by side. A mask is a bit a pixel, rows that begin at a byte. An updated frame has pixels
 * that a frame has, or exactly 0 (mid grey): 8 bits and a bit that says zero. So all of them are exact. */
#ifndef TGI_PP_PIXELS_H
#define TGI_PP_PIXELS_H

#include "kernels/threads.h"

#include <stddef.h>
#include <stdint.h>

/* Bytes of a mask. */
static inline size_t tgi_pp_mask_bytes(int64_t height, int64_t width)
{
    return (size_t)height * (size_t)((width + 7) / 8);
}

static inline int tgi_pp_bit(const uint8_t *mask, int64_t width, int64_t y, int64_t x)
{
    return mask[y * ((width + 7) / 8) + x / 8] >> x % 8 & 1;
}

static inline float tgi_pp_float(uint8_t v)
{
    return (float)v / 255.0f * 2.0f - 1.0f;
}

/* Of bytes 0 and not 0; back to bytes 0 and 1. */
void tgi_pp_pack_bits(const uint8_t *from, int64_t height, int64_t width, uint8_t *mask);
void tgi_pp_unpack_bits(const uint8_t *mask, int64_t height, int64_t width, uint8_t *to);
/* RGB -> [3,height,width] of -1..1. */
void tgi_pp_to_floats(tgi_threads *pool, const uint8_t *rgb, int64_t height, int64_t width,
                      float *to);

#endif

/* pixels.h - rows between an image's element type and float32.
 *
 * In:  y = (float)x * mul + add, two roundings, the same in every build and at every width.
 * Out: x = y * mul + add; integers round half to even and clip to their range, NaN becomes 0;
 *      float16 rounds to nearest even. */
#ifndef TGI_PIXELS_H
#define TGI_PIXELS_H

#include "engine/base/tensor.h"

/* n pixels from `src` (dense, native type) to dst[0], dst[stride], ... */
void tgi_pixels_load(tg_dtype type, const void *src, int64_t n, float mul, float add,
                     float *dst, int64_t stride);
/* n floats from src[0], src[src_stride], ... to dst[0], dst[dst_stride], ... of `type`. */
void tgi_pixels_store(tg_dtype type, const float *src, int64_t src_stride, int64_t n, float mul,
                      float add, void *dst, int64_t dst_stride);

#endif

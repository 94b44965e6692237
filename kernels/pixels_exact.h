/* pixels_exact.h - rows from one element type to another where float32 has too few bits between them: numbers of 32 and 64
 * bits, such as those of objects. */
#ifndef TGI_PIXELS_EXACT_H
#define TGI_PIXELS_EXACT_H

#include "engine/base/tensor.h"

/* Has `from` values that float32 does not have, and `to` more than float32 keeps? */
int tgi_pixels_need_exact(tg_dtype from, tg_dtype to);
/* n elements at `src` to dst[0], dst[stride], ...: what both types have stays what it is; integers round half to even and clip
 * to their range, NaN becomes 0. Returns how many were clipped, or were NaN. For pairs that need it. */
int64_t tgi_pixels_convert_exact(tg_dtype from, const void *src, int64_t n, tg_dtype to,
                                 void *dst, int64_t stride);

#endif

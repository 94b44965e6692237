/* pixels.h - rows between an image's element type and float32.
 *
 * In:  y = (float)x * mul + add, two roundings, the same in every build and at every width.
 * Out: x = y * mul + add; integers round half to even and clip to their range, NaN becomes 0;
 *      float16 rounds to nearest even.
 *
 * This is the definition. A backend (`pixels_load`, `pixels_store`) gives the same bits, faster
 * for the types that images are made of. */
#ifndef TGI_PIXELS_H
#define TGI_PIXELS_H

#include "engine/base/tensor.h"

#define TGI_PIXEL_SAMPLES 4 /* samples of a pixel that are converted in one pass */

/* A run of pixels on both sides: sample k of pixel i is element i * stride + k of the image's
 * row and the float value[k][i * step]. */
typedef struct tgi_pixels {
    tg_dtype type;
    int samples;    /* 1 to TGI_PIXEL_SAMPLES */
    int64_t stride; /* elements, >= samples; equal: samples lie without gaps */
    int64_t n;      /* pixels */
    float mul, add;
    float *value[TGI_PIXEL_SAMPLES]; /* not written by a store */
    int64_t step;                    /* floats */
} tgi_pixels;

/* From the row at `src` (native byte order, aligned as its type) to p->value, and back. */
void tgi_pixels_load_run(const tgi_pixels *p, const void *src);
void tgi_pixels_store_run(const tgi_pixels *p, void *dst);

/* How many of n floats, `step` apart, lie outside of an integer type by more than rounding, or
 * are NaN: a store clips them. Of a floating-point type none. */
int64_t tgi_pixels_outside(tg_dtype type, const float *src, int64_t step, int64_t n, float mul,
                           float add);

/* The same for one sample: n pixels from `src` (dense) to dst[0], dst[stride], ... */
void tgi_pixels_load(tg_dtype type, const void *src, int64_t n, float mul, float add,
                     float *dst, int64_t stride);
/* n floats from src[0], src[src_stride], ... to dst[0], dst[dst_stride], ... of `type`. */
void tgi_pixels_store(tg_dtype type, const float *src, int64_t src_stride, int64_t n, float mul,
                      float add, void *dst, int64_t dst_stride);

#endif

/* resize.h - frames at another size, bit for bit as the tools make them that published results come from.
 *
 * Columns first, then rows; the middles of pixels stand at halves; what lies beyond the frame is its edge (OpenCV) or has
 * no weight (Pillow).
 *
 *   Pillow bicubic   weights of 22 bits, rounded to bytes after either pass
 *   OpenCV linear    weights of 11 bits; columns in 32 bits, rows in products of 16 bits whose lower half is dropped. Rows
 *                    beyond the middle of the first or last one have two weights of that row: one level less at times
 *   OpenCV cubic     weights of 11 bits; columns in 32 bits, rows in float32 in groups of eight numbers, halves to the
 *                    even byte; the last n % 8 numbers of a row in 32 bits, halves upwards
 *
 * Measured, each on 600 pairs of sizes (1 to 700, enlarged, reduced, sides of 1, one side kept, exact halves and doubles) and 8
 * of films, with noise, waves, and black and white, 1 and 3 samples, 35 to 39 million numbers each:
 *
 *   Pillow 9.4, 12.0                         no number differs
 *   Pillow 13.0                              131 of the 608 pairs, all with a lower height: it may resize rows first
 *                                            there; 2 to 7 % of all numbers, by up to 31. 16:9 to 16:9: none differs
 *   OpenCV 4.6 and 5.0, linear               no number differs, with or without IPP
 *   OpenCV 4.6 and 5.0, cubic, without IPP   no number differs
 *   the same with IPP                        2.4 to 3.2 % of the numbers, by 1. IPP is Intel's library, which OpenCV asks where
 *                                            it was built with it, as its wheels for Python are; the goldens were made without
 *
 * All sums but OpenCV's cubic ones are of integers; the compiler must not join its products and sums
 * (-ffp-contract=off).
 *
 * Frames of 16 bits, an extension of ours: the same weights in float32, rounded once, cut to 0 .. 65535. What OpenCV 5.0
 * makes of 16 bits differs by 1 in 0.2 % of the numbers.
 *
 * 1280 x 720 to 1920 x 1080, RGB, SSE2, time of one core: Pillow 18 ms, linear 5, cubic 11; 16 bits 11 to 25.
 *
 * Source: what Pillow's ImagingResample and OpenCV's resize compute; none of their code. */
#ifndef TGI_RESIZE_H
#define TGI_RESIZE_H

#include "engine/base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef enum tgi_resize_how {
    TGI_RESIZE_PILLOW_BICUBIC, /* a = -0.5; where the result is smaller the cubic is as much wider */
    TGI_RESIZE_CV_LINEAR,
    TGI_RESIZE_CV_CUBIC /* a = -0.75 */
} tgi_resize_how;

#define TGI_RESIZE_SIDE (1 << 20)
#define TGI_RESIZE_SAMPLES 64

typedef struct tgi_resize tgi_resize; /* tables for one pair of sizes, and rows on the way */

/* Sides of 1 to TGI_RESIZE_SIDE, 1 to TGI_RESIZE_SAMPLES samples a pixel; TG_E_ARG, TG_E_NOMEM. Returned;
 * tgi_resize_free. */
tg_status tgi_resize_new(tgi_resize_how how, int64_t from_h, int64_t from_w, int64_t to_h,
                         int64_t to_w, int samples, tgi_resize **out, tgi_err *err);
void tgi_resize_free(tgi_resize **r);
/* All that it holds. */
size_t tgi_resize_bytes(const tgi_resize *r);
/* One frame: rows without gaps, samples side by side; `to` lies elsewhere. Equal sizes: a copy. Allocates nothing; one
 * call at a time for each `r`. */
void tgi_resize_run(tgi_resize *r, const uint8_t *from, uint8_t *to);
void tgi_resize_run16(tgi_resize *r, const uint16_t *from, uint16_t *to);

#endif

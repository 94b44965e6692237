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
 * So do Pillow 9.4 and 12.0, OpenCV 4.6 and 5.0. Two differ: Pillow 13.0 may resize rows first where the height becomes
 * lower; OpenCV's cubic, where it was built with Intel's IPP as its wheels for Python are, is another by 1 in places. The
 * goldens that test_resize has were made without IPP.
 *
 * All sums but OpenCV's cubic ones are of integers; the compiler must not join its products and sums
 * (-ffp-contract=off).
 *
 * Frames of 16 bits, an extension of ours: the same weights in float32, rounded once, cut to 0 .. 65535. OpenCV's
 * differ by 1 in places.
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

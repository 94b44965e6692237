/* fit_motion.h - the affine motion around holes in a field of motion: what a camera does that pans, turns
 * and zooms. Fitted to the known places near the holes, whatever up to some 30 % of them do. */
#ifndef TGI_FIT_MOTION_H
#define TGI_FIT_MOTION_H

#include <stddef.h>
#include <stdint.h>

/* dx (c = 0) and dy (1) at (x, y): at[c] + along_x[c] * x + along_y[c] * y. */
typedef struct tgi_affine {
    double at[2], along_x[2], along_y[2];
} tgi_affine;

/* Bytes of `room`, 64-byte aligned. */
size_t tgi_fit_motion_bytes(int64_t height, int64_t width);
/* Fit to field[2][height][width], known where hole[height][width] is 0. Too few places, or places on a line, give
 * a motion that is the same everywhere; none gives 0. The same bits for any call. */
tgi_affine tgi_fit_motion(const float *field, int64_t height, int64_t width,
                          const uint8_t *hole, void *room);

#endif

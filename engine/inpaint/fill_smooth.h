/* fill_smooth.h - holes in fields of numbers, filled as smoothly as their borders allow.
 *
 * In a hole each number becomes the mean of its four neighbours (Laplace's equation): what is known
 * around it goes in, and where the field ends there is nothing to mean with. Of a field of motion what
 * differs from an affine motion is filled so (fit_motion.h): a camera that pans, turns or zooms is met
 * exactly. What is known keeps its bits. */
#ifndef TGI_FILL_SMOOTH_H
#define TGI_FILL_SMOOTH_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of `room`, 64-byte aligned, for one channel of that size. */
size_t tgi_fill_smooth_bytes(int64_t height, int64_t width);
/* Fill the places of `field` [channels][height][width] where hole[height][width] is not 0. What lay there is
 * not looked at; a field that is all hole becomes 0. The same bits for any call. */
void tgi_fill_smooth(float *field, int channels, int64_t height, int64_t width,
                     const uint8_t *hole, void *room);
/* The same for two channels, dx and dy, where the motion around the holes is affine but for a rest. */
void tgi_fill_motion(float *field, int64_t height, int64_t width, const uint8_t *hole,
                     void *room);

#endif

/* mask_numbers.h - what pixels of a file say where they are a mask: a number of 0 to 255 each, 0 leaves it. */
#ifndef TGI_MASK_NUMBERS_H
#define TGI_MASK_NUMBERS_H

#include "io/image.h"

/* n samples of the file, side by side, to numbers: more bits than 8 are shifted away, but what is not 0 stays so; fewer
 * are spread; floats count from 0 to 1, upwards: a number is above t where the sample is above t / 255; negative ones are
 * 0; an index of a palette stays one; where 0 is white numbers are turned. */
void tgi_mask_numbers(const tgi_image_info *info, const void *from, size_t n, uint8_t *to);
/* One number for each of n pixels, of `numbers` of all their samples: the luma of colours, as Pillow computes it, grey, or
 * the largest of samples that nobody says anything of. `of_alpha`: alpha in place of these. */
void tgi_mask_pixels(const tgi_image_info *info, int of_alpha, const uint8_t *numbers,
                     int64_t n, uint8_t *to);

#endif

/* mask_grow.h - masks that grow: by the 3x3 cross, n times, so by the distance |dx| + |dy|. */
#ifndef TGI_MASK_GROW_H
#define TGI_MASK_GROW_H

#include <stdint.h>

/* mask [height][width]: what is not 0, and all within n of it, becomes 1. Beyond the border nothing is set. Time and
 * memory are the same for each n up to 254. */
void tgi_mask_grow(uint8_t *mask, int64_t height, int64_t width, int64_t n);

#endif

/* predictor.h - TIFF predictor 2 on one row, both ways. Elements of `size` bytes (1, 2, 4 or 8,
 * in native order) are n, those of one sample lie `stride` elements apart; they wrap, as the
 * format wants. The first pixel stays as it is. @source TIFF 6.0 section 14. */
#ifndef TGI_PREDICTOR_H
#define TGI_PREDICTOR_H

#include <stddef.h>
#include <stdint.h>

/* Each element becomes its difference to the same sample of the pixel on its left. */
void tgi_difference_row(uint8_t *row, size_t n, size_t size, size_t stride);
/* And back: running sums. */
void tgi_sum_row(uint8_t *row, size_t n, size_t size, size_t stride);

#endif

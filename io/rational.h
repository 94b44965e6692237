/* rational.h - a positive number as TIFF stores it: a fraction of two 32-bit numbers. */
#ifndef TGI_RATIONAL_H
#define TGI_RATIONAL_H

#include <stdbool.h>
#include <stdint.h>

/* The simplest fraction within 1e-12 of x, relative, or the best that fits: 1/0.325 is 40/13,
 * so a size of pixels comes back as it was. False: x is not between 1e-6 and 4e9. */
bool tgi_rational(double x, uint32_t out[2]);

#endif

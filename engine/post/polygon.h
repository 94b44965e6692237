/* polygon.h - polygons of whole-numbered corners: area, and the area that two of them have in common.
 *
 * Inside is where the winding number is not 0, so corners that cross over themselves (short rays,
 * truncated) do no harm. Corners of the common part where two edges cross are rounded to whole
 * numbers, halves upwards: so do the libraries for polygons of whole numbers that the users' own
 * programs call, and whether an overlap is above a threshold can depend on it. All sums are of
 * integers: they are exact, and the same wherever in the image the two lie. */
#ifndef TGI_POLYGON_H
#define TGI_POLYGON_H

#include "engine/base/status.h"

#include <stdint.h>

typedef struct tgi_corner {
    int32_t x, y; /* at most 2^24 from 0 */
} tgi_corner;

/* Twice the area as the corners' sum gives it, without its sign. */
int64_t tgi_polygon_area2(const tgi_corner *p, int n);

/* Room for pairs of polygons of at most n corners each. Returned; close with tgi_polygon_work_close.
 * One thread uses it at a time. */
typedef struct tgi_polygon_work tgi_polygon_work;
tg_status tgi_polygon_work_open(int n, tgi_polygon_work **out, tgi_err *err);
void tgi_polygon_work_close(tgi_polygon_work **w);

/* Twice the area of what is inside both. */
int64_t tgi_polygon_common2(tgi_polygon_work *w, const tgi_corner *a, int n_a,
                            const tgi_corner *b, int n_b);

#endif

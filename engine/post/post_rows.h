/* post_rows.h - where steps after the network read its values from: planes of one item, rows at a time. */
#ifndef TGI_POST_ROWS_H
#define TGI_POST_ROWS_H

#include "engine/base/status.h"

#include <stdint.h>

/* Rows [y0,y1) of a plane, `width` values each, into `dst`. Rows may be asked for more than once and
 * mostly come in ascending order. */
typedef struct tgi_post_rows {
    tg_status (*rows)(void *user, int64_t plane, int64_t y0, int64_t y1, float *dst,
                      tgi_err *err);
    void *user; /* borrowed */
    int64_t height, width;
    int planes;
} tgi_post_rows;

#endif

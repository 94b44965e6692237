/* window_tokens.h - the tokens that queries of a window look at in WindowAttention.
 *
 * The window's own, row by row; then those around it: its own places moved by (window + 1) / 2 rows
 * down or up and so many columns to the right or left, on a grid of whole windows whose borders
 * meet. Places in the window itself are left out; where the grid is small a token may come twice. */
#ifndef TGI_WINDOW_TOKENS_H
#define TGI_WINDOW_TOKENS_H

#include "engine/base/arith.h"
#include "engine/base/tensor.h"
#include "kernels/ops/op_attrs.h"

#define TGI_WINDOW_MOST 16 /* rows and columns */

typedef struct tgi_window_tokens {
    int64_t own, n; /* tokens of the window; all */
    struct {
        int32_t y, x; /* behind the last row or column: a token that fills */
    } at[5 * TGI_WINDOW_MOST * TGI_WINDOW_MOST];
} tgi_window_tokens;

/* Is place (y,x) of a window, moved, in the window? */
static inline int tgi_window_stays(const window_attrs *a, int up, int left, int64_t y,
                                   int64_t x)
{
    const int64_t by = (a->window_h + 1) / 2, bx = (a->window_w + 1) / 2;
    return (up ? y >= by : y < a->window_h - by) && (left ? x >= bx : x < a->window_w - bx);
}

/* How many tokens there are around a window. */
static inline int64_t tgi_window_around(const window_attrs *a)
{
    int64_t n = 0;
    for (int side = 0; side < 4; side++)
        for (int64_t y = 0; y < a->window_h; y++)
            for (int64_t x = 0; x < a->window_w; x++)
                n += !tgi_window_stays(a, side >> 1, side & 1, y, x);
    return n;
}

static inline void tgi_window_put(tgi_window_tokens *t, int64_t y, int64_t x)
{
    t->at[t->n].y = (int32_t)y;
    t->at[t->n++].x = (int32_t)x;
}

/* Of window (wy,wx) on tokens of shape d. */
static inline void tgi_window_list(const window_attrs *a, const tgi_desc *d, int64_t wy,
                                   int64_t wx, tgi_window_tokens *t)
{
    const int64_t by = (a->window_h + 1) / 2, bx = (a->window_w + 1) / 2;
    const int64_t h = tgi_ceil_div(d->dim[2], a->window_h) * a->window_h,
                  w = tgi_ceil_div(d->dim[3], a->window_w) * a->window_w;
    const int64_t y0 = wy * a->window_h, x0 = wx * a->window_w;
    t->n = 0;
    for (int64_t y = 0; y < a->window_h; y++)
        for (int64_t x = 0; x < a->window_w; x++)
            tgi_window_put(t, y0 + y, x0 + x);
    t->own = t->n;
    for (int side = 0; side < 4; side++) /* down and right, down and left, up and right, ... */
        for (int64_t y = 0; y < a->window_h; y++)
            for (int64_t x = 0; x < a->window_w; x++)
                if (!tgi_window_stays(a, side >> 1, side & 1, y, x))
                    tgi_window_put(t, (y0 + y + (side >> 1 ? h - by : by)) % h,
                                   (x0 + x + (side & 1 ? w - bx : bx)) % w);
}

#endif

/* crop.c - see crop.h. */
#include "engine/inpaint/crop.h"

#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/mem.h"

#include <string.h>

#define LEAST_MARGIN 64 /* RAFT looks 8 pixels of an eighth of the size around each */

/* Rows and columns of one mask that have something. */
typedef struct reach {
    int64_t y0, y1, x0, x1;
} reach;

static void add_mask(const uint8_t *mask, int64_t height, int64_t width, reach *r)
{
    for (int64_t y = 0; y < height; y++) {
        const uint8_t *row = mask + y * width, *first = memchr(row, 1, (size_t)width);
        if (!first)
            continue;
        const uint8_t *last = row + width - 1;
        while (!*last)
            last--;
        r->y0 = tgi_min(r->y0, y);
        r->y1 = tgi_max(r->y1, y + 1);
        r->x0 = tgi_min(r->x0, first - row);
        r->x1 = tgi_max(r->x1, last - row + 1);
    }
}

tg_status tgi_crop_of_masks(tgi_masks *m, int64_t from, int64_t until, int64_t height,
                            int64_t width, tgi_crop *out, int *none, tgi_err *err)
{
    reach r = {height, 0, width, 0};
    uint8_t *mask = tgi_malloc(TGI_TAG_IO, (size_t)(height * width));
    tg_status st = mask ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory for a mask");
    for (int64_t k = from; st == TG_OK && k < until; k++) {
        st = tgi_check_cancel(err);
        if (st == TG_OK)
            st = tgi_masks_read(m, k, mask, err);
        if (st == TG_OK)
            add_mask(mask, height, width, &r);
        if (tgi_masks_is_still(m))
            break;
    }
    tgi_free(mask);
    *none = r.y1 <= r.y0;
    *out = (tgi_crop){r.y0, r.x0, r.y1 - r.y0, r.x1 - r.x0};
    return st;
}

void tgi_crop_add_margin(tgi_crop *c)
{
    const int64_t m = tgi_max(LEAST_MARGIN, tgi_max(c->height, c->width) / 2);
    *c = (tgi_crop){c->y - m, c->x - m, c->height + 2 * m, c->width + 2 * m};
}

static void align(int64_t *at, int64_t *side, int64_t all, int64_t step, int64_t least)
{
    const int64_t lo = tgi_max(0, *at), hi = tgi_min(all, *at + *side);
    const int64_t wanted = tgi_max(least, (hi - lo + step - 1) / step * step);
    if (wanted >= all) {
        *at = 0;
        *side = all;
        return;
    }
    *at = tgi_max(0, tgi_min(lo - (wanted - (hi - lo)) / 2, all - wanted));
    *side = wanted;
}

void tgi_crop_align(tgi_crop *c, int64_t height, int64_t width, int64_t step, int64_t least)
{
    align(&c->y, &c->height, height, step, least);
    align(&c->x, &c->width, width, step, least);
}

int tgi_crop_holds(const tgi_crop *c, const tgi_crop *inner)
{
    return inner->y >= c->y && inner->y + inner->height <= c->y + c->height &&
           inner->x >= c->x && inner->x + inner->width <= c->x + c->width;
}

/* pp_fill.c - see pp_fill.h. */
#include "engine/inpaint/pp_fill.h"

#include "engine/base/arith.h"

#include <math.h>
#include <string.h>

#define SET 0.1f /* a mask is set above that */
#define ALPHA 0.01f
#define BETA 0.5f
#define ROWS 8 /* that one job of a parallel loop takes */

size_t tgi_pp_updated_bytes(int64_t height, int64_t width)
{
    return (size_t)(height * width * 3) + 3 * tgi_pp_mask_bytes(height, width);
}

tgi_pp_updated tgi_pp_updated_at(void *item, int64_t height, int64_t width)
{
    const size_t bits = tgi_pp_mask_bytes(height, width);
    uint8_t *rgb = item, *first = rgb + height * width * 3;
    return (tgi_pp_updated){rgb, first, first + bits, first + 2 * bits};
}

void tgi_pp_fill_begin(const tgi_pp_updated *to, const uint8_t *rgb, const uint8_t *mask,
                       int64_t height, int64_t width)
{
    const size_t bits = tgi_pp_mask_bytes(height, width);
    memcpy(to->rgb, rgb, (size_t)(height * width * 3));
    memcpy(to->zero, mask, bits);
    memcpy(to->open, mask, bits);
    memcpy(to->hidden, mask, bits);
}

/* Where a pixel's motion leads. */
typedef struct place {
    float x, y;
    int64_t x0, y0;
    float fx, fy;
    int inside; /* any of the four pixels around is */
} place;

static place place_of(const tgi_pp_fill *f, int64_t y, int64_t x)
{
    const int64_t at = y * f->width + x;
    place p = {.x = (float)x + f->to[at], .y = (float)y + f->to[f->height * f->width + at]};
    /* What is no number is nowhere. */
    p.inside = p.x > -1 && p.y > -1 && p.x < (float)f->width && p.y < (float)f->height;
    if (p.inside) {
        p.x0 = (int64_t)floorf(p.x);
        p.y0 = (int64_t)floorf(p.y);
        p.fx = p.x - (float)p.x0;
        p.fy = p.y - (float)p.y0;
    }
    return p;
}

/* Corner i of the four, and its weight; 0: it lies outside. */
static int corner(const tgi_pp_fill *f, const place *p, int i, int64_t *y, int64_t *x,
                  float *weight)
{
    *y = p->y0 + i / 2;
    *x = p->x0 + i % 2;
    *weight = (i / 2 ? p->fy : 1 - p->fy) * (i % 2 ? p->fx : 1 - p->fx);
    return *y >= 0 && *y < f->height && *x >= 0 && *x < f->width;
}

/* The motion back from there undoes the one to there. */
static int agrees(const tgi_pp_fill *f, const place *p, int64_t y, int64_t x)
{
    const int64_t n = f->height * f->width, at = y * f->width + x;
    const float dx = f->to[at], dy = f->to[n + at];
    float bx = 0, by = 0;
    for (int i = 0; i < 4 && p->inside; i++) {
        int64_t cy, cx;
        float w;
        if (!corner(f, p, i, &cy, &cx, &w))
            continue;
        bx += w * f->back[cy * f->width + cx];
        by += w * f->back[n + cy * f->width + cx];
    }
    const float apart = (dx + bx) * (dx + bx) + (dy + by) * (dy + by);
    return apart < ALPHA * (dx * dx + dy * dy + bx * bx + by * by) + BETA;
}

/* What is there is not filled. */
static int is_open(const tgi_pp_fill *f, const place *p)
{
    float sum = 0;
    for (int i = 0; i < 4 && p->inside; i++) {
        int64_t y, x;
        float w;
        if (corner(f, p, i, &y, &x, &w) && tgi_pp_bit(f->before->open, f->width, y, x))
            sum += w;
    }
    return sum > SET;
}

static void set_bit(uint8_t *mask, int64_t width, int64_t y, int64_t x, int v)
{
    uint8_t *at = &mask[y * ((width + 7) / 8) + x / 8];
    const uint8_t bit = (uint8_t)(1u << x % 8);
    *at = (uint8_t)(v ? *at | bit : *at & (uint8_t)~bit);
}

/* The nearest pixel there, of two alike the even one; 0 outside. */
static void take(const tgi_pp_fill *f, const place *p, int64_t y, int64_t x)
{
    uint8_t *to = f->now->rgb + (y * f->width + x) * 3;
    const int64_t sx = p->inside ? (int64_t)rintf(p->x) : -1,
                  sy = p->inside ? (int64_t)rintf(p->y) : -1;
    const int inside = sx >= 0 && sy >= 0 && sx < f->width && sy < f->height;
    if (inside)
        memcpy(to, f->before->rgb + (sy * f->width + sx) * 3, 3);
    set_bit(f->now->zero, f->width, y, x,
            !inside || tgi_pp_bit(f->before->zero, f->width, sy, sx));
    set_bit(f->now->open, f->width, y, x, 0);
}

static void fill_rows(void *arg, int64_t part, int thread)
{
    const tgi_pp_fill *f = arg;
    const int64_t end = tgi_min(f->height, (part + 1) * ROWS);
    (void)thread;
    for (int64_t y = part * ROWS; y < end; y++)
        for (int64_t x = 0; x < f->width; x++) {
            if (!tgi_pp_bit(f->now->open, f->width, y, x))
                continue;
            const place p = place_of(f, y, x);
            if (agrees(f, &p, y, x) && !is_open(f, &p))
                take(f, &p, y, x);
        }
}

void tgi_pp_fill_step(const tgi_pp_fill *f)
{
    tgi_pp_fill copy = *f;
    tgi_parallel(f->pool, (f->height + ROWS - 1) / ROWS, fill_rows, &copy);
}

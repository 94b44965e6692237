/* cell_compare.c - masks beside the flow that the network gave: heat spread from each mask's centre gives the flow it would
 * have. Heat is spread for as many rounds as the largest mask needs, and the slope of one mask's heat is
 * taken across its edge, into masks that touch it: all masks that touch a row are done before the row is
 * looked at. Sums are in the order of the users' own program; beyond 4e7 pixels it goes over to single
 * precision, and so does this. */
#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/mem.h"
#include "engine/post/cell_inside.h"

#include <math.h>
#include <string.h>

#define SINGLE_ABOVE 4e7

typedef struct comparing {
    tgi_cell_window window;
    double *heat[2],
        *mask; /* of one mask, with a pixel around: heat before and after, 1 inside */
    size_t room[3];
    float *down, *right; /* a row of flow */
    int64_t rounds;
    bool is_single;
} comparing;

/* One round: each pixel of the mask gets the mean of nine; outside there is none. */
static void spread(const double *src, double *dst, const double *mask, size_t pitch,
                   size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        dst[i] = mask[i] * ((src[i] + src[i - pitch] + src[i + pitch] + src[i - 1] +
                             src[i + 1] + src[i - pitch - 1] + src[i - pitch + 1] +
                             src[i + pitch - 1] + src[i + pitch + 1]) /
                            9);
}

/* The same in single precision: sums of two floats are exact enough in double to be rounded after. */
static void spread_single(const double *src, double *dst, const double *mask, size_t pitch,
                          size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        float sum = (float)src[i] + (float)src[i - pitch];
        sum += (float)src[i + pitch];
        sum += (float)src[i - 1];
        sum += (float)src[i + 1];
        sum += (float)src[i - pitch - 1];
        sum += (float)src[i - pitch + 1];
        sum += (float)src[i + pitch - 1];
        sum += (float)src[i + pitch + 1];
        dst[i] = mask[i] * (double)(sum / 9);
    }
}

/* The mean place, halves to even; where that is outside of the mask, the pixel of it that is nearest. */
static size_t centre_of(const tgi_cell_mask *m, const double *mask, size_t pitch)
{
    const double n = m->pixels;
    const int64_t my = (int64_t)rint((double)(m->sum_y - (int64_t)m->pixels * m->y0) / n);
    const int64_t mx = (int64_t)rint((double)(m->sum_x - (int64_t)m->pixels * m->x0) / n);
    size_t best = (size_t)(my + 1) * pitch + (size_t)(mx + 1);
    if (mask[best] != 0)
        return best;
    int64_t least = INT64_MAX;
    for (int64_t y = 0; y < m->y1 - m->y0; y++)
        for (int64_t x = 0; x < m->x1 - m->x0; x++) {
            const size_t at = (size_t)(y + 1) * pitch + (size_t)(x + 1);
            const int64_t d = (y - my) * (y - my) + (x - mx) * (x - mx);
            if (mask[at] != 0 && d < least) {
                least = d;
                best = at;
            }
        }
    return best;
}

static tg_status heat_mask(tgi_cellpose *c, comparing *q, uint32_t number, int64_t keep_from,
                           tgi_err *err)
{
    const tgi_cell_mask *m = &c->masks[number];
    const size_t w = (size_t)(m->x1 - m->x0), h = (size_t)(m->y1 - m->y0), pitch = w + 2;
    const size_t n = pitch * (h + 2);
    TGI_TRY(tgi_cell_window_reach(c, &q->window, keep_from, m->y1, err));
    for (int k = 0; k < 2; k++) {
        TGI_TRY(tgi_room_grow(&c->memory, (void **)&q->heat[k], &q->room[k], n, sizeof(double),
                              err));
        memset(q->heat[k], 0, n * sizeof(double));
    }
    TGI_TRY(tgi_room_grow(&c->memory, (void **)&q->mask, &q->room[2], n, sizeof(double), err));
    memset(q->mask, 0, n * sizeof(double));
    const size_t first = (size_t)(m->y0 - q->window.y0) * (size_t)c->width + (size_t)m->x0;
    for (size_t y = 0; y < h; y++)
        for (size_t x = 0; x < w; x++)
            q->mask[(y + 1) * pitch + x + 1] =
                q->window.numbers[first + y * (size_t)c->width + x] == number;
    const size_t centre = centre_of(m, q->mask, pitch);
    for (int64_t i = 0; i < q->rounds; i++) {
        double *src = q->heat[i & 1], *dst = q->heat[~i & 1];
        src[centre] = q->is_single ? (double)((float)src[centre] + 1.0f) : src[centre] + 1;
        (q->is_single ? spread_single : spread)(src, dst, q->mask, pitch, pitch + 1,
                                                n - pitch - 1);
    }
    const double *heat = q->heat[q->rounds & 1];
    for (size_t y = 0; y < h; y++)
        for (size_t x = 0; x < w; x++)
            if (q->mask[(y + 1) * pitch + x + 1] != 0)
                q->window.heat[first + y * (size_t)c->width + x] =
                    heat[(y + 1) * pitch + x + 1];
    return TG_OK;
}

static double heat_at(const tgi_cellpose *c, const comparing *q, int64_t y, int64_t x)
{
    if (y < q->window.y0 || y >= q->window.y1 || x < 0 || x >= c->width)
        return 0;
    return q->window.heat[(y - q->window.y0) * c->width + x];
}

static double slope(const comparing *q, double to, double from)
{
    return q->is_single ? (double)((float)to - (float)from) : to - from;
}

static tg_status compare_row(tgi_cellpose *c, comparing *q, int64_t y, tgi_err *err)
{
    const tgi_post_rows *r = c->rows;
    const uint32_t *row = q->window.numbers + (y - q->window.y0) * c->width;
    TGI_TRY(r->rows(r->user, 0, y, y + 1, q->down, err));
    TGI_TRY(r->rows(r->user, 1, y, y + 1, q->right, err));
    for (int64_t x = 0; x < c->width; x++) {
        if (row[x] == 0)
            continue;
        const double dy = slope(q, heat_at(c, q, y + 1, x), heat_at(c, q, y - 1, x));
        const double dx = slope(q, heat_at(c, q, y, x + 1), heat_at(c, q, y, x - 1));
        const double length = 1e-60 + sqrt(dy * dy + dx * dx);
        const double ey = dy / length - (double)(q->down[x] / 5.0f);
        const double ex = dx / length - (double)(q->right[x] / 5.0f);
        c->masks[row[x]].off += ey * ey + ex * ex;
    }
    return TG_OK;
}

static tg_status compare_all(tgi_cellpose *c, comparing *q, tgi_err *err)
{
    const size_t width = (size_t)c->width;
    TGI_TRY(tgi_room_new(&c->memory, (void **)&q->down, width, sizeof(float), err));
    TGI_TRY(tgi_room_new(&c->memory, (void **)&q->right, width, sizeof(float), err));
    for (size_t i = 1; i <= c->n_masks; i++) {
        const tgi_cell_mask *m = &c->masks[i];
        q->rounds = tgi_max(q->rounds, 2 * (int64_t)(m->y1 - m->y0 + m->x1 - m->x0 + 2));
    }
    size_t next = 1;
    for (int64_t y = 0; y < c->height; y++) {
        TGI_TRY(tgi_check_cancel(err));
        TGI_TRY(tgi_cell_window_reach(c, &q->window, y - 1, y + 2, err));
        for (; next <= c->n_masks && c->masks[next].y0 <= y + 1; next++)
            TGI_TRY(heat_mask(c, q, (uint32_t)next, y - 1, err));
        TGI_TRY(compare_row(c, q, y, err));
    }
    return TG_OK;
}

tg_status tgi_cell_compare(tgi_cellpose *c, tgi_err *err)
{
    comparing q = {.window.with_heat = true};
    const size_t width = (size_t)c->width;
    q.is_single = (double)(c->height + 2) * (double)(c->width + 2) > SINGLE_ABOVE;
    const tg_status st = compare_all(c, &q, err);
    tgi_cell_window_close(c, &q.window);
    tgi_room_free(&c->memory, (void **)&q.down, width, sizeof(float));
    tgi_room_free(&c->memory, (void **)&q.right, width, sizeof(float));
    for (int k = 0; k < 2; k++)
        tgi_room_free(&c->memory, (void **)&q.heat[k], q.room[k], sizeof(double));
    tgi_room_free(&c->memory, (void **)&q.mask, q.room[2], sizeof(double));
    for (size_t i = 1; st == TG_OK && i <= c->n_masks; i++)
        if (c->masks[i].off / c->masks[i].pixels > c->how.flow_threshold)
            c->masks[i].is_gone = 1;
    return st;
}

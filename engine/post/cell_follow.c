/* cell_follow.c - pixels that follow the flow.
 *
 * The users' own program samples the flow at places between -1 and 1 which stand for the centres of the
 * first and last pixel, by a function that takes them for the image's edges: a pixel is drawn a little
 * towards the edge. That is kept, and so is the order of every operation in single precision.
 *
 * Rows are worked on in bands, with a window of flow around each. A pixel that goes beyond it is set aside
 * and goes on later, in windows laid where such pixels are: they are few where flows lead to the middle of
 * cells, and the result is the same if they are not. */
#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/mem.h"
#include "engine/post/cell_inside.h"
#include "kernels/threads.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 64
#define LANES 8
#define SHARE 512 /* pixels that one thread takes at a time */

typedef struct mover {
    float x, y;
    uint32_t pixel;
    int32_t left; /* steps */
} mover;

typedef struct flow {
    tgi_cellpose *c;
    float scale[2], half[2], last[2]; /* down, right */
    int64_t band, margin;
    int64_t y0, y1;      /* rows of the window */
    float *down, *right; /* 0 where there is no cell */
    uint8_t *is_cell;
    float *sure; /* a band */
    size_t window_rows;
    mover *movers; /* of the band at hand */
    size_t n_movers;
    mover *aside;
    size_t n_aside, room_aside;
    uint32_t *row; /* of ends: a band */
    tgi_threads *threads;
} flow;

/* A value of the flow, 0 outside of the image. Rows are of the window. */
static float value_at(const flow *f, const float *plane, int y, int x)
{
    if ((unsigned)x >= (unsigned)f->c->width || (unsigned)y >= (unsigned)f->c->height)
        return 0;
    return plane[(y - f->y0) * f->c->width + x];
}

/* Flow to the right, then down, at four pixels: two of row y, two of the row below. */
static void corners(const flow *f, int y, int x, float v[8])
{
    const int64_t width = f->c->width;
    if (x < 0 || x + 1 >= width || y < 0 || y + 1 >= f->c->height) {
        for (int k = 0; k < 4; k++) {
            v[k] = value_at(f, f->right, y + k / 2, x + k % 2);
            v[4 + k] = value_at(f, f->down, y + k / 2, x + k % 2);
        }
        return;
    }
    const int64_t at = (y - f->y0) * width + x;
    const float *r = f->right + at, *d = f->down + at;
    const float inner[8] = {r[0], r[1], r[width], r[width + 1],
                            d[0], d[1], d[width], d[width + 1]};
    memcpy(v, inner, sizeof inner);
}

/* a * b + c, rounded once (but for one case in 2^28 or so, where it is off by the last bit). Their sampling is
 * compiled to such instructions. */
static float fused(float a, float b, float c)
{
    return (float)((double)a * (double)b + (double)c);
}

/* Along one side, from -1..1 to pixels. */
static float place(float v, float half)
{
    return fused(v + 1, half, -0.5f);
}

static int floor_of(float v)
{
    const int i = (int)v;
    return i - ((float)i > v);
}

/* One step; 0: it needs rows that are not in the window, and nothing was done. */
static int step(const flow *f, mover *m)
{
    const float x = place(m->x, f->half[1]), y = place(m->y, f->half[0]);
    const int xi = floor_of(x), yi = floor_of(y);
    if ((yi < f->y0 && yi >= 0) || (yi + 1 >= f->y1 && yi + 1 < f->c->height) ||
        yi + 1 < f->y0 || yi >= f->y1)
        return 0;
    const float w = x - (float)xi, e = 1 - w, n = y - (float)yi, s = 1 - n;
    const float nw = s * e, ne = s * w, sw = n * e, se = n * w;
    float v[8];
    corners(f, yi, xi, v);
    const float dx = fused(v[3], se, fused(v[2], sw, fused(v[1], ne, v[0] * nw)));
    const float dy = fused(v[7], se, fused(v[6], sw, fused(v[5], ne, v[4] * nw)));
    const float to_x = fminf(fmaxf(m->x + dx, -1), 1), to_y = fminf(fmaxf(m->y + dy, -1), 1);
    m->left = to_x == m->x && to_y == m->y ? 0 : m->left - 1; /* at rest it stays */
    m->x = to_x;
    m->y = to_y;
    return 1;
}

/* Several go on in turns: a step waits for the one before, those of others do not. */
static void move_share(void *arg, int64_t job, int thread)
{
    const flow *f = arg;
    (void)thread;
    const size_t end = (size_t)tgi_min((job + 1) * SHARE, (int64_t)f->n_movers);
    for (size_t i = (size_t)job * SHARE; i < end; i += LANES) {
        const size_t n = i + LANES < end ? LANES : end - i;
        unsigned going = (1u << n) - 1;
        while (going)
            for (size_t k = 0; k < n; k++)
                if (going >> k & 1 &&
                    (f->movers[i + k].left == 0 || !step(f, &f->movers[i + k])))
                    going &= ~(1u << k);
    }
}

/* Where a pixel stands after its last step. */
static uint32_t end_of(const flow *f, const mover *m)
{
    const float x = (m->x + 1) * 0.5f * f->last[1], y = (m->y + 1) * 0.5f * f->last[0];
    return (uint32_t)((int64_t)y * f->c->width + (int64_t)x);
}

static tg_status scale_row(const flow *f, int64_t y, int k, float *row, const uint8_t *is_cell,
                           tgi_err *err)
{
    for (int64_t x = 0; x < f->c->width; x++) {
        if (!is_cell[x])
            row[x] = 0;
        else if (!isfinite(row[x]))
            return tgi_fail(
                err, TG_E_FORMAT,
                "cellpose: the flow at row %lld, column %lld is %g; expected a number",
                (long long)y, (long long)x, (double)row[x]);
        row[x] = row[x] / 5.0f * f->scale[k];
    }
    return TG_OK;
}

/* Rows [y0,y1), at most a band, into the window. */
static tg_status read_rows(flow *f, int64_t y0, int64_t y1, tgi_err *err)
{
    const tgi_post_rows *r = f->c->rows;
    const int64_t at = (y0 - f->y0) * r->width, n = (y1 - y0) * r->width;
    float *planes[2] = {f->down, f->right};
    TGI_TRY(r->rows(r->user, 2, y0, y1, f->sure, err));
    for (int64_t i = 0; i < n; i++)
        f->is_cell[at + i] = f->sure[i] > f->c->how.cell_threshold;
    for (int k = 0; k < 2; k++) {
        TGI_TRY(r->rows(r->user, k, y0, y1, planes[k] + at, err));
        for (int64_t y = y0; y < y1; y++) {
            const int64_t row = (y - f->y0) * r->width;
            TGI_TRY(scale_row(f, y, k, planes[k] + row, f->is_cell + row, err));
        }
    }
    return TG_OK;
}

/* Lay the window over [y0,y1), as far as the image goes; rows it has stay. */
static tg_status lay_window(flow *f, int64_t y0, int64_t y1, tgi_err *err)
{
    const size_t width = (size_t)f->c->width;
    y0 = tgi_max(y0, 0);
    y1 = tgi_min(y1, f->c->height);
    int64_t from = y0;
    if (y0 >= f->y0 && y0 < f->y1) {
        const size_t skip = (size_t)(y0 - f->y0) * width, n = (size_t)(f->y1 - y0) * width;
        memmove(f->down, f->down + skip, n * sizeof(float));
        memmove(f->right, f->right + skip, n * sizeof(float));
        memmove(f->is_cell, f->is_cell + skip, n);
        from = f->y1;
    }
    f->y0 = y0;
    for (; from < y1; from += f->band)
        TGI_TRY(read_rows(f, from, tgi_min(from + f->band, y1), err));
    f->y1 = y1;
    return TG_OK;
}

static void move_all(flow *f)
{
    tgi_parallel(f->threads, tgi_ceil_div((int64_t)f->n_movers, SHARE), move_share, f);
}

static tg_status set_aside(flow *f, const mover *m, tgi_err *err)
{
    TGI_TRY(tgi_room_grow(&f->c->memory, (void **)&f->aside, &f->room_aside, f->n_aside + 1,
                          sizeof *m, err));
    f->aside[f->n_aside++] = *m;
    return TG_OK;
}

static tg_status follow_band(flow *f, int64_t y0, int64_t y1, tgi_err *err)
{
    const int64_t width = f->c->width;
    TGI_TRY(lay_window(f, y0 - f->margin, y1 + f->margin, err));
    f->n_movers = 0;
    for (int64_t y = y0; y < y1; y++)
        for (int64_t x = 0; x < width; x++)
            if (f->is_cell[(y - f->y0) * width + x])
                f->movers[f->n_movers++] = (mover){.x = (float)x / f->last[1] * 2 - 1,
                                                   .y = (float)y / f->last[0] * 2 - 1,
                                                   .pixel = (uint32_t)(y * width + x),
                                                   .left = f->c->how.niter};
    move_all(f);
    memset(f->row, 0, (size_t)((y1 - y0) * width) * sizeof *f->row);
    for (size_t i = 0; i < f->n_movers; i++) {
        const mover *m = &f->movers[i];
        if (m->left > 0) {
            TGI_TRY(set_aside(f, m, err));
            continue;
        }
        const uint32_t end = end_of(f, m);
        f->row[m->pixel - y0 * width] = end + 1;
        TGI_TRY(tgi_cell_end_add(f->c, end, err));
    }
    return tgi_cell_put(f->c, y0, y1, f->row, err);
}

static int by_row(const void *pa, const void *pb)
{
    const mover *a = pa, *b = pb;
    if (a->y != b->y)
        return a->y < b->y ? -1 : 1;
    return (a->pixel > b->pixel) - (a->pixel < b->pixel);
}

/* One sweep down the image over those set aside. */
static tg_status follow_aside(flow *f, tgi_err *err)
{
    const size_t most = (size_t)(f->band * f->c->width);
    qsort(f->aside, f->n_aside, sizeof *f->aside, by_row);
    size_t kept = 0;
    for (size_t i = 0; i < f->n_aside;) {
        const int64_t y = floor_of(place(f->aside[i].y, f->half[0]));
        TGI_TRY(tgi_check_cancel(err));
        TGI_TRY(lay_window(f, y - f->margin, y + f->band + f->margin, err));
        size_t n = 0;
        for (; i + n < f->n_aside && n < most; n++) {
            if (floor_of(place(f->aside[i + n].y, f->half[0])) >= y + f->band)
                break;
            f->movers[n] = f->aside[i + n];
        }
        f->n_movers = n;
        move_all(f);
        i += n;
        for (size_t k = 0; k < n; k++) {
            const mover *m = &f->movers[k];
            if (m->left > 0) {
                f->aside[kept++] = *m;
                continue;
            }
            const uint32_t end = end_of(f, m);
            TGI_TRY(tgi_cell_put_one(f->c, m->pixel, end + 1, err));
            TGI_TRY(tgi_cell_end_add(f->c, end, err));
        }
    }
    f->n_aside = kept;
    return TG_OK;
}

static tg_status follow_all(flow *f, tgi_err *err)
{
    tgi_room *room = &f->c->memory;
    const size_t width = (size_t)f->c->width, band = (size_t)f->band * width;
    const size_t window = f->window_rows * width;
    TGI_TRY(tgi_room_new(room, (void **)&f->down, window, sizeof(float), err));
    TGI_TRY(tgi_room_new(room, (void **)&f->right, window, sizeof(float), err));
    TGI_TRY(tgi_room_new(room, (void **)&f->is_cell, window, 1, err));
    TGI_TRY(tgi_room_new(room, (void **)&f->sure, band, sizeof(float), err));
    TGI_TRY(tgi_room_new(room, (void **)&f->movers, band, sizeof(mover), err));
    TGI_TRY(tgi_room_new(room, (void **)&f->row, band, sizeof(uint32_t), err));
    if (f->c->how.n_threads > 1)
        TGI_TRY(tgi_threads_open(f->c->how.n_threads, &f->threads, err));
    for (int64_t y = 0; y < f->c->height; y += f->band) {
        TGI_TRY(tgi_check_cancel(err));
        TGI_TRY(follow_band(f, y, tgi_min(y + f->band, f->c->height), err));
    }
    while (f->n_aside)
        TGI_TRY(follow_aside(f, err));
    return TG_OK;
}

tg_status tgi_cell_follow(tgi_cellpose *c, tgi_err *err)
{
    flow f = {.c = c};
    const int64_t sides[2] = {c->height, c->width};
    for (int k = 0; k < 2; k++) {
        f.scale[k] = (float)(2.0 / (double)(sides[k] - 1));
        f.last[k] = (float)(sides[k] - 1);
        f.half[k] = (float)sides[k] / 2;
    }
    f.band = tgi_min(c->how.band_rows > 0 ? c->how.band_rows : ROWS, c->height);
    f.margin = tgi_max(c->how.margin_rows > 0 ? c->how.margin_rows : ROWS, 2);
    f.window_rows = (size_t)tgi_min(f.band + 2 * f.margin, c->height);
    const tg_status st = follow_all(&f, err);
    const size_t width = (size_t)c->width, window = f.window_rows * width,
                 band = (size_t)f.band * width;
    tgi_threads_close(&f.threads);
    tgi_room_free(&c->memory, (void **)&f.down, window, sizeof(float));
    tgi_room_free(&c->memory, (void **)&f.right, window, sizeof(float));
    tgi_room_free(&c->memory, (void **)&f.is_cell, window, 1);
    tgi_room_free(&c->memory, (void **)&f.sure, band, sizeof(float));
    tgi_room_free(&c->memory, (void **)&f.movers, band, sizeof(mover));
    tgi_room_free(&c->memory, (void **)&f.row, band, sizeof(uint32_t));
    tgi_room_free(&c->memory, (void **)&f.aside, f.room_aside, sizeof(mover));
    return st;
}

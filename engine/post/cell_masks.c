/* cell_masks.c - from the places where pixels end to masks: numbered as they are met, holes filled, small ones gone. */
#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/mem.h"
#include "engine/post/cell_inside.h"

#include <string.h>

/* ---- Rows that move down the image ---- */

static tg_status more_rows(tgi_cellpose *c, tgi_cell_window *w, size_t rows, tgi_err *err)
{
    const size_t n = (rows + rows / 2) * (size_t)c->width;
    size_t have = w->room * (size_t)c->width, have_heat = have;
    TGI_TRY(tgi_room_resize(&c->memory, (void **)&w->numbers, &have, n, sizeof(uint32_t), err));
    if (w->with_heat) {
        const tg_status st =
            tgi_room_resize(&c->memory, (void **)&w->heat, &have_heat, n, sizeof(double), err);
        if (st != TG_OK) /* of one size, so that both are given back right */
            tgi_room_give(&c->memory, (have - have_heat) * sizeof(uint32_t));
        TGI_TRY(st);
    }
    w->room = rows + rows / 2;
    return TG_OK;
}

tg_status tgi_cell_window_reach(tgi_cellpose *c, tgi_cell_window *w, int64_t keep_from,
                                int64_t y1, tgi_err *err)
{
    const size_t width = (size_t)c->width;
    y1 = tgi_min(y1, c->height);
    if (y1 <= w->y1)
        return TG_OK;
    keep_from = tgi_clamp(keep_from, w->y0, w->y1);
    const size_t skip = (size_t)(keep_from - w->y0) * width,
                 n = (size_t)(w->y1 - keep_from) * width;
    if (skip && n) {
        memmove(w->numbers, w->numbers + skip, n * sizeof *w->numbers);
        if (w->with_heat)
            memmove(w->heat, w->heat + skip, n * sizeof *w->heat);
    }
    w->y0 = keep_from;
    if ((size_t)(y1 - keep_from) > w->room)
        TGI_TRY(more_rows(c, w, (size_t)(y1 - keep_from), err));
    TGI_TRY(tgi_cell_get(c, w->y1, y1, w->numbers + n, err));
    const size_t added = (size_t)(y1 - w->y1) * width;
    for (size_t i = n; i < n + added; i++)
        if (c->masks[w->numbers[i]].is_gone)
            w->numbers[i] = 0;
    if (w->with_heat)
        memset(w->heat + n, 0, added * sizeof *w->heat);
    w->y1 = y1;
    return TG_OK;
}

void tgi_cell_window_close(tgi_cellpose *c, tgi_cell_window *w)
{
    const size_t n = w->room * (size_t)c->width;
    tgi_room_free(&c->memory, (void **)&w->numbers, n, sizeof(uint32_t));
    tgi_room_free(&c->memory, (void **)&w->heat, n, sizeof(double));
}

/* ---- Numbering ---- */

/* Seeds whose mask is larger than is allowed get 0 pixels. */
static void count_pixels(const tgi_cellpose *c, uint32_t *seeds, size_t n_seeds)
{
    const double most = (double)c->height * (double)c->width * c->how.max_size_fraction;
    for (size_t i = 0; i < c->n_slots; i++)
        seeds[c->ends[i].mask] += c->ends[i].count;
    for (size_t i = 0; i <= n_seeds; i++)
        seeds[i] = (double)seeds[i] > most ? 0 : seeds[i];
}

static tg_status meet(tgi_cellpose *c, uint32_t *number, int64_t y, int64_t x, tgi_err *err)
{
    if (*number == 0) {
        TGI_TRY(tgi_room_grow(&c->memory, (void **)&c->masks, &c->room_masks, c->n_masks + 2,
                              sizeof *c->masks, err));
        *number = (uint32_t)++c->n_masks;
        c->masks[*number] =
            (tgi_cell_mask){.y0 = (int32_t)y, .x0 = (int32_t)x, .x1 = (int32_t)x};
    }
    tgi_cell_mask *m = &c->masks[*number];
    m->pixels++;
    m->y1 = (int32_t)y + 1;
    m->x0 = x < m->x0 ? (int32_t)x : m->x0;
    m->x1 = x >= m->x1 ? (int32_t)x + 1 : m->x1;
    m->sum_y += y;
    m->sum_x += x;
    return TG_OK;
}

static tg_status number_row(tgi_cellpose *c, uint32_t *row, int64_t y, const uint32_t *pixels,
                            uint32_t *numbers, tgi_err *err)
{
    TGI_TRY(tgi_cell_get(c, y, y + 1, row, err));
    for (int64_t x = 0; x < c->width; x++) {
        if (row[x] == 0)
            continue;
        const int64_t end = (int64_t)row[x] - 1;
        const uint32_t seed = tgi_cell_end_at(c, end / c->width, end % c->width)->mask;
        row[x] = 0;
        if (seed && pixels[seed]) {
            TGI_TRY(meet(c, &numbers[seed], y, x, err));
            row[x] = numbers[seed];
        }
    }
    return tgi_cell_put(c, y, y + 1, row, err);
}

tg_status tgi_cell_number(tgi_cellpose *c, size_t n_seeds, tgi_err *err)
{
    uint32_t *pixels = NULL, *numbers = NULL, *row = NULL;
    const size_t width = (size_t)c->width;
    tg_status st =
        tgi_room_grow(&c->memory, (void **)&c->masks, &c->room_masks, 1, sizeof *c->masks, err);
    if (st == TG_OK)
        c->masks[0] = (tgi_cell_mask){0};
    if (st == TG_OK)
        st = tgi_room_new(&c->memory, (void **)&pixels, n_seeds + 1, sizeof *pixels, err);
    if (st == TG_OK)
        st = tgi_room_new(&c->memory, (void **)&numbers, n_seeds + 1, sizeof *numbers, err);
    if (st == TG_OK)
        st = tgi_room_new(&c->memory, (void **)&row, width, sizeof *row, err);
    if (st == TG_OK)
        count_pixels(c, pixels, n_seeds);
    for (int64_t y = 0; st == TG_OK && y < c->height; y++)
        st = number_row(c, row, y, pixels, numbers, err);
    tgi_room_free(&c->memory, (void **)&pixels, n_seeds + 1, sizeof *pixels);
    tgi_room_free(&c->memory, (void **)&numbers, n_seeds + 1, sizeof *numbers);
    tgi_room_free(&c->memory, (void **)&row, width, sizeof *row);
    tgi_room_free(&c->memory, (void **)&c->ends, c->n_slots, sizeof *c->ends);
    c->n_slots = 0;
    return st;
}

/* ---- Small masks ---- */

/* Their count of masks leaves out the first number that is there, taking it for the background. In an image
 * that masks cover whole this is a mask, which stays. */
static void drop_small(tgi_cellpose *c)
{
    uint64_t covered = 0;
    size_t first = 0;
    for (size_t i = 1; i <= c->n_masks; i++)
        if (!c->masks[i].is_gone && c->masks[i].pixels) {
            covered += c->masks[i].pixels;
            first = first ? first : i;
        }
    if (covered < (uint64_t)c->height * (uint64_t)c->width)
        first = 0;
    for (size_t i = 1; i <= c->n_masks; i++)
        if (c->how.min_size > 0 && i != first && c->masks[i].pixels < (uint32_t)c->how.min_size)
            c->masks[i].is_gone = 1;
}

/* ---- Holes ---- */

typedef struct filling {
    tgi_cell_window window;
    uint8_t *box; /* one pixel around the mask: 0 unknown, 1 mask, 2 outside */
    size_t room_box;
    uint32_t *stack;
    size_t room_stack;
    int64_t done_to; /* rows that are final */
    uint32_t met;
} filling;

static size_t box_of(const tgi_cellpose *c, const filling *f, uint32_t number, size_t pitch)
{
    const tgi_cell_mask *m = &c->masks[number];
    size_t in = 0;
    for (int64_t y = m->y0; y < m->y1; y++) {
        const uint32_t *row = f->window.numbers + (y - f->window.y0) * c->width;
        uint8_t *box = f->box + (size_t)(y - m->y0 + 1) * pitch + 1;
        for (int64_t x = m->x0; x < m->x1; x++) {
            box[x - m->x0] = row[x] == number;
            in += row[x] == number;
        }
    }
    return in;
}

/* What is reached from the corner over edges, not over corners, is outside. */
static size_t flood(filling *f, size_t pitch, size_t n)
{
    size_t top = 0, outside = 1;
    f->stack[top++] = 0;
    f->box[0] = 2;
    while (top) {
        const size_t at = f->stack[--top], x = at % pitch;
        const size_t next[4] = {at - pitch, at + pitch, at - 1, at + 1};
        const bool there[4] = {at >= pitch, at + pitch<n, x> 0, x + 1 < pitch};
        for (int k = 0; k < 4; k++)
            if (there[k] && f->box[next[k]] == 0) {
                f->box[next[k]] = 2;
                f->stack[top++] = (uint32_t)next[k];
                outside++;
            }
    }
    return outside;
}

static tg_status fill_one(tgi_cellpose *c, filling *f, uint32_t number, tgi_err *err)
{
    const tgi_cell_mask *m = &c->masks[number];
    const size_t pitch = (size_t)(m->x1 - m->x0 + 2), n = pitch * (size_t)(m->y1 - m->y0 + 2);
    TGI_TRY(tgi_cell_window_reach(c, &f->window, f->done_to, m->y1, err));
    TGI_TRY(tgi_room_grow(&c->memory, (void **)&f->box, &f->room_box, n, 1, err));
    TGI_TRY(tgi_room_grow(&c->memory, (void **)&f->stack, &f->room_stack, n, sizeof *f->stack,
                          err));
    memset(f->box, 0, n);
    const size_t in = box_of(c, f, number, pitch);
    if (in == 0 || in + flood(f, pitch, n) == n)
        return TG_OK;
    for (int64_t y = m->y0; y < m->y1; y++) {
        uint32_t *row = f->window.numbers + (y - f->window.y0) * c->width;
        const uint8_t *box = f->box + (size_t)(y - m->y0 + 1) * pitch + 1;
        for (int64_t x = m->x0; x < m->x1; x++)
            if (box[x - m->x0] != 2)
                row[x] = number;
    }
    return TG_OK;
}

/* Rows before y are final: count what they hold, and give them back. */
static tg_status finish_to(tgi_cellpose *c, filling *f, int64_t y, tgi_err *err)
{
    while (f->done_to < y) {
        TGI_TRY(tgi_cell_window_reach(c, &f->window, f->done_to, f->done_to + 1, err));
        const int64_t to = tgi_min(y, f->window.y1);
        const uint32_t *rows = f->window.numbers + (f->done_to - f->window.y0) * c->width;
        for (int64_t i = 0; i < (to - f->done_to) * c->width; i++) {
            tgi_cell_mask *m = &c->masks[rows[i]];
            if (m->pixels++ == 0)
                m->seen = ++f->met;
        }
        TGI_TRY(tgi_cell_put(c, f->done_to, to, rows, err));
        f->done_to = to;
    }
    return TG_OK;
}

/* In the order of numbers, which is that of first rows: what is above a mask's first row is final. */
static tg_status fill_all(tgi_cellpose *c, filling *f, tgi_err *err)
{
    for (size_t i = 0; i <= c->n_masks; i++)
        c->masks[i].pixels = 0;
    for (size_t i = 1; i <= c->n_masks; i++) {
        if (c->masks[i].is_gone)
            continue;
        if (i % 256 == 0)
            TGI_TRY(tgi_check_cancel(err));
        TGI_TRY(finish_to(c, f, c->masks[i].y0, err));
        TGI_TRY(fill_one(c, f, (uint32_t)i, err));
    }
    return finish_to(c, f, c->height, err);
}

/* Numbers without gaps, as masks are met; where small ones stay, theirs leaves the numbers from before holes
 * were filled. */
static tg_status number_again(tgi_cellpose *c, uint32_t met, tgi_err *err)
{
    uint32_t *order = NULL;
    c->n = 0;
    for (size_t i = 1; c->how.min_size <= 0 && i <= c->n_masks; i++)
        if (!c->masks[i].is_gone)
            c->masks[i].seen = ++c->n;
    if (c->how.min_size <= 0)
        return TG_OK;
    TGI_TRY(tgi_room_new(&c->memory, (void **)&order, (size_t)met + 1, sizeof *order, err));
    for (size_t i = 1; i <= c->n_masks; i++)
        if (!c->masks[i].is_gone && c->masks[i].pixels)
            order[c->masks[i].seen] = (uint32_t)i;
    for (size_t i = 1; i <= met; i++)
        if (order[i])
            c->masks[order[i]].seen = ++c->n;
    tgi_room_free(&c->memory, (void **)&order, (size_t)met + 1, sizeof *order);
    return TG_OK;
}

tg_status tgi_cell_fill(tgi_cellpose *c, tgi_err *err)
{
    filling f = {0};
    drop_small(c);
    tg_status st = fill_all(c, &f, err);
    tgi_cell_window_close(c, &f.window);
    tgi_room_free(&c->memory, (void **)&f.box, f.room_box, 1);
    tgi_room_free(&c->memory, (void **)&f.stack, f.room_stack, sizeof *f.stack);
    if (st != TG_OK)
        return st;
    drop_small(c);
    return number_again(c, f.met, err);
}

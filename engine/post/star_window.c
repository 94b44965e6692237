/* star_window.c - see star_window.h. Objects found are looked up by cells of the image; a cell also knows whether
 * a candidate that waits touches it. That is coarser than asking the candidate itself: it can make another wait
 * for a round more, and decides nothing. */
#include "engine/post/star_window.h"

#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Objects are looked up by square cells of so many pixels that their boxes touch. */
#define CELL 32
#define NONE UINT32_MAX
#define WAITS (UINT32_MAX - 1) /* last of a cell's list: a candidate that waits touches it */

typedef struct live_object {
    tgi_star_candidate c; /* slot: its number in the list of objects */
    uint32_t asked;       /* candidate that was compared with it last */
} live_object;

typedef struct live_node {
    uint32_t live, next;
} live_node;

tg_status tgi_star_window_open(tgi_star_window *w, tgi_stardist *s, tgi_err *err)
{
    const size_t n = (size_t)s->rays;
    w->s = s;
    w->sines = tgi_calloc(TGI_TAG_MISC, 2 * n, sizeof(float));
    w->corners = tgi_calloc(TGI_TAG_MISC, 2 * n, sizeof(tgi_corner));
    if (!w->sines || !w->corners)
        return tgi_fail(err, TG_E_NOMEM, "stardist: no memory for %d rays", s->rays);
    w->cosines = w->sines + n;
    w->others = w->corners + n;
    /* In single precision, as theirs: whether a corner falls below a whole number hangs on it. */
    const float step = (float)(2 * M_PI / s->rays);
    for (int k = 0; k < s->rays; k++) {
        w->sines[k] = sinf(step * (float)k);
        w->cosines[k] = cosf(step * (float)k);
    }
    return tgi_polygon_work_open(s->rays, &w->work, err);
}

void tgi_star_window_close(tgi_star_window *w)
{
    tgi_stardist *s = w->s;
    if (!s)
        return;
    tgi_room_free(&s->memory, (void **)&w->waiting, w->room_waiting, sizeof *w->waiting);
    tgi_room_free(&s->memory, (void **)&w->distances, w->room_slots,
                  (size_t)s->rays * sizeof(float));
    tgi_room_free(&s->memory, (void **)&w->free_slots, w->room_free, sizeof *w->free_slots);
    tgi_room_free(&s->memory, (void **)&w->live, w->room_live, sizeof *w->live);
    tgi_room_free(&s->memory, (void **)&w->nodes, w->room_nodes, sizeof *w->nodes);
    tgi_room_free(&s->memory, (void **)&w->cells, w->room_cells, sizeof *w->cells);
    tgi_free(w->sines);
    tgi_free(w->corners);
    tgi_polygon_work_close(&w->work);
    *w = (tgi_star_window){0};
}

tg_status tgi_star_window_add(tgi_star_window *w, int64_t y, int64_t x, float prob,
                              tgi_err *err)
{
    tgi_stardist *s = w->s;
    TGI_TRY(tgi_room_grow(&s->memory, (void **)&w->waiting, &w->room_waiting, w->n_waiting + 1,
                          sizeof *w->waiting, err));
    if (w->n_free == 0) {
        if (w->n_slots >= WAITS)
            return tgi_fail(err, TG_E_UNSUPPORTED,
                            "stardist: more than 2^32 candidates at once");
        TGI_TRY(tgi_room_grow(&s->memory, (void **)&w->distances, &w->room_slots,
                              w->n_slots + 1, (size_t)s->rays * sizeof(float), err));
        TGI_TRY(tgi_room_grow(&s->memory, (void **)&w->free_slots, &w->room_free,
                              w->n_slots + 1, sizeof *w->free_slots, err));
        w->free_slots[w->n_free++] = (uint32_t)w->n_slots++;
    }
    w->waiting[w->n_waiting++] = (tgi_star_candidate){
        .prob = prob, .y = (int32_t)y, .x = (int32_t)x, .slot = w->free_slots[--w->n_free]};
    return TG_OK;
}

/* Corners, cut to whole numbers (towards 0) as theirs are. */
static void corners_of(const tgi_star_window *w, const tgi_star_candidate *c, const float *d,
                       tgi_corner *out)
{
    for (int k = 0; k < w->s->rays; k++)
        out[k] = (tgi_corner){.x = (int32_t)((float)c->x + d[k] * w->cosines[k]),
                              .y = (int32_t)((float)c->y + d[k] * w->sines[k])};
}

void tgi_star_window_measure(tgi_star_window *w, tgi_star_candidate *c)
{
    const int n = w->s->rays;
    const float *d = w->distances + (size_t)c->slot * (size_t)n;
    corners_of(w, c, d, w->corners);
    c->x0 = c->x1 = w->corners[0].x;
    c->y0 = c->y1 = w->corners[0].y;
    c->reach = 0;
    for (int k = 0; k < n; k++) {
        const tgi_corner at = w->corners[k];
        c->x0 = at.x < c->x0 ? at.x : c->x0;
        c->x1 = at.x > c->x1 ? at.x : c->x1;
        c->y0 = at.y < c->y0 ? at.y : c->y0;
        c->y1 = at.y > c->y1 ? at.y : c->y1;
        c->reach = d[k] > c->reach ? d[k] : c->reach;
    }
    c->area = 0.5f * (float)tgi_polygon_area2(w->corners, n);
    w->longest = c->reach > w->longest ? c->reach : w->longest;
}

/* ---- Cells ---- */

typedef struct cell_box {
    int64_t y0, y1, x0, x1; /* inclusive; y1 < y0: none */
} cell_box;

/* Boxes are taken to the nearest cells there are: two that touch still share one. */
static cell_box cells_of(const tgi_star_window *w, const tgi_star_candidate *c)
{
    const int64_t top = w->cells_y - 1, side = w->cells_x - 1;
    return (cell_box){tgi_clamp(tgi_floor_div(c->y0, CELL) - w->cell_y0, 0, top),
                      tgi_clamp(tgi_floor_div(c->y1, CELL) - w->cell_y0, 0, top),
                      tgi_clamp(tgi_floor_div(c->x0, CELL), 0, side),
                      tgi_clamp(tgi_floor_div(c->x1, CELL), 0, side)};
}

static tg_status put_live(tgi_star_window *w, uint32_t live, tgi_err *err)
{
    const cell_box b = cells_of(w, &w->live[live].c);
    const size_t n = (size_t)((b.y1 - b.y0 + 1) * (b.x1 - b.x0 + 1));
    TGI_TRY(tgi_room_grow(&w->s->memory, (void **)&w->nodes, &w->room_nodes, w->n_nodes + n,
                          sizeof *w->nodes, err));
    for (int64_t y = b.y0; y <= b.y1; y++)
        for (int64_t x = b.x0; x <= b.x1; x++) {
            uint32_t *cell = &w->cells[y * w->cells_x + x];
            w->nodes[w->n_nodes] = (live_node){live, *cell};
            *cell = (uint32_t)w->n_nodes++;
        }
    return TG_OK;
}

/* A list of a cell ends in NONE, or in WAITS where something waits. */
static void mark_waiting(tgi_star_window *w, const tgi_star_candidate *c)
{
    const cell_box b = cells_of(w, c);
    for (int64_t y = b.y0; y <= b.y1; y++)
        for (int64_t x = b.x0; x <= b.x1; x++) {
            uint32_t *end = &w->cells[y * w->cells_x + x];
            while (*end < WAITS)
                end = &w->nodes[*end].next;
            *end = WAITS;
        }
}

/* Cells for what waits, and the objects that may cover something of it or of what is still to be read. */
static tg_status lay_cells(tgi_star_window *w, double unread_from, tgi_err *err)
{
    int64_t y0 = INT32_MAX, y1 = INT32_MIN;
    for (size_t i = 0; i < w->n_waiting; i++) {
        y0 = tgi_min(y0, w->waiting[i].y0);
        y1 = tgi_max(y1, w->waiting[i].y1);
    }
    size_t kept = 0;
    for (size_t i = 0; i < w->n_live; i++)
        if (w->live[i].c.y1 >= y0 || w->live[i].c.y1 >= unread_from)
            w->live[kept++] = w->live[i];
    w->n_live = kept;
    y0 = tgi_clamp(y0, 0, w->s->how.height - 1);
    y1 = tgi_clamp(y1, y0, w->s->how.height - 1);
    w->cell_y0 = y0 / CELL;
    w->cells_y = y1 / CELL - w->cell_y0 + 1;
    w->cells_x = (w->s->how.width - 1) / CELL + 1;
    const size_t n = (size_t)(w->cells_y * w->cells_x);
    TGI_TRY(tgi_room_grow(&w->s->memory, (void **)&w->cells, &w->room_cells, n,
                          sizeof *w->cells, err));
    for (size_t i = 0; i < n; i++)
        w->cells[i] = NONE;
    w->n_nodes = 0;
    for (size_t i = 0; i < kept; i++) {
        w->live[i].asked = NONE;
        TGI_TRY(put_live(w, (uint32_t)i, err));
    }
    return TG_OK;
}

/* ---- Decisions ---- */

static int by_rank(const void *pa, const void *pb)
{
    const tgi_star_candidate *a = pa, *b = pb;
    if (a->prob != b->prob)
        return a->prob > b->prob ? -1 : 1;
    if (a->y != b->y)
        return a->y < b->y ? -1 : 1;
    return (a->x > b->x) - (a->x < b->x);
}

/* Is too much of c, whose corners are in w->corners, in common with an object found before? */
static int covers(tgi_star_window *w, const tgi_star_candidate *o, const tgi_star_candidate *c)
{
    const int64_t y0 = tgi_max(o->y0, c->y0), y1 = tgi_min(o->y1, c->y1);
    const int64_t x0 = tgi_max(o->x0, c->x0), x1 = tgi_min(o->x1, c->x1);
    if (y1 < y0 || x1 < x0)
        return 0;
    const float dy = (float)(o->y - c->y), dx = (float)(o->x - c->x),
                far = w->longest + o->reach;
    if (dx * dx + dy * dy >= far * far)
        return 0;
    const double smaller = fmin(o->area + 1e-10, c->area + 1e-10);
    const float most = w->s->how.nms_threshold;
    if (most >= 0 && (double)((y1 - y0) * (x1 - x0)) <
                         0.99 * (double)most * smaller) /* not even the boxes */
        return 0;
    corners_of(w, o, w->s->distances + (size_t)o->slot * (size_t)w->s->rays, w->others);
    const int64_t common2 =
        tgi_polygon_common2(w->work, w->others, w->s->rays, w->corners, w->s->rays);
    return (float)(0.5f * (float)common2 / smaller) > most;
}

enum verdict { COVERED, WAITING, OBJECT };

static enum verdict look_around(tgi_star_window *w, uint32_t number,
                                const tgi_star_candidate *c)
{
    const cell_box b = cells_of(w, c);
    enum verdict v = OBJECT;
    corners_of(w, c, w->distances + (size_t)c->slot * (size_t)w->s->rays, w->corners);
    for (int64_t y = b.y0; y <= b.y1; y++)
        for (int64_t x = b.x0; x <= b.x1; x++) {
            uint32_t at = w->cells[y * w->cells_x + x];
            for (; at < WAITS; at = w->nodes[at].next) {
                live_object *o = &w->live[w->nodes[at].live];
                if (o->asked != number && covers(w, &o->c, c))
                    return COVERED;
                o->asked = number;
            }
            if (at == WAITS)
                v = WAITING;
        }
    return v;
}

static tg_status add_object(tgi_star_window *w, const tgi_star_candidate *c, tgi_err *err)
{
    tgi_stardist *s = w->s;
    const size_t rays = (size_t)s->rays;
    if (s->n == WAITS)
        return tgi_fail(err, TG_E_UNSUPPORTED, "stardist: more than 2^32 - 2 objects");
    TGI_TRY(tgi_room_grow(&s->memory, (void **)&s->objects, &s->room, s->n + 1,
                          sizeof *s->objects, err));
    TGI_TRY(tgi_room_grow(&s->memory, (void **)&s->distances, &s->room_distances, s->n + 1,
                          rays * sizeof(float), err));
    TGI_TRY(tgi_room_grow(&s->memory, (void **)&w->live, &w->room_live, w->n_live + 1,
                          sizeof *w->live, err));
    s->objects[s->n] = (tgi_stardist_object){c->y, c->x, c->prob, c->reach, s->n};
    memcpy(s->distances + s->n * rays, w->distances + c->slot * rays, rays * sizeof(float));
    w->live[w->n_live] = (live_object){*c, NONE};
    w->live[w->n_live].c.slot = s->n++;
    return put_live(w, (uint32_t)w->n_live++, err);
}

tg_status tgi_star_window_decide(tgi_star_window *w, int64_t read_to, tgi_err *err)
{
    /* The first row that something unread can touch; corners are cut, so one more. */
    const double unread_from =
        read_to >= w->s->how.height ? INFINITY : (double)read_to - w->longest - 1;
    TGI_TRY(lay_cells(w, unread_from, err));
    if (w->n_waiting > 1)
        qsort(w->waiting, w->n_waiting, sizeof *w->waiting, by_rank);
    size_t kept = 0;
    for (size_t i = 0; i < w->n_waiting; i++) {
        const tgi_star_candidate c = w->waiting[i];
        if (i % 1024 == 0)
            TGI_TRY(tgi_check_cancel(err));
        enum verdict v = look_around(w, (uint32_t)i, &c);
        if (v == OBJECT && c.y1 >= unread_from)
            v = WAITING;
        if (v == WAITING) {
            mark_waiting(w, &c);
            w->waiting[kept++] = c;
            continue;
        }
        if (v == OBJECT)
            TGI_TRY(add_object(w, &c, err));
        w->free_slots[w->n_free++] = c.slot;
    }
    w->n_waiting = kept;
    return TG_OK;
}

/* cell_seed.c - places where many pixels end, and the masks around them. */
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/post/cell_inside.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 4096
#define SEED_ABOVE 10 /* pixels end there */
#define PART_ABOVE 2
#define NEAR 2  /* no more end so near to a seed */
#define GROWS 5 /* times, by a pixel in all eight directions */
#define SIDE (2 * GROWS + 1)

static size_t slot_of(const tgi_cellpose *c, uint32_t key)
{
    const size_t mask = c->n_slots - 1;
    size_t at = (size_t)((key * 0x9e3779b97f4a7c15u) >> 32) & mask;
    while (c->ends[at].key && c->ends[at].key != key)
        at = (at + 1) & mask;
    return at;
}

tgi_cell_end *tgi_cell_end_at(const tgi_cellpose *c, int64_t y, int64_t x)
{
    if (y < 0 || x < 0 || y >= c->height || x >= c->width || !c->n_slots)
        return NULL;
    tgi_cell_end *e = &c->ends[slot_of(c, (uint32_t)(y * c->width + x) + 1)];
    return e->key ? e : NULL;
}

static tg_status more_slots(tgi_cellpose *c, tgi_err *err)
{
    tgi_cell_end *old = c->ends;
    const size_t n_old = c->n_slots, n = n_old ? 2 * n_old : FIRST_SLOTS;
    void *slots = NULL;
    TGI_TRY(tgi_room_new(&c->memory, &slots, n, sizeof *old, err));
    c->ends = slots;
    c->n_slots = n;
    for (size_t i = 0; i < n_old; i++)
        if (old[i].key)
            c->ends[slot_of(c, old[i].key)] = old[i];
    void *gone = old;
    tgi_room_free(&c->memory, &gone, n_old, sizeof *old);
    return TG_OK;
}

tg_status tgi_cell_end_add(tgi_cellpose *c, uint32_t pixel, tgi_err *err)
{
    if (2 * (c->n_ends + 1) > c->n_slots)
        TGI_TRY(more_slots(c, err));
    tgi_cell_end *e = &c->ends[slot_of(c, pixel + 1)];
    c->n_ends += e->key == 0;
    e->key = pixel + 1;
    e->count++;
    return TG_OK;
}

typedef struct seed {
    uint32_t count, key;
} seed;

static int by_count(const void *pa, const void *pb)
{
    const seed *a = pa, *b = pb;
    if (a->count != b->count)
        return a->count < b->count ? -1 : 1;
    return (a->key > b->key) - (a->key < b->key);
}

static uint32_t count_at(const tgi_cellpose *c, int64_t y, int64_t x)
{
    const tgi_cell_end *e = tgi_cell_end_at(c, y, x);
    return e ? e->count : 0;
}

static int is_seed(const tgi_cellpose *c, const tgi_cell_end *e)
{
    const int64_t y = (e->key - 1) / c->width, x = (e->key - 1) % c->width;
    if (e->count <= SEED_ABOVE)
        return 0;
    for (int64_t dy = -NEAR; dy <= NEAR; dy++)
        for (int64_t dx = -NEAR; dx <= NEAR; dx++)
            if (count_at(c, y + dy, x + dx) > e->count)
                return 0;
    return 1;
}

/* Extend a seed to places that touch it, and give these its number. */
static void extend(tgi_cellpose *c, const seed *s, uint32_t number)
{
    const int64_t y = (s->key - 1) / c->width - GROWS, x = (s->key - 1) % c->width - GROWS;
    tgi_cell_end *ends[SIDE][SIDE];
    uint8_t in[2][SIDE + 2][SIDE + 2] = {{{0}}};
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            ends[i][j] = tgi_cell_end_at(c, y + i, x + j);
            if (ends[i][j] && ends[i][j]->count <= PART_ABOVE)
                ends[i][j] = NULL;
        }
    in[0][GROWS + 1][GROWS + 1] = 1;
    for (int round = 0; round < GROWS; round++)
        for (int i = 1; i <= SIDE; i++)
            for (int j = 1; j <= SIDE; j++) {
                unsigned any = 0;
                for (int k = 0; k < 9; k++)
                    any |= in[round % 2][i - 1 + k / 3][j - 1 + k % 3];
                in[(round + 1) % 2][i][j] = any && ends[i - 1][j - 1];
            }
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++)
            if (in[GROWS % 2][i + 1][j + 1])
                ends[i][j]->mask = number;
}

tg_status tgi_cell_seed(tgi_cellpose *c, size_t *n_seeds, tgi_err *err)
{
    seed *seeds = NULL;
    size_t n = 0, room = 0;
    tg_status st = TG_OK;
    for (size_t i = 0; i < c->n_slots && st == TG_OK; i++) {
        const tgi_cell_end *e = &c->ends[i];
        if (!e->key || !is_seed(c, e))
            continue;
        st = tgi_room_grow(&c->memory, (void **)&seeds, &room, n + 1, sizeof *seeds, err);
        if (st == TG_OK)
            seeds[n++] = (seed){e->count, e->key};
    }
    if (n > 1)
        qsort(seeds, n, sizeof *seeds, by_count);
    for (size_t i = 0; i < n; i++)
        extend(c, &seeds[i], (uint32_t)i + 1);
    tgi_room_free(&c->memory, (void **)&seeds, room, sizeof *seeds);
    *n_seeds = n;
    return st;
}

/* cell_inside.h - what the files of Cellpose share. */
#ifndef TGI_CELL_INSIDE_H
#define TGI_CELL_INSIDE_H

#include "engine/out/scratch.h"
#include "engine/post/cellpose.h"
#include "engine/post/room.h"

#include <stdbool.h>

/* A place where pixels end. */
typedef struct tgi_cell_end {
    uint32_t key; /* 1 + pixel; 0: an empty slot */
    uint32_t count;
    uint32_t mask; /* later: number of the mask, or 0 */
} tgi_cell_end;

typedef struct tgi_cell_mask {
    uint32_t pixels, is_gone;
    int32_t y0, y1, x0, x1; /* half open */
    int64_t sum_y, sum_x;
    double off;    /* sum of squared differences to the flow */
    uint32_t seen; /* its place in the order in which masks are met; later its number */
} tgi_cell_mask;

struct tgi_cellpose {
    tgi_cellpose_how how;
    const tgi_post_rows *rows; /* during open */
    int64_t height, width;
    tgi_room memory;
    uint32_t *numbers; /* one a pixel: 1 + where it ends, later its mask; NULL: in the file */
    tgi_scratch *file;
    tgi_cell_end *ends; /* a table of 2^k slots */
    size_t n_ends, n_slots;
    tgi_cell_mask *masks; /* [0] is unused */
    size_t n_masks, room_masks;
    uint32_t n;
};

/* Rows [y0,y1) of the numbers. */
tg_status tgi_cell_get(tgi_cellpose *c, int64_t y0, int64_t y1, uint32_t *dst, tgi_err *err);
tg_status tgi_cell_put(tgi_cellpose *c, int64_t y0, int64_t y1, const uint32_t *src,
                       tgi_err *err);
/* One of them. */
tg_status tgi_cell_put_one(tgi_cellpose *c, uint64_t pixel, uint32_t number, tgi_err *err);

/* The slot of a place, or NULL. */
tgi_cell_end *tgi_cell_end_at(const tgi_cellpose *c, int64_t y, int64_t x);
/* One more pixel ends there. */
tg_status tgi_cell_end_add(tgi_cellpose *c, uint32_t pixel, tgi_err *err);

/* 1: numbers become 1 + where pixels end, and all ends are counted. */
tg_status tgi_cell_follow(tgi_cellpose *c, tgi_err *err);
/* 2: ends get the masks of seeds; n_seeds of them. */
tg_status tgi_cell_seed(tgi_cellpose *c, size_t *n_seeds, tgi_err *err);
/* 3: numbers become masks, in the order in which they are met. */
tg_status tgi_cell_number(tgi_cellpose *c, size_t n_seeds, tgi_err *err);
/* 4: masks that do not fit the flow are gone. */
tg_status tgi_cell_compare(tgi_cellpose *c, tgi_err *err);
/* 5 and 6: small ones are gone, holes filled, what is left is numbered. */
tg_status tgi_cell_fill(tgi_cellpose *c, tgi_err *err);

/* Rows of numbers, and values beside them where there are, that move down the image. */
typedef struct tgi_cell_window {
    int64_t y0, y1; /* rows that are there */
    size_t room;    /* rows */
    uint32_t *numbers;
    double *heat; /* NULL: not wanted */
    bool with_heat;
} tgi_cell_window;

/* Have rows up to y1; those before keep_from may go. Masks that are gone are 0. */
tg_status tgi_cell_window_reach(tgi_cellpose *c, tgi_cell_window *w, int64_t keep_from,
                                int64_t y1, tgi_err *err);
void tgi_cell_window_close(tgi_cellpose *c, tgi_cell_window *w);

#endif

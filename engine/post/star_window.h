/* star_window.h - candidates that wait for a decision, and the objects that can still cover one.
 *
 * Going through the candidates from the highest probability down, each is one of:
 *   covered   an object found before has too much in common with it: let go;
 *   waiting   something that is not read yet, or a candidate that waits itself and comes before it, may
 *             cover it: kept for the next round;
 *   object    neither.
 * Every decision is the one that the whole image at once would give, so how much is read between rounds
 * changes memory and time only. */
#ifndef TGI_STAR_WINDOW_H
#define TGI_STAR_WINDOW_H

#include "engine/post/polygon.h"
#include "engine/post/star_inside.h"

typedef struct tgi_star_candidate {
    float prob, area, reach;
    int32_t y, x;           /* pixels */
    int32_t y0, y1, x0, x1; /* of its corners, inclusive */
    uint32_t slot;          /* its distances are at rays * slot */
} tgi_star_candidate;

typedef struct tgi_star_window {
    tgi_stardist *s; /* borrowed; objects go to its list */
    float longest;   /* ray of all candidates of the image */
    tgi_star_candidate *waiting;
    size_t n_waiting, room_waiting;
    float *distances; /* of candidates, by slot */
    size_t n_slots, room_slots;
    uint32_t *free_slots;
    size_t n_free, room_free;
    struct live_object *live;
    size_t n_live, room_live;
    struct live_node *nodes;
    size_t n_nodes, room_nodes;
    uint32_t *cells;
    size_t room_cells;
    int64_t cell_y0, cells_y, cells_x; /* rows of cells from there */
    float *sines, *cosines;
    tgi_corner *corners, *others;
    tgi_polygon_work *work;
} tgi_star_window;

/* Zeroed before; close at any stage. */
tg_status tgi_star_window_open(tgi_star_window *w, tgi_stardist *s, tgi_err *err);
void tgi_star_window_close(tgi_star_window *w);

/* One more candidate, its distances still to be written. */
tg_status tgi_star_window_add(tgi_star_window *w, int64_t y, int64_t x, float prob,
                              tgi_err *err);
/* Its distances are written: find what follows from them. */
void tgi_star_window_measure(tgi_star_window *w, tgi_star_candidate *c);
/* Decide what can be when all rows of pixels before `read_to` are read. */
tg_status tgi_star_window_decide(tgi_star_window *w, int64_t read_to, tgi_err *err);

#endif

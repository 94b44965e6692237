/* room.h - memory of one step after the network, counted against what it may take. */
#ifndef TGI_ROOM_H
#define TGI_ROOM_H

#include "engine/base/status.h"

#include <stddef.h>

typedef struct tgi_room {
    const char *who;    /* static: "stardist" */
    const char *remedy; /* static: what one can try where it does not fit */
    size_t limit;       /* 0: none */
    size_t held, peak;
} tgi_room;

/* Count `bytes` more. TG_E_BUDGET beyond the limit, and nothing is counted then. */
tg_status tgi_room_take(tgi_room *r, size_t bytes, tgi_err *err);
void tgi_room_give(tgi_room *r, size_t bytes);

/* Zeroed elements, counted. Also TG_E_NOMEM. */
tg_status tgi_room_new(tgi_room *r, void **out, size_t n, size_t size, tgi_err *err);
/* Make an array of *have elements one of n; while it moves, both are counted. */
tg_status tgi_room_resize(tgi_room *r, void **p, size_t *have, size_t n, size_t size,
                          tgi_err *err);
/* Room for `need` elements at least, by half more at a time. */
tg_status tgi_room_grow(tgi_room *r, void **p, size_t *have, size_t need, size_t size,
                        tgi_err *err);
/* Free an array of n elements; *p is NULL afterwards. */
void tgi_room_free(tgi_room *r, void **p, size_t n, size_t size);

#endif

/* film_spool.h - packets of a film that comes through a pipe, one behind the other, until it is over.
 *
 * Nobody knows how many there will be, so no journal has places for them, and nothing goes on from here: a
 * stop starts over. OUT.partial holds them, locked and marked as any output that grows (io/part.h):
 *
 *   mark 16 | [bytes 8 | record]...
 *
 * The film is made of them beside it, as OUT.made. What a run that was killed left of both is known by that mark. */
#ifndef TGI_FILM_SPOOL_H
#define TGI_FILM_SPOOL_H

#include "io/part.h"

typedef struct tgi_film_spool {
    tgi_part part;
    char *made;       /* the name of what is made of it */
    int left;         /* a run that was killed left something */
    uint64_t end, at; /* behind the last record; of the one that is read next */
    int64_t next;     /* its number */
    int64_t n;        /* records */
    size_t longest;   /* of them, bytes */
    int64_t delay;    /* places by which a packet comes after its frame's number, at most */
} tgi_film_spool;

#define TGI_FILM_SPOOL_CLOSED ((tgi_film_spool){.part = {.fd = -1}})

/* Create it for an output of that name. TG_E_EXISTS, TG_E_BUSY, TG_E_IO, as tgi_part_create. */
tg_status tgi_film_spool_open(const char *output, int replace, tgi_film_spool *out,
                              tgi_err *err);
/* One more record; of a packet that comes `late` places after its frame's number. */
tg_status tgi_film_spool_add(tgi_film_spool *s, const void *record, size_t n, int64_t late,
                             tgi_err *err);
/* Record i, the one behind the last that was read or the first; `room` has `cap` bytes. */
tg_status tgi_film_spool_read(tgi_film_spool *s, int64_t i, void *room, size_t cap, size_t *n,
                              tgi_err *err);
/* What a killed run made of its own goes. */
tg_status tgi_film_spool_clear_made(const tgi_film_spool *s, tgi_err *err);
/* Remove it; in any state. */
void tgi_film_spool_close(tgi_film_spool *s);

#endif

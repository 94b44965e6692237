/* film_kept.h - frames of a film that are kept while somebody may ask for them again: the last ones that were asked
 * for, and those that are held. One thread at a time makes frames; others may hold and release them meanwhile, for as long
 * as copying takes. */
#ifndef TGI_FILM_KEPT_H
#define TGI_FILM_KEPT_H

#include "engine/base/status.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tgi_kept_frame {
    int64_t number; /* -1: none */
    uint64_t used;  /* when it was last asked for; 0: nobody will */
    int held;       /* by so many */
    atomic_int bad; /* parts of it were made up, and nobody was told */
    char *bytes;
} tgi_kept_frame;

typedef struct tgi_film_kept {
    pthread_mutex_t lock;
    pthread_cond_t freed; /* a frame is held by nobody any more */
    tgi_kept_frame *frame;
    int n;
    int in_order; /* 1: the earliest frame is of least use; 0: the one that nobody asked for for longest */
    uint64_t turn;
} tgi_film_kept;

void tgi_film_kept_open(tgi_film_kept *k);
void tgi_film_kept_close(tgi_film_kept *k);
/* Room for n frames of that many bytes, in place of what is kept. */
tg_status tgi_film_kept_make(tgi_film_kept *k, int n, size_t bytes, tgi_err *err);
/* What is kept is not asked for again. */
void tgi_film_kept_forget(tgi_film_kept *k);
/* 1: the frame is kept. */
int tgi_film_kept_has(tgi_film_kept *k, int64_t number);
/* Room of the frame that is of least use and that nobody holds, which is forgotten; the new one counts when it is named. */
tgi_kept_frame *tgi_film_kept_room(tgi_film_kept *k);
void tgi_film_kept_name(tgi_film_kept *k, tgi_kept_frame *f, int64_t number);
/* The frame, which was asked for and stays until it is let go or released; NULL: it is not kept. */
tgi_kept_frame *tgi_film_kept_hold(tgi_film_kept *k, int64_t number);
void tgi_film_kept_let_go(tgi_film_kept *k, tgi_kept_frame *f);
/* The same, and nobody asks for it again. */
void tgi_film_kept_release(tgi_film_kept *k, tgi_kept_frame *f);

#endif

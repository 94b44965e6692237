/* ahead.h - one piece of work at a time, done by a thread of its own while its owner does
 * something else:
 *
 *     if (tgi_ahead_free(&a)) {    nothing is asked for
 *         ...                      say what is wanted, where `work` looks
 *         tgi_ahead_ask(&a);
 *     }
 *     waited += tgi_ahead_take(&a);   it is done, or was never asked for
 *
 * All but `work` is called by the owner's thread alone. */
#ifndef TGI_AHEAD_H
#define TGI_AHEAD_H

#include "engine/base/cancel.h"

#include <pthread.h>

typedef struct tgi_ahead {
    void (*work)(void *user);
    void *user;
    const tgi_flag *lent; /* of who opened it */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    int state, open;
} tgi_ahead;

tg_status tgi_ahead_open(tgi_ahead *a, void (*work)(void *user), void *user, tgi_err *err);
/* Waits for the work at hand. Again, or of one that is all zero: nothing. */
void tgi_ahead_close(tgi_ahead *a);
int tgi_ahead_free(tgi_ahead *a);
void tgi_ahead_ask(tgi_ahead *a); /* where it is free: else an answer would be lost */
/* Seconds that this waited. From here on what `work` looks at is the caller's. */
double tgi_ahead_take(tgi_ahead *a);

#endif

/* beside.h - reading that a run does beside its own work: by a thread of the lowest priority, a
 * step at a time.
 *
 *     tgi_beside_start(&b, step, arg)
 *     ...                             the run computes
 *     tgi_beside_stop(&b)             from here on `arg` is the caller's alone
 *     while (step(arg)) ;             what the thread had no time for
 *
 * The caller does the rest itself, so the thread's priority holds nobody up. Where no thread
 * can be had, that is all of it. */
#ifndef TGI_BESIDE_H
#define TGI_BESIDE_H

#include "engine/base/cancel.h"

#include <pthread.h>
#include <stdatomic.h>

typedef int tgi_beside_step(void *arg); /* 0: nothing is left */

typedef struct tgi_beside {
    tgi_beside_step *step;
    void *arg;
    pthread_t thread;
    int running; /* the thread is there to be joined */
    atomic_int stop;
    const tgi_flag *lent; /* of who started it */
} tgi_beside;

void tgi_beside_start(tgi_beside *b, tgi_beside_step *step, void *arg);
void tgi_beside_stop(tgi_beside *b); /* again, or of one that is all zero: nothing */

#endif

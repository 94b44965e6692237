/* ahead.c - see ahead.h. */
#include "engine/base/ahead.h"

#include "engine/base/clock.h"
#include "engine/base/thread.h"

#define STACK_BYTES ((size_t)256 * 1024)

enum { FREE, ASKED, DONE, QUIT };

static void *ahead_main(void *arg)
{
    tgi_ahead *a = arg;
    (void)tgi_cancel_lend(a->lent);
    pthread_mutex_lock(&a->lock);
    while (a->state != QUIT) {
        if (a->state != ASKED) {
            pthread_cond_wait(&a->wake, &a->lock);
            continue;
        }
        pthread_mutex_unlock(&a->lock);
        a->work(a->user);
        pthread_mutex_lock(&a->lock);
        if (a->state == ASKED)
            a->state = DONE;
        pthread_cond_broadcast(&a->wake);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

tg_status tgi_ahead_open(tgi_ahead *a, void (*work)(void *user), void *user, tgi_err *err)
{
    *a = (tgi_ahead){.work = work, .user = user, .lent = tgi_cancel_lent(), .state = FREE};
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->wake, NULL);
    a->open = tgi_thread_start(&a->thread, STACK_BYTES, ahead_main, a) == 0;
    if (a->open)
        return TG_OK;
    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->wake);
    return tgi_fail(err, TG_E_NOMEM, "the system refused the reader's thread");
}

static void set_state(tgi_ahead *a, int state)
{
    pthread_mutex_lock(&a->lock);
    a->state = state;
    pthread_cond_broadcast(&a->wake);
    pthread_mutex_unlock(&a->lock);
}

void tgi_ahead_close(tgi_ahead *a)
{
    if (!a->open)
        return;
    set_state(a, QUIT);
    pthread_join(a->thread, NULL);
    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->wake);
    a->open = 0;
}

int tgi_ahead_free(tgi_ahead *a)
{
    pthread_mutex_lock(&a->lock);
    const int nothing_asked = a->state == FREE;
    pthread_mutex_unlock(&a->lock);
    return nothing_asked;
}

void tgi_ahead_ask(tgi_ahead *a)
{
    set_state(a, ASKED);
}

double tgi_ahead_take(tgi_ahead *a)
{
    const double t0 = tgi_seconds();
    pthread_mutex_lock(&a->lock);
    while (a->state == ASKED)
        pthread_cond_wait(&a->wake, &a->lock);
    a->state = FREE; /* the thread waits either way */
    pthread_mutex_unlock(&a->lock);
    return tgi_seconds() - t0;
}

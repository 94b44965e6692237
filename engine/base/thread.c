/* thread.c - see thread.h. Source: pthread_sigmask(3): a thread begins with the mask of who
 * starts it; signal(7): which signals an instruction raises. */
#include "engine/base/thread.h"

#include <signal.h>

int tgi_thread_start(pthread_t *thread, size_t stack_bytes, void *(*fn)(void *arg), void *arg)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    pthread_attr_t attr;
    sigset_t blocked, before;
    int e = pthread_attr_init(&attr);
    if (e)
        return e;
    pthread_attr_setstacksize(&attr, stack_bytes);
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&blocked, own[i]);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    e = pthread_create(thread, &attr, fn, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return e;
}

/* beside.c - see beside.h. Source: Linux ioprio_set(2), getpriority(2). */
#include "engine/base/beside.h"

#include "engine/base/thread.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK_BYTES (128u * 1024u)
/* ioprio_set(2): of a thread; class best effort, its lowest level. Not class idle: on a disk
 * that is never idle that would be never. */
#define IO_WHO_THREAD 1
#define IO_LOWEST (2 << 13 | 7)

static void *beside_main(void *arg)
{
    tgi_beside *b = arg;
    setpriority(PRIO_PROCESS, 0, 19); /* on Linux: of this thread alone */
    syscall(SYS_ioprio_set, IO_WHO_THREAD, 0, IO_LOWEST);
    (void)tgi_cancel_lend(b->lent);
    while (!atomic_load(&b->stop) && b->step(b->arg))
        ;
    return NULL;
}

void tgi_beside_start(tgi_beside *b, tgi_beside_step *step, void *arg)
{
    b->step = step;
    b->arg = arg;
    b->lent = tgi_cancel_lent();
    atomic_store(&b->stop, 0);
    b->running = tgi_thread_start(&b->thread, STACK_BYTES, beside_main, b) == 0;
}

void tgi_beside_stop(tgi_beside *b)
{
    atomic_store(&b->stop, 1);
    if (b->running)
        pthread_join(b->thread, NULL);
    b->running = 0;
}

/* look.h - one look at everything that a sample of memory holds, from the one place for each:
 * the process and what is free (monitor.h), our own blocks (base/), the GPUs. */
#ifndef TGI_LOOK_H
#define TGI_LOOK_H

#include "tegula_tracker.h"

/* Where numbers come from; tests bring machines of their own. */
typedef struct tgi_look {
    const char *root; /* of the system's files; "" is this machine */
    int n_gpus;
    /* Used and free bytes of GPU i; 0 when it cannot be asked. NULL where n_gpus is 0. */
    int (*gpu)(int i, uint64_t *used_bytes, uint64_t *free_bytes);
} tgi_look;

/* This machine; gpus: with those that are there now, at most TG_TRACKER_GPUS. Asking for them
 * loads the driver's library, which takes memory in this process. */
tgi_look tgi_look_here(int gpus);

/* Host memory of all pools of this process, pinned memory included: blocks in use, and what is
 * held for blocks. */
void tgi_pool_now(uint64_t *allocated_bytes, uint64_t *reserved_bytes);

/* The cheap half: the process. 0 when the system does not say; the row is unchanged then. */
int tgi_look_process(const tgi_look *l, tg_tracker_row *row);
/* The rest: pool, what is free, GPUs. */
void tgi_look_around(const tgi_look *l, tg_tracker_row *row);
/* anonymous + file + shared: what VmHWM is the maximum of. */
uint64_t tgi_resident_of(const tg_tracker_row *row);

#endif

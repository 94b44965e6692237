/* threads.h - a small pool: parallel loops inside one op, nothing spinning between them. */
#ifndef TGI_THREADS_H
#define TGI_THREADS_H

#include "engine/base/status.h"

#include <stdint.h>

typedef struct tgi_threads tgi_threads;

/* `n` workers in all, the caller included (n >= 1). Small stacks (256 KiB). Returned. */
tg_status tgi_threads_open(int n, tgi_threads **out, tgi_err *err);
void tgi_threads_close(tgi_threads **t);
int tgi_threads_count(const tgi_threads *t); /* 1 for NULL */

/* Call fn(arg, job, thread) for every job in [0, n_jobs), each thread a contiguous share in
 * order and then what others have left; returns when all are done. thread in [0, count) selects
 * scratch. NULL pool: serial. */
void tgi_parallel(tgi_threads *t, int64_t n_jobs,
                  void (*fn)(void *arg, int64_t job, int thread), void *arg);

#endif

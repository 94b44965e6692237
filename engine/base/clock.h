/* clock.h - seconds: that only go forward, and of the day. */
#ifndef TGI_CLOCK_H
#define TGI_CLOCK_H

#include <sys/resource.h>
#include <time.h>

/* Of the monotonic clock, from some point in the past. */
static inline double tgi_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* By the clock of the day, which other processes have, too. */
static inline double tgi_day_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* That this thread has spent on processors. */
static inline double tgi_thread_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* That all threads of this process have spent on processors, for themselves and in the kernel.
 */
static inline double tgi_processor_seconds(void)
{
    struct rusage u;
    if (getrusage(RUSAGE_SELF, &u))
        return 0;
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

#endif

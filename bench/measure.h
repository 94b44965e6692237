/* measure.h - what the benchmarks share: clock, the processor's multiply-add peak, order
 * statistics, memory of this process and for it. */
#ifndef TG_MEASURE_H
#define TG_MEASURE_H

#include "kernels/backend.h"

#include <stddef.h>
#include <time.h>

#define ROUNDS_MAX 101

/* Seconds of the clock chosen by measure_clock; the wall's at first. */
double measure_now(void);
/* CLOCK_THREAD_CPUTIME_ID: a busy machine then disturbs caches only. */
void measure_clock(clockid_t id);

/* Operations a second of one thread that does nothing but vector multiply-adds (two each), for
 * about a millisecond on the clock above; 0: not known for this instruction set. */
double measure_peak(tgi_isa isa);
/* Of multiply-adds of bfloat16 numbers; processors differ in how many those are for one of float32: two (Zen 5), or half of one. */
double measure_peak_bf16(tgi_isa isa);

/* Sorts t[0..n) and returns the median; t[0] is then the best. */
double measure_median(double *t, int n);
/* Median absolute deviation from `middle`. */
double measure_mad(const double *t, int n, double middle);

/* VmHWM of this process: the largest resident set so far, file pages included. 0: unknown. */
size_t measure_peak_rss(void);

/* Zeros, aligned to 64 bytes, in huge pages where it is as large as one, as the library has its own; free.
 * Ends the program where there is no memory. */
void *measure_room(size_t bytes);

#endif

/* fake_raw.h - a backend for pools: real memory in limited amount, calls counted, failures
 * where a test wants them. Its counters are what "seen at the raw allocator" means. */
#ifndef TG_FAKE_RAW_H
#define TG_FAKE_RAW_H

#include <tegula_pool.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct fake {
    uint64_t total, held, others; /* others: what somebody else took */
    uint64_t allocs, frees;
    uint64_t fail_from, fail_n; /* calls fail_from .. fail_from + fail_n - 1, counted from 1 */
} fake;

static inline void *fake_alloc(void *user, size_t bytes)
{
    fake *f = user;
    const uint64_t call = ++f->allocs;
    if (call >= f->fail_from && call < f->fail_from + f->fail_n)
        return NULL;
    if (f->held + f->others + bytes > f->total)
        return NULL;
    void *p = aligned_alloc(4096, bytes);
    if (p) {
        memset(p, 0xdd, bytes < 4096 ? bytes : 4096); /* not zeros */
        f->held += bytes;
    }
    return p;
}

static inline void fake_free(void *user, void *at, size_t bytes)
{
    fake *f = user;
    f->frees++;
    f->held -= bytes;
    free(at);
}

static inline uint64_t fake_total(void *user)
{
    return ((const fake *)user)->total;
}

static inline uint64_t fake_left(void *user)
{
    const fake *f = user;
    return f->total - f->held - f->others;
}

static inline tg_raw fake_raw(fake *f, tg_memory_kind kind)
{
    return (tg_raw){.size = sizeof(tg_raw),
                    .kind = kind,
                    .granularity_bytes = 4096,
                    .user = f,
                    .alloc = fake_alloc,
                    .free = fake_free,
                    .total_bytes = fake_total,
                    .free_bytes = fake_left};
}

#endif

/* raw_pages.c - host memory as the system gives it: anonymous pages, and the pool's own books.
 *
 * Populated pages are for the reservation of a run: on a 2 MiB border so that huge pages fit,
 * and resident when the call returns, so that memory the system does not have shows at second
 * zero and not as a kill in the middle of the night. madvise(2) for MADV_POPULATE_WRITE. */
#include "engine/base/arith.h"
#include "engine/base/pool_priv.h"
#include "engine/base/reserve.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE ((size_t)2 << 20)
#define PAGE ((size_t)4096)

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static void *map(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* ---- Kept between jobs ------------------------------------------------------------------- */

/* What a reservation leaves for the next one while somebody asks for that: its pages but the last KEPT_LESS, which are
 * room for what lies between two jobs (closing, opening, planning). It is nobody's while it waits: what pages are taken
 * meanwhile are taken off it, so a process never holds more than it did. */
#define KEPT_LESS ((size_t)32 << 20)

static struct {
    pthread_mutex_t lock;
    int asked;
    char *at;
    size_t bytes;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void shorten_kept(size_t to)
{
    if (to < kept.bytes)
        munmap(kept.at + to, kept.bytes - to);
    kept.bytes = to < kept.bytes ? to : kept.bytes;
}

static void take_off_kept(size_t bytes)
{
    pthread_mutex_lock(&kept.lock);
    if (kept.bytes)
        shorten_kept(kept.bytes > bytes ? (kept.bytes - bytes) / PAGE * PAGE : 0);
    pthread_mutex_unlock(&kept.lock);
}

void tgi_pages_keep(int more)
{
    pthread_mutex_lock(&kept.lock);
    kept.asked += more ? 1 : -1;
    if (!kept.asked)
        shorten_kept(0);
    pthread_mutex_unlock(&kept.lock);
}

void tgi_pages_keep_at_most(size_t bytes)
{
    pthread_mutex_lock(&kept.lock);
    shorten_kept(bytes / PAGE * PAGE);
    pthread_mutex_unlock(&kept.lock);
}

size_t tgi_pages_kept(void)
{
    pthread_mutex_lock(&kept.lock);
    const size_t bytes = kept.bytes;
    pthread_mutex_unlock(&kept.lock);
    return bytes;
}

/* What is kept, at most `bytes` of it; NULL: nothing is. */
static char *take_kept(size_t bytes, size_t *has)
{
    pthread_mutex_lock(&kept.lock);
    shorten_kept(bytes); /* whole pages */
    char *at = kept.bytes ? kept.at : NULL;
    *has = kept.bytes;
    kept.bytes = 0;
    pthread_mutex_unlock(&kept.lock);
    return at;
}

static bool keep(char *at, size_t bytes)
{
    pthread_mutex_lock(&kept.lock);
    const bool wanted = kept.asked && !kept.bytes && bytes > KEPT_LESS;
    if (wanted) {
        kept.at = at;
        kept.bytes = bytes;
        shorten_kept(bytes - KEPT_LESS);
    }
    pthread_mutex_unlock(&kept.lock);
    return wanted;
}

/* ---- Pages ------------------------------------------------------------------------------- */

void *tgi_pages_alloc(void *user, uint64_t bytes)
{
    (void)user;
    take_off_kept(bytes);
    return map(bytes);
}

void tgi_pages_free(void *user, void *at, uint64_t bytes)
{
    (void)user;
    munmap(at, bytes);
}

/* Pages move without being copied. */
void *tgi_pages_resize(void *user, void *at, uint64_t old_bytes, uint64_t new_bytes)
{
    (void)user;
    take_off_kept(new_bytes > old_bytes ? new_bytes - old_bytes : 0);
    void *p = mremap(at, old_bytes, new_bytes, MREMAP_MAYMOVE);
    return p == MAP_FAILED ? NULL : p;
}

/* Map exactly [base, base + bytes), base on a 2 MiB border. The rest of a larger mapping is
 * given back at once: a huge page could otherwise reach over the end and count as ours. */
static char *map_aligned(size_t bytes)
{
    const size_t all = tgi_sat_add(bytes, HUGE);
    char *at = all < SIZE_MAX ? map(all) : NULL;
    if (!at)
        return NULL;
    const size_t skip = (HUGE - (uintptr_t)at % HUGE) % HUGE;
    if (skip)
        munmap(at, skip);
    munmap(at + skip + bytes, all - skip - bytes);
    return at + skip;
}

/* Make every page ours now; false when the system has none left. Kernels before 5.14 do not
 * know the advice (EINVAL): write to each page. Huge pages are welcome, not needed. */
static bool populate(char *base, size_t bytes)
{
    (void)madvise(base, bytes, MADV_HUGEPAGE);
    if (madvise(base, bytes, MADV_POPULATE_WRITE) == 0)
        return true;
    if (errno != EINVAL)
        return false;
    for (size_t i = 0; i < bytes; i += PAGE)
        ((volatile char *)base)[i] = 0;
    return true;
}

/* Pages behind those at `at`, which are `has` bytes. Without the flag's knowledge a kernel may map them elsewhere. */
static bool longer(char *at, size_t has, size_t bytes)
{
    if (has == bytes)
        return true;
    char *more = mmap(at + has, bytes - has, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (more == MAP_FAILED)
        return false;
    if (more == at + has && populate(more, bytes - has))
        return true;
    munmap(more, bytes - has);
    return false;
}

static void *alloc_populated(void *user, uint64_t bytes)
{
    size_t has;
    (void)user;
    char *at = take_kept(bytes, &has);
    if (at && longer(at, has, bytes))
        return at;
    if (at)
        munmap(at, has);
    at = map_aligned(bytes);
    if (at && !populate(at, bytes)) {
        munmap(at, bytes);
        at = NULL;
    }
    return at;
}

static void free_populated(void *user, void *at, uint64_t bytes)
{
    (void)user;
    if (!keep(at, bytes))
        munmap(at, bytes);
}

const tg_raw tgi_raw_populated = {.size = sizeof(tg_raw),
                                  .kind = TG_MEMORY_HOST,
                                  .granularity_bytes = PAGE,
                                  .alloc = alloc_populated,
                                  .free = free_populated};

size_t tgi_pages_untouched(const void *at, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const char *begin = (const char *)at + (page - (uintptr_t)at % page) % page;
    size_t left = bytes > (size_t)(begin - (const char *)at)
                      ? (bytes - (size_t)(begin - (const char *)at)) / page
                      : 0;
    size_t untouched = 0;
    while (left) {
        unsigned char resident[1024];
        const size_t n = left < sizeof resident ? left : sizeof resident;
        if (mincore((void *)begin, n * page, resident) != 0)
            return 0;
        for (size_t i = 0; i < n; i++)
            untouched += !(resident[i] & 1);
        begin += n * page;
        left -= n;
    }
    return untouched * page;
}

void *tgi_books_alloc(size_t bytes)
{
    return malloc(bytes);
}

void tgi_books_free(void *p)
{
    free(p);
}

/* pool_api.c - the part of the public door of tegula_pool.h that knows the machine: raw host
 * memory with its size and what is free of it, and opening with a context's detail. The rest
 * of that header is the pool itself (engine/base/pool_core.c, pool_text.c). */
#include "engine/base/ctx.h"
#include "engine/base/pool_priv.h"
#include "engine/memory/monitor.h"
#include "io/file_ops.h"

#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

static uint64_t host_total(void *user)
{
    tgi_system_memory m;
    (void)user;
    return tgi_system_memory_read("", &m) ? m.total : UINT64_MAX;
}

static uint64_t host_free(void *user)
{
    (void)user;
    return tgi_mem_available(NULL);
}

void tg_raw_host(tg_raw *out)
{
    if (!out)
        return;
    *out = (tg_raw){.size = sizeof *out,
                    .kind = TG_MEMORY_HOST,
                    .granularity_bytes = 4096,
                    .is_zeroed = 1,
                    .alloc = tgi_pages_alloc,
                    .free = tgi_pages_free,
                    .resize = tgi_pages_resize,
                    .total_bytes = host_total,
                    .free_bytes = host_free};
}

static void *alloc_locked(void *user, uint64_t bytes)
{
    void *at = tgi_pages_alloc(user, bytes);
    if (at && mlock(at, bytes) != 0) {
        tgi_pages_free(user, at, bytes);
        at = NULL;
    }
    return at;
}

void tg_raw_pinned(tg_raw *out)
{
    if (!out)
        return;
    tg_raw_host(out);
    out->kind = TG_MEMORY_PINNED;
    out->alloc = alloc_locked; /* munmap unlocks; locked pages move with their locks */
}

tg_status tg_pool_open(tg_ctx *ctx, const tg_raw *raw, const tg_pool_opts *opts, tg_pool **out)
{
    tgi_err *err = tgi_ctx_err(ctx);
    if (!out)
        return tgi_fail(err, TG_E_ARG, "tg_pool_open: NULL argument");
    return tgi_pool_open(raw, opts, out, err);
}

tg_pool *tg_pool_engine(void)
{
    return tgi_pool_engine();
}

void tg_pool_close(tg_pool **pool, char **leaks)
{
    tgi_pool_close_and_tell(pool, leaks);
}

tg_status tg_pool_alloc_at(tg_pool *pool, uint64_t bytes, const char *tag, const char *site,
                           void **out)
{
    return tgi_pool_alloc_at(pool, bytes, tag, site, out);
}

tg_status tg_pool_free(tg_pool *pool, void *at)
{
    return tgi_pool_free(pool, at);
}

tg_status tg_pool_preallocate(tg_pool *pool, const size_t count[TG_POOL_CLASSES])
{
    return tgi_pool_preallocate(pool, count);
}

uint64_t tg_pool_empty_cache(tg_pool *pool)
{
    return tgi_pool_empty_cache(pool);
}

uint64_t tg_pool_collect(tg_pool *pool)
{
    return tgi_pool_collect(pool);
}

uint64_t tg_pool_compact(tg_pool *pool)
{
    return tgi_pool_compact(pool);
}

tg_status tg_pool_set_cache_limit(tg_pool *pool, const char *limit)
{
    return tgi_pool_set_cache_limit(pool, limit);
}

tg_status tg_pool_set_memory_fraction(tg_pool *pool, double fraction)
{
    return tgi_pool_set_memory_fraction(pool, fraction);
}

int tg_pool_pressure(tg_pool *pool)
{
    return tgi_pool_pressure(pool);
}

tg_status tg_pool_get_stats(tg_pool *pool, tg_pool_stats *out)
{
    return tgi_pool_get_stats(pool, out);
}

void tg_pool_reset_peaks(tg_pool *pool)
{
    tgi_pool_reset_peaks(pool);
}

int tg_pool_is_pinned(tg_pool *pool, const void *at)
{
    return tgi_pool_is_pinned(pool, at);
}

const char *tg_pool_name(const tg_pool *pool)
{
    return tgi_pool_name(pool);
}

size_t tg_pool_detail(const tg_pool *pool, char *text, size_t cap)
{
    return tgi_pool_detail(pool, text, cap);
}

size_t tg_pool_large(tg_pool *pool, uint64_t min_bytes, tg_pool_block *rows, size_t cap)
{
    return tgi_pool_large(pool, min_bytes, rows, cap);
}

void tg_pool_leak_check(tg_pool *pool, int on)
{
    tgi_pool_leak_check(pool, on);
}

tg_status tg_pool_leaks(tg_pool *pool, char **text)
{
    return tgi_pool_leaks(pool, text);
}

tg_status tg_pool_leaks_since(tg_pool *pool, const tg_pool_checkpoint *since, char **text)
{
    return tgi_pool_leaks_since(pool, since, text);
}

tg_status tg_pool_check(tg_pool *pool, tg_pool_checkpoint *out)
{
    return tgi_pool_check(pool, out);
}

uint64_t tg_pool_compare(const tg_pool_checkpoint *earlier, const tg_pool_checkpoint *later,
                         char *text, size_t cap)
{
    return tgi_pool_compare(earlier, later, text, cap);
}

tg_status tg_pool_report(tg_pool *pool, char **text)
{
    return tgi_pool_report(pool, text);
}

tg_status tg_pool_profile(tg_pool *pool, int on)
{
    return tgi_pool_profile(pool, on);
}

/* Files of such a system are memory. */
static int is_memory(int fd)
{
    struct statfs s;
    return fstatfs(fd, &s) != 0 || s.f_type == TMPFS_MAGIC || s.f_type == RAMFS_MAGIC;
}

tg_status tg_pool_profile_in(tg_pool *pool, const char *folder)
{
    int fd = -1;
    if (!pool || !folder)
        return TG_E_ARG;
    tg_status st = tgi_file_open_unnamed(folder, &fd, NULL);
    if (st != TG_OK)
        return st;
    st = is_memory(fd) ? TG_E_UNSUPPORTED : tgi_pool_profile_file(pool, fd);
    close(fd);
    return st;
}

tg_status tg_pool_timeline(tg_pool *pool, int (*write)(void *user, const char *text, size_t n),
                           void *user)
{
    return tgi_pool_timeline(pool, write, user);
}

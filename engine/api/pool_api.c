/* pool_api.c - the part of the public door of tegula_pool.h that knows the machine: raw host
 * memory with its size and what is free of it, and opening with a context's detail. The rest
 * of that header is the pool itself (engine/base/pool_core.c, pool_text.c). */
#include "engine/base/ctx.h"
#include "engine/base/pool_priv.h"
#include "engine/memory/monitor.h"

#include <string.h>
#include <sys/mman.h>

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

static void *alloc_locked(void *user, size_t bytes)
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

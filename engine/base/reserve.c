/* reserve.c - see reserve.h; madvise(2) for MADV_POPULATE_WRITE. */
#include "engine/base/reserve.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE ((size_t)2 << 20)
#define PAGE ((size_t)4096)
#define POISON 0xA5

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

struct tgi_reserve {
    char *base;
    size_t bytes, used;
    int poisoned;
    tgi_block block[TGI_RESERVE_MAX_BLOCKS];
    int n_blocks;
};

/* Map exactly [base, base + bytes), base on a 2 MiB border. The rest of a larger mapping is
 * given back at once: a huge page could otherwise reach over the end and count as ours. */
static char *map_aligned(size_t bytes)
{
    const size_t all = tgi_sat_add(bytes, HUGE);
    char *map = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    const size_t skip = (HUGE - (uintptr_t)map % HUGE) % HUGE;
    if (skip)
        munmap(map, skip);
    munmap(map + skip + bytes, all - skip - bytes);
    return map + skip;
}

/* Make every page ours now; false when the system has none left. Kernels before 5.14 do not
 * know the advice (EINVAL): write to each page. Huge pages are welcome, not needed. */
static int populate(char *base, size_t bytes)
{
    (void)madvise(base, bytes, MADV_HUGEPAGE);
    if (madvise(base, bytes, MADV_POPULATE_WRITE) == 0)
        return 1;
    if (errno != EINVAL)
        return 0;
    for (size_t i = 0; i < bytes; i += PAGE)
        ((volatile char *)base)[i] = 0;
    return 1;
}

tg_status tgi_reserve_open(size_t bytes, tgi_reserve **out, tgi_err *err)
{
    tgi_reserve *r = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *r);
    if (!r)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the reservation's ledger");
    r->bytes = tgi_align_size(bytes ? bytes : 1, PAGE);
    r->base = r->bytes < SIZE_MAX - HUGE ? map_aligned(r->bytes) : NULL;
    if (!r->base || !populate(r->base, r->bytes)) {
        tgi_reserve_close(&r);
        return tgi_fail(err, TG_E_NOMEM,
                        "the system refused a reservation of %zu bytes (memory, or an address "
                        "space limit); set a smaller --ram",
                        bytes);
    }
    if (getenv("TEGULA_POISON")) {
        memset(r->base, POISON, r->bytes);
        r->poisoned = 1;
    }
    *out = r;
    return TG_OK;
}

void tgi_reserve_close(tgi_reserve **r)
{
    if (!r || !*r)
        return;
    if ((*r)->base)
        munmap((*r)->base, (*r)->bytes);
    tgi_free(*r);
    *r = NULL;
}

tg_status tgi_reserve_take(tgi_reserve *r, const char *name, size_t bytes, void **out,
                           tgi_err *err)
{
    const size_t at = tgi_align_size(r->used, 64);
    if (r->n_blocks == TGI_RESERVE_MAX_BLOCKS)
        return tgi_fail(err, TG_E_INTERNAL, "no room in the ledger for \"%s\"", name);
    if (bytes > r->bytes || at > r->bytes - bytes)
        return tgi_fail(err, TG_E_INTERNAL,
                        "the plan reserved %zu bytes, %zu are taken, \"%s\" needs %zu",
                        r->bytes, r->used, name, bytes);
    r->used = at + bytes;
    r->block[r->n_blocks++] = (tgi_block){name, r->base + at, bytes};
    *out = r->base + at;
    return TG_OK;
}

size_t tgi_reserve_bytes(const tgi_reserve *r)
{
    return r->bytes;
}

const tgi_block *tgi_reserve_blocks(const tgi_reserve *r, int *n)
{
    *n = r->n_blocks;
    return r->block;
}

static int page_is_poison(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != POISON)
            return 0;
    return 1;
}

double tgi_reserve_touched(const tgi_reserve *r, const char *name)
{
    size_t pages = 0, touched = 0;
    for (int i = 0; r->poisoned && i < r->n_blocks; i++) {
        const tgi_block *b = &r->block[i];
        if (strcmp(b->name, name) != 0)
            continue;
        for (size_t at = 0; at < b->bytes; at += PAGE, pages++)
            touched += !page_is_poison((unsigned char *)b->at + at,
                                       b->bytes - at < PAGE ? b->bytes - at : PAGE);
    }
    return pages ? (double)touched / (double)pages : 1.0;
}

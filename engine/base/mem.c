#include "engine/base/mem.h"

#include "engine/base/arith.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A header in front of each block: the size and tag that the counters need when it goes. */
typedef struct block_head {
    size_t size;
    tgi_tag tag;
} block_head;
#define HEAD 32 /* keeps malloc's 16-byte alignment and leaves room */
_Static_assert(sizeof(block_head) <= HEAD, "the header must fit its room");

static atomic_size_t live_bytes, peak_bytes, live_blocks, tag_bytes[TGI_TAG_COUNT];
static atomic_uint_fast64_t requests;
static atomic_uint_fast64_t fail_at; /* request number that fails; 0: none */
static atomic_int env_read;

static int refuse_this_one(void)
{
    int expected = 0;
    if (atomic_compare_exchange_strong(&env_read, &expected, 1)) {
        const char *s = getenv("TEGULA_FAIL_ALLOC");
        if (s)
            tgi_mem_fail_at(strtoull(s, NULL, 10));
    }
    const uint64_t n = atomic_fetch_add(&requests, 1) + 1;
    return n == atomic_load(&fail_at);
}

static void count_in(const block_head *h)
{
    const size_t now = atomic_fetch_add(&live_bytes, h->size) + h->size;
    size_t peak = atomic_load(&peak_bytes);
    while (now > peak && !atomic_compare_exchange_weak(&peak_bytes, &peak, now))
        ;
    atomic_fetch_add(&live_blocks, 1);
    atomic_fetch_add(&tag_bytes[h->tag], h->size);
}

static void count_out(const block_head *h)
{
    atomic_fetch_sub(&live_bytes, h->size);
    atomic_fetch_sub(&live_blocks, 1);
    atomic_fetch_sub(&tag_bytes[h->tag], h->size);
}

static void *get(tgi_tag tag, size_t size, int zero)
{
    size_t all;
    if (refuse_this_one() || !tgi_add_ok(size, HEAD, &all))
        return NULL;
    char *p = zero ? calloc(1, all) : malloc(all);
    if (!p)
        return NULL;
    block_head *h = (block_head *)(void *)p;
    *h = (block_head){.size = size, .tag = tag};
    count_in(h);
    return p + HEAD;
}

void *tgi_malloc(tgi_tag tag, size_t size)
{
    return get(tag, size, 0);
}

void *tgi_calloc(tgi_tag tag, size_t n, size_t size)
{
    size_t all;
    return tgi_mul_ok(n, size, &all) ? get(tag, all, 1) : NULL;
}

void *tgi_realloc_n(tgi_tag tag, void *p, size_t n, size_t size)
{
    size_t all, with_head;
    if (!tgi_mul_ok(n, size, &all) || !tgi_add_ok(all, HEAD, &with_head))
        return NULL;
    if (!p)
        return get(tag, all, 0);
    if (refuse_this_one())
        return NULL;
    block_head old = *(block_head *)(void *)((char *)p - HEAD);
    char *q = realloc((char *)p - HEAD, with_head);
    if (!q)
        return NULL;
    count_out(&old);
    block_head *h = (block_head *)(void *)q;
    *h = (block_head){.size = all, .tag = tag};
    count_in(h);
    return q + HEAD;
}

char *tgi_strdup(tgi_tag tag, const char *s)
{
    const size_t n = strlen(s) + 1;
    char *p = tgi_malloc(tag, n);
    return p ? memcpy(p, s, n) : NULL;
}

void tgi_free(void *p)
{
    if (!p)
        return;
    block_head *h = (block_head *)(void *)((char *)p - HEAD);
    count_out(h);
    free(h);
}

void tgi_mem_get_stats(tgi_mem_stats *out)
{
    out->live_bytes = atomic_load(&live_bytes);
    out->peak_bytes = atomic_load(&peak_bytes);
    out->live_blocks = atomic_load(&live_blocks);
    out->requests = atomic_load(&requests);
    for (int i = 0; i < TGI_TAG_COUNT; i++)
        out->tag_bytes[i] = atomic_load(&tag_bytes[i]);
}

const char *tgi_tag_name(tgi_tag tag)
{
    static const char *const names[TGI_TAG_COUNT] = {"misc", "graph", "plan", "io", "journal"};
    return (unsigned)tag < TGI_TAG_COUNT ? names[tag] : "?";
}

void tgi_mem_fail_at(uint64_t k)
{
    atomic_store(&env_read, 1);
    atomic_store(&fail_at, k ? atomic_load(&requests) + k : 0);
}

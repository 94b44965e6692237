/* mem.c - the pool "engine": what the library allocates for itself.
 *
 * Below DIRECT_BELOW a request goes straight to malloc with its record in front. Measured
 * (docs/explanation/memory.md, "Pool and trace"): a planned job holds thousands of blocks of
 * some hundred bytes, for which malloc's free lists are as fast as ours and pages can be
 * trimmed in the middle of its heap, while segments of ours would keep every page that has one
 * live block and cost a descriptor each. From there on a block is a segment of pages of its
 * own, at most CACHE_LIMIT of which wait for the next request: reading a file asks for the same
 * few sizes again and again.
 *
 * Under AddressSanitizer everything is direct, so that it sees each block's ends. */
#include "engine/base/mem.h"

#include "engine/base/arith.h"
#include "engine/base/pool_priv.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define ALL_DIRECT 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ALL_DIRECT 1
#endif
#endif

#ifdef ALL_DIRECT
#define DIRECT_BELOW SIZE_MAX
#else
#define DIRECT_BELOW ((size_t)64 << 10)
#endif
#define CACHE_LIMIT ((uint64_t)4 << 20)
#define LOOKED_INTO ((size_t)16 << 10) /* smaller ones share their pages with others */

static tg_pool engine;
static pthread_once_t made = PTHREAD_ONCE_INIT;

static uint64_t number_in(const char *name)
{
    const char *s = getenv(name);
    return s ? strtoull(s, NULL, 10) : 0;
}

static void make(void)
{
    static const tg_raw pages = {.size = sizeof pages,
                                 .kind = TG_MEMORY_HOST,
                                 .granularity_bytes = 4096,
                                 .is_zeroed = 1,
                                 .alloc = tgi_pages_alloc,
                                 .free = tgi_pages_free,
                                 .resize = tgi_pages_resize};
    tgi_pool_setup(&engine, &pages, "engine");
    engine.is_engine = 1;
    engine.small_segment = 0;
    engine.direct_below = DIRECT_BELOW;
    engine.cache_limit = CACHE_LIMIT;
    for (int i = 0; i < TGI_TAG_COUNT; i++)
        tgi_ledger_tag(&engine, tgi_tag_name((tgi_tag)i));
    engine.fail_at = number_in("TEGULA_FAIL_ALLOC");
    engine.fail_raw_at = number_in("TEGULA_FAIL_RAW");
    tgi_pool_register(&engine);
}

tg_pool *tgi_pool_engine(void)
{
    pthread_once(&made, make);
    return &engine;
}

/* ---- Direct blocks ----------------------------------------------------------------------- */

/* A record in front of each: what the ledger needs when the block goes. */
static record *record_of(void *p)
{
    return (record *)p - 1;
}

static void enter(tg_pool *p, record *r, size_t bytes, uint32_t tag, const char *site)
{
    tgi_ledger_reserve(p, bytes, 0);
    tgi_ledger_activate(p, bytes, 0);
    tgi_ledger_in(p, r, bytes, tag, site, RECORD_DIRECT);
}

static void leave(tg_pool *p, record *r)
{
    tgi_ledger_out(p, r);
    tgi_ledger_activate(p, 0, r->bytes);
    tgi_ledger_reserve(p, 0, r->bytes);
}

static bool may_ask(tg_pool *p)
{
    pthread_mutex_lock(&p->lock);
    const bool yes = tgi_request_allowed(p) && tgi_raw_allowed(p);
    pthread_mutex_unlock(&p->lock);
    return yes;
}

static void *get_direct(tg_pool *p, uint32_t tag, size_t size, int zero, const char *site)
{
    if (!may_ask(p))
        return NULL;
    const size_t all = size + sizeof(record);
    record *r = zero ? calloc(1, all) : malloc(all);
    if (!r)
        return NULL;
    pthread_mutex_lock(&p->lock);
    enter(p, r, size, tag, site);
    pthread_mutex_unlock(&p->lock);
    return r + 1;
}

static atomic_size_t refused_bytes; /* of the last request that was refused */

/* What was got, or NULL with its size kept for the sentence about it. */
static void *noted(void *at, size_t size)
{
    if (!at)
        atomic_store(&refused_bytes, size);
    return at;
}

size_t tgi_mem_refused_bytes(void)
{
    return atomic_load(&refused_bytes);
}

static void *get(tgi_tag tag, size_t size, int zero, const char *site)
{
    tg_pool *p = tgi_pool_engine();
    tg_status st;
    void *at = NULL;
    if (size > SIZE_MAX / 2)
        return NULL;
    if (size < p->direct_below)
        return get_direct(p, tag, size, zero, site);
    pthread_mutex_lock(&p->lock);
    if (tgi_request_allowed(p))
        at = tgi_pool_get(p, size, tag, site, zero, &st);
    tgi_pool_unlock(p);
    return at;
}

/* Blocks of segments begin on multiples of 256 bytes; a direct one seldom does. */
static block *block_at(tg_pool *p, const void *at)
{
    return (uintptr_t)at % 256 ? NULL : tgi_blocks_lookup(p, at);
}

static bool is_direct(const record *r)
{
    return r->mark == RECORD_DIRECT;
}

/* ---- The short names --------------------------------------------------------------------- */

void *tgi_malloc_at(tgi_tag tag, size_t size, const char *site)
{
    return noted(get(tag, size, 0, site), size);
}

void *tgi_calloc_at(tgi_tag tag, size_t n, size_t size, const char *site)
{
    size_t all;
    return tgi_mul_ok(n, size, &all) ? noted(get(tag, all, 1, site), all) : NULL;
}

char *tgi_strdup_at(tgi_tag tag, const char *s, const char *site)
{
    const size_t n = strlen(s) + 1;
    char *p = noted(get(tag, n, 0, site), n);
    return p ? memcpy(p, s, n) : NULL;
}

/* A direct block stays one: realloc, with its record out of the ledger while it may move. */
static void *resize_direct(tg_pool *p, record *r, tgi_tag tag, size_t size, const char *site)
{
    if (!may_ask(p))
        return NULL;
    pthread_mutex_lock(&p->lock);
    const record old = *r; /* its neighbours in the ledger write its links */
    leave(p, r);
    pthread_mutex_unlock(&p->lock);
    record *to = realloc(r, size + sizeof(record));
    pthread_mutex_lock(&p->lock);
    enter(p, to ? to : r, to ? size : old.bytes, to ? (uint32_t)tag : old.tag,
          to ? site : old.site);
    pthread_mutex_unlock(&p->lock);
    return to ? to + 1 : NULL;
}

/* From malloc to a segment: what is copied is below DIRECT_BELOW. */
static void *promote(void *at, tgi_tag tag, size_t size, const char *site)
{
    void *to = get(tag, size, 0, site);
    if (to) {
        memcpy(to, at, record_of(at)->bytes);
        tgi_free(at);
    }
    return to;
}

void *tgi_realloc_at(tgi_tag tag, void *at, size_t n, size_t size, const char *site)
{
    tg_pool *p = tgi_pool_engine();
    size_t all;
    if (!tgi_mul_ok(n, size, &all) || all > SIZE_MAX / 2)
        return NULL;
    if (!at)
        return noted(get(tag, all, 0, site), all);
    pthread_mutex_lock(&p->lock);
    const bool pooled = block_at(p, at) != NULL;
    pthread_mutex_unlock(&p->lock);
    if (pooled)
        return noted(tgi_pool_resize(p, at, all, site), all);
    return noted(all < p->direct_below ? resize_direct(p, record_of(at), tag, all, site)
                                       : promote(at, tag, all, site),
                 all);
}

void tgi_free(void *at)
{
    tg_pool *p = &engine; /* it exists: `at` came from it */
    record *r = NULL;
    if (!at)
        return;
    pthread_mutex_lock(&p->lock);
    block *b = block_at(p, at);
    if (b) {
        tgi_pool_put(p, b);
    } else if (is_direct(record_of(at))) {
        r = record_of(at);
        leave(p, r);
    } else {
        p->bad_frees++;
    }
    tgi_pool_unlock(p);
    free(r);
}

void tgi_mem_trim(void)
{
    tgi_pool_empty_cache(tgi_pool_engine());
    malloc_trim(0);
}

/* ---- What is held, tests ----------------------------------------------------------------- */

void tgi_mem_get_stats(tgi_mem_stats *out)
{
    tg_pool *p = tgi_pool_engine();
    pthread_mutex_lock(&p->lock);
    out->live_bytes = p->allocated.now;
    out->peak_bytes = p->allocated.peak;
    out->live_blocks = p->n_live;
    out->requests = p->requests;
    for (int i = 0; i < TGI_TAG_COUNT; i++)
        out->tag_bytes[i] = p->tag_bytes[i];
    pthread_mutex_unlock(&p->lock);
}

size_t tgi_mem_held(void)
{
    tgi_mem_stats s;
    tgi_mem_get_stats(&s);
    return s.live_bytes - s.tag_bytes[TGI_TAG_MISC];
}

size_t tgi_mem_touched(void)
{
    tg_pool *p = tgi_pool_engine();
    size_t bytes = 0;
    pthread_mutex_lock(&p->lock);
    for (const record *r = p->live.newer; r != &p->live; r = r->newer) {
        const void *at = is_direct(r) ? (const void *)(r + 1) : ((const block *)r)->at;
        if (r->tag == TGI_TAG_MISC)
            continue;
        bytes += r->bytes;
        if (r->bytes >= LOOKED_INTO)
            bytes -= tgi_pages_untouched(at, r->bytes);
    }
    pthread_mutex_unlock(&p->lock);
    return bytes;
}

const char *tgi_tag_name(tgi_tag tag)
{
    static const char *const names[TGI_TAG_COUNT] = {"misc", "graph", "plan", "io", "journal"};
    return (unsigned)tag < TGI_TAG_COUNT ? names[tag] : "?";
}

void tgi_mem_fail_at(uint64_t k)
{
    tgi_pool_fail_at(tgi_pool_engine(), k);
}

void tgi_mem_fail_raw_at(uint64_t k)
{
    tgi_pool_fail_raw_at(tgi_pool_engine(), k);
}

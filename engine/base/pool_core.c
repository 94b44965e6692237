/* pool_core.c - a pool from opening to closing: requests, settings, what it says of itself.
 *
 * See tegula_pool.h for the words and pool_priv.h for the parts. Everything happens under one
 * lock, raw calls too: two threads that miss at once would otherwise both make the backend's
 * slow call where one would have served both. */
#include "engine/base/arith.h"
#include "engine/base/pool_priv.h"
#include "engine/base/size.h"
#include "engine/base/sized.h"

#include <stdio.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER; /* taken before a pool's own */
static tg_pool *all_pools;

/* ---- Open and close ---------------------------------------------------------------------- */

void tgi_pool_setup(tg_pool *p, const tg_raw *raw, const char *name)
{
    pthread_mutex_init(&p->lock, NULL);
    p->raw = *raw;
    snprintf(p->name, sizeof p->name, "%s", name);
    p->align = 256;
    p->granularity = raw->granularity_bytes          ? raw->granularity_bytes
                     : raw->kind == TG_MEMORY_DEVICE ? 2 * MIB
                                                     : 4096;
    p->small_segment = 2 * MIB;
    p->fraction = 0.8;
    p->compact_above = 0.3;
    p->cache_limit = TG_POOL_NONE;
    tgi_ledger_init(p);
}

void tgi_pool_register(tg_pool *p)
{
    pthread_mutex_lock(&all_lock);
    p->next_pool = all_pools;
    all_pools = p;
    pthread_mutex_unlock(&all_lock);
}

static void unregister(const tg_pool *p)
{
    pthread_mutex_lock(&all_lock);
    tg_pool **at = &all_pools;
    while (*at && *at != p)
        at = &(*at)->next_pool;
    if (*at)
        *at = p->next_pool;
    pthread_mutex_unlock(&all_lock);
}

static tg_status check_raw(const tg_raw *raw, tgi_err *err)
{
    if (!raw->alloc || !raw->free)
        return tgi_fail(err, TG_E_ARG, "a pool needs tg_raw with its size, alloc and free");
    if ((unsigned)raw->kind > TG_MEMORY_DEVICE || raw->granularity_bytes % 256)
        return tgi_fail(err, TG_E_ARG,
                        "a pool's raw memory is of kind %d in units of %llu bytes: 0 to 2 and "
                        "multiples of 256 are possible",
                        (int)raw->kind, (unsigned long long)raw->granularity_bytes);
    return TG_OK;
}

static tg_status apply_sizes(tg_pool *p, const tg_pool_opts *o, tgi_err *err)
{
    if (o->align_bytes && (o->align_bytes < 256 || o->align_bytes > 4096 ||
                           (o->align_bytes & (o->align_bytes - 1))))
        return tgi_fail(err, TG_E_ARG,
                        "a pool aligns to 256, 512, 1024, 2048 or 4096 bytes, not to %llu",
                        (unsigned long long)o->align_bytes);
    if (o->segment_bytes != TG_POOL_NONE && o->segment_bytes > (uint64_t)1 << 40)
        return tgi_fail(err, TG_E_ARG, "segments of more than 1 TiB");
    if (o->align_bytes)
        p->align = o->align_bytes;
    p->granularity = tgi_align_size(p->granularity, p->align);
    if (o->segment_bytes)
        p->small_segment = o->segment_bytes == TG_POOL_NONE
                               ? 0
                               : tgi_align_size((size_t)o->segment_bytes, p->granularity);
    return TG_OK;
}

static tg_status parse_limit(const tg_pool *p, const char *text, uint64_t *out, tgi_err *err)
{
    *out = TG_POOL_NONE;
    if (!text)
        return TG_OK;
    return tgi_size_parse(text, p->raw.total_bytes ? p->raw.total_bytes(p->raw.user) : 0, out,
                          err);
}

static tg_status apply(tg_pool *p, const tg_pool_opts *o, tgi_err *err)
{
    /* Written so that NaN fails. */
    if (o->memory_fraction != 0 && !(o->memory_fraction > 0 && o->memory_fraction <= 1))
        return tgi_fail(err, TG_E_ARG, "memory_fraction is %g: above 0 and at most 1",
                        o->memory_fraction);
    if (!(o->compact_above >= 0))
        return tgi_fail(err, TG_E_ARG, "compact_above is %g: 0 or more", o->compact_above);
    if (o->name)
        snprintf(p->name, sizeof p->name, "%s", o->name);
    if (o->memory_fraction != 0)
        p->fraction = o->memory_fraction;
    if (o->compact_above > 0)
        p->compact_above = o->compact_above;
    p->margin = o->margin_bytes;
    TGI_TRY(apply_sizes(p, o, err));
    return parse_limit(p, o->cache_limit, &p->cache_limit, err);
}

static tg_status preallocate_some(tg_pool *p, const tg_pool_opts *o, tgi_err *err)
{
    size_t any = 0;
    for (int i = 0; i < TG_POOL_CLASSES; i++)
        any |= o->preallocate[i];
    const tg_status st = any ? tgi_pool_preallocate(p, o->preallocate) : TG_OK;
    return st == TG_OK ? TG_OK : tgi_fail(err, st, "%s", p->detail);
}

tg_status tgi_pool_open(const tg_raw *given, const tg_pool_opts *opts, tg_pool **out,
                        tgi_err *err)
{
    static const char *const kinds[] = {"host", "pinned", "device"};
    char name[64];
    tg_raw own_raw;
    tg_pool_opts own = {0};
    const tg_raw *raw = &own_raw;
    if (!tgi_sized_take(given, &own_raw, sizeof own_raw))
        return tgi_fail(err, TG_E_ARG, "a pool needs tg_raw with its size, alloc and free");
    TGI_TRY(check_raw(raw, err));
    if (opts && !tgi_sized_take(opts, &own, sizeof own))
        return tgi_fail(err, TG_E_ARG, "tg_pool_opts: size is %zu, %zu here", opts->size,
                        sizeof *opts);
    tg_pool *p = tgi_books_alloc(sizeof *p);
    if (!p)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a pool's books");
    memset(p, 0, sizeof *p);
    snprintf(name, sizeof name, raw->kind == TG_MEMORY_DEVICE ? "%s %d" : "%s",
             kinds[raw->kind], raw->device);
    tgi_pool_setup(p, raw, name);
    tgi_pool_register(p);
    tg_status st = opts ? apply(p, &own, err) : TG_OK;
    if (st == TG_OK && opts)
        st = preallocate_some(p, &own, err);
    if (st == TG_OK)
        *out = p;
    else
        tgi_pool_close(&p);
    return st;
}

void tgi_pool_close(tg_pool **pool)
{
    tg_pool *p = pool ? *pool : NULL;
    if (!p || p->is_engine)
        return;
    unregister(p);
    while (p->segments)
        tgi_segment_give(p, p->segments);
    tgi_blocks_release(p);
    tgi_ledger_release(p);
    pthread_mutex_destroy(&p->lock);
    tgi_books_free(p);
    *pool = NULL;
}

/* ---- Requests ---------------------------------------------------------------------------- */

bool tgi_request_allowed(tg_pool *p)
{
    return ++p->requests != p->fail_at;
}

#define DECAY 8192 /* requests after which those before count half */

static void count_request(tg_pool *p, size_t rounded)
{
    p->asked[tgi_sort_of(p, rounded)]++;
    if (p->requests % DECAY == 0)
        for (int i = 0; i < N_SORTS; i++)
            p->asked[i] /= 2;
}

/* A preallocated block of the smallest class that holds it, or NULL. */
static block *free_slot(const tg_pool *p, size_t bytes)
{
    for (int c = 0; c < TG_POOL_CLASSES; c++)
        if (bytes <= (size_t)1024 << 2 * c)
            return p->slots[c];
    return NULL;
}

static block *free_block(tg_pool *p, size_t bytes)
{
    block *b = free_slot(p, bytes);
    return b ? b : tgi_blocks_find(p, bytes <= MIB ? ROOM_SMALL : ROOM_LARGE, bytes);
}

static void refuse_books(tg_pool *p)
{
    p->refused++;
    snprintf(p->detail, sizeof p->detail, "%s: no memory for the pool's own books", p->name);
}

void *tgi_pool_get(tg_pool *p, size_t bytes, uint32_t tag, const char *site, bool zero,
                   tg_status *st)
{
    const uint64_t begin = p->line.on ? tgi_now_ns() : 0;
    const size_t rounded = tgi_align_size(bytes ? bytes : 1, p->align);
    *st = TG_E_NOMEM;
    if (rounded > SIZE_MAX / 2 || !tgi_blocks_prepare(p)) {
        refuse_books(p);
        return NULL;
    }
    count_request(p, rounded);
    block *b = free_block(p, rounded);
    p->hits += b != NULL;
    if (!b && !(b = tgi_pool_grow(p, rounded, st)))
        return NULL;
    const bool dirty = !b->zeroed;
    tgi_blocks_take(p, b, rounded);
    tgi_blocks_unpoison(p, b->at, bytes);
    tgi_ledger_in(p, &b->rec, bytes, tag, site, RECORD_BLOCK);
    if (zero && dirty)
        memset(b->at, 0, bytes);
    p->line.alloc_calls += p->line.on;
    p->line.alloc_ns += p->line.on ? tgi_now_ns() - begin : 0;
    *st = TG_OK;
    return b->at;
}

void tgi_pool_put(tg_pool *p, block *b)
{
    tgi_ledger_out(p, &b->rec);
    tgi_blocks_give(p, b);
    tgi_pool_trim(p);
}

tg_status tgi_pool_alloc_at(tg_pool *pool, size_t bytes, const char *tag, const char *site,
                            void **out)
{
    tg_status st;
    if (!pool || !tag || !site || !out || pool->is_engine)
        return TG_E_ARG;
    pthread_mutex_lock(&pool->lock);
    void *at = NULL;
    st = TG_E_NOMEM;
    if (tgi_request_allowed(pool))
        at = tgi_pool_get(pool, bytes, tgi_ledger_tag(pool, tag), site, false, &st);
    tgi_pool_unlock(pool);
    if (at)
        *out = at;
    return st;
}

tg_status tgi_pool_free(tg_pool *pool, void *at)
{
    if (!at)
        return TG_OK;
    if (!pool || pool->is_engine)
        return TG_E_ARG;
    pthread_mutex_lock(&pool->lock);
    block *b = tgi_blocks_lookup(pool, at);
    if (b)
        tgi_pool_put(pool, b);
    else
        pool->bad_frees++;
    tgi_pool_unlock(pool);
    return b ? TG_OK : TG_E_ARG;
}

size_t tgi_pool_bytes_of(tg_pool *pool, const void *at)
{
    pthread_mutex_lock(&pool->lock);
    const block *b = tgi_blocks_lookup(pool, at);
    const size_t bytes = b ? b->rec.bytes : 0;
    pthread_mutex_unlock(&pool->lock);
    return bytes;
}

tg_status tgi_pool_preallocate(tg_pool *pool, const size_t count[TG_POOL_CLASSES])
{
    size_t all = 0;
    if (!pool || !count || pool->is_engine)
        return TG_E_ARG;
    for (int c = 0; c < TG_POOL_CLASSES; c++)
        all = tgi_sat_add(
            all, tgi_sat_mul(count[c], tgi_align_size((size_t)1024 << 2 * c, pool->align)));
    if (!all)
        return TG_OK;
    pthread_mutex_lock(&pool->lock);
    const tg_status st = tgi_pool_grow_slots(pool, all, count);
    tgi_pool_unlock(pool);
    return st;
}

/* ---- A segment of one's own -------------------------------------------------------------- */

tgi_segment *tgi_pool_take_segment(tg_pool *pool, const tg_raw *raw, size_t bytes)
{
    pthread_mutex_lock(&pool->lock);
    tgi_segment *s = tgi_segment_take(pool, raw, bytes, ROOM_OWN);
    tgi_pool_unlock(pool);
    return s;
}

void *tgi_pool_carve(tg_pool *pool, tgi_segment *s, size_t bytes, size_t align, const char *tag,
                     const char *site)
{
    void *at = NULL;
    pthread_mutex_lock(&pool->lock);
    const size_t used = s->last ? (size_t)(s->last->at + s->last->bytes - s->at) : 0;
    const size_t from = tgi_align_size(used, align);
    if (bytes <= s->bytes && from <= s->bytes - bytes && tgi_blocks_prepare(pool)) {
        if (s->last) { /* the gap belongs to the block in front of it */
            s->last->bytes += from - used;
            tgi_ledger_activate(pool, from - used, 0);
        }
        block *b = tgi_blocks_use(pool, tgi_blocks_lay(pool, s, bytes, 0));
        tgi_ledger_in(pool, &b->rec, bytes, tgi_ledger_tag(pool, tag), site, RECORD_BLOCK);
        pool->hits++;
        at = b->at;
    }
    tgi_pool_unlock(pool);
    return at;
}

void tgi_pool_drop_segment(tg_pool *pool, tgi_segment **s)
{
    if (!*s)
        return;
    pthread_mutex_lock(&pool->lock);
    tgi_segment_give(pool, *s);
    tgi_pool_unlock(pool);
    *s = NULL;
}

void *tgi_segment_base(const tgi_segment *s)
{
    return s->at;
}

/* ---- Another size ------------------------------------------------------------------------ */

static void reenter(tg_pool *p, block *b, size_t bytes, const char *site)
{
    const uint32_t tag = b->rec.tag;
    tgi_ledger_out(p, &b->rec);
    tgi_blocks_unpoison(p, b->at, bytes);
    if (bytes < b->bytes)
        tgi_blocks_poison(p, b->at + bytes, b->bytes - bytes);
    tgi_ledger_in(p, &b->rec, bytes, tag, site, RECORD_BLOCK);
}

/* A segment of one block can move as a whole where the backend knows how. */
static bool move_segment(tg_pool *p, block *b, size_t rounded)
{
    tgi_segment *s = b->seg;
    const size_t bytes = tgi_align_size(rounded, p->granularity);
    if (!s->raw->resize || s->room == ROOM_OWN || b->before || b->after || !tgi_raw_allowed(p))
        return false;
    tgi_blocks_unpoison(p, s->at, s->bytes);
    char *at = s->raw->resize(s->raw->user, s->at, s->bytes, bytes);
    if (!at)
        return false;
    tgi_table_drop(p, b);
    tgi_ledger_reserve(p, bytes, s->bytes);
    tgi_ledger_activate(p, bytes, s->bytes);
    s->at = b->at = at;
    s->bytes = b->bytes = bytes;
    s->sort = tgi_sort_of(p, rounded);
    tgi_table_put(p, b);
    return true;
}

void *tgi_pool_resize(tg_pool *pool, void *at, size_t bytes, const char *site)
{
    void *to = NULL;
    tg_status st;
    const size_t rounded = tgi_align_size(bytes ? bytes : 1, pool->align);
    pthread_mutex_lock(&pool->lock);
    block *b = tgi_request_allowed(pool) && rounded <= SIZE_MAX / 2
                   ? tgi_blocks_lookup(pool, at)
                   : NULL;
    if (b &&
        ((rounded <= b->bytes && rounded >= b->bytes / 2) || move_segment(pool, b, rounded))) {
        reenter(pool, b, bytes, site);
        to = b->at;
    } else if (b && (to = tgi_pool_get(pool, bytes, b->rec.tag, site, false, &st))) {
        memcpy(to, at, bytes < b->rec.bytes ? bytes : b->rec.bytes);
        tgi_pool_put(pool, b);
    }
    tgi_pool_unlock(pool);
    return to;
}

/* ---- Giving back, settings --------------------------------------------------------------- */

static uint64_t give(tg_pool *pool, bool slots_too, unsigned asked_less_than)
{
    if (!pool)
        return 0;
    pthread_mutex_lock(&pool->lock);
    const uint64_t given = tgi_pool_give_idle(pool, slots_too, asked_less_than);
    tgi_pool_unlock(pool);
    return given;
}

uint64_t tgi_pool_empty_cache(tg_pool *pool)
{
    return give(pool, true, UINT32_MAX);
}

uint64_t tgi_pool_collect(tg_pool *pool)
{
    return give(pool, false, 2);
}

uint64_t tgi_pool_compact(tg_pool *pool)
{
    return give(pool, false, UINT32_MAX);
}

tg_status tgi_pool_set_cache_limit(tg_pool *pool, const char *limit)
{
    uint64_t bytes;
    if (!pool)
        return TG_E_ARG;
    TGI_TRY(parse_limit(pool, limit, &bytes, NULL));
    pthread_mutex_lock(&pool->lock);
    pool->cache_limit = bytes;
    tgi_pool_trim(pool);
    tgi_pool_unlock(pool);
    return TG_OK;
}

tg_status tgi_pool_set_memory_fraction(tg_pool *pool, double fraction)
{
    if (!pool || !(fraction > 0 && fraction <= 1))
        return TG_E_ARG;
    pthread_mutex_lock(&pool->lock);
    pool->fraction = fraction;
    pthread_mutex_unlock(&pool->lock);
    return TG_OK;
}

uint64_t tgi_pools_empty_cache(uint64_t *of_devices)
{
    uint64_t given = 0;
    *of_devices = 0;
    pthread_mutex_lock(&all_lock);
    for (tg_pool *p = all_pools; p; p = p->next_pool) {
        const uint64_t one = tgi_pool_empty_cache(p);
        *of_devices += p->raw.kind == TG_MEMORY_DEVICE ? one : 0;
        given += one;
    }
    pthread_mutex_unlock(&all_lock);
    return given;
}

void tgi_pools_sum(tg_memory_kind kind, int device, uint64_t *allocated, uint64_t *reserved)
{
    *allocated = *reserved = 0;
    pthread_mutex_lock(&all_lock);
    for (tg_pool *p = all_pools; p; p = p->next_pool) {
        if (p->raw.kind != kind || p->raw.device != device)
            continue;
        pthread_mutex_lock(&p->lock);
        *allocated += p->allocated.now;
        *reserved += p->reserved.now;
        pthread_mutex_unlock(&p->lock);
    }
    pthread_mutex_unlock(&all_lock);
}

/* ---- Tests ------------------------------------------------------------------------------- */

void tgi_pool_fail_raw_at(tg_pool *pool, uint64_t k)
{
    pthread_mutex_lock(&pool->lock);
    pool->fail_raw_at = k ? pool->raw_calls + k : 0;
    pthread_mutex_unlock(&pool->lock);
}

void tgi_pool_fail_at(tg_pool *pool, uint64_t k)
{
    pthread_mutex_lock(&pool->lock);
    pool->fail_at = k ? pool->requests + k : 0;
    pthread_mutex_unlock(&pool->lock);
}

uint64_t tgi_pool_requests(tg_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    const uint64_t n = pool->requests;
    pthread_mutex_unlock(&pool->lock);
    return n;
}

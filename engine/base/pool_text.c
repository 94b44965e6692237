/* pool_text.c - what a pool says of itself: numbers, a summary, a timeline, leaks.
 *
 * A text may be about the very pool that holds it (tg_pool_engine), and that pool's lock cannot
 * be held while a text is allocated. So texts are measured, allocated, then written, each under
 * the lock for itself; what changed in between is cut off at the measured length. */
#include "engine/base/mem.h"
#include "engine/base/pool_priv.h"
#include "engine/base/size.h"
#include "engine/base/sized.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- A text of bounded length ------------------------------------------------------------ */

typedef struct writer { /* like snprintf: counts on when there is no room */
    char *text;
    size_t cap, n;
} writer;

TGI_PRINTF(2, 3) static void say(writer *w, const char *fmt, ...)
{
    va_list ap;
    const size_t left = w->n < w->cap ? w->cap - w->n : 0;
    va_start(ap, fmt);
    const int n = vsnprintf(left ? w->text + w->n : NULL, left, fmt, ap);
    va_end(ap);
    w->n += n > 0 ? (size_t)n : 0;
}

/* ---- Numbers ----------------------------------------------------------------------------- */

static double fragmentation_of(const tg_pool *p)
{
    return p->reserved.now
               ? (double)(p->reserved.now - p->allocated.now) / (double)p->reserved.now
               : 0;
}

static double hit_rate_of(const tg_pool *p)
{
    const uint64_t n = p->allocs - p->direct;
    return n ? (double)p->hits / (double)n : 0;
}

static uint64_t cached_of(const tg_pool *p)
{
    uint64_t sum = 0;
    for (const tgi_segment *s = p->segments; s; s = s->next)
        sum += s->n_used == 0 && s->room != ROOM_OWN ? s->bytes : 0;
    return sum;
}

static int under_pressure(const tg_pool *p)
{
    const uint64_t margin = tgi_pool_margin(p);
    return margin && p->raw.free_bytes(p->raw.user) < margin;
}

int tgi_pool_pressure(tg_pool *pool)
{
    if (!pool)
        return 0;
    pthread_mutex_lock(&pool->lock);
    const int yes = under_pressure(pool);
    pthread_mutex_unlock(&pool->lock);
    return yes;
}

tg_status tgi_pool_get_stats(tg_pool *pool, tg_pool_stats *out)
{
    tg_pool_stats own;
    if (!pool || !tgi_sized_take(out, &own, sizeof own))
        return TG_E_ARG;
    pthread_mutex_lock(&pool->lock);
    const tg_pool *p = pool;
    own = (tg_pool_stats){.size = sizeof own,
                          .allocated_bytes = p->allocated.now,
                          .reserved_bytes = p->reserved.now,
                          .active_bytes = p->active.now,
                          .inactive_bytes = p->reserved.now - p->active.now,
                          .allocated_peak_bytes = p->allocated.peak,
                          .reserved_peak_bytes = p->reserved.peak,
                          .active_peak_bytes = p->active.peak,
                          .inactive_peak_bytes = p->inactive.peak,
                          .cached_bytes = cached_of(p),
                          .allocs = p->allocs,
                          .frees = p->frees,
                          .live = p->n_live,
                          .hits = p->hits,
                          .direct = p->direct,
                          .hit_rate = hit_rate_of(p),
                          .fragmentation = fragmentation_of(p),
                          .raw_allocs = p->raw_allocs,
                          .raw_frees = p->raw_frees,
                          .segments = p->n_segments,
                          .refused = p->refused,
                          .bad_frees = p->bad_frees,
                          .pressure = under_pressure(p)};
    pthread_mutex_unlock(&pool->lock);
    tgi_sized_give(out, &own);
    return TG_OK;
}

void tgi_pool_reset_peaks(tg_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    level *const all[] = {&pool->allocated, &pool->reserved, &pool->active, &pool->inactive};
    for (int i = 0; i < 4; i++)
        all[i]->peak = all[i]->now;
    pthread_mutex_unlock(&pool->lock);
}

int tgi_pool_is_pinned(tg_pool *pool, const void *at)
{
    int yes = 0;
    if (!pool || !at)
        return 0;
    pthread_mutex_lock(&pool->lock);
    const char *c = at;
    if (pool->raw.kind == TG_MEMORY_PINNED)
        for (const tgi_segment *s = pool->segments; s && !yes; s = s->next)
            yes = c >= s->at && c < s->at + s->bytes;
    if (!yes && pool->raw.is_pinned)
        yes = pool->raw.is_pinned(pool->raw.user, at) != 0;
    pthread_mutex_unlock(&pool->lock);
    return yes;
}

const char *tgi_pool_name(const tg_pool *pool)
{
    return pool ? pool->name : "";
}

size_t tgi_pool_detail(const tg_pool *pool, char *text, size_t cap)
{
    if (!pool)
        return 0;
    pthread_mutex_t *lock = (pthread_mutex_t *)&pool->lock; /* the caller's const is honest */
    pthread_mutex_lock(lock);
    const size_t n = strlen(pool->detail);
    if (cap)
        snprintf(text, cap, "%s", pool->detail);
    pthread_mutex_unlock(lock);
    return n;
}

size_t tgi_pool_large(tg_pool *pool, uint64_t min_bytes, tg_pool_block *rows, size_t cap)
{
    size_t n = 0;
    const uint64_t least = min_bytes ? min_bytes : TG_POOL_LARGE_BYTES;
    if (!pool)
        return 0;
    pthread_mutex_lock(&pool->lock);
    for (const record *r = pool->live.newer; r != &pool->live; r = r->newer) {
        if (r->bytes < least)
            continue;
        if (n < cap)
            rows[n] = (tg_pool_block){.at = r->mark == RECORD_DIRECT
                                                ? (const void *)(r + 1)
                                                : ((const block *)(const void *)r)->at,
                                      .bytes = r->bytes,
                                      .number = r->number,
                                      .tag = pool->tag_name[r->tag],
                                      .site = r->site};
        n++;
    }
    pthread_mutex_unlock(&pool->lock);
    return n;
}

size_t tgi_pool_holders(tg_pool *pool, const char **tag, uint64_t *bytes, size_t cap)
{
    size_t n = 0;
    pthread_mutex_lock(&pool->lock);
    for (uint32_t i = 0; i < pool->n_tags && n < cap; i++)
        if (pool->tag_bytes[i]) {
            tag[n] = pool->tag_name[i];
            bytes[n++] = pool->tag_bytes[i];
        }
    pthread_mutex_unlock(&pool->lock);
    return n;
}

/* ---- Leaks ------------------------------------------------------------------------------- */

static void say_leaks(const tg_pool *p, uint64_t after, uint64_t until, writer *w)
{
    char size[32];
    uint64_t n = 0, bytes = 0;
    for (const record *r = p->live.newer; p->leak_check && r != &p->live; r = r->newer) {
        if (r->number <= after || r->number <= p->leak_after || r->number > until)
            continue;
        say(w, "leak: %zu bytes of %s, allocated at %s (number %llu)\n", r->bytes,
            p->tag_name[r->tag], r->site, (unsigned long long)r->number);
        n++;
        bytes += r->bytes;
    }
    if (n)
        say(w, "leak: %s in %llu blocks of pool %s\n", tgi_size_text(bytes, size, sizeof size),
            (unsigned long long)n, p->name);
    else
        say(w, "no leak\n");
}

size_t tgi_pool_leak_text(tg_pool *pool, uint64_t after, uint64_t until, char *text, size_t cap)
{
    writer w = {text, cap, 0};
    pthread_mutex_lock(&pool->lock);
    say_leaks(pool, after, until, &w);
    pthread_mutex_unlock(&pool->lock);
    return w.n;
}

void tgi_pool_leak_check(tg_pool *pool, int on)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    if (on && !pool->leak_check)
        pool->leak_after = pool->number;
    pool->leak_check = on != 0;
    pthread_mutex_unlock(&pool->lock);
}

static uint64_t newest(tg_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    const uint64_t number = pool->number;
    pthread_mutex_unlock(&pool->lock);
    return number;
}

static tg_status leaks_after(tg_pool *pool, uint64_t after, char **out)
{
    const uint64_t until = newest(pool); /* the text itself is no leak */
    const size_t n = tgi_pool_leak_text(pool, after, until, NULL, 0);
    char *text = tgi_malloc(TGI_TAG_MISC, n + 1);
    if (!text)
        return TG_E_NOMEM;
    tgi_pool_leak_text(pool, after, until, text, n + 1);
    *out = text;
    return TG_OK;
}

tg_status tgi_pool_leaks(tg_pool *pool, char **text)
{
    return pool && text ? leaks_after(pool, 0, text) : TG_E_ARG;
}

tg_status tgi_pool_leaks_since(tg_pool *pool, const tg_pool_checkpoint *since, char **text)
{
    tg_pool_checkpoint own;
    if (!pool || !text || !tgi_sized_take(since, &own, sizeof own))
        return TG_E_ARG;
    return leaks_after(pool, own.number, text);
}

tg_status tgi_pool_check(tg_pool *pool, tg_pool_checkpoint *out)
{
    tg_pool_checkpoint own;
    if (!pool || !tgi_sized_take(out, &own, sizeof own))
        return TG_E_ARG;
    pthread_mutex_lock(&pool->lock);
    own.allocated_bytes = pool->allocated.now;
    own.live = pool->n_live;
    own.number = pool->number;
    pthread_mutex_unlock(&pool->lock);
    tgi_sized_give(out, &own);
    return TG_OK;
}

uint64_t tgi_pool_compare(const tg_pool_checkpoint *earlier, const tg_pool_checkpoint *later,
                          char *text, size_t cap)
{
    const uint64_t more = earlier && later && later->allocated_bytes > earlier->allocated_bytes
                              ? later->allocated_bytes - earlier->allocated_bytes
                              : 0;
    if (cap && more)
        snprintf(text, cap, "leak: %.2f MiB", (double)more / (1 << 20));
    else if (cap)
        snprintf(text, cap, "no leak");
    return more;
}

/* ---- Summary ----------------------------------------------------------------------------- */

static void say_level(writer *w, const char *name, const level *l)
{
    char now[32], peak[32];
    say(w, "  %-13s %12s   peak %12s\n", name, tgi_size_text(l->now, now, sizeof now),
        tgi_size_text(l->peak, peak, sizeof peak));
}

static void say_holders(const tg_pool *p, writer *w)
{
    char size[32];
    for (uint32_t i = 0; i < p->n_tags; i++)
        if (p->tag_bytes[i])
            say(w, "  held by %-12s %12s\n", p->tag_name[i],
                tgi_size_text(p->tag_bytes[i], size, sizeof size));
    for (const record *r = p->live.newer; r != &p->live; r = r->newer)
        if (r->bytes >= TG_POOL_LARGE_BYTES)
            say(w, "  large: %12s of %s, allocated at %s\n",
                tgi_size_text(r->bytes, size, sizeof size), p->tag_name[r->tag], r->site);
}

static void say_report(tg_pool *p, writer *w)
{
    level inactive = p->inactive;
    inactive.now = p->reserved.now - p->active.now;
    say(w, "pool %s\n", p->name);
    say_level(w, "allocated", &p->allocated);
    say_level(w, "reserved", &p->reserved);
    say_level(w, "active", &p->active);
    say_level(w, "inactive", &inactive);
    say(w, "  fragmentation %11.1f %%\n", 100 * fragmentation_of(p));
    say(w, "  %llu allocations, %llu frees, %llu in use, hit rate %.1f %%\n",
        (unsigned long long)p->allocs, (unsigned long long)p->frees,
        (unsigned long long)p->n_live, 100 * hit_rate_of(p));
    if (p->direct)
        say(w, "  of them %llu small ones by malloc\n", (unsigned long long)p->direct);
    say(w, "  %llu raw allocations, %llu raw frees, %llu segments, %llu refused\n",
        (unsigned long long)p->raw_allocs, (unsigned long long)p->raw_frees,
        (unsigned long long)p->n_segments, (unsigned long long)p->refused);
    if (p->bad_frees)
        say(w, "  %llu frees of what was no block in use\n", (unsigned long long)p->bad_frees);
    if (p->line.alloc_calls)
        say(w, "  %.3f us an allocation, mean of %llu\n",
            (double)p->line.alloc_ns / (double)p->line.alloc_calls / 1000,
            (unsigned long long)p->line.alloc_calls);
    if (under_pressure(p))
        say(w, "  pressure: less is free than the margin\n");
    say_holders(p, w);
}

tg_status tgi_pool_report(tg_pool *pool, char **text)
{
    writer w = {0};
    if (!pool || !text)
        return TG_E_ARG;
    pthread_mutex_lock(&pool->lock);
    say_report(pool, &w);
    pthread_mutex_unlock(&pool->lock);
    const size_t cap = w.n + 256; /* numbers may have grown meanwhile */
    char *t = tgi_malloc(TGI_TAG_MISC, cap);
    if (!t)
        return TG_E_NOMEM;
    w = (writer){t, cap, 0};
    pthread_mutex_lock(&pool->lock);
    say_report(pool, &w);
    pthread_mutex_unlock(&pool->lock);
    *text = t;
    return TG_OK;
}

/* ---- Timeline ---------------------------------------------------------------------------- */

static tg_status profile(tg_pool *pool, int on, int fd)
{
    if (!pool)
        return TG_E_ARG;
    pthread_mutex_lock(&pool->lock);
    const tg_status st = tgi_ledger_profile(pool, on, fd);
    pthread_mutex_unlock(&pool->lock);
    return st;
}

tg_status tgi_pool_profile(tg_pool *pool, int on)
{
    return profile(pool, on != 0, -1);
}

tg_status tgi_pool_profile_file(tg_pool *pool, int fd)
{
    return fd < 0 ? TG_E_ARG : profile(pool, 1, fd);
}

/* Tags and sites are our callers' literals; a path may hold what JSON must escape. */
static void say_text(writer *w, const char *key, const char *text)
{
    say(w, ",\"%s\":\"", key);
    for (const unsigned char *c = (const unsigned char *)text; *c && w->n + 80 < w->cap; c++)
        if (*c == '"' || *c == '\\')
            say(w, "\\%c", *c);
        else if (*c < 0x20)
            say(w, "\\u%04x", *c);
        else
            say(w, "%c", *c);
    say(w, "\"");
}

static void say_event(const tg_pool *p, uint64_t i, writer *w)
{
    const event *e = &p->line.chunk[i / EVENTS_A_CHUNK][i % EVENTS_A_CHUNK];
    const uint64_t t0 = p->line.start_ns;
    say(w, "%s{\"begin_ns\":%llu,\"end_ns\":", i ? ",\n" : "\n",
        (unsigned long long)(e->begin_ns - t0));
    if (e->end_ns)
        say(w, "%llu", (unsigned long long)(e->end_ns - t0));
    else
        say(w, "null");
    say(w, ",\"bytes\":%llu", (unsigned long long)e->bytes);
    say_text(w, "tag", p->tag_name[e->tag]);
    say_text(w, "site", e->site);
    say(w, "}");
}

tg_status tgi_pool_timeline(tg_pool *pool, int (*write)(void *user, const char *text, size_t n),
                            void *user)
{
    char line[1536];
    if (!pool || !write)
        return TG_E_ARG;
    writer w = {line, sizeof line, 0};
    pthread_mutex_lock(&pool->lock);
    const uint64_t n = pool->line.recorded;
    say(&w, "{\"tegula_timeline\":1");
    say_text(&w, "pool", pool->name);
    say(&w, ",\"recorded\":%llu,\"dropped\":%llu,\"events\":[", (unsigned long long)n,
        (unsigned long long)pool->line.dropped);
    pthread_mutex_unlock(&pool->lock);
    if (write(user, line, w.n))
        return TG_E_IO;
    for (uint64_t i = 0; i < n; i++) {
        w = (writer){line, sizeof line, 0};
        pthread_mutex_lock(&pool->lock);
        if (i < pool->line.recorded) /* profiling may have begun anew */
            say_event(pool, i, &w);
        pthread_mutex_unlock(&pool->lock);
        if (w.n && write(user, line, w.n))
            return TG_E_IO;
    }
    return write(user, "\n]}\n", 4) ? TG_E_IO : TG_OK;
}

void tgi_pool_close_and_tell(tg_pool **pool, char **leaks)
{
    if (leaks)
        *leaks = NULL;
    if (!pool || !*pool)
        return;
    char first[16];
    tgi_pool_leak_text(*pool, 0, UINT64_MAX, first, sizeof first);
    if (leaks && strncmp(first, "leak", 4) == 0 && leaks_after(*pool, 0, leaks) != TG_OK)
        *leaks = NULL;
    tgi_pool_close(pool);
}

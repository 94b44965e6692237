/* pool_segments.c - segments: when to ask the backend for one, and which to give back.
 *
 * Growing. A raw call is made only when no free block fits. First, if much of what is held lies
 * idle (fragmentation above compact_above), wholly free segments go back until it is less: they
 * are what did not fit. Then a segment is asked for, if fraction and margin allow it; small
 * requests want 2 MiB to carve from, others what they need. If that fails all idle segments go
 * back and exactly the request is tried; a small one may at last have a piece of a large block.
 *
 * Giving back. Only wholly free segments can go. Above the cache limit the sizes that were
 * asked for least go first, and of those the ones idle for longest; the counts are halved every
 * 8,192 requests, so what was popular long ago is not kept for it. */
#include "engine/base/arith.h"
#include "engine/base/pool_priv.h"
#include "engine/base/size.h"

#include <stdio.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

bool tgi_raw_allowed(tg_pool *p)
{
    return ++p->raw_calls != p->fail_raw_at;
}

/* ---- Limits ------------------------------------------------------------------------------ */

uint64_t tgi_pool_margin(const tg_pool *p)
{
    if (p->margin == TG_POOL_NONE || !p->raw.free_bytes)
        return 0;
    if (p->margin)
        return p->margin;
    const uint64_t tenth = p->raw.total_bytes ? p->raw.total_bytes(p->raw.user) / 10 : 0;
    return tenth > 512 * MIB ? tenth : 512 * MIB;
}

/* May so much more be reserved? */
static bool within_limits(tg_pool *p, const tg_raw *raw, uint64_t more)
{
    if (raw->total_bytes) {
        const double most = p->fraction * (double)raw->total_bytes(raw->user);
        if ((double)p->reserved.now + (double)more > most)
            return false;
    }
    if (raw->free_bytes) {
        const uint64_t have = raw->free_bytes(raw->user), keep = tgi_pool_margin(p);
        return have >= keep && more <= have - keep;
    }
    return true;
}

/* ---- One segment ------------------------------------------------------------------------- */

static void link_segment(tg_pool *p, tgi_segment *s)
{
    s->next = p->segments;
    if (s->next)
        s->next->prev = s;
    p->segments = s;
    p->n_segments++;
}

tgi_segment *tgi_segment_take(tg_pool *p, const tg_raw *raw, size_t bytes, room r)
{
    tgi_segment *s = tgi_books_alloc(sizeof *s);
    if (!s)
        return NULL;
    char *at = tgi_raw_allowed(p) ? raw->alloc(raw->user, bytes) : NULL;
    if (!at) {
        tgi_books_free(s);
        return NULL;
    }
    *s = (tgi_segment){.raw = raw, .at = at, .bytes = bytes, .room = r, .last_use = p->number};
    link_segment(p, s);
    p->n_idle += r != ROOM_OWN;
    p->raw_allocs++;
    tgi_ledger_reserve(p, bytes, 0);
    if (r != ROOM_OWN)
        tgi_blocks_poison(p, at, bytes);
    return s;
}

void tgi_segment_give(tg_pool *p, tgi_segment *s)
{
    const bool idle = s->n_used == 0 && s->room != ROOM_OWN;
    tgi_blocks_forget(p, s);
    if (s->prev)
        s->prev->next = s->next;
    else
        p->segments = s->next;
    if (s->next)
        s->next->prev = s->prev;
    p->n_segments--;
    p->n_idle -= idle;
    p->raw_frees++;
    tgi_ledger_reserve(p, 0, s->bytes);
    tgi_blocks_unpoison(p, s->at, s->bytes);
    s->raw->free(s->raw->user, s->at, s->bytes);
    tgi_books_free(s);
}

/* ---- Giving back ------------------------------------------------------------------------- */

static bool is_idle(const tgi_segment *s)
{
    return s->n_used == 0 && s->room != ROOM_OWN;
}

uint64_t tgi_pool_give_idle(tg_pool *p, bool slots_too, unsigned asked_less_than)
{
    uint64_t given = 0;
    for (tgi_segment *s = p->segments, *next; s && p->n_idle; s = next) {
        next = s->next;
        if (!is_idle(s) || (s->room == ROOM_SLOTS && !slots_too) ||
            p->asked[s->sort] >= asked_less_than)
            continue;
        given += s->bytes;
        tgi_segment_give(p, s);
    }
    return given;
}

static tgi_segment *least_wanted(const tg_pool *p)
{
    tgi_segment *worst = NULL;
    for (tgi_segment *s = p->segments; s; s = s->next) {
        if (!is_idle(s) || s->room == ROOM_SLOTS)
            continue;
        const uint32_t a = p->asked[s->sort], b = worst ? p->asked[worst->sort] : 0;
        if (!worst || a < b || (a == b && s->last_use < worst->last_use))
            worst = s;
    }
    return worst;
}

uint64_t tgi_pool_trim(tg_pool *p)
{
    uint64_t given = 0;
    while (p->reserved.now - p->active.now > p->cache_limit && p->n_idle) {
        tgi_segment *s = least_wanted(p);
        if (!s)
            break;
        given += s->bytes;
        tgi_segment_give(p, s);
    }
    return given;
}

/* ---- Growing ----------------------------------------------------------------------------- */

static void compact_if_idle(tg_pool *p)
{
    tgi_segment *s;
    while (p->n_idle &&
           (double)(p->reserved.now - p->allocated.now) >
               p->compact_above * (double)p->reserved.now &&
           (s = least_wanted(p)))
        tgi_segment_give(p, s);
}

/* A segment that is one free block; NULL when the limits or the backend refuse. */
static block *try_segment(tg_pool *p, size_t bytes, room r, int sort, tg_status *st)
{
    if (!within_limits(p, &p->raw, bytes)) {
        *st = TG_E_BUDGET;
        return NULL;
    }
    tgi_segment *s = tgi_segment_take(p, &p->raw, bytes, r);
    *st = s ? TG_OK : TG_E_NOMEM;
    if (!s)
        return NULL;
    s->sort = sort;
    block *b = tgi_blocks_lay(p, s, bytes, 0);
    tgi_blocks_shelve(p, b);
    return b;
}

static void describe_refusal(tg_pool *p, size_t bytes, tg_status st)
{
    char want[32], alloc[32], held[32], left[32] = "unknown", keep[32];
    const uint64_t margin = tgi_pool_margin(p);
    if (p->raw.free_bytes)
        tgi_size_text(p->raw.free_bytes(p->raw.user), left, sizeof left);
    int n =
        snprintf(p->detail, sizeof p->detail,
                 "%s: tried to allocate %s; %s; allocated %s, reserved %s, free %s, margin "
                 "%s; held by",
                 p->name, tgi_size_text(bytes, want, sizeof want),
                 st == TG_E_BUDGET ? "fraction and margin forbid it" : "the backend refused it",
                 tgi_size_text(p->allocated.now, alloc, sizeof alloc),
                 tgi_size_text(p->reserved.now, held, sizeof held), left,
                 tgi_size_text(margin, keep, sizeof keep));
    for (uint32_t i = 0; i < p->n_tags && n < (int)sizeof p->detail; i++)
        if (p->tag_bytes[i])
            n += snprintf(p->detail + n, sizeof p->detail - (size_t)n, " %s %s", p->tag_name[i],
                          tgi_size_text(p->tag_bytes[i], want, sizeof want));
    if (!p->allocated.now && n < (int)sizeof p->detail)
        snprintf(p->detail + n, sizeof p->detail - (size_t)n, " nobody");
}

block *tgi_pool_grow(tg_pool *p, size_t bytes, tg_status *st)
{
    const room r = bytes <= MIB ? ROOM_SMALL : ROOM_LARGE;
    const int sort = tgi_sort_of(p, bytes);
    const size_t exact = tgi_align_size(bytes, p->granularity);
    const size_t wanted =
        r == ROOM_SMALL && p->small_segment > exact ? p->small_segment : exact;
    compact_if_idle(p);
    block *b = try_segment(p, wanted, r, sort, st);
    if (!b && p->n_idle && tgi_pool_give_idle(p, true, UINT32_MAX))
        b = try_segment(p, exact, r, sort, st);
    else if (!b && wanted > exact)
        b = try_segment(p, exact, r, sort, st);
    if (!b && r == ROOM_SMALL)
        b = tgi_blocks_find(p, ROOM_LARGE, bytes);
    if (!b) {
        p->refused++;
        describe_refusal(p, bytes, *st);
        return NULL;
    }
    *st = TG_OK;
    return b;
}

tg_status tgi_pool_grow_slots(tg_pool *p, size_t bytes, const size_t *count)
{
    const size_t all = tgi_align_size(bytes, p->granularity);
    tg_status st = within_limits(p, &p->raw, all) ? TG_E_NOMEM : TG_E_BUDGET;
    tgi_segment *s = st == TG_E_NOMEM && all < SIZE_MAX
                         ? tgi_segment_take(p, &p->raw, all, ROOM_SLOTS)
                         : NULL;
    if (!s) {
        p->refused++;
        describe_refusal(p, all, st);
        return st;
    }
    /* Largest first: each begins on a multiple of its own size while they last. */
    for (int c = TG_POOL_CLASSES - 1; c >= 0; c--)
        for (size_t i = 0; i < count[c]; i++) {
            if (!tgi_blocks_prepare(p)) {
                tgi_segment_give(p, s);
                return TG_E_NOMEM;
            }
            const size_t one = tgi_align_size((size_t)1024 << 2 * c, p->align);
            tgi_blocks_shelve(p, tgi_blocks_lay(p, s, one, c + 1));
        }
    if (s->last->at + s->last->bytes < s->at + all) /* what rounding left over */
        s->last->bytes = (size_t)(s->at + all - s->last->at);
    return TG_OK;
}

/* pool_blocks.c - blocks of segments: classes of sizes, best fit, split and merge.
 *
 * A size belongs to a class by its highest set bit and the three bits below it, counted in
 * units of the alignment: eight classes to a power of two, so the blocks of one differ by an
 * eighth at most. A bit map says which classes have blocks (the idea is TLSF's). The smallest
 * block that fits is sought among the first LOOKS of its own class, then among those of the
 * next class that has any, where all fit; only when there is none above is its own class
 * searched to the end. So a search is short however many blocks are free, and what it takes is
 * the best fit, or within an eighth of it.
 *
 * Small and large requests have a room each, or a few bytes would keep a large segment from
 * ever being free again. */
#include "engine/base/arith.h"
#include "engine/base/pool_priv.h"

#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define POISON(at, bytes) ASAN_POISON_MEMORY_REGION(at, bytes)
#define UNPOISON(at, bytes) ASAN_UNPOISON_MEMORY_REGION(at, bytes)
#else
#define POISON(at, bytes) ((void)(at), (void)(bytes))
#define UNPOISON(at, bytes) ((void)(at), (void)(bytes))
#endif

#define LOOKS 32
#define SLAB_BLOCKS 31 /* with the chain's word just below 4 KiB */

void tgi_blocks_poison(const tg_pool *p, const void *at, size_t bytes)
{
    if (p->raw.kind != TG_MEMORY_DEVICE)
        POISON(at, bytes);
}

void tgi_blocks_unpoison(const tg_pool *p, const void *at, size_t bytes)
{
    if (p->raw.kind != TG_MEMORY_DEVICE)
        UNPOISON(at, bytes);
}

/* ---- Descriptors ------------------------------------------------------------------------- */

typedef struct slab {
    struct slab *next;
    block blocks[SLAB_BLOCKS];
} slab;

static void spare(tg_pool *p, block *b)
{
    b->next_free = p->spare;
    p->spare = b;
}

static block *descriptor(tg_pool *p)
{
    block *b = p->spare;
    p->spare = b->next_free;
    memset(b, 0, sizeof *b);
    return b;
}

static bool table_grow(tg_pool *p)
{
    const size_t len = p->table_len ? p->table_len * 2 : 64;
    block **old = p->table;
    const size_t old_len = p->table_len;
    block **fresh = tgi_books_alloc(len * sizeof(void *));
    if (!fresh)
        return false;
    memset(fresh, 0, len * sizeof(void *));
    p->table = fresh;
    p->table_len = len;
    p->table_used = 0;
    for (size_t i = 0; i < old_len; i++)
        if (old[i])
            tgi_table_put(p, old[i]);
    tgi_books_free(old);
    return true;
}

/* A request needs two descriptors at most: of a new segment's block and of what is split off.
 */
bool tgi_blocks_prepare(tg_pool *p)
{
    if (!p->spare || !p->spare->next_free) {
        slab *s = tgi_books_alloc(sizeof *s);
        if (!s)
            return false;
        s->next = p->slabs;
        p->slabs = s;
        for (int i = 0; i < SLAB_BLOCKS; i++)
            spare(p, &s->blocks[i]);
    }
    return (p->table_used + 1) * 2 <= p->table_len || table_grow(p);
}

void tgi_blocks_release(tg_pool *p)
{
    for (slab *s = p->slabs, *next; s; s = next) {
        next = s->next;
        tgi_books_free(s);
    }
    tgi_books_free(p->table);
    p->slabs = NULL;
    p->table = NULL;
    p->spare = NULL;
    p->table_len = p->table_used = 0;
}

/* ---- Blocks in use, by address ----------------------------------------------------------- */

static size_t home_of(const tg_pool *p, const void *at)
{
    return (size_t)(((uintptr_t)at >> 8) * 0x9E3779B97F4A7C15u >> 20) & (p->table_len - 1);
}

void tgi_table_put(tg_pool *p, block *b)
{
    size_t i = home_of(p, b->at);
    while (p->table[i])
        i = (i + 1) & (p->table_len - 1);
    p->table[i] = b;
    p->table_used++;
}

block *tgi_blocks_lookup(const tg_pool *p, const void *at)
{
    if (!p->table_len)
        return NULL;
    for (size_t i = home_of(p, at); p->table[i]; i = (i + 1) & (p->table_len - 1))
        if (p->table[i]->at == at)
            return p->table[i];
    return NULL;
}

/* Without tombstones: what follows in the chain moves up where its home allows. */
void tgi_table_drop(tg_pool *p, const block *b)
{
    const size_t mask = p->table_len - 1;
    size_t hole = home_of(p, b->at);
    while (p->table[hole] != b)
        hole = (hole + 1) & mask;
    p->table_used--;
    for (size_t i = (hole + 1) & mask; p->table[i]; i = (i + 1) & mask) {
        const size_t home = home_of(p, p->table[i]->at);
        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        p->table[hole] = p->table[i];
        hole = i;
    }
    p->table[hole] = NULL;
}

/* ---- Classes of free blocks -------------------------------------------------------------- */

int tgi_sort_of(const tg_pool *p, size_t bytes)
{
    const uint64_t units = bytes / p->align;
    if (units < 1u << SUB_BITS)
        return (int)units;
    const int top = 63 - __builtin_clzll(units) - SUB_BITS;
    return ((top + 1) << SUB_BITS) + (int)(units >> top & ((1 << SUB_BITS) - 1));
}

static shelf *shelf_of(tg_pool *p, const block *b)
{
    return &p->shelf[b->seg->room == ROOM_LARGE];
}

void tgi_blocks_shelve(tg_pool *p, block *b)
{
    block **list;
    if (b->slot) {
        list = &p->slots[b->slot - 1];
    } else {
        shelf *s = shelf_of(p, b);
        const int sort = tgi_sort_of(p, b->bytes);
        list = &s->list[sort];
        s->map[sort / 64] |= 1ull << sort % 64;
    }
    b->prev_free = NULL;
    b->next_free = *list;
    if (*list)
        (*list)->prev_free = b;
    *list = b;
}

static void unshelve(tg_pool *p, block *b)
{
    if (b->next_free)
        b->next_free->prev_free = b->prev_free;
    if (b->prev_free) {
        b->prev_free->next_free = b->next_free;
    } else if (b->slot) {
        p->slots[b->slot - 1] = b->next_free;
    } else {
        shelf *s = shelf_of(p, b);
        const int sort = tgi_sort_of(p, b->bytes);
        s->list[sort] = b->next_free;
        if (!b->next_free)
            s->map[sort / 64] &= ~(1ull << sort % 64);
    }
    b->next_free = b->prev_free = NULL;
}

static int next_sort(const shelf *s, int from)
{
    for (int w = from / 64; w < (int)(sizeof s->map / sizeof s->map[0]); w++) {
        const uint64_t bits = s->map[w] & (w == from / 64 ? ~0ull << from % 64 : ~0ull);
        if (bits)
            return w * 64 + __builtin_ctzll(bits);
    }
    return -1;
}

/* The smallest of a class that holds `bytes`, among the first `looks`. */
static block *smallest(block *list, size_t bytes, size_t looks)
{
    block *best = NULL;
    for (block *b = list; b && looks; b = b->next_free, looks--) {
        if (b->bytes == bytes)
            return b;
        if (b->bytes > bytes && (!best || b->bytes < best->bytes))
            best = b;
    }
    return best;
}

block *tgi_blocks_find(const tg_pool *p, room r, size_t bytes)
{
    const shelf *s = &p->shelf[r == ROOM_LARGE];
    const int sort = tgi_sort_of(p, bytes);
    block *b = smallest(s->list[sort], bytes, LOOKS);
    if (b)
        return b;
    const int above = sort + 1 < N_SORTS ? next_sort(s, sort + 1) : -1;
    return above >= 0 ? smallest(s->list[above], bytes, LOOKS)
                      : smallest(s->list[sort], bytes, SIZE_MAX);
}

/* ---- Split and merge --------------------------------------------------------------------- */

block *tgi_blocks_use(tg_pool *p, block *b)
{
    tgi_segment *s = b->seg;
    if (s->n_used++ == 0 && s->room != ROOM_OWN)
        p->n_idle--;
    b->in_use = 1;
    tgi_ledger_activate(p, b->bytes, 0);
    return b;
}

/* What is left is worth a block of its own from a sixteenth of the request on. */
static bool worth_splitting(const tg_pool *p, const block *b, size_t bytes)
{
    const size_t rest = b->bytes - bytes;
    return !b->slot && rest >= p->align && rest >= bytes / 16;
}

void tgi_blocks_take(tg_pool *p, block *b, size_t bytes)
{
    unshelve(p, b);
    if (worth_splitting(p, b, bytes)) {
        block *rest = descriptor(p);
        *rest = (block){.at = b->at + bytes,
                        .bytes = b->bytes - bytes,
                        .seg = b->seg,
                        .before = b,
                        .after = b->after,
                        .zeroed = b->zeroed};
        if (b->after)
            b->after->before = rest;
        else
            b->seg->last = rest;
        b->after = rest;
        b->bytes = bytes;
        tgi_blocks_shelve(p, rest);
    }
    tgi_blocks_use(p, b);
    tgi_table_put(p, b);
}

/* `b` takes over its neighbour behind; both are off the shelf. */
static void swallow(tg_pool *p, block *b, block *behind)
{
    b->bytes += behind->bytes;
    b->zeroed = b->zeroed && behind->zeroed;
    b->after = behind->after;
    if (b->after)
        b->after->before = b;
    else
        b->seg->last = b;
    spare(p, behind);
}

static bool can_merge(const block *b)
{
    return b && !b->in_use && !b->slot;
}

void tgi_blocks_give(tg_pool *p, block *b)
{
    tgi_segment *s = b->seg;
    tgi_table_drop(p, b);
    tgi_ledger_activate(p, 0, b->bytes);
    tgi_blocks_poison(p, b->at, b->bytes);
    b->in_use = 0;
    b->zeroed = 0;
    if (--s->n_used == 0) {
        p->n_idle++;
        s->last_use = p->number;
    }
    if (!b->slot && can_merge(b->after)) {
        unshelve(p, b->after);
        swallow(p, b, b->after);
    }
    if (!b->slot && can_merge(b->before)) {
        block *first = b->before;
        unshelve(p, first);
        swallow(p, first, b);
        b = first;
    }
    tgi_blocks_shelve(p, b);
}

block *tgi_blocks_lay(tg_pool *p, tgi_segment *s, size_t bytes, int slot)
{
    block *b = descriptor(p);
    b->at = s->last ? s->last->at + s->last->bytes : s->at;
    b->bytes = bytes;
    b->seg = s;
    b->slot = (uint8_t)slot;
    b->zeroed = s->raw->is_zeroed != 0;
    b->before = s->last;
    if (s->last)
        s->last->after = b;
    else
        s->first = b;
    s->last = b;
    return b;
}

void tgi_blocks_forget(tg_pool *p, tgi_segment *s)
{
    for (block *b = s->first, *next; b; b = next) {
        next = b->after;
        if (b->in_use) {
            tgi_ledger_out(p, &b->rec);
            tgi_ledger_activate(p, 0, b->bytes);
            if (s->room != ROOM_OWN)
                tgi_table_drop(p, b);
        } else if (s->room != ROOM_OWN) {
            unshelve(p, b);
        }
        spare(p, b);
    }
    s->first = s->last = NULL;
}

/* pool_priv.h - the inside of a pool, for the pool_*.c and mem.c alone.
 *
 *   ledger      a `record` per block in use: size, tag, site, number; linked oldest to newest.
 *               It is all that statistics, leaks, timeline and traces look at.
 *   blocks      pieces of segments, in use or free, linked to their neighbours; descriptors lie
 *               outside of the memory they describe, which may be a device's.
 *   classes     free blocks by size: eight to a power of two, found by a bit map.
 *   direct      small requests of the library itself go to malloc, each with its record in
 *               front: out-of-band descriptors would cost more than they describe.
 *
 * INVARIANTS (tgi_pool_broken checks them)
 *  1. the blocks of a segment follow one another without gap from its first to its last byte.
 *  2. no two neighbours are free, but for slots, which never merge or split.
 *  3. a block is in exactly one place: in a class (free) or in the table and ledger (in use).
 *  4. reserved = sum of segments + direct bytes; active = sum of blocks in use + direct bytes.
 *  5. freeing allocates nothing. */
#ifndef TGI_POOL_PRIV_H
#define TGI_POOL_PRIV_H

#include "engine/base/pool.h"

#include <pthread.h>
#include <stdbool.h>

/* ---- Ledger ------------------------------------------------------------------------------ */

typedef struct record {
    struct record *newer, *older; /* ring through tg_pool.live */
    const char *site;
    size_t bytes; /* asked for */
    uint64_t number;
    uint32_t tag;
    uint32_t mark; /* RECORD_DIRECT or RECORD_BLOCK while in use: freed twice shows */
} record;
_Static_assert(sizeof(record) == 48,
               "direct blocks keep malloc's alignment behind their record");

#define RECORD_DIRECT 0x7e61u
#define RECORD_BLOCK 0xb10cu

#define MAX_TAGS 64 /* the last one is "other" */

typedef struct level {
    uint64_t now, peak;
} level;

typedef struct event {
    uint64_t begin_ns, end_ns; /* end 0: in use still */
    const char *site;
    uint64_t bytes;
    uint32_t tag;
} event;

#define EVENTS_A_CHUNK 4096
#define MAX_CHUNKS 256

typedef struct timeline {
    int on;
    uint64_t first; /* number of the allocation that is event 0 */
    uint64_t recorded, dropped, start_ns;
    uint64_t alloc_ns, alloc_calls;
    event *chunk[MAX_CHUNKS];
    int file; /* 0, or 1 + a descriptor: chunks lie in that file, not in memory */
} timeline;

/* ---- Blocks ------------------------------------------------------------------------------ */

typedef struct block {
    record rec; /* in the ledger while in use */
    char *at;
    size_t bytes;
    tgi_segment *seg;
    struct block *before, *after;        /* neighbours in the segment */
    struct block *next_free, *prev_free; /* in a class, or the list of spare descriptors */
    uint8_t in_use, zeroed; /* zeroed: never handed out since the backend gave it */
    uint8_t slot;           /* preallocated: its class, counted from 1 */
} block;

typedef enum room { ROOM_SMALL, ROOM_LARGE, ROOM_SLOTS, ROOM_OWN } room;
#define N_ROOMS 2 /* with classes: small and large */

struct tgi_segment {
    struct tgi_segment *next, *prev;
    const tg_raw *raw;
    char *at;
    size_t bytes;
    block *first, *last;
    size_t n_used;
    room room;
    int sort;          /* class of the request it was taken for */
    uint64_t last_use; /* request number when its last block went */
};

#define SUB_BITS 3
#define N_SORTS (((64 - SUB_BITS) << SUB_BITS) + (1 << SUB_BITS))

typedef struct shelf { /* free blocks of a room */
    block *list[N_SORTS];
    uint64_t map[(N_SORTS + 63) / 64];
} shelf;

struct tg_pool {
    pthread_mutex_t lock;
    tg_pool *next_pool; /* of all open ones */
    char name[64];
    int is_engine;
    tg_raw raw;

    /* settings */
    size_t align, granularity, small_segment, direct_below;
    double fraction, compact_above;
    uint64_t margin, cache_limit; /* TG_POOL_NONE: none */

    /* ledger */
    record live; /* head of the ring: live.newer is the oldest */
    uint64_t number, n_live;
    level allocated, reserved, active, inactive;
    uint64_t allocs, frees, hits, direct, raw_allocs, raw_frees, refused, bad_frees;
    uint64_t tag_bytes[MAX_TAGS];
    const char *tag_name[MAX_TAGS];
    uint32_t n_tags;
    uint64_t window_peak; /* most allocated since the last look at any scope */
    tgi_scope *scopes;
    timeline line;
    int leak_check;
    uint64_t leak_after; /* blocks up to this number are no leak */

    /* blocks */
    shelf shelf[N_ROOMS];
    tgi_segment *segments;
    uint64_t n_segments, n_idle; /* idle: wholly free */
    block *slots[TG_POOL_CLASSES];
    block **table; /* blocks in use by address: open addressing, a power of two long */
    size_t table_len, table_used;
    block *spare;
    void *slabs;             /* of descriptors, chained by their first word */
    uint32_t asked[N_SORTS]; /* recent requests by class */

    /* tests */
    uint64_t requests, fail_at, raw_calls, fail_raw_at;
    char detail[512];
};

/* The lock is taken with pthread_mutex_lock and released by this where bytes may have moved. */
void tgi_pool_unlock(tg_pool *p);

/* pool_core.c: of mem.c, which makes the library's own pool. */
void tgi_pool_setup(tg_pool *p, const tg_raw *raw, const char *name);
void tgi_pool_register(tg_pool *p);

/* All of these are called with the lock held. */

/* pool_core.c */
bool tgi_request_allowed(tg_pool *p); /* counts a request; false: this one is to fail */
/* A block for a request that was allowed. */
void *tgi_pool_get(tg_pool *p, size_t bytes, uint32_t tag, const char *site, bool zero,
                   tg_status *st);
void tgi_pool_put(tg_pool *p, block *b);

/* pool_ledger.c */
void tgi_ledger_init(tg_pool *p);
uint32_t tgi_ledger_tag(tg_pool *p, const char *tag);
void tgi_ledger_in(tg_pool *p, record *r, size_t bytes, uint32_t tag, const char *site,
                   uint32_t mark);
void tgi_ledger_out(tg_pool *p, record *r);
void tgi_ledger_reserve(tg_pool *p, uint64_t more, uint64_t less);
void tgi_ledger_activate(tg_pool *p, uint64_t more, uint64_t less);
tg_status tgi_ledger_profile(tg_pool *p, int on, int fd); /* fd -1: in memory */
void tgi_ledger_release(tg_pool *p);
uint64_t tgi_now_ns(void);

/* pool_blocks.c */
int tgi_sort_of(const tg_pool *p, size_t bytes);
bool tgi_blocks_prepare(tg_pool *p); /* room for the descriptors one request can need */
block *tgi_blocks_find(const tg_pool *p, room r, size_t bytes);
void tgi_blocks_take(tg_pool *p, block *b, size_t bytes); /* off the shelf, split, in use */
void tgi_blocks_give(tg_pool *p, block *b);               /* free, merged, on the shelf */
block *tgi_blocks_lookup(const tg_pool *p, const void *at);
block *tgi_blocks_lay(tg_pool *p, tgi_segment *s, size_t bytes, int slot); /* at its end */
void tgi_blocks_shelve(tg_pool *p, block *b);
block *tgi_blocks_use(tg_pool *p, block *b);        /* not split */
void tgi_blocks_forget(tg_pool *p, tgi_segment *s); /* all of a segment's */
void tgi_table_put(tg_pool *p, block *b);
void tgi_table_drop(tg_pool *p, const block *b);
void tgi_blocks_release(tg_pool *p);

/* pool_segments.c */
tgi_segment *tgi_segment_take(tg_pool *p, const tg_raw *raw, size_t bytes, room r);
void tgi_segment_give(tg_pool *p, tgi_segment *s);
/* Memory for a request of `bytes` that no free block holds; NULL with p->detail. */
block *tgi_pool_grow(tg_pool *p, size_t bytes, tg_status *st);
/* One segment of `bytes`, cut into count[c] slots of each class. */
tg_status tgi_pool_grow_slots(tg_pool *p, size_t bytes, const size_t *count);
uint64_t tgi_pool_trim(tg_pool *p); /* down to the cache limit */
uint64_t tgi_pool_give_idle(tg_pool *p, bool slots_too, unsigned asked_less_than);
bool tgi_raw_allowed(tg_pool *p); /* counts a raw call; false: this one is to fail */
uint64_t tgi_pool_margin(const tg_pool *p);

/* raw_pages.c: pages of the system. */
void *tgi_pages_alloc(void *user, uint64_t bytes);
void tgi_pages_free(void *user, void *at, uint64_t bytes);
void *tgi_pages_resize(void *user, void *at, uint64_t old_bytes, uint64_t new_bytes);
/* Of host memory: bytes of whole pages that nobody wrote to yet, and those in swap. */
size_t tgi_pages_untouched(const void *at, size_t bytes);
/* On a 2 MiB border and populated: resident at once or refused; what lies in it is anything. */
extern const tg_raw tgi_raw_populated;

/* Memory that nobody may touch, where AddressSanitizer watches and a processor could. */
void tgi_blocks_poison(const tg_pool *p, const void *at, size_t bytes);
void tgi_blocks_unpoison(const tg_pool *p, const void *at, size_t bytes);

#endif

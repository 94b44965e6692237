/* pool.h - the one allocator: what the library asks of it beside the public door.
 *
 * The public words are in tegula_pool.h; here are the calls of engine/base (tgi_malloc, the
 * reservation), of the traces and of the tests. A pool of ours is the public `tg_pool`: there
 * is no second kind. */
#ifndef TGI_POOL_H
#define TGI_POOL_H

#include "engine/base/status.h"

#include <tegula_pool.h>

/* ---- Pools ------------------------------------------------------------------------------- */

tg_status tgi_pool_open(const tg_raw *raw, const tg_pool_opts *opts, tg_pool **out,
                        tgi_err *err);
void tgi_pool_close(tg_pool **pool);
/* As tg_pool_close. */
void tgi_pool_close_and_tell(tg_pool **pool, char **leaks);
/* The library's own, ready from the first call on. */
tg_pool *tgi_pool_engine(void);

/* Bytes of a block in use, 0 when it is none. */
size_t tgi_pool_bytes_of(tg_pool *pool, const void *at);
/* A block of another size with the same contents; NULL and the old one unchanged when refused.
 * The tag stays, the site is the new one. */
void *tgi_pool_resize(tg_pool *pool, void *at, size_t bytes, const char *site);

/* Wholly free segments of all open pools, given back; the bytes, and those of devices alone. */
uint64_t tgi_pools_empty_cache(uint64_t *of_devices);
/* Allocated and reserved by all pools of a kind and device. */
void tgi_pools_sum(tg_memory_kind kind, int device, uint64_t *allocated, uint64_t *reserved);

/* ---- A segment of one's own -------------------------------------------------------------- */

/* Taken through other raw calls than the pool's, carved from its beginning, given back as a
 * whole; its blocks are in the pool's ledger like all others. The reservation of a run. */
typedef struct tgi_segment tgi_segment;

/* NULL: refused. `raw` must live as long. */
tgi_segment *tgi_pool_take_segment(tg_pool *pool, const tg_raw *raw, size_t bytes);
/* The next `bytes`, aligned to `align` (a power of two); NULL when it has not that much left.
 */
void *tgi_pool_carve(tg_pool *pool, tgi_segment *s, size_t bytes, size_t align, const char *tag,
                     const char *site);
void tgi_pool_drop_segment(tg_pool *pool, tgi_segment **s);
void *tgi_segment_base(const tgi_segment *s);

/* ---- Leaks ------------------------------------------------------------------------------- */

/* Blocks with numbers in (after, until], as text; allocates nothing. Like snprintf: writes at
 * most cap bytes with the NUL and returns the whole length. */
size_t tgi_pool_leak_text(tg_pool *pool, uint64_t after, uint64_t until, char *text,
                          size_t cap);

/* ---- Scopes: exact peaks of stretches of time -------------------------------------------- */

/* What a scope remembers; it lies with its owner, must not move while open, and is closed
 * before the pool. */
typedef struct tgi_scope {
    struct tgi_scope *next, *prev;
    uint64_t start_bytes, peak_bytes;
} tgi_scope;

void tgi_scope_open(tg_pool *pool, tgi_scope *s); /* counts from now */
void tgi_scope_reset(tg_pool *pool, tgi_scope *s);
/* What is allocated now, and the most since the scope was opened or reset. */
void tgi_scope_read(tg_pool *pool, tgi_scope *s, uint64_t *now_bytes, uint64_t *peak_bytes);
void tgi_scope_close(tg_pool *pool, tgi_scope *s);

/* ---- Holders ----------------------------------------------------------------------------- */

/* Bytes in use by tag, in no order, tags that hold nothing left out; returns how many of at
 * most `cap` were written. Tags are views of the pool. */
size_t tgi_pool_holders(tg_pool *pool, const char **tag, uint64_t *bytes, size_t cap);

/* Memory for books about memory, which no ledger counts: malloc and free. */
void *tgi_books_alloc(size_t bytes);
void tgi_books_free(void *p);

/* ---- Tests ------------------------------------------------------------------------------- */

/* The k-th raw call that takes memory from now on is refused, once; 0: none. Of the library's
 * own pool also read from TEGULA_FAIL_RAW. */
void tgi_pool_fail_raw_at(tg_pool *pool, uint64_t k);
/* The same for requests, served from the cache or not; TEGULA_FAIL_ALLOC. */
void tgi_pool_fail_at(tg_pool *pool, uint64_t k);
uint64_t tgi_pool_requests(tg_pool *pool);
/* Holds every invariant against the structures; NULL, or what is wrong. Slow. */
const char *tgi_pool_broken(tg_pool *pool);

/* ---- Behind the public door: as the calls of tegula_pool.h of the same name -------------- */

tg_status tgi_pool_alloc_at(tg_pool *pool, size_t bytes, const char *tag, const char *site,
                            void **out);
tg_status tgi_pool_free(tg_pool *pool, void *at);
tg_status tgi_pool_preallocate(tg_pool *pool, const size_t count[TG_POOL_CLASSES]);
uint64_t tgi_pool_empty_cache(tg_pool *pool);
uint64_t tgi_pool_collect(tg_pool *pool);
uint64_t tgi_pool_compact(tg_pool *pool);
tg_status tgi_pool_set_cache_limit(tg_pool *pool, const char *limit);
tg_status tgi_pool_set_memory_fraction(tg_pool *pool, double fraction);
int tgi_pool_pressure(tg_pool *pool);
tg_status tgi_pool_get_stats(tg_pool *pool, tg_pool_stats *out);
void tgi_pool_reset_peaks(tg_pool *pool);
int tgi_pool_is_pinned(tg_pool *pool, const void *at);
const char *tgi_pool_name(const tg_pool *pool);
size_t tgi_pool_detail(const tg_pool *pool, char *text, size_t cap);
size_t tgi_pool_large(tg_pool *pool, uint64_t min_bytes, tg_pool_block *rows, size_t cap);
void tgi_pool_leak_check(tg_pool *pool, int on);
tg_status tgi_pool_leaks(tg_pool *pool, char **text);
tg_status tgi_pool_leaks_since(tg_pool *pool, const tg_pool_checkpoint *since, char **text);
tg_status tgi_pool_check(tg_pool *pool, tg_pool_checkpoint *out);
uint64_t tgi_pool_compare(const tg_pool_checkpoint *earlier, const tg_pool_checkpoint *later,
                          char *text, size_t cap);
tg_status tgi_pool_report(tg_pool *pool, char **text);
tg_status tgi_pool_profile(tg_pool *pool, int on);
tg_status tgi_pool_profile_file(tg_pool *pool, int fd);
tg_status tgi_pool_timeline(tg_pool *pool, int (*write)(void *user, const char *text, size_t n),
                            void *user);

#endif

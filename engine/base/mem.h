/* mem.h - memory of the library itself: the pool "engine" by its short names.
 *
 * Every request carries a tag and the place where it is written, so "who holds the memory" has
 * an answer, and the k-th request can be made to fail (tests). At the end of every test no
 * block is in use. Small requests go straight to malloc, larger ones to segments of pages of
 * their own; the ledger (pool_priv.h) is one for both. */
#ifndef TGI_MEM_H
#define TGI_MEM_H

#include <tegula_pool.h>

#include <stddef.h>
#include <stdint.h>

typedef enum tgi_tag {
    TGI_TAG_MISC,
    TGI_TAG_GRAPH,
    TGI_TAG_PLAN,
    TGI_TAG_IO,
    TGI_TAG_JOURNAL,
    TGI_TAG_COUNT
} tgi_tag;

/* All return NULL when the system (or the test) refuses; the caller answers TG_E_NOMEM.
 * `tgi_calloc` and `tgi_realloc_n` check n * size for overflow. Freed with tgi_free. */
#define tgi_malloc(tag, size) tgi_malloc_at((tag), (size), TG_POOL_SITE)
#define tgi_calloc(tag, n, size) tgi_calloc_at((tag), (n), (size), TG_POOL_SITE)
#define tgi_realloc_n(tag, p, n, size) tgi_realloc_at((tag), (p), (n), (size), TG_POOL_SITE)
#define tgi_strdup(tag, s) tgi_strdup_at((tag), (s), TG_POOL_SITE)
void *tgi_malloc_at(tgi_tag tag, size_t size, const char *site);
void *tgi_calloc_at(tgi_tag tag, size_t n, size_t size, const char *site);
void *tgi_realloc_at(tgi_tag tag, void *p, size_t n, size_t size,
                     const char *site); /* p may be NULL */
char *tgi_strdup_at(tgi_tag tag, const char *s, const char *site);
void tgi_free(void *p); /* NULL allowed */

/* Give what lies idle back to the system: the pool's free segments and malloc's free pages. */
void tgi_mem_trim(void);

typedef struct tgi_mem_stats {
    size_t live_bytes, peak_bytes, live_blocks;
    uint64_t requests; /* since start */
    size_t tag_bytes[TGI_TAG_COUNT];
} tgi_mem_stats;
void tgi_mem_get_stats(tgi_mem_stats *out);
/* Bytes in use, without texts and settings (TGI_TAG_MISC): what follows from a job's files and
 * options is the same however the command is spelled. */
size_t tgi_mem_held(void);
/* Of these, what the system has given pages for: buffers are not touched before they are used,
 * and until then they are no part of what is measured of the process. */
size_t tgi_mem_touched(void);
const char *tgi_tag_name(tgi_tag tag);
/* Size of the request that was refused last, for the sentence about it; 0: none was. */
size_t tgi_mem_refused_bytes(void);

/* Tests: let the k-th request from now fail (1 = the next one), once; 0 switches it off.
 * Also read from TEGULA_FAIL_ALLOC at the first request. The other counts what the system is
 * asked for, malloc or pages; TEGULA_FAIL_RAW. */
void tgi_mem_fail_at(uint64_t k);
void tgi_mem_fail_raw_at(uint64_t k);

#endif

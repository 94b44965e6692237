/* mem.h - the only caller of malloc in tegula.
 *
 * Every request carries a tag, so "who holds the memory" has an answer, and the k-th request
 * can be made to fail (tests). Blocks are counted: at the end of every test the count is zero.
 */
#ifndef TGI_MEM_H
#define TGI_MEM_H

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
void *tgi_malloc(tgi_tag tag, size_t size);
void *tgi_calloc(tgi_tag tag, size_t n, size_t size);
void *tgi_realloc_n(tgi_tag tag, void *p, size_t n, size_t size); /* p may be NULL */
char *tgi_strdup(tgi_tag tag, const char *s);
void tgi_free(void *p); /* NULL allowed */

typedef struct tgi_mem_stats {
    size_t live_bytes, peak_bytes, live_blocks;
    uint64_t requests; /* since start */
    size_t tag_bytes[TGI_TAG_COUNT];
} tgi_mem_stats;
void tgi_mem_get_stats(tgi_mem_stats *out);
const char *tgi_tag_name(tgi_tag tag);

/* Tests: let the k-th request from now fail (1 = the next one), once; 0 switches it off.
 * Also read from TEGULA_FAIL_ALLOC at the first request. */
void tgi_mem_fail_at(uint64_t k);

#endif

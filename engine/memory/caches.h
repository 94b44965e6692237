/* caches.h - whatever keeps memory for later registers here, so that one call empties all. */
#ifndef TGI_CACHES_H
#define TGI_CACHES_H

#include <stdint.h>

/* Gives back what is kept and not in use, from any thread; returns the bytes that went straight
 * to the system or the device. What it freed through tgi_free is counted by the trim below. */
typedef uint64_t (*tgi_cache_empty_fn)(void *user);

#define TGI_MAX_CACHES 32

/* 1, or 0 when the table is full. `name` static. */
int tgi_cache_register(const char *name, tgi_cache_empty_fn empty, void *user);
/* Take a registration back: after it returns, `empty` is not called with `user` again. */
void tgi_cache_unregister(tgi_cache_empty_fn empty, void *user);

/* Empty all of them and all memory pools, then give back what malloc keeps; the bytes the
 * system got. */
uint64_t tgi_caches_clear(void);

#endif

/* deflate.h - zlib streams into and out of memory the caller gives; the only user of zlib. */
#ifndef TGI_DEFLATE_H
#define TGI_DEFLATE_H

#include <stddef.h>
#include <stdint.h>

/* 0 when the build has no zlib; then the other calls answer failure. */
int tgi_deflate_available(void);
const char *tgi_deflate_version(void); /* "1.2.13" */
/* Most bytes a zlib stream of n bytes takes. */
size_t tgi_deflate_bound(size_t n);
/* Memory of one encoder's state (a multiple of 64). */
size_t tgi_deflate_state_bytes(void);
/* Make an encoder in `memory`; NULL on failure. View of memory, nothing to close. */
void *tgi_deflate_open(void *memory, int level);
/* One zlib stream of src into dst; 0 on failure (does not fit). */
size_t tgi_deflate(void *state, const void *src, size_t n, void *dst, size_t cap);

#endif

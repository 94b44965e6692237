/* zstd_codec.h - zstd frames out of memory the caller gives; the only user of libzstd's
 * encoder. */
#ifndef TGI_ZSTD_CODEC_H
#define TGI_ZSTD_CODEC_H

#include <stddef.h>

/* What level 0 means. Behind a predictor, level 3 makes pictures of microscopes and cameras
 * between 3 % smaller and 2 % larger than level 1, in 1.2 to 2.4 times the time. */
#define TGI_ZSTD_LEVEL 1

/* 0 when the build has no zstd; then the other calls answer failure. */
int tgi_zstd_available(void);
const char *tgi_zstd_version(void); /* "1.5.4" */
size_t tgi_zstd_bound(size_t n);
/* Memory of one encoder's state for blocks of n bytes (a multiple of 64). */
size_t tgi_zstd_state_bytes(int level, size_t n);
/* Make an encoder in `memory` (64-byte aligned); NULL on failure. View of memory. */
void *tgi_zstd_open(void *memory, int level, size_t n);
/* One frame of src into dst; 0 on failure. */
size_t tgi_zstd(void *state, const void *src, size_t n, void *dst, size_t cap);

#endif

/* lzw.h - the LZW of TIFF, the encoder. unpack_lzw.c decodes. */
#ifndef TGI_LZW_H
#define TGI_LZW_H

#include <stddef.h>

size_t tgi_lzw_bound(size_t n);
size_t tgi_lzw_state_bytes(void); /* a multiple of 64 */
/* One LZW text of src into dst (tgi_lzw_bound(n) bytes); returns its length. `state` needs no
 * preparation. */
size_t tgi_lzw(void *state, const void *src, size_t n, void *dst);

#endif

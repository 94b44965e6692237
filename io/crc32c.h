/* crc32c.h - the Castagnoli checksum, eight bytes a step. Source: RFC 3720, appendix B.4. */
#ifndef TGI_CRC32C_H
#define TGI_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Checksum of two texts in a row, from theirs and the length of the second. */
uint32_t tgi_crc32c_join(uint32_t first, uint32_t second, uint64_t second_bytes);
/* Checksum of a text continued by n bytes; the empty text has 0. Any thread. */
uint32_t tgi_crc32c(uint32_t crc, const void *bytes, size_t n);
/* The same on a processor without an instruction for it. */
uint32_t tgi_crc32c_by_tables(uint32_t crc, const void *bytes, size_t n);

#endif

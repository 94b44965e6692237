/* fnv.h - FNV-1a over words of 64 bits, turned so that their upper bits reach the lower ones,
 * and bytes at the end: whether bytes are the same among honest users, not a defence against
 * forgery. */
#ifndef TGI_FNV_H
#define TGI_FNV_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TGI_FNV_BEGIN 14695981039346656037ull
#define TGI_FNV_PRIME 1099511628211ull

/* In pieces: each but the last a multiple of 8 bytes. */
static inline uint64_t tgi_fnv(uint64_t h, const void *bytes, size_t n)
{
    const unsigned char *p = (const unsigned char *)bytes;
    uint64_t word;
    for (; n >= sizeof word; p += sizeof word, n -= sizeof word) {
        memcpy(&word, p, sizeof word);
        h = (h ^ word) * TGI_FNV_PRIME;
        h = h << 29 | h >> 35;
    }
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * TGI_FNV_PRIME;
    return h;
}

#endif

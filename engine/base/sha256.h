/* sha256.h - SHA-256, as FIPS 180-4 defines it and sha256sum prints it. */
#ifndef TGI_SHA256_H
#define TGI_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define TGI_SHA256_TEXT 65 /* 64 hexadecimal digits and a 0 */

typedef struct tgi_sha256 {
    uint32_t state[8];
    uint64_t bytes;
    uint8_t rest[64]; /* the last bytes % 64, not yet mixed in */
    int plain;        /* 1: without the processor's SHA instructions, for tests */
} tgi_sha256;

void tgi_sha256_begin(tgi_sha256 *h);
void tgi_sha256_add(tgi_sha256 *h, const void *bytes, size_t n);
/* The digest as text. What was begun is over then. */
void tgi_sha256_end(tgi_sha256 *h, char text[TGI_SHA256_TEXT]);

#endif

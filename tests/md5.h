/* md5.h - MD5 for the tests: the reference sums of sample images are MD5. Source: RFC 1321. */
#ifndef TG_TEST_MD5_H
#define TG_TEST_MD5_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct md5 {
    uint32_t h[4];
    uint64_t n;
    uint8_t block[64];
} md5;

static inline void md5_init(md5 *m)
{
    *m = (md5){{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}, 0, {0}};
}

static inline void md5_block(md5 *m, const uint8_t *p)
{
    static const uint8_t turn[4][4] = {
        {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    static uint32_t sine[64];
    uint32_t a = m->h[0], b = m->h[1], c = m->h[2], d = m->h[3], w[16];
    if (!sine[0])
        for (int i = 0; i < 64; i++)
            sine[i] = (uint32_t)(uint64_t)floor(fabs(sin(i + 1.0)) * 4294967296.0);
    for (int i = 0; i < 16; i++)
        w[i] = p[4 * i] | (uint32_t)p[4 * i + 1] << 8 | (uint32_t)p[4 * i + 2] << 16 |
               (uint32_t)p[4 * i + 3] << 24;
    for (int i = 0; i < 64; i++) {
        const int round = i / 16;
        const uint32_t f = round == 0   ? (b & c) | (~b & d)
                           : round == 1 ? (d & b) | (~d & c)
                           : round == 2 ? b ^ c ^ d
                                        : c ^ (b | ~d);
        const int g = round == 0   ? i
                      : round == 1 ? (5 * i + 1) % 16
                      : round == 2 ? (3 * i + 5) % 16
                                   : 7 * i % 16;
        const uint32_t v = a + f + sine[i] + w[g];
        const int r = turn[round][i % 4];
        a = d;
        d = c;
        c = b;
        b += v << r | v >> (32 - r);
    }
    m->h[0] += a;
    m->h[1] += b;
    m->h[2] += c;
    m->h[3] += d;
}

static inline void md5_add(md5 *m, const void *data, size_t n)
{
    const uint8_t *p = data;
    while (n) {
        const size_t at = m->n % 64, k = n < 64 - at ? n : 64 - at;
        memcpy(m->block + at, p, k);
        m->n += k;
        p += k;
        n -= k;
        if (m->n % 64 == 0)
            md5_block(m, m->block);
    }
}

static inline void md5_hex(md5 *m, char out[33])
{
    static const uint8_t pad[64] = {0x80};
    const uint64_t bits = m->n * 8;
    uint8_t len[8];
    md5_add(m, pad, (m->n % 64 < 56 ? 56 : 120) - m->n % 64);
    for (int i = 0; i < 8; i++)
        len[i] = (uint8_t)(bits >> 8 * i);
    md5_add(m, len, 8);
    for (int i = 0; i < 16; i++)
        sprintf(out + 2 * i, "%02x", (unsigned)(m->h[i / 4] >> 8 * (i % 4) & 255));
}

#endif

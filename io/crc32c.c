/* crc32c.c - eight bytes a step: by the instruction that x86-64 has had for it since SSE4.2,
 * three cycles each, elsewhere by eight tables ("slicing-by-8", Kounavis and Berry 2005). Small
 * networks write faster than the tables go. */
#include "io/crc32c.h"

#include <pthread.h>
#include <string.h>

#define POLYNOMIAL 0x82f63b78u /* bits reversed: the highest is x^0 */

static uint32_t table[8][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

typedef uint32_t crc_fn(uint32_t crc, const uint8_t *p, size_t n); /* without inversions */
static crc_fn *chosen;

static uint32_t by_tables(uint32_t crc, const uint8_t *p, size_t n)
{
    for (; n >= 8; n -= 8, p += 8) {
        const uint32_t lo = crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                                   (uint32_t)p[3] << 24);
        crc = table[7][lo & 0xff] ^ table[6][lo >> 8 & 0xff] ^ table[5][lo >> 16 & 0xff] ^
              table[4][lo >> 24] ^ table[3][p[4]] ^ table[2][p[5]] ^ table[1][p[6]] ^
              table[0][p[7]];
    }
    for (; n; n--, p++)
        crc = crc >> 8 ^ table[0][(crc ^ *p) & 0xff];
    return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const uint8_t *p,
                                                                 size_t n)
{
    uint64_t c = crc;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t eight;
        memcpy(&eight, p, sizeof eight);
        c = __builtin_ia32_crc32di(c, eight);
    }
    crc = (uint32_t)c;
    for (; n; n--, p++)
        crc = __builtin_ia32_crc32qi(crc, *p);
    return crc;
}

static crc_fn *fastest(void)
{
    return __builtin_cpu_supports("sse4.2") ? by_instruction : by_tables;
}
#else
static crc_fn *fastest(void)
{
    return by_tables;
}
#endif

static void prepare(void)
{
    chosen = fastest();
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++)
            c = c & 1 ? c >> 1 ^ POLYNOMIAL : c >> 1;
        table[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int t = 1; t < 8; t++)
            table[t][i] = table[t - 1][i] >> 8 ^ table[0][table[t - 1][i] & 0xff];
}

uint32_t tgi_crc32c(uint32_t crc, const void *bytes, size_t n)
{
    pthread_once(&once, prepare);
    return ~chosen(~crc, bytes, n);
}

uint32_t tgi_crc32c_by_tables(uint32_t crc, const void *bytes, size_t n)
{
    pthread_once(&once, prepare);
    return ~by_tables(~crc, bytes, n);
}

/* Product of two polynomials, modulo ours. */
static uint32_t times(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (uint32_t bit = 1u << 31; bit; bit >>= 1) {
        if (a & bit)
            product ^= b;
        b = b & 1 ? b >> 1 ^ POLYNOMIAL : b >> 1;
    }
    return product;
}

/* A checksum is linear but for its inversions, and those cancel: the first one is carried over
 * the second text's length, that is multiplied by x^(8 n), and the second one added. */
uint32_t tgi_crc32c_join(uint32_t first, uint32_t second, uint64_t second_bytes)
{
    uint32_t power = 1u << 31, square = 1u << 23; /* x^0; x^8, then its squares */
    for (uint64_t n = second_bytes; n; n >>= 1) {
        if (n & 1)
            power = times(power, square);
        square = times(square, square);
    }
    return times(power, first) ^ second;
}

/* fuzz_png.c - any bytes behind the mark of a PNG file, opened and read. The last byte says
 * how: with its highest bit, checksums, which would keep a fuzzer out, are written anew. */
#include "io/bytes.h"
#include "tests/fuzz/fuzz_image.h"

static void put32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static uint32_t crc_of(const uint8_t *p, size_t n)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < 8 * n; i++) {
        crc ^= i % 8 ? 0 : p[i / 8];
        crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static void fix_checks(uint8_t *d, size_t n)
{
    for (size_t at = 8; at + 12 <= n;) {
        const size_t len = tgi_load32(d + at, true);
        if (len > n - at - 12)
            return;
        put32(d + at + 8 + len, crc_of(d + at + 4, len + 4));
        at += len + 12;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 9 || memcmp(data, "\x89PNG\r\n\x1a\n", 8) != 0)
        return -1; /* another format's, not kept in the corpus */
    const unsigned how = data[n - 1];
    uint8_t *copy = malloc(n);
    memcpy(copy, data, n);
    if (how & 128)
        fix_checks(copy, n);
    fuzz_image(copy, n, how & ~1u);
    free(copy);
    return 0;
}

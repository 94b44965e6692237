/* bytes.h - numbers inside untrusted bytes.
 *
 * Loads are byte-wise, so alignment and the machine's own order never matter; the cursor checks
 * every step against the end and stays failed once it failed, so a parser may read a few fields
 * and test once. */
#ifndef TGI_BYTES_H
#define TGI_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TGI_HOST_BIG (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

static inline uint16_t tgi_load16(const uint8_t *p, bool big)
{
    const unsigned a = p[0], b = p[1];
    return (uint16_t)(big ? a << 8 | b : b << 8 | a);
}
static inline uint32_t tgi_load32(const uint8_t *p, bool big)
{
    const uint32_t a = tgi_load16(p, big), b = tgi_load16(p + 2, big);
    return big ? a << 16 | b : b << 16 | a;
}
static inline uint64_t tgi_load64(const uint8_t *p, bool big)
{
    const uint64_t a = tgi_load32(p, big), b = tgi_load32(p + 4, big);
    return big ? a << 32 | b : b << 32 | a;
}

static inline void tgi_save32(uint8_t *p, uint32_t v, bool big)
{
    for (int i = 0; i < 4; i++)
        p[big ? 3 - i : i] = (uint8_t)(v >> 8 * i);
}
static inline void tgi_save64(uint8_t *p, uint64_t v, bool big)
{
    tgi_save32(p + (big ? 4 : 0), (uint32_t)v, big);
    tgi_save32(p + (big ? 0 : 4), (uint32_t)(v >> 32), big);
}

/* A view of `n` bytes, read from `at` on. After a read past the end `failed` is set and every
 * read answers 0. */
typedef struct tgi_cursor {
    const uint8_t *p;
    size_t n, at;
    bool big, failed;
} tgi_cursor;

uint8_t tgi_cursor_u8(tgi_cursor *c);
uint16_t tgi_cursor_u16(tgi_cursor *c);
uint32_t tgi_cursor_u32(tgi_cursor *c);
uint64_t tgi_cursor_u64(tgi_cursor *c);
/* View of the next n bytes, or NULL (and failed). */
const uint8_t *tgi_cursor_take(tgi_cursor *c, size_t n);

/* Reverse the bytes of each of `n` elements of `size` 1, 2, 4 or 8 bytes while copying.
 * src == dst is allowed, other overlaps are not; no alignment is needed. */
void tgi_swap_copy(void *dst, const void *src, size_t n, size_t size);

#endif

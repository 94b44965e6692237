/* bytes.c - the cursor's steps and the swapping copy.
 *
 * The swapping loops go through memcpy of one element: compilers turn that into a load, a byte
 * swap and a store (vectorised), and no aligned pointer is ever assumed. */
#include "io/bytes.h"

#include <string.h>

const uint8_t *tgi_cursor_take(tgi_cursor *c, size_t n)
{
    if (c->failed || c->at > c->n || n > c->n - c->at) {
        c->failed = true;
        return NULL;
    }
    const uint8_t *p = c->p + c->at;
    c->at += n;
    return p;
}

uint8_t tgi_cursor_u8(tgi_cursor *c)
{
    const uint8_t *p = tgi_cursor_take(c, 1);
    return p ? *p : 0;
}

uint16_t tgi_cursor_u16(tgi_cursor *c)
{
    const uint8_t *p = tgi_cursor_take(c, 2);
    return p ? tgi_load16(p, c->big) : 0;
}

uint32_t tgi_cursor_u32(tgi_cursor *c)
{
    const uint8_t *p = tgi_cursor_take(c, 4);
    return p ? tgi_load32(p, c->big) : 0;
}

uint64_t tgi_cursor_u64(tgi_cursor *c)
{
    const uint8_t *p = tgi_cursor_take(c, 8);
    return p ? tgi_load64(p, c->big) : 0;
}

static void swap16(uint8_t *d, const uint8_t *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t v;
        memcpy(&v, s + 2 * i, 2);
        v = __builtin_bswap16(v);
        memcpy(d + 2 * i, &v, 2);
    }
}

static void swap32(uint8_t *d, const uint8_t *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t v;
        memcpy(&v, s + 4 * i, 4);
        v = __builtin_bswap32(v);
        memcpy(d + 4 * i, &v, 4);
    }
}

static void swap64(uint8_t *d, const uint8_t *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t v;
        memcpy(&v, s + 8 * i, 8);
        v = __builtin_bswap64(v);
        memcpy(d + 8 * i, &v, 8);
    }
}

void tgi_swap_copy(void *dst, const void *src, size_t n, size_t size)
{
    if (size == 2)
        swap16(dst, src, n);
    else if (size == 4)
        swap32(dst, src, n);
    else if (size == 8)
        swap64(dst, src, n);
    else if (dst != src)
        memcpy(dst, src, n * size);
}

/* deflate.c - zlib behind deflate.h. zlib asks for its memory through a callback, which we
 * answer from the caller's block: a bump allocator is enough, since everything is taken at init
 * and the state is only reset between streams. Source: RFC 1950; zlib.h (memory: zconf.h, 256
 * KiB at the default window and memLevel, plus the state itself). */
#include "io/deflate.h"

#include <stdint.h>
#include <string.h>

#ifdef TG_HAVE_ZLIB
#include <zlib.h>

typedef struct encoder {
    z_stream z;
    size_t used;
} encoder;

/* (1 << (windowBits+2)) + (1 << (memLevel+9)) = 256 KiB by zconf.h; the rest holds the state (6
 * KiB) and the growth other implementations of zlib take (zlib-ng: about 100 KiB more). */
#define STATE_BYTES (512u * 1024u)

static voidpf take(voidpf opaque, uInt items, uInt size)
{
    encoder *e = opaque;
    const size_t n = ((size_t)items * size + 63) / 64 * 64;
    if (n > STATE_BYTES - e->used)
        return Z_NULL;
    void *p = (char *)e + e->used;
    e->used += n;
    return memset(p, 0, n);
}

static void give(voidpf opaque, voidpf p)
{
    (void)opaque;
    (void)p;
}

int tgi_deflate_available(void)
{
    return 1;
}

const char *tgi_deflate_version(void)
{
    return zlibVersion();
}

size_t tgi_deflate_bound(size_t n)
{
    return n + (n >> 3) + (n >> 8) +
           64; /* above deflateBound of zlib, zlib-ng and cloudflare */
}

size_t tgi_deflate_state_bytes(void)
{
    return STATE_BYTES;
}

void *tgi_deflate_open(void *memory, int level)
{
    encoder *e = memory;
    memset(e, 0, sizeof *e);
    e->used = (sizeof *e + 63) / 64 * 64;
    e->z.zalloc = take;
    e->z.zfree = give;
    e->z.opaque = e;
    return deflateInit(&e->z, level ? level : 6) == Z_OK ? e : NULL;
}

size_t tgi_deflate(void *state, const void *src, size_t n, void *dst, size_t cap)
{
    encoder *e = state;
    if (n > UINT32_MAX || cap > UINT32_MAX || deflateReset(&e->z) != Z_OK)
        return 0;
    e->z.next_in = (Bytef *)(uintptr_t)src;
    e->z.avail_in = (uInt)n;
    e->z.next_out = dst;
    e->z.avail_out = (uInt)cap;
    return deflate(&e->z, Z_FINISH) == Z_STREAM_END ? cap - e->z.avail_out : 0;
}

#else

int tgi_deflate_available(void)
{
    return 0;
}

const char *tgi_deflate_version(void)
{
    return "absent";
}

size_t tgi_deflate_bound(size_t n)
{
    return n;
}

size_t tgi_deflate_state_bytes(void)
{
    return 0;
}

void *tgi_deflate_open(void *memory, int level)
{
    (void)memory;
    (void)level;
    return NULL;
}

size_t tgi_deflate(void *state, const void *src, size_t n, void *dst, size_t cap)
{
    (void)state, (void)src, (void)n, (void)dst, (void)cap;
    return 0;
}

#endif

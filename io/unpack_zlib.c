/* unpack_zlib.c - deflate strips through zlib.
 *
 * zlib asks for its memory while it runs (the window comes with the first block); it gets it
 * from a small arena that is part of the state, so nothing is allocated after open and the
 * bytes are known to the plan. */
#include "engine/base/mem.h"
#include "io/tiff_codec.h"

#include <limits.h>
#include <stdalign.h>
#include <zlib.h>

#define ARENA 49152 /* inflate: some 7 KiB of state and a 32 KiB window (zconf.h, zlib.h) */

typedef struct inflater {
    z_stream z;
    size_t used;
    alignas(16) uint8_t arena[ARENA];
} inflater;

static void *arena_get(void *opaque, unsigned n, unsigned size)
{
    inflater *f = opaque;
    const size_t want = ((size_t)n * size + 15) / 16 * 16;
    if (want > ARENA - f->used)
        return NULL;
    void *p = f->arena + f->used;
    f->used += want;
    return p;
}

static void arena_put(void *opaque, void *p)
{
    (void)opaque;
    (void)p; /* blocks live as long as the state */
}

static tg_status zlib_open(void **state, tgi_err *err)
{
    inflater *f = tgi_calloc(TGI_TAG_IO, 1, sizeof *f);
    if (!f)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a zlib decoder");
    f->z.zalloc = arena_get;
    f->z.zfree = arena_put;
    f->z.opaque = f;
    if (inflateInit(&f->z) != Z_OK) {
        tgi_free(f);
        return tgi_fail(err, TG_E_INTERNAL, "zlib needs more than %d bytes", ARENA);
    }
    *state = f;
    return TG_OK;
}

static void zlib_close(void *state)
{
    inflater *f = state;
    inflateEnd(&f->z);
    tgi_free(f);
}

static size_t zlib_bytes(const void *state)
{
    (void)state;
    return sizeof(inflater);
}

static unsigned piece(size_t n)
{
    return n < UINT_MAX ? (unsigned)n : UINT_MAX;
}

static tg_status zlib_run(void *state, const uint8_t *src, size_t n, uint8_t *dst, size_t cap,
                          size_t want, tgi_err *err)
{
    inflater *f = state;
    size_t in = 0, out = 0;
    int rc = inflateReset(&f->z);
    (void)cap;
    while (rc == Z_OK && out < want) {
        const unsigned in_now = piece(n - in), out_now = piece(want - out);
        f->z.next_in = (z_const Bytef *)(uintptr_t)(src + in);
        f->z.avail_in = in_now;
        f->z.next_out = dst + out;
        f->z.avail_out = out_now;
        rc = inflate(&f->z, Z_NO_FLUSH);
        in += in_now - f->z.avail_in;
        out += out_now - f->z.avail_out;
        if (rc == Z_BUF_ERROR || (f->z.avail_in == in_now && f->z.avail_out == out_now))
            break; /* no progress: the data ended */
    }
    if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
        return tgi_fail(err, TG_E_FORMAT, "deflate data is damaged after %zu of %zu bytes (%s)",
                        out, want, f->z.msg ? f->z.msg : zError(rc));
    if (out < want)
        return tgi_fail(err, TG_E_FORMAT, "deflate data ends after %zu of %zu bytes", out,
                        want);
    return TG_OK;
}

const tgi_codec tgi_codec_zlib = {zlib_open, zlib_close, zlib_bytes, zlib_run};

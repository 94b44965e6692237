/* unpack_zlib.c - deflate strips through zlib; whole blocks through libdeflate where it was
 * found at building.
 *
 * libdeflate does not stream, and its word is taken when it is good alone: the block has the
 * bytes that are wanted, no more, and their checksum. All else zlib looks at again, so what is
 * damaged, cut off or too long ends as it does in a stream. (Of codes that are damaged beside a
 * checksum that is right, libdeflate takes some that zlib refuses: the pixels are those of the
 * checksum.)
 *
 * zlib asks for its memory while it runs (the window comes with the first block); it gets it
 * from a small arena that is part of the state, so nothing is allocated after open and the
 * bytes are known to the plan. */
#include "engine/base/mem.h"
#include "io/tiff_codec.h"

#ifdef TG_HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif
#include <limits.h>
#include <stdalign.h>
#include <zlib.h>

#define ARENA 49152 /* inflate: some 7 KiB of state and a 32 KiB window (zconf.h, zlib.h) */

typedef struct inflater {
    z_stream z;
    struct libdeflate_decompressor *whole; /* or NULL */
    size_t used;
    alignas(16) uint8_t arena[ARENA];
} inflater;

/* ---- libdeflate ---- */

#ifdef TG_HAVE_LIBDEFLATE
#define WHOLE 16384 /* its state: 12 KiB of 1.14 (tests/memory/test_tiff_lib_memory.c) */

static bool whole_open(inflater *f)
{
    f->whole = libdeflate_alloc_decompressor();
    return f->whole;
}

static void whole_close(inflater *f)
{
    libdeflate_free_decompressor(f->whole);
}

static bool zlib_at_once(void *state, const uint8_t *src, size_t n, uint8_t *dst, size_t want)
{
    inflater *f = state;
    size_t got;
    return f->whole &&
           libdeflate_zlib_decompress(f->whole, src, n, dst, want, &got) ==
               LIBDEFLATE_SUCCESS &&
           got == want;
}
#else
#define WHOLE 0
#define zlib_at_once NULL

static bool whole_open(inflater *f)
{
    (void)f;
    return true;
}

static void whole_close(inflater *f)
{
    (void)f;
}
#endif

/* ---- zlib ---- */

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

static tg_status zlib_open(const tgi_packing *p, void **state, tgi_err *err)
{
    inflater *f = tgi_calloc(TGI_TAG_IO, 1, sizeof *f); /* 32 KiB of history, always */
    if (f && p->whole && !whole_open(f)) {
        tgi_free(f);
        f = NULL;
    }
    if (!f)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a zlib decoder");
    f->z.zalloc = arena_get;
    f->z.zfree = arena_put;
    f->z.opaque = f;
    if (inflateInit(&f->z) != Z_OK) {
        whole_close(f);
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
    whole_close(f);
    tgi_free(f);
}

static size_t zlib_bytes(const tgi_packing *p)
{
    return sizeof(inflater) + (p->whole ? WHOLE : 0);
}

static void zlib_begin(void *state)
{
    inflateReset(&((inflater *)state)->z);
}

static unsigned piece(size_t n)
{
    return n < UINT_MAX ? (unsigned)n : UINT_MAX;
}

static tg_status zlib_more(void *state, tgi_pieces *io, tgi_err *err)
{
    inflater *f = state;
    int rc = Z_OK;
    while (rc == Z_OK && io->room) {
        const unsigned in = piece(io->n), out = piece(io->room);
        f->z.next_in = (z_const Bytef *)(uintptr_t)io->src;
        f->z.avail_in = in;
        f->z.next_out = io->dst;
        f->z.avail_out = out;
        rc = inflate(&f->z, Z_NO_FLUSH);
        io->src += in - f->z.avail_in, io->n -= in - f->z.avail_in;
        io->dst += out - f->z.avail_out, io->room -= out - f->z.avail_out;
        if (f->z.avail_in == in && f->z.avail_out == out)
            break; /* no progress: it waits for more */
    }
    io->ended = rc == Z_STREAM_END;
    /* Damage behind what was asked for: the next call meets it again, and what is here is
     * whole.
     */
    if (io->room && rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
        return tgi_fail(err, TG_E_FORMAT, "deflate data is damaged (%s)",
                        f->z.msg ? f->z.msg : zError(rc));
    return TG_OK;
}

const tgi_codec tgi_codec_zlib = {.name = "deflate",
                                  .fuzzed = TGI_FUZZED,
                                  .open = zlib_open,
                                  .close = zlib_close,
                                  .bytes = zlib_bytes,
                                  .begin = zlib_begin,
                                  .more = zlib_more,
                                  .at_once = zlib_at_once,
                                  .sealed = true};

/* unpack_lzma.c - xz strips through liblzma.
 *
 * liblzma allocates the dictionary that the block's header states (8 MiB by default, whatever
 * the size of the strip). How much all of it takes is looked up in the headers when the file is
 * opened; it gets its memory from an arena of that size and begins each block in an empty one,
 * so it allocates nothing while it runs. Source: lzma/container.h, lzma/block.h. */
#include "engine/base/mem.h"
#include "io/tiff_codec.h"

#include <lzma.h>
#include <string.h>

/* What the stream decoder holds beside the filters: states, the index, lists of options. */
#define BESIDE ((size_t)64 << 10)

typedef struct xz {
    lzma_stream z;
    lzma_allocator from;
    lzma_ret rc; /* of the beginning of the block */
    size_t used, cap;
    uint8_t *arena;
} xz;

static void *arena_get(void *opaque, size_t n, size_t size)
{
    xz *x = opaque;
    if (size && n > x->cap / size)
        return NULL;
    const size_t want = (n * size + 63) / 64 * 64;
    if (want > x->cap - x->used)
        return NULL;
    void *p = x->arena + x->used;
    x->used += want;
    return p;
}

static void arena_put(void *opaque, void *p)
{
    (void)opaque, (void)p; /* the next block empties it */
}

static size_t arena_bytes(const tgi_packing *p)
{
    return p->history + BESIDE;
}

static size_t xz_bytes(const tgi_packing *p)
{
    return sizeof(xz) + arena_bytes(p) + 64;
}

static tg_status xz_open(const tgi_packing *p, void **state, tgi_err *err)
{
    xz *x = tgi_malloc(TGI_TAG_IO, xz_bytes(p));
    if (!x)
        return tgi_fail(err, TG_E_NOMEM, "no memory for an LZMA decoder of %zu bytes",
                        xz_bytes(p));
    uint8_t *behind = (uint8_t *)(x + 1);
    *x = (xz){.cap = arena_bytes(p), .arena = behind + (64 - (uintptr_t)behind % 64) % 64};
    x->from = (lzma_allocator){.alloc = arena_get, .free = arena_put, .opaque = x};
    *state = x;
    return TG_OK;
}

/* The state of the block before lies in the arena and is forgotten with it. */
static void xz_begin(void *state)
{
    xz *x = state;
    const lzma_stream none = LZMA_STREAM_INIT;
    x->used = 0;
    x->z = none;
    x->z.allocator = &x->from;
    x->rc = lzma_stream_decoder(&x->z, UINT64_MAX, 0);
}

static const char *why(lzma_ret rc)
{
    switch (rc) {
    case LZMA_MEM_ERROR:
        return "it asks for more memory than its first block";
    case LZMA_FORMAT_ERROR:
        return "not an xz stream";
    case LZMA_OPTIONS_ERROR:
        return "unknown filters";
    default:
        return "damaged";
    }
}

static tg_status xz_more(void *state, tgi_pieces *io, tgi_err *err)
{
    xz *x = state;
    if (x->rc != LZMA_OK)
        return tgi_fail(err, TG_E_FORMAT, "LZMA data: %s", why(x->rc));
    x->z.next_in = io->src;
    x->z.avail_in = io->n;
    x->z.next_out = io->dst;
    x->z.avail_out = io->room;
    lzma_ret rc = LZMA_OK;
    while (rc == LZMA_OK && x->z.avail_out && x->z.avail_in)
        rc = lzma_code(&x->z, LZMA_RUN);
    if (rc == LZMA_OK && x->z.avail_out) /* what it holds back */
        rc = lzma_code(&x->z, LZMA_RUN);
    io->src = x->z.next_in, io->n = x->z.avail_in;
    io->dst = x->z.next_out, io->room = x->z.avail_out;
    io->ended = rc == LZMA_STREAM_END;
    if (rc != LZMA_OK && rc != LZMA_STREAM_END && rc != LZMA_BUF_ERROR)
        return tgi_fail(err, TG_E_FORMAT, "LZMA data: %s", why(rc));
    return TG_OK;
}

/* Memory of the filters of the first block; 0 when that is not to be seen. */
static size_t xz_history(const uint8_t *head, size_t n)
{
    lzma_filter filters[LZMA_FILTERS_MAX + 1];
    lzma_stream_flags flags;
    lzma_block block = {.version = 1, .filters = filters};
    if (n <= LZMA_STREAM_HEADER_SIZE || lzma_stream_header_decode(&flags, head) != LZMA_OK ||
        !head[LZMA_STREAM_HEADER_SIZE])
        return 0;
    block.check = flags.check;
    block.header_size = lzma_block_header_size_decode(head[LZMA_STREAM_HEADER_SIZE]);
    if (block.header_size > n - LZMA_STREAM_HEADER_SIZE ||
        lzma_block_header_decode(&block, NULL, head + LZMA_STREAM_HEADER_SIZE) != LZMA_OK)
        return 0;
    const uint64_t bytes = lzma_raw_decoder_memusage(filters);
    lzma_filters_free(filters, NULL);
    return bytes < SIZE_MAX ? (size_t)bytes : 0;
}

const tgi_codec tgi_codec_lzma = {.name = "LZMA",
                                  .fuzzed = TGI_FUZZED,
                                  .open = xz_open,
                                  .close = tgi_free,
                                  .bytes = xz_bytes,
                                  .begin = xz_begin,
                                  .more = xz_more,
                                  .sealed = true,
                                  .history = xz_history,
                                  .when = TGI_HISTORY_ALWAYS};

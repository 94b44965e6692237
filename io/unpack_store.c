/* unpack_store.c - no compression at all. Only what cannot be copied from the file as it is
 * comes here: packed bits, and bits in the other order. */
#include "io/tiff_codec.h"

#include <string.h>

static tg_status store_open(const tgi_packing *p, void **state, tgi_err *err)
{
    (void)p, (void)err;
    *state = NULL;
    return TG_OK;
}

static void store_nothing(void *state)
{
    (void)state;
}

static tg_status store_more(void *state, tgi_pieces *io, tgi_err *err)
{
    const size_t n = io->n < io->room ? io->n : io->room;
    (void)state, (void)err;
    if (n)
        memcpy(io->dst, io->src, n);
    io->src += n, io->n -= n;
    io->dst += n, io->room -= n;
    return TG_OK;
}

const tgi_codec tgi_codec_store = {.name = "uncompressed",
                                   .fuzzed = TGI_FUZZED,
                                   .open = store_open,
                                   .close = store_nothing,
                                   .begin = store_nothing,
                                   .more = store_more};

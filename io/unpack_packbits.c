/* unpack_packbits.c - runs and literals of bytes: a count of 0 to 127 is followed by that many
 * bytes and one more, 129 to 255 by one byte that stands 257 - count times, 128 means nothing.
 * Source: TIFF 6.0, section 9. */
#include "engine/base/mem.h"
#include "io/tiff_codec.h"

#include <string.h>

/* The run or literal that is under way. */
typedef struct packbits {
    size_t left;
    bool literal, have_value;
    uint8_t value;
} packbits;

static tg_status packbits_open(const tgi_packing *p, void **state, tgi_err *err)
{
    (void)p;
    *state = tgi_calloc(TGI_TAG_IO, 1, sizeof(packbits));
    return *state ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory for a PackBits decoder");
}

static size_t packbits_bytes(const tgi_packing *p)
{
    (void)p;
    return sizeof(packbits);
}

static void packbits_begin(void *state)
{
    *(packbits *)state = (packbits){0};
}

static void copy_literal(packbits *p, tgi_pieces *io)
{
    size_t n = p->left < io->n ? p->left : io->n;
    n = n < io->room ? n : io->room;
    memcpy(io->dst, io->src, n);
    io->src += n, io->n -= n;
    io->dst += n, io->room -= n;
    p->left -= n;
}

static void repeat_value(packbits *p, tgi_pieces *io)
{
    if (!p->have_value) {
        p->value = *io->src++;
        io->n--;
        p->have_value = true;
    }
    const size_t n = p->left < io->room ? p->left : io->room;
    memset(io->dst, p->value, n);
    io->dst += n, io->room -= n;
    p->left -= n;
}

static tg_status packbits_more(void *state, tgi_pieces *io, tgi_err *err)
{
    packbits *p = state;
    (void)err;
    while (io->room) {
        if (!p->left) {
            if (!io->n)
                break;
            const uint8_t c = *io->src++;
            io->n--;
            p->literal = c < 128;
            p->have_value = false;
            p->left = c < 128 ? c + 1u : c > 128 ? 257u - c : 0;
        } else if (p->literal) {
            if (!io->n)
                break;
            copy_literal(p, io);
        } else {
            if (!p->have_value && !io->n)
                break;
            repeat_value(p, io);
        }
    }
    return TG_OK;
}

const tgi_codec tgi_codec_packbits = {.name = "PackBits",
                                      .fuzzed = TGI_FUZZED,
                                      .open = packbits_open,
                                      .close = tgi_free,
                                      .bytes = packbits_bytes,
                                      .begin = packbits_begin,
                                      .more = packbits_more};

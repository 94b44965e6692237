/* unpack_thunderscan.c - 4-bit pixels as runs and small differences. The two upper bits of a
 * byte say what the six lower ones are: how often the last pixel comes again; three differences
 * of 2 bits; two of 3 bits; a pixel. A row begins on a whole byte, and behind a pixel of 0;
 * differences that are left over at its end mean nothing.
 *
 * Not through libtiff: up to 4.6 it leaves out the run that a row ends in.
 * Source: tif_thunder.c of libtiff 4.7, the only description there is. */
#include "engine/base/mem.h"
#include "io/tiff_codec.h"

typedef struct thunder {
    uint32_t width, x;
    uint32_t run;     /* pixels that come again */
    uint8_t last;     /* pixel */
    uint8_t first;    /* of two pixels in a byte, in its upper bits */
    uint8_t queue[3]; /* pixels that a byte of differences holds, */
    unsigned n, at;   /* and which of them is next */
} thunder;

static tg_status thunder_open(const tgi_packing *p, void **state, tgi_err *err)
{
    thunder *t = tgi_calloc(TGI_TAG_IO, 1, sizeof *t);
    if (!t)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a ThunderScan decoder");
    t->width = p->width;
    *state = t;
    return TG_OK;
}

static size_t thunder_bytes(const tgi_packing *p)
{
    (void)p;
    return sizeof(thunder);
}

static void thunder_begin(void *state)
{
    thunder *t = state;
    *t = (thunder){.width = t->width};
}

static void put(thunder *t, tgi_pieces *io, uint8_t pixel)
{
    t->last = pixel;
    if (t->x++ & 1) {
        *io->dst++ = (uint8_t)(t->first | pixel);
        io->room--;
    } else if (t->x == t->width) {
        *io->dst++ = (uint8_t)(pixel << 4);
        io->room--;
    } else {
        t->first = (uint8_t)(pixel << 4);
    }
}

/* What one byte says; `last` is then the last pixel that it holds. */
static void take(thunder *t, unsigned code)
{
    static const int8_t two[] = {0, 1, 0, -1}, three[] = {0, 1, 2, 3, 0, -3, -2, -1};
    const bool small = code >> 6 == 1; /* differences, one number of which is skipped */
    unsigned v = t->last;
    t->n = t->at = 0;
    if (code >> 6 == 0)
        t->run = code;
    else if (code >> 6 == 3)
        t->queue[t->n++] = code & 15;
    else
        for (int shift = small ? 4 : 3; shift >= 0; shift -= small ? 2 : 3) {
            const unsigned d = code >> shift & (small ? 3 : 7);
            if (d == (small ? 2 : 4))
                continue;
            v = (v + (unsigned)(small ? two[d] : three[d])) & 15;
            t->queue[t->n++] = (uint8_t)v;
        }
}

static tg_status thunder_more(void *state, tgi_pieces *io, tgi_err *err)
{
    thunder *t = state;
    while (io->room) {
        if (t->run) {
            t->run--;
            put(t, io, t->last);
        } else if (t->at < t->n) {
            put(t, io, t->queue[t->at++]);
        } else if (io->n) {
            take(t, *io->src++);
            io->n--;
        } else {
            break;
        }
        if (t->x < t->width)
            continue;
        if (t->run)
            return tgi_fail(err, TG_E_FORMAT, "ThunderScan data: a run goes beyond its row");
        thunder_begin(t);
    }
    return TG_OK;
}

const tgi_codec tgi_codec_thunderscan = {.name = "ThunderScan",
                                         .fuzzed = TGI_FUZZED,
                                         .open = thunder_open,
                                         .close = tgi_free,
                                         .bytes = thunder_bytes,
                                         .begin = thunder_begin,
                                         .more = thunder_more};

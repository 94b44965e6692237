/* unpack_lzw.c - TIFF's LZW: codes of 9 to 12 bits, most significant bit first, the width grows
 * one entry early, 256 clears, 257 ends.
 *
 * Files from before TIFF 5.0 was final have the least significant bit of a code first, and the
 * width grows when it must. Such a block begins with the clear, whose low byte is 0 and whose
 * ninth bit is the first of the second byte: no other block begins so, as it had to begin with
 * two black pixels and no clear.
 *
 * In pieces, a string is kept as its last byte and the code of what stands before it, and
 * written back to front, so decoding needs nothing of the output but the place where it goes: a
 * string that does not fit is held back and handed out with the next piece.
 *
 * A whole block has all its output: there a string is where it was put first, and what a code
 * adds to the table lies there too, the string before and a byte of this one. Anything unusual
 * is left to the first way, which has words for it. Source: TIFF 6.0, section 13; of the old
 * order, libtiff 4.5, which reads it. */
#include "engine/base/mem.h"
#include "io/bytes.h"
#include "io/tiff_codec.h"

#include <string.h>

enum { CLEAR = 256, END = 257, FIRST = 258, TABLE = 4096, NONE = TABLE };

typedef struct lzw {
    union {
        struct {
            uint16_t prefix[TABLE], len[TABLE];
            uint8_t first[TABLE], last[TABLE];
        };
        struct { /* of a whole block */
            uint32_t at[TABLE];
            uint16_t bytes[TABLE];
        };
    };
    uint64_t acc; /* the low `have` bits wait to become codes */
    unsigned have, width, next;
    unsigned prev;  /* the code before, NONE after a clear */
    unsigned early; /* entries before it must that the width grows: 1, or 0 in the old order */
    bool begun, ended;
    size_t held_at, held_n; /* of a string that did not fit */
    uint8_t held[TABLE];
} lzw;

static tg_status lzw_open(const tgi_packing *p, void **state, tgi_err *err)
{
    (void)p;
    lzw *t = tgi_calloc(TGI_TAG_IO, 1, sizeof *t);
    if (!t)
        return tgi_fail(err, TG_E_NOMEM, "no memory for an LZW table");
    *state = t;
    return TG_OK;
}

static size_t lzw_bytes(const tgi_packing *p)
{
    (void)p;
    return sizeof(lzw);
}

static bool is_old(uint8_t first, uint8_t second)
{
    return first == 0 && (second & 1);
}

static void start_over(lzw *t)
{
    t->width = 9;
    t->next = FIRST;
    t->prev = NONE;
}

static void lzw_begin(void *state)
{
    lzw *t = state;
    for (unsigned i = 0; i < CLEAR; i++) {
        t->len[i] = 1;
        t->first[i] = t->last[i] = (uint8_t)i;
    }
    start_over(t);
    t->acc = 0;
    t->have = 0;
    t->begun = t->ended = false;
    t->held_at = t->held_n = 0;
}

static inline bool next_old_code(lzw *t, tgi_pieces *io, unsigned *out)
{
    while (t->have < t->width) {
        if (!io->n)
            return false;
        t->acc |= (uint64_t)*io->src++ << t->have;
        io->n--;
        t->have += 8;
    }
    *out = (unsigned)t->acc & ((1u << t->width) - 1);
    t->acc >>= t->width;
    t->have -= t->width;
    return true;
}

/* Next code of the current width; false when the source is used up. */
static inline bool next_code(lzw *t, tgi_pieces *io, unsigned *out)
{
    if (!t->early)
        return next_old_code(t, io, out);
    while (t->have < t->width) {
        if (!io->n)
            return false;
        t->acc = t->acc << 8 | *io->src++;
        io->n--;
        t->have += 8;
    }
    t->have -= t->width;
    *out = (unsigned)(t->acc >> t->have) & ((1u << t->width) - 1);
    return true;
}

static inline void spell(const lzw *t, unsigned code, uint8_t *end)
{
    for (; code >= FIRST; code = t->prefix[code])
        *--end = t->last[code];
    *--end = (uint8_t)code;
}

static void hand_out(lzw *t, tgi_pieces *io)
{
    const size_t n = t->held_n < io->room ? t->held_n : io->room;
    memcpy(io->dst, t->held + t->held_at, n);
    io->dst += n, io->room -= n;
    t->held_at += n, t->held_n -= n;
}

static void emit(lzw *t, unsigned code, tgi_pieces *io)
{
    const size_t len = t->len[code];
    if (len <= io->room) {
        spell(t, code, io->dst + len);
        io->dst += len, io->room -= len;
        return;
    }
    spell(t, code, t->held + len);
    t->held_at = 0;
    t->held_n = len;
    hand_out(t, io);
}

/* The previous string and the first byte of what comes now. */
static inline void add_entry(lzw *t, unsigned code)
{
    const unsigned e = t->next++;
    t->prefix[e] = (uint16_t)t->prev;
    t->len[e] = (uint16_t)(t->len[t->prev] + 1);
    t->first[e] = t->first[t->prev];
    t->last[e] = t->first[code == e ? t->prev : code];
}

/* The first two bytes, of which no code can be had before, tell the order. */
static bool find_order(lzw *t, tgi_pieces *io)
{
    for (; t->have < 16 && io->n; t->have += 8, io->n--)
        t->acc = t->acc << 8 | *io->src++;
    if (t->have < 16)
        return false;
    t->early = is_old((uint8_t)(t->acc >> 8), (uint8_t)t->acc) ? 0 : 1;
    if (!t->early)
        t->acc = (t->acc & 0xff) << 8 | t->acc >> 8;
    return true;
}

static tg_status lzw_more(void *state, tgi_pieces *io, tgi_err *err)
{
    lzw *t = state;
    unsigned code;
    if (!t->begun && io->room)
        t->begun = find_order(t, io);
    if (!t->begun)
        return TG_OK;
    hand_out(t, io);
    while (io->room && !t->ended && next_code(t, io, &code)) {
        if (code == CLEAR) {
            start_over(t);
            continue;
        }
        if (code == END) {
            t->ended = true;
            break;
        }
        if (code > END &&
            (code > t->next || t->prev == NONE || (code == t->next && t->next == TABLE)))
            return tgi_fail(err, TG_E_FORMAT, "LZW code %u where %u is the largest", code,
                            t->next);
        if (t->prev != NONE && t->next < TABLE)
            add_entry(t, code);
        emit(t, code, io);
        t->prev = code;
        if (t->next + t->early >= 1u << t->width && t->width < 12)
            t->width++;
    }
    io->ended = t->ended && !t->held_n;
    return TG_OK;
}

/* ---- Whole blocks ---- */

/* n bytes that lie before dst, at least a byte; up to 15 more are written where there is room.
 */
static inline void copy_string(uint8_t *dst, const uint8_t *src, size_t n, size_t room)
{
    if (n > 128 || n + 16 > room) {
        memcpy(dst, src, n);
        return;
    }
    size_t i = 0;
    do { /* most strings are short */
        uint8_t part[16];
        memcpy(part, src + i, sizeof part);
        memcpy(dst + i, part, sizeof part);
        i += sizeof part;
    } while (i < n);
}

static bool lzw_at_once(void *state, const uint8_t *src, size_t n, uint8_t *dst, size_t want)
{
    lzw *t = state;
    unsigned width = 9, next = FIRST, have = 0;
    uint64_t acc = 0;
    size_t in = 0, out = 0, prev = 0, prev_n = 0; /* the string before; 0: none */
    if (want > UINT32_MAX || n < 2 || is_old(src[0], src[1]))
        return false;
    while (out < want) {
        if (have < width && n - in >= 4) {
            acc = acc << 32 | tgi_load32(src + in, true);
            in += 4, have += 32;
        }
        for (; have < width && in < n; have += 8)
            acc = acc << 8 | src[in++];
        if (have < width)
            return false;
        have -= width;
        const unsigned code = (unsigned)(acc >> have) & ((1u << width) - 1);
        const size_t room = want - out;
        size_t len = 1;
        if (code == CLEAR) {
            width = 9, next = FIRST, prev_n = 0;
            continue;
        }
        if (prev_n && next < TABLE) {
            t->at[next] = (uint32_t)prev;
            t->bytes[next++] = (uint16_t)(prev_n + 1);
            width += next + 1 >= 1u << width && width < 12;
        }
        if (code < CLEAR) {
            dst[out] = (uint8_t)code;
        } else if (code >= next || !prev_n || code == END) {
            return false;
        } else {
            len = t->bytes[code];
            if (len > room) /* more than the block has */
                return false;
            const size_t at = t->at[code], whole = at + len <= out ? len : out - at;
            copy_string(dst + out, dst + at, whole, room);
            if (whole < len) /* the string that this code has just made */
                dst[out + whole] = dst[at];
        }
        prev = out;
        prev_n = len;
        out += len;
    }
    /* The end mark comes next, or `more` looks at what does. */
    for (; have < width && in < n; have += 8)
        acc = acc << 8 | src[in++];
    return have >= width && ((unsigned)(acc >> (have - width)) & ((1u << width) - 1)) == END;
}

const tgi_codec tgi_codec_lzw = {.name = "LZW",
                                 .fuzzed = TGI_FUZZED,
                                 .marked = true,
                                 .open = lzw_open,
                                 .close = tgi_free,
                                 .bytes = lzw_bytes,
                                 .begin = lzw_begin,
                                 .more = lzw_more,
                                 .at_once = lzw_at_once};
